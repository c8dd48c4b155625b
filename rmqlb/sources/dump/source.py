"""A dump, from a file or stdin: read within bounds, unpacked, and handed to whoever understands its content."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from rmqlb.errors import DocumentError
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dump.read_document import GZIP, read_document
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, too_large
from rmqlb.sources.source import NothingToAsk

STDIN = "-"
_CHUNK = 1 << 20


class DumpSource(NothingToAsk):
    """A dump in a file or on stdin."""

    def __init__(self, path: str, *, max_bytes: int = DEFAULT_LIMIT, stdin: BinaryIO | None = None) -> None:
        self._path = path  # the file, or `-` for stdin
        self._max_bytes = max_bytes
        self._stdin = stdin  # where `-` reads from; the process's own by default
        self._where = "stdin" if path == STDIN else path

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        progress(self._where, 0, 0)
        of = {"topic": wanted.only_topic, "group": wanted.group}
        return read_document(self._body(), self._where, wanted, **of, limit=self._max_bytes).snapshot

    def _body(self) -> bytes:
        body = collect(self._chunks(), self._max_bytes, self._where)
        return inflate(body, self._max_bytes, self._where) if body.startswith(GZIP) else body

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
                f"cannot read {self._where}: {reason}",
                hint="-s takes a URL, a file, or - for stdin",
                code="cannot-read",
            ) from None


def _own_stdin() -> BinaryIO:
    if sys.stdin is None:
        raise ValueError("it is closed")
    return sys.stdin.buffer


def _read(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
