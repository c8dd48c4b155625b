import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue
from rmqlb.engine.assignment.brokers import AskedBroker, query_assignment

from .broker_requests import assignment, consumer_ids
from .cluster import RocketMQCluster
from .jvm import relay, wait_until
from .members import PAUSE_BETWEEN_REPORTS, SETTLE_DEADLINE, consumers, go_members, running_members
from .watched_groups import OWNED_DEADLINE, Watched, differences, ids, owned_twice, unassigned

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPICS = {"OrderEvents": (8, 8), "Skewed": (6, 3), "Few": (2, 1)}
BROKERS = ("broker-a", "broker-b")
NAMES = ("c9", "c10", "c1")


def queues_of(topic: str) -> list[MessageQueue]:
    counts = zip(BROKERS, TOPICS[topic], strict=True)
    return [MessageQueue(topic, broker, number) for broker, n in counts for number in range(n)]


def must_answer(group: Watched, client_ids: Iterable[str]) -> None:
    asking = list(client_ids)
    for broker_name in BROKERS:
        listed = tuple(consumer_ids(group.cluster, broker_name, group.group))
        broker = AskedBroker(broker_name, listed)
        for topic in TOPICS:
            computed = query_assignment(broker, group.strategy, topic, queues_of(topic), asking)
            answered = {
                client_id: assignment(group.cluster, broker_name, group.group, topic, client_id, group.strategy)
                for client_id in asking
            }
            assert {i: None if its is None else sorted(its) for i, its in answered.items()} == computed
            assert {mode for its in answered.values() for mode in (its or {}).values()} <= {"PULL"}


def test_consumers_own_what_brokers_assign_and_is_predicted(cluster: RocketMQCluster) -> None:
    name, strategy = "assigned-svc", "AVG_BY_CIRCLE"
    with running_members(cluster, name, strategy, list(TOPICS), NAMES, assigned="true") as members:
        group = Watched(cluster, name, [members], strategy)
        group.must_own(ids(*NAMES))
        must_answer(group, ids(*NAMES, "stranger"))
        after = group.planned("--add", *ids("c2"))
        members.join("c2")
        group.must_own(ids(*NAMES, "c2"), after)
        must_answer(group, ids(*NAMES, "c2"))
        after = group.planned("--remove", *ids("c10"))
        members.leave("c10")
        group.must_own(ids("c1", "c2", "c9"), after)
        must_answer(group, ids(*NAMES, "c2"))


def test_brokers_that_list_different_consumers_assign_differently(cluster: RocketMQCluster) -> None:
    """c2 does not reach broker-b: whoever asks there shares the queues among three, whoever asks broker-a among four."""
    name, broker = "split-svc", cluster.broker_addresses["broker-b"]
    with relay(broker) as nowhere, relay(cluster.name_server, {broker: nowhere.address}) as other:
        nowhere.cut()
        with running_members(cluster, name, "AVG", list(TOPICS), NAMES, assigned="true") as members:
            group = Watched(cluster, name, [members])
            members.join("c2", other.address)
            wait_until(
                lambda: [len(consumer_ids(cluster, each, name)) for each in BROKERS] == [4, 3],
                SETTLE_DEADLINE,
                lambda: "broker-a must list one consumer more",
            )
            must_answer(group, ids(*NAMES, "c2"))
            shown = group.say("show-owners", "--strategy", "AVG")
            held: set[frozenset[MessageQueue]] = set()

            def had_both() -> bool:
                held.add(frozenset(q for q in members.owned()[ids("c1")[0]] if q.topic == "OrderEvents"))
                return shares <= held

            shares = {frozenset(by_list(listed)) for listed in (ids(*NAMES), ids(*NAMES, "c2"))}
            wait_until(had_both, SETTLE_DEADLINE, lambda: f"{held} but not each of {shares}")
    (finding,) = (each for each in shown["findings"] if each["code"] == "split-consumer-view")
    assert finding["consumers"] == ids("c2")


def by_list(listed: Sequence[str]) -> list[MessageQueue]:
    answer = query_assignment(
        AskedBroker("any", tuple(listed)), "AVG", "OrderEvents", queues_of("OrderEvents"), ids("c1")
    )
    return answer[ids("c1")[0]] or []


def test_a_strategy_that_brokers_do_not_have_assigns_nothing(cluster: RocketMQCluster) -> None:
    name = "assigned-hash-svc"
    with running_members(cluster, name, "CONSISTENT_HASH", list(TOPICS), NAMES, assigned="true") as members:
        group = Watched(cluster, name, [members], "CONSISTENT_HASH")
        must_answer(group, ids(*NAMES))
        with pytest.raises(AssertionError, match="broker-strategy"):
            group.owners()
        time.sleep(PAUSE_BETWEEN_REPORTS)
        owned = members.owned()
    assert {queue for queues in owned.values() for queue in queues if queue.topic in TOPICS} == set()


def test_consumers_in_order_share_the_queues_themselves_all_the_same(cluster: RocketMQCluster) -> None:
    name = "assigned-orderly-svc"
    own: dict[str, str] = {"assigned": "true", "orderly": "true", "strategy": "CONSISTENT_HASH"}
    with consumers(cluster, name, fast=True) as program:
        for each in NAMES:
            program.join(name, each, ",".join(TOPICS), **own)
        group = Watched(cluster, name, [], "CONSISTENT_HASH")

        def agree() -> bool:
            predicted, observed = group.owners()
            return predicted == observed and all(len(its) == 1 for its in predicted.values())

        wait_until(agree, SETTLE_DEADLINE, lambda: differences(*group.owners()))


GO_TOPICS = ("OrderEvents", "Skewed", "Few")
# Java sorts the second of these first, by its UTF-16 code units; Go the first one, by its UTF-8 bytes.
HIGH, EMOJI = "\uffee", "\U0001f600"


@pytest.mark.parametrize("strategy", ["AVG", "CONSISTENT_HASH"])
def test_java_and_go_own_what_each_computes(cluster: RocketMQCluster, go_consumer: Path, strategy: str) -> None:
    """Which queues have no owner and which have two is predicted queue by queue, joins and leaves included."""
    name = f"mixed-{strategy}-svc"
    with (
        running_members(cluster, name, strategy, GO_TOPICS, ["a1", "b2", "b3", "b4"]) as java,
        go_members(cluster, go_consumer, name, strategy, GO_TOPICS, ["a2", "b1"]) as go,
    ):
        group = Watched(cluster, name, [java, go], strategy)
        names = ["a1", "a2", "b1", "b2", "b3", "b4"]  # most are Java's at all times: the others are named
        owners = group.must_own(ids(*names))
        assert bool(unassigned(owners)) == bool(owned_twice(owners)) == (strategy == "CONSISTENT_HASH")
        assert mix_found(group, "error" if unassigned(owners) else "info")["consumers"] == ids("a2", "b1")
        for program, sdk, joiner in ((go, "go", HIGH), (java, "java", EMOJI), (go, "go", "a3")):
            (client_id,) = ids(joiner)
            after = group.planned("--add", client_id, "--sdk", f"{client_id}={sdk}")
            program.join(joiner)
            names.append(joiner)
            owners = group.must_own(ids(*names), after)
        assert unassigned(owners)
        assert owned_twice(owners)
        found = mix_found(group, "error")
        assert sorted(found["consumers"]) == sorted(ids("a2", "b1", "a3", HIGH))
        assert named(found) == sorted([*unassigned(owners), *owned_twice(owners)])
        for program, leaver in ((java, "a1"), (go, HIGH)):
            after = group.planned("--remove", *ids(leaver))
            program.leave(leaver)
            names.remove(leaver)
            group.must_own(ids(*names), after)


def mix_found(group: Watched, severity: str) -> dict[str, Any]:
    """What diagnose says of the mix, once it says it as gravely; nothing else comes before damage that it does."""
    last: dict[str, Any] = {}

    def is_so() -> bool:
        said = group.say("diagnose", "--deadline", "2m")["data"]["findings"]
        (found,) = (each for each in said if each["code"] == "mixed-sdks")
        last.update(found, isFirst=found is said[0])
        return bool(found["severity"] == severity)

    wait_until(is_so, OWNED_DEADLINE, lambda: f"{last}", 2.0)
    assert severity == "info" or last["isFirst"]
    return last


def named(found: dict[str, Any]) -> list[MessageQueue]:
    return sorted(MessageQueue(each["topic"], each["brokerName"], each["queueId"]) for each in found["queues"])
