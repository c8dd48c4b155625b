"""Whatever a caller names as a source, as one object that the verbs read."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from rmqlb.errors import DataError, UsageError, typed
from rmqlb.model.group import ConsumerGroup, States
from rmqlb.model.result import Finding, Progress, Snapshot, counted, no_progress
from rmqlb.model.route import MASTER_ID, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.sources.source import NothingToAsk

if TYPE_CHECKING:
    from rmqlb.sources.dump import DumpSource
    from rmqlb.sources.live import LiveSource
    from rmqlb.sources.source import Access

MOST_ASKED = 256
"""Questions that one verb asks brokers about a group."""


@runtime_checkable
class Reader(Protocol):
    """A source as verbs read it."""

    live: bool  # it is a running cluster

    # the wanted parts of the cluster (raises DataError, EndpointError)
    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot: ...
    # the source, to ask brokers and consumers a question
    def open(self) -> "NothingToAsk | LiveSource": ...


AnySource = str | os.PathLike[str] | ClusterSnapshot | Mapping[str, Any] | Snapshot | Reader
"""What a verb reads: a URL (`rocketmq://HOST:9876`, `http://…`) or a file, as `-s` takes them; a snapshot that
`fetch_routes` returned; a parsed document (the content of a file, as a dict); or a reader."""


class SnapshotReader(NothingToAsk):
    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:  # noqa: ARG002 - a Reader's
        """The snapshot, whatever is wanted of it."""
        return self._snapshot


class _DocumentReader(NothingToAsk):
    """A parsed document, read as a file that holds it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        try:
            self._body = msgspec.json.encode(document)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the document cannot be written as JSON: {error}") from None

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:  # noqa: ARG002 - a Reader's
        """The wanted parts of the document (raises DataError)."""
        from rmqlb.sources.dump import read_document

        return read_document(self._body, "the document", wanted, topic=wanted.only_topic, group=wanted.group).snapshot


class TextReader:
    """A URL or a file, opened anew for each reading."""

    def __init__(self, text: str, access: "Access") -> None:
        from rmqlb.sources.source_text import as_url, is_live

        self.text = as_url(text)
        self.live = is_live(self.text)
        self.access = access

    def open(self) -> "DumpSource | LiveSource":
        from rmqlb.sources.opening import open_source

        return open_source(self.text, self.access)

    def open_for_another_reading(self) -> "DumpSource | LiveSource":
        """The source, whose deadline begins now and in which every server may answer again (raises UsageError)."""
        if self.live:
            from rmqlb.sources.opening import for_another_reading

            self.access = for_another_reading(self.access)
        return self.open()

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        return self.open_for_another_reading().fetch(wanted, progress)


def reader(source: AnySource) -> Reader:
    """The source, ready to be read (raises UsageError)."""
    if isinstance(source, ClusterSnapshot):
        return SnapshotReader(source)
    if isinstance(source, Snapshot):
        return SnapshotReader(source.meta.snapshot)
    if isinstance(source, Mapping):
        return _DocumentReader(source)
    if isinstance(source, str | os.PathLike):
        from rmqlb.sources.source import Access

        found = TextReader(os.fspath(source), Access())
        found.open()  # refuses what cannot be meant
        return found
    if isinstance(source, Reader):
        return source
    raise UsageError(f"a source is a URL, a path, a snapshot or a parsed document, not {type(source).__name__}")


class Earlier(Struct, frozen=True):
    source: Reader
    option: str  # what errors about it begin with, as `--earlier FILE`


def earlier(source: AnySource | Earlier | None, option: str = "--earlier") -> Earlier | None:
    """An earlier snapshot, which is no running cluster (raises UsageError)."""
    if source is None or isinstance(source, Earlier):
        return source
    if isinstance(source, str | os.PathLike):
        from rmqlb.sources.source_text import shown_source

        option = typed(option, shown_source(os.fspath(source)))
        if "://" in os.fspath(source):
            raise UsageError(f"{option}: an earlier snapshot is a file", hint="write one with fetch-routes --to FILE")
    return Earlier(reader(source), option)


def ask_route(source: Reader, topic: str) -> TopicRouteData | None:
    """The route of a topic that lists leave out, as a broker's own; None where there is none."""
    if not source.live:
        return None
    try:
        return source.fetch(Wanted((topic,))).route(topic)
    except DataError:
        return None


def ask_type(source: Reader, route: TopicRouteData, most: int | None = None) -> str | None:
    """The topic's `message.type`, which a route does not have; None if none of the first brokers reports it."""
    listed = {data.broker_name for data in route.queue_datas}
    addresses = (each.broker_addrs.get(MASTER_ID) for each in route.broker_datas if each.broker_name in listed)
    return source.open().ask_message_type(route.topic, [address for address in addresses if address is not None][:most])


def ask_starts(
    source: Reader, group: ConsumerGroup | None, questions: Sequence[OffsetQuestion]
) -> tuple[States, tuple[Finding, ...]]:
    """What brokers answer, nothing where they cannot be asked; and why some answers are missing."""
    chosen = questions[:MOST_ASKED]
    answers = source.open().ask_offsets(group.group, chosen) if group is not None and chosen else None
    if answers is None:
        return {}, ()
    found = []
    if len(questions) > len(chosen):
        text = f"brokers were asked about {len(chosen)} of {counted(len(questions), 'queue')} that change owners"
        found.append(Finding("starts-not-asked", f"start offsets: {text}; consume stats give the others"))
    if len(chosen) > len(answers):
        text = f"brokers did not answer for {len(chosen) - len(answers)} of {counted(len(chosen), 'queue')}"
        found.append(Finding("starts-not-asked", f"start offsets: {text}"))
    return answers, tuple(found)
