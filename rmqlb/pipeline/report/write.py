"""The report of a warehouse, written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rmqlb.errors import DataError
from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.pipeline.report.atomic_folder import atomic_folder
from rmqlb.pipeline.report.contents import Exported, facts, figures, sections, subtitle, to_do
from rmqlb.pipeline.report.export import SPREADSHEET_ROWS, export
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.report.page import page
from rmqlb.pipeline.schemas import EXPORTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

PAGE, CONTENTS = "index.html", "report.json"


class ReportSummary(msgspec.Struct, frozen=True):
    """What a report holds: its page, the tables beside it, and the figures at the top of the page by their words."""

    page: str
    tables: tuple[Exported, ...]
    facts: Mapping[str, int]


def write_report(
    spark: SparkSession, warehouse: Warehouse, folder: str, *, top: int = 20, most_rows: int = SPREADSHEET_ROWS
) -> ReportSummary:
    """Write `index.html`, `csv/`, `parquet/` and `report.json` into a folder, in place of an earlier report.

    The folder is of this machine, seen by all of Spark's machines. `top`: rows in each list of the page; tables with
    more than `most_rows` are written as Parquet only.

    Raises:
        DataError: the warehouse has none of the tables, or the folder cannot be written.
        UsageError: the folder holds something else, or another process writes there.
    """
    tables = Tables(spark, warehouse)
    if not {table.name for table in EXPORTED} & set(warehouse.names()):
        raise DataError(f"{warehouse.folder} has no tables to report on", hint="make them first: rmqlb pipeline run")
    with atomic_folder(folder, CONTENTS) as aside:
        exported = export(tables, aside, most_rows)
        found = figures(tables, top, exported)
        shown = facts(found)
        _write(os.path.join(aside, PAGE), page("Fleet report", subtitle(found), shown, sections(found), to_do(found)))
        _write(os.path.join(aside, CONTENTS), _contents(exported))
    numbers = {fact.what: fact.value for fact in shown if isinstance(fact.value, int)}
    return ReportSummary(os.path.join(folder, PAGE), exported, numbers)


def _contents(exported: tuple[Exported, ...]) -> str:
    tables = {table.name: {"rows": table.rows, "inCsv": table.in_csv} for table in exported}
    body = msgspec.json.encode({"schema": "rmqlb/pipeline-report", "formatVersion": FORMAT_VERSION, "tables": tables})
    return msgspec.json.format(body, indent=2).decode() + "\n"


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
