"""What a step does: to the owners of each group, to where new queues begin, and to the keys of producers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm

from msgspec import Struct

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.start_offsets import with_starts
from rmqlb.engine.send.sdk import ChosenSdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.errors import DataError
from rmqlb.model.group import States
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.key_queues import KeyedSdk, KeyQueue
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import ADDED, ASSIGNED, Move
from rmqlb.model.plan_topic import GroupEffect, KeysMoved, MovedKey, StartCount
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.times import utc_text


def consumed_per_ms(now: ClusterSnapshot, then: ClusterSnapshot, group: str, where: str) -> dict[MessageQueue, float]:
    """Messages per millisecond of each queue that both snapshots know (raises DataError).

    Args:
        now: the later one.
        then: the earlier one.
        group: a group of the later one; one that the earlier one does not have has no rates.
        where: what the earlier one is called in errors.
    """
    if group not in then.groups:
        return {}
    later, earlier = now.groups[group], then.groups[group]
    to, since = later.seen.at or now.taken_at, earlier.seen.at or then.taken_at
    if to is None or since is None:
        which = f"{where} does" if since is None else "the source does"
        raise DataError(f"{which} not report when it was taken, so that no rate follows")
    if to <= since:
        raise DataError(
            f"{where} is not earlier than the source: {utc_text(since)} and {utc_text(to)}",
            hint="-s is the later snapshot, --rates-since the earlier one",
        )
    length_ms = (to - since).total_seconds() * 1000
    rates: dict[MessageQueue, float] = {}
    for queue, state in later.queues.items():
        old = earlier.queues.get(queue)
        if old is None or None in (state.consumer_offset, old.consumer_offset):
            continue
        read = max(state.consumer_offset or 0, 0) - max(old.consumer_offset or 0, 0)
        rates[queue] = max(read, 0) / length_ms
    return rates


class PlannedGroup(Struct, frozen=True):
    name: str
    members: Members | None  # None when it has no consumer online, or when no strategy decides who owns a queue
    states: States  # what is known of its queues
    consume_from: str = CONSUME_FROM_LAST_OFFSET
    consumed_per_ms: Mapping[MessageQueue, float] = {}  # messages of each queue, as two snapshots show


class Keys(Struct, frozen=True):
    keys: tuple[str, ...] = ()
    sdks: tuple[ChosenSdk, ...] = ()
    proxy_mode: ProxyMode = "local"


def group_effect(group: PlannedGroup, before: TopicRouteData, after: TopicRouteData) -> GroupEffect:
    """What becomes of the group's owners (raises AllocationError)."""
    if group.members is None:
        return GroupEffect(group.name, None, None, None, None, None, None, None, (), None, None, None)
    sides = Side(group.members, (before,)), Side(group.members, (after,))
    plan = plan_rebalance(group.name, *sides, states=group.states)
    plan = with_starts(plan, group.states, group.consume_from, (before,))
    begun = [
        (MessageQueue(topic.topic, move.broker_name, move.queue_id), move)
        for topic in plan.topics
        for move in topic.queues
        if move.change in (ADDED, ASSIGNED) and move.owners_after
    ]
    rules = Counter(move.start_rule or "unknown" for _, move in begun)
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
        starts=tuple(StartCount(rule, rules[rule]) for rule in sorted(rules)),
        skipped=_skipped(begun, group.states),
        first_lost=_first_lost(move for _, move in begun),
        lag_removed=summary.lag_removed,
    )


def _skipped(begun: Iterable[tuple[MessageQueue, Move]], states: States) -> int | None:
    """How many messages of these queues are never read because their owners begin at the end."""
    skipped = 0
    for queue, move in begun:
        if move.start_offset is None:
            return None
        if move.start_rule == "end":
            state = states.get(queue)
            skipped += max(move.start_offset - ((state.min_offset if state else None) or 0), 0)
    return skipped


def _first_lost(begun: Iterable[Move]) -> int | None:
    """In how many of these queues messages are lost that come before they have an owner.

    A queue that begins at 0 is begun there, even by CONSUME_FROM_LAST_OFFSET, as long as its first message is in the
    broker's memory (`ConsumerManageProcessor.queryConsumerOffset`; since 5.1.0 what is in the page cache, as Java 8
    and 11 can say, while on 17 all is taken to be; before, the last 40 % of the machine's memory). So it is those of
    which a broker says that nothing is stored although there are messages, or were.
    """
    lost = 0
    for move in begun:
        if move.start_rule in (None, "unknown") or move.start_offset is None:
            return None
        lost += move.start_rule == "end" and move.start_offset > 0
    return lost


class MovedKeys(Struct, frozen=True):
    """Keys that go to another queue: how many of each SDK's, and what share of each queue's former keys."""

    sdks: tuple[KeysMoved, ...]
    leaving: tuple[Mapping[MessageQueue, float], ...]  # SDK by SDK; evenly hashed keys where none is known


def moved_keys(before: TopicRouteData, after: TopicRouteData, keys: Keys) -> MovedKeys:
    """The keys that go to another queue, those given or evenly hashed ones (raises DataError)."""
    if before.publish_queues() == after.publish_queues():
        return MovedKeys((), ())
    evenly = leaving_shares(before.publish_queues(), after.publish_queues())
    if not keys.keys:
        return MovedKeys((), (evenly,))
    found = key_queues(before, keys.keys, keys.sdks, keys.proxy_mode, after=after)
    sdks = tuple(
        KeysMoved(each.sdk, each.moved, each.moved_share, tuple(_moving(found.keys, each))) for each in found.sdks
    )
    leaving = tuple(_leaving(before.topic, found.keys, each.sdk) for each in sdks if each.moved is not None)
    return MovedKeys(sdks, leaving or (evenly,))


def _moving(keys: Sequence[KeyQueue], sdk: KeyedSdk) -> Iterator[MovedKey]:
    for key in keys if sdk.moved else ():
        queue, after = key.queues[sdk.sdk], (key.queues_after or {}).get(sdk.sdk)
        if queue != after:
            yield MovedKey(key.key, queue, after)


def _leaving(topic: str, keys: Sequence[KeyQueue], sdk: str) -> dict[MessageQueue, float]:
    """The share of each queue's keys that leave it; of a queue without a key nothing is said."""
    whole: Counter[MessageQueue] = Counter()
    left: Counter[MessageQueue] = Counter()
    for key in keys:
        place = key.queues[sdk]
        if place is not None:
            queue = MessageQueue(topic, place.broker_name, place.queue_id)
            whole[queue] += 1
            left[queue] += (key.queues_after or {}).get(sdk) != place
    return {queue: left[queue] / count for queue, count in whole.items()}


def leaving_shares(before: Sequence[MessageQueue], after: Sequence[MessageQueue]) -> dict[MessageQueue, float]:
    """The share of each queue's evenly distributed hashes that go elsewhere when a key goes to queue number hash % n.

    >>> a = [MessageQueue("T", "a", i) for i in range(4)]
    >>> list(leaving_shares(a[:1], a).values()), list(leaving_shares(a[:2], a[:3]).values())
    ([0.75], [0.6666666666666666, 0.6666666666666666])
    """
    if not after:
        return dict.fromkeys(before, 1.0)
    rounds = lcm(len(before), len(after)) // max(len(before), 1)
    return {
        queue: sum(after[(place + turn * len(before)) % len(after)] != queue for turn in range(rounds)) / rounds
        for place, queue in enumerate(before)
    }


def uniform_share(before: Sequence[MessageQueue], after: Sequence[MessageQueue]) -> float:
    """The share of all evenly distributed hashes that go elsewhere.

    >>> a = [MessageQueue("T", "a", i) for i in range(8)]
    >>> uniform_share(a[:4], a), uniform_share(a, a[:4]), uniform_share(a[:2], a[:3]), uniform_share(a, a)
    (0.5, 0.5, 0.6666666666666666, 0.0)
    """
    if not before:
        return 0.0 if not after else 1.0
    return sum(leaving_shares(before, after).values()) / len(before)


def out_of_order(group: PlannedGroup, leaving: Sequence[Mapping[MessageQueue, float]]) -> int | None:
    """How many messages unread now have a key that leaves their queue; of several SDKs the most, None when unknown."""
    most = 0.0
    for shares in leaving:
        found = 0.0
        for queue, share in shares.items():
            state = group.states.get(queue)
            lag = None if state is None else state.lag
            if lag is None and share > 0:
                return None
            found += (lag or 0) * share
        most = max(most, found)
    return round(most)


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
