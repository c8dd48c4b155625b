"""The routes as the NameServers tell them at each moment.

A broker that starts, ends or changes a topic is known at once; one that falls silent is dropped when its last
registration is too old (`RouteInfoManager.scanNotActiveBroker`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_route
from rmqlb.engine.rebalance.shares import TopicView
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData


class NameServer:
    """What all NameServers say."""

    def __init__(self, routes: Sequence[TopicRouteData], view_of: Callable[[TopicRouteData], TopicView]) -> None:
        self._view_of = view_of
        self._whole = {route.topic: route for route in routes}
        self._gone: dict[str, frozenset[int] | None] = {}
        # topic → what a client that asks now learns; a topic without any broker left is absent, and clients keep the
        # route that they have
        self.views: dict[str, TopicView] = {}
        self._tell(self._whole)

    @property
    def broker_names(self) -> list[str]:
        return list(dict.fromkeys(name for view in self.views.values() for name in view.brokers))

    def drop(self, broker_name: str, ids: Collection[int] | None = None) -> None:
        """Processes of a broker are lost, all when no ids are said: when none is left, its queues leave every route."""
        self._gone[broker_name] = None if ids is None else frozenset(ids)
        self._tell(self._having(broker_name))

    def add(self, event: Event) -> None:
        name = event.subject
        self._gone.pop(name, None)
        if not self._having(name):
            new = Changes(add_brokers=(NewBroker(name, event.read_queues, event.write_queues),))
            for topic, route in self._whole.items():
                self._whole[topic] = route if route.is_static else change_route(route, new)
        self._tell(self._having(name))

    def change(self, event: Event) -> None:
        reads = () if event.read_queues is None else (QueueCount(event.read_queues, event.broker_name),)
        writes = () if event.write_queues is None else (QueueCount(event.write_queues, event.broker_name),)
        changes = Changes(read_queues=reads, write_queues=writes)
        self._whole[event.subject] = change_route(self._whole[event.subject], changes)
        self._tell([event.subject])

    def queues(self) -> set[MessageQueue]:
        """Every read queue that the brokers have, whether they run or not."""
        return {queue for route in self._whole.values() for queue in route.subscribe_queues()}

    def _having(self, broker_name: str) -> list[str]:
        return [
            topic
            for topic, route in self._whole.items()
            if route.broker(broker_name) or any(data.broker_name == broker_name for data in route.queue_datas)
        ]

    def _tell(self, topics: Iterable[str]) -> None:
        for topic in topics:
            route = self._now(self._whole[topic])
            view = self._view_of(route)
            if view.brokers:
                self.views[topic] = view
            else:
                self.views.pop(topic, None)

    def _now(self, route: TopicRouteData) -> TopicRouteData:
        if not self._gone:  # a static topic loses its brokers likewise, but not its queues
            return route
        left = {name: self._left(route, name) for name in self._gone}
        return replace(
            route,
            queue_datas=tuple(data for data in route.queue_datas if left.get(data.broker_name, True)),
            broker_datas=tuple(
                replace(data, broker_addrs=left[data.broker_name]) if data.broker_name in left else data
                for data in route.broker_datas
                if left.get(data.broker_name, True)
            ),
        )

    def _left(self, route: TopicRouteData, name: str) -> dict[int, str]:
        """The addresses that the route still has of a broker of which processes are lost."""
        broker, gone = route.broker(name), self._gone[name]
        if broker is None or gone is None:
            return {}
        return {number: address for number, address in broker.broker_addrs.items() if number not in gone}
