"""`--watch`: the same look again and again, until the user, a count or a condition ends it.

A look that fails after the first leaves what was seen last in its place, marked as stale with its time, and is tried
again. On a terminal the screen is redrawn and put back at the end; elsewhere each line is a change:

    {"at": …, "change": "first|added|changed|removed|stale|fresh", "row": …, "was": …, "error": …}
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from rmqlb.cli.common.terminal import SnapshotView, Terminal, drawn
from rmqlb.errors import DataError, EndpointError, RmqlbError
from rmqlb.model.result import utc_text
from rmqlb.views.formats.palette import encodable
from rmqlb.views.formats.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from rmqlb.views.row_changes import ChangeLine

LEAST_S = 1.0
"""A consumer is asked for its queues at most once per second: it answers on the threads that its brokers need."""

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


class Stale(Struct, frozen=True):
    error: RmqlbError
    tried_at: str


def utc_now() -> str:
    return utc_text(datetime.now(UTC).replace(microsecond=0))


def wait_for_next(seconds: float) -> None:
    """Let time pass; raise BrokenPipeError when nobody reads stdout any more, which no write may ever show."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        time.sleep(seconds)
        return
    closed, end = select.poll(), time.monotonic() + seconds
    closed.register(descriptor, 0)
    while (left := end - time.monotonic()) > 0:
        if closed.poll(min(left, 0.5) * 1000):  # Python handles a signal that comes just before this call after it
            raise BrokenPipeError


@contextmanager
def heeding_an_end() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does: with what was seen so far."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def watch(
    look: Callable[[], SnapshotView],
    terminal: Terminal,
    every_s: float,
    most: int | None,
    *,
    wait: Callable[[float], None] = wait_for_next,
    clock: Callable[[], str] = utc_now,
) -> SnapshotView:
    """Look again and again, and return the last look that succeeded; raise an error of the first or the last look."""
    latest, seen_at = look(), clock()
    terminal.repeating = True
    with _display(terminal, every_s) as display:
        display.show(latest, seen_at, None)
        stale: Stale | None = None
        done = 1
        while not any(condition.met for condition in latest.tried) and done != most:
            wait(every_s)
            try:
                latest, seen_at, stale = look(), clock(), None
            except (DataError, EndpointError) as error:
                stale = Stale(error, clock())
            display.show(latest, seen_at, stale)
            done += 1
    if terminal.format in ("table", "wide"):
        terminal.show(latest.report, latest.snapshot, latest.findings)
    if stale is not None:
        raise stale.error
    return latest


def _display(terminal: Terminal, every_s: float) -> AbstractContextManager[_Lines | _Frames]:
    if terminal.format == "jsonl":
        return nullcontext(_Lines(terminal))
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return nullcontext(_Frames(terminal, every_s)) if is_dumb else _Screen(terminal, every_s)


class _Lines:
    """Changes, a line each; findings on stderr when they are new."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last: SnapshotView | None = None
        self._trouble: str | None = None

    def show(self, look: SnapshotView, seen_at: str, stale: Stale | None) -> None:
        from rmqlb.views.envelope import Error
        from rmqlb.views.row_changes import ChangeLine, row_changes

        last, trouble = self._last, self._trouble
        if stale is not None:
            error, self._trouble = stale.error, stale.error.message
            shown = Error(error.code, error.message, error.hint, error.exit_code)
            self._write([ChangeLine(stale.tried_at, "stale", error=shown)] if error.message != trouble else [])
            return
        lines = [] if trouble is None else [ChangeLine(seen_at, "fresh")]
        if look.report.rows is not None:
            lines += row_changes(seen_at, last.report.rows if last else None, look.report.rows)
        self._write(lines)
        self._terminal.warn(finding for finding in look.findings if last is None or finding not in last.findings)
        self._last, self._trouble = look, None

    def _write(self, lines: list[ChangeLine]) -> None:
        from rmqlb.views.formats.machine import as_json_lines

        self._terminal.write(as_json_lines(lines))
        sys.stdout.flush()


class _Frames:
    """Tables below one another, for a terminal that cannot be redrawn."""

    def __init__(self, terminal: Terminal, every_s: float) -> None:
        self._terminal = terminal
        self._every_s = every_s

    def show(self, look: SnapshotView, seen_at: str, stale: Stale | None) -> None:
        sys.stdout.write("\n".join([*self._frame(self._terminal.console(), look, seen_at, stale), "", ""]))
        sys.stdout.flush()

    def _frame(self, console: Console, look: SnapshotView, seen_at: str, stale: Stale | None) -> list[str]:
        from rich.text import Text

        every = f"every {self._every_s:g}s"
        with console.capture() as capture:
            console.print(Text(f"{seen_at}, {every}; Ctrl-C ends", style="dim"))
            if stale is not None:
                text = f"STALE: not read at {stale.tried_at}: {stale.error.message}; tried again {every}"
                console.print(Text(visible(text), style="bold red"))
        tables = drawn(self._terminal.chosen(look.report, look.findings), console)
        return encodable(capture.get() + tables, sys.stdout.encoding).splitlines()


class _Screen(_Frames):
    """The terminal's second screen, redrawn in place; the first is back however it ends, and while it is stopped.

    Only this class writes meanwhile. A signal that arrives during a write is handled afterwards.
    """

    def __enter__(self) -> Self:
        self._shown: tuple[SnapshotView, str, Stale | None] | None = None
        self._put_off: int | None = None
        handlers = {signal.SIGTERM: _end, signal.SIGHUP: _end, signal.SIGWINCH: self._handle}
        if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
            handlers[signal.SIGTSTP] = self._handle
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        sys.stdout.write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._shown = None
        with suppress(OSError):  # the terminal may be gone
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def show(self, look: SnapshotView, seen_at: str, stale: Stale | None) -> None:
        self._shown = None
        console = self._terminal.console()
        lines = self._frame(console, look, seen_at, stale)
        room = max(console.height, 2)
        if len(lines) > room:
            more = f"and {len(lines) - room + 1} more lines: --section shows one table"
            lines = [*lines[: room - 1], more[: console.width]]
        body = "\r\n".join(f"{line}{_END_OF_LINE}" for line in lines)
        sys.stdout.write(f"{_HOME}{body}{_BELOW}")
        sys.stdout.flush()
        self._shown = (look, seen_at, stale)
        if self._put_off is not None:
            number, self._put_off = self._put_off, None
            self._handle(number, None)

    def _handle(self, number: int, _: FrameType | None) -> None:
        """Draw again for a terminal of another size; stop with the first screen back, and continue with the second."""
        if self._shown is None:
            self._put_off = number
            return
        shown, self._shown = self._shown, None
        if number == signal.SIGTSTP:
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self._handle)
            sys.stdout.write(_ENTER)
        self.show(*shown)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
