"""A dump, from a file or stdin, recognised by its content and never by its name.

Read are rmqlb's own snapshot (JSON or YAML), what `mqadmin topicRoute` prints (JSON or the table of `-l`), saved
Dashboard responses, NameServer and broker bodies, and a mapping of topics to routes. Several JSON documents may follow
one another in one file; together they make one snapshot.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources import snapshot_file
from rmqlb.sources.bounded import DEFAULT_LIMIT, collect, inflate, too_large
from rmqlb.sources.documents import parse_documents
from rmqlb.sources.mqadmin_text import TABLE_START, failed_command, read_table, without_noise
from rmqlb.sources.pieces import Pieces
from rmqlb.sources.source import Progress, no_progress

STDIN = "-"
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


class DumpSource:
    """A dump in a file or on stdin.

    Args:
        path: the file, or `-` for stdin.
        max_bytes: the largest body, unpacked, that is read.
        stdin: where `-` reads from; the process's own by default.
    """

    def __init__(self, path: str, *, max_bytes: int = DEFAULT_LIMIT, stdin: BinaryIO | None = None) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._stdin = stdin
        self._where = "stdin" if path == STDIN else path

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        """The wanted parts of the dump.

        Raises:
            DocumentError: the dump cannot be read or understood; the message says where in it.
        """
        body = self._body()
        if not body.strip():
            raise DocumentError(f"{self._where} is empty", hint="expected a snapshot, a route or a Dashboard response")
        if snapshot_file.is_snapshot(body):
            return snapshot_file.read_body(body, self._where, wanted)
        return self._recognise(body, wanted)

    def _body(self) -> bytes:
        body = collect(self._chunks(), self._max_bytes, self._where)
        return inflate(body, self._max_bytes, self._where) if body.startswith(_GZIP) else body

    def _chunks(self) -> Iterator[bytes]:
        try:
            if self._path == STDIN:
                yield from _read(self._stdin or _own_stdin())
                return
            if os.path.isfile(self._path) and os.path.getsize(self._path) > self._max_bytes:
                raise too_large(self._where, self._max_bytes)
            with open(self._path, "rb") as file:
                yield from _read(file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DocumentError(
                f"cannot read {self._where}: {reason}", hint="-s takes a URL, a file, or - for stdin"
            ) from None

    def _recognise(self, body: bytes, wanted: Wanted) -> ClusterSnapshot:
        text = self._text(body)
        start = text.lstrip()
        reason = failed_command(start) if start[:1] not in ("{", "[") else None
        if reason is not None:
            raise DataError(f"{self._where} holds a failed mqadmin command: {reason}")
        pieces = Pieces(self._where, wanted)
        if start.startswith(TABLE_START):
            pieces.add_anonymous_route(read_table(text, self._where), self._where)
        elif start[:1] in ("{", "["):
            self._add_json(text.encode(), pieces)
        else:
            return self._yaml(text, wanted)
        return pieces.snapshot()

    def _text(self, body: bytes) -> str:
        try:
            return without_noise(body.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DocumentError(f"{self._where}, byte {error.start}: it is not UTF-8 text") from None

    def _add_json(self, body: bytes, pieces: Pieces) -> None:
        documents, notes = parse_documents(body, self._where)
        if notes:
            pieces.notes.append(f"read as RocketMQ's JSON dialect: {', '.join(notes)}")
        for number, document in enumerate(documents, 1):
            pieces.add(document, self._where if len(documents) == 1 else f"{self._where}, document {number}")

    def _yaml(self, text: str, wanted: Wanted) -> ClusterSnapshot:
        from rmqlb.sources.yaml_text import read_yaml

        value = read_yaml(text, self._where)
        if not isinstance(value, dict):
            raise DocumentError(
                f"{self._where}: neither JSON nor a YAML mapping, but {_kind(value)}",
                hint="expected a snapshot, a route or a Dashboard response",
            )
        if value.get("schema") == snapshot_file.SCHEMA:
            return snapshot_file.read_value(value, self._where, wanted)
        pieces = Pieces(self._where, wanted)
        pieces.add(value, self._where)
        return pieces.snapshot()


def _own_stdin() -> BinaryIO:
    if sys.stdin is None:
        raise ValueError("it is closed")
    return sys.stdin.buffer


def _read(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _kind(value: object) -> str:
    return {str: "plain text", list: "a YAML list", type(None): "nothing"}.get(type(value), type(value).__name__)
