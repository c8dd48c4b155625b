"""A fleet's files: one a night, or one a cluster with a line a night; damaged documents beside them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from typing import IO

import msgspec

from rmqlb.pipeline.made_up.damage import Damage, damage_of, damaged

_LEVEL = 4


class BadFile(msgspec.Struct, frozen=True, rename="camel"):
    """A damaged document.

    Attributes:
        file: below the fleet's folder.
        position: the document's place in the file, from 1.
        damage: what is wrong with it.
    """

    file: str
    position: int
    damage: Damage


class FleetFiles:
    """The files of a fleet.

    Args:
        folder: all of them are below it.
        layout: as in `FleetShape`.

    Attributes:
        files: how many were written.
        bytes: their size.
        bad: the damaged documents.
    """

    def __init__(self, folder: str, layout: str) -> None:
        self._folder, self._layout = folder, layout
        self._cluster = ""
        self._lines: IO[bytes] | None = None
        self._position = 0
        self.files = self.bytes = 0
        self.bad: list[BadFile] = []

    @contextmanager
    def of(self, cluster: str) -> Iterator[None]:
        """What is added within belongs to this cluster."""
        self._cluster = f"cluster={cluster}"
        if self._layout != "jsonl":
            yield
            return
        with self._opened(self._lines_path) as self._lines:
            self._position = 0
            yield

    def add(self, day: date, body: bytes) -> None:
        """A night's snapshot."""
        if self._lines:
            self._add_line(self._lines, body)
        else:
            packed = _packed(body) if self._layout == "json.gz" else body
            self._put(f"{self._night(day)}/snapshot.{self._layout}", packed)

    def add_damaged(self, day: date, body: bytes, number: int) -> None:
        """The so many-th damaged document, made of a good one: a line of its own where a line can be so damaged."""
        damage = damage_of(number)
        body, ending = damaged(body, damage)
        if self._lines and ending == "json" and body:
            self._add_line(self._lines, body)
            self.bad.append(BadFile(self._lines_path, self._position, damage))
            return
        path = f"{self._night(day)}/damaged-{number:04d}.{ending}"
        self._put(path, body)
        self.bad.append(BadFile(path, 1, damage))

    @property
    def _lines_path(self) -> str:
        return f"{self._cluster}/snapshots.jsonl"

    def _night(self, day: date) -> str:
        return f"{self._cluster}/date={day.isoformat()}"

    def _add_line(self, lines: IO[bytes], body: bytes) -> None:
        lines.write(body + b"\n")
        self._position += 1

    def _put(self, path: str, body: bytes) -> None:
        with self._opened(path) as file:
            file.write(body)

    @contextmanager
    def _opened(self, path: str) -> Iterator[IO[bytes]]:
        """A file that appears when the block ends well."""
        whole = os.path.join(self._folder, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        aside = f"{whole}.part"
        try:
            with open(aside, "wb") as file:
                yield file
            self.files += 1
            self.bytes += os.path.getsize(aside)
            os.replace(aside, whole)
        finally:
            if os.path.exists(aside):
                os.unlink(aside)


def _packed(body: bytes) -> bytes:
    packed = BytesIO()
    with gzip.GzipFile("", "wb", _LEVEL, packed, mtime=0) as file:
        file.write(body)
    return packed.getvalue()
