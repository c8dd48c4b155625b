"""What a process and all that it has started take together, by Linux's `/proc`.

Memory is resident memory as `ps` shows it: pages that two processes share count twice, so the sum is not too small.
Only a child that has not yet become a program of its own is left out: it still is its parent's memory as a whole. Java
starts one for each `chmod` of a file, and for a moment there would seem to be two of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Self

EVERY = 0.2
"""Seconds between two looks."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _TIMES, _SIZE, _RESIDENT = 1, slice(11, 15), 20, 21
"""Where `/proc/PID/stat` has them, counted from what stands behind the name (proc(5))."""


@dataclass(frozen=True)
class Look:
    """A process and its descendants at one moment.

    Attributes:
        at: seconds of the monotonic clock.
        resident_bytes: of all of them.
        cpu_seconds: of all of them since their start, of those that have ended too.
    """

    at: float
    resident_bytes: int
    cpu_seconds: float


def look(root: int) -> Look:
    """At a process and its descendants; zeros when it is gone.

    Args:
        root: its id.
    """
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := _stat(int(name)))}
    children: dict[int, list[int]] = {}
    for process, stat in stats.items():
        children.setdefault(int(stat[_PARENT]), []).append(process)
    found = [root] if root in stats else []
    for process in found:  # grows while it is walked
        found += children.get(process, [])
    pages = sum(resident_pages(stats[process], stats.get(int(stats[process][_PARENT]))) for process in found)
    ticks = sum(sum(map(int, stats[process][_TIMES])) for process in found)
    return Look(monotonic(), pages * _PAGE, ticks / _TICKS)


def resident_pages(stat: Sequence[str], parent: Sequence[str] | None) -> int:
    """What a process has beside its parent.

    Args:
        stat: what `/proc/PID/stat` says behind the name.
        parent: the same of its parent; None when that is gone.
    """
    is_still_its_parent = parent is not None and stat[_SIZE] == parent[_SIZE]
    return 0 if is_still_its_parent else int(stat[_RESIDENT])


def peak(looks: Iterable[Look], since: Look, until: Look) -> int:
    """The most resident bytes between two looks, both included."""
    inside = [one.resident_bytes for one in looks if since.at <= one.at <= until.at]
    return max(since.resident_bytes, until.resident_bytes, *inside, 0)


class Watch:
    """Looks at a process again and again, for the length of a `with` block.

    Args:
        root: its id.
        every: seconds between two looks.

    Attributes:
        looks: what was seen, in order.
    """

    def __init__(self, root: int, every: float = EVERY) -> None:
        self._root = root
        self._every = every
        self._ended = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.looks: list[Look] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self.looks.append(look(self._root))


def _stat(process: int) -> list[str] | None:
    """What stands behind the process's name, which may hold blanks and brackets; None when it is gone."""
    with suppress(OSError), open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()
    return None
