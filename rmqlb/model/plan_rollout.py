"""Ways to restart the consumers of a group, or to give them another strategy, and what each of them costs."""

from __future__ import annotations

from msgspec import Struct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.result import Result
from rmqlb.model.simulate_rebalance import GroupTrials


class RolloutChoice(GroupTrials, frozen=True, rename="camel"):
    """One way to restart a group's consumers, and what many trials of it say.

    Attributes:
        order: client ids in the order in which they go down.
        order_name: how the order came about, such as sorted, reversed, least overlap or given.
        at_once: how many go down together.
        pause_ms: from one going down to the next.
        down_ms: how long each is away.
        takes_ms: from the first going down until the group has converged, in 95 % of trials; null when it does not
            always converge.
        restarts: consumers that the trials restart, evenly spread over the order; fewer than all where the group is
            too large (finding `searched-in-part`). The figures are those of these restarts.
        best: no other way that was tried is better in what was asked for.
    """

    order: tuple[str, ...]
    order_name: str
    at_once: int
    pause_ms: float
    down_ms: float
    takes_ms: float | None
    restarts: int
    best: bool = False


class MixedStage(Struct, frozen=True, rename="camel"):
    """A stage of a strategy change at rest: some consumers run the new strategy, the others still the old one.

    Attributes:
        changed: how many consumers run the new one.
        next_id: the consumer that changes next; null after the last.
        duplicate_owners: queues that two consumers own as long as the stage lasts.
        unassigned: queues without an owner as long as it lasts.
    """

    changed: int
    next_id: str | None
    duplicate_owners: int
    unassigned: int


class Rollout(Result, frozen=True):
    """A rolling restart or a change of strategy, planned.

    Attributes:
        group: the group; null when the source names none.
        strategy_before: by RocketMQ's name.
        strategy_after: by RocketMQ's name; the same for a mere restart.
        members: client ids that are restarted, sorted as clients sort them.
        choices: the ways that were tried, the best first.
        stages: the mixed stages of the best order, of a large group the first ones; empty for a mere restart.
        misassigned: queues that are unassigned or have duplicate owners, summed over these stages.
        misassigned_is_minimum: every order was tried: none has fewer.
        choices_in_all: how many ways there are to try; more than were tried where the group is too large.
        conditions: what --fail-on asked for.
    """

    group: str | None
    strategy_before: str
    strategy_after: str
    members: tuple[str, ...] = field(name="consumers")
    choices: tuple[RolloutChoice, ...]
    stages: tuple[MixedStage, ...]
    misassigned: int
    misassigned_is_minimum: bool
    choices_in_all: int = 0
    conditions: tuple[TriedCondition, ...] = ()
