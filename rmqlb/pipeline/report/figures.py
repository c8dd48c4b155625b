# ruff: noqa: S608 - a query consists of texts of `tables.toml` and of literals that `literal` has quoted
"""The figures of the report: SQL over the tables of the warehouse, the answers, and the verdict of a night.

- A table of a page is one `Query` of `tables.toml`. Spark runs the query for the fleet and all clusters at once; the
  page shows the same query for its own scope, in SQL that both Spark and DuckDB accept.
- A column that is a reserved word (`group`) has the table's alias as a prefix: quoted, it would be a text in Spark.
- Every order ends in names, so equal tables give equal pages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.message_queue import grouped
from rmqlb.model.result import counted
from rmqlb.pipeline.tables import TABLES
from rmqlb.pipeline.tables import name as folder_of
from rmqlb.pipeline.warehouse import Warehouse, short

if TYPE_CHECKING:
    from rmqlb.model.policy import Policy

TOP = 20  # rows of a list on a page


_LAG = "coalesce(t.maxLagPerConsumer / nullif(t.maxQueuesPerConsumer, 0), t.lagAtLeast / nullif(t.queues, 0)) >= 10000"
_IMBALANCED = "t.maxQueuesPerConsumer >= greatest(2 * ceil(t.meanQueuesPerConsumer), ceil(t.meanQueuesPerConsumer) + 8)"


class Thresholds(Struct, frozen=True):
    """The least values that the page lists; a policy's own limits are of a group's lag and imbalance.

    The defaults are what size and rounding do not cause: lag grows with the number of queues, and queues are not split.
    """

    lag: float | None = None
    imbalance: float | None = None
    nights: int = 3  # with consumers that joined or left, for a group that is not stable

    @property
    def texts(self) -> dict[str, str]:  # for `tables.toml`
        found = {"nights": str(self.nights), "lagging": _LAG, "lag": "10,000 messages or more per queue"}
        found |= {"imbalanced": _IMBALANCED, "imbalance": "2 or more, and 8 queues more than the mean"}
        if self.lag is not None:
            lag = max(1, round(self.lag))
            found |= {"lagging": f"t.lagAtLeast >= {lag}", "lag": f"{lag:,} messages or more"}
        if self.imbalance is not None:
            found |= {"imbalanced": f"t.imbalance >= {self.imbalance:g}", "imbalance": f"{self.imbalance:g} or more"}
        return found


class Nights(Struct, frozen=True):
    """The last night, the night before, and the first night of the window."""

    night: date
    previous: date | None
    since: date

    def fill(self, sql: str) -> str:
        previous = "CAST(NULL AS DATE)" if self.previous is None else f"DATE '{self.previous}'"
        texts = {"{night}": f"DATE '{self.night}'", "{previous}": previous, "{since}": f"DATE '{self.since}'"}
        return re.sub("|".join(map(re.escape, texts)), lambda found: texts[found[0]], sql)


class Query(Struct, frozen=True):
    name: str
    columns: Mapping[str, str]  # name → expression over the table `t`
    source: str
    where: str = "true"  # no OR outside brackets; a list may have GROUP BY and HAVING after it
    order: str = ""  # of a list
    per: tuple[str, ...] | None = None  # of a summary: the columns that name a row
    limit: int = TOP

    @property
    def selected(self) -> str:
        named = ({key: f"t.{key}" for key in self.per or ()} | dict(self.columns)).items()
        return ", ".join(text if text == f"t.{key}" else f"{text} AS {key}" for key, text in named)

    def shown(self, cluster: str | None = None) -> str:
        where = self.where if cluster is None else f"t.cluster = {literal(cluster)} AND {self.where}"
        sql = f"SELECT {self.selected} FROM {self.source} WHERE {where}"
        if self.per is None:
            return f"{sql} ORDER BY {self.order} LIMIT {self.limit}"
        keys = ", ".join(f"t.{key}" for key in self.per)
        return f"{sql} GROUP BY {keys} ORDER BY {keys}" if keys else sql

    @property
    def ran(self) -> str:
        """The rows of all pages: of a list with their place, of a summary by cluster and for the fleet."""
        if self.per is None:
            rows = f"SELECT {self.selected} FROM {self.source} WHERE {self.where}"
            return f"SELECT t.*, row_number() OVER (ORDER BY {self.order}) AS place FROM ({rows}) AS t"
        keys = [f"t.{key}" for key in self.per]
        sets = f"({', '.join(['t.cluster', *keys])}), ({', '.join(keys)})"
        columns = f"CAST(NULL AS INT) AS place, grouping(t.cluster) AS ofFleet, t.cluster, {self.selected}"
        return f"SELECT {columns} FROM {self.source} WHERE {self.where} GROUP BY GROUPING SETS ({sets})"


def literal(text: str) -> str:
    r"""A text in SQL, with `$` and backslashes outside the quotes, because Spark replaces `${…}` and escapes.

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

new, gone and stays compare both nights; first is in a cluster without a snapshot of the night before. Two findings are
equal if cluster, kind, group, topic, code and rule are.
"""

_WORDS = {
    "{counts}": "t.state IN ('new', 'stays', 'first')",
    "{gravest}": "CASE WHEN t.severity = 'error' THEN 0 ELSE 1 END",
}


@cache
def sections() -> dict[str, Any]:
    """Anchor → a section of the page with its tables; `facts` is not on the page."""
    return tomllib.loads(files(__package__).joinpath("tables.toml").read_text("utf-8"))


def queries(thresholds: Thresholds) -> dict[str, Query]:
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


WINDOW = 31  # nights of the page, the last included; from 33 folders on Spark needs a job to list them

Row = Mapping[str, Any]
Day = date  # where a field has that name


class Answers(Struct, frozen=True):
    """The rows of all queries, for the fleet (None) and for each cluster with rows."""

    nights: Nights
    thresholds: Thresholds
    place: str  # where the warehouse is
    tables: Sequence[str]  # those that have rows, of whatever night
    queries: Mapping[str, Query]  # as they ran, with the dates in place
    rows: Mapping[str, Mapping[str | None, Sequence[Row]]]  # query → scope → its rows in order
    counts: Mapping[str, Mapping[str | None, int]]  # list → scope → number of all rows

    def of(self, query: str, scope: str | None = None) -> Sequence[Row]:
        return self.rows[query].get(scope, ())

    def count(self, query: str, scope: str | None = None) -> int:
        return self.counts[query].get(scope, 0)


def answers(warehouse: Warehouse, nights: Nights, window: Sequence[date], thresholds: Thresholds) -> Answers:
    """Run all queries in one job; `warehouse` needs its own session, for views and settings."""
    spark = warehouse.spark
    # Adaptive execution and broadcasts are jobs of their own, too costly for small grouped tables.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    # Compiling some fifty stages takes more CPU than it saves on the rows of one night.
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    for table in TABLES:
        warehouse.read(table, window).createOrReplaceTempView(folder_of(table))
    news = spark.sql(nights.fill(NEWS)).cache()
    news.createOrReplaceTempView("news")
    wanted = {
        query.name: replace(query, source=nights.fill(query.source), where=nights.fill(query.where))
        for query in queries(thresholds).values()
    }
    try:
        found = spark.sql(_in_one(wanted.values())).collect()
    finally:
        news.unpersist()
    rows: dict[str, dict[str | None, list[Row]]] = {query: {} for query in wanted}
    counts: dict[str, dict[str | None, int]] = {query: {} for query in wanted}
    decoded = [(name, msgspec.json.decode(text), *more) for name, text, *more in found]
    for name, row, place, in_fleet, of_cluster, in_cluster in sorted(decoded, key=partial(_order, wanted)):
        query, cluster = wanted[name], row["cluster"]
        scopes: dict[str | None, int] = {}  # page that shows the row → how many rows there are
        if place is None:
            scopes = {None: 0} if row["ofFleet"] else {} if cluster is None else {cluster: 0}
        else:
            scopes |= {None: in_fleet} if place <= query.limit else {}
            scopes |= {cluster: in_cluster} if cluster is not None and of_cluster <= query.limit else {}
        own = {column: row[column] for column in (*(query.per or ()), *query.columns)}
        for scope, count in scopes.items():
            rows[name].setdefault(scope, []).append(own)
            counts[name][scope] = count
    tables = [folder_of(table) for table in TABLES if warehouse.dates(table)]
    return Answers(nights, thresholds, warehouse.place, tables, wanted, rows, counts)


def _order(wanted: Mapping[str, Query], row: Sequence[Any]) -> tuple[str, list[tuple[bool, Any]]]:
    name, of, place, *_ = row
    per = wanted[name].per
    keys = [place] if per is None else [of[key] for key in per]
    return name, [(key is not None, key) for key in keys]


def _in_one(wanted: Iterable[Query]) -> str:
    """All queries as one, each row as JSON; of a list only the rows of some page, with the number of all."""
    as_json = "to_json(struct(t.*), map('ignoreNullFields', 'false'))"
    parts = (
        f"SELECT '{query.name}' AS query, {query.limit} AS top, t.place, t.cluster, {as_json} AS row "
        f"FROM ({query.ran}) AS t"
        for query in wanted
    )
    counted = (
        "SELECT t.*, count(*) OVER (PARTITION BY t.query) AS inFleet, "
        "row_number() OVER (PARTITION BY t.query, t.cluster ORDER BY t.place) AS ofCluster, "
        f"count(*) OVER (PARTITION BY t.query, t.cluster) AS inCluster FROM ({' UNION ALL '.join(parts)}) AS t"
    )
    return (
        f"SELECT t.query, t.row, t.place, t.inFleet, t.ofCluster, t.inCluster FROM ({counted}) AS t "
        "WHERE t.place IS NULL OR t.place <= t.top OR t.ofCluster <= t.top"
    )


class Counts(Struct, frozen=True, rename="camel", kw_only=True):
    groups: int = 0  # consumer groups
    errors: int = 0  # findings of severity error, waived ones left out
    warnings: int = 0  # findings of severity warning, waived ones left out
    new: int = 0  # those of them that the night before did not have
    gone: int = 0  # findings of the night before that are gone
    stays: int = 0  # those that both nights have
    first: int = 0  # those of clusters that the night before has no snapshot of
    failed: int = 0  # failed limits of the policy whose rules have the severity error
    incomplete: int = 0  # limits of the policy that could not be judged
    waived: int = 0  # limits of the policy that fail and are waived


class ClusterVerdict(Counts, frozen=True, rename="camel", kw_only=True):
    cluster: str  # its name
    page: str  # its page, relative to the one of the fleet


class FleetVerdict(Counts, frozen=True, rename="camel", kw_only=True):
    """The fleet in the last night."""

    line: str  # the first line
    date: Day  # the last night
    previous: Day | None  # the night before; null when there is none
    clusters: tuple[ClusterVerdict, ...]  # those with a snapshot of the last night, by name
    silent: tuple[str, ...]  # clusters without one
    rejected: int  # documents that were rejected
    page: str  # where the page of the fleet is
    unchanged: bool = False  # the pages were there already, made from the same tables


def thresholds_of(policy: Policy | None, compared: int = 0) -> Thresholds:
    """The lowest limits of the policy, otherwise the default thresholds.

    A group whose consumers change in one night of ten is not unstable, so more than half of the nights must be such.
    """
    limits = (limit for rule in (policy.rules if policy else ()) for limit in rule.limits)
    bounds = grouped((limit.name, limit.bound) for limit in limits if isinstance(limit.bound, int | float))
    least = {name: min(bounds[name]) for name in ("lag", "imbalance") if name in bounds}
    return Thresholds(nights=max(3, compared // 2 + 2), **least)


def verdict_of(found: Answers, page: str) -> FleetVerdict:
    clusters = (
        ClusterVerdict(cluster=name, page=page_name(name), **_counts(found, name))
        for name in (row["cluster"] for row in found.of("clusters"))
    )
    verdict = FleetVerdict(
        line="",
        date=found.nights.night,
        previous=found.nights.previous,
        clusters=tuple(clusters),
        silent=tuple(row["cluster"] for row in found.of("silent")),
        rejected=found.count("rejected"),
        page=page,
        **_counts(found, None),
    )
    return replace(verdict, line=f"{verdict.date}: {'; '.join(_sentences(verdict))}")


def _counts(found: Answers, scope: str | None) -> dict[str, Any]:
    counts, totals = found.of("findings", scope), found.of("totals", scope)
    return {**(counts[0] if counts else {}), "groups": totals[0]["groups"] if totals else 0}


def _sentences(verdict: FleetVerdict) -> Iterable[str]:
    yield summary(verdict, is_first=verdict.previous is None)
    if verdict.silent:
        yield f"{counted(len(verdict.silent), 'cluster')} silent"
    if verdict.rejected:
        yield f"{counted(verdict.rejected, 'document')} rejected"
    yield f"{counted(len(verdict.clusters), 'cluster')}, {counted(verdict.groups, 'group')}"


def summary(counts: Counts, *, is_first: bool = False) -> str:
    """The changes, and the verdicts of the policy.

    >>> summary(Counts(errors=1, warnings=2, new=2, gone=4, stays=1)), summary(Counts(failed=1, waived=2))
    ('2 new findings, 4 gone, 1 stays', 'no findings; policy: 1 limit failed, 2 waived')
    """
    parts = []
    if is_first:
        found = counted(counts.errors + counts.warnings, "finding")
        parts.append(f"{found} ({counted(counts.errors, 'error')}) in the first night")
    elif counts.new or counts.gone or counts.stays:
        stay = "stays" if counts.stays == 1 else "stay"
        parts.append(f"{counted(counts.new, 'new finding')}, {counts.gone} gone, {counts.stays} {stay}")
    if counts.first and not is_first:
        parts.append(f"{counted(counts.first, 'finding')} without a previous night")
    if counts.failed or counts.incomplete or counts.waived:
        more = {"incomplete": counts.incomplete, "waived": counts.waived}
        failed = f"policy: {counted(counts.failed, 'limit')} failed"
        policy = ", ".join([failed, *(f"{number} {what}" for what, number in more.items() if number)])
        parts = [*(parts or ["no findings"]), policy]
    return "; ".join(parts or ["no findings"])


def page_name(cluster: str) -> str:
    """A unique file name for the cluster.

    >>> page_name("east"), page_name("a/b")
    ('cluster-east.html', 'cluster-a-b-15d9d1b25a2c75a0.html')
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", cluster)[:60]
    return f"cluster-{plain}.html" if plain == cluster else f"cluster-{plain}-{short(cluster)}.html"
