"""Asking several things at once, in threads that never keep the program from ending.

The standard thread pool waits for its threads when the program is interrupted, which behind a silent server can take as
long as all its timeouts together. These are daemons.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


@contextmanager
def ask_concurrently(
    ask: Callable[[Asked], Answered], items: Sequence[Asked], most: int
) -> Iterator[list[Future[Answered]]]:
    """The coming answers, in the order of the items, while at most so many threads ask.

    At the end and after an error nothing more is asked, and the threads are waited for; after an interrupt nothing is.
    """
    futures: list[Future[Answered]] = [Future() for _ in items]
    waiting = deque(zip(items, futures, strict=True))
    threads = [threading.Thread(target=_ask_all, args=(ask, waiting), daemon=True) for _ in items[:most]]
    for thread in threads:
        thread.start()
    try:
        yield futures
    except Exception:
        _end(threads, waiting)
        raise
    _end(threads, waiting)


def _end(threads: Iterable[threading.Thread], waiting: deque[tuple[Asked, Future[Answered]]]) -> None:
    waiting.clear()
    for thread in threads:
        thread.join()


def _ask_all(ask: Callable[[Asked], Answered], waiting: deque[tuple[Asked, Future[Answered]]]) -> None:
    while True:
        try:
            item, future = waiting.popleft()
        except IndexError:
            return
        try:
            future.set_result(ask(item))
        except BaseException as error:  # noqa: BLE001 - it belongs to the one who waits for the answer
            future.set_exception(error)
