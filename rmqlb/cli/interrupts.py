"""Ctrl-C, wherever it falls."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Have Ctrl-C raised again where Python drops it: in a generator that is being closed, or an object that goes.

    Another thread sends it once more, when this one is out of there, or waits for something already.
    """
    before = sys.unraisablehook
    here = _thread.get_ident()

    def again(dropped: UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            _thread.start_new_thread(signal.pthread_kill, (here, signal.SIGINT))  # a Thread's start would wait for it
        else:
            before(dropped)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
