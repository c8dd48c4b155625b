"""A running cluster as a source, whatever it speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from rmqlb.errors import DataError, EndpointError
from rmqlb.model.group import States
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.model.system_names import is_system_topic
from rmqlb.sources.assignments import reported_assignments
from rmqlb.sources.offsets import reported_offsets
from rmqlb.sources.pace import Deadline, Pace
from rmqlb.sources.single_reads import AdminReads, ProxyReads
from rmqlb.sources.snapshot_reader import AT_ONCE, SnapshotReader


def utc_now() -> datetime:
    """This moment, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


class LiveSource:
    """A running cluster."""

    def __init__(
        self,
        reads: AdminReads,
        clock: Callable[[], datetime] = utc_now,
        pace: Pace | None = None,  # that other readings share; one of its own by default
        proxies: ProxyReads | None = None,  # that are asked for consumers too
        deadline: Deadline | None = None,  # after which nothing is asked any more; none by default
    ) -> None:
        self.reads = reads
        self._proxies = proxies
        self._clock = clock
        self._pace = pace or Pace()
        self._deadline = deadline or Deadline(self._pace, None)

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        reading = SnapshotReader(self.reads, self._clock, progress, self._pace, wanted, self._deadline, self._proxies)
        taken_at = self._clock()
        progress(self.reads.endpoint, 0, 0)
        try:
            if wanted.everything is not None:
                groups = reading.everything(wanted.everything)
            else:
                groups = reading.groups(wanted)
                if wanted.topics is None and not groups:
                    reading.all_routes(t for t in self.reads.topics() if not is_system_topic(t))
                elif wanted.topics is not None:
                    reading.routes(wanted.topics)
            groups = reading.with_silent_asked_again(groups)
        finally:
            self.reads.close()
            if self._proxies is not None:
                self._proxies.close()
        return ClusterSnapshot(
            kind=self.reads.kind,
            endpoint=self.reads.endpoint,
            taken_at=taken_at,
            routes={sighting.route.topic: sighting for sighting in reading.found.values() if sighting is not None},
            groups={group.group: group for group in groups},
            unread=(*self.reads.unread(), *(self._proxies.unread() if self._proxies else ()), *reading.unread),
        )

    def ask_offsets(
        self, group: str, questions: Sequence[OffsetQuestion], progress: Progress = no_progress
    ) -> States | None:
        reads = self.reads.offset_reads
        try:
            return None if reads is None else reported_offsets(reads, group, questions, AT_ONCE, progress)
        finally:
            self.reads.close()

    def ask_assignments(
        self, group: str, questions: Sequence[AssignmentQuestion], progress: Progress = no_progress
    ) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        reads = self.reads.pop_reads
        try:
            return None if reads is None else reported_assignments(reads, group, questions, AT_ONCE, progress)
        finally:
            self.reads.close()

    def ask_message_type(self, topic: str, addresses: Sequence[str]) -> str | None:
        try:
            for address in addresses:
                with suppress(EndpointError, DataError):
                    if (found := self.reads.message_type(topic, address)) is not None:
                        return found
            return None
        finally:
            self.reads.close()

    def ask_stacks(
        self, group: str, client_ids: Sequence[str], progress: Progress = no_progress
    ) -> Mapping[str, tuple[str, ...]]:
        wanted = Wanted(group=group, spaced=True)
        reading = SnapshotReader(self.reads, self._clock, progress, self._pace, wanted, self._deadline)
        try:
            return reading.stacks(group, client_ids)
        finally:
            self.reads.close()
