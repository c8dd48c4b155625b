"""A `GroupReport` as a report."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.consuming import Event, GroupReport, GroupTrials, Interval, QueueTimeline
from rmqlb.model.plan import TriedCondition
from rmqlb.views.group_data import group_data, parts
from rmqlb.views.group_facts import group_facts, named, time
from rmqlb.views.group_figures_view import figures_section, trials_section
from rmqlb.views.group_strips import SYMBOLS, symbols
from rmqlb.views.group_timeline import event_marks, timeline_section
from rmqlb.views.plan_view import labels
from rmqlb.views.report import Cell, Column, Report, Section, milliseconds, worst

_MOST_WINDOWS = 30
_MOST_EVENTS = 20
_MOST_CONSUMERS = 40
_MOST_QUEUES = 40
_MOST_STEPS = 200
_QUEUE = (Column("topic", "topic", quiet=True), Column("broker", "brokerName"), Column("queue", "queueId", "number"))
_NO_SIDE: Cell = ("-",)
"""Of a window at the beginning or the end of the simulation: nothing is known of before or after."""


def group_report(
    report: GroupReport,
    *,
    trials: GroupTrials | None = None,
    explain: bool = False,
    conditions: Sequence[TriedCondition] = (),
) -> Report:
    """The simulation for people and machines.

    Args:
        report: what came of it.
        trials: what many trials say.
        explain: people see the steps and the takeovers, machines the steps.
        conditions: what the user asked to be told about.
    """
    sections = (
        timeline_section(report),
        _windows(report),
        _queues(report),
        _takeovers(report, named_only=not explain),
        *([_steps(report)] if explain else ()),
        _intervals(report),
        _events(report.events),
        _consumers(report),
        *(() if trials is None else (trials_section(trials),)),
        figures_section(report.figures),
    )
    data = group_data(report, trials, conditions, explain=explain)
    return Report(
        "rmqlb/simulate-rebalance", data, group_facts(report, trials), sections, member_labels(report.members)
    )


def member_labels(members: Sequence[str]) -> dict[str, str]:
    """Client id → what a narrow table calls it: its letter in the picture, its number when letters do not suffice."""
    ids = list(dict.fromkeys(members))
    return symbols(ids) if len(ids) <= len(SYMBOLS) else labels(ids)


def _place(timeline: QueueTimeline) -> tuple[Cell, ...]:
    return timeline.queue.topic, timeline.queue.broker_name, timeline.queue.queue_id


def _windows(report: GroupReport) -> Section:
    columns = (
        *_QUEUE,
        Column("owners", "state"),
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("for", "lengthMs", "ms"),
        Column("before", "ownersBefore", "clients"),
        Column("meanwhile", "owners", "clients"),
        Column("after", "ownersAfter", "clients"),
    )
    found: list[tuple[int, int, tuple[Cell, ...]]] = []
    for timeline in report.timelines:
        for before, window, after in zip(
            (None, *timeline.intervals), timeline.intervals, (*timeline.intervals[1:], None), strict=False
        ):
            if window.state in ("none", "several"):
                length = window.to_us - window.from_us
                row = (*_place(timeline), window.state, *_times(window), _owners(before), window.owners, _owners(after))
                found.append((window.from_us, length, row))
    found.sort(key=lambda each: each[0])
    brief = worst([length for _, length, _ in found], _MOST_WINDOWS)
    title = "windows without owner or with several"
    if brief is not None:
        title += f", the {_MOST_WINDOWS} longest"
    return Section("windows", title, columns, tuple(row for _, _, row in found), heads=4, brief=brief)


def _times(interval: Interval) -> tuple[float, float, float]:
    return (
        milliseconds(interval.from_us),
        milliseconds(interval.to_us),
        milliseconds(interval.to_us - interval.from_us),
    )


def _owners(interval: Interval | None) -> Cell:
    return _NO_SIDE if interval is None else interval.owners


def _queues(report: GroupReport) -> Section:
    columns = (
        *_QUEUE,
        Column("at first", "ownersAtStart", "clients"),
        Column("at last", "ownersAtEnd", "clients"),
        Column("none for", "noneMs", "ms"),
        Column("longest", "longestNoneMs", "ms"),
        Column("several for", "severalMs", "ms"),
        Column("longest", "longestSeveralMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("taken", "taken", "number"),
        Column("again, at most", "again", "number"),
    )
    rows = tuple(
        (
            *_place(one),
            _owners(one.intervals[0] if one.intervals else None),
            _owners(one.intervals[-1] if one.intervals else None),
            *map(milliseconds, (one.none_us, one.longest_none_us, one.several_us, one.longest_several_us)),
            milliseconds(one.unread_us),
            len(one.takeovers),
            one.again,
        )
        for one in report.timelines
    )
    brief = worst([max(one.longest_none_us, one.longest_several_us) for one in report.timelines], _MOST_QUEUES)
    return Section("queues", "queues", columns, rows, heads=3, named_only=True, brief=brief)


def _takeovers(report: GroupReport, *, named_only: bool) -> Section:
    columns = (
        *_QUEUE,
        Column("taken by", "clientId", "clients"),
        Column("at", "atMs", "ms"),
        Column("reads from", "readsFromMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number"),
        Column("again, the last", "againMs", "ms"),
        Column("messages", "again", "number"),
        Column("because", "startReason"),
    )
    found = sorted(
        ((takeover, timeline) for timeline in report.timelines for takeover in timeline.takeovers),
        key=lambda pair: pair[0].at_us,
    )
    rows = tuple(
        (
            *_place(timeline),
            one.client_id,
            milliseconds(one.at_us),
            None if one.reads_from_us is None else milliseconds(one.reads_from_us),
            None if one.unread_us is None else milliseconds(one.unread_us),
            one.start.rule,
            one.start.offset,
            milliseconds(one.again_us),
            one.again,
            one.start.reason,
        )
        for one, timeline in found
    )
    brief = worst([one.unread_us or 0 for one, _ in found], _MOST_QUEUES)
    return Section("takeovers", "takeovers", columns, rows, heads=4, named_only=named_only, brief=brief)


def _intervals(report: GroupReport) -> Section:
    columns = (
        *_QUEUE,
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("for", "lengthMs", "ms"),
        Column("state", "state"),
        Column("owners", "owners", "clients"),
    )
    rows = tuple(
        (*_place(timeline), *_times(interval), interval.state, interval.owners)
        for timeline in report.timelines
        for interval in timeline.intervals
    )
    return Section("intervals", "intervals", columns, rows, heads=4, named_only=True)


def _steps(report: GroupReport) -> Section:
    columns = (
        Column("at", "atMs", "ms"),
        Column("who", "who", "clients"),
        Column("what", "what"),
        Column("", "text"),
        Column("queues", "queues", shown=False),
    )
    rows = tuple(
        (milliseconds(step.at_us), step.who, step.what, step.text, "; ".join(map(named, step.queues)))
        for step in report.steps
    )
    brief = tuple(range(_MOST_STEPS)) if len(rows) > _MOST_STEPS else None
    return Section("steps", "what happens and why", columns, rows, heads=3, brief=brief)


def _events(events: Sequence[Event]) -> Section:
    columns = (
        Column("#", "mark"),
        Column("at", "atMs", "ms"),
        Column("event", "kind"),
        Column("of", "subject", "clients"),
        Column("strategy", "strategy", shown=any(event.strategy for event in events)),
        Column("broker", "brokerName", shown=any(event.broker_name for event in events)),
        Column("read queues", "readQueueNums", "number", shown=any(event.read_queues is not None for event in events)),
        Column("write queues", "writeQueueNums", "number", shown=any(e.write_queues is not None for e in events)),
        Column("as written", "text", shown=False),
    )
    rows = tuple(
        (
            mark,
            milliseconds(event.at_us),
            event.kind,
            event.subject,
            event.strategy,
            event.broker_name,
            event.read_queues,
            event.write_queues,
            event.text,
        )
        for mark, event in zip(event_marks(events), events, strict=True)
    )
    brief = tuple(range(_MOST_EVENTS)) if len(rows) > _MOST_EVENTS else None
    return Section("events", "events", columns, rows, heads=3, brief=brief)


def _consumers(report: GroupReport) -> Section:
    letters, short = symbols(report.members), member_labels(report.members)
    columns = (
        Column("", "letter"),
        Column("#", "label", shown=letters != short),
        Column("consumer", "clientId"),
        Column("queues at first", "queuesAtStart", "number"),
        Column("at last", "queuesAtEnd", "number"),
        Column("taken", "taken", "number"),
        Column("events", "events"),
    )
    happens: dict[str, list[str]] = {}
    for event in report.events:
        happens.setdefault(event.subject, []).append(f"{event.kind} {time(event.at_us)}")
    found = parts(report)
    rows = tuple(
        (
            letters[part.client_id],
            short[part.client_id],
            part.client_id,
            part.at_start,
            part.at_end,
            part.taken,
            ", ".join(happens.get(part.client_id, ())),
        )
        for part in found
    )
    brief = worst([part.taken for part in found], _MOST_CONSUMERS)
    return Section("consumers", "consumers", columns, rows, heads=3, brief=brief)
