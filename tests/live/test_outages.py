"""Ten groups stop for one to three minutes under load and catch up: when, against when rmqlb says that they will.

Drain times are predicted twice: before the consumers start, by `size-group` from rates, the listener's time and the
number of consumers; and by `diagnose` from the first samples of the group while it catches up. A group is drained when
none of its messages waits: the first moment at which each message that is stored has reached a listener.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.cli.run import data_of

from .cluster import RocketMQCluster
from .outages import BROKERS, SAMPLE_S, Outage, Run, live_through

pytestmark = [pytest.mark.live, pytest.mark.slow]

PAIR = {"Pair": (10,) * 6}
ORDERED_PAIR = {"OrderedPair": (3,) * 4}
# A client rebalances 1 s after its creation at the earliest, and pulls 0.5 s later (5.2 and newer).
PULLS_AFTER_MS = 1500
# The first calls are over by then, also of a consumer that pulls only after its next heartbeat.
UNDER_WAY_MS = 4000
CLOSE = 0.1
MOST_MISSES = 1
CATCH_UP_S = 120
# Calls are long and messages few, so that a busy machine lengthens calls by little and keeps up with the rates.
TEN = (
    Outage("plain", {"Plain": (25,) * 6}, consumers=3, threads=8, sleep_ms=100, outage_s=60),
    Outage("uneven", {"Uneven": (8,) * 8}, consumers=3, threads=4, sleep_ms=100, outage_s=90),
    Outage("ordered", {"Ordered": (10,) * 4}, consumers=2, threads=2, sleep_ms=50, outage_s=90, orderly=True),
    Outage("turns", {"Turns": (5,) * 8}, consumers=2, threads=2, sleep_ms=50, outage_s=180, orderly=True),
    Outage("hot", {"Hot": (40, 10, 10, 10)}, consumers=2, threads=8, sleep_ms=100, outage_s=90),
    Outage("hot-ordered", {"HotOrdered": (12, 4, 4, 4)}, consumers=2, threads=2, sleep_ms=50, outage_s=60, orderly=True),
    Outage("batches", {"Batches": (12,) * 4}, consumers=2, threads=4, sleep_ms=100, outage_s=120, batch=2),
    Outage("two-topics", {"First": (5,) * 4, "Second": (15,) * 2}, consumers=2, threads=4, sleep_ms=80, outage_s=100),
    Outage("pair", PAIR, consumers=3, threads=4, sleep_ms=100, outage_s=60),
    Outage("ordered-pair", ORDERED_PAIR, consumers=2, threads=1, sleep_ms=50, outage_s=120, orderly=True),
)  # fmt: skip
ONE_FEWER = (
    Outage("pair-less", PAIR, consumers=2, threads=4, sleep_ms=100, outage_s=60),
    Outage("ordered-pair-less", ORDERED_PAIR, consumers=1, threads=1, sleep_ms=50, outage_s=120, orderly=True),
)


class Prediction(NamedTuple):
    """A drain time, predicted at some moment, and the real one; in milliseconds."""

    group: str
    predicted: float | None
    real: float
    how: str

    @property
    def error(self) -> float:
        return float("inf") if self.predicted is None else self.predicted / self.real - 1

    def __str__(self) -> str:
        predicted = "?" if self.predicted is None else f"{self.predicted / 1000:.1f} s"
        return f"{self.group:18} {predicted:>8} {self.real / 1000:7.1f} s {self.error:+7.1%}  {self.how}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("outages")
    with RocketMQCluster("5.5.0", brokers=BROKERS) as cluster:
        apart = [replace(each, stops_s=each.stops_s + 3 * n) for n, each in enumerate((*TEN, *ONE_FEWER))]
        return live_through(cluster, apart, folder)


def size(run: Run, outage: Outage, *more: str) -> Any:
    """What `size-group` says of the group by samples before its stop."""
    own = run.backlogs[outage.group]
    first, *_, last = run.until(own.told["stopping"][0] - SAMPLE_S * 1000)  # none that was still being read then
    nobody_ms = own.restarted + PULLS_AFTER_MS - own.told["stopping"][0]
    limits = f"--outage {nobody_ms}ms --catch-up {CATCH_UP_S}s --set consume-threads={outage.threads}".split()
    return data_of("size-group", "-s", str(last), "--earlier", str(first), "-g", outage.group, *limits, *more)


def before_the_start(run: Run, outage: Outage) -> Prediction:
    number = outage.consumers
    sized = size(run, outage, "--sizes", f"{number}..{number}")
    catch_up = sized["curve"][0]["catchUpMs"]
    own = run.backlogs[outage.group]
    times = "/".join(f"{topic['consumeMs']:.1f}" for topic in sized["topics"])
    predicted = None if catch_up is None else catch_up + PULLS_AFTER_MS
    return Prediction(outage.group, predicted, own.drained() - own.restarted, f"{times} ms a call")


def while_it_drains(run: Run, outage: Outage) -> Prediction:
    own = run.backlogs[outage.group]
    first, second, third = run.since(own.restarted + UNDER_WAY_MS)[:3]
    earlier = ("--earlier", str(first), "--earlier", str(second))
    drain = data_of("diagnose", "-s", str(third), *earlier, "-g", outage.group)["drain"]
    left = own.drained() - run.snapshots[third]
    how = f"{drain['inflowPerSecond']:.0f}/s in, {drain['consumedPerSecond']:.0f}/s out {drain['reason'] or ''}"
    return Prediction(outage.group, drain["drainMs"], left, how)


def must_hold(predictions: Iterable[Prediction]) -> None:
    found = [*predictions]
    table = "\n".join(map(str, found))
    assert sum(abs(each.error) > CLOSE for each in found) <= MOST_MISSES, table


def test_drain_times_before_the_start(run: Run) -> None:
    must_hold(before_the_start(run, outage) for outage in TEN)


def test_drain_times_from_samples(run: Run) -> None:
    must_hold(while_it_drains(run, outage) for outage in TEN)


@pytest.mark.parametrize("fewer", ONE_FEWER, ids=lambda outage: outage.group)
def test_one_consumer_fewer_does_not_catch_up_in_time(run: Run, fewer: Outage) -> None:
    enough = next(outage for outage in TEN if fewer.group.startswith(outage.group))
    assert size(run, enough)["consumers"] == enough.consumers == fewer.consumers + 1
    in_time, late = (run.backlogs[outage.group] for outage in (enough, fewer))
    assert in_time.drained() - in_time.restarted <= CATCH_UP_S * 1000 < late.drained() - late.restarted
