"""What is new in a result that was seen before, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from rmqlb.views.report import Rows

Row = Mapping[str, Any]


class RowChange(Struct, frozen=True):
    """A row that came, went or is another than before.

    Attributes:
        change: `first` in the first result, then `added`, `changed` or `removed`.
        row: the row now, or None when it is gone.
        was: the row before, or None when it was not there.
    """

    change: Literal["first", "added", "changed", "removed"]
    row: Row | None
    was: Row | None


def row_changes(before: Rows | None, after: Rows) -> Iterator[RowChange]:
    """The changes from one result to the next; those of rows that are there in their order, then those that are gone.

    Args:
        before: the rows seen last, or None when these are the first.
        after: the rows now.

    >>> old, new = Rows(("id",), [{"id": 1, "n": 1}, {"id": 2, "n": 1}]), Rows(("id",), [{"id": 1, "n": 2}])
    >>> [(each.change, each.row) for each in row_changes(old, new)]
    [('changed', {'id': 1, 'n': 2}), ('removed', None)]
    """
    if before is None:
        yield from (RowChange("first", row, None) for row in after.items)
        return
    known = {_name(row, before): row for row in before.items}
    for row in after.items:
        was = known.pop(_name(row, after), None)
        if was is None:
            yield RowChange("added", row, None)
        elif was != row:
            yield RowChange("changed", row, was)
    yield from (RowChange("removed", None, was) for was in known.values())


def _name(row: Row, rows: Rows) -> tuple[object, ...]:
    return tuple(row[key] for key in rows.keys)
