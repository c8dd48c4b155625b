import html
import json

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rmqlb.views.formats.machine import as_json, as_yaml
from rmqlb.views.formats.people import drawn_table
from rmqlb.views.formats.text import clip, safe_cell, safe_markdown, visible
from tests.support.mismatches import every_case

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
