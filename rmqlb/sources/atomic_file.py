"""Files that are written whole or not at all, next to their place and then renamed; folders of the user's own."""

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LEFTOVER = re.compile(r"[0-9a-f]+\.part")
_ABANDONED_S = 3600.0  # without a change; its writer, which adds within seconds, was killed


def replace_file(path: str, text: str, *, mode: int | None = None) -> None:
    """Replace a file as `new_file` does (raises ValueError for an impossible path)."""
    with new_file(path, mode=mode) as file:
        file.write(text.encode())


@contextmanager
def new_file(path: str, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces the one at `path` when the block succeeds (raises ValueError).

    An interrupt leaves the old file or the new one, and nothing else. A symbolic link is replaced, not followed. By
    default the mode is that of the replaced file, or the umask's. A kill leaves a hidden `.NAME.SUFFIX.part`, which a
    run removes an hour later.
    """
    kept = _mode(path) if mode is None else mode
    folder, name = os.path.split(path)
    _remove_leftovers(folder, name)
    # A process ID would not be unique: in a container every run has the same one.
    partial = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.part")
    descriptor = os.open(partial, _NEW_FILE, 0o666 if kept is None else kept & 0o600)
    try:
        with open(descriptor, "wb") as file:
            if kept is not None:
                os.fchmod(file.fileno(), kept)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def make_private_folder(path: str) -> None:
    """Make the folder and its missing parents for the user alone; existing ones keep their mode (raises OSError)."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        make_private_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _remove_leftovers(folder: str, name: str) -> None:
    latest = time.time() - _ABANDONED_S
    with suppress(OSError, ValueError), os.scandir(folder or ".") as entries:  # the writer reports why it is unusable
        for entry in entries:
            ours = entry.name.startswith(f".{name}.") and _LEFTOVER.fullmatch(entry.name, len(name) + 2)
            if ours and entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < latest:
                os.unlink(entry.path)


def _mode(path: str) -> int | None:
    with suppress(OSError, ValueError):
        found = os.lstat(path).st_mode
        return stat.S_IMODE(found) & 0o777 if stat.S_ISREG(found) else None
    return None
