"""A scenario as the kernel of many trials takes it, where the kernel covers it.

Rule of this file: nothing is decided twice. The engine's own `ClusterState` is asked what happens when, its own
`Outcomes` what an attempt ends in; all that is done here is to number things.
"""

from __future__ import annotations

from typing import NamedTuple

from rmqlb.engine.send.exceptions import CALL_TIMEOUT
from rmqlb.engine.send.outcome import SEND_OK, Outcome
from rmqlb.engine.send.simulation import SendSimulation, silent
from rmqlb.engine.send.vectorized.scenario import (
    NEVER,
    OK,
    REFUSED,
    TIMEOUT,
    PlannedFailure,
    PlannedOutcome,
    PlannedReaction,
    Segment,
    SendPlan,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.send_scenario import JAVA, Latency, Moment, Reaction

_HORIZON = 1 << 60


class Lanes(NamedTuple):
    """A plan and what its numbers stand for."""

    plan: SendPlan  # for `rmqlb.engine.send.vectorized.simulation.SendKernel`
    rows: tuple[MessageQueue, ...]  # the queues
    broker_names: tuple[str, ...]  # the brokers
    reasons: tuple[str, ...]  # why messages are lost


def lanes_of(simulation: SendSimulation) -> Lanes | None:
    """The scenario in plain numbers.

    Returns None where the kernel does not cover it: other SDKs than Java, other modes than SYNC, selectors, failures by
    message number or with route polls at random times, a queue list that becomes empty, and numbers that are absurd.
    """
    scenario = simulation.scenario
    moments = [moment for failure in scenario.failures for moment in (failure.start, failure.end) if moment is not None]
    by_time = all(moment.us is not None and moment.us >= 0 for moment in moments)
    polls_by_time = scenario.first_poll_us is not None or not scenario.failures
    if (
        scenario.sdk != JAVA
        or scenario.mode != "sync"
        or scenario.chosen_by is not None
        or not (by_time and polls_by_time)
    ):
        return None
    if not _moderate(simulation, moments):
        return None
    numbers = _Numbers(simulation)
    segments = numbers.segments(simulation)
    if not all(numbers.lists.values()):
        return None
    return Lanes(
        _plan(simulation, numbers, segments), tuple(numbers.rows), tuple(numbers.brokers), tuple(numbers.reasons)
    )


def _moderate(simulation: SendSimulation, moments: list[Moment]) -> bool:
    """All times fit 64 bits, and nothing is negative that the kernel takes for a length."""
    scenario, clock = simulation.scenario, simulation.clock
    tables = [scenario.latency, *scenario.latencies.values()]
    costs = [failure.reaction.cost_us for failure in scenario.failures]
    times = [min((*latency.table, *latency.tail)) for latency in tables] + costs
    cap = scenario.timeout_per_request_ms
    overshoot = simulation.overshoot
    given = (scenario.timeout_ms, scenario.retries, 0 if cap is None else cap, overshoot)
    if min((*given, *times)) < 0 or simulation.per_ms >= 1 << 31:
        return False
    longest = max((*(max((*latency.table, *latency.tail)) for latency in tables), *costs, 1_000_000))
    message = (longest + scenario.timeout_ms * 1000) * clock.ticks_per_us + overshoot
    isolation = max((*simulation.profile.not_available_duration, 0)) * simulation.per_ms
    last = 0 if scenario.messages is None else scenario.messages * (message * (scenario.retries + 1))
    last += 0 if scenario.messages is None or clock.interval is None else scenario.messages * clock.interval
    last += 0 if scenario.duration_us is None else scenario.duration_us * clock.ticks_per_us
    last = max([last, *(moment.us or 0 for moment in moments)])
    return (last + message + isolation) * 2 * scenario.threads < _HORIZON


class _Numbers:
    """Gives queues, brokers, queue lists, outcomes and reasons their numbers."""

    def __init__(self, simulation: SendSimulation) -> None:
        self.brokers = {name: number for number, name in enumerate(simulation.recorder.counts.isolated_ticks)}
        self.rows: dict[MessageQueue, int] = {}
        self.lists: dict[int, tuple[int, ...]] = {}
        outcomes = simulation.outcomes
        self.outcomes: list[Outcome] = [SEND_OK, outcomes.refused, outcomes.timeout, outcomes.no_address]
        gone = PlannedReaction(kind="gone", cost=simulation.empty, outcome=self.outcomes.index(outcomes.no_address))
        self.reactions = [
            *(self._reaction(simulation, failure.reaction) for failure in simulation.scenario.failures),
            gone,
        ]
        names = dict.fromkeys(outcome.name for outcome in self.outcomes if outcome.failed)
        self.reasons = {name: number for number, name in enumerate((*names, CALL_TIMEOUT))}

    def _reaction(self, simulation: SendSimulation, reaction: Reaction) -> PlannedReaction:
        cost = reaction.cost_us * simulation.clock.ticks_per_us
        match reaction.kind:
            case "refused":
                return PlannedReaction(kind="refused", cost=cost, outcome=REFUSED)
            case "timeout":
                return PlannedReaction(kind="timeout", cost=0, outcome=TIMEOUT)
            case "slow":
                return PlannedReaction(kind="slow", cost=cost, outcome=OK)
            case "status" | "code" | "read-only":  # nobody meets the last
                outcome = simulation.outcomes.answer(reaction) if reaction.kind != "read-only" else SEND_OK
                if outcome not in self.outcomes:
                    self.outcomes.append(outcome)
                return PlannedReaction(kind="answer", cost=0, outcome=self.outcomes.index(outcome))

    def segments(self, simulation: SendSimulation) -> list[Segment]:
        """All that happens outside, by letting it happen."""
        cluster = simulation.cluster
        segments = [self._segment(simulation, 0)]
        while cluster.next_at < NEVER:
            at = cluster.next_at
            cluster.advance(at)
            if segments[-1].start == at:
                segments.pop()
            segments.append(self._segment(simulation, at))
        return segments

    def _segment(self, simulation: SendSimulation, start: int) -> Segment:
        cluster, failures = simulation.cluster, simulation.scenario.failures
        if cluster.version not in self.lists:
            rows = [self.rows.setdefault(queue, len(self.rows)) for queue in cluster.queues]
            self.lists[cluster.version] = tuple(rows)
        failing = [cluster.reactions.get(name, -1) for name in self.brokers]
        gone = len(self.reactions) - 1
        return Segment(
            start=start,
            queue_list=list(self.lists).index(cluster.version),
            reactions=tuple(
                gone if name in cluster.gone else index for name, index in zip(self.brokers, failing, strict=True)
            ),
            silent=tuple(index >= 0 and silent(failures[index].reaction) for index in failing),
            under_way=tuple(
                began is not None and ended is None for began, ended in zip(cluster.began, cluster.ended, strict=True)
            ),
            unlisted=tuple(name in cluster.unlisted for name in self.brokers),
        )


def _plan(simulation: SendSimulation, numbers: _Numbers, segments: list[Segment]) -> SendPlan:
    scenario, profile = simulation.scenario, simulation.profile
    latencies = [scenario.latencies.get(name, scenario.latency) for name in numbers.brokers]
    tables: list[Latency] = []
    for latency in latencies:
        if latency not in tables:
            tables.append(latency)
    return SendPlan(
        seed=scenario.seed,
        threads=scenario.threads,
        ticks=simulation.clock.ticks_per_us,
        interval=simulation.clock.interval,
        limit=min(simulation.clock.limit, NEVER),
        end=min(simulation.clock.end, NEVER),
        start_at=scenario.start_at,
        attempts=1 + scenario.retries,
        timeout_ms=scenario.timeout_ms,
        cap_ms=scenario.timeout_per_request_ms if profile.caps_request else None,
        overshoot=simulation.overshoot,
        empty=simulation.empty,
        index_step=profile.index_step,
        any_start=profile.any_start,
        plain_scan=profile.skip == "scan",
        strategy=profile.strategy if scenario.latency_fault else "plain",
        scan_last=profile.scan_last,
        needs_reach=profile.available_is_reachable,
        resets=profile.resets_index,
        only_extends=profile.only_extends,
        thresholds=tuple(zip(profile.latency_max, profile.not_available_duration, strict=True)),
        isolation_ms=profile.duration(0, isolation=True),
        detects=scenario.detector and scenario.latency_fault and profile.only_extends,
        brokers=len(numbers.brokers),
        row_brokers=tuple(numbers.brokers[queue.broker_name] for queue in numbers.rows),
        lists=tuple(numbers.lists.values()),
        segments=tuple(segments),
        reactions=tuple(numbers.reactions),
        failures=tuple(_failure(simulation, numbers, segments, index) for index in range(len(scenario.failures))),
        outcomes=tuple(
            PlannedOutcome(
                failed=outcome.failed,
                lesser=outcome.fate == "status",
                retry=outcome.retry,
                isolation=outcome.isolation,
                reachable=outcome.reachable,
                reason=numbers.reasons[outcome.name] if outcome.failed else -1,
            )
            for outcome in numbers.outcomes
        ),
        reasons=len(numbers.reasons),
        tables=tuple((latency.table, latency.tail) for latency in tables),
        broker_tables=tuple(tables.index(latency) for latency in latencies),
    )


def _failure(simulation: SendSimulation, numbers: _Numbers, segments: list[Segment], index: int) -> PlannedFailure:
    failure, began = simulation.scenario.failures[index], simulation.cluster.began[index]
    broker = numbers.brokers.get(failure.broker_name, -1)
    return PlannedFailure(
        broker=broker,
        began=NEVER if began is None else began,
        unlisted=next((s.start for s in segments if broker >= 0 and s.under_way[index] and s.unlisted[broker]), NEVER),
    )
