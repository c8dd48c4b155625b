"""CONSISTENT_HASH: a ring of hashes, on which each queue goes to the next consumer."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

from rmqlb.engine.allocate.strategy import Prepared, Settings
from rmqlb.errors import AllocationError, UsageError
from rmqlb.model.message_queue import MessageQueue, grouped

MOST_ENTRIES = 1_000_000
"""On one ring: 2 seconds and 200 MB. RocketMQ's default is 10 per consumer, and each consumer makes the ring again for
each topic every 20 seconds, so more would keep real clients busy."""

Ring = Mapping[int, tuple[str, int]]  # hash → (client ID, number of the consumer's entry)


class ConsistentHash(Prepared):
    """`AllocateMessageQueueConsistentHash` with `ConsistentHashRouter` and its MD5 function.

    Each consumer puts `virtual_nodes` entries `CLIENTID-0`, `CLIENTID-1`, … on the ring. The text that is hashed for a
    queue is its Java `toString`. If an ID appears twice, it only has more entries, and no queue is unassigned. RocketMQ
    5.x hashes the text as UTF-8. RocketMQ 4.9 uses the platform's charset; ASCII names have the same hash in both.
    """

    _next = staticmethod(bisect_left)  # an entry exactly at the queue's hash takes the queue

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        if settings.virtual_nodes < 0:
            raise AllocationError(f"illegal virtualNodeCnt :{settings.virtual_nodes}")
        check_ring(len(client_ids), settings.virtual_nodes)
        super().__init__(queues, client_ids, settings)

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        return self._shares.get(client_id, [])

    def why(self, queue: MessageQueue) -> str:
        value, position = self._hash(str(queue)), self._position(queue)
        if position is None:
            return f"hash {value}, and the ring is empty"
        client_id, replica = self._ring[position]
        wrapped = " (past the end of the ring)" if position < value else ""
        return f"hash {value}, next on the ring is {position}{wrapped}, entry {replica} of {client_id}"

    def why_idle(self, client_id: str) -> str:
        entries = self._entries[client_id]
        return f"none of {len(self._queues)} queues meets one of its {entries} entries on the ring first"

    @cached_property
    def _ring(self) -> Ring:
        return self._made(tuple(self._client_ids), self._settings.virtual_nodes)

    @cached_property
    def _entries(self) -> Counter[str]:
        return Counter(owner for owner, _ in self._ring.values())

    @cached_property
    def _positions(self) -> Sequence[int]:
        return tuple(self._ring)

    @staticmethod
    @lru_cache(maxsize=2)
    def _made(client_ids: tuple[str, ...], virtual_nodes: int) -> Ring:
        """The ring, sorted by hash; if two entries have one hash, the later one wins. All topics have the same ring."""
        ring: dict[int, tuple[str, int]] = {}
        entries: Counter[str] = Counter()
        for client_id in client_ids:
            existing = entries[client_id]
            entries[client_id] += virtual_nodes
            for replica in range(existing, existing + virtual_nodes):
                position = ring_hash(f"{client_id}-{replica}")
                if position in ring:
                    entries[ring[position][0]] -= 1
                ring[position] = (client_id, replica)
        return dict(sorted(ring.items()))

    @staticmethod
    def _hash(text: str) -> int:
        return ring_hash(text)

    def _position(self, queue: MessageQueue) -> int | None:
        """The first ring position from the queue's hash on, otherwise the smallest of all."""
        if not self._positions:
            return None
        return self._positions[self._next(self._positions, self._hash(str(queue))) % len(self._positions)]

    @cached_property
    def _shares(self) -> dict[str, list[MessageQueue]]:
        positions = ((self._position(queue), queue) for queue in self._queues)
        return grouped((self._ring[position][0], queue) for position, queue in positions if position is not None)


def check_ring(members: int, virtual_nodes: int) -> None:
    """Refuse a ring of more than `MOST_ENTRIES` entries (raises UsageError)."""
    entries = members * virtual_nodes
    if entries > MOST_ENTRIES:
        raise UsageError(
            f"--strategy-option virtual-nodes={virtual_nodes}: {members} consumers would have {entries} entries on "
            f"the ring of CONSISTENT_HASH, but rmqlb simulates at most {MOST_ENTRIES}",
            hint=f"with so many consumers, pass at most --strategy-option virtual-nodes={MOST_ENTRIES // members}",
            code="ring-too-large",
        )


@lru_cache(maxsize=1 << 16)
def ring_hash(text: str) -> int:
    """`ConsistentHashRouter.MD5Hash`: the first four bytes of the MD5, big-endian, in [0, 2^32)."""
    from hashlib import md5  # OpenSSL costs 3 ms at start

    return int.from_bytes(md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()[:4], "big")
