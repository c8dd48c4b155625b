"""Whatever a caller names as a source, as one object that the verbs read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group import ConsumerGroup, States
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.model.words import counted

MOST_ASKED = 256
"""Questions that one verb asks brokers about a group."""


@runtime_checkable
class Reader(Protocol):
    """A source as verbs read it."""

    live: bool  # it is a running cluster

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        """The wanted parts of the cluster (raises DataError, EndpointError)."""

    def ask_offsets(self, group: str, questions: Sequence[OffsetQuestion]) -> States | None:
        """What brokers tell a consumer of a group that takes these queues; None where they cannot be asked."""

    def ask_assignments(
        self, group: str, questions: Sequence[AssignmentQuestion]
    ) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        """What brokers answer consumers that let them assign their queues; None where they cannot be asked."""

    def ask_stacks(self, group: str, client_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Client ID → the stack traces of its consume threads, of the consumers that answer."""


AnySource = str | os.PathLike[str] | ClusterSnapshot | Reader
"""What a verb reads: a URL (`rocketmq://HOST:9876`, `http://…`), a file, a snapshot that was read, or a reader."""


class SnapshotReader:
    """A snapshot that is there already."""

    live = False

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:  # noqa: ARG002 - a Reader's
        """The snapshot, whatever is wanted of it."""
        return self._snapshot

    def ask_offsets(self, *_: object) -> States | None:
        """Nobody can be asked."""
        return None

    def ask_assignments(self, *_: object) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        """Nobody can be asked."""
        return None

    def ask_stacks(self, *_: object, **__: object) -> Mapping[str, tuple[str, ...]]:
        """Nobody can be asked."""
        return {}


class _TextReader:
    """A URL or a file, opened anew for each reading."""

    def __init__(self, text: str) -> None:
        from rmqlb.sources.opening import Access
        from rmqlb.sources.source_text import is_live

        self.live = is_live(text)
        self._text = text
        self._access = Access()
        self._open()

    def _open(self) -> Any:
        from rmqlb.sources.opening import open_source

        return open_source(self._text, self._access)

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        if self.live:
            from rmqlb.sources.opening import for_another_reading

            self._access = for_another_reading(self._access)
        found: ClusterSnapshot = self._open().fetch(wanted, progress)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)


def reader(source: AnySource) -> Reader:
    """The source, ready to be read (raises UsageError)."""
    if isinstance(source, ClusterSnapshot):
        return SnapshotReader(source)
    if isinstance(source, str | os.PathLike):
        return _TextReader(os.fspath(source))
    if isinstance(source, Reader):
        return source
    raise UsageError(f"a source is a URL, a path or a snapshot, not {type(source).__name__}")


def ask_route(source: Reader, topic: str) -> TopicRouteData | None:
    """The route of a topic that lists leave out, as a broker's own; None where there is none."""
    if not source.live:
        return None
    try:
        return source.fetch(Wanted((topic,))).route(topic)
    except DataError:
        return None


def ask_starts(
    source: Reader, group: ConsumerGroup | None, questions: Sequence[OffsetQuestion]
) -> tuple[States, tuple[Finding, ...]]:
    """What brokers answer, nothing where they cannot be asked; and why some answers are missing."""
    asked = questions[:MOST_ASKED]
    answers = source.ask_offsets(group.group, asked) if group is not None and asked else None
    if answers is None:
        return {}, ()
    found = []
    if len(questions) > len(asked):
        text = f"brokers were asked about {len(asked)} of {counted(len(questions), 'queue')} that change owners"
        found.append(Finding("starts-not-asked", f"start offsets: {text}; consume stats give the others"))
    if len(asked) > len(answers):
        text = f"brokers did not answer for {len(asked) - len(answers)} of {counted(len(asked), 'queue')}"
        found.append(Finding("starts-not-asked", f"start offsets: {text}"))
    return answers, tuple(found)
