"""A result before any format: its data for machines, its sentences and tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from rmqlb.model import result as results
from rmqlb.model.result import ERROR, INFO, NO_CODE, SEVERITIES, WARNING, Finding
from rmqlb.views.columns import Cell, Column, rows_of

BETWEEN = " · "
"""Between the parts of a fact, where a narrow screen may break the line."""
FORMATS = ("table", "wide", "plain", "json", "yaml", "csv", "markdown")
_ALSO = {"yml": "yaml", "md": "markdown", "text": "plain"}
FOR_PEOPLE = ("table", "wide", "plain", "markdown")
"""The formats that people read; programs read the others."""
SCREENS = ("table", "wide", "markdown")
"""The formats that include the findings."""
Audience = Literal["all", "screen", "scripts"]


def format_of(text: str) -> str:
    return _ALSO.get(text.lower(), text.lower())


"""The readers of a section that is not named: people, or the formats with room for one table."""


class Part(Struct, frozen=True):
    label: str
    lines: tuple[tuple[str, str], ...]  # texts, each with a text at its right
    most: int | None = None  # lines that people see without `--all`; None is all
    is_command: bool = False  # the lines are shell commands: never cut nor broken


class Block(Struct, frozen=True):
    """A row as people see it: a heading and, below it, parts with their labels in a column."""

    parts: tuple[Part, ...]
    severity: str = ""  # or status: its sign and colour
    heading: str = ""  # without one the labels stand at the left edge
    beside: str = ""  # at the right of the heading

    def whole(self) -> Block:
        return replace(self, parts=tuple(replace(part, most=None) for part in self.parts))


class Section(Struct, frozen=True):
    name: str  # for `--section`; a section for screens and one for scripts may have the same
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]  # cells in the columns' order; None is unknown or not there
    heads: int = 0  # leading columns that name a row; in a table that is too wide, the others go below; 0 never does
    names_left_out: bool = False  # a line below the table names the columns that have no room
    named_only: bool = False  # shown only when `--section` names it, or with `--all`
    audience: Audience = "all"
    brief: tuple[int, ...] | None = None  # places of the rows that people see without `--section` and `--all`; or all
    chosen: str = ""  # the choice of `brief`, in a few words after the title
    draw: Callable[[int], Section] | None = None  # draws a picture with strips of a length; `rows` are for no length
    blocks: tuple[Block, ...] | None = None  # blocks instead of a table; `brief` chooses among them

    @property
    def more(self) -> str:
        """The line below the section about what people do not see of it, if anything."""
        left = 0 if self.brief is None else len(self.rows if self.blocks is None else self.blocks) - len(self.brief)
        return f"and {left} more: --section {self.name} shows all" if left else ""

    def unless_empty(self) -> Section:
        return replace(self, named_only=self.named_only or not self.rows)

    def whole(self) -> Section:
        draw = self.draw
        return replace(
            self,
            brief=None,
            draw=None if draw is None else lambda length: draw(length).whole(),
            blocks=None if self.blocks is None else tuple(block.whole() for block in self.blocks),
        )


class Rows(Struct, frozen=True):
    """The rows of a result for machines that read one after the other, and compare them with later rows."""

    keys: tuple[str, ...]  # the keys that name a row; no two rows have equal values
    items: Sequence[tuple[Mapping[str, str], Struct]]  # the names around an item, and the item of `data`
    unwatched: tuple[str, ...] = ()  # keys, at any depth, that a watch ignores

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({**names, **to_builtins(item)} for names, item in self.items)


class Report(Struct, frozen=True):
    schema: str
    data: Struct | Mapping[str, Any]  # the result for machines: its Struct, or a JSON Schema
    facts: tuple[str, ...]
    sections: tuple[Section, ...]  # the tables, in the order in which people see them
    labels: Mapping[str, str] = {}  # client ID → the short label where full IDs do not fit
    rows: Rows | None = None  # for `-o jsonl`; None when the result is no list of rows
    tables: tuple[Section, ...] | None = None  # for a format with room for one table; None is the sections
    grave: str = ""  # severity or status that colours the first fact, unless a finding of a screen is worse
    details: tuple[str, ...] = ()  # further facts, which a screen shows with `--all`
    more: str = ""  # the last line of a screen: how to see more
    closing: tuple[str, ...] = ()  # lines below the tables
    findings: tuple[Finding, ...] = ()  # on a screen, below the facts, worst first
    most_findings: int | None = 8  # so many of them; None is all

    def only(self, names: tuple[str, ...], *, screen: bool = False, everything: bool = False) -> Report:
        """The report with the named sections and all their rows; without a name, with the sections that need none."""
        tables = None if self.tables is None else _chosen(self.tables, names, screen, everything)
        found = replace(self, sections=_chosen(self.sections, names, screen, everything), tables=tables)
        if screen and not everything:
            return replace(found, more="" if names else self.more or _more(self.sections, found.sections))
        return replace(found, facts=(*self.facts, *self.details), most_findings=None, more="")

    def with_findings(self, findings: Iterable[Finding]) -> Report:
        ordered = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
        if self.most_findings is not None:
            ordered = tuple(_alike_once(ordered))
        severities = {self.grave, *(finding.severity for finding in ordered)}
        grave = next((each for each in (ERROR, WARNING) if each in severities), self.grave)
        return replace(self, findings=ordered, grave=grave)

    @property
    def table(self) -> Section:
        """The section for a format with room for one: the first that is no picture, if any."""
        tables = self.tables or self.sections
        return next((section for section in tables if section.draw is None), tables[0])


def _chosen(sections: Sequence[Section], names: tuple[str, ...], screen: bool, everything: bool) -> tuple[Section, ...]:
    fitting: Audience = "screen" if screen else "scripts"
    of_format = {section.name for section in sections if section.audience == fitting}
    there = [each for each in sections if each.audience in (fitting, "all") or each.name not in of_format]
    if names or everything:
        return tuple(section.whole() for section in there if everything or section.name in names)
    return tuple(each for each in there if not each.named_only and each.audience in (fitting, "all"))


def _alike_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    alike = Counter(finding.code for finding in findings if finding.severity == INFO and finding.code != NO_CODE)
    for finding in findings:
        number = alike.get(finding.code, 1) if finding.severity == INFO else 1
        if number > 1:
            alike[finding.code] = 0
            yield replace(finding, message=f"{finding.message} (and {number - 1} more: --all shows all)")
        elif number:
            yield finding


def _more(sections: Sequence[Section], shown: Sequence[Section]) -> str:
    seen = {section.name for section in shown}
    left = dict.fromkeys(section.name for section in sections if section.rows and section.name not in seen)
    return f"--all shows more: {', '.join(left)}" if left else ""


def utc_text(at: datetime | None) -> str | None:
    return None if at is None else results.utc_text(at)


def labels(client_ids: Iterable[str]) -> dict[str, str]:
    return {client_id: f"#{index}" for index, client_id in enumerate(client_ids)}


def section_of(
    name: str, title: str, columns: Sequence[Column], items: Sequence[object], *, first: int | None = None, **more: Any
) -> Section:
    """A section with a row per item (`rows_of`), of which people see the `first`."""
    if first is not None:
        more["brief"] = first_places(len(items), first)
    return Section(name, title, tuple(columns), rows_of(columns, items), **more)


def first_places(number: int, most: int) -> tuple[int, ...] | None:
    """The places of the first `most` of a number of rows; None when there are no more.

    >>> first_places(3, 2), first_places(2, 2)
    ((0, 1), None)
    """
    return tuple(range(most)) if number > most else None


def worst(badness: Sequence[float], most: int) -> tuple[int, ...] | None:
    """The places of the `most` worst rows, in row order; None when there are no more.

    `badness` has a number per row, the larger the worse; among equals the first is worse. A row with 0 is never chosen.

    >>> worst([1, 5, 2, 5], 2), worst([0, 0, 4], 2), worst([0, 5], 2)
    ((1, 3), (2,), None)
    """
    if len(badness) <= most:
        return None
    bad = [place for place, how in enumerate(badness) if how]
    return tuple(sorted(sorted(bad, key=lambda place: badness[place], reverse=True)[:most]))
