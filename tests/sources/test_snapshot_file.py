from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from rmqlb.errors import DocumentError
from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.views.formats.machine import as_json, as_yaml, envelope
from rmqlb.views.report import Report
from tests.support.mismatches import every_case

from .strategies import SNAPSHOTS

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "cluster.json"
ALL = Wanted(evidence=True)


def whole(snapshot: ClusterSnapshot) -> dict[str, Any]:
    report = Report("rmqlb/snapshot", to_document(snapshot), (), (), {})
    return dict(msgspec.to_builtins(envelope(report, "a test", snapshot, ())))


def read(text: str, wanted: Wanted = ALL) -> ClusterSnapshot:
    snapshot = DumpSource("-", stdin=io.BytesIO(text.encode())).fetch(wanted)
    return ClusterSnapshot(
        snapshot.kind, "snapshot", snapshot.taken_at, snapshot.routes, snapshot.groups, snapshot.unread
    )


def snapshot_text(data: dict[str, Any], version: object = "1.0", **more: object) -> str:
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": version, "data": data, **more})


def only_group(**fields: object) -> ConsumerGroup:
    return read(snapshot_text({"groups": [{"group": "g", **fields}]})).group("g")


def problem(text: str, wanted: Wanted = ALL) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(text, wanted)
    return caught.value


@settings(max_examples=100, deadline=None)
@given(SNAPSHOTS)
def test_what_is_written_is_read_back_and_written_again_to_the_byte(snapshot: ClusterSnapshot) -> None:
    text = as_json(whole(snapshot))
    assert read(text) == read(as_yaml(whole(snapshot))) == snapshot
    assert as_json(whole(read(text))) == text


def test_a_newer_major_version_or_none_is_refused_before_the_fields_are_read() -> None:
    for version in ("3.0", "3", "10.3"):
        error = problem(snapshot_text({"topics": "another shape"}, version))
        assert error.message == f"stdin: snapshot format {version} is newer than this program reads (2.0)"
        assert error.hint == "use a newer rmqlb"
    odd: tuple[object, ...] = ("", "x", "²", "1x", "-1", "9" * 5000, None, True, [1])
    for error in (problem(snapshot_text({}, version)) for version in odd):
        assert error.message.startswith("stdin: the snapshot's formatVersion is ")
        assert (len(error.message) < 100, error.hint) == (True, "write '2.0'")


def test_an_older_or_newer_minor_version_is_read_without_its_new_keys() -> None:
    for version in ("2.0", "2.7", "2", "1.0", "1.7", "1.0.1", "0.9"):
        data = {"groups": [{"group": "g", "mood": "good"}], "weather": []}
        assert list(read(snapshot_text(data, version, extra={"a": [1]})).groups) == ["g"]
    assert list(read("schema: rmqlb/snapshot\nformatVersion: 1.0\ndata: {groups: [{group: g}]}").groups) == ["g"]


def test_what_is_left_out_or_null_is_unknown_and_what_is_empty_is_empty() -> None:
    assert only_group() == ConsumerGroup("g", Seen("stdin"))
    queue = {"topic": "T", "brokerName": "a", "queueId": 0}
    group = only_group(views=[], topics=[], queues=[{**queue, "owners": None}, {**queue, "queueId": 1, "owners": []}])
    assert (group.client_ids, group.topics) == ((), ())
    assert list(group.queues.values()) == [QueueState(owners=None), QueueState(owners=frozenset())]
    assert list(group.queues) == [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    assert only_group(clientIds=["b", "a", "b"]).client_ids == ("a", "b", "b")
    assert only_group(clientIds=[]).client_ids == ()


def test_parts_without_a_time_take_the_snapshots_and_a_time_without_a_zone_is_utc() -> None:
    group = {"group": "g", "seen": {"where": "x", "at": "2026-11-01T02:00:00"}}
    data = {"topics": [{"topic": "T", "route": {}}], "groups": [group]}
    found = read(snapshot_text(data, source={"takenAt": "2026-11-01T00:00:00"}))
    assert found.routes["T"].seen == Seen("stdin", datetime(2026, 11, 1, tzinfo=UTC))
    assert found.taken_at == datetime(2026, 11, 1, tzinfo=UTC)
    assert found.group("g").seen == Seen("x", datetime(2026, 11, 1, 2, tzinfo=UTC))


def test_a_part_that_was_not_read_has_a_name() -> None:
    found = read(snapshot_text({"unread": [{"what": "group g", "reason": "timed out"}]})).unread
    assert found == (Unread("other", "group g", "timed out"),)
    assert "has a name" in problem(snapshot_text({"unread": [{"kind": "group", "reason": "timed out"}]})).message


def test_only_the_wanted_group_and_its_topics_are_kept() -> None:
    snapshot = read(EXAMPLE.read_text(), Wanted(group="bill-svc"))
    assert (list(snapshot.groups), list(snapshot.routes)) == (["bill-svc"], ["Skewed"])


def one_group(**fields: object) -> dict[str, object]:
    return {"groups": [{"group": "g", **fields}]}


GROUP0 = "$.data.groups[0]"


@every_case(
    ("data", "message"),
    [
        ({"topics": [{"topic": "T"}]}, "Object missing required field route at $.data.topics[0]"),
        ({"topics": [{"topic": 1, "route": {}}]}, "Expected str, got int at $.data.topics[0].topic"),
        ({"topics": None}, "Expected array, got null at $.data.topics"),
        ({"groups": [{}]}, f"Object missing required field group at {GROUP0}"),
        (one_group(views=[{}]), f"Object missing required field connections at {GROUP0}.views[0]"),
        (one_group(clientIds="a"), f"Expected array | null, got str at {GROUP0}.clientIds"),
        (one_group(queues=[{"topic": "T", "brokerName": "a", "queueId": "0"}]), f"Expected int, got str at {GROUP0}.queues[0].queueId"),
        (one_group(seen={"where": "x", "at": "soon"}), f"Invalid RFC3339 encoded datetime at {GROUP0}.seen.at"),
        (one_group(reports=[{"clientId": "a", "evidence": {"queues": {}}}]), f"Expected array | null, got object at {GROUP0}.reports[0].evidence.queues"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_by_its_path(data: dict[str, Any], message: str) -> None:
    assert problem(snapshot_text(data)).message == f"stdin: {message}"
    as_yaml_text = as_yaml({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})
    assert problem(as_yaml_text).message == f"stdin: {message}"
