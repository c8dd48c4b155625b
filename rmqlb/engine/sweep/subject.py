"""One group or topic in all cases: which of them break a limit, and which of those are the least."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from math import comb
from typing import Generic, TypeVar

from msgspec import Struct

from rmqlb.engine.check.policy_limits import Measured, verdict
from rmqlb.engine.sweep.effects import CaseClass, Effect, Takers, bits_of, cases_of
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.limits import measure, measure_topic_without
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.model.checking import FAILED, INCOMPLETE
from rmqlb.model.policy import About, Bound, Limit, Rule

_TOLD_EACH = 100  # results between two notes of progress
MOST_STEPS = 6_000_000
"""Steps of `GroupCases.work` that the pairs of losses of one group take at most; single losses are all tried."""
Held = tuple[Rule, Limit]


Of = TypeVar("Of", GroupCases, TopicCases)


class Judged(Struct, frozen=True):
    """What came of the cases of a group or topic.

    Attributes:
        touching: places of the losses that take something of it, each with its mask.
        classes: mask → the cases that take it, of those that were tried.
        untried: masks of pairs that were not tried, because the group is too large for all of them.
        broken: mask → the limits that it breaks, with what they come to; those broken without a loss left out.
        held: the limits that it is held against, with their rules.
        already: limits that are broken while nothing is lost.
        unknown: limits that could not be judged, with the reason.
    """

    touching: tuple[tuple[int, int], ...]
    classes: Mapping[int, CaseClass]
    broken: Mapping[int, Mapping[int, Bound]]
    held: Sequence[Held]
    already: Mapping[int, Bound]
    unknown: Mapping[int, str]
    untried: frozenset[int] = frozenset()


class Swept(Struct, Generic[Of], frozen=True):
    """A group or topic over all cases.

    Attributes:
        about: group or topic.
        name: its name.
        of: its outcomes.
        judged: what came of them.
    """

    about: About
    name: str
    of: Of
    judged: Judged

    def effect(self, mask: int) -> Effect:
        return self.of.atoms.effect(mask)

    def cases(self, number: int, at_once: int) -> int:
        """How many of the cases of so many losses take something of it."""
        return _with_some(number, len(self.judged.touching), at_once)

    def broken_cases(self, number: int, at_once: int) -> int:
        """How many of them break a limit of it."""
        return self.cases_with(self.judged.broken, number, at_once)

    def cases_with(self, masks: Collection[int], number: int, at_once: int) -> int:
        """How many of them take one of these; a loss that takes nothing of it may come with a single one."""
        singles = sum(self.judged.classes[mask].singles for mask in masks)
        if at_once == 1:
            return singles
        return (
            singles
            + sum(self.judged.classes[mask].pairs for mask in masks)
            + singles * (number - len(self.judged.touching))
        )

    def least(self, place: int) -> list[int]:
        """The masks that break the limit at this place of `held`, and of which no smaller one does."""
        masks = [mask for mask, limits in self.judged.broken.items() if place in limits]
        found: list[int] = []
        by_lowest: dict[int, list[int]] = {}  # lowest bit → those found that have it, the smallest first
        for mask in sorted(masks, key=int.bit_count):
            if not any(_has_smaller(by_lowest.get(bit, ()), mask) for bit in bits_of(mask)):
                found.append(mask)
                by_lowest.setdefault(mask & -mask, []).append(mask)
        return found


def _has_smaller(found: Sequence[int], mask: int) -> bool:
    """One of these masks, the smallest first, is part of this one."""
    size = mask.bit_count()
    smaller = takewhile(lambda each: each.bit_count() < size, found)
    return any(each & mask == each for each in smaller)


AnySwept = Swept[GroupCases] | Swept[TopicCases]


def _with_some(number: int, some: int, at_once: int) -> int:
    pairs = comb(number, 2) - comb(number - some, 2) if at_once > 1 else 0
    return some + pairs


def judge_cases(
    of: GroupCases | TopicCases,
    takers: Takers,
    rules: Sequence[Rule],
    at_once: int,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    most_steps: int = MOST_STEPS,
) -> Judged:
    """A group or topic in every case (raises RmqlbError).

    Args:
        takers: which losses take what.
        rules: those that are about it.
        at_once: how many losses come together at most, 1 or 2.
        progress: gets the number of results so far, and the number in the end.
        most_steps: of the work of pairs.
    """
    touching = of.atoms.touching(takers)
    every = cases_of(touching, at_once)
    classes = every if isinstance(of, TopicCases) else _tried(of, every, most_steps)
    held = [(rule, limit) for rule in rules for limit in rule.limits]
    already: dict[int, Bound] = {}
    unknown: dict[int, str] = {}
    for place, (_, limit) in enumerate(held):
        found = _measured(of, limit, Effect())
        came_to = verdict(limit, found)
        if came_to == FAILED and found.value is not None:
            already[place] = found.value
        elif came_to == INCOMPLETE and found.missing is not None:
            unknown[place] = found.missing
    broken: dict[int, dict[int, Bound]] = {}
    judged: dict[Effect, dict[int, Bound]] = {}
    left = [(place, limit) for place, (_, limit) in enumerate(held) if place not in already]
    for done, mask in enumerate(classes):
        if done % _TOLD_EACH == 0:
            progress(done, len(classes))
        effect = of.atoms.effect(mask)
        if effect not in judged:
            of.outcome(effect)
            judged[effect] = _broken(of, effect, left, unknown)
        if judged[effect]:
            broken[mask] = judged[effect]
    return Judged(touching, classes, broken, held, already, unknown, frozenset(every.keys() - classes.keys()))


def _tried(of: GroupCases, every: Mapping[int, CaseClass], most_steps: int) -> Mapping[int, CaseClass]:
    """All single losses, and as many pairs as the work allows: first those that take most brokers, evenly of the rest.

    The bound counts work and not time, so that equal input has equal results.
    """
    room = most_steps // of.work
    pairs = [mask for mask, cases in every.items() if not cases.singles]
    if len(pairs) <= room:
        return every
    by_brokers: dict[int, list[int]] = {}
    for mask in pairs:
        by_brokers.setdefault((mask >> len(of.atoms.client_ids)).bit_count(), []).append(mask)
    chosen: set[int] = set()
    for _, masks in sorted(by_brokers.items(), reverse=True):
        number = min(len(masks), room - len(chosen))
        chosen.update(masks[at * len(masks) // number] for at in range(number))
    return {mask: cases for mask, cases in every.items() if cases.singles or mask in chosen}


def _broken(
    of: GroupCases | TopicCases, effect: Effect, limits: Sequence[tuple[int, Limit]], unknown: dict[int, str]
) -> dict[int, Bound]:
    found: dict[int, Bound] = {}
    for place, limit in limits:
        measured = _measured(of, limit, effect)
        came_to = verdict(limit, measured)
        if came_to == FAILED and measured.value is not None:
            found[place] = measured.value
        elif came_to == INCOMPLETE and measured.missing is not None and limit.name != "imbalance":
            unknown.setdefault(place, measured.missing)  # without a consumer there is no imbalance to judge
    return found


def _measured(of: GroupCases | TopicCases, limit: Limit, effect: Effect) -> Measured:
    if isinstance(of, GroupCases):
        return measure(limit, of, effect)
    return measure_topic_without(limit, of, effect)


def rules_for(rules: Sequence[Rule], about: About, name: str) -> tuple[Rule, ...]:
    """Those of a policy that are about a group or topic."""
    return tuple(rule for rule in rules if rule.about == about and rule.takes(name))
