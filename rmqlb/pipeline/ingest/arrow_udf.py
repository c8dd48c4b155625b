"""The part of ingest that runs in Spark's Python processes: files in, rows of all tables out, as Arrow batches.

A row of `READ` is about one thing: a file, a document (`head`), a snapshot (`made`), or a row of one of the tables; all
other structs of it are null. So a document is parsed once. A document's head comes after its rows, and rows without it
are not taken over: a document that fails half-way leaves nothing. Nothing that a document holds may fail the job: it is
rejected with the reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby, islice
from typing import Any
from uuid import uuid4

import pyarrow as pa

from rmqlb.errors import DocumentError
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.pipeline.arrow import Batches, arrow_schema
from rmqlb.pipeline.ingest.document_ids import (
    FileDocument,
    check_day,
    cluster_name,
    digest,
    last_day,
    reason_of,
    snapshot_id,
)
from rmqlb.pipeline.ingest.fleet_rows import weight
from rmqlb.pipeline.ingest.input_files import PathLabels, path_labels
from rmqlb.pipeline.ingest.snapshot_rows import rows_of
from rmqlb.pipeline.schemas import FILES, FLEET, INGESTED, KEY, Table, columns, struct
from rmqlb.sources.dump import LARGEST_FILE, Document, merge, split_documents
from rmqlb.sources.formats.limits import too_large

INPUTS = columns("path string, length bigint, modified timestamp, content binary")
"""A file: `content` null when the file is one of this machine's, which the process opens itself."""

_PIECE = columns(
    "file string, position int, hash string, cluster string, date date, topic string, group string, body binary"
)
PIECES = Table("pieces", {"snapshot": "string", **_PIECE}, ("date",))
"""The documents of which pieces are made, as they were read: when more come to a folder, all are merged anew. `cluster`
and `date` are what the path or the option tells, `topic` and `group` what the path names."""

HEAD = columns(
    "file string, position int, documents int, hash string, bytes bigint, outcome string, reason string, kind string, "
    "takenAt timestamp, topics int, groups int"
)
"""A document: the so many-th (`position`) of its file's `documents`. `outcome`: read or quarantined; the latter has a
`kind` only where it failed half-way, so that there are rows of it."""

_MADE = columns("topics int, groups int, reason string")
"""How many topics and groups a snapshot announces; `reason` when its pieces cannot be merged."""

_FILE = {**FILES.columns, "isRead": "boolean"}
"""A file after its documents; one that cannot be opened (`isRead` false) is tried again another time."""

ROWS = tuple(table for table in INGESTED if table.name != "documents")
READ = {
    "doc": "string",
    **KEY,
    "file": struct(_FILE),
    "head": struct(HEAD),
    "made": struct(_MADE),
    "piece": struct(_PIECE),
    **{table.name: struct({name: kind for name, kind in table.columns.items() if name not in KEY}) for table in ROWS},
}
READ_DOCUMENT, QUARANTINED = "read", "quarantined"
_SLICE, _BYTES = 16_384, 16 << 20
_Key = Mapping[str, Any]


def read_files(cluster: str | None, version: str, batches: Batches) -> Batches:
    """`INPUTS` → `READ`, for `mapInArrow`.

    `cluster` is what the user calls that of all documents, `version` that of rmqlb.
    """
    out = _Out()
    for batch in batches:
        for given in batch.to_pylist():
            labels = path_labels(given["path"])
            if cluster is not None:
                labels = replace(labels, cluster=cluster)
            yield from out.in_bulk(_file(out, given, labels, {"cluster": cluster, "version": version}))
    yield from out.rest()


def merge_pieces(batches: Batches) -> Batches:
    """`PIECES`, those of one snapshot next to one another and in order, → `READ`, for `mapInArrow`."""
    out = _Out()
    rows = (row for batch in batches for row in batch.to_pylist())
    for snapshot, pieces in groupby(rows, key=lambda row: row["snapshot"]):
        yield from out.in_bulk(_merged(out, snapshot, list(pieces)))
    yield from out.rest()


def _file(out: _Out, given: Mapping[str, Any], labels: PathLabels, read_as: Mapping[str, Any]) -> Batches:
    path, content = given["path"], given["content"]
    counts = {"documents": 1, "quarantined": 0}
    try:
        content = _content(path) if content is None else content
        bodies = split_documents(content, path)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other files are read
        hash_ = None if content is None else digest(labels.names, content)
        head = {"file": path, "position": 1, "documents": 1, "hash": hash_, "bytes": given["length"]}
        yield _rejected(out, head, error, counts)
    else:
        counts["documents"] = len(bodies)
        for position, body in enumerate(bodies, 1):
            yield from _document(out, FileDocument(path, position, len(bodies), body, labels), counts)
    file = {"file": path, "length": given["length"], "modified": given["modified"], **read_as, **counts}
    yield out.one("file", {}, {**file, "isRead": content is not None})


def _rejected(out: _Out, head: Mapping[str, Any], error: Exception, counts: dict[str, int]) -> pa.RecordBatch:
    """The head of a document that cannot be read, which is counted."""
    counts["quarantined"] += 1
    said = {"outcome": QUARANTINED, "reason": reason_of(error)}
    return out.one("head", {"doc": uuid4().hex}, {**head, **said})


def _content(path: str) -> bytes:
    """A file of this machine."""
    try:
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):  # a pipe that nobody writes to would keep the job for ever
            raise DocumentError(f"{path} is no regular file")
        if state.st_size > LARGEST_FILE:
            raise too_large(path, LARGEST_FILE)
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise too_large(path, LARGEST_FILE)
    return content


def _document(out: _Out, given: FileDocument, counts: dict[str, int]) -> Batches:
    hash_, doc, labels = given.hash, uuid4().hex, given.labels
    place = {"file": given.file, "position": given.position, "hash": hash_}
    head: dict[str, Any] = {**place, "documents": given.documents, "bytes": len(given.body)}
    kind = None
    try:
        read = given.read()
        day = check_day(labels.date if read.taken_at is None else read.taken_at.date(), last_day(), given.file)
        ids = {"cluster": cluster_name(labels, read), "snapshot": snapshot_id(read, hash_, labels)}
        key = {"doc": doc, "date": day, **ids}
        # Pieces are merged later; here they are only tried, so that a bad one is rejected by itself.
        for batch in _rows(out, key, read.snapshot):
            if read.kind == "snapshot":
                kind = read.kind
                yield batch
        if read.kind == "snapshot":
            yield out.one("made", key, _counts(read))
        else:
            told = {name: getattr(labels, name) for name in ("cluster", "date", "topic", "group")}
            yield out.one("piece", key, {**place, **told, "body": given.body})
    except Exception as error:  # noqa: BLE001 - whatever it is, the other documents are read
        yield _rejected(out, {**head, "kind": kind}, error, counts)
        return
    yield out.one("head", key, {**head, **_said(read)})


def _said(read: Document) -> dict[str, Any]:
    return {"outcome": READ_DOCUMENT, "kind": read.kind, "takenAt": read.taken_at, **_counts(read)}


def _counts(read: Document) -> dict[str, int]:
    return {"topics": len(read.snapshot.routes), "groups": len(read.snapshot.groups)}


def _merged(out: _Out, snapshot: str, rows: list[dict[str, Any]]) -> Batches:
    folder = path_labels(rows[0]["file"]).folder
    key: dict[str, Any] = {"doc": snapshot, "snapshot": snapshot, "date": rows[0]["date"]}
    heads: list[dict[str, Any]] = []

    def documents() -> Iterator[Document]:
        for row in rows:
            labels = PathLabels(folder, row["cluster"], row["date"], row["topic"], row["group"])
            read = FileDocument(row["file"], row["position"], 1, row["body"], labels).read()
            heads.append({**{name: row[name] for name in ("file", "position", "hash")}, **_said(read)})
            yield read

    try:
        made = merge(documents(), folder)
        key["cluster"] = cluster_name(PathLabels(folder, rows[0]["cluster"]), made)
        yield from _rows(out, key, made.snapshot)
        yield from (out.one("head", key, head) for head in heads)
        yield out.one("made", key, _counts(made))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other snapshots are made
        yield out.one("made", key, {"reason": reason_of(error)})


def _rows(out: _Out, key: _Key, snapshot: ClusterSnapshot) -> Batches:
    for table, rows in rows_of(snapshot):
        parts = _by_weight(rows) if table is FLEET else iter(lambda: list(islice(rows, _SLICE)), [])  # noqa: B023
        for some in parts:
            yield out.batch(table.name, key, some)


def _by_weight(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of FLEET in slices: a large group is one by itself."""
    some: list[tuple[Any, ...]] = []
    holds = 0
    for row in rows:
        some.append(row)
        holds += weight(row)
        if holds >= _SLICE:
            yield some
            some, holds = [], 0
    if some:
        yield some


class _Out:
    """Rows as batches of `READ`, small ones in bulk: a batch costs as much as some hundred rows."""

    def __init__(self) -> None:
        self._schema = arrow_schema(READ)
        self._waiting: list[pa.RecordBatch] = []

    def one(self, column: str, key: _Key, values: Mapping[str, Any]) -> pa.RecordBatch:
        """One row that is about a struct other than a table's."""
        names = [field.name for field in self._schema.field(column).type]
        return self.batch(column, key, [tuple(values.get(name) for name in names)])

    def batch(self, column: str, key: _Key, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """Rows of one struct."""
        arrays = []
        for field in self._schema:
            if field.name == column:
                fields = list(field.type)
                values = [pa.array(one, f.type) for one, f in zip(zip(*rows, strict=True), fields, strict=True)]
                arrays.append(pa.StructArray.from_arrays(values, fields=fields))
            elif key.get(field.name) is not None:
                arrays.append(pa.array([key[field.name]] * len(rows), field.type))
            else:
                arrays.append(pa.nulls(len(rows), field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def in_bulk(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """The batches, small ones put together."""
        for batch in batches:
            self._waiting.append(batch)
            rows, size = (sum(getattr(one, name) for one in self._waiting) for name in ("num_rows", "nbytes"))
            if rows >= _SLICE or size >= _BYTES or len(self._waiting) >= 256:
                yield from self.rest()

    def rest(self) -> Batches:
        """What still waits."""
        waiting, self._waiting = self._waiting, []
        yield from pa.Table.from_batches(waiting, self._schema).combine_chunks().to_batches()
