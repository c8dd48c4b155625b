"""What the stages of a pipeline have done, and what a generated fleet consists of, as reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct, to_builtins

from rmqlb.decoding import from_attributes
from rmqlb.model.fleet import FleetSummary
from rmqlb.model.stage import StageReport, StageResult
from rmqlb.views.report import Cell, Column, Report, Section

_COLUMNS = (
    Column("Stage", "stage"),
    Column("Table", "table"),
    Column("Rows", "rows", "number"),
    Column("State", "state"),
    Column("Took", "ms", "ms"),
)

_COUNTS = (Column("What", "what"), Column("Number", "number", "number"))
_DAMAGED = (Column("File", "file"), Column("Document", "position", "number"), Column("Damage", "damage"))


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
    counted = [f"{stage.stage}: {_counts(stage)}" for stage in stages if stage.counts]
    return Report(
        schema="rmqlb/pipeline",
        data=PipelineResult(warehouse, tuple(from_attributes(stage, StageResult) for stage in stages)),
        facts=(*reversed(counted), f"  warehouse {warehouse}"),
        sections=(Section("stages", "Stages", _COLUMNS, tuple(row for stage in stages for row in _rows(stage))),),
    )


def _rows(stage: StageResult) -> list[tuple[Cell, ...]]:
    took = round(stage.seconds * 1000)
    if not stage.tables:
        return [(stage.stage, None, None, stage.state, took)]
    return [
        (stage.stage, table.table, table.rows, stage.state, None if index else took)
        for index, table in enumerate(stage.tables)
    ]


def _counts(stage: StageReport) -> str:
    """What is not 0; all of it where nothing is."""
    counts = {name: number for name, number in stage.counts.items() if number} or stage.counts
    return ", ".join(_counted(number, name) for name, number in counts.items())


_ONE = re.compile(r"\b(cluster|group|consumer|queue|document|mismatch|snapshot)e?s\b")


def _counted(number: int, name: str) -> str:
    """A count under a camelCase name, in words.

    >>> _counted(2, "flappingGroups"), _counted(1, "unassignedQueuesObserved"), _counted(1, "mismatches")
    ('2 flapping groups', '1 unassigned queue observed', '1 mismatch')
    """
    words = re.sub("([A-Z])", lambda upper: f" {upper[0].lower()}", name)
    return f"{number} {_ONE.sub(lambda found: found[1], words) if number == 1 else words}"


def fleet_report(summary: FleetSummary) -> Report:
    """The fleet in numbers."""
    counts = [(name, value) for name, value in to_builtins(summary).items() if isinstance(value, int)]
    bad = tuple((each.file, each.position, str(each.damage)) for each in summary.bad_files)
    faults, clients = (tuple(sorted(each.items())) for each in (summary.faults, summary.other_clients))
    return Report(
        schema="rmqlb/fleet",
        data=summary,
        facts=(f"written to {summary.folder}",),
        sections=(
            Section("fleet", "Fleet", _COUNTS, tuple(counts)),
            *((Section("faults", "Groups with faults", _COUNTS, faults),) if faults else ()),
            *((Section("clients", "Groups with other clients", _COUNTS, clients),) if clients else ()),
            *((Section("damaged", "Damaged documents", _DAMAGED, bad),) if bad else ()),
        ),
    )
