"""The query behind each number: over the tables beside the page, in words that DuckDB and Spark SQL both know.

A reserved word that is a column (`group`, `left`) stands behind the table's letter, where both take it; a quoted one
would be a text in Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_RESERVED = re.compile(r"(?<![\w.])(group|left)(?!\w)")


class OverviewRows(Struct, frozen=True):
    """Rows of OVERVIEW: a condition, and an order; `-` before a column or a sum is largest first, unknown last."""

    where: str
    order: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The order, ended by names."""
        return *self.order, "cluster", "group"

    def query(self, rows: int | None = None) -> str:
        """The same as a text, of the first rows or of all."""
        return rows_query("overview", self.where, self.columns, rows)


def rows_query(table: str, where: str = "", order: Sequence[str] = (), rows: int | None = None) -> str:
    """Rows of a table as a query.

    >>> rows_query("scores", "runs AND idle > 0", ["-idle", "group"], 20)
    'SELECT * FROM scores AS t WHERE runs AND idle > 0 ORDER BY idle DESC NULLS LAST, t.group NULLS FIRST LIMIT 20'
    """
    return _joined(("SELECT *", "FROM", f"{table} AS t", _where(where), _order(order), _limit(rows)))


def sum_query(
    table: str,
    keys: Sequence[str],
    values: Sequence[tuple[str, str]],
    *,
    where: str = "",
    order: Sequence[str] = (),
    rows: int | None = None,
) -> str:
    """Sums over a table's rows as a query; `values` are (what is summed up, its name).

    >>> sum_query("moves", ["date"], [("sum(moved)", "moved")], order=["date"])
    'SELECT date, sum(moved) AS moved FROM moves AS t GROUP BY date ORDER BY date NULLS FIRST'
    """
    named = (*map(qualified, keys), *(f"{qualified(of)} AS {name}" for of, name in values))
    by = f"GROUP BY {', '.join(map(qualified, keys))}" if keys else ""
    whole = ("SELECT", ", ".join(named), "FROM", f"{table} AS t", _where(where), by, _order(order), _limit(rows))
    return _joined(whole)


def _joined(parts: Sequence[str]) -> str:
    return " ".join(part for part in parts if part)


def _where(condition: str) -> str:
    return f"WHERE {qualified(condition)}" if condition else ""


def _limit(rows: int | None) -> str:
    return "" if rows is None else f"LIMIT {rows}"


def qualified(words: str) -> str:
    """SQL with the table's letter before columns whose names are reserved words."""
    return _RESERVED.sub(r"t.\1", words)


def _order(order: Sequence[str]) -> str:
    each = (
        f"{qualified(one[1:])} DESC NULLS LAST" if one.startswith("-") else f"{qualified(one)} NULLS FIRST"
        for one in order
    )
    return f"ORDER BY {', '.join(each)}" if order else ""
