"""The plots of the page: plain values → SVG text.

Nothing is said by colour alone: series differ in hatching, marker or place too. The colours are Okabe and Ito's, which
colour-blind people tell apart. Only matplotlib's `Figure`; pyplot keeps state.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rmqlb.pipeline.report.page import Column
from rmqlb.pipeline.report.svg import INK, PAPER, drawing, inline_svg
from rmqlb.pipeline.report.text import labels_of, shown, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, SKY, PINK = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"
COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK)
_HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||")  # dots would be a thousand circles each
_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
WIDE = 6.4
"""Inches; the page scales pictures to its own width."""
IN_PICTURE = 12
"""Bars of a picture; the table below it has more."""
_LONGEST = 30
"""Characters of a name beside a bar."""


class Picture(Struct, frozen=True):
    """What is said of a picture: `name` is unlike any other's on the page, letters and hyphens."""

    name: str
    title: str
    description: str


class Series(Struct, frozen=True):
    """Numbers of one kind, one for each label, day or bin; None is not drawn."""

    name: str
    values: Sequence[float | None]


def bars(picture: Picture, labels: Sequence[str], series: Sequence[Series], axis: str, *, start: float = 0) -> str:
    """Lying bars from top to bottom, one a label; several series are put end to end, from `start` on."""
    with drawing():
        figure, axes = _empty(0.75 + 0.21 * len(labels) + (0.25 if len(series) > 1 else 0))
        places = range(len(labels))
        ends = [start] * len(labels)
        for number, one in enumerate(series):
            widths = [0 if value is None else value - (0 if number else start) for value in one.values]
            axes.barh(places, widths, height=0.7, left=ends, **_filled(number), label=_label(one.name))
            ends = [end + width for end, width in zip(ends, widths, strict=True)]
        axes.set_yticks(places, [shown(label, _LONGEST) for label in labels])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(start, max([*ends, start + 0.01]) + 0.04 * (max([*ends, start + 0.01]) - start))
        axes.set_xlabel(axis)
        _finish(axes, "x", [one.name for one in series])
        _scale(axes.xaxis, [end for end in ends if end > start])
        return _svg(figure, picture)


def bars_of(
    picture: Picture, rows: Sequence[Any], name: str, columns: Sequence[Column], axis: str, *, start: float = 0
) -> str:
    """Bars of the first rows, a series for each column as in a grid; `name` is the field that a bar is called by."""
    few = rows[:IN_PICTURE]
    series = [Series(title, [value_of(row, of) for row in few]) for title, _, of in columns]
    return bars(picture, labels_of(few, name), series, axis, start=start)


def histograms(picture: Picture, bins: Sequence[str], series: Sequence[Series], axis: str, of: str) -> str:
    """A small histogram for each series, side by side on the same scales; `axis` is of the bins, `of` of the bars."""
    from matplotlib.ticker import FuncFormatter

    across = min(3, len(series))
    down = -(-len(series) // across)
    with drawing():
        figure = _figure(0.5 + 1.45 * down)
        grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for number, axes in enumerate(grid.flat):
            if number >= len(series):
                axes.set_visible(False)
                continue
            one = series[number]
            axes.bar(range(len(bins)), [value or 0 for value in one.values], width=0.86, **_filled(0))
            axes.set_title(shown(one.name, _LONGEST), loc="left")
            axes.set_xticks(range(len(bins)), bins, rotation=90)
            axes.tick_params(axis="x", length=0, labelbottom=number + across >= len(series))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
            _grid(axes, "y")
        figure.supxlabel(axis, fontsize=9)
        figure.supylabel(of, fontsize=9)
        return _svg(figure, picture)


def days(picture: Picture, dates: Sequence[dt.date], up: Sequence[Series], down: Sequence[Series], axis: str) -> str:
    """Columns on a calendar of rising dates: some series stacked upwards, others downwards from the zero line."""
    with drawing():
        figure, axes = _empty(2.3)
        where = [_number(date) for date in dates]
        for side, sign, skip in ((up, 1, 0), (down, -1, len(up))):
            ends = [0.0] * len(dates)
            for number, one in enumerate(side):
                heights = [sign * (value or 0) for value in one.values]
                axes.bar(where, heights, width=0.8, bottom=ends, **_filled(number + skip), label=_label(one.name))
                ends = [end + height for end, height in zip(ends, heights, strict=True)]
        axes.set_ylabel(axis)
        _calendar(axes, where)
        _finish(axes, "y", [one.name for one in (*up, *down)])
        _scale(axes.yaxis, [])
        if down:
            axes.axhline(0, color=INK, linewidth=0.8)
        return _svg(figure, picture)


def lines(picture: Picture, series: Sequence[tuple[str, Sequence[tuple[dt.date, float]]]], axis: str) -> str:
    """Lines over a calendar, one a series of (date, value)."""
    with drawing():
        figure, axes = _empty(2.5)
        where: list[float] = []
        for number, (name, points) in enumerate(series):
            at = [_number(date) for date, _ in points]
            where += at
            _line(axes, at, [value for _, value in points], name, number)
        axes.set_ylabel(axis)
        _calendar(axes, where)
        _finish(axes, "y", [name for name, _ in series])
        return _svg(figure, picture)


def steps(picture: Picture, labels: Sequence[str], series: Sequence[Series], axes_names: tuple[str, str]) -> str:
    """Lines over a few named steps, one a series; `axes_names` are those of x and y, y is a share."""
    from matplotlib.ticker import FuncFormatter

    with drawing():
        figure, axes = _empty(2.4)
        for number, one in enumerate(series):
            known = [(place, value) for place, value in enumerate(one.values) if value is not None]
            _line(axes, [float(place) for place, _ in known], [value for _, value in known], one.name, number)
        axes.set_xticks(range(len(labels)), [shown(label, _LONGEST) for label in labels])
        axes.set_xlabel(axes_names[0])
        axes.set_ylabel(axes_names[1])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        _finish(axes, "y", [one.name for one in series])
        return _svg(figure, picture)


def _line(axes: Axes, at: Sequence[float], values: Sequence[float], name: str, number: int) -> None:
    place = number % len(COLOURS)
    axes.plot(
        at,
        values,
        color=COLOURS[place],
        linestyle=_DASHES[place],
        marker=_MARKERS[place],
        markersize=4 if len(at) < 60 else 0,
        linewidth=1.4,
        label=_label(name),
    )


def _filled(number: int) -> dict[str, Any]:
    place = number % len(COLOURS)
    # With an edge of the page's colour the hatching is of the page's colour, in the dark too.
    return {"facecolor": COLOURS[place], "edgecolor": PAPER, "hatch": _HATCHES[place], "linewidth": 0.4}


def _label(name: str) -> str:
    """A name in a legend, from which matplotlib leaves out what begins with an underscore."""
    label = shown(name, _LONGEST)
    return f" {label}" if label.startswith("_") else label


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDE, height), layout="constrained")


def _empty(height: float) -> tuple[Figure, Axes]:
    figure = _figure(height)
    return figure, figure.subplots()


def _finish(axes: Axes, along: str, names: Sequence[str]) -> None:
    """Grid lines along an axis, and a legend when there are several names."""
    _grid(axes, along)
    if len(names) > 1:
        longest = max(len(shown(name, _LONGEST)) for name in names)
        axes.figure.legend(loc="outside upper left", ncols=2 if longest > 22 else 3 if longest > 14 else 4)


def _scale(axis: XAxis | YAxis, values: Sequence[float]) -> None:
    """Whole steps where all is whole, and 2 k for 2000; below the zero line numbers count too."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

    whole = all(float(value).is_integer() for value in values)
    prefixed = EngFormatter(sep="\u202f")
    axis.set_major_locator(MaxNLocator("auto", integer=whole))
    if whole:
        axis.set_major_formatter(FuncFormatter(lambda value, _: prefixed(abs(value))))


def _grid(axes: Axes, along: str) -> None:
    axes.grid(axis="x" if along == "x" else "y", color=INK, alpha=0.15, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_linewidth(0.6)
        spine.set_alpha(0.5)


def _calendar(axes: Axes, where: Sequence[float]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axes.set_xlim(min(where) - 0.7, max(where) + 0.7)
    locator = AutoDateLocator(  # type: ignore[no-untyped-call]
        minticks=1, maxticks=8, tz=dt.UTC
    )
    locator.intervald[4] = [24]  # a day is the shortest step: the values are a day's
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=dt.UTC))  # type: ignore[no-untyped-call]


def _number(date: dt.date) -> float:
    from matplotlib.dates import date2num

    return float(date2num(date))  # type: ignore[no-untyped-call]


def _svg(figure: Figure, picture: Picture) -> str:
    return inline_svg(figure, picture.name, picture.title, picture.description)
