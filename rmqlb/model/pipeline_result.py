"""What `rmqlb pipeline` prints: what a run read and judged, and the verdict on the last night."""

from datetime import date
from typing import Annotated

from msgspec import Struct

from rmqlb.model.result import counted

Day = date  # where a field has that name


class RejectedFile(Struct, frozen=True, rename="camel"):
    """A document in quarantine."""

    file: Annotated[str, "its path or URI"]
    reason: Annotated[str, "why it is rejected"]


class Verdict(Struct, frozen=True, rename="camel"):
    """The verdict on a night."""

    date: Annotated[Day, "the night"]
    previous: Annotated[Day | None, "the night before it; null for the first"]
    clusters: Annotated[int, "clusters that reported"]
    silent: Annotated[tuple[str, ...], "expected clusters that did not report"]
    groups: Annotated[int, "consumer groups"]
    failed: Annotated[int, "limits of the policy that failed and are not waived, of rules of the severity error"]
    incomplete: Annotated[int, "limits that could not be judged, of rules of the severity error"]
    waived: Annotated[int, "limits that are waived"]
    errors: Annotated[int, "findings of the severity error, those of the policy left out"]
    new: Annotated[int, "findings that are new since the night before, except info"]
    gone: Annotated[int, "findings of the night before that are gone, except info"]
    line: Annotated[str, "the same in a line, for a chat message"] = ""

    @property
    def is_violated(self) -> bool:
        """A limit of the policy failed, or a cluster that must report is silent."""
        return bool(self.failed or self.silent)

    @property
    def sentence(self) -> str:
        """What is new first, then what fails, then what was looked at."""
        since = "first night" if self.previous is None else f"{self.new} new, {self.gone} gone since {self.previous}"
        parts = [f"{self.date}: {since}", f"{counted(self.errors, 'error')}", f"{counted(self.failed, 'failed limit')}"]
        parts += [f"{self.waived} waived"] * bool(self.waived)
        parts += [f"{self.incomplete} not judged"] * bool(self.incomplete)
        parts += [f"silent: {', '.join(self.silent)}"] * bool(self.silent)
        return f"{'; '.join(parts)} ({counted(self.clusters, 'cluster')}, {counted(self.groups, 'group')})"


class PipelineResult(Struct, frozen=True, rename="camel"):
    """What a run of the pipeline did."""

    warehouse: Annotated[str, "its folder or URI"]
    files: Annotated[int | None, "files that were given; null where nothing is ingested"] = None
    read: Annotated[int, "files among them that were new"] = 0
    snapshots: Annotated[int, "snapshots that were read"] = 0
    quarantined: Annotated[tuple[RejectedFile, ...], "documents that were rejected now"] = ()
    ingested: Annotated[tuple[date, ...], "the nights whose snapshots were written"] = ()
    judged: Annotated[tuple[date, ...], "the nights that were judged"] = ()
    dropped: Annotated[tuple[date, ...], "the nights that `--keep` dropped"] = ()
    incomplete: Annotated[tuple[date, ...], "nights that an interrupted run left incomplete; ingest them again"] = ()
    page: Annotated[str | None, "the file of the report; null where none is written"] = None
    verdict: Annotated[Verdict | None, "the verdict on the last night; null for an empty warehouse"] = None
