"""A dump, from a file or stdin: read within bounds, unpacked, and handed to whoever understands its content."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from rmqlb.errors import DocumentError
from rmqlb.model.group import States
from rmqlb.model.snapshot import ClusterSnapshot, OffsetQuestion, Wanted
from rmqlb.sources.formats import snapshot_file
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, require_few_values, too_large
from rmqlb.sources.source import Progress, no_progress

STDIN = "-"
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


class DumpSource:
    """A dump in a file or on stdin.

    Args:
        path: the file, or `-` for stdin.
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
        progress(self._where, 0, 0)
        body = self._body()
        if not body or body.isspace():
            raise DocumentError(f"{self._where} is empty", hint="expected a snapshot, a route or a Dashboard response")
        heading = snapshot_file.heading(body)
        if heading is not None:
            return snapshot_file.read_body(body, heading, self._where, wanted)
        self._require_half(body)
        from rmqlb.sources.dump.recognise import recognise

        return recognise(body, self._where, wanted)

    def ask_offsets(
        self,
        group: str,  # noqa: ARG002 - a dump holds what it holds
        questions: Sequence[OffsetQuestion],  # noqa: ARG002
        progress: Progress = no_progress,  # noqa: ARG002
    ) -> States | None:
        """None: a dump answers no questions."""
        return None

    def _require_half(self, body: bytes) -> None:
        """What may be anything is built whole, keys and all, and takes twice the memory of a snapshot."""
        limit = self._max_bytes // 2
        if len(body) > limit:
            raise too_large(self._where, limit, "and not one whole snapshot in JSON")
        require_few_values(body, self._where, limit)

    def _body(self) -> bytes:
        body = collect(self._chunks(), self._max_bytes, self._where)
        if body.startswith(_GZIP):
            body = inflate(body, self._max_bytes, self._where)
        require_few_values(body, self._where, self._max_bytes)
        return body

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
