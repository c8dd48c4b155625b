"""What is asked of a rollout: who restarts, what they come back with, and what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct


class RolloutRequest(Struct, frozen=True, kw_only=True):
    """A rolling restart or a change of strategy that is to be planned.

    Attributes:
        restart: who is restarted; None is everybody, of a change of strategy those that do not run the new one yet.
        to_strategy: name of the strategy that they come back with; None for a mere restart.
        becomes: client id → the id afterwards, of those whose id changes.
        down_us: how long each is away.
        pauses_us: from one going down to the next, each to be tried.
        at_once: how many go down together, each to be tried.
        order: client ids, an order to be tried beside the others.
    """

    restart: Sequence[str] | None = None
    to_strategy: str | None = None
    becomes: Mapping[str, str] | None = None
    down_us: int
    pauses_us: Sequence[int]
    at_once: Sequence[int] = (1,)
    order: Sequence[str] | None = None
