"""A loopback NameServer or broker that answers as the captured ones did, and misbehaves where it is told to.

One server answers both what a NameServer and what one broker is asked. The routes in the captures lead to
`BROKER_ADDRESSES`; `Replay.mapped` gives the `--map-address` rules that lead here instead.
"""

import socket
import socketserver
import ssl
import struct
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NoReturn

from rmqlb.errors import ProtocolError
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.remoting.acl import SIGNATURE, Credentials, sign
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import RESPONSE_FLAG, RemotingCommand
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from rmqlb.sources.formats import documents as docs
from tests.support.mismatches import FIGURES, captured_frames

KEYS = ("namespace", "key", "consumerGroup", "topic", "queueId", "clientId")
BROKER_ADDRESSES = {
    ("5.5.0", "b0"): "127.0.0.1:10911", ("5.5.0", "b1"): "127.0.0.1:20911", ("4.9.7", "b0"): "127.0.0.1:30911",
}  # fmt: skip
VERSIONS = {"5.5.0": 513, "4.9.7": 407}
NOTIFY_CONSUMER_IDS_CHANGED = 40

Version = Literal["5.5.0", "4.9.7"]
Broker = Literal["b0", "b1"]
Answer = RemotingCommand | Callable[[RemotingCommand], RemotingCommand]
"""A response, or what makes one from the request; its opaque is replaced."""
Fault = Callable[["Turn"], None]


def captured_answers(version: Version = "5.5.0", broker: Broker = "b0") -> dict[tuple[int, str], Answer]:
    """(request code, the fields that matter) → response, of a NameServer and one broker."""
    other = {"b0": "-b1-", "b1": "-b0-"}[broker]
    answers: dict[tuple[int, str], Answer] = {}
    for entry in captured_frames().values():
        if entry["server"] == version and other not in entry["name"] and entry["code"] in READ_ONLY:
            (answer,) = FrameDecoder().feed(entry["frame"])
            answers[entry["code"], key(entry["extFields"])] = answer
            if entry["code"] == RequestCode.GET_CONSUME_STATS:
                answers[entry["code"], f"consumerGroup={entry['extFields']['consumerGroup']}"] = answer
    return answers


def key(ext_fields: dict[str, str]) -> str:
    return "&".join(f"{name}={ext_fields[name]}" for name in KEYS if name in ext_fields)


def success(body: bytes | None = None, **ext_fields: str) -> RemotingCommand:
    return RemotingCommand(code=0, ext_fields=ext_fields, body=body)


def error_answer(code: int, remark: str | None = None) -> RemotingCommand:
    return RemotingCommand(code=code, remark=remark)


class AtOnce:
    """How many of these blocks run at once at most, over all threads: `with at_once: …`."""

    def __init__(self) -> None:
        self._lock, self._now, self.most = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._now -= 1


@dataclass
class Replay:
    version: Version = "5.5.0"  # as which RocketMQ it answers
    broker: Broker = "b0"  # as which broker
    answers: dict[tuple[int, str], Answer] = field(default_factory=dict)  # (request code, its `key`) → response
    faults: dict[int | Literal["*"], Fault] = field(default_factory=dict)  # request code, or * → how to misbehave
    close_after: int | None = None  # after how many answers it closes a connection, or None
    credentials: Credentials | None = None  # whose signature every request must bear, or None
    requests: list[RemotingCommand] = field(default_factory=list)  # all that was asked, in the order of arrival
    forbidden: list[int] = field(default_factory=list)  # codes asked that are not on the read-only list; none is right
    connections: int = 0  # how many were taken; with TLS, those whose handshake failed included
    requests_under_way: AtOnce = field(default_factory=AtOnce)
    stop: threading.Event = field(default_factory=threading.Event)  # set when the test is over: endless answers end
    address: str = ""  # where it listens

    def __post_init__(self) -> None:
        self.answers = captured_answers(self.version, self.broker) | self.answers

    @property
    def asked(self) -> list[tuple[int, str]]:
        return [(request.code, key(dict(request.ext_fields))) for request in self.requests]

    @property
    def broker_name(self) -> str:
        return {"b0": "broker-a", "b1": "broker-b"}[self.broker] if self.version == "5.5.0" else "legacy-a"

    @property
    def mapped(self) -> str:
        """The `--map-address` rule that leads from the broker's own address to this server."""
        return f"{BROKER_ADDRESSES[self.version, self.broker]}={self.address}"

    def answer(self, request: RemotingCommand) -> RemotingCommand | None:
        """The right answer; None where a 4.9 server keeps silent."""
        if self.credentials is not None and not _is_signed(request, self.credentials):
            return error_answer(1, "org.apache.rocketmq.acl.common.AclException: signature check failed")
        found = self.answers.get((request.code, key(dict(request.ext_fields))))
        if found is None:
            return self._missing(request)
        return found(request) if callable(found) else found

    def _missing(self, request: RemotingCommand) -> RemotingCommand | None:
        """What a server says about what it does not have; 4.9.7 nothing about a code that it does not know."""
        fields = request.ext_fields
        topic, group = fields.get("topic"), fields.get("consumerGroup")
        match request.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                text = f"No topic route info in name server for the topic: {topic}"
                return error_answer(ResponseCode.TOPIC_NOT_EXIST, f"{text}\nSee https://rocketmq.apache.org/docs/")
            case RequestCode.GET_CONSUMER_CONNECTION_LIST:
                return error_answer(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                return error_answer(1, f"The Consumer <{group}> <{fields.get('clientId')}> not online")
            case RequestCode.GET_CONSUME_STATS:
                return success(b'{"consumeTps":0.0,"offsetTable":{}}')
            case RequestCode.QUERY_CONSUMER_OFFSET | RequestCode.GET_MAX_OFFSET | RequestCode.GET_MIN_OFFSET:
                return self._offset(request)
        if self.version == "4.9.7":
            return None
        return error_answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported")

    def _offset(self, request: RemotingCommand) -> RemotingCommand:
        """As the captured consume stats have it, with every message still there; a queue that is not in them is none."""
        fields = request.ext_fields
        queue = MessageQueue(fields["topic"], self.broker_name, int(fields["queueId"]))
        groups = [fields["consumerGroup"]] if "consumerGroup" in fields else ["order-svc", "audit-svc"]
        known = [state for group in groups if (state := self._stats(group).get(queue)) is not None]
        if request.code == RequestCode.GET_MIN_OFFSET:
            return success(offset="0" if known else "-1")
        if request.code == RequestCode.GET_MAX_OFFSET:
            return success(offset=str(known[0].broker_offset) if known else "0")
        text = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
        return (
            success(offset=str(known[0].consumer_offset)) if known else error_answer(ResponseCode.QUERY_NOT_FOUND, text)
        )

    def _stats(self, group: str) -> dict[MessageQueue, QueueState]:
        answer = self.answers.get((RequestCode.GET_CONSUME_STATS, f"consumerGroup={group}"))
        if not isinstance(answer, RemotingCommand) or answer.body is None:
            return {}
        document = docs.convert(docs.parse_document(answer.body, "replay"), docs.ConsumeStatsDocument, "replay")
        return docs.consume_stats(document, "replay")


@dataclass(frozen=True)
class Turn:
    replay: Replay
    connection: socket.socket
    request: RemotingCommand
    answer: RemotingCommand | None  # None where a 4.9 server keeps silent

    @property
    def frame(self) -> bytes:
        return self.framed(self.answer or error_answer(ResponseCode.SYSTEM_ERROR))

    def framed(self, response: RemotingCommand) -> bytes:
        version, opaque = VERSIONS[self.replay.version], self.request.opaque
        return encode_frame(replace(response, opaque=opaque, flag=RESPONSE_FLAG, version=version))

    def write(self, data: bytes) -> None:
        self.connection.sendall(data)

    def hang_up(self) -> NoReturn:
        raise _OverError


class _OverError(Exception):
    """The connection is to be closed."""


class _Handler(socketserver.BaseRequestHandler):
    server: "_Server"

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.tls is not None:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)

    def handle(self) -> None:
        replay, decoder, served = self.server.replay, FrameDecoder(), 0
        with suppress(_OverError, OSError, ProtocolError):  # a server closes the connection, too
            self.server.open(self.request)
            if self.server.tls is not None:
                self._handshake(self.request)
            while data := self.request.recv(65536):
                for request in decoder.feed(data):
                    replay.requests.append(request)
                    with replay.requests_under_way:
                        self._serve(request)
                    served += 1
                    if served == replay.close_after:
                        return

    def finish(self) -> None:
        self.server.done(self.request)
        self.request.close()

    def _serve(self, request: RemotingCommand) -> None:
        replay, is_read = self.server.replay, request.code in READ_ONLY
        if not is_read:
            replay.forbidden.append(request.code)
        answer = (
            replay.answer(request) if is_read else error_answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "not a read")
        )
        turn = Turn(replay, self.request, request, answer)
        fault = replay.faults.get(request.code) or replay.faults.get("*")
        if fault is not None and is_read:
            fault(turn)
        elif turn.answer is not None:
            turn.write(turn.frame)

    @staticmethod
    def _handshake(connection: ssl.SSLSocket) -> None:
        """With a failure the client gets OpenSSL's alert, and time to read it."""
        try:
            connection.do_handshake()
        except ssl.SSLError:
            socket.socket.shutdown(connection, socket.SHUT_WR)
            while socket.socket.recv(connection, 65536):
                pass
            raise


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, replay: Replay, tls: ssl.SSLContext | None) -> None:
        self.replay = replay
        self.tls = tls
        self.failures: list[str] = []
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def open(self, connection: socket.socket) -> None:
        with self._lock:
            self.replay.connections += 1
            self._connections.add(connection)
            if self.replay.stop.is_set():
                raise _OverError

    def done(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the base class's names
        """A mistake in a test's own answer; the test must hear of it."""
        self.failures.append(traceback.format_exc())

    def end(self) -> None:
        self.replay.stop.set()
        self.shutdown()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
        self.server_close()


@contextmanager
def remoting(replay: Replay | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Replay]:
    replay = replay or Replay()
    replay.stop.clear()
    server = _Server(replay, tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    replay.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield replay
    finally:
        server.end()
        thread.join()
        FIGURES["requests to loopback NameServers and brokers"] += len(replay.requests)
        FIGURES["of them not on the read-only list"] += len(replay.forbidden)
    assert not server.failures, server.failures[0]
    assert replay.forbidden == []


def at(servers: Sequence[Replay]) -> list[str]:
    """The arguments that lead a command to these servers."""
    maps = [word for each in servers for word in ("--map-address", each.mapped)]
    return ["-s", f"rocketmq://{servers[0].address}", *maps]


@contextmanager
def cluster(*replays: Replay) -> Iterator[tuple[Replay, ...]]:
    """Several servers at once; by default broker-a and broker-b of 5.5.0, either one a NameServer too."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(remoting(replay)) for replay in replays or (Replay(), Replay(broker="b1")))


@contextmanager
def refusing_address() -> Iterator[str]:
    """A loopback address that is taken and does not listen: connections to it are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def _is_signed(request: RemotingCommand, credentials: Credentials) -> bool:
    unsigned = {name: value for name, value in request.ext_fields.items() if name != SIGNATURE}
    return sign(replace(request, ext_fields=unsigned), credentials) == request


def reset(turn: Turn) -> None:
    turn.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    turn.hang_up()


def reset_mid_frame(turn: Turn) -> None:
    turn.write(turn.frame[: len(turn.frame) // 2])
    reset(turn)


def closed(turn: Turn) -> None:
    turn.hang_up()


def closed_mid_frame(turn: Turn) -> None:
    turn.write(turn.frame[: len(turn.frame) // 2])
    turn.hang_up()


def silent(turn: Turn) -> None:
    turn.replay.stop.wait()
    turn.hang_up()


def dripping(turn: Turn) -> None:
    for at in range(len(turn.frame)):
        if turn.replay.stop.wait(0.02):
            break
        turn.write(turn.frame[at : at + 1])
    turn.hang_up()


def with_length(change: Callable[[int], int]) -> Fault:
    return lambda turn: turn.write(change(len(turn.frame) - 4).to_bytes(4, "big", signed=True) + turn.frame[4:])


def with_header(header: bytes, body: bytes = b"") -> Fault:
    prefix = (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
    return lambda turn: turn.write(prefix + header + body)


def with_wrong_opaque(turn: Turn) -> None:
    (answer,) = FrameDecoder().feed(turn.frame)
    turn.write(encode_frame(replace(answer, opaque=answer.opaque + 1000)))


def twice(turn: Turn) -> None:
    turn.write(turn.frame * 2)


def refusing(code: int, remark: str | None = None) -> Fault:
    return lambda turn: turn.write(turn.framed(error_answer(code, remark)))


def chattering(turn: Turn) -> None:
    fields, opaque = {"consumerGroup": "order-svc"}, turn.request.opaque
    notice = RemotingCommand(NOTIFY_CONSUMER_IDS_CHANGED, opaque=opaque, flag=2, ext_fields=fields)
    while not turn.replay.stop.is_set():
        turn.write(encode_frame(notice) * 100)


def raw(data: bytes) -> Fault:
    return lambda turn: turn.write(data)


def once(fault: Fault, code: int | Literal["*"]) -> Fault:

    def first(turn: Turn) -> None:
        del turn.replay.faults[code]
        fault(turn)

    return first


CAPTURES = Path(__file__).parent.parent / "data" / "proxy"


def captured(name: str) -> RemotingCommand:
    (answer,) = FrameDecoder().feed((CAPTURES / f"5.5.0-{name}.frame").read_bytes())
    return answer


def consumers(answer: str) -> RemotingCommand:
    """What the first Proxy answered, of which it lists a group's consumers; `missing` when it listed none."""
    return captured(f"p1-connections-{answer}")


def proxy_replay(**groups: str) -> Replay:
    """A Proxy that lists the consumers of these groups (`_` for `-`): group → the captured answer."""
    found = {group.replace("_", "-"): consumers(answer) for group, answer in groups.items()}

    def listed(request: RemotingCommand) -> RemotingCommand:
        return found.get(request.ext_fields.get("consumerGroup", ""), consumers("missing"))

    def answer(turn: Turn) -> None:
        is_list = turn.request.code == RequestCode.GET_CONSUMER_CONNECTION_LIST
        turn.write(turn.framed(listed(turn.request) if is_list else captured("p1-stats")))

    return Replay(faults={"*": answer})


def grpc_port() -> Replay:
    """The gRPC port of a Proxy, which takes what we send for bad HTTP/2."""

    def refuse(turn: Turn) -> None:
        raw((CAPTURES / "5.5.0-grpc-port.bytes").read_bytes())(turn)
        turn.hang_up()

    return Replay(faults={"*": refuse})
