"""When each thread goes on: arrivals by rate, and the wakings of threads and requests.

Rules of this file:
- Time is in ticks. A tick is a fraction of a microsecond such that the time between two messages is a whole number.
- Of two that wake at one tick, the lower number comes first; requests have numbers below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

from rmqlb.engine.send.cluster_state import NEVER
from rmqlb.engine.send.thread import Thread
from rmqlb.model.send_scenario import SendScenario


class Clock:
    """The wakings that are to come, and the messages that are still to begin."""

    def __init__(self, scenario: SendScenario, threads: Sequence[Thread]) -> None:
        # interval: ticks between two messages; None without a rate
        self.ticks_per_us, self.interval = time_base(scenario.rate)
        self.per_ms = 1000 * self.ticks_per_us
        self.limit = NEVER if scenario.messages is None else scenario.messages  # how many messages there are
        # no message begins at that tick or later
        self.end = NEVER if scenario.duration_us is None else scenario.duration_us * self.ticks_per_us
        self.threads = threads
        self.started = 0  # messages begun
        self.waits = 0  # counts how often a thread had nothing to do
        # a heap of (tick, thread's number, thread)
        self.events = [(self.arrival_of(thread), thread.number, thread) for thread in threads]
        heapify(self.events)

    def arrival_of(self, thread: Thread) -> int:
        """When the thread's next message arrives; at once without a rate."""
        return 0 if self.interval is None else thread.arrival * self.interval

    def lateness(self, now: int) -> list[int]:
        """How long each thread's next message has been waiting; below 0 it is still to come; empty without a rate."""
        return [] if self.interval is None else [now - self.arrival_of(thread) for thread in self.threads]

    def wake(self, thread: Thread, at: int) -> None:
        """The thread goes on at that time."""
        heappush(self.events, (at, thread.number, thread))

    def next_message(self, thread: Thread, now: int) -> None:
        """The thread is free from now on: its next message begins when it has arrived."""
        arrives = self.arrival_of(thread)
        if arrives > now:
            self.waits += 1
        self.wake(thread, max(arrives, now))

    def begin(self, thread: Thread) -> None:
        """The thread's next message begins."""
        if self.interval is not None:
            thread.arrival += len(self.threads)
        self.started += 1

    def next_at(self) -> int | None:
        """When the next thread goes on; None when all have stopped, which lets no time pass."""
        events = self.events
        while events:
            at, _, thread = events[0]
            if thread.busy or not self._is_over(thread, at):
                return at
            heappop(events)
        return None

    def take(self) -> Thread:
        """The next thread, which is to be woken again by `wake`."""
        return heappop(self.events)[2]

    def jump(self, ticks: int, messages: int, arrivals: Sequence[int]) -> None:
        """All times move on, and so many messages are counted; `arrivals` are those of each thread."""
        self.started += messages
        for thread, more in zip(self.threads, arrivals, strict=True):
            thread.arrival += more
        for _, _, thread in self.events:
            thread.began += ticks
            thread.started += ticks
            thread.message += messages
        # What moves together keeps its order: the heap stays a heap.
        self.events[:] = [(at + ticks, number, thread) for at, number, thread in self.events]

    def _is_over(self, thread: Thread, at: int) -> bool:
        """The thread would begin a message, and there is none any more."""
        return at >= self.end or (self.started if self.interval is None else thread.arrival) >= self.limit


def time_base(rate: Fraction | None) -> tuple[int, int | None]:
    """Ticks per microsecond, and ticks between two messages (None without a rate)."""
    if rate is None:
        return 1, None
    interval = Fraction(1_000_000) / rate
    return interval.denominator, interval.numerator
