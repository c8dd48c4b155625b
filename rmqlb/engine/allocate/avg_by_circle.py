"""AVG_BY_CIRCLE: the consumers take the queues in turn."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.allocate.strategy import Prepared
from rmqlb.model.message_queue import MessageQueue


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
