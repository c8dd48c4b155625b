"""Which random numbers are whose: each is a function of seed, trial and these addresses (`engine.randomness`).

An address has a kind, and a place within it: a queue, a broker, a consumer.
"""

from __future__ import annotations

from rmqlb.engine.randomness import Draws, stream_key

_PLACES = 1 << 32
ARRIVALS, BROKER, CONSUMER, PROXY = range(4)


def draws(seed: int, trial: int, kind: int, place: int = 0) -> Draws:
    """The stream of one thing."""
    return Draws(stream_key(seed, trial, kind * _PLACES + place))
