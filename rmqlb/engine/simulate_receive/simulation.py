"""Consumers that receive, the way of their requests and answers, and what becomes of the messages.

Rules of this file:
- Every request takes half a round trip there and half back.
- A message is acknowledged when the application is done with it, unless its client has died or the message has become
  visible again before; the acknowledgement takes no time.
- At rates, each queue has arrivals of its own that know nothing of each other (a Poisson process). Messages go on
  arriving until those of the scenario, the measured ones, are received. Without further arrivals the last measured
  messages would meet receives that wait at idle brokers.
- Rare messages come one at a time, one to three rounds of all receives apart, in any queue: each finds the receives
  idle.
- A broker registers as soon as it is back. A poll at the very moment of a change comes before the change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heapreplace
from math import log

from rmqlb.engine.kernel import Clock, Draws, last_tick
from rmqlb.engine.simulate_receive import rules
from rmqlb.engine.simulate_receive.broker import (
    ARRIVALS,
    CONSUMER,
    NEVER,
    PROXY,
    UNKNOWN,
    Broker,
    Client,
    Message,
    Outage,
    Receive,
    draws,
)
from rmqlb.model.java import sort_key
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_receive import ReceiveScenario

MOST_FURTHER = 100_000
"""Messages that arrive after the measured ones, at the most."""
_TOLD_EVERY = 1000
_JAVA_INT = (1 << 31) - 1
_FINE = 1 << 53
Arrival = tuple[int, int]
"""When, in microseconds, and the place of the queue in the list."""


def _arrivals(queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> Iterator[Arrival]:
    """All arrivals in order, without end."""
    return _at_rates(queues, scenario, trial) if scenario.rates else _rare(len(queues), scenario, trial)


def _rare(queues: int, scenario: ReceiveScenario, trial: int) -> Iterator[Arrival]:
    round_us = rules.longest_receive_us(scenario)  # for all receives to go round once when no message comes
    if scenario.client == "simple":
        round_us *= -(-queues // (scenario.loops * scenario.consumers))
    numbers, now = draws(scenario, trial, ARRIVALS), 0
    while True:
        now += round_us + numbers.below(2 * round_us + 1)
        yield now, numbers.below(queues)


def _at_rates(queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> Iterator[Arrival]:
    places = {(queue.broker_name, queue.queue_id): place for place, queue in enumerate(queues)}
    streams: dict[int, tuple[Draws, float]] = {}
    for rate in scenario.rates:
        place = places[rate.broker_name, rate.queue_id]
        streams[place] = draws(scenario, trial, ARRIVALS, place), float(1_000_000 / rate.per_second)
    due = [(_gap(*stream), place) for place, stream in streams.items()]
    heapify(due)
    while True:
        at, place = due[0]
        heapreplace(due, (at + _gap(*streams[place]), place))
        yield at, place


def _gap(numbers: Draws, mean_us: float) -> int:
    return round(-log((numbers.below(_FINE) + 1) / _FINE) * mean_us)


class Proxy:
    """The Proxy's view of the route, which is up to 20 s old."""

    def __init__(self, brokers: Sequence[Broker], scenario: ReceiveScenario, trial: int) -> None:
        self._sorted = sorted(brokers, key=lambda broker: sort_key(broker.name))
        self._phase = draws(scenario, trial, PROXY).below(rules.PROXY_ROUTE_US)
        self._turn = draws(scenario, trial, PROXY, 1).below(1 << 31)

    def knows(self, broker: Broker, now: int) -> bool:
        return broker.registered(last_tick(self._phase, rules.PROXY_ROUTE_US, now))

    def select(self, broker: Broker, now: int) -> Broker | None:
        """The broker that the Proxy requests for the one that a client named (`ReceiveMessageQueueSelector.select`).

        The same broker if the Proxy's view has it, otherwise the next of those in its view; None without any.
        """
        if self.knows(broker, now):
            return broker
        known = [each for each in self._sorted if self.knows(each, now)]
        if not known:
            return None
        self._turn += 1
        return known[self._turn % len(known)]


class Consumer(Client):
    """A client with loops, each of which has one receive at a time."""

    one_by_one = True  # the application consumes the messages of a receive one after the other

    def __init__(self, number: int, simulation: ReceiveSimulation) -> None:
        scenario = simulation.scenario
        own = [crash.at_us for crash in scenario.crashes if crash.consumer == number]
        super().__init__(number, min(own, default=None))
        self.simulation, self.scenario, self.clock = simulation, scenario, simulation.clock
        self.loops = scenario.loops

    def start(self) -> None:
        for loop in range(self.loops):
            self.receive(loop)

    def receive(self, loop: int) -> None:
        """Send the next receive of a loop."""
        raise NotImplementedError

    def received(self, loop: int, messages: int) -> None:
        """Go on after a receive that brought so many messages."""
        raise NotImplementedError


class SimpleConsumer(Consumer):
    """A gRPC SimpleConsumer, whose application receives in loops (`SimpleConsumerImpl.receive0`).

    One counter of the client decides for which queue a receive is (`SubscriptionLoadBalancer.takeMessageQueue`). It
    begins at random and survives route changes.
    """

    def __init__(self, number: int, simulation: ReceiveSimulation) -> None:
        super().__init__(number, simulation)
        self._index = draws(self.scenario, simulation.trial, CONSUMER, number).below(_JAVA_INT)
        self._brokers = simulation.queue_brokers

    def receive(self, loop: int) -> None:
        simulation, now = self.simulation, self.clock.now
        if self.dead(now):
            return
        if simulation.outages:
            polled = last_tick(rules.FIRST_ROUTE_US, rules.ROUTE_US, now)
            gone = {each for each in simulation.brokers if not simulation.proxy.knows(each, polled)}
            # A client keeps its list when the route has no queue any more.
            self._brokers = [each for each in simulation.queue_brokers if each not in gone] or self._brokers
        broker = self._brokers[self._index % len(self._brokers)]
        self._index += 1
        simulation.send(self, loop, simulation.proxy.select(broker, now))

    def received(self, loop: int, messages: int) -> None:
        busy_us = messages * self.scenario.consume_us
        if busy_us:
            self.clock.call(busy_us, self.receive, loop)
        else:
            self.receive(loop)


class BrokerConsumer(Consumer):
    """A client that waits at every broker at all times: a gRPC PushConsumer or a remoting client in POP mode.

    The next receive follows as soon as one is answered; the application works alongside (`ProcessQueueImpl
    .onReceiveMessageResult`, `DefaultMQPushConsumerImpl.popMessage`). Full caches are not simulated. A loop stands for
    one assignment: a broker, or in order one of its queues (`RouteActivity.queryAssignment`).
    """

    def __init__(self, number: int, simulation: ReceiveSimulation) -> None:
        super().__init__(number, simulation)
        self.one_by_one = self.scenario.fifo
        self._assigned = simulation.queue_brokers if self.scenario.fifo else simulation.brokers
        self.loops = len(self._assigned)

    def receive(self, loop: int) -> None:
        simulation, now, broker = self.simulation, self.clock.now, self._assigned[loop]
        if self.dead(now):
            return
        if self.scenario.client == "pop":
            rebalanced = last_tick(0, rules.REBALANCE_US, now)
            assigned, next_us = (
                broker.registered(last_tick(rules.FIRST_POP_ROUTE_US, rules.ROUTE_US, rebalanced)),
                rules.REBALANCE_US,
            )
        else:
            queried = last_tick(rules.FIRST_ASSIGNMENT_US, rules.ASSIGNMENT_US, now)
            assigned, next_us = simulation.proxy.knows(broker, queried), rules.ASSIGNMENT_US
        if assigned:
            to = broker if self.scenario.client == "pop" else simulation.proxy.select(broker, now)
            simulation.send(self, loop, to)
        else:
            self.clock.call(next_us, self.receive, loop)  # it begins again when an assignment has the broker

    def received(self, loop: int, messages: int) -> None:  # noqa: ARG002 - it does not wait for its application
        self.receive(loop)


class ReceiveSimulation:
    """One simulation."""

    def __init__(self, queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> None:
        self.queues, self.scenario, self.trial = queues, scenario, trial
        self.clock = Clock()
        self.messages: list[Message] = []  # those that are measured
        self.further = 0  # messages that came after them
        self.not_stored = self.dead_lettered = self.longest_wait = 0
        self.back: list[int] = []  # how long after the first delivery later ones were
        self.outages = [Outage(failure) for failure in scenario.failures]
        counts = Counter(queue.broker_name for queue in queues)
        by_name = {name: self._broker(name, place, number) for place, (name, number) in enumerate(counts.items())}
        self.brokers = list(by_name.values())
        self.queue_brokers = [by_name[queue.broker_name] for queue in queues]  # as a SimpleConsumer goes round
        self.proxy = Proxy(self.brokers, scenario, trial)
        kind = SimpleConsumer if scenario.client == "simple" else BrokerConsumer
        self.consumers: list[Consumer] = [kind(number, self) for number in range(1, scenario.consumers + 1)]
        self._invisible_us = rules.invisible_us(scenario)
        self._out_us = scenario.round_trip_us // 2
        self._back_us = scenario.round_trip_us - self._out_us
        self._pause_us = rules.error_pause_us(scenario)
        self._all_measured = False  # all messages to be measured have arrived
        self._unreceived = 0  # place of the first message that is not received
        self._arrivals = _arrivals(queues, scenario, trial)

    def _broker(self, name: str, place: int, queues: int) -> Broker:
        own = sorted((each for each in self.outages if each.failure.broker_name == name), key=lambda each: each.begin)
        return Broker(name, place, queues, own, self.clock, self.scenario, self.trial, self._answer, self._meets_outage)

    def run(self, progress: Callable[[int], None] | None = None, until_wait_us: int = NEVER) -> None:
        """Simulate all, or until a message has waited longer; `progress` gets the number of messages now and then."""
        by_name = {broker.name: broker for broker in self.brokers}
        for broker in dict.fromkeys(by_name[failure.broker_name] for failure in self.scenario.failures):
            for outage in broker.outages:
                self.clock.call(outage.begin, broker.fail, outage)
                if outage.end < NEVER:
                    self.clock.call(outage.end, broker.recover)
        for crash in self.scenario.crashes:
            self.clock.call(crash.at_us, self._crash)
        for consumer in self.consumers:
            self.clock.call(0, consumer.start)
        self._next_arrival()
        reported = 0
        while self.longest_wait <= until_wait_us and not self._over() and self.clock.do_next(LONGEST_US):
            if progress is not None and len(self.messages) >= reported:
                progress(reported)
                reported += _TOLD_EVERY

    def _over(self) -> bool:
        return self._all_measured and not any(broker.open for broker in self.brokers if not broker.gone)

    def _crash(self) -> None:
        for broker in self.brokers:
            broker.client_died()

    # -- receives --------------------------------------------------------------------------------

    def send(self, client: Consumer, loop: int, broker: Broker | None) -> None:
        """Send a receive to a broker; it fails where the Proxy knows no broker."""
        receive = Receive(client, loop, broker or self.brokers[0], self.clock.now)
        receive.broker.receives += 1
        if broker is None:
            self.clock.call(max(self.scenario.round_trip_us, 1), self._fails, receive, None)
        else:
            self.clock.call(self._out_us, broker.arrive, receive)

    def _meets_outage(self, receive: Receive) -> None:
        now = self.clock.now
        outage = receive.broker.outage(now)
        if outage is not None and outage.silent:
            delay_us = receive.started + rules.silence_us(self.scenario) - now
        else:
            cost_us = 0 if outage is None else outage.failure.reaction.cost_us
            delay_us = cost_us + self._back_us
        self.clock.call(max(delay_us, 1), self._fails, receive, outage)

    def _fails(self, receive: Receive, outage: Outage | None) -> None:
        now, client = self.clock.now, receive.client
        if client.dead(now):
            return
        receive.broker.failed += 1
        if outage is not None:
            outage.failed += 1
            outage.last_failed = now
        self.clock.call(self._pause_us, self._consumer(client).receive, receive.loop)

    def _answer(self, receive: Receive, messages: list[Message]) -> None:
        popped_at = self.clock.now
        if not receive.client.dead(popped_at + self._back_us):
            self.clock.call(self._back_us, self._answered, receive, messages, popped_at)
        elif messages:
            # The Proxy hands back messages that it cannot write (`processThrowableWhenWriteMessage`).
            late_us = self._invisible_us if self.scenario.client == "pop" else rules.CLEARED_US
            self._orphaned(receive, messages, popped_at + late_us)

    def _answered(self, receive: Receive, messages: list[Message], popped_at: int) -> None:
        client = self._consumer(receive.client)
        for message in messages:
            self._delivered(message, client.number)
        if messages:
            self._settle(receive, client, messages, popped_at)
        client.received(receive.loop, len(messages))

    def _consumer(self, client: Client) -> Consumer:
        return self.consumers[client.number - 1]

    # -- what becomes of messages ----------------------------------------------------------------

    def _delivered(self, message: Message, consumer: int) -> None:
        now, broker = self.clock.now, message.broker
        for outage in broker.outages:
            if now >= outage.end and outage.received_again == UNKNOWN:
                outage.received_again = now
        if not message.number:
            return
        if message.received == UNKNOWN:
            message.received, message.consumer = now, consumer
            wait = now - message.stored
            broker.waits.append(wait)
            self.longest_wait = max(self.longest_wait, wait)
            if message.outage is not None:
                message.outage.longest_wait = max(message.outage.longest_wait, wait)
        else:
            self.back.append(now - message.received)
        if message.had is not None:
            message.had.again.append(now - (message.had.dies_at or 0))
            message.had = None

    def _settle(self, receive: Receive, client: Consumer, messages: list[Message], popped_at: int) -> None:
        """Acknowledge messages, or let them come back."""
        now, broker, consume_us = self.clock.now, receive.broker, self.scenario.consume_us
        renewed = self.scenario.client == "push"  # and acknowledged again and again
        visible_at = NEVER if renewed else popped_at + self._invisible_us
        orphans: list[Message] = []
        late: list[Message] = []
        for place, message in enumerate(messages):
            done_at = now + consume_us * (place + 1 if client.one_by_one else 1)
            if client.dead(done_at):
                orphans.append(message)
            elif not renewed and (done_at > visible_at or broker.outage(done_at) is not None):
                late.append(message)
            elif (acknowledged_at := broker.back_at(done_at)) < NEVER:
                self._acknowledge(message, broker, acknowledged_at)
        if len(messages) > len(late) + len(orphans):
            broker.checkpoint(popped_at + self._invisible_us)
        if late:
            self._come_back(broker, late, visible_at)
        if orphans and renewed:
            cleared = self._cleared_at(client)
            self._orphaned(receive, orphans, cleared + rules.CLEARED_US, known_at=cleared)
        elif orphans:
            self._orphaned(receive, orphans, visible_at)

    def _acknowledge(self, message: Message, broker: Broker, done_at: int) -> None:
        message.done = done_at
        if message.number:
            message.broker.open -= 1
        if self.scenario.fifo and done_at > self.clock.now:
            self.clock.call(done_at - self.clock.now, broker.acknowledged, message.queue)
        elif self.scenario.fifo:
            broker.acknowledged(message.queue)

    def _orphaned(self, receive: Receive, messages: list[Message], visible_at: int, known_at: int = 0) -> None:
        for message in messages:
            # A message that several orphaned receives get, one after the other, counts once.
            if message.number and message.had is None:
                receive.client.unacknowledged += 1
                message.had = receive.client
        delay_us = max(known_at - self.clock.now, 0)
        self.clock.call(delay_us, self._come_back, receive.broker, messages, visible_at)

    def _come_back(self, broker: Broker, messages: list[Message], visible_at: int) -> None:
        alive = [message for message in messages if message.deliveries < rules.MOST_DELIVERIES]
        for message in messages:
            if message.deliveries >= rules.MOST_DELIVERIES:
                if message.number:
                    self.dead_lettered += 1
                    message.broker.open -= 1
                if self.scenario.fifo:
                    broker.acknowledged(message.queue)
        if alive:
            broker.come_back(alive, visible_at)

    def _cleared_at(self, client: Client) -> int:
        heartbeats = draws(self.scenario, self.trial, CONSUMER, client.number + (1 << 20)).below(rules.HEARTBEAT_US)
        scans = draws(self.scenario, self.trial, PROXY, 2).below(rules.EXPIRY_SCAN_US)
        return rules.cleared_at(client.dies_at or 0, heartbeats, scans)

    # -- arrivals --------------------------------------------------------------------------------

    def _next_arrival(self) -> None:
        scenario, now = self.scenario, self.clock.now
        if scenario.messages is not None and len(self.messages) + self.not_stored >= scenario.messages:
            self._all_measured = True
        at, place = next(self._arrivals)
        if not self._all_measured and scenario.duration_us is not None and at >= scenario.duration_us:
            self.clock.call(max(scenario.duration_us - now, 0), self._measure_no_more)
        self.clock.call(max(at - now, 0), self._arrives, place)

    def _measure_no_more(self) -> None:
        self._all_measured = True

    def _arrives(self, place: int) -> None:
        measured = not self._all_measured
        if not measured and not self._goes_on():
            return
        broker, now = self.queue_brokers[place], self.clock.now
        if broker.outage(now) is None:
            message = Message(len(self.messages) + 1 if measured else 0, broker, self.queues[place].queue_id, now)
            if measured:
                self.messages.append(message)
                broker.open += 1
            else:
                self.further += 1
            broker.store(message)
        else:
            self.not_stored += measured
        self._next_arrival()

    def _goes_on(self) -> bool:
        """Whether messages arrive that are not measured: a measured one is still open, and a consumer lives."""
        if not self.scenario.rates or self.further >= MOST_FURTHER or not self._awaits_one():
            return False
        return any(not consumer.dead(self.clock.now) for consumer in self.consumers)

    def _awaits_one(self) -> bool:
        """Whether a measured message is not received yet, at a broker that is not gone for good."""
        while self._unreceived < len(self.messages):
            message = self.messages[self._unreceived]
            if message.received == UNKNOWN and not message.broker.gone:
                return True
            self._unreceived += 1
        return False
