"""The pace of requests: parallel ones, gaps per consumer, deadlines, retries."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from rmqlb.errors import EndpointError
from rmqlb.remoting.codes import RequestCode

GAP_S = 1.0  # from a consumer's answer to the next request to it
_FIRST_S = 0.2
_LONGEST_S = 5.0
_NOISE = re.compile(r"\[[^]]*\] | ?\(_ssl\.c:\d+\)")
Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def ask_concurrently(ask: Callable[[Item], Answer], items: Sequence[Item], most: int) -> Iterator[list[Future[Answer]]]:
    """Ask for the items in at most `most` threads; the futures are in the order of the items.

    At the end and after an error no further item is asked for, and the threads are awaited; after an interrupt they are
    not. The standard thread pool would wait for a silent server's timeouts.
    """
    futures: list[Future[Answer]] = [Future() for _ in items]
    waiting = deque(zip(items, futures, strict=True))

    def work() -> None:
        while True:
            try:
                item, future = waiting.popleft()
            except IndexError:
                return
            try:
                future.set_result(ask(item))
            except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits for the answer
                future.set_exception(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in items[:most]]
    for thread in threads:
        thread.start()
    interrupted = False
    try:
        yield futures
    except BaseException as error:
        interrupted = not isinstance(error, Exception)
        raise
    finally:
        waiting.clear()
        for thread in () if interrupted else threads:
            thread.join()


class Pace:
    """When each consumer may be queried again and a read repeated, over all readings that share it; thread-safe.

    A thread that waits for a turn holds nothing that other requests need.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,  # seconds since any moment
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,  # a number in [0, 1)
    ) -> None:
        self.now = now
        self._sleep = sleep
        self._jitter = jitter
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._free_at: dict[str, float] = {}

    @contextmanager
    def turn(self, client_id: str, deadline: Deadline, *, spaced: bool) -> Iterator[None]:
        """A consumer's turn, `spaced` from the previous one (raises EndpointError at the deadline)."""
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

    def wait_before_retry(
        self,
        attempt: int,  # number of earlier retries; each doubles the longest wait, up to 5 s
        *,
        requested: float = 0.0,  # seconds that the server requested, up to 5
        left: float = math.inf,
    ) -> bool:
        """Wait for a random time; False, without a wait, when the time left is too short.

        >>> pace = Pace(sleep=print, jitter=lambda: 0.5)
        >>> pace.wait_before_retry(1), pace.wait_before_retry(9, requested=3.0), pace.wait_before_retry(9, left=2.5)
        0.2
        3.0
        (True, True, False)
        """
        # The exponent stays small, so that no number of retries is too large for a float.
        wait = max(min(requested, _LONGEST_S), min(_LONGEST_S, _FIRST_S * 2 ** min(attempt, 10)) * self._jitter())
        if wait >= left:
            return False
        self._sleep(wait)
        return True


class Deadline:
    """The end of all requests; None seconds is no end."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seconds = seconds
        self._at = math.inf if seconds is None else now() + seconds

    @property
    def rest(self) -> float:
        return self._at - self._now()

    def left(self) -> float:
        """Remaining seconds, more than 0 (raises TimeoutError)."""
        left = self.rest
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left

    def must_leave(self, seconds: float = 0, what: str = "not requested") -> None:
        """Refuse a request so many seconds later (raises EndpointError)."""
        if self.rest <= seconds:
            hint = "raise --deadline"
            raise EndpointError(f"{what} within the {self._seconds:g} s of the deadline", hint=hint, code="deadline")


NO_DEADLINE = Deadline(None)


def reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(_NOISE.sub("", text).split())


class PassingFault(Exception):
    """A fault after which a read may be repeated."""

    def __init__(self, error: EndpointError) -> None:
        super().__init__(error.message)
        self.error = error


_PROMPT = frozenset(
    {
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_BROKER_CLUSTER_INFO,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.QUERY_CONSUMER_OFFSET,
    }
)
"""Requests that servers answer themselves at once, so a missing answer shows a silent server. Brokers forward the
request for a consumer's running information (`AdminBrokerProcessor.callConsumer`), need time for the progress of a
large group, and in 4.9 never answer an unknown request code."""


class SilentServers:
    """Servers without answers, noted while a cluster is read: each costs one timeout, not one per read."""

    def __init__(self) -> None:
        self._errors: dict[str, EndpointError] = {}

    def note(self, address: str, code: int, error: EndpointError) -> None:
        if error.code == "unreachable" or (error.code == "no-answer" and code in _PROMPT):
            self._errors[address] = error

    def must_answer(self, address: str) -> None:
        """Refuse to ask a silent server again (raises EndpointError with the first reason)."""
        error = self._errors.get(address)
        if error is not None:
            raise EndpointError(error.message, hint=error.hint, code=error.code)

    def __contains__(self, address: str) -> bool:
        return address in self._errors

    def forget(self, addresses: Sequence[str]) -> None:
        for address in addresses:
            self._errors.pop(address, None)
