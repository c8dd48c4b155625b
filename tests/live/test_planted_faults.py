from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rmqlb.cli.main import app

from .cluster import RocketMQCluster, TopicOnBroker
from .consumers import consumers
from .faults import (
    NAMED_DEADLINE,
    PATIENCE,
    Fault,
    Lab,
    crew_of,
    cut_from,
    false_causes,
    grave,
    is_named,
    lab,
    last_alone,
    one_id_twice,
)
from .jvm import wait_until
from .members import go_members

pytestmark = pytest.mark.live

TOPIC, OTHER = "OrderEvents", "Skewed"
SYMPTOMS = ("lag-stalled", "lag-growing")
"""What stands first as long as the looks do not show yet for how long no call of a listener has ended."""
MOVING = "moving-svc"


def faults(topic: str, other: str) -> tuple[Fault, ...]:
    return (
        Fault("dup-svc", ("duplicate-client-id",), one_id_twice(topic), ("dup-svc-0",)),
        Fault("mix-svc", ("mixed-strategies",), crew_of(topic, {}, {}, {"strategy": "AVG_BY_CIRCLE"}), ("mix-svc-2",)),
        Fault("topics-svc", ("subscription-mismatch",), crew_of(topic, {}, {}, {"topics": other}), ("topics-svc-2",)),
        Fault(
            "cut-svc",
            ("broker-unreachable-from-consumer",),
            cut_from("broker-b", topic, strategy="AVG_BY_CIRCLE"),
            ("cut-svc-2",),
            before=("split-consumer-view",),
        ),
    )


SLOW_FAULTS = (
    *faults(TOPIC, OTHER),
    Fault(
        "tags-svc",
        ("subscription-mismatch",),
        crew_of(TOPIC, {"topics": f"{TOPIC}:red"}, {"topics": f"{TOPIC}:red"}, {"topics": f"{TOPIC}:blue"}),
        ("tags-svc-2",),
    ),
    Fault("hang-svc", ("blocked-consumer",), crew_of(TOPIC, {}, {}, {"listener": "hangs"}), ("hang-svc-2",), SYMPTOMS),
    Fault(
        "hang-orderly-svc",
        ("blocked-consumer",),
        crew_of(TOPIC, *[{"orderly": "true", "listener": each} for each in ("ok", "ok", "hangs")]),
        ("hang-orderly-svc-2",),
        SYMPTOMS,
    ),
    Fault(
        "fail-orderly-svc",
        ("consume-failing",),
        crew_of(TOPIC, *[{"orderly": "true", "listener": each} for each in ("ok", "ok", "fails")]),
        ("fail-orderly-svc-2",),
        (*SYMPTOMS, "head-blocked"),
    ),
    Fault("slow-svc", ("slow-consumer",), crew_of(TOPIC, {}, {}, {"listener": "900"}), ("slow-svc-2",), SYMPTOMS),
)
TWO_FAULTS = (
    Fault(
        "two-a-svc",
        ("mixed-strategies", "blocked-consumer"),
        crew_of(TOPIC, {}, {}, {"strategy": "AVG_BY_CIRCLE", "listener": "hangs"}),
        ("two-a-svc-2",),
        SYMPTOMS,
    ),
    Fault(
        "two-b-svc",
        ("duplicate-client-id", "blocked-consumer"),
        one_id_twice(TOPIC, listener="hangs"),
        ("two-b-svc-0",),
        SYMPTOMS,
    ),
)
FROZEN = Fault("frozen-svc", ("frozen-consumer",), last_alone(TOPIC), ("frozen-svc-2",), SYMPTOMS)
KILLED = Fault("killed-svc", ("consumer-gone",), last_alone(TOPIC, orderly="true"))
HEALTHY = {
    "avg-svc": crew_of(TOPIC, {}, {}, {}),
    "circle-svc": crew_of(TOPIC, *[{"strategy": "AVG_BY_CIRCLE"}] * 3),
    "hash-svc": crew_of(TOPIC, *[{"strategy": "CONSISTENT_HASH"}] * 3),
    "orderly-svc": crew_of(TOPIC, *[{"orderly": "true"}] * 3),
}


def test_a_few_faults_are_named_first_and_a_healthy_group_has_none(cluster: RocketMQCluster) -> None:
    with lab(cluster, fast=True) as few:
        planted = faults(TOPIC, OTHER)
        for fault in planted:
            fault.plant(few, fault.group)
        HEALTHY["avg-svc"](few, "avg-svc")
        few.until_named(planted, "avg-svc")
    assert {fault.group: few.brief(fault.group) for fault in planted if wrong(few, fault)} == {}
    assert [grave(said) for said in few.said["avg-svc"] if grave(said)] == []


def wrong(of: Lab, fault: Fault) -> list[str]:
    return [
        f"{found['code']}: {[(each['fact'], each['value']) for each in found['evidence']]}"
        for said in of.said[fault.group]
        for found in said["findings"]
        if found["code"] in false_causes(fault, said)
    ]


@contextmanager
def always_rebalancing(cluster: RocketMQCluster) -> Iterator[None]:
    ended = threading.Event()
    with consumers(cluster, MOVING) as program:
        for number in range(3):
            program.join(MOVING, f"{MOVING}-{number}", TOPIC)

        def go_on() -> None:
            number = 3
            while not ended.wait(15):
                program.leave(MOVING, f"{MOVING}-{number - 3}")
                program.join(MOVING, f"{MOVING}-{number}", TOPIC)
                number += 1

        moving = threading.Thread(target=go_on)
        moving.start()
        try:
            yield
        finally:
            ended.set()
            moving.join()


@pytest.fixture(scope="module")
def planted() -> Iterator[Lab]:
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"], config={"timerWheelEnable": "true"}) as running:
        topics = [TopicOnBroker(topic, name, 4, 4) for topic in (TOPIC, OTHER) for name in running.broker_addresses]
        running.create_topics(topics)
        with lab(running, fast=False) as it:
            for topic in (TOPIC, OTHER):
                it.crew.produce(topic, 40 if topic == TOPIC else 5)
            for fault in (*SLOW_FAULTS, *TWO_FAULTS, FROZEN, KILLED):
                fault.plant(it, fault.group)
            for group, plant in HEALTHY.items():
                plant(it, group)
            with always_rebalancing(running):
                it.until_named([*SLOW_FAULTS, *TWO_FAULTS], *HEALTHY, MOVING, FROZEN.group, KILLED.group)
            yield it


@pytest.mark.slow
def test_each_planted_fault_is_named_first(planted: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    named = [fault for fault in SLOW_FAULTS if is_named(fault, planted.said[fault.group][-1])]
    others = {fault.group: wrong(planted, fault) for fault in SLOW_FAULTS if wrong(planted, fault)}
    number = sum(len(said) for said in planted.said.values())
    with capsys.disabled():
        told = (
            f"{len(named)} of {len(SLOW_FAULTS)} faults named first; false causes in {number} diagnoses: {len(others)}"
        )
        sys.stdout.write(f"\n{told}\n")
    assert (named, others) == ([*SLOW_FAULTS], {})


@pytest.mark.slow
def test_of_two_faults_at_once_both_are_named_and_no_other(planted: Lab) -> None:
    assert [fault.group for fault in TWO_FAULTS if not is_named(fault, planted.said[fault.group][-1])] == []
    assert {fault.group: wrong(planted, fault) for fault in TWO_FAULTS if wrong(planted, fault)} == {}


@pytest.mark.slow
@pytest.mark.parametrize("group", [*HEALTHY, MOVING])
def test_a_healthy_group_has_no_finding_above_info(planted: Lab, group: str) -> None:
    assert len(planted.said[group]) > 1
    assert [grave(said) for said in planted.said[group] if grave(said)] == []


@pytest.mark.slow
def test_blocked_consumers_show_where_their_listeners_wait(planted: Lab) -> None:
    (diagnosis,) = planted.diagnose(["hang-svc"], "--stacks").values()
    (stacks,) = diagnosis["stacks"]
    assert stacks["clientId"] == "127.0.0.1@hang-svc-2"
    assert any("Consumers.waitForTheDatabase" in thread for thread in stacks["threads"])


@pytest.mark.slow
def test_a_process_that_stands_still_is_named_while_brokers_list_it(planted: Lab) -> None:
    assert grave(planted.said[FROZEN.group][-1]) == []
    process = planted.own[FROZEN.group].process
    process.freeze()
    try:
        planted.until_named([FROZEN])
    finally:
        process.unfreeze()
    assert wrong(planted, FROZEN) == []


@pytest.mark.slow
def test_the_queues_of_an_orderly_consumer_that_was_killed_are_named_as_long_as_it_has_their_locks(
    planted: Lab,
) -> None:
    """Brokers keep its locks for 60 s, so that no other consumer gets its queues."""
    assert grave(planted.said[KILLED.group][-1]) == []
    planted.own[KILLED.group].process.kill()
    planted.until_named([KILLED])
    assert len(planted.said[KILLED.group][-1]["findings"][0]["queues"]) == 2
    assert wrong(planted, KILLED) == []
    wait_until(
        lambda: grave(planted.diagnose([KILLED.group])[KILLED.group]) == [],
        NAMED_DEADLINE,
        lambda: f"still: {planted.brief(KILLED.group)}",
    )


@pytest.mark.slow
def test_a_go_consumer_in_a_java_group_computes_other_shares(cluster: RocketMQCluster, go_consumer: Path) -> None:
    """Its CONSISTENT_HASH has another ring than Java's."""
    hashing = {"strategy": "CONSISTENT_HASH"}
    fault = Fault("go-svc", ("mixed-sdks",), crew_of(TOPIC, hashing, hashing), before=("unassigned-queues",))
    with lab(cluster, fast=True) as few:
        fault.plant(few, fault.group)
        with go_members(cluster, go_consumer, fault.group, "CONSISTENT_HASH", [TOPIC], ["go-svc-2"]):

            def names_it() -> bool:
                return grave(few.diagnose([fault.group])[fault.group])[:1] == ["mixed-sdks"]

            wait_until(names_it, NAMED_DEADLINE, lambda: f"{few.brief(fault.group)}")
    last = few.said[fault.group][-1]["findings"][0]
    assert (last["severity"], last["consumers"]) == ("error", ["127.0.0.1@go-svc-2"])
    assert len(last["queues"]) > 0
    assert wrong(few, fault) == []


@pytest.mark.slow
@pytest.mark.parametrize(("group", "is_orderly"), [("hang-svc", False), ("hang-orderly-svc", True)])
def test_the_evidence_of_a_consumer_with_messages_in_hand_is_read(planted: Lab, group: str, is_orderly: bool) -> None:
    source = ("-s", f"rocketmq://{planted.cluster.name_server}", *PATIENCE[:2])
    ran = CliRunner().invoke(app, ["fetch-routes", *source, "-g", group, "--evidence", "-o", "json"])
    (its,) = json.loads(ran.stdout)["data"]["groups"]
    (report,) = (each for each in its["reports"] if each["clientId"] == f"127.0.0.1@{group}-2")
    evidence = report["evidence"]
    assert (evidence["orderly"], evidence["limits"]) == (is_orderly, {"messages": 1000, "mib": 100, "span": 2000})
    assert evidence["filters"] == {TOPIC: "*", f"%RETRY%{group}": "*"}
    assert {*evidence["statuses"]} == {TOPIC, f"%RETRY%{group}"}
    held = [each for each in evidence["queues"] if each["queue"]["topic"] == TOPIC]
    assert len(held) == 2
    for queue in held:
        first = queue["consumingMinOffset"] if is_orderly else queue["minOffset"]
        assert (queue["consuming"], queue["commitOffset"], queue["locked"]) == (int(is_orderly), first, True)
        assert queue["cached"] > 1
        assert queue["maxOffset"] - queue["minOffset"] == queue["cached"] - 1
        assert evidence["readAt"] - queue["lastConsume"] > 60_000
        assert evidence["readAt"] - queue["lastPull"] < 60_000
        assert (evidence["readAt"] - queue["lastLock"] < 60_000) == is_orderly
