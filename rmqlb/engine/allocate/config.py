"""CONFIG: each consumer gets the list it was configured with, whatever the cluster says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.message_queue import MessageQueue


class ByConfig:
    """`AllocateMessageQueueByConfig`: the configured list, unchanged, for every topic and without any check.

    Nothing asks whether the queues exist, belong to the topic, or are in another consumer's list too. A consumer
    without a list returns null in Java, which drops all its queues; here that is an empty list.

    >>> strategy = ByConfig([], ["x", "y"], Settings(config={"x": [MessageQueue("T", "a", 5)]}))
    >>> [queue.queue_id for queue in strategy.share("x")], strategy.share("y")
    ([5], [])
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
