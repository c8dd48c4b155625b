"""PIN_OVER_ALL: PIN as it is written by mistake; members elsewhere are counted, and nobody reads what falls to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rmqlb.engine.allocate.pin import chosen_hosts, host
from rmqlb.engine.allocate.strategy import Prepared, Settings, Strategy, StrategyClass
from rmqlb.model.message_queue import MessageQueue


class PinOverAll:
    """A topic pinned to machines, where the inner strategy is still asked with all members.

    Not one of RocketMQ's classes: it is the mistake that users make when they write PIN. A member on a chosen machine
    calls the inner strategy with the whole list of members and takes its share of that; one elsewhere returns nothing.
    The shares of those others stay unassigned, and nobody reads them. A topic without machines of its own is shared by
    all.

    >>> from rmqlb.engine.allocate.avg import Averagely
    >>> queues = [MessageQueue("T", "a", i) for i in range(4)]
    >>> settings = Settings(hosts=frozenset({"10.0.0.2"}))
    >>> strategy = PinOverAll(Averagely)(queues, ["10.0.0.1@1", "10.0.0.2@1"], settings)
    >>> [len(strategy.share(id)) for id in ("10.0.0.1@1", "10.0.0.2@1")]
    [0, 2]
    """

    def __init__(self, inner: StrategyClass) -> None:
        self._inner = inner

    def __call__(self, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings) -> Strategy:
        hosts = chosen_hosts(queues, settings)
        inner = self._inner(queues, client_ids, settings)
        return inner if hosts is None else _PinnedOverAll(inner, hosts, queues, client_ids, settings)


class _PinnedOverAll(Prepared):
    def __init__(
        self,
        inner: Strategy,
        hosts: frozenset[str],
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
        settings: Settings,
    ) -> None:
        super().__init__(queues, client_ids, settings)
        self._inner = inner
        self._hosts = hosts

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        if not self._takes_part(client_id):
            return []
        return self._inner.share(client_id) if host(client_id) in self._hosts else []

    def why(self, queue: MessageQueue) -> str:
        reason = f"among all {len(self._client_ids)} consumers: {self._inner.why(queue)}"
        owner = self._fallen_to.get(queue)
        return reason if owner is None else f"{reason}; {owner} is not on a chosen machine, and takes nothing"

    def why_idle(self, client_id: str) -> str:
        if host(client_id) in self._hosts:
            return self._inner.why_idle(client_id)
        return f"{host(client_id)} is not one of the chosen machines"

    @cached_property
    def _fallen_to(self) -> dict[MessageQueue, str]:
        others = [client_id for client_id in self._indexes if client_id and host(client_id) not in self._hosts]
        return {queue: client_id for client_id in others for queue in self._inner.share(client_id)}
