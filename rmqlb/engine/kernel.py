"""The kernel of every simulation: one clock, processes that sleep on it, and random numbers by address.

- A process is a generator: it works and yields for how many microseconds it then sleeps. So it reads like the client's
  own sequential code.
- When two things are due at the same time, the one that was scheduled first comes first.
- A random number depends on nothing but its address: seed, trial, stream, and how many were drawn from that stream
  before. So equal input gives equal results, and one consumer more does not change what the others draw.
- Trials are independent of each other, so they can run in any process (`in_processes`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, TypeVar

from rmqlb.errors import UsageError
from rmqlb.model.java import sort_key
from rmqlb.model.limits import MOST_STEPS

Found = TypeVar("Found")

# Random numbers: SplitMix64.

BITS = 0xFFFFFFFFFFFFFFFF
GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value: int) -> int:
    """SplitMix64's finish: 64 bits, each of which depends on all bits of the value."""
    value &= BITS
    value = ((value ^ (value >> 30)) * _FIRST) & BITS
    value = ((value ^ (value >> 27)) * _SECOND) & BITS
    return value ^ (value >> 31)


def stream_key(seed: int, trial: int, stream: int) -> int:
    """The key of one stream of numbers: a consumer's, a broker's, a producer thread's."""
    return mix(mix(mix(seed) + trial) + stream)


def stream_named(name: str) -> int:
    """The number of the stream with that name, 64 bits: a broker keeps its numbers, whichever other brokers exist."""
    number = 0
    for byte in sort_key(name):
        number = mix(number + byte + 1)
    return number


def draw(key: int, counter: int) -> int:
    """The number at that place in a stream, from 0: 64 bits."""
    return mix(key + (counter + 1) * GAMMA)


class Draws:
    __slots__ = ("_state",)

    def __init__(self, key: int) -> None:
        self._state = key

    def below(self, bound: int) -> int:
        """Draw a number from 0 to bound − 1, each with the same probability; 0 if the bound is 0."""
        self._state += GAMMA
        return (mix(self._state) * bound) >> 64


# Time.

Steps = Generator[int, None, None]
"""A process's work; each yield is a sleep in microseconds."""


class Clock:
    """The clock of one simulation; `now` is in microseconds since the start."""

    __slots__ = ("_count", "_due", "now")

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def call(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heappush(self._due, (self.now + delay_us, self._count, action, arguments))

    def start(self, steps: Steps, delay_us: int = 0) -> Process:
        process = Process(self, steps)
        process.sleep(delay_us)
        return process

    def do_next(self, until_us: int) -> bool:
        """Do the next thing that is due until then; False if there is none (raises UsageError after too many)."""
        if not self._due or self._due[0][0] > until_us:
            return False
        if self._count > MOST_STEPS:
            raise UsageError(
                f"the simulation takes more than {MOST_STEPS:,} steps; it got as far as {self.now // 1000} ms",
                hint="simulate a shorter time, longer timers, or fewer consumers, brokers and events",
                code="too-many-steps",
            )
        self.now, _, action, arguments = heappop(self._due)
        action(*arguments)
        return True


class Process:
    """A generator in simulated time. A frozen process does nothing; what was due meanwhile is due once afterwards."""

    __slots__ = ("_clock", "_due", "_frozen", "_nap", "_steps")

    def __init__(self, clock: Clock, steps: Steps) -> None:
        self._clock = clock
        self._steps = steps
        self._nap = 0  # numbers the sleeps, so that a wake-up for an earlier one is ignored; -1 after the end
        self._due: int | None = None
        self._frozen = False

    def sleep(self, delay_us: int) -> None:
        """Replace the present sleep by one of this length."""
        self._nap += 1
        self._due = self._clock.now + delay_us
        if not self._frozen:
            self._clock.call(delay_us, self._wake, self._nap)

    def freeze(self) -> None:
        if self._nap != -1:
            self._nap += 1
            self._frozen = True

    def unfreeze(self, delay_us: int = 0) -> None:
        """Continue, after this time at the earliest."""
        if self._frozen:
            self._frozen = False
            if self._due is not None:
                self.sleep(max(self._due - self._clock.now, delay_us))

    def end(self) -> None:
        self._nap = -1
        self._frozen = False
        self._steps.close()

    def _wake(self, nap: int) -> None:
        if nap != self._nap:
            return
        self._due = None
        delay_us = next(self._steps, None)
        if delay_us is not None and self._nap != -1:
            self.sleep(delay_us)


class Bell:
    """RocketMQ's `ServiceThread.wakeup` and `waitForRunning`.

    A ring ends a wait. Rings before a wait count as one: the next wait then returns at once.
    """

    __slots__ = ("_rung", "_sleeper", "_waiting")

    def __init__(self) -> None:
        self._rung = False
        self._waiting = False
        self._sleeper: Process | None = None

    def belongs_to(self, process: Process) -> None:
        self._sleeper = process

    def ring(self) -> None:
        if self._waiting and self._sleeper is not None:
            self._waiting = False
            self._sleeper.sleep(0)
        else:
            self._rung = True

    def wait(self, longest_us: int) -> Generator[int, None, bool]:
        """Sleep until the bell rings or the time is over; returns whether it rang."""
        if self._rung:
            self._rung = False
            return True
        self._waiting = True
        yield longest_us
        rang = not self._waiting
        self._waiting = self._rung = False
        return rang


def first_tick(first: int, every: int, since: int) -> int:
    """The first time of a timer at or after a moment."""
    return first if first >= since else first + -(-(since - first) // every) * every


def last_tick(first: int, every: int, until: int) -> int:
    """The last time of a timer at or before a moment, after its first."""
    return first + (until - first) // every * every


def until_next_tick(begin: int, every: int, now: int) -> int:
    """The time until a timer's next tick, counted from `begin`; a tick that is due now has just been."""
    return every - (now - begin) % every


# Trials.

_FEWEST_TO_FORK = 64  # fewer trials are done before processes have started
_shared: list[Callable[[int], Any]] = []  # a forked process finds the work here, so its arguments need no pickling


def in_processes(work: Callable[[int], Found], numbers: Sequence[int], jobs: int | None = None) -> Iterator[Found]:
    """`work(number)` for each number, in their order, divided among forked processes.

    Args:
        work: a function whose results can be pickled.
        numbers: trials or other pieces of work.
        jobs: how many processes; None is one per available core, or this one only if there is little to do. With one
            job, without `fork`, or while other threads run, everything happens in this process.
    """
    if jobs is None:
        jobs = (os.cpu_count() or 1) if len(numbers) >= _FEWEST_TO_FORK and _may_fork() else 1
    jobs = min(jobs, len(numbers))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, numbers)
        return
    from concurrent.futures import ProcessPoolExecutor

    _shared.append(work)
    try:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _ignore_interrupts) as pool:
            yield from pool.map(_run, numbers, chunksize=max(len(numbers) // (8 * jobs), 1))
    finally:
        _shared.pop()


def _may_fork() -> bool:
    """A fork copies the locks that other threads hold, so a process with threads stays alone."""
    return hasattr(os, "fork") and threading.active_count() == 1


def _run(number: int) -> Any:
    return _shared[-1](number)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
