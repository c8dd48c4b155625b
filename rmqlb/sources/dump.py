"""A dump, from a file or stdin: read within bounds, unpacked, and recognised by its content."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError, DocumentError
from rmqlb.model.group import ConsumerGroup, MemberReport, MemberView, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Progress, no_progress
from rmqlb.model.route import QueueData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats import snapshot_file
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, require_few_values, text_of, too_large
from rmqlb.sources.source import NothingToAsk

STDIN = "-"
_CHUNK = 1 << 20


class DumpSource(NothingToAsk):
    def __init__(self, path: str, *, max_bytes: int = DEFAULT_LIMIT) -> None:
        self._path = path  # the file, or `-` for stdin
        self._max_bytes = max_bytes
        self._where = "stdin" if path == STDIN else path

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        progress(self._where, 0, 0)
        body = collect(self._chunks(), self._max_bytes, self._where)
        if body.startswith(GZIP):
            body = inflate(body, self._max_bytes, self._where)
        of = {"topic": wanted.only_topic, "group": wanted.group}
        return read_document(body, self._where, wanted, **of, limit=self._max_bytes).snapshot

    def _chunks(self) -> Iterator[bytes]:
        try:
            if self._path == STDIN:
                if sys.stdin is None:
                    raise ValueError("it is closed")
                yield from iter(partial(sys.stdin.buffer.read, _CHUNK), b"")
                return
            if os.path.isfile(self._path) and os.path.getsize(self._path) > self._max_bytes:
                raise too_large(self._where, self._max_bytes)
            with open(self._path, "rb") as file:
                yield from iter(partial(file.read, _CHUNK), b"")
        except (OSError, ValueError) as error:
            problem = f"cannot read {self._where}: {getattr(error, 'strerror', None) or error}"
            is_folder = os.path.isdir(self._path)
            hint = "name a file in it" if is_folder else "-s takes HOST:9876, a URL, a file, or - for stdin"
            raise DocumentError(problem, hint=hint, code="cannot-read") from None


# A file that is not one strict JSON document is split at lines: a document begins at a line with `{` or `[` first, or
# after a line with a whole one. So a truncated line loses only itself. Nothing is built before its size and its number
# of values are known to be bounded.

LARGEST_FILE = 4 * DEFAULT_LIMIT  # bytes, packed and unpacked, of a file with several documents
GZIP = b"\x1f\x8b"
_OPENS, _CLOSES = (b"{", b"["), (b"}", b"]")


class Document(msgspec.Struct, frozen=True):
    snapshot: ClusterSnapshot
    snapshots: int = 1  # number of whole snapshots in it; without one it may be merged with others
    pieces: Pieces | None = None  # routes and answers, for `merge`; None for one snapshot in strict JSON

    @property
    def cluster(self) -> str | None:
        return ",".join(sorted({broker.cluster for broker in self.snapshot.brokers} - {""})) or None

    @property
    def taken_at(self) -> datetime | None:
        """The time of the snapshot in UTC, otherwise the latest time of its parts."""
        seen = [self.snapshot.taken_at]
        if self.snapshot.taken_at is None:
            seen = [sighting.seen.at for sighting in self.snapshot.routes.values()]
            for group in self.snapshot.groups.values():
                seen += (group.seen.at, *(view.seen.at for view in group.views or ()))
        utc = (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC) for at in seen if at is not None)
        return max(utc, default=None) if self.snapshots else None


def read_document(
    body: bytes,  # unpacked
    where: str,
    wanted: Wanted | None = None,  # by default everything but evidence
    *,
    topic: str | None = None,  # of a route that does not name its own
    group: str | None = None,  # of an answer that does not name its own
    limit: int = DEFAULT_LIMIT,  # bytes; half of it for anything but one snapshot in strict JSON
) -> Document:
    """Read one document of any kind, recognised by its content (raises DataError)."""
    wanted = wanted or Wanted()
    if len(body) > limit:
        raise too_large(where, limit)
    if not body or body.isspace():
        raise DocumentError(f"{where} is empty", hint="expected a snapshot, a route or a Dashboard response")
    require_few_values(body, where, limit)
    heading = snapshot_file.heading(body)
    if heading is not None:
        return Document(snapshot_file.read_body(body, heading, where, wanted))
    # Other documents are built whole, keys and all, and take twice the memory of a snapshot.
    if len(body) > limit // 2:
        raise too_large(where, limit // 2, "because it is not one whole snapshot in JSON")
    require_few_values(body, where, limit // 2)
    pieces = Pieces(where, wanted, topic, group)
    pieces.read(body)
    return pieces.document()


def merge(documents: Iterable[Document], where: str) -> Document:
    """Several documents' pieces as one document, with evidence; later ones win."""
    whole = Pieces(where, Wanted(evidence=True))
    for document in documents:
        if document.pieces is not None:
            whole.merge(document.pieces)
    return whole.document()


def split_documents(content: bytes, where: str) -> list[bytes]:
    r"""The documents of a file, unpacked; at least one, which may be empty.

    >>> split_documents(b'{}\nx\n{"b": \n{"c": 3}\n', "x")
    [b'{}', b'x', b'{"b":', b'{"c": 3}']

    DocumentError when the gzip is damaged or truncated, or the content larger than `LARGEST_FILE`.
    """
    if len(content) > LARGEST_FILE:
        raise too_large(where, LARGEST_FILE)
    body = inflate(content, LARGEST_FILE, where) if content.startswith(GZIP) else content
    with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        decode(body, msgspec.Raw)
        return [body.strip()]
    # A JVM writes noise before a command's own output. A line of noise is blanked only before the first document, so
    # nothing of a document is lost; bytes that are not text stay.
    text = body
    with suppress(UnicodeDecodeError):
        text = without_noise(body.decode("utf-8-sig")).encode()
    lines = text.split(b"\n")
    if not any(_is_whole(line) or line[:1] in _OPENS for line in lines):
        return [body.strip()]
    documents: list[list[bytes]] = []
    for line in lines:
        if documents and line[:1] not in _OPENS and not _is_whole(documents[-1][0]):
            documents[-1].append(line.rstrip(b"\r"))
        elif line.strip():
            documents.append([line.rstrip(b"\r")])
    return [b"\n".join(each).strip() for each in documents]


def _is_whole(line: bytes) -> bool:
    line = line.strip()
    return len(line) > 1 and line[:1] in _OPENS and line[-1:] in _CLOSES


_FIRST_LINE = rb"[ \t\r\n]*([{\[][^\n]{,80})"
_OTHER_TABLE = r"#[A-Z][A-Za-z]{1,20}(?: [A-Z][a-z]{1,20})? {2,200}#[A-Z]"
"""Two columns of consumerConnection, consumerProgress or clusterList; a YAML file may begin with a comment."""
_SKIPPED = frozenset(
    "topicList clusterInfo clusterAddrTable offsetTable namesvrAddrList subscriptionGroupConfig".split()  # noqa: SIM905
)  # fields of Dashboard answers without routes, consumers or owners
_EXPECTED = "expected a snapshot, a route or a Dashboard response"


_Answer = docs.ConnectionsDocument | docs.GroupItem | docs.TopicConsumerDocument | docs.RunningInfoDocument


class Pieces:
    def __init__(
        self, where: str, wanted: Wanted | None = None, topic: str | None = None, group: str | None = None
    ) -> None:
        self._where = where
        self._wanted = wanted or Wanted()
        self._topic = topic  # of a route that does not name its own
        self._group = group  # of an answer that does not name its own
        self._routes: dict[str, RouteSighting] = {}
        self._answers: dict[str, list[tuple[_Answer, str]]] = {}  # group → answers about it, each with its place
        self._snapshots: list[ClusterSnapshot] = []
        self._notes: list[str] = []

    def read(self, body: bytes) -> None:
        """Add a dump of any kind (raises DocumentError)."""
        where, first = self._where, re.match(_FIRST_LINE, body)
        if first and not re.match(_NOISE, first[1].decode("latin-1")):
            self._add_json(body)
            return
        text = without_noise(text_of(body, where))
        start = text.lstrip()
        failed = failed_command(start) if start[:1] not in ("{", "[") else None
        if failed is not None:
            raise DataError(f"{where}: output of a failed mqadmin command: {failed}")
        if start.startswith(_TABLE_START):
            self._add_anonymous_route(read_table(text, where), where)
        elif re.match(_OTHER_TABLE, start):
            raise DocumentError(
                f"{where}: a table of an mqadmin command other than topicRoute",
                hint="pass a route, and the consumers that consumerConnection lists with --consumers ID,ID,…",
                hint_names_options=True,
                code="not-recognised",
            )
        elif start[:1] in ("{", "["):
            self._add_json(text.encode())
        else:
            from rmqlb.sources.formats.yaml_text import read_yaml

            value = read_yaml(text, where)
            if not isinstance(value, dict):
                kinds = {str: "plain text", list: "a YAML list", type(None): "nothing"}
                problem = f"neither JSON nor a YAML mapping, but {kinds.get(type(value), type(value).__name__)}"
                raise DocumentError(f"{where}: {problem}", hint=_EXPECTED, code="not-recognised")
            self._add(value, where)

    def merge(self, later: Pieces) -> None:
        self._routes |= later._routes
        for name, answers in later._answers.items():
            self._of(name).extend(answers)
        self._snapshots += later._snapshots
        self._notes += later._notes

    def document(self) -> Document:
        routes, groups = dict(self._routes), {name: self._made(name, each) for name, each in self._answers.items()}
        for snapshot in self._snapshots:
            routes.update(snapshot.routes)
            groups.update(snapshot.groups)
        notes = (*self._notes, *(note for each in self._snapshots for note in each.notes))
        snapshot = ClusterSnapshot(
            kind="dump",
            endpoint=self._where,
            taken_at=next((s.taken_at for s in self._snapshots if s.taken_at), None),
            routes=routes,
            groups=groups,
            unread=tuple(part for s in self._snapshots for part in s.unread),
            notes=tuple(dict.fromkeys(notes)),
        )
        return Document(snapshot, len(self._snapshots), self)

    def _add_json(self, body: bytes) -> None:
        documents, notes = docs.parse_documents(body, self._where)
        if notes:
            self._notes.append(f"read as RocketMQ's JSON dialect: {', '.join(notes)}")
        for number, document in enumerate(documents, 1):
            self._add(document, self._where if len(documents) == 1 else f"{self._where}, document {number}")

    def _add(self, value: object, where: str) -> None:
        if isinstance(value, dict) and {"status", "data"} <= value.keys():
            value = docs.open_envelope(value, where)
        if isinstance(value, list):
            self._add_list(value, where)
        elif isinstance(value, dict):
            self._add_object(value, where)
        else:
            raise _unknown(where)

    def _add_object(self, value: dict[object, object], where: str) -> None:
        if value.get("schema") == snapshot_file.SCHEMA:
            self._snapshots.append(snapshot_file.read_value(value, where, self._wanted))
        elif docs.is_route(value):
            self._add_anonymous_route(docs.convert(value, docs.RouteDocument, where), where)
        elif "connectionSet" in value:
            connections = docs.convert(value, docs.ConnectionsDocument, where)
            group = self._group_name(docs.group_of(connections.subscription_table or ()), where)
            self._of(group).append((connections, where))
        elif _is_group_item(value):
            item = docs.convert(value, docs.GroupItem, where)
            self._of(item.group.removeprefix("%SYS%")).append((item, where))
        elif {"properties", "mqTable"} <= value.keys():
            info = docs.convert(value, docs.RunningInfoDocument, where)
            if docs.client_id(info.properties) is None:
                raise DocumentError(f"{where}: the properties do not contain the client ID")
            self._of(self._group_name(info.properties.get("consumerGroup"), where)).append((info, where))
        elif _SKIPPED & value.keys():
            self._notes.append(f"{where} says nothing about routes or consumers and was skipped")
        else:
            self._add_mapping(value, where)

    def _add_mapping(self, value: dict[object, object], where: str) -> None:
        if value and all(map(docs.is_route, value.values())):
            for topic, item in value.items():
                place = f"{where}, {topic}"
                self._add_route(docs.convert(item, docs.RouteDocument, place), str(topic), place)
        elif value and all(map(_is_progress, value.values())):
            for name, item in value.items():
                self._of(str(name)).append((docs.convert(item, docs.TopicConsumerDocument, where), where))
        else:
            raise _unknown(where)

    def _add_list(self, items: list[object], where: str) -> None:
        if items and all(map(_is_progress, items)):
            progress = docs.convert(items, list[docs.TopicConsumerDocument], where)
            group = self._group_name(docs.group_of(each.topic for each in progress), where)
            self._of(group).extend((each, where) for each in progress)
        elif items and all(map(_is_group_item, items)):
            for item in docs.convert(items, list[docs.GroupItem], where):
                self._of(item.group.removeprefix("%SYS%")).append((item, where))
        else:
            for number, each in enumerate(items, 1):
                self._add(each, f"{where}, item {number}")

    def _add_anonymous_route(self, document: docs.RouteDocument, where: str) -> None:
        topic = docs.route_topic(document) or self._topic
        if topic is None:
            problem, hint = (
                f"{where} is the route of one topic, but does not name the topic",
                "name the topic with --topic NAME",
            )
            raise DocumentError(problem, hint=hint, hint_names_options=True, code="topic-not-named")
        if docs.route_topic(document) is None and topic in self._routes:
            problem = f"{where} is a second route without the name of its topic"
            raise DocumentError(problem, hint="read one route at a time", code="topic-not-named")
        self._add_route(document, topic, where)

    def _add_route(self, document: docs.RouteDocument, topic: str, where: str) -> None:
        self._routes[topic] = RouteSighting(docs.route(document, topic), Seen(where))

    def _of(self, group: str) -> list[tuple[_Answer, str]]:
        return self._answers.setdefault(group, [])

    def _group_name(self, named: str | None, where: str) -> str:
        group = named or self._group
        if group is None:
            problem = f"{where} is about one group, but does not name the group"
            hint = "name the group with --group NAME"
            raise DocumentError(problem, hint=hint, hint_names_options=True, code="group-not-named")
        return group

    def _made(self, name: str, answers: Sequence[tuple[_Answer, str]]) -> ConsumerGroup:
        lists = [(each, where) for each, where in answers if isinstance(each, docs.ConnectionsDocument)]
        first = lists[0][0] if lists else None
        item = next((each for each, _ in answers if isinstance(each, docs.GroupItem)), None)
        queues = docs.queue_states(each for each, _ in answers if isinstance(each, docs.TopicConsumerDocument))
        reports: dict[str, MemberReport] = {}
        by_consumer: dict[str, frozenset[MessageQueue]] = {}
        for each, where in answers:
            if isinstance(each, docs.RunningInfoDocument):
                client_id = docs.client_id(each.properties) or ""
                evidence = docs.consumer_evidence(each, where) if self._wanted.evidence else None
                reports[client_id] = docs.member_report(each, client_id, evidence)
                by_consumer[client_id] = docs.held_queues(each, where)
        views: tuple[MemberView, ...] | None = None
        if lists:
            views = tuple(MemberView(docs.connections(each), Seen(where)) for each, where in lists)
        elif item is not None and item.count == 0:
            views = ()
        # The subscription's topics as all brokers report them, otherwise topics with known offsets.
        tables = [each.subscription_table for each, _ in lists if each.subscription_table is not None]
        topics = {topic for table in tables for topic in table} if tables else {queue.topic for queue in queues}
        ids = None if views is None else frozenset(client_id for view in views for client_id in view.client_ids)
        return ConsumerGroup(
            group=name,
            seen=Seen(self._where),
            consume_type=first.consume_type if first else item.consume_type if item else None,
            message_model=first.message_model if first else item.message_model if item else None,
            consume_from_where=first.consume_from_where if first else None,
            views=views,
            topics=tuple(sorted(topics)) or None,
            queues=docs.with_owners(queues, by_consumer, ids, reports),
            reports=reports,
        )


def _is_progress(item: object) -> bool:
    return isinstance(item, dict) and "queueStatInfoList" in item


def _is_group_item(item: object) -> bool:
    return isinstance(item, dict) and {"group", "consumeType"} <= item.keys()


def _unknown(where: str) -> DocumentError:
    hint = "expected a snapshot, a TopicRouteData document, a saved Dashboard response or mqadmin topicRoute output"
    return DocumentError(f"{where}: not recognised", hint=hint, code="not-recognised")


# The table of `mqadmin topicRoute -l`, and the noise of a JVM around mqadmin's output.

_TABLE_START = "#ClusterName"
_NOISE = (
    r"OpenJDK |Java HotSpot|WARNING: |SLF4J: |RocketMQLog:|Picked up |log4j:|\[\d+\.\d+s\]\[|"
    r"\d\d:\d\d:\d\d,\d{3} \|-"  # logback's own status: 5.5.0 without its script's settings prints 240 such lines
)
_NOISY_LINES = rf"(?:[^\S\n]*\n|(?:{_NOISE})[^\n]*\n){{1,10000}}+"  # before a command's own output
_ROW = (
    r"(?P<cluster>\S+)\s+(?P<broker>\S+)\s+\{(?P<addrs>[^}]*)\}\s+(?P<readQueueNums>-?\d{1,10})\s+"
    r"(?P<writeQueueNums>-?\d{1,10})\s+(?P<perm>\d{1,10})\s*"
)


def without_noise(text: str) -> str:
    """Blank the leading lines of a JVM or its logging; line numbers in errors stay true."""
    noise = re.match(_NOISY_LINES, text)
    return text if noise is None else "\n" * noise[0].count("\n") + text[noise.end() :]


def failed_command(text: str) -> str | None:
    """The reason in a stack trace instead of an answer, or None."""
    if "SubCommandException" not in text and "MQClientException" not in text:
        return None
    match = re.search(r"CODE: -?\d+\s+DESC: [^\n]*", text)
    return match[0] if match else text.strip().partition("\n")[0]


def read_table(text: str, where: str) -> docs.RouteDocument:
    """The table of `mqadmin topicRoute -l` (`TopicRouteSubCommand`; raises DocumentError)."""
    brokers: list[docs.BrokerDataDocument] = []
    queues: list[QueueData] = []
    lines = ((number, line.rstrip("\r\n")) for number, line in enumerate(io.StringIO(text), 1))
    next(number for number, line in lines if line.lstrip().startswith(_TABLE_START))
    for number, line in lines:
        if line.startswith("---"):
            try:
                return docs.RouteDocument(queue_datas=queues, broker_datas=brokers)
            except ValueError as error:
                raise DocumentError(f"{where}: {error}") from None
        match, place = re.fullmatch(_ROW, line), f"{where}, line {number}"
        if not match:
            raise DocumentError(f"{place}: not a row of the table that mqadmin topicRoute -l prints")
        if len(brokers) == docs.MOST_BROKERS:
            raise DocumentError(f"{place}: more than {docs.MOST_BROKERS} brokers")
        brokers.append(docs.BrokerDataDocument(match["broker"], match["cluster"], _addrs(match["addrs"], place)))
        numbers = {name: int(match[name]) for name in ("readQueueNums", "writeQueueNums", "perm")}
        queues.append(docs.convert({"brokerName": match["broker"], **numbers}, QueueData, place))
    raise DocumentError(f"{where}: the table of mqadmin topicRoute -l is cut short: its Total line is missing")


def _addrs(text: str, where: str) -> dict[int, str]:
    addrs: dict[int, str] = {}
    for item in filter(None, text.split(", ")):
        broker_id, equals, addr = item.partition("=")
        if not equals or not re.fullmatch(r"\d{1,19}", broker_id):
            raise DocumentError(f"{where}: {item[:80]!r} is not ID=ADDRESS")
        addrs[int(broker_id)] = addr
    return addrs
