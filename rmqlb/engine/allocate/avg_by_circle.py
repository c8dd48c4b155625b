"""AVG_BY_CIRCLE: the queues are dealt to the members like cards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rmqlb.engine.allocate.strategy import Settings, beyond_the_queues, first_indexes, takes_part
from rmqlb.model.message_queue import MessageQueue


class AveragelyByCircle:
    """`AllocateMessageQueueAveragelyByCircle`: with c members, queue i goes to member i % c.

    An id that stands twice counts twice but takes only its first place's queues; the others belong to nobody.

    >>> queues = [MessageQueue("T", "a", i) for i in range(7)]
    >>> strategy = AveragelyByCircle(queues, ["x", "y", "z"], Settings())
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y", "z")]
    [[0, 3, 6], [1, 4], [2, 5]]
    """

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        self._queues = queues
        self._client_ids = client_ids
        self._indexes = first_indexes(client_ids)

    @cached_property
    def _places(self) -> dict[MessageQueue, int]:
        return {queue: place for place, queue in enumerate(self._queues)}

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not takes_part(client_id, self._queues, self._client_ids, self._indexes):
            return []
        return self._queues[self._indexes[client_id] :: len(self._client_ids)]

    def why(self, queue: MessageQueue) -> str:
        place, count = self._places[queue], len(self._client_ids)
        index = place % count
        reason = f"queue {place}, {place} mod {count} = {index}, is dealt to consumer {index}"
        if self._indexes[self._client_ids[index]] != index:
            return f"{reason}, the second process with the id {self._client_ids[index]}, which takes the first one's"
        return reason

    def why_idle(self, client_id: str) -> str:
        return beyond_the_queues(self._indexes[client_id], len(self._client_ids), f"{len(self._queues)} queues")
