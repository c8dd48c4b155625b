"""What a sweep says in sentences and cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rmqlb.model.policy import LIMITS, Bound
from rmqlb.model.sweep_failures import (
    LOSS_KINDS,
    BrokenAlready,
    Counterexample,
    FailureSweep,
    GroupOutcome,
    Loss,
    TopicOutcome,
    Worst,
)
from rmqlb.model.words import counted, messages
from rmqlb.views.check import allowed_text, amount_text


def losses_text(losses: Sequence[Loss]) -> str:
    """What is lost.

    >>> losses_text([Loss("broker", "a"), Loss("host", "10.0.0.1")])
    'broker a and host 10.0.0.1'
    """
    return " and ".join(
        f"master of {loss.name}" if loss.kind == "master" else f"{loss.kind} {loss.name}" for loss in losses
    )


def breaks_text(one: Counterexample | BrokenAlready) -> str:
    """Which limit is broken, and by how much."""
    return f"{one.about} {one.name}: {limit_text(one.limit, one.value, one.bound)}"


def limit_text(limit: str, value: Bound, bound: Bound) -> str:
    """A limit with what it comes to and what it allows."""
    unit = LIMITS[limit].unit
    return f"{limit} is {amount_text(unit, value)} ({allowed_text(unit, bound)})"


def alike_text(one: Counterexample) -> str:
    """How many cases there are with as many losses of the same kinds that come to the same; empty with no others."""
    if one.cases == 1:
        return ""
    return f"one of {one.cases:,} cases alike"


def many(number: int, noun: str) -> str:
    """A number of what may be millions.

    >>> many(1, "case"), many(8130528, "case")
    ('1 case', '8,130,528 cases')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def costs_text(one: Counterexample) -> str:
    """What is left of the group or topic, and what it costs."""
    if one.group is not None:
        return ", ".join(_group_costs(one.group))
    return ", ".join(_topic_costs(one.topic)) if one.topic is not None else ""


def _group_costs(o: GroupOutcome) -> Iterator[str]:
    if not o.consumers:
        yield f"no consumer left, {counted(o.queues, 'queue')} unassigned"
        return
    yield f"{counted(o.consumers, 'consumer')} left with {counted(o.queues, 'queue')}"
    if o.unassigned:
        yield f"{o.unassigned} unassigned"
    if o.idle:
        yield f"{o.idle} idle"
    if o.imbalance is not None:
        yield f"imbalance {o.imbalance:.4g}"
    yield f"{counted(o.moved, 'queue')} {'moves' if o.moved == 1 else 'move'}"
    if o.lag_moved:
        yield f"{messages(o.lag_moved, 'waiting ')} in them"
    if o.without_lock:
        yield f"{counted(o.without_lock, 'queue')} that no broker locks"


def _topic_costs(o: TopicOutcome) -> Iterator[str]:
    yield f"{counted(o.writable_brokers, 'writable broker')} left"
    yield counted(o.writable_queues, "writable queue")


def kinds_text(sweep: FailureSweep) -> str:
    """How many losses of each kind."""
    numbers = Counter(loss.kind for loss in sweep.losses)
    return ", ".join(counted(numbers[kind], kind) for kind in LOSS_KINDS if numbers[kind])


def worst_text(worst: Worst | None) -> str | None:
    """Which losses give the largest of a figure."""
    return None if worst is None else losses_text(worst.losses)
