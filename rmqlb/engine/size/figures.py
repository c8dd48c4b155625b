"""What a group of one size gives, and which limits that breaks: for every set of client IDs that is tried."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Literal, Protocol, TypeVar

from msgspec import Struct

from rmqlb.model.group_size import Limit, SizeLimits

_Number = TypeVar("_Number", int, float)


class SizeFigures(Struct, frozen=True, dict=True):
    """A group of one size; each list has an entry for each set of IDs, one where IDs do not matter."""

    consumers: int
    most: Sequence[int]  # queues of the consumer that has the most
    held: Sequence[int]  # queues of all consumers, each counted once for each owner
    idle: Sequence[int]
    utilisation: Sequence[float] | None  # of the busiest consumer; None when no work is given
    unassigned: Sequence[int] = ()  # queues without an owner; () where the strategy leaves none so
    duplicate_owners: Sequence[int] = ()  # queues with several; () in the same way

    @cached_property
    def imbalances(self) -> list[float | None]:
        """As the judge measures them (`assignment/balance.py`): divided once."""
        return [most * self.consumers / held if held else None for most, held in zip(self.most, self.held, strict=True)]


class Sizes(Protocol):
    """The sizes of a group on its queues under a strategy.

    Of ever larger groups only: `lost` are places among the `consumers` first of each set of IDs, ascending.
    """

    trials: int  # 0 where only places in the order of IDs decide

    def of(self, consumers: int, lost: Sequence[int] = ()) -> SizeFigures: ...

    # what no loss of so many consumers exceeds; None where nothing but looking at each loss says it
    def bound(self, consumers: int, losses: int) -> SizeFigures | None: ...


def worse(one: SizeFigures, other: SizeFigures) -> SizeFigures:
    """Of two groups of as many consumers the worse figure, for each set of IDs and each figure by itself."""
    pairs = (
        max(pair, key=lambda each: each[0] / each[1] if each[1] else float("inf"))
        for pair in zip(zip(one.most, one.held, strict=True), zip(other.most, other.held, strict=True), strict=True)
    )
    most, held = zip(*pairs, strict=True)
    utilisation: list[float] | None = None
    if one.utilisation is not None and other.utilisation is not None:
        utilisation = list(map(max, one.utilisation, other.utilisation))
    return SizeFigures(
        one.consumers,
        most,
        held,
        list(map(max, one.idle, other.idle)),
        utilisation,
        list(map(max, one.unassigned, other.unassigned)),
        list(map(max, one.duplicate_owners, other.duplicate_owners)),
    )


def utilised(work: float, threads: int, one_thread: float = 0.0) -> float:
    """The share of threads that consumes, or that of the busiest one, which alone has so much work, if that is more.

    To nine digits, so that 0.7999999999 of sums is the 0.8 that is meant.
    """
    return float(f"{max(work / threads, one_thread):.9g}")


def broken(figures: SizeFigures, limits: SizeLimits) -> dict[Limit, set[int]]:
    """Limit → the sets of IDs, by their places, with which it does not hold; what holds with all is left out."""
    found: dict[Limit, set[int]] = {
        "unassigned": {at for at, number in enumerate(figures.unassigned) if number},
        "duplicate-owners": {at for at, number in enumerate(figures.duplicate_owners) if number},
    }
    if limits.max_imbalance is not None:
        found["max-imbalance"] = {
            at for at, each in enumerate(figures.imbalances) if each is None or each > limits.max_imbalance
        }
    if limits.no_idle:
        found["no-idle"] = {at for at, number in enumerate(figures.idle) if number}
    if limits.max_utilisation is not None and figures.utilisation is not None:
        found["max-utilisation"] = {at for at, used in enumerate(figures.utilisation) if used > limits.max_utilisation}
    return {limit: trials for limit, trials in found.items() if trials}


def at_share(values: Sequence[_Number], share: float) -> _Number | Literal[0]:
    """The smallest value that so large a share of the values does not exceed.

    >>> at_share([3, 1, 2, 9], 1), at_share([3, 1, 2, 9], 0.75), at_share([3, 1, 2, 9], 0.1), at_share([], 1)
    (9, 3, 1, 0)
    """
    if not values:
        return 0
    needed = _needed(len(values), share)
    return max(values) if needed == len(values) else sorted(values)[needed - 1]


@lru_cache
def _needed(number: int, share: float) -> int:
    """How many of so many are that share, or more."""
    return next(each for each in range(1, number + 1) if each / number >= share)
