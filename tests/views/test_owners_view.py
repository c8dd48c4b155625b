import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
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
from rmqlb.views.report import Report, Rows
from rmqlb.views.row_changes import row_changes
from rmqlb.views.show_groups import groups_report
from rmqlb.views.show_owners import owners_report
from tests.cli.run import EXAMPLE, ROOT, run
from tests.engine.check.clusters import cluster, members
from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal


def test_a_queue_that_only_a_config_list_names_is_nobodys_under_the_other_strategies(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"a": [{"topic": "Skewed", "brokerName": "broker-z", "queueId": 0}]}))
    asked = ("--topic", "Skewed", "--consumers", "a,b", "--strategy", "AVG", "--strategy", "CONFIG")
    line = ("show-owners", "-s", EXAMPLE, *asked, "--strategy-option", f"queues={config}", "--section", "queues")
    *_, last = run(*line, "-o", "plain").stdout.splitlines()
    assert last.split() == ["broker-z", "0", "(unassigned)", "a"]
    queue = json.loads(run(*line, "-o", "json").stdout)["data"]["queues"][-1]
    assert queue["owners"] == {"AVG": [], "CONFIG": ["a"]}


def snapshot(*owners: str) -> str:
    states = [
        {"topic": "T", "brokerName": "a", "queueId": queue_id, "owners": ids.split()}
        for queue_id, ids in enumerate(owners)
    ]
    return snapshot_text("T", number=4, clientIds=["a", "b"], topics=["T"], queues=states)


PIN = "--strategy PIN --strategy AVG --strategy-option host=elsewhere"


@every_case(("owners", "more", "line"), [
    (("a", "a", "b", "b"), "", "each of 4 queues has one observed owner, as AVG predicts"),
    (("a", "", "b", "a b"), "--strategy AVG", "1 of 4 queues is unassigned; 1 of 4 queues has duplicate owners; observed owners of 2 of 4 queues differ from the prediction of AVG"),
    (("b", "a", "b", "a"), "--strategy AVG", "each of 4 queues has one observed owner; observed owners of 2 of 4 queues differ from the prediction of AVG"),
    (("a", "a"), "--strategy AVG", "owners of 2 of 4 queues are observed, each has one, as AVG predicts"),
    ((), "--strategy AVG", "each of 4 queues gets one owner under AVG (no owner is observed)"),
    ((), f"--consumers a,b {PIN}", "predicted unassigned: 4 of 4 queues under PIN-AVG"),
    ((), "--consumers a,a,b --strategy AVG", "predicted unassigned: 1 of 4 queues under AVG; predicted read by several processes of one client ID: 2 of 4 queues under AVG"),
])  # fmt: skip
def test_the_first_line_says_what_the_cluster_reports(owners: tuple[str, ...], more: str, line: str) -> None:
    ran = run("show-owners", "-s", "-", "-o", "plain", *more.split(), stdin=snapshot(*owners))
    assert re.sub(r"^g, 2 consumers( \(3 processes\))?: ", "", ran.stdout.splitlines()[0]) == line


def report_of(*owners: str, **more: Any) -> Report:
    data = json.loads(run("show-owners", "-s", "-", "-o", "json", stdin=snapshot(*owners)).stdout)["data"]
    return owners_report(msgspec.convert(data | more, OwnersReport))


def screen(text: str, *more: str) -> str:
    return run("show-owners", "-s", "-", "-o", "table", *more, stdin=text).stdout


def test_a_screen_has_a_line_per_owner_what_is_bad_first() -> None:
    shown = screen(snapshot("a", "", "a b", "a"), "--strategy", "AVG")
    rows = [line.split() for line in shown.split("\nobserved owners")[1].splitlines()[3:6]]
    assert rows == [
        ["✗", "(unassigned)", "1", "T", "a", "1"],
        ["✗", "a", "b", "1", "T", "a", "2"],
        ["a", "2", "T", "a", "0,3"],
    ]
    assert "\n3 queues whose observed owner AVG does not predict" in shown


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


def test_an_idle_consumer_has_its_line() -> None:
    shown = screen(snapshot("a", "a", "a", "a"), "--strategy", "AVG")
    assert re.search(r"(?m)^i +b +0 +idle *$", shown), shown


def test_several_strategies_without_an_observed_owner_are_compared() -> None:
    shown = screen(snapshot(), "--strategy", "AVG", "--strategy", "CONSISTENT_HASH")
    assert "\nsummary" in shown
    assert "observed owner" not in shown
    assert "\nowners" not in shown
    whole = screen(snapshot(), "--strategy", "AVG", "--strategy", "CONSISTENT_HASH", "--all")
    assert "\nowners: T" in whole
    assert "\nqueues per consumer" in whole


def test_queues_that_were_not_looked_at_are_no_ones_fault() -> None:
    shown = screen(snapshot("a", "a"), "--strategy", "AVG")
    assert re.search(r"(?m)^\(not observed\) +2 +T a 2-3 *$", shown.replace("  \n", "\n")), shown
    assert "✗" not in shown


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
    assert report.facts[0].endswith(
        "observed owners of 3 of 4 queues differ from the prediction of AVG and AVG_BY_CIRCLE together"
    )
    assert "mismatches" not in [section.name for section in report.sections]
    line = ("show-owners", "-s", str(ROOT / "examples" / "four-groups.yaml"), "-g", "mix-svc", "-o", "json")
    assert json.loads(run(*line).stdout)["data"]["mixedMismatches"] == 0
    alike = json.loads(run("show-owners", "-s", EXAMPLE, "-g", "order-svc", "-o", "json").stdout)["data"]
    assert alike["mixedMismatches"] is None


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
    lines = on_a_terminal(shown(FINE), 200).splitlines()
    assert "group topics consumers queues lag strategy imbalance" in [" ".join(line.split()) for line in lines]
    lines = on_a_terminal(shown(FINE, BAD), 200).splitlines()
    for name, lag in (("bad", "7+"), ("fine", "1,500")):
        assert lag in next(line for line in lines if name in line)


def test_a_group_that_is_looked_at_again_with_the_same_findings_has_not_changed() -> None:
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
