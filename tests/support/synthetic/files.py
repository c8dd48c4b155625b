"""A fleet's files: one a night, or one a cluster with a line a night; damaged documents beside them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import date
from enum import StrEnum
from typing import IO

from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.sources.atomic_file import new_file
from tests.support.synthetic.summary import DamagedDocument

_LEVEL = 4


class Damage(StrEnum):
    """What is wrong with a document."""

    TRUNCATED_GZIP = "truncated-gzip"
    BROKEN_JSON = "broken-json"
    FUTURE_FORMAT = "future-format"
    MISSING_FIELD = "missing-field"
    EMPTY = "empty"


class FleetFiles:
    """The files of a fleet, below a folder, in a layout of `FleetShape`; counts them, their bytes and the damaged."""

    def __init__(self, folder: str, layout: str) -> None:
        self._folder, self._layout = folder, layout
        self._cluster = ""
        self._lines: IO[bytes] | None = None
        self._position = 0
        self.files = self.bytes = 0
        self.bad: list[DamagedDocument] = []

    @contextmanager
    def of(self, cluster: str) -> Iterator[None]:
        """What is added within belongs to this cluster."""
        self._cluster = f"cluster={cluster}"
        if self._layout != "jsonl":
            yield
            return
        with self._new_file(self._lines_path) as self._lines:
            self._position = 0
            yield

    def add(self, day: date, body: bytes) -> None:
        """A night's snapshot."""
        if self._lines:
            self._add_line(self._lines, body)
        else:
            packed = gzip.compress(body, _LEVEL, mtime=0) if self._layout == "json.gz" else body
            self._add_file(f"{self._night(day)}/snapshot.{self._layout}", packed)

    def add_damaged(self, day: date, body: bytes, number: int) -> None:
        """The so many-th damaged document, made of a good one: a line of its own where a line can be so damaged."""
        damage = list(Damage)[number % len(Damage)]
        body, ending = _damaged(body, damage)
        if self._lines and ending == "json" and body:
            self._add_line(self._lines, body)
            self.bad.append(DamagedDocument(self._lines_path, self._position, damage))
            return
        path = f"{self._night(day)}/damaged-{number:04d}.{ending}"
        self._add_file(path, body)
        self.bad.append(DamagedDocument(path, 1, damage))

    @property
    def _lines_path(self) -> str:
        return f"{self._cluster}/snapshots.jsonl"

    def _night(self, day: date) -> str:
        return f"{self._cluster}/date={day.isoformat()}"

    def _add_line(self, lines: IO[bytes], body: bytes) -> None:
        self.bytes += lines.write(body + b"\n")
        self._position += 1

    def _add_file(self, path: str, body: bytes) -> None:
        with self._new_file(path) as file:
            self.bytes += file.write(body)

    def _new_file(self, path: str) -> AbstractContextManager[IO[bytes]]:
        whole = os.path.join(self._folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        self.files += 1
        return new_file(whole, durable=False)


def _damaged(body: bytes, damage: Damage) -> tuple[bytes, str]:
    """A snapshot's JSON without what makes it readable, and the ending of a file that holds it."""
    if damage is Damage.EMPTY:
        return b"", "json"
    if damage is Damage.TRUNCATED_GZIP:
        packed = gzip.compress(body, mtime=0)
        return packed[: len(packed) // 2], "json.gz"
    if damage is Damage.BROKEN_JSON:
        return body[: len(body) * 2 // 3], "json"
    if damage is Damage.FUTURE_FORMAT:
        return body.replace(f'"formatVersion":"{FORMAT_VERSION}"'.encode(), b'"formatVersion":"99.0"', 1), "json"
    return body.replace(b'"brokerName":', b'"broker":', 1), "json"
