"""When each failure was first felt, first isolated, and when its broker was first used again."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.send.cluster_state import ClusterState
from rmqlb.model.send_scenario import Failure


class FailureTimestamps:
    """The marks of each failure, in the scenario's order; a time is a tick, None until it comes."""

    def __init__(self, failures: Sequence[Failure], cluster: ClusterState) -> None:
        self._failures = failures
        self._cluster = cluster
        self._unused: dict[str, list[int]] = {}
        self.first_failed: list[int | None] = [None] * len(failures)  # when the first attempt began that failed of it
        # when its broker was first isolated or unlisted while it lasted
        self.isolated_at: list[int | None] = [None] * len(failures)
        self.isolated_by: list[str | None] = [None] * len(failures)  # which of the two
        # when the first attempt began after its end that succeeds
        self.used_again: list[int | None] = [None] * len(failures)

    def look(self, now: int) -> None:
        """Something happened outside: brokers may have left the list, failures may have ended."""
        cluster, self._unused = self._cluster, {}
        for index, failure in enumerate(self._failures):
            if failure.broker_name in cluster.unlisted and self._lasts(index):
                self._mark_isolated(index, now, "route")
            if cluster.ended[index] is not None and self.used_again[index] is None:
                self._unused.setdefault(failure.broker_name, []).append(index)

    def failed(self, index: int, started: int) -> None:
        """An attempt failed of it that began then."""
        if self.first_failed[index] is None:
            self.first_failed[index] = started

    def isolated(self, broker_name: str, now: int) -> None:
        """The fault strategy isolates a broker."""
        for index, failure in enumerate(self._failures):
            if failure.broker_name == broker_name and self._lasts(index):
                self._mark_isolated(index, now, "isolation")

    def used(self, broker_name: str, started: int) -> None:
        """An attempt begins that will succeed."""
        if self._unused and broker_name in self._unused:
            for index in self._unused.pop(broker_name):
                self.used_again[index] = started

    def _lasts(self, index: int) -> bool:
        return self._cluster.began[index] is not None and self._cluster.ended[index] is None

    def _mark_isolated(self, index: int, now: int, why: str) -> None:
        if self.isolated_at[index] is None:
            self.isolated_at[index], self.isolated_by[index] = now, why
