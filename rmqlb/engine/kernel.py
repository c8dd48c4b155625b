"""The kernel of every simulation: one clock, processes that sleep on it, and random numbers by address.

- A process is a generator that yields how many microseconds it then sleeps, so it reads like the client's own code.
- When two actions are due at the same time, the one scheduled first runs first.
- A random number depends only on its address: seed, trial, stream, and the count of earlier draws from that stream.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, TypeVar

from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_STEPS
from rmqlb.model.message_queue import sort_key

Found = TypeVar("Found")

# Random numbers: SplitMix64.

BITS = 0xFFFFFFFFFFFFFFFF
GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value: int) -> int:
    value &= BITS
    value = ((value ^ (value >> 30)) * _FIRST) & BITS
    value = ((value ^ (value >> 27)) * _SECOND) & BITS
    return value ^ (value >> 31)


def stream_key(seed: int, trial: int, stream: int) -> int:
    return mix(mix(mix(seed) + trial) + stream)


def stream_named(name: str) -> int:
    """The 64-bit number of a name's stream, so a broker draws the same numbers whichever other brokers exist."""
    number = 0
    for byte in sort_key(name):
        number = mix(number + byte + 1)
    return number


class Draws:
    def __init__(self, key: int) -> None:
        self._state = key

    def bits(self) -> int:
        self._state += GAMMA
        return mix(self._state)

    def below(self, bound: int) -> int:
        return (self.bits() * bound) >> 64


Steps = Generator[int, None, None]
"""A process's work; each yield is a sleep in microseconds."""


class Clock:
    def __init__(self) -> None:
        self.now = 0  # microseconds since the start
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
        """Run the next action due by that time; False if there is none (raises UsageError after too many steps)."""
        if not self._due or self._due[0][0] > until_us:
            return False
        if self._count > MOST_STEPS:
            text = f"the simulation takes more than {MOST_STEPS:,} steps; it reached {self.now // 1000} ms"
            hint = "simulate a shorter time, longer timers, or fewer consumers, brokers and events"
            raise UsageError(text, hint=hint, code="too-many-steps")
        self.now, _, action, arguments = heappop(self._due)
        action(*arguments)
        return True


class Process:
    """A generator in simulated time. While frozen it does nothing; a wake-up missed meanwhile comes once afterwards."""

    def __init__(self, clock: Clock, steps: Steps) -> None:
        self._clock, self._steps = clock, steps
        self._nap = 0  # numbers the sleeps, so that a wake-up for an earlier one is ignored; -1 after the end
        self._due: int | None = None
        self._frozen = False

    def sleep(self, delay_us: int) -> None:
        """Replace the current sleep by one of this length."""
        self._nap += 1
        self._due = self._clock.now + delay_us
        if not self._frozen:
            self._clock.call(delay_us, self._wake, self._nap)

    def freeze(self) -> None:
        if self._nap != -1:
            self._nap += 1
            self._frozen = True

    def unfreeze(self, delay_us: int = 0) -> None:
        """Continue, after this delay at the earliest."""
        if self._frozen:
            self._frozen = False
            if self._due is not None:
                self.sleep(max(self._due - self._clock.now, delay_us))

    def end(self) -> None:
        self._nap, self._frozen = -1, False
        self._steps.close()

    def _wake(self, nap: int) -> None:
        if nap != self._nap:
            return
        self._due = None
        delay_us = next(self._steps, None)
        if delay_us is not None and self._nap != -1:
            self.sleep(delay_us)


class Bell:
    """`ServiceThread.wakeup` and `waitForRunning`: a ring ends a wait, and rings before a wait end it at once."""

    def __init__(self) -> None:
        self._rung = self._waiting = False
        self.sleeper: Process | None = None

    def ring(self) -> None:
        if self._waiting and self.sleeper is not None:
            self._waiting = False
            self.sleeper.sleep(0)
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
    """The time until a timer's next tick, counted from `begin`; a tick that is due now does not count."""
    return every - (now - begin) % every


def nearest_rank(ordered: Sequence[Found], percent: int) -> Found:
    """The smallest value that so many of 100 do not exceed."""
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


_FEWEST_TO_FORK = 64  # fewer trials are done before processes have started
_shared: list[Callable[[int], Any]] = []  # a forked process finds the work here, so its arguments need no pickling


def in_processes(work: Callable[[int], Found], numbers: Sequence[int], jobs: int | None = None) -> Iterator[Found]:
    """Yield `work(number)` for each number in order, divided among forked processes; results must be pickleable.

    Without `jobs` there is one process per available core. Everything happens in this process if there is little to
    do, without `fork`, or while other threads run: a fork copies the locks that they hold.
    """
    if jobs is None:
        jobs = (os.cpu_count() or 1) if len(numbers) >= _FEWEST_TO_FORK and threading.active_count() == 1 else 1
    jobs = min(jobs, len(numbers))
    if jobs < 2 or not hasattr(os, "fork"):
        yield from map(work, numbers)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _shared.append(work)
    try:
        ignored = signal.SIGINT, signal.SIG_IGN
        with ProcessPoolExecutor(jobs, get_context("fork"), signal.signal, ignored) as pool:
            yield from pool.map(_run, numbers, chunksize=max(len(numbers) // (8 * jobs), 1))
    finally:
        _shared.pop()


def _run(number: int) -> Any:
    return _shared[-1](number)
