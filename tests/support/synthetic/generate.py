"""Writes a generated fleet: a snapshot of every cluster and night, as `fetch-routes` would have written it."""

from __future__ import annotations

import os
from collections import Counter

import msgspec
from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.formats.snapshot_file import SCHEMA, to_document
from tests.support.synthetic.clients import Clients
from tests.support.synthetic.draw import draw_cluster
from tests.support.synthetic.files import FleetFiles
from tests.support.synthetic.nights import nights
from tests.support.synthetic.shape import FleetShape, sizes
from tests.support.synthetic.summary import FleetSummary

LARGEST = 60_000_000
"""Bytes of one document, unpacked; rmqlb reads no larger ones unless told to."""


def generate(shape: FleetShape, folder: str, progress: Progress = no_progress) -> FleetSummary:
    """Write a fleet into a folder that is empty or not there yet.

    It gets `cluster=NAME/date=YYYY-MM-DD/snapshot.json.gz`, or `cluster=NAME/snapshots.jsonl`.

    Raises:
        UsageError: the folder is not empty or cannot be written, or a snapshot becomes too large to be read.
    """
    try:
        if os.path.isdir(folder) and os.listdir(folder):
            raise UsageError(f"{folder} is not empty", hint="name a new folder, so that two fleets do not mix")
        return _write(shape, folder, progress)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}", code="cannot-write") from None


def _write(shape: FleetShape, folder: str, progress: Progress) -> FleetSummary:
    clusters = sizes(shape).clusters
    total, done = clusters * shape.days, 0
    files = FleetFiles(folder, shape.layout)
    counts = Counter(topics=0, groups=0, pairs=0, queues=0, observed=0)
    faults: Counter[str] = Counter()
    clients: Counter[str] = Counter()
    for number in range(clusters):
        cluster = draw_cluster(shape, number)
        faults.update(str(group.fault) for group in cluster.groups if group.fault)
        clients.update(str(group.clients) for group in cluster.groups if group.clients is not Clients.JAVA)
        with files.of(cluster.name):
            for day, snapshot in nights(shape, cluster):
                files.add(day, document(snapshot))
                first = -(-done * shape.bad_files // total)
                for bad in range(first, -(-(done + 1) * shape.bad_files // total)):
                    files.add_damaged(day, document(_part(snapshot)), bad)
                counts.update(_counts(snapshot))
                done += 1
                progress("snapshots", done, total)
    return FleetSummary(
        folder=folder,
        clusters=clusters,
        files=files.files,
        snapshots=total,
        bytes=files.bytes,
        faults=dict(sorted(faults.items())),
        other_clients=dict(sorted(clients.items())),
        bad_files=tuple(files.bad),
        **counts,
    )


def document(snapshot: ClusterSnapshot) -> bytes:
    """What `fetch-routes` would print of it, as JSON."""
    body = msgspec.json.encode(
        {
            "schema": SCHEMA,
            "formatVersion": FORMAT_VERSION,
            "command": "fetch-routes",
            "source": {"kind": snapshot.kind, "endpoint": snapshot.endpoint, "takenAt": snapshot.taken_at},
            "data": to_document(snapshot),
            "findings": [],
        }
    )
    if len(body) > LARGEST:
        raise UsageError(
            f"a snapshot would have {len(body) // 10**6} MB, and no more than {LARGEST // 10**6} MB are read",
            hint="spread the fleet over more clusters",
        )
    return body


def _part(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Enough of a snapshot to be damaged."""
    return replace(
        snapshot, routes=dict(list(snapshot.routes.items())[:2]), groups=dict(list(snapshot.groups.items())[:2])
    )


def _counts(snapshot: ClusterSnapshot) -> dict[str, int]:
    queues = {topic: len(sighting.route.subscribe_queues()) for topic, sighting in snapshot.routes.items()}
    read = [topic for group in snapshot.groups.values() for topic in group.topics or () if topic in queues]
    return {
        "topics": len(snapshot.routes),
        "groups": len(snapshot.groups),
        "pairs": len(read),
        "queues": sum(queues[topic] for topic in read),
        "observed": sum(len(group.queues) for group in snapshot.groups.values()),
    }
