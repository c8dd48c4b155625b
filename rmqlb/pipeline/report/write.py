"""The report of a warehouse, written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError
from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.pipeline.by_cluster import short
from rmqlb.pipeline.report.atomic_folder import atomic_folder
from rmqlb.pipeline.report.contents import Exported, facts, figures, sections, subtitle, to_do
from rmqlb.pipeline.report.export import SPREADSHEET_ROWS, export
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.report.page import page
from rmqlb.pipeline.schemas import ALL, EXPORTED, FILES, FLEET
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

PAGE, CONTENTS = "index.html", "report.json"
_READ = (*(table for table in ALL if table is not FILES), FLEET)


class ReportSummary(msgspec.Struct, frozen=True):
    """What a report holds: its page, the tables beside it, and the figures at the top of the page by their words."""

    page: str
    tables: tuple[Exported, ...]
    facts: Mapping[str, int]
    unchanged: bool = False


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    rows: int
    in_csv: bool


class _Contents(msgspec.Struct, frozen=True, rename="camel"):
    """`made_from` tells of which tables and of what else the report was made, so that the same is not made twice."""

    tables: dict[str, _Table]
    facts: dict[str, int]
    made_from: str
    schema: str = "rmqlb/pipeline-report"
    format_version: str = FORMAT_VERSION


def write_report(
    spark: SparkSession,
    warehouse: Warehouse,
    folder: str,
    *,
    top: int = 20,
    most_rows: int = SPREADSHEET_ROWS,
    force: bool = False,
) -> ReportSummary:
    """Write `index.html`, `csv/`, `parquet/` and `report.json` into a folder, in place of an earlier report.

    One that was made of the same tables in the same way stays as it is, unless `force` says otherwise.

    The folder is of this machine, seen by all of Spark's machines. `top`: rows in each list of the page; tables with
    more than `most_rows` are written as Parquet only.

    Raises:
        DataError: the warehouse has none of the tables, or the folder cannot be written.
        UsageError: the folder holds something else, or another process writes there.
    """
    tables = Tables(spark, warehouse)
    if not {table.name for table in EXPORTED} & set(warehouse.names()):
        raise DataError(f"{warehouse.folder} has no tables to report on", hint="make them first: rmqlb pipeline run")
    made_from = short(warehouse.folder, warehouse.versions(*_READ), top, most_rows, __version__)
    there = None if force else _there(folder)
    if there is not None and there.made_from == made_from:
        tables_there = tuple(Exported(name, its.rows, its.in_csv) for name, its in there.tables.items())
        return ReportSummary(os.path.join(folder, PAGE), tables_there, there.facts, unchanged=True)
    with atomic_folder(folder, CONTENTS) as aside:
        exported = export(tables, aside, most_rows)
        found = figures(tables, top, exported)
        shown = facts(found)
        _write(os.path.join(aside, PAGE), page("Fleet report", subtitle(found), shown, sections(found), to_do(found)))
        numbers = {fact.what: fact.value for fact in shown if isinstance(fact.value, int)}
        its = {table.name: _Table(table.rows, table.in_csv) for table in exported}
        body = msgspec.json.format(msgspec.json.encode(_Contents(its, numbers, made_from)), indent=2)
        _write(os.path.join(aside, CONTENTS), body.decode() + "\n")
    return ReportSummary(os.path.join(folder, PAGE), exported, numbers)


def _there(folder: str) -> _Contents | None:
    """What the report that is there says of itself; None when there is none, or an earlier version wrote it."""
    try:
        with open(os.path.join(folder, CONTENTS), "rb") as file:
            contents = decode(file.read(), _Contents)
    except (OSError, msgspec.DecodeError):
        return None
    return contents if os.path.isfile(os.path.join(folder, PAGE)) else None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
