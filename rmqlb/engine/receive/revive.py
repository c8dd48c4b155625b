"""The service of a broker that brings messages back which were not acknowledged: 5.5.0's `PopReviveService`.

A broker has several, each with a queue of its own. A receive that takes messages writes a checkpoint, and each
acknowledgement an entry of its own; the timer wheel hands them over to the queue when they are due
(`popConsumerKVServiceEnable` and `enablePopBufferMerge` at their defaults, off).

Rules of this file:
- `_run` is `PopReviveService.run`, `_read` its `consumeReviveMessage` and `mergeAndRevive`.
- Entries stay until a later checkpoint is done with, so that acknowledgements behind the last one are read each time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from rmqlb.engine.kernel import Clock, Steps
from rmqlb.engine.receive.recorder import Message
from rmqlb.engine.receive.rules import (
    REVIVE_EARLY_US,
    REVIVE_INTERVAL_US,
    REVIVE_LAG_US,
    REVIVE_MOST_SLOW,
    REVIVE_QUIET_US,
    REVIVE_SCAN_US,
    REVIVE_STALE_US,
    REVIVE_STEP_US,
    TIMER_SECOND_US,
)
from rmqlb.model.limits import LONGEST_US

_REST_US = (1 + REVIVE_MOST_SLOW) * REVIVE_INTERVAL_US
_QUIET_STEPS = REVIVE_QUIET_US // REVIVE_STEP_US + 1
IDLE_US = _REST_US + _QUIET_STEPS * REVIVE_STEP_US
"""How long a service with nothing to do takes for a rest and a look."""


Revive = Callable[[tuple[Message, ...]], None]


class TimerWheel(NamedTuple):
    """The timer of a broker: when its full seconds begin, and how much later it looks which have passed."""

    second: int
    late: int

    def handed_over(self, due: int, now: int) -> int:
        """When an entry comes to its queue.

        The wheel takes it for the last full second before it is due, and hands it over when that second has passed.

        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=0), TimerWheel(0, 0).handed_over(9_000_000, now=0)
        (10050000, 9000000)
        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=9_400_000)
        9400000
        """
        return now if due <= now else due + (self.second - due) % TIMER_SECOND_US + self.late

    def is_behind(self, now: int) -> bool:
        """A second has passed, and it has not looked yet (`getDequeueBehind`)."""
        return (now - self.second) % TIMER_SECOND_US < self.late


class _Entry(NamedTuple):
    due: int
    visible: int | None  # of a checkpoint: when its messages are visible again
    messages: tuple[Message, ...]  # of these, those that will not be acknowledged


class ReviveService:
    """One service.

    Args:
        timer: of its broker.
        age: how long ago a rest began; it had nothing to do until now.
        revive: takes messages that go to the retry topic.
    """

    def __init__(self, clock: Clock, timer: TimerWheel, age: int, revive: Revive) -> None:
        self._clock, self._timer, self._revive = clock, timer, revive
        self._entries: list[_Entry] = []  # handed over
        self._asleep = False  # until a checkpoint comes
        self._process = clock.start(self._run(clock.now - age))

    def checkpoint(self, visible_at: int, messages: tuple[Message, ...], *, acknowledged: bool) -> None:
        """A receive has taken messages, of which these will not be acknowledged in time (others may be)."""
        self._hand_over(_Entry(visible_at - REVIVE_EARLY_US, visible_at, messages))
        if acknowledged:
            self._hand_over(_Entry(visible_at, None, ()))

    def _hand_over(self, entry: _Entry) -> None:
        now = self._clock.now
        self._clock.call(self._timer.handed_over(entry.due, now) - now, self._handed_over, entry)

    def _handed_over(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self._asleep and entry.visible is not None:
            self._asleep = False
            self._process.sleep(0)

    def _run(self, rest_began: int) -> Steps:
        slow = REVIVE_MOST_SLOW
        rest_us = _REST_US
        while True:
            looks = 0
            if rest_us == _REST_US and all(entry.visible is None for entry in self._entries):
                looks = yield from self._sleep(rest_began)
            else:
                yield rest_us
            if (yield from self._read(looks)):
                slow, rest_us = 1, REVIVE_INTERVAL_US
            else:
                rest_us = (1 + slow) * REVIVE_INTERVAL_US
                slow = min(slow + 1, REVIVE_MOST_SLOW)
            rest_began = self._clock.now

    def _sleep(self, rest_began: int) -> Generator[int, None, int]:
        """Skip rests and looks in which nothing happens; how often the look in which it ends has found nothing."""
        round_us = _REST_US if self._entries else IDLE_US
        self._asleep = True
        yield LONGEST_US
        place = (self._clock.now - rest_began) % round_us
        if place < _REST_US:
            yield _REST_US - place
            return 0
        looks, since = divmod(place - _REST_US, REVIVE_STEP_US)
        yield REVIVE_STEP_US - since
        return looks + 1

    def _read(self, looks: int) -> Generator[int, None, bool]:
        """Read what has come, until it covers two seconds or no more comes; whether there were checkpoints."""
        clock, entries = self._clock, self._entries
        began = clock.now
        read, end, first = 0, -1, -1
        while looks < _QUIET_STEPS:
            if len(entries) > read:
                if clock.now - began > REVIVE_SCAN_US:
                    break
                for entry in entries[read:]:
                    end = max(end, entry.due)
                    if entry.visible is not None and first < 0:
                        first = entry.visible
                read, looks = len(entries), 0
            if end >= 0:
                if clock.now - end > REVIVE_STALE_US and not self._timer.is_behind(clock.now):
                    end = clock.now
                if first < 0 or end - first > REVIVE_LAG_US:
                    break
            looks += 1
            yield REVIVE_STEP_US
        return self._merge(read, end)

    def _merge(self, read: int, end: int) -> bool:
        """Bring back what is old enough; whether there were checkpoints."""
        done = 0
        for place, entry in enumerate(self._entries[:read]):
            if entry.visible is None:
                continue
            if end - entry.visible <= REVIVE_LAG_US:
                break
            if entry.messages:
                self._revive(entry.messages)
            done = place + 1
        found = any(entry.visible is not None for entry in self._entries[:read])
        del self._entries[:done]
        return found
