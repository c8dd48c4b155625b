"""A `GroupReport` as a report."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.group_report import GroupReport, GroupTrials, Interval
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import TriedCondition
from rmqlb.model.times import milliseconds
from rmqlb.views.group.facts import group_facts, named, time
from rmqlb.views.group.figures import figures_section, trials_section
from rmqlb.views.group.result import consumer_parts, group_result
from rmqlb.views.group.strips import SYMBOLS, longest_ms, symbols
from rmqlb.views.group.timeline import event_marks, timeline_section
from rmqlb.views.group.windows import Window, windows
from rmqlb.views.report import NOT_THERE, QUEUE_COLUMNS, Cell, Column, Report, Section, labels, worst

_MOST_WINDOWS = 30
_MOST_EVENTS = 20
_MOST_CONSUMERS = 40
_MOST_QUEUES = 40
_MOST_STEPS = 200


def group_report(
    report: GroupReport,
    *,
    trials: GroupTrials | None = None,
    explain: bool = False,
    conditions: Sequence[TriedCondition] = (),
) -> Report:
    """The simulation for people and machines; with `explain` both see the steps, and people the takeovers."""
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
        figures_section(report.figures, named_only=trials is not None),
    )
    data = group_result(report, trials, conditions, explain=explain)
    return Report(
        "rmqlb/simulate-rebalance", data, group_facts(report, trials), sections, member_labels(report.members)
    )


def member_labels(members: Sequence[str]) -> dict[str, str]:
    """Client id → what a narrow table calls it: its letter in the picture, its number when letters do not suffice."""
    ids = list(dict.fromkeys(members))
    return symbols(ids) if len(ids) <= len(SYMBOLS) else labels(ids)


def _place(queue: MessageQueue) -> tuple[Cell, ...]:
    return queue.topic, queue.broker_name, queue.queue_id


def _windows(report: GroupReport) -> Section:
    found = windows(report)
    columns = (
        *QUEUE_COLUMNS,
        Column("owners", "state", shown=bool(report.figures.queues_with_outage)),
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms", shown=False),
        Column("for", "lengthMs", "ms"),
        Column("before", "ownersBefore", "clients"),
        Column("meanwhile", "owners", "clients"),
        Column("after", "ownersAfter", "clients"),
    )
    rows = tuple(
        (
            *_place(window.queue),
            window.state,
            *_times(window),
            _owners(window.before),
            window.owners,
            _owners(window.after),
        )
        for window in found
    )
    brief = worst([window.length_us for window in found], _MOST_WINDOWS)
    kinds = ["gaps", *([] if report.scenario.broadcasting else ["overlaps"])]
    kinds += ["outages"] if report.figures.queues_with_outage else []
    title = ", ".join(kinds)
    return Section("windows", title, columns, rows, heads=3, brief=brief, chosen=f"the {_MOST_WINDOWS} longest")


def _times(interval: Interval | Window) -> tuple[float, float, float]:
    return interval.from_ms, interval.to_ms, milliseconds(interval.to_us - interval.from_us)


def _owners(interval: Interval | None) -> Cell:
    """A dash where there is nothing: the simulation begins or ends there, or the queue is gone."""
    return NOT_THERE if interval is None or (interval.state == "gone" and not interval.owners) else interval.owners


def _queues(report: GroupReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("before", "ownersAtStart", "clients"),
        Column("after", "ownersAtEnd", "clients"),
        Column("total gap", "totalGapMs", "ms"),
        Column("longest", "longestGapMs", "ms"),
        Column("total overlap", "totalOverlapMs", "ms"),
        Column("longest", "longestOverlapMs", "ms"),
        Column("total outage", "totalOutageMs", "ms", shown=bool(report.figures.queues_with_outage)),
        Column("longest", "longestOutageMs", "ms", shown=bool(report.figures.queues_with_outage)),
        Column("unread for", "unreadMs", "ms"),
        Column("taken", "taken", "number"),
        Column("redelivered, at most", "redelivered", "number"),
    )
    rows = tuple(
        (
            *_place(one.queue),
            _owners(one.intervals[0] if one.intervals else None),
            _owners(one.intervals[-1] if one.intervals else None),
            *(one.total_gap_ms, one.longest_gap_ms, one.total_overlap_ms, one.longest_overlap_ms),
            *(one.total_outage_ms, one.longest_outage_ms, one.unread_ms),
            len(one.takeovers),
            one.redelivered,
        )
        for one in report.timelines
    )
    longest = [longest_ms(one) for one in report.timelines]
    brief = worst(longest, _MOST_QUEUES)
    return Section("queues", "queues", columns, rows, heads=3, named_only=True, brief=brief)


def _takeovers(report: GroupReport, *, named_only: bool) -> Section:
    found = sorted(
        ((takeover, timeline) for timeline in report.timelines for takeover in timeline.takeovers),
        key=lambda pair: pair[0].at_ms,
    )
    columns = (
        *QUEUE_COLUMNS,
        Column("taken by", "clientId", "clients"),
        Column("at", "atMs", "ms"),
        Column("reads from", "readsFromMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number", shown=any(one.start_offset is not None for one, _ in found)),
        Column("redelivered, the last", "redeliveredMs", "ms"),
        Column("messages", "redelivered", "number", shown=any(one.redelivered for one, _ in found)),
        Column("because", "startReason", quiet=True),
    )
    rows = tuple(
        (
            *_place(timeline.queue),
            one.client_id,
            one.at_ms,
            one.reads_from_ms,
            one.unread_ms,
            one.start_rule,
            one.start_offset,
            one.redelivered_ms,
            one.redelivered,
            one.start_reason,
        )
        for one, timeline in found
    )
    brief = worst([one.unread_ms or 0 for one, _ in found], _MOST_QUEUES)
    return Section("takeovers", "takeovers", columns, rows, heads=4, named_only=named_only, brief=brief)


def _intervals(report: GroupReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("for", "lengthMs", "ms"),
        Column("state", "state"),
        Column("owners", "owners", "clients"),
    )
    rows = tuple(
        (*_place(timeline.queue), *_times(interval), interval.state, interval.owners)
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
        (step.at_ms, step.who, step.what, step.text, "; ".join(map(named, step.queues))) for step in report.steps
    )
    brief = tuple(range(_MOST_STEPS)) if len(rows) > _MOST_STEPS else None
    return Section("steps", "what happens and why", columns, rows, brief=brief)


def _events(events: Sequence[Event]) -> Section:
    columns = (
        Column("#", "mark"),
        Column("at", "atMs", "ms"),
        Column("event", "kind"),
        Column("of", "subject", "clients"),
        Column("strategy", "strategy", shown=any(event.strategy_name for event in events)),
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
            event.strategy_name,
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
        Column("before", "queuesAtStart", "number"),
        Column("after", "queuesAtEnd", "number"),
        Column("taken", "taken", "number"),
        Column("events", "events"),
    )
    happens: dict[str, list[str]] = {}
    for event in report.events:
        happens.setdefault(event.subject, []).append(f"{event.kind} {time(event.at_us)}")
    found = consumer_parts(report)
    rows = tuple(
        (
            letters[part.client_id],
            short[part.client_id],
            part.client_id,
            part.queues_at_start,
            part.queues_at_end,
            part.taken,
            ", ".join(happens.get(part.client_id, ())),
        )
        for part in found
    )
    concerned = [
        part.taken + abs(part.queues_at_end - part.queues_at_start) + len(happens.get(part.client_id, ()))
        for part in found
    ]
    title = "consumers, and how many queues they own before and after"
    return Section("consumers", title, columns, rows, heads=3, brief=worst(concerned, _MOST_CONSUMERS))
