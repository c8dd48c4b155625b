"""gRPC producers of rocketmq-client-java against real Proxies: where message groups go, and what a broker's death does."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue, PublishingLoadBalancer, SendReport, TopicRouteData, publish_queues, simulate_send
from rmqlb.model.send_scenario import Failure, Moment, Reaction, SendScenario
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.opening import open_source
from rmqlb.sources.source import Access
from tests.cli.run import run

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import wait_until
from .proxies import ClusterOfProxies, Isolation, Sent, grpc_producer, proxy_by_itself, stored

pytestmark = [pytest.mark.live, pytest.mark.slow]

A, B = "broker-a", "broker-b"
TOPICS = [
    # Of its queues the list of the SDK has others than the brokers; the last two of broker-b nobody can read.
    TopicOnBroker("Uneven", A, 6, 4),
    TopicOnBroker("Uneven", B, 3, 5),
    TopicOnBroker("Steady", A, 4, 4),
    TopicOnBroker("Steady", B, 4, 4),
]
GROUPS = [f"order-{number}" for number in range(60)]
SDK, ATTEMPTS = "java-grpc", 3
REJOIN_DEADLINE = 120.0
"""Heartbeats are 10 s apart, and gRPC does not connect again for about as long as the broker was gone."""


@pytest.fixture(scope="module")
def proxies() -> Iterator[ClusterOfProxies]:
    with ClusterOfProxies("5.5.0", brokers=[A, B]) as running:
        running.create_topics(TOPICS)
        yield running


def selected(cluster: RocketMQCluster, topic: str, mode: str) -> dict[str, dict[str, Any]]:
    keys = [f"--key={group}" for group in GROUPS]
    line = ("select-queue", "-s", f"rocketmq://{cluster.name_server}", "-t", topic, "--sdk", SDK, *keys)
    result = run(*line, "--proxy-mode", mode, "-o", "json")
    assert result.code == 0, result.stderr
    return {row["key"]: row for row in json.loads(result.stdout)["data"]["keys"]}


def place(row: dict[str, Any]) -> tuple[str, int]:
    return row[SDK]["brokerName"], row[SDK]["queueId"]


@pytest.mark.parametrize("mode", ["local", "cluster"])
def test_message_groups_go_where_select_queue_says(proxies: ClusterOfProxies, mode: str, tmp_path: Path) -> None:
    topic = "Uneven"
    said = selected(proxies, topic, mode)
    before = stored(proxies, topic)
    with ExitStack() as running:
        endpoints = proxies.endpoints(A, B) if mode == "local" else running.enter_context(proxy_by_itself(proxies))[0]
        producer = running.enter_context(grpc_producer(proxies, endpoints, topic, tmp_path))
        sent = {group: producer.send_group(group) for group in GROUPS}
    assert {group: (each.broker_name, each.queue_id) for group, each in sent.items()} == {
        group: place(row["picks"]) for group, row in said.items()
    }
    read = stored(proxies, topic)
    for each in before:
        read.remove(each)
    readable = {(t.broker_name, queue) for t in TOPICS if t.topic == topic for queue in range(t.read_queues)}
    expected = {group: place(row["queues"]) for group, row in said.items()}
    assert {body: (broker, queue) for broker, queue, body in read} == {
        group: queue for group, queue in expected.items() if queue in readable
    }
    assert len(read) > len(GROUPS) / 2


@dataclass(frozen=True)
class Death:
    """What a producer lived through; `first_failing` is the number of the first message that the dead broker can fail."""

    route: TopicRouteData
    sent: list[Sent]
    failed: list[Isolation]
    rejoined: list[Isolation]
    first_failing: int
    back: int  # the messages when the broker had started again
    stored: list[tuple[str, int, str]]


@pytest.fixture(scope="module")
def death(proxies: ClusterOfProxies, tmp_path_factory: pytest.TempPathFactory) -> Death:
    source = open_source(f"rocketmq://{proxies.name_server}", Access())
    route = source.fetch(Wanted(("Steady",), owners=False, groups=False)).route("Steady")
    folder = tmp_path_factory.mktemp("steady")
    # It asks the Proxy that lives on for the route: another one that is asked later has read a route without the dead one.
    with grpc_producer(proxies, proxies.endpoints(A), "Steady", folder) as producer:
        producer.start_sending(100)
        producer.await_sent(30)
        proxies.kill_broker(B)
        first_failing = len(producer.sent())
        proxies.start_again(B)
        back = len(producer.sent())
        wait_until(lambda: bool(producer.rejoined()), REJOIN_DEADLINE, lambda: f"{producer.failed()}")
        producer.await_sent(len(producer.sent()) + 20)
        producer.stop_sending()
        sent = producer.sent()
        read = stored(proxies, "Steady")
        return Death(route, sent, producer.failed(), producer.rejoined(), first_failing, back, read)


def test_one_attempt_fails_and_isolates_until_a_heartbeat_is_answered(death: Death, proxies: ClusterOfProxies) -> None:
    (failed,), (rejoined,) = death.failed, death.rejoined
    assert (proxies.broker_at(failed.endpoints), failed.endpoints) == (B, rejoined.endpoints)
    assert all(each.broker_name is not None for each in death.sent)
    while_isolated = [each for each in death.sent if failed.at_ms < each.at_ms < rejoined.at_ms]
    assert len(while_isolated) > 20
    assert {each.broker_name for each in while_isolated} == {A}
    assert death.sent[death.back].at_ms < rejoined.at_ms
    assert {each.broker_name for each in death.sent if each.at_ms > rejoined.at_ms} == {A, B}


def first_queue(death: Death) -> MessageQueue:
    first = death.sent[0]
    return MessageQueue("Steady", str(first.broker_name), int(first.queue_id or 0))


def test_each_message_goes_to_the_candidate_that_the_balancer_takes(death: Death) -> None:
    (failed,), (rejoined,) = death.failed, death.rejoined
    queues = publish_queues(death.route, sdk=SDK)
    balancer = PublishingLoadBalancer(queues, sdk=SDK, start=queues.index(first_queue(death)))
    for each in death.sent:
        isolated = {B} if failed.at_ms < each.at_ms < rejoined.at_ms else set[str]()
        candidates = balancer.take_message_queues(isolated, ATTEMPTS)
        attempts = 2 if each.at_ms <= failed.at_ms <= each.at_ms + each.took_ms else 1
        taken = candidates[(attempts - 1) % len(candidates)]
        assert (each.broker_name, each.queue_id) == (taken.broker_name, taken.queue_id), each


def simulated(death: Death) -> SendReport:
    scenario = SendScenario(
        sdk=SDK, messages=death.back, rate=Fraction(10),
        start_at=death.route.publish_queues().index(first_queue(death)),
        failures=(Failure(B, Reaction("refused", "refused"), start=Moment(message=death.first_failing + 1)),),
    )  # fmt: skip
    return simulate_send(death.route, scenario, trace=True)


def test_the_simulated_attempts_go_to_the_same_brokers(death: Death) -> None:
    report = simulated(death)
    assert report.attempts is not None
    last = {attempt.message: attempt for attempt in report.attempts}
    assert [last[n].broker_name for n in sorted(last)] == [each.broker_name for each in death.sent[: death.back]]
    failed = [attempt for attempt in report.attempts if attempt.outcome != "SEND_OK"]
    assert [attempt.broker_name for attempt in failed] == [B]
    assert report.totals.lost == 0
    (failure,) = report.failures
    assert (failure.failed, failure.isolated_by) == (1, "isolation")


def test_the_proxy_in_a_broker_picks_any_of_its_queues_for_each_message(death: Death) -> None:
    """So do those of the simulation; the number that the SDK picked counts for nothing."""
    picked = {each.body: each.queue_id for each in death.sent}
    bodies = {body: queue for broker, queue, body in death.stored if broker == A}
    assert set(bodies.values()) == {0, 1, 2, 3}
    in_order = [bodies[body] for body in sorted(bodies, key=int)]
    steps = {(after - before) % 4 for before, after in pairwise(in_order)}
    assert steps == {0, 1, 2, 3}
    assert any(picked[body] != queue for body, queue in bodies.items())
