"""Nothing hostile passes raw, and nothing harmless is changed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.views.text import clip, safe_cell, safe_json, visible

HOSTILE = [
    "\x1b[2J", "\x1b]52;c;QQ==\x07", "\x9b31m", "\x85", "\r\n", "\b\b", "\x7f", "\u202e", "\u2066", "\u200b", "\ufeff",
    "\ud800", "\U000e0041", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str) -> None:
    shown = visible(f"a{text}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_letters_numbers_and_signs_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_json_keeps_its_meaning_and_has_nothing_raw(text: str) -> None:
    safe = safe_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(safe) == {text: [text]}
    assert visible(safe) == safe


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx"])
def test_cells_that_a_spreadsheet_would_run_are_quoted(cell: str) -> None:
    assert safe_cell(cell) == "'" + cell
    assert safe_cell("a" + cell) == "a" + cell


@given(st.text(min_size=1), st.integers(3, 30))
def test_clipping_keeps_both_ends_and_the_length(text: str, longest: int) -> None:
    clipped = clip(text, longest)
    assert len(clipped) == min(len(text), longest)
    assert clipped[0] == text[0]
