"""Snapshots that `record --to` wrote, in a line each."""

from __future__ import annotations

from rmqlb.model.recording import TakenSnapshots
from rmqlb.model.words import counted
from rmqlb.views.report import Column, Report, Section, first_places, rows_of

_MOST_ROWS = 40


def snapshots_report(taken: TakenSnapshots) -> Report:
    """What was written, and what failed."""
    columns = (
        Column("at", "at"),
        Column("file", "file"),
        Column("topics", "topics", "number"),
        Column("groups", "groups", "number"),
        Column("unread", "unread", "number"),
        Column("error", "error", "prose"),
    )
    failed = f"; {counted(taken.failed, 'look')} failed" if taken.failed else ""
    rows = rows_of(columns, taken.snapshots)
    return Report(
        "rmqlb/record-snapshots",
        taken,
        (f"{counted(taken.written, 'snapshot')} written to {taken.directory}{failed}",),
        (Section("snapshots", "snapshots", columns, rows, brief=first_places(len(rows), _MOST_ROWS)),),
        grave="warning" if taken.failed else "inOrder",
        closing=(f"rmqlb pipeline run {taken.directory} reads them",),
    )
