"""A `GroupReport` as a report."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from rmqlb.model.condition import TriedCondition
from rmqlb.model.group_report import FigureSpread, GroupFigures, GroupReport, GroupTrials, Interval
from rmqlb.model.group_result import consumer_parts, gravity, group_result
from rmqlb.model.group_scenario import Event
from rmqlb.model.times import milliseconds
from rmqlb.views.group.facts import group_facts, group_settings, named, time
from rmqlb.views.group.strips import SYMBOLS, symbols
from rmqlb.views.group.timeline import event_marks, letter_styles, timeline_section
from rmqlb.views.group.windows import Window, windows
from rmqlb.views.report import (
    NOT_THERE,
    QUEUE_COLUMNS,
    Audience,
    Cell,
    Column,
    Report,
    Section,
    duration,
    first_places,
    labels,
    rows_of,
    worst,
)

_MOST_WINDOWS = 30
_MOST_EVENTS = 20
_MOST_IN_LEAD = 2
"""The first line names as many events, and the picture marks where they are."""
_MOST_CONSUMERS = 40
_MOST_QUEUES = 40
_MOST_STEPS = 200

FIGURES: tuple[tuple[str, str], ...] = (
    ("converged after", "convergence_ms"),
    ("longest gap", "longest_gap_ms"),
    ("total gap", "total_gap_ms"),
    ("longest overlap", "longest_overlap_ms"),
    ("total overlap", "total_overlap_ms"),
    ("longest outage", "longest_outage_ms"),
    ("total outage", "total_outage_ms"),
    ("longest unread", "unread_ms"),
    ("redelivered, at most", "redelivered"),
    ("queues with a gap", "queues_with_gap"),
    ("queues with an overlap", "queues_with_overlap"),
    ("queues with an outage", "queues_with_outage"),
    ("queues with a gap at the end", "queues_with_gap_at_end"),
    ("queues with an overlap at the end", "queues_with_overlap_at_end"),
    ("queues with an outage at the end", "queues_with_outage_at_end"),
    ("queues unread at the end", "queues_unread_at_end"),
    ("queues taken", "taken"),
    ("rebalances", "rebalances"),
)
"""A figure for people, and its field of `GroupFigures`."""
_UNSHOWN = {"convergence_ms": "not converged", "redelivered": "unknown"}
_KEYS = dict(zip(GroupFigures.__struct_fields__, GroupFigures.__struct_encode_fields__, strict=True))
"""A field of `GroupFigures` → its key in JSON and CSV."""


def group_report(
    report: GroupReport,
    *,
    trials: GroupTrials | None = None,
    explain: bool = False,
    conditions: Sequence[TriedCondition] = (),
) -> Report:
    """The simulation for people and machines; with `explain` both see the steps, and people the takeovers.

    A screen has the picture, and whose letter is whose; the tables behind it are a script's.
    """
    sections = (
        timeline_section(report),
        _windows(report),
        _queues(report),
        _takeovers(report, named_only=not explain),
        *([_steps(report)] if explain else ()),
        _intervals(report),
        _events(report),
        _consumers(report),
        *(() if trials is None else (_trials(trials, screen=True), _trials(trials, screen=False))),
        _figures(report.figures, named_only=trials is not None),
    )
    return Report(
        "rmqlb/simulate-rebalance",
        group_result(report, trials, conditions, explain=explain),
        group_facts(report, trials),
        sections,
        member_labels(report.members),
        grave=gravity(report, trials),
        closing=group_settings(report),
    )


def member_labels(members: Sequence[str]) -> dict[str, str]:
    """Client id → what a narrow table calls it: its letter in the picture, its number when letters do not suffice."""
    ids = list(dict.fromkeys(members))
    return symbols(ids) if len(ids) <= len(SYMBOLS) else labels(ids)


def _windows(report: GroupReport) -> Section:
    found = windows(report)
    columns = (
        *QUEUE_COLUMNS,
        Column("owners", "state", shown=bool(report.figures.queues_with_outage)),
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms", shown=False),
        Column("for", "lengthMs", "ms", of=_length),
        Column("before", "ownersBefore", "clients", of=lambda window: _owners(window.before)),
        Column("meanwhile", "owners", "clients"),
        Column("after", "ownersAfter", "clients", of=lambda window: _owners(window.after)),
    )
    brief = worst([window.length_us for window in found], _MOST_WINDOWS)
    title = "gaps" if report.scenario.broadcasting else "gaps, overlaps"
    title += ", outages" if report.figures.queues_with_outage else ""
    longest = f"the {_MOST_WINDOWS} longest"
    rows = rows_of(columns, found)
    return Section("windows", title, columns, rows, heads=3, brief=brief, chosen=longest, audience="scripts")


def _length(interval: Interval | Window) -> float:
    return milliseconds(interval.to_us - interval.from_us)


def _owners(interval: Interval | None) -> Cell:
    """A dash where there is nothing: the simulation begins or ends there, or the queue is gone."""
    return NOT_THERE if interval is None or (interval.state == "gone" and not interval.owners) else interval.owners


def _queues(report: GroupReport) -> Section:
    with_outage = bool(report.figures.queues_with_outage)
    columns = (
        *QUEUE_COLUMNS,
        Column(
            "before", "ownersAtStart", "clients", of=lambda one: _owners(one.intervals[0] if one.intervals else None)
        ),
        Column("after", "ownersAtEnd", "clients", of=lambda one: _owners(one.intervals[-1] if one.intervals else None)),
        Column("total gap", "totalGapMs", "ms"),
        Column("longest", "longestGapMs", "ms"),
        Column("total overlap", "totalOverlapMs", "ms"),
        Column("longest", "longestOverlapMs", "ms"),
        Column("total outage", "totalOutageMs", "ms", shown=with_outage),
        Column("longest", "longestOutageMs", "ms", shown=with_outage),
        Column("unread for", "unreadMs", "ms"),
        Column("taken", "taken", "number", of=lambda one: len(one.takeovers)),
        Column("redelivered, at most", "redelivered", "number"),
    )
    brief = worst([one.longest_bad_ms for one in report.timelines], _MOST_QUEUES)
    rows = rows_of(columns, report.timelines)
    return Section("queues", "queues", columns, rows, heads=3, named_only=True, brief=brief)


def _takeovers(report: GroupReport, *, named_only: bool) -> Section:
    found = sorted((one for timeline in report.timelines for one in timeline.takeovers), key=lambda one: one.at_ms)
    columns = (
        *QUEUE_COLUMNS,
        Column("taken by", "clientId", "clients"),
        Column("at", "atMs", "ms"),
        Column("reads from", "readsFromMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number", shown=any(one.start_offset is not None for one in found)),
        Column("redelivered, the last", "redeliveredMs", "ms"),
        Column("messages", "redelivered", "number", shown=any(one.redelivered for one in found)),
        Column("because", "startReason", quiet=True),
    )
    brief = worst([one.unread_ms or 0 for one in found], _MOST_QUEUES)
    rows = rows_of(columns, found)
    return Section("takeovers", "takeovers", columns, rows, heads=4, named_only=named_only, brief=brief)


def _intervals(report: GroupReport) -> Section:
    columns = (
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("for", "lengthMs", "ms", of=_length),
        Column("state", "state"),
        Column("owners", "owners", "clients"),
    )
    rows = tuple(
        (one.topic, one.broker_name, one.queue_id, *row)
        for one in report.timelines
        for row in rows_of(columns, one.intervals)
    )
    return Section("intervals", "intervals", (*QUEUE_COLUMNS, *columns), rows, heads=4, named_only=True)


def _steps(report: GroupReport) -> Section:
    columns = (
        Column("at", "atMs", "ms"),
        Column("who", "who", "clients"),
        Column("what", "what"),
        Column("", "text"),
        Column("queues", "queues", shown=False, of=lambda step: "; ".join(map(named, step.queues))),
    )
    brief = first_places(len(report.steps), _MOST_STEPS)
    return Section("steps", "what happens and why", columns, rows_of(columns, report.steps), brief=brief)


def _events(report: GroupReport) -> Section:
    """A screen has them where the first line cannot name all, and the table of consumers does not."""
    events, consumers = report.events, set(report.members)
    columns: tuple[Column, ...] = (
        Column("at", "atMs", "ms", of=lambda event: milliseconds(event.at_us)),
        Column("event", "kind"),
        Column("of", "subject", "clients"),
        Column(
            "strategy",
            "strategy",
            shown=any(event.strategy_name for event in events),
            of=lambda event: event.strategy_name,
        ),
        Column("broker", "brokerName", shown=any(event.broker_name for event in events)),
        _new_queues("read", events),
        _new_queues("write", events),
        Column("as written", "text", shown=False),
    )
    rows = tuple((mark, *row) for mark, row in zip(event_marks(events), rows_of(columns, events), strict=True))
    brief = first_places(len(rows), _MOST_EVENTS)
    is_known = len(events) <= _MOST_IN_LEAD or all(event.subject in consumers for event in events)
    audience: Audience = "scripts" if is_known else "all"
    columns = (Column("#", "mark"), *columns)
    return Section("events", "events", columns, rows, heads=3, brief=brief, audience=audience)


def _new_queues(what: str, events: Sequence[Event]) -> Column:
    number = attrgetter(f"{what}_queues")
    shown = any(number(event) is not None for event in events)
    return Column(f"{what} queues", f"{what}QueueNums", "number", shown=shown, of=number)


def _consumers(report: GroupReport) -> Section:
    letters, short = symbols(report.members), member_labels(report.members)
    concerned = any(event.subject in letters for event in report.events)
    happens: dict[str, list[str]] = {}
    for event in report.events:
        happens.setdefault(event.subject, []).append(f"{event.kind} {time(event.at_us)}")
    columns = (
        Column("", "letter", styles=letter_styles(letters), of=lambda part: letters[part.client_id]),
        Column("#", "label", shown=letters != short, of=lambda part: short[part.client_id]),
        Column("consumer", "clientId"),
        Column("before", "queuesAtStart", "number"),
        Column("after", "queuesAtEnd", "number"),
        Column("taken", "taken", "number"),
        Column("events", "events", shown=concerned, of=lambda part: ", ".join(happens.get(part.client_id, ()))),
    )
    found = consumer_parts(report)
    badness = [
        part.taken + abs(part.queues_at_end - part.queues_at_start) + len(happens.get(part.client_id, ()))
        for part in found
    ]
    brief = worst(badness, _MOST_CONSUMERS)
    return Section(
        "consumers", "consumers: queues before and after", columns, rows_of(columns, found), heads=3, brief=brief
    )


def _figures(figures: GroupFigures, *, named_only: bool) -> Section:
    """One simulation in numbers; CSV has each as a text and as a number."""
    columns = (
        Column("", "figure"),
        Column("value", "shown"),
        Column("", "name", shown=False),
        Column("", "value", "number", shown=False),
    )
    rows: list[tuple[Cell, ...]] = []
    for title, field in FIGURES:
        value = getattr(figures, field)
        shown = _UNSHOWN[field] if value is None else _shown_figure(field, value)
        rows.append((title, shown, _KEYS[field], value))
    return Section("summary", "summary", columns, tuple(rows), named_only=named_only, audience="scripts")


def _trials(trials: GroupTrials, *, screen: bool) -> Section:
    """What many simulations say; CSV has numbers beside the texts, and a screen only what is not 0 in all of them."""
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
        if spread is not None and (spread.max or not screen):
            values = (spread.p50, spread.p95, spread.max)
            shown = tuple(_shown_figure(field, value) for value in values)
            rows.append((title, *shown, spread.max_trial, _KEYS[field], *values))
    title = f"{trials.trials} trials"
    if trials.converged < trials.trials:
        title += f", {trials.trials - trials.converged} of which did not converge"
    return Section("trials", title, columns, tuple(rows), heads=1, audience="screen" if screen else "scripts")


def _shown_figure(field: str, value: float) -> str:
    return duration(value) if field.endswith("_ms") else f"{value:.10g}"
