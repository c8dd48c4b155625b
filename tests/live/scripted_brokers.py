"""A NameServer and brokers played here, on loopback, so that a real client meets any reaction we like.

One topic, one master a broker. The brokers take heartbeats in good order; how they take a message is up to `react`.
Everything runs in one thread of its own, so a broker that answers late, or never, holds up nothing else.

    with ScriptedCluster("T", {"a": 2, "b": 2}) as cluster:
        cluster["a"].react(after_ms(280))
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Literal, Self

from rmqlb.errors import ProtocolError
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RESPONSE_FLAG, RemotingCommand
from rmqlb.remoting.frame import FrameDecoder, encode_frame

from .jvm import LOOPBACK
from .producers import Queue

SEND_MESSAGE: Final = 10
SEND_MESSAGE_V2: Final = 310
# The names of the field with the queue's number: version 2 of the header shortens all names to a letter.
_QUEUE_ID: Final = {SEND_MESSAGE: "queueId", SEND_MESSAGE_V2: "e"}
_HEART_BEAT: Final = 34
_UNREGISTER_CLIENT: Final = 35
_READ_AND_WRITE: Final = 6
_ONEWAY_FLAG: Final = 2
_DEADLINE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Reaction:
    """How a broker takes a message.

    Attributes:
        code: of its answer: 0 and the store statuses 10, 11 and 12 are good ones, others become exceptions.
        delay_ms: from the request until the answer is sent, or the connection closed.
    """

    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    delay_ms: float = 0.0
    kind: Literal["answers", "is silent", "hangs up", "refuses"] = "answers"


STORES: Final = Reaction()
"""The message is stored, at once."""
IS_SILENT: Final = Reaction(kind="is silent")
"""No answer, ever; the connection stays."""
HANGS_UP: Final = Reaction(kind="hangs up")
"""The connection is closed instead of an answer, and may be opened again."""
REFUSES: Final = Reaction(kind="refuses")
"""Nobody listens, and the connections that were open are closed: the broker is gone."""


def after_ms(delay_ms: float) -> Reaction:
    return replace(STORES, delay_ms=delay_ms)


def answers(code: int, remark: str | None = None) -> Reaction:
    return Reaction(code, remark)


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message as a broker got it, timed by the machine's clock; `producers.Producer` sends its number as the body."""

    broker_name: str
    queue_id: int
    body: bytes
    at_ms: int

    @property
    def queue(self) -> Queue:
        return self.broker_name, self.queue_id


class _Server:
    """A loopback server on one port that it keeps, listening or not. Its methods run in the cluster's loop."""

    def __init__(self, serve: Callable[[RemotingCommand, asyncio.StreamWriter], Coroutine[None, None, None]]) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._held: socket.socket | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def listen(self) -> None:
        if self._server is not None:
            return
        if self._held is not None:
            self._held.close()
            self._held = None
        self._server = await asyncio.start_server(self._connected, LOOPBACK, self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Bound but not listening: nobody else can get the port, and connections to it are refused."""
        await self.close()
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((LOOPBACK, self.port))

    async def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
        if self._server is not None:
            self._server.close()
            self._server = None
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder, turns = FrameDecoder(), set[asyncio.Task[None]]()
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while data := await reader.read(65536):
                for request in decoder.feed(data):
                    turn = asyncio.create_task(self._serve(request, writer))
                    turns.add(turn)
                    turn.add_done_callback(turns.discard)
        except (OSError, ProtocolError, asyncio.CancelledError):
            pass  # the connection is over, whoever ended it
        finally:
            for turn in turns:
                turn.cancel()
            self._talks.discard(talk)
            writer.transport.abort()


class ScriptedBroker:
    def __init__(self, cluster: "ScriptedCluster", name: str, write_queues: int) -> None:
        self._cluster = cluster
        self._reaction = STORES
        self._server = _Server(self._serve)
        self.name = name
        self.write_queues = write_queues

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self._server.port}"

    def react(self, reaction: Reaction) -> None:
        self._reaction = reaction
        self._cluster.run(self._server.refuse() if reaction.kind == "refuses" else self._server.listen())

    async def open(self) -> None:
        await self._server.listen()

    async def close(self) -> None:
        await self._server.close()

    async def _serve(self, request: RemotingCommand, writer: asyncio.StreamWriter) -> None:
        if request.code in _QUEUE_ID:
            await self._take(request, writer)
        elif request.code in (_HEART_BEAT, _UNREGISTER_CLIENT):
            _write(writer, request, RemotingCommand(ResponseCode.SUCCESS))
        else:
            _write(writer, request, _unsupported(request))

    async def _take(self, request: RemotingCommand, writer: asyncio.StreamWriter) -> None:
        queue_id, reaction = int(request.ext_fields[_QUEUE_ID[request.code]]), self._reaction
        seen = SeenMessage(self.name, queue_id, request.body or b"", time.time_ns() // 1_000_000)
        self._cluster.seen.append(seen)
        await asyncio.sleep(reaction.delay_ms / 1000)
        if reaction.kind == "hangs up":
            writer.transport.abort()
        elif reaction.kind == "answers":
            stored = {"msgId": f"{len(self._cluster.seen):032X}", "queueId": str(queue_id), "queueOffset": "0"}
            answer = RemotingCommand(reaction.code, remark=reaction.remark, ext_fields=stored)
            _write(writer, request, answer)


class ScriptedCluster:
    """A NameServer and one broker per name with so many write queues; `seen`: all messages in order of arrival."""

    def __init__(self, topic: str, write_queues: Mapping[str, int]) -> None:
        self.topic = topic
        self.seen: list[SeenMessage] = []
        self._brokers = {name: ScriptedBroker(self, name, total) for name, total in write_queues.items()}
        self._name_server = _Server(self._serve)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-brokers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __getitem__(self, broker_name: str) -> ScriptedBroker:
        return self._brokers[broker_name]

    @property
    def name_server(self) -> str:
        return f"{LOOPBACK}:{self._name_server.port}"

    def all_store(self) -> None:
        for broker in self._brokers.values():
            broker.react(STORES)

    def run(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_DEADLINE)

    async def _open(self) -> None:
        await self._name_server.listen()
        for broker in self._brokers.values():
            await broker.open()

    async def _close(self) -> None:
        await self._name_server.close()
        for broker in self._brokers.values():
            await broker.close()

    async def _serve(self, request: RemotingCommand, writer: asyncio.StreamWriter) -> None:
        if request.code != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            _write(writer, request, _unsupported(request))
        elif request.ext_fields.get("topic") != self.topic:
            _write(writer, request, RemotingCommand(ResponseCode.TOPIC_NOT_EXIST))
        else:
            body = json.dumps(self._route()).encode()
            _write(writer, request, RemotingCommand(ResponseCode.SUCCESS, body=body))

    def _route(self) -> dict[str, Any]:
        brokers = self._brokers.values()
        return {
            "brokerDatas": [
                {"brokerAddrs": {"0": broker.address}, "brokerName": broker.name, "cluster": "c"} for broker in brokers
            ],
            "filterServerTable": {},
            "queueDatas": [
                {"brokerName": each.name, "perm": _READ_AND_WRITE, "topicSysFlag": 0}
                | dict.fromkeys(("readQueueNums", "writeQueueNums"), each.write_queues)
                for each in brokers
            ],
        }


def _unsupported(request: RemotingCommand) -> RemotingCommand:
    text = f" request type {request.code} not supported"
    return RemotingCommand(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=text)


def _write(writer: asyncio.StreamWriter, request: RemotingCommand, answer: RemotingCommand) -> None:
    if not request.flag & _ONEWAY_FLAG:
        framed = replace(answer, opaque=request.opaque, flag=RESPONSE_FLAG)
        writer.write(encode_frame(framed))
