from collections.abc import Iterator, Sequence
from datetime import date

from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.model.result import ERROR, counted
from rmqlb.views.columns import Column
from rmqlb.views.metrics import FLEET_FIGURES
from rmqlb.views.report import Report, Section, section_of

_NIGHT = (Column("What", "what"), Column("Number", "number", "number"))
_QUARANTINE = (Column("File", "file"), Column("Reason", "reason", "prose"))


def pipeline_report(result: PipelineResult) -> Report:
    verdict = result.verdict
    sections = []
    if verdict is not None:
        rows = (*((name, getattr(verdict, name)) for name in FLEET_FIGURES), ("silent", len(verdict.silent)))
        sections.append(Section("night", "Last night", _NIGHT, rows))
    if result.quarantined:
        sections.append(section_of("quarantine", "Rejected documents", _QUARANTINE, result.quarantined))
    grave = ERROR if verdict is not None and verdict.is_violated else ""
    return Report("rmqlb/pipeline", result, tuple(_facts(result)), tuple(sections), grave=grave)


def _facts(result: PipelineResult) -> Iterator[str]:
    yield result.verdict.line if result.verdict is not None else "the warehouse has no night"
    if result.files is not None:
        new = f"{counted(result.read, 'new file')} of {result.files}"
        yield f"  ingest: {new}, {counted(result.snapshots, 'snapshot')} in {_nights(result.ingested)}"
    yield f"  judge: {_nights(result.judged)}"
    if result.dropped:
        yield f"  dropped: {_nights(result.dropped)}"
    if result.page is not None:
        yield f"  report: {result.page}"
    yield f"  warehouse {result.warehouse}"


def _nights(days: Sequence[date]) -> str:
    if not days:
        return "no night"
    span = f" ({days[0]})" if len(days) == 1 else f" ({days[0]} to {days[-1]})"
    return f"{counted(len(days), 'night')}{span}"
