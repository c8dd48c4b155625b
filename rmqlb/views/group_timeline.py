"""The picture of a group's simulation in characters: queues down, time across, a letter a member."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.consuming import Event, GroupReport
from rmqlb.views.group_strips import SYMBOLS, Strip, character, edges_of, events_in, round_slice, strips, symbols
from rmqlb.views.report import Cell, Column, Section, duration, milliseconds, worst

_LENGTH = 72
"""Characters of a strip where nothing tells how many there is room for."""
_EDGE = "|"
"""At both ends of a strip: tables lose blanks at the ends of a cell."""
_BETWEEN_TICKS = 9
_MOST_ROWS = 40
_MOST_UNFOLDED = 24
_MOST_NUMBERED = 9
_COLUMNS = (
    Column("topic", "topic", quiet=True),
    Column("broker", "brokerName"),
    Column("queue", "queueId", "number"),
    Column("time ->", "strip", "strip"),
)
_MINUTE = 60_000_000
_TICKS = (
    *(step * 10**power for power in range(7) for step in (1, 2, 5)),
    *(step * 1_000_000 for step in (10, 20, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1440)),
)


def timeline_section(report: GroupReport) -> Section:
    """For people: who owns each queue when, and when nobody or several do; drawn as wide as the terminal is."""
    return _drawn(report, _LENGTH)


def ticks(end_us: int, most: int) -> list[int]:
    """Readable times in microseconds from 0 to the end, no more than so many.

    >>> ticks(31_300_000, 4)
    [0, 10000000, 20000000, 30000000]
    """
    step = next((step for step in _TICKS if end_us // step < most), _TICKS[-1])
    while end_us // step >= max(most, 1):
        step *= 2
    return list(range(0, end_us + 1, step))


def event_marks(events: Sequence[Event]) -> list[str]:
    """What marks each event: its number from 1, or `v` when there are too many for a digit."""
    few = len(events) <= _MOST_NUMBERED
    return [str(number) if few else "v" for number in range(1, len(events) + 1)]


def _drawn(report: GroupReport, length: int) -> Section:
    """With strips of at most so many characters, their edges included."""
    slice_us = round_slice(report.end_us, max(length - 2 * len(_EDGE), 1))
    edges = edges_of(report.end_us, slice_us)
    drawn = strips(report.timelines, edges, fold=len(report.timelines) > _MOST_UNFOLDED)
    letters = symbols(report.members)
    rows: list[tuple[Cell, ...]] = [_row(strip, letters) for strip in drawn]
    topics = {timeline.queue.topic for timeline in report.timelines}
    topic = topics.pop() if len(topics) == 1 else ""
    above: list[tuple[Cell, ...]] = [(topic, "", "", _edged(_ruler(edges, slice_us)))]
    if report.events:
        above.append((topic, "events", "", _edged(_marked(report.events, edges))))
    chosen = worst([strip.badness for strip in drawn], _MOST_ROWS)
    brief = None if chosen is None else (*range(len(above)), *(len(above) + place for place in chosen))
    return Section(
        "timeline",
        _title(slice_us, len(letters)),
        _COLUMNS,
        (*above, *rows) if drawn else (),
        heads=3,
        brief=brief,
        draw=lambda other: _drawn(report, other),
    )


def _title(slice_us: int, members: int) -> str:
    repeated = f", given away again after {len(SYMBOLS)} of {members}" if members > len(SYMBOLS) else ""
    return (
        f"timeline, {duration(milliseconds(slice_us))} a character, which shows the worst in it: ! several owners, "
        f"blank none, . queue gone, else its owner's letter{repeated}"
    )


def _row(strip: Strip, letters: dict[str, str]) -> tuple[Cell, ...]:
    queue = strip.timelines[0].queue
    shown = "".join(character(interval, letters) for interval in strip.slices)
    return queue.topic, queue.broker_name, strip.queue_ids, _edged(shown)


def _edged(shown: str) -> str:
    return f"{_EDGE}{shown}{_EDGE}"


def _ruler(edges: Sequence[int], slice_us: int) -> str:
    """Times, each beginning at the slice that it is in."""
    width = len(edges) - 1
    ruler = " " * width
    for tick in ticks(edges[-1], max(width // _BETWEEN_TICKS, 1)):
        place, label = tick // slice_us, duration(milliseconds(tick))
        if place + len(label) <= width:
            ruler = ruler[:place] + label + ruler[place + len(label) :]
    return ruler


def _marked(events: Sequence[Event], edges: Sequence[int]) -> str:
    """Each event's mark at its slice, `+` for several."""
    marks, found = event_marks(events), events_in(events, edges)
    return "".join(
        " " if slice_ not in found else marks[found[slice_][0]] if len(found[slice_]) == 1 else "+"
        for slice_ in range(len(edges) - 1)
    )
