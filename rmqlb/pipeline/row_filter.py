"""`--only`: which clusters, dates, groups and topics a stage looks at.

Several values of one key: any of them. Several keys: all of them; one that a table has no column for does not bear on
that table. Patterns are those of `fnmatch.fnmatchcase`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EXPECTED = "cluster=GLOB, group=GLOB, topic=GLOB or date=YYYY-MM-DD"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLASS = r"\[!?+(?s:.)[^]]*\]"
"""One of characters; a `]` that comes first belongs to it."""


@dataclass(frozen=True)
class RowFilter:
    """What is looked at: shell patterns, and UTC dates of snapshots; everything by default."""

    cluster: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    date: tuple[date, ...] = ()

    def filter(self, frame: DataFrame) -> DataFrame:
        """The rows of any of the warehouse's tables that are looked at."""
        from pyspark.sql import functions as fn

        for name in ("cluster", "group", "topic"):
            if getattr(self, name) and name in frame.columns:
                frame = frame.filter(self.matches(name, fn.col(name)))
        if self.date and "date" in frame.columns:
            frame = frame.filter(fn.col("date").isin([fn.lit(day) for day in self.date]))
        return frame

    def matches(self, name: str, column: Column) -> Column:
        """Whether a column's text fits one of the patterns for `cluster`, `group` or `topic`, of which there is one."""
        return reduce(or_, (column.rlike(_java_pattern(glob)) for glob in getattr(self, name)))


def parse_row_filter(texts: Iterable[str]) -> RowFilter:
    """The values of `--only`, each KEY=VALUE."""
    globs: dict[str, list[str]] = {"cluster": [], "group": [], "topic": []}
    dates: list[date] = []
    for text in texts:
        key, _, value = text.partition("=")
        if key in globs and value:
            globs[key].append(value)
        elif key == "date" and (day := iso_day(value)):
            dates.append(day)
        else:
            raise UsageError(f"--only {text}: expected {_EXPECTED}")
    return RowFilter(tuple(globs["cluster"]), tuple(globs["group"]), tuple(globs["topic"]), tuple(dates))


def iso_day(text: str) -> date | None:
    """A date as `2026-11-01`; None when it is none."""
    with suppress(ValueError):
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    return None


def _java_pattern(glob: str) -> str:
    """A shell pattern as a regular expression of Java's, which differs from Python's `fnmatch.translate`."""
    texts_and_classes = enumerate(re.split(f"({_CLASS})", glob))
    return rf"\A(?s:{''.join(_class(part[1:-1]) if nth % 2 else _text(part) for nth, part in texts_and_classes)})\z"


def _text(part: str) -> str:
    return re.escape(part).replace(r"\*", ".*").replace(r"\?", ".")


def _class(inside: str) -> str:
    """A range that ends before it begins has nothing in it, where Java would refuse the whole pattern."""
    negated, chars = inside[:1] == "!", inside.removeprefix("!")
    parts: list[str] = []
    for first, last, single in re.findall(r"(?s)(.)-(.)|(.)", chars):
        if single:
            parts.append(re.escape(single))
        elif first <= last:
            parts.append(f"{re.escape(first)}-{re.escape(last)}")
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"
