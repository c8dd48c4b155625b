"""The site's reference: every command, result, code and file format as a page, from what the program knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_type_hints

from rmqlb.cli.results import RESULTS
from rmqlb.pipeline.tables import TABLES, Row, columns, name
from rmqlb.views.envelope import PrintedResult
from rmqlb.views.explanations import Explanation, explanations
from rmqlb.views.json_schema import json_schema, keys_report, meaning
from tools.manual.markdown import as_markdown, file_of, row
from tools.manual.roff import Page
from tools.manual.tree import CommandPage

FOLDER = "reference"
_KINDS = {"exit": "Exit codes", "error": "Errors"}


def reference(program: CommandPage, pages: Sequence[Page]) -> dict[str, str]:
    """Path below `docs/` → text.

    Args:
        program: the command tree.
        pages: those of the manual.
    """
    found = {"index.md": _index(program, pages)}
    found |= {file_of(page.name, page.section): as_markdown(page) for page in pages}
    found |= {f"json/{_name(result)}.md": _result(result) for result in RESULTS}
    found["json/index.md"] = _results()
    found["codes.md"] = _codes()
    found["tables.md"] = _tables()
    return {f"{FOLDER}/{path}": text for path, text in found.items()}


def _index(program: CommandPage, pages: Sequence[Page]) -> str:
    lines = ["# Reference", "", "Every page here is written from the program itself.", "", "## Commands", ""]
    lines += [row(("command", "what it does")), row(("---", "---"))]
    for command in program.all():
        if not command.path:
            continue
        lines.append(row((f"[{command.typed}]({file_of(command.page, 1)})", command.help.summary)))
    lines += ["", "## Files and formats", ""]
    others = [page for page in pages if page.section != 1]
    lines += [f"- [{page.name}({page.section})]({file_of(page.name, page.section)})" for page in others]
    lines += [
        "- [JSON](json/index.md): each result with its keys",
        "- [Codes](codes.md): what each finding, error and exit code means",
        "- [Tables](tables.md): what the pipeline writes",
    ]
    return "\n".join(lines) + "\n"


def _name(result: PrintedResult) -> str:
    return result.name.removeprefix("rmqlb/")


def _results() -> str:
    lines = [
        "# JSON",
        "",
        "With `-o json` every command prints one envelope; `rmqlb schema COMMAND` prints its JSON Schema (2020-12).",
        "",
        row(("key", "type", "meaning")),
        row(("---", "---", "---")),
    ]
    whole = next(result for result in RESULTS if result.name == "rmqlb/plan")
    lines += [row(cells) for cells in _keys(whole) if not cells[0].startswith("`data.")]
    lines += ["", "What `data` is depends on the result:", "", row(("result", "commands", "what it is"))]
    lines.append(row(("---", "---", "---")))
    for result in RESULTS:
        link = f"[{result.name}]({_name(result)}.md)"
        lines.append(row((link, ", ".join(f"`{command}`" for command in result.commands), meaning(result))))
    return "\n".join(lines) + "\n"


def _result(result: PrintedResult) -> str:
    lines = [f"# {result.name}", "", meaning(result)]
    if result.commands:
        lines += ["", "Printed by " + ", ".join(f"`rmqlb {command}`" for command in result.commands) + "."]
    lines += ["", row(("key", "type", "meaning")), row(("---", "---", "---"))]
    keys = list(_keys(result))
    inside = [cells for cells in keys if cells[0].startswith("`data.")]
    return "\n".join([*lines, *map(row, inside or keys)]) + "\n"


def _keys(result: PrintedResult) -> Iterator[tuple[str, str, str]]:
    (section,) = keys_report(json_schema(result)).sections
    for key, kind, _, text in section.rows:
        yield f"`{key}`", str(kind), str(text)


def _codes() -> str:
    """The catalogue: exit codes first, then findings, then errors."""
    catalogue = list(explanations().values())
    lines = ["# Codes", "", "Findings and errors end in a code; `rmqlb explain CODE` says the same as this page."]
    rest = [one for one in catalogue if one.kind not in _KINDS]
    for title, chosen in (
        (_KINDS["exit"], [one for one in catalogue if one.kind == "exit"]),
        ("Findings", rest),
        (_KINDS["error"], [one for one in catalogue if one.kind == "error"]),
    ):
        lines += ["", f"## {title}"]
        for one in sorted(chosen, key=lambda one: one.code):
            lines += ["", *_code(one)]
    return "\n".join(lines) + "\n"


def _code(one: Explanation) -> Iterator[str]:
    ends = f" Exit code {one.exit_code}." if one.kind == "error" else ""
    yield f"### {one.code}"
    yield ""
    yield f"{one.means}{ends}"
    yield ""
    yield f"- Why: {one.why}"
    yield f"- What to do: {one.todo}"


def _tables() -> str:
    """The pipeline's tables, from the Structs that define them."""
    head = (
        "# Tables of the pipeline",
        "",
        "Parquet in `TABLE/date=YYYY-MM-DD/`, a folder for each night. A night is complete once `_nights/date=…/`",
        "is there. Columns are named as in rmqlb's JSON; null means unknown or not applicable.",
    )
    return "\n".join((*head, *(line for table in TABLES for line in _table(table))))


def _table(table: type[Row]) -> Iterator[str]:
    hints = get_type_hints(table, include_extras=True)
    yield from (f"## {name(table)}", "", (table.__doc__ or "").strip(), "")
    yield from ("| column | type | meaning |", "|---|---|---|")
    for field, column in zip(table.__struct_fields__, table.__struct_encode_fields__, strict=True):
        yield f"| `{column}` | {columns(table)[column].replace('`', '')} | {hints[field].__metadata__[0]} |"
    yield ""
