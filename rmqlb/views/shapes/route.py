"""`rmqlb/route`."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.views.shapes.envelope import QueueNameData


class RouteSeenData(TypedDict):
    """Where and when a route was seen.

    Attributes:
        where: in words.
        at: ISO-8601 in UTC; null when the source does not tell.
    """

    where: str
    at: str | None


class BrokerData(TypedDict):
    """A broker of a topic, addresses and queue counts together.

    Attributes:
        brokerName: its name.
        cluster: the cluster that it names itself after.
        brokerAddrs: broker id → address; 0 is the master.
        hasMaster: the route has an address of a master.
        perm: RocketMQ's bits: 4 read, 2 write, 1 inherit; null when the route has no queues of the broker.
        permText: the same as text, such as RW-.
        readQueueNums: queues that consumers share out.
        writeQueueNums: queues that producers pick from.
        zoneName: its zone, where it has one.
        enableActingMaster: a slave may act as master.
    """

    brokerName: str
    cluster: str | None
    brokerAddrs: dict[str, str]
    hasMaster: bool
    perm: int | None
    permText: str | None
    readQueueNums: int | None
    writeQueueNums: int | None
    zoneName: str | None
    enableActingMaster: bool | None


class TopicRouteData(TypedDict):
    """The route of a topic and what clients make of it.

    Attributes:
        topic: its name.
        orderTopicConf: the order configuration, where there is one.
        isStatic: it is a static (logical) topic.
        seen: where and when.
        brokers: by name.
        publishQueues: what producers pick from, in their order.
        subscribeQueues: what consumers share out, in their order.
    """

    topic: str
    orderTopicConf: str | None
    isStatic: bool
    seen: RouteSeenData
    brokers: list[BrokerData]
    publishQueues: list[QueueNameData]
    subscribeQueues: list[QueueNameData]


class RouteData(TypedDict):
    """The routes of one or several topics.

    Attributes:
        topics: topic by topic.
    """

    topics: list[TopicRouteData]
