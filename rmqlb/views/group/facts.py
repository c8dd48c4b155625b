"""The lines above the tables of a group's simulation: what somebody who is woken at night must know first.

Rule of this file: the first line is the verdict, the bad before the usual; a bound is called one, the unknown is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rmqlb.model.group_report import FigureSpread, GroupReport, GroupTrials
from rmqlb.model.group_result import misassigned_throughout
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET, TIMER_NAMES, Event, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.times import milliseconds
from rmqlb.model.words import counted, messages, of_all
from rmqlb.views.report import BETWEEN, about, duration

_MOST_NAMES = 3
_LONGEST = (("outage", "longest_outage_ms"), ("gap", "longest_gap_ms"), ("overlap", "longest_overlap_ms"))
"""What a figure of trials is called, and its field."""
_DEFAULTS = Timers()


def group_facts(report: GroupReport, trials: GroupTrials | None = None) -> tuple[str, ...]:
    """What happens, how bad it is, and what comes of it for messages."""
    group = report.group or "the group"
    events = event_texts(report.events) or "no event"
    readable = not report.figures.queues_with_outage
    verdict = (*_at_end(report), *_cannot_be_read(report), *(_windows(report) if readable else ()))
    return (
        f"{group}, {events}: {'; '.join((*verdict, _converged(report)))}",
        f"  {BETWEEN.join((*(() if readable else _windows(report)), *_messages(report)))}",
        *(() if trials is None else (f"  {line}" for line in _over_trials(trials))),
    )


def parts_of(facts: Sequence[str]) -> list[str]:
    """What the facts say, a line each, for pictures, which break none."""
    return [part for fact in facts for part in fact.strip().split(BETWEEN)]


def group_settings(report: GroupReport) -> tuple[str, ...]:
    """Who was simulated by whose rules."""
    return (_rules(report), *_clocks(report))


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


def event_texts(events: Iterable[Event]) -> str:
    """The first few, each once."""
    return _some(list(dict.fromkeys(map(_event, events))))


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _MOST_NAMES} more" if len(texts) > _MOST_NAMES else ""
    return ", ".join(texts[:_MOST_NAMES]) + more


def _converged(report: GroupReport) -> str:
    convergence_ms, events = report.figures.convergence_ms, report.events
    if convergence_ms is None:
        last = events[-1].at_us if events else 0
        since = "the start" if not events else "it" if len(events) == 1 else "the last event"
        lasted = about(milliseconds(report.end_us - last))
        return f"not converged {lasted} after {since}, where the simulation ends"
    if convergence_ms == 0:
        changes = any(len({one.owners for one in each.intervals}) > 1 for each in report.timelines)
        return "no queue gets a new owner" if changes else "no queue changes its owner"
    if not events:
        return f"converged {about(convergence_ms)} after the start"
    after_last = convergence_ms - milliseconds(events[-1].at_us - events[0].at_us)
    if after_last <= 0:
        return f"converged {about(convergence_ms)} after the first event"
    back = events[-1].kind == "broker-up" and any(event.subject == events[-1].subject for event in events[:-1])
    what = f"{events[-1].subject} is back" if back else "it" if len(events) == 1 else "the last event"
    return f"converged {about(after_last)} after {what}"


def _cannot_be_read(report: GroupReport) -> Iterable[str]:
    f = report.figures
    if f.queues_with_outage:
        left = f.queues_with_outage_at_end
        rest = f" and more: {'it' if f.queues_with_outage == 1 else left} still cannot at the end" if left else ""
        yield f"{_of(f.queues_with_outage, report)} cannot be read for up to {about(f.longest_outage_ms)}{rest}"


def _at_end(report: GroupReport) -> Iterable[str]:
    """What stays bad: a group that has converged may have converged badly. Those that broadcast all own each queue."""
    f = report.figures
    overlaps = 0 if report.scenario.broadcasting else f.queues_with_overlap_at_end
    bad = ((f.queues_with_gap_at_end, "unassigned"), (overlaps, "with duplicate owners"))
    parts = [f"{_of(number, report)} {what}" for number, what in bad if number]
    before = misassigned_throughout(report)
    if parts:
        yield f"{' and '.join(parts)} at the end" + (f", {before} of them from the start" if before else "")


def _windows(report: GroupReport) -> Iterable[str]:
    """The longest gap and overlap, and of how many queues; with BROADCASTING several owners are as it should be."""
    f = report.figures
    kinds = [("gap", f.longest_gap_ms, f.queues_with_gap)]
    if not report.scenario.broadcasting:
        kinds.append(("overlap", f.longest_overlap_ms, f.queues_with_overlap))
    for what, ms, queues in kinds:
        yield f"longest {what} {about(ms)} ({_of(queues, report)})" if queues else f"no {what}"


def _of(number: int, report: GroupReport) -> str:
    return of_all(number, len(report.timelines))


def _messages(report: GroupReport) -> Iterable[str]:
    f = report.figures
    behind = max((takeover.redelivered_ms for one in report.timelines for takeover in one.takeovers), default=0)
    if not f.taken:
        yield "no queue is taken over, so no message is redelivered"
    elif f.redelivered is not None:
        yield f"at most {messages(f.redelivered)} redelivered"
    elif behind:
        yield f"redelivered: at most a queue's last {about(behind)}, how many messages is unknown without --rate"
    else:
        yield "no message redelivered"
    if f.queues_unread_at_end:
        yield f"no consumer reads {_of(f.queues_unread_at_end, report)} at the end: messages there wait on"
    else:
        yield f"a message waits up to {about(f.unread_ms)}" if f.unread_ms else "no message waits for a new owner"


def _over_trials(trials: GroupTrials) -> Iterable[str]:
    found = trials.figures
    if not trials.converged:
        yield f"none of {trials.trials} trials converged"
    elif (spread := found.convergence_ms) is not None:
        some = "" if trials.converged == trials.trials else f"{trials.converged} of "
        yield (
            f"{some}{trials.trials} trials converged: p50 {about(spread.p50)}, p95 {about(spread.p95)}, "
            f"max {about(spread.max)} (trial {spread.max_trial})"
        )
    spreads: list[tuple[str, FigureSpread]] = [(what, getattr(found, field)) for what, field in _LONGEST]
    parts = [
        f"{what} p95 {about(each.p95)}, max {about(each.max)}" for what, each in spreads if what != "outage" or each.max
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
        parts.append("all consumers start at 0s")
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
