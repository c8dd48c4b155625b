"""A large synthetic cluster as a snapshot file: `python -m benchmarks.cluster FILE`.

Equal arguments give equal bytes. The shape is that of a shared production cluster: three clusters of eight brokers,
topics on two to eight of them with mostly few and seldom many queues, some brokers out of step with the others; groups
of two to sixteen members on one to six topics each, and a retry topic for each group.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from rmqlb import BrokerData, MessageQueue, QueueData, TopicRouteData, allocate
from rmqlb.model.group import RETRY_PREFIX, Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.result import FORMAT_VERSION
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.sources.formats.snapshot_file import SCHEMA, to_document
from rmqlb.views.formats.machine import as_json

TOPICS, GROUPS, SEED = 10_000, 1_000, 1
"""How many topics (retry topics included) and groups; the defaults of the command."""

_TAKEN_AT = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
_TAKEN_AT_MS = int(_TAKEN_AT.timestamp() * 1000)
_ENDPOINT = "http://127.0.0.1:8082"
_SEEN = Seen(_ENDPOINT, _TAKEN_AT)
_CLUSTERS, _BROKERS = 3, 8
_SPREADS = {2: 50, 3: 15, 4: 20, 6: 10, 8: 5}
"""Brokers of a topic, with weights."""

_QUEUES = {4: 50, 8: 35, 16: 12, 32: 3}
"""Queues of a topic on each of its brokers, with weights."""

_MEMBERS = {2: 25, 3: 20, 4: 20, 6: 15, 8: 10, 12: 6, 16: 4}
_SUBSCRIPTIONS = {1: 40, 2: 25, 3: 15, 4: 10, 6: 10}
"""Topics of a group, with weights; its retry topic comes on top."""


def topic_name(number: int) -> str:
    """The name of a topic."""
    return f"{('Order', 'Payment', 'Stock', 'Parcel', 'Invoice')[number % 5]}Events-{number:05}"


def group_name(number: int) -> str:
    """The name of a group."""
    return f"{('order', 'billing', 'audit', 'search')[number % 4]}-svc-{number:04}"


def make_cluster(topics: int = TOPICS, groups: int = GROUPS, seed: int = SEED) -> ClusterSnapshot:
    """The cluster as one snapshot; at least one topic that is no retry topic for each of the three clusters."""
    rng = Random(seed)  # noqa: S311 - no secret
    by_cluster: list[list[TopicRouteData]] = [[] for _ in range(_CLUSTERS)]
    for number in range(topics - groups):
        by_cluster[number % _CLUSTERS].append(_topic(rng, number))
    made: list[ConsumerGroup] = []
    routes = [route for own in by_cluster for route in own]
    for number in range(groups):
        candidates = by_cluster[number % _CLUSTERS]
        # Squared, so that the first topics have many groups and most topics few or none.
        chosen = {int(len(candidates) * rng.random() ** 2) for _ in range(_pick(rng, _SUBSCRIPTIONS))}
        own = [candidates[index] for index in sorted(chosen)]
        retry = _retry(own[0], group_name(number))
        routes.append(retry)
        made.append(_group(rng, number, [*own, retry]))
    return ClusterSnapshot(
        kind="dashboard",
        endpoint=_ENDPOINT,
        taken_at=_TAKEN_AT,
        routes={route.topic: RouteSighting(route, _SEEN) for route in routes},
        groups={group.group: group for group in made},
    )


def as_bytes(snapshot: ClusterSnapshot) -> bytes:
    """The snapshot file, indented as rmqlb writes JSON."""
    source = {"kind": snapshot.kind, "endpoint": snapshot.endpoint, "takenAt": _TAKEN_AT.isoformat()}
    document = {"schema": SCHEMA, "formatVersion": FORMAT_VERSION, "source": source, "data": to_document(snapshot)}
    return as_json(document).encode()


def _pick(rng: Random, weights: dict[int, int]) -> int:
    return rng.choices(list(weights), list(weights.values()))[0]


def _topic(rng: Random, number: int) -> TopicRouteData:
    cluster = number % _CLUSTERS
    chosen = rng.sample(range(_BROKERS), _pick(rng, _SPREADS))
    usual = _pick(rng, _QUEUES)
    counts = [usual if rng.random() < 0.9 else max(1, usual // 2) for _ in chosen]
    return _route(topic_name(number), cluster, chosen, counts)


def _retry(beside: TopicRouteData, group: str) -> TopicRouteData:
    """One queue on each broker of one of the group's topics, as brokers make it when a member subscribes."""
    return TopicRouteData(
        RETRY_PREFIX + group,
        tuple(QueueData(data.broker_name, 1, 1, 6) for data in beside.queue_datas),
        beside.broker_datas,
    )


def _route(topic: str, cluster: int, brokers: Sequence[int], counts: Sequence[int]) -> TopicRouteData:
    names = [f"c{cluster}-broker-{broker}" for broker in brokers]
    return TopicRouteData(
        topic,
        tuple(QueueData(name, count, count, 6) for name, count in zip(names, counts, strict=True)),
        tuple(
            BrokerData(
                f"cluster-{cluster}", name, {role: f"10.{cluster}.{broker}.{10 + role}:10911" for role in range(2)}
            )
            for name, broker in zip(names, brokers, strict=True)
        ),
    )


def _group(rng: Random, number: int, routes: Sequence[TopicRouteData]) -> ConsumerGroup:
    ids = [
        f"10.{100 + number % 50}.{rng.randrange(256)}.{member + 1}@{rng.randrange(2, 60000)}#{rng.randrange(10**15)}"
        for member in range(_pick(rng, _MEMBERS))
    ]
    connections = tuple(
        Connection(client_id, f"{client_id.partition('@')[0]}:{rng.randrange(32768, 60999)}", "JAVA", "V5_5_0")
        for client_id in ids
    )
    topics = frozenset(route.topic for route in routes)
    return ConsumerGroup(
        group_name(number),
        _SEEN,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        views=tuple(
            MemberView(connections, Seen(f"{_ENDPOINT} for {broker.broker_addrs[0]}", _TAKEN_AT))
            for broker in routes[0].broker_datas
        ),
        topics=tuple(sorted(topics)),
        queues={queue: state for route in routes for queue, state in _states(rng, route, ids).items()},
        reports={i: MemberReport(i, topics, "AllocateMessageQueueAveragely", client_rebalance=True) for i in ids},
    )


def _states(rng: Random, route: TopicRouteData, ids: Sequence[str]) -> dict[MessageQueue, QueueState]:
    """Each queue with the owner that AVG gives it; mostly little lag, on few queues much."""
    states: dict[MessageQueue, QueueState] = {}
    for client_id, queues in allocate("AVG", route.subscribe_queues(), ids).items():
        for queue in queues:
            end = rng.randrange(10**9)
            lag = min(end, int(rng.paretovariate(0.6)) - 1)
            states[queue] = QueueState(frozenset({client_id}), end, end - lag, _TAKEN_AT_MS - rng.randrange(10**6))
    return states


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--topics", type=int, default=TOPICS, metavar="N", help="default: %(default)s")
    parser.add_argument("--groups", type=int, default=GROUPS, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="default: %(default)s")
    options = parser.parse_args()
    body = as_bytes(make_cluster(options.topics, options.groups, options.seed))
    options.file.write_bytes(body)
    sys.stdout.write(f"{options.file}: {len(body) / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
