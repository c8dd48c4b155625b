"""The figures of a group's simulation, of one trial and of many, as sections and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rmqlb.model.group_report import FigureSpread, GroupFigures, GroupTrials
from rmqlb.model.times import milliseconds
from rmqlb.views.report import Cell, Column, Section, duration

if TYPE_CHECKING:
    from rmqlb.views.shapes import group as shapes

FIGURES: tuple[tuple[str, str], ...] = (
    ("settled after", "settled_us"),
    ("longest without owner", "longest_none_us"),
    ("queue-time without owner", "none_us"),
    ("longest with several owners", "longest_several_us"),
    ("queue-time with several owners", "several_us"),
    ("longest outage", "longest_outage_us"),
    ("queue-time in outages", "total_outage_us"),
    ("longest without a reader", "unread_us"),
    ("delivered again, at most", "again"),
    ("queues once without owner", "queues_none"),
    ("queues once with several", "queues_several"),
    ("queues once in an outage", "queues_outage"),
    ("queues without owner at the end", "queues_none_at_end"),
    ("queues with several at the end", "queues_several_at_end"),
    ("queues in an outage at the end", "queues_outage_at_end"),
    ("queues without a reader at the end", "queues_unread_at_end"),
    ("queues taken", "taken"),
    ("rebalances", "rebalances"),
)
"""A figure for people, and its field of `GroupFigures`."""
_UNSHOWN = {"settled_us": "not settled", "again": "unknown"}


def figure_key(field: str) -> str:
    """A field of `GroupFigures`, or of other Structs with times in microseconds, as JSON and CSV call it.

    >>> figure_key("longest_none_us"), figure_key("queues_none")
    ('longestNoneMs', 'queuesNone')
    """
    first, *others = field.removesuffix("_us").split("_")
    return first + "".join(map(str.capitalize, others)) + ("Ms" if field.endswith("_us") else "")


def figures_section(figures: GroupFigures, *, named_only: bool) -> Section:
    """One simulation in numbers; CSV has each as a text and as a number."""
    columns = (
        Column("", "figure"),
        Column("in all", "shown"),
        Column("", "name", shown=False),
        Column("", "value", "number", shown=False),
    )
    rows: list[tuple[Cell, ...]] = []
    for title, field in FIGURES:
        value = getattr(figures, field)
        shown = _UNSHOWN[field] if value is None else shown_figure(field, value)
        rows.append((title, shown, figure_key(field), _value(field, value)))
    return Section("summary", "summary", columns, tuple(rows), named_only=named_only)


def trials_section(trials: GroupTrials) -> Section:
    """What many simulations say; CSV has numbers beside the texts."""
    texts = (("median", "median"), ("95 % within", "p95"), ("worst", "worst"))
    columns = (
        Column("", "figure"),
        *(Column(title, key) for title, key in texts),
        Column("worst trial", "worstTrial", "number"),
        Column("", "name", shown=False),
        *(Column("", f"{key}Value", "number", shown=False) for _, key in texts),
    )
    rows: list[tuple[Cell, ...]] = []
    for title, field in FIGURES:
        spread = trials.spreads.get(field)
        if spread is not None:
            values = (spread.median, spread.p95, spread.worst)
            shown = tuple(shown_figure(field, value) for value in values)
            numbers = tuple(_value(field, value) for value in values)
            rows.append((title, *shown, spread.worst_trial, figure_key(field), *numbers))
    title = f"{trials.trials} trials"
    if trials.settled < trials.trials:
        title += f", {trials.trials - trials.settled} of which did not settle"
    return Section("trials", title, columns, tuple(rows), heads=1)


def figures_data(figures: GroupFigures) -> shapes.GroupFiguresData:
    """One simulation's figures for machines."""
    values = {figure_key(field): _value(field, getattr(figures, field)) for _, field in FIGURES}
    return cast("shapes.GroupFiguresData", values)


def trials_data(trials: GroupTrials) -> shapes.GroupTrialsData:
    """Many simulations' figures for machines; one that is unknown is null."""
    spreads = {
        figure_key(field): None if (spread := trials.spreads.get(field)) is None else _spread_data(field, spread)
        for _, field in FIGURES
    }
    figures = cast("shapes.FigureSpreadsData", spreads)
    return {"trials": trials.trials, "settled": trials.settled, "figures": figures}


def shown_figure(field: str, value: float) -> str:
    """A figure's value as people read it."""
    return duration(value / 1000) if field.endswith("_us") else f"{value:.10g}"


def _spread_data(field: str, spread: FigureSpread) -> shapes.FigureSpreadData:
    return {
        "median": figure_value(field, spread.median),
        "p95": figure_value(field, spread.p95),
        "worst": figure_value(field, spread.worst),
        "worstTrial": spread.worst_trial,
    }


def _value(field: str, value: float | None) -> float | None:
    return None if value is None else figure_value(field, value)


def figure_value(field: str, value: float) -> float:
    """A figure's value for machines: times in milliseconds, whole numbers as such.

    >>> figure_value("none_us", 1_500_000.0), figure_value("none_us", 0.5), figure_value("taken", 2.5)
    (1500, 0.0005, 2.5)
    """
    if field.endswith("_us"):
        return milliseconds(int(value)) if value == int(value) else value / 1000
    return int(value) if value == int(value) else value
