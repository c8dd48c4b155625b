"""Queues as strips: the time cut into slices, what each slice of a queue shows, and which queues may share a strip.

Rule of this file: a slice shows the worst that is in it, so that nothing bad is too short to be seen. Several owners
are worse than none, none is worse than a queue that is gone, and that is worse than one owner; of equals the last shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from string import ascii_letters, digits

from msgspec import Struct

from rmqlb.model.consuming import Event, Interval, OwnerState, QueueTimeline

SYMBOLS = ascii_letters + digits
"""Of members, in the order in which they are given away."""
_STATES: dict[OwnerState, str] = {"none": " ", "several": "!", "gone": "."}
_BADNESS: dict[OwnerState, int] = {"one": 0, "gone": 1, "none": 2, "several": 3}
_ROUND = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 600, 800)
_LARGEST = 1000


class Strip(Struct, frozen=True):
    """One queue, or neighbours that show the same.

    Attributes:
        timelines: of the queues, in order; all of one topic and broker, their ids without a gap.
        slices: for each slice of the first queue the interval that it shows; those of the others are as bad and have
            the same owners.
    """

    timelines: tuple[QueueTimeline, ...]
    slices: tuple[Interval, ...]

    @property
    def queue_ids(self) -> str:
        """`3`, or `3-5`."""
        first, last = self.timelines[0].queue.queue_id, self.timelines[-1].queue.queue_id
        return str(first) if first == last else f"{first}-{last}"

    @property
    def badness(self) -> int:
        """The longest time in microseconds that one of the queues had no owner or several."""
        return max(max(one.longest_none_us, one.longest_several_us) for one in self.timelines)


def symbols(members: Sequence[str]) -> dict[str, str]:
    """Client id → its letter or digit; past 62 members they are given away again from the first on.

    >>> symbols(["x@1", "y@1"])
    {'x@1': 'a', 'y@1': 'b'}
    """
    return {client_id: SYMBOLS[place % len(SYMBOLS)] for place, client_id in enumerate(dict.fromkeys(members))}


def character(interval: Interval, letters: dict[str, str]) -> str:
    """What stands for an interval: its owner's letter, a blank for none, `!` for several, `.` for gone."""
    return letters[interval.owners[0]] if interval.state == "one" else _STATES[interval.state]


def round_slice(end_us: int, most: int) -> int:
    """The length in microseconds of a slice, a round one, with which no more than so many reach to the end.

    >>> round_slice(31_300_000, 70), round_slice(600_000_000, 70), round_slice(0, 70)
    (500000, 10000000, 1)
    """
    least = max(-(-end_us // most), 1)
    scale = 1
    while least > _LARGEST * scale:
        scale *= 10
    return next(step * scale for step in (*_ROUND, _LARGEST) if step * scale >= least)


def edges_of(end_us: int, slice_us: int) -> tuple[int, ...]:
    """Where slices begin, and the end; the last may be shorter.

    >>> edges_of(25, 10)
    (0, 10, 20, 25)
    """
    return *range(0, end_us, slice_us), end_us


def strips(timelines: Sequence[QueueTimeline], edges: Sequence[int], *, fold: bool) -> list[Strip]:
    """Each queue's strip.

    Args:
        timelines: in the clients' order.
        edges: of the slices.
        fold: neighbours that show the same become one.
    """
    found: list[Strip] = []
    for timeline in timelines:
        slices = _slices(timeline.intervals, edges)
        if fold and found and _same(found[-1], timeline, slices):
            found[-1] = Strip((*found[-1].timelines, timeline), found[-1].slices)
        else:
            found.append(Strip((timeline,), slices))
    return found


def events_in(events: Sequence[Event], edges: Sequence[int]) -> dict[int, list[int]]:
    """Slice → the events in it, by their places; an event at the very end counts to the last slice."""
    found: dict[int, list[int]] = {}
    for place, event in enumerate(events):
        slice_ = min(bisect_right(edges, event.at_us) - 1, len(edges) - 2)
        if slice_ >= 0 and event.at_us <= edges[-1]:
            found.setdefault(slice_, []).append(place)
    return found


def _slices(intervals: Sequence[Interval], edges: Sequence[int]) -> tuple[Interval, ...]:
    shown, first = [], 0
    for begin, end in pairwise(edges):
        while intervals[first].to_us <= begin:
            first += 1
        worst, place = intervals[first], first + 1
        while place < len(intervals) and intervals[place].from_us < end:
            if _BADNESS[intervals[place].state] >= _BADNESS[worst.state]:
                worst = intervals[place]
            place += 1
        shown.append(worst)
    return tuple(shown)


def _same(strip: Strip, timeline: QueueTimeline, slices: Sequence[Interval]) -> bool:
    before, queue = strip.timelines[-1].queue, timeline.queue
    return (
        (before.topic, before.broker_name, before.queue_id + 1) == (queue.topic, queue.broker_name, queue.queue_id)
        and len(strip.slices) == len(slices)
        and all(a.state == b.state and a.owners == b.owners for a, b in zip(strip.slices, slices, strict=True))
    )
