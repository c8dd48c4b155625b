"""RocketMQ's own protocol: NameServers for routes, brokers for everything else.

Every NameServer is asked for a route, because they may disagree: the first answer counts, and differing ones are kept
with it. A silent NameServer gets no further request.

Proxies are asked for their consumers through their remoting port. A Proxy answers only request 203 there (which
consumers of a group are online, since 5.1.1). Its answers have an ext field that those of brokers and NameServers lack.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from rmqlb.errors import DocumentError, EndpointError, RmqlbError, UsageError
from rmqlb.model.group import NOT_STORED, Connection, ProxyView, QueueState, Seen, States, is_grpc, retry_topic
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion, OffsetQuestion, RouteSighting, Unread
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import V5_0_0, RemotingCommand, request, version_text
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.limits import require_few_values
from rmqlb.sources.native.wire import RemotingClient, parse_address
from rmqlb.sources.pace import NO_DEADLINE, SilentServers, ask_concurrently
from rmqlb.sources.protocols import SUSPECT, wrong_protocol
from rmqlb.sources.source import Access, Refused, read_unless

Answer = TypeVar("Answer")
Document = TypeVar("Document")
_DENIED = ("AclException", "AuthenticationException", "AuthorizationException")
_PROBED_AT_ONCE = 64
ANY_GROUP = "TOOLS_CONSUMER"  # every broker answers that it is not online (`MixAll.TOOLS_CONSUMER_GROUP`)
_RUNTIME = re.compile(r"\[ ([\d.,\s]+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")
_OFFSET = re.compile(r"-?[0-9]{1,19}")


class NameServerReads:
    kind = "nameserver"

    def __init__(self, name_servers: Sequence[str], access: Access, *, tls: bool = False) -> None:
        self._scheme = "rocketmqs" if tls else "rocketmq"
        self.endpoint = f"{self._scheme}://{','.join(name_servers)}"
        self._silent = access.silent or SilentServers()
        self._client = RemotingClient(replace(access, silent=self._silent), tls=tls)
        self.access = access
        self._name_servers = list(name_servers)
        self._lock = threading.Lock()
        self._lost: dict[str, EndpointError] = {}
        self._unlisted: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._cluster: docs.ClusterInfoDocument | None = None
        self._probed = False

    def topics(self) -> list[str]:
        """All topics, without those named like brokers and clusters."""
        table = self._cluster_info().broker_addr_table
        own = {data.cluster for data in table.values()} | table.keys()
        found = self._from_any(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, docs.TopicListDocument)
        return [topic for topic in found.topic_list if topic not in own]

    def groups(self) -> list[str]:
        """The groups of all brokers; a silent broker is noted, unless all are silent."""
        found: dict[str, None] = {}
        errors: dict[str, EndpointError] = {}
        addresses = self.broker_addresses()
        for name, address in addresses.items():
            try:
                found.update(dict.fromkeys(self.groups_of(address)))
            except EndpointError as error:
                errors[name] = error
        if errors and len(errors) == len(addresses):
            raise next(iter(errors.values()))
        self._unlisted = {name: error.message for name, error in errors.items()}
        return list(found)

    def groups_of(self, address: str) -> Sequence[str]:
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        return list(self._read(address, code, docs.SubscriptionGroupsDocument).subscription_group_table)

    def has_group(self, group: str) -> bool:
        return group in self.groups()

    def route(self, topic: str) -> RouteSighting | None:
        """The topic's route, with differing routes of other NameServers."""

        def ask(server: str) -> RouteSighting:
            code, kind = RequestCode.GET_ROUTEINFO_BY_TOPIC, docs.RouteDocument
            found = read_unless(ResponseCode.TOPIC_NOT_EXIST, lambda: self._read(server, code, kind, topic=topic))
            route = TopicRouteData(topic, (), ()) if found is None else docs.route(found, topic)
            return RouteSighting(route, Seen(f"NameServer {server}", self.access.clock()))

        sightings = list(self._answers(ask))
        known = [sighting for sighting in sightings if sighting.route.queue_datas or sighting.route.broker_datas]
        if not known:
            return None
        others = tuple(other for other in sightings if known[0].route.differs_from(other.route))
        return replace(known[0], others=others)

    def brokers(self, group: str) -> dict[str, str]:
        """The brokers of the group's retry topic, which clients create; without it all brokers."""
        sighting = self.route(retry_topic(group))
        if sighting is None:
            return self.broker_addresses()
        addresses = {broker.broker_name: broker.address for broker in sighting.route.broker_datas}
        return {name: address for name, address in sorted(addresses.items()) if address is not None}

    def connections(self, group: str, address: str) -> docs.ConnectionsDocument | None:
        code, kind = RequestCode.GET_CONSUMER_CONNECTION_LIST, docs.ConnectionsDocument
        return read_unless(
            ResponseCode.CONSUMER_NOT_ONLINE, lambda: self._read(address, code, kind, consumerGroup=group)
        )

    def offsets(self, group: str, addresses: Sequence[str]) -> tuple[States, float | None]:
        (address,) = addresses
        stats = self._read(address, RequestCode.GET_CONSUME_STATS, docs.ConsumeStatsDocument, consumerGroup=group)
        return docs.consume_stats(stats, address), stats.consume_tps

    @property
    def broker_reads(self) -> NameServerReads:
        return self

    def stored_offset(self, group: str, queue: MessageQueue, address: str) -> int:
        code = RequestCode.QUERY_CONSUMER_OFFSET
        found = read_unless(
            ResponseCode.QUERY_NOT_FOUND, lambda: self._offset_of(queue, address, code, consumerGroup=group)
        )
        return NOT_STORED if found is None else found

    def max_offset(self, queue: MessageQueue, address: str) -> int:
        return self._offset_of(queue, address, RequestCode.GET_MAX_OFFSET)

    def at_takeover(self, group: str, question: OffsetQuestion) -> QueueState:
        queue, address = question.queue, question.address
        stored, end = self.stored_offset(group, queue, address), self.max_offset(queue, address)
        at, times = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, question.timestamps if stored == NOT_STORED else ()
        found = {self._offset_of(queue, address, at, timestamp=each) for each in times}
        lowest = self._offset_of(queue, address, RequestCode.GET_MIN_OFFSET) if stored < end else None
        return QueueState(
            broker_offset=end,
            consumer_offset=stored,
            stored_offset=stored,
            min_offset=None if lowest is None else max(lowest, 0),
            timestamp_offset=found.pop() if len(found) == 1 else None,
        )

    def request_modes(self, group: str, address: str) -> Mapping[str, docs.RequestModeItem] | None:
        command = request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
        document = self._read_newer(address, command, docs.RequestModesDocument)
        if document is None:
            return None
        return {topic: modes[group] for topic, modes in document.message_request_mode_map.items() if group in modes}

    def assignment(self, group: str, question: AssignmentQuestion) -> AssignmentAnswer | None:
        if question.address not in self._versions:
            self.connections(group, question.address)  # shows the version
        command = query_assignment(group, question.topic, question.client_id, question.strategy)
        document = self._read_newer(question.address, command, docs.AssignmentDocument)
        return None if document is None else docs.assignment(document)

    def polling_num(self, group: str, topic: str, address: str) -> int | None:
        command = request(RequestCode.POLLING_INFO, consumerGroup=group, topic=topic, queueId=-1)
        response = self._newer(address, command)
        text = "" if response is None else response.ext_fields.get("pollingNum", "")
        return int(text) if _OFFSET.fullmatch(text) else None

    def running_info(
        self, group: str, client_id: str, address: str, *, stacks: bool = False
    ) -> docs.RunningInfoDocument:
        of: dict[str, str | bool] = {"consumerGroup": group, "clientId": client_id, "jstackEnable": stacks}
        return self._read(address, RequestCode.GET_CONSUMER_RUNNING_INFO, docs.RunningInfoDocument, **of)

    def message_type(self, topic: str, address: str) -> str | None:
        """The topic's `message.type` at a broker, NORMAL without that attribute (`TopicConfig`)."""
        self.max_offset(MessageQueue(topic, "", 0), address)  # shows the version
        if 0 < self._versions[address] < V5_0_0:
            return "NORMAL"
        command = request(RequestCode.GET_TOPIC_CONFIG, topic=topic)
        document = self._read_newer(address, command, docs.TopicConfigDocument)
        return None if document is None else (document.attributes or {}).get("message.type", "NORMAL")

    def clock_s(self, address: str) -> float | None:
        """A broker's clock, in seconds since 1970, to half a second; None where the broker does not report it.

        `runtime` is the whole seconds since `bootTimestamp` (`StoreStatsService.getFormatRuntime`).
        """
        table = self._read(address, RequestCode.GET_BROKER_RUNTIME_INFO, docs.RuntimeInfoDocument).table
        parts = _RUNTIME.fullmatch(str(table.get("runtime")))
        began = str(table.get("bootTimestamp"))
        if parts is None or not _OFFSET.fullmatch(began):
            return None
        days, hours, minutes, seconds = (int(re.sub(r"\D", "", each)) for each in parts.groups())
        return int(began) / 1000 + ((days * 24 + hours) * 60 + minutes) * 60 + seconds + 0.5

    def version(self, address: str) -> str:
        """RocketMQ's version at a server that has answered, as 5.5.0."""
        return version_text(self._versions[address]).removeprefix("V").replace("_", ".")

    def unread(self) -> list[Unread]:
        lost = [Unread("name-server", server, error.message) for server, error in self._lost.items()]
        return lost + [Unread("groups", name, reason) for name, reason in self._unlisted.items()]

    def close(self) -> None:
        self._client.close()

    def silent_brokers_answer(self) -> bool:
        """Ask silent brokers once more, all at once; True when one answers now."""
        silent = [address for address in self._known_brokers() if address in self._silent]
        self._silent.forget(silent)
        self._probe(silent)
        return any(address not in self._silent for address in silent)

    def _answers(self, ask: Callable[[str], Answer]) -> Iterator[Answer]:
        """The answers of NameServers; refusals are skipped while another one answers."""
        answered, refused = False, None
        for server in [each for each in self._name_servers if each not in self._lost]:
            try:
                answer = ask(server)
            except Refused as error:
                refused = refused or error
            except EndpointError as error:
                self._lost.setdefault(server, error)
            else:
                answered = True
                yield answer
        if answered:
            return
        if refused is not None:
            raise refused
        server, first = next(iter(self._lost.items()))
        if first.code in SUSPECT and (wrong := self._wrong_protocol(server, first)) is not None:
            raise wrong
        if len(self._lost) == 1:
            raise first
        problem = f"none of {len(self._lost)} NameServers answers: {first.message}"
        raise EndpointError(problem, hint=first.hint, code=first.code)

    def _wrong_protocol(self, server: str, error: EndpointError) -> EndpointError | None:
        host, port = parse_address(self._client.addresses.apply(server))
        timeout = min(self.access.timeout, (self.access.deadline or NO_DEADLINE).rest)
        return wrong_protocol(self._scheme, server, host, port, timeout, trusted=error.code != "tls-failed")

    def _from_any(self, code: RequestCode, kind: type[Document]) -> Document:
        return next(self._answers(lambda server: self._read(server, code, kind)))

    def broker_addresses(self) -> dict[str, str]:
        table = self._cluster_info().broker_addr_table
        addresses = {name: docs.broker(data).address for name, data in sorted(table.items())}
        return {name: address for name, address in addresses.items() if address is not None}

    def _cluster_info(self) -> docs.ClusterInfoDocument:
        if self._cluster is None:
            self._cluster = self._from_any(RequestCode.GET_BROKER_CLUSTER_INFO, docs.ClusterInfoDocument)
        return self._cluster

    def _known_brokers(self) -> list[str]:
        try:
            return list(dict.fromkeys(self.broker_addresses().values()))
        except RmqlbError:
            return []

    def _find_silent(self) -> None:
        """After the first silence, probe all other brokers at once."""
        with self._lock:
            first, self._probed = not self._probed, True
        if first:
            self._probe([a for a in self._known_brokers() if a not in self._silent and a not in self._versions])

    def _probe(self, addresses: Sequence[str]) -> None:
        command = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=ANY_GROUP)
        with ask_concurrently(
            lambda address: self._client.call(address, command), addresses, _PROBED_AT_ONCE
        ) as futures:
            for future in futures:
                future.exception()  # the client notes silent ones

    def _newer(self, address: str, command: RemotingCommand) -> RemotingCommand | None:
        """The good answer to a request code of 5.0 and newer.

        Older brokers are not asked, because they may keep silent (4.9.7), nor brokers that did not answer once.
        """
        if self._versions.get(address, 0) < V5_0_0:
            return None
        try:
            return self._answer(address, command)
        except Refused:
            return None
        except EndpointError:
            self._versions[address] = 0
            return None

    def _read_newer(self, address: str, command: RemotingCommand, kind: type[Document]) -> Document | None:
        response = self._newer(address, command)
        return None if response is None else self._document(address, command.code, response, kind)

    def _read(self, address: str, code: RequestCode, kind: type[Document], **fields: str | bool | int) -> Document:
        return self._document(address, code, self._answer(address, request(code, **fields)), kind)

    def _document(self, address: str, code: int, response: RemotingCommand, kind: type[Document]) -> Document:
        return _document(response, kind, f"{address} {RequestCode(code).name}", self.access.max_bytes)

    def _offset_of(self, queue: MessageQueue, address: str, code: RequestCode, **fields: str | int) -> int:
        command = request(code, topic=queue.topic, queueId=queue.queue_id, **fields)
        text = self._answer(address, command).ext_fields.get("offset", "")
        if not _OFFSET.fullmatch(text):
            raise DocumentError(f"{address} {code.name}: its offset is {text[:40]!r}, not a number")
        return int(text)

    def _answer(self, address: str, command: RemotingCommand) -> RemotingCommand:
        """The good answer (raises Refused for another one)."""
        try:
            response = self._client.call(address, command)
        except EndpointError:
            if address in self._silent and address not in self._name_servers:
                self._find_silent()
            raise
        self._versions[address] = response.version
        if response.code == ResponseCode.SUCCESS:
            return response
        text = response.remark or "no reason given"
        message = f"{address} {RequestCode(command.code).name}: code {response.code}: {docs.first_line(text)}"
        if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and address in self._name_servers:
            hint = "a broker or a Proxy answers at this port: name a NameServer, which listens on 9876 by default"
            raise Refused(message, text, response_code=response.code, hint=hint)
        if response.code != ResponseCode.NO_PERMISSION and not any(name in text for name in _DENIED):
            raise Refused(message, text, response_code=response.code)
        hint = _access_hint(self.access.access_key, text)
        raise Refused(message, text, response_code=response.code, hint=hint, code="access-denied")


def _document(response: RemotingCommand, kind: type[Document], where: str, max_bytes: int) -> Document:
    body = response.body or b"{}"
    require_few_values(body, where, max_bytes)
    return docs.convert(docs.parse_document(body, where), kind, where)


def query_assignment(group: str, topic: str, client_id: str, strategy: str) -> RemotingCommand:
    """A consumer's request when brokers assign its queues (`QueryAssignmentRequestBody`)."""
    who = {"clientId": client_id, "consumerGroup": group, "messageModel": "CLUSTERING"}
    text = json.dumps({**who, "strategyName": strategy, "topic": topic}, ensure_ascii=False)
    return RemotingCommand(RequestCode.QUERY_ASSIGNMENT, body=text.encode("utf-8", "surrogatepass"))


def _access_hint(access_key: str | None, text: str) -> str:
    """The hint after a refusal, by the credentials and the server's text.

    4.x checks key and signature before permissions (`PlainPermissionManager.validate`), as does 5.x
    (`DefaultAuthenticationHandler`, then `AclAuthorizationHandler`).
    """
    if access_key is None:
        return "does the cluster need an --access-key?"
    if "signature" in text.lower():
        return f"does the secret key (RMQLB_SECRET_KEY, --secret-key-file) belong to access key {access_key}?"
    if "AuthorizationException" in text or "permission" in text.lower():
        return f"access key {access_key} is valid, but has no permission to read this: grant it at the cluster"
    return f"is {access_key} the right access key, and is it enabled at the cluster?"


PROXY_PORT = 8080  # default `remotingListenPort`
_MARK = "MSG_REGION"  # in each answer of a Proxy's own (`AbstractRemotingActivity.writeResponse`)
_TRY = "pass its remoting port (remotingListenPort, 8080 if not set)"
_TLS_PREFIX = "rocketmqs://"
_GRPC = f"if it is a Proxy's gRPC port, {_TRY}"

ProxyAnswer = tuple[ProxyView, docs.ConnectionsDocument | None]  # the document when a consumer is online


def proxy_address(text: str, where: str = "--proxy") -> str:
    """`HOST:PORT` of HOST, HOST:PORT or rocketmq(s)://HOST:PORT (raises UsageError)."""
    found = re.fullmatch(r"(?:rocketmqs?://)?(.+)", text)
    try:
        host, port = parse_address(found[1].rstrip("/") if found else text, PROXY_PORT)
    except UsageError:
        # Text before an @ may be a password.
        problem = "it contains a user" if "@" in text else f"{text[:80]!a} is not the address of a Proxy"
        hint = "write HOST or HOST:8080, with the Proxy's remoting port; repeat the option for each Proxy"
        raise UsageError(f"{where}: {problem}", hint=hint) from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Proxies:
    """Several Proxies; thread-safe. A silent Proxy gets no further request."""

    def __init__(self, access: Access, *, tls: bool = False) -> None:
        tls = tls or any(proxy.startswith(_TLS_PREFIX) for proxy in access.proxies)
        self._client = RemotingClient(access, tls=tls)
        self._access = access
        self._locks = {proxy_address(proxy): threading.Lock() for proxy in access.proxies}
        self._lost: dict[str, str] = {}

    def consumers(self, group: str) -> list[ProxyAnswer]:
        return [answer for address in self._locks if (answer := self._listed(address, group)) is not None]

    def unread(self) -> list[Unread]:
        return [Unread("proxy", address, reason) for address, reason in self._lost.items()]

    def close(self) -> None:
        self._client.close()

    def _listed(self, address: str, group: str) -> ProxyAnswer | None:
        with self._locks[address]:
            if address in self._lost:
                return None
            try:
                document = self._document(address, group)
            except RmqlbError as error:
                self._lost[address] = error.message
                return None
        # Each process once: each of several Proxies lists a consumer that is connected to all of them several times, as
        # its own and as that of the others. The ID of a gRPC client is unique; processes that share one have an address
        # each.
        found: dict[tuple[str, str | None], Connection] = {}
        for each in () if document is None else docs.connections(document):
            found.setdefault((each.client_id, None if is_grpc(each.client_id) else each.client_addr), each)
        return ProxyView(tuple(found.values()), Seen(f"Proxy {address}", self._access.clock()), address), document

    def _document(self, address: str, group: str) -> docs.ConnectionsDocument | None:
        command = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group)
        try:
            response = self._client.call(address, command)
        except RmqlbError as error:
            unheard = error.code in ("unreachable", "tls-failed")
            also = "is its remoting port (remotingListenPort, 8080 if not set) open from here?" if unheard else _GRPC
            raise EndpointError(f"{error.message}; {also}") from None
        if _MARK not in response.ext_fields:
            if response.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise EndpointError(f"a NameServer answers at this port, or a Proxy before 5.1.1; {_TRY}")
            raise EndpointError(f"a broker answers at this port, not a Proxy; {_TRY}")
        if response.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return None
        if response.code != ResponseCode.SUCCESS:
            text = docs.first_line(response.remark or "no reason given")
            raise EndpointError(f"the Proxy refuses to list its consumers: code {response.code}: {text}")
        return _document(response, docs.ConnectionsDocument, f"Proxy {address}", self._access.max_bytes)
