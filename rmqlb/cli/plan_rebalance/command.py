"""`rmqlb plan-rebalance`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace
from typer import Option

from rmqlb.cli.common import parse as values
from rmqlb.cli.common.inputs import (
    GroupOnTopics,
    broadcasting_finding,
    group_on_topics,
    made_up_finding,
    no_strategy,
    pins_are_used,
    reader,
    settings,
    wanted_for_each,
)
from rmqlb.cli.common.options import GroupOptions, GroupsOptions, OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.panel import panel
from rmqlb.cli.common.show_or_watch import check_watch, show
from rmqlb.cli.common.snapshot_view import SnapshotView
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.common.watch_options import WatchOptions
from rmqlb.engine.plan.changes import Changes
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqlb.engine.allocate.strategy import Settings
    from rmqlb.engine.assignment.assign import Members
    from rmqlb.engine.plan.rebalance import Side
    from rmqlb.model.finding import Finding
    from rmqlb.model.plan import Convergence, RebalancePlan, Summary

ALL = "ALL"
members_option = panel("Change of consumers")
route_option = panel("Change of the route")


@command
def plan_rebalance(
    source: SourceOptions,
    groups: GroupsOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    strategy: Annotated[
        str | None,
        Option(
            metavar="STRATEGY|all",
            help="Or FILE.py:NAME, which is run. Default: as members report or show; all compares.",
        ),
    ] = None,
    add: Annotated[list[str] | None, members_option(metavar="N|ID", help="Add N consumers or this one.")] = None,
    remove: Annotated[
        list[str] | None, members_option(metavar="N|ID", help="Remove the last N in sorted order or this one.")
    ] = None,
    replace_: Annotated[
        list[str] | None, members_option("--replace", metavar="OLD=NEW", help="One id goes, another comes.")
    ] = None,
    to_strategy: Annotated[
        str | None, members_option(metavar="STRATEGY", help="The strategy afterwards, or FILE.py:NAME.")
    ] = None,
    add_broker: Annotated[
        list[str] | None,
        route_option(
            metavar="NAME[:READ[:WRITE]]",
            help="A broker that gets queues of the topics; counts default to those of the other brokers.",
        ),
    ] = None,
    remove_broker: Annotated[list[str] | None, route_option(metavar="NAME", help="A broker that is lost.")] = None,
    read_queues: Annotated[
        list[str] | None, route_option(metavar="[BROKER=]N", help="New number of read queues.")
    ] = None,
    write_queues: Annotated[
        list[str] | None, route_option(metavar="[BROKER=]N", help="New number of write queues.")
    ] = None,
    changed: Annotated[bool, Option("--changed", help="Show only queues that change.")] = False,
    fail_on: Annotated[
        list[str] | None, Option(metavar="CONDITION", help="Exit 3 when it is met: 'idle>0', 'moved>50%'; repeatable.")
    ] = None,
) -> None:
    """Preview what adding or removing consumers, brokers or queues does to a group's queues.

    Examples:
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1

      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --remove-broker broker-b --strategy all

      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1 -o json --fail-on 'moved>50%'

      rmqlb plan-rebalance -s examples/cluster.json -g order-svc -g bill-svc --remove-broker broker-b

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or members are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.each_group import look_at_each
    from rmqlb.cli.common.fail_on import conditions, require_known
    from rmqlb.cli.plan_rebalance.start_offsets import start_where
    from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES, try_on_plan
    from rmqlb.views.plan.several import plans_report
    from rmqlb.views.plan.view import plan_report

    terminal = Terminal("plan-rebalance", output, more_formats=("jsonl",))
    check_watch(watching, source, groups.consumers, terminal)
    each = groups.each()
    asked = conditions(fail_on or (), PLAN_FIGURES)
    strategies = Strategies(strategy_options.inner)
    changes = Changes(
        add=tuple(values.count_or_id(text, "--add") for text in add or ()),
        remove=tuple(values.count_or_id(text, "--remove") for text in remove or ()),
        replace=tuple(values.pair(text, "--replace") for text in replace_ or ()),
        to_strategy=strategies.optional(to_strategy, "--to-strategy"),
        add_brokers=tuple(values.new_broker(text) for text in add_broker or ()),
        remove_brokers=tuple(remove_broker or ()),
        read_queues=values.queue_counts(read_queues or (), "--read-queues"),
        write_queues=values.queue_counts(write_queues or (), "--write-queues"),
    )
    given = _strategy(strategy, changes, strategies)
    pins_are_used(strategy_options, strategies)
    wanted = wanted_for_each(source, each)
    read = reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read(wanted)
        plans: list[RebalancePlan] = []

        def one(which: GroupOptions) -> SnapshotView:
            found = group_on_topics(snapshot, which, broadcasting_too=True)
            for option, named in (("--strategy", given), ("--to-strategy", changes.to_strategy)):
                if named and found.broadcasting:
                    raise no_strategy(option, found)
            with terminal.progress(verb="planning") as progress:
                progress(found.title, 0, 0)
                own = settings(strategy_options, [route.topic for route in found.routes], strategies, found.name)
                plan, places, findings = _plan(found, changes, given, own, which.explain)
            plan, told = start_where(plan, found, read)
            tried = tuple(try_on_plan(condition, plan.summary, places) for condition in asked)
            plan = replace(plan, conditions=tried)
            plans.append(plan)
            report = plan_report(plan, changed_only=changed, explained=which.explain)
            return SnapshotView(report, snapshot, (*findings, *told), tried)

        seen = look_at_each(each, one, lambda parts: plans_report(parts, plans))
        require_known(seen.tried, "leave the condition out to see the plan")
        return seen

    show(look, watching, terminal)


def _strategy(strategy: str | None, changes: Changes, strategies: Strategies) -> str | None:
    """The strategy as typed, in RocketMQ's spelling.

    Raises:
        UsageError: there is no such strategy, or two options contradict each other.
    """
    given = ALL if strategy and strategy.upper() == ALL else strategies.optional(strategy or None)
    if given == ALL and changes.to_strategy:
        raise UsageError("--strategy all and --to-strategy contradict each other", hint="name the strategy before")
    return given


def _plan(
    found: GroupOnTopics, changes: Changes, given: str | None, own: "Settings", explain: bool
) -> "tuple[RebalancePlan, tuple[Summary, ...], tuple[Finding, ...]]":
    """The plan, the summary of each place where the new members may sort, and what is worth a warning."""
    from rmqlb.engine.allocate.conformance import custom_findings, pin_findings
    from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
    from rmqlb.engine.assignment.assign import Members
    from rmqlb.engine.assignment.detect import Detected, detect_strategy, drift, must_be_set
    from rmqlb.engine.assignment.pop_and_proxy import nobody_online
    from rmqlb.engine.plan.changes import change_members, change_routes, describe
    from rmqlb.engine.plan.placeholders import over_places
    from rmqlb.engine.plan.rebalance import Side, compare, plan_rebalance

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
    invented = {*found.made_up, *(set(after_ids) - set(found.client_ids) - _named(changes))}
    states = group.queues if group else {}
    plan = plan_rebalance(
        found.name, before, after, states=states, changes=describe(changes), placeholders=invented, explain=explain
    )
    if given == ALL:
        plan = compare(plan, before, after, WITHOUT_SETTINGS)
    joiners = sorted(invented - set(found.made_up))
    plan, places = over_places(plan, before, after, joiners, states)
    plan = replace(plan, convergence=_over_time(plan, found, before, after, changes), strategy_origin=detected.origin)
    findings = [*found.findings, *detected.findings]
    if not found.assumed:
        findings += drift(found.routes, members, states)
    if joiners and not found.broadcasting:
        findings.append(made_up_finding((plan.summary.moved, plan.summary.moved_range)))
    for side in (before, after):
        queues = [queue for route in side.routes for queue in route.subscribe_queues()]
        asked = [side.members.name], queues, side.members.client_ids, side.members.settings
        findings += [*custom_findings(*asked), *pin_findings(*asked)]
    findings += _more_findings(found, before, after, explain)
    return plan, places, tuple(dict.fromkeys(findings))


def _over_time(
    plan: "RebalancePlan", found: GroupOnTopics, before: "Side", after: "Side", changes: Changes
) -> "Convergence | None":
    """How long the plan takes."""
    from rmqlb.engine.consume.convergence import convergence
    from rmqlb.engine.consume.reported_clients import client_version, consumer_types
    from rmqlb.model.group_scenario import known_consume_from

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


def _after(members: "Members", client_ids: tuple[str, ...], changes: Changes) -> "Members":
    if changes.to_strategy is None:
        return replace(members, client_ids=client_ids)
    return replace(members, client_ids=client_ids, strategy=changes.to_strategy, strategy_of={})


def _named(changes: Changes) -> set[str]:
    added = {item for item in changes.add if isinstance(item, str)}
    return added | {new for _, new in changes.replace}


def _more_findings(found: GroupOnTopics, before: "Side", after: "Side", explain: bool) -> "Sequence[Finding]":
    from rmqlb.engine.assignment.consumers import sort_findings
    from rmqlb.engine.route_findings import route_findings

    known = [finding for route in found.routes for finding in route_findings(route)]
    findings = [finding for route in after.routes for finding in route_findings(route) if finding not in known]
    if explain:
        ids = [*before.members.client_ids, *after.members.client_ids]
        brokers = [data.broker_name for route in after.routes for data in route.queue_datas]
        findings += [*sort_findings(ids, "client ids"), *sort_findings(brokers, "broker names")]
    return list(dict.fromkeys(findings))
