"""An observed consumer group: its consumers, their queues, and its offsets; and the names of RocketMQ's own groups.

Unobserved values are None, never an empty collection: `owners=None` is unknown, `owners=frozenset()` is observed
without an owner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.process_queue import ConsumerEvidence

CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"
CONSUME_POP = "CONSUME_POP"
CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
ConsumerType = Literal["push", "pull", "lite-pull", "assign"]
"""DefaultMQPushConsumer; DefaultMQPullConsumer; DefaultLitePullConsumer that subscribes, or assigns itself queues."""
RETRY_PREFIX = "%RETRY%"
NOT_STORED = -1  # in the place of an offset: the broker has none of the group (`QUERY_NOT_FOUND`)
DLQ_PREFIX = "%DLQ%"
_GRPC_ID = r".+@\d+@\d+@[0-9a-z]+"


def retry_topic(group: str) -> str:
    return RETRY_PREFIX + group  # `MixAll.getRetryTopic`


def dead_letter_topic(group: str) -> str:
    return DLQ_PREFIX + group  # `MixAll.getDLQTopic`


def is_grpc(client_id: str) -> bool:
    """The ID has the form of 5.x gRPC clients: host@pid@index@time in base 36."""
    return client_id.count("@") > 2 and re.fullmatch(_GRPC_ID, client_id) is not None


class Seen(Struct, frozen=True, rename="camel"):
    """Where and when something was observed."""

    where: Annotated[str, "URL, address or file (with the document's position), never with a secret in it"]
    at: Annotated[datetime | None, "time in UTC, ISO 8601; without it, the snapshot's takenAt applies"] = None


class Connection(Struct, frozen=True, rename="camel"):
    """One channel of the group at a broker (`remoting.protocol.body.Connection`); an ID may come twice."""

    client_id: Annotated[str, "ip@instance"]
    client_addr: Annotated[str | None, "ip:port of the socket"] = None
    language: Annotated[str | None, "of its client library"] = None
    version: Annotated[str | None, "of its client library, such as V5_5_0"] = None


class _ConsumerList(Struct, frozen=True, rename="camel"):
    connections: tuple[Connection, ...]
    seen: Seen

    @property
    def client_ids(self) -> tuple[str, ...]:
        """Sorted as clients sort them, duplicates kept."""
        return tuple(sort_client_ids(connection.client_id for connection in self.connections))


class MemberView(_ConsumerList, frozen=True, rename="camel"):
    """What one broker says about the group's consumers: one entry per channel."""

    broker_addr: str | None = None  # the broker that was asked, or None when the source does not report it

    @property
    def place(self) -> str:
        return self.broker_addr or self.seen.where


class ProxyView(_ConsumerList, frozen=True, rename="camel"):
    """A Proxy's list of the group's consumers (`ConsumerManagerActivity` of the Proxy, 5.1.1 and later).

    A Proxy in cluster mode forwards each heartbeat to the others (`HeartbeatSyncer`), so the list has their clients
    too; a Proxy in local mode has the list of its broker. Without a connection, no consumer of the group is online.
    """

    proxy_addr: str


class MemberReport(Struct, frozen=True, rename="camel"):
    """What a consumer says of itself (`remoting.protocol.body.ConsumerRunningInfo`)."""

    client_id: Annotated[str, "client ID"]
    topics: Annotated[frozenset[str] | None, "topics that the consumer subscribes to"] = None
    strategy_class: Annotated[str | None, "Java class of the strategy, without the package"] = None
    client_rebalance: Annotated[bool | None, "false if the broker assigns the consumer's queues (5.x)"] = None
    consumer_type: Annotated[
        ConsumerType | None, "push, pull, lite-pull or assign (the application assigns its queues)"
    ] = None
    consume_timestamp: Annotated[
        str | None, "start of CONSUME_FROM_TIMESTAMP, yyyyMMddHHmmss by the consumer's clock"
    ] = None
    started_at: Annotated[int | None, "start time, in ms since 1970"] = None
    pop_topics: Annotated[frozenset[str] | None, "topics that the consumer receives by POP"] = None
    evidence: Annotated[ConsumerEvidence | None, "data for diagnose; null if it was not requested"] = None


class QueueState(Struct, frozen=True, rename="camel"):
    """One queue as the group uses it. What was not observed is None."""

    owners: Annotated[frozenset[str] | None, "client IDs of the owners; null when unknown"] = None
    broker_offset: Annotated[int | None, "offset of the next message that the broker stores"] = None
    consumer_offset: Annotated[
        int | None, "offset of the next message that the group reads; -1 if the group has stored none"
    ] = None
    last_timestamp: Annotated[int | None, "store time of the last message that the group read, in ms since 1970"] = None
    stored_offset: Annotated[
        int | None, "offset that the broker returns to a new owner of the queue; -1 if it has none"
    ] = None
    min_offset: Annotated[int | None, "offset of the first message that the broker still has"] = None
    timestamp_offset: Annotated[int | None, "offset of the first message since the consumer's consumeTimestamp"] = None

    @property
    def sorted_owners(self) -> tuple[str, ...] | None:
        if self.owners is None or len(self.owners) < 2:
            return None if self.owners is None else tuple(self.owners)
        return tuple(sort_client_ids(self.owners))

    @property
    def lag(self) -> int | None:
        """Unread messages, at least 0; None when either offset is unknown.

        Below 0 no offset is stored (`ConsumerManageProcessor.queryConsumerOffset`), so all messages are unread. The end
        may be smaller than the group's offset, because it is read a moment earlier.
        """
        if self.broker_offset is None or self.consumer_offset is None:
            return None
        return max(self.broker_offset - max(self.consumer_offset, 0), 0)


States = Mapping[MessageQueue, QueueState]  # what is known of single queues; a queue that nobody looked at is absent


class ConsumerGroup(Struct, frozen=True, rename="camel", dict=True):
    group: str
    seen: Seen
    consume_type: str | None = None  # CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP
    message_model: str | None = None  # CLUSTERING or BROADCASTING
    consume_from_where: str | None = None
    topics: tuple[str, ...] | None = None  # topics of the group's subscription, `%RETRY%` included
    # the consumers as each broker lists them; None when no broker was asked, `()` when no broker knows the group
    views: tuple[MemberView, ...] | None = None
    queues: States = field(default_factory=dict)
    reports: Mapping[str, MemberReport] = field(default_factory=dict)  # by client ID, of the consumers that answered
    request_modes: Mapping[str, tuple[str, ...]] | None = None
    # topic → PULL or POP by brokers (`MessageRequestMode`), several where they differ; clients with
    # clientRebalance=true pull all the same
    consume_tps: float | None = None  # messages per second that brokers gave the group over the last minute
    polling_num: int | None = None  # waiting receive requests (POP) of the group; known when no broker lists a consumer
    dead_letters: int | None = None  # messages ever in its dead-letter topic; known when a listener fails
    # topic → of how many further consumers a consumer may read the queues by POP (`popShareQueueNum`), each value once
    pop_share_queue_nums: Mapping[str, tuple[int, ...]] | None = None
    proxies: tuple[ProxyView, ...] | None = None  # the consumers as each Proxy lists them that was asked and answered

    @cached_property
    def client_ids(self) -> tuple[str, ...] | None:
        """The consumers, sorted, duplicates kept; None when they were not observed.

        A client connects to all brokers of its topics, so an ID counts as often as two brokers list it: further
        channels at one broker are from broken connections, until `ConsumerManager.scanNotActiveChannel` after 120 s.
        """
        if self.views is None:
            return None
        listed = [Counter(view.client_ids) for view in self.views]
        most: Counter[str] = Counter()
        for client_id in frozenset[str]().union(*listed):
            numbers = sorted((each[client_id] for each in listed if each[client_id]), reverse=True)
            most[client_id] = numbers[min(1, len(numbers) - 1)]
        for proxy in self.proxies or ():
            most |= Counter(proxy.client_ids)
        return tuple(sort_client_ids(most.elements()))

    @cached_property
    def stale_channels(self) -> tuple[tuple[MemberView, str, int], ...]:
        """Where a broker lists an ID more often than it has processes: the list, the ID, and how often."""
        processes = Counter(self.client_ids or ())
        return tuple(
            (view, client_id, number)
            for view in self.views or ()
            for client_id, number in Counter(view.client_ids).items()
            if number > processes[client_id]
        )

    def processes_in(self, view: MemberView) -> tuple[str, ...]:
        listed = Counter(view.client_ids) & Counter(self.client_ids or ())
        return tuple(sort_client_ids(listed.elements()))

    def sharing_in(self, view: MemberView) -> tuple[str, ...]:
        """The same without gRPC clients, which only brokers with a Proxy in them list."""
        return tuple(client_id for client_id in self.processes_in(view) if not is_grpc(client_id))

    @cached_property
    def connection_of(self) -> Mapping[str, Connection]:
        """Client ID → a connection, preferably one with its language."""
        found: dict[str, Connection] = {}
        for connection in (connection for view in self.lists for connection in view.connections):
            if found.setdefault(connection.client_id, connection).language is None:
                found[connection.client_id] = connection
        return found

    @property
    def lists(self) -> tuple[MemberView | ProxyView, ...]:
        return (*(self.views or ()), *(self.proxies or ()))

    @property
    def own_topics(self) -> tuple[str, ...] | None:
        """The topics without the retry topic."""
        return None if self.topics is None else tuple(t for t in self.topics if not t.startswith(RETRY_PREFIX))

    @property
    def without_foreign_offsets(self) -> ConsumerGroup:
        """The group without brokers' offsets if it is BROADCASTING.

        Such consumers keep offsets in a file (`LocalFileOffsetStore`); brokers store none, and consume stats report 0.
        """
        if self.message_model != BROADCASTING:
            return self
        unknown = dict.fromkeys(("consumer_offset", "stored_offset", "last_timestamp"))
        return replace(self, queues={queue: replace(state, **unknown) for queue, state in self.queues.items()})

    def subscribes_to(self, topic: str) -> bool:
        """Whether its consumers read the topic, as far as known.

        Push consumers in CLUSTERING mode add the retry topic themselves (`DefaultMQPushConsumerImpl.copySubscription`).
        """
        if self.topics is None or topic in self.topics:
            return True
        if any(topic in (report.topics or ()) for report in self.reports.values()):
            return True
        adds_it = self.message_model != BROADCASTING and self.consume_type != CONSUME_ACTIVELY
        return adds_it and topic == retry_topic(self.group)

    @property
    def has_split_view(self) -> bool:
        return len({self.sharing_in(view) for view in self.views or ()}) > 1


PROXY_SYNC_TOPIC = "DefaultHeartBeatSyncerTopic"  # `ProxyConfig.heartbeatSyncerTopicName`
PROXY_SYNC_GROUP = f"CID_{PROXY_SYNC_TOPIC}"  # `AbstractSystemMessageSyncer.getSystemMessageConsumerId`
_TOPICS = {
    *("TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC"),
    *("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"),
    *("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", PROXY_SYNC_TOPIC),
}
REPLY_SUFFIX = "_REPLY_TOPIC"  # of the topic for replies, which begins with a cluster's name
_OWN_TOPIC_PREFIXES = ("rmq_sys_", "%SYS%")
_TOPIC_PREFIXES = (*_OWN_TOPIC_PREFIXES, RETRY_PREFIX, DLQ_PREFIX)
_GROUPS = {
    *("DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER"),
    *("__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY"),
    *("CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL", "CID_RMQ_SYS_TRANS", PROXY_SYNC_GROUP),
}
_GROUP_PREFIXES = ("CID_RMQ_SYS_", "%SYS%")
SYSTEM_PREFIXES = tuple(dict.fromkeys((*_OWN_TOPIC_PREFIXES, *_GROUP_PREFIXES)))
"""Prefixes that no name of a group or cluster follows."""


def is_system_topic(topic: str) -> bool:
    """RocketMQ's own topics, and those for retries and dead letters.

    Brokers and clusters also have a topic of their own name each, which only the cluster's list shows.
    """
    return topic in _TOPICS or topic.startswith(_TOPIC_PREFIXES) or topic.endswith(REPLY_SUFFIX)


def is_system_group(group: str) -> bool:
    return group in _GROUPS or group.startswith(_GROUP_PREFIXES)


def is_fixed_name(name: str) -> bool:
    """A topic or group that has the same name in every cluster."""
    return name in _TOPICS or name in _GROUPS
