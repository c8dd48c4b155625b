"""PIN and PIN_OVER_ALL: topics pinned to machines, as applications do correctly (PIN) or by mistake (PIN_OVER_ALL)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rmqlb.engine.allocate.strategy import Prepared, Settings, StrategyClass
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import counted


class Pinned(Prepared):
    """A topic pinned to machines: an inner strategy divides it among the consumers on these machines.

    RocketMQ has no such class: users write this wrapper around its strategies. A consumer's machine is the text before
    the first `@` of its client ID. If no consumer runs on a chosen machine, every queue is unassigned. You can pin only
    some topics; all consumers share the other topics.
    """

    asks_all = False

    def __init__(
        self, inner: StrategyClass, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
    ) -> None:
        super().__init__(queues, client_ids, settings)
        hosts = chosen_hosts(queues, settings)
        self._is_pinned = hosts is not None
        self._chosen = [client_id for client_id in client_ids if hosts is None or host(client_id) in hosts]
        self._is_chosen = frozenset(self._chosen)
        self._inner = inner(queues, client_ids if self.asks_all else self._chosen, settings)

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        return super().share(client_id) if self._is_pinned else self._inner.share(client_id)

    def _share(self, client_id: str) -> Sequence[MessageQueue]:
        return self._inner.share(client_id) if client_id in self._is_chosen else []

    def why(self, queue: MessageQueue) -> str:
        if self._is_pinned and not self._chosen:
            return "no consumer runs on a chosen machine"
        among = f"among the {counted(len(self._chosen), 'consumer')} on chosen machines: " if self._is_pinned else ""
        return f"{among}{self._inner.why(queue)}"

    def why_idle(self, client_id: str) -> str:
        if client_id in self._is_chosen or not self._is_pinned:
            return self._inner.why_idle(client_id)
        return f"{host(client_id)} is not one of the chosen machines"


class PinnedOverAll(Pinned):
    """A topic pinned to machines, where the inner strategy still counts all consumers.

    RocketMQ has no such class: users write it by mistake instead of PIN. A consumer on a chosen machine calls the inner
    strategy with the list of all consumers and takes its own share. A consumer on another machine takes no queue, so
    its share stays unassigned. All consumers share a topic that is not pinned.
    """

    asks_all = True

    def why(self, queue: MessageQueue) -> str:
        if not self._is_pinned:
            return self._inner.why(queue)
        reason = f"among all {len(self._client_ids)} consumers: {self._inner.why(queue)}"
        owner = self._fallen_to.get(queue)
        return reason if owner is None else f"{reason}; {owner} is not on a chosen machine, so it takes nothing"

    @cached_property
    def _fallen_to(self) -> dict[MessageQueue, str]:
        others = [client_id for client_id in self._indexes if client_id and client_id not in self._is_chosen]
        return {queue: client_id for client_id in others for queue in self._inner.share(client_id)}


def chosen_hosts(queues: Sequence[MessageQueue], settings: Settings) -> frozenset[str] | None:
    """The machines for the topic of these queues; None if the topic is not pinned.

    A topic without its own machines has those of all topics; where only single topics are pinned, None.
    """
    if queues and queues[0].topic in settings.pins:
        return settings.pins[queues[0].topic]
    return None if settings.hosts is None and settings.pins else settings.hosts or frozenset()


def host(client_id: str) -> str:
    """The machine of a client ID (`ClientConfig.buildMQClientId`): the text before the first `@`, without brackets."""
    return client_id.partition("@")[0].strip("[]")
