"""A generated fleet of some thousand groups through all stages, held to the local engine group by group."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import assign
from rmqlb.engine.assignment.balance import spread
from rmqlb.engine.assignment.brokers import pop_topics, proxy_topics
from rmqlb.engine.assignment.consumers import behind_proxy, only_grpc, popped_topics
from rmqlb.engine.plan.changes import Changes, change_members
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.model.group import BROADCASTING, CONSUME_POP
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.pipeline import schemas
from rmqlb.pipeline.pipeline_plan import PipelinePlan
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.pipeline.warehouse import Warehouse
from tests.generate.faults import put_faults
from tests.pipeline import by_the_engine
from tests.pipeline.by_the_engine import last_snapshots, planned, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUPS, NIGHTS = 2000, 2
Owned = dict[tuple[str, str], dict[MessageQueue, set[str]]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "dumps"
    generate(FleetShape(seed=11, groups=GROUPS, days=NIGHTS, odd_names=0.1, retry_queues=False), str(folder))
    put_faults(folder, every=7)
    return folder


@pytest.fixture(scope="module")
def run(spark: SparkSession, fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> StageRun:
    plan = PipelinePlan(inputs=(str(fleet),), consumers=1)
    run = StageRun(spark, Warehouse(str(tmp_path_factory.mktemp("warehouse"))), plan)
    for name in ("ingest", "allocate", "score", "what-if"):
        STAGES[name](run)
    return run


@pytest.fixture(scope="module")
def snapshots(fleet: Path) -> dict[str, ClusterSnapshot]:
    """Cluster → its last night's snapshot."""
    return last_snapshots(fleet.glob("cluster=*/date=*/*.json.gz"))


def test_every_owner_of_every_group_is_the_engines(run: StageRun, snapshots: dict[str, ClusterSnapshot]) -> None:
    owned: dict[tuple[str, str, str], dict[MessageQueue, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in run.read(schemas.ASSIGNMENTS).toLocalIterator():
        queue = MessageQueue(row["topic"], row["brokerName"], row["queueId"])
        owners = owned[row["cluster"], row["group"], row["strategy"]][queue]
        if row["owner"] is not None:
            owners.add(row["owner"])
    compared = 0
    for key, expected in by_the_engine.owners(snapshots):
        assert owned.pop(key, {}) == expected, key
        compared += 1
    assert not owned
    assert compared > GROUPS


def test_every_score_and_every_plan_is_the_engines(run: StageRun, snapshots: dict[str, ClusterSnapshot]) -> None:
    scores = {(row["cluster"], row["group"], row["strategy"]): row for row in run.read(schemas.SCORES).collect()}
    plans = {
        (row["cluster"], row["group"], row["strategy"], row["change"], row["subject"]): row
        for row in run.read(schemas.WHAT_IF).collect()
    }
    for cluster, snapshot in snapshots.items():
        for name, (group, members, routes) in planned(snapshot).items():
            under = told(group, members, "AVG")
            row = scores[cluster, name, "AVG"]
            judged = spread({q: o for r in routes for q, o in assign(r, under).owners.items()}, members)
            assert (row["consumers"], row["idle"], row["unassigned"]) == (
                judged.consumers,
                judged.idle,
                judged.unassigned,
            )
            queues = row["queues"], row["minQueuesPerConsumer"], row["maxQueuesPerConsumer"]
            assert queues == (judged.queues, judged.fewest, judged.most)
            joined = replace(under, client_ids=change_members(members, Changes(add=(1,))))
            before, after = (Side(side, tuple(routes)) for side in (under, joined))
            summary = plan_rebalance(name, before, after, states=group.queues).summary
            plan = plans[cluster, name, "AVG", "consumers", "+1"]
            assert (plan["moved"], plan["idleAfter"], plan["maxQueuesPerConsumerAfter"], plan["lagMoved"]) == (
                *(summary.moved, summary.after.idle, summary.after.most, summary.lag_moved),
            )


def test_who_may_read_what_by_pop_is_the_engines(run: StageRun, snapshots: dict[str, ClusterSnapshot]) -> None:
    read: dict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
    for row in run.latest(schemas.POP_QUEUES)["pop_queues"].collect():
        queue = row["topic"], row["brokerName"], row["queueId"], tuple(row["consumers"] or ())
        read[row["cluster"], row["group"]].add(queue)
    for cluster, snapshot in snapshots.items():
        for name, group in snapshot.groups.items():
            broadcasts = group.message_model == BROADCASTING
            own = [topic for topic in group.own_topics or () if topic in snapshot.routes and not broadcasts]
            if only_grpc(group) or behind_proxy(group):
                topics = proxy_topics([snapshot.routes[topic].route for topic in own], group.client_ids or None)
            else:
                popped = popped_topics(group) if group.consume_type != CONSUME_POP else set(own)
                routes = [snapshot.routes[topic].route for topic in own if topic in popped]
                topics = pop_topics(group, routes, group.client_ids or ())
            expected: set[tuple[Any, ...]] = {
                (its.topic, q.broker_name, q.queue_id, q.consumers or ()) for its in topics for q in its.queues or ()
            }
            expected |= {(its.topic, None, None, ()) for its in topics if its.queues is None}
            assert read.pop((cluster, name), set()) == expected, (cluster, name)
            assert not (expected and name in planned(snapshot))
    assert not read


def test_what_is_there_already_is_not_written_again(run: StageRun) -> None:
    versions = run.warehouse.versions(*schemas.ALL)
    reports = [STAGES[name](run) for name in ("ingest", "allocate", "score", "what-if")]
    assert [report.state for report in reports] == ["unchanged"] * 4
    assert run.warehouse.versions(*schemas.ALL) == versions
