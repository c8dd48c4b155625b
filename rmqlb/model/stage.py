"""What a stage of the pipeline has done."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from rmqlb.model.finding import Finding


class StageReport(Struct, frozen=True):
    """A stage that has run, or had nothing to do.

    Attributes:
        tables: table → its rows, in the order written.
        changed: False when what is there was made from just this, so that nothing was written.
        counts: what else was counted, by name in camelCase.
    """

    stage: str
    seconds: float
    tables: Mapping[str, int]
    changed: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
