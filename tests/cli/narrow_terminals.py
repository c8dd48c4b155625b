"""Run a command on terminals of several widths, each in a fork of this program, and print how each one ended."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

_PATIENCE_S = 20
"""No command of the tests takes a tenth of it; one that does not end has failed."""


def on_terminal(columns: int, arguments: list[str]) -> tuple[int, str]:
    """Run rmqlb on a terminal of so many columns; its exit code, and all that it wrote."""
    child, screen = pty.fork()
    if not child:
        os._exit(_rmqlb(arguments, columns))
    written, deadline = b"", time.monotonic() + _PATIENCE_S
    while select.select([screen], [], [], max(deadline - time.monotonic(), 0))[0]:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux tells so that the other end is closed
            break
        written += piece
    else:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(screen)
    return os.waitstatus_to_exitcode(status), written.decode()


def _rmqlb(arguments: list[str], columns: int) -> int:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    from rmqlb.__main__ import run

    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    sys.argv = ["rmqlb", *arguments]
    try:
        run()
    except SystemExit as end:
        sys.stdout.flush()
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


if __name__ == "__main__":
    import rmqlb.cli.main
    import rmqlb.views.formats.framed  # noqa: F401 - loaded once for all forks

    widths, command = json.loads(sys.argv[1]), sys.argv[2:]
    json.dump({width: on_terminal(width, command) for width in widths}, sys.stdout)
