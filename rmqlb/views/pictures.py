"""A group over time as SVG: a row per queue, time across, a bar per owner.

Colour is never the only sign: bars have their owner's letter and a tooltip, and bad bars are wide enough to be seen.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import cycle, groupby
from textwrap import wrap
from xml.etree import ElementTree as ET

from msgspec import Struct

from rmqlb.model.result import milliseconds
from rmqlb.views.formats.drawing import PAPER, QUIET, add_line, add_rect, add_text, paper, svg_file
from rmqlb.views.formats.palette import COLOURS, INK
from rmqlb.views.formats.text import clip, fit_for_xml
from rmqlb.views.formats.text import width as text_width
from rmqlb.views.numbers import moment
from rmqlb.views.report import BETWEEN, Report, worst
from rmqlb.views.timeline import (
    SYMBOLS,
    AnyInterval,
    AnyTimeline,
    OverTime,
    Strip,
    begin_of,
    character,
    even_edges,
    event_marks,
    strips,
    symbols,
    ticks,
)

_SLICES, _TICKS = 500, 8
_PLOT, _MARGIN, _ROW, _BAR = 800.0, 12, 19, 16
_CHARACTER, _BOLD_CHARACTER = 6.5, 8.2  # about the width of a letter
_LONGEST_NAME, _LONGEST_FACT, _LONGEST_ID = 40, 1_000, 42
_MOST_BARS, _MOST_UNFOLDED, _MOST_NAMED = 300, 60, 6
_TALL = 600
_NARROWEST_BAD = 2.5
_GONE, _RED, _LINE = "#b4b4b4", "#cc0000", "#d9dde2"
_HATCHED, _CROSSED = "several-owners", "outage"


class _Plane(Struct, frozen=True):
    begin_us: int
    end_us: int
    left: float
    top: float
    bottom: float

    def x(self, us: int) -> float:
        return self.left + (us - self.begin_us) / max(self.end_us - self.begin_us, 1) * _PLOT


def drawn(report: OverTime, facts: Sequence[str] = (), key: str = "") -> ET.Element:
    """The picture, below its facts; `key` tells its patterns from those of other pictures on a page."""
    edges = even_edges(begin_of(report), report.end_us, _SLICES)
    every = strips(report, edges, fold=len(report.queues) > _MOST_UNFOLDED)
    chosen = worst([strip.badness for strip in every], _MOST_BARS)
    shown = every if chosen is None else [every[place] for place in chosen]
    left = len(every) - len(shown)
    names = _names(report, shown)
    letters = None if report.broadcasting else symbols(report.client_ids)
    colours = dict(zip(dict.fromkeys(report.client_ids), cycle(COLOURS), strict=False))
    margin = _MARGIN + _CHARACTER * max(map(len, names), default=0) + 8
    room = margin + _PLOT + _MARGIN
    titles = [line for fact in facts[:1] for line in _wrapped(fact, room / _BOLD_CHARACTER)]
    lines = [line for part in parts_of(facts[1:]) for line in _wrapped(part, room / _CHARACTER)]
    lines += [f"{left} rows without problems or with smaller ones are not shown"] if left else []
    top = _MARGIN + 16 * len(titles) + 15 * len(lines) + 40
    plane = _Plane(edges[0], edges[-1], margin, top, top + _ROW * len(shown))
    below = _legend(letters, has_unknown=any(one.state == "unknown" for strip in shown for one in strip.slices))
    root = _paper(plane.left + _PLOT + 3 * _MARGIN, plane.bottom + 34 + 16 * len(below), key)
    for place, line in enumerate(titles):
        add_text(root, _MARGIN, _MARGIN + 10 + 16 * place, line, **{"font-size": "13", "font-weight": "bold"})
    for place, line in enumerate(lines):
        add_text(root, _MARGIN, _MARGIN + 10 + 16 * len(titles) + 15 * place, line)
    for tick in ticks(plane.begin_us, plane.end_us, _TICKS):
        add_line(root, plane.x(tick), top - 4, plane.bottom + 4, _LINE, cls="line")
        for y in (plane.bottom + 16, *((top - 24,) if plane.bottom - top > _TALL else ())):
            add_text(root, plane.x(tick), y, _time(tick), cls="quiet", anchor="middle")
    for place, (name, strip) in enumerate(zip(names, shown, strict=True)):
        row = ET.SubElement(root, "g")
        y = top + _ROW * place
        add_text(row, plane.left - 6, y + 12, name, anchor="end")
        found = runs(strip, edges)
        for run in sorted(found, key=lambda run: run.is_bad(letters)):  # nothing covers bad bars
            _bar(ET.SubElement(row, "g"), plane, y, run, letters, colours, key)
        row.tail = "\n"
    _events(root, plane, report)
    for place, line in enumerate(below):
        add_text(root, _MARGIN, plane.bottom + 40 + 16 * place, line, cls="quiet")
    return root


def _wrapped(text: str, columns: float) -> list[str]:
    """The text as lines of so many columns of a terminal."""
    shown = clip(fit_for_xml(text.strip(" ")), _LONGEST_FACT)
    return wrap(shown, int(columns if text_width(shown) == len(shown) else columns / 2))


def _paper(width: float, height: float, key: str) -> ET.Element:
    root = paper(width, height, "the owners of each queue over time")
    patterns = ET.SubElement(root, "defs")
    for name, fill, stroke, thick, path in (
        (_HATCHED, "none", INK, "2", "M-1 1l2-2M0 6l6-6M5 7l2-2"),
        (_CROSSED, "#ffe3e3", _RED, "1.4", "M1.5 1.5l3 3M4.5 1.5l-3 3"),
    ):
        size = {"width": "6", "height": "6"}
        pattern = ET.SubElement(patterns, "pattern", {"id": name + key, **size, "patternUnits": "userSpaceOnUse"})
        ET.SubElement(pattern, "rect", {**size, "fill": fill})
        ET.SubElement(pattern, "path", {"d": path, "stroke": stroke, "stroke-width": thick})
    add_rect(root, 0, 0, width, height, fill=PAPER, cls="paper")
    return root


def _names(report: OverTime, shown: Sequence[Strip]) -> list[str]:
    many = len({timeline.queue.topic for timeline in report.queues}) > 1
    names = []
    for strip in shown:
        queue = strip.queues[0].queue
        name = f"{queue.broker_name} {strip.queue_ids}"
        names.append(clip(fit_for_xml(f"{queue.topic} {name}" if many else name), _LONGEST_NAME))
    return names


def _legend(letters: Mapping[str, str] | None, *, has_unknown: bool) -> list[str]:
    if letters is None:
        return ["a number: how many own the queue; red frame: gap; red crosses: outage; grey: no such queue"]
    meanings = "a letter: its owner; red frame: gap; hatched: overlap, in the colours of two owners; "
    lines = [meanings + ("?: unknown; " if has_unknown else "") + "red crosses: outage; grey: no such queue"]
    if len(letters) <= len(SYMBOLS):
        said = [f"{letter} = {clip(fit_for_xml(client_id), _LONGEST_ID)}" for client_id, letter in letters.items()]
        return lines + ["; ".join(said[place : place + 3]) for place in range(0, len(said), 3)]
    return [*lines, f"{len(letters)} consumers share the letters; tooltips have the client ids"]


def _bar(
    bar: ET.Element,
    plane: _Plane,
    y: float,
    run: "Run",
    letters: Mapping[str, str] | None,
    colours: Mapping[str, str],
    key: str,
) -> None:
    bad, x, state = run.is_bad(letters), plane.x(run.from_us), run.shown.state
    width = max(plane.x(run.to_us) - x, _NARROWEST_BAD if bad else 0)
    ET.SubElement(bar, "title").text = fit_for_xml(story(run))
    frame = x + 0.5, y + 0.5, max(width - 1, 0.5), _BAR - 1
    if state == "unassigned":
        add_rect(bar, *frame, fill=PAPER, cls="paper bad", stroke=_RED)
    elif state == "unknown":
        add_rect(bar, *frame, fill=PAPER, cls="paper", stroke=QUIET)
    elif state in ("outage", "gone"):
        add_rect(bar, x, y, width, _BAR, fill=_GONE if state == "gone" else f"url(#{_CROSSED}{key})")
    elif bad:
        for half, owner in enumerate(run.shown.owners[:2]):
            add_rect(bar, x, y + half * _BAR / 2, width, _BAR / 2, fill=colours[owner])
        add_rect(bar, x, y, width, _BAR, fill=f"url(#{_HATCHED}{key})")
    else:
        add_rect(bar, x, y, width, _BAR, fill=COLOURS[0] if letters is None else colours[run.shown.owners[0]])
    if width >= 2 * _CHARACTER and not bad and state != "gone":
        cls = "quiet" if state == "unknown" else ""
        add_text(bar, x + width / 2, y + 12, character(run.shown, letters), anchor="middle", cls=cls)


def _events(root: ET.Element, plane: _Plane, report: OverTime) -> None:
    free, y = 0.0, plane.top - 8
    for mark, event in zip(event_marks(report.events), report.events, strict=True):
        if not plane.begin_us <= event.at_us <= plane.end_us:
            continue
        x = plane.x(event.at_us)
        line = ET.SubElement(root, "g")
        ET.SubElement(line, "title").text = fit_for_xml(f"{_time(event.at_us)}: {event.kind} {event.subject}")
        add_line(line, x, y + 3, plane.bottom + 2, INK, cls="event", dashes="3 2")
        labels = (f"{mark} {event.kind}", mark) if mark.isdigit() else (event.kind,)
        label = next((label for label in labels if x - _CHARACTER * len(label) / 2 >= free), None)
        if label is not None:
            add_text(line, x, y, label, anchor="middle")
            free = x + _CHARACTER * (len(label) / 2 + 1)


class Run(Struct, frozen=True):
    """Neighbouring slices of a strip with the same state and owners, which `shown` has."""

    strip: Strip
    from_us: int
    to_us: int
    shown: AnyInterval

    def is_bad(self, letters: Mapping[str, str] | None) -> bool:
        """Duplicate owners are normal with BROADCASTING, which has no letters."""
        state = self.shown.state
        return state in ("unassigned", "outage") or (state == "duplicate-owners" and letters is not None)


def runs(strip: Strip, edges: Sequence[int]) -> list[Run]:
    found = []
    for _, group in groupby(enumerate(strip.slices), key=lambda each: (each[1].state, each[1].owners)):
        slices = list(group)
        found.append(Run(strip, edges[slices[0][0]], edges[slices[-1][0] + 1], slices[0][1]))
    return found


def story(run: Run) -> str:
    """The tooltip: queue, owners and exact times; for several queues or times the outermost."""
    queue = run.strip.queues[0].queue
    found = [_alike(timeline, run) for timeline in run.strip.queues]
    every = [interval for intervals in found for interval in intervals]
    begin, end = min(one.from_us for one in every), max(one.to_us for one in every)
    longest, times = _time(max(one.to_us - one.from_us for one in every)), max(map(len, found))
    name = f"{queue.topic} {queue.broker_name} {run.strip.queue_ids}"
    lasted = f"{times} times, the longest {longest}" if times > 1 else f"{'up to ' if len(every) > 1 else ''}{longest}"
    return f"{name}: {_owners(run.shown)} from {_time(begin)} to {_time(end)}, {lasted}"


def _alike(timeline: AnyTimeline, run: Run) -> list[AnyInterval]:
    first = max(bisect_right(timeline.intervals, run.from_us, key=lambda interval: interval.from_us) - 1, 0)
    found: list[AnyInterval] = []
    for interval in timeline.intervals[first:]:
        if interval.from_us >= run.to_us and interval.from_us > run.from_us:
            break
        if interval.state == run.shown.state and interval.owners == run.shown.owners:
            found.append(interval)
    return found


_OWNERLESS = {"unassigned": "no owner", "gone": "no such queue", "unknown": "unknown"}


def _owners(shown: AnyInterval) -> str:
    if shown.state in _OWNERLESS:
        return _OWNERLESS[shown.state]
    more = f" and {len(shown.owners) - _MOST_NAMED} more" if len(shown.owners) > _MOST_NAMED else ""
    owners = ", ".join(shown.owners[:_MOST_NAMED]) + more
    return owners if shown.state != "outage" else f"outage, owned by {owners}" if owners else "outage, no owner"


def _time(us: int) -> str:
    return moment(milliseconds(us))


def svg_picture(report: Report) -> str:
    """A report's group over time, below its facts."""
    over_time = next(section.over_time for section in report.sections if section.over_time is not None)
    return svg_file(drawn(over_time, report.facts))


def parts_of(facts: Sequence[str]) -> list[str]:
    return [part for fact in facts for part in fact.strip(" ").split(BETWEEN)]
