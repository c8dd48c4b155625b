"""Work on many groups, divided among processes: strategies that are run for every case keep one core busy."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Made = TypeVar("Made")
_work: list[Callable[[int], Any]] = []
"""What a forked process finds, so that groups need not be sent to it."""


def each_in_processes(work: Callable[[int], Made], number: int, jobs: int) -> Iterator[Made]:
    """What the work makes of 0, 1, 2, … in this order; with one job, or where processes cannot fork, in this process.

    Args:
        work: its results can be pickled.
    """
    jobs = min(jobs, number)
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(work, range(number))
        return
    _work.append(work)
    try:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _ignore_interrupts) as pool:
            yield from pool.map(_run, range(number))
    finally:
        _work.pop()


def _run(number: int) -> Any:
    return _work[-1](number)


def _ignore_interrupts() -> None:
    """The process that waits for the others ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
