"""A sending thread's or a request's state, and when each goes on: arrivals by rate, and wakings.

Rules of this file:
- Time is in ticks. A tick is a fraction of a microsecond such that the time between two messages is a whole number.
- Of two that wake at one tick, the lower number comes first; requests have numbers below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

from msgspec import Struct, field

from rmqlb.engine.send.cluster_state import NEVER
from rmqlb.engine.send.outcome import SEND_OK, Outcome
from rmqlb.engine.send.publish_info import TopicPublishInfo
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import SendScenario

_NOWHERE = MessageQueue("", "", -1)


class Thread(Struct, eq=False):
    """A sending thread, between two messages or waiting for an attempt to end; or one request of ASYNC sends."""

    number: int  # from 1; a request has one below 0, of use to the order of events alone
    key: int  # of its random numbers
    draws: int = 0  # how many of them it has used
    arrival: int = 0  # number of the message it sends next, from 0, by arrival; its own messages are every K-th
    # of an ASYNC request, the thread whose message it is and whose random numbers it uses
    handed_over_by: Thread | None = None
    # its view of the queue list, without queues before the first message
    info: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))
    # its index among isolated brokers, which no route change starts anew
    worst: TopicPublishInfo = field(default_factory=lambda: TopicPublishInfo((), 0, {}))
    version: int = -1  # of the route that view is from
    busy: bool = False  # an attempt is under way
    message: int = 0  # number of the message under way
    began: int = 0  # when that began
    attempt: int = 0  # its attempt under way, from 1
    queue: MessageQueue = _NOWHERE  # of that attempt
    row: int = 0  # of that queue in the counters
    outcome: Outcome = SEND_OK  # what the attempt will end in
    started: int = 0  # when the attempt began
    kept: int = 0  # how many earlier attempts of the message were stored with a lesser status
    failure: int = -1  # index of the failure that the attempt meets, or −1
    first: str = ""  # broker of the first attempt of an ASYNC message
    budget: int = 0  # how many ms an ASYNC attempt has
    sent: list[str] = field(default_factory=list)  # brokers of the message's attempts
    phase: int = 0  # how far into a millisecond the message began, drawn when it matters: after a time-out

    @property
    def sender(self) -> Thread:
        return self.handed_over_by or self


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
        heappush(self.events, (at, thread.number, thread))

    def next_message(self, thread: Thread, now: int) -> None:
        arrives = self.arrival_of(thread)
        if arrives > now:
            self.waits += 1
        self.wake(thread, max(arrives, now))

    def begin(self, thread: Thread) -> None:
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
