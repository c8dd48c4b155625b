"""RocketMQ's JSON documents as structs in camelCase, and the model's values made from them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import replace

from rmqlb import decoding
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
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue, parse_int, queue_order, split
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer
from rmqlb.sources.formats.limits import MAX_DEPTH, text_of

Document = TypeVar("Document")
MOST_BROKERS = 20_000  # of one route
_MQ_TEXT = r"(?s)MessageQueue \[topic=(.*), brokerName=(.*), queueId=(-?[0-9]{1,18})\]"
_MILLISECONDS = r"[0-9]{1,18}"
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_INT64 = range(-(2**63), 2**63)
_CONSUME_THREAD = "ConsumeMessageThread_"
_THREAD = rf"({_CONSUME_THREAD}\S*) *TID: [0-9]+ STATE: ([A-Z_]+)"
_FIGURES = {
    "cached": "cachedMsgCount",
    "cached_mib": "cachedMsgSizeInMiB",
    "min_offset": "cachedMsgMinOffset",
    "max_offset": "cachedMsgMaxOffset",
    "consuming": "transactionMsgCount",
    "consuming_min_offset": "transactionMsgMinOffset",
    "consuming_max_offset": "transactionMsgMaxOffset",
    "commit_offset": "commitOffset",
    "unlock_tries": "tryUnlockTimes",
    "last_lock": "lastLockTimestamp",
    "last_pull": "lastPullTimestamp",
    "last_consume": "lastConsumeTimestamp",
}  # field of `ProcessQueue` → key of RocketMQ's `ProcessQueueInfo`


class CamelStruct(msgspec.Struct, rename="camel", frozen=True):
    """A document whose fields are RocketMQ's, in camelCase."""


class BrokerDataDocument(CamelStruct, frozen=True):
    """A broker's addresses."""

    broker_name: Annotated[str, "name of the broker"]
    cluster: Annotated[str | None, "cluster of the broker"] = None
    broker_addrs: Annotated[dict[int, str] | None, "broker id → address; 0 is the master"] = None
    enable_acting_master: Annotated[bool, "true if a slave may act as master"] = False
    zone_name: Annotated[str | None, "zone of the broker, if it has one"] = None


class RouteDocument(CamelStruct, frozen=True):
    """A topic's route, as `TopicRouteData`."""

    queue_datas: Annotated[list[QueueData] | None, "queues of the topic on each broker"] = None
    broker_datas: Annotated[list[BrokerDataDocument] | None, "addresses of each broker"] = None
    order_topic_conf: Annotated[str | None, "order configuration of the topic, if it has one"] = None
    topic_queue_mapping_by_broker: Annotated[
        dict[str, TopicQueueMappingInfo] | None, "for a static topic: broker name → mapping"
    ] = None

    def __post_init__(self) -> None:
        brokers = max(len(self.queue_datas or ()), len(self.broker_datas or ()))
        if brokers > MOST_BROKERS:
            raise ValueError(f"{brokers} brokers in one route, more than {MOST_BROKERS}")
        claimed = _claimed_queues(self)
        if claimed > MOST_QUEUES:
            raise ValueError(f"{claimed} queues in one route, more than {MOST_QUEUES}")


class ConnectionItem(CamelStruct, frozen=True):  # `Connection`; the Dashboard adds `versionDesc`
    client_id: str
    client_addr: str | None = None
    language: str | None = None
    version: int | str | None = None
    version_desc: str | None = None


class ConnectionsDocument(CamelStruct, frozen=True):  # `ConsumerConnection`: a group's processes at one broker
    connection_set: list[ConnectionItem]
    subscription_table: dict[str, Any] | None = None
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


class OffsetItem(CamelStruct, frozen=True, kw_only=True):  # `OffsetWrapper`; milliseconds since 1970
    broker_offset: int | None = None
    consumer_offset: int | None = None
    last_timestamp: int | None = None


class ConsumeStatsDocument(CamelStruct, frozen=True):  # `ConsumeStats`: a group's offsets at one broker
    offset_table: dict[Any, OffsetItem]
    consume_tps: float | None = None  # messages that the group gets in a second


class QueueStatItem(OffsetItem, frozen=True, kw_only=True):  # the Dashboard's `QueueStatInfo`
    broker_name: str
    queue_id: int
    client_info: str | None = None


class TopicConsumerDocument(CamelStruct, frozen=True):  # the Dashboard's `TopicConsumerInfo`
    topic: str
    queue_stat_info_list: list[QueueStatItem]


class SubscriptionItem(CamelStruct, frozen=True):  # `SubscriptionData`
    topic: str
    sub_string: Any = None
    expression_type: Any = None


class RunningInfoDocument(CamelStruct, frozen=True):  # `ConsumerRunningInfo`: a consumer's own report
    properties: dict[str, str | None]
    mq_table: dict[Any, dict[str, Any]] | None = None
    mq_pop_table: dict[Any, dict[str, Any]] | None = None
    subscription_set: list[SubscriptionItem] | None = None
    status_table: Any = None
    jstack: Any = None


class ClusterInfoDocument(CamelStruct, frozen=True):  # `ClusterInfo`: broker name → its addresses
    broker_addr_table: dict[str, BrokerDataDocument]


class ClusterListDocument(CamelStruct, frozen=True):  # the Dashboard's, of which only the brokers are read
    cluster_info: ClusterInfoDocument


class TopicConfigDocument(CamelStruct, frozen=True):  # `TopicConfig`; brokers before 5.0 have no attributes
    attributes: dict[str, str] | None = None


class RuntimeInfoDocument(CamelStruct, frozen=True):  # `KVTable` of a broker's state
    table: dict[str, Any]


class RequestModeItem(CamelStruct, frozen=True):  # `SetMessageRequestModeRequestBody`: PULL or POP
    mode: str
    pop_share_queue_num: int | None = None


class RequestModesDocument(CamelStruct, frozen=True):  # `MessageRequestModeManager`: topic → group → mode
    message_request_mode_map: dict[str, dict[str, RequestModeItem]]


class AssignmentItem(CamelStruct, frozen=True):  # `MessageQueueAssignment`
    message_queue: MessageQueue
    mode: str | None = None


class AssignmentDocument(CamelStruct, frozen=True):  # `QueryAssignmentResponseBody`
    message_queue_assignments: list[AssignmentItem] | None = None  # None: the client keeps what it has


class SubscriptionGroupsDocument(CamelStruct, frozen=True):  # `SubscriptionGroupWrapper`: group → its configuration
    subscription_group_table: dict[str, Any]


class GroupItem(CamelStruct, frozen=True):  # the Dashboard's `GroupConsumeInfo`
    group: str
    count: int | None = None  # of consumers
    consume_type: str | None = None
    message_model: str | None = None


class TopicListDocument(CamelStruct, frozen=True):  # `TopicList`
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
    """The counts of `broker:count;broker:count` that clients would follow, up to the first malformed part."""
    with suppress(IndexError, ValueError):
        for part in split(conf, ";"):
            yield max(parse_int(split(part, ":")[1]), 0)


def convert(value: object, kind: type[Document], where: str) -> Document:
    try:
        return decoding.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{where}: {_plain(error)}") from None


def decode(body: bytes, kind: type[Document], where: str) -> Document:
    try:
        document = decoding.decode(body, kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DocumentError(f"{where}: {_TOO_DEEP if isinstance(error, RecursionError) else _plain(error)}") from None
    if _deeper_than(document, MAX_DEPTH):
        raise DocumentError(f"{where}: {_TOO_DEEP}")
    return document


def _deeper_than(document: object, depth: int) -> bool:
    """Whether lists and dicts are nested more deeply; structs are as deep as their definition."""
    level = [document]
    for _ in range(depth + 1):
        lists = [item for item in level if isinstance(item, list)]
        dicts = [item for item in level if isinstance(item, dict)]
        if not lists and not dicts:
            return False
        level = [value for items in (*lists, *(item.values() for item in dicts)) for value in items]
    return True


def parse_documents(body: bytes, where: str) -> tuple[list[object], list[str]]:
    """The JSON documents of a body, strict or in RocketMQ's dialect, and the deviations (raises DocumentError)."""
    with suppress(DocumentError):
        return [decode(body, object, where)], []
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        lines = decoding.decode_lines(body)
        if not any(_deeper_than(line, MAX_DEPTH) for line in lines):
            return lines, []
    from rmqlb.sources.formats.loose_json import read_loose

    return read_loose(text_of(body, where), where)


def parse_document(body: bytes, where: str) -> object:
    """The only JSON document of a body, strict or in RocketMQ's dialect."""
    documents, _ = parse_documents(body, where)
    if len(documents) != 1:
        raise DocumentError(f"{where}: expected one document, found {len(documents)}")
    return documents[0]


def open_envelope(value: Mapping[object, object], where: str) -> object:
    if value.get("status") != 0:
        raise DocumentError(f"{where}: the Dashboard returned an error: {first_line(value.get('errMsg'))}")
    return value["data"]


def first_line(text: object) -> str:
    line = str(text or "no message").partition("\n")[0].strip()
    return re.sub(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): ", "", line)


def is_route(value: object) -> bool:
    return isinstance(value, dict) and ("queueDatas" in value or "brokerDatas" in value)


def _plain(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError) or str(error).startswith("Invalid UTF-8"):  # msgspec up to 0.22, or later
        return "it is not UTF-8 text"
    return str(error).replace(" - at ", " at ").replace("`", "")


def parse_route(document: str | bytes | Mapping[str, object], topic: str) -> TopicRouteData:
    """A route document as a NameServer, `mqadmin topicRoute` or the Dashboard writes it.

    Args:
        document: JSON text, RocketMQ's dialect included, or the parsed document; a Dashboard envelope is opened.
        topic: the topic's name, which the document does not hold.

    Raises:
        DocumentError: the document is not a route; the message names the place.
        UsageError: the topic's name is not a text.
    """
    if not isinstance(topic, str):
        raise UsageError(f"the topic is of type {type(topic).__name__}: expected its name")
    where = f"route of {topic}"
    value: object = document
    if isinstance(document, str | bytes):
        body = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
        value = parse_document(body, where)
    if isinstance(value, dict) and {"status", "data"} <= value.keys():
        value = open_envelope(value, where)
    if not is_route(value):
        raise DocumentError(f"{where}: queueDatas and brokerDatas are both missing")
    return route(convert(value, RouteDocument, where), topic)


def route(document: RouteDocument, topic: str) -> TopicRouteData:
    """The route of a document; missing lists are empty, as a 5.x client decodes them."""
    return TopicRouteData(
        topic=topic,
        queue_datas=tuple(document.queue_datas or ()),
        broker_datas=tuple(map(broker, document.broker_datas or ())),
        order_topic_conf=document.order_topic_conf,
        topic_queue_mapping_by_broker=document.topic_queue_mapping_by_broker,
    )


def broker(document: BrokerDataDocument) -> BrokerData:
    given = {"cluster": document.cluster or "", "broker_addrs": document.broker_addrs or {}}
    return BrokerData(**{name: getattr(document, name) for name in BrokerData.__struct_fields__} | given)


def route_topic(document: RouteDocument) -> str | None:
    """The topic's name, which only routes of static topics have."""
    names = {info.topic for info in (document.topic_queue_mapping_by_broker or {}).values() if info.topic}
    return names.pop() if len(names) == 1 else None


def connections(document: ConnectionsDocument) -> tuple[Connection, ...]:
    """The channels of a ConsumerConnection, sorted by ID and address.

    Brokers send a version's ordinal, which becomes `V5_5_0`; a Dashboard sends the name.
    """
    found = []
    for item in sorted(document.connection_set, key=lambda item: (item.client_id, item.client_addr or "")):
        text = item.version_desc or item.version
        if isinstance(text, int) and text >= 0:
            from rmqlb.remoting.command import version_text

            text = version_text(text)
        found.append(Connection(item.client_id, item.client_addr, item.language, None if text is None else str(text)))
    return tuple(found)


def queue_states(items: Iterable[TopicConsumerDocument]) -> dict[MessageQueue, QueueState]:
    """Offsets and owners by queue. The Dashboard names one owner at most, and its absence means unknown."""
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
    """Offsets by queue, as one broker reports them (raises DocumentError)."""
    return {
        queue_key(key, where): QueueState(None, item.broker_offset, item.consumer_offset, item.last_timestamp)
        for key, item in document.offset_table.items()
    }


def member_report(
    document: RunningInfoDocument, client_id: str, evidence: ConsumerEvidence | None = None
) -> MemberReport:
    topics, popped, properties = document.subscription_set, document.mq_pop_table, document.properties
    rebalance, kind = properties.get("clientRebalance"), properties.get("PROP_CONSUME_TYPE")
    # In order, or BROADCASTING, a consumer rebalances whatever the property is (`RebalancePushImpl.clientRebalance`).
    always = properties.get("PROP_CONSUMEORDERLY") == "true" or properties.get("messageModel") == BROADCASTING
    strategy = properties.get("allocateMessageQueueStrategy")  # a.b.AllocateX@1f, Java's default object text
    consumer: ConsumerType | None = "push" if kind == CONSUME_PASSIVELY else None
    if kind == CONSUME_ACTIVELY and "autoCommit" not in properties:  # a setting that one pull consumer has
        consumer = "pull" if "registerTopics" in properties else None
    elif kind == CONSUME_ACTIVELY:
        # A consumer that assigns itself queues has no subscription (`DefaultLitePullConsumerImpl.subscriptions`).
        consumer = "assign" if topics == [] else "lite-pull"
    return MemberReport(
        client_id=client_id,
        topics=None if topics is None else frozenset(item.topic for item in topics),
        strategy_class=strategy.partition("@")[0].rpartition(".")[2] if strategy else None,
        client_rebalance=None if rebalance is None else rebalance == "true" or always,
        consume_timestamp=properties.get("consumeTimestamp"),
        started_at=whole_number(properties.get("PROP_CONSUMER_START_TIMESTAMP")),
        consumer_type=consumer,
        pop_topics=None if popped is None else frozenset(queue.topic for queue in _live_queues(popped, client_id)),
        evidence=evidence,
    )


def consumer_evidence(document: RunningInfoDocument, where: str, read_at: int | None = None) -> ConsumerEvidence:
    """The part of a consumer's report for a diagnosis.

    A missing or malformed figure is unknown; only a table's key that is no queue is an error. Clients in other
    languages report fewer fields, and some differently.
    """
    properties = document.properties
    table, statuses = document.mq_table, document.status_table
    reported = sorted((str(topic), item) for topic, item in statuses.items()) if isinstance(statuses, dict) else None
    queues = None if table is None else [_process_queue(key, state, where) for key, state in table.items()]
    return ConsumerEvidence(
        read_at=read_at,
        queues=None if queues is None else tuple(sorted(queues, key=lambda item: queue_order(item.queue))),
        statuses=None if reported is None else {topic: _status(item) for topic, item in reported},
        limits=PullLimits(
            messages=whole_number(properties.get("pullThresholdForQueue")),
            mib=whole_number(properties.get("pullThresholdSizeForQueue")),
            span=whole_number(properties.get("consumeConcurrentlyMaxSpan", properties.get("consumeMaxSpan"))),
        ),
        orderly={"true": True, "false": False}.get(properties.get("PROP_CONSUMEORDERLY") or ""),
        threads=whole_number(properties.get("PROP_THREADPOOL_CORE_SIZE")),
        batch=whole_number(properties.get("consumeMessageBatchMaxSize")),
        filters=_filters(document.subscription_set),
        stacks=consume_stacks(document, properties.get("consumerGroup") or ""),
    )


def _filters(items: list[SubscriptionItem] | None) -> dict[str, str] | None:
    """Topic → wanted tags, sorted (`FilterAPI`); None when one is not reported."""
    found: dict[str, str] = {}
    for item in sorted(items or (), key=lambda item: item.topic):
        kind, text = item.expression_type or "TAG", item.sub_string
        if not isinstance(text, str) or not isinstance(kind, str):
            return None
        tags = sorted({tag.strip() for tag in text.split("||")} - {""})
        found[item.topic] = f"{kind}: {text}" if kind != "TAG" else " || ".join(tags) or "*"
    return None if items is None else found


def consume_stacks(document: RunningInfoDocument, group: str) -> tuple[str, ...] | None:
    """The stack traces of the consume threads, by name (`UtilAll.jstack`); None when the report has none.

    Since 4.9 a thread has the group in its name, so threads of other groups are left out. Older names, and names with
    POP, have only numbers.
    """
    if not isinstance(document.jstack, str) or not document.jstack:
        return None
    stacks = dict(_stacks(document.jstack.splitlines()))
    own = re.compile(re.escape(_CONSUME_THREAD) + f"(?:{re.escape(group[:100])}_)?[0-9]+")
    names = [name for name in stacks if own.fullmatch(name)] or [*stacks]
    return tuple(stacks[name] for name in sorted(names, key=_by_number))


def _stacks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Name and stack trace of each consume thread; its lines begin with its name, an empty line ends it."""
    name, found = "", list[str]()
    for line in [*lines, ""]:
        begins = re.fullmatch(_THREAD, line)
        if begins is None and name and line.startswith(name):
            found.append(line[len(name) :].strip())
            continue
        if name:
            yield name, "\n".join(found)
        name, found = (begins[1], [f"{begins[1]} {begins[2]}"]) if begins is not None else ("", [])


def _by_number(name: str) -> tuple[str, int, str]:
    stem, _, number = name.rpartition("_")
    return stem, len(number), number


def _process_queue(key: object, state: Mapping[str, object], where: str) -> ProcessQueue:
    figures = {name: _integer(state.get(key_of)) for name, key_of in _FIGURES.items()}
    return ProcessQueue(
        queue_key(key, where), dropped=_flag(state.get("droped")), locked=_flag(state.get("locked")), **figures
    )


def _status(item: object) -> ConsumeStatus:
    figures = item if isinstance(item, dict) else {}
    return ConsumeStatus(
        consume_ms=_rate(figures.get("consumeRT")),
        consumed_per_s=_rate(figures.get("consumeOKTPS")),
        failed_per_s=_rate(figures.get("consumeFailedTPS")),
        failed_last_hour=_integer(figures.get("consumeFailedMsgs")),
        pulled_per_s=_rate(figures.get("pullTPS")),
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in _INT64 else None


def _rate(value: object) -> float | None:
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _live_queues(table: Mapping[Any, Mapping[str, Any]], where: str) -> Iterator[MessageQueue]:
    return (queue_key(key, where) for key, state in table.items() if not state.get("droped"))


def client_id(properties: Mapping[str, str | None]) -> str | None:
    """The client ID from the client's own properties (`ClientConfig.buildMQClientId`); None without them."""
    ip, instance = properties.get("clientIP"), properties.get("instanceName")
    if not ip or not instance:
        return None
    unit, stream = properties.get("unitName"), properties.get("enableStreamRequestType") == "true"
    return f"{ip}@{instance}" + (f"@{unit}" if unit else "") + ("@STREAM" if stream else "")


def held_queues(document: RunningInfoDocument, where: str) -> frozenset[MessageQueue]:
    return frozenset(_live_queues(document.mq_table or {}, where))


def queue_key(key: object, where: str) -> MessageQueue:
    """A map key: an object in RocketMQ's dialect, or the Dashboard's text (raises DocumentError)."""
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
    names = {topic.removeprefix("%RETRY%") for topic in topics if topic.startswith("%RETRY%")}
    return names.pop() if len(names) == 1 else None


def whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(_MILLISECONDS, text) else None


def assignment(document: AssignmentDocument) -> AssignmentAnswer:
    items = document.message_queue_assignments
    if items is None:
        return AssignmentAnswer(None, None)
    modes = {each.mode for each in items}
    return AssignmentAnswer(modes.pop() if len(modes) == 1 else None, frozenset(each.message_queue for each in items))


def with_owners(
    queues: Mapping[MessageQueue, QueueState],
    by_consumer: Mapping[str, Set[MessageQueue]],  # client ID → its queues; a consumer that did not answer is absent
    members: Set[str] | None,
    reports: Mapping[str, MemberReport],
) -> dict[MessageQueue, QueueState]:
    """The queues with the owners that consumers report.

    When every consumer answered, a queue that none reports has no owner, unless its topic is consumed by POP; otherwise
    its known owners stay.
    """
    popped = frozenset[str]().union(*(report.pop_topics or () for report in reports.values()))
    owners: dict[MessageQueue, frozenset[str]] = {}
    if members and members <= by_consumer.keys():
        owners = dict.fromkeys((queue for queue in queues if queue.topic not in popped), frozenset())
    for client_id, found in by_consumer.items():
        owners |= {queue: owners.get(queue, frozenset()) | {client_id} for queue in found}
    states = {queue: queues.get(queue, QueueState()) for queue in (*queues, *owners)}
    return states | {queue: replace(states[queue], owners=ids) for queue, ids in owners.items()}
