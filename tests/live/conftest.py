"""The clusters that live tests share. Missing Java or Maven is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .broker_failures import Kill, recorded_kill
from .cluster import RocketMQCluster, TopicOnBroker
from .jars import go_program
from .jvm import Java


@pytest.fixture(scope="session")
def cluster() -> Iterator[RocketMQCluster]:
    """RocketMQ 5.5.0, two brokers; Skewed has other counts on each, and fewer write than read queues on one.

    NewOrders and NewGoOrders are on one of them only, so that the other one is new to their consumers.
    """
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"]) as running:
        running.create_topics(
            [
                TopicOnBroker("OrderEvents", "broker-a", 8, 8),
                TopicOnBroker("OrderEvents", "broker-b", 8, 8),
                TopicOnBroker("Skewed", "broker-a", 6, 4),
                TopicOnBroker("Skewed", "broker-b", 3, 3),
                TopicOnBroker("NewOrders", "broker-a", 8, 8),
                TopicOnBroker("NewGoOrders", "broker-a", 8, 8),
            ]
        )
        yield running


@pytest.fixture(scope="session")
def legacy_cluster() -> Iterator[RocketMQCluster]:
    with RocketMQCluster("4.9.7", brokers=["legacy-a"], name="LegacyCluster") as running:
        running.create_topics(
            [TopicOnBroker("OrderEvents", "legacy-a", 8, 8), TopicOnBroker("Skewed", "legacy-a", 6, 4)]
        )
        yield running


@pytest.fixture(scope="session")
def go_consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return go_program(Path(__file__).parent / "go", tmp_path_factory.mktemp("go") / "consumer")


@pytest.fixture(scope="session")
def producer_javas(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Java]:
    """How to start producers, by version; they need no servers of their own version."""
    return {version: Java.prepare(version, tmp_path_factory.mktemp("producers")) for version in ("5.5.0", "4.9.7")}


@pytest.fixture(scope="session")
def kill(producer_javas: Mapping[str, Java]) -> Kill:
    """The death of a broker, recorded; the cluster is gone."""
    return recorded_kill(producer_javas)
