"""A cluster's past in a few words: snapshots, and the warehouse's tables of them.

Rules of this file:
- Clients have names of one letter: "AB" is held by A and B, "" by nobody; a queue that is not named was not looked at.
- Queue n is of topic T0 or T1, by whether n is even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rmqlb.pipeline.schemas import DOCUMENTS, GROUPS, OFFSETS, OWNERS, PROCESSES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST = datetime.fromisoformat("2026-03-01T02:00:00")


def night(number: float) -> datetime:
    """The so many-th night, from 1."""
    return FIRST + timedelta(days=number - 1)


@dataclass
class Shot:
    """One snapshot.

    Attributes:
        at: when it was taken, or None.
        queues: group → queue → its owners.
        members: group → client ids, None when nobody looked; a group that is not named has no row.
        lags: group → queue → lag, or None.
        models: group → message model; CLUSTERING where it is not named.
        cluster: its cluster.
        name: its id; made of cluster and time when empty.
        pieces: how many documents it is made of.
    """

    at: datetime | None
    queues: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    members: Mapping[str, str | None] = field(default_factory=dict)
    lags: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    cluster: str = "c"
    name: str = ""
    pieces: int = 1

    @property
    def key(self) -> dict[str, Any]:
        """Cluster, date and snapshot."""
        taken_on = None if self.at is None else self.at.date()
        return {"cluster": self.cluster, "date": taken_on, "snapshot": self.name or f"{self.cluster} {self.at}"}


def day(number: float) -> date:
    """The date of the so many-th night."""
    return night(number).date()


def nights(*owners: str | Mapping[int, str] | None, group: str = "g", name: str = "") -> list[Shot]:
    """A snapshot a night of one group: the owners of queue 0, or of several; None when the group was not looked at."""
    queues = [None if seen is None else {0: seen} if isinstance(seen, str) else seen for seen in owners]
    return [
        Shot(night(n), {} if seen is None else {group: seen}, name=name and f"{name} {n}")
        for n, seen in enumerate(queues, 1)
    ]


def queue(number: int) -> dict[str, Any]:
    """A queue's columns."""
    return {"topic": f"T{number % 2}", "brokerName": "broker-a", "queueId": number}


def tables(spark: SparkSession, shots: Iterable[Shot]) -> dict[str, DataFrame]:
    """The warehouse's tables of these snapshots, as far as the history reads them."""
    rows: dict[str, list[dict[str, Any]]] = {t.name: [] for t in (DOCUMENTS, OWNERS, GROUPS, PROCESSES, OFFSETS)}
    for shot in shots:
        for position in range(1, shot.pieces + 1):
            # Of several pieces only the last one tells the time.
            at = shot.at if position == shot.pieces else None
            rows["documents"].append({**shot.key, "position": position, "takenAt": at})
        for group in {**shot.queues, **shot.members, **shot.models}:
            ids = shot.members.get(group)
            model = shot.models.get(group, "CLUSTERING")
            count = None if ids is None else len(ids)
            rows["groups"].append({**shot.key, "group": group, "processes": count, "messageModel": model})
            for place, client_id in enumerate(ids or ""):
                rows["processes"].append({**shot.key, "group": group, "place": place, "clientId": client_id})
        for group, owners in shot.queues.items():
            for number, held in owners.items():
                rows["owners"].append({**shot.key, "group": group, **queue(number), "ownersObserved": list(held)})
        for group, lags in shot.lags.items():
            for number, lag in lags.items():
                rows["offsets"].append({**shot.key, "group": group, **queue(number), "lag": lag})
    return {t.name: frame(spark, t, rows[t.name]) for t in (DOCUMENTS, OWNERS, GROUPS, PROCESSES, OFFSETS)}


def frame(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows as the table has them; null where a column is not named."""
    return spark.createDataFrame([tuple(row.get(name) for name in table.columns) for row in rows], table.ddl)


def rows(found: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of all rows, sorted as text."""
    return sorted((tuple(row) for row in found.select(*columns).collect()), key=str)


Case = tuple[list[Shot], list[tuple[Any, ...]]]
"""A past, and the rows that must come of it."""


def by_case(
    spark: SparkSession, cases: Mapping[str, Case], step: Callable[[Mapping[str, DataFrame]], DataFrame], *columns: str
) -> dict[str, list[tuple[Any, ...]]]:
    """Case → the rows that the step makes of it. Each case is a cluster, so that one Spark job serves them all."""
    shots = [replace(shot, cluster=name) for name, (past, _) in cases.items() for shot in past]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in cases}
    for cluster, *row in rows(step(tables(spark, shots)), "cluster", *columns):
        found[cluster].append(tuple(row))
    return found
