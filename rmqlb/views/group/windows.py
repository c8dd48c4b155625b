"""Windows: the stretches of time in which a queue has no owner, or several, or its broker cannot be read."""

from __future__ import annotations

from itertools import groupby

from rmqlb.model.group_report import GroupReport, Interval, OfQueue, OwnerState, QueueTimeline
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.times import Microseconds


class Window(OfQueue, frozen=True):
    """One stretch, unassigned, with duplicate owners or an outage."""

    state: OwnerState
    from_ms: float
    to_ms: float
    owners: tuple[str, ...]  # all that own the queue at some time of it, sorted
    before: Interval | None  # None at the beginning of the simulation, as `after` at its end
    after: Interval | None

    from_us = Microseconds("from_ms")
    to_us = Microseconds("to_ms")

    @property
    def length_us(self) -> int:
        return self.to_us - self.from_us


def windows(report: GroupReport) -> list[Window]:
    """All of them, by the time at which they begin, then in the clients' order."""
    bad: tuple[OwnerState, ...] = ("unassigned", "outage")
    if not report.scenario.broadcasting:  # where duplicate owners are as it should be
        bad += ("duplicate-owners",)
    found = [window for timeline in report.timelines for window in _windows(timeline, bad)]
    return sorted(found, key=lambda window: window.from_ms)


def _windows(timeline: QueueTimeline, bad: tuple[OwnerState, ...]) -> list[Window]:
    stretches = [tuple(stretch) for _, stretch in groupby(timeline.intervals, key=lambda interval: interval.state)]
    return [
        Window(
            *(timeline.topic, timeline.broker_name, timeline.queue_id),
            stretch[0].state,
            stretch[0].from_ms,
            stretch[-1].to_ms,
            tuple(sort_client_ids({owner for interval in stretch for owner in set(interval.owners)}))
            if len(stretch) > 1
            else stretch[0].owners,
            stretches[place - 1][-1] if place else None,
            stretches[place + 1][0] if place + 1 < len(stretches) else None,
        )
        for place, stretch in enumerate(stretches)
        if stretch[0].state in bad
    ]
