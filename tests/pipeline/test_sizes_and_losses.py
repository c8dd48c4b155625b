"""Rows of SIZES, WORST_LOSSES and BROKEN_LIMITS say what `size-group` and `sweep-failures` say of each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqlb import sweep_failures
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.changes import Changes, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.size_group.size_group import size_group
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.size_group import SizeLimits, SizeQuestion
from rmqlb.pipeline.groups.group_losses import SWEPT, swept_rows, write_losses
from rmqlb.pipeline.groups.group_sizes import size_rows, sizes
from rmqlb.pipeline.groups.running_groups import ADDRESSES, _rows, running_groups
from rmqlb.pipeline.pipeline_plan import USUAL_LOSS_LIMITS, USUAL_SIZE
from rmqlb.pipeline.schemas import BROKEN_LIMITS, BROKERS, FLEET, GROUPS, SCORES, SIZES, WORST_LOSSES
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.report_rows import KEY, score

from .fleets import Group, Topic, fleet_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
IDS = ["10.0.0.1@1", "10.0.0.1@2", "10.0.0.2@1"]
ADDRESSES_OF = {"a": {0: "10.1.0.1:10911", 1: "10.1.0.2:10911"}, "b": {0: "10.1.0.2:10921"}}
EVEN = Group("even", IDS, [Topic("T", {"a": 6, "b": 6})])
ODD = Group("odd", IDS, [Topic("T", {"a": 3, "b": 1}), Topic("U", {"b": 5})])
ALONE = Group("alone", IDS[:1], [Topic("T", {"a": 4})])
NOBODY = Group("nobody", [], [Topic("T", {"a": 4})])
TWICE = Group("twice", [*IDS[:1], *IDS[:1]], [Topic("T", {"a": 4})])
GO = Group("go", IDS, [Topic("T", {"a": 4, "b": 3})], sdks=dict.fromkeys(IDS, "go"))
STATIC = Group("static", IDS, [Topic("T", {"__syslo__global__": 7})])
LIMITS = dict(USUAL_LOSS_LIMITS)
HARD = SizeLimits(max_imbalance=1.25, survive=1, survive_broker=True)


def batch_of(groups: list[Group], strategy: str) -> pa.RecordBatch:
    """Rows as `running_groups` gives them."""
    rows = fleet_rows(groups)
    kind = pa.map_(pa.string(), pa.map_(pa.int64(), pa.string()))
    known = pa.array([[(name, list(its.items())) for name, its in ADDRESSES_OF.items()]] * len(groups), kind)
    more = {"runs": pa.array([strategy] * len(groups)), "origin": pa.array(["reported"] * len(groups))}
    whole = pa.Table.from_batches([rows])
    for name, column in {**more, "addresses": known}.items():
        whole = whole.append_column(name, column)
    return whole.to_batches()[0]


def rows_of(groups: list[Group], strategy: str, columns: Mapping[str, str], what: Any) -> dict[str, Row]:
    found = [
        row for part in _rows(columns, Settings(), what, iter([batch_of(groups, strategy)])) for row in part.to_pylist()
    ]
    assert len(found) == len(groups)
    return {row["group"]: row for row in found}


def size_rows_of(groups: list[Group], strategy: str, limits: SizeLimits = USUAL_SIZE) -> dict[str, Row]:
    return rows_of(groups, strategy, SIZES.columns, lambda group: size_rows(limits, 3, group))


def loss_rows_of(groups: list[Group], strategy: str, limits: Mapping[str, float] = LIMITS) -> dict[str, Row]:
    return rows_of(groups, strategy, SWEPT.columns, lambda group: swept_rows(limits, group))


def routes(group: Group) -> list[TopicRouteData]:
    return [
        TopicRouteData(
            topic.topic,
            tuple(QueueData(broker, number, number, 6) for broker, number in topic.brokers.items()),
            tuple(BrokerData("", broker, ADDRESSES_OF[broker]) for broker in topic.brokers if broker in ADDRESSES_OF),
        )
        for topic in group.topics
    ]


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
@pytest.mark.parametrize("limits", [USUAL_SIZE, HARD], ids=["usual", "hard"])
def test_a_size_is_that_of_size_group(strategy: str, limits: SizeLimits) -> None:
    groups = [EVEN, ODD, ALONE, NOBODY, TWICE]
    for group, row in zip(groups, size_rows_of(groups, strategy, limits).values(), strict=True):
        largest = max(sum(topic.brokers.values()) for topic in group.topics)
        asked = SizeQuestion(
            limits=limits, consumers=(1, max(largest, len(group.members)) + limits.survive),
            strategies=(strategy,), trials=3,
            present=tuple(dict.fromkeys(group.members)),
        )  # fmt: skip
        expected = size_group(group.group, routes(group), asked)
        now = len(set(group.members))
        point = next((each for each in expected.curve if each.consumers == now), None)
        assert (row["fewest"], row["consumers"], row["strategy"]) == (expected.consumers, now, strategy)
        allowed = expected.replica_counts.allowed
        assert row["nextFewer"] == max((each for each in allowed if each < now), default=None)
        assert row["nextMore"] == min((each for each in allowed if each > now), default=None)
        assert (row["imbalance"], row["idle"], row["share"]) == (
            expected.best.imbalance,
            expected.best.idle,
            expected.best.share,
        )
        assert row["satisfied"] == (None if point is None else point.satisfied)
        assert row["fails"] == (", ".join(point.fails) or None if point else None)


def test_fewest_consumers_are_known_by_heart() -> None:
    found = size_rows_of([EVEN, ODD, ALONE, NOBODY], "AVG")
    assert {
        name: (row["queues"], row["consumers"], row["fewest"], row["satisfied"]) for name, row in found.items()
    } == {
        "even": (12, 3, 1, True),
        "odd": (9, 3, 1, False),  # 2 + 2 of 9 queues: 1.33
        "alone": (4, 1, 1, True),
        "nobody": (4, 0, 1, None),
    }
    assert found["odd"]["fails"] == "max-imbalance"
    # 4 and 5 queues: 2 consumers have 2 + 3 and 2 + 2, 4 have 1 + 2 and 1 + 1, 5 have 1 + 1 and 0 + 1.
    assert (found["odd"]["nextFewer"], found["odd"]["nextMore"]) == (1, None)
    assert (found["even"]["nextFewer"], found["even"]["nextMore"]) == (2, 4)
    crowd = size_rows_of([Group("crowd", [f"c{number}" for number in range(6)], ALONE.topics)], "AVG")["crowd"]
    assert (crowd["satisfied"], crowd["fails"], crowd["nextFewer"]) == (False, "max-imbalance, no-idle", 4)


def test_groups_with_other_names_share_a_size_and_keep_their_own_consumers() -> None:
    other = Group("renamed", IDS[:2], [Topic("X", {"y": 5}), Topic("W", {"x": 3, "y": 1})])
    one, two = size_rows_of([ODD, other], "AVG_BY_CIRCLE", HARD).values()
    own = {"group": "", "consumers": 0, "satisfied": None, "fails": None, "nextFewer": None, "nextMore": None}
    assert one | own == two | own
    assert (one["consumers"], two["consumers"]) == (3, 2)


def test_a_client_library_that_lacks_the_strategy_is_a_problem_with_a_code() -> None:
    row = size_rows_of([GO], "CONSISTENT_HASH")["go"]
    assert (row["sdk"], row["fewest"]) == ("go", size_rows_of([GO], "CONSISTENT_HASH")["go"]["fewest"])
    refused = size_rows_of([Group("cpp", IDS, GO.topics, sdks=dict.fromkeys(IDS, "cpp"))], "AVG_BY_CIRCLE")["cpp"]
    assert (refused["fewest"], refused["sdk"], bool(refused["problem"]), bool(refused["code"])) == (
        None,
        "cpp",
        True,
        True,
    )


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_losses_are_those_of_sweep_failures(strategy: str) -> None:
    groups = [EVEN, ODD, ALONE, TWICE, GO]
    for group, row in zip(groups, loss_rows_of(groups, strategy).values(), strict=True):
        members = Members(tuple(group.members), strategy, sdk=next(iter(group.sdks.values()), "java"))
        found = sweep_failures(
            {"g": members}, routes(group), limits=LIMITS, kinds=("consumer", "broker", "master", "host"),
            at_once=1,
        )  # fmt: skip
        (its,) = found.groups
        for name in ("unassigned", "imbalance", "idle", "moved"):
            worst = getattr(its, name)
            assert row[name] == worst.value
            assert row[f"{name}By"] == (f"{worst.losses[0].kind} {worst.losses[0].name}" if worst.losses else None)
        assert (row["consumers"], row["queues"], row["losses"], row["broken"]) == (
            its.consumers,
            its.queues,
            its.cases,
            its.broken,
        )
        of_group = [one for one in found.counterexamples if one.name == "g"]
        assert [(one["limitName"], one["value"], one["kind"], one["name"], one["losses"]) for one in row["limits"] if one["losses"]] == [
            (one.limit, one.value, one.losses[0].kind, one.losses[0].name, one.cases) for one in of_group
        ]  # fmt: skip


def test_moves_of_a_loss_are_those_of_a_plan() -> None:
    row = loss_rows_of([ODD], "AVG")["odd"]
    before = Side(Members(tuple(ODD.members), "AVG"), tuple(routes(ODD)))
    moved = []
    for gone in [*((client_id,) for client_id in ODD.members), tuple(IDS[:2])]:
        ids = change_members(tuple(ODD.members), Changes(remove=gone))
        moved.append(plan_rebalance(None, before, Side(Members(ids, "AVG"), before.routes)).summary.moved)
    for broker in ("a", "b"):
        left = change_routes(before.routes, Changes(remove_brokers=(broker,)))
        moved.append(plan_rebalance(None, before, Side(before.members, left)).summary.moved)
    assert row["moved"] == max(moved)


def test_limits_that_a_loss_breaks_are_known_by_heart() -> None:
    found = loss_rows_of([ALONE, EVEN, STATIC], "AVG")
    assert [(one["limitName"], one["kind"], one["name"]) for one in found["alone"]["limits"]] == [
        ("unassigned", "consumer", IDS[0]),
        ("minConsumers", "consumer", IDS[0]),
    ]
    assert found["even"]["limits"] == []
    # The host 10.0.0.1 has two of the three consumers, and what is lost with a static topic's broker is not known.
    assert (found["static"]["losses"], found["even"]["losses"]) == (5, 11)
    assert found["even"]["idleBy"] is None


def test_the_stages_tables_have_a_row_for_each_group_that_can_and_cannot_be_judged(
    spark: SparkSession, tmp_path: Path
) -> None:
    def frame(rows: list[Any], table: Any) -> DataFrame:
        values = [tuple(row.get(column) for column in table.columns) for row in rows]
        return spark.createDataFrame(values, table.ddl)

    fleet = spark.createDataFrame(
        [tuple(row.values()) for row in fleet_rows([EVEN, ALONE], "east", KEY["date"]).to_pylist()], FLEET.ddl
    )
    scores = frame(
        [score(name, runs=True) for name in ("even", "alone")] + [score("even", "CONFIG", runs=False)], SCORES
    )
    groups = frame(
        [
            {**KEY, "group": "popped", "problem": "it consumes by POP", "problemCode": "pop-consumption"},
            *({**KEY, "group": name} for name in ("even", "alone")),
        ],
        GROUPS,
    )
    brokers = frame([{**KEY, "brokerName": name, "addresses": its} for name, its in ADDRESSES_OF.items()], BROKERS)
    found = {row.group: row for row in sizes(fleet, scores, groups, USUAL_SIZE, 3, Settings()).collect()}
    assert {name: (row.fewest, row.code) for name, row in found.items()} == {
        "even": (1, None),
        "alone": (1, None),
        "popped": (None, "pop-consumption"),
    }
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    with warehouse.writing() as writing:
        write_losses(running_groups(fleet, scores, brokers), groups, LIMITS, Settings(), writing, {})
    worst = {row.group: row for row in warehouse.read(spark, WORST_LOSSES).collect()}
    assert {name: (row.losses, row.code) for name, row in worst.items()} == {
        "even": (11, None),
        "alone": (6, None),  # its consumer, its broker, its master, and the hosts of these and of the slave
        "popped": (None, "pop-consumption"),
    }
    broken = warehouse.read(spark, BROKEN_LIMITS).collect()
    assert {(row.group, row.limitName, row.kind) for row in broken} == {
        ("alone", "unassigned", "consumer"),
        ("alone", "minConsumers", "consumer"),
    }
    assert dict(running_groups(fleet, scores, brokers).dtypes)["addresses"] == ADDRESSES.replace(" ", "")
