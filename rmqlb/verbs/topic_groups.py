"""The groups that read the topic: their consumers, by which strategy, and where they would begin new queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.start_offsets import new_queues, start_questions
from rmqlb.engine.topic_change.effects import PlannedGroup
from rmqlb.engine.topic_change.rates import consumed_per_ms
from rmqlb.engine.topic_change.target import Routes
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.model.words import counted, named
from rmqlb.verbs.selection import Selection
from rmqlb.verbs.source import Reader, ask_starts
from rmqlb.verbs.strategies import Strategies


class GroupsQuestion(Struct, frozen=True):
    """What is asked about every group alike."""

    strategies: Strategies
    strategy: str | None  # the one to predict with, or None for what consumers report or show
    earlier: ClusterSnapshot | None  # for how fast they read
    earlier_option: str  # what errors about it begin with


def group_names(snapshot: ClusterSnapshot, topic: str, patterns: Sequence[str] | None) -> list[str]:
    """The groups that read the topic (raises DataError for one that is named and not there)."""
    names = Wanted(several=tuple(patterns or ("*",))).groups_among(snapshot.groups)
    return [name for name in names if snapshot.group(name).subscribes_to(topic)]


def planned_groups(
    snapshot: ClusterSnapshot, names: Sequence[str], routes: Routes, question: GroupsQuestion, reader: Reader
) -> tuple[list[PlannedGroup], list[Finding]]:
    """The groups with what decides who owns what, and what there is to say of them (raises DataError)."""
    groups: list[PlannedGroup] = []
    findings: list[Finding] = []
    offline: list[str] = []
    for name in names:
        states = snapshot.group(name).without_foreign_offsets.queues
        group = PlannedGroup(name, None, states, consumed_per_ms=_rates(snapshot, name, question))
        try:
            chosen = Selection(topics=(routes.now.topic,))
            found = chosen.resolve(snapshot, name, question.strategies.settings_for, strategy=question.strategy)
            found.must_share(broadcasting=True, pop=True)
            if found.client_ids and not found.broadcasting and not found.popped_routes:
                of_group = (each for each in planning_findings(found) if each.group in (None, found.name))
                group = replace(group, members=found.members, consume_from=found.consume_from)
                group, missing = _with_starts(group, found, routes, reader)
                findings += (*of_group, *missing)
            elif not found.client_ids and not found.broadcasting and found.consume_from == CONSUME_FROM_LAST_OFFSET:
                offline.append(name)
        except (DataError, UsageError) as error:
            text = f"group {name}: its owners are not predicted: {error.problem}"
            findings.append(Finding("owners-not-planned", text, name, INFO))
        groups.append(group)
    return groups, [*findings, *_offline(offline, routes)]


def _rates(snapshot: ClusterSnapshot, name: str, question: GroupsQuestion) -> Mapping[MessageQueue, float]:
    if question.earlier is None:
        return {}
    return consumed_per_ms(snapshot, question.earlier, name, question.earlier_option)


def _with_starts(
    group: PlannedGroup, found: Group, routes: Routes, reader: Reader
) -> tuple[PlannedGroup, list[Finding]]:
    """The group with what brokers say of queues that it begins to read and that may have messages already."""
    if group.members is None or found.seen is None:
        return group, []
    before, after = (Side(group.members, (route,)) for route in (routes.now, routes.opened))
    plan = plan_rebalance(group.name, before, after, states=group.states)
    questions = start_questions(plan, found.seen, found.consume_from, (routes.now,))
    answers, missing = ask_starts(reader, found.seen, list(_of_opened(questions, routes)))
    return replace(group, states={**group.states, **answers}), list(missing)


def _of_opened(questions: Sequence[OffsetQuestion], routes: Routes) -> Iterator[OffsetQuestion]:
    """Those about queues that consumers cannot read yet and that are there: what is new is empty."""
    known, is_new = set(routes.now.subscribe_queues()), new_queues((routes.now,))
    return (each for each in questions if each.queue not in known and not is_new(each.queue))


def _offline(names: Sequence[str], routes: Routes) -> Iterator[Finding]:
    """That groups without a consumer do not come to new queues before producers do."""
    if names and not set(routes.target.subscribe_queues()) <= set(routes.now.subscribe_queues()):
        yield Finding(
            "starts-later",
            f"no consumer of {counted(len(names), 'group')} is online ({named(names)}): one that starts after "
            "producers have written a new queue begins at its first message only while the broker has that in memory, "
            "otherwise at its end",
        )
