"""Simulated time: what is due next, and the processes that sleep until then.

A process is a generator that does its work and yields for how many microseconds it then sleeps, so that each reads like
the client's own sequential code. Of two things due at the same time the one that was asked for first comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from rmqlb.engine.randomness import Draws
from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import SECOND_US
from rmqlb.model.limits import MOST_STEPS

Steps = Generator[int, None, None]
_Entry = tuple[int, int, Callable[..., None], tuple[Any, ...]]


class Clock:
    """The one clock of a simulation; `now` is in microseconds since the start."""

    __slots__ = ("_count", "_due", "now")

    def __init__(self) -> None:
        self.now = 0
        self._due: list[_Entry] = []
        self._count = 0

    def call(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heappush(self._due, (self.now + delay_us, self._count, action, arguments))

    def start(self, steps: Steps, delay_us: int = 0) -> Process:
        process = Process(self, steps)
        process.sleep(delay_us)
        return process

    def count(self, steps: int) -> None:
        """So many things happen without being asked for one by one (raises UsageError)."""
        self._count += steps
        self._check()

    def do_next(self, until_us: int) -> bool:
        """Do the next thing that is due by then; False when nothing is (raises UsageError)."""
        if not self._due or self._due[0][0] > until_us:
            return False
        if self._count > MOST_STEPS:
            self._check()
        self.now, _, action, arguments = heappop(self._due)
        action(*arguments)
        return True

    def _check(self) -> None:
        if self._count > MOST_STEPS:
            raise UsageError(
                f"the simulation takes more than {MOST_STEPS:,} steps; it got as far as {self.now // 1000} ms",
                hint="simulate a shorter time, longer timers, or fewer consumers, brokers and events",
                code="too-many-steps",
            )

    def asleep(self) -> tuple[dict[Process, int], int | None]:
        """The processes that sleep → when each wakes up, by when they fell asleep; and when the rest is due."""
        sleeping: dict[Process, int] = {}
        other: int | None = None
        for due, _, action, _ in sorted(filter(_counts, self._due), key=lambda entry: entry[1]):
            process = _sleeper(action)
            if process is not None:
                sleeping[process] = due
            elif other is None or due < other:
                other = due
        return sleeping, other

    def postpone(self, wakes: Mapping[Process, int]) -> None:
        """Let processes that sleep wake up at other times, as if they had fallen asleep in this order."""
        # They get larger numbers than all that stays, as step by step: what stays was asked for before they woke up.
        self._due = [entry for entry in self._due if _counts(entry) and _sleeper(entry[2]) not in wakes]
        heapify(self._due)
        for process, due in wakes.items():
            process.sleep(due - self.now)


class Process:
    """A generator on its way through time; while it is frozen it does nothing, and what it has missed it does then."""

    __slots__ = ("_clock", "_due", "_frozen", "_nap", "_steps")

    def __init__(self, clock: Clock, steps: Steps) -> None:
        self._clock = clock
        self._steps = steps
        self._nap = 0
        self._due: int | None = None
        self._frozen = False

    def sleep(self, delay_us: int) -> None:
        self._nap += 1
        self._due = self._clock.now + delay_us
        if not self._frozen:
            self._clock.call(delay_us, self._wake, self._nap)

    def freeze(self) -> None:
        if self._nap != -1:
            self._nap += 1
            self._frozen = True

    def unfreeze(self, delay_us: int = 0) -> None:
        """Go on, after this time at the earliest; what was due meanwhile is due then, once."""
        if self._frozen:
            self._frozen = False
            if self._due is not None:
                self.sleep(max(self._due - self._clock.now, delay_us))

    def expects(self, nap: int) -> bool:
        return nap == self._nap

    def end(self) -> None:
        self._nap = -1
        self._frozen = False
        self._steps.close()

    def _wake(self, nap: int) -> None:
        if not self.expects(nap):
            return
        self._due = None
        delay_us = next(self._steps, None)
        if delay_us is not None and self._nap != -1:
            self.sleep(delay_us)


def _sleeper(action: Callable[..., None]) -> Process | None:
    owner = getattr(action, "__self__", None)
    return owner if isinstance(owner, Process) else None


def _counts(entry: _Entry) -> bool:
    """It is no appointment of a process that has another one since."""
    process = _sleeper(entry[2])
    return process is None or process.expects(*entry[3])


class Bell:
    """RocketMQ's `ServiceThread.wakeup` and `waitForRunning`.

    Rings before a wait are kept as one, and the wait then does not begin; rings during a wait end it.
    """

    __slots__ = ("_rung", "_sleeper", "_waiting")

    def __init__(self) -> None:
        self._rung = False
        self._waiting = False
        self._sleeper: Process | None = None

    def belongs_to(self, process: Process) -> None:
        self._sleeper = process

    @property
    def waiting(self) -> bool:
        return self._waiting

    def ring(self) -> None:
        """Wake the sleeper, or let its next wait not begin."""
        if self._waiting and self._sleeper is not None:
            self._waiting = False
            self._sleeper.sleep(0)
        else:
            self._rung = True

    def wait(self, longest_us: int) -> Generator[int, None, bool]:
        """Sleep until the bell rings or the time is over; whether it rang."""
        if self._rung:
            self._rung = False
            return True
        self._waiting = True
        yield longest_us
        rang = not self._waiting
        self._waiting = self._rung = False
        return rang


AUTO_COMMIT_US = 5 * SECOND_US  # `autoCommitIntervalMillis` of lite pull consumers
_ROUNDS_US = 3600 * SECOND_US
"""All default timers are in the same place again after it, so that an age drawn from it has every phase as likely."""


def age_us(draws: Draws) -> int:
    """How long a member has been running that was there before the start."""
    return _ROUNDS_US + draws.below(_ROUNDS_US)


def first_tick(first: int, every: int, since: int) -> int:
    """The first time of a timer at or after a moment."""
    return first if first >= since else first + -(-(since - first) // every) * every


def last_tick(first: int, every: int, until: int) -> int:
    """The last time of a timer at or before a moment; it has begun by then."""
    return first + (until - first) // every * every


def until_next_tick(begin: int, every: int, now: int) -> int:
    """How long until the next time of a timer that began at a moment; one that is due now has just been."""
    return every - (now - begin) % every
