"""`record --to DIR`: a snapshot of each look in a directory that the pipeline reads.

Rules of this file:
- A snapshot is `date=YYYY-MM-DD/HHMMSSZ.json.gz`, written whole or not at all; `_looks.jsonl` has a line per look, and
  the pipeline skips it for its name.
- What was written before stays, so that a recording that was ended goes on in the same directory.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from datetime import UTC, datetime

from msgspec.structs import replace

from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.snapshot_text import snapshot_text
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.common.watch import wait_for_next
from rmqlb.cli.record.looking import CONVERGED, heeding_an_end, must_be_live, now_text, schedule
from rmqlb.cli.record.options import DirectoryOptions, WatchedOptions
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.recording import TakenSnapshot, TakenSnapshots
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.sources.atomic_file import new_file
from rmqlb.views.formats.machine import as_json_lines
from rmqlb.views.record.snapshots import snapshots_report

LOOKS = "_looks.jsonl"


def write_snapshots(
    source: SourceOptions, watched: WatchedOptions, directory: DirectoryOptions, terminal: Terminal
) -> None:
    """Look until the time is over or Ctrl-C, and say what was written."""
    must_be_live(source)
    if watched.until == CONVERGED:
        raise UsageError("--until converged is of one group; --to writes snapshots of several", hint="give --for 24h")
    when = schedule(watched, "5m", "24h")
    everything = Everything(
        tuple(watched.topic or ()), tuple(watched.group or ()), of_groups=bool(watched.group) and not watched.topic
    )
    writer = _Writer(directory.to or "", terminal)
    read, wanted = Reader(source, terminal), Wanted(everything=everything, evidence=directory.evidence, spaced=True)
    first, began = None, time.monotonic()
    with heeding_an_end():
        try:
            while True:
                look_began = time.monotonic()
                try:
                    snapshot = read(wanted)
                    writer.write(snapshot)
                    first = first or snapshot
                except (DataError, EndpointError) as error:
                    if first is None and not writer.has_earlier:
                        raise
                    writer.note(TakenSnapshot(now_text(), None, error=error.message))
                terminal.repeating = True
                left, wait = when.left_s(began), when.wait_s(look_began)
                if left < wait:
                    break
                wait_for_next(wait)
        except KeyboardInterrupt:
            terminal.say("interrupted")
    taken = TakenSnapshots(writer.folder, writer.written, writer.failed, tuple(writer.taken))
    if terminal.format != "jsonl":
        empty = ClusterSnapshot("directory", writer.folder)
        terminal.show(snapshots_report(taken), replace(first or empty, unread=()), ())


class _Writer:
    """A directory to which snapshots go (raises UsageError: nothing can be written there)."""

    def __init__(self, folder: str, terminal: Terminal) -> None:
        self.folder, self._terminal = folder, terminal
        self.taken: list[TakenSnapshot] = []
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, LOOKS), "a+b") as looks:
                self.has_earlier = looks.tell() > 0
                if self.has_earlier:  # a line that a kill cut short stays one of its own
                    looks.seek(-1, os.SEEK_END)
                    looks.write(b"" if looks.read(1) == b"\n" else b"\n")
        except (OSError, ValueError) as error:
            raise self._cannot(error) from None

    @property
    def written(self) -> int:
        return sum(each.file is not None for each in self.taken)

    @property
    def failed(self) -> int:
        return len(self.taken) - self.written

    def write(self, snapshot: ClusterSnapshot) -> None:
        """The snapshot as a file of its own."""
        at = snapshot.taken_at or datetime.now(UTC)
        name = self._free(os.path.join(f"date={at:%Y-%m-%d}", f"{at:%H%M%S}Z"))
        text = snapshot_text(snapshot, tuple(source_findings(snapshot)), "record")
        path = os.path.join(self.folder, name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with new_file(path) as file:
                file.write(gzip.compress(text.encode(), mtime=0))
        except (OSError, ValueError) as error:
            raise self._cannot(error) from None
        unread = len(snapshot.unread)
        self.note(TakenSnapshot(f"{at:%Y-%m-%dT%H:%M:%SZ}", name, len(snapshot.routes), len(snapshot.groups), unread))

    def _free(self, name: str) -> str:
        """The file's name, with a number when there is one already of that second."""
        taken, number = f"{name}.json.gz", 1
        while os.path.exists(os.path.join(self.folder, taken)):
            number += 1
            taken = f"{name}_{number}.json.gz"
        return taken

    def note(self, look: TakenSnapshot) -> None:
        """A line of the look, in the directory and where people and scripts see it."""
        self.taken.append(look)
        line = as_json_lines([look])
        try:
            with open(os.path.join(self.folder, LOOKS), "a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise self._cannot(error) from None
        if self._terminal.format == "jsonl":
            self._terminal.write(line)
            sys.stdout.flush()
        elif look.error is not None:
            self._terminal.say(f"{look.at}: the look failed: {look.error}")

    def _cannot(self, error: Exception) -> UsageError:
        reason = getattr(error, "strerror", None) or error
        return UsageError(f"--to {self.folder}: {reason}", code="cannot-write")
