"""The sentences of a report: facts, findings and blocks of labelled lines, for a terminal, plain and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqlb.model.result import NO_CODE, Finding
from rmqlb.views.formats.palette import SIGNS, STYLES
from rmqlb.views.formats.text import clip, safe_markdown, visible, width
from rmqlb.views.report import BETWEEN, Block, Part, Report, Section

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 1_000
"""Characters of a sentence that people still read; only terminals cut sentences."""
_GLUE = "\ufdd0"
"""Replaces the blank between a number and its unit, where no line may end; the character occurs in no text."""
_INDENT = 2
_GAP = 2
_RIGHT_EDGE = 120
"""The column up to which a text at the right is still read as part of its line."""
_LEAST_SENTENCE, _LEAST_TEXT = 40, 30
"""Columns next to a finding's code, and next to a label; with fewer columns, the text stands below."""
_Prefix = tuple[str, str]
"""The text before a text, and its style."""


def short(text: str) -> str:
    return clip(visible(text), _LONGEST)


def print_lead(report: Report, console: Console) -> None:
    for at, fact in enumerate(report.facts):
        style = "" if at else STYLES.get(report.grave, "bold")
        print_wrapped(("  " * fact.startswith(" "), ""), short(fact.strip()), console, style)
    findings = report.findings[: report.most_findings]
    if findings:
        console.print()
    labels = [f"{SIGNS[finding.severity]} {visible(_code(finding))}" for finding in findings]
    widest = max(map(width, labels), default=0) + _GAP
    for finding, label in zip(findings, labels, strict=True):
        style = STYLES.get(finding.severity, "")
        has_code = bool(_code(finding))
        prefix = _labelled(label, style, widest, _LEAST_SENTENCE, _INDENT, console) if has_code else (label, style)
        print_wrapped(prefix, short(finding.message), console)
    if left := len(report.findings) - len(findings):
        print_wrapped((" " * _INDENT, ""), _and_more(left), console)


def markdown_lead(report: Report) -> Iterator[str]:
    if report.facts:
        yield "\n".join(safe_markdown(visible(fact)) for fact in report.facts)
    findings = report.findings[: report.most_findings]
    lines = []
    for finding in findings:
        code = f"**{safe_markdown(visible(_code(finding)))}** " if _code(finding) else ""
        lines.append(f"- {SIGNS[finding.severity]} {code}{safe_markdown(visible(finding.message))}")
    if left := len(report.findings) - len(findings):
        lines.append(f"- {_and_more(left)}")
    if lines:
        yield "\n".join(lines)


def print_blocks(section: Section, console: Console) -> None:
    from rich.text import Text

    if section.title:
        console.print(Text(f"\n{visible(section.title)}", style="bold italic"))
    for block in _shown(section):
        console.print()
        style = STYLES.get(block.severity, "bold")
        if block.heading:
            print_wrapped((_sign(block), style), short(block.heading), console, style, visible(block.beside))
        labels = _label_width(block)
        for part in block.parts:
            dim = "dim" if block.heading else ""
            prefix = _labelled(_label(part, block), dim, labels, _LEAST_TEXT, 2 * _INDENT, console)
            commands = len(part.lines[: part.most]) if part.is_command else 0
            for place, (text, beside) in enumerate(_lines(part)):
                if place < commands and not beside:  # in one line, which a terminal wraps and a shell reads
                    console.print(Text.assemble(prefix, text), soft_wrap=True)
                else:
                    print_wrapped(prefix, text, console, beside=beside)
                prefix = (" " * width(prefix[0]), "")
    if section.more:
        console.print(Text(section.more))


def text_blocks(section: Section, *, is_markdown: bool) -> str:
    def quoted(text: str) -> str:
        return safe_markdown(visible(text)) if is_markdown else visible(text)

    item, strong = ("- ", "**") if is_markdown else ("", "")
    paragraphs = [f"{strong}{quoted(section.title)}{strong}"] if section.title else []
    for block in _shown(section):
        head = _with(f"{strong}{quoted(block.heading)}{strong}", quoted(block.beside))
        lines = [f"{item}{_sign(block)}{head}"] if block.heading else []
        for part in block.parts:
            label, texts = _label(part, block), [quoted(_with(*line)) for line in _lines(part, cut=False)]
            if not is_markdown:
                label += " " * (_label_width(block) - width(label))
                lines += [f"{' ' * width(label) if at else label}{text}".rstrip() for at, text in enumerate(texts)]
                continue
            indent = " " * (_INDENT if block.heading else 0)
            label = f"{indent}- {quoted(part.label)}:"
            lines += [f"{label} {texts[0]}"] if len(texts) == 1 else [label, *(f"{indent}  - {each}" for each in texts)]
        paragraphs.append("\n".join(lines))
    return "\n\n".join([*paragraphs, *filter(None, [quoted(section.more)])])


def _shown(section: Section) -> list[Block]:
    blocks = list(section.blocks or ())
    return blocks if section.brief is None else [blocks[place] for place in section.brief]


def _and_more(left: int) -> str:
    return f"and {left} more: --all shows all"


def _code(finding: Finding) -> str:
    return "" if finding.code == NO_CODE else finding.code


def _sign(block: Block) -> str:
    return f"{SIGNS[block.severity]} " if block.severity else ""


def _label(part: Part, block: Block) -> str:
    return " " * (_INDENT if block.heading else 0) + visible(part.label)


def _label_width(block: Block) -> int:
    return max((width(_label(part, block)) for part in block.parts), default=0) + _GAP


def _lines(part: Part, *, cut: bool = True) -> Iterator[tuple[str, str]]:
    for text, beside in part.lines[: part.most]:
        yield (short(text) if cut and not part.is_command else visible(text)), visible(beside)
    if part.most is not None and len(part.lines) > part.most:
        yield _and_more(len(part.lines) - part.most), ""


def _with(text: str, beside: str) -> str:
    return f"{text}  ({beside})" if beside else text


def _labelled(label: str, style: str, columns: int, least: int, indent: int, console: Console) -> _Prefix:
    """The label padded to its columns; with too little room left for a text, print the label and return an indent."""
    if console.width - columns >= least:
        return label + " " * (columns - width(label)), style
    if label.strip():
        print_wrapped(("", ""), label, console, style)
    return " " * indent, ""


def print_wrapped(prefix: _Prefix, text: str, console: Console, style: str = "", beside: str = "") -> None:
    """Print a text behind its prefix, further lines indented; `beside` is at the right, or follows the text."""
    from rich.text import Text

    indent = width(prefix[0])
    blanks = min(console.width, _RIGHT_EDGE) - indent - width(text) - width(beside)
    if beside and blanks >= _GAP:
        lines = [Text.assemble((text, style), " " * blanks, (beside, "dim"))]
    else:
        room = max(console.width - indent, 1)
        kept = re.sub(r"(\d) (ms|s)\b", rf"\1{_GLUE}\2", _with(text, beside))
        wrapped = (line for part in _broken(kept, room) for line in Text(part).wrap(console, room, overflow="fold"))
        lines = [Text(line.plain.rstrip().replace(_GLUE, " "), style=style) for line in wrapped]
    for line in lines:
        console.print(Text.assemble(prefix, line), soft_wrap=True)
        prefix = (" " * indent, "")


def _broken(text: str, room: int) -> Iterator[str]:
    line = ""
    for part in text.split(BETWEEN):
        joined = f"{line}{BETWEEN}{part}" if line else part
        if line and width(joined) > room:
            yield line
            joined = part
        line = joined
    yield line
