"""The simulation of one or several groups as a report: its sentences and its tables.

The first line is the verdict, the bad before the usual; a bound is called one, and the unknown is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET, TIMER_NAMES, Timers
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.simulate_rebalance import (
    FigureSpread,
    GroupFigures,
    Interval,
    OfQueue,
    OwnerState,
    QueueTimeline,
    RebalanceResult,
    RebalanceResults,
    SimulatedEvent,
    SimulationsSummary,
    timers_in_ms,
)
from rmqlb.model.simulate_send import SendResult
from rmqlb.model.words import counted, messages, of_all
from rmqlb.views.of_groups import of_groups, rank
from rmqlb.views.report import (
    BETWEEN,
    NOT_THERE,
    QUEUE_COLUMNS,
    Audience,
    Cell,
    Column,
    Report,
    Section,
    about,
    duration,
    first_places,
    labels,
    rows_of,
    worst,
)
from rmqlb.views.simulate_send import send_gravity, some_messages
from rmqlb.views.timeline import SYMBOLS, event_marks, letter_styles, symbols, timeline_section

_MOST_NAMES, _MOST_IN_LEAD = 3, 2  # events in a sentence; the first line names two, and the picture marks where
_MOST_WINDOWS, _MOST_EVENTS, _MOST_CONSUMERS, _MOST_QUEUES, _MOST_STEPS, _MOST_PRODUCERS = 30, 20, 40, 40, 200, 20

_TITLES = {"convergence_ms": "converged after", "unread_ms": "longest unread", "redelivered": "redelivered, at most"}
FIGURES = tuple(
    (_TITLES.get(name) or name.removesuffix("_ms").replace("_", " "), name) for name in GroupFigures.__struct_fields__
)
"""A figure for people, and its field of `GroupFigures`."""
_UNSHOWN = {"convergence_ms": "not converged", "redelivered": "unknown"}
_KEYS = dict(zip(GroupFigures.__struct_fields__, GroupFigures.__struct_encode_fields__, strict=True))


def rebalance_report(found: RebalanceResult | RebalanceResults) -> Report:
    """One group with its tables, or several groups, a line each, and the producers of their topics."""
    if isinstance(found, RebalanceResult):
        return group_report(found)
    summary, groups, producers = found.summary, found.groups, found.producers
    whole = of_groups(
        [(each.group or "", group_report(each)) for each in groups],
        tuple(_facts_of_all(summary, groups, producers)),
        found,
        _overview(groups),
        order=[(rank(each.gravity), *_badness(each.figures)) for each in groups],
        beside=(_producers(producers),) if producers else (),
    )
    return replace(whole, grave=min((whole.grave, *(send_gravity(each.totals) for each in producers)), key=rank))


def group_report(found: RebalanceResult) -> Report:
    """One group: a screen has the picture, and whose letter is whose; the tables behind it are a script's."""
    sections = (
        timeline_section(found),
        _windows(found),
        _queues(found),
        _takeovers(found),
        *([] if found.steps is None else [_steps(found)]),
        _intervals(found),
        _events(found),
        _consumers(found),
        *(() if found.trials is None else (_trials(found, screen=True), _trials(found, screen=False))),
        _figures(found),
    )
    return Report(
        "rmqlb/simulate-rebalance",
        found,
        group_facts(found),
        sections,
        consumer_labels(found.client_ids),
        grave=found.gravity,
        closing=(_rules(found), *_settings(found)),
    )


def consumer_labels(client_ids: Sequence[str]) -> dict[str, str]:
    """Client ID → its name in a narrow table: its letter in the picture, or a number if there are too few letters."""
    ids = list(dict.fromkeys(client_ids))
    return symbols(ids) if len(ids) <= len(SYMBOLS) else labels(ids)


# The sentences of one group.


def group_facts(found: RebalanceResult) -> tuple[str, ...]:
    longest = tuple(_longest(found.figures, len(found.queues), broadcasting=found.broadcasting))
    outages = tuple(_cannot_be_read(found))
    verdict = (*_at_end(found), *(outages or longest), _converged(found))
    return (
        f"{found.group or 'the group'}, {_event_texts(found.events) or 'no event'}: {'; '.join(verdict)}",
        f"  {BETWEEN.join((*(longest if outages else ()), *_messages(found)))}",
        *(f"  {line}" for line in _over_trials(found)),
    )


def _event_texts(events: Iterable[SimulatedEvent]) -> str:
    """The first few, each once, as the user wrote them or with their time."""
    texts: dict[str, None] = {}
    for event in events:
        plain = f"{event.kind} {event.subject}"
        texts[event.text if event.text not in ("", plain) else f"{plain} at {duration(event.at_ms)}"] = None
    return _some(list(texts))


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more


def _converged(found: RebalanceResult) -> str:
    convergence_ms, events = found.figures.convergence_ms, found.events
    if convergence_ms is None:
        since = "the start" if not events else "it" if len(events) == 1 else "the last event"
        lasted = about(found.end_ms - (events[-1].at_ms if events else 0))
        return f"not converged {lasted} after {since}, where the simulation ends"
    if convergence_ms == 0:
        changes = any(len({one.owners for one in each.intervals}) > 1 for each in found.queues)
        return "no queue gets a new owner" if changes else "no queue changes its owner"
    if not events:
        return f"converged {about(convergence_ms)} after the start"
    after_last = convergence_ms - (events[-1].at_ms - events[0].at_ms)
    if after_last <= 0:
        return f"converged {about(convergence_ms)} after the first event"
    back = events[-1].kind == "broker-up" and any(event.subject == events[-1].subject for event in events[:-1])
    what = f"{events[-1].subject} is back" if back else "it" if len(events) == 1 else "the last event"
    return f"converged {about(after_last)} after {what}"


def _cannot_be_read(found: RebalanceResult) -> Iterator[str]:
    f = found.figures
    if f.queues_with_outage:
        left = f.queues_with_outage_at_end
        rest = f" and more: {'it' if f.queues_with_outage == 1 else left} still cannot at the end" if left else ""
        yield f"{_of(f.queues_with_outage, found)} cannot be read for up to {about(f.longest_outage_ms)}{rest}"


def _at_end(found: RebalanceResult) -> Iterator[str]:
    """What stays bad: a group that has converged may have converged badly."""
    f = found.figures
    overlaps = 0 if found.broadcasting else f.queues_with_overlap_at_end
    bad = ((f.queues_with_gap_at_end, "unassigned"), (overlaps, "with duplicate owners"))
    parts = [f"{_of(number, found)} {what}" for number, what in bad if number]
    before = found.misassigned_throughout
    if parts:
        yield f"{' and '.join(parts)} at the end" + (f", {before} of them from the start" if before else "")


def _longest(f: GroupFigures | SimulationsSummary, queues: int, *, broadcasting: bool = False) -> Iterator[str]:
    """The longest gap and overlap, and of how many queues; with BROADCASTING several owners are as it should be."""
    for what in ("gap",) if broadcasting else ("gap", "overlap"):
        number, longest_ms = getattr(f, f"queues_with_{what}"), getattr(f, f"longest_{what}_ms")
        yield f"longest {what} {about(longest_ms)} ({of_all(number, queues)})" if number else f"no {what}"


def _of(number: int, found: RebalanceResult) -> str:
    return of_all(number, len(found.queues))


def _messages(found: RebalanceResult) -> Iterator[str]:
    f = found.figures
    behind = max((takeover.redelivered_ms for one in found.queues for takeover in one.takeovers), default=0)
    if not f.taken:
        yield "no queue is taken over, so no message is redelivered"
    elif f.redelivered is not None:
        yield f"at most {messages(f.redelivered)} redelivered"
    elif behind:
        yield f"redelivered: at most a queue's last {about(behind)}, how many messages is unknown without --rate"
    else:
        yield "no message redelivered"
    if f.queues_unread_at_end:
        yield f"no consumer reads {_of(f.queues_unread_at_end, found)} at the end: messages there wait on"
    else:
        yield f"a message waits up to {about(f.unread_ms)}" if f.unread_ms else "no message waits for a new owner"


def _over_trials(found: RebalanceResult) -> Iterator[str]:
    trials = found.trials
    if trials is None:
        return
    if not trials.converged:
        yield f"none of {trials.trials} trials converged"
    elif (spread := trials.figures.convergence_ms) is not None:
        some = "" if trials.converged == trials.trials else f"{trials.converged} of "
        yield (
            f"{some}{trials.trials} trials converged: p50 {about(spread.p50)}, p95 {about(spread.p95)}, "
            f"max {about(spread.max)} (trial {spread.max_trial})"
        )
    parts = []
    for what in ("outage", "gap", "overlap"):
        spread = getattr(trials.figures, f"longest_{what}_ms")
        if what != "outage" or spread.max:
            parts.append(f"{what} p95 {about(spread.p95)}, max {about(spread.max)}")
    yield f"longest in a trial: {'; '.join(parts)}"


def _rules(found: RebalanceResult) -> str:
    s = found.scenario
    topics = list(dict.fromkeys(one.topic for one in found.queues))
    consumers = counted(len(found.consumers), "consumer")
    queues = f"{counted(len(found.queues), 'queue')} of {_some(topics)}" if topics else "no queue"
    model = "BROADCASTING" if s.broadcasting else f"strategy {found.strategy}"
    types = Counter(s.consumer_types.get(each, s.consumer_type) for each in found.client_ids)
    others = ", ".join(f"{number} {name}" for name, number in types.items()) if set(types) - {"push"} else ""
    kind = (", orderly" if s.orderly else "") + (f"; {others} consumers" if others else "")
    return f"{consumers}, {queues}; {model}{kind}; client {s.client_version} (rules of {s.profile})"


def _settings(found: RebalanceResult) -> Iterator[str]:
    s = found.scenario
    parts = [f"seed {s.seed}, trial {found.trial}", f"a request takes about {duration(s.latency_ms)}"]
    if s.consume_ms:
        parts.append(f"a message takes the listener {duration(s.consume_ms)}")
    if s.consume_from_where != CONSUME_FROM_LAST_OFFSET:
        parts.append(s.consume_from_where)
    if s.all_new:
        parts.append("all consumers start at 0s")
    yield "; ".join(parts)
    usual, given = timers_in_ms(Timers()), []
    for name, field in zip(TIMER_NAMES, usual.__struct_fields__, strict=True):
        values = (getattr(timers, field) for timers in (s.timers, usual))
        own, default = ("what the client version does" if ms is None else duration(ms) for ms in values)
        if own != default:
            given.append(f"{name} {own} instead of {default}")
    if given:
        yield f"timers: {', '.join(given)}"


# The tables of one group.


class Window(OfQueue, frozen=True):
    """A stretch of time in which a queue is unassigned, has duplicate owners, or is in an outage."""

    state: OwnerState
    from_ms: float
    to_ms: float
    owners: tuple[str, ...]  # all that own the queue at some time of it, sorted
    before: Interval | None
    after: Interval | None


def windows(found: RebalanceResult) -> list[Window]:
    bad = ("unassigned", "outage") if found.broadcasting else ("unassigned", "outage", "duplicate-owners")
    return sorted((window for one in found.queues for window in _windows_of(one, bad)), key=attrgetter("from_ms"))


def _windows_of(one: QueueTimeline, bad: tuple[str, ...]) -> Iterator[Window]:
    stretches = [tuple(stretch) for _, stretch in groupby(one.intervals, key=attrgetter("state"))]
    for place, stretch in enumerate(stretches):
        if stretch[0].state not in bad:
            continue
        owners = tuple(sort_client_ids({owner for interval in stretch for owner in set(interval.owners)}))
        yield Window(
            *(one.topic, one.broker_name, one.queue_id),
            stretch[0].state,
            stretch[0].from_ms,
            stretch[-1].to_ms,
            owners if len(stretch) > 1 else stretch[0].owners,
            stretches[place - 1][-1] if place else None,
            stretches[place + 1][0] if place + 1 < len(stretches) else None,
        )


def _windows(found: RebalanceResult) -> Section:
    shown = windows(found)
    with_outage = bool(found.figures.queues_with_outage)
    columns = (
        *QUEUE_COLUMNS,
        Column("owners", "state", shown=with_outage),
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms", shown=False),
        Column("for", "lengthMs", "ms", of=_length),
        Column("before", "ownersBefore", "clients", of=lambda window: _owners(window.before)),
        Column("meanwhile", "owners", "clients"),
        Column("after", "ownersAfter", "clients", of=lambda window: _owners(window.after)),
    )
    brief = worst([_length(window) for window in shown], _MOST_WINDOWS)
    title = ("gaps" if found.broadcasting else "gaps, overlaps") + (", outages" if with_outage else "")
    longest = f"the {_MOST_WINDOWS} longest"
    rows = rows_of(columns, shown)
    return Section("windows", title, columns, rows, heads=3, brief=brief, chosen=longest, audience="scripts")


def _length(span: Interval | Window) -> float:
    length = round((span.to_ms - span.from_ms) * 1000)
    return length // 1000 if length % 1000 == 0 else length / 1000


def _owners(interval: Interval | None) -> Cell:
    """A dash where the simulation begins or ends, or the queue is gone."""
    return NOT_THERE if interval is None or (interval.state == "gone" and not interval.owners) else interval.owners


def _queues(found: RebalanceResult) -> Section:
    with_outage = bool(found.figures.queues_with_outage)
    ends = [(one.intervals[0], one.intervals[-1]) if one.intervals else (None, None) for one in found.queues]
    columns = (
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
    rows = tuple(
        (one.topic, one.broker_name, one.queue_id, _owners(first), _owners(last), *row)
        for one, (first, last), row in zip(found.queues, ends, rows_of(columns, found.queues), strict=True)
    )
    owners = Column("before", "ownersAtStart", "clients"), Column("after", "ownersAtEnd", "clients")
    brief = worst([one.longest_bad_ms for one in found.queues], _MOST_QUEUES)
    return Section("queues", "queues", (*QUEUE_COLUMNS, *owners, *columns), rows, heads=3, named_only=True, brief=brief)


def _takeovers(found: RebalanceResult) -> Section:
    """A screen has them with the steps only."""
    takeovers = sorted((each for one in found.queues for each in one.takeovers), key=attrgetter("at_ms"))
    columns = (
        *QUEUE_COLUMNS,
        Column("taken by", "clientId", "clients"),
        Column("at", "atMs", "ms"),
        Column("reads from", "readsFromMs", "ms"),
        Column("unread for", "unreadMs", "ms"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number", shown=any(one.start_offset is not None for one in takeovers)),
        Column("redelivered, the last", "redeliveredMs", "ms"),
        Column("messages", "redelivered", "number", shown=any(one.redelivered for one in takeovers)),
        Column("because", "startReason", quiet=True),
    )
    brief = worst([one.unread_ms or 0 for one in takeovers], _MOST_QUEUES)
    rows, hidden = rows_of(columns, takeovers), found.steps is None
    return Section("takeovers", "takeovers", columns, rows, heads=4, named_only=hidden, brief=brief)


def _intervals(found: RebalanceResult) -> Section:
    columns = (
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("for", "lengthMs", "ms", of=_length),
        Column("state", "state"),
        Column("owners", "owners", "clients"),
    )
    rows = tuple(
        (one.topic, one.broker_name, one.queue_id, *row)
        for one in found.queues
        for row in rows_of(columns, one.intervals)
    )
    return Section("intervals", "intervals", (*QUEUE_COLUMNS, *columns), rows, heads=4, named_only=True)


def _steps(found: RebalanceResult) -> Section:
    columns = (
        Column("at", "atMs", "ms"),
        Column("who", "who", "clients"),
        Column("what", "what"),
        Column("", "text"),
        Column("queues", "queues", shown=False, of=lambda step: "; ".join(map(_queue_text, step.queues))),
    )
    rows = rows_of(columns, found.steps or ())
    return Section("steps", "what happens and why", columns, rows, brief=first_places(len(rows), _MOST_STEPS))


def _queue_text(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}"


def _events(found: RebalanceResult) -> Section:
    """A screen has them if the first line cannot name all, and the table of consumers does not."""
    events, consumers = found.events, set(found.client_ids)

    columns: tuple[Column, ...] = (
        Column("at", "atMs", "ms"),
        Column("event", "kind"),
        Column("of", "subject", "clients"),
        Column("strategy", "strategy", shown=any(event.strategy for event in events)),
        Column("broker", "brokerName", shown=any(event.broker_name for event in events)),
        *(
            Column(f"{what} queues", f"{what}QueueNums", "number", shown=any(map(number, events)), of=number)
            for what in ("read", "write")
            for number in [attrgetter(f"{what}_queues")]
        ),
        Column("as written", "text", shown=False),
    )
    rows = tuple((mark, *row) for mark, row in zip(event_marks(events), rows_of(columns, events), strict=True))
    brief = first_places(len(rows), _MOST_EVENTS)
    is_known = len(events) <= _MOST_IN_LEAD or all(event.subject in consumers for event in events)
    audience: Audience = "scripts" if is_known else "all"
    return Section("events", "events", (Column("#", "mark"), *columns), rows, heads=3, brief=brief, audience=audience)


def _consumers(found: RebalanceResult) -> Section:
    letters, short = symbols(found.client_ids), consumer_labels(found.client_ids)
    happens: dict[str, list[str]] = {}
    for event in found.events:
        happens.setdefault(event.subject, []).append(f"{event.kind} {duration(event.at_ms)}")
    concerned = not happens.keys().isdisjoint(letters)
    columns = (
        Column("", "letter", styles=letter_styles(letters), of=lambda part: letters[part.client_id]),
        Column("#", "label", shown=letters != short, of=lambda part: short[part.client_id]),
        Column("consumer", "clientId"),
        Column("before", "queuesAtStart", "number"),
        Column("after", "queuesAtEnd", "number"),
        Column("taken", "taken", "number"),
        Column("events", "events", shown=concerned, of=lambda part: ", ".join(happens.get(part.client_id, ()))),
    )
    changes = [
        part.taken + abs(part.queues_at_end - part.queues_at_start) + len(happens.get(part.client_id, ()))
        for part in found.consumers
    ]
    rows, brief = rows_of(columns, found.consumers), worst(changes, _MOST_CONSUMERS)
    return Section("consumers", "consumers: queues before and after", columns, rows, heads=3, brief=brief)


def _figures(found: RebalanceResult) -> Section:
    """CSV has each figure as a text and as a number."""
    columns = (
        Column("", "figure"),
        Column("value", "shown"),
        Column("", "name", shown=False),
        Column("", "value", "number", shown=False),
    )
    values = [(title, field, getattr(found.figures, field)) for title, field in FIGURES]
    rows = tuple((title, _shown_figure(field, value), _KEYS[field], value) for title, field, value in values)
    return Section("summary", "summary", columns, rows, named_only=found.trials is not None, audience="scripts")


def _trials(found: RebalanceResult, *, screen: bool) -> Section:
    """CSV has numbers next to the texts, a screen only figures that are not 0 in all trials."""
    trials, texts = found.trials, ("p50", "p95", "max")
    columns = (
        Column("", "figure"),
        *(Column(key, key) for key in texts),
        Column("max in trial", "maxTrial", "number"),
        Column("", "name", shown=False),
        *(Column("", f"{key}Value", "number", shown=False) for key in texts),
    )
    title, rows = "", list[tuple[Cell, ...]]()
    if trials is not None:
        failed = trials.trials - trials.converged
        title = f"{trials.trials} trials" + (f", {failed} of which did not converge" if failed else "")
        for name, field in FIGURES:
            spread: FigureSpread | None = getattr(trials.figures, field)
            if spread is not None and (spread.max or not screen):
                values = (spread.p50, spread.p95, spread.max)
                shown = tuple(_shown_figure(field, value) for value in values)
                rows.append((name, *shown, spread.max_trial, _KEYS[field], *values))
    return Section("trials", title, columns, tuple(rows), heads=1, audience="screen" if screen else "scripts")


def _shown_figure(field: str, value: float | None) -> str:
    if value is None:
        return _UNSHOWN[field]
    return duration(value) if field.endswith("_ms") else f"{value:.10g}"


# Several groups.


def _facts_of_all(
    s: SimulationsSummary, groups: Sequence[RebalanceResult], producers: Sequence[SendResult]
) -> Iterator[str]:
    events = [event for each in groups for event in each.events]
    verdict = [f"{of_all(s.groups_affected, s.groups, 'group')} affected", *_verdict_of_consumers(s)]
    if s.lost:
        verdict.append(some_messages(s.lost, s.messages, "lost"))
    elif s.topics:
        verdict.append(f"producers of {counted(s.topics, 'topic')} lose no message")
    yield f"{_event_texts(events) or 'no event'}: {'; '.join(verdict)}"
    yield f"  consumers: {BETWEEN.join(_all_consumers(s))}"
    if producers:
        yield f"  producers: {BETWEEN.join(_all_producers(s, producers))}"


def _verdict_of_consumers(s: SimulationsSummary) -> Iterator[str]:
    if s.queues_with_outage:
        yield f"{of_all(s.queues_with_outage, s.queues)} cannot be read for up to {about(s.longest_outage_ms)}"
    elif s.unread_ms:
        yield f"a message waits up to {about(s.unread_ms)}"
    if s.queues_unread_at_end:
        yield f"{of_all(s.queues_unread_at_end, s.queues)} not read at the end"
    if s.queues_misassigned_throughout:
        yield f"{of_all(s.queues_misassigned_throughout, s.queues)} without one owner from the start to the end"


def _all_consumers(s: SimulationsSummary) -> Iterator[str]:
    yield from _longest(s, s.queues)
    if s.unread_ms:
        yield f"a message waits up to {about(s.unread_ms)}"
    if s.redelivered is None:
        yield "how many messages are redelivered is unknown without --rate"
    else:
        yield f"at most {messages(s.redelivered)} redelivered"
    if s.convergence_ms is None:
        yield "not all groups converge"
    else:
        after = f"converged {about(s.convergence_ms)} after the first event"
        yield after if s.convergence_ms else "no queue gets a new owner"


def _all_producers(s: SimulationsSummary, producers: Sequence[SendResult]) -> Iterator[str]:
    if s.retried:
        last = max((each for each in map(_last_failed_ms, producers) if each is not None), default=None)
        until = "" if last is None else f", the last at {about(last)}"
        yield some_messages(s.retried, s.messages, "retried") + until
    else:
        yield f"none of {messages(s.messages)} retried"
    if s.longest_send_ms is not None:
        yield f"longest send {about(s.longest_send_ms)}"


def _last_failed_ms(producer: SendResult) -> float | None:
    return max((each.last_failed_ms for each in producer.failures if each.last_failed_ms is not None), default=None)


def _overview(groups: Sequence[RebalanceResult]) -> Section:
    def figure(title: str, key: str, name: str, kind: str = "ms", fold: int = 0) -> Column:
        return Column(title, key, kind, fold=fold, of=attrgetter(f"figures.{name}"))  # type: ignore[arg-type]

    columns = (
        Column("", "status", "sign", of=attrgetter("gravity")),
        Column("group", "group"),
        Column("queues", "queues", "number", of=lambda each: len(each.queues)),
        figure("in outage", "queuesWithOutage", "queues_with_outage", "number"),
        figure("outage", "longestOutageMs", "longest_outage_ms"),
        figure("gap", "longestGapMs", "longest_gap_ms"),
        figure("overlap", "longestOverlapMs", "longest_overlap_ms"),
        figure("waits up to", "unreadMs", "unread_ms", fold=2),
        figure("redelivered, at most", "redelivered", "redelivered", "number", fold=3),
        figure("converged", "convergenceMs", "convergence_ms", fold=1),
    )
    return Section("groups", "groups, the worst first", columns, rows_of(columns, groups), heads=2)


def _badness(f: GroupFigures) -> tuple[float, ...]:
    return -f.queues_unread_at_end, -f.unread_ms, -f.longest_gap_ms, -f.longest_overlap_ms


def _producers(producers: Iterable[SendResult]) -> Section:
    def first(name: str) -> Callable[[SendResult], float | None]:
        """A time of the broker that fails first."""
        return lambda producer: getattr(producer.failures[0], name) if producer.failures else None

    columns = (
        Column("", "status", "sign", of=lambda producer: send_gravity(producer.totals)),
        Column("topic", "topic"),
        Column("messages", "messages", "number", of=attrgetter("totals.messages")),
        Column("lost", "lost", "number", of=attrgetter("totals.lost")),
        Column("retried", "retried", "number", of=attrgetter("totals.retried")),
        Column("last at", "lastFailedMs", "ms", of=_last_failed_ms),
        Column("longest send", "longestSendMs", "ms", fold=2, of=attrgetter("totals.longest_send_ms")),
        Column("not in list from", "isolatedMs", "ms", fold=1, of=first("isolated_ms")),
        Column("used again at", "usedAgainMs", "ms", fold=1, of=first("used_again_ms")),
    )
    ordered = sorted(
        producers, key=lambda each: (-each.totals.lost, -each.totals.retried / (each.totals.messages or 1))
    )
    rows = rows_of(columns, ordered)
    brief = first_places(len(rows), _MOST_PRODUCERS)
    return Section("producers", "producers, the worst first", columns, rows, heads=2, brief=brief)
