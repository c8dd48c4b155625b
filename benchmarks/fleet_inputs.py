"""What the pipeline is given: a dump with one giant group, and a fleet's dumps night by night."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

STAGE_NAMES = ("ingest", "allocate", "score", "what-if", "producers", "history", "report")
_BROKERS = 4


def write_giant(folder: str, topics: int, queues: int, consumers: int) -> None:
    """A snapshot of one group that consumes so many topics, each with so many queues on four brokers."""
    from rmqlb.model.group import Connection, ConsumerGroup, MemberView, Seen
    from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
    from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
    from tests.support.synthetic.generate import document

    seen = Seen("rocketmq://10.0.255.1:9876", None)
    names = [f"broker-{number}" for number in range(_BROKERS)]
    datas = tuple(QueueData(name, queues // _BROKERS, queues // _BROKERS, PERM_READ | PERM_WRITE) for name in names)
    brokers = tuple(BrokerData("giant", name, {0: f"{name}:10911"}) for name in names)
    routes = [TopicRouteData(f"OrderEvents-{number:05d}", datas, brokers) for number in range(topics)]
    ids = [f"10.100.{number // 8}.{number % 8}@{300 + number}#1" for number in range(consumers)]
    connections = tuple(Connection(client_id, language="JAVA", version="V5_3_0") for client_id in ids)
    group = ConsumerGroup(
        "giant-svc",
        seen,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        topics=tuple(route.topic for route in routes),
        views=(MemberView(connections, seen),),
    )
    snapshot = ClusterSnapshot(
        "dump",
        "a benchmark",
        routes={route.topic: RouteSighting(route, seen) for route in routes},
        groups={group.group: group},
    )
    place = Path(folder) / "cluster=giant" / "date=2026-11-01"
    place.mkdir(parents=True)
    (place / "snapshot.json.gz").write_bytes(gzip.compress(document(snapshot)))


def nights_of(fleet: str) -> Sequence[str]:
    """The names of the folders of a generated fleet's nights, in their order."""
    return sorted({path.name for path in Path(fleet).glob("cluster=*/date=*")})


def put_night(fleet: str, night: str, inputs: str) -> None:
    """Copy the files of one night, below the same folders."""
    for path in Path(fleet).glob(f"cluster=*/{night}"):
        shutil.copytree(path, os.path.join(inputs, path.parent.name, night))
