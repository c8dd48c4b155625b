"""The lines above the tables of a group's size: the answer, why no fewer, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rmqlb.model.finding import WARNING
from rmqlb.model.group_size import AfterLoss, GroupSize, Limit, SizeLimits, SizePoint
from rmqlb.model.words import counted
from rmqlb.views.report import BETWEEN, percent

_MOST_RANGES = 12
_LOSSES = {
    "bounded": "a bound on the worst loss decides: more sizes than these may satisfy all",
    "drawn": "some of the losses were looked at, drawn at random: a worse one may exist",
}


def size_facts(size: GroupSize) -> tuple[str, ...]:
    """The answer and why the next smaller size fails; then the sizes for autoscalers, and how certain all of it is."""
    lines = [list(_for_autoscalers(size)), asked(size.limits), list(_certainty(size)), list(_now(size))]
    return (headline(size), *(f"  {BETWEEN.join(parts)}" for parts in lines if parts))


def headline(size: GroupSize) -> str:
    """How many consumers, or which size comes nearest and what blocks it."""
    group = size.group or "the group"
    looked = f"{size.curve[0].consumers} to {size.curve[-1].consumers} consumers"
    best = size.best
    if size.consumers is None:
        why = "; ".join(reasons(best, size))
        which = looked if len(size.curve) > 1 else counted(best.consumers, "consumer")
        return f"{group}: none of {which} satisfies all; {_named(size, best)} come nearest, but {why}"
    verb = "satisfies" if best.consumers == 1 else "satisfy"
    return f"{group}: {_named(size, best)} {verb} all{_why_no_fewer(size)}"


def size_gravity(size: GroupSize) -> str:
    """Warning when nothing satisfies, otherwise in order."""
    return WARNING if size.consumers is None else "inOrder"


def reasons(point: SizePoint, size: GroupSize) -> Iterator[str]:
    """Why a size of the curve fails, in the order of the limits; nothing when it does not."""
    for limit in point.fails:
        if limit == "survive":
            yield _after(point.after_loss, size)
        elif limit == "survive-broker":
            yield _after(point.after_broker_loss, size)
        else:
            yield _broken(limit, point, size.limits)


def asked(limits: SizeLimits) -> list[str]:
    """What was asked for, a text each."""
    found = []
    if limits.max_imbalance is not None:
        found.append(f"imbalance at most {limits.max_imbalance:g}")
    if limits.no_idle:
        found.append("no idle consumer")
    if limits.max_utilisation is not None:
        found.append(f"utilisation at most {100 * limits.max_utilisation:g}%")
    if limits.survive:
        found.append(f"the same with up to {counted(limits.survive, 'consumer')} lost")
    if limits.survive_broker:
        found.append("the same with any broker lost")
    if limits.share < 1:
        found.append(f"for {100 * limits.share:g}% of sets of client IDs")
    return [f"asked: {found[0]}", *found[1:]] if found else []


def ranges(numbers: Sequence[int], most: int = _MOST_RANGES) -> str:
    """Numbers in a few words.

    >>> ranges([1, 2, 3, 5, 8, 9]), ranges([2, 4, 6], most=2), ranges([])
    ('1-3, 5, 8-9', '2, 4 and 1 more', 'none')
    """
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(numbers), start=1) if other > one + 1), len(numbers)]
    parts = [numbers[begin:end] for begin, end in pairwise(starts) if end > begin]
    texts = [f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts[:most]]
    left = sum(map(len, parts[most:]))
    return (", ".join(texts) or "none") + (f" and {left} more" if left else "")


def _named(size: GroupSize, point: SizePoint) -> str:
    text = counted(point.consumers, "consumer")
    if size.queues_per_broker is not None:
        text += f" with {counted(size.queues_per_broker, 'queue')} per broker"
    if len({each.strategy for each in size.candidates}) > 1:
        text += f" under {size.strategy}"
    return text


def _why_no_fewer(size: GroupSize) -> str:
    smaller = size.at(size.best.consumers - 1)
    if smaller is None:
        return "" if size.best.consumers == 1 else "; fewer were not looked at"
    do = "does" if smaller.consumers == 1 else "do"
    return f"; {smaller.consumers} {do} not: {'; '.join(reasons(smaller, size))}"


def _broken(limit: Limit, found: SizePoint | AfterLoss, limits: SizeLimits) -> str:
    numbers: dict[Limit, tuple[int, str, str]] = {
        "unassigned": (found.unassigned, "queue", " unassigned"),
        "duplicate-owners": (found.duplicate_owners, "queue", " with duplicate owners"),
        "no-idle": (found.idle, "idle consumer", ""),
    }
    if limit in numbers:
        number, noun, how = numbers[limit]
        return counted(number, noun) + how if number else f"1 {noun}{how} or more with some sets of client IDs"
    if limit == "max-utilisation":
        return f"utilisation {_above(100 * (found.utilisation or 0), 100 * (limits.max_utilisation or 0), '%')}"
    if found.imbalance is None:
        return "no queue is left"
    return f"imbalance {_above(found.imbalance, limits.max_imbalance or 0)}"


def _above(value: float, limit: float, unit: str = "") -> str:
    """A figure that is too large, with as many digits as show it.

    >>> _above(1.28, 1.1), _above(1.1004, 1.1), _above(95, 80, "%"), _above(1.05, 1.1)
    ('1.28 > 1.1', '1.1004 > 1.1', '95% > 80%', 'above 1.1 with some sets of client IDs')
    """
    if value <= limit:  # what the share of them that is asked for does not exceed
        return f"above {limit:g}{unit} with some sets of client IDs"
    digits = next((d for d in range(0 if unit else 2, 9) if round(value, d) > limit), 9)
    return f"{value:.{digits}f}{unit} > {limit:g}{unit}"


def _after(loss: AfterLoss | None, size: GroupSize) -> str:
    if loss is None:
        return "losses were not looked at"
    lost = f"broker {loss.lost_broker}" if loss.lost_broker is not None else counted(loss.lost_consumers, "consumer")
    broken = [limit for limit in loss.fails if limit not in ("survive", "survive-broker")]
    left = [_broken(limit, loss, size.limits) for limit in broken]
    if not left:
        left = ["no queue is left" if loss.lost_broker is not None else "no consumer is left"]
    is_bound = not loss.exact and size.losses == "bounded"
    return f"with {lost} lost {'up to ' * is_bound}{' and '.join(left)}"


def _for_autoscalers(size: GroupSize) -> Iterator[str]:
    counts = size.replica_counts
    looked = f"{size.curve[0].consumers} to {size.curve[-1].consumers}"
    if counts.min is not None and len(size.curve) > 1:
        yield f"replica counts that satisfy all: {ranges(counts.allowed)}"
        yield f"looked at {looked}"


def _certainty(size: GroupSize) -> Iterator[str]:
    queues = sum(topic.queues for topic in size.topics)
    library = "" if size.sdk == "java" else f" of {size.sdk} consumers"
    yield f"{size.strategy}{library}, {counted(queues, 'queue')} of {counted(len(size.topics), 'topic')}"
    if size.every_order:
        yield "holds for every order of client IDs"
    elif size.limits.share < 1 or not size.best.satisfied:
        yield f"holds for {percent(size.best.share)} of {size.trials} sets of client IDs that were tried"
    else:
        yield f"holds for each of {size.trials} sets of client IDs that were tried"
    if size.mixed_subscriptions:
        yield "consumers subscribe to different topics: each size keeps those present, and further ones read all topics"
    if size.losses != "counted":
        first = next(point for point in size.curve if point.after_loss is not None and not point.after_loss.exact)
        yield f"from {counted(first.consumers, 'consumer')} on, {_LOSSES[size.losses]}"


def _now(size: GroupSize) -> Iterator[str]:
    # Where IDs decide, these figures are those of other consumers, unless the present ones were kept.
    now = (
        size.at(size.consumers_now)
        if size.consumers_now is not None and (size.every_order or size.mixed_subscriptions)
        else None
    )
    if now is None or now.consumers == size.consumers:
        return
    why = "; ".join(reasons(now, size))
    verb = "satisfies" if now.consumers == 1 else "satisfy"
    does = f"{verb} all too" if now.satisfied else f"{'does' if now.consumers == 1 else 'do'} not: {why}"
    where = "" if size.queues_per_broker is None else " on these queues"
    yield f"now {counted(now.consumers, 'consumer')}, which {does}{where}"
