"""Framed tables and blocks look as rich would draw them, to the byte, and all of them are drawn here."""

from __future__ import annotations

import io
from typing import get_args

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.console import Console

from rmqlb.views.formats.people import for_people, print_tables, with_heads
from rmqlb.views.formats.signs import SIGNS
from rmqlb.views.report import CHANGE_SIGNS, Cell, Column, Kind, Report, Section
from tests.views import by_rich

KINDS: tuple[Kind, ...] = get_args(Kind)
IDS = ("192.0.2.1@1#100", "192.0.2.10@17-with-a-long-name#7", "订单@1", "a b")
LABELS = {client_id: f"#{at}" for at, client_id in enumerate(IDS)}
TEXTS = st.one_of(
    st.text("ab_- 订e\u0301é!.", max_size=12),
    st.text("abc  ", max_size=70),
    st.text("a订😀", max_size=40),
    st.sampled_from(("", " ", "\x1b[31m\n", "broker-a", "x" * 300, "a sentence of several words that is rather long")),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-3, 10**12), st.floats(0, 1, allow_nan=False), st.none())
CELLS: dict[Kind, st.SearchStrategy[Cell]] = {
    **dict.fromkeys(KINDS, NUMBERS),
    "text": TEXTS,
    "clients": st.one_of(st.none(), st.sampled_from(IDS), st.lists(st.sampled_from(IDS), max_size=4).map(tuple)),
    "owners": st.lists(st.sampled_from(IDS), max_size=3).map(tuple),
    "prose": TEXTS,
    "change": st.sampled_from(tuple(CHANGE_SIGNS)),
    "sign": st.sampled_from(tuple(SIGNS)),
    "strip": st.text("!!!ab. ", max_size=60),
}  # fmt: skip

STYLES = {"!": "bold white on red", "a": "black on green"}


@st.composite
def sections(draw: st.DrawFn) -> Section:
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=7))
    columns = [
        Column(draw(TEXTS), "key", kind, quiet=at < 2 and draw(st.booleans()), styles=STYLES if kind == "strip" else {})
        for at, kind in enumerate(kinds)
    ]
    rows = draw(st.lists(st.tuples(*(CELLS[kind] for kind in kinds)), min_size=1, max_size=6))
    again = [(rows[0][0], *row[1:]) if draw(st.booleans()) else row for row in rows]
    heads = draw(st.integers(0, len(columns)))
    scales = draw(st.integers(0, 2))
    section = for_people(Section("section", draw(TEXTS), tuple(columns), tuple(again), heads=heads, scales=scales))
    assume(any(column.kind != "bar" for column in section.columns))
    return section


def console(width: int, colour: bool, encoding: str) -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="", write_through=True)
    arguments = {"force_terminal": True, "color_system": "256"} if colour else {"color_system": None}
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, **arguments)


def written(to: Console) -> bytes:
    stream = to.file
    assert isinstance(stream, io.TextIOWrapper)
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()


@settings(max_examples=150, deadline=None)
@given(
    sections(), st.one_of(st.integers(1, 60), st.integers(60, 250)), st.booleans(), st.sampled_from(("utf-8", "ascii"))
)
def test_a_section_looks_as_if_rich_had_drawn_it(section: Section, width: int, colour: bool, encoding: str) -> None:
    ours, theirs = console(width, colour, encoding), console(width, colour, encoding)
    print_tables(Report("rmqlb/x", {}, (), (section,), LABELS), ours)
    theirs.print()
    theirs.print(by_rich.fitting(with_heads(section, theirs), LABELS, theirs))
    assert written(ours).decode(encoding) == written(theirs).decode(encoding)
