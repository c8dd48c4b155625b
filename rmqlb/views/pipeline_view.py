"""What the stages of a pipeline have done, as a report."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rmqlb.decoding import from_attributes
from rmqlb.model.stage import StageReport, StageResult
from rmqlb.views.report import Cell, Column, Report, Section

_COLUMNS = (
    Column("Stage", "stage"),
    Column("Table", "table"),
    Column("Rows", "rows", "number"),
    Column("State", "state"),
    Column("Took", "ms", "ms"),
)


class PipelineResult(Struct, frozen=True):
    """What the stages of a pipeline have done.

    Attributes:
        warehouse: the folder of the tables.
        stages: in the order in which they ran.
    """

    warehouse: str
    stages: tuple[StageResult, ...]


def pipeline_report(warehouse: str, stages: Sequence[StageReport]) -> Report:
    """The stages and their tables."""
    return Report(
        schema="rmqlb/pipeline",
        data=PipelineResult(warehouse, tuple(from_attributes(stage, StageResult) for stage in stages)),
        facts=(f"warehouse {warehouse}", *(_counted(stage) for stage in stages if stage.counts)),
        sections=(Section("stages", "Stages", _COLUMNS, tuple(row for stage in stages for row in _rows(stage))),),
        labels={},
    )


def _rows(stage: StageResult) -> list[tuple[Cell, ...]]:
    took = round(stage.seconds * 1000)
    if not stage.tables:
        return [(stage.stage, None, None, stage.state, took)]
    return [
        (stage.stage, table.table, table.rows, stage.state, None if index else took)
        for index, table in enumerate(stage.tables)
    ]


def _counted(stage: StageResult) -> str:
    return f"{stage.stage}: " + ", ".join(f"{number} {_words(name)}" for name, number in stage.counts.items())


def _words(name: str) -> str:
    """A camelCase name as words.

    >>> _words("badFiles")
    'bad files'
    """
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
