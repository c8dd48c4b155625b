"""A simulated producer: its threads, their events, its fault strategy and the cluster outside.

- A tick is a fraction of a microsecond such that the time between two messages is a whole number of ticks.
- Of two threads that wake at one tick, the lower number goes first; requests have numbers below 0.
- Changes outside the producer at a tick come before its threads act at that tick.
- All randomness comes from `draw`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from heapq import heapify, heappop, heappush

from rmqlb.engine.kernel import draw, stream_key
from rmqlb.engine.send.attempt import Exceptions, Outcome, Outcomes, Thread
from rmqlb.engine.send.cluster import NEVER, Cluster
from rmqlb.engine.send.fault import MASK, FaultStrategy, TopicPublishInfo, int32, java_abs
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.recorder import Recorder
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Latency, Reaction, SendScenario

_DETECTS_EACH_MS = 3000
_DETECT_TIMEOUT_US = 200_000
"""`LatencyFaultToleranceImpl` queries unreachable brokers that often, and waits so long for an answer."""
_NO_ROUTE_US = 1000
"""Duration of a message that fails before any attempt: about one request to a NameServer."""
_PROGRESS_EACH = 20_000


class Producer(ABC):
    """One producer over one simulation; subclasses define how a thread picks queues and reacts to outcomes.

    Raises:
        DataError: the producer's queue list is empty, or the route's order config is malformed.
    """

    def __init__(self, route: TopicRouteData, scenario: SendScenario, profile: ClientProfile, trial: int = 0) -> None:
        self.route, self.scenario, self.profile, self.trial = route, scenario, profile, trial
        self.per_us, self._interval = time_base(scenario.rate)
        self.per_ms = 1000 * self.per_us
        self.first_poll_us = _first_poll_us(scenario, trial)
        self.cluster = Cluster(route, scenario, profile, self.per_us, self.first_poll_us)
        self.publish_queues = tuple(self.cluster.queues)
        if not self.publish_queues:
            raise no_queues(route)
        self.strategy = FaultStrategy(profile, enabled=scenario.latency_fault, per_ms=self.per_ms)
        self.outcomes = Outcomes(profile, scenario)
        self.exceptions = Exceptions(route, scenario, profile, self.per_ms)
        self.recorder = Recorder(route, scenario, self.cluster, self.per_us)
        # ticks that a timed-out SYNC attempt takes beyond its budget
        self.overshoot = (
            profile.overshoot_us if scenario.overshoot_us is None else scenario.overshoot_us
        ) * self.per_us
        # ticks of an attempt without time left, or without an address
        self.empty = profile.empty_attempt_us * self.per_us
        self.started = 0  # messages begun
        self.ended = 0  # when the simulation ended: with its last message, or with its duration
        self.threads = [
            Thread(number, stream_key(scenario.seed, trial, number), arrival=number - 1)
            for number in range(1, scenario.threads + 1)
        ]
        self._limit = NEVER if scenario.messages is None else scenario.messages
        self._until = NEVER if scenario.duration_us is None else scenario.duration_us * self.per_us
        self._next_detect = _DETECTS_EACH_MS * self.per_ms
        self._detects = scenario.detector and scenario.latency_fault and profile.only_extends
        self._requests = 0
        self._events = [(self._arrival_of(thread), thread.number, thread) for thread in self.threads]
        heapify(self._events)

    @abstractmethod
    def go_on(self, thread: Thread, now: int) -> None:
        """The thread wakes: its attempt is done, or its next message is due."""

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        reported = 0
        while (at := self._next_at()) is not None:
            self._advance(at)
            if at >= self._next_detect:
                self._detect(at)
            self.go_on(heappop(self._events)[2], at)
            if progress is not None and self.started - reported >= _PROGRESS_EACH:
                reported = self.started
                progress(reported)
        self.ended = self.recorder.last_done
        if self.started < self._limit:
            self.ended = max(self.ended, self._until)
        self._advance(self.ended)
        self.recorder.count_isolation(self.ended)

    # -- time ----------------------------------------------------------------------------------------------------------

    def _next_at(self) -> int | None:
        events = self._events
        while events:
            at, _, thread = events[0]
            over = at >= self._until or (self.started if self._interval is None else thread.arrival) >= self._limit
            if thread.busy or not over:
                return at
            heappop(events)
        return None

    def _arrival_of(self, thread: Thread) -> int:
        return 0 if self._interval is None else thread.arrival * self._interval

    def wake(self, thread: Thread, at: int) -> None:
        heappush(self._events, (at, thread.number, thread))

    def next_message(self, thread: Thread, now: int) -> None:
        self.wake(thread, max(self._arrival_of(thread), now))

    def _advance(self, now: int) -> None:
        cluster, recorder = self.cluster, self.recorder
        while (due := min(cluster.next_at, recorder.next_slice)) <= now:
            self.outside(due)
            if recorder.next_slice == due:
                recorder.end_slice(due)
            if cluster.next_at <= due:
                cluster.advance(due)
                recorder.look_around(due)
        self.outside(now)

    def outside(self, until: int) -> None:  # noqa: B027 - only some producers have more than their threads
        """Let happen what else happens up to a tick, before the cluster changes at that tick."""

    def _detect(self, now: int) -> None:
        """The detector's rounds up to now: a broker that answers is reachable again."""
        period = _DETECTS_EACH_MS * self.per_ms
        self._next_detect += ((now - self._next_detect) // period + 1) * period
        if not self._detects:
            return
        for name, item in self.strategy.items.items():
            if not item.reachable and not _silent(self.reaction_of(name)):
                item.reachable = True

    # -- random numbers and routes ---------------------------------------------------------------------------------

    def draw(self, thread: Thread) -> int:
        bits = draw(thread.key, thread.draws)
        thread.draws += 1
        return bits

    def reaction_of(self, broker_name: str) -> Reaction | None:
        """The reaction of a failing broker; None for a healthy one."""
        found = self.cluster.reactions.get(broker_name)
        return None if found is None else found[1]

    def look_at_route(self, thread: Thread) -> None:
        """The thread takes the client's newest queue list, with a new round robin."""
        cluster, start = self.cluster, self.scenario.start_at
        if thread.version == cluster.version:
            return
        is_first = thread.version < 0
        if thread.number == 1 and is_first and start is not None and cluster.queues:
            index = start - 1 + len(cluster.queues)
        else:
            index = self._new_index(self.draw(thread))
        if is_first:
            # A stream of its own: whoever never uses this index draws the same other numbers with and without it.
            key = stream_key(self.scenario.seed, self.trial, -thread.number)
            thread.worst.send_which_queue = self._new_index(draw(key, 0))
        info = TopicPublishInfo((), index, cluster.write_queue_nums, lambda: (self.draw(thread) >> 32) * MASK >> 32)
        info.queues = cluster.queues
        thread.info, thread.version = info, cluster.version

    def _new_index(self, bits: int) -> int:
        """`Random.nextInt()` as the client starts a `ThreadLocalIndex` with it."""
        start = int32(bits >> 32)
        if self.profile.any_start:
            return start
        start = java_abs(start)
        return 0 if self.profile.index_step == "clamp" and start < 0 else start

    # -- the life of a message -------------------------------------------------------------------------------------

    def begin(self, thread: Thread, now: int) -> None:
        """The thread's next message begins; if the queue list is empty, the client requests the route at once."""
        cluster, recorder = self.cluster, self.recorder
        if self._interval is not None:
            thread.arrival += len(self.threads)
        self.started += 1
        if self.started >= cluster.next_message:
            cluster.message_starts(self.started, now)
            recorder.look_around(now)
        if not cluster.queues:
            cluster.refresh()
            recorder.look_around(now)
        self.look_at_route(thread)
        recorder.messages += 1
        thread.message, thread.began = self.started, now
        thread.attempt = thread.kept = thread.phase = 0
        thread.sent = []

    def request_of(self, thread: Thread) -> Thread:
        """A record of the thread's message of its own, while the thread goes on with the next."""
        self._requests += 1
        return Thread(
            number=self._requests - (1 << 40),
            key=0,
            handed_over_by=thread,
            info=thread.info,
            worst=thread.worst,
            version=thread.version,
            message=thread.message,
            began=thread.began,
        )

    def start(self, thread: Thread, queue: MessageQueue, now: int) -> Reaction | None:
        thread.attempt += 1
        thread.queue, thread.started = queue, now
        thread.sent.append(queue.broker_name)
        self.recorder.attempt(thread)
        found = self.cluster.reactions.get(queue.broker_name)
        thread.failure, reaction = (None, None) if found is None else found
        return reaction

    def under_way(self, thread: Thread, outcome: Outcome, took: int, now: int) -> None:
        thread.outcome = outcome
        thread.busy = True
        if not outcome.failed:
            self.recorder.will_succeed(thread)
        self.wake(thread, now + took)

    def answer_time(self, thread: Thread, reaction: Reaction | None) -> int:
        """Ticks until the broker answers, or refuses; a constant latency needs no random number."""
        if reaction is not None and reaction.kind in ("slow", "refused"):
            return reaction.cost_us * self.per_us
        latency = self.scenario.latencies.get(thread.queue.broker_name, self.scenario.latency)
        us = latency.table[0] if len(latency.table) == 1 else pick(latency, self.draw(thread.sender))
        return us * self.per_us

    def learn(self, broker_name: str, took: int, now: int, *, isolation: bool, reachable: bool) -> None:
        """The fault strategy learns of an attempt."""
        strategy = self.strategy
        if not strategy.enabled:
            return
        known = strategy.items.get(broker_name)
        before = 0 if known is None else known.start
        start = strategy.update(broker_name, took // self.per_ms, now, isolation=isolation, reachable=reachable)
        if start > now and start != before:
            self.recorder.isolate(broker_name, now, start)
        elif start <= now < before:
            self.recorder.isolated_until(broker_name, now, now)

    def finish(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """The message is over; `lost_by` is the reason when nothing of it is stored, as far as the producer knows."""
        self.recorder.finish(thread, now, None if lost_by is None else self.exceptions.lost(thread, now, lost_by))

    def finish_stored(self, thread: Thread, now: int) -> None:
        if thread.outcome.fate == "status":
            self.recorder.not_store_ok += 1
        self.finish(thread, now, thread.outcome.lost_by)

    def fail_at_once(self, thread: Thread, now: int, lost_by: str) -> None:
        later = now + _NO_ROUTE_US * self.per_us
        self.finish(thread, later, lost_by)
        self.next_message(thread, later)


def no_queues(route: TopicRouteData) -> DataError:
    if route.publish_queues():
        return DataError(
            f"topic {route.topic}: every broker with a queue for producers is excluded", code="no-writable-queue"
        )
    return DataError(
        f"topic {route.topic} has no queue that a producer could write to: every send fails",
        hint="look at its brokers with show-route: a queue needs a writable broker with a master",
        code="no-writable-queue",
    )


def time_base(rate: Fraction | None) -> tuple[int, int | None]:
    if rate is None:
        return 1, None
    interval = Fraction(1_000_000) / rate
    return interval.denominator, interval.numerator


def _silent(reaction: Reaction | None) -> bool:
    """The broker does not answer the detector in time."""
    if reaction is None:
        return False
    too_slow = reaction.kind == "slow" and reaction.cost_us > _DETECT_TIMEOUT_US
    return too_slow or reaction.kind in ("refused", "timeout")


def _first_poll_us(scenario: SendScenario, trial: int) -> int:
    """The scenario's first poll, or a random time in the first interval; stream 0 is for nothing else."""
    if scenario.first_poll_us is not None:
        return scenario.first_poll_us
    return (draw(stream_key(scenario.seed, trial, 0), 0) >> 32) * scenario.poll_us >> 32


def pick(latency: Latency, bits: int) -> int:
    """The value in microseconds that 64 random bits stand for."""
    table = latency.table
    cell = ((bits >> 32) * len(table)) >> 32
    if latency.tail and cell == len(table) - 1:
        return latency.tail[((bits & 0xFFFFFFFF) * len(latency.tail)) >> 32]
    return table[cell]
