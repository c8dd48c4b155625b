"""Sizes that catch up after an outage, or drain a lag, by closed forms; `tests/engine/test_backlog.py` has the model."""

import json
import random
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqlb import MessageQueue, SizeLimits, SizeQuestion, TopicRouteData, UsageError, allocate, size_group
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.size_group.sizes import future_ids
from rmqlb.model.process_queue import ConsumerEvidence, threads_of
from rmqlb.model.size_group import GroupSize, SizedBacklog
from tests.cli.run import ROOT, data_of, run
from tests.support.builders import route
from tests.support.mismatches import refusal

MINUTE_MS = 60_000.0
AFTER_30M = {"outage_ms": 30 * MINUTE_MS, "catch_up_ms": 30 * MINUTE_MS}


def sized(*routes: TopicRouteData, limits: dict[str, Any], **more: Any) -> GroupSize:
    asked: dict[str, Any] = {"limits": SizeLimits(**limits), "consumers": (1, 12)}
    return size_group("g", routes, SizeQuestion(**asked | more))


def even(topic: TopicRouteData, each: float) -> dict[MessageQueue, float]:
    return dict.fromkeys(topic.subscribe_queues(), each)


@given(
    st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]),
    st.booleans(),
    st.integers(1, 60),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_the_slowest_consumer_decides(
    strategy: str, orderly: bool, minutes: int, numbers: list[int], drawn: random.Random
) -> None:
    routes = [route(f"T{n}", a=number) for n, number in enumerate(numbers)]
    queues = [queue for each in routes for queue in each.subscribe_queues()]
    work = {queue: drawn.choice([0.0, 0.3, 0.6, 0.9, 2.0]) for queue in queues}
    lag = {queue: drawn.choice([0.0, 5.0, 700.0]) for queue in queues}
    threads = 30 if orderly else 4  # more threads than queues: each queue has its own
    limits = SizeLimits(outage_ms=minutes * MINUTE_MS, catch_up_ms=MINUTE_MS, drain_in_ms=20 * MINUTE_MS)
    question = SizeQuestion(
        limits=limits,
        consumers=(1, 5),
        strategies=(strategy,),
        work=work,
        lag=lag,
        threads=threads,
        orderly=orderly,
        trials=3,
    )
    found = size_group("g", routes, question)
    ids = [[f"{n:05}" for n in range(5)]] if found.every_order else future_ids(strategy, Settings(), question, 5)

    def alone(waiting: float, coming: float, capacity: float) -> float:
        return 0.0 if not waiting else waiting / (capacity - coming) if coming < capacity else inf

    def slowest(lags: dict[MessageQueue, float], joined: list[str]) -> float:
        owned: dict[str, list[MessageQueue]] = {client_id: [] for client_id in joined}
        for each in routes:
            for client_id, share in allocate(strategy, each.subscribe_queues(), joined).items():
                owned[client_id] += share
        if orderly:
            return max(alone(lags[queue], work[queue], 1) for queue in queues)
        return max(
            alone(sum(lags[queue] for queue in own), sum(work[queue] for queue in own), threads)
            for own in owned.values()
        )

    outage = {queue: each * 60 * minutes for queue, each in work.items()}
    for point in found.curve:
        joined = [each[: point.consumers] for each in ids]
        for got, lags, most in ((point.catch_up_ms, outage, 1), (point.drain_ms, lag, 20)):
            expected = max(slowest(lags, each) for each in joined)
            assert got == (None if expected == inf else pytest.approx(1000 * expected))
            assert (("drain-in" if most == 20 else "catch-up") in point.fails) == (expected > 60 * most * (1 + 1e-9))


def test_an_outage_limits_utilisation() -> None:
    # A backlog of 30 minutes is gone in 30 minutes with a utilisation of at most one half.
    topic = route(a=8)
    found = sized(topic, limits=AFTER_30M, work=even(topic, 10.0), threads=20)
    assert (found.consumers, found.best.utilisation, found.best.catch_up_ms) == (8, 0.5, 30 * MINUTE_MS)
    seven = found.at(7)
    assert seven is not None
    assert (seven.utilisation, seven.catch_up_ms, seven.fails) == (1.0, None, ("catch-up",))


def only_backlog(found: GroupSize) -> SizedBacklog:
    (backlog,) = found.backlogs
    return backlog


def test_no_number_of_consumers_helps_a_hot_key() -> None:
    topic = route(a=4)
    hot = topic.subscribe_queues()[2]
    found = sized(topic, limits=AFTER_30M, work=even(topic, 1.0) | {hot: 12.0}, threads=20)
    backlog = only_backlog(found)
    assert found.consumers is None
    assert (backlog.last_queue, backlog.slowest_queue) == (hot, hot)
    assert backlog.alone_ms == 45 * MINUTE_MS  # 12 / (20 - 12) of the outage
    assert backlog.inflow_over_mean == 12 / (15 / 4)


def test_more_queues_do_where_more_consumers_do_not() -> None:
    topic = route(a=2)
    more: dict[str, Any] = {"limits": AFTER_30M, "work": even(topic, 0.8), "orderly": True}
    alone = only_backlog(sized(topic, **more))
    assert alone.alone_ms == pytest.approx(120 * MINUTE_MS)
    found = sized(topic, queues_per_broker=(2, 8), **more)
    assert (found.consumers, found.queues_per_broker) == (1, 4)  # 1.6 in four queues: 0.4 of each queue's thread
    assert found.best.catch_up_ms == pytest.approx(20 * MINUTE_MS)


def test_lag_stays_in_its_queue() -> None:
    topic = route(a=4)
    first, *_, last = topic.subscribe_queues()
    more: dict[str, Any] = {"limits": {"drain_in_ms": MINUTE_MS}, "work": even(topic, 1.0), "threads": 5}
    of_last = even(topic, 0.0) | {last: 60.0}
    found = sized(topic, lag=of_last, queues_per_broker=(8, 8), **more)
    assert (found.consumers, only_backlog(found).last_queue) == (1, last)
    dropped = sized(topic, lag=of_last, queues_per_broker=(2, 2), **more)  # the queue with the lag is read no more
    assert (dropped.consumers, dropped.best.drain_ms, only_backlog(dropped).last_queue) == (None, None, first)


def test_orderly_queues_take_turns_on_few_threads() -> None:
    topic = route(a=4)
    limits = {"drain_in_ms": 10 * MINUTE_MS}
    found = sized(topic, limits=limits, work=even(topic, 0.1), lag=even(topic, 80.0), threads=2, orderly=True)
    assert found.best.drain_ms == pytest.approx(1000 * 320 / (2 - 0.4))


@pytest.mark.parametrize("ahead", [1.0, 10.0, 24.0])
def test_messages_that_come_after_a_backlog_come_alone(ahead: float) -> None:
    topic = route(a=2)
    more: dict[str, Any] = {"limits": {"outage_ms": MINUTE_MS, "catch_up_ms": MINUTE_MS}, "work": even(topic, 0.4)}
    alone = sized(topic, threads=2, **more).curve[0].catch_up_ms
    assert alone == pytest.approx(1000 * 24 / (1 - 0.4))
    found = sized(topic, threads=2, batch=4.0, ahead={"T": ahead}, **more).curve[0]
    # Until all waiting messages are cached; until these are consumed; until those that came meanwhile are.
    expected = (24 - ahead) / (4 - 0.4) + ahead / 4 + ahead / 4 * 0.4 / (1 - 0.4)
    assert (found.catch_up_ms, found.utilisation) == (pytest.approx(1000 * expected), 0.4)


OUTAGE = ("-g", "ship-svc", *["--rate", "100", "--outage", "10m", "--catch-up", "10m", "--sizes", "1..1"])


def reporting(folder: Path, **evidence: Any) -> str:
    """`faults.json`, whose consumers of ship-svc report this too."""
    document = json.loads((ROOT / "examples" / "faults.json").read_text(encoding="utf-8"))
    reports = [each for group in document["data"]["groups"] for each in group["reports"]]
    for report in reports:
        report["evidence"] |= evidence
    (path := folder / "reports.json").write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_reported_threads_count_unless_others_are_given(tmp_path: Path) -> None:
    """100 messages per second of 20 ms keep 2 threads busy; catching up takes 10 m * 2 / (threads - 2)."""
    for reported, more, threads in ((8, (), 8), (8, ("--set", "consume-threads=4"), 4), (None, (), 20)):
        line = ("size-group", "-s", reporting(tmp_path, threads=reported), *OUTAGE, *more)
        found, closing = data_of(*line), run(*line).stdout.splitlines()[-1]
        assert (found["threads"], found["threadsReported"]) == (threads, threads == 8)
        assert closing.endswith(f"{threads} consume threads per consumer{', as reported' * (threads == 8)}")
        assert found["curve"][0]["utilisation"] == 2 / threads
        assert found["curve"][0]["catchUpMs"] == pytest.approx(10 * MINUTE_MS * 2 / (threads - 2))
        slow = ("--rate", "100", "--set", "consume-time=200ms")
        change = ("-s", line[2], "-g", "ship-svc", "--scale-to", "1", *slow, *more)
        assert data_of("simulate-rebalance", *change)["lag"]["consumeThreads"] == threads
        lag = data_of("plan-rebalance", *change)["convergence"]["lag"]
        assert lag["growthPerSecond"] == pytest.approx(100 - 5 * threads)


@given(st.lists(st.one_of(st.none(), st.integers(1, 99))))
def test_the_fewest_reported_threads_count(numbers: list[int | None]) -> None:
    known = [number for number in numbers if number]
    assert threads_of(*(ConsumerEvidence(threads=number) for number in numbers)) == (min(known) if known else 20)


def test_reported_batches_shorten_the_time_to_catch_up(tmp_path: Path) -> None:
    """Reports are of calls: 20 ms, for one message or for a batch."""

    def times(batch: int, *, orderly: bool) -> tuple[float, float]:
        path = reporting(tmp_path, batch=batch, orderly=orderly)
        found = data_of("size-group", "-s", path, *OUTAGE, "--set", "consume-threads=8")
        return found["topics"][0]["consumeMs"], found["curve"][0]["catchUpMs"]

    consume_ms, alone = times(1, orderly=False)
    assert consume_ms == 20.0
    same, batches = times(4, orderly=False)
    assert (same, times(4, orderly=True)[0]) == (20.0, 5.0)
    assert batches < alone / 3


def test_limits_need_work_and_lag() -> None:
    topic = route(a=4)
    for limits, more, problem in (
        ({"outage_ms": 1.0}, {"work": even(topic, 1.0)}, "outage_ms and catch_up_ms need each other"),
        (AFTER_30M, {}, "a catch-up time needs work: the time that listeners need for the inflow of each queue"),
        ({"drain_in_ms": 1.0}, {"work": even(topic, 1.0)}, "drain_in_ms needs the current lag of each queue"),
    ):
        assert problem in refusal(UsageError, sized, topic, limits=dict(limits), **more).message
