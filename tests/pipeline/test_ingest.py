import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.documents import labels
from rmqlb.pipeline.ingest import find_files, read_expected
from rmqlb.pipeline.judge import Question
from rmqlb.pipeline.tables import Changes, Figures, Groups, Quarantine, Queues, Snapshots
from rmqlb.pipeline.warehouse import Warehouse, first_kept
from tests.support.mismatches import refusal

from .running import connections, everything, ingest_files, judge_nights, progress, route, rows, snapshot, write

pytestmark = pytest.mark.spark

GROUP = {"clientIds": ["10.0.0.1@1"], "topics": ["T"], "queues": []}
A_DAY, NEXT = date(2026, 11, 21), date(2026, 11, 22)


def one(at: str = "2026-11-21T02:00:00Z", *, broker: str = "a", **group: Any) -> str:
    return snapshot(at, {"T": route(**{broker: 4})}, {**GROUP, **group})


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
    counts = {row["snapshot"][:15]: row["counts"] for row in rows(warehouse, Snapshots, A_DAY)}
    assert counts == {"20261121T020000": False, "20261121T030000": True}


def test_the_last_snapshot_of_a_night_counts_whatever_comes_first(warehouse: Warehouse, tmp_path: Path) -> None:
    for name, at, client_id, counts in (
        ("b", "09:00", "10.0.0.2@1", "10.0.0.2@1"),
        ("a", "01:00", "10.0.0.1@1", "10.0.0.2@1"),
        ("b", "09:30", "10.0.0.3@1", "10.0.0.3@1"),
    ):
        ingest_files(warehouse, write(tmp_path / name, {"s.json": one(f"2026-11-21T{at}:00Z", clientIds=[client_id])}))
        (group,) = rows(warehouse, Groups)
        assert [each["clientId"] for each in group["consumers"]] == [counts]
    assert len(rows(warehouse, Snapshots)) == 2


def test_what_cannot_be_read_is_rejected_with_its_reason(warehouse: Warehouse, tmp_path: Path) -> None:
    negative = json.loads(one())
    negative["data"]["topics"][0]["route"]["queueDatas"][0]["readQueueNums"] = -4
    queue = {"topic": "T", "brokerName": "a", "queueId": 0, "consumerOffset": -7, "brokerOffset": 3}
    files = {
        "good.json": one(), "cut.json": one()[:-40], "future.json": one("2126-01-02T02:00:00Z"),
        "negative-queues.json": json.dumps(negative), "negative-offset.json": one(queues=[queue]),
        "undated.json": snapshot(None, {"T": route(a=4)}), "piece.json": json.dumps(route(a=4)),
        "text.json": "nothing of the kind", "cluster=y/date=2126-01-02/s.json": one(), ".hidden.json": "x",
    }  # fmt: skip
    place = write(tmp_path / "in", files)
    os.mkfifo(tmp_path / "in" / "pipe.json")
    done = ingest_files(warehouse, place)
    found = reasons(warehouse)
    assert found.pop("negative-queues.json") in ("negative-count", "unreadable")
    unreadable = dict.fromkeys(("cut.json", "undated.json", "piece.json", "text.json", "pipe.json"), "unreadable")
    future = {"future.json": "future-date", "s.json": "future-date"}
    assert found == {**unreadable, **future, "negative-offset.json": "negative-count"}
    assert (done.snapshots, len(done.quarantined)) == (1, 9)
    assert max(warehouse.dates(Quarantine)) < date(2126, 1, 1)
    assert ingest_files(warehouse, place).read == 0


def test_two_clusters_of_one_name_are_both_rejected_with_both_paths(warehouse: Warehouse, tmp_path: Path) -> None:
    files = {"one.json": one(broker="a"), "two.json": one("2026-11-21T03:00:00Z", broker="b")}
    ingest_files(warehouse, write(tmp_path / "in", files), cluster="x")
    found = {Path(r["file"]["path"]).name: (Path(r["other"]).name, r["code"]) for r in rows(warehouse, Quarantine)}
    assert found == {"one.json": ("two.json", "name-conflict"), "two.json": ("one.json", "name-conflict")}
    assert rows(warehouse, Snapshots) == []


def test_the_cluster_that_is_known_stays(warehouse: Warehouse, tmp_path: Path) -> None:
    ingest_files(warehouse, write(tmp_path / "first", {"one.json": one(broker="a")}), cluster="x")
    same, stranger = (one(f"2026-11-22T0{hour}:00:00Z", broker=broker) for hour, broker in ((2, "a"), (3, "b")))
    later = {"same.json": same, "stranger.json": stranger}
    ingest_files(warehouse, write(tmp_path / "second", later), cluster="x")
    assert reasons(warehouse) == {"stranger.json": "name-conflict"}
    assert len(rows(warehouse, Groups, NEXT)) == 1


def test_pieces_in_the_folder_of_a_cluster_and_night_make_one_snapshot(warehouse: Warehouse, tmp_path: Path) -> None:
    pieces = {
        "topic=T/route.json": json.dumps(route(a=1, b=1)),
        "group=g/connections.json": connections("g", "10.0.0.1@1", "10.0.0.2@1"),
        "group=g/progress.json": progress("g", a="10.0.0.1@1", b="10.0.0.2@1"),
    }
    write(tmp_path / "in" / "cluster=pay%2Feu" / "date=2026-11-21", pieces)
    place = tmp_path / "in"
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
    done = judge_nights(warehouse, Question(expected=read_expected(str(expected))))
    assert done.verdict is not None
    assert (done.verdict.silent, done.verdict.is_violated) == (("y",), True)
    assert "silent: y" in done.verdict.line
    expected.write_text("# nobody\n")
    assert "the file names no cluster" in refusal(DataError, read_expected, str(expected)).message


def test_inputs_that_stand_for_nothing_and_labels_of_a_path(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    for given in (tmp_path, tmp_path / "none", tmp_path / "*.json"):
        assert "no file found" in refusal(DataError, find_files, [str(given)]).message
    assert find_files(["s3a://bucket/x"]) == ([], ["s3a://bucket/x"])
    unit = "/d/cluster=a/date=2026-11-20/cluster=b"
    found = labels(f"{unit}/group=g%2Fh/x.json")
    assert (found.cluster, found.date, found.group, found.unit) == ("b", date(2026, 11, 20), "g/h", unit)
    assert labels("/d/date=2026-02-30/x.json").date is None


# -- changes from night to night ----------------------------------------------------------------------------------------

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


def judged(warehouse: Warehouse, tmp_path: Path, nights: dict[int, str], cluster: str = "x") -> tuple[date, ...]:
    """The nights that are judged once the warehouse has a cluster's snapshots of these days too."""
    files = {f"cluster={cluster}/date=2026-11-{day}/s.json": text for day, text in nights.items()}
    ingest_files(warehouse, write(tmp_path / "in", files))
    return judge_nights(warehouse).judged


def changes(warehouse: Warehouse, day: date) -> list[tuple[Any, ...]]:
    names = ("change", "queueId", "subject", "before", "after")
    return sorted((tuple(row[name] for name in names) for row in rows(warehouse, Changes, day)), key=repr)


def test_each_kind_of_change(warehouse: Warehouse, tmp_path: Path) -> None:
    avg, circle = "AllocateMessageQueueAveragely", "AllocateMessageQueueAveragelyByCircle"
    second = night(21, [A, C], [A, ""], queues=4, strategy=circle)
    judged(warehouse, tmp_path, {20: night(20, [A, B], [A, B], strategy=avg), 21: second})
    assert changes(warehouse, FIRST) == []
    found = changes(warehouse, SECOND)
    assert set(found) >= {
        ("consumer-joined", None, C, None, None), ("consumer-left", None, B, None, None),
        ("queue-count", None, None, "2", "4"), ("queue-moved", 1, None, B, None),
        ("strategy", None, None, "AVG", "AVG_BY_CIRCLE"),
    }  # fmt: skip
    assert "finding-new" in {kind for kind, *_ in found}
    assert {row["previous"] for row in rows(warehouse, Changes)} == {FIRST}


def test_a_late_snapshot_changes_its_night_and_the_next_one(warehouse: Warehouse, tmp_path: Path) -> None:
    nights = {20: night(20, [A], [A, A]), 22: night(22, [B], [B, B])}
    assert judged(warehouse, tmp_path, nights) == (FIRST, THIRD)
    assert judge_nights(warehouse).judged == ()
    assert {row["previous"] for row in rows(warehouse, Changes, THIRD)} == {FIRST}
    assert judged(warehouse, tmp_path, {21: night(21, [B], [B, B])}) == (SECOND, THIRD)
    assert ("queue-moved", 0, None, A, B) in changes(warehouse, SECOND)
    assert changes(warehouse, THIRD) == []
    before = everything(warehouse)
    assert len(judge_nights(warehouse, force=True).judged) == 3
    assert everything(warehouse) == before


def test_a_cluster_that_one_night_lacks_has_no_changes(warehouse: Warehouse, tmp_path: Path) -> None:
    judged(warehouse, tmp_path, {20: night(20, [A], [A, A])}, cluster="y")
    judged(warehouse, tmp_path, {21: night(21, [A], [A, A])})
    assert rows(warehouse, Changes) == []
