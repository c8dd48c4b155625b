import re

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.show_groups import overview
from rmqlb.model.groups import Overview
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views import metrics as of
from rmqlb.views.formats.text import visible
from rmqlb.views.metrics import METRICS, Sample, as_prometheus, label_value
from tests.support.mismatches import every_case
from tests.support.openmetrics import labelled, read_metrics

NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12) | st.text(
    '\\"\n{}=,# x1bnru', min_size=1
)


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
