"""Many processes of rmqlb at once that read a live source: `tests/live/test_stress.py` has them read a real RocketMQ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from msgspec import Struct

from tests.cli.run import ROOT, environment
from tests.hardening import walk

LOOPS = 8
_PROGRAM = "import sys; sys.setswitchinterval({interval}); from rmqlb.__main__ import run; run()"
USUAL = 0.005  # seconds until another thread may go on, as Python has it; the less, the sooner threads meet


class Line(Struct, frozen=True):
    """A command line without `rmqlb`, and the exit code that it must end with."""

    words: tuple[str, ...]
    code: int = 0


WITHOUT_A_SOURCE = tuple(map(Line, (("schema",), ("explain", "no-master"), ("config", "show"), ("context", "list"))))


class Failed(Struct, frozen=True):
    line: Line
    code: int
    stderr: str


def reading(source: Sequence[str], group: str, topic: str, codes: Mapping[str, int]) -> list[Line]:
    """Every command that reads a source, on a live one; `codes` are the exit codes of commands that do not end with 0."""
    of = {**dict.fromkeys(walk.ON_A_TOPIC, ("--topic", topic)), **dict.fromkeys(walk.ON_A_GROUP, ("--group", group))}
    return [Line((name, *source, *of.get(name, ()), *more), codes.get(name, 0)) for name, more in walk.READING.items()]


def stress(lines: Sequence[Line], runs: int, *, loops: int = LOOPS, interval: float = USUAL) -> list[Failed]:
    """Those of so many processes that failed; the lines take turns, in so many loops side by side."""
    with ThreadPoolExecutor(loops) as pool:
        outcomes = pool.map(lambda line: _failed(line, interval), islice(cycle(lines), runs))
        return [failed for failed in outcomes if failed is not None]


def _failed(line: Line, interval: float) -> Failed | None:
    program = [sys.executable, "-X", "faulthandler", "-c", _PROGRAM.format(interval=interval)]
    done = subprocess.run(
        [*program, *line.words], capture_output=True, cwd=ROOT, env=environment(), timeout=600, check=False
    )
    stderr = done.stderr.decode()
    is_bad = done.returncode != line.code or "Traceback" in stderr or "Fatal Python error" in stderr
    return Failed(line, done.returncode, stderr) if is_bad else None
