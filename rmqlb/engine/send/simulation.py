"""One simulation under way: the threads, the clock, and what all three ways of sending have in common.

Rules of this file:
- Time is in ticks; a thread or a request wakes at a tick, and what happens outside the producer comes first.
- Nothing is random but what `draw` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from heapq import heapify, heappop, heappush

from rmqlb.engine.randomness import draw, stream_key
from rmqlb.engine.send.cluster_state import NEVER, ClusterState
from rmqlb.engine.send.counters import ATTEMPTS, FAILED, STORED, Avoidance, Tally, Timeline, Total
from rmqlb.engine.send.exceptions import Exceptions
from rmqlb.engine.send.failure_timestamps import FailureMarks
from rmqlb.engine.send.fault import FaultStrategy
from rmqlb.engine.send.latency import pick
from rmqlb.engine.send.outcome import Outcome, Outcomes
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.publish_info import MASK, TopicPublishInfo, int32, java_abs
from rmqlb.engine.send.thread import Thread
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import Attempt, LostMessage
from rmqlb.model.send_scenario import Latency, Reaction, SendScenario

NO_ROUTE_US = 1000
"""How long a message takes that fails before any attempt: about one question to a NameServer."""
_DETECTS_EACH_MS = 3000
_DETECT_TIMEOUT_US = 200_000
"""`LatencyFaultToleranceImpl` asks brokers that often, and waits so long for an answer."""
Sink = Callable[[Attempt], None]
LostSink = Callable[[LostMessage], None]


class Run:
    """The state of a simulation.

    Args:
        route: the topic's route while nothing fails.
        scenario: what is simulated.
        profile: the client's rules, overrides applied.
        trial: which of many trials with the same seed.
        sink: is given each attempt when it is done, or None.
        lost_sink: is given each lost message, or None.

    Attributes:
        last_done: when the last message was done, so far.
        ended: when the simulation ended, once it has: with its last message, or with the time that it was given.
        indexed: everyone with a round robin of its own, the callbacks of ASYNC sends too.
        overshoot: ticks that a timed-out SYNC attempt takes beyond its budget.
        waits: counts how often a thread had nothing to do.
        surprises: counts what no period can contain: random numbers, the detector's finds.
    """

    def __init__(
        self,
        route: TopicRouteData,
        scenario: SendScenario,
        profile: ClientProfile,
        trial: int,
        sink: Sink | None,
        lost_sink: LostSink | None = None,
    ) -> None:
        self.scenario = scenario
        self.profile = profile
        self.trial = trial
        self.sink = sink
        self.lost_sink = lost_sink
        self.ticks_per_us, self.interval = time_base(scenario.rate)
        self.per_ms = 1000 * self.ticks_per_us
        self.first_poll_us = _first_poll_us(scenario, trial)
        self.cluster = ClusterState(route, scenario, profile, self.ticks_per_us, self.first_poll_us)
        self.strategy = FaultStrategy(profile, enabled=scenario.latency_fault, per_ms=self.per_ms)
        self.exceptions = Exceptions(route, scenario, profile, self.per_ms)
        self.outcomes = Outcomes(profile, detector=scenario.detector, retry_not_store_ok=scenario.retry_not_store_ok)
        names = [data.broker_name for data in route.queue_datas]
        names += [queue.broker_name for queue in self.cluster.queues]
        self.tally = Tally(
            self.cluster.queues,
            dict.fromkeys(name for name in names if name not in scenario.exclude),
            len(scenario.failures),
        )
        self.publish_queues = tuple(self.cluster.queues)
        self.selector_threw = ""
        self.avoidance = Avoidance(self.tally)
        self.timeline = Timeline(self.tally, self._slice_width())
        self.limit = NEVER if scenario.messages is None else scenario.messages
        self.end = NEVER if scenario.duration_us is None else scenario.duration_us * self.ticks_per_us
        self.started = 0
        self.surprises = 0
        self.waits = 0
        self.last_done = 0
        self.ended = 0
        self.latency = {name: scenario.latencies.get(name, scenario.latency) for name in self.tally.avoided}
        nowhere = MessageQueue(route.topic, "", -1)
        self.threads = [
            Thread(number, stream_key(scenario.seed, trial, number), self.outcomes.ok, nowhere)
            for number in range(1, scenario.threads + 1)
        ]
        overshoot = profile.overshoot_us if scenario.overshoot_us is None else scenario.overshoot_us
        self.overshoot = overshoot * self.ticks_per_us
        self.indexed = list(self.threads)
        self.events: list[tuple[int, int, Thread]] = [(self.arrival_of(t), t.number, t) for t in self.threads]
        heapify(self.events)
        self.seen_changes = -1
        self.marks = FailureMarks(scenario.failures, self.cluster)
        self.next_detect = _DETECTS_EACH_MS * self.per_ms

    def arrival_of(self, thread: Thread) -> int:
        """When the thread's next message arrives; at once without a rate."""
        return 0 if self.interval is None else thread.arrival * self.interval

    def wake(self, thread: Thread, at: int) -> None:
        """The thread goes on at that time."""
        heappush(self.events, (at, thread.number, thread))

    def next_message(self, thread: Thread, now: int) -> None:
        """The thread is free from now on: its next message begins when it has arrived."""
        arrives = self.arrival_of(thread)
        if arrives > now:
            self.waits += 1
        self.wake(thread, max(arrives, now))

    def next_event(self) -> tuple[int, Thread] | None:
        """Take the next thread that has something to do, what is due outside the producer before it having happened.

        A thread without another message stops: it lets no time pass.
        """
        events = self.events
        while events and self._stops(events[0][2], events[0][0]):
            heappop(events)
        if not events:
            return None
        at = events[0][0]
        self._advance(at)
        if at >= self.next_detect:
            self._detect(at)
        return at, heappop(events)[2]

    def close(self) -> None:
        """Everything is done: let time pass up to the end, and count how long brokers were avoided until then."""
        self.ended = self.last_done
        if self.started < self.limit:
            self.ended = max(self.last_done, self.end)
        self._advance(self.ended)
        self.avoidance.count(self.ended)

    def _stops(self, thread: Thread, at: int) -> bool:
        """The thread would begin a message, and there is none any more."""
        if thread.busy:
            return False
        return at >= self.end or (self.started if self.interval is None else thread.arrival) >= self.limit

    def _advance(self, now: int) -> None:
        """Let everything happen outside the producer that is due by then."""
        due = min(self.cluster.next_at, self.timeline.next_at)
        while due <= now:
            if self.timeline.next_at == due:
                self.avoidance.count(due)
                self.timeline.mark()
            if self.cluster.next_at <= due:
                self.cluster.advance(due)
                self.look_around(due)
            due = min(self.cluster.next_at, self.timeline.next_at)

    def next_boundary(self, now: int) -> int:
        """Until when nothing happens but messages: no event outside, no slice of the time line, no isolation's end."""
        available = self.strategy.next_available(now)
        ends = (self.cluster.next_at, self.timeline.next_at, self.end)
        return min(ends) if available is None else min(*ends, available)

    def look_around(self, now: int) -> None:
        """Something happened outside: note what it means for the failures under way."""
        if self.cluster.changes == self.seen_changes:
            return
        self.seen_changes = self.cluster.changes
        self.avoidance.unlist(self.cluster.unlisted, now)
        self.marks.look(now)

    def begin(self, thread: Thread, now: int) -> None:
        """The thread's next message begins."""
        if self.interval is not None:
            thread.arrival += len(self.threads)
        self.started += 1
        cluster = self.cluster
        if self.started >= cluster.next_message:
            cluster.message_starts(self.started, now)
            self.look_around(now)
        if not cluster.queues:
            cluster.refresh()
            self.look_around(now)
        self.look_at_route(thread)
        self.tally.totals[Total.MESSAGES] += 1
        thread.message = self.started
        thread.began = now
        thread.attempt = 0
        thread.kept = 0
        thread.phase = 0
        thread.sent = []

    def look_at_route(self, thread: Thread) -> None:
        """The thread takes the client's newest queue list, with a round robin that starts anew."""
        if thread.version != self.cluster.version:
            self._new_info(thread)

    def take(self, thread: Thread, queue: MessageQueue, now: int) -> Reaction | None:
        """An attempt begins: count it and find out what its broker does."""
        row = thread.row = self.tally.row(queue)
        self.tally.rows[row + ATTEMPTS] += 1
        totals = self.tally.totals
        totals[Total.ATTEMPTS] += 1
        if thread.attempt > 1:
            totals[Total.EXTRA] += 1
            if thread.attempt == 2:
                totals[Total.RETRIED] += 1
        thread.queue = queue
        thread.sent.append(queue.broker_name)
        thread.started = now
        index = thread.failure = self.cluster.reactions.get(queue.broker_name, -1)
        return None if index < 0 else self.scenario.failures[index].reaction

    def under_way(self, thread: Thread, outcome: Outcome, took: int, now: int) -> None:
        """The attempt will end so, that many ticks from now."""
        thread.outcome = outcome
        thread.busy = True
        self.uses(thread, outcome)
        self.wake(thread, now + took)

    def uses(self, thread: Thread, outcome: Outcome) -> None:
        """An attempt begins; a success may be the first at a broker whose failure is over."""
        if not outcome.failed:
            self.marks.used(thread.queue.broker_name, thread.started)

    def answer_time(self, thread: Thread, reaction: Reaction | None) -> int:
        """Ticks until the broker answers, if it does."""
        if reaction is not None and reaction.kind == "slow":
            return reaction.cost_us * self.ticks_per_us
        latency = self.latency.get(thread.queue.broker_name, self.scenario.latency)
        return self.latency_of(thread.sender, latency) * self.ticks_per_us

    def latency_of(self, thread: Thread, latency: Latency) -> int:
        """Microseconds; a constant needs no random number."""
        if len(latency.table) == 1:
            return latency.table[0]
        return pick(latency, self.draw(thread))

    def done(self, thread: Thread, now: int, outcome: Outcome) -> None:
        """An attempt ended: count it."""
        took = now - thread.started
        queue = thread.queue
        if outcome.failed:
            self.tally.rows[thread.row + FAILED] += 1
            self.tally.totals[Total.FAILED] += 1
            self.tally.totals[Total.FAILING] += took
            if thread.failure >= 0:
                self.tally.by_failure[thread.failure] += 1
                self.marks.failed(thread.failure, thread.started)
        else:
            self.tally.rows[thread.row + STORED] += 1
        if self.sink is not None:
            self.sink(
                Attempt(
                    thread.message,
                    thread.attempt,
                    thread.sender.number,
                    thread.started / self.per_ms,
                    queue.broker_name,
                    queue.queue_id,
                    outcome.name,
                    took / self.per_ms,
                )
            )

    def learn(self, broker_name: str, took: int, now: int, *, isolation: bool, reachable: bool) -> None:
        """Tell the fault strategy of an attempt."""
        strategy = self.strategy
        if not strategy.enabled:
            return
        known = strategy.items.get(broker_name)
        before = 0 if known is None else known.start
        start = strategy.update(broker_name, took // self.per_ms, now, isolation=isolation, reachable=reachable)
        if start > now and start != before:
            self.tally.isolations[broker_name] = self.tally.isolations.get(broker_name, 0) + 1
            self.avoidance.isolate(broker_name, now, start)
            self.marks.isolated(broker_name, now)
        elif start <= now < before:
            self.avoidance.isolate(broker_name, now, now)

    def finish(self, thread: Thread, now: int, lost_by: str | None) -> None:
        """The message is over; `lost_by` says why nothing of it is stored, as far as the producer knows."""
        totals = self.tally.totals
        if lost_by is None:
            totals[Total.STORED] += 1
        else:
            lost = self.exceptions.lost(thread, now, lost_by)
            self.tally.lose(lost)
            if self.lost_sink is not None:
                self.lost_sink(lost)
        self.last_done = max(self.last_done, now)
        if thread.attempt:
            self.tally.longest = max(self.tally.longest, now - thread.began)

    def fail_at_once(self, thread: Thread, now: int, lost_by: str) -> None:
        """The message ends before any attempt."""
        later = now + NO_ROUTE_US * self.ticks_per_us
        self.finish(thread, later, lost_by)
        self.next_message(thread, later)

    def not_store_ok(self) -> None:
        """The message is stored, with another status than SEND_OK."""
        self.tally.totals[Total.NOT_STORE_OK] += 1

    def draw(self, thread: Thread) -> int:
        """The thread's next random number, 64 bits."""
        bits = draw(thread.key, thread.draws)
        thread.draws += 1
        self.surprises += 1
        return bits

    def new_index(self, thread: Thread) -> int:
        """`Random.nextInt()` as the client starts its round robin with it."""
        start = int32(self.draw(thread) >> 32)
        if self.profile.any_start:
            return start
        start = java_abs(start)
        return 0 if self.profile.index_step == "clamp" and start < 0 else start

    def _new_info(self, thread: Thread) -> None:
        cluster = self.cluster
        start = self.scenario.start_at
        if thread.number == 1 and thread.version < 0 and start is not None and cluster.queues:
            index = start - 1 + len(cluster.queues)
        else:
            index = self.new_index(thread)
        info = TopicPublishInfo((), index, cluster.write_queue_nums, lambda: (self.draw(thread) >> 32) * MASK >> 32)
        info.queues = cluster.queues
        thread.info = info
        thread.version = cluster.version

    def _detect(self, now: int) -> None:
        """The detector's rounds up to now, each 3 s: a broker that answers is reachable again."""
        period = _DETECTS_EACH_MS * self.per_ms
        rounds = (now - self.next_detect) // period + 1
        self.next_detect += rounds * period
        if not (self.scenario.detector and self.scenario.latency_fault and self.profile.only_extends):
            return
        for name, item in self.strategy.items.items():
            index = self.cluster.reactions.get(name, -1)
            reaction = None if index < 0 else self.scenario.failures[index].reaction
            if not item.reachable and not silent(reaction):
                item.reachable = True
                self.surprises += 1

    def _slice_width(self) -> int:
        """About sixty slices of a round length, where the end can be foreseen."""
        scenario = self.scenario
        per_message = Fraction(scenario.latency.table[0], scenario.threads)
        if scenario.rate is not None:
            per_message = Fraction(1_000_000) / scenario.rate
        ends = [] if scenario.duration_us is None else [Fraction(scenario.duration_us)]
        if scenario.messages is not None:
            ends.append(scenario.messages * per_message)
        wanted = min(ends) / 60
        width = next((w * 10**e for e in range(14) for w in (1, 2, 5) if w * 10**e >= wanted), 10**14)
        return width * self.ticks_per_us


def silent(reaction: Reaction | None) -> bool:
    """The detector's question gets no answer in its 200 ms."""
    if reaction is None:
        return False
    too_slow = reaction.kind == "slow" and reaction.cost_us > _DETECT_TIMEOUT_US
    return too_slow or reaction.kind in ("refused", "timeout")


def _first_poll_us(scenario: SendScenario, trial: int) -> int:
    """As the scenario says, or anywhere in the first interval; the stream of thread 0 is for nothing else."""
    if scenario.first_poll_us is not None:
        return scenario.first_poll_us
    return (draw(stream_key(scenario.seed, trial, 0), 0) >> 32) * scenario.poll_us >> 32


def time_base(rate: Fraction | None) -> tuple[int, int | None]:
    """Ticks a microsecond, chosen so that the time between two messages is a whole number of them.

    Returns:
        The ticks, and those between two messages (None without a rate).
    """
    if rate is None:
        return 1, None
    interval = Fraction(1_000_000) / rate
    return interval.denominator, interval.numerator
