"""A TCP connection, with TLS or without, whose every operation ends by a deadline. It knows no protocol.

Rules of this file:
- A socket's own timeout starts anew with each operation; here all of them share what is left of one deadline.
- Python cannot give up looking up a host, so a thread of its own does that and is left behind when time is up.
- What goes wrong is an OSError as Python raises it (TLS errors and timeouts are), or a ValueError for a host name that
  cannot be.
- ssl is imported only by those who use it: it takes longer to load than a route to read.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

_CHUNK = 64 * 1024
_Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


class Deadline:
    """A moment that does not move."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def rest(self) -> float:
        """Seconds until then; 0 or less when it has passed."""
        return self._end - time.monotonic()

    def left(self) -> float:
        """Seconds until then, more than 0."""
        left = self.rest
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left


class TimedSocket:
    """A connection (raises OSError, ValueError)."""

    __slots__ = ("_socket",)

    def __init__(
        self,
        host: str,
        port: int,
        deadline: Deadline,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        connected = _connect(_look_up(host, port, deadline), deadline)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = connected if tls is None else _with_tls(connected, tls, server_name or host, deadline)
        except BaseException:
            connected.close()
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
        """It is open and nothing has come that was not received: as a connection between two calls should be."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except OSError as error:
            return isinstance(error, BlockingIOError) or type(error).__name__ == "SSLWantReadError"
        return False

    def hang_up(self) -> None:
        """End it under the hands of a thread that is waiting for bytes, which then gets none."""
        try:
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # not TLS's own, which the other thread is using
        except OSError:
            pass  # it has ended already

    def close(self) -> None:
        self._socket.close()


def _look_up(host: str, port: int, deadline: Deadline) -> Sequence[_Found]:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # a name, not an address
    found: list[Sequence[_Found]] = []
    errors: list[OSError | ValueError] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            errors.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if errors:
        raise errors[0]
    if not found:
        raise TimeoutError("the host's name is still being looked up")
    return found[0]


def _connect(found: Sequence[_Found], deadline: Deadline) -> socket.socket:
    failed: OSError = TimeoutError("there is no address")
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


def _with_tls(plain: socket.socket, tls: ssl.SSLContext, name: str, deadline: Deadline) -> ssl.SSLSocket:
    """The connection after a handshake; the plain socket is used up."""
    wrapped = tls.wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False)
    try:
        wrapped.settimeout(deadline.left())
        wrapped.do_handshake()
    except BaseException:
        wrapped.close()
        raise
    return wrapped
