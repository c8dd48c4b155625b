"""What a result has to show, before any format: its data for machines, its sections for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["text", "number", "clients", "change", "label"]
Cell = str | int | float | tuple[str, ...] | None
FORMATS = ("table", "plain", "json", "yaml", "csv", "tsv", "markdown")


class Column(Struct, frozen=True):
    """One column of a section.

    Attributes:
        title: for people.
        key: for CSV, camelCase as in JSON.
        kind: text; number (to the right); clients (client ids, which a narrow table may abbreviate); label (a number
            that explains such an abbreviation); change (a sign and a word).
        quiet: left out for people when all its cells are equal; the section's title then names the value.
        shown: False leaves it out for people; CSV has the same columns always.
    """

    title: str
    key: str
    kind: Kind = "text"
    quiet: bool = False
    shown: bool = True


class Section(Struct, frozen=True):
    """One table.

    Attributes:
        name: by which `--section` chooses it.
        title: its heading.
        columns: its columns.
        rows: its cells, in the columns' order; None is unknown or not there.
        heads: how many leading columns name a row; where the table does not fit, the others go below them. 0 never
            does that.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    heads: int = 0


class Report(Struct, frozen=True):
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
