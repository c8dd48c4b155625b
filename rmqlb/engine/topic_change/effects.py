"""What a step does: to the owners of each group, to where new queues begin, and to the keys of producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import lcm

from msgspec import Struct

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.starts import with_starts
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.send.sdks.key_queues import key_queues
from rmqlb.engine.send.sdks.profile import ChosenSdk
from rmqlb.model.group import States
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import ADDED, ASSIGNED, TopicPlan
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.topic_change import GroupEffect, KeysMoved, StartCount


class PlannedGroup(Struct, frozen=True):
    """A group of the topic."""

    name: str
    members: Members | None  # None when it has no consumer online, or when no strategy decides who owns a queue
    states: States  # what is known of its queues
    consume_from: str = CONSUME_FROM_LAST_OFFSET
    consumed_per_ms: Mapping[MessageQueue, float] = {}  # messages of each queue, as two snapshots show


class Keys(Struct, frozen=True):
    """The keys that producers send, and whose producers."""

    keys: tuple[str, ...] = ()
    sdks: tuple[ChosenSdk, ...] = ()
    proxy_mode: ProxyMode = "local"


def group_effect(group: PlannedGroup, before: TopicRouteData, after: TopicRouteData) -> GroupEffect:
    """What becomes of the group's owners (raises AllocationError)."""
    if group.members is None:
        return GroupEffect(group.name, None, None, None, None, None, None, None, (), None, None)
    sides = Side(group.members, (before,)), Side(group.members, (after,))
    plan = plan_rebalance(group.name, *sides, states=group.states)
    plan = with_starts(plan, group.states, group.consume_from, (before,))
    starts, skipped = _starts(plan.topics, group.states)
    summary = plan.summary
    return GroupEffect(
        group=group.name,
        strategy=group.members.name,
        moved=summary.moved,
        added=summary.added,
        removed=summary.removed,
        unassigned=summary.unassigned,
        idle=summary.idle,
        imbalance=summary.imbalance,
        starts=starts,
        skipped=skipped,
        lag_removed=summary.lag_removed,
    )


def _starts(topics: Sequence[TopicPlan], states: States) -> tuple[tuple[StartCount, ...], int | None]:
    """How the owners of new queues begin, and how many messages they skip thereby."""
    rules: Counter[str] = Counter()
    skipped: int | None = 0
    for topic in topics:
        for move in topic.queues:
            if move.change not in (ADDED, ASSIGNED) or not move.owners_after:
                continue
            rules[move.start_rule or "unknown"] += 1
            state = states.get(MessageQueue(topic.topic, move.broker_name, move.queue_id))
            if move.start_offset is None:
                skipped = None
            elif skipped is not None and move.start_rule == "end" and state is not None:
                skipped += max(move.start_offset - (state.min_offset or 0), 0)
    return tuple(StartCount(rule, rules[rule]) for rule in sorted(rules)), skipped


def keys_moved(before: TopicRouteData, after: TopicRouteData, keys: Keys) -> tuple[KeysMoved, ...]:
    """How many keys go to another queue, SDK by SDK."""
    if not keys.keys or before.publish_queues() == after.publish_queues():
        return ()
    found = key_queues(before, keys.keys, keys.sdks, keys.proxy_mode, after=after)
    return tuple(KeysMoved(each.sdk, each.moved, each.moved_share) for each in found.sdks)


def uniform_share(before: Sequence[MessageQueue], after: Sequence[MessageQueue]) -> float:
    """The share of evenly distributed hashes that go elsewhere when a key goes to the queue number hash % n.

    >>> a = [MessageQueue("T", "a", i) for i in range(8)]
    >>> uniform_share(a[:4], a), uniform_share(a, a[:4]), uniform_share(a[:2], a[:3]), uniform_share(a, a)
    (0.5, 0.5, 0.6666666666666666, 0.0)
    """
    if not before or not after:
        return 0.0 if before == after else 1.0
    whole = lcm(len(before), len(after))
    if len(before) == len(after):
        return sum(one != other for one, other in zip(before, after, strict=True)) / whole
    return sum(before[i % len(before)] != after[i % len(after)] for i in range(whole)) / whole


def drain_ms(groups: Sequence[PlannedGroup] | None, queues: Sequence[MessageQueue]) -> float | None:
    """How long the groups take to read what is in the queues, if nothing more comes; None when it is unknown.

    A group goes on as two snapshots show it. While messages still come it may be slower than it could be, so this is
    rather too long than too short.
    """
    if groups is None and queues:
        return None
    longest = 0.0
    for group in groups or ():
        for queue in queues:
            state = group.states.get(queue)
            lag = None if state is None else state.lag
            if lag == 0:
                continue
            rate = group.consumed_per_ms.get(queue, 0.0)
            if lag is None or rate <= 0:
                return None
            longest = max(longest, lag / rate)
    return longest
