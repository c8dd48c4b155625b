"""Single documents put together into one snapshot: each is recognised by its fields and added to what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from rmqlb.errors import DocumentError
from rmqlb.model.group import ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats import from_documents, snapshot_file
from rmqlb.sources.formats.consumer_evidence import consumer_evidence
from rmqlb.sources.owners import popped_topics, with_owners

_BESIDE_THE_POINT = {
    "topicList",
    "clusterInfo",
    "clusterAddrTable",
    "offsetTable",
    "namesvrAddrList",
    "subscriptionGroupConfig",
}
"""Fields of Dashboard answers that are known, and say nothing about routes, members or owners."""


@dataclass(slots=True)
class _GroupPieces:
    connections: list[tuple[docs.ConnectionsDocument, str]] = field(default_factory=list)
    items: list[docs.GroupItem] = field(default_factory=list)
    queues: dict[MessageQueue, QueueState] = field(default_factory=dict)
    held: dict[str, frozenset[MessageQueue]] = field(default_factory=dict)
    reports: dict[str, MemberReport] = field(default_factory=dict)

    def merge(self, later: _GroupPieces) -> None:
        self.connections += later.connections
        self.items += later.items
        self.queues.update(later.queues)
        self.held.update(later.held)
        self.reports.update(later.reports)


class Pieces:
    """What the documents of one dump have said so far."""

    def __init__(
        self, where: str, wanted: Wanted | None = None, topic: str | None = None, group: str | None = None
    ) -> None:
        self._where = where  # the dump, as errors name it
        self._wanted = wanted or Wanted()  # the parts of a snapshot that are read; all by default
        self._topic = topic  # of a route that does not name its own
        self._group_told = group
        self._routes: dict[str, RouteSighting] = {}
        self._groups: dict[str, _GroupPieces] = {}
        self._snapshots: list[ClusterSnapshot] = []
        self.notes: list[str] = []

    def add(self, document: object, where: str) -> None:
        """One document; DocumentError when it is none of the known kinds, or carries an error instead of an answer."""
        if isinstance(document, dict) and {"status", "data"} <= document.keys():
            document = docs.open_envelope(document, where)
        if isinstance(document, list):
            self._add_list(document, where)
        elif isinstance(document, dict):
            self._add_object(document, where)
        else:
            raise _unknown(where)

    def add_anonymous_route(self, document: docs.RouteDocument, where: str) -> None:
        """A route whose document does not say of which topic it is (raises DocumentError)."""
        topic = from_documents.route_topic(document)
        if topic is None:
            topic = self._topic
            if topic is None:
                raise DocumentError(
                    f"{where} is the route of one topic and does not name it",
                    hint="say which: --topic NAME",
                    hint_names_options=True,
                    code="topic-not-named",
                )
            if topic in self._routes:
                raise DocumentError(
                    f"{where} is another route that does not name its topic",
                    hint="read one of them at a time",
                    code="topic-not-named",
                )
        self._add_route(document, topic, where)

    @property
    def snapshots(self) -> tuple[ClusterSnapshot, ...]:
        """Those of the documents that are snapshots of their own."""
        return tuple(self._snapshots)

    def merge(self, later: Pieces) -> None:
        """Add what another dump's documents say, as if they had been read after these."""
        self._routes.update(later._routes)
        for name, pieces in later._groups.items():
            self._pieces(name).merge(pieces)
        self._snapshots += later._snapshots
        self.notes += later.notes

    def snapshot(self) -> ClusterSnapshot:
        routes, groups = dict(self._routes), {name: self._group(name, p) for name, p in self._groups.items()}
        for snapshot in self._snapshots:
            routes.update(snapshot.routes)
            groups.update(snapshot.groups)
        return ClusterSnapshot(
            kind="dump",
            endpoint=self._where,
            taken_at=next((s.taken_at for s in self._snapshots if s.taken_at), None),
            routes=routes,
            groups=groups,
            unread=tuple(part for s in self._snapshots for part in s.unread),
            notes=tuple(dict.fromkeys((*self.notes, *(note for each in self._snapshots for note in each.notes)))),
        )

    def _add_object(self, value: dict[object, object], where: str) -> None:
        if value.get("schema") == snapshot_file.SCHEMA:
            self._snapshots.append(snapshot_file.read_value(value, where, self._wanted))
        elif docs.is_route(value):
            self.add_anonymous_route(docs.convert(value, docs.RouteDocument, where), where)
        elif "connectionSet" in value:
            self._add_connections(docs.convert(value, docs.ConnectionsDocument, where), where)
        elif {"group", "consumeType"} <= value.keys():
            self._add_group_item(docs.convert(value, docs.GroupItem, where))
        elif {"properties", "mqTable"} <= value.keys():
            self._add_running_info(docs.convert(value, docs.RunningInfoDocument, where), where)
        elif _BESIDE_THE_POINT & value.keys():
            self.notes.append(f"{where} says nothing about routes or consumers and was skipped")
        else:
            self._add_mapping(value, where)

    def _add_mapping(self, value: dict[object, object], where: str) -> None:
        if value and all(docs.is_route(item) for item in value.values()):
            for topic, item in value.items():
                place = f"{where}, {topic}"
                self._add_route(docs.convert(item, docs.RouteDocument, place), str(topic), place)
        elif value and all(isinstance(item, dict) and "queueStatInfoList" in item for item in value.values()):
            for group, item in value.items():
                self._add_progress(str(group), [docs.convert(item, docs.TopicConsumerDocument, where)])
        else:
            raise _unknown(where)

    def _add_list(self, items: list[object], where: str) -> None:
        if items and all(isinstance(item, dict) and "queueStatInfoList" in item for item in items):
            progress = docs.convert(items, list[docs.TopicConsumerDocument], where)
            self._add_progress(self._group_name(from_documents.group_of(p.topic for p in progress), where), progress)
        elif items and all(isinstance(item, dict) and {"group", "consumeType"} <= item.keys() for item in items):
            for group_item in docs.convert(items, list[docs.GroupItem], where):
                self._add_group_item(group_item)
        else:
            for number, item in enumerate(items, 1):
                self.add(item, f"{where}, item {number}")

    def _add_route(self, document: docs.RouteDocument, topic: str, where: str) -> None:
        self._routes[topic] = RouteSighting(from_documents.route(document, topic), Seen(where))

    def _add_connections(self, document: docs.ConnectionsDocument, where: str) -> None:
        group = self._group_name(from_documents.group_of(document.subscription_table or ()), where)
        self._pieces(group).connections.append((document, where))

    def _add_running_info(self, document: docs.RunningInfoDocument, where: str) -> None:
        pieces = self._pieces(self._group_name(document.properties.get("consumerGroup"), where))
        client_id = from_documents.client_id(document.properties)
        if client_id is None:
            raise DocumentError(f"{where}: the properties do not say which client this is")
        report = from_documents.member_report(document, client_id)
        if self._wanted.evidence:
            report = replace(report, evidence=consumer_evidence(document, where))
        pieces.reports[client_id] = report
        pieces.held[client_id] = from_documents.held_queues(document, where)

    def _add_group_item(self, item: docs.GroupItem) -> None:
        self._pieces(item.group.removeprefix("%SYS%")).items.append(item)

    def _add_progress(self, group: str, progress: list[docs.TopicConsumerDocument]) -> None:
        self._pieces(group).queues.update(from_documents.queue_states(progress))

    def _pieces(self, group: str) -> _GroupPieces:
        return self._groups.setdefault(group, _GroupPieces())

    def _group_name(self, told: str | None, where: str) -> str:
        group = told or self._group_told
        if group is None:
            raise DocumentError(
                f"{where} is about one group and does not name it",
                hint="say which: --group NAME",
                hint_names_options=True,
                code="group-not-named",
            )
        return group

    def _group(self, name: str, pieces: _GroupPieces) -> ConsumerGroup:
        first = pieces.connections[0][0] if pieces.connections else None
        item = pieces.items[0] if pieces.items else None
        views: tuple[MemberView, ...] | None = None
        if pieces.connections:
            views = tuple(MemberView(from_documents.connections(doc), Seen(where)) for doc, where in pieces.connections)
        elif item is not None and item.count == 0:
            views = ()
        ids = None if views is None else frozenset(client_id for view in views for client_id in view.client_ids)
        return ConsumerGroup(
            group=name,
            seen=Seen(self._where),
            consume_type=first.consume_type if first else item.consume_type if item else None,
            message_model=first.message_model if first else item.message_model if item else None,
            consume_from_where=first.consume_from_where if first else None,
            views=views,
            topics=_topics((document.subscription_table for document, _ in pieces.connections), pieces.queues),
            queues=with_owners(pieces.queues, pieces.held, ids, popped_topics(pieces.reports)),
            reports=pieces.reports,
        )


def _topics(
    tables: Iterable[Mapping[str, object] | None], queues: Mapping[MessageQueue, QueueState]
) -> tuple[str, ...] | None:
    """The subscription's topics, as all brokers tell them; else those of which offsets are known."""
    told = [table for table in tables if table is not None]
    names = {topic for table in told for topic in table} if told else {queue.topic for queue in queues}
    return tuple(sorted(names)) or None


def _unknown(where: str) -> DocumentError:
    return DocumentError(
        f"{where}: not recognised",
        hint="expected a snapshot, a TopicRouteData document, a saved Dashboard response or mqadmin topicRoute output",
        code="not-recognised",
    )
