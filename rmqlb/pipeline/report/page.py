"""One page that stands by itself: HTML with its style and its pictures inside, no script, nothing from a network.

Rules of this file:
- Whatever comes from the data enters through `said` or `cell`, which escape it.
- The page's own policy forbids a browser to fetch or run anything.
"""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rmqlb.pipeline.report.style import STYLE
from rmqlb.pipeline.report.text import name_html
from rmqlb.views.group.page import PAGE_POLICY
from rmqlb.views.report import duration, percent

Kind = Literal["name", "word", "count", "figure", "signed", "share", "ms"]
"""What a column holds: names from the data, words of ours, whole numbers, numbers with two digits after the point,
numbers with their sign, fractions, or milliseconds."""
Value = str | int | float | None
Column = tuple[str, Kind, str | Callable[[Any], Any]]
"""A column's title, its kind, and the field of a row that it shows, or what makes its cells of a row."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of the page.

    Attributes:
        caption: what its rows are and how they are ordered.
        columns: (title, kind).
        rows: cells, in the columns' order; None is unknown.
    """

    caption: str
    columns: tuple[tuple[str, Kind], ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Attributes:
        name: its anchor, letters and hyphens.
        title: its heading.
        seen: what is seen, HTML made by `said`.
        advice: what to do about it, plain text; empty when there is nothing to do.
        pictures: SVG text.
        grids: tables.
    """

    name: str
    title: str
    seen: tuple[str, ...]
    advice: str = ""
    pictures: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()


def grid_of(caption: str, rows: Iterable[Any], *columns: Column) -> Grid:
    """A table of values: a column shows a field, or what a function makes of the value; dates as text.

    >>> grid_of("Days", [dt.date(2026, 1, 2)], ("day", "word", lambda date: date), ("year", "count", "year")).rows
    (('2026-01-02', 2026),)
    """

    def value(row: Any, of: str | Callable[[Any], Any]) -> Value:
        found = getattr(row, of) if isinstance(of, str) else of(row)
        return found.isoformat() if isinstance(found, dt.date) else found

    return Grid(
        caption,
        tuple((title, kind) for title, kind, _ in columns),
        tuple(tuple(value(row, of) for _, _, of in columns) for row in rows),
    )


def said(sentence: str, *values: Value) -> str:
    """A sentence as HTML, with a value from the data in place of each `{}`.

    >>> said("Worst is {} with {} queues & {}.", "<b>", 1234, 1.5)
    'Worst is <bdi>&lt;b&gt;</bdi> with 1,234 queues &amp; 1.50.'
    """
    shown = (cell(value, "name" if isinstance(value, str) else "figure") for value in values)
    return html.escape(sentence, quote=False).format(*shown)


def cell(value: Value, kind: Kind) -> str:
    """A value as HTML; `?` when it is unknown."""
    if value is None:
        return "?"
    if isinstance(value, str):
        return name_html(value) if kind == "name" else html.escape(value)
    if kind == "share":
        return percent(value)
    if kind == "ms":
        return duration(value)
    sign = "+" if kind == "signed" else ""
    if isinstance(value, int):
        return f"{value:{sign},d}"
    return f"{value:{sign},.0f}" if kind == "count" else f"{value:{sign},.2f}"


def page(title: str, subtitle: str, facts: Sequence[tuple[str, Value]], sections: Sequence[Section]) -> str:
    """The whole page.

    Args:
        title: of the page.
        subtitle: one line below it, HTML made by `said`.
        facts: the figures at its top, (what it is, the figure).
        sections: its parts, in order.
    """
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(PAGE_POLICY, quote=False)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    shown = "".join(f"<div><dt>{html.escape(what)}</dt><dd>{cell(fact, 'count')}</dd></div>\n" for what, fact in facts)
    links = "".join(f'<li><a href="#{one.name}">{html.escape(one.title)}</a></li>\n' for one in sections)
    return (
        f"{head}<header>\n<h1>{html.escape(title)}</h1>\n"
        f'<p class="quiet">{subtitle}</p>\n<dl class="facts">\n{shown}</dl>\n</header>\n'
        f'<nav aria-label="Contents">\n<ol>\n{links}</ol>\n</nav>\n'
        f"<main>\n{''.join(_section(one) for one in sections)}</main>\n"
        "<footer><p>A question mark is what nobody knows. Names are cut in the middle here and whole in the tables "
        "beside this page.</p></footer>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f'<section id="{section.name}" aria-labelledby="{section.name}-heading">\n']
    parts.append(f'<h2 id="{section.name}-heading">{html.escape(section.title)}</h2>\n')
    parts += [f"<p>{sentence}</p>\n" for sentence in section.seen]
    if section.advice:
        parts.append(f'<p class="advice"><b>What to do:</b> {html.escape(section.advice)}</p>\n')
    parts += [f"<figure>{picture}</figure>\n" for picture in section.pictures]
    parts += [_grid(grid) for grid in section.grids if grid.rows]
    parts.append("</section>\n")
    return "".join(parts)


def _grid(grid: Grid) -> str:
    kinds = [kind for _, kind in grid.columns]
    heads = "".join(f'<th scope="col"{_side(kind)}>{html.escape(title)}</th>' for title, kind in grid.columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td{_side(kind)}>{cell(value, kind)}</td>" for value, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in grid.rows
    )
    return (
        f'<div class="scroll" tabindex="0">\n<table>\n<caption>{html.escape(grid.caption)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )


def _side(kind: Kind) -> str:
    return f' class="{"t" if kind == "name" else "w" if kind == "word" else "n"}"'
