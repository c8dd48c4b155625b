"""A group over time as strips, and the picture in characters: queues down, time across, a letter per consumer.

A slice of time shows the worst state in it, so no problem is too short to be seen. From bad to good: several owners,
none, outage, no such queue, unknown owners, one owner; among equal states the last shows.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count, pairwise
from string import ascii_letters, digits

from msgspec import Struct

from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import span
from rmqlb.model.recording import KnownState, QueueRecording, RecordedInterval, Recording
from rmqlb.model.result import milliseconds
from rmqlb.model.simulate_rebalance import Interval, QueueTimeline, RebalanceResult, SimulatedEvent
from rmqlb.views.columns import QUEUE_COLUMNS, Cell, Column, PaintedText
from rmqlb.views.formats.palette import OUTAGE, overlap_style, owner_style
from rmqlb.views.numbers import duration, moment
from rmqlb.views.report import Section, worst

SYMBOLS = ascii_letters + digits
_WORSE: tuple[KnownState, ...] = ("one", "unknown", "gone", "outage", "unassigned", "duplicate-owners")
_SIGNS: dict[KnownState, str] = dict(zip(_WORSE, "=?.# !", strict=True))
_ROUND = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
_LEAD = 12  # the time before the first event is this part of the time after it

_LENGTH = 72  # characters of a strip where the width of the terminal is unknown
_EDGE = "|"  # at both ends of a strip: tables lose blanks at the ends of a cell
_BETWEEN_TICKS = 9
_MOST_ROWS, _MOST_UNFOLDED, _MOST_NUMBERED = 40, 24, 9
_OF_CLUSTERING = "letter = owner, blank = gap, ! = overlap"
_OF_BROADCASTING = "number = owners, + = 10 or more, blank = gap"
_LEGEND: Mapping[KnownState, str] = {"outage": "# = outage", "gone": ". = no such queue", "unknown": "? = unknown"}
_MINUTE = 60_000_000
_TICKS = (
    *(step * 10**power for power in range(7) for step in (1, 2, 5)),
    *(step * 1_000_000 for step in (10, 20, 30)),
    *(step * _MINUTE for step in (1, 2, 5, 10, 20, 30, 60, 120, 360, 720, 1440)),
)


AnyInterval = Interval | RecordedInterval
AnyTimeline = QueueTimeline | QueueRecording


OverTime = RebalanceResult | Recording


class Strip(Struct, frozen=True):
    """One queue, or neighbours that show the same."""

    queues: tuple[AnyTimeline, ...]  # of one topic and broker, in order, their IDs without a gap
    slices: tuple[AnyInterval, ...]  # the interval that each slice of the first queue shows; the others are equal

    @property
    def queue_ids(self) -> str:
        return span(range(self.queues[0].queue.queue_id, self.queues[-1].queue.queue_id + 1))

    @property
    def badness(self) -> float:
        return max(timeline.longest_bad_ms for timeline in self.queues)


def symbols(client_ids: Sequence[str]) -> dict[str, PaintedText]:
    """Client ID → its letter or digit in the owner's colour; after 62 consumers from the first one again.

    >>> symbols(["x@1", "y@1"])
    {'x@1': 'a', 'y@1': 'b'}
    """
    places = ((client_id, place % len(SYMBOLS)) for place, client_id in enumerate(dict.fromkeys(client_ids)))
    return {client_id: PaintedText(SYMBOLS[place], (owner_style(place),)) for client_id, place in places}


def character(interval: AnyInterval, letters: Mapping[str, str] | None) -> str:
    """An interval's owner as a letter, ` ` for none, `!` for several, `#` for an outage, `.` gone, `?` unknown.

    With BROADCASTING `letters` is None, and the number of owners is the character, `+` for many.
    """
    if interval.state in ("one", "duplicate-owners") and letters is None:
        return str(len(interval.owners)) if len(interval.owners) < 10 else "+"
    return letters[interval.owners[0]] if letters and interval.state == "one" else _SIGNS[interval.state]


def begin_of(report: OverTime) -> int:
    """The begin of a picture: shortly before the first event, or the first change if that is earlier."""
    firsts = [timeline.intervals[0].to_us for timeline in report.queues if len(timeline.intervals) > 1]
    firsts += [event.at_us for event in report.events]
    first = min(firsts, default=0)
    return max(first - (report.end_us - first) // _LEAD, 0)


def round_edges(begin_us: int, end_us: int, most: int) -> tuple[int, ...]:
    """The edges of at most that many slices (2 or more) of a round length, at multiples of it.

    >>> round_edges(0, 25, 5), round_edges(23, 61, 5)
    ((0, 5, 10, 15, 20, 25), (18, 27, 36, 45, 54, 61))
    """
    lengths = chain(range(1, 10), (step * 10**power for power in count() for step in _ROUND))
    length = next(length for length in lengths if -(-end_us // length) - begin_us // length <= most)
    return *range(begin_us // length * length, end_us, length), end_us


def strips(report: OverTime, edges: Sequence[int], *, fold: bool) -> list[Strip]:
    found: list[Strip] = []

    def badness(interval: AnyInterval) -> int:
        """With BROADCASTING fewer owners are worse."""
        is_owned = interval.state in ("one", "duplicate-owners")
        return -len(interval.owners) if report.broadcasting and is_owned else _WORSE.index(interval.state)

    for timeline in report.queues:
        slices = _slices(timeline.intervals, edges, badness)
        if fold and found and _same(found[-1], timeline, slices):
            found[-1] = Strip((*found[-1].queues, timeline), found[-1].slices)
        else:
            found.append(Strip((timeline,), slices))
    return found


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
    before, queue = strip.queues[-1].queue, timeline.queue
    return (
        (before.topic, before.broker_name, before.queue_id + 1) == (queue.topic, queue.broker_name, queue.queue_id)
        and len(strip.slices) == len(slices)
        and all(a.state == b.state and a.owners == b.owners for a, b in zip(strip.slices, slices, strict=True))
    )


def ticks(begin_us: int, end_us: int, most: int) -> list[int]:
    """Readable times between two others, in microseconds, at most about that many.

    >>> ticks(0, 31_300_000, 4), ticks(29_900_000, 31_300_000, 4)
    ([0, 10000000, 20000000, 30000000], [30000000, 30500000, 31000000])
    """
    step = next((step for step in _TICKS if (end_us - begin_us) // step < most), _TICKS[-1])
    while (end_us - begin_us) // step >= max(most, 1):
        step *= 2
    return list(range(-(-begin_us // step) * step, end_us + 1, step))


def event_marks(events: Sequence[object]) -> list[str]:
    """The mark of each event: its number from 1, or `v` if there are too many for a digit."""
    few = len(events) <= _MOST_NUMBERED
    return [str(number) if few else "v" for number in range(1, len(events) + 1)]


def timeline_section(report: OverTime, length: int = _LENGTH) -> Section:
    edges = round_edges(begin_of(report), report.end_us, max(length - 2 * len(_EDGE), 2))
    drawn = strips(report, edges, fold=len(report.queues) > _MOST_UNFOLDED)
    letters = None if report.broadcasting else symbols(report.client_ids)
    states = {interval.state for strip in drawn for interval in strip.slices}
    meanings = (text for state, text in _LEGEND.items() if state in states)
    legend = ", ".join((_OF_CLUSTERING if letters else _OF_BROADCASTING, *meanings))
    topics = {timeline.queue.topic for timeline in report.queues}
    scales = [("", time_ruler(edges)), *([("events", _marked(report.events, edges))] if report.events else [])]
    rows: list[tuple[Cell, ...]] = [
        (topics.copy().pop() if len(topics) == 1 else "", name, "", _EDGE + shown + _EDGE) for name, shown in scales
    ]
    for strip in drawn:
        queue = strip.queues[0].queue
        rows.append((queue.topic, queue.broker_name, strip.queue_ids, _painted(strip, letters)))
    chosen = worst([strip.badness for strip in drawn], _MOST_ROWS)
    brief = None if chosen is None else (*range(len(scales)), *(len(scales) + place for place in chosen))
    fits = len(legend) <= length
    return Section(
        "timeline",
        _title(edges, len(letters or ())) + ("" if fits else f"; {legend}"),
        (*QUEUE_COLUMNS, Column(legend if fits else "", "strip", "strip")),
        tuple(rows) if drawn else (),
        heads=3,
        brief=brief,
        draw=lambda other: timeline_section(report, other),
    )


def _painted(strip: Strip, letters: Mapping[str, str] | None) -> PaintedText:
    """A strip with the colours of its owners; an overlap has those of all its owners in turn."""
    text = "".join(character(interval, letters) for interval in strip.slices)
    styles = []
    for place, interval in enumerate(strip.slices):
        if letters and interval.state in ("one", "duplicate-owners"):
            owner = SYMBOLS.index(letters[interval.owners[place % len(interval.owners)]])
            styles.append(owner_style(owner) if interval.state == "one" else overlap_style(owner))
        else:
            styles.append(OUTAGE if interval.state == "outage" else "")
    return PaintedText(_EDGE + text + _EDGE, ("", *styles, ""))


def _title(edges: Sequence[int], consumers: int) -> str:
    begin, end = (moment(milliseconds(us)) for us in (edges[0], edges[-1]))
    length = duration(milliseconds(edges[1 % len(edges)] - edges[0]))
    repeated = f"; {consumers} consumers share {len(SYMBOLS)} letters and digits" if consumers > len(SYMBOLS) else ""
    return f"timeline from {begin} to {end}, {length} per column{repeated}"


def time_ruler(edges: Sequence[int]) -> str:
    width = len(edges) - 1
    times = ticks(edges[0], edges[-1], max(width // _BETWEEN_TICKS, 1))
    return ruler(width, ((bisect_right(edges, time) - 1, moment(milliseconds(time))) for time in times))


def ruler(width: int, labels: Iterable[tuple[int, str]]) -> str:
    drawn = ""
    for place, label in labels:
        if place >= len(drawn) + bool(drawn) and place + len(label) <= width:
            drawn = drawn.ljust(place) + label
    return drawn.ljust(width)


def _marked(events: Sequence[SimulatedEvent | Event], edges: Sequence[int]) -> str:
    signs = [" "] * (len(edges) - 1)
    for mark, event in zip(event_marks(events), events, strict=True):
        if signs and edges[0] <= event.at_us <= edges[-1]:
            place = min(bisect_right(edges, event.at_us), len(signs)) - 1
            signs[place] = mark if signs[place] == " " else "+"
    return "".join(signs)
