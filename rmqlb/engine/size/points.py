"""A group of one size, held against what is asked of it, after losses too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import get_args

from msgspec import Struct

from rmqlb.engine.size.figures import SizeFigures, Sizes, at_share, broken, worse
from rmqlb.engine.size.losses import counted, losses
from rmqlb.model.group_size import AfterLoss, Limit, SizeLimits, SizePoint

_ORDER: tuple[Limit, ...] = get_args(Limit)


class Tried(Struct, frozen=True):
    """What is known of a strategy on a number of queues."""

    sizes: Sizes
    of_brokers: Mapping[str, Sizes | None]  # lost broker → what is left; None when no queue is


class _Loss(Struct, frozen=True):
    """What is left after the loss of so many consumers, whichever they are, or of a broker."""

    limit: Limit
    lost_consumers: int
    lost_broker: str | None
    figures: SizeFigures | None  # for each set of IDs after the worst of the losses; None when nothing is left
    fails: Mapping[Limit, set[int]]
    exact: bool = True  # each was looked at, or all leave the same

    def bad(self, trials: int) -> set[int]:
        """The sets of IDs with which something does not hold."""
        return set(range(trials)) if self.figures is None else set().union(*self.fails.values())


def point(tried: Tried, consumers: int, limits: SizeLimits, seed: int) -> SizePoint:
    """A group of so many consumers (raises AllocationError).

    Losses are not looked at where with none of several sets of IDs everything holds without one.
    """
    figures = tried.sizes.of(consumers)
    trials, enough = len(figures.most), limits.share
    fails = broken(figures, limits)
    worst: dict[Limit, _Loss] = {}
    exact = True
    if not tried.sizes.trials or len(set().union(*fails.values())) < trials:
        for loss in _losses(tried, consumers, limits, seed):
            exact &= loss.exact
            bad = loss.bad(trials)
            if bad:
                fails.setdefault(loss.limit, set()).update(bad)
            if loss.limit not in worst or _badness(loss, trials) > _badness(worst[loss.limit], trials):
                worst[loss.limit] = loss
    share = (trials - len(set().union(*fails.values()))) / trials
    return SizePoint(
        consumers=consumers,
        satisfied=share >= enough,
        fails=() if share >= enough else _failing(fails, trials, enough),
        share=share,
        after_loss=_after(worst.get("survive"), trials, enough, exact=exact),
        after_broker_loss=_after(worst.get("survive-broker"), trials, enough),
        imbalance=_imbalance(figures, enough),
        idle=at_share(figures.idle, enough),
        utilisation=_utilisation(figures, enough),
        unassigned=at_share(figures.unassigned, enough),
        duplicate_owners=at_share(figures.duplicate_owners, enough),
    )


def _failing(fails: Mapping[Limit, set[int]], trials: int, enough: float) -> tuple[Limit, ...]:
    """The limits that do not hold for enough sets of IDs; where each does, but not all together, those concerned."""
    alone = tuple(limit for limit in _ORDER if (trials - len(fails.get(limit, ()))) / trials < enough)
    return alone or tuple(limit for limit in _ORDER if fails.get(limit))


def _badness(loss: _Loss, trials: int) -> tuple[int, float]:
    if loss.figures is None:
        return trials, float("inf")
    return len(loss.bad(trials)), max(each or 0.0 for each in loss.figures.imbalances)


def is_bounded(sizes: Sizes, consumers: int, losses: int) -> bool:
    """A bound is asked for instead of each loss: there are too many, or all of them leave the same."""
    return not sizes.trials or not counted(consumers, losses)


def _losses(tried: Tried, consumers: int, limits: SizeLimits, seed: int) -> Iterator[_Loss]:
    for number in range(1, limits.survive + 1):
        if number >= consumers:
            yield _Loss("survive", number, None, None, {})
            break
        bound = tried.sizes.bound(consumers, number) if is_bounded(tried.sizes, consumers, number) else None
        if bound is not None:
            yield _Loss("survive", number, None, bound, broken(bound, limits), exact=not tried.sizes.trials)
            continue
        left = reduce(worse, (tried.sizes.of(consumers, lost) for lost in losses(consumers, number, seed)))
        yield _Loss("survive", number, None, left, broken(left, limits), exact=counted(consumers, number))
    for broker, sizes in tried.of_brokers.items():
        if sizes is None:
            yield _Loss("survive-broker", 0, broker, None, {})
            continue
        left = sizes.of(consumers)
        yield _Loss("survive-broker", 0, broker, left, broken(left, limits))


def _after(loss: _Loss | None, trials: int, share: float, *, exact: bool = True) -> AfterLoss | None:
    if loss is None:
        return None
    if loss.figures is None:
        return AfterLoss(loss.lost_consumers, loss.lost_broker, None, 0, None, (loss.limit,))
    return AfterLoss(
        loss.lost_consumers,
        loss.lost_broker,
        _imbalance(loss.figures, share),
        at_share(loss.figures.idle, share),
        _utilisation(loss.figures, share),
        _failing(loss.fails, trials, share),
        at_share(loss.figures.unassigned, share),
        at_share(loss.figures.duplicate_owners, share),
        exact,
    )


def _imbalance(figures: SizeFigures, share: float) -> float | None:
    """What so large a share of the sets of IDs does not exceed."""
    known = [each for each in figures.imbalances if each is not None]
    return at_share(known, share) if known else None


def _utilisation(figures: SizeFigures, share: float) -> float | None:
    return None if figures.utilisation is None else at_share(figures.utilisation, share)
