"""The rule for listeners that do not return, by what consumers say of their process queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, AnotherLookNeeded
from rmqlb.engine.diagnose.reports import BLOCKED_MS, ConsumerReports, Doubts, gravest, of_each, one_topic, waits
from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.words import counted, of_all

SAMPLED_MS = 10_000
"""So often a client counts what it has pulled; its rates are of 60 s of these (`StatsItem.samplingInSeconds`)."""
_FRAMES = 3


class Stuck(Struct, frozen=True):
    """A listener that has messages and ends no call.

    Attributes:
        queues: whose messages it has.
        waiting: how many these are.
        idle_ms: for how long it has consumed none.
        held_ms: for how long the looks show that.
        needed_ms: from which on that is more than usual.
        old: what proves it where `held_ms` does not.
    """

    queues: tuple[MessageQueue, ...]
    waiting: int
    idle_ms: int
    held_ms: int
    needed_ms: int
    old: OldMessages | None = None


class OldMessages(Struct, frozen=True):
    """More messages of a topic than the consumer pulls in a minute, so that it has had some for longer.

    Attributes:
        topic: of which they are.
        number: how many it had.
        pulled: how many it pulled in the last minute.
        before_ms: how long before the last look it had them.
    """

    topic: str
    number: int
    pulled: int
    before_ms: int


def blocked_consumer(case: Case) -> Iterator[GroupFinding]:
    """A listener has messages and has ended no call for a minute."""
    evidence = case.evidence
    found, doubts = of_each(evidence, stuck_listener)
    if found:
        queues = tuple(sort_queues({queue for _, stuck in found for queue in stuck.queues}))
        ids = tuple(sort_client_ids(consumer.client_id for consumer, _ in found))
        yield GroupFinding(
            "blocked-consumer",
            ERROR,
            evidence.group.group,
            one_topic(queues),
            queues,
            ids,
            tuple(
                fact
                for consumer, stuck in gravest(found, lambda stuck: stuck.idle_ms)
                for fact in _facts_of_stuck(consumer, stuck)
            ),
            f"{counted(len(ids), 'consumer')} consume{'s' * (len(ids) == 1)} nothing: {counted(len(queues), 'queue')} "
            f"wait{'s' * (len(queues) == 1)}; {evidence.unread_in(queues)}.",
            f"Look at {evidence.stack_traces(ids[0])} for what its listener waits for, and give that call a "
            "timeout; a restart frees it until the next such call.",
        )
    doubts.settle()


def stuck_listener(consumer: ConsumerReports) -> Iterator[Stuck]:
    """The consumer's listener, when it has messages and has ended no call for a minute.

    Raises:
        AnotherLookNeeded: it may be, as far as the looks show.
        DataError: the consumer does not report what decides it.
    """
    waiting = {item.queue: waits(consumer, item) for item in consumer.queues}
    if not any(waiting.values()):
        return
    idle, doubts = set[MessageQueue](), Doubts()
    for item in consumer.queues:
        try:
            if _is_idle(consumer, item):
                idle.add(item.queue)
            elif _has_consumed(consumer, item):
                return
        except DataError as doubt:
            doubts.add(doubt)
    doubts.settle()
    queues = tuple(sort_queues(queue for queue in idle if waiting[queue]))
    if queues:
        yield _proven(consumer, queues, sum(waiting[queue] for queue in queues))
    elif not _ended_calls(consumer):
        raise AnotherLookNeeded(
            f"{consumer.client_id} has had messages for less than {BLOCKED_MS // 1000} s, and no call of its listener "
            "is known to have ended",
            after_ms=BLOCKED_MS,
        )


def _proven(consumer: ConsumerReports, queues: tuple[MessageQueue, ...], waiting: int) -> Stuck:
    """That the messages of these idle queues were not pulled just now (raises AnotherLookNeeded)."""
    held, needed = _held(consumer, queues), consumer.unusual_ms(queue.topic for queue in queues)
    old = _old_messages(consumer) if held < needed else None
    if held < needed and old is None:
        raise AnotherLookNeeded(
            f"the listener of {consumer.client_id} has messages, and ended no call for {held // 1000} s or more; "
            f"more than usual is {needed // 1000} s",
            after_ms=needed - held,
            needed_ms=needed,
        )
    times = [item.last_consume for item in consumer.queues if item.queue in queues and item.last_consume is not None]
    return Stuck(queues, waiting, consumer.clock.age(max(times)), held, needed, old)


def _is_idle(consumer: ConsumerReports, item: ProcessQueue) -> bool:
    """It has consumed none of the queue for a minute (raises DataError)."""
    if item.last_consume is None:
        raise DataError(f"{consumer.client_id} does not report when it last consumed", hint=ASK_OTHERWISE)
    return consumer.clock.is_older(item.last_consume, BLOCKED_MS)


def _has_consumed(consumer: ConsumerReports, item: ProcessQueue) -> bool:
    """The time is not that at which the consumer began to have the queue."""
    time = item.last_consume
    if consumer.now.orderly is False and item.last_lock is not None and time is not None and time > item.last_lock:
        return True  # only orderly consumers renew the lock
    return any(item.queue in look and look[item.queue].last_consume != time for _, look in consumer.history[:-1])


def _ended_calls(consumer: ConsumerReports) -> bool:
    statuses = (consumer.now.statuses or {}).values()
    return any((status.consumed_per_s or 0) + (status.failed_per_s or 0) > 0 for status in statuses)


def _held(consumer: ConsumerReports, queues: Sequence[MessageQueue]) -> int:
    """For how long the looks show that messages of a queue wait and none of any is consumed."""
    read_at, now = consumer.history[-1]
    held = 0
    for before, look in reversed(consumer.history[:-1]):
        if any(queue in look and look[queue].last_consume != now[queue].last_consume for queue in now):
            break
        if any(queue in look and waits(consumer, look[queue]) for queue in queues):
            held = read_at - before
    return held


def _old_messages(consumer: ConsumerReports) -> OldMessages | None:
    """The evidence that it has held messages for longer than a minute, if there is any (raises DataError)."""
    (read_at, now), *earlier = reversed(consumer.history)
    for before, look in earlier:
        if any(queue in look and look[queue].last_consume != now[queue].last_consume for queue in now):
            return None
        if read_at - before < SAMPLED_MS:
            continue
        had: Counter[str] = Counter()
        for queue in now.keys() & look.keys():
            had[queue.topic] += waits(consumer, look[queue])
        for topic, number in had.items():
            pulled = consumer.status(topic).pulled_per_s
            if pulled is not None and number > pulled * BLOCKED_MS / 1000:
                return OldMessages(topic, number, round(pulled * BLOCKED_MS / 1000), read_at - before)
    return None


def _facts_of_stuck(consumer: ConsumerReports, stuck: Stuck) -> Iterator[Evidence]:
    own, minute = consumer.client_id, BLOCKED_MS // 1000
    yield consumer.seen(f"messages that {own} has pulled and not consumed", stuck.waiting, threshold=1)
    yield consumer.seen(f"seconds since {own} consumed a message of these queues", stuck.idle_ms // 1000, minute)
    if stuck.old is None:
        fact = f"seconds between looks in which no call of its listener ended at {own}"
        yield consumer.seen(fact, stuck.held_ms // 1000, stuck.needed_ms // 1000)
    else:
        fact = f"messages of {stuck.old.topic} that {own} had {stuck.old.before_ms // 1000} s before"
        yield consumer.seen(f"{fact}, more than it pulls in a minute", stuck.old.number, stuck.old.pulled + 1)
    yield from _stacks(consumer)


def _stacks(consumer: ConsumerReports) -> Iterator[Evidence]:
    """What most of its consume threads do: the first frames, the most common ones first."""
    stacks = consumer.now.stacks or ()
    tops = Counter(" < ".join(stack.splitlines()[1 : 1 + _FRAMES]) for stack in stacks)
    for top, number in tops.most_common(2):
        if top:
            fact = f"first frames of {of_all(number, len(stacks), 'consume thread')} of {consumer.client_id}"
            yield consumer.seen(fact, top)
