"""What would change: another strategy, more or fewer consumers, a lost broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import fields
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import IN_PICTURE, Picture, Series, bars_of, steps
from rmqlb.pipeline.report.frames import Asked, Row, Tables, convert_row, count_if, sums
from rmqlb.pipeline.report.page import Grid, Section, counts, grid_of, names, said, shares, words
from rmqlb.pipeline.report.queries import rows_query, sum_query
from rmqlb.pipeline.report.text import number_of, share_of
from rmqlb.pipeline.schemas import BROKER_LOSSES, GROUP_IN_SNAPSHOT, WHAT_IF

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


class _Summed(Row, frozen=True):
    """What a kind of change does to all groups; only what names the change is known of the first five."""

    change: str
    cluster: str | None
    strategy: str | None
    subject: str | None
    strategy_after: str | None
    groups: int
    touched_groups: int
    better: int
    same: int
    worse: int
    queues: int | None
    moved: int | None
    removed: int | None
    lag_moved: int | None
    idle_before: int | None
    idle_after: int | None
    unassigned_after: int | None


class _Stopped(Row, frozen=True):
    """Topics that have queues on a broker, and those that would have no other."""

    cluster: str
    broker_name: str
    topics: int
    without_write: int
    without_read: int


ALL_ROWS = "what_if"
OF_RUNNING = (
    "(SELECT w.*, o.maxQueuesPerConsumer AS maxQueuesPerConsumerBefore FROM what_if AS w JOIN overview AS o "
    "ON w.cluster = o.cluster AND w.snapshot = o.snapshot AND w.group = o.group AND w.strategy = o.strategy)"
)
"""Rows about the strategy that a group runs, with what its busiest consumer holds now."""


def changes(tables: Tables, asked: Asked, runs: DataFrame | None, top: int) -> Callable[[], dict[str, Any]]:
    """The fields of `Figures` that come from WHAT_IF and BROKER_LOSSES; `runs`: None when nothing was scored."""
    whole, losses = tables.last(WHAT_IF), tables.last(BROKER_LOSSES)
    what_if = None if whole is None else _of_running(whole, runs)
    summed = None if what_if is None else asked.rows(_Summed, _summed(what_if))
    gains = None if what_if is None else asked.first(GroupChange, _gains(what_if), top, *_BEST_GAIN)
    stopped = None if losses is None else asked.rows(_Stopped, _stopped(losses))

    def found() -> dict[str, Any]:
        of = _by_change(summed.rows if summed else ())
        figures: dict[str, Any] = {"changed": ALL_ROWS if runs is None else OF_RUNNING}
        if gains is not None:
            ordered = sorted(of["strategy"], key=lambda one: one.strategy_after or "")
            figures["strategy_changes"] = tuple(convert_row(one, StrategyChange) for one in ordered)
            figures["gains"] = gains.rows
            by_number = sorted(of["consumers"], key=lambda one: (one.strategy or "", *_subject(one)))
            figures["consumer_changes"] = tuple(convert_row(one, ConsumerChange) for one in by_number[:MOST_SUBJECTS])
        if summed is not None or stopped is not None:
            figures["brokers"] = _brokers(of["broker-lost"], stopped.rows if stopped else (), top)
        return figures

    return found


def _by_change(found: Sequence[_Summed]) -> dict[str, list[_Summed]]:
    kinds = ("strategy", "consumers", "broker-lost")
    return {kind: [one for one in found if one.change == kind] for kind in kinds}


def _of_running(what_if: DataFrame, runs: DataFrame | None) -> DataFrame:
    """Rows about the strategy that a group runs, with what its busiest consumer holds now; all rows without scores."""
    if runs is None:
        return what_if.withColumn("maxQueuesPerConsumerBefore", fn.lit(None).cast("int"))
    return what_if.join(
        runs.select(*_UNDER, fn.col("maxQueuesPerConsumer").alias("maxQueuesPerConsumerBefore")), list(_UNDER)
    )


_GAIN = "maxQueuesPerConsumerBefore - maxQueuesPerConsumerAfter"
_OTHER = "change = 'strategy' AND strategyAfter <> strategy"
_BEST_GAIN = ("-gain", "moved", "cluster", "group")


def _summed(what_if: DataFrame) -> DataFrame:
    """All kinds of changes by what names them, in one grouping."""

    def only(change: str, name: str) -> Column:
        return fn.when(fn.expr(change), fn.col(name)).alias(name)

    gain = fn.expr(_GAIN)
    keys = (
        "change",
        only("change = 'broker-lost'", "cluster"),
        only("change = 'consumers'", "strategy"),
        only("change <> 'strategy'", "subject"),
        only("change = 'strategy'", "strategyAfter"),
    )
    return (
        what_if.where(f"change <> 'strategy' OR ({_OTHER})")
        .groupBy(*keys)
        .agg(
            fn.count("*").alias("groups"),
            count_if(fn.expr("moved > 0 or removed > 0")).alias("touchedGroups"),
            count_if(gain > 0).alias("better"),
            count_if(gain == 0).alias("same"),
            count_if(gain < 0).alias("worse"),
            fn.sum("queuesBefore").alias("queues"),
            *sums("moved", "removed", "lagMoved", "idleBefore", "idleAfter", "unassignedAfter"),
        )
    )


def _gains(what_if: DataFrame) -> DataFrame:
    """Each group under the other strategy that suits it best, if any does."""
    whole = what_if.where(_OTHER).withColumns(
        {"gain": fn.expr(_GAIN), "queues": fn.col("queuesBefore"), "consumers": fn.col("consumersBefore")}
    )
    rest = [one.encode_name for one in fields(GroupChange) if one.encode_name not in _RANKED + _OF_GROUP]
    best = fn.min(fn.struct((-fn.col("gain")).alias("rank"), "moved", "strategyAfter", "gain", *rest)).alias("best")
    return whole.where("gain > 0").groupBy(*GROUP_IN_SNAPSHOT).agg(best).select("cluster", "group", "best.*")


_OF_GROUP, _RANKED = ("cluster", "group"), ("gain", "moved", "strategyAfter")


def _stopped(losses: DataFrame) -> DataFrame:
    return losses.groupBy("cluster", "brokerName").agg(
        fn.count("*").alias("topics"),
        count_if(fn.expr("writableQueuesBefore > 0 and writableQueuesAfter = 0")).alias("withoutWrite"),
        count_if(fn.expr("readableQueuesBefore > 0 and readableQueuesAfter = 0")).alias("withoutRead"),
    )


class _Unknown:
    """What is not known of a broker: the table is not there."""

    touched_groups = moved = removed = lag_moved = idle_after = unassigned_after = None
    topics = without_write = without_read = None


def _loss(key: tuple[str, str], moved: _Summed | None, stopped: _Stopped | None) -> BrokerLoss:
    groups, topics = moved or _Unknown, stopped or _Unknown
    return BrokerLoss(
        cluster=key[0],
        broker_name=key[1],
        groups=groups.touched_groups,
        moved=groups.moved,
        removed=groups.removed,
        lag_moved=groups.lag_moved,
        idle_after=groups.idle_after,
        unassigned_after=groups.unassigned_after,
        topics=topics.topics,
        without_write=topics.without_write,
        without_read=topics.without_read,
    )


def _brokers(moved: Sequence[_Summed], stopped: Sequence[_Stopped], top: int) -> tuple[BrokerLoss, ...]:
    """Both by broker; those that stop most topics first, then those that touch most queues."""
    of_groups = {(one.cluster or "", one.subject or ""): one for one in moved}
    of_topics = {(one.cluster, one.broker_name): one for one in stopped}
    found = [_loss(key, of_groups.get(key), of_topics.get(key)) for key in sorted({*of_groups, *of_topics})]

    def order(one: BrokerLoss) -> tuple[float, ...]:
        lag = -1 if one.lag_moved is None else one.lag_moved
        return -(-1 if one.without_write is None else one.without_write), -(one.moved or 0) - (one.removed or 0), -lag

    return tuple(sorted(found, key=order)[:top])


_SIDES = (("better", ">"), ("same", "="), ("worse", "<"))
_SUMMED = (
    ("sum(queuesBefore)", "queues"),
    ("sum(moved)", "moved"),
    ("sum(idleBefore)", "idleBefore"),
    ("sum(idleAfter)", "idleAfter"),
)
_GAINS = (
    "(SELECT w.*, row_number() OVER (PARTITION BY w.cluster, w.snapshot, w.group ORDER BY w.gain DESC, w.moved, "
    "w.strategyAfter) AS nth FROM (SELECT g.*, g.queuesBefore AS queues, g.consumersBefore AS consumers, "
    "g.maxQueuesPerConsumerBefore - g.maxQueuesPerConsumerAfter AS gain FROM {changed} AS g "
    "WHERE g.change = 'strategy' AND g.strategyAfter <> g.strategy) AS w WHERE w.gain > 0)"
)


def other_strategies(found: tuple[StrategyChange, ...], gains: tuple[GroupChange, ...], changed: str) -> Section:
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
    advice = (
        "change all consumers of a group at once, in a quiet hour: while two strategies run side by side, some queues "
        "have duplicate owners and some are unassigned. rmqlb plan-rebalance shows each move."
    )
    grids = _by_strategy(found, changed), _gaining(gains, changed)
    return Section(name, title, tuple(seen), advice, (picture,), grids)


def _by_strategy(found: tuple[StrategyChange, ...], changed: str) -> Grid:
    return grid_of(
        "All groups that do not run a strategy, if they did",
        found,
        words(("strategy", "strategy_after")),
        counts("groups", "better", "same", "worse", ("queues moved", "moved")),
        shares(("of all", lambda one: share_of(one.moved, one.queues))),
        counts(("idle now", "idle_before"), ("idle then", "idle_after")),
        query=sum_query(
            changed,
            ["strategyAfter"],
            [
                ("count(*)", "groups"),
                *((f"sum(CASE WHEN {_GAIN} {sign} 0 THEN 1 ELSE 0 END)", name) for name, sign in _SIDES),
                *_SUMMED,
            ],
            where=_OTHER,
            order=["strategyAfter"],
        ),
    )


def _gaining(gains: tuple[GroupChange, ...], changed: str) -> Grid:
    return grid_of(
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
        query=rows_query(_GAINS.format(changed=changed), "nth = 1", _BEST_GAIN, len(gains)),
    )


def other_consumers(found: tuple[ConsumerChange, ...], changed: str) -> Section:
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
        query=sum_query(
            changed,
            ["strategy", "subject"],
            [("count(*)", "groups"), *_SUMMED],
            where="change = 'consumers'",
            order=["strategy", "CAST(subject AS INT)", "subject"],
        ),
    )
    seen = "What every deployment, scale-out and crash costs: queues that move stop for a moment and may repeat."
    advice = "where consumers come and go often, choose a strategy with a low line: fewer queues move."
    return Section(name, title, (said(seen),), advice, (picture,), (grid,))


def _subject(one: ConsumerChange | _Summed) -> tuple[int, str]:
    try:
        return int(one.subject or ""), one.subject or ""
    except ValueError:
        return 0, one.subject or ""


_BY_BROKER = (
    ("sum(CASE WHEN moved > 0 OR removed > 0 THEN 1 ELSE 0 END)", "groups"),
    ("sum(moved)", "moved"),
    ("sum(removed)", "removed"),
    ("sum(lagMoved)", "lagMoved"),
    ("sum(idleAfter)", "idleAfter"),
    ("sum(unassignedAfter)", "unassignedAfter"),
)
_BY_TOPIC = (
    ("count(*)", "topics"),
    ("sum(CASE WHEN writableQueuesBefore > 0 AND writableQueuesAfter = 0 THEN 1 ELSE 0 END)", "withoutWrite"),
    ("sum(CASE WHEN readableQueuesBefore > 0 AND readableQueuesAfter = 0 THEN 1 ELSE 0 END)", "withoutRead"),
)


def _broker_queries(changed: str, tables: Sequence[str]) -> tuple[str, ...]:
    """Of the groups and of the topics, where the tables are there."""
    named, key = "change = 'broker-lost'", ["cluster", "subject"]
    both = {
        "what_if": sum_query(changed, key, _BY_BROKER, where=named, order=key),
        "broker_losses": sum_query("broker_losses", ["cluster", "brokerName"], _BY_TOPIC, order=["cluster"]),
    }
    return tuple(query for table, query in both.items() if table in tables)


def lost_brokers(found: tuple[BrokerLoss, ...], changed: str, tables: Sequence[str]) -> Section:
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
        queries=_broker_queries(changed, tables),
    )
    return Section(name, title, (seen,), advice, tuple(pictures), (grid,))
