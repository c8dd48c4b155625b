"""Simulations of a group, drawn where the reader can see them: a character a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import asdict, replace

from rmqlb.engine.rebalance.simulate import consumer_parts, echo, event_echo, figures
from rmqlb.engine.rebalance.timelines import EventLog
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.plan import RolloutChoice
from rmqlb.model.result import milliseconds, milliseconds_if_known
from rmqlb.model.simulate_rebalance import (
    FigureSpread,
    FigureSpreads,
    GroupTrials,
    Interval,
    OwnerState,
    QueueTimeline,
    RebalanceResult,
    Step,
    Takeover,
)

JOIN = Event("join", 3 * SECOND_US, "b", "join b@3s")
_STATES: Mapping[str, OwnerState] = {" ": "unassigned", "#": "outage", ".": "gone"}


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
        state: OwnerState = _STATES.get(character, "one" if len(owners) == 1 else "duplicate-owners")
        intervals.append(interval(at, to, state, owners))
        at = to
    return measured(queue, intervals, takeovers)


def measured(queue: MessageQueue, intervals: Iterable[Interval], takeovers: Sequence[Takeover] = ()) -> QueueTimeline:
    intervals = tuple(intervals)
    gaps, overlaps, outages = (
        [sum(one.to_us - one.from_us for one in group) for key, group in groupby(intervals, _state) if key == state]
        for state in ("unassigned", "duplicate-owners", "outage")
    )
    again = [takeover.redelivered for takeover in takeovers]
    return QueueTimeline(
        queue.topic,
        queue.broker_name,
        queue.queue_id,
        total_gap_ms=milliseconds(sum(gaps)),
        longest_gap_ms=milliseconds(max(gaps, default=0)),
        total_overlap_ms=milliseconds(sum(overlaps)),
        longest_overlap_ms=milliseconds(max(overlaps, default=0)),
        total_outage_ms=milliseconds(sum(outages)),
        longest_outage_ms=milliseconds(max(outages, default=0)),
        unread_ms=milliseconds(max((*(us(takeover.unread_ms) or 0 for takeover in takeovers), *outages), default=0)),
        unread_at_end=bool(intervals) and intervals[-1].state in ("unassigned", "outage"),
        redelivered=None if None in again else sum(number or 0 for number in again),
        intervals=intervals,
        takeovers=tuple(takeovers),
    )


def us(ms: float | None) -> Any:
    """Milliseconds of a result in microseconds, which count exactly; None stays None."""
    return None if ms is None else round(ms * 1000)


def simulated(
    strips: Mapping[str, str] | Iterable[QueueTimeline],
    *,
    events: Sequence[Event] = (JOIN,),
    settled_us: int | None = SECOND_US,
    scenario: GroupScenario | None = None,
    group: str | None = "g",
    steps: Sequence[Step] | None = None,
    ids: Mapping[str, str] | None = None,
    found: GroupTrials | None = None,
) -> RebalanceResult:
    """A simulation of queues: `simulated({"broker-a 0": "aaa  bbb"})`, or of timelines."""
    if isinstance(strips, Mapping):
        lines = {_queue(name): timeline(strip, _queue(name), ids=ids) for name, strip in strips.items()}
    else:
        lines = {line.queue: line for line in strips}
    queues = tuple(lines[queue] for queue in sort_queues(lines))
    seen = {owner for line in queues for interval in line.intervals for owner in interval.owners}
    client_ids = sort_client_ids(seen | {event.subject for event in events if event.kind == "join"})
    log = EventLog(explain=False, rebalances=7)
    end_us = max((line.intervals[-1].to_us for line in queues if line.intervals), default=0)
    return RebalanceResult(
        group=group,
        strategy="AVG",
        scenario=echo(scenario or GroupScenario(events=tuple(events)), "5.5.0 and newer"),
        events=tuple(map(event_echo, events)),
        trial=0,
        end_ms=milliseconds(end_us),
        figures=replace(figures(queues, log, 0, settled=True), convergence_ms=milliseconds_if_known(settled_us)),
        queues=queues,
        consumers=consumer_parts(queues, client_ids),
        steps=None if steps is None else tuple(steps),
        trials=found,
    )


def takeover(
    queue: MessageQueue, client_id: str, at: float, *, again: int | None = None, again_s: float = 0
) -> Takeover:
    """A member takes a queue after so many seconds, and reads half a second later from a stored offset."""
    return Takeover(
        queue.topic,
        queue.broker_name,
        queue.queue_id,
        client_id=client_id,
        at_ms=round(at * 1000),
        reads_from_ms=round(at * 1000) + 500,
        unread_ms=500,
        start_rule="stored",
        start_offset=42,
        start_reason="the group's offset",
        redelivered_ms=round(again_s * 1000),
        redelivered=again,
    )


def trials(number: int = 20, converged: int | None = None, **spreads: tuple[float, float, float]) -> GroupTrials:
    """Trials whose figures have these medians, 95th percentiles and largest values, in trial 3; others have 0."""
    unknown = {"convergence_ms": None, "redelivered": None}
    none: dict[str, Any] = {name: FigureSpread(0, 0, 0, 0) for name in FigureSpreads.__struct_fields__} | unknown
    found = {field: FigureSpread(*values, 3) for field, values in spreads.items()}
    return GroupTrials(number, number if converged is None else converged, FigureSpreads(**{**none, **found}))


def choice(
    tried: GroupTrials,
    order: Sequence[str] = (),
    name: str = "sorted",
    *,
    at_once: int = 1,
    pause_ms: float = 30_000,
    down_ms: float = 15_000,
    takes_ms: float | None = 90_000,
    best: bool = False,
) -> RolloutChoice:
    return RolloutChoice(
        **asdict(tried),
        order=tuple(order),
        order_name=name,
        at_once=at_once,
        pause_ms=pause_ms,
        down_ms=down_ms,
        takes_ms=takes_ms,
        restarts=len(order),
        best=best,
    )


def interval(from_us: int, to_us: int, state: OwnerState, owners: Sequence[str] = ()) -> Interval:
    return Interval(milliseconds(from_us), milliseconds(to_us), state, tuple(owners))


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
