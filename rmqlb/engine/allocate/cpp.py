"""The one strategy of rocketmq-client-cpp: AVG, with texts of its own where it throws."""

from __future__ import annotations

from rmqlb.engine.allocate.avg import Averagely
from rmqlb.errors import AllocationError


class CppAveragely(Averagely):
    """`AllocateMQAveragely`: blocks as Java's; `Rebalance` constructs it, and nothing sets another strategy."""

    def _takes_part(self, client_id: str) -> bool:
        if not client_id:
            raise AllocationError("currentCID is empty")
        if not self._queues:
            raise AllocationError("mqAll is empty")
        if not self._client_ids:
            raise AllocationError("cidAll is empty")
        return client_id in self._indexes
