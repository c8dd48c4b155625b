"""Consumers that receive, their requests and the brokers' answers, and the fate of messages.

`PopBroker` mirrors `PopMessageProcessor.processRequest` and `.popMsgFromTopic`, `PopLongPollingService` and, in order,
`ConsumerOrderInfoManager`, by the scenario's broker version. The Proxy and POP clients with the default
`popShareQueueNum` request queue −1, which means any queue.

Rules of this file:
- Every request takes half a round trip there and half back.
- A message is acknowledged when the application has consumed it, unless its client has died or the message has become
  visible again before; the acknowledgement takes no time.
- At rates, each queue has its own independent arrivals (a Poisson process). Messages arrive until all measured ones,
  those of the scenario, are received: otherwise the last measured messages would meet receives at idle brokers.
- Rare messages come one at a time, one to three rounds of all receives apart, in any queue: each finds idle receives.
- A broker registers as soon as it is back. A poll at the very moment of a change comes before the change.
- A SimpleConsumer's loops share one counter, which decides the queue of a receive (`SimpleConsumerImpl.receive0`,
  `SubscriptionLoadBalancer.takeMessageQueue`). The counter begins at random and survives route changes.
- A gRPC PushConsumer and a client in POP mode wait at every broker at all times: the next receive follows as soon as
  one is answered, and the application works alongside (`ProcessQueueImpl.onReceiveMessageResult`,
  `DefaultMQPushConsumerImpl.popMessage`). Full caches are not simulated. Each loop stands for one assignment: a broker,
  or in order one of its queues (`RouteActivity.queryAssignment`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heapreplace
from math import log

from msgspec import Struct, field

from rmqlb.engine.kernel import Clock, Draws, last_tick, stream_key
from rmqlb.engine.simulate_receive import rules
from rmqlb.engine.simulate_receive.revive import IDLE_US, ReviveService, TimerWheel
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.message_queue import MessageQueue, grouped, sort_key
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import ReceiveScenario

MOST_FURTHER = 100_000  # messages that arrive after the measured ones, at the most
NEVER = 1 << 62
_ARRIVALS, _BROKER, _CONSUMER, _PROXY = range(4)  # the kinds of random numbers
_PLACES = 1 << 32
_REPORTED_EVERY = 1000
_JAVA_INT = (1 << 31) - 1
_FINE = 1 << 53
_HEARTBEATS = 1 << 20  # the place of a consumer's heartbeats among the random numbers of consumers


class PopMessage(Struct, eq=False):
    """A message; messages with number 0 came after the measured ones and count nowhere."""

    number: int
    broker: PopBroker
    queue: int
    stored: int
    deliveries: int = 0
    received: int | None = None  # by a client, for the first time
    consumer: int | None = None  # number of that client
    done: int | None = None  # time of its acknowledgement
    outage: Outage | None = None  # the failure during which the message was on its broker
    had: Receiver | None = None  # the dead consumer from which the message has to come back

    @property
    def wait(self) -> int | None:
        return None if self.received is None else self.received - self.stored


class Receiver(Struct, eq=False):
    number: int
    dies_at: int
    turn: int  # of a SimpleConsumer: counts its receives, from a random number
    brokers: Sequence[PopBroker]  # of a SimpleConsumer: by queue, in the order of its rotation
    unacknowledged: int = 0  # messages at its death
    again: list[int] = field(default_factory=list)  # the times from its death to their next receive

    def dead(self, at: int) -> bool:
        return self.dies_at <= at


class Receive(Struct, eq=False):
    consumer: Receiver
    loop: int
    broker: PopBroker
    started: int
    waiting: bool = False  # at its broker
    orphan: bool = False  # its consumer has died while it waited


class Outage:
    """A broker's failure, in microseconds, and its effect."""

    def __init__(self, failure: Failure) -> None:
        self.failure, self.begin = failure, failure.start.us or 0
        self.end = NEVER if failure.end is None or failure.end.us is None else failure.end.us
        self.dropped = NEVER if failure.notices_us is None else self.begin + failure.notices_us
        self.silent = failure.reaction.kind == "timeout"
        self.failed = 0
        self.last_failed: int | None = None
        self.longest_wait: int | None = None
        self.received_again: int | None = None


class PopBroker:
    def __init__(
        self, simulation: ReceiveSimulation, name: str, place: int, queues: int, outages: Sequence[Outage]
    ) -> None:
        self.name, self.outages = name, outages
        self.queues: list[deque[PopMessage]] = [deque() for _ in range(queues)]
        self.retry: deque[PopMessage] = deque()
        self.blocked: dict[int, int] = {}  # in order: queue → messages of it that are not acknowledged
        self.receives = self.empty = self.failed = 0
        self.waits: list[int] = []  # of messages received first
        self.measured = self.open = 0  # messages stored here; of these, neither acknowledged nor dead letters
        self.gone = False  # fails for good
        self.longest_unpolled_us = 0
        self._unpolled_since: int | None = 0  # None while a receive waits here, or the broker fails
        self._waiting: deque[Receive] = deque()  # in the order in which they are over; some do not wait any more
        self._alive = 0  # receives of living clients that wait
        self._pending = 0  # messages in queues
        self._simulation, self._clock, self._scenario = simulation, simulation.clock, simulation.scenario
        self._rules = rules.broker_rules(self._scenario.broker_version)
        self._awaited_us = rules.awaited_us(self._scenario)
        self._numbers = simulation.draws(_BROKER, place)
        below = self._numbers.below
        self._scan_phase, self._lock_phase = below(rules.SCAN_US), below(rules.LOCK_TICK_US)
        self._services: list[ReviveService] = []
        if rules.may_come_back(self._scenario):
            timer = TimerWheel(below(rules.TIMER_SECOND_US), below(rules.TIMER_CHECK_US))
            for _ in range(rules.REVIVE_QUEUES):
                self._services.append(ReviveService(self._clock, timer, below(IDLE_US), self._revive))
        self._checkpoints = 0

    def outage(self, now: int) -> Outage | None:
        """The failure at that time; if several overlap, the last to begin."""
        return next((each for each in reversed(self.outages) if each.begin <= now < each.end), None)

    def back_at(self, now: int) -> int:
        while now < NEVER and (outage := self.outage(now)) is not None:
            now = outage.end
        return now

    def registered(self, at: int) -> bool:
        """Whether the NameServer had the broker just before that time; at the start it had all."""
        return at <= 0 or not any(each.dropped < at <= each.end and each.dropped < each.end for each in self.outages)

    def fail(self, outage: Outage) -> None:
        for queue in (*self.queues, self.retry):
            for message in queue:
                message.outage = outage
        waiting = [receive for receive in self._waiting if receive.waiting]
        self._waiting.clear()
        for receive in waiting:
            self._leave(receive)
        for receive in waiting:
            self._simulation.meet_outage(receive)
        self._polled()
        self.gone |= self.back_at(self._clock.now) >= NEVER

    def recover(self) -> None:
        if self.outage(self._clock.now) is None:
            self._unpolled_since = self._clock.now

    def _at(self, when: int, action: Callable[..., None], *arguments: object) -> None:
        when = self.back_at(max(when, self._clock.now))
        if when < NEVER:
            self._clock.call(when - self._clock.now, action, *arguments)

    def arrive(self, receive: Receive) -> None:
        now = self._clock.now
        if self.outage(now) is not None:
            self._simulation.meet_outage(receive)
            return
        if receive.consumer.dead(now):
            return
        self._polled()
        self._alive += 1
        found = self._pop()
        if found:
            self._leave(receive)
            self._simulation.answer(receive, found)
            self.notify()
            return
        receive.waiting = True
        self._waiting.append(receive)
        self._clock.call(rules.over_at(now, self._awaited_us, self._scan_phase) - now, self._over, receive)

    def notify(self) -> None:
        """Wake waiting receives, the first one first, while there are messages (`notifyMessageArriving`)."""
        while self._waiting and self._has_some():
            receive = self._waiting.popleft()
            if receive.waiting:
                found = self._pop()
                self._leave(receive)
                self._simulation.answer(receive, found)

    def client_died(self) -> None:
        """End receives of dead remoting clients, whose connections are closed; the Proxy's go on waiting."""
        for receive in self._waiting:
            if receive.waiting and not receive.orphan and receive.consumer.dead(self._clock.now):
                self._leave(receive)
                receive.orphan, receive.waiting = True, self._scenario.client != "pop"

    def _over(self, receive: Receive) -> None:
        """End a receive (`PopLongPollingService.run`); it takes messages that came back without waking it."""
        if not receive.waiting:
            return
        found = self._pop() if self._has_some() else []
        self._leave(receive)
        while self._waiting and not self._waiting[0].waiting:
            self._waiting.popleft()
        if receive.orphan and not found:
            return
        self.empty += not found
        self._simulation.answer(receive, found)

    def _polled(self) -> None:
        if self._unpolled_since is not None:
            self.longest_unpolled_us = max(self.longest_unpolled_us, self._clock.now - self._unpolled_since)
            self._unpolled_since = None

    def _leave(self, receive: Receive) -> None:
        receive.waiting = False
        self._alive -= not receive.orphan
        if not receive.orphan and not self._alive:
            self._unpolled_since = self._clock.now

    def store(self, message: PopMessage) -> None:
        self.queues[message.queue].append(message)
        self._pending += 1
        self.notify()

    def come_back(self, messages: list[PopMessage], visible_at: int) -> None:
        if not self._scenario.fifo:
            self._record(visible_at, tuple(messages))
            return
        by_queue = grouped((message.queue, message) for message in messages)
        for queue, own in by_queue.items():
            self._at(rules.free_at(visible_at, self._lock_phase), self._free, queue, own)

    def checkpoint(self, visible_at: int) -> None:
        if self._services and not self._scenario.fifo:
            self._record(visible_at, ())

    def acknowledged(self, queue: int, messages: int = 1) -> None:
        """In order, the last message that is done frees its queue (`AckMessageProcessor.ackOrderly`)."""
        self.blocked[queue] -= messages
        if not self.blocked[queue]:
            del self.blocked[queue]
            self.notify()

    def _record(self, visible_at: int, messages: tuple[PopMessage, ...]) -> None:
        self._checkpoints += 1
        service = self._services[self._checkpoints % rules.REVIVE_QUEUES]
        service.checkpoint(visible_at, messages, acknowledged=not messages)

    def _revive(self, messages: tuple[PopMessage, ...]) -> None:
        self._at(self._clock.now, self._retry, messages)

    def _retry(self, messages: tuple[PopMessage, ...]) -> None:
        self.retry.extend(messages)
        if self._rules.retry_wakes:
            self.notify()

    def _free(self, queue: int, messages: list[PopMessage]) -> None:
        self.queues[queue].extendleft(reversed(messages))
        self._pending += len(messages)
        self.acknowledged(queue, len(messages))

    def _has_some(self) -> bool:
        if self.retry:
            return True
        if not self.blocked:
            return self._pending > 0
        return any(queue and place not in self.blocked for place, queue in enumerate(self.queues))

    def _pop(self) -> list[PopMessage]:
        """One request's messages (`processRequest`): the retry topic first or last, queues from a random one on."""
        number = self._numbers.below(rules.RANDOM_QUEUES)
        found: list[PopMessage] = []
        if not self._pending and not self.retry:
            return found
        retry_first, places = self._rules.order(number, len(self.queues), self._scenario)
        if retry_first:
            self._move(self.retry, found)
        for place in places:
            if place not in self.blocked and (moved := self._move(self.queues[place], found)):
                self._pending -= moved
                if self._scenario.fifo:
                    self.blocked[place] = moved
        self._move(self.retry, found)
        for message in found:
            message.deliveries += 1
        return found

    def _move(self, queue: deque[PopMessage], found: list[PopMessage]) -> int:
        number = min(len(queue), self._scenario.batch - len(found))
        found.extend(queue.popleft() for _ in range(number))
        return number


class ReceiveSimulation:
    def __init__(self, queues: Sequence[MessageQueue], scenario: ReceiveScenario, trial: int) -> None:
        self.queues, self.scenario, self.trial = queues, scenario, trial
        self.clock = Clock()
        self.messages: list[PopMessage] = []  # measured ones
        self.further = 0  # messages that came after them
        self.not_stored = self.dead_lettered = self.longest_wait = 0
        self.back: list[int] = []  # times from the first delivery to later ones
        self.outages = [Outage(failure) for failure in scenario.failures]
        failing = grouped(
            (each.failure.broker_name, each) for each in sorted(self.outages, key=lambda each: each.begin)
        )
        counts = enumerate(Counter(queue.broker_name for queue in queues).items())
        self.brokers = [PopBroker(self, name, at, number, failing.get(name, ())) for at, (name, number) in counts]
        self._by_name = {broker.name: broker for broker in self.brokers}
        self._broker_of = [self._by_name[queue.broker_name] for queue in queues]
        self._proxy, simple = _Proxy(self), scenario.client == "simple"
        self._one_by_one = simple or scenario.fifo  # the application consumes the messages of a receive in turn
        self._assigned = self._broker_of if scenario.fifo else self.brokers
        self._loops = scenario.loops if simple else len(self._assigned)
        deaths = {crash.consumer: crash.at_us for crash in scenario.crashes}
        turns = ((each, self.draws(_CONSUMER, each).below(_JAVA_INT)) for each in range(1, scenario.consumers + 1))
        self.consumers = [Receiver(each, deaths.get(each, NEVER), turn, self._broker_of) for each, turn in turns]
        self._invisible_us, self._pause_us = rules.invisible_us(scenario), rules.error_pause_us(scenario)
        self._out_us = scenario.round_trip_us // 2
        self._back_us = scenario.round_trip_us - self._out_us
        self._all_measured = False  # all messages to be measured have arrived
        self._arrivals = self._at_rates() if scenario.rates else self._rare()

    def draws(self, kind: int, place: int = 0) -> Draws:
        return Draws(stream_key(self.scenario.seed, self.trial, kind * _PLACES + place))

    def run(self, progress: Callable[[int], None] | None = None, until_wait_us: int = NEVER) -> None:
        """Simulate until everything is over, or a message has waited longer; `progress` gets numbers of messages."""
        for name in dict.fromkeys(failure.broker_name for failure in self.scenario.failures):
            broker = self._by_name[name]
            for outage in broker.outages:
                self.clock.call(outage.begin, broker.fail, outage)
                if outage.end < NEVER:
                    self.clock.call(outage.end, broker.recover)
        for crash in self.scenario.crashes:
            for broker in self.brokers:
                self.clock.call(crash.at_us, broker.client_died)
        for consumer in self.consumers:
            for loop in range(self._loops):
                self.clock.call(0, self._receive, consumer, loop)
        self._next_arrival()
        reported = 0
        while self.longest_wait <= until_wait_us and not self._over() and self.clock.do_next(LONGEST_US):
            if progress is not None and len(self.messages) >= reported:
                progress(reported)
                reported += _REPORTED_EVERY

    def _over(self) -> bool:
        return self._all_measured and not any(broker.open for broker in self.brokers if not broker.gone)

    def _receive(self, consumer: Receiver, loop: int) -> None:
        now = self.clock.now
        if consumer.dead(now):
            return
        if self.scenario.client == "simple":
            if self.outages:
                polled = last_tick(rules.FIRST_ROUTE_US, rules.ROUTE_US, now)
                gone = {each for each in self.brokers if not self._proxy.has(each, polled)}
                # A client keeps its list when the route has no queue any more.
                consumer.brokers = [each for each in self._broker_of if each not in gone] or consumer.brokers
            broker = consumer.brokers[consumer.turn % len(consumer.brokers)]
            consumer.turn += 1
            self._send(consumer, loop, self._proxy.select(broker, now))
            return
        broker = self._assigned[loop]
        if self.scenario.client == "pop":
            rebalanced, next_us = last_tick(0, rules.REBALANCE_US, now), rules.REBALANCE_US
            assigned = broker.registered(last_tick(rules.FIRST_POP_ROUTE_US, rules.ROUTE_US, rebalanced))
        else:
            queried, next_us = last_tick(rules.FIRST_ASSIGNMENT_US, rules.ASSIGNMENT_US, now), rules.ASSIGNMENT_US
            assigned = self._proxy.has(broker, queried)
        if not assigned:
            self.clock.call(next_us, self._receive, consumer, loop)  # until an assignment has the broker
        else:
            self._send(consumer, loop, broker if self.scenario.client == "pop" else self._proxy.select(broker, now))

    def _send(self, consumer: Receiver, loop: int, broker: PopBroker | None) -> None:
        receive = Receive(consumer, loop, broker or self.brokers[0], self.clock.now)
        receive.broker.receives += 1
        if broker is None:
            self.clock.call(max(self.scenario.round_trip_us, 1), self._fail, receive, None)
        else:
            self.clock.call(self._out_us, broker.arrive, receive)

    def meet_outage(self, receive: Receive) -> None:
        """End a receive that arrives while its broker fails, or that waits when its broker begins to fail."""
        outage = receive.broker.outage(self.clock.now)
        if outage is not None and outage.silent:
            delay_us = receive.started + rules.silence_us(self.scenario) - self.clock.now
        else:
            delay_us = self._back_us + (0 if outage is None else outage.failure.reaction.cost_us)
        self.clock.call(max(delay_us, 1), self._fail, receive, outage)

    def _fail(self, receive: Receive, outage: Outage | None) -> None:
        now = self.clock.now
        if receive.consumer.dead(now):
            return
        receive.broker.failed += 1
        if outage is not None:
            outage.failed += 1
            outage.last_failed = now
        self.clock.call(self._pause_us, self._receive, receive.consumer, receive.loop)

    def answer(self, receive: Receive, messages: list[PopMessage]) -> None:
        """Carry an answer back; without messages the receive's time is over."""
        popped_at = self.clock.now
        if not receive.consumer.dead(popped_at + self._back_us):
            self.clock.call(self._back_us, self._answered, receive, messages, popped_at)
        elif messages:
            # The Proxy hands back messages that it cannot write (`processThrowableWhenWriteMessage`).
            late_us = self._invisible_us if self.scenario.client == "pop" else rules.CLEARED_US
            self._orphaned(receive, messages, popped_at + late_us)

    def _answered(self, receive: Receive, messages: list[PopMessage], popped_at: int) -> None:
        for message in messages:
            self._delivered(message, receive.consumer.number)
        if messages:
            self._settle(receive, messages, popped_at)
        busy_us = len(messages) * self.scenario.consume_us if self.scenario.client == "simple" else 0
        if busy_us:
            self.clock.call(busy_us, self._receive, receive.consumer, receive.loop)
        else:
            self._receive(receive.consumer, receive.loop)

    def _delivered(self, message: PopMessage, consumer: int) -> None:
        now, broker = self.clock.now, message.broker
        for outage in broker.outages:
            if now >= outage.end and outage.received_again is None:
                outage.received_again = now
        if not message.number:
            return
        if message.received is None:
            message.received, message.consumer = now, consumer
            wait = now - message.stored
            broker.waits.append(wait)
            self.longest_wait = max(self.longest_wait, wait)
            if message.outage is not None:
                message.outage.longest_wait = max(message.outage.longest_wait or 0, wait)
        else:
            self.back.append(now - message.received)
        if message.had is not None:
            message.had.again.append(now - message.had.dies_at)
            message.had = None

    def _settle(self, receive: Receive, messages: list[PopMessage], popped_at: int) -> None:
        now, broker, consume_us = self.clock.now, receive.broker, self.scenario.consume_us
        renewed = self.scenario.client == "push"  # and acknowledged again and again
        visible_at = NEVER if renewed else popped_at + self._invisible_us
        orphans, late = list[PopMessage](), list[PopMessage]()
        for place, message in enumerate(messages):
            done_at = now + consume_us * (place + 1 if self._one_by_one else 1)
            if receive.consumer.dead(done_at):
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
            heartbeats = self.draws(_CONSUMER, receive.consumer.number + _HEARTBEATS).below(rules.HEARTBEAT_US)
            scans = self.draws(_PROXY, 2).below(rules.EXPIRY_SCAN_US)
            cleared = rules.cleared_at(receive.consumer.dies_at, heartbeats, scans)
            self._orphaned(receive, orphans, cleared + rules.CLEARED_US, known_at=cleared)
        elif orphans:
            self._orphaned(receive, orphans, visible_at)

    def _acknowledge(self, message: PopMessage, broker: PopBroker, done_at: int) -> None:
        message.done = done_at
        if message.number:
            message.broker.open -= 1
        if self.scenario.fifo and done_at > self.clock.now:
            self.clock.call(done_at - self.clock.now, broker.acknowledged, message.queue)
        elif self.scenario.fifo:
            broker.acknowledged(message.queue)

    def _orphaned(self, receive: Receive, messages: list[PopMessage], visible_at: int, known_at: int = 0) -> None:
        for message in messages:
            # A message that several orphaned receives get, one after the other, counts once.
            if message.number and message.had is None:
                receive.consumer.unacknowledged += 1
                message.had = receive.consumer
        self.clock.call(max(known_at - self.clock.now, 0), self._come_back, receive.broker, messages, visible_at)

    def _come_back(self, broker: PopBroker, messages: list[PopMessage], visible_at: int) -> None:
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

    def _rare(self) -> Iterator[tuple[int, int]]:
        round_us = rules.longest_receive_us(self.scenario)  # for all receives to go round once when no message comes
        if self.scenario.client == "simple":
            round_us *= -(-len(self.queues) // (self.scenario.loops * self.scenario.consumers))
        numbers, now = self.draws(_ARRIVALS), 0
        while True:
            now += round_us + numbers.below(2 * round_us + 1)
            yield now, numbers.below(len(self.queues))

    def _at_rates(self) -> Iterator[tuple[int, int]]:
        places = {(queue.broker_name, queue.queue_id): place for place, queue in enumerate(self.queues)}
        streams: dict[int, tuple[Draws, float]] = {}
        for rate in self.scenario.rates:
            place = places[rate.broker_name, rate.queue_id]
            streams[place] = self.draws(_ARRIVALS, place), float(1_000_000 / rate.per_second)
        due = [(_gap(*stream), place) for place, stream in streams.items()]
        heapify(due)
        while True:
            at, place = due[0]
            heapreplace(due, (at + _gap(*streams[place]), place))
            yield at, place

    def _next_arrival(self) -> None:
        scenario, now = self.scenario, self.clock.now
        if scenario.messages is not None and len(self.messages) + self.not_stored >= scenario.messages:
            self._all_measured = True
        at, place = next(self._arrivals)
        if not self._all_measured and scenario.duration_us is not None and at >= scenario.duration_us:
            self.clock.call(max(scenario.duration_us - now, 0), self._measure_no_more)
        self.clock.call(max(at - now, 0), self._arrive, place)

    def _measure_no_more(self) -> None:
        self._all_measured = True

    def _arrive(self, place: int) -> None:
        measured = not self._all_measured
        if not measured and not self._goes_on():
            return
        broker, now = self._broker_of[place], self.clock.now
        if broker.outage(now) is None:
            message = PopMessage(len(self.messages) + 1 if measured else 0, broker, self.queues[place].queue_id, now)
            if measured:
                self.messages.append(message)
                broker.measured, broker.open = broker.measured + 1, broker.open + 1
            else:
                self.further += 1
            broker.store(message)
        else:
            self.not_stored += measured
        self._next_arrival()

    def _goes_on(self) -> bool:
        if not self.scenario.rates or self.further >= MOST_FURTHER:
            return False
        awaits_one = any(broker.measured > len(broker.waits) for broker in self.brokers if not broker.gone)
        return awaits_one and any(not consumer.dead(self.clock.now) for consumer in self.consumers)


def _gap(numbers: Draws, mean_us: float) -> int:
    return round(-log((numbers.below(_FINE) + 1) / _FINE) * mean_us)


class _Proxy:
    """The Proxy's view of the route, which is up to 20 s old."""

    def __init__(self, simulation: ReceiveSimulation) -> None:
        self._sorted = sorted(simulation.brokers, key=lambda broker: sort_key(broker.name))
        self._phase = simulation.draws(_PROXY).below(rules.PROXY_ROUTE_US)
        self._turn = simulation.draws(_PROXY, 1).below(1 << 31)

    def has(self, broker: PopBroker, now: int) -> bool:
        return broker.registered(last_tick(self._phase, rules.PROXY_ROUTE_US, now))

    def select(self, broker: PopBroker, now: int) -> PopBroker | None:
        """The named broker if the view has it, otherwise the next one (`ReceiveMessageQueueSelector.select`)."""
        if self.has(broker, now):
            return broker
        known = [each for each in self._sorted if self.has(each, now)]
        if not known:
            return None
        self._turn += 1
        return known[self._turn % len(known)]
