"""Small pasts, and what the history says of them, row by row."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline.churn import churn
from rmqlb.pipeline.history import READS, history
from rmqlb.pipeline.moves import DAYS, days, flapping, moves
from rmqlb.pipeline.schemas import FLAPPING, HISTORY
from rmqlb.pipeline.sessions import sessions
from rmqlb.pipeline.timeline import TIMELINE, UNTIMED, sightings, timeline, untimed
from rmqlb.pipeline.trend import trend
from tests.pipeline.pasts import Shot, night, nights, rows, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def day(number: int) -> date:
    return night(number).date()


def sessions_of(spark: SparkSession, *shots: Shot) -> list[tuple[Any, ...]]:
    past = tables(spark, shots)
    found = sessions(timeline(past["documents"]), past["owners"])
    return rows(found, "queueId", "owner", "since", "until", "lastSeen", "snapshots", "endedBy")


def days_of(spark: SparkSession, *shots: Shot) -> DataFrame:
    past = tables(spark, shots)
    return days(timeline(past["documents"]), past["owners"], past["groups"])


def moves_of(spark: SparkSession, *shots: Shot) -> list[tuple[Any, ...]]:
    found = moves(days_of(spark, *shots))
    return rows(found, "date", "group", "moved", "unassigned", "assigned", "observed", "snapshots")


def flapping_of(spark: SparkSession, *shots: Shot, **thresholds: float) -> list[tuple[Any, ...]]:
    past = tables(spark, shots)
    order = timeline(past["documents"])
    by_day = days(order, past["owners"], past["groups"])
    return rows(flapping(by_day, sessions(order, past["owners"]), **thresholds), *list(FLAPPING.columns)[1:])  # type: ignore[arg-type]


def churn_of(spark: SparkSession, *shots: Shot) -> list[tuple[Any, ...]]:
    past = tables(spark, shots)
    found = churn(timeline(past["documents"]), past["groups"], past["members"])
    return rows(found, "date", "group", "members", "joined", "left")


def trend_of(spark: SparkSession, *shots: Shot) -> list[tuple[Any, ...]]:
    past = tables(spark, shots)
    found = trend(timeline(past["documents"]), past["owners"], past["groups"], past["members"], past["offsets"])
    return rows(found, "date", "group", "members", "queues", "most", "mean", "skew", "idle", "unowned", "lag")


# The timeline.


def test_snapshots_are_placed_by_time_and_equal_times_are_one_moment(spark: SparkSession) -> None:
    shots = [Shot(night(2), name="late"), Shot(night(1), name="x"), Shot(night(1), name="y")]
    found = timeline(tables(spark, [*shots, Shot(night(9), name="other", cluster="d")])["documents"])
    assert rows(found, *TIMELINE.columns) == [
        ("c", "late", day(2), night(2), 2, False),
        ("c", "x", day(1), night(1), 1, True),
        ("c", "y", day(1), night(1), 1, True),
        ("d", "other", day(9), night(9), 1, False),
    ]


def test_a_snapshot_without_a_time_is_left_out_and_named(spark: SparkSession) -> None:
    documents = tables(spark, [Shot(None, name="when", pieces=3), Shot(night(1), name="then", pieces=2)])["documents"]
    assert rows(timeline(documents), "snapshot", "takenAt") == [("then", night(1))]
    assert rows(untimed(documents), *UNTIMED.columns) == [("c", "when", 3)]


def test_owners_of_one_moment_are_put_together(spark: SparkSession) -> None:
    shots = [Shot(night(1), {"g": {0: "BA", 1: "C"}}, name="x"), Shot(night(1), {"g": {0: "BD", 2: ""}}, name="y")]
    past = tables(spark, shots)
    found = sightings(timeline(past["documents"]), past["owners"])
    assert rows(found, "queueId", "index", "owners") == [(0, 1, ["A", "B", "D"]), (1, 1, ["C"]), (2, 1, [])]


# Sessions.


def test_one_snapshot_begins_sessions_that_last(spark: SparkSession) -> None:
    assert sessions_of(spark, *nights("A")) == [(0, "A", night(1), None, night(1), 1, None)]


def test_an_owner_that_comes_back_has_two_sessions(spark: SparkSession) -> None:
    assert sessions_of(spark, *nights("A", "A", "B", "A")) == [
        (0, "A", night(1), night(3), night(2), 2, "moved"),
        (0, "A", night(4), None, night(4), 1, None),
        (0, "B", night(3), night(4), night(3), 1, "moved"),
    ]


def test_two_owners_have_a_session_each(spark: SparkSession) -> None:
    assert sessions_of(spark, *nights("AB", "B", "BC")) == [
        (0, "A", night(1), night(2), night(1), 1, "moved"),
        (0, "B", night(1), None, night(3), 3, None),
        (0, "C", night(3), None, night(3), 1, None),
    ]


def test_a_queue_that_nobody_holds_ends_the_session_as_unowned(spark: SparkSession) -> None:
    assert sessions_of(spark, *nights("A", "", "", "A")) == [
        (0, "A", night(1), night(2), night(1), 1, "unowned"),
        (0, "A", night(4), None, night(4), 1, None),
    ]


@pytest.mark.parametrize("gap", [None, {1: "B"}], ids=["no group", "no queue"])
def test_a_gap_between_sightings_of_one_owner_ends_nothing(spark: SparkSession, gap: dict[int, str] | None) -> None:
    found = sessions_of(spark, *nights("A", gap, "A", gap, "C"))
    assert [row for row in found if row[0] == 0] == [
        (0, "A", night(1), night(5), night(3), 2, "moved"),
        (0, "C", night(5), None, night(5), 1, None),
    ]


def test_a_queue_that_leaves_the_route_ends_when_its_group_is_observed_again(spark: SparkSession) -> None:
    assert sessions_of(spark, *nights({0: "A", 1: "B"}, None, {0: "A"}, {0: "A"})) == [
        (0, "A", night(1), None, night(4), 3, None),
        (1, "B", night(1), night(3), night(1), 1, "unobserved"),
    ]


def test_the_sessions_of_a_group_that_vanishes_last(spark: SparkSession) -> None:
    others = [Shot(night(n), {"other": {0: "A"}}, name=f"o{n}") for n in (1, 2, 3)]
    vanished = [row for row in sessions_of(spark, *nights("Z"), *others) if row[1] == "Z"]
    assert vanished == [(0, "Z", night(1), None, night(1), 1, None)]


def test_two_snapshots_at_one_time_are_no_move(spark: SparkSession) -> None:
    shots = [Shot(night(1), {"g": {0: "A"}}, name="x"), Shot(night(1), {"g": {0: "B"}}, name="y"), *nights(None, "B")]
    assert sessions_of(spark, *shots) == [
        (0, "A", night(1), night(2), night(1), 1, "moved"),
        (0, "B", night(1), None, night(2), 2, None),
    ]


def test_a_snapshot_without_a_time_shows_no_session(spark: SparkSession) -> None:
    assert sessions_of(spark, Shot(None, {"g": {0: "B"}}), *nights("A")) == [
        (0, "A", night(1), None, night(1), 1, None)
    ]


# Moves.


def test_moves_are_counted_by_what_became_of_each_queue(spark: SparkSession) -> None:
    before = {0: "A", 1: "A", 2: "A", 3: "", 4: "", 5: "BA", 6: "A"}
    after = {0: "A", 1: "B", 2: "", 3: "A", 4: "", 5: "AB", 7: "A"}
    assert moves_of(spark, *nights(before, after)) == [(day(2), "g", 1, 1, 1, 6, 1)]


def test_a_second_owner_is_a_move(spark: SparkSession) -> None:
    assert moves_of(spark, *nights("A", "AB")) == [(day(2), "g", 1, 0, 0, 1, 1)]


def test_one_observation_is_no_step(spark: SparkSession) -> None:
    assert moves_of(spark, *nights("A", None)) == []


def test_steps_pass_over_snapshots_without_the_group_but_not_without_the_queue(spark: SparkSession) -> None:
    shots = nights({0: "A", 1: "A"}, None, {0: "B"}, {0: "B", 1: "B"})
    assert moves_of(spark, *shots) == [(day(3), "g", 1, 0, 0, 1, 1), (day(4), "g", 0, 0, 0, 1, 1)]


def test_a_day_sums_its_steps(spark: SparkSession) -> None:
    times = (1, 2, 2.25, 2.5, 2.75)
    shots = [Shot(night(n), {"g": {0: held}}) for n, held in zip(times, "ABCAB", strict=True)]
    assert moves_of(spark, *shots) == [(day(2), "g", 4, 0, 0, 4, 4)]


def test_moves_count_the_steps_in_which_no_queue_is_seen_twice(spark: SparkSession) -> None:
    assert moves_of(spark, *nights({0: "A"}, {1: "A"})) == [(day(2), "g", 0, 0, 0, 0, 1)]


def test_a_broadcasting_group_moves_nothing(spark: SparkSession) -> None:
    shots = nights("A", "AB", "B")
    shots[1].models = {"g": "BROADCASTING"}
    assert moves_of(spark, *shots) == []


def test_a_queue_moves_for_the_first_time_once(spark: SparkSession) -> None:
    found = days_of(spark, *nights({0: "A", 1: "A"}, {0: "B", 1: "A"}, {0: "C", 1: "C"}))
    assert set(found.columns) == set(DAYS.columns)
    assert rows(found, "date", "moved", "restless", "newlyMoved", "queues", "snapshots") == [
        (day(1), 0, 0, 0, 2, 0),
        (day(2), 1, 1, 1, 2, 1),
        (day(3), 2, 1, 1, 2, 1),
    ]


# Flapping: group, moves, returns, queues, days, movesADay, flaps.

FOUR = dict.fromkeys(range(4), "A")
OTHER_FOUR = dict.fromkeys(range(4), "B")


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param(["A"], ("g", 0, 0, 0, 1, 0.0, False), id="one snapshot"),
        pytest.param(["A", "A", "A"], ("g", 0, 0, 0, 2, 0.0, False), id="at rest"),
        pytest.param(["A", "B"], ("g", 1, 0, 1, 1, 1.0, False), id="one move of its one queue"),
        pytest.param(["A", "B", "A"], ("g", 2, 1, 1, 2, 1.0, True), id="moved every night"),
        pytest.param([FOUR, FOUR, FOUR, OTHER_FOUR], ("g", 4, 0, 4, 3, 4 / 3, False), id="one deployment"),
        pytest.param([FOUR, {**FOUR, 0: "B"}, *[FOUR] * 3], ("g", 2, 1, 1, 4, 0.5, False), id="one return"),
        pytest.param([FOUR, {**FOUR, 0: "B"}] * 3, ("g", 5, 4, 1, 5, 1.0, True), id="back and forth"),
        pytest.param([FOUR, {**FOUR, 0: ""}] * 3, ("g", 0, 2, 0, 5, 0.0, True), id="dropped and taken again"),
        pytest.param(["AB", "C", "AB", "AB", "AB", "AB"], ("g", 2, 1, 1, 5, 0.4, False), id="two owners return once"),
        pytest.param([FOUR, OTHER_FOUR, dict.fromkeys(range(4), "C")], ("g", 8, 0, 4, 2, 4.0, True), id="never still"),
    ],
)
def test_flapping(spark: SparkSession, owners: list[Any], expected: tuple[Any, ...]) -> None:
    assert flapping_of(spark, *nights(*owners)) == [expected]


def test_returns_that_are_rarer_than_the_threshold_are_maintenance(spark: SparkSession) -> None:
    times = (1, 2, 3, 20, 21, 40)
    shots = [Shot(night(n), {"g": {0: held, 1: "Z", 2: "Z"}}) for n, held in zip(times, "ABABAA", strict=True)]
    assert [row[-1] for row in flapping_of(spark, *shots)] == [True]
    assert [row[-1] for row in flapping_of(spark, *shots, days_a_return=12)] == [False]
    assert [row[-1] for row in flapping_of(spark, *shots, least=4)] == [False]
    assert [row[-1] for row in flapping_of(spark, *shots, days_a_return=12, moved_share=0.03)] == [True]


# Churn: date, group, members, joined, left.


def members(*ids: str | None) -> list[Shot]:
    return [Shot(night(n), members={"g": seen}) for n, seen in enumerate(ids, 1)]


def test_churn_compares_the_members_of_one_observation_with_the_next(spark: SparkSession) -> None:
    assert churn_of(spark, *members("AB", "BCD", "", "A")) == [
        (day(1), "g", 2, None, None),
        (day(2), "g", 3, 2, 1),
        (day(3), "g", 0, 0, 3),
        (day(4), "g", 1, 1, 0),
    ]


def test_churn_passes_over_snapshots_in_which_nobody_looked(spark: SparkSession) -> None:
    assert churn_of(spark, *members("AB", None, "BC")) == [(day(1), "g", 2, None, None), (day(3), "g", 2, 1, 1)]


def test_processes_that_share_an_id_count_each(spark: SparkSession) -> None:
    assert churn_of(spark, *members("AAB", "ABBB")) == [(day(1), "g", 3, None, None), (day(2), "g", 4, 2, 1)]


def test_churn_sums_over_a_day_and_shows_its_last_members(spark: SparkSession) -> None:
    shots = [Shot(night(n), members={"g": ids}) for n, ids in ((1, "A"), (1.25, "B"), (1.5, "BC"))]
    assert churn_of(spark, *shots) == [(day(1), "g", 2, 2, 1)]


def test_members_of_one_moment_are_put_together(spark: SparkSession) -> None:
    shots = [Shot(night(1), members={"g": ids}, name=ids) for ids in ("AAB", "ABC")]
    later = Shot(night(2), members={"g": "AABC"})
    assert churn_of(spark, *shots, later) == [(day(1), "g", 4, None, None), (day(2), "g", 4, 0, 0)]


# The trend: date, group, members, queues, most, mean, skew, idle, unowned, lag.


def test_the_trend_is_the_balance_of_what_was_seen(spark: SparkSession) -> None:
    held = {0: "A", 1: "A", 2: "A", 3: "B", 4: ""}
    shot = Shot(night(1), {"g": held}, {"g": "ABC"}, {"g": {n: 10 * n for n in range(9)}})
    assert trend_of(spark, shot) == [(day(1), "g", 3, 5, 3, 4 / 3, 2.25, 1, 1, 100)]


@pytest.mark.parametrize("lags", [{}, {0: 1}, {0: 1, 1: None}], ids=["none", "no row", "null"])
def test_the_lag_of_the_trend_is_null_when_that_of_a_queue_is(spark: SparkSession, lags: dict[int, int | None]) -> None:
    shot = Shot(night(1), {"g": {0: "A", 1: "A"}}, {"g": "A"}, {"g": lags})
    assert trend_of(spark, shot) == [(day(1), "g", 1, 2, 2, 2.0, 1.0, 0, 0, None)]


def test_the_trend_without_members_knows_only_the_most(spark: SparkSession) -> None:
    assert trend_of(spark, *nights({0: "A", 1: "A", 2: "B"})) == [(day(1), "g", None, 3, 2, None, None, None, 0, None)]


def test_an_owner_that_is_no_member_does_not_count(spark: SparkSession) -> None:
    shots = [
        Shot(night(1), {"g": {0: "Z", 1: "Z", 2: "A"}}, {"g": "AA"}),
        Shot(night(2), {"g": {0: "Z"}}, {"g": ""}),
        Shot(night(3), {"g": {0: ""}}, {"g": "AB"}),
        Shot(None, {"g": {0: "A"}}, {"g": "A"}),
    ]
    assert trend_of(spark, *shots) == [
        (day(1), "g", 2, 3, 1, 1.0, 1.0, 0, 0, None),
        (day(2), "g", 0, 1, None, None, None, 0, 0, None),
        (day(3), "g", 2, 1, 0, 0.0, None, 2, 1, None),
    ]


# All together.


@pytest.mark.parametrize("shots", [[], nights("A", "B", "A")], ids=["nothing", "something"])
def test_the_history_has_every_table_with_its_schema(spark: SparkSession, shots: list[Shot]) -> None:
    past = tables(spark, shots)
    assert {table.name for table in READS} == set(past)
    with history(past) as made:
        assert {name: dict(frame.dtypes) for name, frame in made.items()} == {
            table.name: dict(table.columns) for table in HISTORY
        }
        assert (made["sessions"].count(), made["flapping"].count()) == ((3, 1) if shots else (0, 0))
        assert made["sessions"].is_cached
    assert not made["sessions"].is_cached
