"""The simulation of one or several groups as a report: its sentences and its tables.

The first line is the verdict, problems first; bounds are called bounds, and unknown values are named.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from msgspec.structs import replace

from rmqlb.model import simulate_rebalance as model
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET, TIMER_NAMES, Timers
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.result import counted, messages, named, of_all
from rmqlb.model.simulate_rebalance import GroupFigures, RebalanceResult, RebalanceResults, SimulationsSummary
from rmqlb.model.simulate_send import SendResult
from rmqlb.views import timeline
from rmqlb.views.columns import NOT_THERE, QUEUE_COLUMNS, Cell, Column, columns_from, columns_of, rows_of
from rmqlb.views.numbers import about, duration, moment, number
from rmqlb.views.of_groups import of_groups, rank
from rmqlb.views.report import BETWEEN, Audience, Report, Section, first_places, section_of, worst
from rmqlb.views.simulate_send import last_failed_ms, send_gravity, some_messages

_MOST_IN_LEAD = 2  # events that the first line names
_MOST_EVENTS, _MOST_CONSUMERS, _MOST_TAKEOVERS, _MOST_STEPS, _MOST_PRODUCERS = 20, 40, 40, 200, 20
_MOST_LAGS = 10

_TITLES = {
    "convergence_ms": "converged after",
    "unread_ms": "longest unread",
    "redelivered": "redelivered, at most",
    "lag_gone_ms": "lag gone after",
}
FIGURES = tuple(
    (_TITLES.get(name) or name.removesuffix("_ms").replace("_", " "), name, key)
    for name, key in zip(GroupFigures.__struct_fields__, GroupFigures.__struct_encode_fields__, strict=True)
)
_ENDLESS = {"peak_lag": "grows", "lag_gone_ms": "never"}


def rebalance_report(found: RebalanceResult | RebalanceResults) -> Report:
    if isinstance(found, RebalanceResult):
        return group_report(found)
    groups, producers = found.groups, found.producers
    parts = [(each.group or "", group_report(each)) for each in groups]
    facts = tuple(_facts_of_all(found.summary, groups, producers))
    order = [(rank(each.gravity), *_badness(each.figures)) for each in groups]
    beside = (_producers(producers),) if producers else ()
    whole = of_groups(parts, facts, found, _overview(groups), order=order, beside=beside)
    return replace(whole, grave=min((whole.grave, *(send_gravity(each.totals) for each in producers)), key=rank))


def group_report(found: RebalanceResult) -> Report:
    """One group: a screen has the picture and its letters, scripts have the tables behind it."""
    sections = (
        timeline.timeline_section(found),
        *([] if found.lag is None else [timeline.lag_section(found, found.lag.group), _lags(found.lag)]),
        _windows(found),
        _queues(found),
        _takeovers(found),
        *([] if found.steps is None else [_steps(found)]),
        _intervals(found),
        _events(found),
        _consumers(found),
        *(_trials(found.trials, screen=screen) for screen in (True, False) if found.trials is not None),
        _figures(found),
    )
    facts, closing = group_facts(found), (_rules(found), *_settings(found))
    names = timeline.consumer_labels(found.client_ids)
    return Report("rmqlb/simulate-rebalance", found, facts, sections, names, grave=found.gravity, closing=closing)


def group_facts(found: RebalanceResult) -> tuple[str, ...]:
    f, queues = found.figures, len(found.queues)
    first, second = list(_longest(f, queues, broadcasting=found.broadcasting)), list(_messages(found))
    if found.lag is not None:
        since = found.events[0].at_ms if found.events else 0
        (second if found.lag.group.gone_ms is not None else first).insert(0, timeline.lag_text(found.lag.group, since))
    if f.queues_with_outage:
        left = f.queues_with_outage_at_end
        rest = f"; {'it' if f.queues_with_outage == 1 else left} still cannot be read at the end" if left else ""
        cannot = f"{of_all(f.queues_with_outage, queues)} cannot be read for up to {about(f.longest_outage_ms)}{rest}"
        first, second = [cannot], [*first, *second]
    verdict = "; ".join((*_at_end(found), *first, _converged(found)))
    headline = f"{found.group or 'the group'}, {_event_texts(found.events)}: {verdict}"
    return headline, f"  {BETWEEN.join(second)}", *(f"  {line}" for line in _over_trials(found))


def _event_texts(events: Iterable[model.SimulatedEvent]) -> str:
    texts: dict[str, None] = {}
    for event in events:
        plain = f"{event.kind} {event.subject}"
        texts[event.text if event.text not in ("", plain) else f"{plain} at {moment(event.at_ms)}"] = None
    return named(texts) or "no event"


def _converged(found: RebalanceResult) -> str:
    convergence_ms, events = found.figures.convergence_ms, found.events
    is_one = len({(event.text, event.at_ms) for event in events}) == 1
    last = "the start" if not events else "the event" if is_one else "the last event"
    if convergence_ms is None:
        lasted = about(found.end_ms - (events[-1].at_ms if events else 0))
        return f"not converged {lasted} after {last}, when the simulation ends"
    if convergence_ms == 0:
        changes = any(len({one.owners for one in each.intervals}) > 1 for each in found.queues)
        return "no queue gets a new owner" if changes else "no queue changes its owner"
    after_last = convergence_ms - (events[-1].at_ms - events[0].at_ms if events else 0)
    if after_last <= 0:
        return f"converged {about(convergence_ms)} after the first event"
    if events and events[-1].kind == "broker-up" and any(each.subject == events[-1].subject for each in events[:-1]):
        last = f"{events[-1].subject} is back"
    return f"converged {about(after_last)} after {last}"


def _at_end(found: RebalanceResult) -> Iterator[str]:
    f = found.figures
    overlaps = 0 if found.broadcasting else f.queues_with_overlap_at_end
    bad = ((f.queues_with_gap_at_end, "unassigned"), (overlaps, "with duplicate owners"))
    parts = [f"{of_all(number, len(found.queues))} {what}" for number, what in bad if number]
    before = found.misassigned_throughout
    if parts:
        yield f"{' and '.join(parts)} at the end" + (f", {before} of them from the start" if before else "")


def _longest(f: GroupFigures | SimulationsSummary, queues: int, *, broadcasting: bool = False) -> Iterator[str]:
    """The longest gap and overlap, and their numbers of queues; with BROADCASTING overlaps are normal."""
    for what in ("gap",) if broadcasting else ("gap", "overlap"):
        number, longest_ms = getattr(f, f"queues_with_{what}"), getattr(f, f"longest_{what}_ms")
        yield f"longest {what} {about(longest_ms)} ({of_all(number, queues)})" if number else f"no {what}"


def _messages(found: RebalanceResult) -> Iterator[str]:
    f = found.figures
    behind = max((takeover.redelivered_ms for one in found.queues for takeover in one.takeovers), default=0)
    if not f.taken:
        yield "no queue is taken over, so no message is redelivered"
    elif f.redelivered is not None:
        yield f"at most {messages(f.redelivered)} redelivered"
    elif behind:
        yield f"redelivered: up to the last {about(behind)} of each queue (add --rate for a message count)"
    else:
        yield "no message redelivered"
    if f.queues_unread_at_end:
        unread = of_all(f.queues_unread_at_end, len(found.queues))
        yield f"no consumer reads {unread} at the end: their messages keep waiting"
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
    spreads = {what: getattr(trials.figures, f"longest_{what}_ms") for what in ("outage", "gap", "overlap")}
    parts = (
        f"{what} p95 {about(s.p95)}, max {about(s.max)}" for what, s in spreads.items() if what != "outage" or s.max
    )
    yield f"longest in a trial: {'; '.join(parts)}"


def _rules(found: RebalanceResult) -> str:
    s = found.scenario
    topics = named(dict.fromkeys(one.topic for one in found.queues))
    consumers = counted(len(found.consumers), "consumer")
    queues = f"{counted(len(found.queues), 'queue')} of {topics}" if topics else "no queue"
    model = "BROADCASTING" if s.broadcasting else f"strategy {found.strategy}"
    types = Counter(s.consumer_types.get(each, s.consumer_type) for each in found.client_ids)
    others = ", ".join(f"{number} {name}" for name, number in types.items()) if set(types) - {"push"} else ""
    kind = (", orderly" if s.orderly else "") + (f"; {others} consumers" if others else "")
    return f"{consumers}, {queues}; {model}{kind}; client {s.client_version} (rules of {s.profile})"


def _settings(found: RebalanceResult) -> Iterator[str]:
    s = found.scenario
    parts = [f"seed {s.seed}, trial {found.trial}", f"a request takes about {duration(s.latency_ms)}"]
    if s.consume_ms:
        parts.append(f"the listener takes {duration(s.consume_ms)} per message")
    if s.consume_from_where != CONSUME_FROM_LAST_OFFSET:
        parts.append(s.consume_from_where)
    if s.all_new:
        parts.append("all consumers start at 0s")
    if found.lag is not None:
        parts.append(f"{counted(found.lag.consume_threads, 'consume thread')} per consumer")
    if found.rates is not None:
        more = "" if found.scenario.consume_ms else " (add --set consume-time=TIME for lag)"
        parts.append(f"rates: {timeline.rate_source(found.rates)}{more}")
    yield "; ".join(parts)
    usual, given = model.timers_in_ms(Timers()), []
    for name, field in zip(TIMER_NAMES, usual.__struct_fields__, strict=True):
        values = (getattr(timers, field) for timers in (s.timers, usual))
        own, default = ("the default of the client version" if ms is None else duration(ms) for ms in values)
        if own != default:
            given.append(f"{name} {own} instead of {default}")
    if given:
        yield f"timers: {', '.join(given)}"


def _lags(found: model.LagOverTime) -> Section:
    columns = columns_from(
        "atStart=at_the_start peak peakMs=at:ms@lag.peak.at_ms goneMs=gone_at:ms@lag.gone_ms "
        "growthPerSecond=grows_by@lag.growth_per_second",
        "number",
        hidden=() if found.group.gone_ms is None else ("growthPerSecond",),
        atStart=lambda each: round(each.lag.points[0].messages),
        peak=lambda each: each.lag.peak and round(each.lag.peak.messages),
    )
    brief = worst([each.lag.lasts_ms for each in found.queues], _MOST_LAGS)
    return section_of("lag", "lag by queue", (*QUEUE_COLUMNS, *columns), found.queues, heads=3, brief=brief)


def _windows(found: RebalanceResult) -> Section:
    """The spans of time in which a queue is unassigned, has duplicate owners, or is in an outage."""
    bad = ("unassigned", "outage") if found.broadcasting else ("unassigned", "outage", "duplicate-owners")
    rows: list[tuple[Any, ...]] = []
    for one in found.queues:
        stretches = [tuple(stretch) for _, stretch in groupby(one.intervals, key=attrgetter("state"))]
        for before, stretch, after in zip(((), *stretches), stretches, (*stretches[1:], ()), strict=False):
            first, last = stretch[0], stretch[-1]
            if first.state in bad:
                every = sort_client_ids({owner for interval in stretch for owner in interval.owners})
                meanwhile = tuple(every) if len(stretch) > 1 else first.owners
                times = first.from_ms, last.to_ms, _length(first.from_ms, last.to_ms)
                around = _owners(next(reversed(before), None)), meanwhile, _owners(next(iter(after), None))
                rows.append((one.topic, one.broker_name, one.queue_id, first.state, *times, *around))
    rows.sort(key=itemgetter(4))
    with_outage = bool(found.figures.queues_with_outage)
    columns = (
        *QUEUE_COLUMNS,
        Column("owners", "state", shown=with_outage),
        *columns_from("fromMs=from toMs/hidden lengthMs=for", "ms"),
        *columns_from("ownersBefore=before owners=meanwhile ownersAfter=after", "clients"),
    )
    title = ("gaps" if found.broadcasting else "gaps, overlaps") + (", outages" if with_outage else "")
    return Section("windows", title, columns, tuple(rows), heads=3, audience="scripts")


def _length(from_ms: float, to_ms: float) -> float:
    length = round((to_ms - from_ms) * 1000)
    return length // 1000 if length % 1000 == 0 else length / 1000


def _owners(interval: model.Interval | None) -> Cell:
    """A dash if the simulation begins or ends there, or the queue is gone."""
    return NOT_THERE if interval is None or (interval.state == "gone" and not interval.owners) else interval.owners


def _queues(found: RebalanceResult) -> Section:
    outage = () if found.figures.queues_with_outage else ("totalOutageMs", "longestOutageMs")
    kinds = ("Gap", "Overlap", "Outage")
    lengths = " ".join(f"total{kind}Ms=total_{kind.lower()} longest{kind}Ms=longest" for kind in kinds)
    columns = (
        *QUEUE_COLUMNS,
        Column("before", "ownersAtStart", "clients", of=lambda one: _owners(next(iter(one.intervals), None))),
        Column("after", "ownersAtEnd", "clients", of=lambda one: _owners(next(reversed(one.intervals), None))),
        *columns_of(model.QueueTimeline, f"{lengths} unreadMs=unread_for", hidden=outage),
        Column("taken", "taken", "number", of=lambda one: len(one.takeovers)),
        Column("redelivered, at most", "redelivered", "number"),
    )
    return section_of("queues", "queues", columns, found.queues, heads=3, named_only=True)


def _takeovers(found: RebalanceResult) -> Section:
    """A screen shows them only with the steps."""
    takeovers = sorted((each for one in found.queues for each in one.takeovers), key=attrgetter("at_ms"))
    columns = (
        *QUEUE_COLUMNS,
        Column("taken by", "clientId", "clients"),
        *columns_of(model.Takeover, "atMs=at readsFromMs=reads_from unreadMs=unread_for"),
        Column("starts at", "startRule"),
        Column("offset", "startOffset", "number", shown=any(one.start_offset is not None for one in takeovers)),
        Column("redelivered, the last", "redeliveredMs", "ms"),
        Column("messages", "redelivered", "number", spare=True),
        Column("because", "startReason", quiet=True),
    )
    brief = worst([one.unread_ms or 0 for one in takeovers], _MOST_TAKEOVERS)
    return section_of(
        "takeovers", "takeovers", columns, takeovers, heads=4, named_only=found.steps is None, brief=brief
    )


def _intervals(found: RebalanceResult) -> Section:
    columns = (
        *columns_of(model.Interval, "fromMs=from toMs=to"),
        Column("for", "lengthMs", "ms", of=lambda each: _length(each.from_ms, each.to_ms)),
        *columns_from("state owners:clients"),
    )
    return timeline.intervals_section(found.queues, columns, heads=4)


def _steps(found: RebalanceResult) -> Section:
    columns = columns_from(
        "atMs=at:ms who:clients what text= queues/hidden",
        queues=lambda step: "; ".join(f"{each.topic} {each.broker_name} {each.queue_id}" for each in step.queues),
    )
    return section_of("steps", "steps and reasons", columns, found.steps or (), first=_MOST_STEPS)


def _events(found: RebalanceResult) -> Section:
    """A screen shows them if neither the first line nor the table of consumers has all of them."""
    events, consumers = found.events, set(found.client_ids)
    columns = (
        *columns_from("atMs=at:ms kind=event subject=of:clients strategy? brokerName=broker?"),
        *columns_from("readQueueNums=read_queues?@read_queues writeQueueNums=write_queues?@write_queues", "number"),
        Column("as written", "text", shown=False),
    )
    rows = tuple((mark, *row) for mark, row in zip(timeline.event_marks(events), rows_of(columns, events), strict=True))
    brief = first_places(len(rows), _MOST_EVENTS)
    is_known = len(events) <= _MOST_IN_LEAD or all(event.subject in consumers for event in events)
    audience: Audience = "scripts" if is_known else "all"
    return Section("events", "events", (Column("#", "mark"), *columns), rows, heads=3, brief=brief, audience=audience)


def _consumers(found: RebalanceResult) -> Section:
    letters, short = timeline.symbols(found.client_ids), timeline.consumer_labels(found.client_ids)
    happens: dict[str, list[str]] = {client_id: [] for client_id in letters}
    for event in found.events:
        if event.subject in happens:
            happens[event.subject].append(f"{event.kind} {moment(event.at_ms)}")
    columns = (
        Column("", "letter", of=lambda part: letters[part.client_id]),
        Column("#", "label", shown=letters != short, of=lambda part: short[part.client_id]),
        *columns_from("clientId=consumer queuesAtStart=before:number queuesAtEnd=after:number taken:number"),
        Column("events", "events", spare=True, of=lambda part: ", ".join(happens[part.client_id])),
    )
    changes = [
        part.taken + abs(part.queues_at_end - part.queues_at_start) + len(happens[part.client_id])
        for part in found.consumers
    ]
    brief = worst(changes, _MOST_CONSUMERS)
    return section_of("consumers", "consumers: queues before and after", columns, found.consumers, heads=3, brief=brief)


def _figures(found: RebalanceResult) -> Section:
    """CSV has each figure as a text and as a number."""
    columns = columns_from("figure= shown=value name/hidden value:number/hidden")
    values = ((title, field, key, getattr(found.figures, field)) for title, field, key in FIGURES)
    rows = tuple((title, _figure_text(field, _figure(found, field)), key, value) for title, field, key, value in values)
    return Section("summary", "summary", columns, rows, named_only=True, audience="scripts")


def _trials(trials: model.GroupTrials, *, screen: bool) -> Section:
    """CSV has numbers next to the texts, a screen only figures that are not 0 in all trials."""
    texts = ("p50", "p95", "max")
    columns = (
        Column("", "figure"),
        *(Column(key, key) for key in texts),
        *columns_from("maxTrial=max_in_trial:number name/hidden"),
        *(Column("", f"{key}Value", "number", shown=False) for key in texts),
    )
    failed, rows = trials.trials - trials.converged, list[tuple[Cell, ...]]()
    title = f"{trials.trials} trials" + (f", {failed} of which did not converge" if failed else "")
    for name, field, key in FIGURES:
        spread: model.FigureSpread | None = getattr(trials.figures, field)
        if spread is not None and (spread.max or not screen):
            values = (spread.p50, spread.p95, spread.max)
            rows.append((name, *(_figure_text(field, each) for each in values), spread.max_trial, key, *values))
    return Section("trials", title, columns, tuple(rows), heads=1, audience="screen" if screen else "scripts")


def _figure(found: RebalanceResult, field: str) -> Cell:
    """A figure; one of a lag without end is a word."""
    value: float | None = getattr(found.figures, field)
    return _ENDLESS.get(field) if value is None and found.lag is not None else value


def _figure_text(field: str, value: Cell) -> str:
    if not isinstance(value, int | float):
        return str(value or ("not converged" if field == "convergence_ms" else "unknown"))
    return duration(value) if field.endswith("_ms") else number(value)


def _facts_of_all(
    s: SimulationsSummary, groups: Sequence[RebalanceResult], producers: Sequence[SendResult]
) -> Iterator[str]:
    waits = [f"a message waits up to {about(s.unread_ms)}"] if s.unread_ms else []
    cannot = f"{of_all(s.queues_with_outage, s.queues)} cannot be read for up to {about(s.longest_outage_ms)}"
    verdict = [
        f"{of_all(s.groups_affected, s.groups, 'group')} affected",
        *([cannot] if s.queues_with_outage else waits),
    ]
    if s.queues_unread_at_end:
        verdict.append(f"{of_all(s.queues_unread_at_end, s.queues)} not read at the end")
    if s.queues_misassigned_throughout:
        bad = of_all(s.queues_misassigned_throughout, s.queues)
        verdict.append(f"{bad} without one owner from the start to the end")
    if s.lost:
        verdict.append(some_messages(s.lost, s.messages, "lost"))
    elif s.topics:
        verdict.append(f"producers of {counted(s.topics, 'topic')} lose no message")
    yield f"{_event_texts(event for each in groups for event in each.events)}: {'; '.join(verdict)}"
    redelivered = "redelivered: unknown (add --rate for a message count)"
    if s.redelivered is not None:
        redelivered = f"at most {messages(s.redelivered)} redelivered"
    converged = "not all groups converge" if s.convergence_ms is None else "no queue gets a new owner"
    if s.convergence_ms:
        converged = f"converged {about(s.convergence_ms)} after the first event"
    yield f"  consumers: {BETWEEN.join((*_longest(s, s.queues), *waits, redelivered, converged))}"
    if producers:
        last = max((each for each in map(last_failed_ms, producers) if each is not None), default=None)
        until = "" if last is None else f", the last at {about(last)}"
        retried = some_messages(s.retried, s.messages, "retried") + until
        sent = [retried if s.retried else f"none of {messages(s.messages)} retried"]
        sent += [] if s.longest_send_ms is None else [f"longest send {about(s.longest_send_ms)}"]
        yield f"  producers: {BETWEEN.join(sent)}"


def _overview(groups: Sequence[RebalanceResult]) -> Section:
    columns = (
        *columns_from("status=:sign@gravity group queues:number", queues=lambda each: len(each.queues)),
        *columns_of(
            GroupFigures,
            "queuesWithOutage=in_outage longestOutageMs=outage longestGapMs=gap longestOverlapMs=overlap "
            "unreadMs=waits_up_to/2 redelivered=redelivered,_at_most/3 convergenceMs=converged/1 "
            "peakLag=peak_lag/2 lagGoneMs=lag_gone_after/1",
            path="figures",
            hidden=() if any(each.lag for each in groups) else ("peakLag", "lagGoneMs"),
            peakLag=lambda each: _figure(each, "peak_lag"),
            lagGoneMs=lambda each: _figure(each, "lag_gone_ms"),
        ),
    )
    return section_of("groups", "groups, worst first", columns, groups, heads=2)


def _badness(f: GroupFigures) -> tuple[float, ...]:
    return -f.queues_unread_at_end, -f.unread_ms, -f.longest_gap_ms, -f.longest_overlap_ms


def _producers(producers: Sequence[SendResult]) -> Section:
    columns = (
        *columns_from("status=:sign topic", status=lambda producer: send_gravity(producer.totals)),
        *columns_from("messages lost retried", "number", path="totals"),
        *columns_from(
            "lastFailedMs=last_at longestSendMs=longest_send/2@totals.longest_send_ms isolatedMs=not_in_list_from/1 "
            "usedAgainMs=used_again_at/1",
            "ms",
            lastFailedMs=last_failed_ms,
            isolatedMs=lambda producer: producer.failures[0].isolated_ms if producer.failures else None,
            usedAgainMs=lambda producer: producer.failures[0].used_again_ms if producer.failures else None,
        ),
    )
    ordered = sorted(
        producers, key=lambda each: (-each.totals.lost, -each.totals.retried / (each.totals.messages or 1))
    )
    return section_of("producers", "producers, worst first", columns, ordered, heads=2, first=_MOST_PRODUCERS)
