"""A small warehouse written row by row as Parquet, for the report; what a row does not name is null, 0 or empty."""

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from rmqlb.pipeline import tables as t
from rmqlb.pipeline.report.figures import Answers, Nights, Query, Thresholds, queries
from rmqlb.pipeline.report.page import scripts

FIRST, BEFORE, NIGHT = date(2026, 11, 19), date(2026, 11, 20), date(2026, 11, 21)
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "{{ 7 * 7 }}{% raw %}", "]]></style></svg><script>",
    "\x1b]52;c;aGk=\x07\x1b[2J", "user\u202egnp.exe", "订单\uffff\ufffe", "a,b\"c'\r\nd\\e", "\x1f'onfocus='alert(3)", "x" * 300,
)  # fmt: skip
"""Names that would run, steer, break or bury something."""
Rows = Mapping[type[t.Row], Iterable[Mapping[str, Any]]]


def write_warehouse(folder: Path, rows: Rows, nights: Iterable[date] = (FIRST, BEFORE, NIGHT)) -> Path:
    for table, own in rows.items():
        schema = t.arrow_schema(table)
        by_day: dict[date, list[dict[str, Any]]] = {}
        for row in own:
            unknown = set(row) - set(schema.names)
            assert not unknown, f"{t.name(table)} has no {unknown}"
            by_day.setdefault(row["date"], []).append({f.name: row.get(f.name, _empty(f)) for f in schema})
        for day, found in by_day.items():
            part = folder / t.name(table) / f"date={day}"
            part.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(found, schema).drop_columns(["date"]), part / "part-0.parquet")
    for day in nights:
        mark(folder, day)
    return folder


def mark(folder: Path, day: date, token: str = "1") -> None:
    marker = folder / "_nights" / f"date={day}" / token
    marker.parent.mkdir(parents=True, exist_ok=True)
    for old in marker.parent.iterdir():
        old.unlink()
    marker.touch()


def _empty(field: pa.Field) -> Any:
    if pa.types.is_list(field.type):
        return []
    return "" if field.name in ("version", "document", "hash", "consequence", "remedy", "problem") else None


def duck(found: Answers) -> duckdb.DuckDBPyConnection:
    """DuckDB with the views of the page."""
    connection = duckdb.connect()
    for engine in ("DuckDB", "both, for findings"):
        connection.execute(scripts(found)[engine])
    return connection


def answered(connection: duckdb.DuckDBPyConnection, query: Query, scope: str | None) -> list[dict[str, Any]]:
    """The rows that DuckDB returns for the text that the page shows."""
    result = connection.sql(query.shown(scope))
    texts = ([str(one) if isinstance(one, date) else one for one in row] for row in result.fetchall())
    return [dict(zip(result.columns, row, strict=True)) for row in texts]


def by_duckdb(folder: Path) -> Answers:
    nights, thresholds = Nights(NIGHT, BEFORE, FIRST), Thresholds()
    there = [t.name(table) for table in t.TABLES if (folder / t.name(table)).is_dir()]
    filled = {
        query.name: replace(query, source=nights.fill(query.source), where=nights.fill(query.where))
        for query in queries(thresholds).values()
    }
    found = Answers(nights, thresholds, str(folder), there, filled, {}, {})
    connection = duck(found)
    scopes = [None, *(row["cluster"] for row in answered(connection, filled["clusters"], None))]
    rows = {name: {scope: answered(connection, query, scope) for scope in scopes} for name, query in filled.items()}
    counts = {name: {scope: len(own) for scope, own in own_rows.items()} for name, own_rows in rows.items()}
    return replace(found, rows=rows, counts=counts)


def figure(cluster: str, group: str, day: Any = NIGHT, **more: Any) -> dict[str, Any]:
    texts = {"strategy": "AVG", "runs": True, "origin": "reported", "status": "inOrder", "basis": "observed"}
    numbers = {"sharesQueues": True, "topics": 1, "consumers": 2, "processes": 2, "queues": 4, "imbalance": 1.0}
    each = {"minQueuesPerConsumer": 2, "meanQueuesPerConsumer": 2.0, "maxQueuesPerConsumer": 2}
    none = ("unassigned", "duplicateOwners", "ownersUnknown", "idle", "mismatches", "duplicateClientIds", "moved")
    zeros = dict.fromkeys((*none, "lag", "lagAtLeast", "maxLagPerConsumer"), 0)
    return {"cluster": cluster, "date": day, "group": group, **texts, **numbers, **each, **zeros, **more}


def finding(cluster: str | None, group: str | None, code: str, day: Any = NIGHT, **more: Any) -> dict[str, Any]:
    command = None if group is None else f"rmqlb diagnose -g {group} -s snapshots/cluster={cluster}"
    usual = {"kind": "group", "severity": "error", "message": f"{code} in {group}", "queues": 1, "command": command}
    return {"cluster": cluster, "date": day, "group": group, "code": code, **usual, **more}


def change(cluster: str, group: str, what: str, day: date = NIGHT, **more: Any) -> dict[str, Any]:
    return {"cluster": cluster, "date": day, "previous": BEFORE, "group": group, "change": what, **more}


def snapshot(cluster: str, day: Any = NIGHT, **more: Any) -> dict[str, Any]:
    usual = {"snapshot": f"{day}-{cluster[:8]}", "counts": True, "topics": 2, "groups": 2, "brokers": 2, "unread": 0}
    return {"cluster": cluster, "date": day, **usual, **more}


def rejected(cluster: str | None, code: str, day: date = NIGHT, *, path: str = "bad.json", **more: Any) -> Any:
    usual = {"file": {"path": path, "length": 3, "modified": 1}, "position": 0, "reason": "no JSON"}
    return {"cluster": cluster, "date": day, "code": code, **usual, **more}


def tonight(cluster: str, **more: Any) -> dict[str, Any]:
    return {"cluster": cluster, "date": NIGHT, **more}


def fleet() -> dict[type[t.Row], list[dict[str, Any]]]:
    """Two clusters over three nights, one that fell silent, one that came last night, and all kinds of rows."""
    policy = {"kind": "policy", "rule": "even", "value": "2.5", "bound": "1.5", "verdict": "failed"}
    incomplete = policy | {"verdict": "incomplete"}
    waived = policy | {"verdict": "waived", "waivedUntil": date(2026, 12, 31)}
    waived |= {"waivedBy": "ops@example.com", "waivedReason": "leaves soon"}
    warning = {"severity": "warning"}
    silent = {"kind": "fleet", "message": "south reported nothing", **warning}
    moved = [{"topic": "T", "brokerName": "a", "queueId": queue, "before": "x", "after": "y"} for queue in range(3)]
    outcome = {
        "consumers": 2, "queues": 4, "duplicateOwners": 0, "idle": 0, "imbalance": 1.5, "moved": 2, "lagMoved": 10,
    }  # fmt: skip
    writable = {"writableBrokers": 1, "writableQueues": 4}
    losses = (("broker", "broker-a", 0), ("consumer", "c@1", 1), ("consumer-added", "+1", 0))
    lost, strategies = {"strategy": None, "sharesQueues": None}, ("AVG", "CONSISTENT_HASH")
    return {
        t.Snapshots: [
            *(snapshot(cluster, day) for cluster in ("east", "west") for day in (FIRST, BEFORE, NIGHT)),
            snapshot("south", BEFORE, groups=5),
            snapshot("north", unread=2),
            snapshot("east", NIGHT, counts=False, snapshot="older"),
        ],
        t.Quarantine: [
            rejected(None, "unreadable"),
            rejected("east", "name-conflict", other="in/b.json", position=1),
            rejected("east", "unreadable", BEFORE),
        ],
        t.Groups: [
            {"cluster": cluster, "date": day, "group": group, "consumeType": kind, "snapshot": "s"}
            | {"messageModel": "CLUSTERING"}
            for day in (FIRST, BEFORE, NIGHT)
            for cluster in ("east", "west")
            for group, kind in (("orders", "CONSUME_PASSIVELY"), ("pop", "CONSUME_POP"))
        ],
        t.Figures: [
            *(figure("west", group, day) for group in ("orders", "pay") for day in (FIRST, BEFORE, NIGHT)),
            *(figure("east", "orders", day, lag=5, lagAtLeast=5) for day in (FIRST, BEFORE)),
            figure("east", "orders", lag=50000, lagAtLeast=50000, maxLagPerConsumer=40000, unassigned=1, imbalance=2.0),
            figure("east", "orders", strategy="CONSISTENT_HASH", runs=False, status=None, imbalance=1.5, moved=2),
            figure("east", "skewed", imbalance=2.5, maxQueuesPerConsumer=15, idle=1, mismatches=2),
            figure("east", "pop", strategy=None, sharesQueues=False, code="assigned-by-pop", lagAtLeast=7, lag=None),
            figure("east", "lost", code="unknown-strategy", problem="no strategy", **lost),
            figure("north", "fresh", duplicateOwners=2),
        ],
        t.Findings: [
            finding("east", "orders", "unassigned-queues", queues=3),
            finding("east", "orders", "slow-consumer", **warning),
            finding("east", "orders", "slow-consumer", BEFORE, message="slow yesterday", **warning),
            finding("west", "pay", "idle-consumers", BEFORE, **warning),
            finding("east", "skewed", "imbalance", severity="info"),
            finding("south", "other", "unassigned-queues", BEFORE),
            finding("north", "fresh", "duplicate-client-id"),
            finding("south", None, "silent-cluster", **silent),
            finding("east", "skewed", "imbalance", **policy),
            finding("west", "orders", "lag", **waived),
            finding("west", "orders", "idle", BEFORE, **waived),
            finding("west", "orders", "idle", **incomplete, **warning),
            finding(None, None, "rule", **incomplete),
        ],
        t.WhatIf: [
            tonight(cluster, group="orders", strategy="AVG", change=kind, subject=of, unassigned=n, **outcome)
            for cluster in ("east", "west")
            for kind, of, n in losses
        ],
        t.Sends: [
            tonight("east", topic="Dead", change="none", groups=1, writableBrokers=0, writableQueues=0),
            tonight("west", topic="Frail", change="broker", subject="broker-a", groups=2, **writable),
        ],
        t.Changes: [
            *(change("east", "orders", "queue-moved", day, **of) for day in (FIRST, BEFORE, NIGHT) for of in moved),
            *(change("east", "orders", "consumer-joined", day, subject="y@1") for day in (FIRST, BEFORE, NIGHT)),
            change("west", "pay", "strategy", before=strategies[0], after=strategies[1]),
            change("west", "pay", "finding-gone", subject="idle-consumers"),
            change("west", "new", "group-new"),
        ],
    }


def hostile_rows() -> Rows:
    lagging = {"lagAtLeast": 50000, "maxQueuesPerConsumer": 20, "imbalance": 3.0, "idle": 1}
    texts = ("topic", "message", "value", "bound", "rule", "command")
    policy = {"verdict": "failed", "kind": "policy"}
    return {
        t.Snapshots: [snapshot(name, snapshot=name) for name in HOSTILE],
        t.Findings: [finding(name, name, name, **dict.fromkeys(texts, name), **policy) for name in HOSTILE],
        t.Figures: [figure(name, name, strategy=name, **lagging) for name in HOSTILE],
        t.Quarantine: [rejected(name, "unreadable", path=name, reason=name, position=1) for name in HOSTILE],
        t.Changes: [change(name, name, "strategy", before=name, after=name) for name in HOSTILE],
    }
