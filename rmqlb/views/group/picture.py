"""The picture of a group over time in a file: as SVG, and as a page of HTML that has the tables too.

Rules of this file:
- Each stands by itself: no script, no link, nothing from a network. Equal reports give equal bytes.
- Text from the data enters through `_add`, which leaves nothing that steers a reader's eye; ElementTree escapes it.
- No data stands in an attribute, and the page's own policy forbids a browser to fetch or run anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from rmqlb.model.finding import Finding
from rmqlb.views.formats.drawing import svg_file
from rmqlb.views.formats.people import cell_text, for_people
from rmqlb.views.formats.text import fit_for_xml
from rmqlb.views.group.facts import parts_of
from rmqlb.views.group.strips import OverTime
from rmqlb.views.group.svg import drawn
from rmqlb.views.report import RIGHT, Report, Section

_MOST_ROWS = 2000
_SHORT = 60
"""Characters of a cell that are not worth a second line."""
_LONG = {"class": "l"}
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""For a page that stands by itself: a browser may fetch and run nothing."""
_UNSHOWN = ("timeline", "intervals")
_LAST = ("queues", "takeovers", "steps")
_STYLE = """
:root{color-scheme:light dark;--paper:#ffffff;--ink:#20242a;--quiet:#5b6470;--line:#d9dde2}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e3e6ea;--quiet:#9aa4b0;--line:#343a42}}
body{margin:0 auto;padding:1.25rem;max-width:72rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif}
h1{font-size:1.35rem;line-height:1.3;margin:0 0 .6rem;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:2rem 0 .4rem}
ul{margin:0 0 1rem;padding-left:1.2rem;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
svg{display:block;max-width:100%;height:auto;min-width:40rem}
table{border-collapse:collapse;font-size:.85rem;line-height:1.4}
th,td{padding:.2rem .9rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-weight:600;border-bottom-color:var(--quiet)}
td{white-space:nowrap}
.l{white-space:normal;overflow-wrap:anywhere;min-width:20rem;max-width:40rem}
.n{text-align:right;font-variant-numeric:tabular-nums}
.quiet{color:var(--quiet)}
@media print{body{max-width:none;font-size:9pt}tr{break-inside:avoid}thead{display:table-header-group}}
"""


def svg_picture(group: OverTime, facts: Sequence[str]) -> str:
    """The picture as an SVG file, the facts above it: a row a queue, or some that look the same; time across."""
    return svg_file(drawn(group, facts))


def html_page(group: OverTime, report: Report, findings: Iterable[Finding]) -> str:
    """The picture, and the facts, findings and tables of the group's report as an HTML file."""
    return page_of(report, findings, drawn(group))


def page_of(report: Report, findings: Iterable[Finding], picture: ET.Element | None = None) -> str:
    """The facts, findings and tables of a report as an HTML file, below the facts a picture if there is one."""
    root = ET.Element("html", {"lang": "en"})
    head = ET.SubElement(root, "head")
    ET.SubElement(head, "meta", {"charset": "utf-8"})
    ET.SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": PAGE_POLICY})
    ET.SubElement(head, "meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    ET.SubElement(head, "meta", {"name": "referrer", "content": "no-referrer"})
    _add(head, "title", report.facts[0])
    ET.SubElement(head, "style").text = _STYLE
    body = ET.SubElement(root, "body")
    _add(body, "h1", report.facts[0])
    facts = ET.SubElement(body, "ul")
    for fact in parts_of(report.facts)[1:]:
        _add(facts, "li", fact)
    for finding in findings:
        _add(facts, "li", finding.line)
    if picture is not None:
        ET.SubElement(body, "div", {"class": "scroll", "tabindex": "0"}).append(picture)
    for section in sorted(report.sections, key=lambda section: section.name in _LAST):
        if section.name not in _UNSHOWN and section.audience != "screen":
            _table(body, section if len(section.rows) > _MOST_ROWS else section.whole())
    for line in report.closing:
        _add(body, "p", line, {"class": "quiet"})
    for element in (*head, *body):
        element.tail = "\n"
    return f"<!DOCTYPE html>\n{ET.tostring(root, encoding='unicode', method='html')}\n"


def _table(body: ET.Element, whole: Section) -> None:
    section = for_people(whole)
    _add(body, "h2", section.title if section.rows else f"{section.title}: none")
    if not section.rows:
        return
    table = ET.SubElement(ET.SubElement(body, "div", {"class": "scroll", "tabindex": "0"}), "table")
    head = ET.SubElement(ET.SubElement(table, "thead"), "tr")
    sides: list[dict[str, str]] = [{"class": "n"} if column.kind in RIGHT else {} for column in section.columns]
    for column, side in zip(section.columns, sides, strict=True):
        _add(head, "th", column.title, {"scope": "col", **side})
    rows = ET.SubElement(table, "tbody")
    for row in section.rows:
        line = ET.SubElement(rows, "tr")
        for column, cell, side in zip(section.columns, row, sides, strict=True):
            text = cell_text(column, cell, {})
            _add(line, "td", text, _LONG if len(text) > _SHORT else side)
        line.tail = "\n"
    left = len(whole.rows) - len(section.rows)
    if left:
        _add(body, "p", f"and {left} more: rmqlb shows all with --section {section.name} -o csv", {"class": "quiet"})


def _add(parent: ET.Element, tag: str, text: str, attributes: dict[str, str] | None = None) -> None:
    ET.SubElement(parent, tag, attributes or {}).text = fit_for_xml(text)
