"""Ways to restart the consumers of a group, or to give them another strategy, and what each of them costs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, field

from rmqlb.model.condition import TriedCondition
from rmqlb.model.result import Result
from rmqlb.model.simulate_rebalance import GroupTrials


class RolloutChoice(GroupTrials, frozen=True, rename="camel"):
    """One way to restart a group's consumers, and what many trials of it say."""

    order: Annotated[tuple[str, ...], "client ids in the order in which they go down"]
    order_name: Annotated[str, "how the order came about, such as sorted, reversed, least overlap or given"]
    at_once: Annotated[int, "how many go down together"]
    pause_ms: Annotated[float, "from one going down to the next"]
    down_ms: Annotated[float, "how long each is away"]
    takes_ms: Annotated[float | None, "from the first stop until convergence, in 95 % of trials; null for never"]
    restarts: Annotated[int, "restarts in the trials, evenly spread; fewer than all where the group is too large"]
    best: Annotated[bool, "no other way that was tried is better in what was asked for"] = False


class MixedStage(Struct, frozen=True, rename="camel"):
    """A stage of a strategy change at rest: some consumers run the new strategy, the others still the old one."""

    changed: Annotated[int, "how many consumers run the new one"]
    next_id: Annotated[str | None, "the consumer that changes next; null after the last"]
    duplicate_owners: Annotated[int, "queues that two consumers own as long as the stage lasts"]
    unassigned: Annotated[int, "queues without an owner as long as it lasts"]


class Rollout(Result, frozen=True):
    """A rolling restart or a change of strategy, planned."""

    group: Annotated[str | None, "the group; null when the source names none"]
    strategy_before: Annotated[str, "by RocketMQ's name"]
    strategy_after: Annotated[str, "by RocketMQ's name; the same for a mere restart"]
    members: Annotated[tuple[str, ...], "client IDs to restart, in the clients' order"] = field(name="consumers")
    choices: Annotated[tuple[RolloutChoice, ...], "the ways that were tried, the best first"]
    stages: Annotated[tuple[MixedStage, ...], "mixed stages of the best order; empty for a mere restart"]
    misassigned: Annotated[int, "queues that are unassigned or have duplicate owners, summed over these stages"]
    misassigned_is_minimum: Annotated[bool, "every order was tried: none has fewer"]
    choices_in_all: Annotated[int, "ways there are to try; more than tried where the group is too large"] = 0
    conditions: tuple[TriedCondition, ...] = ()
