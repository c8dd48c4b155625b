"""The socket under `rmqlb.remoting`: a request out, its response in, by a deadline.

Rules of this file:
- A call has one deadline for all it does: looking up the host, connecting, TLS, sending, receiving, trying again.
- Every request reads, so what a passing fault has spoiled is asked again, on a fresh connection. Silence is no passing
  fault: a 4.9 server never answers a request code that it does not know.
- A connection outlives its call only after a good answer with nothing behind it: a late answer must never be taken for
  another.
- Messages name the address and the request's code, never a field of the request or a text of the far side.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct

from rmqlb.errors import EndpointError, ProtocolError, UsageError
from rmqlb.remoting.acl import Credentials, sign
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.exchange import Exchange
from rmqlb.remoting.frame import MAX_FRAME
from rmqlb.sources.backoff import PassingFault, wait_before_retry
from rmqlb.sources.formats.limits import DEFAULT_LIMIT
from rmqlb.sources.native.address_map import AddressMap
from rmqlb.sources.native.sockets import Deadline, TimedSocket
from rmqlb.sources.native.wire_faults import broken, going_away, no_answer, not_connected, not_the_protocol, reason
from rmqlb.sources.pace import Deadline as ReadingDeadline
from rmqlb.sources.silence import SilentServers
from rmqlb.sources.source import redact_secrets

if TYPE_CHECKING:
    import ssl

_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+))(?::([0-9]{1,5}))?")
_PORTS = range(1, 65536)


class WireSettings(Struct, frozen=True):
    """How to talk to NameServers and brokers."""

    timeout: float = 5.0  # seconds for one whole call: connecting, sending, receiving, and trying again
    retries: int = 2  # how often a request is sent again after a passing fault
    tls: ssl.SSLContext | None = None
    # the name that every certificate must bear, or None for the host's own, before it is mapped
    server_name: str | None = None
    credentials: Credentials | None = None  # who signs every request, or None
    addresses: AddressMap = AddressMap()
    max_frame: int = MAX_FRAME  # bytes of the longest answer, its header included
    max_bytes: int = DEFAULT_LIMIT  # bounds how many values an answer may hold, as the size of a dump bounds its
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    deadline: ReadingDeadline | None = None  # after which nothing is asked any more, whatever `timeout` is
    silent: SilentServers | None = None  # whom no client that shares it asks again; None asks each one again


class RemotingClient:
    """Calls NameServers and brokers; may be used by several threads.

    There is at most one connection to an address and at most one call under way on it; a second call waits for its
    turn, and its time begins then. Calls to different addresses run side by side.
    """

    def __init__(self, settings: WireSettings) -> None:
        self.most_open = 0  # the largest number of calls that were under way at once
        self._settings = settings
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        self._open = 0
        self._closed = False

    @property
    def calls(self) -> int:
        """How many requests were sent, those that were sent again included."""
        return sum(line.sent for line in list(self._lines.values()))

    def call(self, address: str, request: RemotingCommand) -> RemotingCommand:
        """The response to a request of `remoting.requests`, whatever its code (raises EndpointError, ProtocolError)."""
        line = self._line(address)
        credentials = self._settings.credentials
        signed = request if credentials is None else sign(request, credentials)
        with line.lock, self._under_way():
            silent = self._settings.silent
            if silent is not None:
                silent.must_answer(address)
            try:
                return _without_secrets(self._answer(line, signed), credentials)
            except EndpointError as error:
                if silent is not None:
                    silent.note(address, request.code, error)
                raise
            finally:
                if self._closed:
                    line.drop()

    def close(self) -> None:
        """Close the connections; a call that is under way fails, and none can be made any more."""
        self._closed = True
        with self._lock:
            lines = list(self._lines.values())
        for line in lines:
            if line.lock.acquire(blocking=False):
                line.drop()
                line.lock.release()
            else:
                line.hang_up()

    def _line(self, address: str) -> _Line:
        with self._lock:
            if address not in self._lines:
                self._lines[address] = _Line(address, self._settings)
            return self._lines[address]

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the client is closed")
            self._open += 1
            self.most_open = max(self.most_open, self._open)
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1

    def _answer(self, line: _Line, request: RemotingCommand) -> RemotingCommand:
        whole = self._settings.deadline
        if whole is not None:
            whole.must_leave()
        deadline = Deadline(self._settings.timeout if whole is None else min(self._settings.timeout, whole.rest))
        try:
            return self._answer_by(line, request, deadline)
        except EndpointError:
            if whole is not None:
                whole.must_leave_time_for(line.place)
            raise

    def _answer_by(self, line: _Line, request: RemotingCommand, deadline: Deadline) -> RemotingCommand:
        for attempt in range(self._settings.retries + 1):
            try:
                return line.ask(request, deadline)
            except PassingFault as fault:
                error = fault.error
            last = attempt == self._settings.retries or self._closed
            if last or not wait_before_retry(attempt, self._settings.sleep, self._settings.jitter, left=deadline.rest):
                break
        raise error


class _Line:
    """One address and the connection to it, if there is one; `ask` and `drop` only under the lock."""

    def __init__(self, address: str, settings: WireSettings) -> None:
        mapped = settings.addresses.apply(address)
        self.lock = threading.Lock()
        self.sent = 0
        self._settings = settings
        self.place = address if mapped == address else f"{address} (mapped to {mapped})"
        try:
            self._host, self._port = parse_address(mapped)
            self._name = settings.server_name or parse_address(address)[0]
        except UsageError as error:
            raise EndpointError(
                error.message, hint="brokers give their own addresses; --map-address corrects one"
            ) from None
        self._connection: tuple[TimedSocket, Exchange] | None = None

    def ask(self, request: RemotingCommand, deadline: Deadline) -> RemotingCommand:
        """The response, over the standing connection or a new one, which stays open only after a good answer."""
        code = request.code
        where = f"{self.place} {RequestCode(code).name if code in READ_ONLY else code}"
        socket, exchange = self._connected(where, deadline)
        try:
            frame = exchange.send(request)
            self.sent += 1
            response = self._exchanged(socket, exchange, frame, where, deadline)
            if response.code == ResponseCode.GO_AWAY:
                raise going_away(where)
        except BaseException:
            self.drop()
            raise
        if exchange.broken:
            self.drop()
        return response

    def drop(self) -> None:
        if self._connection is not None:
            self._connection[0].close()
            self._connection = None

    def hang_up(self) -> None:
        connection = self._connection
        if connection is not None:
            connection[0].hang_up()

    def _connected(self, where: str, deadline: Deadline) -> tuple[TimedSocket, Exchange]:
        if self._connection is not None and not self._connection[0].is_quiet():
            self.drop()
        if self._connection is None:
            try:
                socket = TimedSocket(self._host, self._port, deadline, self._settings.tls, self._name)
            except (OSError, ValueError) as error:
                raise not_connected(where, error, self._settings.timeout) from None
            self._connection = socket, Exchange(max_frame=self._settings.max_frame)
        return self._connection

    def _exchanged(
        self, socket: TimedSocket, exchange: Exchange, frame: bytes, where: str, deadline: Deadline
    ) -> RemotingCommand:
        tls = self._settings.tls is not None
        try:
            socket.send(frame, deadline)
            while received := socket.receive(deadline):
                for _, response in exchange.receive(received):
                    return response
        except TimeoutError:
            something_else = exchange.unknown_answers > 0
            raise no_answer(where, self._settings.timeout, something_else=something_else) from None
        except ProtocolError as error:
            raise not_the_protocol(where, error) from None
        except OSError as error:
            raise broken(where, error, tls=tls) from None
        raise broken(where, None, tls=tls)


def parse_address(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Host and port of `host:port` or `[IPv6]:port`; the host is without brackets (raises UsageError).

    >>> parse_address("[::1]", 9876)
    ('::1', 9876)
    """
    match = _ADDRESS.fullmatch(text)
    port = int(match[3] or default_port or 0) if match else 0
    if match is None or port not in _PORTS:
        hint = "write HOST:PORT, and an IPv6 address in brackets: [::1]:9876"
        raise UsageError(f"{text[:80]!a} is not the address of a server", hint=hint)
    return match[1] or match[2], port


def tls_context(
    ca_file: str | None = None, client_cert: str | None = None, client_key: str | None = None
) -> ssl.SSLContext:
    """What every TLS connection needs, of PEM files or the system's CAs; certificates and names are always verified."""
    import ssl

    def password() -> str:
        raise UsageError("the client certificate's key has a password", hint="name a file with the key without it")

    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"cannot read the CA file {ca_file}: {reason(error)}") from None
    if client_cert is None and client_key is not None:
        raise UsageError("--client-key makes no sense without --client-cert")
    if client_cert is not None:
        try:
            context.load_cert_chain(client_cert, client_key, password)
        except OSError as error:
            files = client_cert if client_key is None else f"{client_cert} with the key {client_key}"
            raise UsageError(f"cannot read the client certificate {files}: {reason(error)}") from None
    return context


def _without_secrets(response: RemotingCommand, credentials: Credentials | None) -> RemotingCommand:
    if credentials is None or response.remark is None:
        return response
    return replace(response, remark=redact_secrets(response.remark, credentials.security_token, credentials.secret_key))
