"""What twice the topics, consumers or brokers cost: `python -m benchmarks.growth`.

Function calls are counted, not only seconds: equal runs make equally many, so that a default test can hold the growth
(`tests/test_growth.py`). What C code does inside one call is seen in the seconds alone.
"""

from __future__ import annotations

import itertools
import resource
import shlex
import sys
import tempfile
from cProfile import Profile
from dataclasses import dataclass, replace
from pathlib import Path
from pstats import Stats
from time import process_time

from typer.testing import CliRunner

from benchmarks.cluster import as_bytes
from rmqlb import BrokerData, QueueData, TopicRouteData, allocate
from rmqlb.cli.main import app
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, QueueState, Seen
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting

GROUP = "g"
COMMANDS = {
    "show-groups": "show-groups -s {} -o json",
    "show-consumers": "show-consumers -s {} --group g -o json",
    "show-owners": "show-owners -s {} --group g -o json",
    "plan-rebalance": "plan-rebalance -s {} --group g --add 1 -o json",
    "simulate-rebalance": "simulate-rebalance -s {} --group g --event 'join 1.0.0.1@new@10s' -o json",
    "check": "check -s {} --policy {}.yaml -o json",
    "show-route": "show-route -s {} --topic T00000 -o json",
    "simulate-send": "simulate-send -s {} --topic T00000 --rate 100 --for 10s -o json",
    "fetch-routes": "fetch-routes -s {} --redact -o json",
}
"""Each command, with `{}` for the snapshot."""

_POLICY = "rules: [{name: every-queue-is-read, groups: ['*'], limits: {unassigned: 0, duplicateOwners: 0}}]"
_SEEN = Seen("http://127.0.0.1:8082", None)


@dataclass(frozen=True)
class Size:
    """One group's cluster."""

    topics: int = 2
    consumers: int = 3
    brokers: int = 2
    queues: int = 4

    def times(self, dimension: str, factor: int) -> Size:
        """So many times as much of one thing."""
        return replace(self, **{dimension: factor * getattr(self, dimension)})


BASES = {
    "topics": Size(topics=16),
    "consumers": Size(consumers=12, queues=50),
    "brokers": Size(brokers=16),
    "queues": Size(queues=60),
}
"""Dimension → where it begins to grow."""


def cluster(size: Size) -> ClusterSnapshot:
    """A snapshot of this size, in which every queue has the owner that AVG gives it."""
    names = [f"broker-{number:04}" for number in range(size.brokers)]
    brokers = tuple(BrokerData("c", name, {0: f"192.0.2.{at % 250}:{10911 + at}"}) for at, name in enumerate(names))
    datas = tuple(QueueData(name, size.queues, size.queues, 6) for name in names)
    routes = [TopicRouteData(f"T{number:05}", datas, brokers) for number in range(size.topics)]
    ids = tuple(f"10.0.{number // 200}.{number % 200}@{number}" for number in range(size.consumers))
    queues = {
        queue: QueueState(owners=frozenset({client_id}), broker_offset=100, consumer_offset=50)
        for route in routes
        for client_id, share in allocate("AVG", route.subscribe_queues(), ids).items()
        for queue in share
    }
    group = ConsumerGroup(
        GROUP,
        _SEEN,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        views=(MemberView(tuple(Connection(client_id, None, "JAVA", "V5_5_0") for client_id in ids), _SEEN),),
        topics=tuple(route.topic for route in routes),
        queues=queues,
    )
    return ClusterSnapshot(
        kind="dump",
        endpoint="cluster.json",
        routes={route.topic: RouteSighting(route, _SEEN) for route in routes},
        groups={GROUP: group},
    )


def write(size: Size, folder: Path) -> Path:
    """The snapshot as a file, with a policy beside it."""
    path = folder / f"{size.topics}-{size.consumers}-{size.brokers}-{size.queues}.json"
    if not path.exists():
        path.write_bytes(as_bytes(cluster(size)))
        Path(f"{path}.yaml").write_text(_POLICY, encoding="utf-8")
    return path


def calls(command: str, path: Path) -> tuple[int, float]:
    """How many functions a command calls, and its seconds, which counting makes longer."""
    line = COMMANDS[command]
    arguments = shlex.split(line.format(*[path] * line.count("{}")))
    began, profile = process_time(), Profile()
    result = profile.runcall(CliRunner().invoke, app, arguments)
    if result.exit_code:
        raise SystemExit(f"{command}: {result.output}")
    return Stats(profile).total_calls, process_time() - began  # type: ignore[attr-defined]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Every command at n, 2n and 4n of each dimension."""
    _say("| command | of | n | calls 2n / n | calls 4n / 2n | seconds 2n / n | seconds 4n / 2n |")
    _say("|:--------|:---|--:|-------------:|--------------:|---------------:|----------------:|")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            calls(command, write(Size(), Path(folder)))  # imports
            for dimension, base in BASES.items():
                many = base.times(dimension, 4)
                counted = [calls(command, write(many.times(dimension, factor), Path(folder))) for factor in (1, 2, 4)]
                ratios = [two[kind] / one[kind] for kind in (0, 1) for one, two in itertools.pairwise(counted)]
                number = getattr(many, dimension)
                _say(f"| {command} | {dimension} | {number} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
    _say(f"\npeak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
