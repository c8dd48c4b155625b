"""A broker: its queues, the retry topic, the receives that wait there, and the services that bring messages back.

`Broker` mirrors `PopMessageProcessor.processRequest` and `.popMsgFromTopic`, `PopLongPollingService` and, in order,
`ConsumerOrderInfoManager`, by the scenario's broker version. The Proxy and POP clients with the default
`popShareQueueNum` request queue −1, which means any queue.

`ReviveService` is 5.5.0's `PopReviveService`: `_run` is its `run`, `_read` its `consumeReviveMessage` and
`mergeAndRevive`. A broker has several, each with a queue of its own. A receive that takes messages writes a checkpoint,
and each acknowledgement an entry of its own; the timer wheel hands them over to the queue when they are due
(`popConsumerKVServiceEnable` and `enablePopBufferMerge` at their defaults, off). Entries stay until a later checkpoint
is done with, so acknowledgements behind the last checkpoint are read each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from msgspec import Struct

from rmqlb.engine.kernel import Clock, Draws, Steps, stream_key
from rmqlb.engine.simulate_receive import rules
from rmqlb.model.limits import LONGEST_US
from rmqlb.model.send_scenario import Failure
from rmqlb.model.simulate_receive import ReceiveScenario

UNKNOWN = -1
NEVER = 1 << 62
_REST_US = (1 + rules.REVIVE_MOST_SLOW) * rules.REVIVE_INTERVAL_US
_QUIET_STEPS = rules.REVIVE_QUIET_US // rules.REVIVE_STEP_US + 1
IDLE_US = _REST_US + _QUIET_STEPS * rules.REVIVE_STEP_US
"""How long a service with nothing to do takes for a rest and a look."""
_PLACES = 1 << 32
ARRIVALS, BROKER, CONSUMER, PROXY = range(4)


def draws(scenario: ReceiveScenario, trial: int, kind: int, place: int = 0) -> Draws:
    """The random numbers of one broker, consumer, queue's arrivals, or of the Proxy."""
    return Draws(stream_key(scenario.seed, trial, kind * _PLACES + place))


class Message(Struct, eq=False):
    """A message; one with number 0 came after the measured ones and counts nowhere."""

    number: int
    broker: Broker
    queue: int
    stored: int
    deliveries: int = 0
    received: int = UNKNOWN  # when a client first had it
    consumer: int = UNKNOWN  # number of that client
    done: int = UNKNOWN  # when it was acknowledged
    outage: Outage | None = None  # the failure during which it was on its broker
    had: Client | None = None  # the dead client from which it has to come back


class Client:
    """A process of the group, and what becomes of the messages that it has when it dies."""

    def __init__(self, number: int, dies_at: int | None) -> None:
        self.number = number
        self.dies_at = dies_at
        self.unacknowledged = 0
        self.again: list[int] = []  # how long after its death others received them

    def dead(self, at: int) -> bool:
        return self.dies_at is not None and self.dies_at <= at


class Receive:
    """One request for messages."""

    __slots__ = ("broker", "client", "loop", "orphan", "started", "waiting")

    def __init__(self, client: Client, loop: int, broker: Broker, started: int) -> None:
        self.client = client
        self.loop = loop
        self.broker = broker
        self.started = started
        self.waiting = False  # at its broker
        self.orphan = False  # its client has died while it waited


class Outage:
    """A broker's failure, in microseconds, and its effect."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.begin = failure.start.us or 0
        self.end = NEVER if failure.end is None or failure.end.us is None else failure.end.us
        self.dropped = NEVER if failure.notices_us is None else self.begin + failure.notices_us
        self.silent = failure.reaction.kind == "timeout"
        self.failed = 0
        self.last_failed = self.longest_wait = self.received_again = UNKNOWN


class TimerWheel(NamedTuple):
    """The timer of a broker: when its full seconds begin, and how much later it looks which have passed."""

    second: int
    late: int

    def handed_over(self, due: int, now: int) -> int:
        """When an entry comes to its queue.

        The wheel counts an entry to the last full second before it is due, and hands it over when that has passed.

        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=0), TimerWheel(0, 0).handed_over(9_000_000, now=0)
        (10050000, 9000000)
        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=9_400_000)
        9400000
        """
        return now if due <= now else due + (self.second - due) % rules.TIMER_SECOND_US + self.late

    def is_behind(self, now: int) -> bool:
        """Whether a second has passed at which it has not looked yet (`getDequeueBehind`)."""
        return (now - self.second) % rules.TIMER_SECOND_US < self.late


class _Entry(NamedTuple):
    due: int
    visible: int | None  # of a checkpoint: when its messages are visible again
    messages: tuple[Message, ...]  # of a checkpoint: those that will not be acknowledged


class ReviveService:
    """One service.

    Args:
        clock: of the simulation.
        timer: of the service's broker.
        age: how long ago a rest began; the service had nothing to do until now.
        revive: moves messages to the retry topic.
    """

    def __init__(
        self, clock: Clock, timer: TimerWheel, age: int, revive: Callable[[tuple[Message, ...]], None]
    ) -> None:
        self._clock, self._timer, self._revive = clock, timer, revive
        self._entries: list[_Entry] = []  # in its queue
        self._asleep = False  # until a checkpoint comes
        self._process = clock.start(self._run(clock.now - age))

    def checkpoint(self, visible_at: int, messages: tuple[Message, ...], *, acknowledged: bool) -> None:
        """Record a receive: `messages` will not be acknowledged in time; others may be."""
        self._hand_over(_Entry(visible_at - rules.REVIVE_EARLY_US, visible_at, messages))
        if acknowledged:
            self._hand_over(_Entry(visible_at, None, ()))

    def _hand_over(self, entry: _Entry) -> None:
        now = self._clock.now
        self._clock.call(self._timer.handed_over(entry.due, now) - now, self._handed_over, entry)

    def _handed_over(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self._asleep and entry.visible is not None:
            self._asleep = False
            self._process.sleep(0)

    def _run(self, rest_began: int) -> Steps:
        slow = rules.REVIVE_MOST_SLOW
        rest_us = _REST_US
        while True:
            looks = 0
            if rest_us == _REST_US and all(entry.visible is None for entry in self._entries):
                looks = yield from self._sleep(rest_began)
            else:
                yield rest_us
            if (yield from self._read(looks)):
                slow, rest_us = 1, rules.REVIVE_INTERVAL_US
            else:
                rest_us = (1 + slow) * rules.REVIVE_INTERVAL_US
                slow = min(slow + 1, rules.REVIVE_MOST_SLOW)
            rest_began = self._clock.now

    def _sleep(self, rest_began: int) -> Generator[int, None, int]:
        """Skip rests and looks without a checkpoint; return how often the present look has found nothing."""
        round_us = _REST_US if self._entries else IDLE_US
        self._asleep = True
        yield LONGEST_US
        place = (self._clock.now - rest_began) % round_us
        if place < _REST_US:
            yield _REST_US - place
            return 0
        looks, since = divmod(place - _REST_US, rules.REVIVE_STEP_US)
        yield rules.REVIVE_STEP_US - since
        return looks + 1

    def _read(self, looks: int) -> Generator[int, None, bool]:
        """Read entries until they cover two seconds or no more come; return whether there were checkpoints."""
        clock, entries = self._clock, self._entries
        began = clock.now
        read, end, first = 0, -1, -1
        while looks < _QUIET_STEPS:
            if len(entries) > read:
                if clock.now - began > rules.REVIVE_SCAN_US:
                    break
                for entry in entries[read:]:
                    end = max(end, entry.due)
                    if entry.visible is not None and first < 0:
                        first = entry.visible
                read, looks = len(entries), 0
            if end >= 0:
                if clock.now - end > rules.REVIVE_STALE_US and not self._timer.is_behind(clock.now):
                    end = clock.now
                if first < 0 or end - first > rules.REVIVE_LAG_US:
                    break
            looks += 1
            yield rules.REVIVE_STEP_US
        return self._merge(read, end)

    def _merge(self, read: int, end: int) -> bool:
        """Bring back the messages that are old enough; return whether there were checkpoints."""
        done = 0
        for place, entry in enumerate(self._entries[:read]):
            if entry.visible is None:
                continue
            if end - entry.visible <= rules.REVIVE_LAG_US:
                break
            if entry.messages:
                self._revive(entry.messages)
            done = place + 1
        found = any(entry.visible is not None for entry in self._entries[:read])
        del self._entries[:done]
        return found


class Broker:
    """One broker of the topic.

    Args:
        name: its name.
        place: among all brokers.
        queues: the number of its queues that can be read.
        outages: its failures, by their beginnings.
        clock: of the simulation.
        scenario: what is simulated.
        trial: which of many runs.
        answer: takes a receive with its messages; without messages the receive's time is over.
        meets_outage: takes a receive that arrives while the broker fails, or that waits when it begins to fail.
    """

    def __init__(
        self,
        name: str,
        place: int,
        queues: int,
        outages: Sequence[Outage],
        clock: Clock,
        scenario: ReceiveScenario,
        trial: int,
        answer: Callable[[Receive, list[Message]], None],
        meets_outage: Callable[[Receive], None],
    ) -> None:
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
        self._alive = 0  # of these, receives of living clients
        self._pending = 0  # messages in queues
        self._clock, self._scenario, self._rules = clock, scenario, rules.broker_rules(scenario.broker_version)
        self._answer, self._meets_outage = answer, meets_outage
        self._awaited_us = rules.awaited_us(scenario)
        self._numbers = draws(scenario, trial, BROKER, place)
        self._scan_phase = self._numbers.below(rules.SCAN_US)
        self._lock_phase = self._numbers.below(rules.LOCK_TICK_US)
        self._services = self._revive_services() if rules.may_come_back(scenario) else []
        self._checkpoints = 0

    def outage(self, now: int) -> Outage | None:
        """The failure at that time; of several the last to begin."""
        return next((each for each in reversed(self.outages) if each.begin <= now < each.end), None)

    def back_at(self, now: int) -> int:
        """When the broker works again; `now` if it does."""
        while now < NEVER and (outage := self.outage(now)) is not None:
            now = outage.end
        return now

    def registered(self, at: int) -> bool:
        """Whether the NameServer had the broker just before that time; at the start it had all."""
        return at <= 0 or not any(each.dropped < at <= each.end and each.dropped < each.end for each in self.outages)

    def store(self, message: Message) -> None:
        self.queues[message.queue].append(message)
        self._pending += 1
        self.notify()

    def arrive(self, receive: Receive) -> None:
        """Give a receive what is there, or let it wait."""
        now = self._clock.now
        if self.outage(now) is not None:
            self._meets_outage(receive)
            return
        if receive.client.dead(now):
            return
        self._polled(now)
        self._alive += 1
        found = self._pop()
        if found:
            self._leave(receive)
            self._answer(receive, found)
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
                self._answer(receive, found)

    def fail(self, outage: Outage) -> None:
        for queue in (*self.queues, self.retry):
            for message in queue:
                message.outage = outage
        waiting = [receive for receive in self._waiting if receive.waiting]
        self._waiting.clear()
        for receive in waiting:
            self._leave(receive)
        for receive in waiting:
            self._meets_outage(receive)
        self._polled(self._clock.now)
        self.gone |= self.back_at(self._clock.now) >= NEVER

    def recover(self) -> None:
        if self.outage(self._clock.now) is None:
            self._unpolled_since = self._clock.now

    def client_died(self) -> None:
        """End receives of dead remoting clients, whose connections are closed; the Proxy's go on waiting."""
        now = self._clock.now
        for receive in self._waiting:
            if receive.waiting and not receive.orphan and receive.client.dead(now):
                self._leave(receive)
                receive.orphan = True
                receive.waiting = self._scenario.client != "pop"

    def come_back(self, messages: list[Message], visible_at: int) -> None:
        """Make messages of one receive visible again, because they are not acknowledged."""
        if self._scenario.fifo:
            by_queue: dict[int, list[Message]] = {}
            for message in messages:
                by_queue.setdefault(message.queue, []).append(message)
            for queue, own in by_queue.items():
                self._at(rules.free_at(visible_at, self._lock_phase), self._free, queue, own)
            return
        self._next_service().checkpoint(visible_at, tuple(messages), acknowledged=False)

    def checkpoint(self, visible_at: int) -> None:
        """Record a receive whose messages are all acknowledged in time: the revive services read it too."""
        if self._services and not self._scenario.fifo:
            self._next_service().checkpoint(visible_at, (), acknowledged=True)

    def acknowledged(self, queue: int, messages: int = 1) -> None:
        """In order, the last message that is done frees its queue (`AckMessageProcessor.ackOrderly`)."""
        self.blocked[queue] -= messages
        if not self.blocked[queue]:
            del self.blocked[queue]
            self.notify()

    def _at(self, when: int, action: Callable[..., None], *arguments: object) -> None:
        """Do it then, or when the broker works again, if ever."""
        now = self._clock.now
        when = self.back_at(max(when, now))
        if when < NEVER:
            self._clock.call(when - now, action, *arguments)

    def _revive_services(self) -> list[ReviveService]:
        below = self._numbers.below
        timer = TimerWheel(below(rules.TIMER_SECOND_US), below(rules.TIMER_LOOK_US))
        return [ReviveService(self._clock, timer, below(IDLE_US), self._revive) for _ in range(rules.REVIVE_QUEUES)]

    def _next_service(self) -> ReviveService:
        self._checkpoints += 1
        return self._services[self._checkpoints % rules.REVIVE_QUEUES]

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
        self._answer(receive, found)

    def _polled(self, now: int) -> None:
        if self._unpolled_since is not None:
            self.unpolled_us = max(self.unpolled_us, now - self._unpolled_since)
            self._unpolled_since = None

    def _leave(self, receive: Receive) -> None:
        receive.waiting = False
        if receive.orphan:
            return
        self._alive -= 1
        if not self._alive:
            self._unpolled_since = self._clock.now

    def _has_some(self) -> bool:
        if self.retry:
            return True
        if not self.blocked:
            return self._pending > 0
        return any(queue and place not in self.blocked for place, queue in enumerate(self.queues))

    def _pop(self) -> list[Message]:
        """What one request gets (`processRequest`): the retry topic first or last, queues from a random one on."""
        number = self._numbers.below(rules.RANDOM_QUEUES)
        found: list[Message] = []
        if not self._pending and not self.retry:
            return found
        batch = self._scenario.batch
        if self._rules.retry_first(number):
            _move(self.retry, found, batch)
        for place in self._rules.walk(number, len(self.queues)):
            if not self.queues[place] or len(found) >= batch or place in self.blocked:
                continue
            before = len(found)
            _move(self.queues[place], found, batch)
            self._pending -= len(found) - before
            if self._scenario.fifo:
                self.blocked[place] = len(found) - before
        _move(self.retry, found, batch)
        for message in found:
            message.deliveries += 1
        return found


def _move(queue: deque[Message], found: list[Message], batch: int) -> None:
    while queue and len(found) < batch:
        found.append(queue.popleft())
