"""A broker of the simulation: its queues, its retry topic, and its waiting receives.

`Broker` mirrors `PopMessageProcessor.processRequest` and `.popMsgFromTopic`, `PopLongPollingService` and, in order,
`ConsumerOrderInfoManager`, by the scenario's broker version. The Proxy and POP clients with the default
`popShareQueueNum` request queue −1, which means any queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, field

from rmqlb.engine.kernel import Clock, Draws
from rmqlb.engine.simulate_receive import rules
from rmqlb.engine.simulate_receive.revive import IDLE_US, ReviveService, TimerWheel
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import ReceiveScenario

UNKNOWN = -1
NEVER = 1 << 62
BROKER = 1
"""The kind of brokers' random numbers."""


class Message(Struct, eq=False):
    """A message; messages with number 0 came after the measured ones and count nowhere."""

    number: int
    broker: Broker
    queue: int
    stored: int
    deliveries: int = 0
    received: int = UNKNOWN  # by a client, for the first time
    consumer: int = UNKNOWN  # number of that client
    done: int = UNKNOWN  # time of its acknowledgement
    outage: Outage | None = None  # the failure during which the message was on its broker
    had: Consumer | None = None  # the dead consumer from which the message has to come back


class Consumer(Struct, eq=False):
    number: int
    dies_at: int
    turn: int  # of a SimpleConsumer: counts its receives, from a random number
    brokers: Sequence[Broker]  # of a SimpleConsumer: by queue, in the order of its rotation
    unacknowledged: int = 0  # messages at its death
    again: list[int] = field(default_factory=list)  # the times from its death to their next receive

    def dead(self, at: int) -> bool:
        return self.dies_at <= at


class Receive(Struct, eq=False):
    consumer: Consumer
    loop: int
    broker: Broker
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
        self.last_failed = self.longest_wait = self.received_again = UNKNOWN


class Network(Protocol):
    scenario: ReceiveScenario
    clock: Clock

    def draws(self, kind: int, place: int = 0) -> Draws: ...

    def answer(self, receive: Receive, messages: list[Message]) -> None:
        """Carry an answer back; without messages the receive's time is over."""

    def meet_outage(self, receive: Receive) -> None:
        """End a receive that arrives while the broker fails, or that waits when it begins to fail."""


class Broker:
    def __init__(self, network: Network, name: str, place: int, queues: int, outages: Sequence[Outage]) -> None:
        self.name, self.outages = name, outages
        self.queues: list[deque[Message]] = [deque() for _ in range(queues)]
        self.retry: deque[Message] = deque()
        self.blocked: dict[int, int] = {}  # in order: queue → messages of it that are not acknowledged
        self.receives = self.empty = self.failed = 0
        self.waits: list[int] = []  # of messages received first
        self.open = 0  # messages stored here that are neither acknowledged nor dead letters
        self.gone = False  # fails for good
        self.unpolled_us = 0
        self._unpolled_since: int | None = 0  # None while a receive waits here, or the broker fails
        self._waiting: deque[Receive] = deque()  # in the order in which they are over; some do not wait any more
        self._alive = 0  # receives of living clients that wait
        self._pending = 0  # messages in queues
        self._network, self._clock, self._scenario = network, network.clock, network.scenario
        self._rules = rules.broker_rules(self._scenario.broker_version)
        self._awaited_us = rules.awaited_us(self._scenario)
        self._numbers = network.draws(BROKER, place)
        below = self._numbers.below
        self._scan_phase, self._lock_phase = below(rules.SCAN_US), below(rules.LOCK_TICK_US)
        self._services: list[ReviveService] = []
        if rules.may_come_back(self._scenario):
            timer = TimerWheel(below(rules.TIMER_SECOND_US), below(rules.TIMER_LOOK_US))
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
            self._network.meet_outage(receive)
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
            self._network.meet_outage(receive)
            return
        if receive.consumer.dead(now):
            return
        self._polled()
        self._alive += 1
        found = self._pop()
        if found:
            self._leave(receive)
            self._network.answer(receive, found)
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
                self._network.answer(receive, found)

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
        self._network.answer(receive, found)

    def _polled(self) -> None:
        if self._unpolled_since is not None:
            self.unpolled_us = max(self.unpolled_us, self._clock.now - self._unpolled_since)
            self._unpolled_since = None

    def _leave(self, receive: Receive) -> None:
        receive.waiting = False
        self._alive -= not receive.orphan
        if not receive.orphan and not self._alive:
            self._unpolled_since = self._clock.now

    def store(self, message: Message) -> None:
        self.queues[message.queue].append(message)
        self._pending += 1
        self.notify()

    def come_back(self, messages: list[Message], visible_at: int) -> None:
        if not self._scenario.fifo:
            self._record(visible_at, tuple(messages))
            return
        by_queue: dict[int, list[Message]] = {}
        for message in messages:
            by_queue.setdefault(message.queue, []).append(message)
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

    def _record(self, visible_at: int, messages: tuple[Message, ...]) -> None:
        self._checkpoints += 1
        service = self._services[self._checkpoints % rules.REVIVE_QUEUES]
        service.checkpoint(visible_at, messages, acknowledged=not messages)

    def _revive(self, messages: tuple[Message, ...]) -> None:
        self._at(self._clock.now, self._retry, messages)

    def _retry(self, messages: tuple[Message, ...]) -> None:
        self.retry.extend(messages)
        if self._rules.retry_wakes:
            self.notify()

    def _free(self, queue: int, messages: list[Message]) -> None:
        self.queues[queue].extendleft(reversed(messages))
        self._pending += len(messages)
        self.acknowledged(queue, len(messages))

    def _has_some(self) -> bool:
        if self.retry:
            return True
        if not self.blocked:
            return self._pending > 0
        return any(queue and place not in self.blocked for place, queue in enumerate(self.queues))

    def _pop(self) -> list[Message]:
        """One request's messages (`processRequest`): the retry topic first or last, queues from a random one on."""
        number = self._numbers.below(rules.RANDOM_QUEUES)
        found: list[Message] = []
        if not self._pending and not self.retry:
            return found
        if self._rules.retry_first(number):
            self._move(self.retry, found)
        for place in self._rules.walk(number, len(self.queues)):
            if place not in self.blocked and (moved := self._move(self.queues[place], found)):
                self._pending -= moved
                if self._scenario.fifo:
                    self.blocked[place] = moved
        self._move(self.retry, found)
        for message in found:
            message.deliveries += 1
        return found

    def _move(self, queue: deque[Message], found: list[Message]) -> int:
        number = min(len(queue), self._scenario.batch - len(found))
        found.extend(queue.popleft() for _ in range(number))
        return number
