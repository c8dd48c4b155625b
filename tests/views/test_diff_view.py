"""What is shown of two snapshots compared: the verdict first, the worst group first, how grave it is."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.diff.compare import compare_snapshots
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.diff import diff_report
from rmqlb.views.formats.people import as_plain
from rmqlb.views.report import Report
from tests.engine.diff.test_compare import ABC, T, cluster, group
from tests.support.builders import route


def shown(after: ClusterSnapshot, before: ClusterSnapshot = ABC) -> Report:
    return diff_report(compare_snapshots(before, after))


def groups(report: Report) -> list[tuple[object, ...]]:
    return [row for section in report.sections if section.name == "groups" for row in section.rows]


def test_without_a_difference_the_first_line_says_so_and_no_table_follows() -> None:
    report = shown(ABC)
    assert report.facts[0] == "no difference: 1 group and 1 topic compared"
    assert (report.grave, report.more, report.only(()).sections) == ("inOrder", "", ())
    assert report.only(()).table.name == "groups"


def test_moves_that_are_explained_are_no_alarm() -> None:
    report = shown(cluster(group("abcd", [T]), routes=[T]))
    moved = len(report.data.groups[0].queues)  # type: ignore[union-attr]
    assert report.facts[0] == f"1 of 1 group differs: {moved} queues changed owner, all explained"
    assert groups(report) == [("info", "g", "+ d", f"{moved} queues moved, as AVG predicts")]
    assert report.grave == ""
    assert report.more == f"--section queues lists {moved} queues whose owners differ"


def test_unassigned_queues_come_first_in_red() -> None:
    lost = dict.fromkeys(T.subscribe_queues(), ())
    bad = group("abc", [T], owners=lost)
    moved = replace(group("abcd", [T]), group="h")
    report = shown(cluster(moved, bad, routes=[T]), cluster(group("abc", [T]), group("abc", [T], name="h"), routes=[T]))
    assert report.facts[0].startswith("2 of 2 groups differ: 8 queues became unassigned; ")
    assert [row[:2] for row in groups(report)] == [("error", "g"), ("info", "h")]
    assert groups(report)[0][2:] == ("nothing that decides owners", "8 queues became unassigned, unexplained")
    assert report.grave == "error"


def test_duplicate_owners_are_told_with_the_queues_that_got_them() -> None:
    owners = dict(owners_at_rest([T], Members(("a", "b", "c"), "AVG")))
    owners[T.subscribe_queues()[0]] = ("a", "b")
    report = shown(cluster(group("abc", [T], owners=owners), routes=[T]))
    assert report.facts[0] == (
        "1 of 1 group differs: 1 queue has duplicate owners now; 1 queue changed owner; 1 queue unexplained"
    )
    assert groups(report)[0][3] == "1 queue moved, 1 with duplicate owners now, unexplained"


def test_what_decides_owners_and_moved_nothing_is_told_too() -> None:
    same = owners_at_rest([T], Members(("a", "b", "c"), "AVG"))
    report = shown(cluster(group("abcc", [T], owners=same), routes=[T]))
    assert groups(report)[0][:3] == ("warning", "g", "c: 1 → 2 processes")
    nothing = cluster(group("a", [route("T", a=0)]), routes=[route("T", a=0)])
    report = shown(cluster(group("b", [route("T", a=0)]), routes=[route("T", a=0)]), nothing)
    assert groups(report) == [("info", "g", "+ b; - a", "owners unchanged")]


def test_a_route_that_changed_says_what_of_it_and_who_has_more_queues() -> None:
    wider = route("T", a=4, b=4, c=2)
    text = as_plain(shown(cluster(group("abc", [wider]), routes=[wider])).only(()))
    assert "+ c (2 read, 2 write queues)" in text
    assert "g: 2 queues added" in text


def test_settings_lag_and_offsets_are_told() -> None:
    found = replace(group("abc", [T], lag=5), consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    report = shown(cluster(found, routes=[T]))
    assert report.facts[0] == (
        "1 of 1 group differs: no queue changed owner; lag +40 in g; offsets of 8 queues went back"
    )
    assert groups(report) == [("info", "g", "consumeFromWhere ? → CONSUME_FROM_FIRST_OFFSET", "")]
    assert "lag" in [section.name for section in report.only(()).sections]
