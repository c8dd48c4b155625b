"""The fleet: each group with everything that decides who owns its queues, in one row: sweeps need no join."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.engine.allocate.sdks import JAVA, SDKS
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.pipeline.schemas import FLEET, GROUP, GROUP_IN_SNAPSHOT, SNAPSHOT

_PAIR = (*GROUP_IN_SNAPSHOT, "topic")


def fleet(tables: Mapping[str, DataFrame], *, include_retry: bool = False) -> DataFrame:
    """TOPICS, GROUPS, PROCESSES, SUBSCRIPTIONS, OWNERS and OFFSETS, by name, → FLEET: groups that allocate queues."""
    subscriptions = tables["subscriptions"].where(fn.col("hasRoute"))
    if not include_retry:
        subscriptions = subscriptions.where(~fn.col("topic").startswith(RETRY_PREFIX))
    topics = tables["topics"].select(*SNAPSHOT, "topic", "subscribe")
    known = _known(tables["offsets"], tables["owners"])
    pairs = subscriptions.select(*_PAIR, "absent").join(topics, [*SNAPSHOT, "topic"]).join(known, list(_PAIR), "left")
    by_group = pairs.groupBy(*GROUP_IN_SNAPSHOT).agg(
        fn.sort_array(fn.collect_list(fn.struct("topic", "subscribe", "absent", "lags", "owners"))).alias("topics")
    )
    groups = tables["groups"].where(fn.col("problem").isNull()).select(*GROUP, "strategy")
    return (
        groups.join(_consumers(tables["processes"]), list(GROUP_IN_SNAPSHOT), "left")
        .join(by_group, list(GROUP_IN_SNAPSHOT))
        .withColumn("clientIds", fn.coalesce("clientIds", fn.array().cast("array<string>")))
        .select(*FLEET.columns)
    )


def _consumers(processes: DataFrame) -> DataFrame:
    """Client ids in the order of Java's clients, and the library of each."""
    of_each = fn.struct("place", "clientId", sdk_of_process().alias("sdk"))
    placed = processes.groupBy(*GROUP_IN_SNAPSHOT).agg(fn.sort_array(fn.collect_list(of_each)).alias("placed"))
    is_other = fn.exists("placed", lambda its: (its["sdk"]["name"] != JAVA.name) | its["sdk"]["assumed"])
    sdks = fn.when(is_other, fn.col("placed.sdk"))
    return placed.select(*GROUP_IN_SNAPSHOT, fn.col("placed.clientId").alias("clientIds"), sdks.alias("sdks"))


def sdk_of_process() -> Column:
    """The library of a row of PROCESSES, and whether it is assumed, as `engine.allocate.sdks.sdk_of_connection`."""
    language, version = fn.coalesce("language", fn.lit("")), fn.coalesce("version", fn.lit(""))
    name, known = fn.lit(JAVA.name), fn.lit(False)  # noqa: FBT003 - a literal
    for sdk in SDKS.values():
        name = fn.when(language.isin(*sdk.languages, *sdk.shells), sdk.name).otherwise(name)
        is_known = language.isin(*sdk.languages)
        known |= is_known & version.isin("", *sdk.reports) if sdk.reports else is_known
    return fn.struct(name.alias("name"), (~known).alias("assumed"))


def _known(offsets: DataFrame, owners: DataFrame) -> DataFrame:
    """What is known of single queues of a pair; both tables go through one grouping."""
    placed = fn.col("place").isNotNull()
    lags = offsets.where(placed & fn.col("lag").isNotNull()).select(
        *_PAIR, fn.struct("place", "lag").alias("lagged"), fn.lit(None).alias("owned")
    )
    held = owners.where(placed).select(
        *_PAIR,
        fn.lit(None).alias("lagged"),
        fn.struct("place", fn.col("ownersObserved").alias("owners")).alias("owned"),
    )
    return (
        lags.unionByName(held)
        .groupBy(*_PAIR)
        .agg(fn.collect_list("lagged").alias("lags"), fn.collect_list("owned").alias("owners"))
    )
