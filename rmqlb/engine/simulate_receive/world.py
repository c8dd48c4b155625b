"""What brokers and clients of a simulation share: time, random numbers, arrivals, routes, requests and counts.

Rules of this file:
- Each random number is a function of seed, trial and an address: a kind, and a place within it.
- Whether a broker works, and who believes so, is a function of the time and the scenario's failures alone, except the
  Proxy's turns. A broker registers as soon as it is back. A poll at the very moment of a change comes before it.
- At rates, each queue has arrivals of its own that know nothing of each other (a Poisson process). Rare messages come
  one at a time, one to three rounds of all receives apart, in any queue: each finds the receives idle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heapify, heapreplace
from math import log

from msgspec import Struct

from rmqlb.engine.kernel import Clock, Draws, stream_key
from rmqlb.engine.simulate_receive.rules import (
    ASSIGNMENT_US,
    FIRST_ASSIGNMENT_US,
    FIRST_POP_ROUTE_US,
    FIRST_ROUTE_US,
    PROXY_ROUTE_US,
    REBALANCE_US,
    ROUTE_US,
    awaited_us,
    error_pause_us,
)
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import ReceiveScenario

_PLACES = 1 << 32
ARRIVALS, BROKER, CONSUMER, PROXY = range(4)


def draws(seed: int, trial: int, kind: int, place: int = 0) -> Draws:
    """The stream of one thing."""
    return Draws(stream_key(seed, trial, kind * _PLACES + place))


UNKNOWN = -1


class Message(Struct):
    """A message on its way."""

    number: int  # from 1, by arrival; 0 when it came after the measured ones and counts nowhere
    place: int  # of its broker
    queue: int  # its queue there
    stored: int
    deliveries: int = 0
    received: int = UNKNOWN  # when a client first had it
    consumer: int = UNKNOWN  # number of that client
    done: int = UNKNOWN  # when it was acknowledged
    outage: int = UNKNOWN  # place of the failure during which it was on its broker
    crash: int = UNKNOWN  # place of the death that it waits to come back from


class BrokerCounts(Struct):
    """Receives at one broker."""

    receives: int = 0
    empty: int = 0
    failed: int = 0
    waits: list[int] = []  # of messages received first
    open: int = 0  # messages stored there that are neither acknowledged nor dead letters
    unpolled_since: int | None = 0  # no receive waits there; None while one does, or the broker fails
    unpolled_us: int = 0


class OutageCounts(Struct):
    """The effect of a broker's failure."""

    failed: int = 0
    last_failed: int = UNKNOWN
    longest_wait: int = UNKNOWN
    received_again: int = UNKNOWN


class CrashCounts(Struct):
    """The effect of a consumer's death."""

    unacknowledged: int = 0
    again: list[int] = []  # how long after the death


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


NEVER = 1 << 62


class Outage:
    """A broker's failure, in microseconds."""

    __slots__ = ("begin", "dropped", "end", "failure", "place", "silent")

    def __init__(self, failure: Failure, place: int) -> None:
        self.failure = failure
        self.place = place  # among the scenario's failures
        self.begin = failure.start.us or 0
        self.end = NEVER if failure.end is None or failure.end.us is None else failure.end.us
        self.dropped = NEVER if failure.notices_us is None else self.begin + failure.notices_us
        self.silent = failure.reaction.kind == "timeout"


class Routes:
    """Who works, and who is believed to."""

    def __init__(self, brokers: list[str], scenario: ReceiveScenario, trial: int) -> None:
        self.outages: dict[str, list[Outage]] = {}
        for place, failure in enumerate(scenario.failures):
            self.outages.setdefault(failure.broker_name, []).append(Outage(failure, place))
        for own in self.outages.values():
            own.sort(key=lambda outage: outage.begin)
        self._proxied = scenario.client != "pop"
        self._push = scenario.client == "push"
        self._phase = draws(scenario.seed, trial, PROXY).below(PROXY_ROUTE_US)
        self._sorted = sorted(brokers, key=sort_key)
        self._fallback = draws(scenario.seed, trial, PROXY, 1).below(1 << 31)

    def outage(self, broker: str, now: int) -> Outage | None:
        """The failure that a broker is in; of several the last to begin."""
        if not self.outages:
            return None
        found = None
        for each in self.outages.get(broker, ()):
            if each.begin <= now < each.end:
                found = each
        return found

    def back_at(self, broker: str, now: int) -> int:
        """When a broker works again; `now` when it does."""
        outage = self.outage(broker, now)
        while outage is not None and now < NEVER:
            now = outage.end
            outage = self.outage(broker, now)
        return now

    def proxy_knows(self, broker: str, now: int) -> bool:
        """The Proxy's view has the broker."""
        return not self.outages or self._registered(broker, _last(self._phase, PROXY_ROUTE_US, now))

    def client_knows(self, broker: str, now: int) -> bool:
        """A client's queue list or assignments have the broker."""
        if not self.outages:
            return True
        if self._push:
            return self.proxy_knows(broker, _last(FIRST_ASSIGNMENT_US, ASSIGNMENT_US, now))
        if self._proxied:
            return self.proxy_knows(broker, _last(FIRST_ROUTE_US, ROUTE_US, now))
        rebalanced = _last(0, REBALANCE_US, now)
        return self._registered(broker, _last(FIRST_POP_ROUTE_US, ROUTE_US, rebalanced))

    def known(self, queue_brokers: list[str], now: int) -> list[str]:
        """Of the brokers of queues those that a client's queue list has."""
        if not self.outages:
            return queue_brokers
        gone = {name for name in self.outages if not self.client_knows(name, now)}
        return [name for name in queue_brokers if name not in gone]

    def through_proxy(self, broker: str, now: int) -> str | None:
        """The broker that the Proxy asks for one that a client named (`ReceiveMessageQueueSelector.select`).

        Its own when the Proxy's view has it, otherwise the next of those that it has; None without any.
        """
        if self.proxy_knows(broker, now):
            return broker
        known = [each for each in self._sorted if self.proxy_knows(each, now)]
        if not known:
            return None
        self._fallback += 1
        return known[self._fallback % len(known)]

    def _registered(self, broker: str, at: int) -> bool:
        """The NameServer had the broker just before a time; before the start it had all."""
        own = self.outages.get(broker, ())
        return at <= 0 or not any(each.dropped < at <= each.end and each.dropped < each.end for each in own)


def _last(first: int, every: int, now: int) -> int:
    """The last time of a timer at or before a moment; 0 before its first."""
    return first + (now - first) // every * every if now >= first else 0


class Receive:
    """One request for messages, at the broker of that place."""

    __slots__ = ("client", "loop", "orphan", "place", "started", "waiting")

    def __init__(self, client: Consumer, loop: int, place: int, started: int) -> None:
        self.client = client
        self.loop = loop
        self.place = place
        self.started = started
        self.waiting = False  # at its broker
        self.orphan = False  # its client has died meanwhile


class Environment:
    """One simulation's time, routes and counts.

    Attributes:
        queue_brokers: the broker of each queue, in the order in which a SimpleConsumer goes round.
        brokers: the names of all brokers, in that order; a broker's place is that in this list.
        proxied: the clients are behind a Proxy.
        awaited_us: how long a broker lets a receive wait.
    """

    def __init__(self, queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> None:
        self.scenario = scenario
        self.trial = trial
        self.clock = Clock()
        self.queue_brokers = [queue.broker_name for queue in queues]
        self.brokers = list(dict.fromkeys(self.queue_brokers))
        self.proxied = scenario.client != "pop"
        self.awaited_us = awaited_us(scenario)
        self.routes = Routes(self.brokers, scenario, trial)
        self.recorder = Recorder(len(self.brokers), scenario)


_FINE = 1 << 53
Arrival = tuple[int, int]
"""When, in microseconds, and the place of the queue in the list."""


def arrivals(queues: list[MessageQueue], scenario: ReceiveScenario, trial: int, round_us: int) -> Iterator[Arrival]:
    """The arrivals, in order; without end where the scenario has none.

    Args:
        queues: all that can be read.
        scenario: with its rates, of which some queue has one, or rare.
        trial: which of many runs.
        round_us: how long one round of all receives takes when no message comes.
    """
    if scenario.rare:
        return _rare(len(queues), draws(scenario.seed, trial, ARRIVALS), round_us)
    return _at_rates(queues, scenario, trial)


def _rare(queues: int, numbers: Draws, round_us: int) -> Iterator[Arrival]:
    now = 0
    while True:
        now += round_us + numbers.below(2 * round_us + 1)
        yield now, numbers.below(queues)


def _at_rates(queues: list[MessageQueue], scenario: ReceiveScenario, trial: int) -> Iterator[Arrival]:
    places = {(queue.broker_name, queue.queue_id): place for place, queue in enumerate(queues)}
    streams: dict[int, tuple[Draws, float]] = {}
    due: list[Arrival] = []
    for rate in scenario.rates:
        place = places[rate.broker_name, rate.queue_id]
        gap_us = float(1_000_000 / rate.per_second)
        streams[place] = draws(scenario.seed, trial, ARRIVALS, place), gap_us
        due.append((_gap(*streams[place]), place))
    heapify(due)
    while True:
        at, place = due[0]
        heapreplace(due, (at + _gap(*streams[place]), place))
        yield at, place


def _gap(numbers: Draws, mean_us: float) -> int:
    return round(-log((numbers.below(_FINE) + 1) / _FINE) * mean_us)


Send = Callable[["Consumer", int, str | None], None]
"""What sends a receive of a client's loop to a broker; to none where the Proxy knows none."""
_JAVA_INT = (1 << 31) - 1


class Consumer:
    """A process of the group; `one_by_one`: its application takes the messages of a receive one after the other."""

    one_by_one = True

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        self.number = number
        self.environment, self.send = environment, send
        own = [crash.at_us for crash in environment.scenario.crashes if crash.consumer == number]
        self.crash_at: int | None = min(own, default=None)
        self.pause_us = error_pause_us(environment.scenario)

    def dead(self, at: int) -> bool:
        """The process has died by then."""
        return self.crash_at is not None and self.crash_at <= at

    def start(self) -> None:
        """Send the first receives."""
        raise NotImplementedError

    def goes_on(self, receive: Receive, messages: int) -> None:
        """A receive has ended well, with this number of messages."""
        raise NotImplementedError

    def failed(self, receive: Receive) -> None:
        """A receive has ended with an error."""
        self.environment.clock.call(self.pause_us, self.receive, receive.loop)

    def receive(self, loop: int) -> None:
        """Send the next receive of a loop."""
        raise NotImplementedError


class SimpleConsumer(Consumer):
    """A gRPC SimpleConsumer, whose application receives in loops (`SimpleConsumerImpl.receive0`).

    Which queue a receive is for, one counter of the client decides (`SubscriptionLoadBalancer.takeMessageQueue`); it
    begins at random and survives route changes.
    """

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        super().__init__(number, environment, send)
        self._index = draws(environment.scenario.seed, environment.trial, CONSUMER, number).below(_JAVA_INT)
        self._queues = environment.queue_brokers

    def start(self) -> None:
        for loop in range(self.environment.scenario.loops):
            self.receive(loop)

    def receive(self, loop: int) -> None:
        environment = self.environment
        if self.dead(environment.clock.now):
            return
        self._queues = environment.routes.known(environment.queue_brokers, environment.clock.now) or self._queues
        name = self._queues[self._index % len(self._queues)]
        self._index += 1
        self.send(self, loop, environment.routes.through_proxy(name, environment.clock.now))

    def goes_on(self, receive: Receive, messages: int) -> None:
        busy_us = messages * self.environment.scenario.consume_us
        if busy_us:
            self.environment.clock.call(busy_us, self.receive, receive.loop)
        else:
            self.receive(receive.loop)


class BrokerConsumer(Consumer):
    """A client that waits at every broker at all times: a gRPC PushConsumer or a remoting client in POP mode.

    The next receive follows as soon as one is answered; the application works beside it (`ProcessQueueImpl
    .onReceiveMessageResult`, `DefaultMQPushConsumerImpl.popMessage`). That caches fill up is not simulated. A loop
    stands for one assignment: a broker, or in order one of its queues (`RouteActivity.queryAssignment`).
    """

    def __init__(self, number: int, environment: Environment, send: Send) -> None:
        super().__init__(number, environment, send)
        fifo = environment.scenario.fifo
        self.one_by_one = fifo
        self._loops = environment.queue_brokers if fifo else environment.brokers
        self._look_us = ASSIGNMENT_US if environment.proxied else REBALANCE_US

    def start(self) -> None:
        for loop in range(len(self._loops)):
            self.receive(loop)

    def receive(self, loop: int) -> None:
        environment, name = self.environment, self._loops[loop]
        now = environment.clock.now
        if self.dead(now):
            return
        if not environment.routes.client_knows(name, now):
            # It has been dropped; it begins again when an assignment has it again.
            environment.clock.call(self._look_us, self.receive, loop)
            return
        self.send(
            self, loop, environment.routes.through_proxy(name, environment.clock.now) if environment.proxied else name
        )

    def goes_on(self, receive: Receive, messages: int) -> None:  # noqa: ARG002 - it does not wait for its application
        self.receive(receive.loop)


def consumer_of(number: int, environment: Environment, send: Send) -> Consumer:
    """A consumer of the scenario's kind."""
    kind = SimpleConsumer if environment.scenario.client == "simple" else BrokerConsumer
    return kind(number, environment, send)
