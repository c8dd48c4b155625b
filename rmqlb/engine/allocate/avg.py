"""AVG, AVG_BY_CIRCLE, CONFIG, and the AVG of rocketmq-client-cpp."""

from collections.abc import Mapping, Sequence

from rmqlb.engine.allocate.strategy import Prepared, Settings
from rmqlb.model.message_queue import MessageQueue


class Averagely(Prepared):
    """`AllocateMessageQueueAveragely`, the default of every consumer.

    With m queues and c consumers, each consumer gets a block of m // c queues, in the order of the sorted list. The
    first m % c consumers get one more queue. If there are fewer queues than consumers, the first m consumers get one
    queue each. If an ID appears twice, it has two blocks, but its processes take only the first one. The second block
    stays unassigned.

    >>> queues = [MessageQueue("T", "a", i) for i in range(7)]
    >>> strategy = Averagely(queues, ["x", "y", "z"], Settings())
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y", "z")]
    [[0, 1, 2], [3, 4], [5, 6]]
    """

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
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
            return f"{block}, the second process with the ID {client_id}, which takes the block of the first one"
        return block

    def _block(self, index: int) -> tuple[int, int]:
        size, extra = divmod(len(self._queues), len(self._client_ids))
        start = index * size + min(index, extra)
        return start, start + size + (index < extra)


class AveragelyByCircle(Prepared):
    """`AllocateMessageQueueAveragelyByCircle`: with c consumers, queue i goes to consumer i % c.

    If an ID appears twice, it has two places in the circle, but its processes take only the queues of the first place.
    The queues of the second place stay unassigned.

    >>> queues = [MessageQueue("T", "a", i) for i in range(7)]
    >>> strategy = AveragelyByCircle(queues, ["x", "y", "z"], Settings())
    >>> [[queue.queue_id for queue in strategy.share(id)] for id in ("x", "y", "z")]
    [[0, 3, 6], [1, 4], [2, 5]]
    """

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        return self._queues[self._indexes[client_id] :: len(self._client_ids)]

    def why(self, queue: MessageQueue) -> str:
        place, count = self._places[queue], len(self._client_ids)
        index = place % count
        reason = f"queue {place}, {place} mod {count} = {index}, goes to consumer {index}"
        if self._indexes[self._client_ids[index]] != index:
            twin = f"the second process with the ID {self._client_ids[index]}"
            return f"{reason}, {twin}, which takes the share of the first one"
        return reason


class CppAveragely(Averagely):
    """`AllocateMQAveragely`: blocks as Java's; `Rebalance` constructs it, and nothing sets another strategy."""

    _empty = ("currentCID is empty", "mqAll is empty", "cidAll is empty")


class ByConfig:
    """`AllocateMessageQueueByConfig`: the configured list, unchanged, for every topic and without any check.

    The client does not check whether the queues exist, belong to the topic, or are in another consumer's list too. If
    a consumer has no list, the Java strategy returns null and the consumer drops all its queues. rmqlb returns an empty
    list.
    """

    def __init__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> None:
        self._config = settings.config

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        return self.configured(client_id) or []

    def configured(self, client_id: str) -> Sequence[MessageQueue] | None:
        if isinstance(self._config, Mapping):
            return self._config.get(client_id)
        return self._config

    def why(self, queue: MessageQueue) -> str:
        return "by configuration"

    def why_idle(self, client_id: str) -> str:
        return "no queue is configured for it" if self.configured(client_id) is None else "its list is empty"
