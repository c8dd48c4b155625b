"""The socket under `rmqlb.remoting`: sends a request and receives its response by a deadline.

- A call has one deadline for all its steps: looking up the host, connecting, TLS, sending, receiving, retries.
- Requests only read, so a request is sent again on a fresh connection after a transient fault. Silence is none: a 4.9
  server never answers an unknown request code.
- A connection outlives its call only after a good answer without further bytes: a late answer must never count as
  another's.
- A message has the address and the request's code, and of the server's bytes only the names in its certificate.
- `--map-address FROM=TO` replaces addresses that are unreachable from here. A `*` in FROM is any run of characters, or
  none, as long as possible, the leftmost first: of `*:*` the second star is the port even of an IPv6 address. The stars
  of TO take the texts of FROM's stars, aligned from the right: `10.0.0.*:*=gw.example:*` keeps the port. The first rule
  that matches counts, and its result is not mapped again. Addresses come from servers, so matching takes linear time
  for every star.
- ssl is imported only where it is used: it takes longer to load than a route to read.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rmqlb.errors import EndpointError, ProtocolError, UsageError
from rmqlb.remoting.acl import Credentials, sign
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import Exchange
from rmqlb.sources.pace import NO_DEADLINE, Deadline, Pace, PassingFault, reason
from rmqlb.sources.source import Access, redact_secrets

if TYPE_CHECKING:
    import ssl

_HINT = "write --map-address '10.0.0.*:*=gateway.example:*', the address in the route first"


class AddressMap(Struct, frozen=True):
    """The rules of `--map-address`; the first one that matches counts.

    >>> addresses = parse_address_map(["10.0.0.9:10911=localhost:20911", "10.0.0.*:*=gw.example:*"])
    >>> [addresses.apply(each) for each in ("10.0.0.9:10911", "10.0.0.9:10912", "192.0.2.1:9876")]
    ['localhost:20911', 'gw.example:10912', '192.0.2.1:9876']
    """

    # the texts around the stars of FROM → those of TO, with at most as many stars
    rules: Mapping[tuple[str, ...], tuple[str, ...]] = {}

    def apply(self, address: str) -> str:
        for source, (first, *others) in self.rules.items():
            if (stars := _stars(source, address)) is not None:
                kept = stars[len(stars) - len(others) :]
                return first + "".join(star + text for star, text in zip(kept, others, strict=True))
        return address


def parse_address_map(texts: Iterable[str], where: str = "--map-address") -> AddressMap:
    """Raises UsageError for a malformed rule, or two addresses for one FROM."""
    rules: dict[tuple[str, ...], tuple[str, ...]] = {}
    for text in texts:
        source, equals, target = text.partition("=")
        problem = None
        if not equals or not source or not target or "=" in target:
            problem = "is not FROM=TO"
        elif target.count("*") > source.count("*"):
            problem = "has more stars in TO than in FROM"
        elif not all(":" in side or "*" in side for side in (source, target)):
            problem = "has an address without a port"
        if problem:
            raise UsageError(f"{text[:80]!a} {problem}", prefix=f"{where}: ", hint=_HINT)
        parts = tuple(target.split("*"))
        if rules.setdefault(tuple(source.split("*")), parts) != parts:
            problem, hint = f"{source}=… is given twice, with two addresses", "leave one of them out"
            raise UsageError(problem, prefix=f"{where}: ", hint=hint, code="given-twice")
    return AddressMap(rules)


def _stars(parts: tuple[str, ...], address: str) -> list[str] | None:
    """The text of every star; None if the address does not match.

    Each part is placed as far to the right as possible, the last one first, so the stars before it are longest.
    """
    first, *middle = parts
    if not middle:
        return [] if address == first else None
    last = middle.pop()
    end = len(address) - len(last)
    if end < len(first) or not address.startswith(first) or not address.endswith(last):
        return None
    stars: list[str] = []
    for part in reversed(middle):
        at = address.rfind(part, len(first), end)
        if at < 0:
            return None
        stars.append(address[at + len(part) : end])
        end = at
    stars.append(address[len(first) : end])
    return stars[::-1]


_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+))(?::([0-9]{1,5}))?")
_PORTS = range(1, 65536)
_WRONG_NAME = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_CHUNK = 64 * 1024


class RemotingClient:
    """Calls NameServers and brokers; thread-safe.

    An address has at most one connection and one call at a time; the time of a second call begins with its turn. Calls
    to different addresses run in parallel.
    """

    def __init__(self, access: Access, *, tls: bool = False) -> None:
        self.addresses = parse_address_map(access.map_address)
        self._access = access
        self._credentials = None
        if access.access_key is not None:
            secret = access.secret_key() if access.secret_key else ""
            self._credentials = Credentials(access.access_key, secret, access.security_token)
        self._tls = tls_context(access.ca_file, access.client_cert, access.client_key) if tls else None
        self._pace = access.pace or Pace()
        self._deadline = access.deadline or NO_DEADLINE
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        self._closed = threading.Event()

    def call(self, address: str, request: RemotingCommand) -> RemotingCommand:
        with self._lock:
            if address not in self._lines:
                self._lines[address] = _Line(address, self.addresses.apply(address), self._access, self._tls)
            line = self._lines[address]
        credentials, silent = self._credentials, self._access.silent
        signed = request if credentials is None else sign(request, credentials)
        with line.lock:
            if self._closed.is_set():
                raise RuntimeError("the client is closed")
            if silent is not None:
                silent.must_answer(address)
            try:
                response = self._answer(line, signed)
            except EndpointError as error:
                if silent is not None:
                    silent.note(address, request.code, error)
                raise
            finally:
                if self._closed.is_set():
                    line.drop()
        if credentials is None or response.remark is None:
            return response
        remark = redact_secrets(response.remark, credentials.security_token, credentials.secret_key)
        return replace(response, remark=remark)

    def close(self) -> None:
        """Close the connections; a running call fails, and later calls raise."""
        self._closed.set()
        with self._lock:
            lines = list(self._lines.values())
        for line in lines:
            if line.lock.acquire(blocking=False):
                line.drop()
                line.lock.release()
            elif (connection := line.connection) is not None:
                connection[0].hang_up()

    def _answer(self, line: _Line, request: RemotingCommand) -> RemotingCommand:
        self._deadline.must_leave()
        deadline = Deadline(min(self._access.timeout, self._deadline.rest))
        attempt = 0
        try:
            while True:
                try:
                    return line.ask(request, deadline)
                except PassingFault as fault:
                    last = attempt == self._access.retries or self._closed.is_set()
                    if last or not self._pace.wait_before_retry(attempt, left=deadline.rest):
                        raise fault.error from None
                attempt += 1
        except EndpointError:
            self._deadline.must_leave(what=f"{line.place}: no answer")
            raise


class _Line:
    """One address and its connection; `ask` and `drop` need the lock."""

    def __init__(self, address: str, mapped: str, access: Access, tls: ssl.SSLContext | None) -> None:
        self.lock = threading.Lock()
        self.connection: tuple[TimedSocket, Exchange] | None = None
        self.place = address if mapped == address else f"{address} (mapped to {mapped})"
        self._timeout = access.timeout
        self._tls = tls
        try:
            self._host, self._port = parse_address(mapped)
            self._name = access.tls_name or parse_address(address)[0]
        except UsageError as error:
            hint = "brokers report their own addresses; correct them with --map-address"
            raise EndpointError(error.message, hint=hint) from None

    def ask(self, request: RemotingCommand, deadline: Deadline) -> RemotingCommand:
        """The response; the connection stays open only after a good answer."""
        code = request.code
        where = f"{self.place} {RequestCode(code).name if code in READ_ONLY else code}"
        if self.connection is not None and not self.connection[0].is_quiet():
            self.drop()
        if self.connection is None:
            try:
                opened = TimedSocket(self._host, self._port, deadline, self._tls, self._name)
            except (OSError, ValueError) as error:
                raise _not_connected(where, error, self._timeout) from None
            self.connection = opened, Exchange()
        connection, exchange = self.connection
        try:
            response = self._exchanged(connection, exchange, request, where, deadline)
            if response.code == ResponseCode.GO_AWAY:
                problem = f"{where}: GO_AWAY: the server is shutting down"
                raise PassingFault(EndpointError(problem, hint="try again when it is back"))
        except BaseException:
            self.drop()
            raise
        if exchange.broken:
            self.drop()
        return response

    def drop(self) -> None:
        if self.connection is not None:
            self.connection[0].close()
            self.connection = None

    def _exchanged(
        self, connection: TimedSocket, exchange: Exchange, request: RemotingCommand, where: str, deadline: Deadline
    ) -> RemotingCommand:
        frame = exchange.send(request)
        problem = "it was closed before the complete answer arrived"
        try:
            connection.send(frame, deadline)
            while received := connection.receive(deadline):
                if (response := exchange.receive(received)) is not None:
                    return response
        except TimeoutError:
            hint = "try a longer --source-timeout; RocketMQ 4.9 never answers an unknown request code"
            if exchange.unknown_answers > 0:
                hint = "it answered requests that rmqlb did not send: does a proxy in between mix up connections?"
            problem = f"{where}: no complete answer within {self._timeout:g} s"
            raise EndpointError(problem, hint=hint, code="no-answer") from None
        except ProtocolError as error:
            hint = "is this the port of a NameServer or broker?"
            raise ProtocolError(f"{where}: {error.message}", hint=hint) from None
        except OSError as error:
            if (failed := _tls_error(where, error)) is not None:
                raise failed from None
            problem = reason(error)
        wants = "need TLS, as in rocketmqs://" if self._tls is None else "need a --client-cert"
        hint = f"is it shutting down, or does it {wants}?"
        problem = f"{where}: the connection broke: {problem}"
        raise PassingFault(EndpointError(problem, hint=hint, code="connection-broke")) from None


def parse_address(text: str, default_port: int | None = None) -> tuple[str, int]:
    """Host and port of `host:port` or `[IPv6]:port`, the host without brackets (raises UsageError)."""
    match = _ADDRESS.fullmatch(text)
    port = int(match[3] or default_port or 0) if match else 0
    if match is None or port not in _PORTS:
        hint = "write HOST:PORT, and an IPv6 address in brackets: [::1]:9876"
        raise UsageError(f"{text[:80]!a} is not the address of a server", hint=hint)
    return match[1] or match[2], port


def tls_context(
    ca_file: str | None = None, client_cert: str | None = None, client_key: str | None = None
) -> ssl.SSLContext:
    """TLS settings from PEM files or the system's CAs; certificates and names are always verified."""
    import ssl

    def password() -> str:
        raise UsageError("the key of the client certificate has a password", hint="name a file with an unencrypted key")

    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"cannot read the CA file {ca_file}: {reason(error)}") from None
    if client_cert is None and client_key is not None:
        raise UsageError("--client-key needs --client-cert")
    if client_cert is not None:
        try:
            context.load_cert_chain(client_cert, client_key, password)
        except OSError as error:
            files = client_cert if client_key is None else f"{client_cert} with the key {client_key}"
            raise UsageError(f"cannot read the client certificate {files}: {reason(error)}") from None
    return context


def _not_connected(where: str, error: OSError | ValueError, timeout: float) -> EndpointError | PassingFault:
    if isinstance(error, TimeoutError):
        problem, hint = f"within {timeout:g} s", "is the address right, and does the firewall allow the connection?"
        return EndpointError(f"{where}: cannot connect {problem}", hint=hint, code="unreachable")
    if (failed := _tls_error(where, error)) is not None:
        return failed
    problem = reason(error) if isinstance(error, OSError) else "the host name is invalid"
    hint = "is the address right, and is the server up? rmqlb doctor tests each step"
    answer = EndpointError(f"{where}: cannot connect: {problem}", hint=hint, code="unreachable")
    return PassingFault(answer) if isinstance(error, ConnectionError) else answer


def _tls_error(where: str, error: Exception) -> EndpointError | None:
    import ssl

    if not isinstance(error, ssl.SSLError):
        return None
    problem = reason(error)
    hint = "does this port use TLS, and did the CA in --ca-file sign the certificate? without TLS, use rocketmq://"
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = error.verify_message.rstrip(".")
        hint = "is the certificate's CA in --ca-file, or without --ca-file, among the system's CAs?"
        if error.verify_code in _WRONG_NAME:
            hint = "if this is the right server, pass the name in its certificate with --tls-name"
    elif "alert" in problem:
        hint = "does the server need a --client-cert of a CA that it trusts? --ca-file names the CA that rmqlb trusts"
    return EndpointError(f"{where}: TLS failed: {problem}", hint=hint, code="tls-failed")


_Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


class TimedSocket:
    """A TCP connection, with or without TLS, whose operations share one deadline.

    Faults are OSErrors (TLS errors and timeouts are), or a ValueError for an impossible host name.
    """

    def __init__(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        self._socket = _connect(look_up(host, port, deadline), deadline)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                name = server_name or host
                wrapped = tls.wrap_socket(self._socket, server_hostname=name, do_handshake_on_connect=False)
                self._socket = wrapped
                wrapped.settimeout(deadline.left())
                wrapped.do_handshake()
        except BaseException:
            self._socket.close()
            raise

    def send(self, data: bytes, deadline: Deadline) -> None:
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(deadline.left())
            rest = rest[self._socket.send(rest) :]

    def receive(self, deadline: Deadline) -> bytes:
        self._socket.settimeout(deadline.left())
        return self._socket.recv(_CHUNK)

    def is_quiet(self) -> bool:
        """Whether the connection is open and nothing waits in it, as expected between two calls."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except OSError as error:
            return isinstance(error, BlockingIOError) or type(error).__name__ == "SSLWantReadError"
        return False

    def hang_up(self) -> None:
        """End the connection while another thread waits for bytes, which then gets none."""
        with suppress(OSError):  # it has ended already
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not TLS's own, which the other thread is using

    def close(self) -> None:
        self._socket.close()


def look_up(host: str, port: int, deadline: Deadline) -> Sequence[_Found]:
    """A host's addresses. Python cannot abort a look-up, so a thread does it and is abandoned at the deadline."""
    with suppress(socket.gaierror):  # for names
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    found: Future[Sequence[_Found]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            found.set_exception(error)

    threading.Thread(target=look_up, daemon=True).start()
    return found.result(deadline.left())


def _connect(found: Sequence[_Found], deadline: Deadline) -> socket.socket:
    failed: OSError = TimeoutError("it has no address")
    for at, (family, kind, protocol, _, address) in enumerate(found):
        trying = socket.socket(family, kind, protocol)
        try:
            trying.settimeout(deadline.left() / (len(found) - at))
            trying.connect(address)
        except OSError as error:
            trying.close()
            failed = error
        else:
            return trying
    raise failed
