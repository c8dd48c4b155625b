"""JVM processes that cannot outlive the test run: they are stopped on every way out, by their own process group.

Each process has a pipe as standard input and ends when it closes, so even a killed pytest leaves nothing behind.
"""

import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .jars import compiled_programs, jars, tool

LOOPBACK = "127.0.0.1"
START_DEADLINE = 90.0
STOP_DEADLINE = 10.0
POLL = 0.1

# Below Linux's ephemeral range, so that no outgoing connection sits on a port between our look and the server's bind.
_PORTS = range(20000, 32000)
# A server binds seconds after it was told its ports; until then only we know that they are taken.
_promised: set[int] = set()

_OPENED = ("java.base/java.net", "java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.ref")
_EXPORTED = ("java.base/jdk.internal.ref", "java.base/sun.nio.ch")
# Most programs live for a minute or two, and two cores do not compile for all of them.
_LIGHT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_QUIET = '<configuration><root level="OFF"/></configuration>\n'
# Version 4 looks for a configuration by each of these names under its home, and does not start without it.
_LOGBACK_FILES = ("logback_namesrv.xml", "logback_broker.xml", "logback_tools.xml")


@dataclass(frozen=True)
class Java:
    version: str
    class_path: str
    home: Path

    @classmethod
    def prepare(cls, version: str, folder: Path) -> "Java":
        home = folder / "home"
        (home / "conf").mkdir(parents=True)
        for name in _LOGBACK_FILES:
            (home / "conf" / name).write_text(_QUIET, encoding="utf-8")
        programs = compiled_programs(version)
        return cls(version, os.pathsep.join((str(programs), f"{jars(version)}/*")), home)

    def command(self, main: str, *arguments: str, properties: dict[str, str] | None = None) -> list[str]:
        given = {
            "java.net.preferIPv4Stack": "true", "rocketmq.home.dir": str(self.home), "user.home": str(self.home),
            "rmq.logback.configurationFile": str(self.home / "conf" / _LOGBACK_FILES[0]), **(properties or {}),
        }  # fmt: skip
        flags = [*_LIGHT, "-Xms64m", "-Xmx384m", *(f"-D{name}={value}" for name, value in given.items())]
        flags += [f"--add-opens={module}=ALL-UNNAMED" for module in _OPENED]
        flags += [f"--add-exports={module}=ALL-UNNAMED" for module in _EXPORTED]
        return [tool("java"), *flags, "-cp", self.class_path, main, *arguments]


@dataclass(frozen=True)
class JavaProcess:
    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def lines(self, start: str) -> list[str]:
        """The whole lines so far that begin so."""
        lines = self.output().splitlines(keepends=True)
        return [line[:-1] for line in lines if line.startswith(start) and line.endswith("\n")]

    def must_run(self) -> None:
        status = self.popen.poll()
        if status is not None:
            raise RuntimeError(f"{self.name} ended with {status}:\n{self.output()[-4000:]}")

    def wait_for_text(self, text: str) -> None:
        def seen() -> bool:
            self.must_run()
            return text in self.output()

        wait_until(seen, START_DEADLINE, lambda: f"{self.name} never said {text!r}:\n{self.output()[-4000:]}")

    def send(self, line: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()

    def terminate(self) -> None:
        """Let it end in good order, by its own shutdown hooks; comes back when it has, or has had its time."""
        self.popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(STOP_DEADLINE)

    def freeze(self) -> None:
        """Stop it where it is, with its connections open, as a long collection of garbage does."""
        self.must_run()
        os.killpg(self.popen.pid, signal.SIGSTOP)

    def unfreeze(self) -> None:
        os.killpg(self.popen.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, with its process group, as the kernel does when memory runs out."""
        self.must_run()
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()


@contextmanager
def started(name: str, command: list[str], log: Path) -> Iterator[JavaProcess]:
    with log.open("wb") as output:
        popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield JavaProcess(name, popen, log)
    finally:
        _stop(popen)


def _stop(popen: subprocess.Popen[bytes]) -> None:
    if popen.stdin is not None:
        with suppress(BrokenPipeError):
            popen.stdin.close()
    try:
        popen.wait(STOP_DEADLINE)
    except subprocess.TimeoutExpired:
        os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()


def wait_until(
    condition: Callable[[], bool], deadline: float, complaint: Callable[[], str], poll: float = POLL
) -> None:
    """Ask until the answer is yes; past the deadline fail with what the complaint says then."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"after {deadline:.0f} s: {complaint()}")
        time.sleep(poll)


def free_port(*offsets: int) -> int:
    """A loopback port that is free together with its neighbours at the given offsets."""
    for port in random.sample(_PORTS, 200):
        wanted = {port + offset for offset in (0, *offsets)}
        if _promised.isdisjoint(wanted) and all(map(_is_free, wanted)):
            _promised.update(wanted)
            return port
    raise RuntimeError("no free ports on loopback")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


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
        self._is_cut = self._is_silent = False
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
                try:
                    server = socket.create_connection(self._to)
                except OSError:  # the broker is gone
                    client.close()
                    continue
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
            while data := source.recv(65_536):
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
