"""Queues as strips: the time cut into slices, what each slice of a queue shows, and which queues may share a strip.

Rule of this file: a slice shows the worst that is in it, so that nothing bad is too short to be seen. Several owners
are worse than none, none is worse than an outage, that is worse than a queue that is gone, that than unknown owners,
and those than one owner; of equals the last shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count, pairwise
from string import ascii_letters, digits
from typing import Protocol

from msgspec import Struct

from rmqlb.model.group_report import Interval, QueueTimeline
from rmqlb.model.group_scenario import Event
from rmqlb.model.recording import KnownState, QueueRecording, RecordedInterval

SYMBOLS = ascii_letters + digits
"""Of members, in the order in which they are given away."""
_STATES: dict[KnownState, str] = {
    "unassigned": " ",
    "duplicate-owners": "!",
    "outage": "#",
    "gone": ".",
    "unknown": "?",
}
_BADNESS: dict[KnownState, int] = {
    "one": 0,
    "unknown": 1,
    "gone": 2,
    "outage": 3,
    "unassigned": 4,
    "duplicate-owners": 5,
}
_ROUND = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_LEAD = 12
"""What stands before the first event is this part of what comes after it."""


AnyInterval = Interval | RecordedInterval
AnyTimeline = QueueTimeline | QueueRecording


class OverTime(Protocol):
    """A group over time, simulated or recorded: what a picture of it needs. Times are in microseconds."""

    @property
    def members(self) -> Sequence[str]: ...
    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def end_us(self) -> int: ...
    @property
    def timelines(self) -> Sequence[AnyTimeline]: ...
    @property
    def broadcasting(self) -> bool: ...


class Strip(Struct, frozen=True):
    """One queue, or neighbours that show the same."""

    # of the queues, in order; all of one topic and broker, their ids without a gap
    timelines: tuple[AnyTimeline, ...]
    # for each slice of the first queue the interval that it shows; those of the others are as bad and have the same
    # owners
    slices: tuple[AnyInterval, ...]

    @property
    def queue_ids(self) -> str:
        first, last = self.timelines[0].queue.queue_id, self.timelines[-1].queue.queue_id
        return str(first) if first == last else f"{first}-{last}"

    @property
    def badness(self) -> float:
        return max(timeline.longest_bad_ms for timeline in self.timelines)


def symbols(members: Sequence[str]) -> dict[str, str]:
    """Client id → its letter or digit; past 62 members they are given away again from the first on.

    >>> symbols(["x@1", "y@1"])
    {'x@1': 'a', 'y@1': 'b'}
    """
    return {client_id: SYMBOLS[place % len(SYMBOLS)] for place, client_id in enumerate(dict.fromkeys(members))}


def character(interval: AnyInterval, letters: Mapping[str, str] | None) -> str:
    """What stands for an interval: its owner's letter, ` ` for none, `!` several, `#` outage, `.` gone, `?` unknown.

    `letters` is None with BROADCASTING, where the number of owners stands for them, `+` for many.
    """
    if interval.state in ("one", "duplicate-owners") and letters is None:
        return str(len(interval.owners)) if len(interval.owners) < 10 else "+"
    return letters[interval.owners[0]] if letters and interval.state == "one" else _STATES[interval.state]


def begin_of(report: OverTime) -> int:
    """Where a picture begins: shortly before the first event, or the first change if that is earlier."""
    firsts = [timeline.intervals[0].to_us for timeline in report.timelines if len(timeline.intervals) > 1]
    firsts += [event.at_us for event in report.events]
    first = min(firsts, default=0)
    return max(first - (report.end_us - first) // _LEAD, 0)


def round_edges(begin_us: int, end_us: int, most: int) -> tuple[int, ...]:
    """Where at most so many slices (2 or more) of a round length begin, at multiples of it, and where the last ends.

    >>> round_edges(0, 25, 5), round_edges(23, 61, 5)
    ((0, 5, 10, 15, 20, 25), (18, 27, 36, 45, 54, 61))
    """
    lengths = chain(range(1, 10), (step * 10**power for power in count() for step in _ROUND))
    length = next(length for length in lengths if -(-end_us // length) - begin_us // length <= most)
    return *range(begin_us // length * length, end_us, length), end_us


def even_edges(begin_us: int, end_us: int, number: int) -> tuple[int, ...]:
    """Where so many slices of the same length begin, and the end; fewer when there are fewer microseconds.

    >>> even_edges(10, 20, 4), even_edges(10, 12, 4)
    ((10, 12, 15, 17, 20), (10, 11, 12))
    """
    number = max(min(number, end_us - begin_us), 1)
    return tuple(begin_us + (end_us - begin_us) * place // number for place in range(number + 1))


def strips(report: OverTime, edges: Sequence[int], *, fold: bool) -> list[Strip]:
    """Each queue's strip; with `fold` neighbours that show the same become one."""
    found: list[Strip] = []
    badness = _fewness if report.broadcasting else lambda interval: _BADNESS[interval.state]
    for timeline in report.timelines:
        slices = _slices(timeline.intervals, edges, badness)
        if fold and found and _same(found[-1], timeline, slices):
            found[-1] = Strip((*found[-1].timelines, timeline), found[-1].slices)
        else:
            found.append(Strip((timeline,), slices))
    return found


def events_in(events: Sequence[Event], edges: Sequence[int]) -> dict[int, list[int]]:
    """Slice → the events in it, by their places; one at the very end counts to the last slice."""
    found: dict[int, list[int]] = {}
    for place, event in enumerate(events):
        if len(edges) > 1 and edges[0] <= event.at_us <= edges[-1]:
            found.setdefault(min(bisect_right(edges, event.at_us) - 1, len(edges) - 2), []).append(place)
    return found


def _fewness(interval: AnyInterval) -> int:
    """With BROADCASTING: the fewer read a queue, the worse."""
    return -len(interval.owners) if interval.state in ("one", "duplicate-owners") else _BADNESS[interval.state]


def _slices(
    intervals: Sequence[AnyInterval], edges: Sequence[int], badness: Callable[[AnyInterval], int]
) -> tuple[AnyInterval, ...]:
    if not intervals:
        return ()
    shown, first = [], 0
    for begin, end in pairwise(edges):
        while intervals[first].to_us <= begin and first + 1 < len(intervals):
            first += 1
        worst, place = intervals[first], first + 1
        while place < len(intervals) and intervals[place].from_us < end:
            if badness(intervals[place]) >= badness(worst):
                worst = intervals[place]
            place += 1
        shown.append(worst)
    return tuple(shown)


def _same(strip: Strip, timeline: AnyTimeline, slices: Sequence[AnyInterval]) -> bool:
    before, queue = strip.timelines[-1].queue, timeline.queue
    return (
        (before.topic, before.broker_name, before.queue_id + 1) == (queue.topic, queue.broker_name, queue.queue_id)
        and len(strip.slices) == len(slices)
        and all(a.state == b.state and a.owners == b.owners for a, b in zip(strip.slices, slices, strict=True))
    )
