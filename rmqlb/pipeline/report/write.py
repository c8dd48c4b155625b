"""The report of a warehouse, written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from rmqlb.errors import DataError
from rmqlb.pipeline.report.aside import written_aside
from rmqlb.pipeline.report.export import EXPORTED, SPREADSHEET_ROWS, export
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.report.gather import figures
from rmqlb.pipeline.report.page import page
from rmqlb.pipeline.report.sections import facts, sections, subtitle
from rmqlb.pipeline.report.values import Exported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.pipeline.warehouse import Warehouse

PAGE, CONTENTS = "index.html", "report.json"


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What a report holds.

    Attributes:
        page: the page to open.
        tables: those that lie beside the page.
        facts: the figures at the top of the page, by their words there.
    """

    page: str
    tables: tuple[Exported, ...]
    facts: Mapping[str, int]


def write_report(
    spark: SparkSession, warehouse: Warehouse, folder: str, *, top: int = 20, most_rows: int = SPREADSHEET_ROWS
) -> ReportSummary:
    """Write `index.html`, `csv/`, `parquet/` and `report.json` into a folder, in place of an earlier report.

    Args:
        spark: a session.
        warehouse: what is reported.
        folder: of this machine, seen by all of Spark's machines; it is replaced as a whole.
        top: rows in each list of the page, from 1.
        most_rows: tables with more rows are written as Parquet only.

    Raises:
        DataError: the warehouse has none of the tables, or the folder cannot be written.
        UsageError: the folder holds something else, or another process writes there.
    """
    tables = Tables(spark, warehouse)
    if not {table.name for table in EXPORTED} & set(warehouse.names()):
        raise DataError(f"{warehouse.folder} has no tables to report on", hint="make them first: rmqlb pipeline run")
    with written_aside(folder, CONTENTS) as aside:
        exported = export(tables, aside, most_rows)
        found = figures(tables, top, exported)
        _write(os.path.join(aside, PAGE), page("Fleet report", subtitle(found), facts(found), sections(found)))
        _write(os.path.join(aside, CONTENTS), _contents(exported))
    return ReportSummary(
        page=os.path.join(folder, PAGE),
        tables=exported,
        facts={words: value for words, value in facts(found) if isinstance(value, int)},
    )


def _contents(exported: tuple[Exported, ...]) -> str:
    tables = {table.name: {"rows": table.rows, "inCsv": table.in_csv} for table in exported}
    body = msgspec.json.encode({"schema": "rmqlb/pipeline-report", "formatVersion": "1.0", "tables": tables})
    return msgspec.json.format(body, indent=2).decode() + "\n"


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
