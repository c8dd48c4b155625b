"""Rows of FLEET for the comparison with RocketMQ's own classes: of a generated fleet, or of pairs of one size.

Rule of this file: Spark, the kernels and the JVM get the same groups in the same order; the JVM reads them from lines
of words with tabs between them, which `FleetAllocations.java` describes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import IO, TYPE_CHECKING, Any

from benchmarks.fleet_strategies import SETTINGS
from rmqlb.engine.allocate.machine_room_nearby import resolve
from rmqlb.model.message_queue import sort_client_ids

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqlb.pipeline.warehouse import Warehouse

_GROUPS_A_BATCH = 2048
"""As many as the pipeline's sessions hand to Python at once."""
_QUEUES_A_BATCH = 2**20


def groups_of_one_size(queues: int, members: int, rows: int) -> pa.Table:
    """Groups on one topic each, with names of their own.

    Args:
        queues: of each topic, on four brokers.
        members: of each group.
        rows: how many queues in all, about.
    """
    import pyarrow as pa
    from rmqlb.pipeline.arrow import arrow_schema
    from rmqlb.pipeline.schemas import FLEET

    random = Random(queues)  # noqa: S311 - no secret
    groups = [_group(random, number, queues, members) for number in range(max(rows // queues, 1))]
    return pa.Table.from_pylist(groups, arrow_schema(FLEET.columns))


def _group(random: Random, number: int, queues: int, members: int) -> dict[str, Any]:
    runs: list[dict[str, Any]] = [{"brokerName": f"r{i % 3 + 1}@broker-{i}", "queues": queues // 4} for i in range(4)]
    ids = [f"10.100.{random.randrange(256)}.{i}@{random.randrange(300, 65536)}#{i}" for i in range(members)]
    topic = {"topic": f"OrderEvents-{number}", "subscribe": sorted(runs, key=lambda run: str(run["brokerName"]))}
    return {
        "cluster": "fleet",
        "date": None,
        "snapshot": "synthetic",
        "group": f"order-svc-{number}",
        "queues": sum(run["queues"] for run in runs),
        "clientIds": sort_client_ids(ids),
        "topics": [{**topic, "absent": None, "lags": None, "owners": None}],
        "retryTopics": [],
    }


def groups_of_a_fleet(warehouse: Warehouse) -> pa.Table:
    """What a warehouse has in its table FLEET."""
    import pyarrow as pa
    from pyarrow import dataset
    from rmqlb.pipeline.arrow import arrow_schema
    from rmqlb.pipeline.schemas import FLEET

    stored = warehouse.stored(FLEET.name)
    if stored is None:
        raise RuntimeError(f"{warehouse.folder} has no table {FLEET.name}")
    schema = arrow_schema(FLEET.columns)
    partitions = dataset.partitioning(pa.schema([schema.field(name) for name in FLEET.partitions]), flavor="hive")
    paths = [f"{warehouse.folder}/{FLEET.name}/{folder}" for folder in stored.folders]
    read = dataset.dataset([dataset.dataset(path, schema, partitioning=partitions) for path in paths])
    return read.to_table().select(schema.names)


def batches(groups: pa.Table) -> list[pa.RecordBatch]:
    """The groups as the stage gets them: at once so many groups, and never more queues than a million or so."""
    queues = max(sum(run["queues"] for run in one["subscribe"]) for one in groups.slice(0, 1)["topics"][0].as_py())
    size = max(min(_GROUPS_A_BATCH, _QUEUES_A_BATCH // queues), 1)
    found: list[pa.RecordBatch] = groups.combine_chunks().to_batches(max_chunksize=size)
    return found


def write_lines(groups: pa.Table, file: IO[str]) -> None:
    """The groups as `FleetAllocations.java` reads them.

    Raises:
        ValueError: a name has a tab or the end of a line in it.
    """
    for row in groups.select(["group", "clientIds", "topics"]).to_pylist():
        members = [part for client_id in row["clientIds"] for part in (client_id, _zone("client_zones", client_id))]
        file.write(_line("group", row["group"], *members))
        for topic in row["topics"]:
            runs = [
                part
                for run in topic["subscribe"]
                for part in (run["brokerName"], _zone("broker_zones", run["brokerName"]), str(run["queues"]))
            ]
            file.write(_line("topic", topic["topic"], *runs))
            if topic["absent"]:
                file.write(_line("absent", *topic["absent"]))


def checksum(owners: Iterable[str | None]) -> int:
    """Over the owner of each queue, as `FleetAllocations.java` computes it."""
    return zlib.crc32("".join(f"{owner or ''}\n" for owner in owners).encode("utf-8", "replace"))


def owners(groups: pa.Table, strategy: str) -> Iterator[list[str | None]]:
    """The owners of each pair's queues by the kernels, pair by pair in the groups' order."""
    from rmqlb.pipeline.groups.batch_allocator import BatchAllocator
    from rmqlb.pipeline.groups.group_batch import read_batch

    for rows in batches(groups):
        batch = read_batch(rows)
        dealing = BatchAllocator(batch, SETTINGS)
        numbers = batch.ids_at(dealing.places(strategy, dealing.pairs)).tolist()
        names = [batch.client_ids[number] if number >= 0 else None for number in numbers]
        begin = 0
        for size in batch.queues.tolist():
            yield names[begin : begin + size]
            begin += size


def _zone(kind: str, name: str) -> str:
    return resolve(getattr(SETTINGS, kind), name) or ""


def _line(*words: str) -> str:
    if any(char in word for word in words for char in "\t\r\n"):
        raise ValueError(f"a tab or the end of a line in one of {words}")
    return "\t".join(words) + "\n"


def sizes(groups: pa.Table) -> Mapping[str, int]:
    """How many groups, pairs, members and queues there are."""
    lists: Sequence[Any] = groups.select(["clientIds", "topics"]).to_pylist()
    topics = [topic for row in lists for topic in row["topics"]]
    return {
        "groups": len(lists),
        "pairs": len(topics),
        "members": sum(len(row["clientIds"]) for row in lists),
        "queues": sum(run["queues"] for topic in topics for run in topic["subscribe"]),
    }
