"""Groups and consumers as people see them: which columns a narrow terminal keeps, and what is said in few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Group, all_groups, assumption, gaps
from rmqlb.engine.show_groups import consumers_of, overview
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.snapshot import Unread
from rmqlb.views.report import Report, Rows
from rmqlb.views.row_changes import row_changes
from rmqlb.views.show_groups import consumers_report, groups_report
from tests.engine.check.clusters import cluster, members
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

FINE = members("x y", name="fine", owners="x x y y", lag={0: 1_500, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 7, 1: 0})


def shown(*groups: ConsumerGroup) -> Report:
    snapshot = cluster(*groups)
    return groups_report(overview(snapshot, all_groups(snapshot), Settings()))


def verdict(group: ConsumerGroup) -> str:
    snapshot = cluster(group)
    found = consumers_of(
        Group(snapshot, group.group, Settings(), assumption(snapshot, group.group), gaps(snapshot)), ()
    )
    return consumers_report(found).facts[0]


def head(report: Report, width: int) -> str:
    lines = on_a_terminal(report, width).splitlines()
    return " ".join(lines[lines.index("groups".ljust(len(lines[2]))) + 1].split())


@every_case("width", [30, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = members("x x", name="g" * 70, owners="x x - -")
    assert max(map(len, on_a_terminal(shown(FINE, BAD, long), width).splitlines())) <= width


def test_figures_that_are_0_everywhere_are_left_out_and_partly_known_lag_has_a_plus() -> None:
    assert head(shown(FINE), 200) == "group topics consumers queues lag strategy imbalance"
    lines = on_a_terminal(shown(FINE, BAD), 200).splitlines()
    for name, lag in (("bad", "7+"), ("fine", "1,500")):
        assert lag in next(line for line in lines if name in line)


@every_case(
    ("group", "text"),
    [
        (FINE, "fine, 2 consumers: lag 1,500, all of it on x; in order, 4 queues"),
        (
            members("x y", owners="x x y y", lag={0: 3, 1: 0, 2: 1, 3: 0}),
            "g, 2 consumers: lag 4, 75% of it on x; in order, 4 queues",
        ),
        (members("x y", owners="x x y y", lag={0: 1, 1: 0, 2: 1, 3: 0}), "g, 2 consumers: in order, 4 queues"),
        (BAD, "bad, 1 consumer (2 processes): 2 of 4 queues unassigned; 1 duplicate client ID x"),
        (
            members("x y", owners="x y x y"),
            "g, 2 consumers: observed owners of 2 of 4 queues differ from the prediction",
        ),
        (
            members("", owners="- - - -", lag={0: 1, 1: 0, 2: 0, 3: 0}),
            "g, 0 consumers: no consumer is visible, 1 message left waiting",
        ),
        (members(""), "g, 0 consumers: no consumer is visible"),
        (
            members("x", consume_type="CONSUME_POP"),
            "g, 1 consumer: group g: several consumers take messages from one queue by POP; none of them owns it",
        ),
    ],
)
def test_the_verdict_on_one_group(group: ConsumerGroup, text: str) -> None:
    assert verdict(group) == text


def test_many_findings_are_a_few_words() -> None:
    ids = " ".join(f"{name} {name}" for name in "abcde")
    twice = groups_report(overview(cluster(members(ids)), ["g"], Settings())).sections[0].rows[0]
    assert twice[-1] == "duplicate-client-id: a, b, c and 2 more; 2 of 4 queues unassigned"
    unread = tuple(Unread("member", "g", f"late {number}", name) for number, name in enumerate("xy"))
    parts = (*unread, Unread("offsets", "g", "timed out", "b"), Unread("stored-offsets", "g", "timed out", "b"))
    snapshot = replace(cluster(members("x y", owners="x x y y")), unread=parts)
    row = groups_report(overview(snapshot, ["g"], Settings())).sections[0].rows[0]
    assert row[-1] == "unread: not read: consumer x of group g and 1 more: late 0; and 2 more findings"


def test_a_group_that_is_looked_at_again_with_the_same_findings_has_not_changed() -> None:
    """The evidence of its findings has the time of each look."""
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)

    def rows(at: datetime, *groups: ConsumerGroup) -> Rows:
        snapshot = replace(cluster(*groups), taken_at=at)
        report = groups_report(overview(snapshot, all_groups(snapshot), Settings()))
        assert report.rows is not None
        return report.rows

    first, later = rows(at, BAD), rows(at + timedelta(seconds=10), BAD)
    assert list(first) != list(later)
    assert list(row_changes("", first, later)) == []
    worse = replace(BAD, queues={**BAD.queues, **{q: replace(s, owners=frozenset()) for q, s in BAD.queues.items()}})
    assert [each.change for each in row_changes("", first, rows(at, worse))] == ["changed"]
