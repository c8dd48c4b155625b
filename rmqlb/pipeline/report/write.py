"""The report of a warehouse, written as a whole or not at all, and only when something has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as fn

from rmqlb.errors import DataError
from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.pipeline.report.atomic_folder import atomic_folder
from rmqlb.pipeline.report.contents import Exported, facts, figures, sections, subtitle, to_do
from rmqlb.pipeline.report.export import SPREADSHEET_ROWS, export
from rmqlb.pipeline.report.frames import Tables, one_job
from rmqlb.pipeline.report.page import page
from rmqlb.pipeline.report.views import view_scripts
from rmqlb.pipeline.schemas import DOCUMENTS, EXPORTED
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

PAGE, CONTENTS = "index.html", "report.json"


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
    """`report.json`; `madeFrom` is equal only when all is that decides what the report says."""

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
    with closing(Tables(spark, warehouse)) as tables:
        made_from = _made_from(tables, top, most_rows)
        there = None if force else _there(folder)
        if there is not None and there.made_from == made_from:
            exported = tuple(Exported(name, one.rows, one.in_csv) for name, one in there.tables.items())
            return ReportSummary(os.path.join(folder, PAGE), exported, there.facts, unchanged=True)
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


def _made_from(tables: Tables, top: int, most_rows: int) -> str:
    """A text that differs when the page would.

    Versions of tables may be equal in a warehouse that was made anew; what was ingested is known by its content.
    """
    stored = {name: tables.warehouse.stored(name) for name in tables.warehouse.names()}
    made = (__version__, top, most_rows, _ingested(tables), stored)
    encoded = msgspec.json.encode(made, order="sorted")
    return hashlib.sha256(encoded).hexdigest()


def _ingested(tables: Tables) -> tuple[int, int]:
    documents = tables.whole(DOCUMENTS)
    if documents is None:
        return 0, 0
    its = fn.xxhash64("cluster", "date", "snapshot", "file", "position", "hash")
    with one_job(tables.spark):
        count, digest = documents.agg(fn.count("*"), fn.bit_xor(its)).collect()[0]
    return count, digest or 0


def _there(folder: str) -> _Contents | None:
    """What an earlier report says of itself; None when there is none as this version writes it."""
    try:
        with open(os.path.join(folder, CONTENTS), "rb") as file:
            found = msgspec.json.decode(file.read(), type=_Contents)
    except (OSError, msgspec.DecodeError):
        return None
    return found if os.path.isfile(os.path.join(folder, PAGE)) else None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
