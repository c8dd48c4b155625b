"""Each member's share of a topic, computed once for each list of members that anybody sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from rmqlb.engine.allocate import PreparedStrategies
from rmqlb.engine.allocate.sdks import JAVA, Sdk
from rmqlb.engine.allocate.strategy import Settings, Strategy
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import MASTER_ID, BrokerData, TopicRouteData

Share = dict[MessageQueue, None]  # a set that keeps the clients' order
_MOST_KEPT = 5_000_000
"""Ids and queues kept in memory, some 100 bytes each: more than most groups go through, and a bound for many trials."""


_ViewKey = tuple[str, tuple[MessageQueue, ...], tuple[tuple[str, tuple[int, ...]], ...]]


class TopicView(Struct, frozen=True, eq=False):
    """What a client knows of a topic after a route poll (`topicSubscribeInfoTable` and `topicRouteTable`)."""

    topic: str
    queues: tuple[MessageQueue, ...]  # the read queues, sorted as clients sort them
    brokers: tuple[str, ...]  # names of all brokers of the route, of which one is asked for the members
    addresses: Mapping[str, tuple[int, ...]]  # broker name → the ids of its processes, sorted


def process_ids(broker: BrokerData) -> tuple[int, ...]:
    """The ids of a broker's processes, sorted; one that has no address counts as a master."""
    return tuple(sorted(broker.broker_addrs)) or (MASTER_ID,)


class MemberList(Struct, frozen=True, eq=False):
    """The ids of a group as a broker names them, sorted, duplicates kept; equal lists are one remembered object."""

    client_ids: tuple[str, ...]


class _Allocation(Struct):
    """What a strategy gives for one view and one list of members; no strategy when it cannot be constructed."""

    strategy: Strategy | None
    shares: dict[str, Share | None]


class Shares:
    """`AllocateMessageQueueStrategy.allocate` with a memory."""

    def __init__(
        self,
        settings: Settings,
        sdk_for: Callable[[str], Sdk] = lambda _: JAVA,
        is_answered: Callable[[str, str], bool] = lambda _client_id, _strategy: True,
    ) -> None:
        """Of strategy objects with these settings, in the client library that each member runs.

        `is_answered` is `Members.is_answered`.
        """
        self._settings = settings
        self.sdk_for = sdk_for
        self._is_answered = is_answered
        self._allocations: dict[tuple[TopicView, str, MemberList, str], _Allocation] = {}
        self._lists: dict[tuple[str, ...], MemberList] = {}
        self._views: dict[_ViewKey, TopicView] = {}
        self._kept = 0

    def view_of(self, route: TopicRouteData) -> TopicView:
        addresses = {broker.broker_name: process_ids(broker) for broker in route.broker_datas}
        if not addresses:  # a dump that only knows the queues
            addresses = {data.broker_name: (MASTER_ID,) for data in route.queue_datas}
        queues = tuple(route.subscribe_queues())
        key = route.topic, queues, tuple(addresses.items())
        if key not in self._views:
            self._views[key] = TopicView(route.topic, queues, tuple(addresses), addresses)
        return self._views[key]

    def members(self, client_ids: tuple[str, ...]) -> MemberList:
        """The list of these ids: to look a share up by it does not cost the more the more members there are."""
        known = self._lists.get(client_ids)
        if known is None:
            self._keep(len(client_ids))
            known = self._lists[client_ids] = MemberList(client_ids)
        return known

    def share(self, view: TopicView, strategy: str, members: MemberList, client_id: str) -> Share | None:
        """A member's queues; None when its strategy throws, or the broker that it asks answers nothing."""
        if not self._is_answered(client_id, strategy):
            return None
        sdk = self.sdk_for(client_id)
        key = view, strategy, members, sdk.name
        allocation = self._allocations.get(key)
        if allocation is None:
            self._keep(len(view.queues) + len(members.client_ids))
            allocation = self._allocations[key] = _Allocation(self._prepare(view, strategy, members, sdk), {})
        if client_id not in allocation.shares:
            self._keep(1)
            allocation.shares[client_id] = _share(view, allocation.strategy, client_id)
        return allocation.shares[client_id]

    def _keep(self, size: int) -> None:
        """Room for so many ids and queues more: all is forgotten before it is too much, and computed anew."""
        self._kept += size
        if self._kept > _MOST_KEPT:
            self._kept = size
            self._allocations.clear()
            self._lists.clear()

    def _prepare(self, view: TopicView, strategy: str, members: MemberList, sdk: Sdk) -> Strategy | None:
        lists = PreparedStrategies(view.queues, members.client_ids, self._settings, order=JAVA.order)
        try:
            return lists.strategy(strategy, sdk)
        except AllocationError:
            return None


def _share(view: TopicView, strategy: Strategy | None, client_id: str) -> Share | None:
    if strategy is None:
        return None
    try:
        return dict.fromkeys(queue for queue in strategy.share(client_id) if queue.topic == view.topic)
    except AllocationError:
        return None
