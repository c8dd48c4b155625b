"""The history of many random pasts is what plain loops make of them."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rmqlb.pipeline.history.history_tables import SO_FAR, history
from rmqlb.pipeline.schemas import CHURN, HISTORY, MOVES, SESSIONS, TREND
from rmqlb.pipeline.schemas import SO_FAR as CARRIED
from tests.pipeline import told_plainly
from tests.pipeline.pasts import FIRST, Shot, frame, rows, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUPS = ("g", "h")


def random_past(dice: Random, cluster: str) -> list[Shot]:
    """Up to eight snapshots, some of them at one time or without one, that show now this, now that."""
    hours = dice.choice((3, 24, 24 * 9))
    shots = []
    for number in range(dice.randint(1, 8)):
        at = None if dice.random() < 0.1 else FIRST + timedelta(hours=hours * dice.randint(0, 9))
        seen = [group for group in GROUPS if dice.random() < 0.8]
        shots.append(
            Shot(
                at,
                {group: random_owners(dice) for group in seen},
                {group: dice.choice((None, "", "A", "AB", "AAB", "ABC", "BBD")) for group in seen},
                {group: {n: dice.choice((None, 0, 7, 9, 9)) for n in range(dice.choice((2, 9)))} for group in seen},
                cluster=cluster,
                name=f"{cluster}-{number}",
                pieces=dice.choice((1, 1, 2)),
            )
        )
    dice.shuffle(shots)
    return shots


def random_owners(dice: Random) -> dict[int, str]:
    owners = dice.choice((("A", "B"), ("A", "B", "C", ""), ("A", "AB", "BC", "Z", "")))
    return {number: dice.choice(owners) for number in range(dice.choice((1, 4))) if dice.random() < 0.8}


# One Spark job costs seconds, a cluster in it nothing: few examples, each with many clusters.
@settings(
    max_examples=2, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_the_history_is_what_plain_loops_make_of_it(spark: SparkSession, seed: int) -> None:
    pasts = random_pasts(Random(seed))
    expected = told(pasts)
    with history(tables(spark, [shot for past in pasts.values() for shot in past])) as made:
        for table in HISTORY:
            assert rows(made[table.name], *table.columns) == sorted(expected[table.name], key=str), table.name


@settings(
    max_examples=1, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32))
def test_going_on_night_by_night_comes_to_the_same(spark: SparkSession, seed: int) -> None:
    """The past comes in parts, of which each has only what the one before it has carried forward."""
    dice = Random(seed)
    pasts = random_pasts(dice)
    expected = told(pasts)
    parts = [in_parts(dice, past) for past in pasts.values()]
    known: dict[str, list[tuple[Any, ...]]] = {}
    for number in range(PARTS):
        shots = [shot for of_cluster in parts for shot in of_cluster[number]]
        known = with_more(spark, known, shots, {shot.at.date() for shot in shots if shot.at is not None})
    for table in HISTORY:
        assert sorted(known[table.name], key=str) == sorted(expected[table.name], key=str), table.name


PARTS = 3


def random_pasts(dice: Random) -> dict[str, list[Shot]]:
    return {f"c{number}": random_past(dice, f"c{number}") for number in range(150)}


def told(pasts: dict[str, list[Shot]]) -> dict[str, list[told_plainly.Row]]:
    """Every table's rows, as plain loops have them."""
    expected: dict[str, list[told_plainly.Row]] = {table.name: [] for table in HISTORY}
    for cluster, past in pasts.items():
        seen = told_plainly.moments(past)
        expected["sessions"] += told_plainly.sessions(cluster, seen)
        for group in GROUPS:
            expected["moves"] += told_plainly.moves(cluster, seen, group)
            expected["churn"] += told_plainly.churn(cluster, seen, group)
            if any(moment.observes(group) for moment in seen):
                expected["flapping"].append(told_plainly.flapping(cluster, seen, group))
    trends = [told_plainly.trend(shot, group) for past in pasts.values() for shot in past for group in GROUPS]
    expected["trend"] += [row for row in trends if row is not None]
    return expected


def in_parts(dice: Random, past: list[Shot]) -> list[list[Shot]]:
    """The snapshots in parts of which each is later than the one before; a part may be empty."""
    times = sorted({shot.at for shot in past if shot.at is not None})
    ends = sorted(dice.randint(0, len(times)) for _ in range(PARTS - 1))
    part = {at: sum(number >= end for end in ends) for number, at in enumerate(times)}
    return [[shot for shot in past if (0 if shot.at is None else part[shot.at]) == number] for number in range(PARTS)]


def with_more(
    spark: SparkSession, known: dict[str, list[tuple[Any, ...]]], shots: list[Shot], days: set[date]
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all tables when there are more snapshots, as the stage keeps and replaces them."""
    of_day = {table.name: list(table.columns).index("date") for table in (MOVES, CHURN)}
    named = {table.name: table for table in (*HISTORY, *CARRIED)}
    so_far = None
    if known:
        so_far = {
            table.name: frame(
                spark,
                table,
                [
                    dict(zip(table.columns, row, strict=True))
                    for row in known[table.name]
                    if table.name not in of_day or row[of_day[table.name]] in days
                ],
            )
            for table in SO_FAR
        }
    with history(tables(spark, shots), so_far) as made:
        new = {name: rows(made[name], *table.columns) for name, table in named.items()}
    if not known:
        return new
    kept = {name: [row for row in known[name] if row[of_day[name]] not in days] for name in of_day}
    kept[SESSIONS.name] = [row for row in known[SESSIONS.name] if not row[-1]]
    kept[TREND.name] = known[TREND.name]
    return {name: [*kept.get(name, ()), *new[name]] for name in named}
