"""Running a command line: in this process, which is quick, or as a process of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import traceback
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path
from types import FrameType

from msgspec import Struct
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from fuzz.command_lines.lines import Case, Piece, flat
from rmqlb.cli.main import app

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 60
"""No command line here may take longer; most take some milliseconds."""


class Ran(Struct, frozen=True):
    """The end of a command line."""

    stdout: str
    stderr: str
    code: int
    escaped: str = ""  # the trace of an exception that nothing caught, or that it took too long


class _TooLongError(BaseException):
    """Nothing of rmqlb catches it."""


class Runs:
    """Runs command lines in a folder with the case's files, and counts them."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._case, self._folder = case, folder
        self.count = 0
        for name, content in case.made.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def __call__(self, *words: str, columns: int | None = None) -> Ran:
        """Run one in this process."""
        self.count += 1
        env: dict[str, str | None] = {name: None for name in os.environ if name.startswith("RMQLB_")}
        settings = env | self._settings(columns)
        code, escaped = 0, ""
        with chdir(self._folder), CliRunner().isolation(self._stdin(words), settings) as (stdout, stderr, *_):
            before = signal.signal(signal.SIGALRM, _too_long)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
            try:
                _program().main(list(words), prog_name="rmqlb")
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException as error:  # noqa: BLE001 - it is what is looked for
                code, escaped = 1, "".join(traceback.format_exception(error))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            sys.stdout.flush()
            sys.stderr.flush()
            written, said = (each.getvalue().decode().replace("\r\n", "\n") for each in (stdout, stderr))
        return Ran(written, said, code, escaped)

    def with_pieces(self, command: str, pieces: tuple[Piece, ...], *more: str) -> Ran:
        return self(*command.split(), *flat(pieces), *more)

    def apart(self, *words: str) -> Ran:
        """Run one as a process, in a pipe."""
        self.count += 1
        line, env, stdin = self._process(words), self._environment(), self._stdin(words)
        try:
            done = subprocess.run(
                line, input=stdin, capture_output=True, cwd=self._folder, env=env, timeout=PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Ran("", "", 1, f"longer than {PATIENCE_S} s")
        return Ran(done.stdout.decode().replace("\r\n", "\n"), done.stderr.decode(), done.returncode)

    def on_a_terminal(self, *words: str) -> Ran:
        """Run one as a process on a terminal as wide as the case's; stderr is a pipe."""
        self.count += 1
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, self._case.columns, 0, 0))
        with open(self._folder / "stderr", "w+b") as said, open(master, "rb", buffering=0) as terminal:
            running = subprocess.Popen(
                *(self._process(words),),
                stdin=subprocess.DEVNULL,
                stdout=slave,
                stderr=said,
                cwd=self._folder,
                env=self._environment(),
            )
            os.close(slave)
            written = b""
            with suppress(OSError):  # Linux reports so that the other end is closed
                while piece := terminal.read(65536):
                    written += piece
            code = running.wait(PATIENCE_S)
            said.seek(0)
            return Ran(written.decode().replace("\r\n", "\n"), said.read().decode(), code)

    def _settings(self, columns: int | None = None) -> dict[str, str]:
        """Nothing of this machine's user is read, and nothing of it changed."""
        home = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
        folders = {name: str(self._folder / folder) for name, folder in home.items()}
        return {**folders, "COLUMNS": str(columns or self._case.columns), "TZ": "UTC"}

    def _environment(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("RMQLB_")}
        return {**env, **self._settings(), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}

    def _process(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-X", "faulthandler", "-m", "rmqlb", *words]

    def _stdin(self, words: tuple[str, ...]) -> bytes:
        return self._case.made.files[self._case.made.file] if "-" in words else b""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise _TooLongError(f"longer than {PATIENCE_S} s")


@cache
def _program() -> TyperGroup:
    """Made once; a process makes it once, too."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    return program
