"""The oracle of last resort: rmqlb reads a running cluster, plans a change, and consumers come to hold what it says."""

from collections import Counter
from typing import Any

import pytest

from rmqlb import MessageQueue
from tests.cli.run import data_of, envelope_of, run
from tests.support.mismatches import first_by_default

from .cluster import RocketMQCluster
from .members import Members, running_members

pytestmark = pytest.mark.live

TOPICS = {"OrderEvents": (8, 8), "Skewed": (6, 3)}
"""Read queues on each broker; version 4 has one broker."""
# Sorted as text, as clients do: c1, c10, c9; the joiner c2 lands in the middle.
FIRST_MEMBERS = ("c9", "c10", "c1")
JOINER, LEAVER = "c2", "c10"
Owners = dict[tuple[str, str, int], list[str]]


def planned(value: dict[str, Any], side: str) -> Owners:
    return {
        (topic["topic"], queue["brokerName"], queue["queueId"]): queue[side]
        for topic in value["data"]["topics"]
        for queue in topic["queues"]
    }


def settled(members: Members, group: str, cluster: RocketMQCluster) -> Owners:
    queues = [
        MessageQueue(topic, broker, number)
        for topic, of_brokers in {**TOPICS, f"%RETRY%{group}": (1, 1)}.items()
        for broker, total in zip(cluster.broker_addresses, of_brokers, strict=False)
        for number in range(total)
    ]
    owned = members.settled(queues)
    return {(q.topic, q.broker_name, q.queue_id): [i] for i, held in owned.items() for q in held}


def through_join_and_leave(cluster: RocketMQCluster, group: str, strategy: str) -> None:
    source = ("-s", f"rocketmq://{cluster.name_server}", "--group", group, "--include-retry")
    with running_members(cluster, group, strategy, [*TOPICS], FIRST_MEMBERS) as members:
        before = settled(members, group, cluster)
        plan = envelope_of("plan-rebalance", *source, "--add", f"127.0.0.1@{JOINER}")
        assert (plan["data"]["strategy"], plan["data"]["strategyOrigin"]) == (strategy, "reported")
        assert plan["source"]["kind"] == "nameserver"
        assert planned(plan, "ownersBefore") == planned(plan, "ownersObserved") == before
        assert [w for w in plan["findings"] if w["code"] != "one-broker"] == []
        members.join(JOINER)
        assert planned(plan, "ownersAfter") == settled(members, group, cluster)
        leave = envelope_of("plan-rebalance", *source, "--remove", f"127.0.0.1@{LEAVER}")
        members.leave(LEAVER)
        assert planned(leave, "ownersAfter") == settled(members, group, cluster)


@pytest.mark.parametrize("strategy", first_by_default(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")))
def test_a_plan_over_the_native_protocol_comes_true_on_a_5_cluster(cluster: RocketMQCluster, strategy: str) -> None:
    through_join_and_leave(cluster, f"plan-{strategy}", strategy)


def test_a_plan_over_the_native_protocol_comes_true_on_a_4_cluster(legacy_cluster: RocketMQCluster) -> None:
    through_join_and_leave(legacy_cluster, "plan-legacy", "CONSISTENT_HASH")


def test_a_snapshot_of_the_running_cluster_gives_the_same_plan(cluster: RocketMQCluster, tmp_path: Any) -> None:
    group, path = "snapshot-svc", str(tmp_path / "cluster.json")
    with running_members(cluster, group, "CONSISTENT_HASH", [*TOPICS], FIRST_MEMBERS) as members:
        settled(members, group, cluster)
        live = envelope_of("plan-rebalance", "-s", f"rocketmq://{cluster.name_server}", "--group", group, "--add", "1")
        result = run("fetch-routes", "-s", f"rocketmq://{cluster.name_server}", "--to", path)
        assert result.code == 0, result.stderr
    saved = envelope_of("plan-rebalance", "-s", path, "--group", group, "--add", "1")
    for now, then in zip(queues_of(live), queues_of(saved), strict=True):
        # Only a broker can be asked what it tells a consumer of a queue in which nothing is stored.
        assert then["startRule"] in (now["startRule"], "unknown")
        then.update(startOffset=now["startOffset"], startRule=now["startRule"])
    assert saved["data"] == live["data"]


def queues_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [queue for topic in plan["data"]["topics"] for queue in topic["queues"]]


def test_a_glance_at_groups_and_consumers_shows_what_they_hold(cluster: RocketMQCluster) -> None:
    group, source = "glance-svc", ("-s", f"rocketmq://{cluster.name_server}")
    with running_members(cluster, group, "AVG_BY_CIRCLE", [*TOPICS], FIRST_MEMBERS) as members:
        held = settled(members, group, cluster)
        (line,) = data_of("show-groups", *source, "-g", "glance-*")["groups"]
        rows = data_of("show-consumers", *source, "-g", group)["consumers"]
    assert (line["status"], line["basis"], line["mismatches"]) == ("inOrder", "observed", 0)
    assert (line["strategies"], line["strategyOrigin"]) == (["AVG_BY_CIRCLE"], "reported")
    owners = Counter(owner for queue, own in held.items() for owner in own if not queue[0].startswith("%RETRY%"))
    assert {row["clientId"]: row["queuesObserved"] for row in rows} == owners
    assert [row["queuesPredicted"] for row in rows] == [row["queuesObserved"] for row in rows]
    assert {(row["language"], row["consumeType"], row["processes"]) for row in rows} == {("JAVA", "push", 1)}
