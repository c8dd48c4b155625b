"""Every case, one failure or two at once, judged for one group or topic, and counted for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, takewhile
from math import comb
from typing import Any

from msgspec import Struct

from rmqlb.engine.check import verdict
from rmqlb.engine.sweep_failures.failures import Failure, Thing
from rmqlb.engine.sweep_failures.subjects import AnySubject, Effect, bits_of
from rmqlb.model.check_result import FAILED, INCOMPLETE
from rmqlb.model.policy import Bound, Limit, Rule
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.sweep_failures import CaseCounts, Loss

MOST_STEPS = 6_000_000
"""Steps of `Subject.work` for the pairs of failures of one group; single failures are all tried."""
_PROGRESS_EVERY = 100

ByThing = Mapping[Thing, Sequence[int]]
"""Process or address → the failures that take it, by their numbers."""
Broken = Mapping[int, Bound]
"""Number of a limit → the value that breaks it."""


def by_thing(failures: Sequence[Failure]) -> ByThing:
    """The failures that take each process and address."""
    found: dict[Thing, list[int]] = {}
    for number, failure in enumerate(failures):
        for thing in failure.things:
            found.setdefault(thing, []).append(number)
    return found


def touching(subject: AnySubject, failures: ByThing) -> list[tuple[int, int]]:
    """The failures that take something of a group or topic, in order, each with its mask."""
    found: Counter[int] = Counter()
    for thing, bit in subject.bits.items():
        for number in failures.get(thing, ()):
            found[number] |= bit
    return sorted(found.items())


class CaseClass(Struct):
    """All cases with the same mask.

    Attributes:
        first: the first case with the fewest failures, by their numbers.
        singles: how many single failures.
        pairs: how many pairs in which each failure takes something.
    """

    first: tuple[int, ...]
    singles: int = 0
    pairs: int = 0

    @property
    def fewest(self) -> int:
        """How many cases have the fewest failures."""
        return self.singles or self.pairs


def classes_of(own: Sequence[tuple[int, int]], at_once: int) -> dict[int, CaseClass]:
    """Mask → its cases, single failures first.

    Pairs whose second failure takes nothing are left out: they take what the first one takes.

    Args:
        own: as `touching` returns them.
        at_once: 2 for pairs as well, otherwise 1.
    """
    numbers: dict[int, list[int]] = {}
    for number, mask in own:
        numbers.setdefault(mask, []).append(number)
    found = {mask: CaseClass(first=(some[0],), singles=len(some)) for mask, some in numbers.items()}
    if at_once == 1:
        return found
    for mask, some in numbers.items():
        found[mask].pairs += comb(len(some), 2)
    for (mask, some), (other, more) in combinations(numbers.items(), 2):
        found.setdefault(mask | other, CaseClass((some[0], more[0]))).pairs += len(some) * len(more)
    return found


class Cases(Struct, frozen=True):
    """The judged cases of a group or topic; another process may have judged them.

    Attributes:
        touching: as the function returns them.
        classes: mask → its cases, of the masks that were tried.
        untried: masks of pairs that were not tried, because the group is too large for all of them.
        limits: the limits that apply, with their rules.
        already: those that are broken while nothing is lost.
        broken: mask → the other limits that it breaks.
        unknown: number of a limit → why it could not be judged.
        outcomes: the computed outcomes.
    """

    touching: Sequence[tuple[int, int]]
    classes: Mapping[int, CaseClass]
    untried: frozenset[int]
    limits: Sequence[tuple[Rule, Limit]]
    already: Broken
    broken: Mapping[int, Broken]
    unknown: Mapping[int, str]
    outcomes: Mapping[Effect, Any]

    def count(self, failures: int, at_once: int) -> int:
        """How many cases of so many failures take something."""
        pairs = comb(failures, 2) - comb(failures - len(self.touching), 2) if at_once > 1 else 0
        return len(self.touching) + pairs

    def count_with(self, masks: Collection[int], failures: int, at_once: int) -> int:
        """How many cases have one of these masks; a single failure with one may join a failure that takes nothing."""
        singles = sum(self.classes[mask].singles for mask in masks)
        if at_once == 1:
            return singles
        pairs = sum(self.classes[mask].pairs for mask in masks)
        return singles + pairs + singles * (failures - len(self.touching))

    def smallest(self, limit: int) -> list[int]:
        """The masks that break this limit while no smaller part of them does."""
        masks = [mask for mask, limits in self.broken.items() if limit in limits]
        found: list[int] = []
        by_lowest: dict[int, list[int]] = {}  # lowest bit → the found masks that have it, the smallest first
        for mask in sorted(masks, key=int.bit_count):
            if not any(_has_part(by_lowest.get(bit, ()), mask) for bit in bits_of(mask)):
                found.append(mask)
                by_lowest.setdefault(mask & -mask, []).append(mask)
        return found


def _has_part(found: Sequence[int], mask: int) -> bool:
    smaller = takewhile(lambda each: each.bit_count() < mask.bit_count(), found)
    return any(each & mask == each for each in smaller)


def judge(
    subject: AnySubject,
    rules: Sequence[Rule],
    failures: ByThing,
    at_once: int = 2,
    progress: Progress = no_progress,
    most_steps: int = MOST_STEPS,
) -> Cases:
    """Judge a group or topic in every case (raises RmqlbError).

    Args:
        rules: those that are about it.
        at_once: how many failures come together at most, 1 or 2.
        most_steps: of the work for pairs.
    """
    own = touching(subject, failures)
    classes = classes_of(own, at_once)
    tried = _tried(subject, classes, most_steps)
    limits = [(rule, limit) for rule in rules for limit in rule.limits]
    unknown: dict[int, str] = {}
    already = _broken(subject, Effect(), dict(enumerate(limit for _, limit in limits)), unknown)
    others = {number: limit for number, (_, limit) in enumerate(limits) if number not in already}
    by_effect: dict[Effect, Broken] = {}
    broken: dict[int, Broken] = {}
    for done, mask in enumerate(tried):
        if done % _PROGRESS_EVERY == 0:
            progress(subject.name, done, len(tried))
        effect = subject.effect(mask)
        if effect not in by_effect:
            subject.outcome(effect)
            by_effect[effect] = _broken(subject, effect, others, unknown)
        if by_effect[effect]:
            broken[mask] = by_effect[effect]
    untried = frozenset(classes.keys() - tried.keys())
    return Cases(own, tried, untried, limits, already, broken, unknown, subject.outcomes)


def _tried(subject: AnySubject, classes: Mapping[int, CaseClass], most_steps: int) -> Mapping[int, CaseClass]:
    """All single failures, and as many pairs as the work allows: first those that take most brokers, then evenly.

    The bound counts work and not time, so that equal input has equal results.
    """
    pairs = [mask for mask, cases in classes.items() if not cases.singles]
    room = most_steps // subject.work if subject.work else len(pairs)
    if len(pairs) <= room:
        return classes
    by_brokers: dict[int, list[int]] = {}
    for mask in pairs:
        by_brokers.setdefault((mask >> len(subject.client_ids)).bit_count(), []).append(mask)
    chosen: set[int] = set()
    for _, masks in sorted(by_brokers.items(), reverse=True):
        number = min(len(masks), room - len(chosen))
        chosen.update(masks[at * len(masks) // number] for at in range(number))
    return {mask: cases for mask, cases in classes.items() if cases.singles or mask in chosen}


def _broken(
    subject: AnySubject, effect: Effect, limits: Mapping[int, Limit], unknown: dict[int, str]
) -> dict[int, Bound]:
    """The limits that are broken after a failure; adds those that could not be judged to `unknown`."""
    found: dict[int, Bound] = {}
    for number, limit in limits.items():
        measured = subject.measure(limit, effect)
        judged = verdict(limit, measured)
        if judged == FAILED and measured.value is not None:
            found[number] = measured.value
        elif judged == INCOMPLETE and measured.missing is not None and not (limit.name == "imbalance" and effect.any):
            unknown.setdefault(number, measured.missing)  # a failure that leaves no owner leaves no imbalance to judge
    return found


def count_cases(failures: int, judged: Sequence[Cases], at_once: int) -> CaseCounts:
    """Count the cases that break a limit of any group or topic, without a look at each of them.

    A pair breaks a limit of a group or topic by what it takes of that alone. Most pairs take nothing of the same group
    or topic, and break what their single failures break. The others are looked at one by one, but failures that take
    the same everywhere, such as a host and the one consumer on it, only once.
    """
    masks: dict[int, list[tuple[int, int]]] = {}  # failure → each group or topic that it touches, with the mask
    for place, cases in enumerate(judged):
        for number, mask in cases.touching:
            masks.setdefault(number, []).append((place, mask))
    weights = Counter(map(tuple, masks.values()))
    kinds = list(weights)
    weight = list(weights.values())
    breaks = [{place for place, mask in kind if mask in judged[place].broken} for kind in kinds]
    broken_singles = sum(n for n, places in zip(weight, breaks, strict=True) if places)
    pairs = broken_pairs = untried = 0
    if at_once > 1:
        pairs = comb(failures, 2)
        broken_pairs = pairs - comb(failures - broken_singles, 2)
        for first, second, is_broken, is_tried in _touching_together(kinds, judged, breaks):
            number = weight[first] * weight[second]
            untried += 0 if is_tried else number
            broken_pairs += number * (is_broken - bool(breaks[first] or breaks[second]))
    return CaseCounts(
        all=failures + pairs,
        singles=failures,
        pairs=pairs,
        tried=failures + pairs - untried,
        computed=sum(len(cases.outcomes) for cases in judged),
        broken=broken_singles + broken_pairs,
        broken_singles=broken_singles,
    )


def _touching_together(
    kinds: Sequence[Sequence[tuple[int, int]]], judged: Sequence[Cases], breaks: Sequence[set[int]]
) -> Iterator[tuple[int, int, bool, bool]]:
    """Each two kinds of failures that touch the same group or topic: whether they break a limit, and were tried.

    A pair that was not tried for one group or topic, and breaks a limit of another, counts as tried.
    """
    touches = [{place for place, _ in kind} for kind in kinds]
    by_place: dict[int, list[tuple[int, int]]] = {}
    for at, kind in enumerate(kinds):
        for place, mask in kind:
            by_place.setdefault(place, []).append((at, mask))
    together: dict[tuple[int, int], bool] = {}
    untried: set[tuple[int, int]] = set()
    for place, own in by_place.items():
        for (first, mask), (second, other) in combinations(own, 2):
            pair, both = (first, second), mask | other
            together[pair] = together.get(pair, False) or both in judged[place].broken
            if both in judged[place].untried:
                untried.add(pair)
    for (first, second), is_broken_here in together.items():
        elsewhere = not breaks[first] <= touches[second] or not breaks[second] <= touches[first]
        is_broken = is_broken_here or elsewhere
        yield first, second, is_broken, is_broken or (first, second) not in untried


def losses_of(case: Sequence[int], failures: Sequence[Failure]) -> tuple[Loss, ...]:
    """The losses of a case, from the numbers of its failures."""
    return tuple(failures[number].loss for number in case)
