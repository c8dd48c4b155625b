"""The simulation against real groups: consumers join, one stops in good order, one is killed, a broker is new.

Each recording is simulated many times with the same events, and the report of the comparison is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.rebalance_comparison import compared, disagreements, report
from tests.support.recorded_groups import Recording

from .cluster import RocketMQCluster, TopicOnBroker
from .jars import go_program
from .jvm import Java
from .rebalance_log import START, Act, Group

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPIC = "OrderEvents"
TRIALS = 400
# The locks of a dead client are up 40 to 60 s after its death; then its queues are taken, and the group comes to rest.
LOCKS_LIVE_ON = 75.0
# So far apart that whoever learns of a new broker first has it for itself for a while.
APART = 5.0
# A poll of each is over by then, and the heartbeat a second after it.
ALL_HAVE_LEARNT = 27.0

JOIN_AND_LEAVE = (*START, Act("join", "c3"), Act("leave", "c1"))
JOIN_AND_CRASH = (*START, Act("join", "c3"), Act("crash", "c2", LOCKS_LIVE_ON))
ALL = (*JOIN_AND_LEAVE, Act("crash", "c2"))
Groups = Mapping[str, tuple[Group, Sequence[Act]]]


def new_broker(quiet: float) -> tuple[Act, ...]:
    """Whom the first consumer asks is chance: told that it is alone or not, what follows must be foretold."""
    return (*(Act("join", name, APART) for name in ("c1", "c2", "c4")), Act("broker-up", "broker-b", quiet))


def of_java(cluster: RocketMQCluster, _: Path) -> Groups:
    return {
        "concurrent": (Group(cluster, "rebalance-svc", TOPIC, 8), ALL),
        "orderly": (Group(cluster, "rebalance-orderly-svc", TOPIC, 8, orderly=True), JOIN_AND_CRASH),
    }


def of_guests(cluster: RocketMQCluster, folder: Path) -> Groups:
    """Clients of 5.1.4, the last that rebalance at each wake-up, and let a lock go that they give up slowly."""
    more: dict[str, Any] = {"guests": Java.prepare("5.1.4", folder)}
    return {
        "concurrent": (Group(cluster, "guest-svc", TOPIC, 8, **more), JOIN_AND_LEAVE),
        "orderly": (Group(cluster, "guest-orderly-svc", TOPIC, 8, orderly=True, **more), JOIN_AND_CRASH),
    }


def of_a_new_broker(cluster: RocketMQCluster, _: Path) -> Groups:
    return {"new": (Group(cluster, "new-broker-svc", "NewOrders", 8), new_broker(ALL_HAVE_LEARNT))}


def of_lite_pull(cluster: RocketMQCluster, _: Path) -> Groups:
    return {"lite": (Group(cluster, "lite-pull-svc", TOPIC, 8, lite_pull=True), ALL)}


def of_go(cluster: RocketMQCluster, folder: Path) -> Groups:
    """Their retry topics are there, which take brokers long to create at a first heartbeat."""
    topics = {"go-rebalance-svc": ("broker-a", "broker-b"), "go-new-broker-svc": ("broker-a",)}
    cluster.create_topics([TopicOnBroker(f"%RETRY%{group}", b, 1, 1) for group, on in topics.items() for b in on])
    go = go_program(Path(__file__).parent / "go" / "rebalancelog", folder / "log")
    return {
        "joins and ends": (Group(cluster, "go-rebalance-svc", TOPIC, 8, go=go), ALL),
        "new broker": (Group(cluster, "go-new-broker-svc", "NewGoOrders", 8, go=go), new_broker(2 * ALL_HAVE_LEARNT)),
    }


def lived_through(groups: Groups) -> Mapping[str, Recording]:
    """They live side by side: none asks much of the machine."""
    with ThreadPoolExecutor() as threads:
        living = {name: threads.submit(group.live_through, acts) for name, (group, acts) in groups.items()}
        return {name: future.result() for name, future in living.items()}


def assert_as_foretold(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    comparisons = compared(recording, TRIALS)
    with capsys.disabled():
        sys.stdout.write(f"\n{report(recording, comparisons)}\n")
    assert all(each.changing for each in comparisons)
    assert disagreements(comparisons) == []


@pytest.mark.parametrize("groups_of", [of_java, of_guests, of_a_new_broker, of_lite_pull, of_go])
def test_groups_go_through_what_the_simulation_foretells(
    groups_of: Callable[[RocketMQCluster, Path], Groups],
    cluster: RocketMQCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for recording in lived_through(groups_of(cluster, tmp_path)).values():
        assert_as_foretold(recording, capsys)


def test_a_group_of_version_4_goes_through_what_the_simulation_foretells(
    legacy_cluster: RocketMQCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Group(legacy_cluster, "rebalance-svc", TOPIC, 8)
    assert_as_foretold(group.live_through(JOIN_AND_LEAVE), capsys)
