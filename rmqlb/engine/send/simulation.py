"""One simulation under way: the producer's threads and its fault strategy, the cluster outside, clock and recorder.

Rules of this file:
- What happens outside the producer at a tick comes before what its threads do then.
- Nothing is random but what `draw` gives.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from rmqlb.engine.randomness import draw, stream_key
from rmqlb.engine.send.clock import Clock, Thread
from rmqlb.engine.send.cluster_state import ClusterState
from rmqlb.engine.send.counters import Counts
from rmqlb.engine.send.fault import FaultStrategy
from rmqlb.engine.send.outcome import Outcomes
from rmqlb.engine.send.profile import ClientProfile
from rmqlb.engine.send.publish_info import MASK, TopicPublishInfo, int32, java_abs
from rmqlb.engine.send.recorder import LostSink, Recorder, Sink
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Reaction, SendScenario

_DETECTS_EACH_MS = 3000
_DETECT_TIMEOUT_US = 200_000
"""`LatencyFaultToleranceImpl` asks brokers that often, and waits so long for an answer."""


class Moment(Struct):
    """What has come of the simulation up to a tick, to be repeated from there on."""

    now: int
    started: int
    waits: int
    last_done: int
    last_failed: list[int]  # per failure, as `FailureTimestamps` has it
    counts: Counts
    indexes: list[int]  # of all threads and callbacks, in the order of `SendSimulation.indexes`
    arrivals: list[int]  # per thread, the number of its next message
    late: list[int]  # per thread, as `Clock.lateness` says


class SendSimulation:
    """The state of a simulation; what its threads do is a `Sender`'s business."""

    def __init__(
        self,
        route: TopicRouteData,
        scenario: SendScenario,
        profile: ClientProfile,
        trial: int = 0,
        sink: Sink | None = None,
        lost_sink: LostSink | None = None,
    ) -> None:
        self.route, self.scenario, self.profile, self.trial = route, scenario, profile, trial
        self.threads = [
            Thread(number, stream_key(scenario.seed, trial, number), arrival=number - 1)
            for number in range(1, scenario.threads + 1)
        ]
        self.indexed = list(self.threads)  # everyone with a round robin of its own, the callbacks of ASYNC sends too
        self.clock = Clock(scenario, self.threads)
        self.per_ms, ticks = self.clock.per_ms, self.clock.ticks_per_us
        self.first_poll_us = _first_poll_us(scenario, trial)
        self.cluster = ClusterState(route, scenario, profile, ticks, self.first_poll_us)
        self.publish_queues = tuple(self.cluster.queues)
        self.strategy = FaultStrategy(profile, enabled=scenario.latency_fault, per_ms=self.per_ms)
        self.outcomes = Outcomes(profile, detector=scenario.detector, retry_not_store_ok=scenario.retry_not_store_ok)
        self.recorder = Recorder(route, scenario, self.cluster, ticks, sink, lost_sink)
        # ticks that a timed-out SYNC attempt takes beyond its budget
        self.overshoot = (profile.overshoot_us if scenario.overshoot_us is None else scenario.overshoot_us) * ticks
        # ticks of an attempt that has no time left, or no address to go to
        self.empty = profile.empty_attempt_us * ticks
        # when the simulation ended, once it has: with its last message, or with the time that it was given
        self.ended = 0
        self.surprises = 0  # counts what no period can contain: random numbers, the detector's finds
        # what else happens up to a tick, before whatever changes at that tick
        self.outside: Callable[[int], None] | None = None
        self._next_detect = _DETECTS_EACH_MS * self.per_ms

    def next_event(self) -> tuple[int, Thread] | None:
        """Take the next thread that has something to do, what is due outside the producer before it having happened."""
        at = self.clock.next_at()
        if at is None:
            return None
        self._advance(at)
        if at >= self._next_detect:
            self._detect(at)
        return at, self.clock.take()

    def close(self) -> None:
        """Everything is done: let time pass up to the end, and count how long brokers were isolated until then."""
        recorder, clock = self.recorder, self.clock
        self.ended = recorder.last_done
        if clock.started < clock.limit:
            self.ended = max(self.ended, clock.end)
        self._advance(self.ended)
        recorder.isolation.count(self.ended)

    def next_boundary(self, now: int, *, isolations: bool) -> int:
        """Until when nothing happens but messages; the end of an isolation counts if asked for."""
        available = self.strategy.next_available(now) if isolations else None
        ends = (self.cluster.next_at, self.recorder.timeline.next_at, self.clock.end)
        return min(ends) if available is None else min(*ends, available)

    def begin_message(self, now: int) -> None:
        """Let happen what comes with the message that has just begun; an empty list is asked for anew."""
        cluster = self.cluster
        if self.clock.started >= cluster.next_message:
            cluster.message_starts(self.clock.started, now)
            self.recorder.look_around(now)
        if not cluster.queues:
            cluster.refresh()
            self.recorder.look_around(now)

    def look_at_route(self, thread: Thread) -> None:
        """The thread takes the client's newest queue list, with a round robin that starts anew."""
        if thread.version != self.cluster.version:
            self._new_info(thread)

    def draw(self, thread: Thread) -> int:
        """The thread's next random number, 64 bits."""
        bits = draw(thread.key, thread.draws)
        thread.draws += 1
        self.surprises += 1
        return bits

    def indexes(self) -> list[int]:
        """The index of each round robin, then each one's index among isolated brokers."""
        return [
            *(each.info.send_which_queue for each in self.indexed),
            *(each.worst.send_which_queue for each in self.indexed),
        ]

    def moment(self, now: int) -> Moment:
        """The present, which must be before a message of the thread that was taken last."""
        self.recorder.isolation.count(now)
        return Moment(
            now,
            self.clock.started,
            self.clock.waits,
            self.recorder.last_done,
            self.recorder.failures.last_failed.copy(),
            self.recorder.counts.copy(),
            self.indexes(),
            [thread.arrival for thread in self.threads],
            self.clock.lateness(now),
        )

    def repeat(self, since: Moment, until: Moment, times: int, now: int, *, isolations: bool) -> int:
        """Let happen so many times more what happened between two moments, the first or the second of which is as now.

        Returns the time then. The thread that was taken last is still to be woken.

        `until` only adds to `since` what would come again, and nothing random; `times` is such that nothing else would
        have happened meanwhile. With `isolations` those under way move on too, instead of ending when they would have.
        """
        ticks, recorder = times * (until.now - since.now), self.recorder
        recorder.isolation.count(now)
        recorder.repeat(since.counts, until.counts, times, ticks, isolations=isolations)
        moved = now + ticks - until.now
        recorder.last_done = until.last_done + moved
        recorder.failures.repeat(since.counts, until.counts, until.last_failed, moved)
        for item in self.strategy.items.values():
            # Where updates only extend, a time that is past never matters again; else it goes along, as all others.
            if isolations or (item.start <= now and not self.profile.only_extends):
                item.start += ticks
        infos = *(each.info for each in self.indexed), *(each.worst for each in self.indexed)
        for info, a, b in zip(infos, since.indexes, until.indexes, strict=True):
            info.send_which_queue = int32(info.send_which_queue + times * int32(b - a))
        self.clock.jump(
            ticks,
            times * (until.started - since.started),
            [times * (b - a) for a, b in zip(since.arrivals, until.arrivals, strict=True)],
        )
        return now + ticks

    def reaction_of(self, broker_name: str) -> tuple[int, Reaction | None]:
        """The failure that the broker is in, by its index, and how it reacts; −1 and None of a healthy one."""
        index = self.cluster.reactions.get(broker_name, -1)
        return index, None if index < 0 else self.scenario.failures[index].reaction

    def _advance(self, now: int) -> None:
        cluster, timeline = self.cluster, self.recorder.timeline
        while (due := min(cluster.next_at, timeline.next_at)) <= now:
            if self.outside is not None:
                self.outside(due)
            if timeline.next_at == due:
                self.recorder.end_slice(due)
            if cluster.next_at <= due:
                cluster.advance(due)
                self.recorder.look_around(due)
        if self.outside is not None:
            self.outside(now)

    def _new_info(self, thread: Thread) -> None:
        cluster, start = self.cluster, self.scenario.start_at
        if thread.number == 1 and thread.version < 0 and start is not None and cluster.queues:
            index = start - 1 + len(cluster.queues)
        else:
            index = self._new_index(self.draw(thread))
        if thread.version < 0:
            # Numbers of their own, so that whoever needs none of this index has the same others with and without it.
            seed, trial = self.scenario.seed, self.trial
            thread.worst.send_which_queue = self._new_index(draw(stream_key(seed, trial, -thread.number), 0))
        info = TopicPublishInfo((), index, cluster.write_queue_nums, lambda: (self.draw(thread) >> 32) * MASK >> 32)
        info.queues = cluster.queues
        thread.info = info
        thread.version = cluster.version

    def _new_index(self, bits: int) -> int:
        """`Random.nextInt()` as the client starts a `ThreadLocalIndex` with it."""
        start = int32(bits >> 32)
        if self.profile.any_start:
            return start
        start = java_abs(start)
        return 0 if self.profile.index_step == "clamp" and start < 0 else start

    def _detect(self, now: int) -> None:
        """The detector's rounds up to now, each 3 s: a broker that answers is reachable again."""
        period = _DETECTS_EACH_MS * self.per_ms
        self._next_detect += ((now - self._next_detect) // period + 1) * period
        if not (self.scenario.detector and self.scenario.latency_fault and self.profile.only_extends):
            return
        for name, item in self.strategy.items.items():
            if not item.reachable and not silent(self.reaction_of(name)[1]):
                item.reachable = True
                self.surprises += 1


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
