"""What the stages of a pipeline have done, as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqlb.model.stage import StageReport
from rmqlb.views.report import Column, Report, Section

if TYPE_CHECKING:
    from rmqlb.views.shapes.pipeline import PipelineData, StageState

_COLUMNS = (
    Column("Stage", "stage"),
    Column("Table", "table"),
    Column("Rows", "rows", "number"),
    Column("State", "state"),
    Column("Took", "ms", "ms"),
)


def pipeline_report(warehouse: str, stages: Sequence[StageReport]) -> Report:
    """The stages and their tables.

    Args:
        warehouse: the folder of the tables.
        stages: in the order in which they ran.
    """
    rows = tuple(row for stage in stages for row in _rows(stage))
    data: PipelineData = {
        "warehouse": warehouse,
        "stages": [
            {
                "stage": stage.stage,
                "state": _state(stage),
                "seconds": round(stage.seconds, 3),
                "tables": [{"table": name, "rows": number} for name, number in stage.tables.items()],
                "counts": dict(stage.counts),
            }
            for stage in stages
        ],
    }
    return Report(
        schema="rmqlb/pipeline",
        data=data,
        facts=(f"warehouse {warehouse}", *(_counted(stage) for stage in stages if stage.counts)),
        sections=(Section("stages", "Stages", _COLUMNS, rows),),
        labels={},
    )


def _rows(stage: StageReport) -> list[tuple[str | int | float | None, ...]]:
    took = round(stage.seconds * 1000)
    if not stage.tables:
        return [(stage.stage, None, None, _state(stage), took)]
    return [
        (stage.stage, name, number, _state(stage), None if index else took)
        for index, (name, number) in enumerate(stage.tables.items())
    ]


def _state(stage: StageReport) -> StageState:
    return "written" if stage.changed else "unchanged"


def _counted(stage: StageReport) -> str:
    return f"{stage.stage}: " + ", ".join(f"{number} {_words(name)}" for name, number in stage.counts.items())


def _words(name: str) -> str:
    """A camelCase name as words.

    >>> _words("badFiles")
    'bad files'
    """
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
