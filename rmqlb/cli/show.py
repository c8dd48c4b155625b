"""What there is: groups, their consumers, the owners of their queues, and routes."""

from functools import partial
from itertools import filterfalse

from msgspec.structs import replace

from rmqlb.cli.common.declare import Options, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import GroupsOptions, OneGroup, OutputOptions, PopOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.reading import Reader, ask, earlier_files
from rmqlb.cli.common.show_or_watch import WatchOptions, show, show_verb
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import MAX_LAG
from rmqlb.model.group import is_system_topic
from rmqlb.model.result import counted
from rmqlb.model.snapshot import Wanted


class ShowGroupsOptions(PageOptions, StrategyOptions):
    groups: Texts = own(
        "-g --group GLOB", "Consumer groups, by name or as 'pay-*'; repeatable; default: all.", positional="GROUP"
    )
    severity: Text = shown("SEVERITY", "Only groups with a finding at least so grave: error, warning or info.")
    max_lag: int = own("N", "Unread messages above which a group is lagging.", MAX_LAG, min=0)
    policy: Text = own("-p FILE|-", "A policy whose limits of lag go before --max-lag.", stdin="-")
    earlier: Texts = own(
        "--earlier FILE|-", "An earlier snapshot, for drain times; repeatable.", stdin="-", for_verb=False
    )
    fail_on: Texts = own("CONDITION", "Exit 3 when it is met: 'groups-with-errors>0', 'lag[G]>1000'; repeatable.")


@command
def show_groups(
    source: SourceOptions, options: ShowGroupsOptions, output: OutputOptions, watching: WatchOptions
) -> None:
    """Show every consumer group in a line, the worst first.

    Examples:
      rmqlb show-groups -s examples/cluster.json
      rmqlb show-groups -s examples/cluster.json -g 'order-*' -g bill-svc -o json
      rmqlb show-groups -s examples/faults.json --severity warning --fail-on 'groups-with-errors>0'
      rmqlb show-groups -s examples/faults.json --earlier examples/faults-before.json -o wide

    A group is broken when queues have no owner or two, or messages wait; lagging when its lag is above --max-lag;
    unknown when its owners are, as for consumption by POP; otherwise in order.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches no group, a figure of
    --fail-on is unknown, or a server did not answer, 5 endpoint unreachable.
    """
    from rmqlb.verbs import show_groups as verb
    from rmqlb.views.show_groups import groups_report

    terminal = Terminal("show-groups", output, more_formats=("jsonl", "prometheus"), files=options)
    reader = Reader(source, terminal)
    found = ask(verb.show_groups, reader, options, earlier=earlier_files(options.earlier or (), reader))
    hint = "leave the condition out to see the groups"
    show_verb(found, groups_report, terminal, watching, verb="judging", unknown_hint=hint)


class ConsumersOptions(OneGroup):
    earlier: Texts = own(
        "--earlier FILE|-", "An earlier snapshot, for drain times; repeatable.", stdin="-", for_verb=False
    )


@command
def show_consumers(
    source: SourceOptions, options: ConsumersOptions, output: OutputOptions, watching: WatchOptions
) -> None:
    """Show a group's consumers: each running process with its address, version, queues and lag.

    Examples:
      rmqlb show-consumers -s examples/cluster.json -g order-svc
      rmqlb show-consumers -s examples/cluster.json -g bill-svc -o json

    Two processes that share a client ID are two rows. What a client ID owns is then said of both: each of them reads
    these queues.

    Exit codes: 0 done, 2 usage, 4 the group is not there or a server did not answer, 5 endpoint
    unreachable.
    """
    from rmqlb.verbs import show_groups as verb
    from rmqlb.views.show_groups import consumers_report

    terminal = Terminal("show-consumers", output, more_formats=("jsonl",))
    reader = Reader(source, terminal)
    found = ask(verb.show_consumers, reader, options, earlier=earlier_files(options.earlier or (), reader))
    show_verb(found, consumers_report, terminal, watching, verb="judging")


class OwnersOptions(PopOptions, GroupsOptions):
    strategies: Texts = about(
        "--strategy STRATEGY|all", "Strategy, or FILE.py:NAME, which is run; repeatable; default: all without settings."
    )


@command
def show_owners(source: SourceOptions, options: OwnersOptions, output: OutputOptions, watching: WatchOptions) -> None:
    """Show which consumer owns each queue, as predicted and as observed.

    Examples:
      rmqlb show-owners -s examples/cluster.json --group order-svc
      rmqlb show-owners -s examples/cluster.json --topic OrderEvents --consumers 5 --strategy AVG --section summary
      rmqlb show-owners -s examples/cluster.json -g order-svc -g 'bill-*' --strategy AVG

    Exit codes: 0 done, 2 usage, 4 group, topic or consumers are not there or a server did not
    answer, 5 endpoint unreachable.
    """
    from rmqlb.verbs import show_owners as verb
    from rmqlb.views.show_owners import owners_report

    terminal = Terminal("show-owners", output, more_formats=("jsonl", "prometheus"))
    found = ask(verb.show_owners, Reader(source, terminal), options)
    show_verb(found, partial(owners_report, explained=options.explain), terminal, watching, verb="predicting")


class RouteOptions(Options):
    topics: Texts = own(
        "-t --topic TOPIC", "Topics; repeatable; default: all topics of the source.", positional="TOPIC"
    )


@command(without=("proxy",))
def show_route(source: SourceOptions, output: OutputOptions, watching: WatchOptions, chosen: RouteOptions) -> None:
    """Show a topic's brokers and queues, as producers and consumers see them.

    Examples:
      rmqlb show-route -s examples/cluster.json --topic Skewed
      rmqlb show-route -s examples/cluster.json -o json --section brokers

    Exit codes: 0 done, 2 usage, 4 the topic is not there, 5 endpoint unreachable.
    """
    from rmqlb.engine.source_findings import route_findings, sighting_findings
    from rmqlb.views.route_view import route_report

    terminal = Terminal("show-route", output, more_formats=("jsonl",))
    wanted = Wanted(tuple(dict.fromkeys(chosen.topics)) if chosen.topics else None, groups=False)
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read.fetch(wanted)
        for name in wanted.topics or ():
            snapshot.route(name)
        own = sum(map(is_system_topic, snapshot.routes))
        names = wanted.topics or sorted(filterfalse(is_system_topic, snapshot.routes))
        if not names:
            raise DataError(f"no route is in {snapshot.endpoint}", code="topic-not-found")
        findings = [finding for name in names for finding in route_findings(snapshot.route(name))]
        findings += (finding for name in names for finding in sighting_findings(snapshot.routes[name]))
        report = route_report([snapshot.routes[name] for name in names])
        if own and not wanted.topics:
            more = f"  {counted(own, 'topic')} of RocketMQ's own not listed"
            report = replace(report, facts=(*report.facts, more))
        return SnapshotView(report, snapshot, (*findings, *source_findings(snapshot)))

    show(look, watching, terminal)
