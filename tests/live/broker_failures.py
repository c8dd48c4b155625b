"""What producers that send at a steady pace to real brokers do when one of these is killed, until they know its end.

Several producers live through the same failure at a time, each with settings of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.opening import Access, open_source

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import Java, wait_until
from .producers import Producer, Queue, RecordedAttempt, RecordedMessage, running_producer

BROKERS: Final = ("broker-a", "broker-b", "broker-c")
KILLED: Final = "broker-b"
TOPIC: Final = "Steady"
WRITE_QUEUES: Final = 4
"""Of the topic on each broker."""
VERSIONS: Final = ("5.5.0", "4.9.7")
EVERY: Final = tuple((version, latency_fault) for version in VERSIONS for latency_fault in (False, True))
PAUSE_MS: Final = 100
POLL_ROUTE_MS: Final = 18_000
"""Between two looks of a client at its routes (RocketMQ's default is 30 s): after the failure enough is left of it for
version 5 to isolate the broker, to try it once more and to isolate it again."""
# Messages before the failure, each producer's; and once it has learned of it, so many seconds of further ones.
_WELL: Final = 20
_ENDLESS: Final = 1_000_000
_AFTERWARDS: Final = 1.5
_DEADLINE: Final = 30.0


@dataclass(frozen=True)
class Recording:
    """All messages of one producer, in the order of their numbers.

    Attributes:
        killed_ms: just before the broker was killed, on the clock of the attempts.
        queues_before, queues_after: the publish list, before the failure and once the client had seen a new route.
    """

    version: str
    latency_fault: bool
    killed_ms: int
    queues_before: tuple[Queue, ...]
    queues_after: tuple[Queue, ...]
    messages: tuple[RecordedMessage, ...]

    @property
    def to_the_dead(self) -> list[RecordedAttempt]:
        """The attempts that failed because the broker is dead; the first may have been under way when it died."""
        attempts = (attempt for message in self.messages for attempt in message.attempts)
        dead = (each for each in attempts if each.broker_name == KILLED and each.ended_ms >= self.killed_ms)
        return [each for each in dead if each.outcome != "SEND_OK"]


@dataclass(frozen=True)
class Kill:
    """The death of one of three brokers: the topic's routes before and after, recordings by version and latency fault."""

    route: TopicRouteData
    route_after: TopicRouteData
    recordings: Mapping[tuple[str, bool], Recording]


def recorded_kill(javas: Mapping[str, Java]) -> Kill:
    """Producers send to a RocketMQ 5.5.0, at which those of version 4 are guests, while one of its brokers is killed.

    They go on till all have a route without the broker.
    """
    with ExitStack() as running:
        cluster = running.enter_context(RocketMQCluster("5.5.0", brokers=BROKERS))
        cluster.create_topics([TopicOnBroker(TOPIC, name, WRITE_QUEUES, WRITE_QUEUES) for name in BROKERS])
        route = _route(cluster)

        def start(setup: tuple[str, bool]) -> Producer:
            version, latency_fault = setup
            settings = {"sendLatencyFaultEnable": latency_fault, "pollNameServerInterval": POLL_ROUTE_MS}
            return running.enter_context(running_producer(javas[version], cluster.name_server, TOPIC, **settings))

        with ThreadPoolExecutor() as pool:
            producers = list(pool.map(start, EVERY))
        before = [tuple(producer.queues()) for producer in producers]
        for producer in producers:
            producer.start_sending(_ENDLESS, PAUSE_MS)
        well = [producer.await_messages(_WELL) for producer in producers]
        killed_ms = time.time_ns() // 1_000_000
        cluster.kill_broker(KILLED)
        _await_notice(producers)
        time.sleep(_AFTERWARDS)
        counts = [producer.stop_sending() for producer in producers]
        recordings = {
            (version, latency_fault): Recording(
                version=version,
                latency_fault=latency_fault,
                killed_ms=killed_ms,
                queues_before=queues,
                queues_after=tuple(producer.queues()),
                messages=(*first, *producer.await_messages(count - len(first))),
            )
            for (version, latency_fault), producer, queues, first, count in zip(
                EVERY, producers, before, well, counts, strict=True
            )
        }
        return Kill(route, _route(cluster), recordings)


def _route(cluster: RocketMQCluster) -> TopicRouteData:
    wanted = Wanted((TOPIC,), owners=False, groups=False)
    return open_source(f"rocketmq://{cluster.name_server}", Access()).fetch(wanted).route(TOPIC)


def _await_notice(producers: Sequence[Producer]) -> None:
    def all_did() -> bool:
        return all(KILLED not in {name for name, _ in producer.queues()} for producer in producers)

    wait_until(all_did, _DEADLINE, lambda: f"not all of {len(producers)} producers have a new route")
