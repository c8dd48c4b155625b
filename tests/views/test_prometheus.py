"""Metrics as OpenMetrics text: what is known, under names that stay apart whatever they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.show_groups import overview
from rmqlb.model.diagnosis import group_finding
from rmqlb.model.finding import Finding
from rmqlb.model.groups import STATUSES, GroupLine, Overview
from rmqlb.model.owners import ConsumerQueues, OwnersReport, QueueOwners, StrategyOwners
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views import metrics as of
from rmqlb.views.formats.prometheus import as_prometheus, label_value
from rmqlb.views.formats.text import visible
from rmqlb.views.metrics import METRICS, Sample, metrics_of
from rmqlb.views.show_groups import groups_report
from rmqlb.views.show_owners import owners_report
from tests.engine.check.clusters import cluster, members
from tests.support.builders import route
from tests.support.mismatches import every_case
from tests.support.openmetrics import Metrics, labelled, read_metrics

NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12) | st.text(
    '\\"\n{}=,# x1bnru', min_size=1
)


def written(report: Overview | OwnersReport, snapshot: ClusterSnapshot, *findings: Finding) -> Metrics:
    shown = groups_report(report) if isinstance(report, Overview) else owners_report(report)
    return read_metrics(as_prometheus(metrics_of(shown, "a-command", snapshot, findings)))


def groups(snapshot: ClusterSnapshot) -> Overview:
    return overview(snapshot, snapshot.groups, Settings())


def test_the_catalogue_is_fit_for_both_formats() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch("rocketmq_lb_[a-z]+(_[a-z]+)*", metric.full_name)
        assert all(re.fullmatch("[a-z]+", label) for label in metric.labels)
        assert not metric.unit or metric.name.endswith(f"_{metric.unit}")
        assert not metric.name.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created")), "kept for types"
        assert not {*metric.help} & {*'\\"\n'}


def test_a_metric_has_help_type_and_unit_before_its_samples() -> None:
    samples = (Sample(of.SNAPSHOT_TIME, 1.5, {"command": "c"}), Sample(of.OF_GROUP["imbalance"], 2, {"group": "g"}))
    assert as_prometheus(samples) == (
        "# HELP rocketmq_lb_snapshot_timestamp_seconds When the snapshot was taken, since 1970\n"
        "# TYPE rocketmq_lb_snapshot_timestamp_seconds gauge\n"
        "# UNIT rocketmq_lb_snapshot_timestamp_seconds seconds\n"
        'rocketmq_lb_snapshot_timestamp_seconds{command="c"} 1.5\n'
        "# HELP rocketmq_lb_imbalance Most queues of one consumer over the mean; 1 is perfectly even\n"
        "# TYPE rocketmq_lb_imbalance gauge\n"
        'rocketmq_lb_imbalance{group="g"} 2\n'
        "# EOF\n"
    )


def test_what_is_unknown_is_left_out_and_zero_is_not() -> None:
    assert as_prometheus(()) == "# EOF\n"
    assert as_prometheus([Sample(of.OF_GROUP["imbalance"], None, {"group": "g"})]) == "# EOF\n"
    assert read_metrics(
        as_prometheus([Sample(of.OF_GROUP["lag"], 0, {"group": "g"}), Sample(of.OF_GROUP["lag"], None)])
    ) == {"rocketmq_lb_group_lag": {labelled(group="g"): 0}}


def test_a_label_without_a_value_is_left_out() -> None:
    text = as_prometheus([Sample(of.OF_GROUP["lag"], 1, {"cluster": None, "group": ""})])
    assert "\nrocketmq_lb_group_lag 1\n" in text


def test_large_numbers_are_written_in_full() -> None:
    assert "} 9007199254740993\n" in as_prometheus([Sample(of.OF_GROUP["lag"], 2**53 + 1, {"group": "g"})])


@given(st.lists(NAMES, unique=True, min_size=1, max_size=4))
def test_any_names_are_read_back_and_stay_apart(names: list[str]) -> None:
    labels = [{"topic": name, "group": name, "broker": name} for name in names]
    text = as_prometheus(Sample(of.QUEUE_LAG, value, own) for value, own in enumerate(labels))
    lines = text.replace("\n", "")
    assert visible(lines) == lines
    assert read_metrics(text) == {
        "rocketmq_lb_queue_lag": {
            labelled(**{label: label_value(name) for label, name in own.items()}): value
            for value, own in enumerate(labels)
        }
    }


@every_case("name", ["orders", "%RETRY%g", "订单", 'say "hi"', "a,b={}#", "-1", "a b", "'"])
def test_a_name_that_hides_nothing_is_its_label(name: str) -> None:
    assert label_value(name) == name


def test_unknown_figures_of_a_group_have_no_samples() -> None:
    found = written(Overview((GroupLine("g", "unknown"),), groups(cluster()).summary), cluster())
    assert found.keys() == {"rocketmq_lb_groups", "rocketmq_lb_group_status"}
    assert found["rocketmq_lb_group_status"] == {
        labelled(group="g", status=status): status == "unknown" for status in STATUSES
    }


def test_a_group_stands_with_the_one_cluster_of_its_topics() -> None:
    own = members("x y", owners="x x y -")
    assert labelled(cluster="c", group="g") in written(groups(cluster(own)), cluster(own))["rocketmq_lb_consumers"]
    there = route(a=4)
    away = replace(there, broker_datas=(*there.broker_datas, replace(there.broker_datas[0], cluster="d")))
    two = cluster(own, routes=(away,))
    assert written(groups(two), two)["rocketmq_lb_consumers"] == {labelled(group="g"): 2}
    unread = cluster(own, routes=())
    assert written(groups(unread), unread)["rocketmq_lb_consumers"] == {labelled(group="g"): 2}


def test_findings_of_a_code_are_counted() -> None:
    told = [Finding("mismatch", "a", "g"), Finding("mismatch", "b", "g"), Finding("mismatch", "c"), Finding("odd", "d")]
    found = written(
        Overview((GroupLine("g", "error", findings=(group_finding(told[0], "g"),)),), groups(cluster()).summary),
        cluster(),
        *told,
    )
    common = {"command": "a-command", "severity": "warning"}
    assert found["rocketmq_lb_findings"] == {
        labelled(**common, group="g", code="mismatch"): 3,
        labelled(**common, code="mismatch"): 1,
        labelled(**common, code="odd"): 1,
    }


def owned(owners: tuple[str, ...] | None, lag: int | None) -> OwnersReport:
    """One queue of T at broker a, with two consumers."""
    queue = QueueOwners("T", "a", 0, owners, lag, {"AVG": ("x",)}, {"AVG": None})
    consumers = (ConsumerQueues("x", 1, None), ConsumerQueues("y", 0, "there are fewer queues"))
    under = StrategyOwners(1, 1, 0, 0, 0, None, None, "AVG", consumers, None)
    return OwnersReport("g", ("T",), ("x", "y"), (queue,), (under,))


@every_case(("owners", "number"), [((), 0), (("x",), 1), (("x", "y"), 2)])
def test_a_queue_has_its_number_of_owners(owners: tuple[str, ...], number: int) -> None:
    found = written(owned(owners, 7), cluster())
    labels = labelled(cluster="c", topic="T", group="g", broker="a", queue="0")
    assert found["rocketmq_lb_queue_owners"] == {labels: number}
    assert found["rocketmq_lb_queue_lag"] == {labels: 7}


def test_a_queue_that_was_not_observed_has_no_number_of_owners() -> None:
    found = written(owned(None, None), cluster(routes=()))
    assert found.keys() == {
        "rocketmq_lb_strategy_unassigned_queues",
        "rocketmq_lb_strategy_queues_with_duplicate_owners",
        "rocketmq_lb_strategy_idle_consumers",
    }
    assert found["rocketmq_lb_strategy_idle_consumers"] == {labelled(group="g", strategy="AVG"): 1}
