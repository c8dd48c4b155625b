from collections.abc import Iterator, Sequence
from typing import Any, Unpack

from msgspec.structs import replace

from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.group import Group
from rmqlb.engine.plan.changes import Edits, change_members
from rmqlb.engine.plan.group_plan import plan_group
from rmqlb.engine.plan.rebalance import PLAN_FIGURES, try_on_plan
from rmqlb.engine.rebalance.start_offsets import start_questions, with_starts
from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.plan import PlanOfGroups, RebalancePlan, plans_of_groups
from rmqlb.model.process_queue import threads_of
from rmqlb.model.result import Finding, Meta, Progress, counted, info, no_progress, with_meta
from rmqlb.verbs.amounts import duration_us
from rmqlb.verbs.changes import ChangeOptions, changes_of, split_changes
from rmqlb.verbs.parse import conditions, texts_of
from rmqlb.verbs.rates import RateOptions, asked_rates, evidence_of
from rmqlb.verbs.selection import GroupOptions, select
from rmqlb.verbs.source import AnySource, Reader, ask_starts, reader
from rmqlb.verbs.strategies import ALL, Strategies


class PlanOptions(ChangeOptions, GroupOptions, RateOptions, total=False):
    """The keyword arguments of `plan_rebalance` that other verbs share."""

    consume_time: str  # how long the listener takes for a message; 0s by default
    consume_threads: int | None  # consume threads of each consumer; None is what they report, or 20


def plan_rebalance(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    strategy: str | Sequence[str] | None = None,
    pop_share: int | None = None,
    explain: bool = False,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
    **options: Unpack[PlanOptions],
) -> RebalancePlan | PlanOfGroups:
    """Show which queues move when consumers, strategy, brokers or queue counts change.

    `strategy` is what consumers run; more of them, or `all`, are compared. Several groups, or a pattern, give a
    PlanOfGroups.
    """
    strategies = Strategies(options.get("strategy_options"))
    of_changes, of_groups = split_changes(options)
    changes, rates = changes_of(of_changes, strategies), asked_rates(options, "--set earlier=")
    of_selection: Any = {name: value for name, value in of_groups.items() if name in GroupOptions.__annotations__}
    consume_us = duration_us(options.get("consume_time", "0s"), "--set consume-time=", zero=True)
    names, has_all = strategies.compared(strategy)
    before = None if next(iter(texts_of(strategy)), ALL).lower() == ALL else names[0]
    compared = names if has_all or len(names) > 1 else []
    if compared and changes.to_strategy is not None:
        text = f"--strategy {ALL if has_all else ' and '.join(names)} and --to-strategy contradict each other"
        raise UsageError(text, hint="name one current strategy with --strategy")
    strategies.must_apply(reported=before is None)
    fail_conditions = conditions(fail_on, PLAN_FIGURES)
    chosen, opened = select(group, **of_selection), reader(source)
    if changes == Edits() and pop_share is None:
        hint = "name a change: --scale-to, --add, --remove, --to-strategy, --add-broker, --remove-broker, --read-queues"
        raise UsageError("what changes?", hint=hint, code="nothing-changes")
    wanted = chosen.wanted(opened)
    rates, snapshot = rates.read(opened, wanted, progress)

    def plan_of(name: str | None) -> tuple[RebalancePlan, tuple[Finding, ...]]:
        found = chosen.resolve(snapshot, name, strategies.settings_for, strategy=before, by_pop=pop_share is not None)
        progress(found.title, 0, 0)
        chosen.require_named({*found.client_ids, *change_members(found.client_ids, changes)})
        known = rates.of(found, wanted, snapshot)
        orderly = found.seen is not None and is_orderly(found.seen) is True
        threads = options.get("consume_threads") or threads_of(*evidence_of(found))
        scenario = GroupScenario(orderly=orderly, consume_us=consume_us, consume_threads=threads, rates=known.of_queues)
        plan, places, findings = plan_group(
            found, changes, explain=explain, compared=compared, pop_share=pop_share, scenario=scenario
        )
        plan, of_starts = _with_starts(plan, found, opened)
        tried = tuple(try_on_plan(each, plan.summary, places) for each in fail_conditions)
        return replace(plan, conditions=tried, rates=known.source), (*findings, *of_starts)

    plans, findings = chosen.ask(snapshot, plan_of)
    if rates.given and not consume_us:
        findings = (*findings, info("lag: unknown without the time per message, --set consume-time=TIME"))
    meta = Meta(snapshot, findings, rates.earlier)
    return with_meta(plans_of_groups(plans), meta) if chosen.several else with_meta(plans[0], meta)


def _with_starts(plan: RebalancePlan, group: Group, source: Reader) -> tuple[RebalancePlan, tuple[Finding, ...]]:
    seen, routes = group.seen, group.pulled_routes
    questions = () if seen is None else start_questions(plan, seen, group.consume_from, routes)
    answers, missing = ask_starts(source, seen, questions)
    plan = with_starts(plan, {**group.states, **answers}, group.consume_from, routes)
    return plan, (*missing, *_own_files(plan, group.consume_from))


def _own_files(plan: RebalancePlan, consume_from: str) -> Iterator[Finding]:
    new = [each.client_id for each in plan.consumers if each.index_before is None]
    if plan.broadcasting and new:
        file = f"~/.rocketmq_offsets/{new[0]}/{plan.group}/offsets.json"
        text = f"{counted(len(new), 'new consumer')} taken to have no offset file ({file})"
        yield Finding("own-offset-file", f"{text}: without one a BROADCASTING consumer starts by {consume_from}")
