"""Each member's share of a topic, computed once for each list of members that anybody sees."""

from __future__ import annotations

from msgspec import Struct

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.strategy import Settings, Strategy
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData

Share = dict[MessageQueue, None]
"""A set that keeps the clients' order."""
_MOST_KEPT = 200_000
"""Shares kept in memory: far more than a group goes through, and a bound for thousands of trials."""


class TopicView(Struct, frozen=True, eq=False):
    """What a client knows of a topic after a route poll (`topicSubscribeInfoTable` and `topicRouteTable`).

    Attributes:
        topic: its name.
        queues: the read queues, sorted as clients sort them.
        brokers: names of all brokers of the route, of which one is asked for the members.
    """

    topic: str
    queues: tuple[MessageQueue, ...]
    brokers: tuple[str, ...]


class Shares:
    """`AllocateMessageQueueStrategy.allocate` with a memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._prepared: dict[tuple[TopicView, str, tuple[str, ...]], Strategy | None] = {}
        self._shares: dict[tuple[TopicView, str, tuple[str, ...], str], Share | None] = {}
        self._views: dict[tuple[str, tuple[MessageQueue, ...], tuple[str, ...]], TopicView] = {}

    def view_of(self, route: TopicRouteData) -> TopicView:
        """What a client makes of a route; equal routes give the same view."""
        brokers = tuple(broker.broker_name for broker in route.broker_datas)
        if not brokers:  # a dump that only knows the queues
            brokers = tuple(dict.fromkeys(data.broker_name for data in route.queue_datas))
        queues = tuple(route.subscribe_queues())
        return self._views.setdefault((route.topic, queues, brokers), TopicView(route.topic, queues, brokers))

    def share(self, view: TopicView, strategy: str, client_ids: tuple[str, ...], client_id: str) -> Share | None:
        """A member's queues; None when its strategy throws.

        Args:
            view: the topic as the member knows it.
            strategy: the member's.
            client_ids: the members as the broker names them, sorted.
            client_id: the member.
        """
        key = view, strategy, client_ids, client_id
        if key not in self._shares:
            if len(self._shares) >= _MOST_KEPT:
                self._shares.clear()
                self._prepared.clear()
            self._shares[key] = self._compute(view, strategy, client_ids, client_id)
        return self._shares[key]

    def _compute(self, view: TopicView, strategy: str, client_ids: tuple[str, ...], client_id: str) -> Share | None:
        key = view, strategy, client_ids
        try:
            if key not in self._prepared:
                self._prepared[key] = None
                self._prepared[key] = prepare(strategy, view.queues, client_ids, self._settings)
            prepared = self._prepared[key]
            if prepared is None:
                return None
            return dict.fromkeys(queue for queue in prepared.share(client_id) if queue.topic == view.topic)
        except AllocationError:
            return None
