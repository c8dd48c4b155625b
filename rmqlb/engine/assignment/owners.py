"""The owners of a group's queues under several strategies, next to the observed owners."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec.structs import asdict, replace

from rmqlb.engine.allocate.conformance import own_findings
from rmqlb.engine.allocate.strategy import BROKER_STRATEGIES
from rmqlb.engine.assignment.assign import Members, Owners, assign, counts, merged, runnable, spread, under, why_idle
from rmqlb.engine.assignment.brokers import pop_findings, pop_topics, proxy_topics
from rmqlb.engine.assignment.consumers import mixed_finding, nobody_online, sort_findings
from rmqlb.engine.assignment.detect import mismatch_findings, mixed_mismatches, not_shown, observed_owners
from rmqlb.engine.group import Group, reported_by
from rmqlb.engine.group_findings import planning_findings
from rmqlb.errors import UsageError
from rmqlb.model.group import QueueState, States
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.owners import ConsumerQueues, OwnersReport, PopTopic, QueueOffsets, QueueOwners, StrategyOwners
from rmqlb.model.result import Finding
from rmqlb.model.route import TopicRouteData


def owners_by_strategy(
    group: str | None,
    routes: Sequence[TopicRouteData],
    members: Members,
    strategies: Iterable[str],
    *,
    states: States | None = None,
    explain: bool = False,
) -> OwnersReport:
    """The owners under each strategy, whatever the consumers run (raises AllocationError)."""
    states = states or {}
    queues = [queue for route in routes for queue in route.subscribe_queues()]
    seen = {queue: states[queue] for queue in queues if queue in states}
    observed = observed_owners(seen)
    figures: list[StrategyOwners] = []
    owners: dict[str, Owners] = {}
    reasons: dict[str, dict[MessageQueue, str]] = {}
    for one in (under(members, name) for name in strategies):
        assignments = [assign(route, one, explain=explain) for route in routes]
        owners[one.name] = merged(assignments)
        reasons[one.name] = {queue: why for each in assignments for queue, why in each.reasons.items()}
        numbers = counts(owners[one.name], dict.fromkeys(sort_client_ids(one.client_ids)))
        consumers = (
            ConsumerQueues(client_id, number, None if number else why_idle(client_id, assignments))
            for client_id, number in numbers.items()
        )
        even = asdict(spread(owners[one.name], one.client_ids, broadcasting=one.broadcasting))
        differ = sum(owners[one.name].get(queue) != own for queue, own in observed.items()) if observed else None
        figures.append(StrategyOwners(**even | {"consumers": tuple(consumers)}, strategy=one.name, mismatches=differ))
    everything = dict.fromkeys((*queues, *(queue for own in owners.values() for queue in own)))
    return OwnersReport(
        group=group,
        topics=tuple(route.topic for route in routes),
        sorted_consumers=tuple(sort_client_ids(members.client_ids)),
        queues=tuple(
            QueueOwners(
                queue.topic,
                queue.broker_name,
                queue.queue_id,
                observed.get(queue),
                seen.get(queue, QueueState()).lag,
                {name: own.get(queue, ()) for name, own in owners.items()},
                {name: why.get(queue) for name, why in reasons.items()},
            )
            for queue in everything
        ),
        strategies=tuple(figures),
    )


def owners_of_group(
    group: Group, strategies: Sequence[str], *, named: bool, pop_share: int | None = None, explain: bool = False
) -> tuple[OwnersReport, tuple[Finding, ...]]:
    """The owners of the group's queues under each strategy, and the findings.

    Strategies that no consumer can run are left out, unless `named`. With `pop_share` all topics count as consumed by
    POP with this `popShareQueueNum`. Raises DataError without a consumer or known owners, UsageError for
    an option about a strategy where none decides.
    """
    group.must_share(broadcasting=True, pop=True, hidden=True)
    for option, given in (("--pop-share", pop_share is not None), ("--strategy", named)):
        if given:
            must_ask_a_strategy(group, option)
    if not group.client_ids and not group.hidden:
        raise nobody_online(group.name, group.seen, "name consumers with --consumers")
    shown = list(strategies)[:1] if group.broadcasting else _answered(group, strategies, named=named)
    if not group.pulled_routes:
        shown = []
    members = group.under_all(strategies[0])
    report = owners_by_strategy(group.name, group.pulled_routes, members, shown, states=group.states, explain=explain)
    reported = reported_by(group)
    strategy = strategies[0] if named else None
    by_pop, of_pop = popped_topics(group, group.popped_routes, group.client_ids, strategy, pop_share)
    hidden: Literal["certain", "likely"] = "certain" if group.seen and group.seen.polling_num else "likely"
    popped = group.popped_routes if group.by_proxy else ()
    queues = [queue for route in popped for queue in route.subscribe_queues()]
    offsets = ((queue, group.states.get(queue, QueueState())) for queue in queues)
    report = replace(
        report,
        strategies_reported=dict(Counter(reported.values()).most_common()),
        mixed_mismatches=mixed_mismatches(reported, group.pulled_routes, members, group.states),
        pop_topics=by_pop,
        sdks=group.used_sdks,
        offsets=tuple(
            QueueOffsets(q.topic, q.broker_name, q.queue_id, state.broker_offset, state.consumer_offset, state.lag)
            for q, state in offsets
        ),
        hidden=hidden if group.hidden else None,
    )
    findings = _findings(group, report, shown, explain=explain)
    if named and not any(each.code == "mismatch" for each in findings):
        findings += _named_mismatch(group, report)
    return report, tuple(dict.fromkeys((*findings, *of_pop)))


def _answered(group: Group, strategies: Sequence[str], *, named: bool) -> list[str]:
    if named:
        for each in strategies:
            group.must_be_answered(group.under_all(each))
        return list(strategies)
    known = BROKER_STRATEGIES if group.asks_brokers else strategies
    return [name for name in runnable(strategies, group.under_all(strategies[0])) if name in known]


def must_ask_a_strategy(group: Group, option: str) -> None:
    """Refuse an option about a strategy where none decides (raises UsageError)."""
    if group.by_proxy:
        why, other = "its consumers are behind a Proxy", "name other consumers with --consumers ID,ID,…"
    elif group.broadcasting:
        why, other = "it is BROADCASTING", "predict it as CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…"
    else:
        return
    problem = f"{option}: no strategy decides the owners of queues in {group.title}: {why}"
    raise UsageError(problem, hint=f"leave {option} out, or {other}", group=group.name)


def popped_topics(
    group: Group,
    routes: Sequence[TopicRouteData],
    client_ids: Sequence[str],
    strategy: str | None,
    share: int | None,
    *,
    by_views: bool = True,
) -> tuple[tuple[PopTopic, ...], tuple[Finding, ...]]:
    """Topics without owners, and their findings; without `by_views` all brokers list the same consumers."""
    if group.by_proxy:
        return proxy_topics(routes, None if group.hidden else client_ids), ()
    seen = None if group.assumed else group.seen
    if seen is not None and not by_views:
        seen = replace(seen, views=None)
    topics = pop_topics(seen, routes, client_ids, strategy=strategy, share=share)
    return topics, tuple(pop_findings(topics, group.name))


def _named_mismatch(group: Group, report: OwnersReport) -> Iterator[Finding]:
    differ = {each.strategy: each.mismatches or 0 for each in report.strategies}
    if group.assumed or group.broadcasting or report.mixed_mismatches is not None or not all(differ.values()):
        return
    for closest in sorted(differ, key=lambda name: differ[name])[:1]:
        predicted = {MessageQueue(q.topic, q.broker_name, q.queue_id): q.owners[closest] for q in report.queues}
        yield from mismatch_findings(predicted, closest, group.states)


def _findings(group: Group, report: OwnersReport, strategies: Sequence[str], *, explain: bool) -> list[Finding]:
    found = [each for each in planning_findings(group) if each.code != "assumed-strategy"]  # each strategy is shown
    if not group.pulled_routes:
        return found
    found += own_findings(strategies, group.pulled_queues, group.client_ids, group.settings)
    if group.seen and not (group.assumed or group.broadcasting):
        found += not_shown(group.seen, strategies)
    if group.names_sdks and not group.broadcasting and report.strategies:
        run = [each for each in report.strategies if each.strategy in report.strategies_reported]
        run = run or [each for each in report.strategies if each.mismatches == 0] or list(report.strategies)
        worst = max(run, key=lambda each: each.unassigned + each.duplicate_owners)
        found += mixed_finding(group.sdks, group.client_ids, worst.unassigned, worst.duplicate_owners)
    if explain:
        found += sort_findings(group.client_ids, "client IDs")
        found += sort_findings([queue.broker_name for queue in group.pulled_queues], "broker names")
    return found
