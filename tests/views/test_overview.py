from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import all_groups
from rmqlb.engine.show_groups import overview
from rmqlb.model.group import ConsumerGroup
from rmqlb.views.report import Report, Rows
from rmqlb.views.row_changes import row_changes
from rmqlb.views.show_groups import groups_report
from tests.engine.check.clusters import cluster, members
from tests.views.shown import on_a_terminal

FINE = members("x y", name="fine", owners="x x y y", lag={0: 1_500, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 7, 1: 0})


def shown(*groups: ConsumerGroup, at: datetime | None = None) -> Report:
    snapshot = replace(cluster(*groups), taken_at=at)
    return groups_report(overview(snapshot, all_groups(snapshot), Settings()))


def test_no_line_is_wider_than_the_terminal_and_figures_that_are_0_everywhere_are_left_out() -> None:
    long = members("x x", name="g" * 70, owners="x x - -")
    for width in (30, 60, 80, 120):
        assert max(map(len, on_a_terminal(shown(FINE, BAD, long), width).splitlines())) <= width
    lines = on_a_terminal(shown(FINE), 200).splitlines()
    assert "group topics consumers queues lag strategy imbalance" in [" ".join(line.split()) for line in lines]
    lines = on_a_terminal(shown(FINE, BAD), 200).splitlines()
    for name, lag in (("bad", "7+"), ("fine", "1,500")):
        assert lag in next(line for line in lines if name in line)


def test_a_group_that_is_looked_at_again_with_the_same_findings_has_not_changed() -> None:
    """The evidence of its findings has the time of each look."""
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)

    def rows(at: datetime, group: ConsumerGroup) -> Rows:
        found = shown(group, at=at).rows
        assert found is not None
        return found

    first, later = rows(at, BAD), rows(at + timedelta(seconds=10), BAD)
    assert list(first) != list(later)
    assert list(row_changes("", first, later)) == []
    worse = replace(BAD, queues={queue: replace(s, owners=frozenset()) for queue, s in BAD.queues.items()})
    assert [each.change for each in row_changes("", first, rows(at, worse))] == ["changed"]
