"""What there is: groups, their consumers, the owners of their queues, and routes."""

from itertools import filterfalse
from typing import Any

from msgspec.structs import replace

from rmqlb.cli.common.declare import Options, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import (
    GroupsOptions,
    LagOptions,
    OutputOptions,
    PopOptions,
    SomeGroups,
    SourceOptions,
    StrategyOptions,
)
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.reading import Reading
from rmqlb.cli.common.show_or_watch import WatchOptions, answer, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError
from rmqlb.model.group import is_system_topic
from rmqlb.model.result import counted
from rmqlb.model.snapshot import Wanted


class ShowGroupsOptions(PageOptions, StrategyOptions, LagOptions):
    groups: Texts = own(
        "-g --group GLOB", "Consumer groups by name or pattern ('pay-*'); default: all; repeatable.", positional="GROUP"
    )
    severity: Text = shown(
        "SEVERITY", "Show only groups with findings this severe or worse. SEVERITY is error, warning or info."
    )
    policy: Text = own("-p FILE|-", "Policy file whose lag limits override --max-lag.", stdin="-")
    fail_on: Texts = own("CONDITION", "Exit 3 if a condition holds: 'lag[G]>1000'; repeatable.")


@command
def show_groups(
    source: SourceOptions, options: ShowGroupsOptions, output: OutputOptions, watching: WatchOptions
) -> None:
    """List consumer groups, one per line, worst first.

    Examples:
      rmqlb show-groups -s examples/cluster.json
      rmqlb show-groups -s examples/cluster.json -g 'order-*' -g bill-svc -o json
      rmqlb show-groups -s examples/faults.json --severity warning --fail-on 'groups-with-errors>0'
      rmqlb show-groups -s examples/faults.json --earlier examples/faults-before.json -o wide

    A group is broken if a queue has no owner or two owners, or if a finding is an error. A group is lagging if its lag
    is above --max-lag, or if a finding is a warning. With --earlier, a group is also lagging if its lag does not
    drain at the current rates. A group is unknown if its owners are unknown, as in POP mode, and offline if it has no
    consumer. Otherwise, the group is in order.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches no group, a figure of
    --fail-on is unknown, or a server did not answer, 5 endpoint unreachable.
    """
    report, formats, hint = "groups_report", ("jsonl", "prometheus"), "leave the condition out to see the groups"
    answer("show-groups", report, source, options, output, watching, formats=formats, doing="judging", hint=hint)


class ConsumersOptions(SomeGroups, LagOptions):
    pass


@command
def show_consumers(
    source: SourceOptions, options: ConsumersOptions, output: OutputOptions, watching: WatchOptions
) -> None:
    """List the consumers of groups: each process with its address, version, queues and lag.

    Examples:
      rmqlb show-consumers -s examples/cluster.json -g order-svc
      rmqlb show-consumers -s examples/four-groups.yaml -g '*-svc'
      rmqlb show-consumers -s examples/cluster.json -g bill-svc -o json

    Two processes that share a client ID have two rows. Both rows list the queues of the client ID, because both
    processes consume them.

    Exit codes: 0 done, 2 usage, 4 the group does not exist or a server did not answer, 5 endpoint
    unreachable.
    """
    how: dict[str, Any] = {"module": "show_groups", "formats": ("jsonl",), "doing": "judging"}
    answer("show-consumers", "consumers_report", source, options, output, watching, **how)


class OwnersOptions(PopOptions, GroupsOptions):
    strategies: Texts = about(
        "--strategy STRATEGY|all",
        "Allocation strategy, or FILE.py:NAME. FILE.py is run; default: all without required settings; repeatable.",
    )


@command
def show_owners(source: SourceOptions, options: OwnersOptions, output: OutputOptions, watching: WatchOptions) -> None:
    """Show the predicted and the observed owner of each queue.

    Examples:
      rmqlb show-owners -s examples/cluster.json --group order-svc
      rmqlb show-owners -s examples/cluster.json --topic OrderEvents --consumers 5 --strategy AVG --section summary
      rmqlb show-owners -s examples/cluster.json -g order-svc -g 'bill-*' --strategy AVG

    Exit codes: 0 done, 2 usage, 4 group, topic or consumers are missing or a server did not
    answer, 5 endpoint unreachable.
    """
    formats = ("jsonl", "prometheus")
    answer("show-owners", "owners_report", source, options, output, watching, formats=formats, doing="predicting")


class RouteOptions(Options):
    topics: Texts = own(
        "-t --topic TOPIC", "Topics by name; default: all of the source; repeatable.", positional="TOPIC"
    )


@command(without=("proxy",))
def show_route(source: SourceOptions, output: OutputOptions, watching: WatchOptions, chosen: RouteOptions) -> None:
    """Show the brokers and queues of topics: writable for producers, readable for consumers.

    Examples:
      rmqlb show-route -s examples/cluster.json --topic Skewed
      rmqlb show-route -s examples/cluster.json -o json --section brokers

    Exit codes: 0 done, 2 usage, 4 the topic does not exist, 5 endpoint unreachable.
    """
    from rmqlb.engine.source_findings import route_findings, sighting_findings
    from rmqlb.views.route_view import route_report

    terminal = Terminal("show-route", output, more_formats=("jsonl",))
    wanted = Wanted(tuple(dict.fromkeys(chosen.topics)) if chosen.topics else None, groups=False)
    read = Reading(source, terminal)

    def look() -> SnapshotView:
        snapshot = read.fetch(wanted)
        for name in wanted.topics or ():
            snapshot.route(name)
        own = sum(map(is_system_topic, snapshot.routes))
        names = wanted.topics or sorted(filterfalse(is_system_topic, snapshot.routes))
        if not names:
            raise DataError(f"{snapshot.endpoint} has no route", code="topic-not-found")
        findings = [finding for name in names for finding in route_findings(snapshot.route(name))]
        findings += (finding for name in names for finding in sighting_findings(snapshot.routes[name]))
        report = route_report([snapshot.routes[name] for name in names])
        if own and not wanted.topics:
            more = f"  {counted(own, 'topic')} of RocketMQ's own not listed"
            report = replace(report, facts=(*report.facts, more))
        return SnapshotView(report, snapshot, (*findings, *source_findings(snapshot)))

    show(look, watching, terminal)
