"""rmqlb's own snapshot format. Version 1 had other results next to it, with the same keys.

A newer minor version only adds keys, which are ignored; a newer major version is refused. Only the format's name, a
topic's route and a group's name are required: absent values are unknown. A time without a zone is UTC.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from rmqlb import decoding
from rmqlb.errors import DocumentError
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
from rmqlb.model.result import FORMAT_VERSION, in_utc
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread, UnreadKind, Wanted
from rmqlb.sources.formats.documents import CamelStruct, RouteDocument, convert, decode, route

SCHEMA = "rmqlb/snapshot"


class Heading(CamelStruct, frozen=True):
    """The keys that identify a snapshot; the rest is skipped without being built."""

    schema: object = None
    format_version: object = None
    source: Any = None


class SightingItem(CamelStruct, frozen=True):
    """The route of a topic at another NameServer."""

    route: Annotated[RouteDocument, "route of the topic"]
    seen: Annotated[Seen | None, "source and time of the data"] = None


class TopicItem(CamelStruct, frozen=True):
    """A topic."""

    topic: Annotated[str, "name of the topic"]
    route: Annotated[RouteDocument, "route of the topic"]
    seen: Annotated[Seen | None, "source and time of the data"] = None
    others: Annotated[list[SightingItem], "differing routes at other NameServers"] = []


class ViewItem(CamelStruct, frozen=True):
    """The consumers as one broker lists them."""

    connections: Annotated[tuple[Connection, ...], "processes; an ID appears once per process"]
    seen: Annotated[Seen | None, "source and time of the data"] = None
    broker_addr: Annotated[str | None, "address of the broker"] = None


class ProxyItem(CamelStruct, frozen=True):
    """The consumers as one Proxy lists them."""

    connections: Annotated[tuple[Connection, ...], "processes; empty when no consumer is online at the Proxy"]
    proxy_addr: Annotated[str, "address of the Proxy"]
    seen: Annotated[Seen | None, "source and time of the data"] = None


class QueueItem(QueueState, frozen=True, rename="camel", kw_only=True):
    """A queue as the group reads it."""

    topic: Annotated[str, "name of the topic"]
    broker_name: Annotated[str, "name of the broker"]
    queue_id: Annotated[int, "number of the queue at its broker, from 0"]


class GroupEntry(CamelStruct, frozen=True):
    """A consumer group."""

    group: Annotated[str, "name of the group"]
    seen: Annotated[Seen | None, "source and time of the data"] = None
    consume_type: Annotated[str | None, "CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP"] = None
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING"] = None
    consume_from_where: Annotated[str | None, "where a queue without an offset starts"] = None
    client_ids: Annotated[list[str] | None, "client IDs, if there are no views; an ID appears once per process"] = None
    views: Annotated[list[ViewItem] | None, "the consumers as each broker lists them"] = None
    topics: Annotated[tuple[str, ...] | None, "topics that the group subscribes to"] = None
    queues: Annotated[list[QueueItem], "owners and offsets, where they are known"] = []
    reports: Annotated[list[MemberReport], "reports of the consumers"] = []
    request_modes: Annotated[dict[str, tuple[str, ...]] | None, "topic → PULL or POP, as set at the brokers"] = None
    consume_tps: Annotated[float | None, "messages per second delivered to the group over the last minute"] = None
    polling_num: Annotated[int | None, "receive requests (POP) of the group that wait at brokers"] = None
    dead_letters: Annotated[
        int | None, "messages ever stored in the group's dead-letter topic, after failed deliveries"
    ] = None
    pop_share_queue_nums: Annotated[
        dict[str, tuple[int, ...]] | None, "topic → popShareQueueNum, as set at the brokers"
    ] = None
    proxies: Annotated[list[ProxyItem] | None, "the consumers that each queried Proxy lists"] = None


class UnreadItem(CamelStruct, frozen=True):
    """A part that could not be read."""

    reason: Annotated[str, "reason, in one line"]
    kind: Annotated[UnreadKind, "kind of the unread part"] = "other"
    name: Annotated[str | None, "name of the topic, group, broker (for its list of groups) or NameServer"] = None
    detail: Annotated[str | None, "for a group: the broker, the client ID or the brokers' addresses"] = None
    no_answer: Annotated[bool, "true if the server did not answer in time"] = False
    what: Annotated[
        str | None, "description of the part; only format 1.0 has this key, instead of kind, name and detail"
    ] = None

    def __post_init__(self) -> None:
        if self.name is None and self.what is None:
            raise ValueError("a part that was not read has a name")


class DataItem(CamelStruct, frozen=True):
    """The parts of a cluster that were seen."""

    topics: Annotated[list[TopicItem], "topics and their routes"] = []
    groups: Annotated[list[GroupEntry], "consumer groups"] = []
    unread: Annotated[list[UnreadItem], "parts of the cluster that could not be read"] = []
    notes: Annotated[list[str], "notes for users; every command prints them"] = []


class SourceItem(CamelStruct, frozen=True):
    """Where the snapshot comes from."""

    kind: Annotated[str | None, "kind of source"] = None
    endpoint: Annotated[str | None, "URL or path of the source"] = None
    taken_at: Annotated[datetime | None, "time of the snapshot"] = None
    context: Annotated[str | None, "context that the snapshot was taken with; ignored when the file is read"] = None


class SnapshotDocument(CamelStruct, frozen=True):
    """A cluster, or parts of it, as it was at a time."""

    schema: Annotated[str, "always rmqlb/snapshot"]
    format_version: Annotated[str, "version of the format, such as 2.0"]
    data: Annotated[DataItem, "content of the snapshot"]
    source: Annotated[SourceItem, "origin of the snapshot"] = SourceItem()


def heading(body: bytes) -> Heading | None:
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


def _check_version(version: object, where: str) -> None:
    major = str(version).partition(".")[0]
    if not (major.isascii() and major.isdigit() and len(major) < 10):
        problem = f"the snapshot's formatVersion is {str(version)[:40]!r}"
        raise DocumentError(f"{where}: {problem}", hint=f"write {FORMAT_VERSION!r}")
    if int(major) > int(FORMAT_VERSION.partition(".")[0]):
        problem = f"snapshot format {version} is too new: this rmqlb reads up to {FORMAT_VERSION}"
        raise DocumentError(f"{where}: {problem}", hint="use a newer rmqlb", code="newer-format")


def _snapshot(document: SnapshotDocument, where: str, wanted: Wanted) -> ClusterSnapshot:
    taken_at = in_utc(document.source.taken_at)
    default = Seen(where, taken_at)
    items = {item.group: item for item in document.data.groups} if wanted.groups else {}
    names = wanted.groups_among(items)
    if names and items.keys() >= set(names):
        items = {name: items[name] for name in names}
    groups = {name: _group(item, default, wanted) for name, item in items.items()}
    topics = _kept_topics(wanted, names, groups, {item.topic for item in document.data.topics})

    def sighting(item: TopicItem | SightingItem, topic: str, *others: RouteSighting) -> RouteSighting:
        return RouteSighting(route(item.route, topic), _seen(item.seen, default), others)

    return ClusterSnapshot(
        kind="dump",
        endpoint=where,
        taken_at=taken_at,
        routes={
            item.topic: sighting(item, item.topic, *(sighting(other, item.topic) for other in item.others))
            for item in document.data.topics
            if item.topic in topics
        },
        groups=groups,
        unread=tuple(
            Unread(item.kind, item.name or item.what or "", item.reason, item.detail, item.no_answer)
            for item in document.data.unread
        ),
        notes=tuple(document.data.notes),
    )


def _kept_topics(
    wanted: Wanted, names: tuple[str, ...], groups: dict[str, ConsumerGroup], present: set[str]
) -> set[str]:
    """The wanted topics; all topics when one is missing, so the error can name them."""
    retry = present.intersection(map(retry_topic, groups)) if wanted.retry else set()
    if wanted.topics is not None:
        return retry.union(wanted.topics) if present.issuperset(wanted.topics) else present
    lists = [groups[name].topics for name in names if name in groups]
    if not lists or None in lists:
        return present
    return present.intersection(topic for topics in lists for topic in topics or ()) | retry or present


_SAME = (
    *("consume_type", "message_model", "consume_from_where", "topics", "request_modes", "consume_tps", "polling_num"),
    *("dead_letters", "pop_share_queue_nums"),
)  # fields of a group that are equal in the file


def _group(item: GroupEntry, default: Seen, wanted: Wanted) -> ConsumerGroup:
    seen = _seen(item.seen, default)
    views = item.views
    if views is None and item.client_ids is not None:
        views = [ViewItem(tuple(map(Connection, item.client_ids)), item.seen)]
    return ConsumerGroup(
        item.group,
        seen,
        views=None
        if views is None
        else tuple(MemberView(v.connections, _seen(v.seen, seen), v.broker_addr) for v in views),
        proxies=None
        if item.proxies is None
        else tuple(ProxyView(p.connections, _seen(p.seen, seen), p.proxy_addr) for p in item.proxies),
        queues={
            MessageQueue(each.topic, each.broker_name, each.queue_id): QueueState(
                **{name: getattr(each, name) for name in QueueState.__struct_fields__}
            )
            for each in item.queues
        },
        reports={each.client_id: each if wanted.evidence else replace(each, evidence=None) for each in item.reports},
        **{name: getattr(item, name) for name in _SAME},
    )


def _seen(item: Seen | None, default: Seen) -> Seen:
    return default if item is None else Seen(item.where, in_utc(item.at))


def to_document(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """The `data` of a snapshot file for JSON or YAML; sorted, so equal snapshots give equal bytes."""
    data: dict[str, Any] = {
        "topics": [
            {"topic": topic, **_sighting_out(sighting), "others": [_sighting_out(other) for other in sighting.others]}
            for topic, sighting in sorted(snapshot.routes.items())
        ],
        "groups": [_group_out(group) for _, group in sorted(snapshot.groups.items())],
        "unread": [_plain(part) for part in snapshot.unread],
    }
    return {**data, "notes": list(snapshot.notes)} if snapshot.notes else data


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


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, order="deterministic")


def _sparse(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None or key not in names}
