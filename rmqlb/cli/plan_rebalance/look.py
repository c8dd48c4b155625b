"""What `plan-rebalance` sees of one group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import parse as values
from rmqlb.cli.common.against import EarlierResults, compared
from rmqlb.cli.common.inputs import (
    GroupOnTopics,
    group_on_topics,
    no_strategy,
    placeholder_finding,
    require_named,
)
from rmqlb.cli.common.options import GroupOptions, StrategyOptions
from rmqlb.cli.common.reading import Reader, asked_starts
from rmqlb.cli.common.strategies import Strategies, own_findings
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.plan_rebalance.options import PlanOptions
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import owners_at_rest
from rmqlb.engine.assignment.consumers import broadcasting_finding, sort_findings
from rmqlb.engine.assignment.detect import Detected, detect_strategy, mismatch_findings, must_be_set
from rmqlb.engine.assignment.pop_and_proxy import nobody_online
from rmqlb.engine.consume.reported_clients import client_version, consumer_types
from rmqlb.engine.consume.starts import start_questions, with_starts
from rmqlb.engine.consume.trials import convergence
from rmqlb.engine.diff.made_from import made_from
from rmqlb.engine.plan.changes import Changes, change_members, change_routes, describe
from rmqlb.engine.plan.placeholders import over_places
from rmqlb.engine.plan.rebalance import Side, compare, plan_rebalance
from rmqlb.engine.route_findings import route_findings
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.plan import Convergence, PopTopicPlan, RebalancePlan, Summary
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.words import counted
from rmqlb.views.made_from_view import dated
from rmqlb.views.plan.view import plan_report

if TYPE_CHECKING:
    from rmqlb.engine.fail_on_figures.conditions import Condition
    from rmqlb.model.condition import TriedCondition
    from rmqlb.model.made_from import Against

ALL = "ALL"


class PlanQuestion(Struct, frozen=True):
    """What is asked about every group alike."""

    changes: Changes
    strategy: str | None  # the one before the change, ALL of them, or None for what members report or show
    conditions: Sequence[Condition]
    changed_only: bool
    strategies: Strategies
    earlier: EarlierResults | None = None
    pop_share: int | None = None  # as if topics were consumed by POP with it


def question_of(
    plan: PlanOptions,
    strategy_options: StrategyOptions,
    conditions: Sequence[Condition],
    changed_only: bool,
    earlier: EarlierResults | None,
) -> PlanQuestion:
    """The question that the options ask."""
    strategies = Strategies(strategy_options.strategy_option)
    changes, before = changes_of(plan, strategies), strategy_before(plan, strategies)
    strategies.must_apply(reported=before in (None, ALL))
    return PlanQuestion(changes, before, conditions, changed_only, strategies, earlier, plan.pop_share)


def changes_of(options: PlanOptions, strategies: Strategies) -> Changes:
    """What changes."""
    return Changes(
        add=tuple(values.count_or_id(text, "--add") for text in options.add or ()),
        remove=tuple(values.count_or_id(text, "--remove") for text in options.remove or ()),
        replace=tuple(values.pair(text, "--replace") for text in options.replace_ or ()),
        scale_to=options.scale_to,
        to_strategy=strategies.optional(options.to_strategy, "--to-strategy"),
        add_brokers=tuple(values.new_broker(text, f"--add-broker {text}") for text in options.add_broker or ()),
        remove_brokers=tuple(options.remove_broker or ()),
        remove_masters=tuple(options.remove_master or ()),
        read_queues=values.queue_counts(options.read_queues or (), "--read-queues"),
        write_queues=values.queue_counts(options.write_queues or (), "--write-queues"),
    )


def strategy_before(options: PlanOptions, strategies: Strategies) -> str | None:
    """`--strategy` in RocketMQ's spelling."""
    typed = options.strategy or None
    given = ALL if typed and typed.upper() == ALL else strategies.optional(typed)
    if given == ALL and options.to_strategy is not None:
        raise UsageError("--strategy all and --to-strategy contradict each other", hint="name the strategy before")
    return given


def look_at_group(
    which: GroupOptions, question: PlanQuestion, snapshot: ClusterSnapshot, reader: Reader, terminal: Terminal
) -> tuple[RebalancePlan, SnapshotView]:
    """The group's plan, and what there is to see of it."""
    by_pop = question.pop_share is not None
    found = group_on_topics(snapshot, which, broadcasting_too=True, pop_too=True, all_by_pop=by_pop)
    given, changes, strategies = question.strategy, question.changes, question.strategies
    for option, named in (("--pop-share", by_pop), ("--strategy", given), ("--to-strategy", changes.to_strategy)):
        if named and (found.broadcasting or found.by_proxy):
            raise no_strategy(option, found)
    with terminal.progress(verb="planning") as progress:
        progress(found.title, 0, 0)
        own = strategies.settings_for([route.topic for route in (*found.routes, *found.popped)], found.name)
        require_named(which, {*found.client_ids, *change_members(found.client_ids, changes)})
        plan, before, places, findings = _plan(found, changes, given, own, which.explain)
        popped, of_pop = _by_pop(found, question)
        plan = replace(plan, pop_topics=popped, sdks=found.used_sdks)
    plan, told = start_where(plan, found, reader)
    used = made_from(
        (*found.routes, *found.popped),
        group=found.name,
        members=before.members,
        states=found.states,
        taken_at=snapshot.taken_at,
    )
    against, moved_on = compared(used, question.earlier, own)
    tried = _tried(question.conditions, plan.summary, places, against)
    plan = replace(plan, conditions=tried, made_from=used, against=against)
    report = dated(plan_report(plan, changed_only=question.changed_only, explained=which.explain), used, against)
    return plan, SnapshotView(report, snapshot, (*moved_on, *findings, *of_pop, *told), tried)


def _by_pop(found: GroupOnTopics, question: PlanQuestion) -> tuple[tuple[PopTopicPlan, ...], tuple[Finding, ...]]:
    """Who may read what before and after; afterwards all brokers list the same consumers."""
    if not found.popped:
        return (), ()
    from rmqlb.engine.assignment.pop_topics import pop_findings, pop_topics, proxy_topics
    from rmqlb.engine.plan.pop_plan import pop_plan

    given, changes = None if question.strategy == ALL else question.strategy, question.changes
    group, share = None if found.assumed else found.group, question.pop_share
    after = group if group is None else replace(group, views=None)
    ids = change_members(found.client_ids, changes)
    to_strategy = changes.to_strategy or given
    _, routes = _routes_after(found, changes)
    if found.by_proxy:
        old, new = proxy_topics(found.popped, found.client_ids), proxy_topics(routes, ids)
        return pop_plan(zip(old, found.popped, strict=True), zip(new, routes, strict=True)), ()
    old = pop_topics(group, found.popped, found.client_ids, strategy=given, share=share)
    new = pop_topics(after, routes, ids, strategy=to_strategy, share=share)
    plan = pop_plan(zip(old, found.popped, strict=True), zip(new, routes, strict=True))
    return plan, tuple(dict.fromkeys((*pop_findings(old, found.name), *pop_findings(new, found.name))))


def _routes_after(
    found: GroupOnTopics, changes: Changes
) -> tuple[tuple[TopicRouteData, ...], tuple[TopicRouteData, ...]]:
    """The routes after the change, of what is pulled and of what is consumed by POP (raises UsageError)."""
    routes = change_routes((*found.routes, *found.popped), changes)
    return routes[: len(found.routes)], routes[len(found.routes) :]


def conditions_of(texts: Sequence[str] | None) -> list[Condition]:
    """The conditions as typed."""
    if not texts:
        return []
    from rmqlb.cli.common.fail_on import conditions
    from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES

    return conditions(texts, PLAN_FIGURES)


def _tried(
    conditions: Sequence[Condition], summary: Summary, places: tuple[Summary, ...], against: Against | None
) -> tuple[TriedCondition, ...]:
    if not conditions:
        return ()
    from rmqlb.engine.fail_on_figures.of_against import try_on_against
    from rmqlb.engine.fail_on_figures.of_plan import try_on_plan

    return tuple(try_on_against(each, against) or try_on_plan(each, summary, places) for each in conditions)


def _plan(
    found: GroupOnTopics, changes: Changes, given: str | None, own: Settings, explain: bool
) -> tuple[RebalancePlan, Side, tuple[Summary, ...], tuple[Finding, ...]]:
    group = found.group
    members = found.members(own)
    if found.broadcasting:
        detected = Detected("AVG", "reported", findings=(broadcasting_finding(found.title, found.name),))
    elif found.by_proxy:  # no strategy decides
        detected = Detected("AVG", "reported")
    else:
        real = replace(members, client_ids=(group.client_ids if group else None) or ())
        detected = detect_strategy(None if given == ALL else given, group, found.routes, real)
        must_be_set(detected.run_by_members, own)
    members = replace(members, strategy=detected.strategy, strategy_of=detected.strategy_of)
    after_ids = change_members(members.client_ids, changes)
    if not found.client_ids and not after_ids:
        raise nobody_online(found.name, found.group, "plan with --add N or --consumers")
    before = Side(members, found.routes)
    members_after = replace(members, client_ids=after_ids)
    if changes.to_strategy is not None:
        members_after = replace(members_after, strategy=changes.to_strategy, strategy_of={})
    after = Side(members_after, _routes_after(found, changes)[0])
    named = {*changes.add, *(new for _, new in changes.replace)}
    invented = {*found.placeholders, *(set(after_ids) - set(found.client_ids) - named)}
    states = found.states
    plan = plan_rebalance(
        found.name, before, after, states=states, changes=describe(changes), placeholders=invented, explain=explain
    )
    if given == ALL:
        plan = compare(plan, before, after, WITHOUT_SETTINGS)
    joiners = sorted(invented - set(found.placeholders))
    plan, places = over_places(plan, before, after, joiners, states)
    converged = _over_time(plan, found, before, after, changes) if found.routes else None
    plan = replace(plan, convergence=converged, strategy_origin=detected.origin, strategies_reported=detected.reported)
    findings = [*found.findings, *detected.findings]
    worse = max(plan.summary.before, plan.summary.after, key=lambda side: side.unassigned + side.duplicate_owners)
    findings += found.mixed_sdks(worse.unassigned, worse.duplicate_owners)
    if not found.assumed:
        findings += mismatch_findings(owners_at_rest(found.routes, members), members.name, states)
    if joiners and found.routes and not found.broadcasting:
        findings.append(placeholder_finding((plan.summary.moved, plan.summary.moved_range)))
    for side in (before, after):
        queues = [queue for route in side.routes for queue in route.subscribe_queues()]
        findings += own_findings([side.members.name], queues, side.members.client_ids, side.members.settings)
    findings += _more_findings(found, before, after, explain)
    return plan, before, places, tuple(dict.fromkeys(findings))


def _over_time(
    plan: RebalancePlan, found: GroupOnTopics, before: Side, after: Side, changes: Changes
) -> Convergence | None:
    group = None if found.assumed else found.group
    version, _ = client_version(group)
    kind, kinds, _ = consumer_types(group)
    return convergence(
        plan,
        before,
        after,
        changes,
        states=found.states,
        client_version=version,
        consume_from=found.consume_from,
        consumer_type=kind,
        consumer_types=kinds,
    )


def _more_findings(found: GroupOnTopics, before: Side, after: Side, explain: bool) -> Sequence[Finding]:
    known = [finding for route in found.routes for finding in route_findings(route)]
    findings = [finding for route in after.routes for finding in route_findings(route) if finding not in known]
    if explain:
        ids = [*before.members.client_ids, *after.members.client_ids]
        brokers = [data.broker_name for route in after.routes for data in route.queue_datas]
        findings += [*sort_findings(ids, "client ids"), *sort_findings(brokers, "broker names")]
    return list(dict.fromkeys(findings))


def start_where(plan: RebalancePlan, found: GroupOnTopics, reader: Reader) -> tuple[RebalancePlan, list[Finding]]:
    """The plan with the start offsets of its new owners, and why some are missing."""
    group, consume_from = found.group, found.consume_from
    questions = () if group is None else start_questions(plan, group, consume_from, found.routes)
    answers, missing = asked_starts(reader, group, questions)
    plan = with_starts(plan, {**found.states, **answers}, consume_from, found.routes)
    return plan, [*missing, *_own_files(plan, consume_from)]


def _own_files(plan: RebalancePlan, consume_from: str) -> Iterator[Finding]:
    """That new BROADCASTING consumers are taken to be new on their machines too."""
    new = [each.client_id for each in plan.consumers if each.index_before is None]
    if plan.broadcasting and new:
        yield Finding(
            "own-offset-file",
            f"{counted(len(new), 'new consumer')} taken to have no offset file (~/.rocketmq_offsets/"
            f"{new[0]}/{plan.group}/offsets.json): without one a BROADCASTING consumer starts by {consume_from}",
        )
