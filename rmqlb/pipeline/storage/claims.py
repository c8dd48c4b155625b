"""One writer at a time on a storage that has no locks, HDFS and object stores alike.

Who wants to write puts a file of its own beside those of others, and then looks: if there is another that lives, it
takes its own back and is refused. Since a file that was written is seen by whoever looks later, on all these storages,
two never go on together; when both look at the same moment, both are refused. No storage has to have a rename or a
write that fails when a file is there. A claim lives while its file is written anew every 30 seconds, by the storage's
own clock, or, on the machine that made it, while its process does.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from msgspec import DecodeError, Struct, json

from rmqlb.decoding import decode
from rmqlb.errors import UsageError
from rmqlb.pipeline.storage.files import SmallFile, SmallFiles

BEAT_SECONDS = 30.0
LIVES_SECONDS = 180.0
_SCHEMA = "rmqlb/claim"


class Claim(Struct, frozen=True, rename="camel"):
    """Who writes: a process, and when it was started; of equal `place` are processes whose numbers mean the same."""

    host: str
    process: int
    started: str
    place: str
    schema: str = _SCHEMA


class Claimed:
    """A claim that is held, until another finds that it no longer lives."""

    def __init__(self, files: SmallFiles, name: str) -> None:
        self._files = files
        self.name = name

    def must_hold(self, where: str) -> None:
        """A UsageError when another has taken over; what was written is then not published."""
        if not self._files.has(self.name):
            raise UsageError(
                f"{where}: another process has taken over, as this one gave no sign for {LIVES_SECONDS:.0f} s",
                hint="nothing of this run is shown; run it again",
                code="warehouse-busy",
            )


@contextmanager
def claimed(files: SmallFiles, where: str, *, beat: float = BEAT_SECONDS) -> Iterator[Claimed]:
    """Be the only writer while the block lasts; a UsageError when another writes or begins to at the same moment."""
    name, text = f"{uuid4().hex}.json", json.encode(_ours()).decode()
    files.write(name, text)
    ended = threading.Event()
    try:
        _must_be_alone(files, name, where)
        arguments = (files, name, text, ended, beat)
        thread = threading.Thread(target=_beat, args=arguments, name="rmqlb-claim", daemon=True)
        thread.start()
        try:
            yield Claimed(files, name)
        finally:
            ended.set()
            thread.join()
    finally:
        with suppress(Exception):  # a session that has ended: the claim ends by itself
            files.remove(name)


def _must_be_alone(files: SmallFiles, name: str, where: str) -> None:
    found = files.all()
    now = max((file.written_ms for file in found if file.name == name), default=0)
    for other in found:
        if other.name == name:
            continue
        claim = _read(other)
        silent = (now - other.written_ms) / 1000
        if silent > LIVES_SECONDS or (claim is not None and _has_ended(claim)):
            files.remove(other.name)
            continue
        who = "another process" if claim is None else f"process {claim.process} on {claim.host}"
        rest = max(LIVES_SECONDS - silent, 1)
        raise UsageError(
            f"another process is writing to {where}: {who}",
            hint=f"wait for it, or use another --warehouse; if it was killed, it is forgotten in {rest:.0f} s",
            code="warehouse-busy",
        )


def _beat(files: SmallFiles, name: str, text: str, ended: threading.Event, seconds: float) -> None:
    """Write the claim anew again and again, unless somebody has found it dead."""
    while not ended.wait(seconds):
        try:
            if not files.has(name):
                return
            files.write(name, text)
        except Exception:  # noqa: BLE001, S112 - a storage that is away for a moment; `must_hold` has the last word
            continue


def _ours() -> Claim:
    return Claim(socket.gethostname(), os.getpid(), _started(os.getpid()), _place())


def _read(file: SmallFile) -> Claim | None:
    with suppress(DecodeError):
        claim = decode(file.text.encode(), Claim)
        return claim if claim.schema == _SCHEMA else None
    return None


def _has_ended(claim: Claim) -> bool:
    """It is one of this machine's processes, and no longer there."""
    return bool(claim.place) and claim.place == _place() and claim.started != _started(claim.process)


def _place() -> str:
    """By what this machine, since its last start, is distinguished from all others; empty where nothing tells."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return f"{socket.gethostname()} {file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _started(process: int) -> str:
    """When a process was started, in the kernel's ticks; empty when there is none."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            after_name = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after_name[0] == "Z" else after_name[19]
