"""A broker of the simulation: its queues, its retry topic, and its waiting receives.

`Broker` mirrors `PopMessageProcessor.processRequest` and `.popMsgFromTopic`, `PopLongPollingService` and, in order,
`ConsumerOrderInfoManager`, by the scenario's broker version. The Proxy and POP clients with the default
`popShareQueueNum` request queue −1, which means any queue.

The services that bring back unacknowledged messages mirror `PopReviveService` of 5.5.0: `_run` is its `run`, `_read`
its `consumeReviveMessage`, `_merge` its `mergeAndRevive`. A broker has several, each with a queue of its own. A receive
that takes messages writes a checkpoint, and each acknowledgement its own entry; the timer wheel hands the entries over
to the queue when they are due (`popConsumerKVServiceEnable` and `enablePopBufferMerge` at their defaults, off). Entries
stay until a later checkpoint is done, so acknowledgements behind the last checkpoint are read each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from rmqlb.engine.kernel import Clock, Draws, Steps
from rmqlb.engine.simulate_receive import rules
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import ReceiveScenario

_REST_US = (1 + rules.REVIVE_MOST_SLOW) * rules.REVIVE_INTERVAL_US
_QUIET_STEPS = rules.REVIVE_QUIET_US // rules.REVIVE_STEP_US + 1
IDLE_US = _REST_US + _QUIET_STEPS * rules.REVIVE_STEP_US
"""The time of an idle service for a rest and a scan."""


class TimerWheel(NamedTuple):
    """A broker's timer: when its full seconds begin, and how much later it checks which have passed."""

    second: int
    late: int

    def handed_over(self, due: int, now: int) -> int:
        """The time at which an entry reaches its queue: the next check after the full second in which it is due.

        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=0), TimerWheel(0, 0).handed_over(9_000_000, now=0)
        (10050000, 9000000)
        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=9_400_000)
        9400000
        """
        return now if due <= now else due + (self.second - due) % rules.TIMER_SECOND_US + self.late

    def is_behind(self, now: int) -> bool:
        """Whether a second has passed that the wheel has not checked yet (`getDequeueBehind`)."""
        return (now - self.second) % rules.TIMER_SECOND_US < self.late


class _Entry(NamedTuple):
    due: int
    visible: int | None  # of a checkpoint: time at which its messages are visible again
    messages: tuple[Any, ...]  # of a checkpoint: its messages without acknowledgement


class ReviveService:
    """One service, idle since its rest began `age` ago; `revive` moves messages to the retry topic."""

    def __init__(self, clock: Clock, timer: TimerWheel, age: int, revive: Callable[[tuple[Any, ...]], None]) -> None:
        self._clock, self._timer, self._revive = clock, timer, revive
        self._entries: list[_Entry] = []  # in its queue
        self._asleep = False  # until a checkpoint comes
        self._process = clock.start(self._run(clock.now - age))

    def checkpoint(self, visible_at: int, messages: tuple[Any, ...], *, acknowledged: bool) -> None:
        """Record a receive: `messages` will not be acknowledged in time; others may be."""
        self._write(_Entry(visible_at - rules.REVIVE_EARLY_US, visible_at, messages))
        if acknowledged:
            self._write(_Entry(visible_at, None, ()))

    def _write(self, entry: _Entry) -> None:
        now = self._clock.now
        self._clock.call(self._timer.handed_over(entry.due, now) - now, self._append, entry)

    def _append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self._asleep and entry.visible is not None:
            self._asleep = False
            self._process.sleep(0)

    def _run(self, rest_began: int) -> Steps:
        slow, rest_us = rules.REVIVE_MOST_SLOW, _REST_US
        while True:
            steps = 0
            if rest_us == _REST_US and all(entry.visible is None for entry in self._entries):
                steps = yield from self._sleep(rest_began)
            else:
                yield rest_us
            if (yield from self._read(steps)):
                slow, rest_us = 1, rules.REVIVE_INTERVAL_US
            else:
                rest_us = (1 + slow) * rules.REVIVE_INTERVAL_US
                slow = min(slow + 1, rules.REVIVE_MOST_SLOW)
            rest_began = self._clock.now

    def _sleep(self, rest_began: int) -> Generator[int, None, int]:
        """Skip rests and checks without a checkpoint; return how often the current check has found nothing."""
        round_us = _REST_US if self._entries else IDLE_US
        self._asleep = True
        yield LONGEST_US
        place = (self._clock.now - rest_began) % round_us
        if place < _REST_US:
            yield _REST_US - place
            return 0
        steps, since = divmod(place - _REST_US, rules.REVIVE_STEP_US)
        yield rules.REVIVE_STEP_US - since
        return steps + 1

    def _read(self, steps: int) -> Generator[int, None, bool]:
        """Read entries until they cover two seconds or no more come; return whether there were checkpoints."""
        clock, entries, began = self._clock, self._entries, self._clock.now
        read, end, first = 0, -1, -1
        while steps < _QUIET_STEPS:
            if len(entries) > read:
                if clock.now - began > rules.REVIVE_SCAN_US:
                    break
                for entry in entries[read:]:
                    end = max(end, entry.due)
                    if entry.visible is not None and first < 0:
                        first = entry.visible
                read, steps = len(entries), 0
            if end >= 0:
                if clock.now - end > rules.REVIVE_STALE_US and not self._timer.is_behind(clock.now):
                    end = clock.now
                if first < 0 or end - first > rules.REVIVE_LAG_US:
                    break
            steps += 1
            yield rules.REVIVE_STEP_US
        return self._merge(read, end)

    def _merge(self, read: int, end: int) -> bool:
        done, entries = 0, self._entries
        for place, entry in enumerate(entries[:read]):
            if entry.visible is not None:
                if end - entry.visible <= rules.REVIVE_LAG_US:
                    break
                if entry.messages:
                    self._revive(entry.messages)
                done = place + 1
        found = any(entry.visible is not None for entry in entries[:read])
        del entries[:done]
        return found


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

    def _move(self, queue: deque[Message], found: list[Message]) -> int:
        number = min(len(queue), self._scenario.batch - len(found))
        found.extend(queue.popleft() for _ in range(number))
        return number
