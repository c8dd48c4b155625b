"""The simulation against real groups of Apache's Go client: its own timers, notices and ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.recorded_groups import Recording

from .cluster import RocketMQCluster, TopicOnBroker
from .jars import go_program
from .rebalance_log import START, Act, Group
from .test_simulated_rebalance import ALL_HAVE_LEARNT, APART, TOPIC, assert_as_foretold, lived_through

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.fixture(scope="module")
def recordings(cluster: RocketMQCluster, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Recording]:
    """Two groups side by side; their retry topics are there, which take brokers long to create at a first heartbeat."""
    topics = {"go-rebalance-svc": ("broker-a", "broker-b"), "go-new-broker-svc": ("broker-a",)}
    cluster.create_topics([TopicOnBroker(f"%RETRY%{group}", b, 1, 1) for group, its in topics.items() for b in its])
    program = go_program(Path(__file__).parent / "go" / "rebalancelog", tmp_path_factory.mktemp("go") / "log")
    starts = tuple(Act("join", name, APART) for name in ("c1", "c2", "c4"))
    return lived_through(
        {
            "joins and ends": (
                Group(cluster, "go-rebalance-svc", TOPIC, 8, go=program),
                (*START, Act("join", "c3"), Act("leave", "c1"), Act("crash", "c2")),
            ),
            "new broker": (
                Group(cluster, "go-new-broker-svc", "NewOrders", 8, go=program),
                (*starts, Act("broker-up", "broker-b", ALL_HAVE_LEARNT + ALL_HAVE_LEARNT)),
            ),
        }
    )


@pytest.mark.parametrize("name", ["joins and ends", "new broker"])
def test_a_go_group_goes_through_what_the_simulation_foretells(
    recordings: Mapping[str, Recording], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_as_foretold(recordings[name], capsys)
