"""Faults of consumption on a running cluster: each is named first, and healthy retries are not.

Failing listeners, topics that nobody can read, a hot queue, and stopped processes of POP and gRPC groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from .cluster import RocketMQCluster, TopicOnBroker
from .faults import NAMED_DEADLINE, Lab, crew_of, grave, lab
from .jvm import JavaProcess, wait_until
from .test_pop_and_grpc import MQADMIN, grpc_clients, grpc_proxy

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKERS = ("broker-a", "broker-b")
ORDERS, HOT, POPPED, PULLED, WRITTEN = "Orders", "HotKeys", "Popped", "Pulled", "WriteOnly"
WRITE_ONLY = 2
HEALTHY = ("ok-svc", "retry-svc")


@pytest.fixture(scope="module")
def planted() -> Iterator[Lab]:
    with RocketMQCluster("5.5.0", brokers=BROKERS, config={"timerWheelEnable": "true"}) as running:
        topics = [TopicOnBroker(t, name, 4, 4) for t in (ORDERS, HOT, POPPED, PULLED) for name in BROKERS]
        running.create_topics([*topics, *(TopicOnBroker(WRITTEN, name, 4, 4, WRITE_ONLY) for name in BROKERS)])
        with lab(running, fast=True) as it:
            for topic in (ORDERS, HOT, POPPED, PULLED):
                it.crew.produce(topic, 20)
            it.crew.fill(HOT, 100)
            yield it


def until_first(of: Lab, codes: dict[str, str], *more: str, healthy: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Diagnose until the first grave finding of each group has its code; `healthy` groups are diagnosed as well."""
    found: dict[str, dict[str, Any]] = {}
    waiting = dict(codes)

    def all_named() -> bool:
        try:
            now = of.diagnose([*waiting, *healthy], *more)
        except RuntimeError:  # brokers do not know a group yet
            return False
        for group in [group for group, code in waiting.items() if grave(now[group])[:1] == [code]]:
            del waiting[group]
        found.update(now)
        return not waiting

    wait_until(
        all_named, NAMED_DEADLINE, lambda: "\n".join(f"{group}: {of.said.get(group, [])[-1:]}" for group in waiting)
    )
    return found


def facts(finding: dict[str, Any]) -> dict[str, Any]:
    return {each["fact"]: each["value"] for each in finding["evidence"]}


def came_into(topic: str, finding: dict[str, Any]) -> int:
    (number,) = [its for fact, its in facts(finding).items() if fact.startswith(f"messages that came into the {topic}")]
    return int(number)


def test_listeners_that_fail_are_named_and_healthy_retries_are_not(planted: Lab) -> None:
    crew_of(ORDERS, *[{"listener": "fails"}] * 2)(planted, "fail-svc")
    crew_of(ORDERS, *[{"listener": each, "orderly": "true"} for each in ("ok", "fails")])(planted, "fail-orderly-svc")
    crew_of(ORDERS, *[{"listener": "fails", "tries": "0"}] * 2)(planted, "dead-svc")
    crew_of(ORDERS, {}, {})(planted, "ok-svc")
    crew_of(ORDERS, *[{"listener": "retries"}] * 2)(planted, "retry-svc")
    failing = dict.fromkeys(("fail-svc", "fail-orderly-svc", "dead-svc"), "consume-failing")
    found = until_first(planted, failing, healthy=HEALTHY)
    first = found["fail-svc"]["findings"][0]
    assert first["severity"] == "error"
    assert sorted(first["consumers"]) == [f"127.0.0.1@fail-svc-{number}" for number in range(2)]
    assert came_into("retry", first) > 0
    assert came_into("dead-letter", found["dead-svc"]["findings"][0]) > 0
    orderly = found["fail-orderly-svc"]["findings"][0]
    assert orderly["consumers"] == ["127.0.0.1@fail-orderly-svc-1"]
    assert len(orderly["queues"]) == 4
    followed = {each["code"]: each["causes"] for each in found["fail-orderly-svc"]["consequences"]}
    assert followed["head-blocked"] == ["consume-failing"]
    wait_until(  # until a minute of theirs has been counted
        lambda: bool(planted.diagnose(HEALTHY)) and len(planted.said["retry-svc"]) > 3,
        NAMED_DEADLINE,
        lambda: "looking",
    )
    assert {group: [grave(said) for said in planted.said[group] if grave(said)] for group in HEALTHY} == {
        group: [] for group in HEALTHY
    }


def test_a_topic_that_nobody_can_read_is_the_cause(planted: Lab) -> None:
    for group, topics in {"written-svc": WRITTEN, "both-svc": f"{WRITTEN},{ORDERS}"}.items():
        crew_of(topics, {}, {})(planted, group)
    found = until_first(planted, dict.fromkeys(("written-svc", "both-svc"), "no-read-queues"))
    for group, diagnosis in found.items():
        first = diagnosis["findings"][0]
        assert (group, first["topic"], set(facts(first).values())) == (group, WRITTEN, {"perm 2, readQueueNums 4"})
        assert "more-consumers-than-queues" not in {each["code"] for each in diagnosis["findings"]}


def test_a_hot_queue_is_named_with_its_shares(planted: Lab) -> None:
    crew_of(HOT, *[{"listener": "100"}] * 3)(planted, "hot-svc")
    (first, *_) = until_first(planted, {"hot-svc": "hot-queue"})["hot-svc"]["findings"]
    shares = [value for fact, value in facts(first).items() if fact.startswith("percent")]
    assert first["topic"] == HOT
    assert min(shares) >= 70
    assert "more consumers do not help" in first["remedy"]


@contextmanager
def frozen(process: JavaProcess) -> Iterator[None]:
    process.freeze()
    try:
        yield
    finally:
        process.unfreeze()


def test_lag_of_a_pop_group_whose_process_is_stopped(planted: Lab) -> None:
    group, cluster = "pop-svc", planted.cluster
    own = planted.alone(group)
    for number in range(2):
        own.join(group, f"{group}-{number}", POPPED, assigned="true")
    for address in cluster.broker_addresses.values():
        mode = ("-t", POPPED, "-g", group, "-m", "POP", "-q", "0")
        cluster.run(MQADMIN, "setConsumeMode", "-n", cluster.name_server, "-b", address, *mode)
    wait_until(
        lambda: [each["code"] for each in planted.diagnose([group])[group]["findings"]] == ["pop-consumption"],
        NAMED_DEADLINE,
        lambda: f"{planted.said[group][-1]}",
    )
    with frozen(own.process):
        found = until_first(planted, {group: "lag-stalled"})[group]
    assert found["findings"][0]["remedy"].startswith("Check whether its consumers' processes run")


def test_lag_of_a_grpc_group_whose_process_is_stopped(planted: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    group, folder = "grpc-svc", tmp_path_factory.mktemp("proxy")
    with ExitStack() as running:
        grpc, remoting = running.enter_context(grpc_proxy(planted.cluster, folder))
        process = running.enter_context(grpc_clients(planted.cluster, grpc, group, PULLED, folder, "push", "push"))
        asked = ("--proxy", remoting)
        wait_until(
            lambda: [each["code"] for each in planted.diagnose([group], *asked)[group]["findings"]] == ["behind-proxy"],
            NAMED_DEADLINE,
            lambda: f"{planted.said[group][-1]}",
        )
        with frozen(process):
            found = until_first(planted, {group: "lag-stalled"}, *asked)[group]
    assert {each["code"] for each in found["findings"]} == {"lag-stalled", "behind-proxy"}
