"""Strips as runs of equal slices, each with the exact times of what it shows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from rmqlb.model.group_report import Interval, QueueTimeline
from rmqlb.views.group.facts import time
from rmqlb.views.group.strips import Strip

_MOST_NAMED = 6


class Run(Struct, frozen=True):
    """Neighbouring slices of a strip that show the same; `shown` is an interval with their state and owners."""

    strip: Strip
    from_us: int
    to_us: int
    shown: Interval

    def is_bad(self, *, broadcasting: bool) -> bool:
        """Nobody owns the queue, or several do and should not, or its broker cannot be read."""
        return self.shown.state in ("unassigned", "outage") or (
            self.shown.state == "duplicate-owners" and not broadcasting
        )


def runs(strip: Strip, edges: Sequence[int]) -> list[Run]:
    """The strip's runs from left to right."""
    places = range(len(strip.slices))
    found = []
    for _, group in groupby(places, key=lambda place: (strip.slices[place].state, strip.slices[place].owners)):
        slices = list(group)
        found.append(Run(strip, edges[slices[0]], edges[slices[-1] + 1], strip.slices[slices[0]]))
    return found


def story(run: Run) -> str:
    """What a run shows, of which queue, and exactly from when to when; of several queues or times the outermost."""
    queue = run.strip.timelines[0].queue
    found = [_alike(timeline, run) for timeline in run.strip.timelines]
    every = [interval for intervals in found for interval in intervals]
    begin, end = min(one.from_us for one in every), max(one.to_us for one in every)
    longest = max(one.to_us - one.from_us for one in every)
    times = max(map(len, found))
    name = f"{queue.topic} {queue.broker_name} {run.strip.queue_ids}"
    text = f"{name}: {_owners(run.shown)} from {time(begin)} to {time(end)}"
    if times > 1:
        return f"{text}, {times} times, the longest {time(longest)}"
    return f"{text}, {'up to ' if len(every) > 1 else ''}{time(longest)}"


def _alike(timeline: QueueTimeline, run: Run) -> list[Interval]:
    first = max(bisect_right(timeline.intervals, run.from_us, key=lambda interval: interval.from_us) - 1, 0)
    found = []
    for interval in timeline.intervals[first:]:
        if interval.from_us >= run.to_us and interval.from_us > run.from_us:
            break
        if interval.state == run.shown.state and interval.owners == run.shown.owners:
            found.append(interval)
    return found


def _owners(shown: Interval) -> str:
    if shown.state == "unassigned":
        return "no owner"
    if shown.state == "gone":
        return "gone"
    if shown.state == "outage" and not shown.owners:
        return "outage, no owner"
    more = f" and {len(shown.owners) - _MOST_NAMED} more" if len(shown.owners) > _MOST_NAMED else ""
    owners = ", ".join(shown.owners[:_MOST_NAMED]) + more
    return f"outage, owned by {owners}" if shown.state == "outage" else owners
