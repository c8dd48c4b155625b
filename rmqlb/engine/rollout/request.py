"""What is asked of a rollout: who restarts, what they come back with, and what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct


class RolloutRequest(Struct, frozen=True, kw_only=True):
    """A rolling restart or a change of strategy that is to be planned."""

    # who is restarted; None is everybody, of a change of strategy those that do not run the new one yet
    restart: Sequence[str] | None = None
    to_strategy: str | None = None  # name of the strategy that they come back with; None for a mere restart
    becomes: Mapping[str, str] | None = None  # client id → the id afterwards, of those whose id changes
    down_us: int  # how long each is away
    pauses_us: Sequence[int]  # from one going down to the next, each to be tried
    at_once: Sequence[int] = (1,)  # how many go down together, each to be tried
    order: Sequence[str] | None = None
