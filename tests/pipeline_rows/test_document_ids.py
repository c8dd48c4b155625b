"""By what names a document goes, and why it is rejected."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest import document_ids as ids
from rmqlb.pipeline.ingest.input_files import PathLabels
from rmqlb.sources.dump import Document, read_document
from tests.support.mismatches import every_case

ROOT = Path(__file__).parents[2]
HERE = PathLabels("/d")


def snapshot(taken_at: str | None = "2026-11-21T02:02:07Z", **data: Any) -> bytes:
    value = {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": {"takenAt": taken_at}, "data": data}
    return json.dumps(value).encode()


def read(body: bytes, labels: PathLabels = HERE) -> Document:
    return ids.FileDocument("x.json", 1, 1, body, labels).read()


def test_a_day_in_the_future_is_refused_and_tomorrow_of_another_time_zone_is_not() -> None:
    today = date(2026, 11, 21)
    for day in (None, today, date(2026, 11, 20)):
        assert ids.check_day(day, today, "x.json") == day
    with pytest.raises(DataError, match=r"x\.json: its date 2126-11-21 is in the future"):
        ids.check_day(date(2126, 11, 21), today, "x.json")
    assert timedelta(0) <= ids.last_day() - datetime.now(UTC).date() <= timedelta(1)


@every_case(
    ("body", "reason"),
    [
        (b"", "x.json is empty; expected a snapshot, a route or a Dashboard response"),
        (
            snapshot().replace(b'"1.0"', b'"3.0"'),
            "x.json: snapshot format 3.0 is newer than this program reads (2.0); use a newer rmqlb",
        ),
        (snapshot(topics=[{"topic": "T"}]), "x.json: Object missing required field route at $.data.topics[0]"),
        (snapshot()[:-20], "x.json, line 1, column 92: the text ends too early"),
        (
            b'{"queueDatas": [], "brokerDatas": []}',
            "x.json is the route of one topic and does not name it; name it in the path: …/topic=NAME/…",
        ),
        (
            b'[{"topic": "T", "queueStatInfoList": []}]',
            "x.json is about one group and does not name it; name it in the path: …/group=NAME/…",
        ),
        (b"\xff\xff", "x.json, byte 0: it is not UTF-8 text"),
        (b"[" + snapshot() + b"," + snapshot() + b"]", "x.json: 2 snapshots in one document; write one a line"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(body: bytes, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        read(body)
    assert ids.reason_of(caught.value) == reason


def test_the_snapshot_of_a_large_cluster_has_more_values_than_a_command_reads() -> None:
    many = snapshot(topics=[]).removesuffix(b"}}") + b',"x":[' + b"0," * 2_200_000 + b"0]}}"
    with pytest.raises(DataError, match="more than 2097152 values"):
        read_document(many, "x.json")
    assert read(many).kind == "snapshot"


def test_an_error_of_another_kind_is_said_with_its_type() -> None:
    assert ids.reason_of(OverflowError("too\n large")) == "OverflowError: too large"


def test_a_route_without_a_name_is_that_of_the_topic_in_the_path() -> None:
    body = (ROOT / "examples/topicRoute-Skewed.txt").read_bytes()
    found = read(body, PathLabels("/d", topic="Skewed"))
    assert (found.kind, list(found.snapshot.routes)) == ("pieces", ["Skewed"])


def test_a_name_in_the_path_takes_nothing_away_from_a_snapshot() -> None:
    import yaml

    body = yaml.safe_dump(json.loads((ROOT / "examples/cluster.json").read_bytes())).encode()
    found = read(body, PathLabels("/d", topic="Skewed", group="bill-svc"))
    assert found.kind == "snapshot"
    assert (len(found.snapshot.routes), len(found.snapshot.groups)) == (2, 3)


@every_case("name", ["a\0b", "x" * 201, "é" * 34, "__HIVE_DEFAULT_PARTITION__"])
def test_a_cluster_that_no_folder_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="cannot be that of a folder"):
        ids.check_cluster(name)


def test_a_snapshot_is_the_same_wherever_it_lies_and_one_without_a_time_is_that_of_its_night() -> None:
    def name(body: bytes, labels: PathLabels) -> str:
        return ids.snapshot_id(read(body), ids.digest(body), labels)

    night = [PathLabels("/a", "c", date(2026, 1, 1)), PathLabels("/b", "c", date(2026, 1, 2))]
    assert name(snapshot(), night[0]) == name(snapshot(), night[1]) == ids.digest(snapshot())[:16]
    assert name(snapshot(None), night[0]) != name(snapshot(None), night[1])
    assert name(snapshot(None), PathLabels("/a")) == name(snapshot(None), PathLabels("/b"))


def test_pieces_of_one_folder_cluster_and_date_go_together() -> None:
    one = ids.pieces_id(PathLabels("/a", "c", date(2026, 1, 1)))
    assert one == ids.pieces_id(PathLabels("/a", "c", date(2026, 1, 1), topic="T"))
    others = [
        PathLabels("/b", "c", date(2026, 1, 1)),
        PathLabels("/a", "d", date(2026, 1, 1)),
        PathLabels("/a", "c"),
        PathLabels("/a"),
    ]
    assert len({one, *map(ids.pieces_id, others)}) == 5
    assert one.startswith("pieces-")
    assert len(one) == len("pieces-") + 12
