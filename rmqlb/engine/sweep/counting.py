"""How many cases of a whole cluster break a limit, without a look at each of them.

A pair of losses breaks a limit of a group or topic by what it takes of that alone. Of most pairs no group or topic
loses to both: they break what the single losses break. The others are looked at one by one. Losses that take the same
of every group and topic are one class, so that a host with one consumer is not counted through beside the consumer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

from rmqlb.engine.sweep.subject import AnySwept
from rmqlb.model.sweep import CaseCounts


def count_cases(number: int, swept: Sequence[AnySwept], at_once: int) -> CaseCounts:
    """The cases of so many single losses."""
    taken: dict[int, list[tuple[int, int]]] = {}  # loss → the places of what it takes something of, with the mask
    for place, subject in enumerate(swept):
        for loss, mask in subject.judged.touching:
            taken.setdefault(loss, []).append((place, mask))
    weights = Counter(tuple(signature) for signature in taken.values())
    signatures = list(weights)
    weight = [weights[signature] for signature in signatures]
    breaks = [{place for place, mask in signature if mask in swept[place].judged.broken} for signature in signatures]
    broken_singles = sum(weight[at] for at, places in enumerate(breaks) if places)
    pairs = comb(number, 2) if at_once > 1 else 0
    broken_pairs = untried = 0
    if at_once > 1:
        broken_pairs = comb(number, 2) - comb(number - broken_singles, 2)
        for first, second, is_broken, is_tried in _together(signatures, swept, breaks):
            untried += 0 if is_tried else weight[first] * weight[second]
            if is_broken != bool(breaks[first] or breaks[second]):
                broken_pairs += weight[first] * weight[second] * (1 if is_broken else -1)
    return CaseCounts(
        all=number + pairs,
        singles=number,
        pairs=pairs,
        tried=number + pairs - untried,
        computed=sum(subject.of.computed for subject in swept),
        broken=broken_singles + broken_pairs,
        broken_singles=broken_singles,
    )


def _together(
    signatures: Sequence[tuple[tuple[int, int], ...]], swept: Sequence[AnySwept], breaks: Sequence[set[int]]
) -> Iterator[tuple[int, int, bool, bool]]:
    """Each pair of classes that take something of the same group or topic: whether it breaks a limit, and was tried.

    A pair that was not tried counts as one that breaks nothing, unless it does so elsewhere: then it is known.
    """
    touches = [{place for place, _ in signature} for signature in signatures]
    members: dict[int, list[tuple[int, int]]] = {}
    for at, signature in enumerate(signatures):
        for place, mask in signature:
            members.setdefault(place, []).append((at, mask))
    found: dict[tuple[int, int], bool] = {}
    untried: set[tuple[int, int]] = set()
    for place, own in members.items():
        judged = swept[place].judged
        broken = judged.broken
        for (first, mask), (second, other) in combinations(own, 2):
            key = first, second
            if (both := mask | other) in judged.untried:
                untried.add(key)
                found.setdefault(key, False)
            elif both in broken:
                found[key] = True
            else:
                found.setdefault(key, False)
    for (first, second), breaks_here in found.items():
        apart = not breaks[first] <= touches[second] or not breaks[second] <= touches[first]
        is_broken = breaks_here or apart
        yield first, second, is_broken, is_broken or (first, second) not in untried
