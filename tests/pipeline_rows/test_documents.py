"""Files into documents, and what each says."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest import documents as docs
from rmqlb.pipeline.ingest.files import Told

ROOT = Path(__file__).parents[2]
HERE = Told("/d")


def snapshot(taken_at: str | None = "2026-11-21T02:02:07Z", **data: Any) -> bytes:
    value = {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "source": {"takenAt": taken_at}, "data": data}
    return json.dumps(value).encode()


def read(body: bytes, told: Told = HERE) -> docs.Read:
    return docs.read_document(body, "x.json", told)


@pytest.mark.parametrize(
    ("body", "documents"),
    [
        (b"", [b""]),
        (b" \n\t\n", [b""]),
        (b'\n{"a": 1}\n', [b'{"a": 1}']),
        (b'{\n"a":\n{"b": 1}\n}', [b'{\n"a":\n{"b": 1}\n}']),
        (b'[\n{"a": 1},\n{"b": 2}\n]', [b'[\n{"a": 1},\n{"b": 2}\n]']),
        (b'{"a": 1}\n\n{"b": 2}', [b'{"a": 1}', b'{"b": 2}']),
        (b'{"a": 1}\r\n{"b": 2}\r\n', [b'{"a": 1}', b'{"b": 2}']),
        (b'{"a": 1}\n{"b": 2}\n{"c": ', [b'{"a": 1}', b'{"b": 2}', b'{"c":']),
        (b'{"a": 1\n{"b": 2}', [b'{"a": 1', b'{"b": 2}']),
        (b'garbage\n{"b": 2}\nmore', [b"garbage", b'{"b": 2}', b"more"]),
        (b'{"a": 1}\n\x00\x01\n{"b": 2}', [b'{"a": 1}', b"\x00\x01", b'{"b": 2}']),
        (b'{"a": 1}\n\xff\xfe\n{"b": 2}', [b'{"a": 1}', b"\xff\xfe", b'{"b": 2}']),
        (b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n', [b'{\n  "a": 1\n}', b'{\n  "b": 2\n}']),
        (b'{\n  "a": 1,\n{\n  "b": 2\n}\n', [b'{\n  "a": 1,', b'{\n  "b": 2\n}']),
        (b"schema: rmqlb/snapshot\ndata: {}\n", [b"schema: rmqlb/snapshot\ndata: {}"]),
        (b"RocketMQLog:WARN No appenders\n{0:1}\n", [b"{0:1}"]),
        (b"\xef\xbb\xbf" + b'{"a": 1}\n{"b": 2}', [b'{"a": 1}', b'{"b": 2}']),
    ],
)
def test_a_file_falls_into_its_documents(body: bytes, documents: list[bytes]) -> None:
    assert docs.split(body) == documents


@given(st.lists(st.dictionaries(st.text(), st.integers() | st.text(), min_size=1), min_size=1), st.data())
def test_a_bad_line_loses_no_other(values: list[dict[str, Any]], data: st.DataObject) -> None:
    lines = [json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode() for value in values]
    bad = data.draw(st.integers(0, len(lines)))
    short = lines[0][: data.draw(st.integers(1, len(lines[0]) - 1))]
    cut = [*lines[:bad], short, *lines[bad:]]
    found = docs.split(b"\n".join(cut))
    assert [line for line in lines if line not in found] == []
    assert len(found) == len(lines) + 1


def test_every_example_of_one_document_stays_whole() -> None:
    files = [*(ROOT / "tests/data/mqadmin").glob("*topicRoute*"), *(ROOT / "tests/data/dashboard").glob("*.json")]
    assert len(files) > 30
    assert {file.name: len(docs.split(file.read_bytes())) for file in files} == dict.fromkeys(
        (f.name for f in files), 1
    )


def test_gzip_is_unpacked_and_a_file_without_it_is_as_it_is() -> None:
    assert docs.unpacked(gzip.compress(b"{}"), "x") == docs.unpacked(b"{}", "x") == b"{}"


def test_gzip_cut_short_is_refused() -> None:
    with pytest.raises(DataError, match="x: the compressed data is cut short"):
        docs.unpacked(gzip.compress(b"{}")[:-4], "x")


def test_a_document_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "DEFAULT_LIMIT", 10)
    with pytest.raises(DataError, match="larger than 10 bytes"):
        read(snapshot())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "x.json is empty; expected a snapshot, a route or a Dashboard response"),
        (
            snapshot().replace(b'"1.0"', b'"2.0"'),
            "x.json: snapshot format 2.0 is newer than this program reads (1.0); use a newer rmqlb",
        ),
        (snapshot(topics=[{"topic": "T"}]), "x.json: Object missing required field route at $.data.topics[0]"),
        (snapshot()[:-20], "x.json, line 1, column 92: the text ends too early"),
        (
            b'{"queueDatas": [], "brokerDatas": []}',
            "x.json is the route of one topic and does not name it; name it in the path: …/topic=NAME/…",
        ),
        (b"\xff\xff", "x.json, byte 0: it is not UTF-8 text"),
        (b"[" + snapshot() + b"," + snapshot() + b"]", "x.json: 2 snapshots in one document; write one a line"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(body: bytes, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        read(body)
    assert docs.reason_of(caught.value) == reason


def test_an_error_of_another_kind_is_said_with_its_type() -> None:
    assert docs.reason_of(OverflowError("too\n large")) == "OverflowError: too large"


def test_a_route_without_a_name_is_that_of_the_topic_in_the_path() -> None:
    body = (ROOT / "examples/topicRoute-Skewed.txt").read_bytes()
    found = read(body, Told("/d", topic="Skewed"))
    assert (found.kind, list(found.snapshot.routes)) == ("pieces", ["Skewed"])


def test_a_name_in_the_path_takes_nothing_away_from_a_snapshot() -> None:
    import yaml

    body = yaml.safe_dump(json.loads((ROOT / "examples/cluster.json").read_bytes())).encode()
    found = read(body, Told("/d", topic="Skewed", group="bill-svc"))
    assert found.kind == "snapshot"
    assert (len(found.snapshot.routes), len(found.snapshot.groups)) == (2, 3)


@pytest.mark.parametrize(
    ("body", "taken_at"),
    [
        (snapshot("2026-11-21T02:02:07Z"), datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)),
        (snapshot("2026-11-21T02:02:07+08:00"), datetime(2026, 11, 20, 18, 2, 7, tzinfo=UTC)),
        (snapshot("2026-11-21T02:02:07"), datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)),
        (snapshot(None), None),
        (
            snapshot(
                None,
                groups=[
                    {"group": "g", "seen": {"where": "w", "at": "2026-11-21T02:00:00Z"}},
                    {"group": "h", "seen": {"where": "w", "at": "2026-11-21T02:05:00Z"}},
                ],
            ),
            datetime(2026, 11, 21, 2, 5, tzinfo=UTC),
        ),
    ],
)
def test_when_a_snapshot_was_taken(body: bytes, taken_at: datetime | None) -> None:
    assert read(body).taken_at == taken_at


def test_the_cluster_is_that_of_the_brokers() -> None:
    def route(*clusters: str) -> dict[str, Any]:
        return {"brokerDatas": [{"brokerName": c, "cluster": c} for c in clusters]}

    two = snapshot(topics=[{"topic": "T", "route": route("b", "a")}, {"topic": "U", "route": route("b", "")}])
    assert docs.cluster_of(read(two).snapshot) == "a,b"
    assert docs.cluster_of(read(snapshot()).snapshot) == "unknown"


@pytest.mark.parametrize("name", ["a\0b", "x" * 201, "é" * 34, "__HIVE_DEFAULT_PARTITION__"])
def test_a_cluster_that_no_folder_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="cannot be that of a folder"):
        docs.check_cluster(name)


def test_a_snapshot_is_the_same_wherever_it_lies_and_one_without_a_time_is_that_of_its_night() -> None:
    def name(body: bytes, told: Told) -> str:
        return docs.snapshot_id(read(body), docs.digest(body), told)

    night = [Told("/a", "c", date(2026, 1, 1)), Told("/b", "c", date(2026, 1, 2))]
    assert name(snapshot(), night[0]) == name(snapshot(), night[1]) == docs.digest(snapshot())[:16]
    assert name(snapshot(None), night[0]) != name(snapshot(None), night[1])
    assert name(snapshot(None), Told("/a")) == name(snapshot(None), Told("/b"))


def test_pieces_of_one_folder_cluster_and_date_go_together() -> None:
    one = docs.pieces_id(Told("/a", "c", date(2026, 1, 1)))
    assert one == docs.pieces_id(Told("/a", "c", date(2026, 1, 1), topic="T"))
    others = [Told("/b", "c", date(2026, 1, 1)), Told("/a", "d", date(2026, 1, 1)), Told("/a", "c"), Told("/a")]
    assert len({one, *map(docs.pieces_id, others)}) == 5
    assert one.startswith("pieces-")
    assert len(one) == len("pieces-") + 12
