"""A dump, from a file or stdin: read within bounds, unpacked, and handed to whoever understands its content."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from rmqlb.errors import DocumentError
from rmqlb.model.group import States
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, ClusterSnapshot, Wanted
from rmqlb.sources.dump.read_document import GZIP, read_document
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, too_large

STDIN = "-"
_CHUNK = 1 << 20


class DumpSource:
    """A dump in a file or on stdin."""

    def __init__(self, path: str, *, max_bytes: int = DEFAULT_LIMIT, stdin: BinaryIO | None = None) -> None:
        self._path = path  # the file, or `-` for stdin
        self._max_bytes = max_bytes
        self._stdin = stdin  # where `-` reads from; the process's own by default
        self._where = "stdin" if path == STDIN else path

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        progress(self._where, 0, 0)
        topic = wanted.topics[0] if wanted.topics is not None and len(wanted.topics) == 1 else None
        body = self._body()
        return read_document(body, self._where, wanted, topic=topic, group=wanted.group, limit=self._max_bytes).snapshot

    def ask_offsets(self, *_: object) -> States | None:  # a dump holds what it holds
        return None

    def ask_assignments(self, *_: object) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        return None

    def ask_stacks(self, *_: object, **__: object) -> Mapping[str, tuple[str, ...]]:
        return {}

    def ask_message_type(self, *_: object) -> None:
        return None

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
