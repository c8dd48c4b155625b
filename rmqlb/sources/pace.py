"""How often consumers are asked: each by one request at a time, with a pause between two, and nothing after a deadline.

Whoever waits for a consumer's turn holds nothing that another request needs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rmqlb.errors import EndpointError

GAP_S = 1.0  # from a consumer's answer to the next request to it


class Pace:
    """When each consumer may be asked again, over all readings that share it; may be used by several threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self.now = now  # seconds since any moment
        self._sleep = sleep
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._free_at: dict[str, float] = {}

    @contextmanager
    def turn(self, client_id: str, deadline: Deadline, *, spaced: bool) -> Iterator[None]:
        """A consumer's one turn, `spaced` from the one before (raises EndpointError when that is too late)."""
        with self._lock:
            turn = self._turns.setdefault(client_id, threading.Lock())
        with turn:
            pause = max(self._free_at.get(client_id, self.now()) - self.now(), 0) if spaced else 0
            deadline.must_leave(pause)
            if pause:
                self._sleep(pause)
            try:
                yield
            finally:
                self._free_at[client_id] = self.now() + GAP_S


class Deadline:
    """The moment from which on a reading asks nothing more; none when its length is None."""

    def __init__(self, pace: Pace, seconds: float | None) -> None:
        self._pace = pace
        self._seconds = seconds
        self._at = None if seconds is None else pace.now() + seconds

    @property
    def rest(self) -> float:
        """Seconds until then; infinite without one."""
        return math.inf if self._at is None else self._at - self._pace.now()

    @property
    def has_passed(self) -> bool:
        return self.rest <= 0

    def must_leave(self, seconds: float = 0) -> None:
        """Refuse what could only be asked that much later (raises EndpointError)."""
        if self.rest <= seconds:
            raise self._late("not asked")

    def must_leave_time_for(self, where: str) -> None:
        """Refuse a request that had no more time (raises EndpointError)."""
        if self.has_passed:
            raise self._late(f"{where}: no answer")

    def _late(self, what: str) -> EndpointError:
        hint = "a longer --deadline leaves more time"
        return EndpointError(f"{what} within the {self._seconds:g} s of the deadline", hint=hint, code="deadline")
