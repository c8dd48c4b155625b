"""Runs rmqlb again and again, and lets the k-th step of each run fail.

    python -m tests.hardening.torture FOLDER writes|calls NAME

NAME is one of `WRITING`, or of `CALLING` for calls. Steps are writes and the calls before them (opening, flushing to the
disk, renaming), or calls of rmqlb's own functions. Each run is a fork of this one process, so that a hundred of them
take seconds. The outcome of each is a line of JSON.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from msgspec import Struct

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = str(ROOT / "examples" / "cluster.json")
OLD = "# what was there before\n"
TARGET, MODULES = "config.yaml", "modules"
"""The file that is written, and the one with the names of the modules that a command has imported."""
_PIECE = 16_384  # a disk takes no more at once, so that a file has several writes
_MOST = 60  # more runs than this of one kind mean that none of them came to its end
_NO_STEP = 0  # the step at which nothing fails
MARK = 77  # a child's own exit code: the run had fewer steps
REBALANCE = ("simulate-rebalance", "-s", EXAMPLE, "-g", "bill-svc", "--event", "leave #0@5s")
WRITING: dict[str, tuple[str, ...]] = {
    "fetch-routes --to": ("fetch-routes", "-s", EXAMPLE, "--to", "FILE"),
    "simulate-rebalance --svg": (*REBALANCE, "--svg", "FILE"),
    "context add": ("context", "add", "here", "-s", "rocketmq://127.0.0.1:9876"),
}
"""A command for each function that writes a file; `context` writes the one file there is."""
CALLING = {"fetch-routes --to": 67, "simulate-rebalance --svg": 1511}
"""Commands that are also interrupted at calls → at each how-manieth."""


class Outcome(Struct, frozen=True):
    command: str  # its key in `WRITING`
    fault: str
    step: int  # from 1
    code: int  # exit code, negative for a signal; MARK when there was no such step
    content: str  # old, new, absent or torn
    left: tuple[str, ...]  # other files in the folder
    stderr: str


def _interrupted() -> None:
    raise KeyboardInterrupt


def _fails_with(number: int, text: str) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, text)

    return fail


WRITE_FAULTS: dict[str, Callable[[], None]] = {
    "kill -9": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "Ctrl-C": _interrupted,
    "full disk": _fails_with(errno.ENOSPC, "No space left on device"),
    "failing disk": _fails_with(errno.EIO, "Input/output error"),
}


class Steps:
    def __init__(self, failing: int, fault: Callable[[], None]) -> None:
        self.count, self._failing, self._fault = 0, failing, fault

    def step(self) -> None:
        self.count += 1
        if self.count == self._failing:
            self._fault()

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self.step()
            return real(*arguments, **more)

        return call


def count_writes(steps: Steps) -> None:
    """Each opening for writing, write, flush to the disk and renaming is a step."""

    class Counted(io.FileIO):
        def write(self, data: Any) -> int:
            steps.step()
            return super().write(bytes(data)[:_PIECE])

    real_open, real_os_open = builtins.open, os.open

    def opened(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if "w" not in mode:
            return real_open(file, mode, *rest, **more)
        if not isinstance(file, int):
            steps.step()
        written = io.BufferedWriter(Counted(file, "w"))
        return written if "b" in mode else io.TextIOWrapper(written, encoding=more.get("encoding"))

    def os_open(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            steps.step()
        return real_os_open(path, flags, *rest, **more)

    builtins.open, io.open, os.open = opened, opened, os_open
    os.fsync, os.replace = steps.counted(os.fsync), steps.counted(os.replace)


def count_calls(steps: Steps) -> None:
    """Each call of a function of rmqlb is a step."""
    home = str(ROOT / "rmqlb")

    def traced(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - the hook's signature
        if event == "call" and frame.f_code.co_filename.startswith(home):
            steps.step()

    sys.setprofile(traced)


def attempt(
    folder: Path, name: str, fault: str, step: int, prepare: Callable[[Steps], None], act: Callable[[], None]
) -> Outcome:
    target = folder / TARGET
    target.write_text(OLD)
    child = os.fork()
    if child == 0:
        _run(folder, WRITING[name], step, prepare, act)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    stderr = (folder.parent / "stderr").read_text()
    content = "absent"
    if target.exists():
        text = target.read_text()
        is_whole = text.endswith(("}\n", "</svg>\n", "</html>\n", "source: rocketmq://127.0.0.1:9876\n"))
        content = "old" if text == OLD else "new" if is_whole and len(text) > 100 else "torn"
    left = tuple(sorted(path.name for path in folder.iterdir() if path != target))
    for path in folder.iterdir():
        path.unlink()
    return Outcome(name, fault, step, code, content, left, stderr)


def _run(
    folder: Path, line: tuple[str, ...], step: int, prepare: Callable[[Steps], None], act: Callable[[], None]
) -> None:
    code: Any = 1
    try:
        for number, path in ((1, os.devnull), (2, str(folder.parent / "stderr"))):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        sys.argv = ["rmqlb", *(word.replace("FILE", str(folder / TARGET)) for word in line)]
        from rmqlb.__main__ import run

        steps = Steps(step, act)
        prepare(steps)
        try:
            run()
        except SystemExit as end:
            code = end.code
        finally:
            sys.setprofile(None)
        if step == _NO_STEP:
            (folder.parent / MODULES).write_text("\n".join(sys.modules))
        if code in (0, None):
            code = 0 if steps.count >= step else MARK
    except BaseException:  # noqa: BLE001 - as the interpreter would end
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code or 0)


def main() -> None:
    """All runs of one kind: a run for each step, up to one that has fewer."""
    _, home, what, name = sys.argv
    folder = Path(home, "rmqlb")
    os.umask(0o077)
    folder.mkdir()
    os.environ["XDG_CONFIG_HOME"] = home
    steps, prepare, faults = range(1, _MOST), count_writes, WRITE_FAULTS
    if what == "calls":
        stride = CALLING[name]
        steps, prepare, faults = range(2, _MOST * stride, stride), count_calls, {"Ctrl-C at a call": _interrupted}
    else:
        _import_for(folder, name)
    for fault, act in faults.items():
        for step in steps:
            outcome = attempt(folder, name, fault, step, prepare, act)
            sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
            sys.stdout.flush()
            if outcome.code == MARK:
                break


def _import_for(folder: Path, name: str) -> None:
    """Import what a run imports, so that none of the forks has to: it is most of what they would do."""
    outcome = attempt(folder, name, "none", _NO_STEP, lambda _: None, lambda: None)
    assert outcome.content == "new", outcome.stderr
    modules = folder.parent / MODULES
    for module in modules.read_text().split():
        with suppress(ImportError):
            importlib.import_module(module)
    modules.unlink()


if __name__ == "__main__":
    main()
