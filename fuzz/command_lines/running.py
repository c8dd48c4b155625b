"""Running a command line: in this process, which is quick, or as a process of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType

from msgspec import Struct
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from rmqlb.cli.main import app

ROOT = Path(__file__).parent.parent.parent
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PATIENCE_S = 60
"""No command line here may take longer; most take some milliseconds."""


class Ran(Struct, frozen=True):
    """What came of a command line.

    Attributes:
        stdout: as text.
        stderr: likewise.
        code: the exit code.
        escaped: the trace of an exception that nothing caught, or that it took too long; else empty.
    """

    stdout: str
    stderr: str
    code: int
    escaped: str = ""


class _TooLongError(BaseException):
    """Nothing of rmqlb catches it."""


def run_here(words: tuple[str, ...], folder: Path, columns: int, stdin: bytes = b"") -> Ran:
    """Run it in this process, in a folder of its own."""
    code, escaped = 0, ""
    with _inside(folder), CliRunner().isolation(input=stdin, env=_settings(folder, columns)) as (stdout, stderr, *_):
        try:
            with _bounded():
                _program().main(list(words), prog_name="rmqlb")
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as error:  # noqa: BLE001 - it is what is looked for
            code, escaped = 1, "".join(traceback.format_exception(error))
        sys.stdout.flush()
        sys.stderr.flush()
        written, said = (each.getvalue().decode().replace("\r\n", "\n") for each in (stdout, stderr))
    return Ran(written, said, code, escaped)


def run_apart(words: tuple[str, ...], folder: Path, columns: int, stdin: bytes = b"") -> Ran:
    """Run it as a process, in a pipe."""
    line, env = _started(words, folder, columns)
    try:
        done = subprocess.run(
            line, input=stdin, capture_output=True, cwd=folder, env=env, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Ran("", "", 1, f"longer than {PATIENCE_S} s")
    return Ran(done.stdout.decode().replace("\r\n", "\n"), done.stderr.decode(), done.returncode)


def run_on_a_terminal(words: tuple[str, ...], folder: Path, columns: int) -> Ran:
    """Run it as a process on a terminal so wide; stdout is what it wrote there, without colours, stderr is a pipe."""
    line, env = _started(words, folder, columns)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with open(folder / "stderr", "w+b") as said, open(master, "rb", buffering=0) as terminal:
        running = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=slave, stderr=said, cwd=folder, env=env)
        os.close(slave)
        written = b""
        with suppress(OSError):  # Linux tells so that the other end is closed
            while piece := terminal.read(65536):
                written += piece
        code = running.wait(PATIENCE_S)
        said.seek(0)
        text = _COLOUR.sub("", written.decode()).replace("\r\n", "\n")
        return Ran(text, said.read().decode(), code)


def _started(words: tuple[str, ...], folder: Path, columns: int) -> tuple[list[str], dict[str, str]]:
    """A process's words and environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RMQLB_")}
    env |= {name: value for name, value in _settings(folder, columns).items() if value is not None}
    env |= {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
    return [sys.executable, "-X", "faulthandler", "-m", "rmqlb", *words], env


@cache
def _program() -> TyperGroup:
    """Made once; a process makes it once, too."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    return program


def _settings(folder: Path, columns: int) -> Mapping[str, str | None]:
    """Nothing of this machine's user is read, and nothing of it changed."""
    mine = {name: None for name in os.environ if name.startswith("RMQLB_")}
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache")}
    return {**mine, **home, "COLUMNS": str(columns), "TZ": "UTC"}


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


@contextmanager
def _bounded() -> Iterator[None]:
    def too_long(number: int, frame: FrameType | None) -> None:
        raise _TooLongError(f"longer than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
