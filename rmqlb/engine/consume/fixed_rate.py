"""The timers of a client that run at a fixed rate from its making on (`MQClientInstance.startScheduledTask`)."""

from __future__ import annotations

from rmqlb.engine.randomness import Draws
from rmqlb.model.group_scenario import SECOND_US

FIRST_POLL_US = 10_000
FIRST_HEARTBEAT_US = SECOND_US
FIRST_PERSIST_US = 10 * SECOND_US
AUTO_COMMIT_US = 5 * SECOND_US
"""`autoCommitIntervalMillis` of lite pull consumers."""
FIRST_LOCK_US = SECOND_US
_ROUNDS_US = 3600 * SECOND_US
"""All default timers are in the same place again after it, so that an age drawn from it has every phase as likely."""


def age_us(draws: Draws) -> int:
    """How long a member has been running that was there before the start."""
    return _ROUNDS_US + draws.below(_ROUNDS_US)


def first_tick(first: int, every: int, since: int) -> int:
    """The first time of a timer at or after a moment."""
    return first if first >= since else first + -(-(since - first) // every) * every


def last_tick(first: int, every: int, until: int) -> int:
    """The last time of a timer at or before a moment; it has begun by then."""
    return first + (until - first) // every * every


def until_next_tick(begin: int, every: int, now: int) -> int:
    """How long until the next time of a timer that began at a moment; one that is due now has just been."""
    return every - (now - begin) % every
