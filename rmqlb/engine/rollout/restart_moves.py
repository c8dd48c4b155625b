"""A mere restart: how often queues change owners in the course of it, and in which order they do so least.

Rule of this file: everything is at rest, before a member goes down, while it is away, and after it is back. With ids
that stay and one member at a time every order moves as many queues; ids that change, and members that are away
together, make the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import comb

from rmqlb.engine.rollout.rollout_model import RolloutModel, assigned, members_when
from rmqlb.model.route import TopicRouteData

EXACT_WORK = 60_000  # queues that a search may assign; about half a second

_Owners = list[tuple[str, ...]]


def fewest_moves(
    rollout: RolloutModel, routes: Sequence[TopicRouteData], at_once: int
) -> tuple[tuple[str, ...], int] | None:
    """The order in which queues change owners least often, and how often; None when there are too many to search."""
    number, queues = len(rollout.client_ids), sum(len(route.subscribe_queues()) for route in routes)
    if queues == 0:  # nothing to assign: in every order nothing moves
        return tuple(rollout.client_ids), 0
    if _work(number, at_once, queues) > EXACT_WORK:
        return None
    moves = Moves(rollout, routes)
    best: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {frozenset(): (0, ())}
    for done in range(0, number, at_once):
        longer: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {}
        for changed, (cost, order) in best.items():
            left = [client_id for client_id in rollout.client_ids if client_id not in changed]
            for away in combinations(left, min(at_once, number - done)):
                reached = changed.union(away)
                candidate = (cost + moves.of(changed, frozenset(away)), (*order, *away))
                if reached not in longer or candidate[0] < longer[reached][0]:
                    longer[reached] = candidate
        best = longer
    cost, order = best[frozenset(rollout.client_ids)]
    return order, cost


class Moves:
    """How often queues change owners, each list of members assigned once."""

    def __init__(self, rollout: RolloutModel, routes: Sequence[TopicRouteData]) -> None:
        @cache
        def owners(changed: frozenset[str], away: frozenset[str]) -> _Owners:
            assignments = assigned(routes, members_when(rollout, changed, away))
            return [
                assignment.owners[queue]
                for route, assignment in zip(routes, assignments, strict=True)
                for queue in route.subscribe_queues()
            ]

        self._owners = owners

    def of(self, changed: frozenset[str], away: frozenset[str]) -> int:
        """How many queues change owners from all there to some away, and on to all back; ids are those of before."""
        nobody: frozenset[str] = frozenset()
        without = self._owners(changed, away)
        ends = (self._owners(changed, nobody), self._owners(changed | away, nobody))
        return sum(was != is_now for end in ends for was, is_now in zip(end, without, strict=True))


def _work(number: int, at_once: int, queues: int) -> int:
    steps = sum(
        comb(number, done) * (1 + comb(number - done, min(at_once, number - done)))
        for done in range(0, number, at_once)
    )
    return steps * queues
