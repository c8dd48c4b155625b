"""The lines above the tables of a group's simulation: what somebody who is woken at night must know first.

Rule of this file: a line says one thing, the bad before the usual; a bound is called one, the unknown is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rmqlb.model.group_report import FigureSpread, GroupReport, GroupTrials, OwnerState
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET, TIMER_NAMES, Event, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.times import milliseconds
from rmqlb.model.words import counted
from rmqlb.views.group.windows import longest, windows
from rmqlb.views.report import duration

_MOST_NAMES = 3
_LONGEST = (("outage", "longest_outage_ms"), ("gap", "longest_gap_ms"), ("overlap", "longest_overlap_ms"))
"""What a figure of trials is called, and its field."""
_DEFAULTS = Timers()


def group_facts(report: GroupReport, trials: GroupTrials | None) -> tuple[str, ...]:
    """What happened, how bad it was, what came of it for messages, and by whose rules."""
    group = f"group {report.group}" if report.group else "a group"
    events = _some(list(dict.fromkeys(map(_event, report.events)))) or "no event"
    return (
        "; ".join((f"{group}: {events}", *_cannot_be_read(report), *_at_end(report), _converged(report))),
        *_windows(report),
        _messages(report),
        *(() if trials is None else _over_trials(trials)),
        _rules(report),
        *_clocks(report),
    )


def named(queue: MessageQueue) -> str:
    """A queue in a sentence."""
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}"


def time(us: int) -> str:
    """A time or a length of time in microseconds, as people read it."""
    return duration(milliseconds(us))


def _event(event: Event) -> str:
    """As the user wrote it, and when it was, if that is not part of it."""
    plain = f"{event.kind} {event.subject}"
    return event.text if event.text not in ("", plain) else f"{plain} at {time(event.at_us)}"


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more


def _converged(report: GroupReport) -> str:
    convergence_ms, events = report.figures.convergence_ms, report.events
    if convergence_ms is None:
        last = events[-1].at_us if events else 0
        since = "the start" if not events else "it" if len(events) == 1 else "the last event"
        return f"not converged {time(report.end_us - last)} after {since}, where the simulation ends"
    if convergence_ms == 0:
        changes = any(len({one.owners for one in each.intervals}) > 1 for each in report.timelines)
        return "no queue gets a new owner" if changes else "no queue changes its owner"
    since = "the start" if not events else "it" if len(events) == 1 else "the first event"
    return f"converged {duration(convergence_ms)} after {since}"


def _cannot_be_read(report: GroupReport) -> Iterable[str]:
    f = report.figures
    if f.queues_with_outage:
        left = f.queues_with_outage_at_end
        rest = f" and more: {'it' if f.queues_with_outage == 1 else left} still cannot at the end" if left else ""
        yield f"{_of(f.queues_with_outage, report)} cannot be read for up to {duration(f.longest_outage_ms)}{rest}"


def _at_end(report: GroupReport) -> Iterable[str]:
    """What stays bad: a group that has converged may have converged badly. Those that broadcast all own each queue."""
    last = [one.intervals[-1].state for one in report.timelines if one.intervals]
    bad = (
        {"unassigned": "unassigned"}
        if report.scenario.broadcasting
        else {"unassigned": "unassigned", "duplicate-owners": "with duplicate owners"}
    )
    parts = [f"{_of(last.count(state), report)} {what}" for state, what in bad.items() if state in last]
    if parts:
        yield f"{' and '.join(parts)} at the end"


def _windows(report: GroupReport) -> Iterable[str]:
    found, f = windows(report), report.figures
    gone = any(interval.state == "gone" for one in report.timelines for interval in one.intervals)
    when = "as long as it is there" if gone else "outside of outages" if f.queues_with_outage else "all the time"
    kinds: list[tuple[OwnerState, str, int, float, str]] = [
        ("outage", "outage", f.queues_with_outage, f.total_outage_ms, ""),
        ("unassigned", "gap", f.queues_with_gap, f.total_gap_ms, f"every queue has an owner {when}"),
        (
            "duplicate-owners",
            "overlap",
            f.queues_with_overlap,
            f.total_overlap_ms,
            "no queue ever has duplicate owners",
        ),
    ]
    for state, what, queues, total_ms, otherwise in kinds[:2] if report.scenario.broadcasting else kinds:
        window = longest(found, state)
        if window is not None:
            lasts = f"{named(window.queue)} for {time(window.length_us)} from {time(window.from_us)} on"
            in_all = f"{duration(total_ms)} of queue-time in all"
            yield f"longest {what}: {lasts}; {_of(queues, report)} at some time, {in_all}"
        elif otherwise:
            yield otherwise


def _of(number: int, report: GroupReport) -> str:
    return f"{number} of {counted(len(report.timelines), 'queue')}"


def _messages(report: GroupReport) -> str:
    f = report.figures
    if not f.taken:
        text = "no queue is taken over: no message is redelivered"
        return f"{text}; {_waits(report)}" if f.unread_ms else f"{text} or waits"
    behind = max((takeover.redelivered_ms for one in report.timelines for takeover in one.takeovers), default=0)
    if f.redelivered is not None:
        text = f"at most {counted(f.redelivered, 'message')} redelivered"
    elif behind:
        text = f"redelivered: at most a queue's last {duration(behind)}, how many messages is unknown without --rate"
    else:
        text = "no message redelivered"
    return f"{text}; {_waits(report)}"


def _waits(report: GroupReport) -> str:
    f = report.figures
    if f.queues_unread_at_end:
        return f"nobody reads {_of(f.queues_unread_at_end, report)} at the end: messages there wait on"
    if not f.unread_ms:
        return "no message waits for a new owner"
    return f"a message waits at most {duration(f.unread_ms)} " + (
        "to be read" if f.queues_with_outage else "for a new owner"
    )


def _over_trials(trials: GroupTrials) -> Iterable[str]:
    found = trials.figures
    if not trials.converged:
        yield f"none of {trials.trials} trials converged"
    elif (spread := found.convergence_ms) is not None:
        some = "" if trials.converged == trials.trials else f"{trials.converged} of "
        yield (
            f"{some}{trials.trials} trials converged: p50 {duration(spread.p50)}, p95 {duration(spread.p95)}, "
            f"max {duration(spread.max)} (trial {spread.max_trial})"
        )
    spreads: list[tuple[str, FigureSpread]] = [(what, getattr(found, field)) for what, field in _LONGEST]
    parts = [
        f"{what} p95 {duration(each.p95)}, max {duration(each.max)}"
        for what, each in spreads
        if what != "outage" or each.max
    ]
    yield f"longest in a trial: {'; '.join(parts)}"


def _rules(report: GroupReport) -> str:
    s = report.scenario
    topics = list(dict.fromkeys(one.queue.topic for one in report.timelines))
    consumers = counted(len(report.members), "consumer")
    queues = f"{counted(len(report.timelines), 'queue')} of {_some(topics)}" if topics else "no queue"
    model = "BROADCASTING" if s.broadcasting else f"strategy {report.strategy}"
    types = Counter(s.consumer_types.get(member, s.consumer_type) for member in report.members)
    others = ", ".join(f"{number} {name}" for name, number in types.items()) if set(types) - {"push"} else ""
    kind = (", orderly" if s.orderly else "") + (f"; {others} consumers" if others else "")
    return f"{consumers}, {queues}; {model}{kind}; client {s.client_version} (rules of {report.profile})"


def _clocks(report: GroupReport) -> Iterable[str]:
    s = report.scenario
    parts = [f"seed {s.seed}, trial {report.trial}", f"a request takes about {time(s.latency_us)}"]
    if s.consume_us:
        parts.append(f"a message takes the listener {time(s.consume_us)}")
    if s.consume_from != CONSUME_FROM_LAST_OFFSET:
        parts.append(s.consume_from)
    if s.all_new:
        parts.append("all members start at 0s")
    yield "; ".join(parts)
    timers = [(name, getattr(s.timers, field), getattr(_DEFAULTS, field)) for name, field in TIMER_NAMES.items()]
    given = [
        f"{name} "
        + " instead of ".join("what the client version does" if us is None else time(us) for us in (own, usual))
        for name, own, usual in timers
        if own != usual
    ]
    if given:
        yield f"timers: {', '.join(given)}"
