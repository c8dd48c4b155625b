"""The groups that read the topic: their consumers, by which strategy, and where they would begin new queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.inputs import GroupOnTopics, group_on_topics
from rmqlb.cli.common.options import GroupOptions
from rmqlb.cli.common.reading import Reader, asked_starts
from rmqlb.cli.common.strategies import Strategies
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.detect import detect_strategy
from rmqlb.engine.consume.starts import new_queues, start_questions
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.topic_change.effects import PlannedGroup
from rmqlb.engine.topic_change.rates import consumed_per_ms
from rmqlb.engine.topic_change.target import Routes
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.model.words import counted, named


class GroupsQuestion(Struct, frozen=True):
    """What is asked about every group alike."""

    strategies: Strategies
    strategy: str | None  # the one to predict with, or None for what consumers report or show
    earlier: ClusterSnapshot | None  # for how fast they read
    earlier_name: str  # what it is called in errors


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
            found = group_on_topics(
                snapshot, GroupOptions(name, [routes.now.topic]), broadcasting_too=True, pop_too=True
            )
            if found.client_ids and not found.broadcasting and not found.popped:
                members, of_group = _members(found, question)
                group = replace(group, members=members, consume_from=found.consume_from)
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
    return consumed_per_ms(snapshot, question.earlier, name, question.earlier_name)


def _members(found: GroupOnTopics, question: GroupsQuestion) -> tuple[Members, list[Finding]]:
    """Its consumers under the strategy that is given or detected (raises DataError, UsageError)."""
    members = found.members(question.strategies.settings_for([route.topic for route in found.routes], found.name))
    detected = detect_strategy(question.strategy, found.group, found.routes, members)
    own = (each for each in (*found.findings, *detected.findings) if each.group in (None, found.name))
    return replace(members, strategy=detected.strategy, strategy_of=detected.strategy_of), list(own)


def _with_starts(
    group: PlannedGroup, found: GroupOnTopics, routes: Routes, reader: Reader
) -> tuple[PlannedGroup, list[Finding]]:
    """The group with what brokers say of queues that it begins to read and that may have messages already."""
    if group.members is None or found.group is None:
        return group, []
    before, after = (Side(group.members, (route,)) for route in (routes.now, routes.opened))
    plan = plan_rebalance(group.name, before, after, states=group.states)
    questions = start_questions(plan, found.group, found.consume_from, (routes.now,))
    answers, missing = asked_starts(reader, found.group, list(_of_opened(questions, routes)))
    return replace(group, states={**group.states, **answers}), missing


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
