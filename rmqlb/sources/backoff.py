"""How long to wait before a read is tried again: at most twice as long each time, and never all readers at once."""

from __future__ import annotations

import math
from collections.abc import Callable

from rmqlb.errors import EndpointError

_FIRST_S = 0.2
_LONGEST_S = 5.0


class PassingFault(Exception):
    """A fault after which a read may be tried again."""

    def __init__(self, error: EndpointError) -> None:
        super().__init__(error.message)
        self.error = error


def wait_before_retry(
    attempt: int,  # how often the read was tried again already; each time doubles the longest wait, up to 5 s
    sleep: Callable[[float], None],
    jitter: Callable[[], float],  # a number in [0, 1)
    *,
    asked: float = 0.0,  # seconds that the far side asked for; heeded up to 5
    left: float = math.inf,
) -> bool:
    """Wait for a while of chance length; False when there was no time for it, and nothing was waited for.

    >>> wait_before_retry(1, print, lambda: 0.5)
    0.2
    True
    >>> wait_before_retry(9, print, lambda: 0.5, asked=3.0)
    3.0
    True
    >>> wait_before_retry(9, print, lambda: 0.5, left=2.5)
    False
    """
    # The exponent stays small, so that no number of retries is too large for a float.
    longest = min(_LONGEST_S, _FIRST_S * 2 ** min(attempt, 10))
    wait = max(min(asked, _LONGEST_S), longest * jitter())
    if wait >= left:
        return False
    sleep(wait)
    return True
