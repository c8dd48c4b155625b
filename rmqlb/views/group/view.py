"""A `GroupReport` as a report."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.group_report import GroupReport, GroupTrials, Interval
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import TriedCondition
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.views.group.data import group_data, parts
from rmqlb.views.group.facts import group_facts, named, time
from rmqlb.views.group.figures import figures_section, trials_section
from rmqlb.views.group.strips import SYMBOLS, symbols
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
        figures_section(report.figures, named_only=trials is not None),
    )
    data = group_data(report, trials, conditions, explain=explain)
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
        Column("owners", "state", shown=bool(report.figures.queues_outage)),
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
    several = "" if report.scenario.broadcasting else " or with several"
    title = f"windows without owner{several}" + (", and outages" if report.figures.queues_outage else "")
    return Section("windows", title, columns, rows, heads=3, brief=brief, chosen=f"the {_MOST_WINDOWS} longest")


def _times(interval: Interval | Window) -> tuple[float, float, float]:
    return (
        milliseconds(interval.from_us),
        milliseconds(interval.to_us),
        milliseconds(interval.to_us - interval.from_us),
    )


def _owners(interval: Interval | None) -> Cell:
    """A dash where there is nothing: the simulation begins or ends there, or the queue is gone."""
    return NOT_THERE if interval is None or (interval.state == "gone" and not interval.owners) else interval.owners


def _queues(report: GroupReport) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("before", "ownersAtStart", "clients"),
        Column("after", "ownersAtEnd", "clients"),
        Column("none for", "noneMs", "ms"),
        Column("longest", "longestNoneMs", "ms"),
        Column("several for", "severalMs", "ms"),
        Column("longest", "longestSeveralMs", "ms"),
        Column("outage for", "outageMs", "ms", shown=bool(report.figures.queues_outage)),
        Column("longest", "longestOutageMs", "ms", shown=bool(report.figures.queues_outage)),
        Column("unread for", "unreadMs", "ms"),
        Column("taken", "taken", "number"),
        Column("again, at most", "again", "number"),
    )
    rows = tuple(
        (
            *_place(one.queue),
            _owners(one.intervals[0] if one.intervals else None),
            _owners(one.intervals[-1] if one.intervals else None),
            *map(milliseconds, (one.none_us, one.longest_none_us, one.several_us, one.longest_several_us)),
            *map(milliseconds, (one.outage_us, one.longest_outage_us, one.unread_us)),
            len(one.takeovers),
            one.again,
        )
        for one in report.timelines
    )
    longest = [max(one.longest_none_us, one.longest_several_us, one.longest_outage_us) for one in report.timelines]
    brief = worst(longest, _MOST_QUEUES)
    return Section("queues", "queues", columns, rows, heads=3, named_only=True, brief=brief)


def _takeovers(report: GroupReport, *, named_only: bool) -> Section:
    found = sorted(
        ((takeover, timeline) for timeline in report.timelines for takeover in timeline.takeovers),
        key=lambda pair: pair[0].at_us,
    )
    columns = (
        *QUEUE_COLUMNS,
        Column("taken by", "clientId", "clients"),
        Column("at", "atMs", "ms"),
        Column("reads from", "readsFromMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number", shown=any(one.start.offset is not None for one, _ in found)),
        Column("again, the last", "againMs", "ms"),
        Column("messages", "again", "number", shown=any(one.again for one, _ in found)),
        Column("because", "startReason", quiet=True),
    )
    rows = tuple(
        (
            *_place(timeline.queue),
            one.client_id,
            milliseconds(one.at_us),
            milliseconds_if_known(one.reads_from_us),
            milliseconds_if_known(one.unread_us),
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
        (milliseconds(step.at_us), step.who, step.what, step.text, "; ".join(map(named, step.queues)))
        for step in report.steps
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
    concerned = [part.taken + abs(part.at_end - part.at_start) + len(happens.get(part.client_id, ())) for part in found]
    title = "consumers, and how many queues they own before and after"
    return Section("consumers", title, columns, rows, heads=3, brief=worst(concerned, _MOST_CONSUMERS))
