"""Each consumer's share of a topic, computed once for each list of consumers that anybody sees."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rmqlb.engine.allocate import PreparedStrategies
from rmqlb.engine.allocate.sdks import JAVA, Sdk
from rmqlb.engine.allocate.strategy import Strategy
from rmqlb.engine.assignment.assign import Members
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import MASTER_ID, BrokerData, TopicRouteData

Share = dict[MessageQueue, None]  # a set that keeps the clients' order
_MOST_KEPT = 5_000_000
"""IDs and queues kept in memory, some 100 bytes each: more than most groups need, and a bound for many trials."""


class TopicView(Struct, frozen=True, eq=False):
    """A client's view of a topic after a route poll (`topicSubscribeInfoTable` and `topicRouteTable`)."""

    topic: str
    queues: tuple[MessageQueue, ...]  # the read queues, sorted as clients sort them
    brokers: tuple[str, ...]  # names of all brokers of the route; one of them is queried for the consumers
    addresses: Mapping[str, tuple[int, ...]]  # broker name → the ids of its processes, sorted


def process_ids(broker: BrokerData) -> tuple[int, ...]:
    """The sorted IDs of a broker's processes; a broker without an address counts as a master."""
    return tuple(sorted(broker.broker_addrs)) or (MASTER_ID,)


class MemberList(Struct, frozen=True, eq=False):
    """The sorted IDs of a group from a broker, duplicates kept; equal lists are one remembered object."""

    client_ids: tuple[str, ...]


class Shares:
    """`AllocateMessageQueueStrategy.allocate` with a memory; equal views and lists are one object."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._strategies: dict[tuple[TopicView, str, MemberList, str], Strategy | None] = {}
        self._shares: dict[tuple[TopicView, str, MemberList, str], Share | None] = {}
        self._lists: dict[tuple[str, ...], MemberList] = {}
        self._views: dict[object, TopicView] = {}
        self._kept = 0

    def view_of(self, route: TopicRouteData) -> TopicView:
        addresses = {broker.broker_name: process_ids(broker) for broker in route.broker_datas}
        if not addresses:  # a dump that only knows the queues
            addresses = {data.broker_name: (MASTER_ID,) for data in route.queue_datas}
        queues = tuple(route.subscribe_queues())
        view = TopicView(route.topic, queues, tuple(addresses), addresses)
        return self._views.setdefault((route.topic, queues, tuple(addresses.items())), view)

    def list_of(self, client_ids: tuple[str, ...]) -> MemberList:
        if client_ids not in self._lists:
            self._keep(len(client_ids))
            self._lists[client_ids] = MemberList(client_ids)
        return self._lists[client_ids]

    def share(self, view: TopicView, strategy: str, members: MemberList, client_id: str) -> Share | None:
        """A consumer's queues; None when its strategy throws, or the queried broker answers nothing."""
        if not self._members.is_answered(client_id, strategy):
            return None
        key = view, strategy, members, client_id
        if key not in self._shares:
            self._keep(1)
            self._shares[key] = self._computed(*key)
        return self._shares[key]

    def _computed(self, view: TopicView, strategy: str, members: MemberList, client_id: str) -> Share | None:
        sdk = self._members.sdk_for(client_id)
        key = view, strategy, members, sdk.name
        if key not in self._strategies:
            self._keep(len(view.queues) + len(members.client_ids))
            self._strategies[key] = self._prepared(view, strategy, members, sdk)
        if (prepared := self._strategies[key]) is None:
            return None
        try:
            return dict.fromkeys(queue for queue in prepared.share(client_id) if queue.topic == view.topic)
        except AllocationError:
            return None

    def _prepared(self, view: TopicView, strategy: str, members: MemberList, sdk: Sdk) -> Strategy | None:
        lists = PreparedStrategies(view.queues, members.client_ids, self._members.settings, order=JAVA.order)
        try:
            return lists.strategy(strategy, sdk)
        except AllocationError:
            return None

    def _keep(self, size: int) -> None:
        """Make room for IDs and queues: before memory grows too large, forget everything, and compute again later."""
        self._kept += size
        if self._kept > _MOST_KEPT:
            self._kept = size
            for memory in (self._strategies, self._shares, self._lists):
                memory.clear()
