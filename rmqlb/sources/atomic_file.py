"""A file that is written whole or not at all: beside its place, then renamed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def replace_file(path: str, text: str, *, mode: int | None = None) -> None:
    """Put a text in a file's place, as `new_file` does; ValueError when the path holds what no path can."""
    with new_file(path, mode=mode) as file:
        file.write(text.encode())


@contextmanager
def new_file(path: str, *, mode: int | None = None, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of the one at `path` when the block ends well (raises ValueError).

    An interrupt leaves the old file or the new one, and nothing beside it. A symbolic link is replaced, not followed.
    The mode None is that of the file replaced, or the umask's; a durable file is waited for until the disk has it.
    """
    kept = _mode(path) if mode is None else mode
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.{os.getpid()}.part")  # what reads the folder skips it, should it be left
    descriptor = os.open(aside, _NEW_FILE, 0o666 if kept is None else kept & 0o600)
    try:
        with open(descriptor, "wb") as file:
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        if os.path.exists(aside):
            os.unlink(aside)
        raise


def _mode(path: str) -> int | None:
    try:
        found = os.lstat(path).st_mode
    except (OSError, ValueError):
        return None
    return stat.S_IMODE(found) & 0o777 if stat.S_ISREG(found) else None
