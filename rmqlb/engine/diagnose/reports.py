"""The running information of push consumers, look by look, and the clocks of its times.

- Consumers that pull on their own (lite-pull, pull) are left out: their application decides when to pull messages.
- A time is old only if the consumer's own times or the looks prove it, since its clock may differ from this computer's.
  An age by this computer's clock counts only to call a time recent, and only where no time shows that clocks differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise

from msgspec import Struct

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
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue

HELD_MS = 8_000  # a shorter state may be usual; looks are 10 s apart, less the time of reading
BLOCKED_MS = 60_000
"""`ConsumerRunningInfo.analyzeProcessQueue` suspects a listener that has messages and ends no call for this time."""
SHOWN_CONSUMERS = 3  # whose evidence a finding shows, the gravest first; it names all
USUAL_CALLS = 10  # an unusual call takes 10 times the mean
DIFFER_MS = 1_000  # a time this far in the future proves that the clocks differ
ON_THE_WAY_MS = 5_000  # age of a report at its receipt, at most


class Clock(Struct, frozen=True):
    """The bounds of a consumer's clock minus this computer's, in milliseconds."""

    client_id: str
    read_at: int  # when its last report was received, by this computer's clock
    least: int  # the consumer has reported times up to this far ahead
    most: int | None  # from a time that changed between two looks; None when none changed

    def age(self, time: int) -> int:
        """By this computer's clock, within the bounds."""
        by_ours = self.read_at - time
        return max(by_ours + self.least, by_ours if self.most is None else min(by_ours, by_ours + self.most), 0)

    def is_older(self, time: int, ms: int) -> bool:
        """Whether a time is more than `ms` ago.

        Raises DataError where the clocks differ by an unknown amount, AnotherLookNeeded where the clock may be behind.
        """
        by_ours = self.read_at - time
        if by_ours + self.least > ms:
            return True
        if self.most is not None and by_ours + self.most <= ms:
            return False
        if self.least > DIFFER_MS:
            problem = f"the clock of {self.client_id} is at least {self.least // 1000} s ahead of this computer's"
            raise DataError(problem, hint="synchronize the clocks (NTP), then diagnose again")
        if by_ours <= ms:
            return False
        raise AnotherLookNeeded(f"whether the clock of {self.client_id} is behind this computer's is unknown")


def clock_of(client_id: str, looks: Sequence[ConsumerEvidence]) -> Clock:
    """The bounds of a consumer's clock from its reports, the oldest first (raises DataError without any time)."""
    reports = [(look.read_at, _times(look)) for look in looks if look.read_at is not None and look.queues is not None]
    least = [time - read_at for read_at, queues in reports for times in queues.values() for time in times.values()]
    if not least:
        raise DataError(f"{client_id} reports no time, or when it reported is unknown", hint=ASK_OTHERWISE)
    changed = [
        time - read_before + ON_THE_WAY_MS
        for (read_before, before), (_, after) in pairwise(reports)
        for queue, times in after.items()
        for name, time in times.items()
        if queue not in before or before[queue].get(name, time) != time
    ]
    most = min(changed, default=None)
    if most is not None and most < max(least):
        raise DataError(f"the clock of {client_id} was changed between the looks", hint="look again")
    return Clock(client_id, reports[-1][0], max(least), most)


def _times(look: ConsumerEvidence) -> dict[MessageQueue, dict[str, int]]:
    names = ("last_lock", "last_pull", "last_consume")
    return {item.queue: {name: time for name in names if (time := getattr(item, name))} for item in look.queues or ()}


class ConsumerReports(Struct, dict=True, eq=False):
    client_id: str
    reports: tuple[ConsumerEvidence, ...]  # the oldest first; the last one is from the last look
    where: str

    @property
    def now(self) -> ConsumerEvidence:
        return self.reports[-1]

    def unreported(self, what: str) -> DataError:
        return DataError(f"{self.client_id} does not report {what}", hint=ASK_OTHERWISE)

    def seen(self, fact: str, value: str | int, threshold: str | int | None = None) -> Evidence:
        at = datetime.fromtimestamp((self.now.read_at or 0) / 1000, UTC)
        return Evidence(fact, value, threshold, self.where, at.isoformat().replace("+00:00", "Z"))

    @cached_property
    def clock(self) -> Clock:
        return clock_of(self.client_id, self.reports)

    @property
    def queues(self) -> tuple[ProcessQueue, ...]:
        """Its queues, without those that a rebalance took away."""
        return tuple(item for item in self.now.queues or () if not item.dropped)

    @cached_property
    def history(self) -> tuple[tuple[int, dict[MessageQueue, ProcessQueue]], ...]:
        """The time and the queues of each report, the oldest first (raises DataError)."""
        found = [(look.read_at, look.queues) for look in self.reports if look.queues is not None]
        if any(read_at is None for read_at, _ in found):
            raise DataError(f"when {self.client_id} reported is unknown", hint=ASK_OTHERWISE)
        return tuple((read_at or 0, {item.queue: item for item in queues}) for read_at, queues in found)

    def status(self, topic: str) -> ConsumeStatus:
        return (self.now.statuses or {}).get(topic, ConsumeStatus())

    def usual_ms(self, topic: str) -> float | None:
        """The mean duration of its listener's calls; None when no call ended, or none is reported."""
        for report in reversed(self.reports):
            status = (report.statuses or {}).get(topic, ConsumeStatus())
            # The mean of no calls is 0, as is that of calls below a millisecond.
            if status.consume_ms or (status.consume_ms == 0 and (status.consumed_per_s or status.failed_per_s)):
                return status.consume_ms
        return None

    def unusual_ms(self, topics: Iterable[str]) -> int:
        """The duration from which a call of its listener is unusual; a minute without a known mean."""
        means = [self.usual_ms(topic) for topic in topics]
        longest = max((mean for mean in means if mean is not None), default=0.0)
        return BLOCKED_MS if None in means else min(BLOCKED_MS, max(HELD_MS, round(USUAL_CALLS * longest)))

    def waiting(self, item: ProcessQueue) -> int:
        if item.cached is None:
            raise self.unreported("how many messages it has pulled")
        return item.cached + (item.consuming or 0)

    def limit_reached(self, item: ProcessQueue) -> tuple[str, int, int] | None:
        """The limit that stops its pulls: words, value, limit (raises DataError)."""
        limits = self.now.limits
        checks = [("messages", self.waiting(item), limits.messages), ("MiB of messages", item.cached_mib, limits.mib)]
        if not self.now.orderly:  # `DefaultMQPushConsumerImpl.pullMessage`
            known = item.max_offset is not None and item.min_offset is not None
            span = 0 if not item.cached else (item.max_offset or 0) - (item.min_offset or 0) if known else None
            checks.append(("offsets from the first to the last message", span, limits.span))
        for words, value, limit in checks:
            if value is not None and limit is not None and value > limit:
                return words, value, limit
        if any(value is None or limit is None for _, value, limit in checks):
            raise self.unreported("its limits of cached messages")
        return None


class Trouble(Struct, frozen=True):
    client_id: str
    queues: tuple[MessageQueue, ...]  # the queues that wait
    facts: tuple[Evidence, ...] = ()
    gravity: float = 0  # larger is graver, among the problems of one kind
    orderly: bool = False  # the consumer consumes in order
    is_worst: bool = False  # the problem stops all consumption of the queues
    doubt: DataError | None = None  # why the problem may pass; None when it is proven
    subject: str = ""  # the words for a remedy that name the message


class Troubles:
    """The problems that a rule finds, and the errors that keep it from reporting that all is in order."""

    def __init__(self, found: Iterable[Trouble] = ()) -> None:
        self.found = list(found)
        self.errors: list[DataError] = []

    @property
    def queues(self) -> set[MessageQueue]:
        return {queue for each in self.found for queue in each.queues}

    @property
    def ids(self) -> list[str]:
        return sort_client_ids({each.client_id for each in self.found})

    @property
    def facts(self) -> list[Evidence]:
        by_consumer: dict[str, Trouble] = {}
        for each in sorted(self.found, key=lambda each: each.gravity, reverse=True):
            by_consumer.setdefault(each.client_id, each)
        return [fact for each in list(by_consumer.values())[:SHOWN_CONSUMERS] for fact in each.facts]

    def among(self, queues: Collection[MessageQueue]) -> Troubles:
        return Troubles(each for each in self.found if each.queues[0] in queues)

    def collect(self, troubles: Iterable[Trouble]) -> None:
        """Add these problems; an error of the iterator keeps those before it."""
        try:
            for each in troubles:
                self.found.append(each)
        except DataError as error:
            self.errors.append(error)

    def attempt(self, check: Callable[[], object]) -> None:
        try:
            check()
        except DataError as error:
            self.errors.append(error)

    def settle(self) -> None:
        """Raise the first error, preferably one that another look would remove."""
        for error in sorted(self.errors, key=lambda error: not isinstance(error, AnotherLookNeeded)):
            raise error


def troubles_of(evidence: GroupEvidence, judge: Callable[[ConsumerReports], Iterator[Trouble]]) -> Troubles:
    """The problems that the judge finds at each push consumer (raises DataError, DoesNotApply)."""
    found = Troubles()
    for consumer in push_consumers(evidence, found):
        found.collect(judge(consumer))
    found.attempt(evidence.must_be_all_lists)
    return found


def troubles_of_queues(
    evidence: GroupEvidence, judge: Callable[[ConsumerReports, ProcessQueue], Iterator[Trouble]]
) -> Troubles:
    """The problems that the judge finds in each queue of each push consumer (raises as `troubles_of`)."""
    return troubles_of(evidence, partial(in_each_queue, judge))


def in_each_queue(
    judge: Callable[[ConsumerReports, ProcessQueue], Iterator[Trouble]], consumer: ConsumerReports
) -> Iterator[Trouble]:
    """The problems in each queue; raises the first error at the end."""
    found = Troubles()
    for item in consumer.queues:
        found.collect(judge(consumer, item))
    yield from found.found
    found.settle()


def push_consumers(evidence: GroupEvidence, found: Troubles) -> Iterator[ConsumerReports]:
    """The push consumers with their reports; a consumer without a report adds an error to `found`."""
    group = evidence.group
    if evidence.lists and evidence.facts.apart is not None and group.message_model != BROADCASTING:
        raise DoesNotApply(evidence.facts.apart)
    if not evidence.pushing:
        raise DoesNotApply("its consumers pull on their own")
    silent = []
    for client_id in evidence.pushing:
        reports = [look.reports[client_id].evidence for look in evidence.looks if client_id in look.reports]
        known = tuple(each for each in reports if each is not None and each.queues is not None)
        if client_id not in group.reports or not known or known[-1] is not reports[-1]:
            silent.append(client_id)
        elif evidence.processes[client_id] == 1:
            yield ConsumerReports(client_id, known, group.seen.where)
        else:
            problem = f"{evidence.processes[client_id]} processes share client ID {client_id}: any of them may answer"
            found.errors.append(DataError(problem, hint="give each process an ID of its own"))
    if len(silent) == len(evidence.pushing) and all(client_id in group.reports for client_id in silent):
        found.errors.append(DataError("the snapshot has no process queues of its consumers", hint=MAKE_EVIDENCE))
    elif silent:
        several = f"{len(silent)} consumers did not report their process queues, such as {silent[0]}"
        problem = several if len(silent) > 1 else f"{silent[0]} did not report its process queues"
        found.errors.append(DataError(problem, hint=ASK_CONSUMERS))


def queue_text(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"
