"""What a group's consumers say of their process queues, look by look.

Rule of this file: as `evidence.py` has it; a consumer that pulls on its own (lite-pull, pull) is not looked at, since
its application decides when it takes messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from rmqlb.engine.diagnose.clocks import Clock, clock_of
from rmqlb.engine.diagnose.evidence import (
    ASK_CONSUMERS,
    ASK_OTHERWISE,
    MAKE_EVIDENCE,
    AnotherLookNeeded,
    DoesNotApply,
    GroupEvidence,
)
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue
from rmqlb.model.words import counted

Found = TypeVar("Found")

HELD_MS = 8_000
"""What stands for less may be the usual; looks are 10 s apart, less what reading takes."""
BLOCKED_MS = 60_000
"""From which on `ConsumerRunningInfo.analyzeProcessQueue` suspects a listener that has messages and ends none."""
SHOWN_CONSUMERS = 3
"""A finding gives the evidence of so many consumers at most; it names all of them."""
USUAL_CALLS = 10
"""So many times the mean duration of a call is more than usual."""


class ConsumerReports(Struct, dict=True, eq=False):
    """A push consumer's reports, the oldest first; the last one is of the last look."""

    client_id: str
    reports: tuple[ConsumerEvidence, ...]
    where: str

    @property
    def now(self) -> ConsumerEvidence:
        return self.reports[-1]

    @cached_property
    def clock(self) -> Clock:
        """Its clock compared with ours (raises DataError)."""
        return clock_of(self.client_id, self.reports)

    @property
    def queues(self) -> tuple[ProcessQueue, ...]:
        """Those that it has now, without those that a rebalance took away."""
        return tuple(item for item in self.now.queues or () if not item.dropped)

    @cached_property
    def history(self) -> tuple[tuple[int, dict[MessageQueue, ProcessQueue]], ...]:
        """When each report was received, and the queues in it; the last one last (raises DataError)."""
        found = [(look.read_at, look.queues) for look in self.reports if look.queues is not None]
        if any(read_at is None for read_at, _ in found):
            raise DataError(f"when {self.client_id} reported is unknown", hint=ASK_OTHERWISE)
        return tuple((read_at or 0, {item.queue: item for item in queues}) for read_at, queues in found)

    def status(self, topic: str) -> ConsumeStatus:
        """How fast it consumes the topic, as far as it reports that."""
        return (self.now.statuses or {}).get(topic, ConsumeStatus())

    def usual_ms(self, topic: str) -> float | None:
        """The mean duration of a call of its listener; None when no call ended, or none is reported."""
        statuses = ((report.statuses or {}).get(topic) for report in reversed(self.reports))
        return next((status.consume_ms for status in statuses if status is not None and _has_ended_calls(status)), None)

    def unusual_ms(self, topics: Iterable[str]) -> int:
        """A call of its listener that takes longer is more than usual; a minute where no usual duration is known."""
        longest = 0.0
        for topic in topics:
            usual = self.usual_ms(topic)
            if usual is None:
                return BLOCKED_MS
            longest = max(longest, usual)
        return min(BLOCKED_MS, max(HELD_MS, round(USUAL_CALLS * longest)))

    def seen(self, fact: str, value: str | int, threshold: str | int | None = None) -> Evidence:
        """A fact of its last report."""
        at = datetime.fromtimestamp((self.now.read_at or 0) / 1000, UTC)
        return Evidence(fact, value, threshold, self.where, at.isoformat().replace("+00:00", "Z"))


def _has_ended_calls(status: ConsumeStatus) -> bool:
    """Without any call the mean is 0, as it is of calls that take no time."""
    ended = bool(status.consumed_per_s or status.failed_per_s)
    return bool(status.consume_ms) or (status.consume_ms is not None and ended)


class Doubts:
    """What keeps a rule from saying that all is in order."""

    def __init__(self) -> None:
        self._errors: list[DataError] = []

    def add(self, error: DataError) -> None:
        self._errors.append(error)

    def settle(self) -> None:
        """Raise what another look would decide, otherwise the first of them, if there is any."""
        needed = [error for error in self._errors if isinstance(error, AnotherLookNeeded)]
        for error in (*needed, *self._errors):
            raise error


def of_each(
    evidence: GroupEvidence, judge: Callable[[ConsumerReports], Iterator[Found]]
) -> tuple[list[tuple[ConsumerReports, Found]], Doubts]:
    """What the judge finds in each push consumer's reports, and what is unknown (raises DataError, DoesNotApply)."""
    doubts, found = Doubts(), []
    for consumer in push_consumers(evidence, doubts):
        try:
            for each in judge(consumer):
                found.append((consumer, each))  # noqa: PERF401 - what was found stands, whatever is missing after it
        except DataError as error:
            doubts.add(error)
    try:
        evidence.must_be_all_lists()
    except DataError as error:
        doubts.add(error)
    return found, doubts


def gravest(
    found: Sequence[tuple[ConsumerReports, Found]], size: Callable[[Found], float]
) -> list[tuple[ConsumerReports, Found]]:
    """The gravest of each consumer, of the few consumers with the gravest: enough to prove what holds for all."""
    of_each_consumer: dict[str, tuple[ConsumerReports, Found]] = {}
    for consumer, each in sorted(found, key=lambda pair: size(pair[1]), reverse=True):
        of_each_consumer.setdefault(consumer.client_id, (consumer, each))
    return list(of_each_consumer.values())[:SHOWN_CONSUMERS]


def push_consumers(evidence: GroupEvidence, doubts: Doubts) -> Iterator[ConsumerReports]:
    """The consumers that the client pulls for, with their reports; those without one are doubts."""
    group = evidence.group
    if evidence.lists and evidence.facts.apart is not None and group.message_model != BROADCASTING:
        raise DoesNotApply(evidence.facts.apart)
    pushing = evidence.pushing
    if not pushing:
        raise DoesNotApply("its consumers pull on their own")
    if not evidence.has_process_queues:  # as in most snapshots: nothing to look for, consumer by consumer
        doubts.add(_silent(evidence, pushing, len(pushing)))
        return
    silent = []
    for client_id in pushing:
        reports = [look.reports[client_id].evidence for look in evidence.looks if client_id in look.reports]
        known = tuple(each for each in reports if each is not None and each.queues is not None)
        if client_id not in group.reports or not known or known[-1] is not reports[-1]:
            silent.append(client_id)
        elif evidence.processes[client_id] > 1:
            # Each request may be answered by another of them.
            doubts.add(
                DataError(
                    f"which of the processes with client ID {client_id} answers is unknown",
                    hint="give each process an ID of its own",
                )
            )
        else:
            yield ConsumerReports(client_id, known, group.seen.where)
    if silent:
        doubts.add(_silent(evidence, silent, len(pushing)))


def _silent(evidence: GroupEvidence, silent: Sequence[str], number: int) -> DataError:
    reports = evidence.group.reports
    if all(client_id in reports for client_id in silent) and len(silent) == number:
        return DataError("the snapshot has no process queues of its consumers", hint=MAKE_EVIDENCE)
    return DataError(
        f"the process queues of {counted(len(silent), 'consumer')} are unknown: {silent[0]} did not report them",
        hint=ASK_CONSUMERS,
    )


def waits(consumer: ConsumerReports, item: ProcessQueue) -> int:
    """Messages that the consumer has pulled and not consumed (raises DataError)."""
    if item.cached is None:
        raise DataError(f"{consumer.client_id} does not report how many messages it has pulled", hint=ASK_OTHERWISE)
    return item.cached + (item.consuming or 0)


def is_at_limit(consumer: ConsumerReports, item: ProcessQueue) -> tuple[str, int, int] | None:
    """What keeps the consumer from pulling: the words, the value and the limit; None when nothing does.

    Raises:
        DataError: the consumer does not report its limits.
    """
    limits, span = consumer.now.limits, _span(item)
    checks = [
        ("messages", waits(consumer, item), limits.messages),
        ("MiB of messages", item.cached_mib, limits.mib),
    ]
    if not consumer.now.orderly:  # `DefaultMQPushConsumerImpl.pullMessage`
        checks.append(("offsets from the first to the last message", span, limits.span))
    for words, value, limit in checks:
        if value is not None and limit is not None and value > limit:
            return words, value, limit
    if any(value is None or limit is None for _, value, limit in checks):
        raise DataError(f"{consumer.client_id} does not report how much it may hold", hint=ASK_OTHERWISE)
    return None


def _span(item: ProcessQueue) -> int | None:
    if not item.cached:
        return 0
    return None if item.max_offset is None or item.min_offset is None else item.max_offset - item.min_offset


def one_topic(queues: Iterable[MessageQueue]) -> str | None:
    """The topic of all of them; None when they are of several."""
    topics = {queue.topic for queue in queues}
    return topics.pop() if len(topics) == 1 else None


def named(queue: MessageQueue) -> str:
    """The queue in a sentence.

    >>> named(MessageQueue("T", "broker-a", 3))
    'T broker-a:3'
    """
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"
