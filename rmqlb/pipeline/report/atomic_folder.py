"""A folder that is there as a whole or not at all: written beside its place, then renamed.

Only what an earlier run made is replaced. The folder aside is locked by the kernel while it is written, so that two
runs cannot mix and a dead one blocks nobody.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rmqlb.errors import DataError, UsageError


@contextmanager
def atomic_folder(folder: str, mark: str) -> Iterator[str]:
    """A new folder to write to; when the block ends well, it takes the place of `folder`, otherwise it goes.

    `mark` is a file that every such folder has, by which an earlier one is known.

    Raises:
        UsageError: something else is at that place, or another process is writing there.
        DataError: it cannot be written.
    """
    place = os.path.realpath(folder)
    _must_be_ours(place, mark)
    parent, name = os.path.split(place)
    aside = os.path.join(parent, f".{name}.aside")
    lock = None
    try:
        os.makedirs(parent, exist_ok=True)
        lock = _locked(aside, place)
        _empty(aside)
        yield aside
        _take_the_place(aside, place)
    except OSError as error:
        raise DataError(
            f"cannot write to {place}: {error.strerror or error}", hint="choose another folder for the report"
        ) from None
    finally:
        if lock is not None:
            if os.path.isdir(aside) and os.path.samestat(os.stat(aside), os.fstat(lock)):
                shutil.rmtree(aside, ignore_errors=True)
            os.close(lock)


def _must_be_ours(place: str, mark: str) -> None:
    if not os.path.lexists(place) or os.path.isfile(os.path.join(place, mark)):
        return
    with suppress(OSError):
        if not os.listdir(place):
            return
    raise UsageError(
        f"{place} holds something that is not a report, and a report replaces what is there",
        hint="name a new or an empty folder",
    )


def _locked(aside: str, place: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(aside)
    lock = os.open(aside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError(
            f"another process is writing a report to {place}",
            hint="wait for it, or name another folder",
            code="warehouse-busy",
        ) from None
    return lock


def _empty(folder: str) -> None:
    """Remove what a run that was cut short left."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _take_the_place(aside: str, place: str) -> None:
    old = f"{aside}.old"
    shutil.rmtree(old, ignore_errors=True)
    if os.path.isdir(place):
        os.rename(place, old)
    try:
        os.rename(aside, place)
    except OSError:
        with suppress(OSError):
            os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)
