"""The curve of a group's sizes as SVG: imbalance upwards, sizes to the right, and what satisfies all.

Colour is never the only sign: a size that satisfies all is a disc, another one a cross, and tooltips say why.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from msgspec import Struct

from rmqlb.model.group_size import GroupSize, SizePoint
from rmqlb.model.words import counted
from rmqlb.views.formats.drawing import PAPER, add_line, add_path, add_rect, add_text, coordinate, paper, svg_file
from rmqlb.views.formats.palette import COLOURS, INK
from rmqlb.views.formats.text import clip, fit_for_xml
from rmqlb.views.report import BETWEEN
from rmqlb.views.size.facts import reasons

_WIDTH, _HEIGHT = 720.0, 260.0
_LEFT, _MARGIN = 56.0, 12.0
_LONGEST_LINE = 150
_TICKS = 10
_LINE, _RED = "#d9dde2", "#cc0000"


class _Plane(Struct, frozen=True):
    """Where a size and an imbalance are drawn."""

    least: int
    most: int
    top: float  # the largest imbalance
    y0: float  # of the upper edge

    def x(self, consumers: int) -> float:
        return _LEFT + 10 + (consumers - self.least) / max(self.most - self.least, 1) * (_WIDTH - 20)

    def y(self, imbalance: float) -> float:
        return self.y0 + (self.top - imbalance) / (self.top - 1) * _HEIGHT


def size_picture(size: GroupSize, facts: Sequence[str]) -> str:
    """The picture as an SVG file, the facts above it."""
    lines = [part for fact in facts for part in fact.strip().split(BETWEEN)]
    known = [point.imbalance for point in size.curve if point.imbalance is not None]
    limit = size.limits.max_imbalance
    top = max((*known, limit or 1.0, 1.1)) * 1.02
    plane = _Plane(size.curve[0].consumers, size.curve[-1].consumers, top, _MARGIN + 15 * len(lines) + 24)
    bottom = plane.y0 + _HEIGHT
    width, height = _LEFT + _WIDTH + 2 * _MARGIN, bottom + 60
    root = paper(width, height, "imbalance by number of consumers")
    add_rect(root, 0, 0, width, height, fill=PAPER, cls="paper")
    for place, line in enumerate(lines):
        head = {"font-size": "13", "font-weight": "bold"} if place == 0 else {}
        add_text(root, _MARGIN, _MARGIN + 10 + 15 * place, clip(line, _LONGEST_LINE), **head)
    _axes(root, plane, bottom)
    if limit is not None:
        y = plane.y(limit)
        add_path(root, f"M{coordinate(_LEFT)} {coordinate(y)}h{coordinate(_WIDTH)}", INK, cls="event", dashes="4 3")
        add_text(root, _LEFT + _WIDTH, y - 4, f"asked: {limit:g}", anchor="end")
    _curve(root, plane, size)
    add_text(root, _LEFT, bottom + 48, "disc: satisfies all; cross: does not; tooltips say why", cls="quiet")
    return svg_file(root)


def _axes(root: ET.Element, plane: _Plane, bottom: float) -> None:
    span = plane.most - plane.least
    step = next(s * 10**p for p in range(4) for s in (1, 2, 5) if span // (s * 10**p) <= _TICKS)
    for consumers in range(-(-plane.least // step) * step, plane.most + 1, step):
        add_line(root, plane.x(consumers), plane.y0, bottom + 4, _LINE, cls="line")
        add_text(root, plane.x(consumers), bottom + 16, str(consumers), cls="quiet", anchor="middle")
    add_text(root, _LEFT + _WIDTH / 2, bottom + 32, "consumers", cls="quiet", anchor="middle")
    height = plane.top - 1
    each = next(s * 10**p for p in range(-2, 4) for s in (1, 2, 5) if height / (s * 10**p) <= _TICKS)
    for number in range(int(height / each) + 1):
        y = plane.y(1 + number * each)
        add_path(root, f"M{coordinate(_LEFT)} {coordinate(y)}h{coordinate(_WIDTH)}", _LINE, cls="line")
        add_text(root, _LEFT - 6, y + 4, f"{1 + number * each:.2f}", cls="quiet", anchor="end")
    add_text(root, _MARGIN, plane.y0 - 8, "imbalance", cls="quiet")


def _curve(root: ET.Element, plane: _Plane, size: GroupSize) -> None:
    known = [(point, point.imbalance) for point in size.curve if point.imbalance is not None]
    way = " ".join(f"{coordinate(plane.x(p.consumers))},{coordinate(plane.y(imbalance))}" for p, imbalance in known)
    ET.SubElement(root, "polyline", {"points": way, "fill": "none", "stroke": "#8a939e", "stroke-width": "1"})
    for point, imbalance in known:
        mark = ET.SubElement(root, "g")
        ET.SubElement(mark, "title").text = fit_for_xml(_story(point, imbalance, size))
        x, y = plane.x(point.consumers), plane.y(imbalance)
        if point.satisfied:
            places = {"cx": coordinate(x), "cy": coordinate(y), "r": "4.5"}
            ET.SubElement(mark, "circle", {**places, "fill": COLOURS[0], "stroke": INK, "class": "event"})
        else:
            add_rect(mark, x - 4, y - 4, 8, 8, fill="transparent")
            add_path(mark, f"M{coordinate(x - 3)} {coordinate(y - 3)}l6 6m0 -6l-6 6", _RED, cls="bad")
        mark.tail = "\n"


def _story(point: SizePoint, imbalance: float, size: GroupSize) -> str:
    why = "; ".join(reasons(point, size)) or "satisfies all"
    return f"{counted(point.consumers, 'consumer')}: imbalance {imbalance:.2f}, {why}"
