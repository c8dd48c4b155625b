"""The groups as they are: unassigned queues, mismatches, imbalanced groups, idle consumers, lag."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import fields
from pyspark.sql import DataFrame
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
from rmqlb.pipeline.report.frames import Asked, Row, count_if, sums, total
from rmqlb.pipeline.report.page import Section, columns, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.queries import OverviewRows
from rmqlb.pipeline.report.subject_strategies import IMBALANCED
from rmqlb.pipeline.report.text import capitalize_first, number_of

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


class ClusterTotals(Totals, frozen=True):
    """The same of a cluster, with what its groups have together; `left_out` are groups that no figure counts."""

    cluster: str
    scored_date: dt.date | None
    consumers: int | None
    queues: int | None
    unassigned_known: int | None
    idle_known: int | None
    left_out: int


DIFFERS = "mismatches > 0 OR observedUnassigned > 0 OR observedDuplicateOwners > 0"
_WAITS = "consumers > 1 AND lagShare > 0.5"
LISTS: Mapping[str, OverviewRows] = {
    "unassigned": OverviewRows("unassigned > 0 OR duplicateOwners > 0", ("-unassigned", "-duplicateOwners", "-lag")),
    # With fewer queues than consumers imbalance only says that some are idle, which has a section of its own.
    "imbalanced": OverviewRows(
        "imbalance > 1 AND queues >= consumers", ("-imbalance", "-maxQueuesPerConsumer - meanQueuesPerConsumer")
    ),
    "idle": OverviewRows("idle > 0", ("-idle",)),
    "one_consumer": OverviewRows(_WAITS, ("-maxLagPerConsumer", "-lagShare")),
    "mismatches": OverviewRows(DIFFERS, ("-observedUnassigned", "-observedDuplicateOwners", "-mismatches", "-lag")),
    "groups": OverviewRows(
        "leftOut IS NULL",
        (
            *("-observedUnassigned", "-unassigned", "-observedDuplicateOwners", "-duplicateOwners"),
            *("-mismatches", "-idle", "-imbalance", "-lag"),
        ),
    ),
}
"""The lists of `Worst`: which rows of OVERVIEW, in which order."""
IMBALANCED_ROWS = OverviewRows(f"imbalance >= {IMBALANCED}", ("-imbalance",))


def worst(asked: Asked, groups: DataFrame, top: int) -> Callable[[], tuple[Worst, tuple[ClusterTotals, ...]]]:
    """The first groups by each fault, and the sums by cluster; `groups`: rows of OVERVIEW."""
    of_each = asked.rows(ClusterTotals, _totals(groups))
    lists = {
        name: asked.first(GroupScore, groups.where(its.where).where("leftOut IS NULL"), top, *its.columns)
        for name, its in LISTS.items()
    }

    def found() -> tuple[Worst, tuple[ClusterTotals, ...]]:
        clusters = of_each.by("cluster")
        return Worst(totals_of(clusters), **{name: answer.rows for name, answer in lists.items()}), clusters

    return found


def totals_of(clusters: Sequence[ClusterTotals]) -> Totals:
    """What all clusters have together."""
    names = [one.name for one in fields(Totals)]
    found: dict[str, Any] = {name: _known_sum(getattr(each, name) for each in clusters) for name in names}
    return Totals(**{name: number if "observed_" in name else number or 0 for name, number in found.items()})


def _known_sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _totals(groups: DataFrame) -> DataFrame:
    surplus = fn.greatest(fn.lit(0), fn.least(fn.col("idle"), fn.expr("consumers - queues")))
    return groups.groupBy("cluster").agg(
        count_if(fn.col("leftOut").isNull()).alias("groups"),
        count_if(fn.col("imbalance") >= IMBALANCED).alias("imbalanced"),
        total(surplus).alias("surplus"),
        count_if(fn.expr(_WAITS)).alias("onOneConsumer"),
        *(count_if(fn.col(name) > 0).alias(f"with{name[0].upper()}{name[1:]}") for name in _FAULTS),
        *(total(name).alias(name) for name in (*_FAULTS, "observed")),
        *sums("observedUnassigned", "observedDuplicateOwners", "consumers", "queues"),
        fn.sum("unassigned").alias("unassignedKnown"),
        fn.sum("idle").alias("idleKnown"),
        fn.max(fn.when(fn.col("leftOut").isNull(), fn.col("date"))).alias("scoredDate"),
        count_if(fn.col("leftOut").isNotNull()).alias("leftOut"),
    )


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
        query=LISTS["unassigned"].query(len(found.unassigned)),
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
        query=LISTS["mismatches"].query(len(found.mismatches)),
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
        query=LISTS["imbalanced"].query(len(found.imbalanced)),
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
        "Groups with the most idle consumers first",
        found.idle,
        _WHO,
        counts("topics", "queues", "consumers", "idle"),
        query=LISTS["idle"].query(len(found.idle)),
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
        query=LISTS["one_consumer"].query(len(found.one_consumer)),
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
