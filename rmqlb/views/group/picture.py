"""The picture of a group's simulation in a file: as SVG, and as a page of HTML that has the tables too.

Each stands by itself: no script, no link, nothing from a network. Equal reports give equal bytes.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from rmqlb.model.group_report import GroupReport, GroupTrials
from rmqlb.views.group.page import page
from rmqlb.views.group.svg import drawn
from rmqlb.views.group.view import group_report


def svg_picture(report: GroupReport) -> str:
    """The picture as an SVG file: a row a queue, or some that look the same; time across."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(drawn(report, headed=True), encoding="unicode")}\n'


def html_page(report: GroupReport, *, trials: GroupTrials | None = None) -> str:
    """The picture, the facts and the tables as an HTML file; the steps are there if the report has them."""
    shown = group_report(report, trials=trials, explain=bool(report.steps))
    return page(shown, drawn(report, headed=False), report.findings)
