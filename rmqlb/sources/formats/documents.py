"""RocketMQ's JSON into model values. Past this file no dict travels and no name is in camelCase.

The structs say what a document may hold; unknown fields are passed over, because newer servers add some. Fields that
Java leaves out when they are null have defaults here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from rmqlb.errors import DocumentError
from rmqlb.model.group import Connection, MemberReport, QueueState
from rmqlb.model.java import parse_int, split
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.sources.formats.bounded import MAX_DEPTH, text_of

Document = TypeVar("Document")
_MOST_QUEUES = 200_000
MOST_BROKERS = 20_000
"""Of one route."""
QueueNumber = Annotated[int, msgspec.Meta(le=100_000)]
"""How many queues a document may claim; a queue list is built from it. Like Java, fewer than none counts as none."""
_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"
_MQ_TEXT = re.compile(r"MessageQueue \[topic=(.*), brokerName=(.*), queueId=(-?[0-9]{1,18})\]", re.DOTALL)


class CamelStruct(msgspec.Struct, rename="camel", frozen=True):
    """A document whose fields are RocketMQ's, in camelCase."""


class QueueDataDocument(CamelStruct, frozen=True):
    """A broker's queues of a topic.

    Attributes:
        broker_name: the broker.
        read_queue_nums: queues that consumers share out.
        write_queue_nums: queues that producers pick from.
        perm: bits: 4 read, 2 write, 1 inherit; 6 is usual.
        topic_sys_flag: RocketMQ's flags.
    """

    broker_name: str
    read_queue_nums: QueueNumber = 0
    write_queue_nums: QueueNumber = 0
    perm: int = 0
    topic_sys_flag: int = 0


class BrokerDataDocument(CamelStruct, frozen=True):
    """A broker's addresses.

    Attributes:
        broker_name: the broker.
        cluster: the cluster that it names itself after.
        broker_addrs: broker id → address; 0 is the master.
        enable_acting_master: a slave may act as master.
        zone_name: its zone, where it has one.
    """

    broker_name: str
    cluster: str | None = None
    broker_addrs: dict[int, str] | None = None
    enable_acting_master: bool = False
    zone_name: str | None = None


class MappingDocument(CamelStruct, frozen=True):
    """A static topic's queues at a broker.

    Attributes:
        topic: the topic.
        scope: RocketMQ's scope of the topic.
        total_queues: logical queues in all.
        bname: the broker.
        epoch: of two mappings the one with the larger counts.
        curr_id_map: logical queue → the broker's queue.
    """

    topic: str | None = None
    scope: str | None = None
    total_queues: QueueNumber = 0
    bname: str | None = None
    epoch: int = 0
    curr_id_map: dict[int, int] | None = None


class RouteDocument(CamelStruct, frozen=True):
    """A topic's route, as RocketMQ's TopicRouteData.

    Attributes:
        queue_datas: broker by broker, its queues.
        broker_datas: broker by broker, its addresses.
        order_topic_conf: the order configuration, where there is one.
        topic_queue_mapping_by_broker: of a static topic: broker name → its mapping.
    """

    queue_datas: list[QueueDataDocument] | None = None
    broker_datas: list[BrokerDataDocument] | None = None
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, MappingDocument] | None = None

    def __post_init__(self) -> None:
        """Refuse a route whose queue lists would fill the memory.

        Raises:
            ValueError: as msgspec wants it; it adds the place.
        """
        brokers = max(len(self.queue_datas or ()), len(self.broker_datas or ()))
        if brokers > MOST_BROKERS:
            raise ValueError(f"{brokers} brokers in one route, more than {MOST_BROKERS}")
        claimed = _claimed_queues(self)
        if claimed > _MOST_QUEUES:
            raise ValueError(f"{claimed} queues in one route, more than {_MOST_QUEUES}")


class ConnectionItem(CamelStruct, frozen=True):
    """A process that a broker knows, as RocketMQ's `Connection`; the Dashboard adds `versionDesc`."""

    client_id: str
    client_addr: str | None = None
    language: str | None = None
    version: int | str | None = None
    version_desc: str | None = None


class ConnectionsDocument(CamelStruct, frozen=True):
    """A group's processes and subscriptions at one broker, as RocketMQ's `ConsumerConnection`."""

    connection_set: list[ConnectionItem]
    subscription_table: dict[str, Any] | None = None
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


class QueueStatItem(CamelStruct, frozen=True):
    """A queue's offsets and owner, as the Dashboard's `QueueStatInfo`."""

    broker_name: str
    queue_id: int
    broker_offset: int | None = None
    consumer_offset: int | None = None
    client_info: str | None = None
    last_timestamp: int | None = None


class TopicConsumerDocument(CamelStruct, frozen=True):
    """How far a group has read a topic, as the Dashboard's `TopicConsumerInfo`."""

    topic: str
    queue_stat_info_list: list[QueueStatItem]


class SubscriptionItem(CamelStruct, frozen=True):
    """A subscription, as RocketMQ's `SubscriptionData`."""

    topic: str


class RunningInfoDocument(CamelStruct, frozen=True):
    """What a member says of itself, as RocketMQ's `ConsumerRunningInfo`."""

    properties: dict[str, str | None]
    mq_table: dict[Any, dict[str, Any]] | None = None
    subscription_set: list[SubscriptionItem] | None = None


class ClusterInfoDocument(CamelStruct, frozen=True):
    """All brokers, as RocketMQ's `ClusterInfo`: broker name to its addresses."""

    broker_addr_table: dict[str, BrokerDataDocument]


class OffsetItem(CamelStruct, frozen=True):
    """A queue's offsets, as RocketMQ's `OffsetWrapper`; the timestamp is in milliseconds since 1970."""

    broker_offset: int | None = None
    consumer_offset: int | None = None
    last_timestamp: int | None = None


class ConsumeStatsDocument(CamelStruct, frozen=True):
    """A group's offsets at one broker, as RocketMQ's `ConsumeStats`."""

    offset_table: dict[Any, OffsetItem]


class SubscriptionGroupsDocument(CamelStruct, frozen=True):
    """A broker's groups, as RocketMQ's `SubscriptionGroupWrapper`: group to its configuration."""

    subscription_group_table: dict[str, Any]


class ClusterListDocument(CamelStruct, frozen=True):
    """The Dashboard's answer about the cluster, of which only the brokers are read."""

    cluster_info: ClusterInfoDocument


class GroupItem(CamelStruct, frozen=True):
    """A group in the Dashboard's list, its `GroupConsumeInfo`; `count` is of members."""

    group: str
    count: int | None = None
    consume_type: str | None = None
    message_model: str | None = None


class TopicListDocument(CamelStruct, frozen=True):
    """The names of topics, as RocketMQ's `TopicList`."""

    topic_list: list[str]


def _claimed_queues(document: RouteDocument) -> int:
    """How long the longest of the route's queue lists would be."""
    datas = document.queue_datas or ()
    scopes: dict[str | None, int] = {}
    for info in (document.topic_queue_mapping_by_broker or {}).values():
        scopes[info.scope] = max(scopes.get(info.scope, 0), info.total_queues)
    return max(
        sum(max(data.read_queue_nums, 0) for data in datas),
        sum(max(data.write_queue_nums, 0) for data in datas),
        sum(_ordered_counts(document.order_topic_conf or "")),
        sum(scopes.values()),
    )


def _ordered_counts(conf: str) -> Iterator[int]:
    """The counts of `broker:count;broker:count` that clients would follow; what is malformed is theirs to refuse."""
    for part in split(conf, ";"):
        try:
            yield max(parse_int(split(part, ":")[1]), 0)
        except (IndexError, ValueError):
            return


def convert(value: object, kind: type[Document], where: str) -> Document:
    """A parsed document as its struct.

    Raises:
        DocumentError: a field is missing or of another type; the message names its path.
    """
    try:
        return msgspec.convert(value, kind, strict=True, str_keys=True)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{where}: {_plain(error)}") from None


def decode(body: bytes, kind: type[Document], where: str) -> Document:
    """A strict JSON body as its struct.

    Raises:
        DocumentError: it is not JSON, nested too deeply, or a field is missing or of another type.
    """
    try:
        document = msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise DocumentError(f"{where}: {_plain(error)}") from None
    except (RecursionError, UnicodeDecodeError) as error:
        problem = _TOO_DEEP if isinstance(error, RecursionError) else "it is not UTF-8 text"
        raise DocumentError(f"{where}: {problem}") from None
    if _deeper_than(document, MAX_DEPTH):
        raise DocumentError(f"{where}: {_TOO_DEEP}")
    return document


def _decode_lines(body: bytes) -> list[object] | None:
    """Strict JSON with a document a line, or None when it is something else."""
    try:
        lines: list[object] = msgspec.json.Decoder().decode_lines(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return None if any(_deeper_than(line, MAX_DEPTH) for line in lines) else lines


def _deeper_than(document: object, depth: int) -> bool:
    """Lists and dicts stand in one another more than so many levels; structs are as deep as their definition."""
    level = [document]
    for _ in range(depth + 1):
        lists = [item for item in level if isinstance(item, list)]
        dicts = [item for item in level if isinstance(item, dict)]
        if not lists and not dicts:
            return False
        level = [value for items in (*lists, *(item.values() for item in dicts)) for value in items]
    return True


def parse_documents(body: bytes, where: str) -> tuple[list[object], list[str]]:
    """The JSON documents of a body, strict or in RocketMQ's dialect, and the leniencies used.

    Raises:
        DocumentError: it is neither.
    """
    try:
        return [decode(body, object, where)], []
    except DocumentError:
        pass
    lines = _decode_lines(body)
    if lines is not None:
        return lines, []
    from rmqlb.sources.formats.loose_json import read_loose

    return read_loose(text_of(body, where), where)


def parse_document(body: bytes, where: str) -> object:
    """The one JSON document of a body, strict or in RocketMQ's dialect.

    Raises:
        DocumentError: it is neither, or not one document.
    """
    documents, _ = parse_documents(body, where)
    if len(documents) != 1:
        raise DocumentError(f"{where}: expected one document, found {len(documents)}")
    return documents[0]


def parse_route(document: str | bytes | Mapping[str, object], topic: str) -> TopicRouteData:
    """A route document as a NameServer, `mqadmin topicRoute` or the Dashboard writes it.

    Args:
        document: JSON text, RocketMQ's dialect included, or the parsed document; a Dashboard envelope is opened.
        topic: the topic's name, which the document does not hold.

    Raises:
        DocumentError: it is not a route; the message names the place.
    """
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


def open_envelope(value: Mapping[object, object], where: str) -> object:
    """The data inside a Dashboard's envelope.

    Raises:
        DocumentError: the envelope carries an error; the message is the Dashboard's first line.
    """
    if value.get("status") != 0:
        raise DocumentError(f"{where}: the Dashboard answered an error: {first_line(value.get('errMsg'))}")
    return value["data"]


def first_line(text: object) -> str:
    """The first line of a Java error text, without the exception's class name."""
    line = str(text or "no message").partition("\n")[0].strip()
    return re.sub(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): ", "", line)


def is_route(value: object) -> bool:
    """The document looks like a TopicRouteData."""
    return isinstance(value, dict) and ("queueDatas" in value or "brokerDatas" in value)


def route(document: RouteDocument, topic: str) -> TopicRouteData:
    """A route document as a model value; missing lists are empty, as a 5.x client decodes them."""
    mapping = document.topic_queue_mapping_by_broker
    return TopicRouteData(
        topic=topic,
        queue_datas=tuple(
            QueueData(data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm, data.topic_sys_flag)
            for data in document.queue_datas or ()
        ),
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
    """Offsets by queue, as one broker knows them; it does not know who owns a queue.

    Raises:
        DocumentError: a key of the table is not a MessageQueue.
    """
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
        client_rebalance=None if rebalance is None else rebalance == "true",
    )


def client_id(properties: Mapping[str, str | None]) -> str | None:
    """The client's id from its own properties (`ClientConfig.buildMQClientId`), or None when they do not tell."""
    ip, instance = properties.get("clientIP"), properties.get("instanceName")
    if not ip or not instance:
        return None
    unit, stream = properties.get("unitName"), properties.get("enableStreamRequestType") == "true"
    return f"{ip}@{instance}" + (f"@{unit}" if unit else "") + ("@STREAM" if stream else "")


def held_queues(document: RunningInfoDocument, where: str) -> frozenset[MessageQueue]:
    """The queues that a member holds now; those it has dropped but not yet let go are left out.

    Raises:
        DocumentError: a key of the table is not a MessageQueue.
    """
    table = document.mq_table or {}
    return frozenset(queue_key(key, where) for key, state in table.items() if not state.get("droped"))


def queue_key(key: object, where: str) -> MessageQueue:
    """A MessageQueue that stood as a map key: an object in RocketMQ's dialect, a text in the Dashboard's JSON.

    Raises:
        DocumentError: it is neither.
    """
    if isinstance(key, tuple):  # an ObjectKey
        fields = dict(key)
        topic, broker_name, queue_id = fields.get("topic"), fields.get("brokerName"), fields.get("queueId")
        if isinstance(topic, str) and isinstance(broker_name, str) and isinstance(queue_id, int):
            return MessageQueue(topic, broker_name, queue_id)
    match = _MQ_TEXT.fullmatch(key) if isinstance(key, str) else None
    if not match:
        raise DocumentError(f"{where}: {str(key)[:80]!r} is not a MessageQueue")
    return MessageQueue(match[1], match[2], int(match[3]))


def group_of(topics: Iterable[str]) -> str | None:
    """The group's name, from the one `%RETRY%` topic that its members subscribe to."""
    names = {topic.removeprefix("%RETRY%") for topic in topics if topic.startswith("%RETRY%")}
    return names.pop() if len(names) == 1 else None


def _simple_class(text: str | None) -> str | None:
    """`a.b.AllocateX@1f` → `AllocateX`: Java's default object text."""
    return text.partition("@")[0].rpartition(".")[2] if text else None


def _version_name(version: int | str | None) -> str | None:
    """`V5_5_0` for the ordinal that brokers send; only a Dashboard gives the name itself."""
    from rmqlb.remoting.version import version_text

    if not isinstance(version, int):
        return version
    return version_text(version) if version >= 0 else str(version)


def _plain(error: Exception) -> str:
    return str(error).replace(" - at ", " at ").replace("`", "")
