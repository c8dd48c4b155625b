"""How far Spark has come with the jobs that run.

Rule of this file: Spark is only asked, from a thread of its own; a Spark that no longer answers is no error here, for
whoever waits for the job hears of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pyspark.core.status import StatusTracker
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.5


class StageProgress:
    """Tells, while its block runs, how many tasks of the jobs that Spark began in it are done.

    The total grows as Spark plans more jobs, and shrinks by tasks that proved needless; what is done never shrinks.
    Spark Connect gives no account, so there `tell` is never called.

        with StageProgress(spark, lambda done, total: …):
            frame.write.parquet(path)

    Args:
        spark: the session.
        tell: called with (tasks done, tasks known of), in another thread, whenever one of them has changed.
        seconds: between two looks.
    """

    def __init__(
        self, spark: SparkSession, tell: Callable[[int, int], None], *, seconds: float = _POLL_SECONDS
    ) -> None:
        self._tell = tell
        self._seconds = seconds
        self._tracker = _tracker(spark)
        self._earlier: frozenset[int] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rmqlb-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._tracker is not None:
            self._earlier = frozenset(self._tracker.getActiveJobsIds())
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        from py4j.protocol import Py4JError

        tally = _Tally(self._earlier)
        told = (0, 0)
        while True:
            last = self._ended.wait(self._seconds)
            try:
                now = tally.look(self._tracker) if self._tracker is not None else told
            except (Py4JError, OSError):
                return
            if now != told:
                told = now
                self._tell(*now)
            if last:
                return


def _tracker(spark: SparkSession) -> StatusTracker | None:
    """Spark's own account of its jobs; Spark Connect has none."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext.statusTracker()
    except (PySparkException, AttributeError):
        return None


class _Tally:
    """The tasks of every stage seen so far: (done, all), by stage.

    Args:
        earlier: jobs that do not count. Spark hears of a job's end a little after whoever waited for it.
    """

    def __init__(self, earlier: frozenset[int]) -> None:
        self._earlier = earlier
        self._stages: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def look(self, tracker: StatusTracker) -> tuple[int, int]:
        """The tasks that are done, and all that are known, now."""
        active: set[int] = set()
        for job in set(tracker.getActiveJobsIds()) - self._earlier:
            info = tracker.getJobInfo(job)
            active.update(info.stageIds if info is not None else ())
        for stage in active | self._open:
            found = tracker.getStageInfo(stage)
            if found is not None:
                self._stages[stage] = (found.numCompletedTasks, found.numTasks)
        for stage in self._open - active:  # its job has ended: what it has not done by now was not needed
            done, _ = self._stages.get(stage, (0, 0))
            self._stages[stage] = (done, done)
        self._open = active
        return sum(done for done, _ in self._stages.values()), sum(tasks for _, tasks in self._stages.values())
