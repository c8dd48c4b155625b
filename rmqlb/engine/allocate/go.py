"""The strategies of rocketmq-client-go: AVG and AVG_BY_CIRCLE assign as Java's, the others by rules of their own.

- A Go strategy returns nil where Java's checks throw: without queues, consumers or its own ID in the list.
- MACHINE_ROOM_NEARBY is AVG (`AllocateByMachineNearby` calls `AllocateByAveragely`) and ignores zones.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from msgspec.structs import replace

from rmqlb.engine.allocate.avg import Averagely, AveragelyByCircle
from rmqlb.engine.allocate.consistent_hash import ConsistentHash, Ring, check_ring
from rmqlb.engine.allocate.machines import ByMachineRoom
from rmqlb.engine.allocate.strategy import Prepared, Settings
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue


class _WithoutErrors(Prepared):
    def _takes_part(self, client_id: str) -> bool:
        return bool(client_id and self._queues) and client_id in self._indexes


class GoAveragely(_WithoutErrors, Averagely):
    """`AllocateByAveragely`, the default, and `AllocateByMachineNearby`."""


class GoAveragelyByCircle(_WithoutErrors, AveragelyByCircle):
    """`AllocateByAveragelyCircle`."""


class GoMachineRoom(_WithoutErrors, ByMachineRoom):
    """`AllocateByMachineRoom`: it counts the queues of the listed rooms, but takes its blocks from all queues.

    Of c consumers and k queues in the listed rooms, consumer i gets the block i*(k//c) .. of *all* queues, and, if
    i < k % c, queue c*(k//c)+i of those in the rooms. So queues of other rooms have owners, queues of the listed rooms
    may have none, and a queue may have two. A room is the text before the only `@` of a broker's name.
    """

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        super().__init__(queues, client_ids, replace(settings, consumer_idcs=settings.consumer_idcs or frozenset()))
        self._blocks_of = queues

    @staticmethod
    def _room(broker_name: str) -> str | None:
        names = broker_name.split("@")
        return names[0] if len(names) == 2 else None

    def why(self, queue: MessageQueue) -> str:
        size, blocks = self._sizes()
        place, left_over, reasons = self._places[queue], self._inside[blocks:], []
        if place < blocks:
            reasons.append(f"queue {place} of all is in block {place // size} of {size} queues")
        if queue in left_over:
            left = left_over.index(queue)
            reasons.append(f"queue {blocks + left} of the listed rooms is part of the remainder, for consumer {left}")
        return "; ".join(reasons) or f"queue {place} is after the blocks of {size} queues, but not in the remainder"


class GoConsistentHash(_WithoutErrors, ConsistentHash):
    """`AllocateByConsistentHash` with stathat.com/c/consistent 1.0.0: another ring than Java's.

    Each consumer puts the entries `0CLIENTID`, `1CLIENTID`, … on a ring of CRC-32 (IEEE) values; a queue goes to the
    first entry *behind* its own. A second process with an id adds no entries. 0 entries for each consumer panic, fewer
    leave the ring empty.
    """

    _next = staticmethod(bisect_right)

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        check_ring(len(client_ids), settings.virtual_nodes)
        Prepared.__init__(self, queues, client_ids, settings)

    def _takes_part(self, client_id: str) -> bool:
        takes_part = super()._takes_part(client_id)
        if takes_part and not self._settings.virtual_nodes:
            raise AllocationError("runtime error: integer divide by zero")  # where the ring is sorted
        return takes_part

    @staticmethod
    def _hash(text: str) -> int:
        return crc32(text.encode("utf-8", "replace"))

    @staticmethod
    @lru_cache(maxsize=2)
    def _made(client_ids: tuple[str, ...], virtual_nodes: int) -> Ring:
        ring: dict[int, tuple[str, int]] = {}
        for client_id in client_ids:
            name = client_id.encode("utf-8", "replace")
            ring.update((crc32(b"%d%s" % (number, name)), (client_id, number)) for number in range(virtual_nodes))
        return dict(sorted(ring.items()))
