"""What `plan-rebalance` sees of one group."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.inputs import (
    GroupOnTopics,
    Reader,
    broadcasting_finding,
    group_on_topics,
    no_strategy,
    placeholder_finding,
    settings,
)
from rmqlb.cli.common.options import GroupOptions, StrategyOptions
from rmqlb.cli.common.snapshot_view import SnapshotView
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.plan_rebalance.parse import ALL
from rmqlb.cli.plan_rebalance.start_offsets import start_where
from rmqlb.engine.allocate.conformance import custom_findings, pin_findings
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.consumers import sort_findings
from rmqlb.engine.assignment.detect import Detected, detect_strategy, drift, must_be_set
from rmqlb.engine.assignment.pop_and_proxy import nobody_online
from rmqlb.engine.consume.convergence import convergence
from rmqlb.engine.consume.reported_clients import client_version, consumer_types
from rmqlb.engine.fail_on_figures.conditions import Condition
from rmqlb.engine.fail_on_figures.of_plan import try_on_plan
from rmqlb.engine.plan.changes import Changes, change_members, change_routes, describe
from rmqlb.engine.plan.placeholders import over_places
from rmqlb.engine.plan.rebalance import Side, compare, plan_rebalance
from rmqlb.engine.route_findings import route_findings
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import known_consume_from
from rmqlb.model.plan import Convergence, RebalancePlan, Summary
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.plan.view import plan_report


class PlanQuestion(Struct, frozen=True):
    """What is asked about every group alike.

    Attributes:
        strategy: the one before the change, ALL of them, or None for what members report or show.
    """

    changes: Changes
    strategy: str | None
    conditions: Sequence[Condition]
    changed_only: bool
    strategy_options: StrategyOptions
    strategies: Strategies


def look_at_group(
    which: GroupOptions, question: PlanQuestion, snapshot: ClusterSnapshot, reader: Reader, terminal: Terminal
) -> tuple[RebalancePlan, SnapshotView]:
    """The group's plan, and what there is to see of it."""
    found = group_on_topics(snapshot, which, broadcasting_too=True)
    given, changes, strategies = question.strategy, question.changes, question.strategies
    for option, named in (("--strategy", given), ("--to-strategy", changes.to_strategy)):
        if named and found.broadcasting:
            raise no_strategy(option, found)
    with terminal.progress(verb="planning") as progress:
        progress(found.title, 0, 0)
        own = settings(question.strategy_options, [route.topic for route in found.routes], strategies, found.name)
        plan, places, findings = _plan(found, changes, given, own, which.explain)
    plan, told = start_where(plan, found, reader)
    tried = tuple(try_on_plan(condition, plan.summary, places) for condition in question.conditions)
    plan = replace(plan, conditions=tried)
    report = plan_report(plan, changed_only=question.changed_only, explained=which.explain)
    return plan, SnapshotView(report, snapshot, (*findings, *told), tried)


def _plan(
    found: GroupOnTopics, changes: Changes, given: str | None, own: Settings, explain: bool
) -> tuple[RebalancePlan, tuple[Summary, ...], tuple[Finding, ...]]:
    """The plan, the summary of each place where the new members may sort, and the findings."""
    group = found.group
    members = Members(found.client_ids, "AVG", own, subscribed=found.subscribed, broadcasting=found.broadcasting)
    real = replace(members, client_ids=(group.client_ids if group else None) or ())
    if found.broadcasting:
        detected = Detected("AVG", "reported", findings=(broadcasting_finding(found),))
    else:
        detected = detect_strategy(None if given == ALL else given, group, found.routes, real)
        must_be_set(detected.run_by_members, own)
    members = replace(members, strategy=detected.strategy, strategy_of=detected.strategy_of)
    after_ids = change_members(members.client_ids, changes)
    if not found.client_ids and not after_ids:
        raise nobody_online(found.name, found.group, "plan with --add N or --consumers")
    before = Side(members, found.routes)
    after = Side(_after(members, after_ids, changes), change_routes(found.routes, changes))
    invented = {*found.placeholders, *(set(after_ids) - set(found.client_ids) - _named(changes))}
    states = group.queues if group else {}
    plan = plan_rebalance(
        found.name, before, after, states=states, changes=describe(changes), placeholders=invented, explain=explain
    )
    if given == ALL:
        plan = compare(plan, before, after, WITHOUT_SETTINGS)
    joiners = sorted(invented - set(found.placeholders))
    plan, places = over_places(plan, before, after, joiners, states)
    plan = replace(plan, convergence=_over_time(plan, found, before, after, changes), strategy_origin=detected.origin)
    findings = [*found.findings, *detected.findings]
    if not found.assumed:
        findings += drift(found.routes, members, states)
    if joiners and not found.broadcasting:
        findings.append(placeholder_finding((plan.summary.moved, plan.summary.moved_range)))
    for side in (before, after):
        queues = [queue for route in side.routes for queue in route.subscribe_queues()]
        asked = [side.members.name], queues, side.members.client_ids, side.members.settings
        findings += [*custom_findings(*asked), *pin_findings(*asked)]
    findings += _more_findings(found, before, after, explain)
    return plan, places, tuple(dict.fromkeys(findings))


def _over_time(
    plan: RebalancePlan, found: GroupOnTopics, before: Side, after: Side, changes: Changes
) -> Convergence | None:
    """How long the plan takes."""
    group = found.group
    states = group.queues if group else {}
    consume_from = known_consume_from(group.consume_from_where if group else None)
    version, _ = client_version(None if found.assumed else group)
    kind, kinds, _ = consumer_types(None if found.assumed else group)
    return convergence(
        plan,
        before,
        after,
        changes,
        states=states,
        client_version=version,
        consume_from=consume_from,
        consumer_type=kind,
        consumer_types=kinds,
    )


def _after(members: Members, client_ids: tuple[str, ...], changes: Changes) -> Members:
    if changes.to_strategy is None:
        return replace(members, client_ids=client_ids)
    return replace(members, client_ids=client_ids, strategy=changes.to_strategy, strategy_of={})


def _named(changes: Changes) -> set[str]:
    added = {item for item in changes.add if isinstance(item, str)}
    return added | {new for _, new in changes.replace}


def _more_findings(found: GroupOnTopics, before: Side, after: Side, explain: bool) -> Sequence[Finding]:
    known = [finding for route in found.routes for finding in route_findings(route)]
    findings = [finding for route in after.routes for finding in route_findings(route) if finding not in known]
    if explain:
        ids = [*before.members.client_ids, *after.members.client_ids]
        brokers = [data.broker_name for route in after.routes for data in route.queue_datas]
        findings += [*sort_findings(ids, "client ids"), *sort_findings(brokers, "broker names")]
    return list(dict.fromkeys(findings))
