"""The rule for listeners that fail, by what consumers report of the last minute.

Thresholds of this file: a message that fails once and is then consumed counts as one failure and one success, so that
a healthy retry stays below one failure in two. Three failures in four, over two looks, are more than that. A client
counts failures in `processConsumeResult` of `ConsumeMessageConcurrentlyService` and `ConsumeMessageOrderlyService`,
under the topic of the queue: a message that was sent back counts under the retry topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, AnotherLookNeeded, GroupEvidence
from rmqlb.engine.diagnose.reports import HELD_MS, ConsumerReports, gravest, of_each, one_topic
from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.group import RETRY_PREFIX, dead_letter_topic, retry_topic
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.words import counted

FAILING_PERCENT = 75
"""From that share of failures on a listener is failing."""
FEWEST_FAILURES = 10
"""In a minute; fewer say nothing."""
_MINUTE_S = 60
_Minute = tuple[int, int]  # messages that failed, and that were consumed, in a minute


class Failing(Struct, frozen=True):
    """A consumer whose listener fails.

    Attributes:
        queues: of the topics whose messages fail, retry topics left out.
        failed: messages that failed in the last minute, retries included.
        consumed: messages that were consumed in the last minute.
    """

    queues: tuple[MessageQueue, ...]
    failed: int
    consumed: int

    @property
    def percent(self) -> int:
        return _percent(self.failed, self.consumed)


def consume_failing(case: Case) -> Iterator[GroupFinding]:
    """A listener fails for most messages that it gets."""
    evidence = case.evidence
    found, doubts = of_each(evidence, failing_listener)
    if found:
        queues = tuple(sort_queues({queue for _, failing in found for queue in failing.queues}))
        ids = tuple(sort_client_ids(consumer.client_id for consumer, _ in found))
        worst = max(failing.percent for _, failing in found)
        yield GroupFinding(
            "consume-failing",
            ERROR if worst == 100 else WARNING,
            evidence.group.group,
            one_topic(queues),
            queues,
            ids,
            (
                *(fact for one, failing in gravest(found, lambda its: its.failed) for fact in _facts(one, failing)),
                *_retries(evidence),
                *_dead_letters(evidence),
            ),
            _consequence(evidence, [consumer for consumer, _ in found]),
            f"Look at the log of {ids[0]}: its listener throws an exception, or asks for the messages again.",
        )
    doubts.settle()


def failing_listener(consumer: ConsumerReports) -> Iterator[Failing]:
    """The consumer's listener, when most of its calls failed in the last minute, as two looks show.

    Raises:
        AnotherLookNeeded: only one look shows it.
        DataError: the consumer does not report its rates.
    """
    now = _failing_part(consumer, consumer.now)
    if now is None:
        return
    failed, consumed = now
    read_at = consumer.now.read_at or 0
    before = [look for look in consumer.reports[:-1] if read_at - (look.read_at or read_at) >= HELD_MS]
    if not before:
        raise AnotherLookNeeded(
            f"the listener of {consumer.client_id} failed for {failed} of {failed + consumed} messages in the last "
            "minute: needs 2 samples, got 1"
        )
    if _failing_part(consumer, before[-1]) is not None:
        statuses = consumer.now.statuses or {}
        topics = {topic for topic, its in statuses.items() if its.failed_per_s and not topic.startswith(RETRY_PREFIX)}
        own = [item.queue for item in consumer.queues if not item.queue.topic.startswith(RETRY_PREFIX)]
        queues = [queue for queue in own if queue.topic in topics] if topics else own  # where only retries come, all
        yield Failing(tuple(sort_queues(queues)), failed, consumed)


def _failing_part(consumer: ConsumerReports, report: ConsumerEvidence) -> _Minute | None:
    """How many messages failed and were consumed in the last minute, of all topics or of one with its retries.

    One topic fails beside others only where its retries fail too (raises DataError).
    """
    statuses = report.statuses or {}
    rates = [rate for status in statuses.values() for rate in (status.failed_per_s, status.consumed_per_s)]
    if None in rates or not rates:
        raise DataError(f"{consumer.client_id} does not report how many messages fail", hint=ASK_OTHERWISE)
    minutes = {
        topic: (_MINUTE_S * (status.failed_per_s or 0), _MINUTE_S * (status.consumed_per_s or 0))
        for topic, status in statuses.items()
    }
    retries = _total(its for topic, its in minutes.items() if topic.startswith(RETRY_PREFIX))
    parts = [_total(minutes.values())]
    for topic, its in minutes.items():
        if not topic.startswith(RETRY_PREFIX) and _is_failing(_total([its])):
            parts += [_total([its, retries])] if not any(retries) or _percent(*retries) >= FAILING_PERCENT else []
    return next(filter(_is_failing, parts), None)


def _total(minutes: Iterable[tuple[float, float]]) -> _Minute:
    failed, consumed = (sum(each) for each in zip((0.0, 0.0), *minutes, strict=True))
    return round(failed), round(consumed)


def _is_failing(minute: _Minute) -> bool:
    return minute[0] >= FEWEST_FAILURES and _percent(*minute) >= FAILING_PERCENT


def _percent(failed: int, consumed: int) -> int:
    """Rounded down, so that 100 says that all fail."""
    return failed * 100 // (failed + consumed)


def _facts(consumer: ConsumerReports, failing: Failing) -> Iterator[Evidence]:
    own = consumer.client_id
    yield consumer.seen(f"percent of the messages that {own} failed to consume", failing.percent, FAILING_PERCENT)
    yield consumer.seen(f"messages that failed at {own} in the last minute", failing.failed, FEWEST_FAILURES)


def _retries(evidence: GroupEvidence) -> Iterator[Evidence]:
    """How many messages came into the group's retry topic from the first look to the last."""
    grown = [
        state.broker_offset - was.broker_offset
        for queue, state in evidence.group.queues.items()
        if queue.topic == retry_topic(evidence.group.group)
        and state.broker_offset is not None
        and (was := evidence.looks[0].queues.get(queue)) is not None
        and was.broker_offset is not None
    ]
    if grown:
        seconds = (evidence.read_at[-1] - evidence.read_at[0]) // 1000
        yield evidence.seen(f"messages that came into the retry topic in {seconds} s", sum(grown))


def _dead_letters(evidence: GroupEvidence) -> Iterator[Evidence]:
    """How many messages came into the group's dead-letter topic between the looks that know it."""
    known = [
        (at, look.dead_letters)
        for at, look in zip(evidence.read_at, evidence.looks, strict=True)
        if look.dead_letters is not None
    ]
    if known and (grown := known[-1][1] - known[0][1]):
        seconds = (known[-1][0] - known[0][0]) // 1000
        yield evidence.seen(f"messages that came into the dead-letter topic in {seconds} s", grown)


def _consequence(evidence: GroupEvidence, consumers: list[ConsumerReports]) -> str:
    ids = counted(len(consumers), "consumer")
    alone = len(consumers) == 1
    fails = f"{ids} fail{'s' * alone} to consume most of {'its' if alone else 'their'} messages"
    if all(consumer.now.orderly for consumer in consumers):
        return f"{fails}; each queue waits for its first message, which the listener gets again and again."
    topic = dead_letter_topic(evidence.group.group)
    return f"{fails}; brokers deliver them again, and put them into {topic} after the last try."
