"""A broker: its queues, the retry topic, the receives that wait there, and the services that bring messages back.

Mirrors `PopMessageProcessor.processRequest` and `.popMsgFromTopic`, `PopLongPollingService` and, in order,
`ConsumerOrderInfoManager`, by the scenario's broker version, for the simulated group. The Proxy asks for queue −1,
which is any (`ReceiveMessageActivity`'s queue selector takes the broker's name only), and so does a POP client whose
`popShareQueueNum` is at its default.

`ReviveService` is 5.5.0's `PopReviveService`: `_run` is its `run`, `_read` its `consumeReviveMessage` and
`mergeAndRevive`. A broker has several, each with a queue of its own. A receive that takes messages writes a checkpoint,
and each acknowledgement an entry of its own; the timer wheel hands them over to the queue when they are due
(`popConsumerKVServiceEnable` and `enablePopBufferMerge` at their defaults, off). Entries stay until a later checkpoint
is done with, so that acknowledgements behind the last one are read each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import NamedTuple

from rmqlb.engine.kernel import Clock, Steps
from rmqlb.engine.simulate_receive.rules import (
    LOCK_TICK_US,
    RANDOM_QUEUES,
    REVIVE_EARLY_US,
    REVIVE_INTERVAL_US,
    REVIVE_LAG_US,
    REVIVE_MOST_SLOW,
    REVIVE_QUEUES,
    REVIVE_QUIET_US,
    REVIVE_SCAN_US,
    REVIVE_STALE_US,
    REVIVE_STEP_US,
    SCAN_US,
    TIMER_LOOK_US,
    TIMER_SECOND_US,
    broker_rules,
    free_at,
    may_come_back,
    over_at,
)
from rmqlb.engine.simulate_receive.world import BROKER, NEVER, Environment, Message, Receive, draws
from rmqlb.model.limits import LONGEST_US

_REST_US = (1 + REVIVE_MOST_SLOW) * REVIVE_INTERVAL_US
_QUIET_STEPS = REVIVE_QUIET_US // REVIVE_STEP_US + 1
IDLE_US = _REST_US + _QUIET_STEPS * REVIVE_STEP_US
"""How long a service with nothing to do takes for a rest and a look."""


Revive = Callable[[tuple[Message, ...]], None]


class TimerWheel(NamedTuple):
    """The timer of a broker: when its full seconds begin, and how much later it looks which have passed."""

    second: int
    late: int

    def handed_over(self, due: int, now: int) -> int:
        """When an entry comes to its queue.

        The wheel takes it for the last full second before it is due, and hands it over when that second has passed.

        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=0), TimerWheel(0, 0).handed_over(9_000_000, now=0)
        (10050000, 9000000)
        >>> TimerWheel(0, 50_000).handed_over(9_400_000, now=9_400_000)
        9400000
        """
        return now if due <= now else due + (self.second - due) % TIMER_SECOND_US + self.late

    def is_behind(self, now: int) -> bool:
        """A second has passed, and it has not looked yet (`getDequeueBehind`)."""
        return (now - self.second) % TIMER_SECOND_US < self.late


class _Entry(NamedTuple):
    due: int
    visible: int | None  # of a checkpoint: when its messages are visible again
    messages: tuple[Message, ...]  # of these, those that will not be acknowledged


class ReviveService:
    """One service.

    Args:
        timer: of its broker.
        age: how long ago a rest began; it had nothing to do until now.
        revive: takes messages that go to the retry topic.
    """

    def __init__(self, clock: Clock, timer: TimerWheel, age: int, revive: Revive) -> None:
        self._clock, self._timer, self._revive = clock, timer, revive
        self._entries: list[_Entry] = []  # handed over
        self._asleep = False  # until a checkpoint comes
        self._process = clock.start(self._run(clock.now - age))

    def checkpoint(self, visible_at: int, messages: tuple[Message, ...], *, acknowledged: bool) -> None:
        """A receive has taken messages, of which these will not be acknowledged in time (others may be)."""
        self._hand_over(_Entry(visible_at - REVIVE_EARLY_US, visible_at, messages))
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
        slow = REVIVE_MOST_SLOW
        rest_us = _REST_US
        while True:
            looks = 0
            if rest_us == _REST_US and all(entry.visible is None for entry in self._entries):
                looks = yield from self._sleep(rest_began)
            else:
                yield rest_us
            if (yield from self._read(looks)):
                slow, rest_us = 1, REVIVE_INTERVAL_US
            else:
                rest_us = (1 + slow) * REVIVE_INTERVAL_US
                slow = min(slow + 1, REVIVE_MOST_SLOW)
            rest_began = self._clock.now

    def _sleep(self, rest_began: int) -> Generator[int, None, int]:
        """Skip rests and looks in which nothing happens; how often the look in which it ends has found nothing."""
        round_us = _REST_US if self._entries else IDLE_US
        self._asleep = True
        yield LONGEST_US
        place = (self._clock.now - rest_began) % round_us
        if place < _REST_US:
            yield _REST_US - place
            return 0
        looks, since = divmod(place - _REST_US, REVIVE_STEP_US)
        yield REVIVE_STEP_US - since
        return looks + 1

    def _read(self, looks: int) -> Generator[int, None, bool]:
        """Read what has come, until it covers two seconds or no more comes; whether there were checkpoints."""
        clock, entries = self._clock, self._entries
        began = clock.now
        read, end, first = 0, -1, -1
        while looks < _QUIET_STEPS:
            if len(entries) > read:
                if clock.now - began > REVIVE_SCAN_US:
                    break
                for entry in entries[read:]:
                    end = max(end, entry.due)
                    if entry.visible is not None and first < 0:
                        first = entry.visible
                read, looks = len(entries), 0
            if end >= 0:
                if clock.now - end > REVIVE_STALE_US and not self._timer.is_behind(clock.now):
                    end = clock.now
                if first < 0 or end - first > REVIVE_LAG_US:
                    break
            looks += 1
            yield REVIVE_STEP_US
        return self._merge(read, end)

    def _merge(self, read: int, end: int) -> bool:
        """Bring back what is old enough; whether there were checkpoints."""
        done = 0
        for place, entry in enumerate(self._entries[:read]):
            if entry.visible is None:
                continue
            if end - entry.visible <= REVIVE_LAG_US:
                break
            if entry.messages:
                self._revive(entry.messages)
            done = place + 1
        found = any(entry.visible is not None for entry in self._entries[:read])
        del self._entries[:done]
        return found


Answer = Callable[[Receive, list[Message]], None]
"""What takes the answer to a receive; without messages its time is over."""


class Broker:
    """One broker of the topic.

    Args:
        place: among all brokers.
        queues: how many of its queues can be read.
        answer: takes its answers.
        meets_outage: takes receives that come while it fails, or that wait when it begins to.
    """

    def __init__(
        self, place: int, queues: int, environment: Environment, answer: Answer, meets_outage: Callable[[Receive], None]
    ) -> None:
        self.name = environment.brokers[place]
        self.place = place
        self.queues: list[deque[Message]] = [deque() for _ in range(queues)]
        self.retry: deque[Message] = deque()
        self.held: deque[Receive] = deque()  # receives that wait here, the first to be over first; and some that were
        self._alive = 0  # how many of them have a client that lives
        self.blocked: dict[int, int] = {}  # queue → messages of it that are not acknowledged; in order only
        self._pending = 0  # messages in queues
        self._environment, self._answer, self._meets_outage = environment, answer, meets_outage
        self._rules = broker_rules(environment.scenario.broker_version)
        self._numbers = draws(environment.scenario.seed, environment.trial, BROKER, place)
        self._scan_phase = self._numbers.below(SCAN_US)
        self._lock_phase = self._numbers.below(LOCK_TICK_US)
        self._revive_services = self._services() if may_come_back(environment.scenario) else []
        self._checkpoints = 0

    def store(self, message: Message) -> None:
        """A producer's message has come."""
        self.queues[message.queue].append(message)
        self._pending += 1
        self.notify()

    def arrive(self, receive: Receive) -> None:
        """A receive takes what is there, or waits."""
        environment, now = self._environment, self._environment.clock.now
        if environment.routes.outage(self.name, now) is not None:
            self._meets_outage(receive)
            return
        if receive.client.dead(now):
            return
        environment.recorder.polled(self.place, now)
        self._alive += 1
        found = self._pop()
        if found:
            self._leave(receive)
            self._answer(receive, found)
            self.notify()
            return
        receive.waiting = True
        self.held.append(receive)
        at = over_at(now, environment.awaited_us, self._scan_phase)
        environment.clock.call(at - now, self._over, receive)

    def notify(self) -> None:
        """Receives that wait take what has come, the first first (`PopLongPollingService.notifyMessageArriving`)."""
        while self.held and self._has_some():
            receive = self.held.popleft()
            if receive.waiting:
                found = self._pop()
                self._leave(receive)
                self._answer(receive, found)

    def fail(self) -> list[Receive]:
        """The broker fails; the receives that wait there."""
        held = [receive for receive in self.held if receive.waiting]
        self.held.clear()
        for receive in held:
            self._leave(receive)
        return held

    def orphaned(self) -> None:
        """Clients of receives that wait here have died; a remoting client's connection is closed, so it ends."""
        now = self._environment.clock.now
        for receive in self.held:
            if receive.waiting and not receive.orphan and receive.client.dead(now):
                self._leave(receive)
                receive.orphan = True
                receive.waiting = self._environment.proxied

    def come_back(self, messages: list[Message], visible_at: int) -> None:
        """Messages of one receive, which are not acknowledged, will be received again."""
        environment = self._environment
        if environment.scenario.fifo:
            by_queue: dict[int, list[Message]] = {}
            for message in messages:
                by_queue.setdefault(message.queue, []).append(message)
            for queue, own in by_queue.items():
                self._at(free_at(visible_at, self._lock_phase), self._free, queue, own)
            return
        self._next_service().checkpoint(visible_at, tuple(messages), acknowledged=False)

    def checkpoint(self, visible_at: int) -> None:
        """Messages of one receive are all acknowledged in time, which the services that bring others back read too."""
        if self._revive_services and not self._environment.scenario.fifo:
            self._next_service().checkpoint(visible_at, (), acknowledged=True)

    def acknowledged(self, queue: int) -> None:
        """In order: a message of a queue is done; the last one frees the queue (`AckMessageProcessor.ackOrderly`)."""
        self.blocked[queue] -= 1
        if not self.blocked[queue]:
            del self.blocked[queue]
            self.notify()

    def waiting_messages(self) -> list[Message]:
        """All that is there to be received."""
        return [message for queue in (*self.queues, self.retry) for message in queue]

    def _at(self, when: int, action: Callable[..., None], *arguments: object) -> None:
        """Do it then, or when the broker works again; never, when it does not."""
        environment = self._environment
        when = environment.routes.back_at(self.name, max(when, environment.clock.now))
        if when < NEVER:
            environment.clock.call(when - environment.clock.now, action, *arguments)

    def _services(self) -> list[ReviveService]:
        below, clock = self._numbers.below, self._environment.clock
        timer = TimerWheel(below(TIMER_SECOND_US), below(TIMER_LOOK_US))
        return [ReviveService(clock, timer, below(IDLE_US), self._revive) for _ in range(REVIVE_QUEUES)]

    def _next_service(self) -> ReviveService:
        self._checkpoints += 1
        return self._revive_services[self._checkpoints % REVIVE_QUEUES]

    def _revive(self, messages: tuple[Message, ...]) -> None:
        self._at(self._environment.clock.now, self._retry, messages)

    def _retry(self, messages: tuple[Message, ...]) -> None:
        self.retry.extend(messages)
        if self._rules.retry_wakes:
            self.notify()

    def _free(self, queue: int, messages: list[Message]) -> None:
        self.queues[queue].extendleft(reversed(messages))
        self._pending += len(messages)
        self.blocked[queue] -= len(messages)
        if not self.blocked[queue]:
            del self.blocked[queue]
            self.notify()

    def _over(self, receive: Receive) -> None:
        """Its time is over: it takes what came back without waking it (`PopLongPollingService.run`), or nothing."""
        if not receive.waiting:
            return
        found = self._pop() if self._has_some() else []
        self._leave(receive)
        while self.held and not self.held[0].waiting:
            self.held.popleft()
        if receive.orphan and not found:
            return
        self._environment.recorder.brokers[self.place].empty += not found
        self._answer(receive, found)

    def _leave(self, receive: Receive) -> None:
        receive.waiting = False
        if receive.orphan:
            return
        self._alive -= 1
        if not self._alive:
            self._environment.recorder.brokers[self.place].unpolled_since = self._environment.clock.now

    def _has_some(self) -> bool:
        if self.retry:
            return True
        if not self.blocked:
            return self._pending > 0
        return any(queue and place not in self.blocked for place, queue in enumerate(self.queues))

    def _pop(self) -> list[Message]:
        """What one request takes (`processRequest`): the retry topic first or last, queues from a random one on."""
        number = self._numbers.below(RANDOM_QUEUES)
        found: list[Message] = []
        if not self._pending and not self.retry:
            return found
        batch, fifo = self._environment.scenario.batch, self._environment.scenario.fifo
        if self._rules.retry_first(number):
            _take(self.retry, found, batch)
        for place in self._rules.walk(number, len(self.queues)):
            if not self.queues[place] or len(found) >= batch or place in self.blocked:
                continue
            before = len(found)
            _take(self.queues[place], found, batch)
            self._pending -= len(found) - before
            if fifo:
                self.blocked[place] = len(found) - before
        _take(self.retry, found, batch)
        for message in found:
            message.deliveries += 1
        return found


def _take(queue: deque[Message], found: list[Message], batch: int) -> None:
    while queue and len(found) < batch:
        found.append(queue.popleft())
