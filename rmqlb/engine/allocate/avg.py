"""AVG, AVG_BY_CIRCLE, and the AVG of rocketmq-client-cpp."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.allocate.strategy import Prepared
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue


class Averagely(Prepared):
    """`AllocateMessageQueueAveragely`, the default of every consumer.

    With m queues and c consumers, consumer i (its first place in the sorted list) gets m // c queues in a row, the
    first m % c consumers one more. With fewer queues than consumers the first m consumers get one queue each. An id
    that stands twice counts twice but only its first block is taken: the second block stays unassigned.

    >>> from rmqlb.engine.allocate.strategy import Settings
    >>> queues = [MessageQueue("T", "a", i) for i in range(7)]
    >>> strategy = Averagely(queues, ["x", "y", "z"], Settings())
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y", "z")]
    [[0, 1, 2], [3, 4], [5, 6]]
    """

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not self._takes_part(client_id):
            return []
        start, end = self._block(self._indexes[client_id])
        return self._queues[start:end]

    def why(self, queue: MessageQueue) -> str:
        place = self._places[queue]
        size, extra = divmod(len(self._queues), len(self._client_ids))
        longer = extra * (size + 1)
        index = place // (size + 1) if place < longer else extra + (place - longer) // size
        start, end = self._block(index)
        block = f"queue {place} is in block {start}..{end - 1} of consumer {index}"
        client_id = self._client_ids[index]
        if self._indexes[client_id] != index:
            return f"{block}, the second process with the id {client_id}, which takes the first one's block"
        return block

    def _block(self, index: int) -> tuple[int, int]:
        size, extra = divmod(len(self._queues), len(self._client_ids))
        start = index * size + min(index, extra)
        return start, start + size + (index < extra)


class AveragelyByCircle(Prepared):
    """`AllocateMessageQueueAveragelyByCircle`: with c consumers, queue i goes to consumer i % c.

    An id that stands twice counts twice but takes only its first place's queues; the others stay unassigned.

    >>> from rmqlb.engine.allocate.strategy import Settings
    >>> queues = [MessageQueue("T", "a", i) for i in range(7)]
    >>> strategy = AveragelyByCircle(queues, ["x", "y", "z"], Settings())
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y", "z")]
    [[0, 3, 6], [1, 4], [2, 5]]
    """

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not self._takes_part(client_id):
            return []
        return self._queues[self._indexes[client_id] :: len(self._client_ids)]

    def why(self, queue: MessageQueue) -> str:
        place, count = self._places[queue], len(self._client_ids)
        index = place % count
        reason = f"queue {place}, {place} mod {count} = {index}, goes to consumer {index}"
        if self._indexes[self._client_ids[index]] != index:
            return f"{reason}, the second process with the id {self._client_ids[index]}, which takes the first one's"
        return reason


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
