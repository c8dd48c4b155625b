"""A page of the manual as Markdown, for the site's reference: the same text in the other form.

Rule of this file: it reads what `roff.py` writes, and nothing else; a macro that it does not know is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.manual.roff import Page

_CHARACTERS = {"e": "\\", "-": "-", "(aq": "'", "(ga": "`", "(ha": "^", "(ti": "~", "(dq": '"', "&": ""}
_SIGNS = {"(->": "→", "(mu": "×", "(+-": "±"}
_ESCAPE = re.compile(r"\\(e|-|&|\((?:aq|ga|ha|ti|dq|->|mu|\+-))")
_FONT = re.compile(r"\\f([BI])(.*?)\\fR")
_SPECIAL = re.compile(r"([\\`*<]|\b_|_\b)")


def file_of(name: str, section: int) -> str:
    """Where a page stands in the reference: what is no command goes without the program's name."""
    return f"{name}.md" if section == 1 else f"{name.removeprefix('rmqlb-')}.md"


def as_markdown(page: Page) -> str:
    """The page, with links to the other pages where it names them."""
    _, _, body = page.text().partition(".SH NAME\n")
    lines = iter(body.splitlines())
    summary = _until_macro(lines)
    head, _, said = " ".join(summary[0]).partition(" \\- ")
    title = _plain(head).replace("rmqlb-", "rmqlb ", 1) if page.section == 1 else f"{_plain(head)}({page.section})"
    said = _inline(said)
    return "\n\n".join([f"# {title}", f"{said[:1].upper()}{said[1:]}.", *_blocks(summary[1], lines)]) + "\n"


def _blocks(macro: str | None, lines: Iterator[str]) -> Iterator[str]:
    """Paragraph by paragraph; an item of a list is one."""
    items: list[str] = []
    while macro is not None:
        name, _, argument = macro.partition(" ")
        if items and name not in (".TP", ".IP", ".BR"):
            yield "\n".join(items)
            items = []
        if name == ".TP":
            term = _inline(next(lines))
            text, macro = _until_macro(lines)
            items.append(f"- {term}: {_inline(' '.join(text))}".rstrip(": "))
            continue
        if name == ".EX":
            yield _fenced(lines)
            macro = next(lines, None)
            continue
        text, following = _until_macro(lines)
        said = _inline(" ".join(text))
        if name == ".IP":
            items[-1] += f" {said}"
        elif name in (".SH", ".SS"):
            yield ("## " if name == ".SH" else "### ") + _title(argument, name)
            yield from [said] if said else []
        elif name == ".BR":
            items.append(_link(argument))
        elif name in (".PP", ".RS", ".RE"):
            yield from [said] if said else []
        else:
            raise ValueError(f"no Markdown for {macro!r}")
        macro = following
    if items:
        yield "\n".join(items)


def _until_macro(lines: Iterator[str]) -> tuple[list[str], str | None]:
    """The text up to the next request, and that one."""
    text: list[str] = []
    for line in lines:
        if line.startswith("."):
            return text, line
        text.append(line)
    return text, None


def _fenced(lines: Iterator[str]) -> str:
    held: list[str] = []
    for line in lines:
        if line == ".EE":
            break
        held.append(_plain(line))
    language = "sh" if held[0].startswith("rmqlb ") else "text"
    return "\n".join([f"```{language}", *held, "```"])


def _title(argument: str, name: str) -> str:
    text = _plain(argument.strip('"'))
    return text.capitalize() if name == ".SH" else text


def _link(argument: str) -> str:
    name, _, section = _plain(argument).rstrip(",").partition(" ")
    return f"- [{name}{section}]({file_of(name, int(section.strip('()')))})"


def _inline(text: str) -> str:
    """Bold is what is typed, italics what stands for something else."""
    parts: list[str] = []
    end = 0
    for found in _FONT.finditer(text):
        parts.append(_escaped(text[end : found.start()]))
        parts.append(_code(_plain(found[2])) if found[1] == "B" else f"*{_escaped(found[2])}*")
        end = found.end()
    return "".join([*parts, _escaped(text[end:])])


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _plain(text))


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: (_CHARACTERS | _SIGNS)[found[1]], text)


def row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
