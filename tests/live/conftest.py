"""The clusters that live tests share. Missing Java or Maven is an error."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .cluster import RocketMQCluster, TopicOnBroker
from .jars import go_program
from .jvm import Java
from .living_groups import LivingGroups, living_groups
from .producers import Kill, recorded_kill


@pytest.fixture(scope="session")
def cluster() -> Iterator[RocketMQCluster]:
    """RocketMQ 5.5.0, two brokers; Skewed has other counts on each, and fewer write than read queues on one.

    NewOrders and NewGoOrders are on one of them only, so that the other one is new to their consumers. POP needs the
    timer wheel; brokers learn of topics and brokers at their own polls, 30 s apart when not set.
    """
    config: dict[str, str | int] = {"timerWheelEnable": "true", "loadBalancePollNameServerInterval": 1000}
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"], config=config) as running:
        running.create_topics(
            [
                TopicOnBroker("OrderEvents", "broker-a", 8, 8),
                TopicOnBroker("OrderEvents", "broker-b", 8, 8),
                TopicOnBroker("Skewed", "broker-a", 6, 4),
                TopicOnBroker("Skewed", "broker-b", 3, 3),
                TopicOnBroker("Few", "broker-a", 2, 2),
                TopicOnBroker("Few", "broker-b", 1, 1),
                *(TopicOnBroker(topic, "broker-a", 4, 4) for topic in ("Popped", "Pulled", "Ordered")),
                TopicOnBroker("Back", "broker-a", 1, 1),
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
def lived(
    cluster: RocketMQCluster, legacy_cluster: RocketMQCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LivingGroups]:
    with living_groups(cluster, legacy_cluster, tmp_path_factory.mktemp("lived")) as groups:
        yield groups


@pytest.fixture(scope="session", autouse=True)
def what_lasts_long_begins_first(request: pytest.FixtureRequest) -> None:
    """Groups that mostly wait for RocketMQ's timers live while other tests run."""
    if any("lived" in item.fixturenames for item in request.session.items if isinstance(item, pytest.Function)):
        request.getfixturevalue("lived")


@pytest.fixture(scope="session")
def producer_javas(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Java]:
    """How to start producers, by version; they need no servers of their own version."""
    return {version: Java.prepare(version, tmp_path_factory.mktemp("producers")) for version in ("5.5.0", "4.9.7")}


@pytest.fixture(scope="session")
def kill(producer_javas: Mapping[str, Java]) -> Kill:
    """The death of a broker, recorded; the cluster is gone."""
    return recorded_kill(producer_javas)
