"""The result of `simulate-send`: one simulation, what it is compared with, and what many trials say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from rmqlb.decoding import from_attributes
from rmqlb.model.condition import TriedCondition
from rmqlb.model.send_report import (
    Attempt,
    BrokerTally,
    ExceptionKind,
    FailureTaken,
    KeySpread,
    LostMessage,
    QueueCounts,
    SendReport,
    SendTotals,
    Slice,
)
from rmqlb.model.send_scenario import Mode, ProxyMode
from rmqlb.model.send_trials import SendTrials, TrialsReport


class SimulatedProducer(Struct, frozen=True, rename="camel"):
    """What was simulated.

    Attributes:
        client_version: version of the client.
        profile: the stretch of versions whose rules were followed.
        mode: sync, async or oneway.
        latency_fault: sendLatencyFaultEnable.
        detector: startDetectorEnable.
        latency_max_ms: thresholds of the latency fault table, in milliseconds.
        not_available_duration_ms: how long each of them isolates, in milliseconds.
        failure_isolates_ms: how long a failed attempt isolates, in milliseconds.
        threads: sending threads.
        messages: how many; null for as many as the time has room for.
        rate_per_second: messages per second; null for back to back.
        duration_ms: no message starts after it; null without limit.
        retries: retryTimesWhenSendFailed, or its sister for ASYNC.
        timeout_ms: sendMsgTimeout, for all attempts of a message together.
        timeout_per_request_ms: sendMsgMaxTimeoutPerRequest.
        retry_not_store_ok: retryAnotherBrokerWhenNotStoreOK.
        latency: broker name → its latency as text; default is that of the others.
        exclude: brokers whose queues the producer leaves out.
        selector: kind of the queue selector, of a function its name; null without one.
        seed: of everything random.
        first_poll_ms: when the route is asked for again first.
        poll_ms: how often then.
        sdk: whose producer, such as java or go-grpc; of another one than java the time-out is that of one attempt.
        proxy_mode: how the Proxy of gRPC producers runs: local, in each broker; cluster, by itself.
    """

    client_version: str
    profile: str
    mode: Mode
    latency_fault: bool
    detector: bool
    latency_max_ms: tuple[int, ...]
    not_available_duration_ms: tuple[int, ...]
    failure_isolates_ms: int
    threads: int
    messages: int | None
    rate_per_second: float | None
    duration_ms: float | None
    retries: int
    timeout_ms: int
    timeout_per_request_ms: int | None
    retry_not_store_ok: bool
    latency: Mapping[str, str]
    exclude: tuple[str, ...]
    selector: str | None
    seed: int
    first_poll_ms: float
    poll_ms: float
    sdk: str
    proxy_mode: ProxyMode


class OtherProducer(Struct, frozen=True, rename="camel"):
    """The same scenario with another setting, in short.

    Attributes:
        sdk: whose producer, such as java or go-grpc.
        client_version: version of the client.
        profile: the stretch of versions whose rules were followed.
        latency_fault: sendLatencyFaultEnable.
        totals: in numbers.
        brokers: broker by broker.
        failures: how each failure was taken.
    """

    sdk: str
    client_version: str
    profile: str
    latency_fault: bool
    totals: SendTotals
    brokers: tuple[BrokerTally, ...]
    failures: tuple[FailureTaken, ...]


class SendResult(Struct, frozen=True, rename="camel"):
    """Where a producer's messages go while brokers fail.

    Attributes:
        topic: to which they are sent.
        scenario: what was simulated.
        attempts: every attempt; null for more than 1,000 messages without --trace.
        lost_messages: every lost message and what the application is told of it; null where attempts is.
        exceptions: what the application gets of lost messages, the most frequent first.
        queues: queue by queue, in the producer's order.
        brokers: broker by broker.
        totals: in numbers.
        failures: how each failure was taken.
        timeline: slice by slice.
        keys: how keys lie on queues; null without --keys.
        comparison: latency fault off and on; empty without --compare.
        clients: other client versions; empty without --compare-clients.
        sdks: producers of each SDK; empty without --compare-sdks.
        trials: what many trials say; null without --trials.
        conditions: what --fail-on asked for.
    """

    topic: str
    scenario: SimulatedProducer
    attempts: tuple[Attempt, ...] | None
    lost_messages: tuple[LostMessage, ...] | None
    exceptions: tuple[ExceptionKind, ...]
    queues: tuple[QueueCounts, ...]
    brokers: tuple[BrokerTally, ...]
    totals: SendTotals
    failures: tuple[FailureTaken, ...]
    timeline: tuple[Slice, ...]
    keys: KeySpread | None
    comparison: tuple[OtherProducer, ...]
    clients: tuple[OtherProducer, ...]
    sdks: tuple[OtherProducer, ...]
    trials: SendTrials | None
    conditions: tuple[TriedCondition, ...]


def send_result(
    report: SendReport,
    compared: Sequence[SendReport],
    clients: Sequence[SendReport],
    trials: TrialsReport | None,
    conditions: Sequence[TriedCondition],
    keys: KeySpread | None,
    sdks: Sequence[SendReport] = (),
) -> SendResult:
    """The whole result."""
    return SendResult(
        topic=report.topic,
        scenario=_simulated(report),
        attempts=report.attempts,
        lost_messages=report.lost_messages,
        exceptions=from_attributes(report.exceptions, tuple[ExceptionKind, ...]),
        queues=from_attributes(report.queues, tuple[QueueCounts, ...]),
        brokers=report.brokers,
        totals=report.totals,
        failures=from_attributes(report.failures, tuple[FailureTaken, ...]),
        timeline=report.slices,
        keys=keys,
        comparison=tuple(_in_short(each) for each in compared) if len(compared) > 1 else (),
        clients=tuple(_in_short(each) for each in clients),
        sdks=tuple(_in_short(each) for each in sdks),
        trials=None if trials is None else from_attributes(trials, SendTrials),
        conditions=tuple(conditions),
    )


def _simulated(report: SendReport) -> SimulatedProducer:
    s = report.scenario
    return SimulatedProducer(
        client_version=s.client_version,
        profile=report.profile,
        mode=s.mode,
        latency_fault=s.latency_fault,
        detector=s.detector,
        latency_max_ms=report.latency_max,
        not_available_duration_ms=report.not_available_duration,
        failure_isolates_ms=report.failure_isolates_ms,
        threads=s.threads,
        messages=s.messages,
        rate_per_second=None if s.rate is None else float(s.rate),
        duration_ms=None if s.duration_us is None else s.duration_us / 1000,
        retries=s.retries,
        timeout_ms=s.timeout_ms,
        timeout_per_request_ms=s.timeout_per_request_ms,
        retry_not_store_ok=s.retry_not_store_ok,
        latency={"default": s.latency.text, **{name: latency.text for name, latency in s.latencies.items()}},
        exclude=tuple(sorted(s.exclude)),
        selector=None if s.chosen_by is None else s.chosen_by.name,
        seed=s.seed,
        first_poll_ms=report.first_poll_ms,
        poll_ms=s.poll_us / 1000,
        sdk=s.sdk,
        proxy_mode=s.proxy_mode,
    )


def _in_short(report: SendReport) -> OtherProducer:
    return OtherProducer(
        sdk=report.scenario.sdk,
        client_version=report.scenario.client_version,
        profile=report.profile,
        latency_fault=report.scenario.latency_fault,
        totals=report.totals,
        brokers=report.brokers,
        failures=from_attributes(report.failures, tuple[FailureTaken, ...]),
    )
