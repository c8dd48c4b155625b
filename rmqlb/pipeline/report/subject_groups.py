"""The groups as they are: queues that nobody reads, lopsided groups, idle consumers, lag."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import IN_PICTURE, Picture, Series, bars
from rmqlb.pipeline.report.frames import Row, Tables, count_if, down, first, rows, total
from rmqlb.pipeline.report.page import Section, columns, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.subject_strategies import LOPSIDED
from rmqlb.pipeline.report.text import capitalize_first, labels_of, number_of
from rmqlb.pipeline.schemas import FLEET, GROUP_IN_SNAPSHOT, KEY

_WHO = (*names("cluster", "group"), *words("strategy"))
_FAULTS = ("idle", "unowned", "multiplyOwned", "drift")


class Totals(Row, frozen=True):
    """All groups under the strategy that each runs.

    `lopsided`, `with_idle` and so on count groups; `surplus`: idle
    members of groups that have more members than queues; `on_one_member`: groups with more than half of their lag
    waiting for one of several members. `observed`: queues whose holders were looked for; `drift`: those of them that
    others hold than the strategy says; `held_by_nobody` and `held_by_several` are what was seen, None when FLEET does
    not tell.
    """

    groups: int
    lopsided: int
    with_idle: int
    idle: int
    surplus: int
    with_unowned: int
    unowned: int
    with_multiply_owned: int
    multiply_owned: int
    on_one_member: int
    observed: int
    with_drift: int
    drift: int
    held_by_nobody: int | None
    held_by_several: int | None


class GroupScore(Row, frozen=True):
    """A group under the strategy it runs; `lag_share` is the part of its lag that waits for one member."""

    cluster: str
    group: str
    strategy: str
    topics: int | None
    members: int | None
    queues: int | None
    idle: int | None
    unowned: int | None
    multiply_owned: int | None
    most: int | None
    mean: float | None
    skew: float | None
    lag: int | None
    most_lag: int | None
    lag_share: float | None
    first_id_bias: float | None


class SeenGroup(Row, frozen=True):
    """A group as it was seen to hold its queues, beside the strategy it runs; `origin` is how that is known."""

    cluster: str
    group: str
    strategy: str
    origin: str | None
    members: int | None
    observed: int | None
    drift: int | None
    held_by_nobody: int | None
    held_by_several: int | None
    lag: int | None


class Worst(Struct, frozen=True):
    """The first groups by each kind of fault, under the strategy that each runs; `drift`: as they were seen."""

    totals: Totals
    unowned: tuple[GroupScore, ...]
    lopsided: tuple[GroupScore, ...]
    idle: tuple[GroupScore, ...]
    one_member: tuple[GroupScore, ...]
    drift: tuple[SeenGroup, ...]


def running(scores: DataFrame) -> DataFrame:
    """Rows of SCORES under the strategy that each group runs, one a group."""
    place = fn.row_number().over(Window.partitionBy(*KEY, "group").orderBy("strategy"))
    return scores.where("runs").withColumn("nth", place).where("nth = 1").drop("nth")


def worst(tables: Tables, runs: DataFrame, top: int) -> Worst:
    """The first groups by each fault; `runs`: as `running` gives them."""
    groups = _with_holders(tables, runs)
    share = fn.try_divide("mostLag", "lag")
    groups = groups.withColumns({"lagShare": fn.when(fn.col("lag") > 0, share), "excess": fn.expr("most - mean")})
    waits = fn.expr("members > 1 and lagShare > 0.5")
    totals = groups.agg(
        fn.count("*").alias("groups"),
        count_if(fn.col("skew") >= LOPSIDED).alias("lopsided"),
        total(fn.greatest(fn.lit(0), fn.least(fn.col("idle"), fn.expr("members - queues")))).alias("surplus"),
        count_if(waits).alias("onOneMember"),
        *(count_if(fn.col(name) > 0).alias(f"with{name[0].upper()}{name[1:]}") for name in _FAULTS),
        *(total(name).alias(name) for name in (*_FAULTS, "observed")),
        fn.sum("heldByNobody").alias("heldByNobody"),
        fn.sum("heldBySeveral").alias("heldBySeveral"),
    )

    def named(kind: type[Row], found: DataFrame, *order: str) -> tuple[Any, ...]:
        return first(kind, found, top, *map(down, order), "cluster", "group")

    otherwise = groups.where("drift > 0 or heldByNobody > 0 or heldBySeveral > 0")
    return Worst(
        totals=rows(Totals, totals)[0],
        unowned=named(GroupScore, groups.where("unowned > 0 or multiplyOwned > 0"), "unowned", "multiplyOwned", "lag"),
        # With fewer queues than members the skew only says that some are idle, which has a section of its own.
        lopsided=named(GroupScore, groups.where("skew > 1 and queues >= members"), "skew", "excess"),
        idle=named(GroupScore, groups.where("idle > 0"), "idle"),
        one_member=named(GroupScore, groups.where(waits), "mostLag", "lagShare"),
        drift=named(SeenGroup, otherwise, "heldByNobody", "heldBySeveral", "drift", "lag"),
    )


def _with_holders(tables: Tables, runs: DataFrame) -> DataFrame:
    """Groups with how many of their queues were seen with nobody, and with several; null where FLEET does not tell."""
    fleet = tables.last(FLEET)
    if fleet is None:
        return runs.withColumns({"heldByNobody": fn.lit(None).cast("int"), "heldBySeveral": fn.lit(None).cast("int")})
    topics = fleet.select(*GROUP_IN_SNAPSHOT, fn.explode("topics").alias("read"))
    queues = topics.select(*GROUP_IN_SNAPSHOT, fn.explode("read.owners").alias("queue"))
    holders = fn.size(fn.array_distinct("queue.owners"))
    seen = queues.groupBy(*GROUP_IN_SNAPSHOT).agg(
        count_if(holders == 0).alias("heldByNobody"), count_if(holders > 1).alias("heldBySeveral")
    )
    return runs.join(seen, list(GROUP_IN_SNAPSHOT), "left")


def unread(found: Worst) -> Section:
    """Queues that the strategy of their group gives nobody, or several members."""
    name, title, totals = "unread", "Queues without a reader, or with several", found.totals
    if not found.unowned:
        return Section(name, title, (said("Nothing: the strategy that each group runs gives each queue one reader."),))
    few = found.unowned[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: queues without a reader and queues with several, for the groups with the most."),
        labels_of(few, "group"),
        [
            Series("without reader", [one.unowned for one in few]),
            Series("with several readers", [one.multiply_owned for one in few]),
        ],
        "queues",
    )
    grid = grid_of(
        "Groups with the most such queues first",
        found.unowned,
        _WHO,
        counts(("consumers", "members"), "queues", ("without reader", "unowned"), ("with several", "multiply_owned")),
        counts("lag"),
    )
    seen = (
        f"Under the strategy that each runs, {number_of(totals.with_unowned, 'group')} of {totals.groups:,} leave "
        f"{number_of(totals.unowned, 'queue')} without a reader; in {number_of(totals.with_multiply_owned, 'group')} "
        f"{number_of(totals.multiply_owned, 'queue')} have several."
    )
    advice = (
        "give each process its own client id, and let all members of a group subscribe to the same topics; these are "
        "the usual causes. rmqlb show-owners tells which queues of a group it is."
    )
    return Section(name, title, (said(seen),), advice, (picture,), (grid,))


def otherwise(found: Worst) -> Section:
    """Queues that are seen with others than the strategy of their group says."""
    name, title, totals = "otherwise", "Queues that were seen otherwise", found.totals
    if not totals.observed:
        return Section(name, title, (said("Unknown: nobody looked who holds the queues."),))
    looked = number_of(totals.observed, "queue")
    if not found.drift:
        return Section(name, title, (said(f"Nothing: {looked} seen, each with the one reader that it is dealt to."),))
    seen = f"Of {looked} whose readers were looked for, {totals.drift:,} in {number_of(totals.with_drift, 'group')} "
    seen += "had others than the strategy of the group says."
    if totals.held_by_nobody is not None and totals.held_by_several is not None:
        seen += f" {totals.held_by_nobody:,} had nobody, {totals.held_by_several:,} had several."
    grid = grid_of(
        "Groups with the most queues that had nobody first. Known: how the strategy is known",
        found.drift,
        _WHO,
        words(("known", "origin")),
        counts(
            ("consumers", "members"), ("looked at", "observed"), ("otherwise", "drift"), ("nobody", "held_by_nobody")
        ),
        counts(("several", "held_by_several"), "lag"),
    )
    advice = (
        "look again: after a rebalance it is gone. What stays is read by nobody, or twice: look for members that hang, "
        "that run another strategy, or that see other members. rmqlb show-owners names the queues."
    )
    return Section(name, title, (said(seen),), advice, grids=(grid,))


def lopsided(found: Worst) -> Section:
    """Groups with a queue for every member, of which one has more than its due."""
    name, title, totals = "lopsided", "Lopsided groups", found.totals
    if not found.lopsided:
        return Section(name, title, (said("Nothing: no group with a queue for everybody is lopsided."),))
    top = found.lopsided[0]
    seen = said(
        f"In {number_of(totals.lopsided, 'group')} of {totals.groups:,} the busiest consumer holds at least "
        f"{LOPSIDED:g} times the mean. Of the groups with a queue for everybody the most lopsided is {{}} in "
        "{}: {} of its {} queues with one of {} consumers, {} times the mean.",
        top.group, top.cluster, top.most, top.queues, top.members, top.skew,
    )  # fmt: skip
    few = found.lopsided[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: what the busiest consumer holds, as a multiple of the mean; 1 is perfectly even."),
        labels_of(few, "group"),
        [Series("most / mean", [one.skew for one in few])],
        "queues of the busiest consumer / mean (1 is even)",
        start=1,
    )
    grid = grid_of(
        "Most lopsided first, of the groups with a queue for every consumer",
        found.lopsided,
        _WHO,
        counts("topics", ("consumers", "members"), "queues", "most"),
        decimals("mean", ("most / mean", "skew")),
        columns("signed", ("first id", "first_id_bias")),
    )
    advice = (
        "look at the column “first id”, the queues that the first client id has beyond the mean. AVG and "
        "AVG_BY_CIRCLE begin each topic with that client, so the odd queues of many topics pile up there: numbers of "
        "queues that the number of consumers divides cure it. With CONSISTENT_HASH it is chance; see the other "
        "strategies below."
    )
    return Section(name, title, (seen,), advice, (picture,), (grid,))


def idle(found: Worst) -> Section:
    """Groups with members that have no queue."""
    name, title, totals = "idle", "Idle consumers", found.totals
    if not found.idle:
        return Section(name, title, (said("Nothing: every consumer has a queue."),))
    few = found.idle[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: consumers with queues and consumers without, for the groups with the most idle."),
        labels_of(few, "group"),
        [
            Series("idle", [one.idle for one in few]),
            Series("with queues", [None if one.members is None else one.members - (one.idle or 0) for one in few]),
        ],
        "consumers",
    )
    grid = grid_of(
        "Groups with the most idle consumers first",
        found.idle,
        _WHO,
        counts("topics", "queues", ("consumers", "members"), "idle"),
    )
    seen = (
        f"{capitalize_first(number_of(totals.idle, 'consumer'))} in {number_of(totals.with_idle, 'group')} get no "
        f"queue at all; {totals.surplus:,} of them because their group has more consumers than queues."
    )
    advice = (
        "a queue has one consumer of a group at a time, so consumers beyond the queues only wait. Stop them, or give "
        "the topics more queues. Where there are queues enough, it is the strategy: rmqlb show-owners says why."
    )
    return Section(name, title, (said(seen),), advice, (picture,), (grid,))


def one_member(found: Worst) -> Section:
    """Groups with most of their lag at one of several members."""
    name, title, totals = "lag", "Lag that waits for one consumer", found.totals
    if not found.one_member:
        return Section(name, title, (said("Nothing: no group is known to have most of its lag with one consumer."),))
    few = found.one_member[:IN_PICTURE]
    rest = [None if one.lag is None or one.most_lag is None else max(0, one.lag - one.most_lag) for one in few]
    picture = bars(
        Picture(name, title, "Bars: messages that wait for the busiest consumer, and for all the others together."),
        labels_of(few, "group"),
        [Series("one consumer", [one.most_lag for one in few]), Series("all others", rest)],
        "messages that wait",
    )
    grid = grid_of(
        "Groups with the most messages waiting for one consumer first",
        found.one_member,
        _WHO,
        counts(("consumers", "members"), "queues", "lag", ("of one", "most_lag")),
        shares(("share", "lag_share")),
    )
    seen = (
        f"In {number_of(totals.on_one_member, 'group')} of {totals.groups:,} more than half of the messages that wait, "
        "wait for one of several consumers."
    )
    advice = (
        "see whether that consumer is slow or its queues are busy. A slow one is replaced; busy queues want keys or "
        "selectors that spread better. More consumers alone do not help while a queue has one reader."
    )
    return Section(name, title, (said(seen),), advice, (picture,), (grid,))
