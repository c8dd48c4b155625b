# ruff: noqa: S608 - the views are for people to run
"""The report of a warehouse: a page for the fleet, a page for each cluster, and the verdict, from one job of Spark.

A page is HTML with its style and charts inside, without scripts or network access. `page.html` escapes every value
except `Markup`, which only this file makes, with its values escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.report.figures import (
    NEWS,
    WINDOW,
    Answers,
    ClusterVerdict,
    FleetVerdict,
    Nights,
    answers,
    page_name,
    sections,
    summary,
    thresholds_of,
    verdict_of,
)
from rmqlb.pipeline.tables import TABLES, columns, name
from rmqlb.pipeline.warehouse import Warehouse, short
from rmqlb.sources.atomic_file import new_file
from rmqlb.version import __version__
from rmqlb.views.formats.text import clip, fit_for_xml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.model.policy import Policy

_INDEX, _VERDICT = "index.html", "verdict.json"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LONGEST = 300
_MAY_BE_ABSENT = {
    *("cluster", "group", "topic", "rule", "consumer", "before", "after", "subject", "message", "command", "value"),
    *("bound", "until", "owner", "reason", "other", "lastNight", "snapshot"),
}  # columns in which null is shown as a dash; in other columns null is unknown, shown as a question mark
_FACTS = {
    "first": "findings without a previous night",
    "waived": "limits waived",
    "failed": "limits failed",
    "incomplete": "limits not judged",
    "unassigned": "unassigned queues",
    "duplicateOwners": "queues with duplicate owners",
    "idle": "idle consumers",
    "lag": "unread messages",
    "unknown": "groups with unknown figures",
}
_SIGNS = {"error": "✗", "failed": "✗", "warning": "!", "incomplete": "?", "new": "+", "gone": "−"}


_CHARTS = (
    ("nightlyFindings", "errors", "errors"),
    ("nightlyFindings", "warnings", "warnings"),
    ("nightlyChanges", "takeovers", "queues taken over"),
    ("nights", "unassigned", "unassigned queues"),
    ("nights", "lag", "unread messages"),
    ("nights", "imbalance", "worst imbalance"),
)


def fleet_page(found: Answers, verdict: FleetVerdict) -> str:
    return _page(found, None, "Fleet", verdict.line, has_errors=bool(verdict.errors))


def cluster_page(found: Answers, verdict: ClusterVerdict) -> str:
    line = f"{found.nights.night}: {summary(verdict, is_first=found.nights.previous is None)}"
    return _page(found, verdict.cluster, f"Cluster {verdict.cluster}", line, has_errors=bool(verdict.errors))


def _page(found: Answers, scope: str | None, title: str, line: str, *, has_errors: bool) -> str:
    facts = {
        key: number for query in ("findings", "totals") for row in found.of(query, scope) for key, number in row.items()
    }
    titled = [(anchor, section) for anchor, section in sections().items() if "title" in section]
    shown = ((anchor, section["title"], _tables(found, section["tables"], scope)) for anchor, section in titled)
    return _template().render(
        title=fit_for_xml(title),
        line=fit_for_xml(line),
        status="error" if has_errors else "",
        is_fleet=scope is None,
        facts=[
            (_FACTS.get(key) or _words(key), "?" if number is None else f"{number:,}") for key, number in facts.items()
        ],
        fact_queries=[_sql(found.queries[query].shown(scope)) for query in ("findings", "totals")],
        sections=[each for each in shown if each[2]],
        charts=list(_charts(found, scope)),
        scripts=[(engine, _sql(text)) for engine, text in scripts(found).items()],
        policy=POLICY,
    )


def _tables(found: Answers, of: Iterable[Mapping[str, Any]], scope: str | None) -> list[dict[str, Any]]:
    made, limits, nights = [], found.thresholds, found.nights
    named = {"night": nights.night, "previous": nights.previous, "since": nights.since, **limits.texts}
    for table in of:
        name, empty = table["name"], table.get("empty", "")
        rows, query = found.of(name, scope), found.queries[name]
        if (empty and nights.previous is None and name in ("new", "gone", "changed")) or not (rows or empty):
            continue
        keys = [key for key in (*(query.per or ()), *query.columns) if scope is None or key != "cluster"]
        shown = {
            "title": table.get("title", "").format_map(named),
            "note": table.get("note", ""),
            "empty": empty,
            # title, and whether it has numbers
            "columns": [(_words(key), any(type(row[key]) in (int, float) for row in rows)) for key in keys],
            "rows": [[_cell(key, row[key], is_fleet=scope is None, found=found) for key in keys] for row in rows],
            "left_out": max(0, found.count(name, scope) - len(rows)),
            "sql": _sql(query.shown(scope)),
        }
        made.append(shown)
    return made


def _cell(column: str, value: Any, *, is_fleet: bool, found: Answers) -> Markup:
    """A value as HTML; names keep their own direction of writing, and control characters are shown as escapes."""
    if value is None:
        return Markup("–") if column in _MAY_BE_ABSENT else Markup('<span title="unknown">?</span>')
    if isinstance(value, list):
        return Markup(", ").join(Markup("<bdi>{}</bdi>").format(fit_for_xml(str(each))) for each in value)
    if not isinstance(value, str):
        return escape(f"{value:.0%}" if column == "share" else _number(value))
    text = fit_for_xml(value)
    if column in ("severity", "verdict", "state"):
        sign = _SIGNS.get(text, "")
        return Markup('<span class="{0}"><span aria-hidden="true">{1}</span> {0}</span>').format(text, sign)
    if column == "command":
        return Markup("<code>{}</code>").format(text)
    shown = Markup("<bdi>{}</bdi>").format(clip(text, _LONGEST))
    if column == "cluster" and is_fleet and any(row["cluster"] == value for row in found.of("clusters")):
        return Markup('<a href="{}">{}</a>').format(page_name(value), shown)
    return shown


def _words(key: str) -> str:
    """A column's title.

    >>> _words("duplicateOwners"), _words("p95")
    ('duplicate owners', 'p95')
    """
    return re.sub("([A-Z])", lambda upper: f" {upper[0].lower()}", key)


def _sql(text: str) -> str:
    return "\n".join(fit_for_xml(line) for line in text.split("\n"))


def scripts(found: Answers) -> Mapping[str, str]:
    """SQL that defines the tables for DuckDB and Spark SQL, and the view `news` for both."""
    place = found.place.replace("'", "''")
    duckdb, spark = [], []
    for table in TABLES:
        folder, kinds = f"{place}/{name(table)}", columns(table).items()
        if name(table) in found.tables:
            duckdb.append(f"SELECT * FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true)")
            spark.append(f"SELECT * FROM parquet.`{folder}`")
        else:
            nulls = ", ".join(f'CAST(NULL AS {_in_duckdb(kind)}) AS "{key}"' for key, kind in kinds)
            duckdb.append(f"SELECT {nulls} WHERE false")
            nulls = ", ".join(f"CAST(NULL AS {kind}) AS `{key}`" for key, kind in kinds)
            spark.append(f"SELECT {nulls} WHERE false")
    return {
        engine: "\n".join(
            f"CREATE TEMPORARY VIEW {name(table)} AS {text};" for table, text in zip(TABLES, texts, strict=True)
        )
        for engine, texts in (("DuckDB", duckdb), ("Spark SQL", spark))
    } | {"both, for findings": f"CREATE TEMPORARY VIEW news AS\n{found.nights.fill(NEWS)};"}


def _in_duckdb(kind: str) -> str:
    """Spark's type in DuckDB's words.

    >>> print(_in_duckdb("array<struct<`a`: string>>"))
    struct("a" string)[]
    """
    if kind.startswith("array<"):
        return f"{_in_duckdb(kind[6:-1])}[]"
    if kind.startswith("struct<"):
        fields = re.sub("`([^`]*)`:", r'"\1"', kind[len("struct<") : -1])
        return f"struct({fields})"
    return kind


def _charts(found: Answers, scope: str | None) -> Iterable[Markup]:
    days = [row["date"] for row in found.of("nights", scope)]
    for query, column, title in _CHARTS:
        values = {row["date"]: row[column] for row in found.of(query, scope)}
        points = [values.get(day, 0) for day in days]
        if len(days) > 1 and any(points):
            yield chart(title, days, points)


def chart(title: str, days: Sequence[str], values: Sequence[float | None]) -> Markup:
    """A line over nights, from 0 to the largest value, without points for unknown values.

    >>> drawn = chart("<lag>", ["2026-11-19", "2026-11-20", "2026-11-21"], [0, None, 4])
    >>> print(drawn[:53], drawn.count("<circle"), "last 4, most 4" in drawn)
    <figure><figcaption>&lt;lag&gt; <b>4</b></figcaption> 2 True
    """
    high = max((value for value in values if value is not None), default=0) or 1
    step = 228 / max(1, len(days) - 1)
    points = [(6 + step * place, 66 - 48 * value / high) for place, value in enumerate(values) if value is not None]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    last = next((value for value in reversed(values) if value is not None), 0)
    numbers = {"last": _number(last), "high": _number(high)}
    label = f"{title} from {days[0]} to {days[-1]}: last {numbers['last']}, most {numbers['high']}"
    dots = Markup("").join(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="2"/>').format(x, y) for x, y in points)
    return Markup(
        "<figure><figcaption>{title} <b>{last}</b></figcaption>"
        '<svg viewBox="0 0 240 84" role="img" aria-label="{label}">'
        '<path d="M6 66H234"/><polyline points="{line}"/>{dots}'
        '<text x="6" y="80">{first}</text><text x="234" y="80" text-anchor="end">{until}</text>'
        '<text x="234" y="11" text-anchor="end">{high}</text></svg></figure>'
    ).format(title=title, label=label, line=line, dots=dots, first=days[0], until=days[-1], **numbers)


def _number(value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(files(__package__).joinpath("page.html").read_text("utf-8"))


class _Stored(Struct, frozen=True, rename="camel"):
    """`verdict.json`: the verdict, and a digest of the tables and settings behind the pages."""

    made_from: str
    verdict: FleetVerdict


def write(spark: SparkSession, warehouse: Warehouse, to: Path, policy: Policy | None = None) -> FleetVerdict:
    """Write `index.html`, a page for each cluster and `verdict.json` into a folder of this machine.

    Unchanged pages are not written, and nothing runs when the tables are unchanged. The limits of lag and imbalance in
    `policy` are the thresholds of the lists.

    Raises:
        DataError: no night is complete.
        UsageError: the folder has other pages, or cannot be written.
    """
    markers = {day: each.judged for day, each in warehouse.nights().items() if each.judged is not None}
    window = sorted(markers)[-WINDOW:]
    if not window:
        problem = f"{warehouse.place} has no complete night to report on"
        raise DataError(problem, hint="run rmqlb pipeline run first", code="table-not-found")
    thresholds = thresholds_of(policy, len(window) - 1)
    made_from = short(__version__, warehouse.place, thresholds, [(day, markers[day]) for day in window])
    stored = _stored(to)
    if stored is not None and stored.made_from == made_from:
        return replace(stored.verdict, unchanged=True)
    nights = Nights(window[-1], window[-2] if len(window) > 1 else None, window[0])
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions") or "1")
    found = answers(Warehouse(session, warehouse.place), nights, window, thresholds)
    verdict = verdict_of(found, str(to / _INDEX))
    pages = {one.page: cluster_page(found, one) for one in verdict.clusters}
    _write(to, {**pages, _INDEX: fleet_page(found, verdict)}, verdict, made_from, stored)
    return verdict


def _stored(to: Path) -> _Stored | None:
    """The verdict of an earlier report of this version; None when a page is missing."""
    try:
        found = msgspec.json.decode((to / _VERDICT).read_bytes(), type=_Stored)
    except (OSError, msgspec.MsgspecError):
        return None
    is_whole = all((to / page).is_file() for page in (_INDEX, *(one.page for one in found.verdict.clusters)))
    return found if is_whole else None


def _write(to: Path, pages: Mapping[str, str], verdict: FleetVerdict, made_from: str, stored: _Stored | None) -> None:
    """Replace each file as a whole, `verdict.json` last: after an interruption the next run writes again."""
    stored_now = msgspec.json.format(msgspec.json.encode(_Stored(made_from, verdict)), indent=2).decode()
    try:
        to.mkdir(parents=True, exist_ok=True)
        if (to / _INDEX).exists() and not (to / _VERDICT).exists():
            raise UsageError(f"--to {to}: its index.html is not a report of rmqlb", hint="name another folder")
        for file, text in {**pages, _VERDICT: f"{stored_now}\n"}.items():
            body = text.encode("utf-8", "replace")
            if not (to / file).exists() or (to / file).read_bytes() != body:
                with new_file(str(to / file)) as page:
                    page.write(body)
        for one in stored.verdict.clusters if stored else ():
            if one.page not in pages:
                (to / one.page).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--to {to}: {error.strerror or error}", code="cannot-write") from None
