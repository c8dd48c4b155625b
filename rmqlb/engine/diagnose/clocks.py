"""How old what a consumer reports is, although its clock may differ from ours.

Rule of this file: a time is old only when the consumer's own times or the looks prove it. Ages by our clock count where
nothing says that the clocks differ, and only to say that a time is recent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, AnotherLookNeeded
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue

DIFFER_MS = 1_000
"""A time that much in the future shows that the clocks differ."""
ON_THE_WAY_MS = 5_000
"""A report may have been made so long before it was received."""

_Times = dict[MessageQueue, dict[str, int]]


class Clock(Struct, frozen=True):
    """By how much a consumer's clock is ahead of ours, in milliseconds.

    Attributes:
        client_id: the consumer.
        read_at: when its last report was received, by our clock.
        least: what it reports has happened, so that its clock is at least that much ahead (below 0: that much behind).
        most: a time that moved between two looks lies between them; None when no time moved.
    """

    client_id: str
    read_at: int
    least: int
    most: int | None

    def age(self, time: int) -> int:
        """How long ago this was: by our clock, unless it must be more or less."""
        return max(self._at_least(time), min(self.read_at - time, self._at_most(time, self.read_at - time)), 0)

    def is_older(self, time: int, ms: int) -> bool:
        """Whether this was more than so long ago.

        Raises:
            DataError: the clocks differ, by an unknown amount.
            AnotherLookNeeded: it seems to be, and may as well be a clock that is behind.
        """
        if self._at_least(time) > ms:
            return True
        if self._at_most(time, ms + 1) <= ms:
            return False
        if self.least > DIFFER_MS:
            raise DataError(
                f"the clock of {self.client_id} is at least {_seconds(self.least)} ahead of this computer's",
                hint="synchronize the clocks (NTP), then diagnose again",
            )
        if self.read_at - time <= ms:
            return False
        raise AnotherLookNeeded(f"whether the clock of {self.client_id} is behind this computer's is unknown")

    def _at_least(self, time: int) -> int:
        return self.read_at + self.least - time

    def _at_most(self, time: int, otherwise: int) -> int:
        return otherwise if self.most is None else self.read_at + self.most - time


def clock_of(client_id: str, looks: Sequence[ConsumerEvidence]) -> Clock:
    """What its reports, the oldest first, say of a consumer's clock (raises DataError without a time)."""
    reports = [(look.read_at, _times(look)) for look in looks if look.read_at is not None and look.queues is not None]
    least = [time - read_at for read_at, times in reports for own in times.values() for time in own.values()]
    if not least:
        raise DataError(f"{client_id} reports no time, or when it reported is unknown", hint=ASK_OTHERWISE)
    moved = [
        time - read_before + ON_THE_WAY_MS
        for (read_before, before), (_, after) in pairwise(reports)
        for queue, own in after.items()
        for name, time in own.items()
        if queue not in before or before[queue].get(name, time) != time
    ]
    most = min(moved, default=None)
    if most is not None and most < max(least):
        raise DataError(f"the clock of {client_id} was changed between the looks", hint="look again")
    return Clock(client_id, reports[-1][0], max(least), most)


def _times(look: ConsumerEvidence) -> _Times:
    return {item.queue: {name: time for name, time in _named(item) if time} for item in look.queues or ()}


def _named(item: ProcessQueue) -> Iterator[tuple[str, int | None]]:
    yield "lock", item.last_lock
    yield "pull", item.last_pull
    yield "consume", item.last_consume


def _seconds(ms: int) -> str:
    return f"{ms // 1000} s"
