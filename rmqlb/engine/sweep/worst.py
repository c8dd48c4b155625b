"""The worst of each group and topic over all cases, and the least losses that break a limit, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from rmqlb.engine.sweep.commands import Commands
from rmqlb.engine.sweep.effects import CaseClass, Effect
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.losses import Taken
from rmqlb.engine.sweep.subject import AnySwept, Swept
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.model.finding import SEVERITIES
from rmqlb.model.policy import Bound
from rmqlb.model.sweep import (
    BrokenAlready,
    CaseCounts,
    Counterexample,
    GroupOutcome,
    GroupWorst,
    Loss,
    TopicOutcome,
    TopicWorst,
    Worst,
)

_GRAVE = ("writableBrokers", "unassigned", "withoutLock", "minConsumers", "duplicateOwners", "minBrokers")
"""Limits whose breach stops messages, the gravest first; what others measure costs balance or time."""


def losses_of(case: Sequence[int], taken: Sequence[Taken]) -> tuple[Loss, ...]:
    """The losses of a case, by their places."""
    return tuple(taken[place].loss for place in case)


def counterexamples(swept: AnySwept, taken: Sequence[Taken], commands: Commands | None) -> Iterator[Counterexample]:
    """The least losses of a group or topic that break a limit; those alike together, with the most moves for all.

    Alike are as many losses of the same kinds that break the same limit with the same value.
    """
    for place, (rule, limit) in enumerate(swept.judged.held):
        alike: dict[tuple[object, ...], list[int]] = {}
        for mask in swept.least(place):
            kinds = tuple(loss.kind for loss in losses_of(swept.judged.classes[mask].first, taken))
            alike.setdefault((kinds, swept.judged.broken[mask][place]), []).append(mask)
        for (_, value), masks in alike.items():
            mask = max(masks, key=lambda each: _moved(swept, each))
            effect, case = swept.effect(mask), swept.judged.classes[mask].first
            outcome, lost = swept.of.outcome(effect), [taken[each] for each in case]
            yield Counterexample(
                rule=rule.name,
                severity=rule.severity,
                about=swept.about,
                name=swept.name,
                limit=limit.name,
                bound=limit.bound,
                value=value,  # type: ignore[arg-type]
                losses=losses_of(case, taken),
                cases=sum(swept.judged.classes[each].cases for each in masks),
                group=outcome if isinstance(outcome, GroupOutcome) else None,
                topic=outcome if isinstance(outcome, TopicOutcome) else None,
                command=None if commands is None else commands.in_full(swept.of, effect, lost),
                gap_command=None if commands is None else commands.gap(swept.of, effect, lost),
            )


def _moved(swept: AnySwept, mask: int) -> int:
    outcome = swept.of.outcome(swept.effect(mask))
    return outcome.moved if isinstance(outcome, GroupOutcome) else 0


def badness(one: Counterexample) -> tuple[object, ...]:
    """Sorts the worst first: by severity, by what stops messages, by fewer losses, by how far beyond the limit."""
    grave = _GRAVE.index(one.limit) if one.limit in _GRAVE else len(_GRAVE)
    losses = [(loss.kind, loss.name) for loss in one.losses]
    return SEVERITIES.index(one.severity), grave, len(one.losses), -_beyond(one.value, one.bound), one.name, losses


def _beyond(value: Bound, bound: Bound) -> float:
    if isinstance(value, int | float) and isinstance(bound, int | float):
        return abs(value - bound)
    return float(len(value)) if isinstance(value, tuple) else 0.0


def already_broken(swept: AnySwept) -> Iterator[BrokenAlready]:
    """The limits that are broken while nothing is lost."""
    for place, value in swept.judged.already.items():
        rule, limit = swept.judged.held[place]
        yield BrokenAlready(rule.name, rule.severity, swept.about, swept.name, limit.name, limit.bound, value)


Figure = Callable[[GroupOutcome], float | None]
_FIGURES: dict[str, Figure] = {
    "unassigned": lambda o: o.unassigned,
    "imbalance": lambda o: 0 if o.imbalance is None else o.imbalance,
    "idle": lambda o: o.idle,
    "moved": lambda o: o.moved,
    "lag_moved": lambda o: o.lag_moved,
    "without_lock": lambda o: o.without_lock,
}


def group_worst(swept: Swept[GroupCases], taken: Sequence[Taken], counts: CaseCounts, at_once: int) -> GroupWorst:
    """The worst of a group."""
    cases = swept.of
    now = cases.outcome(Effect())
    found = [(cases.outcome(swept.effect(mask)), case) for mask, case in _fewest_first(swept)]
    basis: Literal["predicted", "assumed"] = "assumed" if cases.basis == "assumed" else "predicted"
    return GroupWorst(
        group=swept.name,
        strategy=cases.members.name,
        basis=basis,
        consumers=now.consumers,
        queues=now.queues,
        cases=swept.cases(counts.singles, at_once),
        computed=cases.computed - 1,
        broken=swept.broken_cases(counts.singles, at_once),
        **{name: _worst(figure, now, found, taken) for name, figure in _FIGURES.items()},
    )


def worst_group(worst: GroupWorst) -> tuple[object, ...]:
    """Sorts the worst group first: by cases that break a limit of it, then by unassigned queues and imbalance."""
    figures = (worst.unassigned, worst.imbalance)
    return -worst.broken, *(0 if each is None else -each.value for each in figures), worst.group


def worst_topic(worst: TopicWorst) -> tuple[object, ...]:
    """Sorts the worst topic first."""
    return -worst.broken, worst.least_writable.value, worst.topic


def _fewest_first(swept: AnySwept) -> list[tuple[int, CaseClass]]:
    return sorted(swept.judged.classes.items(), key=lambda item: len(item[1].first))


def _worst(
    figure: Figure, now: GroupOutcome, found: Sequence[tuple[GroupOutcome, CaseClass]], taken: Sequence[Taken]
) -> Worst | None:
    value, losses = figure(now), tuple[Loss, ...]()
    for outcome, case in found:
        other = figure(outcome)
        if other is None or value is None:
            return None
        if other > value:
            value, losses = other, losses_of(case.first, taken)
    return None if value is None else Worst(value, losses)


def topic_worst(swept: Swept[TopicCases], taken: Sequence[Taken], counts: CaseCounts, at_once: int) -> TopicWorst:
    """The worst of a topic."""
    cases = swept.of
    now = cases.outcome(Effect())
    least, losses, unwritable = now.writable_brokers, tuple[Loss, ...](), set()
    for mask, case in _fewest_first(swept):
        outcome = cases.outcome(swept.effect(mask))
        if outcome.writable_brokers < least:
            least, losses = outcome.writable_brokers, losses_of(case.first, taken)
        if not outcome.writable_queues:
            unwritable.add(mask)
    return TopicWorst(
        topic=swept.name,
        writable_brokers=now.writable_brokers,
        cases=swept.cases(counts.singles, at_once),
        unwritable=swept.cases_with(unwritable, counts.singles, at_once),
        broken=swept.broken_cases(counts.singles, at_once),
        least_writable=Worst(least, losses),
    )
