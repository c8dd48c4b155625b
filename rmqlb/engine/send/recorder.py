"""What is recorded of a simulation: counts, slices of time, each failure's first times, and rows for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from rmqlb.engine.send.clock import Thread
from rmqlb.engine.send.cluster_state import ClusterState
from rmqlb.engine.send.counters import (
    ATTEMPTS,
    FAILED,
    PICKS,
    STORED,
    Counters,
    Counts,
    IsolationTimes,
    Timeline,
    Total,
)
from rmqlb.engine.send.outcome import Outcome
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_report import Attempt, LostMessage
from rmqlb.model.send_scenario import Failure, SendScenario

Sink = Callable[[Attempt], None]
LostSink = Callable[[LostMessage], None]


class Recorder:
    """Counts what the simulation does; nothing that it does depends on it."""

    def __init__(
        self,
        route: TopicRouteData,
        scenario: SendScenario,
        cluster: ClusterState,
        ticks_per_us: int,
        sink: Sink | None,
        lost_sink: LostSink | None,
    ) -> None:
        names = [data.broker_name for data in route.queue_datas]
        names += [queue.broker_name for queue in cluster.queues]
        self.counters = Counters(
            cluster.queues, (name for name in names if name not in scenario.exclude), len(scenario.failures)
        )
        self.counts = self.counters.counts
        self.isolation = IsolationTimes(self.counts.isolated_ticks)
        self.timeline = Timeline(self.counters, _slice_width_us(scenario) * ticks_per_us)
        self.failures = FailureTimestamps(scenario.failures, cluster)
        self.last_done = 0  # when the last message was done, so far
        self.selector_threw = ""  # what the user's selector threw first; empty when it threw nothing
        self._cluster = cluster
        self._seen_changes = -1
        self._per_ms = 1000 * ticks_per_us
        self._sink, self._lost_sink = sink, lost_sink

    def end_slice(self, now: int) -> None:
        self.isolation.count(now)
        self.timeline.mark()

    def look_around(self, now: int) -> None:
        """Something may have happened outside: note what it means for the failures under way."""
        if self._cluster.changes != self._seen_changes:
            self._seen_changes = self._cluster.changes
            self.isolation.unlist(self._cluster.unlisted, now)
            self.failures.look(now)

    def begin(self) -> None:
        self.counts.totals[Total.MESSAGES] += 1

    def pick(self, queue: MessageQueue) -> None:
        """A queue is picked, whether or not an attempt comes of it."""
        row = self.counters.row(queue)
        self.counts.rows[row + PICKS] += 1

    def attempt(self, thread: Thread) -> None:
        row = thread.row = self.counters.row(thread.queue)
        self.counts.rows[row + ATTEMPTS] += 1
        totals = self.counts.totals
        totals[Total.ATTEMPTS] += 1
        if thread.attempt > 1:
            totals[Total.RETRIES] += 1
            if thread.attempt == 2:
                totals[Total.RETRIED] += 1

    def attempt_done(self, thread: Thread, now: int, outcome: Outcome) -> None:
        took = now - thread.started
        if outcome.failed:
            counts = self.counts
            counts.rows[thread.row + FAILED] += 1
            counts.totals[Total.FAILED] += 1
            counts.totals[Total.FAILING] += took
            if thread.failure >= 0:
                counts.by_failure[thread.failure] += 1
                self.failures.failed(thread.failure, thread.started)
        else:
            self.counts.rows[thread.row + STORED] += 1
        if self._sink is not None:
            self._sink(
                Attempt(
                    thread.message,
                    thread.attempt,
                    thread.sender.number,
                    thread.started / self._per_ms,
                    thread.queue.broker_name,
                    thread.queue.queue_id,
                    outcome.name,
                    took / self._per_ms,
                )
            )

    def isolate(self, broker_name: str, now: int, until: int) -> None:
        isolations = self.counts.isolations
        isolations[broker_name] = isolations.get(broker_name, 0) + 1
        self.isolation.isolate(broker_name, now, until)
        self.failures.isolated(broker_name, now)

    def add(self, total: Total) -> None:
        self.counts.totals[total] += 1

    def finish(self, thread: Thread, now: int, lost: LostMessage | None) -> None:
        if lost is None:
            self.counts.totals[Total.STORED] += 1
        else:
            self.counters.lose(lost)
            if self._lost_sink is not None:
                self._lost_sink(lost)
        self.last_done = max(self.last_done, now)
        if thread.attempt:
            self.counters.longest = max(self.counters.longest, now - thread.began)

    def repeat(self, since: Counts, until: Counts, times: int, ticks: int, *, isolations: bool) -> None:
        """What was counted between two moments came so many times more, in so many ticks; isolations may have moved."""
        self.counts.repeat(since, until, times)
        self.isolation.jump(ticks, isolations=isolations)


class FailureTimestamps:
    """The marks of each failure, in the scenario's order; a time is a tick, None until it comes."""

    def __init__(self, failures: Sequence[Failure], cluster: ClusterState) -> None:
        self._failures = failures
        self._cluster = cluster
        self._unused: dict[str, list[int]] = {}
        self.first_failed: list[int | None] = [None] * len(failures)  # when the first attempt began that failed of it
        self.last_failed = [0] * len(failures)  # when the last of them began; of none it means nothing
        # when its broker was first isolated or unlisted while it lasted
        self.isolated_at: list[int | None] = [None] * len(failures)
        self.isolated_by: list[str | None] = [None] * len(failures)  # which of the two
        # when the first attempt began after its end that succeeds
        self.used_again: list[int | None] = [None] * len(failures)

    def look(self, now: int) -> None:
        """Something happened outside: brokers may have left the list, failures may have ended."""
        cluster, self._unused = self._cluster, {}
        for index, failure in enumerate(self._failures):
            if failure.broker_name in cluster.unlisted and self._lasts(index):
                self._mark_isolated(index, now, "route")
            if cluster.ended[index] is not None and self.used_again[index] is None:
                self._unused.setdefault(failure.broker_name, []).append(index)

    def failed(self, index: int, started: int) -> None:
        if self.first_failed[index] is None:
            self.first_failed[index] = started
        self.last_failed[index] = max(self.last_failed[index], started)

    def repeat(self, since: Counts, until: Counts, last_failed: Sequence[int], moved: int) -> None:
        """What failed between two moments failed again; the last time, of those of the second one, so much later."""
        for index, failed in enumerate(until.by_failure):
            if failed > since.by_failure[index]:
                self.last_failed[index] = last_failed[index] + moved

    def isolated(self, broker_name: str, now: int) -> None:
        for index, failure in enumerate(self._failures):
            if failure.broker_name == broker_name and self._lasts(index):
                self._mark_isolated(index, now, "isolation")

    def used(self, broker_name: str, started: int) -> None:
        if self._unused and broker_name in self._unused:
            for index in self._unused.pop(broker_name):
                self.used_again[index] = started

    def _lasts(self, index: int) -> bool:
        return self._cluster.began[index] is not None and self._cluster.ended[index] is None

    def _mark_isolated(self, index: int, now: int, why: str) -> None:
        if self.isolated_at[index] is None:
            self.isolated_at[index], self.isolated_by[index] = now, why


def _slice_width_us(scenario: SendScenario) -> int:
    """About sixty slices of a round length, where the end can be foreseen."""
    per_message = Fraction(scenario.latency.table[0], scenario.threads)
    if scenario.rate is not None:
        per_message = Fraction(1_000_000) / scenario.rate
    ends = [] if scenario.duration_us is None else [Fraction(scenario.duration_us)]
    if scenario.messages is not None:
        ends.append(scenario.messages * per_message)
    wanted = min(ends) / 60
    return next((w * 10**e for e in range(14) for w in (1, 2, 5) if w * 10**e >= wanted), 10**14)
