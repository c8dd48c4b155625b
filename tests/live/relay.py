from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from .jvm import LOOPBACK, free_port

_CHUNK = 1 << 16


class Relay:
    """Passes bytes between client and server until it is cut; then nobody gets through or connects any more.

    `saying` replaces what the server says by a text of the same length, so that frames stay whole.
    """

    def __init__(self, to: str, saying: Mapping[str, str] = {}) -> None:
        assert all(len(said) == len(told) for said, told in saying.items())
        host, _, port = to.rpartition(":")
        self._to = host, int(port)
        self._saying = {said.encode(): told.encode() for said, told in saying.items()}
        self._listener = socket.create_server((LOOPBACK, free_port()))
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._is_cut = False
        self._is_silent = False
        self.address = f"{LOOPBACK}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self) -> None:
        """Lose all packets from now on, and leave the connections open, as a firewall does that drops."""
        self._is_silent = True

    def cut(self) -> None:
        """End all connections, and let none come about any more."""
        with self._lock:
            self._is_cut = True
            sockets, self._sockets = self._sockets, set()
        for each in (self._listener, *sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                with self._lock:
                    self._sockets |= {client, server}
                    is_cut = self._is_cut
                if is_cut:
                    client.close()
                    server.close()
                    return
                threading.Thread(target=self._hand_on, args=(client, server, {}), daemon=True).start()
                threading.Thread(target=self._hand_on, args=(server, client, self._saying), daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket, saying: Mapping[bytes, bytes]) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if self._is_silent:
                    continue
                for said, told in saying.items():
                    data = data.replace(said, told)
                target.sendall(data)
        for each in () if self._is_silent else (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(to: str, saying: Mapping[str, str] = {}) -> Iterator[Relay]:
    running = Relay(to, saying)
    try:
        yield running
    finally:
        running.cut()
