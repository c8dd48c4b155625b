"""RocketMQ's documents as model values. Past this file no name is in camelCase."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.group import (
    BROADCASTING,
    CONSUME_ACTIVELY,
    CONSUME_PASSIVELY,
    Connection,
    ConsumerType,
    MemberReport,
    QueueState,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer
from rmqlb.sources.formats.documents import (
    AssignmentDocument,
    BrokerDataDocument,
    ConnectionsDocument,
    ConsumeStatsDocument,
    RouteDocument,
    RunningInfoDocument,
    TopicConsumerDocument,
    convert,
    is_route,
    open_envelope,
    parse_document,
)

_MQ_TEXT = r"(?s)MessageQueue \[topic=(.*), brokerName=(.*), queueId=(-?[0-9]{1,18})\]"
_MILLISECONDS = r"[0-9]{1,18}"


def parse_route(document: str | bytes | Mapping[str, object], topic: str) -> TopicRouteData:
    """A route document as a NameServer, `mqadmin topicRoute` or the Dashboard writes it.

    Args:
        document: JSON text, RocketMQ's dialect included, or the parsed document; a Dashboard envelope is opened.
        topic: the topic's name, which the document does not hold.

    Raises:
        DocumentError: it is not a route; the message names the place.
        UsageError: the topic's name is no text.
    """
    if not isinstance(topic, str):
        raise UsageError(f"the topic is of type {type(topic).__name__}: its name is needed")
    where = f"route of {topic}"
    value: object = document
    if isinstance(document, str | bytes):
        body = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
        value = parse_document(body, where)
    if isinstance(value, dict) and {"status", "data"} <= value.keys():
        value = open_envelope(value, where)
    if not is_route(value):
        raise DocumentError(f"{where}: neither queueDatas nor brokerDatas is in it")
    return route(convert(value, RouteDocument, where), topic)


def route(document: RouteDocument, topic: str) -> TopicRouteData:
    """A route document as a model value; missing lists are empty, as a 5.x client decodes them."""
    mapping = document.topic_queue_mapping_by_broker
    return TopicRouteData(
        topic=topic,
        queue_datas=tuple(document.queue_datas or ()),
        broker_datas=tuple(broker(data) for data in document.broker_datas or ()),
        order_topic_conf=document.order_topic_conf,
        topic_queue_mapping_by_broker=None
        if mapping is None
        else {
            name: TopicQueueMappingInfo(
                info.topic, info.scope, info.total_queues, info.bname, info.epoch, info.curr_id_map or {}
            )
            for name, info in mapping.items()
        },
    )


def broker(document: BrokerDataDocument) -> BrokerData:
    """A BrokerData document as a model value."""
    return BrokerData(
        document.cluster or "",
        document.broker_name,
        document.broker_addrs or {},
        document.enable_acting_master,
        document.zone_name,
    )


def route_topic(document: RouteDocument) -> str | None:
    """The topic's name where a route document tells it: only those of static topics do."""
    names = {info.topic for info in (document.topic_queue_mapping_by_broker or {}).values() if info.topic}
    return names.pop() if len(names) == 1 else None


def connections(document: ConnectionsDocument) -> tuple[Connection, ...]:
    """The channels in a ConsumerConnection document, in the order of their ids and addresses."""
    return tuple(
        Connection(item.client_id, item.client_addr, item.language, item.version_desc or _version_name(item.version))
        for item in sorted(document.connection_set, key=lambda item: (item.client_id, item.client_addr or ""))
    )


def queue_states(items: Iterable[TopicConsumerDocument]) -> dict[MessageQueue, QueueState]:
    """Offsets and owners by queue. The Dashboard names one owner or none; none there means unknown."""
    return {
        MessageQueue(document.topic, item.broker_name, item.queue_id): QueueState(
            owners=frozenset({item.client_info}) if item.client_info else None,
            broker_offset=item.broker_offset,
            consumer_offset=item.consumer_offset,
            last_timestamp=item.last_timestamp,
        )
        for document in items
        for item in document.queue_stat_info_list
    }


def consume_stats(document: ConsumeStatsDocument, where: str) -> dict[MessageQueue, QueueState]:
    """Offsets by queue, as one broker knows them; it does not know who owns a queue (raises DocumentError)."""
    return {
        queue_key(key, where): QueueState(None, item.broker_offset, item.consumer_offset, item.last_timestamp)
        for key, item in document.offset_table.items()
    }


def member_report(document: RunningInfoDocument, client_id: str) -> MemberReport:
    """What a member says of itself."""
    topics = document.subscription_set
    rebalance = document.properties.get("clientRebalance")
    return MemberReport(
        client_id=client_id,
        topics=None if topics is None else frozenset(item.topic for item in topics),
        strategy_class=_simple_class(document.properties.get("allocateMessageQueueStrategy")),
        client_rebalance=None if rebalance is None else rebalance == "true" or _always_rebalances(document.properties),
        consume_timestamp=document.properties.get("consumeTimestamp"),
        started_at=whole_number(document.properties.get("PROP_CONSUMER_START_TIMESTAMP")),
        consumer_type=_consumer_type(document),
        pop_topics=None if document.mq_pop_table is None else frozenset(_live_topics(document.mq_pop_table, client_id)),
    )


def _always_rebalances(properties: Mapping[str, str | None]) -> bool:
    """Whatever `clientRebalance` is: in order, or BROADCASTING (`RebalancePushImpl.clientRebalance`)."""
    return properties.get("PROP_CONSUMEORDERLY") == "true" or properties.get("messageModel") == BROADCASTING


def _consumer_type(document: RunningInfoDocument) -> ConsumerType | None:
    """Which consumer a member is: its consume type, and what only one of RocketMQ's pull consumers has for a setting.

    One that assigns itself queues subscribes to nothing (`DefaultLitePullConsumerImpl.subscriptions`).
    """
    kind = document.properties.get("PROP_CONSUME_TYPE")
    if kind == CONSUME_ACTIVELY:
        if "autoCommit" not in document.properties:
            return "pull" if "registerTopics" in document.properties else None
        return "assign" if document.subscription_set == [] else "lite-pull"
    return "push" if kind == CONSUME_PASSIVELY else None


def _live_topics(table: Mapping[object, Mapping[str, object]], where: str) -> Iterator[str]:
    return (queue_key(key, where).topic for key, state in table.items() if not state.get("droped"))


def client_id(properties: Mapping[str, str | None]) -> str | None:
    """The client's id from its own properties (`ClientConfig.buildMQClientId`), or None when they do not tell."""
    ip, instance = properties.get("clientIP"), properties.get("instanceName")
    if not ip or not instance:
        return None
    unit, stream = properties.get("unitName"), properties.get("enableStreamRequestType") == "true"
    return f"{ip}@{instance}" + (f"@{unit}" if unit else "") + ("@STREAM" if stream else "")


def held_queues(document: RunningInfoDocument, where: str) -> frozenset[MessageQueue]:
    """The queues that a member holds now, without those it has dropped but not yet let go (raises DocumentError)."""
    table = document.mq_table or {}
    return frozenset(queue_key(key, where) for key, state in table.items() if not state.get("droped"))


def queue_key(key: object, where: str) -> MessageQueue:
    """A MessageQueue as a map key: an object in RocketMQ's dialect, or the Dashboard's text (raises DocumentError)."""
    if isinstance(key, tuple):  # an ObjectKey
        fields = dict(key)
        topic, broker_name, queue_id = fields.get("topic"), fields.get("brokerName"), fields.get("queueId")
        if isinstance(topic, str) and isinstance(broker_name, str) and isinstance(queue_id, int):
            return MessageQueue(topic, broker_name, queue_id)
    match = re.fullmatch(_MQ_TEXT, key) if isinstance(key, str) else None
    if not match:
        raise DocumentError(f"{where}: {str(key)[:80]!r} is not a MessageQueue")
    return MessageQueue(match[1], match[2], int(match[3]))


def group_of(topics: Iterable[str]) -> str | None:
    """The group's name, from the one `%RETRY%` topic that its members subscribe to."""
    names = {topic.removeprefix("%RETRY%") for topic in topics if topic.startswith("%RETRY%")}
    return names.pop() if len(names) == 1 else None


def whole_number(text: str | None) -> int | None:
    """A property that is a number from 0 on; None when it is absent or something else."""
    return int(text) if text is not None and re.fullmatch(_MILLISECONDS, text) else None


def _simple_class(text: str | None) -> str | None:
    """`a.b.AllocateX@1f` → `AllocateX`: Java's default object text."""
    return text.partition("@")[0].rpartition(".")[2] if text else None


def _version_name(version: int | str | None) -> str | None:
    """`V5_5_0` for the ordinal that brokers send; only a Dashboard gives the name itself."""
    from rmqlb.remoting.version import version_text

    if not isinstance(version, int):
        return version
    return version_text(version) if version >= 0 else str(version)


def assignment(document: AssignmentDocument) -> AssignmentAnswer:
    """What a broker assigns to a client."""
    items = document.message_queue_assignments
    if items is None:
        return AssignmentAnswer(None, None)
    queues = ((each.message_queue.topic, each.message_queue.broker_name, each.message_queue.queue_id) for each in items)
    modes = {each.mode for each in items}
    return AssignmentAnswer(
        modes.pop() if len(modes) == 1 else None, frozenset(MessageQueue(*queue) for queue in queues)
    )
