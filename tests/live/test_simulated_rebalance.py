"""The simulation against real groups: members join, one stops in good order, one JVM is killed, a broker is new.

Each recording is simulated many times with the same events, and the report of the comparison is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.rebalance_comparison import compared, disagreements, report
from tests.support.recorded_groups import Recording

from .cluster import RocketMQCluster
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


@pytest.fixture(scope="module")
def recordings(cluster: RocketMQCluster) -> Mapping[str, Recording]:
    """Two groups live side by side: neither asks much of the machine."""
    groups = {
        "concurrent": (
            Group(cluster, "rebalance-svc", TOPIC, 8),
            (*START, Act("join", "c3"), Act("leave", "c1"), Act("crash", "c2")),
        ),
        "orderly": (
            Group(cluster, "rebalance-orderly-svc", TOPIC, 8, orderly=True),
            (*START, Act("join", "c3"), Act("crash", "c2", LOCKS_LIVE_ON)),
        ),
    }
    return lived_through(groups)


@pytest.fixture(scope="module")
def guests(cluster: RocketMQCluster, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Recording]:
    """Clients of 5.1.4, the last that rebalance at each wake-up, and let a lock go that they give up slowly."""
    java = Java.prepare("5.1.4", tmp_path_factory.mktemp("guests"))
    return lived_through(
        {
            "concurrent": (
                Group(cluster, "guest-svc", TOPIC, 8, guests=java),
                (*START, Act("join", "c3"), Act("leave", "c1")),
            ),
            "orderly": (
                Group(cluster, "guest-orderly-svc", TOPIC, 8, orderly=True, guests=java),
                (*START, Act("join", "c3"), Act("crash", "c2", LOCKS_LIVE_ON)),
            ),
        }
    )


def lived_through(groups: Mapping[str, tuple[Group, Sequence[Act]]]) -> Mapping[str, Recording]:
    with ThreadPoolExecutor() as threads:
        living = {name: threads.submit(group.live_through, acts) for name, (group, acts) in groups.items()}
        return {name: future.result() for name, future in living.items()}


def assert_as_foretold(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    comparisons = compared(recording, TRIALS)
    with capsys.disabled():
        sys.stdout.write(f"\n{report(recording, comparisons)}\n")
    assert all(each.changing for each in comparisons)
    assert disagreements(comparisons) == []


@pytest.mark.parametrize("listener", ["concurrent", "orderly"])
def test_a_group_goes_through_what_the_simulation_foretells(
    recordings: Mapping[str, Recording], listener: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_as_foretold(recordings[listener], capsys)


@pytest.mark.parametrize("listener", ["concurrent", "orderly"])
def test_a_group_of_5_1_goes_through_what_the_simulation_foretells(
    guests: Mapping[str, Recording], listener: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_as_foretold(guests[listener], capsys)


def test_a_group_of_version_4_goes_through_what_the_simulation_foretells(
    legacy_cluster: RocketMQCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Group(legacy_cluster, "rebalance-svc", TOPIC, 8)
    assert_as_foretold(group.live_through((*START, Act("join", "c3"), Act("leave", "c1"))), capsys)


def test_a_group_meets_a_new_broker_as_the_simulation_foretells(
    cluster: RocketMQCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whom the first member asks is chance: told that it is alone or not, what follows must be foretold."""
    starts = tuple(Act("join", name, APART) for name in ("c1", "c2", "c4"))
    acts = (*starts, Act("broker-up", "broker-b", ALL_HAVE_LEARNT))
    assert_as_foretold(Group(cluster, "new-broker-svc", "NewOrders", 8).live_through(acts), capsys)


def test_lite_pull_consumers_go_through_what_the_simulation_foretells(
    cluster: RocketMQCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = Group(cluster, "lite-pull-svc", TOPIC, 8, lite_pull=True)
    assert_as_foretold(group.live_through((*START, Act("join", "c3"), Act("leave", "c1"), Act("crash", "c2"))), capsys)
