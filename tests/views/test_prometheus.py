import re

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.views import metrics as of
from rmqlb.views.formats.text import visible
from rmqlb.views.metrics import METRICS, Sample, as_prometheus, label_value
from tests.support.mismatches import every_case
from tests.support.openmetrics import labelled, read_metrics

NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12) | st.text(
    '\\"\n{}=,# x1bnru', min_size=1
)


def test_the_catalogue_is_fit_for_both_formats() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch("rocketmq_lb_[a-z]+(_[a-z]+)*", metric.full_name)
        assert all(re.fullmatch("[a-z]+", label) for label in metric.labels)
        assert not metric.unit or metric.name.endswith(f"_{metric.unit}")
        assert not metric.name.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created")), "kept for types"
        assert not {*metric.help} & {*'\\"\n'}


def test_what_is_unknown_is_left_out_and_zero_is_not() -> None:
    unknown = Sample(of.OF_GROUP["imbalance"], None, {"group": "g"})
    assert as_prometheus(()) == as_prometheus([unknown]) == "# EOF\n"
    text = as_prometheus([unknown, Sample(of.OF_GROUP["lag"], 0, {"group": "g"}), Sample(of.OF_GROUP["lag"], None)])
    assert read_metrics(text) == {"rocketmq_lb_group_lag": {labelled(group="g"): 0}}


@given(st.lists(NAMES, unique=True, min_size=1, max_size=4))
def test_any_names_are_read_back_and_stay_apart(names: list[str]) -> None:
    labels = [{"topic": name, "group": name, "broker": name} for name in names]
    text = as_prometheus(Sample(of.QUEUE_LAG, value, own) for value, own in enumerate(labels))
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    shown = [labelled(**{label: label_value(name) for label, name in own.items()}) for own in labels]
    assert read_metrics(text) == {"rocketmq_lb_queue_lag": {each: value for value, each in enumerate(shown)}}


@every_case("name", ["orders", "%RETRY%g", "订单", 'say "hi"', "a,b={}#", "-1", "a b", "'"])
def test_a_name_that_hides_nothing_is_its_label(name: str) -> None:
    assert label_value(name) == name
