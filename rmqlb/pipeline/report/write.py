"""The report of a warehouse, written as a whole or not at all, and only when something has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
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
from rmqlb.pipeline.report.views import view_scripts
from rmqlb.pipeline.schemas import ALL, EXPORTED, FILES, FLEET
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

PAGE, CONTENTS = "index.html", "report.json"
_READ = tuple(dict.fromkeys(table.name for table in (*ALL, FLEET) if table is not FILES))
"""The tables that the page depends on."""


class ReportSummary(msgspec.Struct, frozen=True, rename="camel"):
    """What a report holds: its page, the tables beside it, and the figures at the top of the page by their words."""

    page: str
    tables: tuple[Exported, ...]
    facts: Mapping[str, int]
    unchanged: bool = False


class _TableEntry(msgspec.Struct, frozen=True, rename="camel"):
    rows: int
    in_csv: bool


class _Contents(msgspec.Struct, frozen=True, rename="camel"):
    """`made_from` is equal only when all is that decides what the report says."""

    schema: str
    format_version: str
    made_from: str
    facts: dict[str, int]
    tables: dict[str, _TableEntry]


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

    One that was made of just this stays as it is, unless `force` is set. The folder is of this machine. `top`: rows in
    each list of the page; tables with more than `most_rows` are written as Parquet only.

    Raises:
        DataError: the warehouse has none of the tables, or the folder cannot be written.
        UsageError: the folder holds something else, or another process writes there.
    """
    if not {table.name for table in EXPORTED} & set(warehouse.names()):
        raise DataError(f"{warehouse.folder} has no tables to report on", hint="make them first: rmqlb pipeline run")
    made_from = _made_from(warehouse, top, most_rows)
    there = None if force else _there(folder)
    if there is not None and there.made_from == made_from:
        exported = tuple(Exported(name, one.rows, one.in_csv) for name, one in there.tables.items())
        return ReportSummary(os.path.join(folder, PAGE), exported, there.facts, unchanged=True)
    with closing(Tables(spark, warehouse)) as tables:
        return _written(tables, folder, made_from, top, most_rows)


def _written(tables: Tables, folder: str, made_from: str, top: int, most_rows: int) -> ReportSummary:
    with atomic_folder(folder, CONTENTS) as aside:
        found = figures(tables, top, ())
        exported = export(tables, found.clusters, aside, most_rows)
        found = msgspec.structs.replace(found, tables=exported)
        shown = facts(found)
        numbers = {fact.what: fact.value for fact in shown if isinstance(fact.value, int)}
        _write(os.path.join(aside, PAGE), page("Fleet report", subtitle(found), shown, sections(found), to_do(found)))
        for name, text in view_scripts([table.name for table in exported]).items():
            _write(os.path.join(aside, name), text)
        entries = {table.name: _TableEntry(table.rows, table.in_csv) for table in exported}
        contents = _Contents("rmqlb/pipeline-report", FORMAT_VERSION, made_from, numbers, entries)
        body = msgspec.json.format(msgspec.json.encode(contents), indent=2).decode()
        _write(os.path.join(aside, CONTENTS), body + "\n")
    return ReportSummary(os.path.join(folder, PAGE), exported, numbers)


def _made_from(warehouse: Warehouse, top: int, most_rows: int) -> str:
    """A text that differs when the page would: of a warehouse that was made anew too, by what its tables come from."""
    stored = [(name, its.version, its.rows, its.made_from) for name in _READ if (its := warehouse.stored(name))]
    return short(__version__, warehouse.folder, top, most_rows, stored)


def _there(folder: str) -> _Contents | None:
    """What an earlier report says of itself; None when there is none as this version writes it."""
    try:
        with open(os.path.join(folder, CONTENTS), "rb") as file:
            found = decode(file.read(), _Contents)
    except (OSError, msgspec.DecodeError):
        return None
    return found if os.path.isfile(os.path.join(folder, PAGE)) else None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
