import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import all_groups
from rmqlb.engine.show_groups import overview
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.owners import OwnersReport
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.views.report import Report
from rmqlb.views.route_view import route_report
from rmqlb.views.row_changes import row_changes
from rmqlb.views.show_groups import groups_report
from rmqlb.views.show_owners import owners_report
from tests.cli.run import EXAMPLE, ROOT, data_of, run
from tests.engine.check.clusters import cluster, members
from tests.support.builders import HERE, route, snapshot_text
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal


def snapshot(*owners: str) -> str:
    queue = {"topic": "T", "brokerName": "a"}
    states = [{**queue, "queueId": queue_id, "owners": ids.split()} for queue_id, ids in enumerate(owners)]
    return snapshot_text("T", number=4, clientIds=["a", "b"], topics=["T"], queues=states)


def report_of(*owners: str, **more: Any) -> Report:
    data = data_of("show-owners", "-s", "-", stdin=snapshot(*owners))
    return owners_report(msgspec.convert(data | more, OwnersReport))


@every_case(("owners", "grave"), [
    (("a", "a", "b", "b"), "inOrder"),
    (("a", "b", "a", "b"), "inOrder"),
    (("b", "b", "a", "a"), "warning"),
    (("a", "", "b", "b"), "error"),
    (("a", "a b", "b", "b"), "error"),
    ((), ""),
])  # fmt: skip
def test_the_verdict_is_as_grave_as_what_is_observed(owners: tuple[str, ...], grave: str) -> None:
    assert report_of(*owners).grave == grave


def test_by_pop_a_queue_that_no_consumer_may_read_is_a_warning() -> None:
    for consumers, grave in ([], "warning"), (["a"], ""), (None, ""):
        queue = {"brokerName": "x", "queueId": 0, "consumers": consumers}
        topic = {"topic": "T", "strategy": "AVG", "popShareQueueNums": [1], "assumed": False, "queues": [queue]}
        assert report_of(strategies=[], queues=[], popTopics=[topic]).grave == grave


@every_case(("owners", "options", "there", "missing"), [
    (("a", "", "a b", "a"), (), r"✗ +\(unassigned\) +1 +T +a 1 *\n✗ +a *\n? +b +1 +T +a 2", "not observed"),
    (("a", "", "a b", "a"), (), "3 queues whose observed owner AVG does not predict", "not observed"),
    (("a", "a", "a", "a"), (), "i +b +0 +idle", "✗"),
    (("a", "a"), (), r"\(not observed\) +2 +T a 2-3", "✗"),
    ((), ("--strategy", "CONSISTENT_HASH"), "summary", "observed owner|\nowners"),
    ((), ("--strategy", "CONSISTENT_HASH", "--all"), "queues per consumer", "observed owner"),
    ((), ("--strategy", "CONSISTENT_HASH", "--all"), "owners: T", "observed owner"),
])  # fmt: skip
def test_a_screen_has_what_matters(owners: tuple[str, ...], options: tuple[str, ...], there: str, missing: str) -> None:
    line = ("show-owners", "-s", "-", "-o", "table", "--strategy", "AVG", *options)
    shown = run(*line, stdin=snapshot(*owners)).stdout
    assert re.search(rf"(?m)^{there}", shown), shown
    assert not re.search(missing, shown), shown


@given(st.lists(st.sampled_from(["", "a", "b", "a b", "c"]), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_the_lines_add_up_to_the_queues(owners: list[str]) -> None:
    report = report_of(*owners).only((), screen=True)
    (owned,) = (section for section in report.sections if section.name == "owners")
    places = [column.key for column in owned.columns].index("queues")
    assert sum(row[places] for row in owned.rows) == 4  # type: ignore[misc]
    bad = [row for row in owned.rows if row[0] == "error"]
    number = sum(not each or " " in each for each in owners)
    assert sum(row[places] for row in bad) == number  # type: ignore[misc]
    assert report.grave == "error" or not bad


def test_what_strategies_together_do_not_predict_is_counted() -> None:
    report = report_of("a", "b", "b", "", strategiesReported={"AVG": 1, "AVG_BY_CIRCLE": 1}, mixedMismatches=3)
    differ = "observed owners of 3 of 4 queues differ from the prediction of AVG and AVG_BY_CIRCLE together"
    assert report.facts[0].endswith(differ)
    assert "mismatches" not in [section.name for section in report.sections]
    four_groups = str(ROOT / "examples" / "four-groups.yaml")
    for source, group, number in ((four_groups, "mix-svc", 0), (EXAMPLE, "order-svc", None)):
        assert data_of("show-owners", "-s", source, "-g", group)["mixedMismatches"] == number


def test_of_many_topics_some_are_named() -> None:
    report = report_of("a", "a", "b", "b", topics=[f"T{number}" for number in range(30)])
    assert report.facts[1].startswith("  30 topics T0, T1, T2 and 27 more · ")


FINE = members("x y", name="fine", owners="x x y y", lag={0: 1_500, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 7, 1: 0})


def shown(*groups: ConsumerGroup, at: datetime | None = None) -> Report:
    snapshot = replace(cluster(*groups), taken_at=at)
    return groups_report(overview(snapshot, all_groups(snapshot), Settings()))


def test_no_line_is_wider_than_the_terminal_and_figures_that_are_0_everywhere_are_left_out() -> None:
    long = members("x x", name="g" * 70, owners="x x - -")
    for width in (30, 60, 80, 120):
        assert max(map(len, on_a_terminal(shown(FINE, BAD, long), width).splitlines())) <= width
    words = " ".join(on_a_terminal(shown(FINE), 200).split())
    assert " group topics consumers queues lag strategy imbalance finding ─" in words
    lines = on_a_terminal(shown(FINE, BAD), 200).splitlines()
    for name, lag in (("bad", "7+"), ("fine", "1,500")):
        assert lag in next(line for line in lines if name in line)


def test_a_later_sample_with_the_same_findings_has_not_changed() -> None:
    at = datetime(2026, 11, 21, 2, tzinfo=UTC)

    def rows(at: datetime, group: ConsumerGroup) -> Any:
        return shown(group, at=at).rows

    first, later = rows(at, BAD), rows(at + timedelta(seconds=10), BAD)
    assert list(first) != list(later)
    assert list(row_changes("", first, later)) == []
    worse = replace(BAD, queues={queue: replace(s, owners=frozenset()) for queue, s in BAD.queues.items()})
    assert [each.change for each in row_changes("", first, rows(at, worse))] == ["changed"]


PARTLY = TopicRouteData("T", (QueueData("a", 4, 2, 6), QueueData("b", 2, 2, 4)), route(a=1, b=1).broker_datas)


@every_case(("found", "verdict", "grave"), [
    (route(a=4, b=2), "topic T: 6 readable and 6 writable queues on 2 brokers, each with a master", "inOrder"),
    (PARTLY, "topic T: 6 readable and 2 writable queues on 2 brokers, each with a master", "inOrder"),
    (route(masters=False, b=1, a=1), "topic T: 2 readable and 0 writable queues on 2 brokers; without a master: a, b", "error"),
    (route(perm=2, a=1), "topic T: 0 readable and 1 writable queues on 1 broker, each with a master", "error"),
    (TopicRouteData("T", (), (BrokerData("c", "a", {0: "a:1"}),)), "topic T: 0 readable and 0 writable queues on 1 broker, each with a master", "error"),
    (TopicRouteData("T", (), ()), "topic T: 0 readable and 0 writable queues on 0 brokers", "error"),
])  # fmt: skip
def test_the_first_line_counts_queues_and_brokers(found: TopicRouteData, verdict: str, grave: str) -> None:
    shown = route_report([RouteSighting(found, HERE)])
    assert (shown.facts, shown.grave) == ((verdict,), grave)
