"""A generated fleet of clusters in numbers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class DamagedDocument(Struct, frozen=True):
    """A damaged document among the generated ones.

    Attributes:
        file: its path in the folder.
        position: which document of the file, from 1.
        damage: what is wrong with it.
    """

    file: str
    position: int
    damage: str


class FleetSummary(Struct, frozen=True, rename="camel"):
    """A generated fleet; all numbers but clusters count every night.

    Attributes:
        folder: where it is.
        clusters: clusters.
        files: files, damaged ones included.
        snapshots: good documents.
        topics: topics with a route.
        groups: groups.
        pairs: subscriptions of groups to topics with a route, %RETRY% topics left out.
        queues: queues of these pairs.
        observed: queues with offsets, %RETRY% ones included.
        bytes: of all files.
        faults: kind of fault → groups that have it, counted once.
        other_clients: kind of clients, other than Java's that rebalance by themselves → groups that have them, counted
            once.
        bad_files: the damaged documents.
    """

    folder: str
    clusters: int
    files: int
    snapshots: int
    topics: int
    groups: int
    pairs: int
    queues: int
    observed: int
    bytes: int
    faults: Mapping[str, int]
    other_clients: Mapping[str, int]
    bad_files: tuple[DamagedDocument, ...]
