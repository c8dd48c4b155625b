"""Live tests are asked for by ``--live`` and deselected without it. With it, missing Java or Maven is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from .broker_failures import Kill, recorded_kill
from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import Java

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    with suppress(ValueError):  # the conftest above has it already; this one is read early only when named
        parser.addoption("--live", action="store_true", help="also run the tests that start a real RocketMQ")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "live: starts a real RocketMQ; runs with --live only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.live)
    if ours and not config.getoption("--live", default=False):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if HERE not in item.path.parents]


@pytest.fixture(scope="session")
def cluster() -> Iterator[RocketMQCluster]:
    """RocketMQ 5.5.0, two brokers; Skewed has other counts on each, and fewer write than read queues on one.

    NewOrders is on one of them only, so that the other one is new to its consumers.
    """
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"]) as running:
        running.create_topics(
            [
                TopicOnBroker("OrderEvents", "broker-a", 8, 8),
                TopicOnBroker("OrderEvents", "broker-b", 8, 8),
                TopicOnBroker("Skewed", "broker-a", 6, 4),
                TopicOnBroker("Skewed", "broker-b", 3, 3),
                TopicOnBroker("NewOrders", "broker-a", 8, 8),
            ]
        )
        yield running


@pytest.fixture(scope="session")
def legacy_cluster() -> Iterator[RocketMQCluster]:
    """RocketMQ 4.9.7, one broker."""
    with RocketMQCluster("4.9.7", brokers=["legacy-a"], name="LegacyCluster") as running:
        running.create_topics(
            [TopicOnBroker("OrderEvents", "legacy-a", 8, 8), TopicOnBroker("Skewed", "legacy-a", 6, 4)]
        )
        yield running


@pytest.fixture(scope="session")
def producer_javas(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Java]:
    """How to start producers, by version; they need no servers of their own version."""
    return {version: Java.prepare(version, tmp_path_factory.mktemp("producers")) for version in ("5.5.0", "4.9.7")}


@pytest.fixture(scope="session")
def kill(producer_javas: Mapping[str, Java]) -> Kill:
    """The death of a broker, recorded; the cluster is gone."""
    return recorded_kill(producer_javas)
