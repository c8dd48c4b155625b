"""The services of a broker that bring back unacknowledged messages: `PopReviveService` of 5.5.0.

`_run` is its `run`, `_read` its `consumeReviveMessage`, `_merge` its `mergeAndRevive`. A broker has several services,
each with its own queue. A receive that takes messages writes a checkpoint, and each acknowledgement its own entry; the
timer wheel hands the entries over to the queue when they are due (`popConsumerKVServiceEnable` and
`enablePopBufferMerge` at their defaults, off). Entries stay until a later checkpoint is done, so acknowledgements
behind the last checkpoint are read each time.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from rmqlb.engine.kernel import Clock, Steps
from rmqlb.engine.simulate_receive import rules
from rmqlb.model.limits import LONGEST_US

_REST_US = (1 + rules.REVIVE_MOST_SLOW) * rules.REVIVE_INTERVAL_US
_QUIET_STEPS = rules.REVIVE_QUIET_US // rules.REVIVE_STEP_US + 1
IDLE_US = _REST_US + _QUIET_STEPS * rules.REVIVE_STEP_US
"""The time of an idle service for a rest and a scan."""


class TimerWheel(NamedTuple):
    """A broker's timer: when its full seconds begin, and how much later it checks which have passed."""

    second: int
    late: int

    def handed_over(self, due: int, now: int) -> int:
        """The time at which an entry reaches its queue: the next check after the full second in which it is due.

        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=0), TimerWheel(0, 0).handed_over(9_000_000, now=0)
        (10050000, 9000000)
        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=9_400_000)
        9400000
        """
        return now if due <= now else due + (self.second - due) % rules.TIMER_SECOND_US + self.late

    def is_behind(self, now: int) -> bool:
        """Whether a second has passed that the wheel has not checked yet (`getDequeueBehind`)."""
        return (now - self.second) % rules.TIMER_SECOND_US < self.late


class _Entry(NamedTuple):
    due: int
    visible: int | None  # of a checkpoint: time at which its messages are visible again
    messages: tuple[Any, ...]  # of a checkpoint: its messages without acknowledgement


class ReviveService:
    """One service, idle since its rest began `age` ago; `revive` moves messages to the retry topic."""

    def __init__(self, clock: Clock, timer: TimerWheel, age: int, revive: Callable[[tuple[Any, ...]], None]) -> None:
        self._clock, self._timer, self._revive = clock, timer, revive
        self._entries: list[_Entry] = []  # in its queue
        self._asleep = False  # until a checkpoint comes
        self._process = clock.start(self._run(clock.now - age))

    def checkpoint(self, visible_at: int, messages: tuple[Any, ...], *, acknowledged: bool) -> None:
        """Record a receive: `messages` will not be acknowledged in time; others may be."""
        self._write(_Entry(visible_at - rules.REVIVE_EARLY_US, visible_at, messages))
        if acknowledged:
            self._write(_Entry(visible_at, None, ()))

    def _write(self, entry: _Entry) -> None:
        now = self._clock.now
        self._clock.call(self._timer.handed_over(entry.due, now) - now, self._append, entry)

    def _append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self._asleep and entry.visible is not None:
            self._asleep = False
            self._process.sleep(0)

    def _run(self, rest_began: int) -> Steps:
        slow, rest_us = rules.REVIVE_MOST_SLOW, _REST_US
        while True:
            steps = 0
            if rest_us == _REST_US and all(entry.visible is None for entry in self._entries):
                steps = yield from self._sleep(rest_began)
            else:
                yield rest_us
            if (yield from self._read(steps)):
                slow, rest_us = 1, rules.REVIVE_INTERVAL_US
            else:
                rest_us = (1 + slow) * rules.REVIVE_INTERVAL_US
                slow = min(slow + 1, rules.REVIVE_MOST_SLOW)
            rest_began = self._clock.now

    def _sleep(self, rest_began: int) -> Generator[int, None, int]:
        """Skip rests and checks without a checkpoint; return how often the current check has found nothing."""
        round_us = _REST_US if self._entries else IDLE_US
        self._asleep = True
        yield LONGEST_US
        place = (self._clock.now - rest_began) % round_us
        if place < _REST_US:
            yield _REST_US - place
            return 0
        steps, since = divmod(place - _REST_US, rules.REVIVE_STEP_US)
        yield rules.REVIVE_STEP_US - since
        return steps + 1

    def _read(self, steps: int) -> Generator[int, None, bool]:
        """Read entries until they cover two seconds or no more come; return whether there were checkpoints."""
        clock, entries, began = self._clock, self._entries, self._clock.now
        read, end, first = 0, -1, -1
        while steps < _QUIET_STEPS:
            if len(entries) > read:
                if clock.now - began > rules.REVIVE_SCAN_US:
                    break
                for entry in entries[read:]:
                    end = max(end, entry.due)
                    if entry.visible is not None and first < 0:
                        first = entry.visible
                read, steps = len(entries), 0
            if end >= 0:
                if clock.now - end > rules.REVIVE_STALE_US and not self._timer.is_behind(clock.now):
                    end = clock.now
                if first < 0 or end - first > rules.REVIVE_LAG_US:
                    break
            steps += 1
            yield rules.REVIVE_STEP_US
        return self._merge(read, end)

    def _merge(self, read: int, end: int) -> bool:
        done, entries = 0, self._entries
        for place, entry in enumerate(entries[:read]):
            if entry.visible is not None:
                if end - entry.visible <= rules.REVIVE_LAG_US:
                    break
                if entry.messages:
                    self._revive(entry.messages)
                done = place + 1
        found = any(entry.visible is not None for entry in entries[:read])
        del entries[:done]
        return found
