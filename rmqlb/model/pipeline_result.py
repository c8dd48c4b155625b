"""What `rmqlb pipeline` prints: what a run read and judged, and what the last night comes to."""

from __future__ import annotations

from datetime import date

from msgspec import Struct

from rmqlb.model.words import counted

Day = date  # where a field has that name


class RejectedFile(Struct, frozen=True, rename="camel"):
    """A document in quarantine.

    Attributes:
        file: its path or URI.
        reason: why it is rejected.
    """

    file: str
    reason: str


class Verdict(Struct, frozen=True, rename="camel"):
    """What a night comes to.

    Attributes:
        date: the night.
        previous: the night before it; null for the first.
        clusters: clusters that reported.
        silent: expected clusters that did not report.
        groups: consumer groups.
        failed: limits of the policy that failed and are not waived, of rules of the severity error.
        incomplete: limits that could not be judged, of rules of the severity error.
        waived: limits that a waiver lets pass.
        errors: findings of the severity error, those of the policy left out.
        new: findings that the night before does not have; info left out.
        gone: findings of the night before that are no more; info left out.
        line: the same in a line, for a chat message.
    """

    date: Day
    previous: Day | None
    clusters: int
    silent: tuple[str, ...]
    groups: int
    failed: int
    incomplete: int
    waived: int
    errors: int
    new: int
    gone: int
    line: str = ""

    @property
    def is_violated(self) -> bool:
        """A limit of the policy failed, or a cluster that must report is silent."""
        return bool(self.failed or self.silent)

    @property
    def figures(self) -> dict[str, int]:
        """The counts by name."""
        names = ("clusters", "groups", "failed", "incomplete", "waived", "errors", "new", "gone")
        return {**{name: getattr(self, name) for name in names}, "silent": len(self.silent)}

    @property
    def sentence(self) -> str:
        """What is new first, then what fails, then what was looked at."""
        since = "first night" if self.previous is None else f"{self.new} new, {self.gone} gone since {self.previous}"
        parts = [f"{self.date}: {since}", f"{counted(self.errors, 'error')}", f"{counted(self.failed, 'failed limit')}"]
        parts += [f"{self.waived} waived"] * bool(self.waived) + [f"{self.incomplete} not judged"] * bool(
            self.incomplete
        )
        parts += [f"silent: {', '.join(self.silent)}"] * bool(self.silent)
        return f"{'; '.join(parts)} ({counted(self.clusters, 'cluster')}, {counted(self.groups, 'group')})"


class PipelineResult(Struct, frozen=True, rename="camel"):
    """What a run of the pipeline did.

    Attributes:
        warehouse: its folder or URI.
        files: files that were given; null where nothing is ingested.
        read: files among them that were new.
        snapshots: snapshots that were read.
        quarantined: documents that were rejected now.
        ingested: the nights whose snapshots were written.
        judged: the nights that were judged.
        dropped: the nights that `--keep` dropped.
        incomplete: nights that an interrupted run left incomplete, until ingest gets their files again.
        page: the file of the report; null where none is written.
        verdict: what the last night comes to; null for an empty warehouse.
    """

    warehouse: str
    files: int | None = None
    read: int = 0
    snapshots: int = 0
    quarantined: tuple[RejectedFile, ...] = ()
    ingested: tuple[date, ...] = ()
    judged: tuple[date, ...] = ()
    dropped: tuple[date, ...] = ()
    incomplete: tuple[date, ...] = ()
    page: str | None = None
    verdict: Verdict | None = None
