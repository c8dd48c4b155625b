"""A report as a page of HTML: the words and tables of a screen, and in closed parts what a screen shows with `--all`.

- A page stands alone: no script, no link, no network, and the policy of `page.html` forbids a browser to fetch or run
  anything. Equal reports give equal bytes.
- Text from the data enters through `_text`, which removes whatever misleads a reader, and is escaped.
"""

from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from string import Template

from rmqlb.model.result import NO_CODE, Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.columns import RIGHT, Cell, Column, painted
from rmqlb.views.formats.palette import SIGNS, owner_css
from rmqlb.views.formats.people import cell_text, for_people
from rmqlb.views.formats.text import fit_for_xml
from rmqlb.views.report import BETWEEN, Block, Report, Section, utc_text

_SIDES = {**dict.fromkeys(RIGHT, "n"), "strip": "s", "bar": "s"}
"""Kind of a column → the class of its cells; `m` marks a row, and `l` has room for a long text."""
_MOST_ROWS = 2000
_STRIP = 120  # characters of a picture
_SHORT = 40  # characters of a cell that need no second line
_LEFT_TO_MACHINES = ("intervals",)
"""Sections that the timeline shows."""
_CLASSES = {
    **dict.fromkeys(("error", "unassigned"), "error"),
    **dict.fromkeys(("warning", "moved"), "warning"),
    **dict.fromkeys(("inOrder", "assigned", "added"), "good"),
    **dict.fromkeys(("info", "removed"), "quiet"),
}
"""Severity, status or change → the class of its colour."""


def html_page(report: Report, command: str, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> str:
    whole = report.only((), screen=True, everything=True).with_findings(findings)
    sections = [each for each in whole.sections if each.name not in _LEFT_TO_MACHINES]
    closed = {place for place, each in enumerate(sections) if each.named_only or each.audience == "scripts"}
    parts = [(place in closed, "\n".join(_section(each, place in closed))) for place, each in enumerate(sections)]
    details = [f"<p>{_text(line)}</p>" for line in report.details]
    source = filter(None, (f"rmqlb {command}", snapshot.endpoint, utc_text(snapshot.taken_at)))
    page = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=_text(report.facts[0]),
        owners=owner_css(),
        grave=_CLASSES.get(whole.grave, ""),
        lead=_lead(report, whole.findings),
        shown="\n".join(text for is_closed, text in parts if not is_closed),
        more="\n".join([*_closed("details", details), *(text for is_closed, text in parts if is_closed)]),
        closing="".join(f"<p>{_text(line)}</p>" for line in (*report.closing, BETWEEN.join(source))),
    )


def _lead(report: Report, findings: Iterable[Finding]) -> str:
    facts = [f"<p>{_text(fact)}</p>" for fact in report.facts[1:]]
    found = [
        f'<li><b class="{_CLASSES[each.severity]}">{SIGNS[each.severity]} '
        f"{'' if each.code == NO_CODE else _text(each.code)}</b> {_text(each.message)}</li>"
        for each in findings
    ]
    most = len(found) if report.most_findings is None else report.most_findings
    shown, others = (["<ul>", *part, "</ul>"] if part else [] for part in (found[:most], found[most:]))
    return "\n".join([*facts, *shown, *_closed("more findings", others)])


def _section(whole: Section, is_closed: bool) -> Iterator[str]:
    if whole.blocks is not None:
        title, lines = whole.title, [line for block in whole.blocks for line in _block(block)]
    else:
        section = for_people(whole.draw(_STRIP) if whole.draw is not None else whole)
        title, lines = section.title, list(_table(section)) if section.rows else []
    if is_closed:
        yield from _closed(title or whole.name, lines)
    elif title or lines:
        yield "<section>"
        yield f"<h2>{_text(title)}</h2>" if title else ""
        yield from lines or ["<p>none</p>"]
        yield "</section>"


def _closed(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"<details><summary>{_text(title)}</summary>"
        yield from lines
        yield "</details>"


def _block(block: Block) -> Iterator[str]:
    if block.heading:
        sign = f"{SIGNS[block.severity]} " if block.severity else ""
        yield f'<h3 class="{_CLASSES.get(block.severity, "")}">{sign}{_text(block.heading)}{_beside(block.beside)}</h3>'
    yield "<dl>"
    for part in block.parts:
        yield f"<dt>{_text(part.label)}</dt>"
        for text, beside in part.lines:
            shown = f"<code>{_text(text)}</code>" if part.is_command and not beside else _text(text)
            yield f"<dd>{shown}{_beside(beside)}</dd>"
    yield "</dl>"


def _beside(text: str) -> str:
    return f'<span class="quiet">{_text(text)}</span>' if text else ""


def _table(section: Section) -> Iterator[str]:
    titles = [_text(column.title) for column in section.columns]
    sides = [_SIDES.get(column.kind, "") for column in section.columns]
    sides[0] = sides[0] if titles[0] else "m"
    folds = "" if "s" in sides else ' class="folds"'  # a timeline scrolls as one picture
    yield f'<div class="scroll" tabindex="0"><table{folds}><thead><tr>'
    yield "".join(f'<th scope="col" class="{side}">{title}</th>' for title, side in zip(titles, sides, strict=True))
    yield "</tr></thead><tbody>"
    for row in section.rows[:_MOST_ROWS]:
        cells = zip(section.columns, titles, sides, row, strict=True)
        yield f"<tr>{''.join(_cell(*each) for each in cells)}</tr>"
    yield "</tbody></table></div>"
    if (left := len(section.rows) - _MOST_ROWS) > 0:
        yield f'<p class="quiet">and {left} more: rmqlb shows all with --section {_text(section.name)} -o csv</p>'


def _cell(column: Column, title: str, side: str, cell: Cell) -> str:
    named = column.kind in ("sign", "change")
    is_wrong = column.kind == "owners" and isinstance(cell, tuple) and len(cell) != 1
    colour = "error" if is_wrong else _CLASSES.get(str(cell), "") if named else ""
    plain = cell_text(column, cell)
    parts = (f'<span class="{style}">{escape(fit_for_xml(part))}</span>' for part, style in painted(cell, plain))
    text = "".join(parts) or _text(plain)
    classes = " ".join(filter(None, (side or ("l" if len(text) > _SHORT else ""), colour)))
    return f'<td class="{classes}" data-column="{title}">{text}</td>'


def _text(text: str) -> str:
    """The text as HTML, for an attribute too."""
    return escape(fit_for_xml(text.strip(" ")))
