"""Queues that change hands, and groups that do not come to rest: small pasts, and every row that comes of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline.history.moves import DAYS, days, flapping, moves
from rmqlb.pipeline.history.sessions import sessions
from rmqlb.pipeline.history.snapshot_timeline import timeline
from tests.pipeline.pasts import Case, Shot, by_case, day, night, nights, rows, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Found = dict[str, list[tuple[Any, ...]]]


def made_days(past: Mapping[str, DataFrame]) -> DataFrame:
    return days(timeline(past["documents"]), past["owners"], past["groups"])


# Columns: date, moved, unassigned, assigned, observed, snapshots.
MOVES: dict[str, Case] = {
    "each queue counts by what became of it": (
        nights(
            {0: "A", 1: "A", 2: "A", 3: "", 4: "", 5: "BA", 6: "A"},
            {0: "A", 1: "B", 2: "", 3: "A", 4: "", 5: "AB", 7: "A"},
        ),
        [(day(2), 1, 1, 1, 6, 1)],
    ),
    "a second owner is a move": (nights("A", "AB"), [(day(2), 1, 0, 0, 1, 1)]),
    "one observation is no step": (nights("A", None), []),
    "a step passes over snapshots without the group, and counts no queue that misses one of its ends": (
        nights({0: "A", 1: "A"}, None, {0: "B"}, {0: "B", 1: "B"}),
        [(day(3), 1, 0, 0, 1, 1), (day(4), 0, 0, 0, 1, 1)],
    ),
    "a day sums its steps": (
        [Shot(night(n), {"g": {0: held}}) for n, held in zip((1, 2, 2.25, 2.5, 2.75), "ABCAB", strict=True)],
        [(day(2), 4, 0, 0, 4, 4)],
    ),
    "a step in which no queue is seen twice is one": (nights({0: "A"}, {1: "A"}), [(day(2), 0, 0, 0, 0, 1)]),
    "two snapshots at one time are no step": (
        [Shot(night(1), {"g": {0: "A"}}, name="x"), Shot(night(1), {"g": {0: "B"}}, name="y")],
        [],
    ),
    "a broadcasting group moves nothing": (
        [*nights("A", "AB", "B"), Shot(night(4), models={"g": "BROADCASTING"})],
        [],
    ),
}

FOUR = dict.fromkeys(range(4), "A")
BY_B, BY_C = dict.fromkeys(range(4), "B"), dict.fromkeys(range(4), "C")
ONE_BY_B, ONE_UNOWNED = {**FOUR, 0: "B"}, {**FOUR, 0: ""}
RARE = [
    Shot(night(n), {"g": {0: held, 1: "Z", 2: "Z"}}) for n, held in zip((1, 2, 3, 20, 21, 40), "ABABAA", strict=True)
]

# Columns: moved, returns, queues, days, movedPerDay, flaps.
FLAPPING: dict[str, Case] = {
    "one snapshot": (nights("A"), [(0, 0, 0, 1, 0.0, False)]),
    "at rest": (nights("A", "A", "A"), [(0, 0, 0, 2, 0.0, False)]),
    "one move of its one queue": (nights("A", "B"), [(1, 0, 1, 1, 1.0, False)]),
    "moved every night": (nights("A", "B", "A"), [(2, 1, 1, 2, 1.0, True)]),
    "one deployment": (nights(FOUR, FOUR, FOUR, BY_B), [(4, 0, 4, 3, 4 / 3, False)]),
    "one return": (nights(FOUR, ONE_BY_B, FOUR, FOUR, FOUR), [(2, 1, 1, 4, 0.5, False)]),
    "back and forth": (nights(*[FOUR, ONE_BY_B] * 3), [(5, 4, 1, 5, 1.0, True)]),
    "dropped and taken again": (nights(*[FOUR, ONE_UNOWNED] * 3), [(0, 2, 0, 5, 0.0, True)]),
    "two owners return at once": (nights("AB", "C", "AB", "AB", "AB", "AB"), [(2, 1, 1, 5, 0.4, False)]),
    "never still": (nights(FOUR, BY_B, BY_C), [(8, 0, 4, 2, 4.0, True)]),
    "a gap is no return": (nights("A", None, "A"), [(0, 0, 0, 2, 0.0, False)]),
    "broadcasting": ([*nights("A", "AB", "A"), Shot(night(4), models={"g": "BROADCASTING"})], []),
    "thrice in 39 days": (RARE, [(4, 3, 1, 39, 4 / 39, True)]),
}


@pytest.fixture(scope="module")
def found_moves(spark: SparkSession) -> Found:
    columns = ("date", "moved", "newlyUnassigned", "newlyAssigned", "observed", "snapshots")
    return by_case(spark, MOVES, lambda past: moves(made_days(past)), *columns)


@pytest.fixture(scope="module")
def found_flapping(spark: SparkSession) -> Found:
    def step(past: Mapping[str, DataFrame]) -> DataFrame:
        return flapping(made_days(past), sessions(timeline(past["documents"]), past["owners"]))

    return by_case(spark, FLAPPING, step, "moved", "returns", "queues", "days", "movedPerDay", "flaps")


@pytest.mark.parametrize("case", MOVES)
def test_moves(found_moves: Found, case: str) -> None:
    assert found_moves[case] == MOVES[case][1]


@pytest.mark.parametrize("case", FLAPPING)
def test_flapping(found_flapping: Found, case: str) -> None:
    assert found_flapping[case] == FLAPPING[case][1]


def test_the_thresholds_of_flapping_are_the_callers(spark: SparkSession) -> None:
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import lit

    past = tables(spark, RARE)
    by_day, held = made_days(past), sessions(timeline(past["documents"]), past["owners"])
    rules: list[dict[str, Any]] = [
        {"days_a_return": 12},
        {"days_a_return": 13},
        {"least": 4, "moved_share": 1.0},
        {"least": 4, "moved_share": 0.03},
        {"least": 5, "moved_share": 0.03},
    ]
    found = [
        flapping(by_day, held, **rule).select(lit(number).alias("rule"), "flaps") for number, rule in enumerate(rules)
    ]
    assert [flaps for _, flaps in rows(reduce(DataFrame.union, found), "rule", "flaps")] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_a_queue_moves_for_the_first_time_once(spark: SparkSession) -> None:
    found = made_days(tables(spark, nights({0: "A", 1: "A"}, {0: "B", 1: "A"}, {0: "C", 1: "C"})))
    assert dict(found.dtypes) == dict(DAYS.columns)
    assert rows(found, "date", "moved", "restless", "newlyMoved", "queues", "snapshots") == [
        (day(1), 0, 0, 0, 2, 0),
        (day(2), 1, 1, 1, 2, 1),
        (day(3), 2, 1, 1, 2, 1),
    ]
