"""Runs rmqlb again and again, and lets the k-th step of each run fail.

    python -m tests.hardening.torture FOLDER writes|calls NAME

NAME is one of `WRITING`, or of `CALLING` for calls. Steps are writes and the calls before them (opening, flushing to the
disk, renaming), or calls of rmqlb's own functions. Each run is a fork of this one process, so that a hundred of them
take seconds. The outcome of each is a line of JSON.
"""

import builtins
import errno
import importlib
import io
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from msgspec import Struct

import rmqlb

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = str(ROOT / "examples" / "cluster.json")
OLD = "# what was there before\n"
TARGET = "config.yaml"
_PIECE = 16_384  # a disk takes no more at once, so that a file has several writes
_MOST = 60  # more runs than this of one kind mean that none of them came to its end
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
    fault: str
    code: int  # exit code, negative for a signal; MARK when there was no such step
    content: str  # old, new or torn
    left: tuple[str, ...]  # other files in the folder
    stderr: str


def _raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


FAULTS: dict[str, Callable[[], None]] = {
    "kill -9": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "Ctrl-C": _raising(KeyboardInterrupt()),
    "full disk": _raising(OSError(errno.ENOSPC, "No space left on device")),
    "failing disk": _raising(OSError(errno.EIO, "Input/output error")),
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

    def traced(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - the hook's signature
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT / "rmqlb")):
            steps.step()

    sys.setprofile(traced)


def attempt(folder: Path, name: str, fault: str, step: int, prepare: Callable[[Steps], None]) -> Outcome:
    target, stderr = folder / TARGET, folder.parent / "stderr"
    target.write_text(OLD)
    child = os.fork()
    if child == 0:
        _run([word.replace("FILE", str(target)) for word in WRITING[name]], stderr, Steps(step, FAULTS[fault]), prepare)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    text = target.read_text() if target.exists() else "absent"
    is_whole = len(text) > 100 and text.endswith(("}\n", "</svg>\n", "source: rocketmq://127.0.0.1:9876\n"))
    content = "old" if text == OLD else "new" if is_whole else "torn"
    left = tuple(sorted(path.name for path in folder.iterdir() if path != target))
    for path in folder.iterdir():
        path.unlink()
    return Outcome(fault, code, content, left, stderr.read_text())


def _run(line: list[str], stderr: Path, steps: Steps, prepare: Callable[[Steps], None]) -> None:
    code: Any = 1
    try:
        for number, path in ((1, os.devnull), (2, str(stderr))):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        sys.argv = ["rmqlb", *line]
        from rmqlb.__main__ import run

        prepare(steps)
        try:
            run()
        except SystemExit as end:
            code = end.code
        finally:
            sys.setprofile(None)
        if code in (0, None):
            code = 0 if steps.count >= steps._failing else MARK
        try:
            time.sleep(code == 0)  # a thread sends again what Python drops (`heard_interrupts`): here after a short run
        except KeyboardInterrupt:
            code = 130
    except BaseException:  # noqa: BLE001 - as the interpreter would end
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
    for module in pkgutil.walk_packages(rmqlb.__path__, "rmqlb."):
        if "pipeline" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # so that none of the forks has to: it is most of what they would do
    stride = CALLING[name] if what == "calls" else 1
    for fault in FAULTS if what == "writes" else ("Ctrl-C",):
        for step in range(min(stride, 2), _MOST * stride, stride):
            outcome = attempt(folder, name, fault, step, count_writes if what == "writes" else count_calls)
            sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
            sys.stdout.flush()
            if outcome.code == MARK:
                break


if __name__ == "__main__":
    main()
