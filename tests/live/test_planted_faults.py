"""Faults planted in groups of real Java consumers: `rmqlb diagnose` names each of them first, and of healthy groups none."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .cluster import RocketMQCluster, TopicOnBroker
from .consumers import consumers
from .faults import Fault, Lab, crew_of, cut_from, false_causes, grave, is_named, lab, one_id_twice

pytestmark = pytest.mark.live

TOPIC, OTHER, POPPED = "OrderEvents", "Skewed", "Popped"
SYMPTOMS = ("lag-stalled", "lag-growing")
"""What stands first as long as the looks do not show yet for how long no call of a listener has ended."""
MOVING = "moving-svc"


def faults(topic: str, other: str) -> tuple[Fault, ...]:
    """Those that show at once."""
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
        ("head-blocked",),
        crew_of(TOPIC, *[{"orderly": "true", "listener": each} for each in ("ok", "ok", "fails")]),
        ("fail-orderly-svc-2",),
        SYMPTOMS,
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
    return [code for said in of.said[fault.group] for code in false_causes(fault, said)]


# -- all of them ----------------------------------------------------------------------------------------------------------


@contextmanager
def always_rebalancing(cluster: RocketMQCluster) -> Iterator[None]:
    """A group of which one consumer leaves and another one joins all the time."""
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
    """All faults side by side on one cluster, beside healthy groups, diagnosed until each is named."""
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"], config={"timerWheelEnable": "true"}) as running:
        topics = [
            TopicOnBroker(topic, name, 4, 4) for topic in (TOPIC, OTHER, POPPED) for name in running.broker_addresses
        ]
        running.create_topics(topics)
        with lab(running, fast=False) as it:
            for topic in (TOPIC, OTHER, POPPED):
                it.crew.produce(topic, 40 if topic == TOPIC else 5)
            for fault in (*SLOW_FAULTS, *TWO_FAULTS):
                fault.plant(it, fault.group)
            for group, plant in HEALTHY.items():
                plant(it, group)
            with always_rebalancing(running):
                it.until_named([*SLOW_FAULTS, *TWO_FAULTS], *HEALTHY, MOVING)
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
