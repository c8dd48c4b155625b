"""Files that a command writes besides stdout."""

from __future__ import annotations

import os

from rmqlb.errors import UsageError
from rmqlb.sources.atomic_file import replace_file


def write_whole(path: str, text: str, option: str, *, mode: int | None = None) -> None:
    """Write beside the file, then put it in its place: an interrupt leaves the old file or the new one.

    A symbolic link is replaced, not followed. A device or a pipe is written to as it is.

    Args:
        mode: who may open it; None is as the file that is there has it, or as the umask has it.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "w", encoding="utf-8") as special:
                special.write(text)
            return
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror or error}", code="cannot-write") from None
    try:
        replace_file(path, text, mode=mode)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} {path}: {reason}", code="cannot-write") from None
