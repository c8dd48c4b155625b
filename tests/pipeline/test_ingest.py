from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.documents import labels
from rmqlb.pipeline.ingest import find_files, read_expected
from rmqlb.pipeline.judge import Asked
from rmqlb.pipeline.tables import Figures, Groups, Quarantine, Queues, Snapshots
from rmqlb.pipeline.warehouse import Warehouse, first_kept

from .documents import connections, progress, route, snapshot, write
from .running import everything, ingest_files, judge_nights, rows

pytestmark = pytest.mark.spark

GROUP = {"clientIds": ["10.0.0.1@1"], "topics": ["T"], "queues": []}
A_DAY, NEXT = date(2026, 11, 21), date(2026, 11, 22)


def one(at: str = "2026-11-21T02:00:00Z", *, broker: str = "a", **group: Any) -> str:
    return snapshot(at, {"T": route("c1", **{broker: 4})}, {**GROUP, **group})


def reasons(warehouse: Warehouse) -> dict[str, str]:
    return {Path(row["file"]["path"]).name: row["code"] for row in rows(warehouse, Quarantine)}


def test_a_file_is_known_again_by_name_size_and_time(warehouse: Warehouse, tmp_path: Path) -> None:
    place = write(
        tmp_path / "in", {"cluster=x/date=2026-11-21/s.json": one(), "flat.json": one("2026-11-22T02:00:00Z")}
    )
    assert ingest_files(warehouse, place).read == 2
    assert (ingest_files(warehouse, place).read, ingest_files(warehouse, place).ingested) == (0, ())
    before = everything(warehouse)
    assert ingest_files(warehouse, place, force=True).read == 2
    assert everything(warehouse) == before
    write(tmp_path / "in", {"cluster=x/date=2026-11-21/t.json": one("2026-11-21T03:00:00Z")})
    done = ingest_files(warehouse, place)
    assert done.ingested == (A_DAY,)
    assert [(row["snapshot"][:15], row["counts"]) for row in rows(warehouse, Snapshots, A_DAY)] == [
        ("20261121T020000", False),
        ("20261121T030000", True),
    ]


def test_the_last_snapshot_of_a_night_counts_whatever_comes_first(warehouse: Warehouse, tmp_path: Path) -> None:
    late = write(tmp_path / "b", {"b.json": one("2026-11-21T09:00:00Z", clientIds=["10.0.0.2@1"])})
    early = write(tmp_path / "a", {"a.json": one("2026-11-21T01:00:00Z")})
    ingest_files(warehouse, late)
    ingest_files(warehouse, early)
    (group,) = rows(warehouse, Groups)
    assert [each["clientId"] for each in group["consumers"]] == ["10.0.0.2@1"]
    write(tmp_path / "b", {"b.json": one("2026-11-21T09:30:00Z", clientIds=["10.0.0.3@1"])})
    ingest_files(warehouse, late)
    (group,) = rows(warehouse, Groups)
    assert [each["clientId"] for each in group["consumers"]] == ["10.0.0.3@1"]
    assert len(rows(warehouse, Snapshots)) == 2


def test_what_cannot_be_read_is_rejected_with_its_reason(warehouse: Warehouse, tmp_path: Path) -> None:
    negative = json.loads(one())
    negative["data"]["topics"][0]["route"]["queueDatas"][0]["readQueueNums"] = -4
    of_group = {"queues": [{"topic": "T", "brokerName": "a", "queueId": 0, "consumerOffset": -7, "brokerOffset": 3}]}
    place = write(
        tmp_path / "in",
        {
            "good.json": one(),
            "cut.json": one()[:-40],
            "future.json": one("2126-01-02T02:00:00Z"),
            "negative-queues.json": json.dumps(negative),
            "negative-offset.json": snapshot("2026-11-21T02:00:00Z", {"T": route(a=4)}, {**GROUP, **of_group}),
            "undated.json": snapshot(None, {"T": route(a=4)}),
            "piece.json": json.dumps(route(a=4)),
            "text.json": "nothing of the kind",
            "cluster=y/date=2126-01-02/s.json": one(),
            ".hidden.json": "x",
        },
    )
    os.mkfifo(tmp_path / "in" / "pipe.json")
    done = ingest_files(warehouse, place)
    found = reasons(warehouse)
    assert found.pop("negative-queues.json") in ("negative-count", "unreadable")
    assert found == {
        "cut.json": "unreadable",
        "future.json": "future-date",
        "s.json": "future-date",
        "negative-offset.json": "negative-count",
        "undated.json": "unreadable",
        "piece.json": "unreadable",
        "text.json": "unreadable",
        "pipe.json": "unreadable",
    }
    assert (done.snapshots, len(done.quarantined)) == (1, 9)
    assert max(warehouse.dates(Quarantine)) < date(2126, 1, 1)
    assert ingest_files(warehouse, place).read == 0


def test_two_clusters_of_one_name_are_both_rejected_with_both_paths(warehouse: Warehouse, tmp_path: Path) -> None:
    files = {"one.json": one(broker="a"), "two.json": one("2026-11-21T03:00:00Z", broker="b")}
    place = write(tmp_path / "in", files)
    ingest_files(warehouse, place, cluster="x")
    conflicts = [(Path(row["file"]["path"]).name, Path(row["other"]).name) for row in rows(warehouse, Quarantine)]
    assert sorted(conflicts) == [("one.json", "two.json"), ("two.json", "one.json")]
    assert {row["code"] for row in rows(warehouse, Quarantine)} == {"name-conflict"}
    assert rows(warehouse, Snapshots) == []


def test_the_cluster_that_is_known_stays(warehouse: Warehouse, tmp_path: Path) -> None:
    ingest_files(warehouse, write(tmp_path / "first", {"one.json": one(broker="a")}), cluster="x")
    later = {
        "same.json": one("2026-11-22T02:00:00Z", broker="a"),
        "stranger.json": one("2026-11-22T03:00:00Z", broker="b"),
    }
    ingest_files(warehouse, write(tmp_path / "second", later), cluster="x")
    assert reasons(warehouse) == {"stranger.json": "name-conflict"}
    assert len(rows(warehouse, Groups, NEXT)) == 1


def test_pieces_in_the_folder_of_a_cluster_and_night_make_one_snapshot(warehouse: Warehouse, tmp_path: Path) -> None:
    folder = "cluster=pay%2Feu/date=2026-11-21"
    place = write(
        tmp_path / "in",
        {
            f"{folder}/topic=T/route.json": json.dumps(route(a=1, b=1)),
            f"{folder}/group=g/connections.json": connections("g", "10.0.0.1@1", "10.0.0.2@1"),
            f"{folder}/group=g/progress.json": progress("g", a="10.0.0.1@1", b="10.0.0.2@1"),
        },
    )
    ingest_files(warehouse, place)
    assert rows(warehouse, Quarantine) == []
    (head,) = rows(warehouse, Snapshots)
    assert (head["cluster"], head["date"], len(head["files"])) == ("pay/eu", A_DAY, 3)
    assert [row["ownersObserved"] for row in rows(warehouse, Queues)] == [["10.0.0.1@1"], ["10.0.0.2@1"]]
    judge_nights(warehouse)
    (row,) = rows(warehouse, Figures)
    assert (row["queues"], row["consumers"], row["lag"]) == (2, 2, 10)


def test_nights_are_dropped_but_no_clusters_last_one(warehouse: Warehouse, tmp_path: Path) -> None:
    files = {f"cluster=x/date=2026-11-{day:02}/s.json": one(f"2026-11-{day:02}T02:00:00Z") for day in range(1, 6)}
    files["cluster=old/date=2026-11-02/s.json"] = one("2026-11-02T02:00:00Z", broker="c")
    ingest_files(warehouse, write(tmp_path / "in", files))
    judge_nights(warehouse)
    first = first_kept(warehouse.nights(), 2, date(2026, 11, 20))
    assert first == date(2026, 11, 4)
    with warehouse.writing():
        assert warehouse.drop_before(first) == [date(2026, 11, 1), date(2026, 11, 3)]
    kept = [date(2026, 11, 2), date(2026, 11, 4), date(2026, 11, 5)]
    assert warehouse.dates(Snapshots) == warehouse.dates(Figures) == warehouse.whole_nights() == kept


def test_days_are_counted_from_the_last_night_that_is_not_in_the_future() -> None:
    nights = [date(2026, 11, 1), date(2026, 11, 9), date(2099, 1, 1)]
    assert first_kept(nights, 1, date(2026, 11, 20)) == date(2026, 11, 9)
    assert first_kept([], 1, date(2026, 11, 20)) == date(2026, 11, 20)


def test_a_silent_cluster_is_a_finding_and_a_violation(warehouse: Warehouse, tmp_path: Path) -> None:
    ingest_files(warehouse, write(tmp_path / "in", {"cluster=x/date=2026-11-21/s.json": one()}))
    expected = tmp_path / "expected"
    expected.write_text("# ours\nx\n\ny # silent\n")
    done = judge_nights(warehouse, Asked(expected=read_expected(str(expected))))
    assert done.verdict is not None
    assert (done.verdict.silent, done.verdict.is_violated) == (("y",), True)
    assert "silent: y" in done.verdict.line
    expected.write_text("# nobody\n")
    with pytest.raises(DataError, match="it names no cluster"):
        read_expected(str(expected))


def test_inputs_that_stand_for_nothing(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    for given in (tmp_path, tmp_path / "none", tmp_path / "*.json"):
        with pytest.raises(DataError, match="there is no file to read"):
            find_files([str(given)])
    assert find_files(["s3a://bucket/x"]) == ([], ["s3a://bucket/x"])


def test_what_a_path_says() -> None:
    found = labels("/d/cluster=a/date=2026-11-20/cluster=b/group=g%2Fh/x.json")
    assert (found.cluster, found.date, found.group, found.unit) == (
        "b",
        date(2026, 11, 20),
        "g/h",
        "/d/cluster=a/date=2026-11-20/cluster=b",
    )
    assert labels("/d/date=2026-02-30/x.json").date is None
