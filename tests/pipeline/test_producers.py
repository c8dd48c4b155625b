"""The producers stage on Spark: every topic's rows are those of `simulate_trials` for its own route."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from rmqlb import SendScenario, UsageError, simulate_trials
from rmqlb.engine.send.latency import from_samples
from rmqlb.model.route import QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure, Moment, Reaction
from rmqlb.model.simulate_send import TrialsReport
from rmqlb.pipeline.producers.send_rows import SendSchedule
from rmqlb.pipeline.producers.send_tables import send_jobs, send_shares, sends, simulate_sends, write_sends
from rmqlb.pipeline.schemas import SEND_SHARES, SENDS, TOPICS
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline_rows.send_shapes import static_route, topic_row
from tests.support.builders import route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DAY = dt.date(2026, 3, 1)
REFUSED = Failure("*", Reaction("refused", "refused", 0, 1000), Moment(us=20_000))
LOAD = SendScenario(messages=60, latency=from_samples([500, 1000, 4000], "samples"), latency_fault=True, seed=7)
IN_TURN = SendSchedule(LOAD, (REFUSED,), trials=6)
LOST = Failure("a*", Reaction("timeout", "timeout"), Moment(us=20_000))
TOGETHER = SendSchedule(LOAD, (LOST, Failure("elsewhere", LOST.reaction)), in_turn=False, name="a dies", trials=6)

ORDERED = replace(route("Ordered", a=3, b=2), order_topic_conf="b:2;a:3")
SENDABLE = {
    "Orders": route("Orders", a=4, b=4),
    "Same": route("Same", a=4, b=4),
    "One": route("One", a=2),
    "Grüße 😀": route("Grüße 😀", ä=2, a=1),
    "HalfReadOnly": replace(
        route("HalfReadOnly", a=2, c=2), queue_datas=(QueueData("a", 2, 2, 6), QueueData("c", 2, 2, 4))
    ),
    "Ordered": ORDERED,
    "Retyped": route("Retyped", b=4, c=1),
}
UNSENDABLE = {
    "Broken": replace(route("Broken", a=4), order_topic_conf="a:many"),
    "ReadOnly": route("ReadOnly", perm=4, a=4),
    "NoMaster": route("NoMaster", masters=False, a=4),
    "Nowhere": TopicRouteData("Nowhere", (), ()),
    "Static": static_route("Static", 8, "a"),
}
BROKERS_IN_TURN = {
    "Orders": "ab",
    "Same": "ab",
    "One": "a",
    "Grüße 😀": "aä",
    "HalfReadOnly": "a",
    "Ordered": "ab",
    "Retyped": "bc",
}


def topics(spark: SparkSession, *routes: TopicRouteData, cluster: str = "c1") -> DataFrame:
    rows = [{"cluster": cluster, "date": DAY, "snapshot": "s1", **topic_row(topic)} for topic in routes]
    return spark.createDataFrame([[row[name] for name in TOPICS.columns] for row in rows], TOPICS.ddl)


def everything(spark: SparkSession) -> DataFrame:
    return topics(spark, *SENDABLE.values(), *UNSENDABLE.values())


def simulated(frame: DataFrame, schedule: SendSchedule, partitions: int = 2) -> DataFrame:
    return simulate_sends(send_jobs(frame, schedule).repartition(partitions), schedule)


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def key(topic: str, scenario: str | None) -> dict[str, Any]:
    return {
        "cluster": "c1",
        "date": DAY,
        "snapshot": "s1",
        "topic": topic,
        "scenario": scenario,
        "latencyFault": True,
    }


def reports(names: Mapping[str, Iterable[str]]) -> Iterable[tuple[dict[str, Any], TrialsReport]]:
    """Each topic on its own route, each of these brokers failing alone."""
    for topic, brokers in names.items():
        for broker in brokers:
            scenario = replace(LOAD, failures=(replace(REFUSED, broker_name=broker),))
            yield key(topic, broker), simulate_trials(SENDABLE[topic], scenario, 6)


def row_of(key_: Mapping[str, Any], report: TrialsReport) -> dict[str, Any]:
    return {
        **key_,
        "trials": 6,
        "messages": report.messages.mean,
        "attempts": math.fsum(each.mean for each in report.attempts_at.values()),
        "attemptsPerMessage": report.attempts.mean,
        "retries": report.retries.mean,
        "lost": report.lost_messages.mean,
        "lostLow": report.lost_messages.low,
        "lostHigh": report.lost_messages.high,
        "lostShare": report.lost_share.mean,
        "losingTrials": report.losing_trials.mean,
        "longestSendMs": report.longest_send_ms and report.longest_send_ms.mean,
    }


def empty(topic: str, scenario: str | None) -> dict[str, Any]:
    return {**dict.fromkeys(SENDS.columns), **key(topic, scenario), "trials": 0}


def test_every_topic_has_what_simulate_trials_says_of_its_own_route(spark: SparkSession) -> None:
    frame = everything(spark)
    outcomes = simulated(frame, IN_TURN)
    expected = [row_of(*each) for each in reports(BROKERS_IN_TURN)] + [empty(topic, None) for topic in UNSENDABLE]
    found = sends(frame, outcomes)
    assert found.columns == list(SENDS.columns)
    assert rows(found) == sorted(expected, key=repr)
    shares = send_shares(frame, outcomes)
    assert shares.columns == list(SEND_SHARES.columns)
    assert rows(shares) == sorted(
        (
            {
                **key_,
                "brokerName": broker,
                "attempts": report.attempts_at[broker].mean,
                "failures": report.failed_at[broker].mean,
                "share": report.shares[broker].mean,
            }
            for key_, report in reports(BROKERS_IN_TURN)
            for broker in report.isolations
            if broker in report.shares
        ),
        key=repr,
    )


def test_one_schedule_for_all_brokers_at_once(spark: SparkSession) -> None:
    frame = everything(spark)
    expected = [
        row_of(
            key(topic, "a dies"),
            simulate_trials(
                SENDABLE[topic], replace(LOAD, failures=(replace(LOST, broker_name="a"),) if "a" in brokers else ()), 6
            ),
        )
        for topic, brokers in BROKERS_IN_TURN.items()
    ]
    assert any(row["lost"] > 0 for row in expected)
    found = rows(sends(frame, simulated(frame, TOGETHER)))
    assert found == sorted(expected + [empty(topic, "a dies") for topic in UNSENDABLE], key=repr)


def test_topics_of_one_shape_are_simulated_once(spark: SparkSession) -> None:
    frame = topics(spark, SENDABLE["Orders"], SENDABLE["Same"]).union(
        topics(spark, route("Elsewhere", b=4, a=4), cluster="c2")
    )
    jobs = rows(send_jobs(frame, IN_TURN))
    assert [job["scenario"] for job in jobs] == ["a", "b"]
    found = rows(sends(frame, simulated(frame, IN_TURN)).drop("cluster", "topic"))
    assert len(found) == 6
    assert found[0] == found[1] == found[2] != found[3] == found[4] == found[5]


def test_partitions_change_nothing_and_a_seed_does(spark: SparkSession) -> None:
    frame = everything(spark)
    one, many = (rows(sends(frame, simulated(frame, IN_TURN, partitions))) for partitions in (1, 5))
    assert one == many
    other = replace(IN_TURN, scenario=replace(LOAD, seed=8))
    assert rows(sends(frame, simulated(frame, other))) != one


def test_the_tables_are_written_and_nothing_else_stays(spark: SparkSession, tmp_path: Path) -> None:
    frame = everything(spark)
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    with warehouse.writing() as writing:
        counts = write_sends(frame, IN_TURN, writing, made_from={"topics": "run=000001"})
    assert counts == (17, 23)
    assert warehouse.names() == ("send_shares", "sends")
    assert warehouse.is_made_from(SENDS, {"topics": "run=000001"})
    assert rows(warehouse.read(spark, SENDS)) == rows(sends(frame, simulated(frame, IN_TURN)))
    assert rows(warehouse.read(spark, SEND_SHARES)) == rows(send_shares(frame, simulated(frame, IN_TURN)))
    assert [path.name for path in tmp_path.rglob("run=*")] == ["run=000001"] * 2


def test_a_schedule_that_cannot_be_simulated_is_refused_before_any_job(spark: SparkSession) -> None:
    frame = topics(spark)
    with pytest.raises(UsageError, match="belong to the schedule"):
        send_jobs(frame, replace(IN_TURN, scenario=replace(LOAD, failures=(LOST,))))
    with pytest.raises(UsageError, match="at least 2"):
        simulate_sends(send_jobs(frame, IN_TURN), replace(IN_TURN, trials=1))
    assert rows(sends(frame, simulated(frame, IN_TURN))) == []
