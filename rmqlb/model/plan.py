"""A plan: the owners of every queue before and after a change, what changes, and how even both sides are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from rmqlb.model.finding import Finding
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue

Change = Literal["same", "moved", "assigned", "unassigned", "added", "removed"]
Origin = Literal["given", "reported", "observed", "assumed"]
SAME: Final = "same"
MOVED: Final = "moved"
ASSIGNED: Final = "assigned"
UNASSIGNED: Final = "unassigned"
ADDED: Final = "added"
REMOVED: Final = "removed"


class Move(Struct, frozen=True):
    """One queue, before and after.

    Attributes:
        queue: the queue.
        owners_before: the predicted client ids, sorted; None when the queue does not exist before.
        owners_after: likewise.
        observed: the owners that the source saw; None when it did not.
        lag: messages not yet read, or None.
        reason_before: why it is there; None unless asked for.
        reason_after: likewise.
        start_offset: where a new owner starts to pull; None when it is not known, or nobody else takes the queue.
        start_rule: how that comes about: stored, end, beginning, timestamp, refused or unknown; None likewise.
        broadcasting: every consumer reads the queue, so that others that come or go are no move.
    """

    queue: MessageQueue
    owners_before: tuple[str, ...] | None
    owners_after: tuple[str, ...] | None
    observed: tuple[str, ...] | None = None
    lag: int | None = None
    reason_before: str | None = None
    reason_after: str | None = None
    start_offset: int | None = None
    start_rule: str | None = None
    broadcasting: bool = False

    @property
    def change(self) -> Change:
        """same, moved, assigned (had no owner), unassigned (has none now), added or removed (the queue itself)."""
        if self.owners_before is None:
            return ADDED
        if self.owners_after is None:
            return REMOVED
        if self.owners_before == self.owners_after or (self.broadcasting and self.owners_before and self.owners_after):
            return SAME
        if not self.owners_before:
            return ASSIGNED
        return MOVED if self.owners_after else UNASSIGNED


class TopicPlan(Struct, frozen=True):
    """All queues of one topic.

    Attributes:
        topic: its name.
        moves: one a queue, in the clients' order.
    """

    topic: str
    moves: tuple[Move, ...]


class ConsumerPlan(Struct, frozen=True):
    """One client id over all topics of the plan.

    Attributes:
        client_id: the id.
        index_before: its place in the sorted members, counted from 0; None when it is not there.
        index_after: likewise.
        processes_before: how many processes carry the id.
        processes_after: likewise.
        queues_before: queues it owns.
        queues_after: likewise.
        queues_observed: queues that it was seen to own before the change; None when no owner was observed.
        gained: queues it owns only after.
        lost: queues it owns only before.
        lag_gained: messages waiting in the queues gained, or None when not known for all of them.
        lag_lost: likewise for the queues lost.
        made_up: the id was invented because only a number was asked for.
        idle_reason: why it gets nothing afterwards; None when it gets something or is gone.
    """

    client_id: str
    index_before: int | None
    index_after: int | None
    processes_before: int
    processes_after: int
    queues_before: int
    queues_after: int
    gained: int
    lost: int
    lag_gained: int | None
    lag_lost: int | None
    made_up: bool = False
    idle_reason: str | None = None
    queues_observed: int | None = None


class Spread(Struct, frozen=True):
    """How evenly queues lie on consumers; the judge's measure of any assignment.

    Attributes:
        consumers: distinct client ids.
        queues: queues that exist, and those that only a CONFIG list names.
        idle: consumers without a queue.
        unowned: queues without an owner.
        multiply_owned: queues with more than one client id as owner.
        shared_id: queues whose owner's id is carried by several processes, so that each of them reads the queue.
        least: queues of the consumer with the fewest; None without consumers.
        most: queues of the consumer with the most; None without consumers.
        held: queues of all consumers together; one that several own counts for each of them.
    """

    consumers: int
    queues: int
    idle: int
    unowned: int
    multiply_owned: int
    shared_id: int
    least: int | None
    most: int | None
    held: int

    @property
    def mean(self) -> float | None:
        """Queues a consumer; None without consumers."""
        return self.held / self.consumers if self.consumers else None

    @property
    def max_over_mean(self) -> float | None:
        """1.0 is perfectly even; None when there is nothing to divide.

        Divided once, so that 3 over 15/7 is the 1.4 that somebody writes as a limit, and not the next number above.
        """
        return self.most * self.consumers / self.held if self.most is not None and self.held else None


class MovedRange(Struct, frozen=True):
    """How many queues move, wherever ids that are not known yet sort among the others.

    Attributes:
        fewest: queues that move in the best order.
        most: likewise in the worst.
        complete: every order was tried; otherwise others may have fewer or more.
    """

    fewest: int
    most: int
    complete: bool = True


class ObservedOwners(Struct, frozen=True):
    """The owners that the source saw, beside the prediction before the change and after it.

    Attributes:
        queues: queues before the change whose owners were observed.
        unassigned: those of them that nobody owned.
        duplicate_owners: those that several client ids owned.
        mismatches: those whose owners are not the predicted ones.
        moved: those that had an owner and get another one afterwards.
    """

    queues: int
    unassigned: int
    duplicate_owners: int
    mismatches: int
    moved: int


class Summary(Struct, frozen=True):
    """A plan in numbers; but for `observed` all of it is predicted.

    Attributes:
        before: the spread before.
        after: the spread after.
        moved: queues that go from one owner to another.
        assigned: queues that had no owner and get one.
        unassigned: queues that lose their owner and get none.
        added: queues that exist only after.
        removed: queues that exist only before.
        least_moves: the fewest moves of any plan that leaves each topic's queues even over the consumers (none has two
            more than another); None when there is no consumer afterwards.
        lag_moved: messages waiting in the queues that move, or None when not known for all of them.
        publish_before: queues that producers see before.
        publish_after: likewise afterwards.
        moved_range: `moved` over the orders of ids that are not known yet; None when not their order decides, but they
            themselves.
        lag_unassigned: messages waiting in the queues without an owner afterwards, or None when not known for all.
        lag_removed: messages waiting in the queues that exist only before, likewise.
        observed: what was observed of the owners; None when nothing was.
    """

    before: Spread
    after: Spread
    moved: int
    assigned: int
    unassigned: int
    added: int
    removed: int
    least_moves: int | None
    lag_moved: int | None
    publish_before: int
    publish_after: int
    moved_range: MovedRange | None = None
    lag_unassigned: int | None = None
    lag_removed: int | None = None
    observed: ObservedOwners | None = None


class Comparison(Struct, frozen=True):
    """The same change under one strategy.

    Attributes:
        strategy: RocketMQ's name of the strategy before.
        strategy_after: likewise afterwards.
        summary: the change in numbers.
    """

    strategy: str
    strategy_after: str
    summary: Summary


class Settling(Struct, frozen=True):
    """What a group goes through between the two ends of a plan, over a few simulations; times in microseconds.

    Attributes:
        trials: how many simulations.
        settled: how many of them settled.
        settled_us: the median time until the group is settled, of those that settled; None when none did.
        worst_settled_us: the longest; None when one did not settle.
        longest_none_us: the longest time that a queue had no owner, in the worst of them; None when one has none at
            either end of the plan.
        longest_several_us: likewise with several owners.
        unread_us: likewise until a new owner's first pull.
    """

    trials: int
    settled: int
    settled_us: int | None
    worst_settled_us: int | None
    longest_none_us: int | None
    longest_several_us: int | None
    unread_us: int


class RebalancePlan(Struct, frozen=True):
    """What a change of members, strategy or route does to a group.

    Attributes:
        group: the group, or None when the source names none.
        strategy_before: RocketMQ's name of the strategy before.
        strategy_after: likewise afterwards.
        strategy_origin: how the strategy before is known: given, reported (by members), observed (it fits the owners
            seen) or assumed.
        changes: the changes asked for, one line each.
        topics: the plan by topic.
        consumers: the plan by consumer, in the sorted order of the ids of both sides.
        sorted_before: the members in the clients' order, duplicates kept.
        sorted_after: likewise afterwards.
        summary: the plan in numbers.
        comparisons: the same change under each strategy asked for, the plan's own first.
        findings: what is worth a warning.
        explained: reasons were asked for.
        settling: what the members go through in between; None when that was not simulated.
        places: the summary of each order in which ids that are not known yet were tried; none when all are known.
    """

    group: str | None
    strategy_before: str
    strategy_after: str
    changes: tuple[str, ...]
    topics: tuple[TopicPlan, ...]
    consumers: tuple[ConsumerPlan, ...]
    sorted_before: tuple[str, ...]
    sorted_after: tuple[str, ...]
    summary: Summary
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...] = ()
    explained: bool = False
    strategy_origin: Origin = "given"
    settling: Settling | None = None
    places: tuple[Summary, ...] = ()

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue: none can move."""
        return self.strategy_before == BROADCASTING


class StrategyOwners(Struct, frozen=True):
    """Who owns the queues under one strategy.

    Attributes:
        strategy: RocketMQ's name.
        owners: queue → client ids, sorted.
        idle: client id without a queue → why.
        counts: client id → how many queues it owns, in the clients' order.
        spread: how even it is.
        differs: queues whose observed owners are others; None when no owner was observed.
        reasons: queue → why; empty unless asked for.
    """

    strategy: str
    owners: Mapping[MessageQueue, tuple[str, ...]]
    idle: Mapping[str, str]
    counts: Mapping[str, int]
    spread: Spread
    differs: int | None
    reasons: Mapping[MessageQueue, str] = field(default_factory=dict)


class OwnersReport(Struct, frozen=True):
    """Queue × strategy.

    Attributes:
        group: the group, or None.
        topics: the topics, in order.
        queues: their queues, in the clients' order.
        client_ids: the members in the clients' order, duplicates kept.
        strategies: one entry a strategy.
        observed: queue → the owners that the source saw; a queue that it did not see is absent.
        lag: queue → messages not yet read, where known.
        findings: what is worth a warning.
        explained: reasons were asked for.
        broadcasting: each consumer reads every queue, so that several owners are as it should be.
    """

    group: str | None
    topics: tuple[str, ...]
    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    strategies: tuple[StrategyOwners, ...]
    observed: Mapping[MessageQueue, tuple[str, ...]]
    lag: Mapping[MessageQueue, int]
    findings: tuple[Finding, ...] = ()
    explained: bool = False
    broadcasting: bool = False


class TriedCondition(Struct, frozen=True):
    """A `--fail-on` condition.

    Attributes:
        text: as typed.
        value: the figure that it looked at; null when it is unknown, or without end.
        met: it is met; null when the figure is unknown.
    """

    text: str = field(name="condition")
    value: float | None
    met: bool | None
