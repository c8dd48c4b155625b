"""Members that come and go, and how evenly they hold: small pasts, and every row that comes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline.history.churn import churn
from rmqlb.pipeline.history.snapshot_timeline import timeline
from rmqlb.pipeline.history.trend import trend
from tests.pipeline.pasts import Case, Shot, by_case, day, night, nights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Found = dict[str, list[tuple[Any, ...]]]


def members(*ids: str | None) -> list[Shot]:
    return [Shot(night(n), members={"g": seen}) for n, seen in enumerate(ids, 1)]


# Columns: date, processes, joined, left.
CHURN: dict[str, Case] = {
    "one observation is compared with the next": (
        members("AB", "BCD", "", "A"),
        [(day(1), 2, None, None), (day(2), 3, 2, 1), (day(3), 0, 0, 3), (day(4), 1, 1, 0)],
    ),
    "snapshots in which nobody looked are passed over": (
        members("AB", None, "BC"),
        [(day(1), 2, None, None), (day(3), 2, 1, 1)],
    ),
    "processes that share an id count each": (
        members("AAB", "ABBB"),
        [(day(1), 3, None, None), (day(2), 4, 2, 1)],
    ),
    "a day sums, and shows its last members": (
        [Shot(night(n), members={"g": ids}) for n, ids in ((1, "A"), (1.25, "B"), (1.5, "BC"))],
        [(day(1), 2, 2, 1)],
    ),
    "members of one moment are put together": (
        [*(Shot(night(1), members={"g": ids}, name=ids) for ids in ("AAB", "ABC")), Shot(night(2), {}, {"g": "AABC"})],
        [(day(1), 4, None, None), (day(2), 4, 0, 0)],
    ),
    "a snapshot without a time tells nothing": (
        [*members("A"), Shot(None, members={"g": "B"})],
        [(day(1), 1, None, None)],
    ),
}


def balance(lags: Mapping[int, int | None]) -> list[Shot]:
    held = {0: "A", 1: "A", 2: "A", 3: "B", 4: ""}
    return [Shot(night(1), {"g": held}, {"g": "ABC"}, {"g": lags})]


# Columns: date, processes, queues, maxQueuesPerConsumer, meanQueuesPerConsumer, imbalance, idle, unassigned, lag.
TREND: dict[str, Case] = {
    "the balance of what was seen": (
        balance({n: 10 * n for n in range(9)}),
        [(day(1), 3, 5, 3, 4 / 3, 2.25, 1, 1, 100)],
    ),
    "no lag is known": (balance({}), [(day(1), 3, 5, 3, 4 / 3, 2.25, 1, 1, None)]),
    "a queue has no offsets": (balance(dict.fromkeys(range(1, 9), 1)), [(day(1), 3, 5, 3, 4 / 3, 2.25, 1, 1, None)]),
    "a queue's lag is null": (balance({n: n or None for n in range(5)}), [(day(1), 3, 5, 3, 4 / 3, 2.25, 1, 1, None)]),
    "the lag is more than a number can be": (
        balance(dict.fromkeys(range(5), 2**62)),
        [(day(1), 3, 5, 3, 4 / 3, 2.25, 1, 1, None)],
    ),
    "without processes only the most is known": (
        nights({0: "A", 1: "A", 2: "B"}),
        [(day(1), None, 3, 2, None, None, None, 0, None)],
    ),
    "an owner that is not in the group does not count, and processes that share an id are one": (
        [Shot(night(1), {"g": {0: "Z", 1: "Z", 2: "A"}}, {"g": "AA"})],
        [(day(1), 2, 3, 1, 1.0, 1.0, 0, 0, None)],
    ),
    "no processes": ([Shot(night(1), {"g": {0: "Z"}}, {"g": ""})], [(day(1), 0, 1, None, None, None, 0, 0, None)]),
    "nobody holds anything": (
        [Shot(night(1), {"g": {0: ""}}, {"g": "AB"})],
        [(day(1), 2, 1, 0, 0.0, None, 2, 1, None)],
    ),
    "owners were not looked for": (members("AB"), []),
    "a snapshot without a time": ([Shot(None, {"g": {0: "A"}}, {"g": "A"})], []),
}


@pytest.fixture(scope="module")
def found_churn(spark: SparkSession) -> Found:
    def step(past: Mapping[str, DataFrame]) -> DataFrame:
        return churn(timeline(past["documents"]), past["groups"], past["processes"])

    return by_case(spark, CHURN, step, "date", "processes", "joined", "left")


@pytest.fixture(scope="module")
def found_trend(spark: SparkSession) -> Found:
    def step(past: Mapping[str, DataFrame]) -> DataFrame:
        order = timeline(past["documents"])
        return trend(order, past["owners"], past["groups"], past["processes"], past["offsets"])

    columns = "date processes queues maxQueuesPerConsumer meanQueuesPerConsumer imbalance idle unassigned lag"
    return by_case(spark, TREND, step, *columns.split())


@pytest.mark.parametrize("case", CHURN)
def test_churn(found_churn: Found, case: str) -> None:
    assert found_churn[case] == CHURN[case][1]


@pytest.mark.parametrize("case", TREND)
def test_trend(found_trend: Found, case: str) -> None:
    assert found_trend[case] == TREND[case][1]
