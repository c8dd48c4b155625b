"""MACHINE_ROOM: only queues on brokers of the listed rooms are given out, in blocks, the remainder from the tail."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rmqlb.engine.allocate.strategy import Prepared, Settings
from rmqlb.errors import AllocationError
from rmqlb.model.java import split
from rmqlb.model.message_queue import MessageQueue


class ByMachineRoom(Prepared):
    """`AllocateMessageQueueByMachineRoom`: a broker named `room@name` is in `room`; other brokers are in none.

    Of the k queues in the listed rooms, consumer i gets the block i*(k//c) .. and, if i < k % c, queue c*(k//c)+i too.
    Queues elsewhere stay unassigned. Where the consumers run does not matter.

    >>> queues = [MessageQueue("T", "r@b", i) for i in range(5)] + [MessageQueue("T", "plain", 0)]
    >>> strategy = ByMachineRoom(queues, ["x", "y"], Settings(consumer_idcs=frozenset({"r"})))
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y")]
    [[0, 1, 4], [2, 3]]
    """

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        super().__init__(queues, client_ids, settings)
        self._rooms = settings.consumer_idcs
        self._rooms_missing = self._rooms is None and any(room(queue.broker_name) is not None for queue in queues)
        self._inside = [queue for queue in queues if room(queue.broker_name) in (self._rooms or ())]

    @cached_property
    def _places(self) -> dict[MessageQueue, int]:
        return {queue: place for place, queue in enumerate(self._inside)}

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not self._takes_part(client_id):
            return []
        if self._rooms_missing:
            raise AllocationError("consumeridcs is null")
        index, (size, extra) = self._indexes[client_id], self._sizes()
        tail = [self._inside[index + size * len(self._client_ids)]] if index < extra else []
        return [*self._inside[size * index : size * (index + 1)], *tail]

    def why(self, queue: MessageQueue) -> str:
        place = self._places.get(queue)
        if place is None:
            its_room = room(queue.broker_name)
            return f"room {its_room} is not listed" if its_room is not None else "the broker's name is not ROOM@NAME"
        size, _ = self._sizes()
        blocks = size * len(self._client_ids)
        if place >= blocks:
            return f"queue {place} of the listed rooms is left over, for consumer {place - blocks}"
        return f"queue {place} of the listed rooms is in block {place // size} of {size} queues"

    def why_idle(self, client_id: str) -> str:
        return self._behind(client_id, f"{len(self._inside)} queues in the listed rooms")

    def _sizes(self) -> tuple[int, int]:
        return divmod(len(self._inside), len(self._client_ids))


def room(broker_name: str) -> str | None:
    """The room in a broker's name, `ROOM@NAME`; None when the name has another form.

    >>> room("r1@broker-a"), room("broker-a")
    ('r1', None)
    """
    parts = split(broker_name, "@")
    return parts[0] if len(parts) == 2 else None
