"""A generated fleet is what its shape says, and what rmqlb reads and plans."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import date
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.pop_and_proxy import popped_topics
from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.java import sort_key
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.report import Report
from tests.support.mismatches import every_case
from tests.support.synthetic.files import Damage, FleetFiles
from tests.support.synthetic.generate import generate
from tests.support.synthetic.reading import files, good, moves_of, read
from tests.support.synthetic.shape import FleetShape
from tests.support.synthetic.summary import FleetSummary

FEW = FleetShape(seed=7, groups=60, topics=24, days=4, odd_names=0.5, churn=0.5, faults=0.5)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FleetSummary]:
    folder = tmp_path_factory.mktemp("fleet") / "few"
    return folder, generate(msgspec.structs.replace(FEW, bad_files=7), str(folder))


def test_equal_shapes_give_equal_bytes(fleet: tuple[Path, FleetSummary], tmp_path: Path) -> None:
    generate(msgspec.structs.replace(FEW, bad_files=7), str(tmp_path / "again"))
    assert files(tmp_path / "again") == files(fleet[0])


def test_another_seed_gives_another_fleet(fleet: tuple[Path, FleetSummary], tmp_path: Path) -> None:
    generate(msgspec.structs.replace(FEW, seed=8), str(tmp_path))
    ours = files(fleet[0])
    assert all(body != ours[name] for name, body in files(tmp_path).items())


def test_a_snapshot_has_the_envelope_of_fetch_routes(fleet: tuple[Path, FleetSummary]) -> None:
    path = min(fleet[0].rglob("snapshot.json.gz"))
    document = json.loads(gzip.decompress(path.read_bytes()))
    report = Report("rmqlb/snapshot", document["data"], (), (), {})
    expected = json.loads(as_json(envelope(report, "fetch-routes", read(path), ())))
    assert list(document) == list(expected)
    assert document | {"source": None} == expected | {"source": None}
    assert document["source"]["takenAt"] == expected["source"]["takenAt"] == "2026-11-01T02:00:07Z"


def test_a_snapshot_is_of_its_folders_cluster_and_date(fleet: tuple[Path, FleetSummary]) -> None:
    for path in fleet[0].rglob("snapshot.json.gz"):
        snapshot = read(path)
        assert {broker.cluster for seen in snapshot.routes.values() for broker in seen.route.broker_datas} == {
            path.parent.parent.name.removeprefix("cluster=")
        }
        assert snapshot.taken_at is not None
        assert f"date={snapshot.taken_at.date()}" == path.parent.name


def test_the_summary_counts_what_the_files_hold(fleet: tuple[Path, FleetSummary]) -> None:
    folder, summary = fleet
    snapshots = good(folder)
    pairs = [
        len(snapshot.route(topic).subscribe_queues())
        for snapshot in snapshots
        for group in snapshot.groups.values()
        for topic in group.topics or ()
        if topic in snapshot.routes
    ]
    written = files(folder)
    assert summary.files == len(written) == 3 * 4 + 7
    assert summary.bytes == sum(map(len, written.values()))
    assert summary.snapshots == len(snapshots) == 12
    assert summary.clusters == 3
    assert summary.topics == sum(len(snapshot.routes) for snapshot in snapshots)
    assert summary.groups == sum(len(snapshot.groups) for snapshot in snapshots) == 4 * 60
    assert (summary.pairs, summary.queues) == (len(pairs), sum(pairs))
    assert summary.observed == sum(len(group.queues) for snapshot in snapshots for group in snapshot.groups.values())


def test_damaged_documents_are_listed_and_refused(fleet: tuple[Path, FleetSummary]) -> None:
    folder, summary = fleet
    assert {bad.damage for bad in summary.bad_files} == set(Damage)
    assert sorted(bad.file for bad in summary.bad_files) == [name for name in files(folder) if "damaged-" in name]
    for bad in summary.bad_files:
        with pytest.raises(DocumentError):
            read(folder / bad.file)


def test_as_lines_the_nights_are_the_same_and_damaged_ones_stand_among_them(
    fleet: tuple[Path, FleetSummary], tmp_path: Path
) -> None:
    summary = generate(msgspec.structs.replace(FEW, bad_files=7, layout="jsonl"), str(tmp_path))
    bad = {(each.file, each.position) for each in summary.bad_files if each.file.endswith("jsonl")}
    assert len(bad) == 4  # of seven, two truncated ones and an empty one are files of their own
    lines = [
        line
        for path in sorted(tmp_path.rglob("*.jsonl"))
        for position, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1)
        if (str(path.relative_to(tmp_path)), position) not in bad
    ]
    assert lines == [gzip.decompress(path.read_bytes()) for path in sorted(fleet[0].rglob("snapshot.json.gz"))]


def test_asked_for_sizes_are_met_to_the_row(tmp_path: Path) -> None:
    summary = generate(FleetShape(queues=6000, pairs=400, topics=90, clusters=2, observed=False), str(tmp_path))
    assert (summary.clusters, summary.topics, summary.groups) == (2, 90, 160)
    assert (summary.pairs, summary.queues, summary.observed) == (400, 6000, 0)


def test_most_topics_and_groups_are_small_and_some_are_large(tmp_path: Path) -> None:
    generate(FleetShape(groups=400, topics=300, observed=False, faults=0, other_clients=0), str(tmp_path))
    snapshots = good(tmp_path)
    topics = sorted(len(seen.route.subscribe_queues()) for each in snapshots for seen in each.routes.values())
    members = sorted(len(group.client_ids or ()) for each in snapshots for group in each.groups.values())
    readers = Counter(
        (n, topic) for n, each in enumerate(snapshots) for g in each.groups.values() for topic in g.topics or ()
    )
    assert topics[150] <= 12
    assert topics[-1] >= 64
    assert members[0] == 1
    assert members[200] <= 5
    assert 30 <= members[-1] <= 64
    assert max(n for (_, topic), n in readers.items() if not topic.startswith(RETRY_PREFIX)) >= 20


def test_names_come_that_java_and_python_sort_differently(fleet: tuple[Path, FleetSummary]) -> None:
    snapshots = good(fleet[0])
    lists = [list(group.client_ids or ()) for each in snapshots for group in each.groups.values()]
    brokers = {
        queue.broker_name for each in snapshots for seen in each.routes.values() for queue in seen.route.queue_datas
    }
    assert any(sorted(ids) != ids for ids in lists)
    assert sorted(brokers) != sorted(brokers, key=sort_key)
    names = "".join(name for each in snapshots for name in (*each.routes, *each.groups))
    assert set(" $\"'=,;<&\\/") <= set(names)
    assert any(len(name) > 200 for each in snapshots for name in (*each.routes, *each.groups))
    assert any("@" in broker for broker in brokers)


def test_who_stays_keeps_its_id_and_others_come_and_go(fleet: tuple[Path, FleetSummary]) -> None:
    nights = good(fleet[0])[:4]
    stayed = came = left = 0
    for before, after in pairwise(nights):
        for name, group in before.groups.items():
            old, new = set(group.client_ids or ()), set(after.groups[name].client_ids or ())
            stayed, came, left = stayed + len(old & new), came + len(new - old), left + len(old - new)
    assert stayed > came > 0
    assert stayed > left > 0


def test_nobody_comes_or_goes_without_churn_and_faults(tmp_path: Path) -> None:
    shape = FleetShape(groups=20, topics=10, days=3, clusters=1, churn=0, faults=0)
    generate(shape, str(tmp_path))
    first, *later = good(tmp_path)
    assert first.unread == ()
    for snapshot in later:
        assert {name: group.client_ids for name, group in snapshot.groups.items()} == {
            name: group.client_ids for name, group in first.groups.items()
        }
        assert {q: s.owners for g in snapshot.groups.values() for q, s in g.queues.items()} == {
            q: s.owners for g in first.groups.values() for q, s in g.queues.items()
        }


def test_offsets_never_go_back_nor_beyond_the_end(fleet: tuple[Path, FleetSummary]) -> None:
    nights = good(fleet[0])[:4]
    grown = 0
    for before, after in pairwise(nights):
        for name, group in before.groups.items():
            for queue, old in group.queues.items():
                new = after.groups[name].queues.get(queue)
                if new is None:  # its broker is down
                    continue
                assert (new.broker_offset or 0) >= (old.broker_offset or 0)
                assert (new.consumer_offset or 0) >= (old.consumer_offset or 0)
                assert (new.lag or 0) >= 0
                grown += (new.consumer_offset or 0) > (old.consumer_offset or 0)
    assert grown > 100


def test_groups_of_one_topic_agree_about_its_end(fleet: tuple[Path, FleetSummary]) -> None:
    for snapshot in good(fleet[0]):
        ends: dict[object, set[int | None]] = {}
        for group in snapshot.groups.values():
            for queue, state in group.queues.items():
                ends.setdefault(queue, set()).add(state.broker_offset)
        assert all(len(values) == 1 for values in ends.values())


def test_a_broker_dies_and_returns(fleet: tuple[Path, FleetSummary]) -> None:
    def up(snapshot: ClusterSnapshot) -> set[str]:
        brokers = (broker for seen in snapshot.routes.values() for broker in seen.route.broker_datas)
        return {broker.broker_name for broker in brokers if broker.has_master}

    counts = [len(up(snapshot)) for snapshot in good(fleet[0])[:4]]
    assert min(counts[1:3]) < counts[0]
    assert max(counts) == counts[0]


def test_a_healthy_groups_owners_are_those_of_the_engines_plan(tmp_path: Path) -> None:
    shape = FleetShape(groups=60, topics=30, faults=0, odd_names=0.2, days=2, clusters=1, churn=0.5, other_clients=0.5)
    summary = generate(shape, str(tmp_path))
    assert summary.other_clients == dict.fromkeys(("cpp", "go", "grpc", "java-and-go", "pop"), 6)
    for snapshot in good(tmp_path):
        for group in snapshot.groups.values():
            if group.request_modes or group.polling_num:
                continue
            moves = moves_of(snapshot, group)
            assert moves
            assert [move.owners_observed for move in moves] == [move.owners_before for move in moves]


def test_other_clients_are_seen_as_brokers_tell_of_them(tmp_path: Path) -> None:
    shape = FleetShape(groups=40, topics=20, faults=0, clusters=1, days=2, churn=1.0, other_clients=0.5)
    generate(shape, str(tmp_path))
    kinds: Counter[str] = Counter()
    for snapshot in good(tmp_path):
        for group in snapshot.groups.values():
            languages = {each.language for view in group.views or () for each in view.connections}
            reported = {group.connection_of[i].language for i in reported_strategies(group)}
            assert reported <= {"JAVA"}  # the others do not report it
            owned = {state.owners is None for state in group.queues.values()}
            if group.request_modes:
                assert (languages, owned) == ({"JAVA"}, {True})
                assert popped_topics(group) == set(group.own_topics or ())
            if group.polling_num:
                assert (group.client_ids, owned, group.reports) == ((), {True}, {})
            kind = (
                "pop" if group.request_modes else "grpc" if group.polling_num else "+".join(sorted(map(str, languages)))
            )
            kinds[kind] += 1
    assert kinds == {"JAVA": 40, **dict.fromkeys(("GO+JAVA", "GO", "CPP", "pop", "grpc"), 8)}


@every_case(
    ("values", "problem"),
    [
        ({"clusters": 5, "topics": 4, "groups": 9}, "4 topics in 5 clusters"),
        ({"groups": 10, "pairs": 9}, "9 pairs for 10 groups"),
        ({"groups": 10, "topics": 3, "pairs": 500, "clusters": 1}, "500 pairs are more than 10 groups and 3 topics"),
        ({"pairs": 100, "queues": 99}, "99 queues for 100 pairs"),
        ({"pairs": 100, "queues": 100_000}, "100000 queues for 100 pairs"),
        ({"faults": 1.5}, "faults: 1.5 is not between 0 and 1"),
        ({"seed": -1}, "seed: -1"),
        ({"layout": "xml"}, "unknown layout xml"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        FleetShape(**values)  # type: ignore[arg-type]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        generate(FleetShape(), str(tmp_path))
    with pytest.raises(UsageError, match="cannot write to"):
        generate(FleetShape(), str(tmp_path / "note"))
    assert files(tmp_path) == {"note": b"mine"}


@pytest.mark.parametrize("layout", ["json", "jsonl"])
def test_a_run_that_ends_within_a_file_leaves_the_file_of_before(layout: str, tmp_path: Path) -> None:
    made = FleetFiles(str(tmp_path), layout)
    with made.of("east"):
        made.add(date(2026, 11, 1), b"of before")
    before = files(tmp_path)
    again = FleetFiles(str(tmp_path), layout)
    with pytest.raises(TypeError), again.of("east"):
        again.add(date(2026, 11, 1), None)  # type: ignore[arg-type]  # what cannot be written
    assert files(tmp_path) == before
