"""`--only`: which clusters, dates, groups and topics a stage looks at.

Rules of this file:
- Several values of one key: any of them. Several keys: all of them. A key that a table has no column for does not
  bear on that table.
- Patterns are the shell's (`*`, `?`, `[abc]`, `[!abc]`), upper and lower case apart, as `fnmatch.fnmatchcase` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EXPECTED = "cluster=GLOB, group=GLOB, topic=GLOB or date=YYYY-MM-DD"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class RowFilter:
    """What is looked at; everything by default.

    Attributes:
        cluster, group, topic: shell patterns; none for all.
        date: UTC dates of snapshots; none for all.
    """

    cluster: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    date: tuple[date, ...] = ()

    def filter(self, frame: DataFrame) -> DataFrame:
        """The rows of any of the warehouse's tables that are looked at."""
        from pyspark.sql import functions as fn

        for name in ("cluster", "group", "topic"):
            globs: tuple[str, ...] = getattr(self, name)
            if globs and name in frame.columns:
                column = fn.col(name)
                frame = frame.filter(reduce(or_, (column.rlike(_java_pattern(glob)) for glob in globs)))
        if self.date and "date" in frame.columns:
            frame = frame.filter(fn.col("date").isin([fn.lit(day) for day in self.date]))
        return frame


def parse_row_filter(texts: Iterable[str]) -> RowFilter:
    """The values of `--only`, each KEY=VALUE.

    Raises:
        UsageError: another key, no value, or no date.
    """
    globs: dict[str, list[str]] = {"cluster": [], "group": [], "topic": []}
    dates: list[date] = []
    for text in texts:
        key, _, value = text.partition("=")
        if key in globs and value:
            globs[key].append(value)
        elif key == "date" and value:
            dates.append(_date(value, text))
        else:
            raise UsageError(f"--only {text}: expected {_EXPECTED}")
    return RowFilter(tuple(globs["cluster"]), tuple(globs["group"]), tuple(globs["topic"]), tuple(dates))


def _date(value: str, text: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise UsageError(f"--only {text}: expected {_EXPECTED}")


def _java_pattern(glob: str) -> str:
    """A shell pattern as a regular expression of Java's, which differs from Python's `fnmatch.translate`."""
    parts: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        end = _class_end(glob, at) if char == "[" else -1
        if char == "*":
            parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif end > 0:
            parts.append(_class(glob[at + 1 : end]))
            at = end
        else:
            parts.append(_literal(char))
        at += 1
    return rf"\A(?s:{''.join(parts)})\z"


def _class_end(glob: str, start: int) -> int:
    """Where the class that begins here ends; -1 when it does not. A `]` that comes first belongs to it."""
    first = start + 2 if glob[start + 1 : start + 2] == "!" else start + 1
    return glob.find("]", first + 1)


def _class(inside: str) -> str:
    """A range that ends before it begins has nothing in it, where Java would refuse the whole pattern."""
    negated, chars = inside[:1] == "!", inside.removeprefix("!")
    parts: list[str] = []
    at = 0
    while at < len(chars):
        if chars[at + 1 : at + 2] == "-" and at + 2 < len(chars):
            first, last = chars[at], chars[at + 2]
            parts.append(f"{_literal(first)}-{_literal(last)}" if first <= last else "")
            at += 3
        else:
            parts.append(_literal(chars[at]))
            at += 1
    if not "".join(parts):
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _literal(char: str) -> str:
    return char if char.isalnum() or char in "_ " else f"\\x{{{ord(char):x}}}"
