import html
import json
import re

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rmqlb.views import metrics as of
from rmqlb.views.formats.machine import as_json, as_yaml
from rmqlb.views.formats.people import drawn_table
from rmqlb.views.formats.text import clip, safe_cell, safe_markdown, visible
from rmqlb.views.metrics import METRICS, Sample, as_prometheus, label_value
from tests.support.mismatches import every_case
from tests.support.openmetrics import labelled, read_metrics

HOSTILE = [
    "\x1b[2J", "\x1b]52;c;QQ==\x07", "\x9b31m", "\x85", "\r\n", "\b\b", "\x7f", "\u202e", "\u2066", "\u200b", "\ufeff",
    "\ud800", "\U000e0041", "\x00", "\u034f", "\u3164", "\ufe0f", "\U0001d173", "\U000e0100",
]  # fmt: skip


@every_case("text", HOSTILE)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str) -> None:
    shown = visible(f"a{text}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")


@every_case("cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "  =1", "＝1", "＋1", "－1", "＠x"])
def test_cells_that_a_spreadsheet_would_run_are_quoted(cell: str) -> None:
    assert safe_cell(cell) == "'" + cell
    assert safe_cell("a" + cell) == "a" + cell


@given(st.text("_~&*`<[]()!#;:\\|/ aAltgmp1.-x", max_size=30))
@example("_internal_ ~~old~~ &lt;b&gt; &#35;1")
def test_a_name_in_markdown_is_rendered_as_it_is(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable("strikethrough").renderInline(safe_markdown(text))
    assert html.unescape(rendered).split() == text.split()


@given(st.text(min_size=1), st.integers(3, 30))
def test_clipping_keeps_both_ends_and_the_length(text: str, longest: int) -> None:
    clipped = clip(text, longest)
    assert len(clipped) == min(len(text), longest)
    assert clipped[0] == text[0]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_for_machines_is_read_back_and_has_nothing_raw(text: str) -> None:
    value = {"key": text, text: [text]}
    for written, read in ((as_json(value), json.loads), (as_yaml(value), yaml.safe_load)):
        assert read(written) == value
        assert visible(written.replace("\n", "")) == written.replace("\n", "")


def test_half_a_surrogate_pair_is_written_as_json_all_the_same() -> None:
    assert as_json({"a": "\ud800"}) == '{\n  "a": "\\ud800"\n}\n'


TITLES, RIGHTS = ("topic", "queues"), (False, True)


def test_a_plain_table_counts_wide_letters_as_two_columns() -> None:
    assert drawn_table(TITLES, [("订单", "12"), ("orders", "7")], RIGHTS).splitlines() == [
        "topic      queues", "-------  --------", "订单           12", "orders          7",
    ]  # fmt: skip


NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=12) | st.text(
    '\\"\n{}=,# x1bnru', min_size=1
)


def test_the_catalogue_is_fit_for_both_formats() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch("rmqlb_[a-z]+(_[a-z]+)*", metric.full_name)
        assert all(re.fullmatch("[a-z]+", label) for label in metric.labels)
        assert not metric.unit or metric.name.endswith(f"_{metric.unit}")
        assert not metric.name.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created")), "kept for types"
        assert not {*metric.help} & {*'\\"\n'}


def test_what_is_unknown_is_left_out_and_zero_is_not() -> None:
    unknown = Sample(of.OF_GROUP["imbalance"], None, (None, "g"))
    assert as_prometheus(()) == as_prometheus([unknown]) == "# EOF\n"
    text = as_prometheus([unknown, Sample(of.OF_GROUP["lag"], 0, (None, "g")), Sample(of.OF_GROUP["lag"], None)])
    assert read_metrics(text) == {"rmqlb_group_lag": {labelled(group="g"): 0}}


@given(st.lists(NAMES, unique=True, min_size=1, max_size=4))
def test_any_names_are_read_back_and_stay_apart(names: list[str]) -> None:
    labels = [{"topic": name, "group": name, "broker": name} for name in names]
    samples = (Sample(of.QUEUE_LAG, at, (None, name, name, name, None)) for at, name in enumerate(names))
    text = as_prometheus(samples)
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    shown = [labelled(**{label: label_value(name) for label, name in own.items()}) for own in labels]
    assert read_metrics(text) == {"rmqlb_queue_lag": {each: value for value, each in enumerate(shown)}}


@every_case("name", ["orders", "%RETRY%g", "订单", 'say "hi"', "a,b={}#", "-1", "a b", "'"])
def test_a_name_that_hides_nothing_is_its_label(name: str) -> None:
    assert label_value(name) == name
