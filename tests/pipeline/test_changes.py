from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rmqlb.pipeline.tables import Changes
from rmqlb.pipeline.warehouse import Warehouse

from .documents import route, snapshot, write
from .running import everything, ingest_files, judge_nights, rows

pytestmark = pytest.mark.spark

FIRST, SECOND, THIRD = (date(2026, 11, day) for day in (20, 21, 22))
A, B, C = "10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1"


def night(day: int, ids: list[str], owners: list[str], *, queues: int = 2, strategy: str = "") -> str:
    of = [
        {"topic": "T", "brokerName": "a", "queueId": n, "owners": [who] if who else []} for n, who in enumerate(owners)
    ]
    reports = [{"clientId": each, "topics": ["T"], "strategyClass": strategy or None} for each in ids]
    group = {"clientIds": ids, "topics": ["T"], "queues": of, "reports": reports}
    group |= {"messageModel": "CLUSTERING", "consumeType": "CONSUME_PASSIVELY"}
    return snapshot(f"2026-11-{day}T02:00:00Z", {"T": route(a=queues)}, group)


def folder(tmp_path: Path, cluster: str = "x", **nights: str) -> str:
    return write(
        tmp_path / "in", {f"cluster={cluster}/date=2026-11-{n[1:]}/s.json": text for n, text in nights.items()}
    )


def seen(warehouse: Warehouse, day: date) -> list[tuple[Any, ...]]:
    names = ("change", "queueId", "subject", "before", "after")
    return sorted((tuple(row[name] for name in names) for row in rows(warehouse, Changes, day)), key=repr)


def test_each_kind_of_change(warehouse: Warehouse, tmp_path: Path) -> None:
    avg, circle = "AllocateMessageQueueAveragely", "AllocateMessageQueueAveragelyByCircle"
    nights = {
        "d20": night(20, [A, B], [A, B], strategy=avg),
        "d21": night(21, [A, C], [A, ""], queues=4, strategy=circle),
    }
    ingest_files(warehouse, folder(tmp_path, **nights))
    judge_nights(warehouse)
    assert seen(warehouse, FIRST) == []
    found = seen(warehouse, SECOND)
    for each in (
        ("consumer-joined", None, C, None, None),
        ("consumer-left", None, B, None, None),
        ("queue-count", None, None, "2", "4"),
        ("queue-moved", 1, None, B, None),
        ("strategy", None, None, "AVG", "AVG_BY_CIRCLE"),
    ):
        assert each in found
    assert {kind for kind, *_ in found} >= {"finding-new"}
    assert {row["previous"] for row in rows(warehouse, Changes)} == {FIRST}


def test_a_late_snapshot_changes_its_night_and_the_next_one(warehouse: Warehouse, tmp_path: Path) -> None:
    place = folder(tmp_path, d20=night(20, [A], [A, A]), d22=night(22, [B], [B, B]))
    ingest_files(warehouse, place)
    assert judge_nights(warehouse).judged == (FIRST, THIRD)
    assert judge_nights(warehouse).judged == ()
    assert {row["previous"] for row in rows(warehouse, Changes, THIRD)} == {FIRST}
    folder(tmp_path, d21=night(21, [B], [B, B]))
    ingest_files(warehouse, place)
    assert judge_nights(warehouse).judged == (SECOND, THIRD)
    assert ("queue-moved", 0, None, A, B) in seen(warehouse, SECOND)
    assert seen(warehouse, THIRD) == []
    before = everything(warehouse)
    assert len(judge_nights(warehouse, force=True).judged) == 3
    assert everything(warehouse) == before


def test_a_cluster_that_one_night_lacks_has_no_changes(warehouse: Warehouse, tmp_path: Path) -> None:
    folder(tmp_path, cluster="y", d20=night(20, [A], [A, A]))
    place = folder(tmp_path, cluster="x", d21=night(21, [A], [A, A]))
    ingest_files(warehouse, place)
    judge_nights(warehouse)
    assert rows(warehouse, Changes) == []
