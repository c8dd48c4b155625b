"""What is counted while receives are simulated."""

from __future__ import annotations

from collections.abc import Collection

from rmqlb.model.receive_scenario import ReceiveScenario

UNKNOWN = -1


class Message:
    """A message on its way."""

    __slots__ = ("consumer", "crash", "deliveries", "done", "number", "outage", "place", "queue", "received", "stored")

    def __init__(self, number: int, place: int, queue: int, stored: int) -> None:
        self.number = number  # from 1, by arrival; 0 when it came after the measured ones and counts nowhere
        self.place = place  # of its broker
        self.queue = queue  # its queue there
        self.stored = stored
        self.deliveries = 0
        self.received = UNKNOWN  # when a client had it first
        self.consumer = UNKNOWN  # number of that client
        self.done = UNKNOWN  # when it was acknowledged
        self.outage = UNKNOWN  # place of the failure that it was on its broker in
        self.crash = UNKNOWN  # place of the death that it waits to come back from


class BrokerCounts:
    """What receives did at one broker."""

    __slots__ = ("empty", "failed", "open", "receives", "unpolled_since", "unpolled_us", "waits")

    def __init__(self) -> None:
        self.receives = 0
        self.empty = 0
        self.failed = 0
        self.waits: list[int] = []  # of messages received first
        self.open = 0  # messages stored there that are neither acknowledged nor dead letters
        self.unpolled_since: int | None = 0  # no receive waits there; None while one does, or the broker fails
        self.unpolled_us = 0


class OutageCounts:
    """What a broker's failure did."""

    __slots__ = ("failed", "last_failed", "longest_wait", "received_again")

    def __init__(self) -> None:
        self.failed = 0
        self.last_failed = UNKNOWN
        self.longest_wait = UNKNOWN
        self.received_again = UNKNOWN


class CrashCounts:
    """What a consumer's death did."""

    __slots__ = ("again", "unacknowledged")

    def __init__(self) -> None:
        self.unacknowledged = 0
        self.again: list[int] = []  # how long after the death


class Recorder:
    """All counts of a simulation."""

    def __init__(self, brokers: int, scenario: ReceiveScenario) -> None:
        self.messages: list[Message] = []  # those that are measured
        self.further = 0  # messages that came after them
        self.brokers = [BrokerCounts() for _ in range(brokers)]
        self.outages = [OutageCounts() for _ in scenario.failures]
        self.crashes = [CrashCounts() for _ in scenario.crashes]
        self.back: list[int] = []  # how long after the first delivery later ones were
        self.not_stored = 0
        self.dead_lettered = 0
        self.longest_wait = 0
        self._next = 0  # place of the first message that is not received

    def awaits_one(self, gone: Collection[int]) -> bool:
        """A measured message is not received yet, at another broker than these, which stay away."""
        messages = self.messages
        while self._next < len(messages):
            message = messages[self._next]
            if message.received == UNKNOWN and message.place not in gone:
                return True
            self._next += 1
        return False

    def store(self, place: int, queue: int, now: int, *, measured: bool = True) -> Message:
        """A message has come, which is measured or keeps the load up until the measured ones are received."""
        if not measured:
            self.further += 1
            return Message(0, place, queue, now)
        message = Message(len(self.messages) + 1, place, queue, now)
        self.messages.append(message)
        self.brokers[place].open += 1
        return message

    def delivered(self, message: Message, consumer: int, now: int, crash_at: list[int]) -> None:
        """A client has received a message."""
        if not message.number:
            return
        if message.received == UNKNOWN:
            message.received, message.consumer = now, consumer
            wait = now - message.stored
            self.brokers[message.place].waits.append(wait)
            self.longest_wait = max(self.longest_wait, wait)
            if message.outage != UNKNOWN:
                counts = self.outages[message.outage]
                counts.longest_wait = max(counts.longest_wait, wait)
        else:
            self.back.append(now - message.received)
        if message.crash != UNKNOWN:
            self.crashes[message.crash].again.append(now - crash_at[message.crash])
            message.crash = UNKNOWN

    def done(self, message: Message, at: int) -> None:
        """A message is acknowledged."""
        message.done = at
        if message.number:
            self.brokers[message.place].open -= 1

    def dead_letter(self, message: Message) -> None:
        if message.number:
            self.dead_lettered += 1
            self.brokers[message.place].open -= 1

    def polled(self, place: int, now: int) -> None:
        """A receive arrives at a broker."""
        counts = self.brokers[place]
        if counts.unpolled_since is not None:
            counts.unpolled_us = max(counts.unpolled_us, now - counts.unpolled_since)
            counts.unpolled_since = None
