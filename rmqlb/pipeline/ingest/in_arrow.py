"""The part of ingest that runs in Spark's Python processes: files in, rows of all tables out, as Arrow batches.

Rules of this file:
- A row of `READ` is about one thing: a document (`head`), a snapshot (`made`), or a row of one of the tables; all
  other structs of it are null. So a document is parsed once, for all tables.
- A document's head comes after its rows: rows whose document has no head that was read are not taken over. So a
  document that fails half-way leaves nothing.
- Nothing that a document holds may fail the job: it is put aside with the reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rmqlb.errors import DocumentError
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.pipeline.arrow_types import arrow_schema
from rmqlb.pipeline.ingest.documents import (
    LARGEST_FILE,
    Read,
    check_cluster,
    cluster_of,
    digest,
    read_document,
    reason_of,
    snapshot_id,
    split,
    timeless_id,
    unpacked,
)
from rmqlb.pipeline.ingest.files import Told, told_by
from rmqlb.pipeline.ingest.rows import rows_of
from rmqlb.pipeline.schemas import INGESTED, KEY, Table, ddl
from rmqlb.sources.dump.pieces import Pieces
from rmqlb.sources.formats.limits import too_large

if TYPE_CHECKING:
    import pyarrow as pa

FILES = {"path": "string", "length": "bigint", "content": "binary"}
"""A file: `content` null when the file is one of this machine's, which the process opens itself."""

PIECES = Table(
    "pieces",
    {
        "snapshot": "string",
        "file": "string",
        "position": "int",
        "hash": "string",
        "cluster": "string",
        "date": "date",
        "topic": "string",
        "group": "string",
        "body": "binary",
    },
)
"""The documents of which pieces are made, as they were read: when more come to a folder, all are put together anew.
`cluster` and `date` are what the path or the option tells, `topic` and `group` what the path names."""

HEAD = {
    "file": "string",
    "position": "int",
    "documents": "int",
    "hash": "string",
    "bytes": "bigint",
    "outcome": "string",
    "reason": "string",
    "kind": "string",
    "takenAt": "timestamp",
    "topics": "int",
    "groups": "int",
}
"""A document: the so many-th (`position`) of its file's `documents`. `outcome`: read, known or quarantined."""

MADE = {"topics": "int", "groups": "int", "reason": "string"}
"""How many topics and groups a snapshot announces; `reason` when its pieces cannot be put together."""

ROWS = tuple(table for table in INGESTED if table.name != "documents")
READ = {
    "doc": "string",
    **KEY,
    "head": f"struct<{ddl(HEAD)}>",
    "made": f"struct<{ddl(MADE)}>",
    "piece": f"struct<{ddl({name: kind for name, kind in PIECES.columns.items() if name != 'snapshot'})}>",
    **{
        table.name: f"struct<{ddl({name: kind for name, kind in table.columns.items() if name not in KEY})}>"
        for table in ROWS
    },
}
READ_DOCUMENT, KNOWN, QUARANTINED = "read", "known", "quarantined"
_SLICE = 16_384
_Key = Mapping[str, Any]
_Arrow = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


@dataclass(frozen=True)
class _Document:
    file: str
    position: int
    documents: int
    body: bytes
    told: Told

    @property
    def where(self) -> str:
        return self.file if self.documents == 1 else f"{self.file}, document {self.position}"

    @property
    def hash(self) -> str:
        return digest(self.told.names, self.body)


def read_files(cluster: str | None, known: frozenset[str]) -> _Arrow:
    """What `mapInArrow` calls: `FILES` in, `READ` out.

    Args:
        cluster: what the user calls the cluster of all documents, or None.
        known: `known_key` of the snapshots that the warehouse has; they are not read again.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _Out()
        for batch in batches:
            for path, length, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from out.gathered(_file(out, path, length, content, cluster, known))
        yield from out.rest()

    return run


def put_together() -> _Arrow:
    """What `mapInArrow` calls: `PIECES` in, those of one snapshot next to one another and in order; `READ` out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _Out()
        rows = (row for batch in batches for row in batch.to_pylist())
        for snapshot, pieces in groupby(rows, key=lambda row: row["snapshot"]):
            yield from out.gathered(_together(out, snapshot, list(pieces)))
        yield from out.rest()

    return run


def known_key(hash_: str, snapshot: str) -> str:
    """By what a document is known: its bytes, and the snapshot that they are."""
    return f"{hash_} {snapshot}"


def _file(
    out: _Out, path: str, length: int, content: bytes | None, cluster: str | None, known: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    told = told_by(path)
    if cluster is not None:
        told = replace(told, cluster=cluster)
    try:
        content = _content(path) if content is None else content
        bodies = split(unpacked(content, path))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other files are read
        hash_ = None if content is None else digest(told.names, content)
        head = {"file": path, "position": 1, "documents": 1, "hash": hash_, "bytes": length}
        yield out.one("head", {"doc": uuid4().hex}, {**head, "outcome": QUARANTINED, "reason": reason_of(error)})
        return
    for position, body in enumerate(bodies, 1):
        yield from _document(out, _Document(path, position, len(bodies), body, told), known)


def _content(path: str) -> bytes:
    """A file of this machine.

    Raises:
        DocumentError: it is a pipe, a socket or a device, cannot be read, or is too large.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe that nobody writes to would keep the job for ever
            raise DocumentError(f"{path} is no regular file")
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise too_large(path, LARGEST_FILE)
    return content


def _document(out: _Out, document: _Document, known: frozenset[str]) -> Iterator[pa.RecordBatch]:
    hash_, doc = document.hash, uuid4().hex
    head: dict[str, Any] = {
        "file": document.file,
        "position": document.position,
        "documents": document.documents,
        "hash": hash_,
        "bytes": len(document.body),
    }
    for snapshot in (hash_[:16], timeless_id(hash_, document.told)):
        if known_key(hash_, snapshot) in known:
            yield out.one("head", {"doc": doc, "snapshot": snapshot}, {**head, "outcome": KNOWN})
            return
    try:
        read = read_document(document.body, document.where, document.told)
        key = _key(doc, read, hash_, document.told)
        # Pieces are put together later; here they are only tried, so that a bad one is put aside by itself.
        for batch in _rows(out, key, read.snapshot):
            if read.pieces is None:
                yield batch
        yield out.one("piece" if read.pieces else "made", key, _piece(document) if read.pieces else _made(read))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other documents are read
        yield out.one("head", {"doc": doc}, {**head, "outcome": QUARANTINED, "reason": reason_of(error)})
        return
    yield out.one("head", key, {**head, **_said(read), "outcome": READ_DOCUMENT})


def _key(doc: str, read: Read, hash_: str, told: Told) -> _Key:
    day = told.date if read.taken_at is None else read.taken_at.date()
    cluster = check_cluster(told.cluster or cluster_of(read.snapshot))
    return {"doc": doc, "cluster": cluster, "date": day, "snapshot": snapshot_id(read, hash_, told)}


def _said(read: Read) -> dict[str, Any]:
    return {"kind": read.kind, "takenAt": read.taken_at, **_made(read)}


def _made(read: Read) -> dict[str, Any]:
    return {"topics": len(read.snapshot.routes), "groups": len(read.snapshot.groups)}


def _piece(document: _Document) -> dict[str, Any]:
    told = document.told
    return {
        "file": document.file,
        "position": document.position,
        "hash": document.hash,
        "cluster": told.cluster,
        "date": told.date,
        "topic": told.topic,
        "group": told.group,
        "body": document.body,
    }


def _together(out: _Out, snapshot: str, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    folder = told_by(rows[0]["file"]).folder
    key: dict[str, Any] = {"doc": snapshot, "snapshot": snapshot, "date": rows[0]["date"]}
    try:
        whole = Pieces(folder, Wanted())
        heads = []
        for row in rows:
            told = Told(folder, row["cluster"], row["date"], row["topic"], row["group"])
            read = read_document(row["body"], row["file"], told)
            if read.pieces is not None:
                whole.take(read.pieces)
            heads.append({**{name: row[name] for name in ("file", "position", "hash")}, **_said(read)})
        made = Read("pieces", whole.snapshot(), whole)
        key["cluster"] = check_cluster(rows[0]["cluster"] or cluster_of(made.snapshot))
        yield from _rows(out, key, made.snapshot)
        yield from (out.one("head", key, {**head, "outcome": READ_DOCUMENT}) for head in heads)
        yield out.one("made", key, _made(made))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other snapshots are made
        yield out.one("made", key, {"reason": reason_of(error)})


def _rows(out: _Out, key: _Key, snapshot: ClusterSnapshot) -> Iterator[pa.RecordBatch]:
    for table, rows in rows_of(snapshot):
        while some := list(islice(rows, _SLICE)):
            yield out.batch(table.name, key, some)


class _Out:
    """Rows as batches of `READ`, small ones gathered: a batch costs as much as some hundred rows."""

    def __init__(self) -> None:
        self._schema = arrow_schema(READ)
        self._waiting: list[pa.RecordBatch] = []

    def one(self, column: str, key: _Key, values: Mapping[str, Any]) -> pa.RecordBatch:
        """One row that is about a struct other than a table's."""
        names = [field.name for field in self._schema.field(column).type]
        return self.batch(column, key, [tuple(values.get(name) for name in names)])

    def batch(self, column: str, key: _Key, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        """Rows of one struct."""
        import pyarrow as pa

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

    def gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, small ones put together."""
        for batch in batches:
            self._waiting.append(batch)
            if sum(waiting.num_rows for waiting in self._waiting) >= _SLICE or len(self._waiting) >= 256:
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What still waits."""
        import pyarrow as pa

        waiting, self._waiting = self._waiting, []
        yield from pa.Table.from_batches(waiting, self._schema).combine_chunks().to_batches()
