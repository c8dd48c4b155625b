"""PIN_OVER_ALL: PIN as it is written by mistake; consumers elsewhere are counted, and their shares stay unassigned."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rmqlb.engine.allocate.pin import Pinned, pin
from rmqlb.engine.allocate.strategy import Settings, Strategy, StrategyClass
from rmqlb.model.message_queue import MessageQueue


class _PinnedOverAll(Pinned):
    asks_all = True

    def why(self, queue: MessageQueue) -> str:
        reason = f"among all {len(self._client_ids)} consumers: {self._inner.why(queue)}"
        owner = self._fallen_to.get(queue)
        return reason if owner is None else f"{reason}; {owner} is not on a chosen machine, and takes nothing"

    @cached_property
    def _fallen_to(self) -> dict[MessageQueue, str]:
        others = [client_id for client_id in self._indexes if client_id and client_id not in self._is_chosen]
        return {queue: client_id for client_id in others for queue in self._inner.share(client_id)}


def pin_over_all(
    inner: StrategyClass, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
) -> Strategy:
    """A topic pinned to machines, where the inner strategy is still asked with all consumers.

    Not one of RocketMQ's classes: it is the mistake that users make when they write PIN. A consumer on a chosen machine
    calls the inner strategy with the whole list of consumers and takes its share of that; one elsewhere returns
    nothing. The shares of those others stay unassigned. A topic without machines of its own is shared by all.

    >>> from rmqlb.engine.allocate.avg import Averagely
    >>> queues = [MessageQueue("T", "a", i) for i in range(4)]
    >>> settings = Settings(hosts=frozenset({"10.0.0.2"}))
    >>> strategy = pin_over_all(Averagely, queues, ["10.0.0.1@1", "10.0.0.2@1"], settings)
    >>> [len(strategy.share(id)) for id in ("10.0.0.1@1", "10.0.0.2@1")]
    [0, 2]
    """
    return pin(inner, queues, client_ids, settings, _PinnedOverAll)
