"""A simulation's counts as a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, fsum

from rmqlb.engine.receive.closed_forms import closed_forms
from rmqlb.engine.receive.comeback import again_after_us
from rmqlb.engine.receive.recorder import UNKNOWN, Message
from rmqlb.engine.receive.routes import NEVER
from rmqlb.engine.receive.rules import invisible_us, rules_followed
from rmqlb.engine.receive.simulation import ReceiveSimulation
from rmqlb.model.receive_report import (
    BrokerReceives,
    CrashReceived,
    FailureReceived,
    Quantile,
    QueueWaits,
    ReceivedMessage,
    ReceiveReport,
    ReceiveTotals,
    SimulatedReceivers,
    WaitTimes,
)
from rmqlb.model.receive_scenario import ReceiveScenario
from rmqlb.model.times import milliseconds, milliseconds_if_known

_PERCENTS = (0, *range(5, 100, 5), 99, 100)


def wait_times(waits: Sequence[int]) -> WaitTimes | None:
    """How waits in microseconds are spread; None when there are none.

    >>> wait_times([1000, 3000, 2000])
    WaitTimes(messages=3, mean_ms=2.0, p50_ms=2, p95_ms=3, p99_ms=3, max_ms=3)
    """
    if not waits:
        return None
    ordered = sorted(waits)
    return WaitTimes(
        messages=len(ordered),
        mean_ms=round(fsum(ordered) / len(ordered)) / 1000,
        p50_ms=_ms_of(ordered, 50),
        p95_ms=_ms_of(ordered, 95),
        p99_ms=_ms_of(ordered, 99),
        max_ms=milliseconds(ordered[-1]),
    )


def report_of(simulation: ReceiveSimulation, *, trace: bool) -> ReceiveReport:
    """What came of a simulation that is over."""
    recorder, scenario = simulation.recorder, simulation.scenario
    waits = sorted(wait for counts in recorder.brokers for wait in counts.waits)
    return ReceiveReport(
        topic=simulation.queues[0].topic,
        scenario=simulated(simulation),
        wait=wait_times(waits),
        back=wait_times(recorder.back),
        quantiles=tuple(Quantile(percent, _ms_of(waits, percent)) for percent in _PERCENTS) if waits else (),
        brokers=_brokers(simulation),
        queue_waits=tuple(_queue_waits(simulation)),
        totals=_totals(simulation),
        closed_forms=closed_forms([len(broker.queues) for broker in simulation.brokers], scenario),
        failures=_failures(simulation),
        crashes=_crashes(simulation),
        messages=tuple(_message(message, simulation) for message in recorder.messages) if trace else None,
    )


def simulated(simulation: ReceiveSimulation) -> SimulatedReceivers:
    """What was simulated."""
    scenario = simulation.scenario
    rates = {} if scenario.rare else {broker.name: Fraction() for broker in simulation.brokers}
    for rate in scenario.rates:
        rates[rate.broker_name] += rate.per_second
    return SimulatedReceivers(
        client=scenario.client,
        broker_version=scenario.broker_version,
        rules=rules_followed(scenario),
        consumers=scenario.consumers,
        loops=scenario.loops if scenario.client == "simple" else 1,
        await_ms=milliseconds(simulation.environment.awaited_us),
        invisible_ms=milliseconds(invisible_us(scenario)),
        batch=scenario.batch,
        fifo=scenario.fifo,
        consume_ms=milliseconds(scenario.consume_us),
        error_pause_ms=milliseconds(simulation.consumers[0].pause_us),
        round_trip_ms=milliseconds(scenario.round_trip_us),
        rate_per_second=None if scenario.rare else float(sum(rates.values())),
        rates={name: float(rate) for name, rate in rates.items()},
        messages=scenario.messages,
        duration_ms=milliseconds_if_known(scenario.duration_us),
        seed=scenario.seed,
    )


def _ms_of(ordered: Sequence[int], percent: int) -> float:
    """The shortest time that this percentage of waits does not exceed."""
    return milliseconds(ordered[max(ceil(len(ordered) * percent / 100) - 1, 0)])


def _brokers(simulation: ReceiveSimulation) -> tuple[BrokerReceives, ...]:
    recorder = simulation.recorder
    whole = sum(counts.receives for counts in recorder.brokers)
    return tuple(
        BrokerReceives(
            broker_name=broker.name,
            queues=len(broker.queues),
            receives=counts.receives,
            share=counts.receives / whole if whole else None,
            empty=counts.empty,
            failed=counts.failed,
            messages=len(counts.waits),
            longest_unpolled_ms=milliseconds(counts.unpolled_us),
            wait=wait_times(counts.waits),
        )
        for broker, counts in zip(simulation.brokers, recorder.brokers, strict=True)
    )


def _queue_waits(simulation: ReceiveSimulation) -> Iterator[QueueWaits]:
    waits: dict[tuple[str, int], list[int]] = {(each.broker_name, each.queue_id): [] for each in simulation.queues}
    for message in simulation.recorder.messages:
        if message.received != UNKNOWN:
            own = waits[simulation.brokers[message.place].name, message.queue]
            own.append(message.received - message.stored)
    for (broker_name, queue_id), own in waits.items():
        times = wait_times(own)
        if times is None:
            yield QueueWaits(broker_name, queue_id, 0, None, None, None)
        else:
            yield QueueWaits(broker_name, queue_id, times.messages, times.mean_ms, times.p95_ms, times.max_ms)


def _totals(simulation: ReceiveSimulation) -> ReceiveTotals:
    recorder = simulation.recorder
    messages, counts = recorder.messages, recorder.brokers
    return ReceiveTotals(
        messages=len(messages),
        further=recorder.further,
        received=sum(len(each.waits) for each in counts),
        acknowledged=sum(message.done != UNKNOWN for message in messages),
        dead_lettered=recorder.dead_lettered,
        left=sum(each.open for each in counts),
        not_stored=recorder.not_stored,
        redelivered=sum(message.deliveries > 1 for message in messages),
        receives=sum(each.receives for each in counts),
        empty_receives=sum(each.empty for each in counts),
        failed_receives=sum(each.failed for each in counts),
        lasted_ms=milliseconds(simulation.clock.now),
    )


def _failures(simulation: ReceiveSimulation) -> tuple[FailureReceived, ...]:
    recorder = simulation.recorder
    left: dict[int, int] = {}
    for message in recorder.messages:
        if message.outage != UNKNOWN and message.received == UNKNOWN:
            left[message.outage] = left.get(message.outage, 0) + 1
    outages = sorted((each for own in simulation.routes.outages.values() for each in own), key=lambda one: one.place)
    return tuple(
        FailureReceived(
            broker_name=outage.failure.broker_name,
            kind=outage.failure.reaction.kind,
            from_ms=milliseconds(outage.begin),
            to_ms=None if outage.end >= NEVER else milliseconds(outage.end),
            failed=counts.failed,
            last_failed_ms=_known_ms(counts.last_failed),
            received_again_ms=_known_ms(counts.received_again),
            longest_wait_ms=_known_ms(counts.longest_wait),
            left=left.get(outage.place, 0),
        )
        for outage, counts in zip(outages, recorder.outages, strict=True)
    )


def _crashes(simulation: ReceiveSimulation) -> tuple[CrashReceived, ...]:
    scenario: ReceiveScenario = simulation.scenario
    earliest, latest = again_after_us(scenario)
    return tuple(
        CrashReceived(
            consumer=crash.consumer,
            at_ms=milliseconds(crash.at_us),
            unacknowledged=counts.unacknowledged,
            again=len(counts.again),
            after=wait_times(counts.again),
            again_earliest_ms=milliseconds(earliest),
            again_latest_ms=milliseconds(latest),
        )
        for crash, counts in zip(scenario.crashes, simulation.recorder.crashes, strict=True)
    )


def _message(message: Message, simulation: ReceiveSimulation) -> ReceivedMessage:
    known = message.received != UNKNOWN
    return ReceivedMessage(
        message=message.number,
        broker_name=simulation.brokers[message.place].name,
        queue_id=message.queue,
        stored_ms=milliseconds(message.stored),
        received_ms=_known_ms(message.received),
        wait_ms=milliseconds(message.received - message.stored) if known else None,
        consumer=message.consumer if known else None,
        deliveries=message.deliveries,
        done_ms=_known_ms(message.done),
    )


def _known_ms(us: int) -> float | None:
    return None if us == UNKNOWN else milliseconds(us)
