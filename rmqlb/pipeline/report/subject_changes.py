"""What would change: another strategy, more or fewer consumers, a lost broker."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import IN_PICTURE, Picture, Series, bars_of, steps
from rmqlb.pipeline.report.frames import Row, Tables, count_if, down, first, rows, sums
from rmqlb.pipeline.report.page import Section, counts, grid_of, names, said, shares, words
from rmqlb.pipeline.report.text import number_of, share_of
from rmqlb.pipeline.schemas import BROKER_LOSSES, GROUP_IN_SNAPSHOT, KEY, WHAT_IF

_UNDER = (*GROUP_IN_SNAPSHOT, "strategy")
MOST_SUBJECTS = 200
"""Strategies times changes of consumers in one table."""


class _Change(Row, frozen=True):
    groups: int
    queues: int | None
    moved: int | None
    idle_before: int | None
    idle_after: int | None


class StrategyChange(_Change, frozen=True):
    """All groups that do not run a strategy, if they did: in `better` the busiest consumer gets fewer queues."""

    strategy_after: str
    better: int
    same: int
    worse: int


class GroupChange(Row, frozen=True):
    """A group under the other strategy that suits it best; `gain`: queues that its busiest consumer has less."""

    cluster: str
    group: str
    strategy: str
    strategy_after: str
    consumers: int | None
    queues: int | None
    max_queues_per_consumer_before: int | None
    max_queues_per_consumer_after: int | None
    gain: int | None
    moved: int | None
    idle_after: int | None


class ConsumerChange(_Change, frozen=True):
    """All groups that run a strategy, with so many consumers more or fewer (`subject`: +1, -2, …)."""

    strategy: str
    subject: str


class BrokerLoss(Row, frozen=True):
    """What the loss of a broker does.

    `groups`: with queues moved or removed; `lag_moved`: of those groups whose lag is
    known; `without_write`, `without_read`: topics that had such queues and have none left.
    """

    cluster: str
    broker_name: str
    groups: int | None
    moved: int | None
    removed: int | None
    lag_moved: int | None
    idle_after: int | None
    unassigned_after: int | None
    topics: int | None
    without_write: int | None
    without_read: int | None


def changes(tables: Tables, runs: DataFrame | None, top: int) -> dict[str, Any]:
    """The fields of `Figures` that come from WHAT_IF and BROKER_LOSSES; `runs`: None when nothing was scored."""
    whole, losses = tables.last(WHAT_IF), tables.last(BROKER_LOSSES)
    what_if = None if whole is None else _of_running(whole, runs)
    found: dict[str, Any] = {}
    if what_if is not None:
        found |= _strategies(what_if.where("change = 'strategy' and strategyAfter <> strategy"), top)
        found["consumer_changes"] = _consumers(what_if.where("change = 'consumers'"))
    if what_if is not None or losses is not None:
        found["brokers"] = _brokers(tables, what_if, losses, top)
    return found


def _of_running(what_if: DataFrame, runs: DataFrame | None) -> DataFrame:
    """Rows about the strategy that a group runs, with what its busiest consumer holds now; all rows without scores."""
    if runs is None:
        return what_if.withColumn("maxQueuesPerConsumerBefore", fn.lit(None).cast("int"))
    return what_if.join(
        runs.select(*_UNDER, fn.col("maxQueuesPerConsumer").alias("maxQueuesPerConsumerBefore")), list(_UNDER)
    )


def _strategies(what_if: DataFrame, top: int) -> dict[str, Any]:
    gain = fn.expr("maxQueuesPerConsumerBefore - maxQueuesPerConsumerAfter")
    whole = what_if.withColumns(
        {"gain": gain, "queues": fn.col("queuesBefore"), "consumers": fn.col("consumersBefore")}
    )
    summary = whole.groupBy("strategyAfter").agg(
        fn.count("*").alias("groups"),
        count_if(gain > 0).alias("better"),
        count_if(gain == 0).alias("same"),
        count_if(gain < 0).alias("worse"),
        *sums("queues", "moved", "idleBefore", "idleAfter"),
    )
    by_group = Window.partitionBy(*KEY, "group").orderBy(down("gain"), "moved", "strategyAfter")
    best = whole.where(gain > 0).withColumn("nth", fn.row_number().over(by_group)).where("nth = 1")
    return {
        "strategy_changes": rows(StrategyChange, summary.orderBy("strategyAfter")),
        "gains": first(GroupChange, best, top, down("gain"), "moved", "cluster", "group"),
    }


def _consumers(what_if: DataFrame) -> tuple[ConsumerChange, ...]:
    found = what_if.groupBy("strategy", "subject").agg(
        fn.count("*").alias("groups"), fn.sum("queuesBefore").alias("queues"), *sums("moved", "idleBefore", "idleAfter")
    )
    return first(ConsumerChange, found, MOST_SUBJECTS, "strategy", fn.expr("try_cast(subject as int)"), "subject")


def _brokers(tables: Tables, what_if: DataFrame | None, losses: DataFrame | None, top: int) -> tuple[BrokerLoss, ...]:
    if what_if is None:
        what_if = tables.spark.createDataFrame([], WHAT_IF.ddl)
    if losses is None:
        losses = tables.spark.createDataFrame([], BROKER_LOSSES.ddl)
    groups = (
        what_if.where("change = 'broker-lost'")
        .groupBy("cluster", fn.col("subject").alias("brokerName"))
        .agg(
            count_if(fn.expr("moved > 0 or removed > 0")).alias("groups"),
            *sums("moved", "removed", "lagMoved", "idleAfter", "unassignedAfter"),
        )
    )
    topics = losses.groupBy("cluster", "brokerName").agg(
        fn.count("*").alias("topics"),
        count_if(fn.expr("writableQueuesBefore > 0 and writableQueuesAfter = 0")).alias("withoutWrite"),
        count_if(fn.expr("readableQueuesBefore > 0 and readableQueuesAfter = 0")).alias("withoutRead"),
    )
    found = groups.join(topics, ["cluster", "brokerName"], "full").withColumn(
        "touched", fn.expr("coalesce(moved, 0) + coalesce(removed, 0)")
    )
    order = (down("withoutWrite"), down("touched"), down("lagMoved"), "cluster", "brokerName")
    return first(BrokerLoss, found, top, *order)


def other_strategies(found: tuple[StrategyChange, ...], gains: tuple[GroupChange, ...]) -> Section:
    """The groups if they ran other strategies."""
    name, title = "strategies", "Under another strategy"
    if not found:
        return Section(name, title, (said("Nothing: no change of strategy was looked at."),))
    best = max(found, key=lambda one: one.better - one.worse)
    seen = [
        said(
            "Of {} groups that do not run {}, the busiest consumer would get fewer queues in {} and more in {}. To "
            "change there moves {} queues once.",
            best.groups, best.strategy_after, best.better, best.worse, best.moved,
        )
    ]  # fmt: skip
    if gains:
        top = gains[0]
        most = top.max_queues_per_consumer_before, top.max_queues_per_consumer_after
        gained = "{} in {} gains most: from {} to {} queues with its busiest consumer under {}."
        seen.append(said(gained, top.group, top.cluster, *most, top.strategy_after))
    picture = bars_of(
        Picture(name, title, "Bars: in how many groups the busiest consumer would get fewer, as many or more queues."),
        found,
        "strategy_after",
        counts(("fewer", "better"), ("as many", "same"), ("more", "worse")),
        "groups, by what their busiest consumer would get",
    )
    summary = grid_of(
        "All groups that do not run a strategy, if they did",
        found,
        words(("strategy", "strategy_after")),
        counts("groups", "better", "same", "worse", ("queues moved", "moved")),
        shares(("of all", lambda one: share_of(one.moved, one.queues))),
        counts(("idle now", "idle_before"), ("idle then", "idle_after")),
    )
    gaining = grid_of(
        "Groups that gain most, each under the strategy that suits it best",
        gains,
        names("cluster", "group"),
        words(("from", "strategy"), ("to", "strategy_after")),
        counts(
            "consumers",
            "queues",
            ("max now", "max_queues_per_consumer_before"),
            ("max then", "max_queues_per_consumer_after"),
            "moved",
        ),
        counts(("idle then", "idle_after")),
    )
    advice = (
        "change all consumers of a group at once, in a quiet hour: while two strategies run side by side, some queues "
        "have duplicate owners and some are unassigned. rmqlb plan-rebalance shows each move."
    )
    return Section(name, title, tuple(seen), advice, (picture,), (summary, gaining))


def other_consumers(found: tuple[ConsumerChange, ...]) -> Section:
    """The groups with more or fewer consumers."""
    name, title = "consumers", "With more or fewer consumers"
    if not found:
        return Section(name, title, (said("Nothing: no change of consumers was looked at."),))
    subjects = list(dict.fromkeys(one.subject for one in sorted(found, key=_subject)))
    strategies = list(dict.fromkeys(one.strategy for one in found))
    moved = {(one.strategy, one.subject): share_of(one.moved, one.queues) for one in found}
    picture = steps(
        Picture(
            name, title, "Lines: the share of queues that change owner, for each strategy and number of consumers."
        ),
        subjects,
        [Series(strategy, [moved.get((strategy, subject)) for subject in subjects]) for strategy in strategies],
        ("change of each group's consumers", "queues that move"),
    )
    grid = grid_of(
        "Groups by the strategy that they run",
        found,
        words("strategy", ("consumers", "subject")),
        counts("groups", "queues", "moved"),
        shares(("of all", lambda one: moved[one.strategy, one.subject])),
        counts(("idle now", "idle_before"), ("idle then", "idle_after")),
    )
    seen = "What every deployment, scale-out and crash costs: queues that move stop for a moment and may repeat."
    advice = "where consumers come and go often, choose a strategy with a low line: fewer queues move."
    return Section(name, title, (said(seen),), advice, (picture,), (grid,))


def _subject(one: ConsumerChange) -> tuple[int, str]:
    try:
        return int(one.subject), one.subject
    except ValueError:
        return 0, one.subject


def lost_brokers(found: tuple[BrokerLoss, ...]) -> Section:
    """The groups and topics without one of the brokers."""
    name, title = "brokers", "The broker whose loss costs most"
    if not found:
        return Section(name, title, (said("Nothing: no loss of a broker was looked at."),))
    worst = found[0]
    seen = said(
        "It is {} in {}: without it {} of its {} topics have no writable queue; {} queues go, and {} of those that "
        "stay move to another consumer, in {} groups.",
        worst.broker_name, worst.cluster, worst.without_write, worst.topics, worst.removed, worst.moved, worst.groups,
    )  # fmt: skip
    queues = "Queues removed and moved when a broker is lost", "Bars: queues removed and moved, by broker."
    axis = "queues, once for each group that reads them"
    pictures = [bars_of(Picture("brokers-queues", *queues), found, "broker_name", counts("removed", "moved"), axis)]
    advice = "see that the consumers left can carry the lag that moves to them."
    if any(one.without_write for one in found[:IN_PICTURE]):
        advice = f"give the topics that would stop queues on a second broker, and {advice}"
        what = "topics left without a writable queue"
        picture = Picture("brokers-topics", "Topics without a writable queue when a broker is lost", f"Bars: {what}.")
        pictures.append(bars_of(picture, found, "broker_name", counts(("topics", "without_write")), what))
    brokers = number_of(len(found), "broker")
    grid = grid_of(
        f"The first {brokers}: those that stop most topics, then those that move most queues",
        found,
        names("cluster", ("broker", "broker_name")),
        counts("topics", ("no writable queue", "without_write"), ("no readable queue", "without_read"), "groups"),
        counts("removed", "moved", "lag_moved", ("idle then", "idle_after"), ("unassigned then", "unassigned_after")),
    )
    return Section(name, title, (seen,), advice, tuple(pictures), (grid,))
