# ruff: noqa: S608 - a query consists of texts of `tables.toml` and of literals that `literal` has quoted
"""The figures of the report, as SQL over the tables of the warehouse.

Rules of this file:
- A table of a page is one `Query` of `tables.toml`. Spark runs it for the fleet and all clusters at once; the page
  shows the same query for its own scope, in words that Spark SQL and DuckDB both know.
- A column that is a reserved word (`group`) stands behind the table's alias: a quoted one would be a text in Spark.
- Every order ends in names: equal tables give equal pages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

TOP = 20
"""Rows of a list on a page."""


class Thresholds(Struct, frozen=True):
    """The least values that the page lists; a policy's own limits take their place."""

    lag: float = 1000  # unread messages of a group
    imbalance: float = 1.5
    nights: int = 3  # with takeovers, for a group that is not stable

    @property
    def texts(self) -> dict[str, str]:
        """For `tables.toml`."""
        lag = str(max(1, round(self.lag)))
        return {"nights": str(self.nights), "imbalance:g": f"{self.imbalance:g}", "lag": lag}


class Nights(Struct, frozen=True):
    """What the queries are about: the last night, the one before, and the first of the window."""

    night: date
    previous: date | None
    since: date

    def fill(self, sql: str) -> str:
        """SQL with these dates as literals."""
        previous = "CAST(NULL AS DATE)" if self.previous is None else f"DATE '{self.previous}'"
        texts = {"{night}": f"DATE '{self.night}'", "{previous}": previous, "{since}": f"DATE '{self.since}'"}
        return re.sub("|".join(map(re.escape, texts)), lambda found: texts[found[0]], sql)


class Query(Struct, frozen=True):
    """A table of the page.

    A list has its rows in an order, of which a page shows the first; a summary has a row for each value of `per`, over
    the whole fleet or one cluster.
    """

    name: str
    columns: Mapping[str, str]  # name → expression over the table `t`
    source: str
    where: str = "true"  # no OR outside brackets; a list may have GROUP BY and HAVING behind it
    order: str = ""  # of a list
    per: tuple[str, ...] | None = None  # of a summary: the columns that name a row
    limit: int = TOP

    @property
    def selected(self) -> str:
        keys = {key: f"t.{key}" for key in self.per or ()}
        named = {**keys, **self.columns}.items()
        return ", ".join(text if text == f"t.{key}" else f"{text} AS {key}" for key, text in named)

    def shown(self, cluster: str | None = None) -> str:
        """The rows of the fleet's page, or of a cluster's."""
        where = self.where if cluster is None else f"t.cluster = {literal(cluster)} AND {self.where}"
        sql = f"SELECT {self.selected} FROM {self.source} WHERE {where}"
        if self.per is None:
            return f"{sql} ORDER BY {self.order} LIMIT {self.limit}"
        keys = ", ".join(f"t.{key}" for key in self.per)
        return f"{sql} GROUP BY {keys} ORDER BY {keys}" if keys else sql

    @property
    def ran(self) -> str:
        """The rows of all pages: those of a list with their place, those of a summary by cluster and of the fleet."""
        if self.per is None:
            rows = f"SELECT {self.selected} FROM {self.source} WHERE {self.where}"
            return f"SELECT t.*, row_number() OVER (ORDER BY {self.order}) AS place FROM ({rows}) AS t"
        keys = [f"t.{key}" for key in self.per]
        sets = f"({', '.join(['t.cluster', *keys])}), ({', '.join(keys)})"
        columns = f"CAST(NULL AS INT) AS place, grouping(t.cluster) AS ofFleet, t.cluster, {self.selected}"
        return f"SELECT {columns} FROM {self.source} WHERE {self.where} GROUP BY GROUPING SETS ({sets})"


def literal(text: str) -> str:
    r"""A text in SQL: Spark, unlike DuckDB, replaces `${…}` and escapes, so `$` and backslashes are outside the quotes.

    >>> print(literal("it's"), literal("a\\b"))
    'it''s' concat('a', chr(92), 'b')
    """
    parts = re.split(r"([\\$\x01-\x1f])", text)
    if len(parts) == 1:
        return _quoted(text)
    texts = (f"chr({ord(part)})" if number % 2 else _quoted(part) for number, part in enumerate(parts))
    return f"concat({', '.join(texts)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


NEWS = """
SELECT t.*, CASE
    WHEN t.verdict = 'waived' THEN 'waived'
    WHEN t.date < {night} THEN 'gone'
    WHEN t.since < {night} THEN 'stays'
    WHEN s.since < {night} OR (t.cluster IS NULL AND {previous} IS NOT NULL) THEN 'new'
    ELSE 'first'
  END AS state
FROM (
    SELECT f.*, max(f.date) OVER w AS latest,
      min(CASE WHEN coalesce(f.verdict, 'failed') <> 'waived' THEN f.date END) OVER w AS since
    FROM findings AS f WHERE f.date IN ({night}, {previous}) AND f.severity <> 'info'
    WINDOW w AS (PARTITION BY f.cluster, f.kind, f.group, f.topic, f.code, f.rule)
  ) AS t
LEFT JOIN (
    SELECT t.cluster, min(t.date) AS since, max(t.date) AS latest
    FROM snapshots AS t WHERE t.counts AND t.date IN ({night}, {previous}) GROUP BY t.cluster
  ) AS s ON s.cluster = t.cluster
WHERE t.date = t.latest AND (t.date = {night}
    OR (coalesce(t.verdict, 'failed') <> 'waived' AND (t.cluster IS NULL OR s.latest = {night})))
""".strip()
"""The view `news`: findings of the last night and of the night before, each with its state.

new, gone and stays compare both nights; first is in a cluster without a snapshot of the night before. A finding is the
same when cluster, kind, group, topic, code and rule are.
"""

_WORDS = {
    "{counts}": "t.state IN ('new', 'stays', 'first')",
    "{gravest}": "CASE WHEN t.severity = 'error' THEN 0 ELSE 1 END",
}


@cache
def sections() -> dict[str, Any]:
    """Anchor → a section of the page with its tables, as `tables.toml` has them; `facts` is none of the page's."""
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text("utf-8"))


def queries(thresholds: Thresholds) -> dict[str, Query]:
    """All queries of the pages, by name."""
    texts = {**_WORDS, **{f"{{{name}}}": text for name, text in thresholds.texts.items()}}

    def filled(sql: str) -> str:
        return re.sub("|".join(map(re.escape, texts)), lambda found: texts[found[0]], sql)

    found = {}
    for table in (table for section in sections().values() for table in section["tables"]):
        columns = [text.rpartition(" AS ") for text in map(filled, table["columns"])]
        found[table["name"]] = Query(
            table["name"],
            {name.removeprefix("t."): expression or name for expression, _, name in columns},
            table["from"],
            filled(table.get("where", "true")),
            filled(table.get("order", "")).strip(),
            tuple(table["per"]) if "per" in table else None,
            table.get("limit", TOP),
        )
    return found
