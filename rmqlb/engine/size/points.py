"""A group of one size, held against what is asked of it, after losses too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from msgspec import Struct

from rmqlb.engine.size.figures import SizeFigures, Sizes, at_share, broken
from rmqlb.engine.size.losses import losses
from rmqlb.model.group_size import AfterLoss, Limit, SizeLimits, SizePoint

_ORDER: tuple[Limit, ...] = get_args(Limit)


class Tried(Struct, frozen=True):
    """What is known of a strategy on a number of queues."""

    sizes: Sizes
    of_brokers: Mapping[str, Sizes | None]  # lost broker → what is left; None when no queue is


class _Loss(Struct, frozen=True):
    """A loss, and with which sets of IDs what does not hold afterwards."""

    limit: Limit
    lost_consumers: int
    lost_broker: str | None
    figures: SizeFigures | None  # None when nothing is left
    fails: Mapping[Limit, set[int]]

    @property
    def badness(self) -> tuple[int, float]:
        if self.figures is None:
            return len(_ORDER), 0.0
        return len(self.fails), max(each or 0.0 for each in self.figures.imbalances)


def point(tried: Tried, consumers: int, limits: SizeLimits, seed: int) -> SizePoint:
    """A group of so many consumers (raises AllocationError).

    Losses are not looked at where with none of several sets of IDs everything holds without one.
    """
    figures = tried.sizes.of(consumers)
    trials, enough = len(figures.most), limits.share
    fails = broken(figures, limits)
    bad: set[int] = set().union(*fails.values())
    worst: dict[Limit, _Loss] = {}
    if len(bad) < trials or not tried.sizes.trials:
        for loss in _losses(tried, consumers, limits, seed):
            lost = set(range(trials)) if loss.figures is None else set().union(*loss.fails.values())
            if lost:
                fails.setdefault(loss.limit, set()).update(lost)
            if loss.limit not in worst or loss.badness > worst[loss.limit].badness:
                worst[loss.limit] = loss
        bad = bad.union(*fails.values())
    share = 1 - len(bad) / trials
    satisfied = share >= enough
    failing = [limit for limit in _ORDER if 1 - len(fails.get(limit, ())) / trials < enough]
    if not satisfied and not failing:  # each limit alone would hold for enough of them
        failing = [limit for limit in _ORDER if limit in fails]
    return SizePoint(
        consumers=consumers,
        satisfied=satisfied,
        fails=tuple(failing),
        share=share,
        after_loss=_after(worst.get("survive"), enough),
        after_broker_loss=_after(worst.get("survive-broker"), enough),
        imbalance=_imbalance(figures, enough),
        idle=at_share(figures.idle, enough),
        utilisation=_utilisation(figures, enough),
    )


def _losses(tried: Tried, consumers: int, limits: SizeLimits, seed: int) -> Iterator[_Loss]:
    for number in range(1, limits.survive + 1):
        if number >= consumers:
            yield _Loss("survive", number, None, None, {})
            break
        # Where only places count, any so many lost consumers leave the same.
        which = losses(consumers, number, seed) if tried.sizes.trials else (tuple(range(number)),)
        for lost in which:
            figures = tried.sizes.of(consumers, lost)
            yield _Loss("survive", number, None, figures, broken(figures, limits))
    for broker, sizes in tried.of_brokers.items():
        left = None if sizes is None else sizes.of(consumers)
        yield _Loss("survive-broker", 0, broker, left, {} if left is None else broken(left, limits))


def _after(loss: _Loss | None, share: float) -> AfterLoss | None:
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
        tuple(limit for limit in _ORDER if limit in loss.fails),
    )


def _imbalance(figures: SizeFigures, share: float) -> float | None:
    """What so large a share of the sets of IDs does not exceed."""
    known = [each for each in figures.imbalances if each is not None]
    return at_share(known, share) if known else None


def _utilisation(figures: SizeFigures, share: float) -> float | None:
    return None if figures.utilisation is None else at_share(figures.utilisation, share)
