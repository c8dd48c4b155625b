"""rmqlb's own snapshot format: what is written is what is read. Version 1 had other results beside it, the same keys.

A newer minor version only adds keys, which are passed over; a newer major version is refused. Everything but the
format's name, a topic's route and a group's name may be left out: what is absent is unknown. A time without a zone is
UTC, as all times are. The Structs below describe each key.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from rmqlb import decoding
from rmqlb.decoding import from_attributes
from rmqlb.errors import DocumentError
from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.model.group import (
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    ProxyView,
    QueueState,
    Seen,
    retry_topic,
)
from rmqlb.model.message_queue import MessageQueue, queue_order
from rmqlb.model.snapshot import UNREAD_WORDS, ClusterSnapshot, RouteSighting, Unread, UnreadKind, Wanted
from rmqlb.sources.formats.documents import CamelStruct, RouteDocument, convert, decode, route

SCHEMA = "rmqlb/snapshot"


class Heading(CamelStruct, frozen=True):
    """Just enough of any document to see whether it is a snapshot; the rest is skipped without being built."""

    schema: object = None
    format_version: object = None


def heading(body: bytes) -> Heading | None:
    """The body's heading when it is strict JSON and calls itself a snapshot, else None."""
    try:
        found = decoding.decode(body, Heading)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return found if found.schema == SCHEMA else None


def read_body(body: bytes, found: Heading, where: str, wanted: Wanted) -> ClusterSnapshot:
    _check_version(found.format_version, where)
    return _snapshot(decode(body, SnapshotDocument, where), where, wanted)


def read_value(value: object, where: str, wanted: Wanted) -> ClusterSnapshot:
    version = convert(value, Heading, where).format_version
    _check_version(version, where)
    if isinstance(value, dict):  # YAML reads `formatVersion: 1.0` as a number
        value = {**value, "formatVersion": str(version)}
    return _snapshot(convert(value, SnapshotDocument, where), where, wanted)


def to_document(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """The `data` of a snapshot file, ready for JSON or YAML; sorted, so that equal snapshots give equal bytes."""
    data: dict[str, Any] = {
        "topics": [
            {"topic": topic, **_sighting_out(sighting), "others": [_sighting_out(other) for other in sighting.others]}
            for topic, sighting in sorted(snapshot.routes.items())
        ],
        "groups": [_group_out(group) for _, group in sorted(snapshot.groups.items())],
        "unread": [_unread_out(part) for part in snapshot.unread],
    }
    return {**data, "notes": list(snapshot.notes)} if snapshot.notes else data


def _check_version(version: object, where: str) -> None:
    major = str(version).partition(".")[0]
    if not (major.isascii() and major.isdigit() and len(major) < 10):
        problem = f"the snapshot's formatVersion is {str(version)[:40]!r}"
        raise DocumentError(f"{where}: {problem}", hint=f"write {FORMAT_VERSION!r}")
    if int(major) > int(FORMAT_VERSION.partition(".")[0]):
        raise DocumentError(
            f"{where}: snapshot format {version} is newer than this program reads ({FORMAT_VERSION})",
            hint="use a newer rmqlb",
            code="newer-format",
        )


def _snapshot(document: SnapshotDocument, where: str, wanted: Wanted) -> ClusterSnapshot:
    taken_at = _utc(document.source.taken_at)
    default = Seen(where, taken_at)
    items = {item.group: item for item in document.data.groups} if wanted.groups else {}
    names = wanted.groups_among(items)
    if names and items.keys() >= set(names):
        items = {name: items[name] for name in names}
    groups = {name: _group(item, default, wanted) for name, item in items.items()}
    topics = _kept_topics(wanted, names, groups, {item.topic for item in document.data.topics})
    return ClusterSnapshot(
        kind="dump",
        endpoint=where,
        taken_at=taken_at,
        routes={
            item.topic: RouteSighting(
                route(item.route, item.topic),
                _seen(item.seen, default),
                tuple(
                    RouteSighting(route(other.route, item.topic), _seen(other.seen, default)) for other in item.others
                ),
            )
            for item in document.data.topics
            if item.topic in topics
        },
        groups=groups,
        unread=tuple(map(_unread, document.data.unread)),
        notes=tuple(document.data.notes),
    )


def _kept_topics(
    wanted: Wanted, names: tuple[str, ...], groups: dict[str, ConsumerGroup], present: set[str]
) -> set[str]:
    """The wanted topics; all of them when one is not there, so that the error can name those that are."""
    retry = present.intersection(map(retry_topic, groups)) if wanted.retry else set()
    if wanted.topics is not None:
        return retry.union(wanted.topics) if present.issuperset(wanted.topics) else present
    lists = [groups[name].topics for name in names if name in groups]
    if not lists or None in lists:
        return present
    return present.intersection(topic for topics in lists for topic in topics or ()) | retry or present


def _group(item: GroupEntry, default: Seen, wanted: Wanted) -> ConsumerGroup:
    seen = _seen(item.seen, default)
    views = item.views
    if views is None and item.client_ids is not None:
        views = [ViewItem(list(map(Connection, item.client_ids)), item.seen)]
    return ConsumerGroup(
        group=item.group,
        seen=seen,
        consume_type=item.consume_type,
        message_model=item.message_model,
        consume_from_where=item.consume_from_where,
        views=None
        if views is None
        else tuple(MemberView(tuple(view.connections), _seen(view.seen, seen), view.broker_addr) for view in views),
        topics=item.topics,
        queues={MessageQueue(q.topic, q.broker_name, q.queue_id): from_attributes(q, QueueState) for q in item.queues},
        reports={
            report.client_id: report if wanted.evidence else replace(report, evidence=None) for report in item.reports
        },
        request_modes=item.request_modes,
        consume_tps=item.consume_tps,
        polling_num=item.polling_num,
        dead_letters=item.dead_letters,
        pop_share_queue_nums=item.pop_share_queue_nums,
        proxies=None
        if item.proxies is None
        else tuple(ProxyView(tuple(p.connections), _seen(p.seen, seen), p.proxy_addr) for p in item.proxies),
    )


def _unread(item: UnreadItem) -> Unread:
    if item.kind is not None and item.name is not None:
        return Unread(item.kind, item.name, item.reason, item.detail, item.no_answer)
    what = item.what or ""
    for kind, words in UNREAD_WORDS.items():  # format 1.0 has words alone
        found = re.fullmatch(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(words)), what, re.DOTALL)
        if found is not None:
            words_of = found.groupdict()
            return Unread(kind, words_of["name"], item.reason, words_of.get("detail"))
    return Unread("other", what, item.reason)


def _seen(item: Seen | None, default: Seen) -> Seen:
    return default if item is None else Seen(item.where, _utc(item.at))


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, order="deterministic")


def _sighting_out(sighting: RouteSighting) -> dict[str, Any]:
    route_out = _plain(sighting.route)
    del route_out["topic"]
    return {"route": {"orderTopicConf": route_out.pop("orderTopicConf"), **route_out}, "seen": _plain(sighting.seen)}


def _group_out(group: ConsumerGroup) -> dict[str, Any]:
    data = _plain(replace(group, queues={}, reports={}))
    data["queues"] = [
        _sparse(_plain(queue) | _plain(group.queues[queue]), "storedOffset", "minOffset", "timestampOffset")
        for queue in sorted(group.queues, key=queue_order)
    ]
    data["reports"] = [
        _sparse(_plain(report), "consumeTimestamp", "startedAt", "popTopics", "evidence")
        for _, report in sorted(group.reports.items())
    ]
    return _sparse(data, "requestModes", "consumeTps", "pollingNum", "deadLetters", "popShareQueueNums", "proxies")


def _unread_out(part: Unread) -> dict[str, Any]:
    data = _sparse(_plain(part), "detail")
    return {"noAnswer" if key == "no_answer" else key: value for key, value in data.items() if value is not False}


def _sparse(data: dict[str, Any], *names: str) -> dict[str, Any]:
    """Without those keys that have no value, which most snapshots do not need."""
    return {key: value for key, value in data.items() if value is not None or key not in names}


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
    topics: tuple[str, ...] | None = None
    queues: list[QueueItem] = []
    reports: list[MemberReport] = []
    request_modes: dict[str, tuple[str, ...]] | None = None
    consume_tps: float | None = None
    polling_num: int | None = None
    dead_letters: int | None = None
    pop_share_queue_nums: dict[str, tuple[int, ...]] | None = None
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
