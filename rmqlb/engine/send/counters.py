"""What a simulation counts while it runs: per queue, broker, failure and in all, and slices of it over time.

Rule of this file: everything that grows can be copied and compared, so that a stretch that repeats itself can be added
many times over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import IntEnum
from itertools import pairwise, zip_longest
from typing import TypeVar

from msgspec import Struct

from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_report import BrokerSlice, LostMessage, Slice

FIELDS = 4
PICKS, ATTEMPTS, FAILED, STORED = range(FIELDS)
MOST_KINDS = 100
Kind = tuple[str, int | None, str | None, tuple[str, ...] | None]
"""Of exceptions: class, response code, class of the cause, and the brokers of the attempts."""
_Name = TypeVar("_Name", bound=Hashable)


class Total(IntEnum):
    """Places in `Tally.totals`."""

    MESSAGES = 0
    STORED = 1
    NOT_STORE_OK = 2
    LOST = 3
    ATTEMPTS = 4
    FAILED = 5
    EXTRA = 6
    RETRIED = 7
    FAILING = 8
    DUPLICATED = 9


class Tally:
    """The counters.

    Args:
        queues: those that get a row at once; others get theirs when they are picked.
        brokers: names of all brokers.
        failures: how many failures there are.

    Attributes:
        by_failure: per failure, attempts that failed of it.
        row_of: queue → the place of its first counter in `rows`.
        rows: four counters a queue.
        totals: one number a `Total`.
        lost_by: reason → messages.
        exceptions: kind of exception → messages.
        first_lost: kind of exception → its first message.
        longest: ticks of the longest send.
        avoided: broker name → ticks it was avoided so far.
        isolations: broker name → how often it was isolated.
    """

    def __init__(self, queues: Iterable[MessageQueue], brokers: Iterable[str], failures: int = 0) -> None:
        self.by_failure = [0] * failures
        self.row_of: dict[MessageQueue, int] = {}
        self.rows: list[int] = []
        for queue in queues:
            self.row(queue)
        self.totals = [0] * len(Total)
        self.lost_by: dict[str, int] = {}
        self.exceptions: dict[Kind, int] = {}
        self.first_lost: dict[Kind, LostMessage] = {}
        self.longest = 0
        self.avoided = dict.fromkeys(brokers, 0)
        self.isolations = dict.fromkeys(self.avoided, 0)

    def row(self, queue: MessageQueue) -> int:
        """The place of the queue's first counter."""
        at = self.row_of.get(queue)
        if at is None:
            at = self.row_of[queue] = len(self.rows)
            self.rows += [0] * FIELDS
        return at

    def lose(self, lost: LostMessage) -> None:
        """Count a lost message."""
        self.totals[Total.LOST] += 1
        self.lost_by[lost.reason] = self.lost_by.get(lost.reason, 0) + 1
        exception = lost.exception
        if exception is None:
            return
        kind: Kind = (exception.exception_class, exception.response_code, exception.cause, lost.brokers_sent)
        if kind not in self.exceptions and len(self.exceptions) >= MOST_KINDS:
            kind = (*kind[:3], None)
        self.exceptions[kind] = self.exceptions.get(kind, 0) + 1
        self.first_lost.setdefault(kind, lost)

    def copy(self) -> Counts:
        """The counters as they are now."""
        return Counts(
            list(self.rows),
            list(self.totals),
            list(self.by_failure),
            dict(self.lost_by),
            dict(self.exceptions),
            dict(self.avoided),
            dict(self.isolations),
        )

    def growth(self, since: Counts) -> Growth:
        """What messages have added since then."""
        return Growth(
            _grown(since.rows, self.rows),
            _grown(since.totals, self.totals),
            _grown(since.by_failure, self.by_failure),
            _grown_by_name(since.lost_by, self.lost_by),
            _grown_by_name(since.exceptions, self.exceptions),
        )

    def add(self, growth: Growth, times: int) -> None:
        """Count what messages add so many times over."""
        for counters, added in (
            (self.rows, growth.rows),
            (self.totals, growth.totals),
            (self.by_failure, growth.by_failure),
        ):
            for place, number in added:
                counters[place] += times * number
        for reason, number in growth.lost_by:
            self.lost_by[reason] += times * number
        for kind, number in growth.exceptions:
            self.exceptions[kind] += times * number

    def repeat(self, since: Counts, times: int) -> None:
        """Add so many times what was counted since then, how long brokers were avoided included."""
        self.add(self.growth(since), times)
        for now, then in ((self.avoided, since.avoided), (self.isolations, since.isolations)):
            for name, number in _grown_by_name(then, now):
                now[name] += times * number


class Counts(Struct):
    """A copy of the growing counters; each is as in `Tally`."""

    rows: list[int]
    totals: list[int]
    by_failure: list[int]
    lost_by: dict[str, int]
    exceptions: dict[Kind, int]
    avoided: dict[str, int]
    isolations: dict[str, int]


class Growth(Struct):
    """What a stretch of messages adds: places of counters, reasons or kinds, with numbers that are not 0."""

    rows: list[tuple[int, int]]
    totals: list[tuple[int, int]]
    by_failure: list[tuple[int, int]]
    lost_by: list[tuple[str, int]]
    exceptions: list[tuple[Kind, int]]


def _grown(then: list[int], now: list[int]) -> list[tuple[int, int]]:
    """Counters that came to the list since then started at 0."""
    return [
        (place, number - before)
        for place, (before, number) in enumerate(zip_longest(then, now, fillvalue=0))
        if number != before
    ]


def _grown_by_name(then: dict[_Name, int], now: dict[_Name, int]) -> list[tuple[_Name, int]]:
    return [(name, number - then.get(name, 0)) for name, number in now.items() if number != then.get(name, 0)]


class Avoidance:
    """For how long each broker was avoided: isolated by latency fault, or not in the client's list.

    Args:
        tally: where the times are added up.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._until = dict.fromkeys(tally.avoided, 0)
        self._unlisted: frozenset[str] = frozenset()
        self._counted = 0

    def count(self, now: int) -> None:
        """Add what has passed since the last call."""
        avoided, since = self._tally.avoided, self._counted
        for name, until in self._until.items():
            end = now if name in self._unlisted else min(until, now)
            if end > since:
                avoided[name] += end - since
        self._counted = now

    def isolate(self, broker_name: str, now: int, until: int) -> None:
        """The broker is isolated until then, or not at all when that is past."""
        self.count(now)
        self._until[broker_name] = until

    def unlist(self, broker_names: frozenset[str], now: int) -> None:
        """The client's list leaves out these brokers from now on."""
        self.count(now)
        self._unlisted = broker_names

    def shift(self, ticks: int, *, isolations: bool) -> None:
        """Time jumps ahead over a stretch whose times have been added otherwise."""
        self._counted += ticks
        if isolations:
            self._until = {name: until + ticks for name, until in self._until.items()}


class Timeline:
    """Snapshots of the counters at even times; when there are too many, each second one goes.

    Args:
        tally: what is counted.
        width: ticks of a slice at first.

    Attributes:
        next_at: when the next snapshot is due.
    """

    MOST = 120

    def __init__(self, tally: Tally, width: int) -> None:
        self._tally = tally
        self._width = max(width, 1)
        self._marks: list[tuple[int, Counts]] = [(0, tally.copy())]
        self.next_at = self._width

    def mark(self) -> None:
        """Take the snapshot that is due; the caller has counted everything before it."""
        self._marks.append((self.next_at, self._tally.copy()))
        if len(self._marks) > self.MOST:
            self._width *= 2
            self._marks = [mark for i, mark in enumerate(self._marks) if i % 2 == 0]
        self.next_at = self._marks[-1][0] + self._width

    def slices(self, end: int, ticks_per_ms: int) -> tuple[Slice, ...]:
        """The time line up to the end."""
        marks = [mark for mark in self._marks if mark[0] < end] or self._marks[:1]
        marks.append((max(end, marks[-1][0]), self._tally.copy()))
        return tuple(self._slice(then, now, ticks_per_ms) for then, now in pairwise(marks) if now[0] > then[0])

    def _slice(self, then: tuple[int, Counts], now: tuple[int, Counts], ticks_per_ms: int) -> Slice:
        def by_broker(field: int) -> dict[str, int]:
            counts = dict.fromkeys(self._tally.avoided, 0)
            for queue, row in self._tally.row_of.items():
                counts.setdefault(queue.broker_name, 0)
                counts[queue.broker_name] += _at(now[1].rows, row + field) - _at(then[1].rows, row + field)
            return counts

        attempts, failed = by_broker(ATTEMPTS), by_broker(FAILED)
        return Slice(
            from_ms=then[0] / ticks_per_ms,
            to_ms=now[0] / ticks_per_ms,
            lost=now[1].totals[Total.LOST] - then[1].totals[Total.LOST],
            brokers=tuple(
                BrokerSlice(
                    broker_name=name,
                    attempts=attempts[name],
                    failed=failed[name],
                    isolated_ms=(now[1].avoided.get(name, 0) - then[1].avoided.get(name, 0)) / ticks_per_ms,
                )
                for name in sorted(attempts, key=sort_key)
            ),
        )


def _at(values: list[int], place: int) -> int:
    return values[place] if place < len(values) else 0
