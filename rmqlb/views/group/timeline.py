"""The picture of a group over time in characters: queues down, time across, a letter a member."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from rmqlb.model.group_scenario import Event
from rmqlb.model.recording import KnownState
from rmqlb.model.times import milliseconds
from rmqlb.views.formats.palette import BAD, WARN, owner_style
from rmqlb.views.group.strips import SYMBOLS, OverTime, begin_of, character, events_in, round_edges, strips, symbols
from rmqlb.views.report import QUEUE_COLUMNS, Cell, Column, Section, duration, worst

_LENGTH = 72
"""Characters of a strip where nothing tells how many there is room for."""
_EDGE = "|"
"""At both ends of a strip: tables lose blanks at the ends of a cell."""
_BETWEEN_TICKS = 9
_MOST_ROWS = 40
_MOST_UNFOLDED = 24
_MOST_NUMBERED = 9
_OF_CLUSTERING = "letter = owner, blank = gap, ! = overlap"
_OF_BROADCASTING = "number = owners, + = 10 or more, blank = gap"
_OF_STATES: Mapping[KnownState, str] = {
    "outage": "# = outage",
    "gone": ". = no such queue",
    "unknown": "? = unknown",
}
"""What the legend says of a state that is in the picture."""
_MINUTE = 60_000_000
_TICKS = (
    *(step * 10**power for power in range(7) for step in (1, 2, 5)),
    *(step * 1_000_000 for step in (10, 20, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1440)),
)


def timeline_section(report: OverTime) -> Section:
    """For people: who owns each queue when, and when nobody or several do; drawn as wide as the terminal is."""
    return _drawn(report, _LENGTH)


def ticks(begin_us: int, end_us: int, most: int) -> list[int]:
    """Readable times in microseconds between two others, about so many at the most.

    >>> ticks(0, 31_300_000, 4), ticks(29_900_000, 31_300_000, 4)
    ([0, 10000000, 20000000, 30000000], [30000000, 30500000, 31000000])
    """
    step = next((step for step in _TICKS if (end_us - begin_us) // step < most), _TICKS[-1])
    while (end_us - begin_us) // step >= max(most, 1):
        step *= 2
    return list(range(-(-begin_us // step) * step, end_us + 1, step))


def letter_styles(letters: Mapping[str, str]) -> dict[str, str]:
    """Letter → the style of its consumer; letters as `symbols` gives them away."""
    return {letter: owner_style(place) for place, letter in enumerate(dict.fromkeys(letters.values()))}


def event_marks(events: Sequence[Event]) -> list[str]:
    """What marks each event: its number from 1, or `v` when there are too many for a digit."""
    few = len(events) <= _MOST_NUMBERED
    return [str(number) if few else "v" for number in range(1, len(events) + 1)]


def _drawn(report: OverTime, length: int) -> Section:
    """With strips of at most so many characters, their edges included."""
    edges = round_edges(begin_of(report), report.end_us, max(length - 2 * len(_EDGE), 2))
    drawn = strips(report, edges, fold=len(report.timelines) > _MOST_UNFOLDED)
    letters = None if report.broadcasting else symbols(report.members)
    states = {interval.state for strip in drawn for interval in strip.slices}
    legend = ", ".join(
        (
            _OF_CLUSTERING if letters else _OF_BROADCASTING,
            *(text for state, text in _OF_STATES.items() if state in states),
        )
    )
    rows: list[tuple[Cell, ...]] = []
    for strip in drawn:
        queue, shown = strip.timelines[0].queue, "".join(character(interval, letters) for interval in strip.slices)
        rows.append((queue.topic, queue.broker_name, strip.queue_ids, _edged(shown)))
    topics = {timeline.queue.topic for timeline in report.timelines}
    topic = topics.pop() if len(topics) == 1 else ""
    above: list[tuple[Cell, ...]] = [(topic, "", "", _edged(_ruler(edges)))]
    if report.events:
        above.append((topic, "events", "", _edged(_marked(report.events, edges))))
    chosen = worst([strip.badness for strip in drawn], _MOST_ROWS)
    brief = None if chosen is None else (*range(len(above)), *(len(above) + place for place in chosen))
    fits = len(legend) <= length
    return Section(
        "timeline",
        _title(edges, len(letters or ())) + ("" if fits else f"; {legend}"),
        (
            *QUEUE_COLUMNS,
            Column(
                legend if fits else "", "strip", "strip", styles={**letter_styles(letters or {}), "!": BAD, "#": WARN}
            ),
        ),
        (*above, *rows) if drawn else (),
        heads=3,
        brief=brief,
        scales=len(above),
        draw=lambda other: _drawn(report, other),
    )


def _title(edges: Sequence[int], members: int) -> str:
    begin, end, length = (duration(milliseconds(us)) for us in (edges[0], edges[-1], edges[1 % len(edges)] - edges[0]))
    repeated = f"; {members} consumers share {len(SYMBOLS)} letters and digits" if members > len(SYMBOLS) else ""
    return f"timeline from {begin} to {end}, {length} per column{repeated}"


def _edged(shown: str) -> str:
    return f"{_EDGE}{shown}{_EDGE}"


def _ruler(edges: Sequence[int]) -> str:
    """Times, each beginning at the slice that begins with it, with a blank at least between two."""
    width = len(edges) - 1
    ruler = ""
    for tick in ticks(edges[0], edges[-1], max(width // _BETWEEN_TICKS, 1)):
        place, label = bisect_right(edges, tick) - 1, duration(milliseconds(tick))
        if place >= len(ruler) + bool(ruler) and place + len(label) <= width:
            ruler = ruler.ljust(place) + label
    return ruler.ljust(width)


def _marked(events: Sequence[Event], edges: Sequence[int]) -> str:
    marks, found = event_marks(events), events_in(events, edges)
    return "".join(
        " " if slice_ not in found else marks[found[slice_][0]] if len(found[slice_]) == 1 else "+"
        for slice_ in range(len(edges) - 1)
    )
