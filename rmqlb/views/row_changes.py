"""The changes of a result since it was last shown, row by row."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from rmqlb.views.envelope import Error
from rmqlb.views.report import Rows

Row = Mapping[str, Any]
RowChange = Literal["first", "added", "changed", "removed", "stale", "fresh"]


class ChangeLine(Struct, frozen=True):
    """A difference from the sample before, a line of `--watch` in a pipe."""

    at: Annotated[str, "when it was seen, ISO-8601 in UTC"]
    change: Annotated[
        RowChange, "first (in the first sample), added, changed, removed; stale after a failed sample, then fresh"
    ]
    row: Annotated[Row | None, "the row now, as -o jsonl of the command shows it; null when there is none"] = None
    was: Annotated[Row | None, "the row before; null when there was none"] = None
    error: Annotated[Error | None, "why it is stale; null otherwise"] = None


def row_changes(at: str, before: Rows | None, after: Rows) -> Iterator[ChangeLine]:
    """The changes from one result to the next, in the order of the rows, then the removed rows.

    >>> from rmqlb.model.result import Finding
    >>> old = Rows(("code",), [({}, Finding("a", "x")), ({}, Finding("b", "x"))])
    >>> [
    ...     (each.change, each.row and each.row["message"])
    ...     for each in row_changes("now", old, Rows(("code",), [({}, Finding("a", "y"))]))
    ... ]
    [('changed', 'y'), ('removed', None)]
    """
    if before is None:
        yield from (ChangeLine(at, "first", row, None) for row in after)
        return
    known = {_name(row, before): row for row in before}
    for row in after:
        was = known.pop(_name(row, after), None)
        if was is None:
            yield ChangeLine(at, "added", row, None)
        elif _watched(was, before.unwatched) != _watched(row, after.unwatched):
            yield ChangeLine(at, "changed", row, was)
    yield from (ChangeLine(at, "removed", None, was) for was in known.values())


def _watched(value: Any, unwatched: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _watched(each, unwatched) for key, each in value.items() if key not in unwatched}
    if isinstance(value, (list, tuple)):
        return [_watched(each, unwatched) for each in value]
    return value


def _name(row: Row, rows: Rows) -> tuple[object, ...]:
    return tuple(row[key] for key in rows.keys)
