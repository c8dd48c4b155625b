"""Files that a command writes besides stdout."""

from __future__ import annotations

import os

from rmqlb.errors import UsageError


def write_whole(path: str, text: str, option: str) -> None:
    """Write beside the file, then put it in its place: an interrupt leaves the old file or the new one.

    Raises:
        UsageError: the file cannot be written.
    """
    aside = f"{path}.{os.getpid()}.part"
    try:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        if os.path.exists(aside):
            os.unlink(aside)
        if isinstance(error, OSError):
            raise UsageError(f"{option} {path}: {error.strerror or error}", code="cannot-write") from None
        raise
