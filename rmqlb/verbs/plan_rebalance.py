"""`rmqlb.plan_rebalance`: preview a change of consumers, strategy, brokers or queue counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.consume.starts import start_questions, with_starts
from rmqlb.engine.fail_on_figures.conditions import Condition, parse_condition
from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES, try_on_plan
from rmqlb.engine.group import Group
from rmqlb.engine.plan.changes import Changes, change_members
from rmqlb.engine.plan.group_plan import plan_group
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.plan import PlanOfGroups, RebalancePlan, plans_of_groups
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.words import counted
from rmqlb.verbs import parse
from rmqlb.verbs.selection import Selection, select
from rmqlb.verbs.source import AnySource, Reader, ask_starts, reader
from rmqlb.verbs.strategies import Strategies

ALL = "ALL"


class PlanQuestion(Struct, frozen=True):
    """What is asked about each group.

    Attributes:
        changes: what changes, all at once.
        strategy: the one before, ALL to compare every strategy, or None for what consumers report or show.
        strategies: the strategies that are named, with their settings.
        conditions: what `--fail-on` asks for.
        pop_share: as if topics were consumed by POP with this `popShareQueueNum`.
        explain: with the reason for each queue's owner.
    """

    changes: Changes
    strategy: str | None
    strategies: Strategies
    conditions: Sequence[Condition] = ()
    pop_share: int | None = None
    explain: bool = False


def plan_rebalance(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    topics: Sequence[str] = (),
    consumers: Sequence[str] | int | None = None,
    include_retry: bool = False,
    sdk: str | Mapping[str, str] | None = None,
    strategy: str | None = None,
    strategy_options: Sequence[str] = (),
    add: int | str | Sequence[int | str] = (),
    remove: int | str | Sequence[int | str] = (),
    replace_ids: Mapping[str, str] | None = None,
    scale_to: int | None = None,
    to_strategy: str | None = None,
    add_brokers: Sequence[str] = (),
    remove_brokers: Sequence[str] = (),
    remove_masters: Sequence[str] = (),
    read_queues: int | Mapping[str, int] | None = None,
    write_queues: int | Mapping[str, int] | None = None,
    pop_share: int | None = None,
    explain: bool = False,
    fail_on: Sequence[str] = (),
) -> RebalancePlan | PlanOfGroups:
    """Show which queues move when consumers, strategy, brokers or queue counts change.

    Args:
        source: a URL, a file, a snapshot or a reader.
        group: a group, a pattern, or several; None takes the only one.
        topics: only these; () takes those that the group subscribes to.
        consumers: client IDs, or a number of invented ones, in the place of those of the source.
        include_retry: the group's retry topic too.
        sdk: the client library of all consumers, or client ID → library.
        strategy: the strategy before, `all` to compare every one; None takes what consumers report or show.
        strategy_options: settings of strategies, as `virtual-nodes=20`.
        add: client IDs, or a number, to add.
        remove: client IDs, or a number of the last ones, to remove.
        replace_ids: old client ID → new one.
        scale_to: how many consumers there are in the end.
        to_strategy: the strategy afterwards.
        add_brokers: `NAME`, `NAME:READ` or `NAME:READ:WRITE`, in queues.
        remove_brokers: names of brokers that are lost.
        remove_masters: names of brokers whose master is lost.
        read_queues: the number of read queues of every broker, or broker → number.
        write_queues: the same for write queues.
        pop_share: as if topics were consumed by POP with this `popShareQueueNum`.
        explain: with the reason for each queue's owner.
        fail_on: conditions such as `idle>0`, which the result's `conditions` answer.

    Returns:
        The plan; of several groups, or a pattern, a PlanOfGroups.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: the group, its topics or consumers are not there or unknown.
        EndpointError: the source cannot be read.
    """
    strategies = Strategies(strategy_options)
    changes = Changes(
        add=_each(add, "add"),
        remove=_each(remove, "remove"),
        replace=tuple((replace_ids or {}).items()),
        scale_to=scale_to,
        to_strategy=strategies.optional(to_strategy, "--to-strategy"),
        add_brokers=tuple(parse.new_broker(text, f"--add-broker {text}") for text in add_brokers),
        remove_brokers=tuple(remove_brokers),
        remove_masters=tuple(remove_masters),
        read_queues=parse.queue_counts(_counts(read_queues), "--read-queues"),
        write_queues=parse.queue_counts(_counts(write_queues), "--write-queues"),
    )
    question = plan_question(strategies, changes, strategy, fail_on, pop_share=pop_share, explain=explain)
    chosen = select(group, topics, consumers, sdk, include_retry=include_retry)
    return plan_groups(reader(source), chosen, question)


def plan_question(
    strategies: Strategies,
    changes: Changes,
    strategy: str | None,
    fail_on: Sequence[str],
    *,
    pop_share: int | None = None,
    explain: bool = False,
) -> PlanQuestion:
    """The question that options or arguments ask (raises UsageError)."""
    before = ALL if strategy and strategy.upper() == ALL else strategies.optional(strategy or None)
    if before == ALL and changes.to_strategy is not None:
        raise UsageError("--strategy all and --to-strategy contradict each other", hint="name the strategy before")
    strategies.must_apply(reported=before in (None, ALL))
    asked = [parse_condition(text, PLAN_FIGURES) for text in fail_on]
    return PlanQuestion(changes, before, strategies, asked, pop_share, explain)


def plan_groups(
    source: Reader, chosen: Selection, question: PlanQuestion, progress: Progress = no_progress
) -> RebalancePlan | PlanOfGroups:
    """The plans of the chosen groups, from one reading (raises RmqlbError)."""
    snapshot = source.fetch(chosen.wanted(source))
    plans, findings = chosen.ask(snapshot, lambda name: _plan(source, snapshot, chosen, name, question, progress))
    meta = Meta(snapshot, findings)
    return with_meta(plans_of_groups(plans), meta) if chosen.several else with_meta(plans[0], meta)


def _plan(
    source: Reader,
    snapshot: ClusterSnapshot,
    chosen: Selection,
    name: str | None,
    question: PlanQuestion,
    progress: Progress,
) -> tuple[RebalancePlan, tuple[Finding, ...]]:
    given = None if question.strategy == ALL else question.strategy
    by_pop = question.pop_share is not None
    group = chosen.resolve(snapshot, name, question.strategies.settings_for, strategy=given, by_pop=by_pop)
    progress(group.title, 0, 0)
    chosen.require_named({*group.client_ids, *change_members(group.client_ids, question.changes)})
    plan, places, findings = plan_group(
        group,
        question.changes,
        explain=question.explain,
        all_strategies=question.strategy == ALL,
        pop_share=question.pop_share,
    )
    plan, of_starts = _with_starts(plan, group, source)
    tried = tuple(try_on_plan(each, plan.summary, places) for each in question.conditions)
    return replace(plan, conditions=tried), (*findings, *of_starts)


def _with_starts(plan: RebalancePlan, group: Group, source: Reader) -> tuple[RebalancePlan, tuple[Finding, ...]]:
    """The plan with the start offsets of its new owners, and why some are missing."""
    seen, routes = group.seen, group.pulled_routes
    questions = () if seen is None else start_questions(plan, seen, group.consume_from, routes)
    answers, missing = ask_starts(source, seen, questions)
    plan = with_starts(plan, {**group.states, **answers}, group.consume_from, routes)
    return plan, (*missing, *_own_files(plan, group.consume_from))


def _own_files(plan: RebalancePlan, consume_from: str) -> Iterator[Finding]:
    """That new BROADCASTING consumers are taken to be new on their machines too."""
    new = [each.client_id for each in plan.consumers if each.index_before is None]
    if plan.broadcasting and new:
        yield Finding(
            "own-offset-file",
            f"{counted(len(new), 'new consumer')} taken to have no offset file (~/.rocketmq_offsets/"
            f"{new[0]}/{plan.group}/offsets.json): without one a BROADCASTING consumer starts by {consume_from}",
        )


def _each(given: int | str | Sequence[int | str], option: str) -> tuple[int | str, ...]:
    values = (given,) if isinstance(given, int | str) else tuple(given)
    return tuple(each if isinstance(each, int) else parse.client_id(each, f"--{option}") for each in values)


def _counts(given: int | Mapping[str, int] | None) -> list[str]:
    if given is None:
        return []
    return [str(given)] if isinstance(given, int) else [f"{broker}={number}" for broker, number in given.items()]
