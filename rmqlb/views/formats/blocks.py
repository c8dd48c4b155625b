"""Blocks of a section: a heading, and below it texts behind their labels."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqlb.views.formats.lead import LONGEST_FACT, broken, print_behind
from rmqlb.views.formats.signs import SIGNS, STYLES
from rmqlb.views.formats.text import clip, safe_markdown, visible
from rmqlb.views.formats.text import width as columns
from rmqlb.views.report import Block, Part, Section

if TYPE_CHECKING:
    from rich.console import Console

_INDENT = 2
_GAP = 2
_WIDEST = 120
"""Columns within which what stands at the right is still read as part of its line."""
_LEAST_TEXT = 30
"""Columns beside the labels; where there are fewer, texts stand below them."""


def print_blocks(section: Section, console: Console) -> None:
    """The blocks of a section as wide as the terminal allows, each after an empty line."""
    from rich.text import Text

    if section.title:
        console.print(Text(f"\n{visible(section.title)}", style="bold italic"))
    for block in _shown(section):
        console.print()
        style = STYLES.get(block.severity, "bold")
        if block.heading:
            before = [(SIGNS[block.severity] + " ", style)] if block.severity else []
            _print(before, clip(visible(block.heading), LONGEST_FACT), visible(block.beside), style, console)
        labels = _label_width(block)
        for part in block.parts:
            before = [(_label(part, block).ljust(labels), "dim" if block.heading else "")]
            for text, beside in _lines(part):
                if console.width - labels < _LEAST_TEXT:
                    if before[0][0].strip():
                        print_behind([], before[0][0].rstrip(), before[0][1], console)
                    before = [(" " * 2 * _INDENT, "")]
                if part.is_command and not beside:
                    _print_command(before[0], text, console)
                else:
                    _print(before, text, beside, "", console)
                before = [(" " * columns(before[0][0]), "")]
    if left := _left(section):
        console.print(Text(left))


def plain_blocks(section: Section) -> str:
    """The same without colours; nothing is cut or wrapped."""
    parts = [visible(section.title)] if section.title else []
    for block in _shown(section):
        lines = []
        if block.heading:
            lines.append(f"{_sign(block)}{_with(visible(block.heading), visible(block.beside))}")
        labels = _label_width(block)
        for part in block.parts:
            label = _label(part, block).ljust(labels)
            for text, beside in _lines(part, cut=False):
                lines.append(f"{label}{_with(text, beside)}".rstrip())
                label = " " * labels
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, *filter(None, [_left(section)])])


def markdown_blocks(section: Section) -> str:
    parts = [f"**{safe_markdown(visible(section.title))}**"] if section.title else []
    for block in _shown(section):
        lines = []
        if block.heading:
            name, beside = safe_markdown(visible(block.heading)), safe_markdown(visible(block.beside))
            lines.append(f"- {_sign(block)}{_with(f'**{name}**', beside)}")
        indent = "  " if block.heading else ""
        for part in block.parts:
            texts = [safe_markdown(_with(text, beside)) for text, beside in _lines(part)]
            label = safe_markdown(visible(part.label))
            if len(texts) == 1:
                lines.append(f"{indent}- {label}: {texts[0]}")
            else:
                lines += [f"{indent}- {label}:", *(f"{indent}  - {text}" for text in texts)]
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, *map(safe_markdown, filter(None, [_left(section)]))])


def _shown(section: Section) -> list[Block]:
    blocks = list(section.blocks or ())
    return blocks if section.brief is None else [blocks[place] for place in section.brief]


def _left(section: Section) -> str:
    left = len(section.blocks or ()) - len(_shown(section))
    return f"and {left} more: --section {section.name} shows all" if left else ""


def _sign(block: Block) -> str:
    return f"{SIGNS[block.severity]} " if block.severity else ""


def _label(part: Part, block: Block) -> str:
    return " " * (_INDENT if block.heading else 0) + visible(part.label)


def _label_width(block: Block) -> int:
    return max((columns(_label(part, block)) for part in block.parts), default=0) + 2


def _lines(part: Part, *, cut: bool = True) -> Iterator[tuple[str, str]]:
    most = part.most if cut else None
    for text, beside in part.lines[:most]:
        shown = visible(text)
        yield (clip(shown, LONGEST_FACT) if cut and not part.is_command else shown), visible(beside)
    if most is not None and len(part.lines) > most:
        yield f"and {len(part.lines) - most} more: --all shows all", ""


def _with(text: str, beside: str) -> str:
    return f"{text}  ({beside})" if beside else text


def _print_command(before: tuple[str, str], text: str, console: Console) -> None:
    from rich.text import Text

    first, *others = command_lines(text, console.width, columns(before[0]))
    console.print(Text.assemble(before, first), soft_wrap=True)
    for line in others:
        console.print(Text(line), soft_wrap=True)


def command_lines(command: str, width: int, indent: int = 0) -> list[str]:
    r"""A command as lines that a shell reads as one: the first as it follows a label, the others as they stand.

    Broken before options; a word that is wider than the terminal stays whole.

    >>> print(*command_lines("rmqlb plan-rebalance -g 'my group' --remove a", 30), sep="\n")
    rmqlb plan-rebalance \
      -g 'my group' --remove a
    """
    if indent + columns(command) <= width:
        return [command]
    margin = " " * (indent + _INDENT)
    lines = [" " * indent]
    for words in _with_values(command):
        text = shlex.join(words)
        joined = f"{lines[-1]} {text}" if lines[-1].strip() else lines[-1] + text
        if lines[-1].strip() and columns(joined) + 2 > width:
            lines[-1] += " \\"
            joined = margin + text
            lines.append("")
        lines[-1] = joined
    lines[0] = lines[0][indent:]
    return lines


def _with_values(command: str) -> Iterator[list[str]]:
    found: list[str] = []
    for word in shlex.split(command):
        if found and (word.startswith("-") or len(found) > 1):
            yield found
            found = []
        found.append(word)
    yield found


def _print(before: list[tuple[str, str]], text: str, beside: str, style: str, console: Console) -> None:
    """A text behind a label, and at the right what belongs there; where there is no room, that follows the text."""
    from rich.text import Text

    room = console.width - sum(columns(part) for part, _ in before)
    blanks = room - max(console.width - _WIDEST, 0) - columns(text) - columns(beside)
    if beside and blanks >= _GAP:
        console.print(Text.assemble(*before, (text, style), (" " * blanks, ""), (beside, "dim")), soft_wrap=True)
        return
    for line in broken(_with(text, beside), room):
        print_behind(before, line, style, console)
        before = [(" " * sum(columns(part) for part, _ in before), "")]
