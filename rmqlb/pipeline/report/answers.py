# ruff: noqa: S608 - a query consists of texts of this package and of literals that `literal` has quoted
"""The answers of the queries, and the verdict of a night."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.words import counted
from rmqlb.pipeline.report.figures import NEWS, Nights, Query, Thresholds, queries
from rmqlb.pipeline.tables import TABLES, name
from rmqlb.pipeline.warehouse import Warehouse, short

if TYPE_CHECKING:
    from rmqlb.model.policy import Policy
WINDOW = 31
"""Nights that the page looks back, the last one included. From 33 folders on Spark needs a job to list them."""

Row = Mapping[str, Any]
Day = date  # where a field has that name


class Answers(Struct, frozen=True):
    """The rows of all queries, for the fleet under None and for each cluster that has rows."""

    nights: Nights
    thresholds: Thresholds
    place: str  # where the warehouse is
    tables: Sequence[str]  # those that have rows, of whatever night
    queries: Mapping[str, Query]  # as they ran, with the dates in place
    rows: Mapping[str, Mapping[str | None, Sequence[Row]]]  # query → scope → its rows in order
    # list → scope → how many rows there are, of which `rows` are the first
    counts: Mapping[str, Mapping[str | None, int]]

    def of(self, query: str, scope: str | None = None) -> Sequence[Row]:
        return self.rows[query].get(scope, ())

    def count(self, query: str, scope: str | None = None) -> int:
        return self.counts[query].get(scope, 0)


def answers(warehouse: Warehouse, nights: Nights, window: Sequence[date], thresholds: Thresholds) -> Answers:
    """Run all queries in one job.

    `warehouse` is one of a session of its own, for the views and settings that this needs.
    """
    spark = warehouse.spark
    # Adaptive execution and broadcasts are jobs of their own, for tables that are small once they are grouped.
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    # Compiling some fifty stages takes more CPU than it saves on the rows of one night.
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    for table in TABLES:
        warehouse.read(table, window).createOrReplaceTempView(name(table))
    news = spark.sql(nights.fill(NEWS)).cache()
    news.createOrReplaceTempView("news")
    asked = {
        query.name: replace(query, source=nights.fill(query.source), where=nights.fill(query.where))
        for query in queries(thresholds).values()
    }
    try:
        found = spark.sql(_in_one(asked.values())).collect()
    finally:
        news.unpersist()
    rows: dict[str, dict[str | None, list[Row]]] = {query: {} for query in asked}
    counts: dict[str, dict[str | None, int]] = {query: {} for query in asked}
    for one in sorted(map(_Found.of, found), key=lambda one: (one.query, one.order(asked[one.query]))):
        query = asked[one.query]
        own = {column: one.row[column] for column in (*(query.per or ()), *query.columns)}
        for scope, count in one.scopes(query):
            rows[one.query].setdefault(scope, []).append(own)
            counts[one.query][scope] = count
    tables = [name(table) for table in TABLES if warehouse.dates(table)]
    return Answers(nights, thresholds, warehouse.place, tables, asked, rows, counts)


class _Found(Struct, frozen=True):
    """A row of `_in_one`."""

    query: str
    row: Row
    place: int | None  # in a list; None in a summary
    in_fleet: int
    of_cluster: int
    in_cluster: int

    @classmethod
    def of(cls, row: Sequence[Any]) -> _Found:
        query, text, *more = row
        return cls(query, msgspec.json.decode(text), *more)

    def order(self, query: Query) -> list[tuple[bool, Any]]:
        """A key to sort by: places, or what names the row of a summary, unknown first."""
        keys = [self.place] if query.per is None else [self.row[key] for key in query.per]
        return [(key is not None, key) for key in keys]

    def scopes(self, query: Query) -> Iterable[tuple[str | None, int]]:
        """The pages that show the row, with how many rows there are."""
        cluster = self.row["cluster"]
        if self.place is None:
            is_of_fleet = bool(self.row["ofFleet"])
            if is_of_fleet or cluster is not None:
                yield None if is_of_fleet else cluster, 0
            return
        if self.place <= query.limit:
            yield None, self.in_fleet
        if cluster is not None and self.of_cluster <= query.limit:
            yield cluster, self.in_cluster


def _in_one(asked: Iterable[Query]) -> str:
    """All queries as one: each row as JSON, of a list those that a page shows, with how many there are."""
    as_json = "to_json(struct(t.*), map('ignoreNullFields', 'false'))"
    parts = (
        f"SELECT '{query.name}' AS query, {query.limit} AS top, t.place, t.cluster, {as_json} AS row "
        f"FROM ({query.ran}) AS t"
        for query in asked
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
    """Findings of the last night that are errors or warnings, and what became of those of the night before."""

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
    """A cluster in the last night."""

    cluster: str  # its name
    page: str  # its page, relative to the one of the fleet
    groups: int  # its consumer groups


class FleetVerdict(Counts, frozen=True, rename="camel", kw_only=True):
    """The fleet in the last night: what the first line of the page says."""

    line: str  # the first line
    date: Day  # the last night
    previous: Day | None  # the night before; null when there is none
    groups: int  # consumer groups
    clusters: tuple[ClusterVerdict, ...]  # those with a snapshot of the last night, by name
    silent: tuple[str, ...]  # clusters without one
    rejected: int  # documents that were rejected
    page: str  # where the page of the fleet is
    unchanged: bool = False  # the pages were there already, made from the same tables

    @property
    def is_violated(self) -> bool:
        """A limit of the policy failed: the exit code is 3."""
        return self.failed > 0


def thresholds_of(policy: Policy | None) -> Thresholds:
    """The lowest limits that the policy has, ours for what it does not limit."""
    bounds: dict[str, list[float]] = {}
    for rule in policy.rules if policy else ():
        for limit in rule.limits:
            if isinstance(limit.bound, (int, float)):
                bounds.setdefault(limit.name, []).append(limit.bound)
    least = {name: min(bounds[name]) for name in ("lag", "imbalance") if name in bounds}
    return replace(Thresholds(), **least)


def verdict_of(found: Answers, page: str) -> FleetVerdict:
    """What the first line says, with the same figures for each cluster."""
    names = [row["cluster"] for row in found.of("clusters")]
    clusters = (
        ClusterVerdict(cluster=name, page=page_name(name), groups=_groups(found, name), **_counts(found, name))
        for name in names
    )
    verdict = FleetVerdict(
        line="",
        date=found.nights.night,
        previous=found.nights.previous,
        groups=_groups(found, None),
        clusters=tuple(clusters),
        silent=tuple(row["cluster"] for row in found.of("silent")),
        rejected=found.count("rejected"),
        page=page,
        **_counts(found, None),
    )
    return replace(verdict, line=f"{verdict.date}: {'; '.join(_sentences(verdict))}")


def _groups(found: Answers, scope: str | None) -> int:
    own = found.of("totals", scope)
    return own[0]["groups"] if own else 0


def _counts(found: Answers, scope: str | None) -> dict[str, Any]:
    own = found.of("findings", scope)
    return dict(own[0]) if own else {}


def _sentences(verdict: FleetVerdict) -> Iterable[str]:
    yield summary(verdict, is_first=verdict.previous is None)
    if verdict.silent:
        yield f"{counted(len(verdict.silent), 'cluster')} silent"
    if verdict.rejected:
        yield f"{counted(verdict.rejected, 'document')} rejected"
    yield f"{counted(len(verdict.clusters), 'cluster')}, {counted(verdict.groups, 'group')}"


def summary(counts: Counts, *, is_first: bool = False) -> str:
    """What is new, gone and stays, and what the policy says.

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
    """A file name that only this cluster has.

    >>> page_name("east"), page_name("a/b")
    ('cluster-east.html', 'cluster-a-b-15d9d1b25a2c75a0.html')
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", cluster)[:60]
    return f"cluster-{plain}.html" if plain == cluster else f"cluster-{plain}-{short(cluster)}.html"
