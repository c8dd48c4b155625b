"""`rmqlb show-owners`."""

from typing import TYPE_CHECKING, Annotated, Literal

from rmqlb.cli.common.each_group import EachGroup
from rmqlb.cli.common.inputs import (
    group_on_topics,
    no_strategy,
    require_named,
)
from rmqlb.cli.common.options import (
    GroupOptions,
    GroupsOptions,
    OutputOptions,
    PopShare,
    SourceOptions,
    StrategyOptions,
    about_option,
    command,
)
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqlb.cli.common.inputs import GroupOnTopics
    from rmqlb.engine.allocate.strategy import Settings
    from rmqlb.model.finding import Finding
    from rmqlb.model.owners import BrokerAssignments, OwnersReport, PopTopic, QueueOffsets
    from rmqlb.model.snapshot import ClusterSnapshot

MOST_ASKED = 256
"""Questions to brokers about what they assign."""


@command
def show_owners(
    source: SourceOptions,
    groups: GroupsOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    strategy: Annotated[
        list[str] | None,
        about_option(
            metavar="STRATEGY", help="Or FILE.py:NAME, which is run; repeatable; default: those without settings."
        ),
    ] = None,
    pop_share: PopShare = None,
) -> None:
    """Show which consumer owns each queue under each strategy, beside who owns it now.

    Examples:
      rmqlb show-owners -s examples/cluster.json --group order-svc

      rmqlb show-owners -s examples/cluster.json --topic OrderEvents --consumers 5 --strategy AVG --section summary

      rmqlb show-owners -s examples/cluster.json -g order-svc -g 'bill-*' --strategy AVG

    Exit codes: 0 done, 2 usage, 4 group, topic or consumers are not there, 5 endpoint unreachable.
    """
    from rmqlb.cli.common.strategies import Strategies
    from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
    from rmqlb.views.owners.several import owners_of_groups
    from rmqlb.views.owners.view import owners_report

    terminal = Terminal("show-owners", output, more_formats=("jsonl", "prometheus"))
    check_watch(watching, source, groups.consumers, terminal)
    each = EachGroup(groups, source)
    strategies = Strategies(strategy_options.strategy_option)
    names = list(dict.fromkeys(strategies.name(name) for name in strategy or WITHOUT_SETTINGS))
    strategies.must_apply(reported=False)
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read(each.wanted)
        reports: list[OwnersReport] = []

        def one(which: GroupOptions) -> SnapshotView:
            found = _found(snapshot, which, is_named=bool(strategy), pop_share=pop_share)
            own = strategies.settings_for([route.topic for route in (*found.routes, *found.popped)], found.name)
            with terminal.progress(verb="predicting") as progress:
                progress(f"the owners of {found.title}", 0, 0)
                owners = _owners(found, names, own, is_named=bool(strategy), explain=which.explain)
            report, more = _as_brokers_do(owners, found, names if strategy else [], pop_share, read)
            reports.append(report)
            drawn = owners_report(report, explained=which.explain)
            findings = _findings(found, names, own, is_named=bool(strategy), explain=which.explain)
            return SnapshotView(drawn, snapshot, (*findings, *_mixed(found, owners), *more))

        return each.look(snapshot, one, lambda parts: owners_of_groups(parts, reports))

    show(look, watching, terminal)


def _found(
    snapshot: "ClusterSnapshot", which: GroupOptions, *, is_named: bool, pop_share: int | None
) -> "GroupOnTopics":
    """The group with at least one consumer; `is_named`: a strategy is."""
    from rmqlb.engine.assignment.pop_and_proxy import nobody_online

    by_pop = pop_share is not None
    found = group_on_topics(snapshot, which, broadcasting_too=True, pop_too=True, hidden_too=True, all_by_pop=by_pop)
    for option, given in (("--pop-share", by_pop), ("--strategy", is_named)):
        if (found.broadcasting or found.by_proxy) and given:
            raise no_strategy(option, found)
    require_named(which, found.client_ids)
    if not found.client_ids and not found.hidden:
        raise nobody_online(found.name, found.group, "name consumers with --consumers")
    return found


def _as_brokers_do(
    report: "OwnersReport", found: "GroupOnTopics", named: "Sequence[str]", pop_share: int | None, read: Reader
) -> "tuple[OwnersReport, tuple[Finding, ...]]":
    """The report with what brokers decide, and the findings about it."""
    from msgspec.structs import replace

    by_pop, of_pop = _by_pop(found, named, pop_share)
    asked, of_brokers = _by_brokers(found, read)
    report = replace(
        report,
        pop_topics=by_pop,
        sdks=found.used_sdks,
        broker_assignments=asked,
        offsets=_offsets(found),
        hidden=_hidden(found),
    )
    return report, (*of_pop, *of_brokers)


def _by_pop(
    found: "GroupOnTopics", named: "Sequence[str]", pop_share: int | None
) -> "tuple[tuple[PopTopic, ...], tuple[Finding, ...]]":
    """Who may read what of the topics that are consumed by POP, and the findings about it."""
    if not found.popped:
        return (), ()
    from rmqlb.engine.assignment.pop_topics import pop_findings, pop_topics, proxy_topics

    if found.by_proxy:
        return proxy_topics(found.popped, None if found.hidden else found.client_ids), ()
    group = None if found.assumed else found.group
    strategy = named[0] if named else None
    topics = pop_topics(group, found.popped, found.client_ids, strategy=strategy, share=pop_share)
    return topics, tuple(pop_findings(topics, found.name))


def _hidden(found: "GroupOnTopics") -> "Literal['certain', 'likely'] | None":
    """How sure it is that its consumers are behind a Proxy, where they are not visible."""
    if not found.hidden or found.group is None:
        return None
    return "certain" if found.group.polling_num else "likely"


def _offsets(found: "GroupOnTopics") -> "tuple[QueueOffsets, ...]":
    """How far a group behind a Proxy has read the queues of its topics."""
    from rmqlb.model.group import QueueState
    from rmqlb.model.owners import QueueOffsets

    queues = [queue for route in found.popped for queue in route.subscribe_queues()] if found.by_proxy else []
    states = ((queue, found.states.get(queue, QueueState())) for queue in queues)
    return tuple(
        QueueOffsets(q.topic, q.broker_name, q.queue_id, state.broker_offset, state.consumer_offset, state.lag)
        for q, state in states
    )


def _by_brokers(found: "GroupOnTopics", read: Reader) -> "tuple[tuple[BrokerAssignments, ...], tuple[Finding, ...]]":
    """What brokers answer consumers that let them assign their queues, where they can be asked."""
    group = None if found.assumed or found.broadcasting or found.by_proxy else found.group
    if group is None or not any(report.client_rebalance is False for report in group.reports.values()):
        return (), ()
    from rmqlb.engine.assignment.asked_brokers import assignment_findings, assignment_questions, compare_assignments

    routes = (*found.routes, *found.popped)
    questions = tuple(assignment_questions(group, routes))
    answers = read.ask_assignments(group.group, questions[:MOST_ASKED])
    if answers is None:
        return (), ()
    asked = compare_assignments(group, routes, answers)
    return asked, tuple(assignment_findings(asked, len(questions)))


def _owners(
    found: "GroupOnTopics", names: "Sequence[str]", own: "Settings", *, is_named: bool, explain: bool
) -> "OwnersReport":
    """The owners under the named strategies; of a BROADCASTING group, which has the same under each, under one."""
    from collections import Counter

    from msgspec.structs import replace

    from rmqlb.engine.assignment.assign import runnable
    from rmqlb.engine.assignment.consumers import reported_strategies
    from rmqlb.engine.assignment.detect import mixed_mismatches
    from rmqlb.engine.assignment.owners import owners_by_strategy

    members = replace(found.members(own), strategy=names[0])
    shown = names[:1] if found.broadcasting else names if is_named else runnable(names, members)
    shown = shown if found.routes else []
    report = owners_by_strategy(found.name, found.routes, members, shown, states=found.states, explain=explain)
    reported = {} if found.assumed or found.group is None else reported_strategies(found.group)
    return replace(
        report,
        strategies_reported=dict(Counter(reported.values()).most_common()),
        mixed_mismatches=mixed_mismatches(reported, found.routes, members, found.states),
    )


def _mixed(found: "GroupOnTopics", report: "OwnersReport") -> "Iterator[Finding]":
    """That consumers run several client libraries, as grave as it is with their strategy, if known."""
    run = [each for each in report.strategies if each.strategy in report.strategies_reported]
    run = run or [each for each in report.strategies if each.mismatches == 0] or list(report.strategies)
    if run:
        worst = max(run, key=lambda each: each.unassigned + each.duplicate_owners)
        yield from found.mixed_sdks(worst.unassigned, worst.duplicate_owners)


def _findings(
    found: "GroupOnTopics", names: "Sequence[str]", own: "Settings", *, is_named: bool, explain: bool
) -> "Iterator[Finding]":
    from rmqlb.cli.common.strategies import own_findings
    from rmqlb.engine.assignment.consumers import broadcasting_finding, sort_findings
    from rmqlb.engine.assignment.detect import not_shown, observed_owners
    from rmqlb.engine.assignment.owner_findings import owner_findings

    queues = found.queues
    yield from found.findings
    if not found.routes:
        return
    if found.broadcasting:
        yield broadcasting_finding(found.title, found.name)
    elif not found.assumed:
        observed = observed_owners(found.states)
        owners = {queue: observed[queue] for queue in queues if queue in observed}
        yield from owner_findings(owners, found.title, found.name, "observed", found.states)
    yield from own_findings(names, queues, found.client_ids, own)
    if found.group and not (found.assumed or found.broadcasting or is_named):
        yield from not_shown(found.group, names)
    if explain:
        yield from sort_findings(found.client_ids, "client ids")
        yield from sort_findings([queue.broker_name for queue in queues], "broker names")
