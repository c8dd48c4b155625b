"""Files as snapshots, and a snapshot as rows: the part of ingest that runs in Spark's Python processes.

A unit makes snapshots together: a folder `cluster=…/date=…`, whose routes and answers are pieces of one snapshot, or
any other file alone. No document can fail the job: a bad one is rejected with the reason.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any, Literal
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.decoding import decode
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.group import all_groups
from rmqlb.errors import DocumentError, RmqlbError
from rmqlb.model.group import Connection, ConsumerGroup, Seen, is_system_group, retry_topic
from rmqlb.model.result import FORMAT_VERSION
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.pipeline.spark import Batches
from rmqlb.pipeline.tables import INGESTED, Groups, Quarantine, Queues, ReadFile, Row, Running, Snapshots, union_batch
from rmqlb.sources.dump import LARGEST_FILE, Document, merge, read_document, split_documents
from rmqlb.sources.formats.limits import too_large
from rmqlb.sources.formats.snapshot_file import SCHEMA, Heading, read_body, to_document

_LABEL = re.compile(r"(cluster|date|topic|group)=(.+)", re.DOTALL)
_OF_GROUP = ("group", "members", "member", "link", "offsets", "stored-offsets")
_ROWS, _BYTES = 8192, 16 << 20
_PATH_HINTS = {
    "topic-not-named": "name it in the path: …/topic=NAME/…",
    "group-not-named": "name it in the path: …/group=NAME/…",
}  # error code → hint instead of an option
Code = Literal["future-date", "name-conflict", "negative-count", "unreadable"]


class Labels(Struct, frozen=True):
    """The folders `cluster=NAME`, `date=YYYY-MM-DD`, `topic=NAME` and `group=NAME` in a file's path."""

    folder: str  # without those of a topic or group
    cluster: str | None = None
    date: date | None = None
    topic: str | None = None
    group: str | None = None

    @property
    def unit(self) -> str | None:
        """The folder whose files belong together; None for a file alone."""
        return self.folder if self.cluster is not None and self.date is not None else None


def labels(path: str) -> Labels:
    """The labels of a path; of two folders with one key the nearest to the file counts."""
    found: dict[str, str] = {}
    kept: list[str] = []
    for folder in path.split("/")[:-1]:
        match = _LABEL.fullmatch(folder)
        if match:
            found[match[1]] = unquote(match[2])
        if not match or match[1] in ("cluster", "date"):
            kept.append(folder)
    day = None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", found.get("date", "")):
        with suppress(ValueError):
            day = date.fromisoformat(found["date"])
    return Labels("/".join(kept), found.get("cluster"), day, found.get("topic"), found.get("group"))


class _Rejected(Exception):
    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code: Code = code


class _Read(Struct):
    file: ReadFile
    position: int
    labels: Labels
    document: Document
    hash: str


class DocumentReader(Struct, frozen=True):
    """Reads documents in the workers."""

    cluster: str | None  # of all documents; None is by the path or the brokers
    version: str  # of rmqlb
    last_day: date

    def rows(self, batches: Batches) -> Batches:
        """Files (unit, path, length, modified, content) in the order of unit and path → `union_ddl(INGESTED)`."""
        given = (row for batch in batches for row in batch.to_pylist())
        found = (row for _, files in groupby(given, key=lambda row: row["unit"]) for row in self._unit(list(files)))
        yield from in_batches(INGESTED, found)

    def _unit(self, files: list[dict[str, Any]]) -> Iterator[Row]:
        read: list[_Read] = []
        for row in files:
            for each in self._file(row):
                if isinstance(each, Quarantine):
                    yield each
                else:
                    read.append(each)
        pieces = [each for each in read if not each.document.snapshots]
        wholes = [[each] for each in read if each.document.snapshots]
        for parts in (*wholes, pieces) if pieces else wholes:
            try:
                rows = list(self._snapshot(parts))
            except Exception as error:  # noqa: BLE001 - whatever it is, the other documents are read
                rows = [self._rejected(each.file, each.position, error) for each in parts]
            yield from rows

    def _file(self, row: Mapping[str, Any]) -> Iterator[_Read | Quarantine]:
        file = ReadFile(row["path"], row["length"], row["modified"])
        said = labels(file.path)
        try:
            content = _content(file.path) if row["content"] is None else row["content"]
            bodies = split_documents(content, file.path)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other files are read
            yield self._rejected(file, 0, error)
            return
        for position, body in enumerate(bodies, 1):
            where = file.path if len(bodies) == 1 else f"{file.path}, document {position}"
            try:
                of = {"topic": said.topic, "group": said.group}
                document = read_document(body, where, Wanted(evidence=True), **of, limit=LARGEST_FILE)
                if document.snapshots > 1:
                    raise DocumentError(f"{where}: {document.snapshots} snapshots in one document")
                yield _Read(file, position, said, document, hashlib.sha256(body).hexdigest())
            except Exception as error:  # noqa: BLE001 - whatever it is, the other documents are read
                yield self._rejected(file, position, error)

    def _snapshot(self, parts: Sequence[_Read]) -> Iterator[Row]:
        """The rows of a snapshot, or of its pieces (raises _Rejected, DataError)."""
        said, document = parts[0].labels, parts[0].document
        if not document.snapshots:
            if said.unit is None:
                hint = "put the routes and answers of one cluster and night in a folder cluster=NAME/date=YYYY-MM-DD"
                raise _Rejected("unreadable", f"it is a piece of a snapshot; {hint}")
            document = merge((each.document for each in parts), said.folder)
        snapshot, taken_at = document.snapshot, document.taken_at
        for day in (said.date, None if taken_at is None else taken_at.date()):
            if day is not None and day > self.last_day:
                raise _Rejected("future-date", f"its date {day} is in the future; check the clock of its machine")
        night = said.date or (None if taken_at is None else taken_at.date())
        if night is None:
            raise _Rejected("unreadable", "it has no date: put it in a folder date=YYYY-MM-DD")
        _must_count(snapshot)
        cluster = self.cluster or said.cluster or document.cluster or "unknown"
        hash_ = hashlib.sha256("".join(each.hash for each in parts).encode()).hexdigest()
        when = "untimed" if taken_at is None else taken_at.strftime("%Y%m%dT%H%M%SZ")
        key: dict[str, Any] = {"date": night, "cluster": cluster, "snapshot": f"{when}-{hash_[:8]}"}
        brokers = {each.broker_name: each for route in _routes(snapshot) for each in route.broker_datas}
        names = [name for name in all_groups(snapshot) if not is_system_group(name)]
        yield Snapshots(
            **key,
            taken_at=taken_at,
            counts=False,
            files=tuple({each.file.path: each.file for each in parts}.values()),
            hash=hash_,
            topics=len(snapshot.routes),
            groups=len(names),
            brokers=len(brokers),
            unread=len(snapshot.unread),
            broker_addresses=tuple(sorted({text for each in brokers.values() for text in each.broker_addrs.values()})),
            version=self.version,
            document=_text(replace(snapshot, groups={})),
        )
        for name in names:
            yield _group(key, snapshot, name)
            if name in snapshot.groups:
                yield from _queues(key, snapshot.groups[name])

    def _rejected(self, file: ReadFile, position: int, error: Exception) -> Quarantine:
        said = labels(file.path)
        changed = datetime.fromtimestamp(file.modified / 1000, UTC).date()
        night = said.date if said.date is not None and said.date <= self.last_day else min(changed, self.last_day)
        return Quarantine(
            date=night,
            cluster=self.cluster or said.cluster,
            file=file,
            position=position,
            other=None,
            code=error.code if isinstance(error, _Rejected) else "unreadable",
            reason=_reason(error),
            version=self.version,
        )


def last_day() -> date:
    """The last date that is not in the future anywhere on earth."""
    return (datetime.now(UTC) + timedelta(hours=14)).date()


def in_batches(tables: tuple[type[Row], ...], rows: Iterable[Row]) -> Batches:
    """Rows of these tables as batches of `union_ddl`."""
    waiting: dict[type[Row], list[Row]] = {table: [] for table in tables}
    size = 0
    for row in rows:
        own = waiting[type(row)]
        own.append(row)
        size += len(row.document) if isinstance(row, Snapshots | Groups) else 0
        if len(own) >= _ROWS or size >= _BYTES:
            yield union_batch(tables, own)
            own.clear()
            size = 0
    yield from (union_batch(tables, own) for own in waiting.values() if own)


def read_back(document: str) -> ClusterSnapshot:
    body = document.encode()
    found = decode(body, Heading)
    return read_body(body, found, found.source["endpoint"], Wanted(evidence=True))


def _text(snapshot: ClusterSnapshot) -> str:
    source = {"kind": snapshot.kind, "endpoint": snapshot.endpoint, "takenAt": snapshot.taken_at}
    head = {"schema": SCHEMA, "formatVersion": FORMAT_VERSION, "command": "fetch-routes", "source": source}
    return msgspec.json.encode({**head, "data": to_document(snapshot), "findings": []}).decode()


def _group(key: Mapping[str, Any], snapshot: ClusterSnapshot, name: str) -> Groups:
    group = snapshot.groups.get(name)
    known = group or ConsumerGroup(name, Seen(snapshot.endpoint))
    return Groups(
        **key,
        group=name,
        consume_type=known.consume_type,
        message_model=known.message_model,
        consume_from_where=known.consume_from_where,
        topics=known.own_topics if group is not None else None,
        consumers=_consumers(group) if group is not None else None,
        strategies=tuple(sorted(set(reported_strategies(known).values()))),
        split_view=known.has_split_view,
        document=_text(of_group(snapshot, name)),
    )


def of_group(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    """The part of a snapshot that decides about one group."""
    group = snapshot.groups.get(name)
    topics: set[str] | None = None
    if group is not None and group.topics is not None:
        topics = {*group.topics, retry_topic(name), *(queue.topic for queue in group.queues)}

    def concerns(part: Unread) -> bool:
        if part.kind == "route":
            return topics is None or part.name in topics
        return part.kind not in _OF_GROUP or part.name == name

    return replace(
        snapshot,
        routes={topic: seen for topic, seen in snapshot.routes.items() if topics is None or topic in topics},
        groups={} if group is None else {name: group},
        unread=tuple(part for part in snapshot.unread if concerns(part)),
    )


def _consumers(group: ConsumerGroup) -> tuple[Running, ...] | None:
    if group.client_ids is None:
        return None
    strategies = reported_strategies(group)
    found: list[Running] = []
    for client_id, same in groupby(group.client_ids):
        number = len(list(same))
        lists = [[each for each in view.connections if each.client_id == client_id] for view in group.lists]
        best = max((each for each in lists if len(each) <= number), key=len, default=[])
        usual = group.connection_of.get(client_id, Connection(client_id))
        for place in range(number):
            seen = best[place] if place < len(best) and best[place].language is not None else usual
            found.append(Running(client_id, seen.language, seen.version, strategies.get(client_id)))
    return tuple(found)


def _queues(key: Mapping[str, Any], group: ConsumerGroup) -> Iterator[Row]:
    for queue, state in group.queues.items():
        yield Queues(
            **key,
            group=group.group,
            topic=queue.topic,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            owners_observed=state.sorted_owners,
            broker_offset=state.broker_offset,
            consumer_offset=state.consumer_offset,
            lag=state.lag,
            last_timestamp=state.last_timestamp,
        )


def _routes(snapshot: ClusterSnapshot) -> Iterator[Any]:
    return (sighting.route for sighting in snapshot.routes.values())


def _must_count(snapshot: ClusterSnapshot) -> None:
    for route in _routes(snapshot):
        for data in route.queue_datas:
            if min(data.read_queue_nums, data.write_queue_nums) < 0:
                raise _Rejected("negative-count", f"topic {route.topic} has fewer than 0 queues on {data.broker_name}")
    for group in snapshot.groups.values():
        for queue, state in group.queues.items():
            # Brokers answer -1 for a group that has stored no offset.
            if queue.queue_id < 0 or (state.broker_offset or 0) < 0 or (state.consumer_offset or 0) < -1:
                text = f"group {group.group} has a negative number for queue {queue.queue_id} of {queue.topic}"
                raise _Rejected("negative-count", f"{text} on {queue.broker_name}")


def _content(path: str) -> bytes:
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):  # a pipe without a writer would block the job for ever
            raise DocumentError(f"{path} is not a regular file")
        if state.st_size > LARGEST_FILE:
            raise too_large(path, LARGEST_FILE)
        with open(path, "rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror or error}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, _Rejected):
        return str(error)
    if not isinstance(error, RmqlbError):
        return " ".join(f"{type(error).__name__}: {error}".split())[:500]
    hint = _PATH_HINTS.get(error.code) if error.hint_names_options else error.hint
    return f"{error.message}; {hint}" if hint else error.message
