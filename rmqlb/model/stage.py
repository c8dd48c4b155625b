"""What a stage of the pipeline has done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rmqlb.model.finding import Finding

StageState = Literal["written", "unchanged"]


class StageTable(Struct, frozen=True):
    """A table that a stage writes.

    Attributes:
        table: its name.
        rows: how many it has.
    """

    table: str
    rows: int


class StageResult(Struct, frozen=True):
    """A stage that ran.

    Attributes:
        stage: its name.
        state: written, or unchanged when what is there was made from just this.
        seconds: how long it took.
        tables: what it writes, in this order.
        counts: what else was counted, by name.
    """

    stage: str
    state: StageState
    seconds: float
    tables: tuple[StageTable, ...]
    counts: Mapping[str, int]


class StageReport(StageResult, frozen=True, kw_only=True):
    """A stage that ran, and the findings about it."""

    findings: tuple[Finding, ...] = ()


def stage_report(
    stage: str,
    seconds: float,
    rows: Mapping[str, int],
    *,
    state: StageState = "written",
    counts: Mapping[str, int] | None = None,
    findings: tuple[Finding, ...] = (),
) -> StageReport:
    """Of the rows of each table, in the order written; the seconds to the millisecond."""
    tables = tuple(StageTable(table, number) for table, number in rows.items())
    return StageReport(stage, state, round(seconds, 3), tables, counts or {}, findings=findings)
