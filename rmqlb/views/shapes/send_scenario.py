"""What a producer was put through: part of `rmqlb/send`."""

from __future__ import annotations

from typing import TypedDict


class SendScenarioData(TypedDict):
    """What was simulated.

    Attributes:
        clientVersion: version of the client.
        profile: the stretch of versions whose rules were followed.
        mode: sync, async or oneway.
        latencyFault: sendLatencyFaultEnable.
        detector: startDetectorEnable.
        latencyMaxMs: thresholds of the latency fault table, in milliseconds.
        notAvailableDurationMs: how long each of them isolates, in milliseconds.
        failureIsolatesMs: how long a failed attempt isolates, in milliseconds.
        threads: sending threads.
        messages: how many; null for as many as the time has room for.
        ratePerSecond: messages a second; null for back to back.
        durationMs: no message starts after it; null without limit.
        retries: retryTimesWhenSendFailed, or its sister for ASYNC.
        timeoutMs: sendMsgTimeout, for all attempts of a message together.
        timeoutPerRequestMs: sendMsgMaxTimeoutPerRequest.
        retryNotStoreOk: retryAnotherBrokerWhenNotStoreOK.
        latency: broker name → its latency as text; default is that of the others.
        exclude: brokers whose queues the producer leaves out.
        selector: kind of the queue selector, of a function its name; null without one.
        seed: of everything random.
        firstPollMs: when the route is asked for again first.
        pollMs: how often then.
    """

    clientVersion: str
    profile: str
    mode: str
    latencyFault: bool
    detector: bool
    latencyMaxMs: list[int]
    notAvailableDurationMs: list[int]
    failureIsolatesMs: int
    threads: int
    messages: int | None
    ratePerSecond: float | None
    durationMs: float | None
    retries: int
    timeoutMs: int
    timeoutPerRequestMs: int | None
    retryNotStoreOk: bool
    latency: dict[str, str]
    exclude: list[str]
    selector: str | None
    seed: int
    firstPollMs: float
    pollMs: float
