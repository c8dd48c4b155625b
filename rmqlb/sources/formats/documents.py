"""What RocketMQ's JSON may hold: a struct for each document, and bytes read into them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from rmqlb import decoding
from rmqlb.errors import DocumentError
from rmqlb.model.java import parse_int, split
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.route import QueueData, QueueNumber
from rmqlb.sources.formats.limits import MAX_DEPTH, text_of

Document = TypeVar("Document")
MOST_BROKERS = 20_000  # of one route
_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"


class CamelStruct(msgspec.Struct, rename="camel", frozen=True):
    """A document whose fields are RocketMQ's, in camelCase."""


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

    queue_datas: list[QueueData] | None = None
    broker_datas: list[BrokerDataDocument] | None = None
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, MappingDocument] | None = None

    def __post_init__(self) -> None:
        """Refuse a route whose queue lists would fill the memory."""
        brokers = max(len(self.queue_datas or ()), len(self.broker_datas or ()))
        if brokers > MOST_BROKERS:
            raise ValueError(f"{brokers} brokers in one route, more than {MOST_BROKERS}")
        claimed = _claimed_queues(self)
        if claimed > MOST_QUEUES:
            raise ValueError(f"{claimed} queues in one route, more than {MOST_QUEUES}")


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
    sub_string: Any = None
    expression_type: Any = None


class RunningInfoDocument(CamelStruct, frozen=True):
    """What a member says of itself, as RocketMQ's `ConsumerRunningInfo`."""

    properties: dict[str, str | None]
    mq_table: dict[Any, dict[str, Any]] | None = None
    mq_pop_table: dict[Any, dict[str, Any]] | None = None
    subscription_set: list[SubscriptionItem] | None = None
    status_table: Any = None
    jstack: Any = None


class ClusterInfoDocument(CamelStruct, frozen=True):
    """All brokers, as RocketMQ's `ClusterInfo`: broker name to its addresses."""

    broker_addr_table: dict[str, BrokerDataDocument]


class OffsetItem(CamelStruct, frozen=True):
    """A queue's offsets, as RocketMQ's `OffsetWrapper`; the timestamp is in milliseconds since 1970."""

    broker_offset: int | None = None
    consumer_offset: int | None = None
    last_timestamp: int | None = None


class ConsumeStatsDocument(CamelStruct, frozen=True):
    """A group's offsets at one broker, as RocketMQ's `ConsumeStats`, and how many messages it gets in a second."""

    offset_table: dict[Any, OffsetItem]
    consume_tps: float | None = None


class TopicConfigDocument(CamelStruct, frozen=True):
    """What a broker has of a topic, as RocketMQ's `TopicConfig`; brokers before 5.0 have no attributes."""

    attributes: dict[str, str] | None = None


class RequestModeItem(CamelStruct, frozen=True):
    """How a group takes a topic's messages, as RocketMQ's `SetMessageRequestModeRequestBody`: PULL or POP."""

    mode: str
    pop_share_queue_num: int | None = None


class RequestModesDocument(CamelStruct, frozen=True):
    """What a broker has of all groups, as RocketMQ's `MessageRequestModeManager`: topic to group to mode."""

    message_request_mode_map: dict[str, dict[str, RequestModeItem]]


class AssignedQueueItem(CamelStruct, frozen=True):
    """A queue, as RocketMQ's `MessageQueue`."""

    topic: str
    broker_name: str
    queue_id: int


class AssignmentItem(CamelStruct, frozen=True):
    """A queue that a client shall take, and how, as RocketMQ's `MessageQueueAssignment`."""

    message_queue: AssignedQueueItem
    mode: str | None = None


class AssignmentDocument(CamelStruct, frozen=True):
    """The queues that a broker assigns to a client, as RocketMQ's `QueryAssignmentResponseBody`.

    {} stands for no answer: the client keeps what it has.
    """

    message_queue_assignments: list[AssignmentItem] | None = None


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
    """A parsed document as its struct (raises DocumentError)."""
    try:
        return decoding.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{where}: {_plain(error)}") from None


def decode(body: bytes, kind: type[Document], where: str) -> Document:
    """A strict JSON body as its struct (raises DocumentError)."""
    try:
        document = decoding.decode(body, kind)
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
        lines = decoding.decode_lines(body)
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
    """The JSON documents of a body, strict or in RocketMQ's dialect, and the leniencies used (raises DocumentError)."""
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
    """The one JSON document of a body, strict or in RocketMQ's dialect."""
    documents, _ = parse_documents(body, where)
    if len(documents) != 1:
        raise DocumentError(f"{where}: expected one document, found {len(documents)}")
    return documents[0]


def open_envelope(value: Mapping[object, object], where: str) -> object:
    """The data inside a Dashboard's envelope (raises DocumentError)."""
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


def _plain(error: Exception) -> str:
    return str(error).replace(" - at ", " at ").replace("`", "")
