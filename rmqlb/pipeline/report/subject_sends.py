"""What producers go through under the failure schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.charts import IN_PICTURE, Picture, Series, bars
from rmqlb.pipeline.report.frames import Asked, Row, Tables, count_if, sums
from rmqlb.pipeline.report.page import Grid, Section, columns, counts, decimals, grid_of, names, said, shares, words
from rmqlb.pipeline.report.queries import rows_query, sum_query
from rmqlb.pipeline.report.text import share_of
from rmqlb.pipeline.schemas import SEND_SHARES, SENDS

MOST_SCENARIOS = 100
"""Scenarios in one table."""
_CASE = ("scenario", "latencyFault")


class Scenario(Row, frozen=True):
    """The producers of a cluster's topics under a failure schedule, means over the trials.

    `messages`, `retries` and `lost` are numbers; `losing`: topics that lost a message.
    """

    cluster: str
    scenario: str
    latency_fault: bool
    topics: int
    losing: int
    messages: float | None
    retries: float | None
    lost: float | None
    longest_send_ms: float | None


class SendTotals(Row, frozen=True):
    """Messages sent and lost in all scenarios, of which the page has the first: numbers."""

    messages: float | None
    lost: float | None


class TopicSends(Row, frozen=True):
    """A topic's producer that loses messages: `lost` with its bounds is a number, `losing_trials` a share."""

    cluster: str
    topic: str
    scenario: str
    latency_fault: bool
    messages: float | None
    lost: float | None
    lost_low: float | None
    lost_high: float | None
    losing_trials: float | None


class BrokerSends(Row, frozen=True):
    """Attempts of all topics at one broker; `share` of those at the cluster's brokers."""

    cluster: str
    broker_name: str
    scenario: str
    latency_fault: bool
    attempts: float | None
    failures: float | None
    share: float | None


def sends(tables: Tables, asked: Asked, top: int) -> Callable[[], dict[str, Any]]:
    """The fields of `Figures` that come from SENDS and SEND_SHARES."""
    topics, of_brokers = tables.whole(SENDS), tables.whole(SEND_SHARES)
    scenarios = losing = brokers = None
    if topics is not None:
        scenarios = asked.rows(Scenario, _scenarios(topics))
        losing = asked.first(TopicSends, topics.where("lost > 0"), top, *_MOST_LOST)
    if of_brokers is not None:
        brokers = asked.first(BrokerSends, _brokers(of_brokers), top, *_MOST_FAILED)

    def found() -> dict[str, Any]:
        figures: dict[str, Any] = {}
        if scenarios is not None and losing is not None:
            every = sorted(scenarios.by("-retries", *_CASE_FIELDS), key=_lost_share)
            figures["scenarios"] = tuple(every[:MOST_SCENARIOS])
            figures["send_totals"] = SendTotals(_sum(every, "messages"), _sum(every, "lost"))
            figures["losing"] = losing.rows
        if brokers is not None:
            figures["broker_sends"] = brokers.rows
        return figures

    return found


_MOST_LOST = ("-lost", "-losingTrials", "cluster", "topic", *_CASE)
_MOST_FAILED = ("-failures", "-attempts", "cluster", "brokerName", *_CASE)
_CASE_FIELDS = ("cluster", "scenario", "latency_fault")
_OF_CLUSTERS = ("cluster", *_CASE)


def _lost_share(one: Scenario) -> float:
    """The largest first, unknown last."""
    share = share_of(one.lost, one.messages)
    return 1.0 if share is None else -share


def _sum(found: Sequence[Scenario], name: str) -> float | None:
    known = [value for one in found if (value := getattr(one, name)) is not None]
    return math.fsum(known) if known else None


def _scenarios(topics: DataFrame) -> DataFrame:
    return topics.groupBy(*_OF_CLUSTERS).agg(
        fn.count("*").alias("topics"),
        count_if(fn.col("lost") > 0).alias("losing"),
        *sums("messages", "retries", "lost"),
        fn.max("longestSendMs").alias("longestSendMs"),
    )


def _brokers(of_brokers: DataFrame) -> DataFrame:
    brokers = of_brokers.groupBy("cluster", "brokerName", *_CASE).agg(*sums("attempts", "failures"))
    everywhere = fn.sum("attempts").over(Window.partitionBy("cluster", *_CASE))
    return brokers.withColumn("share", fn.try_divide(fn.col("attempts"), everywhere))


_BY_SCENARIO = sum_query(
    "sends",
    _OF_CLUSTERS,
    [
        ("count(*)", "topics"),
        ("sum(CASE WHEN lost > 0 THEN 1 ELSE 0 END)", "losing"),
        ("sum(messages)", "messages"),
        ("sum(retries)", "retries"),
        ("sum(lost)", "lost"),
        ("max(longestSendMs)", "longestSendMs"),
    ],
)
_SCENARIOS = rows_query(
    f"({_BY_SCENARIO})", "", ("-lost / nullif(messages, 0)", "-retries", *_OF_CLUSTERS), rows=MOST_SCENARIOS
)
_BY_BROKER = sum_query(
    "send_shares",
    ("cluster", "brokerName", *_CASE),
    [("sum(attempts)", "attempts"), ("sum(failures)", "failures")],
)
_OF_CLUSTER = "sum(b.attempts) OVER (PARTITION BY b.cluster, b.scenario, b.latencyFault)"
_SHARES = f"(SELECT b.*, b.attempts / nullif({_OF_CLUSTER}, 0) AS share FROM ({_BY_BROKER}) AS b)"  # noqa: S608


def _switch(one: Scenario | TopicSends | BrokerSends) -> str:
    return "on" if one.latency_fault else "off"


_LATENCY_FAULT = words(("latency fault", _switch))


def producers(
    found: tuple[Scenario, ...], totals: SendTotals, losing: tuple[TopicSends, ...], brokers: tuple[BrokerSends, ...]
) -> Section:
    """What is lost and retried in each scenario, and where."""
    name, title = "producers", "Producers while brokers fail"
    if not found:
        return Section(name, title, (said("Nothing: no producer was simulated."),))
    scenarios = grid_of(
        "Each scenario over all topics of a cluster, the largest share lost first; means over the trials",
        found,
        names("cluster", "scenario"),
        _LATENCY_FAULT,
        counts("topics", ("that lose", "losing"), "messages"),
        decimals("lost"),
        shares(("of all", lambda one: share_of(one.lost, one.messages))),
        decimals("retries"),
        columns("ms", ("longest send", "longest_send_ms")),
        query=_SCENARIOS,
    )
    if not totals.messages:
        nothing = said("Nothing: no topic has a producer that can be simulated.")
        return Section(name, title, (nothing,), grids=(scenarios,))
    lost, worst = totals.lost or 0, found[0]
    seen: tuple[Markup, ...] = (
        said("No simulated message is lost: a producer's retries reach another broker every time."),
    )
    if lost:
        seen = (
            said("Of {} simulated messages {} are lost on average over the trials.", round(totals.messages), lost),
            said(
                "The largest share is lost in cluster {}, {} (latency fault {}), by the producers of {} of {} topics.",
                worst.cluster, worst.scenario, _switch(worst), worst.losing, worst.topics,
            ),
        )  # fmt: skip
    few = found[:IN_PICTURE]
    parts = [share_of(one.lost if lost else one.retries, one.messages) or 0 for one in few]
    axis = "messages lost per million" if lost else "retries per million messages"
    picture = bars(
        Picture(name, title, f"Bars: {axis}, for each cluster and scenario with and without latency fault."),
        [f"{one.cluster}: {one.scenario}, {_switch(one)}" for one in few],
        [Series("per million", [1e6 * part for part in parts])],
        f"{axis} (latency fault off or on)",
    )
    advice = (
        "a topic with writable queues on one broker only loses what is sent while it is away: give it a second one. "
        "Where a slow or silent broker costs, sendLatencyFaultEnable makes producers isolate it."
    )
    return Section(name, title, seen, advice, (picture,), (scenarios, _losing_grid(losing), _brokers_grid(brokers)))


def _losing_grid(losing: tuple[TopicSends, ...]) -> Grid:
    return grid_of(
        "Topics that lose most messages; between low and high the mean lies with 95 % confidence",
        losing,
        names("cluster", "topic", "scenario"),
        _LATENCY_FAULT,
        counts("messages"),
        decimals("lost", ("low", "lost_low"), ("high", "lost_high")),
        shares("losing_trials"),
        query=rows_query("sends", "lost > 0", _MOST_LOST, len(losing)),
    )


def _brokers_grid(brokers: tuple[BrokerSends, ...]) -> Grid:
    return grid_of(
        "Brokers by failed attempts; share: of all attempts in the cluster",
        brokers,
        names("cluster", ("broker", "broker_name"), "scenario"),
        _LATENCY_FAULT,
        counts("attempts"),
        shares("share"),
        decimals(("failed", "failures")),
        shares(("of attempts", lambda one: share_of(one.failures, one.attempts))),
        query=rows_query(_SHARES, "", _MOST_FAILED, len(brokers)),
    )
