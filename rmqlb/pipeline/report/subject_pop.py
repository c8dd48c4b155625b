"""Groups that consume by POP or through a Proxy: no consumer owns a queue, what counts is how many may read each."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.codes import POP_CONSUMPTION
from rmqlb.pipeline.report.frames import Asked, Row, Tables, of_snapshots
from rmqlb.pipeline.report.overview_rows import judged
from rmqlb.pipeline.report.page import Section, counts, grid_of, names, said, words
from rmqlb.pipeline.report.queries import rows_query
from rmqlb.pipeline.schemas import POP_GROUPS, POP_QUEUES

_ORDER = ("cluster", "group", "topic")


class PopGroup(Row, frozen=True):
    """A group on a topic.

    `share` is `popShareQueueNum`, `fewest` of how many consumers may read a queue at least, `unread` how many queues
    no consumer may read; these and `consumers` are None when the consumers are not known. A Proxy has no strategy.
    """

    cluster: str
    group: str
    topic: str
    strategy: str | None
    share: str | None
    consumers: int | None
    fewest: int | None
    unread: int | None


def pop_groups(tables: Tables) -> DataFrame | None:
    """Rows of POP_GROUPS, of the last snapshots; None when there are no tables of them."""
    queues, last = tables.whole(POP_QUEUES), judged(tables)
    if queues is None or not last:
        return None
    readers, is_known = fn.size("consumers"), fn.col("consumers").isNotNull()
    nums = fn.array_join("popShareQueueNums", ", ")
    nums = fn.when(fn.size("popShareQueueNums") > 0, nums)
    share = fn.when(fn.col("assumedPopShare"), fn.concat(nums, fn.lit(" (assumed)"))).otherwise(nums)
    found = (
        of_snapshots(tables.spark, queues, last)
        .groupBy("cluster", "group", "topic")
        .agg(
            fn.first("strategy").alias("strategy"),
            fn.first(share).alias("share"),
            fn.when(fn.bool_or(is_known), fn.size(fn.array_distinct(fn.flatten(fn.collect_list("consumers"))))).alias(
                "consumers"
            ),
            fn.min(fn.when(is_known, readers)).alias("fewest"),
            fn.when(fn.bool_or(is_known), fn.count_if(readers == 0)).alias("unread"),
        )
    )
    return found.select(*POP_GROUPS.columns)


def pop(tables: Tables, asked: Asked, top: int) -> Callable[[], tuple[PopGroup, ...] | None]:
    """The first by name; None when there is none."""
    found = tables.made(POP_GROUPS.name, lambda: pop_groups(tables))
    if found is None:
        return lambda: None
    answer = asked.first(PopGroup, found, top, *_ORDER)
    return lambda: answer.rows or None


def by_pop(found: tuple[PopGroup, ...]) -> Section:
    """Who may read what, in numbers."""
    grid = grid_of(
        "By cluster, group and topic. Share: popShareQueueNum; fewest: how many consumers may read a queue, at least",
        found,
        names("cluster", "group", "topic"),
        words("strategy", "share"),
        counts("consumers", "fewest", ("queues read by none", "unread")),
        query=rows_query("pop_groups", "", _ORDER, len(found)),
    )
    seen = (
        "Several consumers may take messages from one queue, none owns it: these groups are in no figure about owners. "
        "A consumer that comes or goes moves no queue. The table pop_queues has who may read what."
    )
    return Section("pop", "Consumed by POP or through a Proxy", (said(seen),), grids=(grid,), codes=(POP_CONSUMPTION,))
