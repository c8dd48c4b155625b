"""Simulations of a group, drawn where the reader can see them: a character a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from rmqlb.model.finding import Finding
from rmqlb.model.group_report import (
    FigureSpread,
    GroupFigures,
    GroupReport,
    GroupTrials,
    Interval,
    OwnerState,
    QueueTimeline,
    StartOffset,
    Step,
    Takeover,
)
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

JOIN = Event("join", 3 * SECOND_US, "b", "join b@3s")
_STATES: Mapping[str, OwnerState] = {" ": "none", "#": "outage", ".": "gone"}


def timeline(
    strip: str, queue: MessageQueue, takeovers: Sequence[Takeover] = (), *, ids: Mapping[str, str] | None = None
) -> QueueTimeline:
    """A queue whose owners a text draws: a letter is the member of that name, or the one that `ids` says.

    A blank is nobody, # an outage of a queue that a owns, a dot is a queue that is gone, `!` is members a and b, a digit so many members from a on.
    """
    intervals: list[Interval] = []
    at = 0
    for character, group in groupby(strip):
        to = at + len(list(group)) * SECOND_US
        owners = _owners(character, ids or {})
        state: OwnerState = _STATES.get(character, "one" if len(owners) == 1 else "several")
        intervals.append(Interval(at, to, state, owners))
        at = to
    return measured(queue, intervals, takeovers)


def measured(queue: MessageQueue, intervals: Iterable[Interval], takeovers: Sequence[Takeover] = ()) -> QueueTimeline:
    """A queue with the lengths that its intervals add up to."""
    intervals = tuple(intervals)
    lengths = {
        state: [
            sum(one.to_us - one.from_us for one in group) for key, group in groupby(intervals, _state) if key == state
        ]
        for state in ("none", "several", "outage")
    }
    again = [takeover.again for takeover in takeovers]
    return QueueTimeline(
        queue,
        intervals,
        tuple(takeovers),
        sum(lengths["none"]),
        max(lengths["none"], default=0),
        sum(lengths["several"]),
        max(lengths["several"], default=0),
        max((*(takeover.unread_us or 0 for takeover in takeovers), *lengths["outage"]), default=0),
        None if None in again else sum(number or 0 for number in again),
        sum(lengths["outage"]),
        max(lengths["outage"], default=0),
        bool(intervals) and intervals[-1].state in ("none", "outage"),
    )


def simulated(
    strips: Mapping[str, str] | Iterable[QueueTimeline],
    *,
    events: Sequence[Event] = (JOIN,),
    settled_us: int | None = SECOND_US,
    scenario: GroupScenario | None = None,
    group: str | None = "g",
    steps: Sequence[Step] = (),
    findings: Sequence[Finding] = (),
    ids: Mapping[str, str] | None = None,
) -> GroupReport:
    """A simulation of queues: `simulated({"broker-a 0": "aaa  bbb"})`, or of timelines."""
    if isinstance(strips, Mapping):
        lines = {_queue(name): timeline(strip, _queue(name), ids=ids) for name, strip in strips.items()}
    else:
        lines = {line.queue: line for line in strips}
    timelines = tuple(lines[queue] for queue in sort_queues(lines))
    seen = {owner for line in timelines for interval in line.intervals for owner in interval.owners}
    takeovers = [takeover for line in timelines for takeover in line.takeovers]
    again = [line.again for line in timelines]
    return GroupReport(
        group=group,
        strategy="AVG",
        profile="5.5.0 and newer",
        scenario=scenario or GroupScenario(events=tuple(events)),
        events=tuple(events),
        trial=0,
        members=tuple(sort_client_ids(seen | {event.subject for event in events if event.kind == "join"})),
        end_us=max((line.intervals[-1].to_us for line in timelines if line.intervals), default=0),
        timelines=timelines,
        steps=tuple(steps),
        figures=GroupFigures(
            settled_us=settled_us,
            longest_none_us=max((line.longest_none_us for line in timelines), default=0),
            none_us=sum(line.none_us for line in timelines),
            longest_several_us=max((line.longest_several_us for line in timelines), default=0),
            several_us=sum(line.several_us for line in timelines),
            unread_us=max((line.unread_us for line in timelines), default=0),
            again=None if None in again else sum(number or 0 for number in again),
            queues_none=sum(1 for line in timelines if line.none_us),
            queues_several=sum(1 for line in timelines if line.several_us),
            taken=len(takeovers),
            rebalances=7,
            longest_outage_us=max((line.longest_outage_us for line in timelines), default=0),
            total_outage_us=sum(line.outage_us for line in timelines),
            queues_outage=sum(1 for line in timelines if line.outage_us),
            **{f"queues_{state}_at_end": _at_end(timelines, state) for state in ("none", "several", "outage")},
            queues_unread_at_end=sum(1 for line in timelines if line.unread_at_end),
        ),
        findings=tuple(findings),
    )


def _at_end(timelines: Sequence[QueueTimeline], state: str) -> int:
    return sum(1 for line in timelines if line.intervals and line.intervals[-1].state == state)


def takeover(
    queue: MessageQueue, client_id: str, at: float, *, again: int | None = None, again_s: float = 0
) -> Takeover:
    """A member takes a queue after so many seconds, and reads half a second later from a stored offset."""
    at_us = round(at * SECOND_US)
    return Takeover(
        queue,
        client_id,
        at_us,
        at_us + SECOND_US // 2,
        SECOND_US // 2,
        StartOffset("stored", 42, "the group's offset"),
        round(again_s * SECOND_US),
        again,
    )


def trials(number: int = 20, settled: int | None = None, **spreads: tuple[float, float, float]) -> GroupTrials:
    """Trials whose figures have these medians, 95th percentiles and worst values, in trial 3."""
    found = {field: FigureSpread(*values, 3) for field, values in spreads.items()}
    return GroupTrials(number, number if settled is None else settled, found)


def _owners(character: str, ids: Mapping[str, str]) -> tuple[str, ...]:
    if character.isdigit():
        return tuple(ids.get(name, name) for name in "abcdefghi"[: int(character)])
    letters = {" ": "", ".": "", "#": "a", "!": "ab"}.get(character, character)
    return tuple(sort_client_ids(ids.get(letter, letter) for letter in letters))


def _state(interval: Interval) -> OwnerState:
    return interval.state


def _queue(name: str) -> MessageQueue:
    """`broker 3` of topic T, or `topic broker 3`."""
    *topic, broker_name, queue_id = name.split(" ")
    return MessageQueue(topic[0] if topic else "T", broker_name, int(queue_id))
