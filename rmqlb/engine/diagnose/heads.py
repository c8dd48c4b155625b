"""The rule for queues whose first message is not finished while others are."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, AnotherLookNeeded
from rmqlb.engine.diagnose.reports import (
    ConsumerReports,
    Doubts,
    gravest,
    is_at_limit,
    named,
    of_each,
    one_topic,
    waits,
)
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.words import counted


class StandingHead(Struct, frozen=True):
    """A queue whose first message is not finished.

    Attributes:
        queue: which one.
        offset: of the message.
        behind: messages after it that the consumer has.
        held_ms: for how long the looks show that.
        needed_ms: from which on that is more than usual.
        stops: no other message of the queue is consumed, or pulled.
        doubt: why it may as well be a message that was only just pulled; None when it is proven.
    """

    queue: MessageQueue
    offset: int
    behind: int
    held_ms: int
    needed_ms: int
    stops: bool
    doubt: DataError | None


def head_blocked(case: Case) -> Iterator[GroupFinding]:
    """The first message of a queue is not finished while later ones are."""
    evidence = case.evidence
    found, doubts = of_each(evidence, standing_heads)
    left, causes = case.without_those_of(
        [head.queue for _, head in found], ("consume-failing", "blocked-consumer", "lock-lost")
    )
    own = [(consumer, head) for consumer, head in found if head.queue in left]
    proven = [(consumer, head) for consumer, head in own if head.doubt is None]
    if proven:
        queues = tuple(sort_queues(head.queue for _, head in proven))
        first_consumer, first = min(proven, key=lambda each: queues.index(each[1].queue))
        yield GroupFinding(
            "head-blocked",
            ERROR if any(head.stops for _, head in proven) else WARNING,
            evidence.group.group,
            one_topic(queues),
            queues,
            tuple(sort_client_ids({consumer.client_id for consumer, _ in proven})),
            tuple(
                fact for consumer, head in gravest(proven, lambda head: head.held_ms) for fact in _facts(consumer, head)
            ),
            f"The committed offset of {counted(len(queues), 'queue')} stays where it is; {_meaning(proven)}; "
            f"{evidence.unread_in(queues)}.",
            f"Look at what the listener of {first_consumer.client_id} does with offset {first.offset} of "
            f"{named(first.queue)}; see {evidence.stack_traces(first_consumer.client_id)}.",
        )
    if found and not own:
        raise ComesOf(causes)
    for _, head in own:
        if head.doubt is not None:
            doubts.add(head.doubt)
    doubts.settle()


def _meaning(proven: list[tuple[ConsumerReports, StandingHead]]) -> str:
    """An orderly consumer takes no later message before that one is finished."""
    if all(consumer.now.orderly for consumer, _ in proven):
        return "later messages wait for that one"
    return "a restart redelivers what was consumed after it"


def standing_heads(consumer: ConsumerReports) -> Iterator[StandingHead]:
    """The consumer's queues whose first message was not finished between looks, or may not be (raises DataError)."""
    doubts = Doubts()
    for item in consumer.queues:
        try:
            number = waits(consumer, item)
            head = _standing_head(consumer, item, number) if number else None
        except DataError as doubt:
            doubts.add(doubt)
        else:
            if head is not None:
                yield head
    doubts.settle()


def _standing_head(consumer: ConsumerReports, item: ProcessQueue, waiting: int) -> StandingHead | None:
    first = _first(item)
    if item.commit_offset is None or first is None:
        raise DataError(f"{consumer.client_id} does not report its offsets", hint=ASK_OTHERWISE)
    # One that has finished no message of the queue yet has nothing to commit, and reports what the broker tells it.
    since = _stands_since(consumer, item) if item.commit_offset <= first else None
    if since is None:
        return None
    held, needed = consumer.history[-1][0] - consumer.history[since][0], consumer.unusual_ms((item.queue.topic,))
    doubt = None
    if held < needed or not _goes_on(consumer, item, since):
        doubt = AnotherLookNeeded(
            f"whether {consumer.client_id} finishes offset {first} of {named(item.queue)} shows in looks over "
            f"{needed // 1000} s or more in which others are finished; they show {held // 1000} s",
            after_ms=max(needed - held, 0) or None,
            needed_ms=needed,
        )
    stops = bool(consumer.now.orderly) or (doubt is None and is_at_limit(consumer, item) is not None)
    return StandingHead(item.queue, first, waiting - 1, held, needed, stops, doubt)


def _first(item: ProcessQueue) -> int | None:
    return item.consuming_min_offset if item.consuming else item.min_offset


def _stands_since(consumer: ConsumerReports, item: ProcessQueue) -> int | None:
    """The first of the looks since which the first message stands; None when it moved since the last but one.

    Raises:
        AnotherLookNeeded: no earlier look has the queue.
    """
    since = len(consumer.history) - 1
    for number in range(since - 1, -1, -1):
        look = consumer.history[number][1]
        if item.queue not in look:
            break
        was = look[item.queue]
        has_moved = waits(consumer, was) and _first(was) != _first(item)
        if was.commit_offset != item.commit_offset or has_moved:
            return None if number == len(consumer.history) - 2 else since
        if waits(consumer, was):
            since = number
    return since


def _goes_on(consumer: ConsumerReports, item: ProcessQueue, since: int) -> bool:
    """The listener had its turn after that look, so that the message does not only wait for a thread."""
    before, now = consumer.history[since][1], consumer.history[-1][1]
    was = before[item.queue]
    if was.last_consume != item.last_consume or (was.consuming and item.consuming):
        return True
    # Threads take messages in the order in which they were pulled: one that was pulled later is consumed already.
    return not consumer.now.orderly and any(
        (now[queue].commit_offset or 0) > _pulled_up_to(before[queue]) for queue in now.keys() & before.keys()
    )


def _pulled_up_to(item: ProcessQueue) -> int:
    return (item.max_offset or 0) + 1 if item.cached else item.commit_offset or 0


def _facts(consumer: ConsumerReports, head: StandingHead) -> Iterator[Evidence]:
    name, own = named(head.queue), consumer.client_id
    yield consumer.seen(
        f"seconds for which offset {head.offset} of {name} is not finished at {own}",
        head.held_ms // 1000,
        head.needed_ms // 1000,
    )
    yield consumer.seen(f"messages of {name} after it that {own} has", head.behind)
