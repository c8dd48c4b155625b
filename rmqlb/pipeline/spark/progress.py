"""How far a stage is, in what it knows to do: files, groups, tables.

Spark's workers count the rows that they are done with, by an accumulator, of which the driver hears when a task ends.
What the driver does one by one it counts itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from rmqlb.model.progress import Done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.5
T = TypeVar("T")


class Count(Protocol):
    """Where Spark's workers add what they have done."""

    def add(self, term: int) -> None:
        """So many more are done."""


class StageProgress:
    """What a stage knows to do now; it has nothing to do at first, and one thing at a time."""

    def __init__(self) -> None:
        self._look: Callable[[], Done | None] = lambda: None

    def count(self, spark: SparkSession, unit: str, total: int) -> Count | None:
        """Begin with so many rows, each one `unit`, and come back with what counts them; None under Spark Connect."""
        from pyspark.errors import PySparkException

        try:
            count = spark.sparkContext.accumulator(0)
        except (PySparkException, AttributeError):
            self._look = lambda: Done(unit, None, total)
            return None
        # A task that is run again counts its rows again.
        self._look = lambda: Done(unit, min(count.value, total), total)
        return count

    def each(self, unit: str, things: Sequence[T]) -> Iterator[T]:
        """The things, one by one, each one `unit`; the one before is done when the next is asked for."""
        for number, thing in enumerate(things):
            self._is(Done(unit, number, len(things)))
            yield thing
        self._is(Done(unit, len(things), len(things)))

    def done(self) -> Done | None:
        """How far it is; None when nothing is known."""
        return self._look()

    def _is(self, done: Done) -> None:
        self._look = lambda: done


@contextmanager
def told(progress: StageProgress, tell: Callable[[Done], None], *, seconds: float = _POLL_SECONDS) -> Iterator[None]:
    """While its block runs, call `tell` in another thread whenever more is done; `seconds` lie between two looks."""
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(progress, tell, ended, seconds), name="rmqlb-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(progress: StageProgress, tell: Callable[[Done], None], ended: threading.Event, seconds: float) -> None:
    before, last = None, False
    while not last:
        last = ended.wait(seconds)
        now = progress.done()
        if now is not None and now != before:
            before = now
            tell(now)
