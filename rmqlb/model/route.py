"""A topic's route: the number of its queues on each broker, and the two queue lists that clients make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated

from msgspec import Meta, Struct, field

from rmqlb.errors import DataError
from rmqlb.model.limits import MOST_QUEUES, MOST_QUEUES_OF_A_BROKER
from rmqlb.model.message_queue import MessageQueue, grouped, parse_int, sort_key, sort_queues, split

MASTER_ID = 0
PERM_WRITE = 2
PERM_READ = 4
GLOBAL_SCOPE = "__global__"
LOGICAL_PREFIX = "__syslo__"


QueueNumber = Annotated[int, Meta(ge=-(2**31), le=MOST_QUEUES_OF_A_BROKER)]  # below 0 counts as 0, as in Java


class QueueData(Struct, frozen=True, rename="camel"):
    """The number of a topic's queues on one broker (`remoting.protocol.route.QueueData`)."""

    broker_name: Annotated[str, "name of the broker group"]
    read_queue_nums: Annotated[QueueNumber, "queues that consumers can read"] = 0
    write_queue_nums: Annotated[QueueNumber, "queues that producers can write"] = 0
    perm: Annotated[int, "bits: 4 read, 2 write, 1 inherit; 6 is usual"] = 0
    topic_sys_flag: Annotated[int, "flags of RocketMQ"] = 0

    @property
    def readable(self) -> bool:  # `PermName.isReadable`
        return self.perm & PERM_READ == PERM_READ

    @property
    def writable(self) -> bool:  # `PermName.isWriteable`
        return self.perm & PERM_WRITE == PERM_WRITE


class BrokerData(Struct, frozen=True, rename="camel"):
    """The addresses of a broker (`remoting.protocol.route.BrokerData`)."""

    cluster: Annotated[str, "cluster name"]
    broker_name: Annotated[str, "name of the broker group"]
    broker_addrs: Annotated[Mapping[int, str], "broker id → `host:port`; id 0 is the master"]
    enable_acting_master: Annotated[bool, "5.x, a slave may act as master"] = False
    zone_name: Annotated[str | None, "5.x, None when the broker has none"] = None

    @property
    def has_master(self) -> bool:
        return MASTER_ID in self.broker_addrs

    @property
    def address(self) -> str | None:
        """The master's address, otherwise the slave's with the smallest ID."""
        return self.broker_addrs[min(self.broker_addrs)] if self.broker_addrs else None


class TopicQueueMappingInfo(Struct, frozen=True, rename="camel"):
    """A static topic's queues at a broker, as `protocol.statictopic.TopicQueueMappingInfo` (5.x)."""

    topic: Annotated[str | None, "the topic"] = None
    scope: Annotated[str | None, "RocketMQ's scope of the topic; an entry without one is ignored"] = None
    total_queues: Annotated[QueueNumber, "total number of logical queues"] = 0
    bname: Annotated[str | None, "the broker"] = None
    epoch: Annotated[int, "epoch of the mapping; the mapping with the largest epoch applies"] = 0
    curr_id_map: Annotated[Mapping[int, int], "logical queue → the broker's queue"] = field(default_factory=dict)


class TopicRouteData(Struct, frozen=True, rename="camel", dict=True):
    """A topic's route as a NameServer gives it (`remoting.protocol.route.TopicRouteData`), with the topic's name."""

    topic: Annotated[str, "full topic name"]
    queue_datas: Annotated[tuple[QueueData, ...], "in the server's order"]
    broker_datas: Annotated[tuple[BrokerData, ...], "in the server's order"]
    order_topic_conf: Annotated[str | None, "`broker:count;broker:count` of an ordered topic, or None"] = None
    topic_queue_mapping_by_broker: Annotated[Mapping[str, TopicQueueMappingInfo] | None, "5.x static topics"] = None

    @property
    def is_order_topic(self) -> bool:
        return bool(self.order_topic_conf)

    @property
    def is_static(self) -> bool:
        return bool(self.topic_queue_mapping_by_broker)

    def broker(self, broker_name: str) -> BrokerData | None:
        """The first BrokerData of that name, as clients look it up."""
        return next((broker for broker in self.broker_datas if broker.broker_name == broker_name), None)

    def brokers_by_name(self) -> dict[str, BrokerData]:
        return {broker.broker_name: broker for broker in reversed(self.broker_datas)}

    def differs_from(self, other: TopicRouteData) -> bool:
        """A client that polls `other` sees a change (`TopicRouteData.topicRouteDataChanged`).

        The order of brokers, clusters, zones and acting masters do not count (`BrokerData.equals`).
        """
        return _compared(self) != _compared(other)

    def publish_queues(self) -> list[MessageQueue]:
        """The producer's queues, in the order that round robin and hash selectors index into (raises DataError).

        Write queues of writable brokers that have a master, by broker name and id; for an ordered topic the queues
        of `order_topic_conf` as listed, whatever the brokers say; for a static topic the logical queues by id.
        Mirrors `MQClientInstance.topicRouteData2TopicPublishInfo` (5.5.0; the static branch is 5.x only).
        """
        if self.order_topic_conf:
            return self._ordered_queues(self.order_topic_conf)
        if self.order_topic_conf is None and self.topic_queue_mapping_by_broker:
            return sorted(self._static_queues(), key=lambda queue: queue.queue_id)
        queues: list[MessageQueue] = []
        brokers = self.brokers_by_name()
        for data in sorted(self.queue_datas, key=lambda data: sort_key(data.broker_name)):
            broker = brokers.get(data.broker_name)
            if data.writable and broker is not None and broker.has_master:
                queues += self._queues(data.broker_name, data.write_queue_nums)
        return queues

    def subscribe_queues(self) -> list[MessageQueue]:
        """The consumers' queues, sorted as consumers sort them before they allocate.

        Read queues of readable brokers; a broker without a master counts. For a static topic the logical queues.
        Mirrors `MQClientInstance.topicRouteData2TopicSubscribeInfo` (5.5.0; the static branch is 5.x only).
        """
        return list(self._subscribe_queues)

    @cached_property
    def _subscribe_queues(self) -> tuple[MessageQueue, ...]:
        if self.topic_queue_mapping_by_broker:
            return tuple(sort_queues(self._static_queues()))
        readable = (self._queues(data.broker_name, data.read_queue_nums) for data in self.queue_datas if data.readable)
        return tuple(sort_queues({each for queues in readable for each in queues}))

    def serving_brokers(self) -> dict[MessageQueue, str]:
        """The real broker of each logical queue of a static topic, by the newest epoch; others are left out.

        Mirrors `ClientMetadata.topicRouteData2EndpointsForStaticTopic` (5.x).
        """
        mapping = self.topic_queue_mapping_by_broker or {}
        return {
            MessageQueue(self.topic, logical_broker_name(scope), queue_id): info.bname
            for scope, infos in _by_scope(mapping.values()).items()
            for info in sorted(infos, key=lambda info: info.epoch)
            for queue_id in info.curr_id_map
            if info.bname is not None
        }

    def _ordered_queues(self, conf: str) -> list[MessageQueue]:
        queues: list[MessageQueue] = []
        for part in split(conf, ";"):
            item = split(part, ":")
            try:
                broker_name, count = item[0], parse_int(item[1])
            except (IndexError, ValueError):
                problem = f"order config of topic {self.topic} is malformed at {part!r}: {conf!r}"
                hint = "clients cannot use such a route; each part must be BROKER:COUNT"
                raise DataError(problem, hint=hint, code="bad-order-config") from None
            queues += self._queues(broker_name, count)
        return queues

    def _static_queues(self) -> list[MessageQueue]:
        mapping = self.topic_queue_mapping_by_broker or {}
        return [
            queue
            for scope, infos in _by_scope(mapping.values()).items()
            for queue in self._queues(logical_broker_name(scope), max(info.total_queues for info in infos))
        ]

    def _queues(self, broker_name: str, number: int) -> Iterator[MessageQueue]:
        if number > MOST_QUEUES:
            raise DataError(f"topic {self.topic}: {number} queues of {broker_name}, more than {MOST_QUEUES}")
        return (MessageQueue(self.topic, broker_name, i) for i in range(number))


def _compared(route: TopicRouteData) -> tuple[object, ...]:
    return (
        sorted(route.queue_datas, key=lambda data: sort_key(data.broker_name)),
        sorted(((b.broker_name, dict(b.broker_addrs)) for b in route.broker_datas), key=lambda b: sort_key(b[0])),
        route.order_topic_conf,
        route.topic_queue_mapping_by_broker,
    )


def _by_scope(infos: Iterable[TopicQueueMappingInfo]) -> dict[str, list[TopicQueueMappingInfo]]:
    return grouped((info.scope, info) for info in infos if info.scope is not None)


def logical_broker_name(scope: str) -> str:
    """`TopicQueueMappingUtils.getMockBrokerName`; the global scope loses its first two characters."""
    return LOGICAL_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)
