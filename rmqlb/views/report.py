"""What a result has to show, before any format: its data for machines, its sections for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "number", "clients", "change"]
Cell = str | int | float | tuple[str, ...] | None
FORMATS = ("table", "plain", "json", "yaml", "csv", "tsv", "markdown")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a section.

    Attributes:
        title: for people.
        key: for CSV, camelCase as in JSON.
        kind: text; number (to the right); clients (client ids, which a narrow table may abbreviate); change (a sign
            and a word).
        quiet: left out for people when all its cells are equal; the section's title then names the value.
    """

    title: str
    key: str
    kind: Kind = "text"
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One table.

    Attributes:
        name: by which `--section` chooses it.
        title: its heading.
        columns: its columns.
        rows: its cells, in the columns' order; None is unknown or not there.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A result, ready to be shown.

    Attributes:
        schema: name of the JSON result.
        data: the result for machines.
        facts: lines above the tables.
        sections: the tables, the most detailed first.
        labels: client id → short label, used where full ids do not fit; the section `consumers` explains them.
    """

    schema: str
    data: Mapping[str, Any]
    facts: tuple[str, ...]
    sections: tuple[Section, ...]
    labels: Mapping[str, str]

    def only(self, names: tuple[str, ...]) -> Report:
        """The report with the named sections only; all of them when no name is given."""
        if not names:
            return self
        chosen = tuple(section for section in self.sections if section.name in names)
        return Report(self.schema, self.data, self.facts, chosen, self.labels)


CHANGE_SIGNS = {
    "same": "=",
    "moved": "~",
    "assigned": "+",
    "unassigned": "!",
    "added": "+",
    "removed": "-",
}
"""How a change is told apart without colour."""
