"""Rows for reports, written by hand: what a row does not name is unknown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqlb.pipeline.schemas import (
    BROKEN_LIMITS,
    BROKER_LOSSES,
    CHURN,
    DOCUMENTS,
    FLAPPING,
    LOADS,
    MOVES,
    QUARANTINE,
    REFUSALS,
    SCORES,
    SEND_SHARES,
    SENDS,
    SIZES,
    TREND,
    WHAT_IF,
    WORST_LOSSES,
    Table,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

Row = Mapping[str, Any]
DAY = dt.date(2026, 3, 2)
KEY: Row = {"cluster": "east", "date": DAY, "snapshot": "s1"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "=cmd|'/C calc'!A0",
    "\x1b]52;c;aGk=\x07\x1b[2J",
    "user\u202egnp.exe",
    "$\\frac{1}{0}$ _^{",
    "]]></style></svg><script>",
    "订单\uffff\ufffe",
    "a,b\"c'\r\nd",
    "\x1f'onfocus='alert(3)",
    "x" * 10_000,
)
"""Names that would run, steer, break or bury something."""


def write(spark: SparkSession, warehouse: Warehouse, tables: Mapping[str, tuple[Table, Sequence[Row]]]) -> None:
    """Write tables; a column that a row does not name is null."""
    with warehouse.writing() as writing:
        for table, rows in tables.values():
            values = [tuple(row.get(column) for column in table.columns) for row in rows]
            writing.replace(table, spark.createDataFrame(values, table.ddl))


def score(group: str, strategy: str = "AVG", *, runs: bool = True, **figures: Any) -> Row:
    """A row of SCORES: 4 consumers with 8 balanced queues, unless said otherwise."""
    row = {
        "consumers": 4,
        "queues": 8,
        "idle": 0,
        "unassigned": 0,
        "duplicateOwners": 0,
        "minQueuesPerConsumer": 2,
        "meanQueuesPerConsumer": 2.0,
        "maxQueuesPerConsumer": 2,
    }
    whole = {**KEY, "group": group, "strategy": strategy, "runs": runs, "origin": "reported", **row, **figures}
    return {"imbalance": whole["maxQueuesPerConsumer"] / whole["meanQueuesPerConsumer"], **whole}


def what_if(group: str, change: str, subject: str, after: str = "AVG", **figures: Any) -> Row:
    row = {"consumersBefore": 4, "queuesBefore": 8, "moved": 0, "removed": 0, "idleBefore": 0, "idleAfter": 0}
    names = {"group": group, "strategy": "AVG", "change": change, "subject": subject, "strategyAfter": after}
    return {**KEY, **names, **row, "unassignedAfter": 0, "maxQueuesPerConsumerAfter": 2, **figures}


def send(topic: str, lost: float, *, latency_fault: bool = False) -> Row:
    figures = {"trials": 10, "messages": 1000.0, "attempts": 1010.0, "retries": 10.0, "longestSendMs": 3004.0}
    figures = {**figures, "attemptsPerMessage": 1.01, "lostShare": lost / 1000}
    bounds = {"lost": lost, "lostLow": lost / 2, "lostHigh": 2 * lost, "losingTrials": 0.5 if lost else 0.0}
    return {**KEY, "topic": topic, "scenario": "broker-a dies", "latencyFault": latency_fault, **figures, **bounds}


def fleet(*names: str) -> dict[str, tuple[Table, list[Row]]]:
    """A row or two of every table for each name; its group, topic, broker, client, scenario and file all bear it."""
    fleets = [_named(name) for name in names or ("order-svc",)]
    return {key: (table, [row for one in fleets for row in one[key][1]]) for key, (table, _) in fleets[0].items()}


def _named(name: str) -> dict[str, tuple[Table, list[Row]]]:
    share = {
        "scenario": name,
        "latencyFault": False,
        "brokerName": name,
        "attempts": 500.0,
        "failures": 5.0,
        "share": 0.5,
    }
    day = {"cluster": "east", "date": DAY, "group": name}
    even = {"meanQueuesPerConsumer": 2.0, "maxQueuesPerConsumer": 4, "idle": 1, "unassigned": 0}
    seen = {"processes": 4, "queues": 8, **even, "lag": 9}
    loss = {"brokerName": name, "topic": name, "readableQueuesBefore": 8, "readableQueuesAfter": 4}
    counts = {"moved": 9, "returns": 4, "queues": 3, "days": 2, "movedPerDay": 4.5, "flaps": True}
    sized = {"strategy": "AVG", "sdk": "java", "queues": 8, "consumers": 3, "satisfied": False, "fewest": 1}
    sized |= {"nextFewer": 2, "nextMore": 4}
    sized |= {"fails": "max-imbalance", "imbalance": 1.0, "idle": 0}
    lost = {"strategy": "AVG", "losses": 5, "broken": 2, "unassigned": 8, "imbalance": 2.5, "idle": 0, "moved": 6}
    lost |= {"imbalanceBy": f"broker {name}", "movedBy": f"consumer {name}"}
    broken = {
        "strategy": "AVG",
        "limitName": "unassigned",
        "bound": 0.0,
        "value": 8.0,
        "kind": "consumer",
        "name": name,
    }
    broken |= {"losses": 2}
    return {
        "documents": (
            DOCUMENTS,
            [{**KEY, "file": name, "position": 1, "takenAt": dt.datetime(2026, 3, 2, 1, 2, 3, tzinfo=dt.UTC)}],
        ),
        "scores": (
            SCORES,
            [
                score(
                    name,
                    unassigned=2,
                    duplicateOwners=1,
                    idle=1,
                    maxQueuesPerConsumer=5,
                    lag=100,
                    maxLagPerConsumer=80,
                    firstIdBias=1.5,
                ),
                score(name, "AVG_BY_CIRCLE", runs=False),
            ],
        ),
        "loads": (LOADS, [{**KEY, "group": name, "strategy": "AVG", "clientId": name, "place": 0, "queues": 5}]),
        "refusals": (REFUSALS, [{**KEY, "group": name, "topic": name, "strategy": "CONFIG", "reason": name}]),
        "what_if": (
            WHAT_IF,
            [
                what_if(
                    name, "strategy", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", moved=3, maxQueuesPerConsumerAfter=2, lagMoved=7
                ),
                what_if(name, "consumers", "+1", moved=2),
                what_if(name, "consumers", "-1", moved=4),
                what_if(name, "broker-lost", name, moved=1, removed=4, lagMoved=70),
            ],
        ),
        "broker_losses": (BROKER_LOSSES, [{**KEY, **loss, "writableQueuesBefore": 8, "writableQueuesAfter": 0}]),
        "sizes": (SIZES, [{**KEY, "group": name, **sized}]),
        "worst_losses": (WORST_LOSSES, [{**KEY, "group": name, **lost}]),
        "broken_limits": (BROKEN_LIMITS, [{**KEY, "group": name, **broken}]),
        "sends": (SENDS, [{**send(name, 4.0), "scenario": name}, {**send("calm", 0.0), "scenario": name}]),
        "send_shares": (SEND_SHARES, [{**KEY, "topic": name, **share}]),
        "moves": (
            MOVES,
            [{**day, "moved": 3, "newlyUnassigned": 1, "newlyAssigned": 2, "observed": 8, "snapshots": 2}],
        ),
        "flapping": (FLAPPING, [{"cluster": "east", "group": name, **counts}]),
        "churn": (CHURN, [{**day, "processes": 4, "joined": 2, "left": 1}]),
        "trend": (
            TREND,
            [
                {**KEY, "date": DAY - dt.timedelta(days=1), "snapshot": "s0", "group": name, **seen, "imbalance": 1.5},
                {
                    **KEY,
                    "takenAt": dt.datetime(2026, 3, 2, 1, 2, 3, tzinfo=dt.UTC),
                    "group": name,
                    **seen,
                    "imbalance": 2.0,
                },
            ],
        ),
        "quarantine": (QUARANTINE, [{"file": name, "position": 2, "hash": "00ff", "bytes": 12, "reason": name}]),
    }
