"""The keys of a snapshot as they are read: `rmqlb schema fetch-routes` prints these structs as JSON Schema."""

from datetime import datetime

from rmqlb.model.group import Connection, MemberReport, Seen
from rmqlb.model.snapshot import UnreadKind
from rmqlb.sources.formats.documents import CamelStruct, RouteDocument


class OtherRouteItem(CamelStruct, frozen=True):
    """What another NameServer says of a topic.

    Attributes:
        route: its route.
        seen: where and when.
    """

    route: RouteDocument
    seen: Seen | None = None


class TopicItem(CamelStruct, frozen=True):
    """A topic.

    Attributes:
        topic: its name.
        route: its route.
        seen: where and when.
        others: what other NameServers say, where they say something else.
    """

    topic: str
    route: RouteDocument
    seen: Seen | None = None
    others: list[OtherRouteItem] = []


class ViewItem(CamelStruct, frozen=True):
    """The consumers as one broker lists them.

    Attributes:
        connections: process by process; an id may stand there twice.
        seen: where and when.
        broker_addr: the broker.
    """

    connections: list[Connection]
    seen: Seen | None = None
    broker_addr: str | None = None


class ProxyItem(CamelStruct, frozen=True):
    """The consumers as one Proxy lists them.

    Attributes:
        connections: process by process; none when no consumer of the group is online there.
        proxy_addr: the Proxy.
        seen: where and when.
    """

    connections: list[Connection]
    proxy_addr: str
    seen: Seen | None = None


class QueueItem(CamelStruct, frozen=True):
    """A queue as the group reads it.

    Attributes:
        topic: its topic.
        broker_name: its broker.
        queue_id: its number there, from 0.
        owners: client ids that hold it; null when unknown.
        broker_offset: the next message to be stored.
        consumer_offset: the next message that the group has not finished; -1 when it has stored none.
        last_timestamp: when the last message that was read had been stored, in milliseconds since 1970.
        stored_offset: what the broker answers a consumer that takes the queue; -1 when it has none, null when it was
            not asked.
        min_offset: the first message that is still there.
        timestamp_offset: the first message since the consumer's consumeTimestamp.
    """

    topic: str
    broker_name: str
    queue_id: int
    owners: list[str] | None = None
    broker_offset: int | None = None
    consumer_offset: int | None = None
    last_timestamp: int | None = None
    stored_offset: int | None = None
    min_offset: int | None = None
    timestamp_offset: int | None = None


class GroupEntry(CamelStruct, frozen=True):
    """A consumer group.

    Attributes:
        group: its name.
        seen: where and when.
        consume_type: CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP.
        message_model: CLUSTERING or BROADCASTING.
        consume_from_where: where a queue without an offset starts.
        client_ids: the consumers, when no broker's list of them is known; an id may stand there twice.
        views: the consumers as each broker lists them.
        topics: to which it subscribes.
        queues: owners and offsets, where they are known.
        reports: what consumers say of themselves.
        request_modes: topic to PULL or POP, as brokers have it for the group.
        consume_tps: messages that brokers gave it in a second, over the last minute.
        polling_num: its receive requests (POP) that wait at brokers.
        dead_letters: messages that its dead-letter topic has had, where one of its listeners fails.
        pop_share_queue_nums: topic to popShareQueueNum, as brokers have it for the group.
        proxies: the consumers as each Proxy lists them that was asked.
    """

    group: str
    seen: Seen | None = None
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    client_ids: list[str] | None = None
    views: list[ViewItem] | None = None
    topics: list[str] | None = None
    queues: list[QueueItem] = []
    reports: list[MemberReport] = []
    request_modes: dict[str, list[str]] | None = None
    consume_tps: float | None = None
    polling_num: int | None = None
    dead_letters: int | None = None
    pop_share_queue_nums: dict[str, list[int]] | None = None
    proxies: list[ProxyItem] | None = None


class UnreadItem(CamelStruct, frozen=True):
    """A part that could not be read.

    Attributes:
        reason: why, in a line.
        kind: of what it is a part.
        name: of the topic, group, broker (groups) or NameServer.
        detail: of a group: the broker (`members`), the client ID (`member`) or the addresses of brokers (offsets).
        no_answer: it was asked, and did not answer in time.
        what: the part in words, instead of kind, name and detail; written by format 1.0.
    """

    reason: str
    kind: UnreadKind | None = None
    name: str | None = None
    detail: str | None = None
    no_answer: bool = False
    what: str | None = None

    def __post_init__(self) -> None:
        """Refuse a part that nothing names."""
        if self.what is None and (self.kind is None or self.name is None):
            raise ValueError("a part that was not read has a kind and a name")


class DataItem(CamelStruct, frozen=True):
    """The parts of a cluster that were seen.

    Attributes:
        topics: topic by topic.
        groups: group by group.
        unread: what could not be read.
        notes: what its users should know; every command repeats them. Not there when there are none.
    """

    topics: list[TopicItem] = []
    groups: list[GroupEntry] = []
    unread: list[UnreadItem] = []
    notes: list[str] = []


class SourceItem(CamelStruct, frozen=True):
    """Where the snapshot comes from.

    Attributes:
        kind: which kind of source.
        endpoint: its URL or path.
        taken_at: when, ISO-8601.
        context: the context that named the source then; it plays no part when the snapshot is read.
    """

    kind: str | None = None
    endpoint: str | None = None
    taken_at: datetime | None = None
    context: str | None = None


class SnapshotDocument(CamelStruct, frozen=True):
    """A cluster, or parts of it, as it was at a time.

    Attributes:
        schema: rmqlb/snapshot.
        format_version: of the snapshot; a minor version only adds keys, which are ignored.
        data: what was seen.
        source: where it comes from.
    """

    schema: str
    format_version: str
    data: DataItem
    source: SourceItem = SourceItem()
