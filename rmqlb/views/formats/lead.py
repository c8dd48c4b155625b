"""What a screen begins with: the verdict, coloured as grave as it is, its evidence, then the findings, a line each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rmqlb.model.finding import NO_CODE, Finding
from rmqlb.views.formats.signs import SIGNS, STYLES
from rmqlb.views.formats.text import clip, safe_markdown, visible
from rmqlb.views.formats.text import width as columns
from rmqlb.views.report import BETWEEN, Report

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_FACT = 1_000
"""A sentence with names in it that people still read; in a pipe nothing is cut."""
_GLUE = "\ufdd0"
"""In the place of the blank between a number and its unit, which no line ends with; it is no character."""
_LEAST_SENTENCE = 40
"""Columns beside the codes; where there are fewer, sentences stand below them."""


def print_lead(report: Report, console: Console) -> None:
    """The facts, the first of them coloured, and the findings, as wide as the terminal allows."""
    for at, fact in enumerate(report.facts):
        text = clip(visible(fact.strip()), LONGEST_FACT)
        style = "" if at else STYLES.get(report.grave, "bold")
        indent = "  " if fact.startswith(" ") else ""
        for line in broken(text, console.width - len(indent)):
            print_behind([(indent, "")], line, style, console)
    shown = report.findings[: report.most_findings]
    if shown:
        console.print()
    codes = [visible(_code(finding)) for finding in shown]
    widest = max(map(columns, codes), default=0) + 2
    for finding, code in zip(shown, codes, strict=True):
        style = STYLES.get(finding.severity, "")
        text = clip(visible(finding.message), LONGEST_FACT)
        if not code or console.width - 2 - widest >= _LEAST_SENTENCE:
            print_behind(
                [(SIGNS[finding.severity] + " ", style), (code.ljust(widest) * bool(code), style)], text, "", console
            )
        else:
            print_behind([(SIGNS[finding.severity] + " ", style)], code, style, console)
            print_behind([("  ", "")], text, "", console)
    if left := len(report.findings) - len(shown):
        print_behind([("  ", "")], _and_more(left), "", console)


def markdown_lead(report: Report) -> Iterator[str]:
    if report.facts:
        yield "\n".join(safe_markdown(visible(fact)) for fact in report.facts)
    shown = report.findings[: report.most_findings]
    lines = [f"- {_markdown(finding)}" for finding in shown]
    if left := len(report.findings) - len(shown):
        lines.append(f"- {_and_more(left)}")
    if lines:
        yield "\n".join(lines)


def broken(fact: str, width: int) -> Iterator[str]:
    """A fact as lines, broken between its parts where it is too long."""
    line = ""
    for part in fact.split(BETWEEN):
        joined = f"{line}{BETWEEN}{part}" if line else part
        if line and columns(joined) > width:
            yield line
            joined = part
        line = joined
    yield line


def _markdown(finding: Finding) -> str:
    code = safe_markdown(visible(_code(finding)))
    return f"{SIGNS[finding.severity]} {f'**{code}** ' if code else ''}{safe_markdown(visible(finding.message))}"


def _code(finding: Finding) -> str:
    return "" if finding.code == NO_CODE else finding.code


def _and_more(left: int) -> str:
    return f"and {left} more: --all shows all"


def print_behind(before: Sequence[tuple[str, str]], text: str, style: str, console: Console) -> None:
    """A text behind what stands before it, its further lines below its first one."""
    from rich.text import Text

    indent = sum(columns(part) for part, _ in before)
    # No line ends between a number and its unit.
    kept = re.sub(r"(\d) (ms|s)\b", rf"\1{_GLUE}\2", text)
    for line in Text(kept).wrap(console, max(console.width - indent, 1), overflow="fold"):
        shown = line.plain.rstrip().replace(_GLUE, " ")
        console.print(Text.assemble(*before, (shown, style)), soft_wrap=True)
        before = [(" " * indent, "")]
