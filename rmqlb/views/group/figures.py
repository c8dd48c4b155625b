"""The figures of a group's simulation, of one trial and of many, as sections."""

from __future__ import annotations

from rmqlb.model.group_report import FigureSpread, GroupFigures, GroupTrials
from rmqlb.views.report import Cell, Column, Section, duration

FIGURES: tuple[tuple[str, str], ...] = (
    ("converged after", "convergence_ms"),
    ("longest gap", "longest_gap_ms"),
    ("total gap", "total_gap_ms"),
    ("longest overlap", "longest_overlap_ms"),
    ("total overlap", "total_overlap_ms"),
    ("longest outage", "longest_outage_ms"),
    ("total outage", "total_outage_ms"),
    ("longest without a reader", "unread_ms"),
    ("redelivered, at most", "redelivered"),
    ("queues with a gap", "queues_with_gap"),
    ("queues with an overlap", "queues_with_overlap"),
    ("queues with an outage", "queues_with_outage"),
    ("queues with a gap at the end", "queues_with_gap_at_end"),
    ("queues with an overlap at the end", "queues_with_overlap_at_end"),
    ("queues with an outage at the end", "queues_with_outage_at_end"),
    ("queues without a reader at the end", "queues_unread_at_end"),
    ("queues taken", "taken"),
    ("rebalances", "rebalances"),
)
"""A figure for people, and its field of `GroupFigures`."""
_UNSHOWN = {"convergence_ms": "not converged", "redelivered": "unknown"}
_KEYS = dict(zip(GroupFigures.__struct_fields__, GroupFigures.__struct_encode_fields__, strict=True))
"""A field of `GroupFigures` → its key in JSON and CSV."""


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
        rows.append((title, shown, _KEYS[field], value))
    return Section("summary", "summary", columns, tuple(rows), named_only=named_only)


def trials_section(trials: GroupTrials) -> Section:
    """What many simulations say; CSV has numbers beside the texts."""
    texts = ("p50", "p95", "max")
    columns = (
        Column("", "figure"),
        *(Column(key, key) for key in texts),
        Column("max in trial", "maxTrial", "number"),
        Column("", "name", shown=False),
        *(Column("", f"{key}Value", "number", shown=False) for key in texts),
    )
    rows: list[tuple[Cell, ...]] = []
    for title, field in FIGURES:
        spread: FigureSpread | None = getattr(trials.figures, field)
        if spread is not None:
            values = (spread.p50, spread.p95, spread.max)
            shown = tuple(shown_figure(field, value) for value in values)
            rows.append((title, *shown, spread.max_trial, _KEYS[field], *values))
    title = f"{trials.trials} trials"
    if trials.converged < trials.trials:
        title += f", {trials.trials - trials.converged} of which did not converge"
    return Section("trials", title, columns, tuple(rows), heads=1)


def shown_figure(field: str, value: float) -> str:
    """A figure's value as people read it."""
    return duration(value) if field.endswith("_ms") else f"{value:.10g}"
