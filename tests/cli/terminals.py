"""rmqlb on a terminal of its own, whose screen can be read and whose keys can be pressed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tests.cli.run import ROOT, command, environment

_PATIENCE_S = 60
"""After so long a test has failed; none of them waits for it."""
_IN_FOREGROUND = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
CTRL_C = b"\x03"


class OnTerminal:
    """A running rmqlb, or another program, and its terminal: `screen` is what its user sees, `raw` all that was written."""

    def __init__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
        lines: int = 24,
        stdout: Path | None = None,
        program: Sequence[str] | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        written = slave if stdout is None else os.open(stdout, os.O_WRONLY | os.O_CREAT)
        usual = {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _IN_FOREGROUND, *(program or command(*args))], stdin=slave, stdout=written,
            stderr=slave, cwd=ROOT, env=environment(usual | dict(env or {})),
        )  # fmt: skip
        for descriptor in {slave, written}:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def signal(self, number: int) -> None:
        self._child.send_signal(number)

    def until(self, seen: Callable[[], bool]) -> None:
        """Read on until something is seen; it is wrong that it never is."""
        while not seen():
            assert self._read(), f"it ended, and was not seen in {self.lines}"

    def end(self) -> int:
        while self._read():
            pass
        return self._child.wait(_PATIENCE_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], _PATIENCE_S)
        assert ready, f"nothing more came after {self.lines}"
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # Linux tells so that the other end is closed
            return False
        self.raw += piece
        self._stream.feed(piece)
        return bool(piece)
