"""The catalogue of codes: what each warning, error and exit code means, why it is so, and what to do.

`explanations.toml` beside this file is the catalogue itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from rmqlb.decoding import convert
from rmqlb.views.report import Cell, Column, Report, Section

if TYPE_CHECKING:
    from rmqlb.views.shapes.catalogues import ExplanationsData

_CATALOGUE = "explanations.toml"
_KINDS = {"warning": "a warning", "error": "an error", "exit": "an exit code"}


class Explanation(Struct, frozen=True, forbid_unknown_fields=True):
    """What one code means.

    Attributes:
        kind: of a warning, an error, or an exit code.
        means: what it says.
        why: why it is so.
        todo: what to do.
        exit: the exit code that an error ends in; None for the others.
    """

    kind: Literal["warning", "error", "exit"]
    means: str
    why: str
    todo: str
    exit: int | None = None


def explanations() -> dict[str, Explanation]:
    """Code → what it means, in the catalogue's order; exit codes are there as text."""
    text = files("rmqlb.views").joinpath(_CATALOGUE).read_text(encoding="utf-8")
    return convert(tomllib.loads(text), dict[str, Explanation])


def explanation_report(
    codes: Iterable[str], catalogue: Mapping[str, Explanation], *, for_people: bool = False
) -> Report:
    """Some codes of the catalogue: several are listed, and one is explained.

    Args:
        codes: which, in the order in which they are shown.
        catalogue: `explanations()`.
        for_people: one code is explained in lines, without a table.
    """
    chosen = [(code, catalogue[code]) for code in codes]
    columns = (
        Column("code", "code"),
        Column("kind", "kind"),
        Column("exit code", "exitCode", "number", shown=False),
        Column("it means", "means"),
        Column("why", "why", shown=False),
        Column("what to do", "todo", shown=False),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (code, one.kind, _exit_code(code, one), one.means, one.why, one.todo) for code, one in chosen
    )
    data: ExplanationsData = {
        "explanations": [
            {
                "code": code,
                "kind": one.kind,
                "exitCode": _exit_code(code, one),
                "means": one.means,
                "why": one.why,
                "todo": one.todo,
            }
            for code, one in chosen
        ]
    }
    named_only = for_people and len(chosen) == 1
    section = Section("explanations", "codes", columns, rows, heads=1, named_only=named_only)
    return Report("rmqlb/explanations", data, _facts(chosen), (section,), {})


def _exit_code(code: str, one: Explanation) -> int | None:
    return int(code) if one.kind == "exit" else one.exit


def _facts(chosen: Sequence[tuple[str, Explanation]]) -> tuple[str, ...]:
    if len(chosen) != 1:
        return (f"{len(chosen)} codes; rmqlb explain CODE says why, and what to do",)
    code, one = chosen[0]
    ends = f", exit code {one.exit}" if one.exit is not None else ""
    return (f"{code}, {_KINDS[one.kind]}{ends}", one.means, f"why: {one.why}", f"do: {one.todo}")
