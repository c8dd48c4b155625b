"""A simulated producer: its threads and messages in time, and the cluster around them.

- A message is a generator, so that it reads like the client's own loop; it yields how many ticks it waits.
- A tick is a fraction of a microsecond such that the time between two messages is a whole number of ticks.
- When two messages wake at one tick, the lower number goes first; ASYNC messages have numbers below 0.
- Changes outside the producer at a tick come before its threads act at that tick.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from heapq import heappop, heappush

from rmqlb.engine.kernel import Draws, stream_key
from rmqlb.engine.send.cluster import NEVER, Cluster, Message, Outcome, Thread
from rmqlb.engine.send.fault import TopicPublishInfo
from rmqlb.engine.send.java import MASK, int32, java_abs
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.recorder import Recorder
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Latency, Reaction, SendScenario
from rmqlb.model.simulate_send import LostMessage, MessageException

Steps = Iterator[int]
"""The sending of one message; each item is a wait in ticks."""
_NO_ROUTE_US = 1000
"""Duration of a message that fails before any attempt: about one request to a NameServer."""
_PROGRESS_EACH = 20_000


class Producer(ABC):
    """One producer in one simulation (raises DataError if the queue list is empty or the order config malformed)."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, trial: int = 0) -> None:
        self.route, self.scenario, self.profile, self.trial = route, scenario, profile, trial
        # Ticks per microsecond, and ticks between two messages; without a rate, a message follows its predecessor.
        interval = None if scenario.rate is None else Fraction(1_000_000) / scenario.rate
        self.per_us = 1 if interval is None else interval.denominator
        self._interval = None if interval is None else interval.numerator
        self.per_ms = 1000 * self.per_us
        # Without a first poll in the scenario, a random time in the first interval; stream 0 has no other use.
        drawn = (Draws(self.key(0)).bits() >> 32) * scenario.poll_us >> 32
        self.first_poll_us = drawn if scenario.first_poll_us is None else scenario.first_poll_us
        self.cluster = Cluster(route, scenario, profile, self.per_us, self.first_poll_us)
        self.publish_queues = tuple(self.cluster.queues)
        if not self.publish_queues:
            raise no_queues(route)
        self.recorder = Recorder(route, scenario, self.cluster, self.per_us)
        self.now = self.started = 0  # the tick; messages begun
        self.ended = 0  # the tick of the end: the last message's, or after the duration
        numbers = range(1, scenario.threads + 1)
        self.threads = [Thread(each, Draws(self.key(each)), arrival=each - 1) for each in numbers]
        self._limit = NEVER if scenario.messages is None else scenario.messages
        self._until = NEVER if scenario.duration_us is None else scenario.duration_us * self.per_us
        self._spawned = 0
        self._events: list[tuple[int, int, Thread, Steps | None]] = []  # a heap by (tick, number)
        for thread in self.threads:
            self._await_message(thread)

    refused: Outcome  # of an attempt whose connection a broker refuses
    timeout: Outcome
    overshoot = 0  # ticks of a timed-out attempt beyond its limit

    @abstractmethod
    def send(self, thread: Thread) -> Steps:
        """Send the thread's next message, or hand it over."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        reported = 0
        while self._events:
            at, number, thread, steps = heappop(self._events)
            arrived = self.started if self._interval is None else thread.arrival
            if steps is None and (at >= self._until or arrived >= self._limit):
                continue
            self.advance(at)
            self._step(number, thread, self.send(thread) if steps is None else steps)
            if progress is not None and self.started - reported >= _PROGRESS_EACH:
                reported = self.started
                progress(reported)
        self.ended = self.recorder.last_done
        if self.started < self._limit:
            self.ended = max(self.ended, self._until)
        self.advance(self.ended)
        self.recorder.count_isolation(self.ended)

    def spawn(self, thread: Thread, steps: Steps) -> None:
        """Run a message that its thread does not wait for."""
        self._spawned += 1
        self._step(self._spawned - (1 << 40), thread, steps)

    def _step(self, number: int, thread: Thread, steps: Steps) -> None:
        wait = next(steps, None)
        if wait is not None:
            heappush(self._events, (self.now + wait, number, thread, steps))
        elif number > 0:
            self._await_message(thread)

    def _await_message(self, thread: Thread) -> None:
        arrival = 0 if self._interval is None else thread.arrival * self._interval
        heappush(self._events, (max(arrival, thread.free, self.now), thread.number, thread, None))

    def advance(self, now: int) -> None:
        cluster, recorder = self.cluster, self.recorder
        while (due := min(cluster.next_at, recorder.next_slice)) <= now:
            self.outside(due)
            if recorder.next_slice == due:
                recorder.end_slice(due)
            if cluster.next_at <= due:
                cluster.advance(due)
                recorder.note_changes(due)
        self.outside(now)
        self.now = now

    def outside(self, until: int) -> None:  # noqa: B027 - only some producers have more than their messages
        """Run everything else that is due before the cluster changes at a tick."""

    def key(self, stream: int) -> int:
        return stream_key(self.scenario.seed, self.trial, stream)

    def below(self, number: int, thread: Thread) -> int:
        return (thread.draws.bits() >> 32) * number >> 32

    def reaction_of(self, broker_name: str) -> Reaction | None:
        found = self.cluster.failing.get(broker_name)
        return None if found is None else found.failure.reaction

    def adopt_route(self, thread: Thread) -> None:
        cluster, start = self.cluster, self.scenario.start_at
        if thread.version == cluster.version:
            return
        is_first = thread.version < 0
        if thread.number == 1 and is_first and start is not None and cluster.queues:
            index = start - 1 + len(cluster.queues)
        else:
            index = self._new_index(thread.draws.bits())
        if is_first:
            # A separate stream, so that scenarios without this index draw the same other numbers.
            thread.worst.send_which_queue = self._new_index(Draws(self.key(-thread.number)).bits())
        info = TopicPublishInfo((), index, cluster.write_queue_nums, lambda: self.below(MASK, thread))
        info.queues = cluster.queues
        thread.info, thread.version = info, cluster.version

    def _new_index(self, bits: int) -> int:
        """`Random.nextInt()` as the client starts a `ThreadLocalIndex` with it."""
        start = int32(bits >> 32)
        if self.profile.any_start:
            return start
        return max(java_abs(start), 0) if self.profile.index_step == "clamp" else java_abs(start)

    def begin(self, thread: Thread) -> Message:
        cluster, recorder = self.cluster, self.recorder
        if self._interval is not None:
            thread.arrival += len(self.threads)
        self.started += 1
        if self.started >= cluster.next_message:
            cluster.message_starts(self.started, self.now)
            recorder.note_changes(self.now)
        if not cluster.queues:
            cluster.refresh()
            recorder.note_changes(self.now)
        self.adopt_route(thread)
        recorder.messages += 1
        return Message(self.started, thread, self.now, thread.info, thread.version)

    def start(self, message: Message, queue: MessageQueue) -> Reaction | None:
        """Begin an attempt; returns how its broker reacts, None if it is healthy."""
        self.recorder.pick(queue)
        message.attempt += 1
        message.queue, message.started = queue, self.now
        message.sent.append(queue.broker_name)
        self.recorder.attempt(message)
        message.failing = self.cluster.failing.get(queue.broker_name)
        return self.reaction_of(queue.broker_name)

    def attempt(self, message: Message, outcome: Outcome, took: int) -> Steps:
        self.under_way(message, outcome)
        yield took
        self.recorder.attempt_done(message, self.now)

    def under_way(self, message: Message, outcome: Outcome) -> None:
        message.outcome = outcome
        if not outcome.failed:
            self.recorder.will_succeed(message)

    @abstractmethod
    def answer(self, message: Message, reaction: Reaction | None) -> Outcome:
        """The outcome of an attempt that the broker answers in time."""

    def ends(self, message: Message, reaction: Reaction | None, limit: int) -> tuple[Outcome, int]:
        """The attempt's outcome, and after how many ticks; without an answer it ends at its limit."""
        if reaction is not None and reaction.kind == "refused":
            return self.refused, self.answer_time(message, reaction)
        if reaction is None or reaction.kind != "timeout":
            took = self.answer_time(message, reaction)
            if took <= limit:
                return self.answer(message, reaction), took
        return self.timeout, limit + self.overshoot

    def answer_time(self, message: Message, reaction: Reaction | None) -> int:
        """Ticks until the broker answers, or refuses; a constant latency needs no random number."""
        if reaction is not None and reaction.kind in ("slow", "refused"):
            return reaction.cost_us * self.per_us
        latency = self.scenario.latencies.get(message.queue.broker_name, self.scenario.latency)
        us = latency.table[0] if len(latency.table) == 1 else pick(latency, message.thread.draws.bits())
        return us * self.per_us

    def finish(self, message: Message, lost_by: str | None, at: int | None = None) -> None:
        """End the message; `lost_by` is the reason if the producer knows of nothing that was stored."""
        at = self.now if at is None else at
        lost = None
        if lost_by is not None:
            exception, sent = self.exception(message, at, lost_by), tuple(message.sent)
            lost = LostMessage(message.number, message.thread.number, at / self.per_ms, lost_by, sent, exception)
        self.recorder.finish(message, at, lost)

    def finish_stored(self, message: Message) -> None:
        if message.outcome.fate == "status":
            self.recorder.not_store_ok += 1
        self.finish(message, message.outcome.lost_by)

    def fail_at_once(self, message: Message, lost_by: str) -> None:
        message.thread.free = self.now + _NO_ROUTE_US * self.per_us
        self.finish(message, lost_by, message.thread.free)

    def exception(self, message: Message, at: int, reason: str) -> MessageException | None:  # noqa: ARG002 - for Java
        """The application's error, whose text is not simulated except for Java."""
        return MessageException(reason, response_code=message.outcome.code if message.attempt else None)


def no_queues(route: TopicRouteData) -> DataError:
    if route.publish_queues():
        text = f"topic {route.topic}: every broker with a queue for producers is excluded"
        return DataError(text, code="no-writable-queue")
    text = f"topic {route.topic} has no queue that a producer could write to: every send fails"
    hint = "check its brokers with show-route: a queue needs a writable broker with a master"
    return DataError(text, hint=hint, code="no-writable-queue")


def pick(latency: Latency, bits: int) -> int:
    table = latency.table
    cell = ((bits >> 32) * len(table)) >> 32
    if latency.tail and cell == len(table) - 1:
        return latency.tail[((bits & 0xFFFFFFFF) * len(latency.tail)) >> 32]
    return table[cell]
