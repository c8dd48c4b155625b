"""Files that a command writes besides stdout."""

from __future__ import annotations

import os

from rmqlb.errors import UsageError

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def write_whole(path: str, text: str, option: str, *, mode: int = 0o666) -> None:
    """Write beside the file, then put it in its place: an interrupt leaves the old file or the new one.

    A symbolic link is replaced, not followed. A device or a pipe is written to as it is.

    Args:
        path: the file.
        text: its new content.
        option: names the file in errors.
        mode: who may open it, before the umask.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "w", encoding="utf-8") as special:
                special.write(text)
            return
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}", code="cannot-write") from None
    aside = f"{path}.{os.getpid()}.part"
    try:
        with open(os.open(aside, _NEW_FILE, mode), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        if os.path.exists(aside):
            os.unlink(aside)
        if isinstance(error, OSError | ValueError):  # a path may hold what no path can
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{option} {path}: {reason}", code="cannot-write") from None
        raise
