"""Ways to restart the members of a group, or to give them another strategy, and what each of them costs.

Rule of this file: times are whole microseconds (`_us`).
"""

from __future__ import annotations

from msgspec import Struct

from rmqlb.model.finding import Finding
from rmqlb.model.group_report import GroupTrials


class RolloutChoice(Struct, frozen=True):
    """One way to restart a group's members.

    Attributes:
        order: client ids in the order in which they go down.
        order_name: how the order came about: sorted, reversed, least overlap, given, …
        at_once: how many go down together.
        pause_us: from one going down to the next.
        down_us: how long each is away.
        takes_us: from the first going down until the group is settled; None when it does not settle.
        trials: what came of it.
        best: no other choice that was tried is better in what was asked for.
    """

    order: tuple[str, ...]
    order_name: str
    at_once: int
    pause_us: int
    down_us: int
    takes_us: int | None
    trials: GroupTrials
    best: bool = False


class MixedStage(Struct, frozen=True):
    """A stage of a strategy change at rest: some members run the new strategy, the others still the old one.

    Attributes:
        changed: how many members run the new one.
        next_id: the member that changes next; None after the last.
        several: queues that two members own as long as the stage lasts.
        none: queues that nobody owns as long as it lasts.
    """

    changed: int
    next_id: str | None
    several: int
    none: int


class Rollout(Struct, frozen=True):
    """A rolling restart or a change of strategy, planned.

    Attributes:
        group: its name, or None.
        strategy_before: RocketMQ's name.
        strategy_after: likewise; the same for a mere restart.
        members: the client ids that are restarted, sorted.
        choices: what was tried, the best first.
        stages: the mixed stages of the best order; empty for a mere restart.
        overlap: queues with two owners or none, summed over the mixed stages of the best order; no order has fewer
            where `overlap_is_least`. 0 when nothing need overlap.
        overlap_is_least: the best order was searched for exhaustively.
        findings: what is worth a warning.
    """

    group: str | None
    strategy_before: str
    strategy_after: str
    members: tuple[str, ...]
    choices: tuple[RolloutChoice, ...]
    stages: tuple[MixedStage, ...]
    overlap: int
    overlap_is_least: bool
    findings: tuple[Finding, ...] = ()
