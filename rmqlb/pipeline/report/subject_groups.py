"""The groups as they are: unassigned queues, mismatches, imbalanced groups, idle consumers, lag."""

from __future__ import annotations

from msgspec import Struct
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import Picture, bars_of
from rmqlb.pipeline.report.codes import (
    DUPLICATE_OWNERS,
    IDLE_BY_STRATEGY,
    IMBALANCED_GROUP,
    MISMATCH,
    MORE_CONSUMERS_THAN_QUEUES,
    UNASSIGNED_QUEUES,
    UNEVEN_LAG,
    PageCode,
)
from rmqlb.pipeline.report.frames import Row, Tables, count_if, down, first, rows, sums, total
from rmqlb.pipeline.report.page import Section, columns, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.subject_strategies import IMBALANCED
from rmqlb.pipeline.report.text import capitalize_first, number_of
from rmqlb.pipeline.schemas import FLEET, GROUP_IN_SNAPSHOT, GROUPS, KEY

_WHO = (*names("cluster", "group"), *words("strategy"))
_FAULTS = ("idle", "unassigned", "duplicateOwners", "mismatches")


class Totals(Row, frozen=True):
    """All groups under the strategy that each runs.

    `imbalanced`, `with_idle` and so on count groups; `surplus`: idle consumers of groups that have more consumers than
    queues; `on_one_consumer`: groups with more than half of their lag waiting for one of several consumers. `observed`
    counts queues; `observed_unassigned` and `observed_duplicate_owners` are None when FLEET is not there.
    """

    groups: int
    imbalanced: int
    with_idle: int
    idle: int
    surplus: int
    with_unassigned: int
    unassigned: int
    with_duplicate_owners: int
    duplicate_owners: int
    on_one_consumer: int
    observed: int
    with_mismatches: int
    mismatches: int
    observed_unassigned: int | None
    observed_duplicate_owners: int | None


class GroupScore(Row, frozen=True):
    """A group under the strategy it runs.

    `origin` is how that is known; `lag_share` the part of its lag that waits for one consumer; `most_queues` those of
    its topic with the most. What FLEET or GROUPS has is None where it is not there.
    """

    cluster: str
    group: str
    strategy: str
    origin: str | None
    topics: int | None
    consumers: int | None
    queues: int | None
    idle: int | None
    unassigned: int | None
    duplicate_owners: int | None
    max_queues_per_consumer: int | None
    mean_queues_per_consumer: float | None
    imbalance: float | None
    lag: int | None
    max_lag_per_consumer: int | None
    lag_share: float | None
    first_id_bias: float | None
    observed: int | None
    mismatches: int | None
    observed_unassigned: int | None
    observed_duplicate_owners: int | None
    most_queues: int | None
    has_duplicate_client_ids: bool | None
    mixed_subscriptions: bool | None
    has_split_view: bool | None
    mixed_strategies: bool | None
    mixed_sdks: bool | None


class Worst(Struct, frozen=True):
    """The first groups by each kind of fault, under the strategy that each runs."""

    totals: Totals
    unassigned: tuple[GroupScore, ...]
    imbalanced: tuple[GroupScore, ...]
    idle: tuple[GroupScore, ...]
    one_consumer: tuple[GroupScore, ...]
    mismatches: tuple[GroupScore, ...]
    groups: tuple[GroupScore, ...] = ()  # of all, those with the most queues without one owner first


def running(scores: DataFrame) -> DataFrame:
    """Rows of SCORES under the strategy that each group runs, one a group."""
    place = fn.row_number().over(Window.partitionBy(*KEY, "group").orderBy("strategy"))
    return scores.where("runs").withColumn("nth", place).where("nth = 1").drop("nth")


def worst(tables: Tables, runs: DataFrame, top: int) -> Worst:
    """The first groups by each fault; `runs`: as `running` gives them."""
    share = fn.try_divide("maxLagPerConsumer", "lag")
    excess = fn.expr("maxQueuesPerConsumer - meanQueuesPerConsumer")
    groups = _with_causes(tables, runs).withColumns({"lagShare": fn.when(fn.col("lag") > 0, share), "excess": excess})
    waits = fn.expr("consumers > 1 and lagShare > 0.5")
    totals = groups.agg(
        fn.count("*").alias("groups"),
        count_if(fn.col("imbalance") >= IMBALANCED).alias("imbalanced"),
        total(fn.greatest(fn.lit(0), fn.least(fn.col("idle"), fn.expr("consumers - queues")))).alias("surplus"),
        count_if(waits).alias("onOneConsumer"),
        *(count_if(fn.col(name) > 0).alias(f"with{name[0].upper()}{name[1:]}") for name in _FAULTS),
        *(total(name).alias(name) for name in (*_FAULTS, "observed")),
        *sums("observedUnassigned", "observedDuplicateOwners"),
    )

    def named(condition: str | Column, *order: str) -> tuple[GroupScore, ...]:
        return first(GroupScore, groups.where(condition), top, *map(down, order), "cluster", "group")

    differs = "mismatches > 0 or observedUnassigned > 0 or observedDuplicateOwners > 0"
    return Worst(
        totals=rows(Totals, totals)[0],
        unassigned=named("unassigned > 0 or duplicateOwners > 0", "unassigned", "duplicateOwners", "lag"),
        # With fewer queues than consumers imbalance only says that some are idle, which has a section of its own.
        imbalanced=named("imbalance > 1 and queues >= consumers", "imbalance", "excess"),
        idle=named("idle > 0", "idle"),
        one_consumer=named(waits, "maxLagPerConsumer", "lagShare"),
        mismatches=named(differs, "observedUnassigned", "observedDuplicateOwners", "mismatches", "lag"),
        groups=named(
            "true",
            *("observedUnassigned", "unassigned", "observedDuplicateOwners", "duplicateOwners"),
            *("mismatches", "idle", "imbalance", "lag"),
        ),
    )


_OF_FLEET = {
    "seen": "flatten(transform(filter(topics, t -> t.owners is not null), t -> t.owners))",
    "mostQueues": "array_max(transform(topics, t -> aggregate(t.subscribe, 0, (sum, run) -> sum + run.queues)))",
    "hasDuplicateClientIds": "size(clientIds) > size(array_distinct(clientIds))",
    "mixedSubscriptions": "exists(topics, t -> size(t.absent) > 0)",
}
_OBSERVED = {
    "observedUnassigned": "if(size(seen) > 0, size(filter(seen, q -> size(q.owners) = 0)), null)",
    "observedDuplicateOwners": "if(size(seen) > 0, size(filter(seen, q -> size(array_distinct(q.owners)) > 1)), null)",
}
_OF_GROUPS = ("hasSplitView", "mixedStrategies")


def _with_causes(tables: Tables, runs: DataFrame) -> DataFrame:
    """Groups with how many of their queues have no observed owner, and several, and what may be the cause of that."""
    fleet, groups = tables.last(FLEET), tables.whole(GROUPS)
    names = [*(name for name in _OF_FLEET if name != "seen"), *_OBSERVED]
    if fleet is None:
        unknown = {name: fn.lit(None).cast("boolean" if name.startswith(("has", "mixed")) else "int") for name in names}
        found = runs.withColumns(unknown)
    else:
        facts = fleet.withColumns({name: fn.expr(of) for name, of in _OF_FLEET.items()})
        facts = facts.withColumns({name: fn.expr(of) for name, of in _OBSERVED.items()})
        found = runs.join(facts.select(*GROUP_IN_SNAPSHOT, *names), list(GROUP_IN_SNAPSHOT), "left")
    if groups is None:
        return found.withColumns({name: fn.lit(None).cast("boolean") for name in _OF_GROUPS})
    return found.join(groups.select(*GROUP_IN_SNAPSHOT, *_OF_GROUPS), list(GROUP_IN_SNAPSHOT), "left")


def unassigned(found: Worst) -> Section:
    """Queues without an owner, or with several, under the strategy of their group."""
    name, title, totals = "unassigned", "Queues unassigned or with duplicate owners", found.totals
    if not found.unassigned:
        return Section(
            name, title, (said("Nothing: under the strategy that each group runs, each queue has one owner."),)
        )
    picture = bars_of(
        Picture(name, title, "Bars: queues unassigned and queues with duplicate owners, for the groups with the most."),
        found.unassigned,
        "group",
        counts("unassigned", "duplicate_owners"),
        "queues",
    )
    grid = grid_of(
        "Groups with the most such queues first",
        found.unassigned,
        _WHO,
        counts("consumers", "queues", "unassigned", "duplicate_owners", "lag"),
    )
    seen = (
        f"Under the strategy that each group runs, {number_of(totals.unassigned, 'queue')} in "
        f"{number_of(totals.with_unassigned, 'group')} of {totals.groups:,} unassigned, "
        f"{number_of(totals.duplicate_owners, 'queue')} in {number_of(totals.with_duplicate_owners, 'group')} with "
        "duplicate owners."
    )
    advice = (
        "give each process its own client ID, use one client library in a group, and let all consumers of it subscribe "
        "to the same topics; these are the usual causes. rmqlb show-owners shows which queues of a group it is."
    )
    numbers = ((UNASSIGNED_QUEUES, totals.unassigned), (DUPLICATE_OWNERS, totals.duplicate_owners))
    codes = tuple(code for code, number in numbers if number)
    return Section(name, title, (said(seen),), advice, (picture,), (grid,), codes)


def mismatches(found: Worst) -> Section:
    """Queues whose observed owners are others than the strategy of their group predicts."""
    name, title, totals = "mismatches", "Observed ownership differs from prediction", found.totals
    if not totals.observed:
        return Section(name, title, (said("Unknown: the snapshots report no owners."),))
    looked = number_of(totals.observed, "queue")
    if not found.mismatches:
        return Section(name, title, (said(f"Nothing: {looked} observed, each with the one predicted owner."),))
    seen = f"Of {looked} observed, {totals.mismatches:,} in {number_of(totals.with_mismatches, 'group')} "
    seen += "had other owners than the strategy of the group predicts."
    if totals.observed_unassigned is not None and totals.observed_duplicate_owners is not None:
        seen += f" {totals.observed_unassigned:,} had no owner, {totals.observed_duplicate_owners:,} had several."
    grid = grid_of(
        "Groups with the most observed queues without an owner first. Known: how the strategy is known",
        found.mismatches,
        _WHO,
        words(("known", "origin")),
        counts("consumers", "observed", "mismatches", ("unassigned", "observed_unassigned")),
        counts(("duplicate owners", "observed_duplicate_owners"), "lag"),
    )
    advice = (
        "look again: after a rebalance it is gone. For what stays, look for consumers that hang, that run another "
        "strategy, or that see other consumers. rmqlb show-owners names the queues."
    )
    numbers = ((UNASSIGNED_QUEUES, totals.observed_unassigned), (DUPLICATE_OWNERS, totals.observed_duplicate_owners))
    codes = tuple(code for code, number in (*numbers, (MISMATCH, totals.mismatches)) if number)
    return Section(name, title, (said(seen),), advice, grids=(grid,), codes=codes)


def imbalanced(found: Worst) -> Section:
    """Groups with a queue for every consumer, of which one has more than its due."""
    name, title, totals = "imbalanced", "Most imbalanced groups", found.totals
    if not found.imbalanced:
        return Section(name, title, (said("Nothing: each group with a queue for every consumer is balanced."),))
    top = found.imbalanced[0]
    seen = said(
        f"In {number_of(totals.imbalanced, 'group')} of {totals.groups:,} the busiest consumer holds at least "
        f"{IMBALANCED:g} times the mean. Of the groups with a queue for every consumer the most imbalanced is {{}} in "
        "{}: {} of its {} queues with one of {} consumers, {} times the mean.",
        top.group, top.cluster, top.max_queues_per_consumer, top.queues, top.consumers, top.imbalance,
    )  # fmt: skip
    picture = bars_of(
        Picture(name, title, "Bars: what the busiest consumer holds, as a multiple of the mean; 1 is balanced."),
        found.imbalanced,
        "group",
        decimals("imbalance"),
        "imbalance: queues of the busiest consumer / mean (1 is balanced)",
        start=1,
    )
    grid = grid_of(
        "Most imbalanced first, of the groups with a queue for every consumer",
        found.imbalanced,
        _WHO,
        counts("topics", "consumers", "queues", ("max", "max_queues_per_consumer")),
        decimals(("mean", "mean_queues_per_consumer"), "imbalance"),
        columns("signed", ("first id", "first_id_bias")),
    )
    advice = (
        "look at the column “first id”, the queues that the first client ID has beyond the mean. AVG and "
        "AVG_BY_CIRCLE begin each topic with that client, so the odd queues of many topics pile up there: choose "
        "numbers of queues that the number of consumers divides. With CONSISTENT_HASH it is chance; see the other "
        "strategies below."
    )
    codes = (IMBALANCED_GROUP,) if totals.imbalanced else ()
    return Section(name, title, (seen,), advice, (picture,), (grid,), codes)


def idle(found: Worst) -> Section:
    """Groups with consumers that have no queue."""
    name, title, totals = "idle", "Idle consumers", found.totals
    if not found.idle:
        return Section(name, title, (said("Nothing: every consumer has a queue."),))
    busy = "with queues", lambda one: None if one.consumers is None else one.consumers - (one.idle or 0)
    picture = bars_of(
        Picture(name, title, "Bars: consumers with queues and consumers without, for the groups with the most idle."),
        found.idle,
        "group",
        counts("idle", busy),
        "consumers",
    )
    grid = grid_of(
        "Groups with the most idle consumers first", found.idle, _WHO, counts("topics", "queues", "consumers", "idle")
    )
    seen = (
        f"{capitalize_first(number_of(totals.idle, 'consumer'))} in {number_of(totals.with_idle, 'group')} get no "
        f"queue at all; {totals.surplus:,} of them because their group has more consumers than queues."
    )
    advice = (
        "a queue has one consumer of a group at a time, so consumers beyond the queues only wait. Stop them, or give "
        "the topics more queues. Where there are queues enough, it is the strategy: rmqlb show-owners says why."
    )
    codes = sorted({code for code in map(idle_code, found.idle) if code is not None})
    return Section(name, title, (said(seen),), advice, (picture,), (grid,), tuple(codes))


def one_consumer(found: Worst) -> Section:
    """Groups with most of their lag at one of several consumers."""
    name, title, totals = "lag", "Lag that waits for one consumer", found.totals
    if not found.one_consumer:
        return Section(name, title, (said("Nothing: no group is known to have most of its lag with one consumer."),))
    picture = bars_of(
        Picture(name, title, "Bars: messages that wait for the busiest consumer, and for all the others together."),
        found.one_consumer,
        "group",
        counts(("one consumer", "max_lag_per_consumer"), ("all others", _lag_elsewhere)),
        "messages that wait",
    )
    grid = grid_of(
        "Groups with the most messages waiting for one consumer first",
        found.one_consumer,
        _WHO,
        counts("consumers", "queues", "lag", ("of one", "max_lag_per_consumer")),
        shares(("share", "lag_share")),
    )
    seen = (
        f"In {number_of(totals.on_one_consumer, 'group')} of {totals.groups:,} more than half of the messages that "
        "wait, wait for one of several consumers."
    )
    advice = (
        "see whether that consumer is slow or its queues are busy. A slow one is replaced; busy queues want keys or "
        "selectors that spread better. More consumers alone do not help while a queue has one owner."
    )
    return Section(name, title, (said(seen),), advice, (picture,), (grid,), (UNEVEN_LAG,))


def _lag_elsewhere(one: GroupScore) -> int | None:
    if one.lag is None or one.max_lag_per_consumer is None:
        return None
    return max(0, one.lag - one.max_lag_per_consumer)


def idle_code(one: GroupScore) -> PageCode | None:
    """Why consumers are idle: no topic has a queue for each, or the strategy gives them none; None when unknown."""
    if one.consumers is None or one.most_queues is None:
        return None
    return MORE_CONSUMERS_THAN_QUEUES if one.consumers > one.most_queues else IDLE_BY_STRATEGY
