"""How far Spark has come with the jobs that run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.core.status import StatusTracker
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.5


@contextmanager
def stage_progress(
    spark: SparkSession, tell: Callable[[int, int], None], *, seconds: float = _POLL_SECONDS
) -> Iterator[None]:
    """Tells, while its block runs, how many tasks are done and known of, of the jobs that Spark began in it.

    `tell` is called in another thread, whenever one of them has changed; `seconds` lie between two looks. The total
    grows as Spark plans more jobs, and shrinks by tasks that proved needless; what is done never shrinks. Spark Connect
    gives no account, and a Spark that no longer answers is no error here: whoever waits for the job hears of it.
    """
    from pyspark.errors import PySparkException

    try:
        tracker = spark.sparkContext.statusTracker()
    except (PySparkException, AttributeError):
        yield
        return
    tally, ended = _Tally(tracker), threading.Event()
    thread = threading.Thread(target=_watch, args=(tally, tell, ended, seconds), name="rmqlb-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(tally: _Tally, tell: Callable[[int, int], None], ended: threading.Event, seconds: float) -> None:
    from py4j.protocol import Py4JError

    told, last = (0, 0), False
    while not last:
        last = ended.wait(seconds)
        try:
            now = tally.look()
        except (Py4JError, OSError):
            return
        if now != told:
            told = now
            tell(*now)


class _Tally:
    """The tasks of every stage seen so far: (done, all), by stage; jobs that run already do not count."""

    def __init__(self, tracker: StatusTracker) -> None:
        self._tracker = tracker
        # Spark hears of a job's end a little after whoever waited for it: those of before may still be among them.
        self._earlier = set(tracker.getActiveJobsIds())
        self._stages: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def look(self) -> tuple[int, int]:
        """The tasks that are done, and all that are known, now."""
        jobs = (self._tracker.getJobInfo(job) for job in set(self._tracker.getActiveJobsIds()) - self._earlier)
        active = {stage for info in jobs if info is not None for stage in info.stageIds}
        for stage in active | self._open:
            found = self._tracker.getStageInfo(stage)
            if found is not None:
                self._stages[stage] = (found.numCompletedTasks, found.numTasks)
        for stage in self._open - active:  # its job has ended: what it has not done by now was not needed
            done, _ = self._stages.get(stage, (0, 0))
            self._stages[stage] = (done, done)
        self._open = active
        return sum(done for done, _ in self._stages.values()), sum(tasks for _, tasks in self._stages.values())
