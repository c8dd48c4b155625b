"""One page that stands by itself: HTML with its style and its pictures inside, no script, nothing from a network.

`page.html` escapes whatever it is given; only `said`, `cell` and pictures are markup already, and they escape theirs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape
from msgspec import Struct

from rmqlb.pipeline.report.text import shown, value_of
from rmqlb.views.formats.signs import SIGNS
from rmqlb.views.formats.text import fit_for_xml
from rmqlb.views.pictures import PAGE_POLICY
from rmqlb.views.report import duration, percent

Kind = Literal["name", "text", "word", "count", "figure", "signed", "share", "ms", "status", "links", "codes", "line"]
"""What a column holds: names from the data, sentences that have some, words of ours, whole numbers, numbers with two
digits after the point, numbers with their sign, fractions, milliseconds, how bad something is, sections as (anchor,
words), codes with commas between, or numbers one after the other as a small picture."""
Status = Literal["error", "warning", "inOrder", ""]
"""How bad a figure or a group is; empty says nothing of it."""
Links = tuple[tuple[str, str], ...]
Value = str | int | float | Links | tuple[float | None, ...] | None
Column = tuple[str, Kind, str | Callable[[Any], Any]]
"""A column's title, its kind, and the field of a row that it shows, or what makes its cells of a row."""
_LONGEST: Mapping[str, int] = {"name": 48, "text": 200}
"""Characters of what comes from the data, in a table."""
_SIDES = {"name": "t", "text": "t", "word": "w", "status": "w", "links": "l", "codes": "c", "line": "w"}
"""Kind → class of its cells; those of numbers are `n`."""


class Fact(Struct, frozen=True):
    """A figure at the top of the page; `query` gives the rows of which it is the `number`, both for SQL.

    `each`: the query of what it counts, one by one, over the tables of the warehouse.
    """

    what: str
    value: Value
    status: Status = ""
    query: str = ""
    number: str = "count(*)"
    each: str = ""


class Grid(Struct, frozen=True):
    """A table of the page; `rows` have a cell for each of `columns` (title, kind), None where it is unknown.

    `queries` give the rows from which the table is, over the tables beside the page.
    """

    caption: str
    columns: tuple[tuple[str, Kind], ...]
    rows: tuple[tuple[Value, ...], ...]
    queries: tuple[str, ...] = ()


class Section(Struct, frozen=True):
    """A part of the page: `name` is its anchor, `seen` made by `said`, `pictures` SVG; empty grids are left out.

    `codes`: of the findings that it shows, as `rmqlb explain` has them.
    """

    name: str
    title: str
    seen: tuple[str, ...]
    advice: str = ""
    pictures: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    codes: tuple[str, ...] = ()


class ToDo(Struct, frozen=True):
    """A finding at the top of the page: what is wrong, made by `said`, the command that shows it, and its code."""

    status: Status
    what: Markup
    command: str
    code: str | None = None


def columns(kind: Kind, *of: str | tuple[str, str | Callable[[Any], Any]]) -> tuple[Column, ...]:
    """Columns of one kind: fields that are their own titles, or (title, field or function).

    >>> columns("count", "queues", ("then", "idle_after"), "lag_moved")
    (('queues', 'count', 'queues'), ('then', 'count', 'idle_after'), ('lag moved', 'count', 'lag_moved'))
    """
    pairs = ((each.replace("_", " "), each) if isinstance(each, str) else each for each in of)
    return tuple((title, kind, its) for title, its in pairs)


names, words, counts = partial(columns, "name"), partial(columns, "word"), partial(columns, "count")
decimals, shares = partial(columns, "figure"), partial(columns, "share")


def grid_of(
    caption: str, rows: Iterable[Any], *parts: Sequence[Column], query: str = "", queries: tuple[str, ...] = ()
) -> Grid:
    """A table of values; dates as text.

    >>> grid_of("Days", [dt.date(2026, 1, 2)], words(("day", lambda date: date)), counts("year")).rows
    (('2026-01-02', 2026),)
    """
    every = [column for part in parts for column in part]
    found = ((value_of(row, of) for _, _, of in every) for row in rows)
    cells = (tuple(one.isoformat() if isinstance(one, dt.date) else one for one in row) for row in found)
    return Grid(
        caption, tuple((title, kind) for title, kind, _ in every), tuple(cells), queries or tuple(filter(None, [query]))
    )


def said(sentence: str, *values: Value) -> Markup:
    """A sentence as HTML, with a value from the data in place of each `{}`.

    >>> print(said("Worst is {} with {} queues & {}.", "<b>", 1234, 1.5))
    Worst is <bdi>&lt;b&gt;</bdi> with 1,234 queues &amp; 1.50.
    """
    return escape(sentence).format(*(cell(value, "name" if isinstance(value, str) else "figure") for value in values))


def cell(value: Value, kind: Kind) -> str:
    """A value as HTML; `?` when it is unknown."""
    if value is None:
        return "?"
    if isinstance(value, tuple):
        return line(value) if kind == "line" else _links(value)  # type: ignore[arg-type]
    if isinstance(value, str):
        if kind == "status":
            return sign_of(value)
        return _name(value, _LONGEST[kind]) if kind in _LONGEST else escape(value)
    if kind == "share":
        return percent(value)
    if kind == "ms":
        return duration(value)
    sign = "+" if kind == "signed" else ""
    if isinstance(value, int):
        return f"{value:{sign},d}"
    return f"{value:{sign},.0f}" if kind == "count" else f"{value:{sign},.2f}"


def _links(links: Links) -> Markup:
    return Markup(", ").join(Markup('<a href="#{}">{}</a>').format(*link) for link in links)


_BLOCKS = "▁▂▃▄▅▆▇█"


def line(numbers: Sequence[float | None]) -> Markup:
    """Numbers as a row of blocks from the smallest to the largest; a screen reader says the first and the last.

    >>> print(line([1, 2, None, 4]))
    <span class="line" role="img" aria-label="from 1.00 to 4.00, at most 4.00">▁▃·█</span>
    """
    known = [number for number in numbers if number is not None]
    if not known:
        return Markup("?")
    low, high = min(known), max(known)
    step = (high - low) / (len(_BLOCKS) - 1) or 1
    drawn = "".join("·" if number is None else _BLOCKS[int((number - low) / step)] for number in numbers)
    said = f"from {known[0]:,.2f} to {known[-1]:,.2f}, at most {high:,.2f}"
    return Markup('<span class="line" role="img" aria-label="{}">{}</span>').format(said, drawn)


def sign_of(status: str) -> Markup:
    """A status as a sign in its colour; a screen reader says the word.

    >>> print(sign_of("error"))
    <span class="error" role="img" aria-label="error">✗</span>
    """
    if not status:
        return Markup()
    word = "in order" if status == "inOrder" else status
    return Markup('<span class="{}" role="img" aria-label="{}">{}</span>').format(status, word, SIGNS[status])


def _name(text: str, longest: int) -> Markup:
    """A name from the data, its own direction of writing kept to itself; the whole is its tooltip when it is cut."""
    whole, cut = fit_for_xml(text), shown(text, longest)
    tooltip = Markup(' title="{}"').format(whole) if cut != whole else ""
    return Markup("<bdi{}>{}</bdi>").format(tooltip, cut)


class Verdict(Struct, frozen=True):
    """What the page comes to, made by `said`, and how bad that is."""

    status: Status
    sentences: tuple[str, ...]


def page(
    title: str,
    subtitle: str,
    facts: Sequence[Fact],
    sections: Sequence[Section],
    to_do: Sequence[ToDo] = (),
    verdict: Verdict | None = None,
) -> str:
    """The whole page; `subtitle` is made by `said`, `facts` are the figures at its top."""
    lead = {"title": title, "subtitle": subtitle, "verdict": verdict}
    return _template().render(**lead, facts=facts, sections=sections, to_do=to_do, policy=PAGE_POLICY)


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "cell": cell,
        "sign": sign_of,
        "whole": fit_for_xml,
        "side": lambda kind: _SIDES.get(kind, "n"),
    }
    return environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))
