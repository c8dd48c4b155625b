"""Random topics and scenarios for properties of the simulation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.send.scenarios import constant
from rmqlb.engine.send.simulate import producer_of
from rmqlb.engine.send.simulation import Producer
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure, Latency, Moment, Reaction, Selector, SendScenario
from tests.support.builders import route

BROKERS = ("a", "b", "c", "d")
VERSIONS = ("4.7.1", "4.8.0", "4.9.3", "4.9.7", "4.9.8", "5.0.0", "5.1.0", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.5.0")
REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
UNSAFE = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
ERROR = Reaction("code", "SYSTEM_ERROR", 1)
GO_AWAY = Reaction("code", "GO_AWAY", 1500)
READ_ONLY = Reaction("read-only", "read-only")
TWO = route(a=2, b=2)
REACTIONS = (
    REFUSED,
    TIMEOUT,
    Reaction("slow", "slow", 0, 700_000),
    Reaction("slow", "slow", 0, 4_000_000),
    UNSAFE,
    ERROR,
    Reaction("code", "SYSTEM_BUSY", 2),
    Reaction("code", "MESSAGE_ILLEGAL", 13),
    GO_AWAY,
    READ_ONLY,
)


def played(topic: TopicRouteData = TWO, *failures: Failure, **fields: Any) -> Producer:
    """A run at its end, to look at what reports do not say."""
    given: dict[str, Any] = {"messages": 1, "start_at": 0, "failures": failures}
    scenario = SendScenario(**given | fields)
    producer = producer_of(topic, scenario)
    producer.run()
    return producer


def routes() -> st.SearchStrategy[TopicRouteData]:
    """Topics with up to four brokers with queues, five on each at the most; the others of the four have none."""
    return st.lists(st.integers(1, 5), min_size=1, max_size=4).map(
        lambda counts: TopicRouteData(
            "T",
            tuple(QueueData(name, n, n, 6) for name, n in zip(BROKERS, (*counts, 0, 0, 0), strict=False)),
            tuple(BrokerData("c", name, {0: f"{name}:1"}) for name in BROKERS),
        )
    )


def fitting(topic: TopicRouteData, scenario: SendScenario) -> SendScenario:
    """The scenario without what is about brokers that the topic does not have, begun within its list."""
    names = {data.broker_name for data in topic.queue_datas}
    size = len(topic.publish_queues())
    return replace(
        scenario,
        failures=tuple(failure for failure in scenario.failures if failure.broker_name in names),
        latencies={name: latency for name, latency in scenario.latencies.items() if name in names},
        start_at=None if scenario.start_at is None or not size else scenario.start_at % size,
    )


def _windows(by_message: bool) -> st.SearchStrategy[tuple[Moment, Moment | None]]:
    times = st.integers(0, 90_000).map(lambda ms: ms * 1000)
    numbers = st.integers(1, 2000)

    def window(pair: tuple[int, int | None]) -> tuple[Moment, Moment | None]:
        start, length = pair
        if by_message:
            return Moment(message=start), None if length is None else Moment(message=start + length)
        return Moment(us=start), None if length is None else Moment(us=start + length)

    lengths = st.integers(1, 800) if by_message else st.integers(1, 60_000).map(lambda ms: ms * 1000)
    return st.tuples(numbers if by_message else times, st.one_of(lengths, st.none())).map(window)


@st.composite
def failures(draw: st.DrawFn, *, by_message: bool | None = None) -> Failure:
    """One failure of one of the brokers."""
    reaction = draw(st.sampled_from(REACTIONS))
    numbered = draw(st.booleans()) if by_message is None else by_message
    start, end = draw(_windows(numbered))
    notices = draw(st.sampled_from((None, 0, 5_000_000, 120_000_000)))
    known = reaction.kind in ("refused", "timeout")
    return Failure(draw(st.sampled_from(BROKERS)), reaction, start, end, notices if known else None)


@st.composite
def scenarios(
    draw: st.DrawFn,
    *,
    latencies: st.SearchStrategy[Latency] | None = None,
    modes: tuple[str, ...] = ("sync",),
    by_message: bool | None = None,
    most_messages: int = 1500,
) -> SendScenario:
    """A scenario that ends soon."""
    mode = draw(st.sampled_from(modes))
    rates = st.sampled_from((Fraction(1), Fraction(20), Fraction(100), Fraction(333, 10), Fraction(2000)))
    latency = latencies or st.sampled_from((1000, 250, 3000, 60_000)).map(lambda us: constant(us, f"{us}us"))
    return SendScenario(
        client_version=draw(st.sampled_from(VERSIONS)),
        mode=mode,  # type: ignore[arg-type]
        latency_fault=draw(st.booleans()),
        detector=draw(st.sampled_from((False, False, False, True))),
        threads=draw(st.sampled_from((1, 1, 2, 3))),
        messages=draw(st.integers(1, most_messages)),
        rate=draw(rates if mode != "sync" else st.one_of(st.none(), rates)),
        duration_us=draw(st.one_of(st.none(), st.integers(1, 200_000).map(lambda ms: ms * 1000))),
        retries=draw(st.integers(0, 3)),
        timeout_ms=draw(st.sampled_from((3000, 3000, 500))),
        timeout_per_request_ms=draw(st.sampled_from((None, None, 300))),
        retry_not_store_ok=draw(st.booleans()),
        failures=tuple(draw(st.lists(failures(by_message=by_message), max_size=4))),
        latencies=draw(st.dictionaries(st.sampled_from(BROKERS), latency, max_size=2)),
        latency=draw(latency),
        start_at=draw(st.sampled_from((None, 0))),
        seed=draw(st.integers(0, 5)),
        first_poll_us=draw(st.sampled_from((30_000_000, 7_000_000, None))),
        overshoot_us=draw(st.sampled_from((None, None, 0, 1000))),
        selector=draw(st.sampled_from((None,) * 5 + (Selector("hash", (5, 7, -3)),))) if mode == "sync" else None,
    )
