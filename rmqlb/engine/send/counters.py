"""What a simulation counts while it runs: per queue, broker, failure and in all, and slices of it over time.

Rule of this file: everything that grows can be copied and subtracted, so that what repeats itself can be added many
times over.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import astuple

from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_report import BrokerSlice, LostMessage, Slice

FIELDS = 4
PICKS, ATTEMPTS, FAILED, STORED = range(FIELDS)
MOST_KINDS = 100
Kind = tuple[str, int | None, str | None, tuple[str, ...] | None]
"""Of exceptions: class, response code, class of the cause, and the brokers of the attempts."""


class Total(IntEnum):
    """Places in `Counts.totals`; FAILING is in ticks."""

    MESSAGES = 0
    STORED = 1
    NOT_STORE_OK = 2
    LOST = 3
    ATTEMPTS = 4
    FAILED = 5
    RETRIES = 6
    RETRIED = 7
    FAILING = 8
    DUPLICATED = 9


class Counts(Struct):
    """All that grows."""

    rows: list[int]  # `FIELDS` counters per queue
    totals: list[int]  # one number per `Total`
    by_failure: list[int]  # per failure, attempts that failed of it
    lost_by: dict[str, int]  # reason → messages
    exceptions: dict[Kind, int]  # kind of exception → messages
    isolated_ticks: dict[str, int]  # broker name → ticks it was isolated so far
    isolations: dict[str, int]  # broker name → how often it was isolated

    def copy(self) -> Counts:
        return Counts(*(part.copy() for part in astuple(self)))

    def repeat(self, since: Counts, until: Counts, times: int) -> None:
        """Add so many times what was counted between two earlier moments; what came between started at 0."""
        for now, then, after in zip(astuple(self), astuple(since), astuple(until), strict=True):
            if isinstance(now, list):
                for place, number in enumerate(after):
                    now[place] += times * (number - _at(then, place))
            else:
                for key, number in after.items():
                    now[key] += times * (number - then.get(key, 0))


class Counters:
    """The counts so far, and what is known of them that does not grow by repetition."""

    def __init__(self, queues: Iterable[MessageQueue], brokers: Iterable[str], failures: int = 0) -> None:
        by_broker = dict.fromkeys(brokers, 0)
        self.counts = Counts([], [0] * len(Total), [0] * failures, {}, {}, by_broker, by_broker.copy())
        # queue → the place of its first counter in `counts.rows`; others than the first get theirs when picked
        self.row_of: dict[MessageQueue, int] = {}
        for queue in queues:
            self.row(queue)
        self.first_lost: dict[Kind, LostMessage] = {}  # kind of exception → its first message
        self.longest = 0  # ticks of the longest send

    def row(self, queue: MessageQueue) -> int:
        at = self.row_of.get(queue)
        if at is None:
            rows = self.counts.rows
            at = self.row_of[queue] = len(rows)
            rows += [0] * FIELDS
        return at

    def lose(self, lost: LostMessage) -> None:
        counts = self.counts
        counts.totals[Total.LOST] += 1
        counts.lost_by[lost.reason] = counts.lost_by.get(lost.reason, 0) + 1
        exception = lost.exception
        if exception is None:
            return
        kind: Kind = (exception.exception_class, exception.response_code, exception.cause, lost.brokers_sent)
        if kind not in counts.exceptions and len(counts.exceptions) >= MOST_KINDS:
            kind = (*kind[:3], None)
        counts.exceptions[kind] = counts.exceptions.get(kind, 0) + 1
        self.first_lost.setdefault(kind, lost)


class IsolationTimes:
    """For how long each broker was isolated: isolated by latency fault, or not in the client's list."""

    def __init__(self, isolated_ticks: dict[str, int]) -> None:
        self._isolated_ticks = isolated_ticks
        self._until = dict.fromkeys(isolated_ticks, 0)
        self._unlisted: frozenset[str] = frozenset()
        self._counted = 0

    def count(self, now: int) -> None:
        since = self._counted
        for name, until in self._until.items():
            end = now if name in self._unlisted else min(until, now)
            if end > since:
                self._isolated_ticks[name] += end - since
        self._counted = now

    def isolate(self, broker_name: str, now: int, until: int) -> None:
        """The broker is isolated until then, or not at all when that is past."""
        self.count(now)
        self._until[broker_name] = until

    def unlist(self, broker_names: frozenset[str], now: int) -> None:
        self.count(now)
        self._unlisted = broker_names

    def jump(self, ticks: int, *, isolations: bool) -> None:
        """Time moves on over what `Counts.repeat` has added, and isolations may go with it."""
        self._counted += ticks
        if isolations:
            self._until = {name: until + ticks for name, until in self._until.items()}


class Timeline:
    """Copies of the counts at even times; when there are too many, each second one goes."""

    MOST = 120

    def __init__(self, counters: Counters, width: int) -> None:
        self._counters = counters
        self._width = max(width, 1)
        self._marks = [(0, counters.counts.copy())]
        self.next_at = self._width  # when the next copy is due

    def mark(self) -> None:
        """Take the copy that is due; the caller has counted everything before it."""
        self._marks.append((self.next_at, self._counters.counts.copy()))
        if len(self._marks) > self.MOST:
            self._width *= 2
            self._marks = self._marks[::2]
        self.next_at = self._marks[-1][0] + self._width

    def slices(self, end: int, ticks_per_ms: int) -> tuple[Slice, ...]:
        marks = [mark for mark in self._marks if mark[0] < end] or self._marks[:1]
        marks.append((max(end, marks[-1][0]), self._counters.counts.copy()))
        return tuple(self._slice(then, now, ticks_per_ms) for then, now in pairwise(marks) if now[0] > then[0])

    def _slice(self, then: tuple[int, Counts], now: tuple[int, Counts], ticks_per_ms: int) -> Slice:
        (since, before), (until, after) = then, now

        def by_broker(field: int) -> dict[str, int]:
            counts = dict.fromkeys(after.isolated_ticks, 0)
            for queue, row in self._counters.row_of.items():
                grown = _at(after.rows, row + field) - _at(before.rows, row + field)
                counts[queue.broker_name] = counts.get(queue.broker_name, 0) + grown
            return counts

        attempts, failed = by_broker(ATTEMPTS), by_broker(FAILED)
        return Slice(
            from_ms=since / ticks_per_ms,
            to_ms=until / ticks_per_ms,
            lost=after.totals[Total.LOST] - before.totals[Total.LOST],
            brokers=tuple(
                BrokerSlice(
                    broker_name=name,
                    attempts=attempts[name],
                    failed=failed[name],
                    isolated_ms=(after.isolated_ticks.get(name, 0) - before.isolated_ticks.get(name, 0)) / ticks_per_ms,
                )
                for name in sorted(attempts, key=sort_key)
            ),
        )


def _at(values: list[int], place: int) -> int:
    return values[place] if place < len(values) else 0
