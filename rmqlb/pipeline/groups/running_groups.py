"""Groups under the strategy that each runs, one by one as the commands about one group take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.errors import RmqlbError
from rmqlb.model.route import TopicRouteData
from rmqlb.pipeline.arrow import Batches, arrow_schema
from rmqlb.pipeline.groups.by_engine import members_of, route_of
from rmqlb.pipeline.groups.group_batch import read_batch
from rmqlb.pipeline.schemas import FLEET, GROUP, GROUP_IN_SNAPSHOT, SNAPSHOT, ddl
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.spark.progress import Count

Row = dict[str, Any]
ADDRESSES = "map<string, map<bigint, string>>"
_FLEET = {name: kind for name, kind in FLEET.columns.items() if name != "retryTopics"}
_RUNNING = {**_FLEET, "runs": "string", "origin": "string", "addresses": ADDRESSES}


class RunningGroup(Struct, frozen=True):
    """A group with the strategy that it runs; `addresses`: broker → broker id → where it is reached."""

    members: Members
    routes: tuple[TopicRouteData, ...]
    addresses: Mapping[str, Mapping[int, str]]

    @property
    def strategy(self) -> str:
        return self.members.name

    @property
    def sdk(self) -> str:
        return self.members.sdk


PARTITIONS = 64
"""Tasks of a stage that looks at groups one by one: Spark would put these few bytes in one."""
RowsOf = Callable[[RunningGroup], Iterator[Row]]


def running_groups(fleet: DataFrame, scores: DataFrame, brokers: DataFrame | None = None) -> DataFrame:
    """Judged groups of FLEET with the strategy that SCORES says each runs, and, of BROKERS, where its own are."""
    runs = scores.where("runs").groupBy(*GROUP_IN_SNAPSHOT).agg(fn.min(fn.struct("strategy", "origin")).alias("its"))
    found = fleet.join(runs, list(GROUP_IN_SNAPSHOT))
    found = found.select(*_FLEET, fn.col("its.strategy").alias("runs"), "its.origin")
    if brokers is None:
        return found.withColumn("addresses", fn.lit(None).cast(ADDRESSES)).select(*_RUNNING)
    where = fn.map_from_entries(fn.collect_list(fn.struct("brokerName", "addresses"))).alias("addresses")
    of_cluster = brokers.groupBy(*SNAPSHOT).agg(where)
    own = "array_distinct(flatten(transform(topics, t -> transform(t.subscribe, run -> run.brokerName))))"
    its = fn.expr(f"map_filter(addresses, (name, its) -> array_contains({own}, name))")
    return found.join(of_cluster, list(SNAPSHOT), "left").withColumn("addresses", its).select(*_RUNNING)


def each_group(
    groups: DataFrame, columns: Mapping[str, str], settings: Settings, rows_of: RowsOf, count: Count | None = None
) -> DataFrame:
    """What each group comes to, as rows with these columns; those that name the group are put in here.

    A group of which RmqlbError is raised has one row with the `problem` and its `code`.
    """
    spread = groups.repartition(PARTITIONS, *GROUP_IN_SNAPSHOT)
    return in_workers(spread, partial(_rows, dict(columns), settings, rows_of), ddl(columns), count)


def _rows(columns: Mapping[str, str], settings: Settings, rows_of: RowsOf, batches: Batches) -> Batches:
    for batch in batches:
        found: list[Row] = []
        keys = batch.select([*GROUP, "runs", "origin"]).to_pylist()
        for key, group in zip(keys, _groups(batch, settings, keys), strict=True):
            named = {**key, "strategy": group.strategy, "sdk": group.sdk}
            found += ({**named, **row} for row in _or_problem(rows_of, group))
        yield pa.RecordBatch.from_pylist(found, schema=arrow_schema(columns))


def _groups(batch: pa.RecordBatch, settings: Settings, keys: list[Row]) -> Iterator[RunningGroup]:
    its = read_batch(batch)
    places: dict[int, list[int]] = {}
    for pair, group in enumerate(its.group_of.tolist()):
        places.setdefault(group, []).append(pair)
    addresses = batch.column("addresses")
    for number, key in enumerate(keys):
        pairs = np.array(places.get(number, []), np.int64).tolist()
        known = addresses[number].as_py() or ()
        members = members_of(its, number, pairs, key["runs"], settings)
        routes = tuple(route_of(its, pair) for pair in pairs)
        yield RunningGroup(members, routes, {name: dict(of or ()) for name, of in known})


def _or_problem(rows_of: RowsOf, group: RunningGroup) -> Iterator[Row]:
    try:
        yield from rows_of(group)
    except RmqlbError as error:
        yield {"problem": error.message, "code": error.code}


def with_left_out(found: DataFrame, groups: DataFrame) -> DataFrame:
    """The rows of groups, and those of GROUPS that do not allocate queues themselves, with the reason."""
    why = groups.where("problem IS NOT NULL").select(*GROUP, "problem", fn.col("problemCode").alias("code"))
    return found.unionByName(why, allowMissingColumns=True)
