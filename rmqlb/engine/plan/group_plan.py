"""The plan of one group: both sides of a change, the way between them, and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.engine.allocate.conformance import own_findings
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.brokers import ANY_QUEUE, pop_findings, pop_topics, proxy_topics
from rmqlb.engine.assignment.consumers import mixed_finding, nobody_online, sort_findings
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.changes import Changes, change_members, change_routes, describe
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.engine.rebalance.reported_clients import client_version, consumer_types
from rmqlb.engine.rebalance.simulate import convergence
from rmqlb.engine.route_findings import route_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import Convergence, MovedRange, PopChange, PopTopicPlan, RebalancePlan, Summary
from rmqlb.model.route import TopicRouteData
from rmqlb.model.words import counted


def plan_group(
    group: Group, changes: Changes, *, explain: bool = False, all_strategies: bool = False, pop_share: int | None = None
) -> tuple[RebalancePlan, tuple[Summary, ...], tuple[Finding, ...]]:
    """The group's plan, its summary for each order in which new client IDs may sort, and the findings.

    Args:
        group: the group as it is.
        changes: all changes at once.
        explain: with the reason for each queue's owner.
        all_strategies: with the same change under each strategy that needs no settings.
        pop_share: as if its topics were consumed by POP with this `popShareQueueNum`.

    Raises:
        DataError: the group's consumers do not own its queues, or what decides their owners is unknown.
        UsageError: the change contradicts the group.
    """
    group.must_share(broadcasting=True, pop=True)
    given = (("--pop-share", pop_share), ("--strategy", group.given.strategy), ("--to-strategy", changes.to_strategy))
    for option, value in given:
        if value is not None:
            must_ask_a_strategy(group, option)
    members = group.members
    after_ids = change_members(members.client_ids, changes)
    if not group.client_ids and not after_ids:
        raise nobody_online(group.name, group.seen, "plan with --add N or --consumers")
    routes_after = change_routes((*group.pulled_routes, *group.popped_routes), changes)
    number = len(group.pulled_routes)
    members_after = replace(members, client_ids=after_ids)
    if changes.to_strategy is not None:
        members_after = replace(members_after, strategy=changes.to_strategy, strategy_of={})
        group.must_be_answered(members_after)
    before, after = Side(members, group.pulled_routes), Side(members_after, routes_after[:number])
    named = {*changes.add, *(new for _, new in changes.replace)}
    invented = {*group.placeholders, *(set(after_ids) - set(group.client_ids) - named)}
    joiners = sorted(invented - set(group.placeholders))
    change = describe(changes)
    plan = plan_rebalance(
        group.name, before, after, states=group.states, changes=change, placeholders=invented, explain=explain
    )
    plan, places = over_places(plan, before, after, joiners, group.states)
    if all_strategies:
        plan = compare(plan, before, after, WITHOUT_SETTINGS, joiners)
    popped, of_pop = _popped(group, changes, routes_after[number:], after_ids, pop_share)
    plan = replace(
        plan,
        convergence=_convergence(plan, group, before, after, changes) if group.pulled_routes else None,
        strategy_origin=group.strategy.origin,
        strategies_reported=group.strategy.reported,
        pop_topics=popped,
        sdks=group.used_sdks,
    )
    return plan, places, (*_findings(group, plan, before, after, joiners, explain=explain), *of_pop)


def must_ask_a_strategy(group: Group, option: str) -> None:
    """Refuse an option about the strategy of a group in which no strategy decides (raises UsageError)."""
    if group.by_proxy:
        why, other = "its consumers are behind a Proxy", "name other consumers with --consumers ID,ID,…"
    elif group.broadcasting:
        why, other = "it is BROADCASTING", "look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…"
    else:
        return
    raise UsageError(
        f"{option}: no strategy decides who reads a queue of {group.title}, because {why}",
        hint=f"leave {option} out, or {other}",
        group=group.name,
    )


def _popped(
    group: Group,
    changes: Changes,
    after: Sequence[TopicRouteData],
    after_ids: Sequence[str],
    pop_share: int | None,
) -> tuple[tuple[PopTopicPlan, ...], Sequence[Finding]]:
    """The topics without owners; afterwards all brokers list the same consumers."""
    before = group.popped_routes
    findings: tuple[Finding, ...] = ()
    if group.by_proxy:
        old, new = proxy_topics(before, group.client_ids), proxy_topics(after, after_ids)
    else:
        seen, given = None if group.assumed else group.seen, group.given.strategy
        then = seen if seen is None else replace(seen, views=None)
        old = pop_topics(seen, before, group.client_ids, strategy=given, share=pop_share)
        new = pop_topics(then, after, after_ids, strategy=changes.to_strategy or given, share=pop_share)
        findings = tuple(dict.fromkeys((*pop_findings(old, group.name), *pop_findings(new, group.name))))
    return tuple(map(_pop_plan, old, before, new, after)), findings


def _convergence(plan: RebalancePlan, group: Group, before: Side, after: Side, changes: Changes) -> Convergence | None:
    seen = None if group.assumed else group.seen
    kind, kinds, _ = consumer_types(seen)
    return convergence(
        plan,
        before,
        after,
        changes,
        states=group.states,
        client_version=client_version(seen)[0],
        consume_from=group.consume_from,
        consumer_type=kind,
        consumer_types=kinds,
    )


def _findings(
    group: Group, plan: RebalancePlan, before: Side, after: Side, joiners: Sequence[str], *, explain: bool
) -> tuple[Finding, ...]:
    found = list(planning_findings(group))
    if group.names_sdks:
        found += mixed_sdks(group, plan)
    if joiners and group.pulled_routes and not group.broadcasting:
        found.append(placeholder_finding(plan.summary.moved, plan.summary.moved_range))
    for side in (before, after):
        queues = [queue for route in side.routes for queue in route.subscribe_queues()]
        found += own_findings([side.members.name], queues, side.members.client_ids, side.members.settings)
    known = [finding for route in before.routes for finding in route_findings(route)]
    found += [each for route in after.routes for each in route_findings(route) if each not in known]
    if explain:
        brokers = [data.broker_name for route in after.routes for data in route.queue_datas]
        found += sort_findings([*before.members.client_ids, *after.members.client_ids], "client ids")
        found += sort_findings(brokers, "broker names")
    return tuple(dict.fromkeys(found))


def mixed_sdks(group: Group, plan: RebalancePlan) -> Iterator[Finding]:
    if plan.topics and not group.broadcasting:
        worse = max(plan.summary.before, plan.summary.after, key=lambda side: side.unassigned + side.duplicate_owners)
        counts = {"unassigned": worse.unassigned, "several": worse.duplicate_owners}
        yield from mixed_finding(group.sdks, group.client_ids, **counts)


def placeholder_finding(moved: int, over: MovedRange | None) -> Finding:
    if over is not None and over.fewest == over.most and over.complete:
        text = f"{counted(moved, 'queue')} move{'s' * (moved == 1)} wherever the new client IDs sort"
    else:
        rest = "sorts last" if over is not None else "stands for any other"
        text = f"the new client IDs are not known; the tables assume an ID that {rest} ({counted(moved, 'move')})"
        text += "; pass --add ID for the real one"
    return Finding("placeholder-ids", text, severity=INFO)


Rows = dict[tuple[str, int], tuple[str, ...]]


def _queue_by_queue(rows: Rows, route: TopicRouteData) -> Rows:
    """The consumers of each single queue, those included that may read any queue of the broker."""
    found: Rows = {}
    for queue in route.subscribe_queues():
        name, number = queue.broker_name, queue.queue_id
        found[name, number] = tuple(sort_client_ids({*rows.get((name, number), ()), *rows.get((name, ANY_QUEUE), ())}))
    return found


def _pop_plan(old: PopTopic, route: TopicRouteData, new: PopTopic, route_after: TopicRouteData) -> PopTopicPlan:
    changes: tuple[PopChange, ...] = ()
    if old.queues is not None and new.queues is not None:
        was, becomes = (
            {(q.broker_name, q.queue_id): q.consumers or () for q in each} for each in (old.queues, new.queues)
        )
        if any(number != ANY_QUEUE for _, number in (*was, *becomes)):
            was, becomes = _queue_by_queue(was, route), _queue_by_queue(becomes, route_after)
        keys = sorted({*was, *becomes}, key=lambda each: (sort_key(each[0]), each[1]))
        changes = tuple(PopChange(*key, was.get(key), becomes.get(key)) for key in keys)
    return PopTopicPlan(
        old.topic, old.strategy, new.strategy, old.pop_share_queue_nums, old.assumed, changes, old.by_proxy
    )
