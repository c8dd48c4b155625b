"""Who held a queue from when to when: small pasts, and every row of their sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline.history.sessions import sessions
from rmqlb.pipeline.history.snapshot_timeline import timeline
from tests.pipeline.pasts import Case, Shot, by_case, night, nights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Columns: group, queueId, owner, since, until, lastSeen, snapshots, endedBy.
CASES: dict[str, Case] = {
    "one snapshot begins sessions that last": (
        nights("A"),
        [("g", 0, "A", night(1), None, night(1), 1, None)],
    ),
    "an owner that comes back has two": (
        nights("A", "A", "B", "A"),
        [
            ("g", 0, "A", night(1), night(3), night(2), 2, "moved"),
            ("g", 0, "A", night(4), None, night(4), 1, None),
            ("g", 0, "B", night(3), night(4), night(3), 1, "moved"),
        ],
    ),
    "two owners have one each": (
        nights("AB", "B", "BC"),
        [
            ("g", 0, "A", night(1), night(2), night(1), 1, "moved"),
            ("g", 0, "B", night(1), None, night(3), 3, None),
            ("g", 0, "C", night(3), None, night(3), 1, None),
        ],
    ),
    "nobody holds the queue any more": (
        nights("A", "", "", "A"),
        [
            ("g", 0, "A", night(1), night(2), night(1), 1, "unassigned"),
            ("g", 0, "A", night(4), None, night(4), 1, None),
        ],
    ),
    "a queue that was never held has none": (nights("", ""), []),
    "a gap without the group ends nothing": (
        nights("A", None, "A", None, "C"),
        [
            ("g", 0, "A", night(1), night(5), night(3), 2, "moved"),
            ("g", 0, "C", night(5), None, night(5), 1, None),
        ],
    ),
    "a gap without the queue ends nothing": (
        nights("A", {1: "Z"}, "A", {1: "Z"}, {0: "C", 1: "Z"}),
        [
            ("g", 0, "A", night(1), night(5), night(3), 2, "moved"),
            ("g", 0, "C", night(5), None, night(5), 1, None),
            ("g", 1, "Z", night(2), None, night(5), 3, None),
        ],
    ),
    "a queue that leaves the route ends when its group is observed again": (
        nights({0: "A", 1: "B"}, None, {0: "A"}, {0: "A"}),
        [
            ("g", 0, "A", night(1), None, night(4), 3, None),
            ("g", 1, "B", night(1), night(3), night(1), 1, "unobserved"),
        ],
    ),
    "those of a group that vanishes last": (
        [*nights("Z"), *nights("A", "A", "A", group="other", name="other")],
        [
            ("g", 0, "Z", night(1), None, night(1), 1, None),
            ("other", 0, "A", night(1), None, night(3), 3, None),
        ],
    ),
    "two snapshots at one time are no move": (
        [Shot(night(1), {"g": {0: "A"}}, name="x"), Shot(night(1), {"g": {0: "B"}}, name="y"), *nights(None, "B")],
        [
            ("g", 0, "A", night(1), night(2), night(1), 1, "moved"),
            ("g", 0, "B", night(1), None, night(2), 2, None),
        ],
    ),
    "a snapshot without a time shows none": (
        [Shot(None, {"g": {0: "B"}}), *nights("A")],
        [("g", 0, "A", night(1), None, night(1), 1, None)],
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    def step(past: Mapping[str, DataFrame]) -> DataFrame:
        return sessions(timeline(past["documents"]), past["owners"])

    columns = ("group", "queueId", "owner", "since", "until", "lastSeen", "snapshots", "endedBy")
    return by_case(spark, CASES, step, *columns)


@pytest.mark.parametrize("case", CASES)
def test_sessions(found: dict[str, list[tuple[Any, ...]]], case: str) -> None:
    assert found[case] == CASES[case][1]
