# ruff: noqa: S608 - a query consists of texts of this file and of literals that `literal` has quoted
"""The figures of the report, as SQL over the tables of the warehouse.

Rules of this file:
- A table of a page is one `Query`. Spark runs it for the fleet and all clusters at once; the page shows the same query
  for its own scope, in words that Spark SQL and DuckDB both know.
- A column that is a reserved word (`group`) stands behind the table's alias: a quoted one would be a text in Spark.
- Every order ends in names: equal tables give equal pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from msgspec import Struct

TOP = 20
"""Rows of a list on a page."""
_ALL = 100_000


class Thresholds(Struct, frozen=True):
    """The least values that the page lists; a policy's own limits take their place."""

    lag: float = 1000  # unread messages of a group
    imbalance: float = 1.5
    nights: int = 3  # with takeovers, for a group that is not stable


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

_COUNTS = "t.state IN ('new', 'stays', 'first')"
_WHERE_IT_IS = {"cluster": "t.cluster", "group": "t.group"}
_FINDING = {
    "severity": "t.severity",
    **_WHERE_IT_IS,
    "topic": "t.topic",
    "message": "t.message",
    "code": "t.code",
}
_POLICY = {
    **_WHERE_IT_IS,
    "topic": "t.topic",
    "rule": "t.rule",
    "code": "t.code",
    "value": "t.value",
    "bound": "t.bound",
}
_GRAVEST = "CASE WHEN t.severity = 'error' THEN 0 ELSE 1 END"
_BY_NAME = "t.cluster NULLS FIRST, t.group NULLS FIRST, t.topic NULLS FIRST, t.code"


def _sums(*columns: str) -> dict[str, str]:
    return {column: f"sum(t.{column})" for column in columns}


def _own(*columns: str) -> dict[str, str]:
    return {column: f"t.{column}" for column in columns}


def _count(condition: str) -> str:
    """How many rows meet it; `count_if` would be null in DuckDB where it is unknown for all."""
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _of_change(*changes: str) -> str:
    return _count(f"t.change IN ({', '.join(map(_quoted, changes))})")


def queries(thresholds: Thresholds) -> dict[str, Query]:
    """All queries of the pages, by name."""
    of_tonight = "figures AS t", "t.runs AND t.date = {night}"
    found = (
        Query(
            "findings",
            {
                "errors": _count(f"t.severity = 'error' AND {_COUNTS}"),
                "warnings": _count(f"t.severity = 'warning' AND {_COUNTS}"),
                **{state: _count(f"t.state = '{state}'") for state in ("new", "gone", "stays", "first", "waived")},
                "failed": _count(f"t.verdict = 'failed' AND t.severity = 'error' AND {_COUNTS}"),
                "incomplete": _count(f"t.verdict = 'incomplete' AND {_COUNTS}"),
            },
            "news AS t",
            per=(),
        ),
        Query(
            "totals",
            {
                "groups": "count(*)",
                **_sums("consumers", "queues", "unassigned", "duplicateOwners", "idle", "mismatches"),
                "lag": "sum(t.lagAtLeast)",
                "unknown": _count("t.code IS NOT NULL AND coalesce(t.sharesQueues, true)"),
            },
            *of_tonight,
            per=(),
        ),
        Query(
            "worst",
            {
                **_WHERE_IT_IS,
                "errors": _count("t.severity = 'error'"),
                "warnings": _count("t.severity = 'warning'"),
                "new": _count("t.state = 'new'"),
                "queues": "max(t.queues)",
                "finding": "coalesce(min(CASE WHEN t.severity = 'error' THEN t.message END), min(t.message))",
                "codes": "array_sort(array_agg(DISTINCT t.code))",
                "command": "coalesce(min(CASE WHEN t.severity = 'error' THEN t.command END), min(t.command))",
            },
            "news AS t",
            f"t.group IS NOT NULL AND {_COUNTS} GROUP BY t.cluster, t.group",
            "CASE WHEN errors > 0 THEN 0 ELSE 1 END, queues DESC, new DESC, errors DESC, warnings DESC, "
            "t.cluster, t.group",
        ),
        *(
            Query(
                state,
                _FINDING | ({"command": "t.command"} if state == "new" else {}),
                "news AS t",
                f"t.state = '{state}'",
                f"{_GRAVEST}, {_BY_NAME}, t.message",
            )
            for state in ("new", "gone")
        ),
        Query(
            "policy",
            {"severity": "t.severity", "verdict": "t.verdict", **_POLICY, "state": "t.state", "command": "t.command"},
            "news AS t",
            f"t.kind = 'policy' AND {_COUNTS}",
            f"CASE WHEN t.verdict = 'failed' THEN 0 ELSE 1 END, {_GRAVEST}, t.rule, t.cluster NULLS FIRST, "
            "t.group NULLS FIRST, t.topic NULLS FIRST, t.code",
        ),
        Query(
            "waived",
            {**_POLICY, "until": "t.waivedUntil", "owner": "t.waivedBy", "reason": "t.waivedReason"},
            "news AS t",
            "t.state = 'waived'",
            "until, t.rule, t.cluster NULLS FIRST, t.group NULLS FIRST, t.topic NULLS FIRST, t.code",
        ),
        Query(
            "silent",
            {"cluster": "t.cluster", "lastNight": "max(t.lastNight)", "message": "max(t.message)"},
            "(SELECT t.cluster, max(t.date) AS lastNight, CAST(NULL AS STRING) AS message FROM snapshots AS t "
            "WHERE t.counts AND t.date >= {since} GROUP BY t.cluster UNION ALL "
            "SELECT t.cluster, CAST(NULL AS DATE), t.message FROM findings AS t "
            "WHERE t.kind = 'fleet' AND t.date = {night}) AS t",
            "t.cluster IS NOT NULL GROUP BY t.cluster HAVING coalesce(max(t.lastNight) < {night}, true)",
            "lastNight NULLS FIRST, t.cluster",
            limit=_ALL,
        ),
        Query(
            "clusters",
            _own("cluster", "snapshot", "topics", "groups", "brokers", "unread"),
            "snapshots AS t",
            "t.counts AND t.date = {night}",
            "t.cluster",
            limit=_ALL,
        ),
        Query(
            "nights",
            {
                "groups": "count(*)",
                **_sums("consumers", "queues", "unassigned", "idle"),
                "lag": "sum(t.lagAtLeast)",
                "imbalance": "max(t.imbalance)",
            },
            "figures AS t",
            "t.runs AND t.date >= {since}",
            per=("date",),
        ),
        Query(
            "nightlyFindings",
            {
                "errors": _count("t.severity = 'error'"),
                "warnings": _count("t.severity = 'warning'"),
            },
            "findings AS t",
            "coalesce(t.verdict, 'failed') <> 'waived' AND t.date >= {since}",
            per=("date",),
        ),
        Query(
            "nightlyChanges",
            {
                "takeovers": _of_change("queue-moved"),
                "joins": _of_change("consumer-joined"),
                "leaves": _of_change("consumer-left"),
                "strategies": _of_change("strategy"),
                "queueCounts": _of_change("queue-count"),
                "newGroups": _of_change("group-new"),
                "goneGroups": _of_change("group-gone"),
            },
            "changes AS t",
            "t.date >= {since}",
            per=("date",),
        ),
        Query(
            "changed",
            {
                **_WHERE_IT_IS,
                "change": "t.change",
                "number": "count(*)",
                "topics": "count(DISTINCT t.topic)",
                "consumer": "min(t.subject)",
                "before": "min(t.before)",
                "after": "min(t.after)",
            },
            "changes AS t",
            "t.date = {night} AND t.change NOT IN ('finding-new', 'finding-gone') "
            "GROUP BY t.cluster, t.group, t.change",
            "CASE WHEN t.change = 'queue-moved' THEN 1 ELSE 0 END, number DESC, t.cluster, t.group, t.change",
        ),
        Query(
            "unstable",
            {
                **_WHERE_IT_IS,
                "nights": "count(DISTINCT CASE WHEN t.change = 'queue-moved' THEN t.date END)",
                "takeovers": _of_change("queue-moved"),
                "joins": _of_change("consumer-joined"),
                "leaves": _of_change("consumer-left"),
                "lastNight": "max(t.date)",
            },
            "changes AS t",
            "t.date >= {since} AND t.change IN ('queue-moved', 'consumer-joined', 'consumer-left') "
            "GROUP BY t.cluster, t.group "
            f"HAVING count(DISTINCT CASE WHEN t.change = 'queue-moved' THEN t.date END) >= {thresholds.nights}",
            "nights DESC, takeovers DESC, t.cluster, t.group",
        ),
        Query(
            "owners",
            {**_WHERE_IT_IS, **_own("unassigned", "duplicateOwners", "mismatches", "idle", "consumers", "queues")},
            "figures AS t",
            "t.runs AND t.date = {night} AND coalesce(t.unassigned, 0) + coalesce(t.duplicateOwners, 0) "
            "+ coalesce(t.mismatches, 0) + coalesce(t.idle, 0) > 0",
            "coalesce(t.unassigned, 0) + coalesce(t.duplicateOwners, 0) DESC, coalesce(t.mismatches, 0) DESC, "
            "coalesce(t.idle, 0) DESC, t.cluster, t.group",
        ),
        Query(
            "imbalanced",
            {
                **_WHERE_IT_IS,
                "strategy": "t.strategy",
                "consumers": "t.consumers",
                "queues": "t.queues",
                "most": "t.maxQueuesPerConsumer",
                "mean": "t.meanQueuesPerConsumer",
                "imbalance": "t.imbalance",
                "lag": "t.lagAtLeast",
            },
            "figures AS t",
            f"t.runs AND t.date = {{night}} AND t.queues >= t.consumers AND t.imbalance >= {thresholds.imbalance:g}",
            "t.imbalance DESC, t.queues DESC, t.cluster, t.group",
        ),
        Query(
            "lag",
            {
                **_WHERE_IT_IS,
                "consumers": "t.consumers",
                "queues": "t.queues",
                "lag": "t.lagAtLeast",
                "ofOneConsumer": "t.maxLagPerConsumer",
                "share": "CASE WHEN t.consumers > 1 THEN t.maxLagPerConsumer / nullif(CAST(t.lag AS DOUBLE), 0) END",
            },
            "figures AS t",
            f"t.runs AND t.date = {{night}} AND t.lagAtLeast >= {max(1, round(thresholds.lag))}",
            "lag DESC, t.cluster, t.group",
        ),
        Query(
            "strategies",
            {
                "groups": "count(*)",
                **{
                    f"p{share}": f"percentile_cont({share / 100}) WITHIN GROUP (ORDER BY t.imbalance)"
                    for share in (50, 95)
                },
                "max": "max(t.imbalance)",
                **_sums("unassigned", "idle", "moved"),
            },
            "figures AS t",
            "t.date = {night} AND t.strategy IS NOT NULL AND coalesce(t.sharesQueues, true)",
            per=("runs", "strategy"),
        ),
        Query(
            "brokers",
            {
                "cluster": "t.cluster",
                "broker": "t.subject",
                "groups": "count(DISTINCT t.group)",
                **_sums("moved", "unassigned", "idle"),
                "lagMoved": "sum(t.lagMoved)",
                "imbalance": "max(t.imbalance)",
            },
            "what_if AS t",
            "t.date = {night} AND t.change = 'broker' GROUP BY t.cluster, t.subject",
            "unassigned DESC, moved DESC, t.cluster, broker",
        ),
        Query(
            "losses",
            {
                **_WHERE_IT_IS,
                "change": "t.change",
                "subject": "t.subject",
                **_own("unassigned", "duplicateOwners", "withoutLock", "queues", "moved"),
            },
            "what_if AS t",
            "t.date = {night} AND t.change <> 'consumer-added' "
            "AND t.unassigned + t.duplicateOwners + coalesce(t.withoutLock, 0) > 0",
            "t.unassigned + t.duplicateOwners + coalesce(t.withoutLock, 0) DESC, "
            "t.cluster, t.group, t.change, t.subject",
        ),
        Query(
            "whatIf",
            {
                "cases": "count(*)",
                "groups": "count(DISTINCT concat(t.cluster, '/', t.group))",
                "leaveUnassigned": _count("t.unassigned > 0"),
                "moved": "sum(t.moved)",
                "queues": "sum(t.queues)",
                "share": "sum(t.moved) / nullif(CAST(sum(t.queues) AS DOUBLE), 0)",
                "imbalance": "max(t.imbalance)",
            },
            "what_if AS t",
            "t.date = {night}",
            per=("change",),
        ),
        Query(
            "unwritable",
            {
                "cluster": "t.cluster",
                "topic": "t.topic",
                "change": "t.change",
                "subject": "t.subject",
                "groups": "t.groups",
            },
            "sends AS t",
            "t.date = {night}",
            "CASE WHEN t.change = 'none' THEN 0 ELSE 1 END, t.groups DESC, t.cluster, t.topic, t.change, "
            "t.subject NULLS FIRST",
        ),
        Query(
            "notShared",
            {
                **_WHERE_IT_IS,
                "type": "g.consumeType",
                "model": "g.messageModel",
                "consumers": "t.consumers",
                "queues": "t.queues",
                "lag": "t.lagAtLeast",
                "code": "t.code",
            },
            "figures AS t JOIN groups AS g ON g.cluster = t.cluster AND g.group = t.group AND g.date = t.date",
            "t.runs AND t.date = {night} AND t.sharesQueues = false",
            "lag DESC NULLS LAST, t.cluster, t.group",
        ),
        Query(
            "unknown",
            {**_WHERE_IT_IS, "code": "t.code", "problem": "t.problem"},
            "figures AS t",
            "t.runs AND t.date = {night} AND t.code IS NOT NULL AND coalesce(t.sharesQueues, true)",
            "t.code, t.cluster, t.group",
        ),
        Query(
            "rejected",
            {
                "cluster": "t.cluster",
                "night": "t.date",
                "path": "t.file.path",
                "position": "t.position",
                "code": "t.code",
                "reason": "t.reason",
                "other": "t.other",
            },
            "quarantine AS t",
            "t.date = {night}",
            "path, t.position, t.code",
        ),
    )
    return {query.name: query for query in found}
