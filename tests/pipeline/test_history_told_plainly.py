"""The history of many random pasts is what plain loops make of them."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rmqlb.pipeline.history.history_tables import history
from rmqlb.pipeline.schemas import HISTORY
from tests.pipeline import told_plainly
from tests.pipeline.pasts import FIRST, Shot, rows, tables

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
    dice = Random(seed)
    pasts = {f"c{number}": random_past(dice, f"c{number}") for number in range(150)}
    shots = [shot for past in pasts.values() for shot in past]
    expected: dict[str, list[told_plainly.Row]] = {table.name: [] for table in HISTORY}
    for cluster, past in pasts.items():
        seen = told_plainly.moments(past)
        expected["sessions"] += told_plainly.sessions(cluster, seen)
        for group in GROUPS:
            expected["moves"] += told_plainly.moves(cluster, seen, group)
            expected["churn"] += told_plainly.churn(cluster, seen, group)
            if any(moment.observes(group) for moment in seen):
                expected["flapping"].append(told_plainly.flapping(cluster, seen, group))
    trends = [told_plainly.trend(shot, group) for shot in shots for group in GROUPS]
    expected["trend"] += [row for row in trends if row is not None]
    with history(tables(spark, shots)) as made:
        for table in HISTORY:
            assert rows(made[table.name], *table.columns) == sorted(expected[table.name], key=str), table.name
