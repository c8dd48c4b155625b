"""The plan of one group: both sides of a change, the way between them, and findings."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rmqlb.engine.allocate.conformance import own_findings
from rmqlb.engine.assignment.brokers import ANY_QUEUE
from rmqlb.engine.assignment.consumers import mixed_finding, nobody_online, sort_findings
from rmqlb.engine.assignment.owners import must_ask_a_strategy, popped_topics
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.changes import Edits, change_members, change_routes, describe
from rmqlb.engine.plan.rebalance import Side, compare, over_places, plan_rebalance
from rmqlb.engine.rebalance.profile import client_version, consumer_types
from rmqlb.engine.rebalance.simulate import convergence
from rmqlb.engine.source_findings import route_findings
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.message_queue import sort_client_ids, sort_key
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import MovedRange, PopChange, PopTopicPlan, RebalancePlan, Summary
from rmqlb.model.result import INFO, Finding, counted
from rmqlb.model.route import TopicRouteData


def plan_group(
    group: Group,
    changes: Edits,
    *,
    explain: bool = False,
    compared: Sequence[str] = (),
    pop_share: int | None = None,
    scenario: GroupScenario = GroupScenario(),  # noqa: B008 (it is frozen)
) -> tuple[RebalancePlan, tuple[Summary, ...], tuple[Finding, ...]]:
    """The group's plan, its summary for each order in which new client IDs may sort, and the findings.

    The plan's comparison has the same change under each strategy of `compared`. With `pop_share` all topics count as
    consumed by POP with this `popShareQueueNum`. Raises DataError where consumers do not own the queues or the owners
    are unknown, UsageError where the change contradicts the group.
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
    joiners = sorted(set(after_ids) - set(group.client_ids) - named)
    invented = {*group.placeholders, *joiners}
    change = describe(changes)
    plan = plan_rebalance(
        group.name, before, after, states=group.states, changes=change, placeholders=invented, explain=explain
    )
    plan, places = over_places(plan, before, after, joiners, group.states)
    if compared:
        plan = compare(plan, before, after, compared, joiners)
    strategy, seen = group.given.strategy, None if group.assumed else group.seen
    old, of_old = popped_topics(group, group.popped_routes, group.client_ids, strategy, pop_share)
    # After the change all brokers list the same consumers.
    new, of_new = popped_topics(
        group, routes_after[number:], after_ids, changes.to_strategy or strategy, pop_share, by_views=False
    )
    kind, kinds, _ = consumer_types(seen)
    version, consume_from = client_version(seen)[0], group.consume_from
    scenario = replace(
        scenario, client_version=version, consume_from=consume_from, consumer_type=kind, consumer_types=kinds
    )
    plan = replace(
        plan,
        convergence=convergence(plan, before, after, changes, scenario, group.states) if group.pulled_routes else None,
        strategy_origin=group.strategy.origin,
        strategies_reported=group.strategy.reported,
        pop_topics=tuple(map(_pop_plan, old, group.popped_routes, new, routes_after[number:])),
        sdks=group.used_sdks,
    )
    found = _findings(group, plan, before, after, joiners, explain=explain)
    return plan, places, tuple(dict.fromkeys((*found, *of_old, *of_new)))


def _findings(
    group: Group, plan: RebalancePlan, before: Side, after: Side, joiners: Sequence[str], *, explain: bool
) -> list[Finding]:
    found = list(planning_findings(group))
    if group.names_sdks and plan.topics and not group.broadcasting:
        worse = max(plan.summary.before, plan.summary.after, key=lambda side: side.unassigned + side.duplicate_owners)
        found += mixed_finding(group.sdks, group.client_ids, worse.unassigned, worse.duplicate_owners)
    if joiners and group.pulled_routes and not group.broadcasting:
        found.append(_placeholder_finding(plan.summary.moved, plan.summary.moved_range))
    for side in (before, after):
        queues = [queue for route in side.routes for queue in route.subscribe_queues()]
        found += own_findings([side.members.name], queues, side.members.client_ids, side.members.settings)
    known = [finding for route in before.routes for finding in route_findings(route)]
    found += [each for route in after.routes for each in route_findings(route) if each not in known]
    if explain:
        brokers = [data.broker_name for route in after.routes for data in route.queue_datas]
        found += sort_findings([*before.members.client_ids, *after.members.client_ids], "client IDs")
        found += sort_findings(brokers, "broker names")
    return found


def _placeholder_finding(moved: int, over: MovedRange | None) -> Finding:
    if over is not None and over.fewest == over.most and over.complete:
        text = f"{counted(moved, 'queue')} move{'s' * (moved == 1)}, however the new client IDs sort"
    else:
        rest = "sorts last" if over is not None else "stands for any other"
        text = f"the new client IDs are unknown; the tables assume an ID that {rest} ({counted(moved, 'move')})"
        text += "; pass --add ID for the real one"
    return Finding("placeholder-ids", text, severity=INFO)


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


def _queue_by_queue(
    rows: Mapping[tuple[str, int], tuple[str, ...]], route: TopicRouteData
) -> dict[tuple[str, int], tuple[str, ...]]:
    """The consumers of each single queue, including those that may read any queue of the broker."""
    keys = [(queue.broker_name, queue.queue_id) for queue in route.subscribe_queues()]
    return {key: tuple(sort_client_ids({*rows.get(key, ()), *rows.get((key[0], ANY_QUEUE), ())})) for key in keys}
