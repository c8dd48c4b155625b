"""A plan: the owners of every queue before and after a change, what changes, and how even both sides are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from rmqlb.model.condition import TriedCondition
from rmqlb.model.diff import Change
from rmqlb.model.evenness import Spread
from rmqlb.model.figures import Figure
from rmqlb.model.group import BROADCASTING
from rmqlb.model.result import Result
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.unknown import sum_if_known

Origin = Literal["given", "reported", "observed", "assumed"]
SAME: Final = "same"
MOVED: Final = "moved"
ASSIGNED: Final = "assigned"
UNASSIGNED: Final = "unassigned"
ADDED: Final = "added"
REMOVED: Final = "removed"


class Move(Struct, frozen=True, rename="camel"):
    """A queue before and after the change.

    Attributes:
        owners_before: predicted client ids, sorted; none when it is unassigned, or when it does not exist before.
        change: same, moved, assigned (had no owner), unassigned (has none now), added or removed (the queue itself).
        owners_observed: the owners that the source saw; null when it saw none for this queue.
        start_offset: where a new owner starts to pull; null when it is not known, or no other consumer takes the queue.
        start_rule: how that comes about: stored, end, beginning, timestamp, refused or unknown; null in the same cases.
    """

    broker_name: str
    queue_id: int
    owners_before: tuple[str, ...]
    owners_after: Annotated[tuple[str, ...], "the same afterwards"]
    change: Change
    owners_observed: tuple[str, ...] | None = None
    lag: Annotated[int | None, "messages not yet read"] = None
    reason_before: Annotated[str | None, "why it goes where it goes before; null without --explain"] = None
    reason_after: Annotated[str | None, "why it goes where it goes afterwards; null without --explain"] = None
    start_offset: int | None = None
    start_rule: str | None = None


class TopicPlan(Struct, frozen=True):
    """The queues of a topic."""

    topic: str
    queues: Annotated[tuple[Move, ...], "in the clients' order"]


class ConsumerPlan(Struct, frozen=True, rename="camel"):
    """A client id over all topics of the plan.

    Attributes:
        queues_observed: number of queues that it was seen to own before the change; null when no owner was seen.
    """

    client_id: str
    queues_before: Annotated[int, "number of queues that it owns before"]
    queues_after: Annotated[int, "number of queues that it owns afterwards"]
    gained: Annotated[int, "number of queues that it owns only afterwards"]
    lost: Annotated[int, "number of queues that it owns only before"]
    lag_gained: Annotated[int | None, "messages waiting in the queues gained; null when not known for all of them"]
    lag_lost: Annotated[int | None, "messages waiting in the queues lost; null when not known for all of them"]
    index_before: Annotated[int | None, "its place among the sorted consumers, from 0; null when it is not there"]
    index_after: Annotated[int | None, "its place among them afterwards; null when it is not there"]
    processes_before: Annotated[int, "how many processes carry the id"]
    processes_after: Annotated[int, "how many carry it afterwards"]
    placeholder: Annotated[bool, "the id was invented, because only a number was asked for"] = False
    idle_reason: Annotated[str | None, "why it gets nothing afterwards; null when it gets something or is gone"] = None
    queues_observed: int | None = None


class MovedRange(Struct, frozen=True):
    """How many queues move, wherever client ids that are not known yet sort."""

    fewest: Annotated[int, "in the best order"]
    most: Annotated[int, "in the worst"]
    complete: Annotated[bool, "all orders were tried; otherwise others may have fewer or more"] = True


class ObservedOwners(Struct, frozen=True, rename="camel"):
    """The owners that the source saw before the change."""

    queues: Annotated[int, "queues before the change whose owners it saw"]
    unassigned: Annotated[int, "those of them that had no owner"]
    duplicate_owners: Annotated[int, "those with duplicate owners"]
    mismatches: Annotated[int, "those whose owners are not the predicted ones"]
    moved: Annotated[int, "those that had an owner and get another one afterwards"]


class Summary(Struct, frozen=True, rename="camel"):
    """A plan in numbers; but for `observed` all of it is predicted.

    Attributes:
        minimum_moves: the fewest moves of any plan that leaves each topic even (no consumer has two queues more than
            another), or `moved` where this plan, which is not even, moves fewer; null without a consumer afterwards.
        moved_range: moved over the orders of client ids that are not known yet; null when the ids themselves decide.
    """

    moved: Annotated[int, Figure("queues that go from one owner to another", of="kept")]
    minimum_moves: int | None
    newly_assigned: Annotated[int, Figure("queues that had no owner and get one", of="queues")]
    newly_unassigned: Annotated[int, Figure("queues that lose their owner and get none", of="queues")]
    added: Annotated[int, Figure("queues that exist only afterwards")]
    removed: Annotated[int, Figure("queues that exist only before")]
    lag_moved: Annotated[
        int | None, Figure("messages waiting in the queues that move", unknown="when not known for all of them")
    ]
    writable_queues_before: Annotated[int, "queues that producers can write before"]
    writable_queues_after: Annotated[int, "queues that producers can write afterwards"]
    idle: Annotated[int, Figure("consumers without a queue afterwards", of="consumers")]
    unassigned: Annotated[int, Figure("queues without an owner afterwards", of="queues")]
    duplicate_owners: Annotated[int, Figure("queues with duplicate owners afterwards", of="queues")]
    imbalance: Annotated[
        float | None,
        Figure(
            "most queues of one consumer over the mean afterwards; 1 is perfectly even",
            unknown="when there is nothing to divide",
        ),
    ]
    before: Annotated[Spread, "the spread before"]
    after: Annotated[Spread, "the spread afterwards"]
    moved_range: MovedRange | None = None
    lag_unassigned: Annotated[
        int | None,
        Figure("messages waiting in the queues without an owner afterwards", unknown="when not known for all of them"),
    ] = None
    lag_removed: Annotated[
        int | None,
        Figure("messages waiting in the queues that exist only before", unknown="when not known for all of them"),
    ] = None
    observed: Annotated[ObservedOwners | None, "what was seen of the owners; null when nothing was"] = None

    @property
    def queues_of_duplicate_client_ids(
        self,
    ) -> Annotated[int, Figure("queues of client IDs that several processes share", of="queues")]:
        return self.after.queues_of_duplicate_client_ids

    @property
    def max_queues_per_consumer(self) -> Annotated[int | None, Figure("queues of the consumer with the most")]:
        return self.after.most

    @property
    def min_queues_per_consumer(self) -> Annotated[int | None, Figure("queues of the consumer with the fewest")]:
        return self.after.fewest

    @property
    def excess_moves(self) -> Annotated[int | None, Figure("moves beyond those that a balanced plan needs")]:
        return None if self.minimum_moves is None else self.moved - self.minimum_moves

    @property
    def mismatches(self) -> Annotated[int | None, Figure("queues whose observed owners differ", of="queues_observed")]:
        return None if self.observed is None else self.observed.mismatches

    @property
    def observed_unassigned(
        self,
    ) -> Annotated[int | None, Figure("queues observed without an owner", of="queues_observed")]:
        return None if self.observed is None else self.observed.unassigned

    @property
    def observed_duplicate_owners(
        self,
    ) -> Annotated[int | None, Figure("queues observed with two or more owners", of="queues_observed")]:
        return None if self.observed is None else self.observed.duplicate_owners

    @property
    def kept(self) -> int:
        """Queues that exist before and afterwards."""
        return self.before.queues - self.removed

    @property
    def queues(self) -> int:
        return self.after.queues

    @property
    def consumers(self) -> int:
        return self.after.consumers

    @property
    def queues_observed(self) -> int | None:
        return None if self.observed is None else self.observed.queues


class Comparison(Struct, frozen=True, rename="camel"):
    """The same change under one strategy."""

    strategy: str
    strategy_after: Annotated[str, "afterwards"]
    summary: Annotated[Summary, "the plan in numbers"]


class Convergence(Struct, frozen=True, rename="camel"):
    """What the group goes through in between, over a few simulations; times in milliseconds.

    Attributes:
        convergence_ms: the median time until all queues have their final owners, of those that converged; null when
            none did.
        longest_gap_ms: the longest time that a queue had no owner; null when one has none at either end of the plan.
        longest_overlap_ms: the longest time that a queue had duplicate owners; null when one has them at either end of
            the plan.
    """

    trials: Annotated[int, "how many simulations"]
    converged: Annotated[int, "how many of them converged"]
    convergence_ms: float | None
    max_convergence_ms: Annotated[float | None, "the longest; null when one did not converge"]
    longest_gap_ms: float | None
    longest_overlap_ms: float | None
    unread_ms: Annotated[float, "the longest time until a new owner's first pull"]


class PopChange(Struct, frozen=True, rename="camel"):
    """A queue, or a broker's queues, and who may read there before and after."""

    broker_name: str
    queue_id: Annotated[int, "its number there; -1 is any queue of the broker"]
    consumers_before: Annotated[tuple[str, ...] | None, "client ids, sorted; null when it is not there to be read"]
    consumers_after: Annotated[tuple[str, ...] | None, "the same afterwards"]


class PopTopicPlan(Struct, frozen=True, rename="camel"):
    """A topic that is consumed by POP, before and after: no consumer owns a queue of it, so that none moves.

    Attributes:
        pop_share_queue_nums: popShareQueueNum as brokers have it, several where they differ; none behind a Proxy.
        queues: who may read what; empty where brokers do not have one of the strategies: they answer nothing to it, and
            consumers keep what they have.
        by_proxy: its consumers are behind a Proxy, which gives each of them any queue of each broker.
    """

    topic: str
    strategy: Annotated[str | None, "that brokers assign by before; null behind a Proxy, where none decides"]
    strategy_after: Annotated[str | None, "afterwards"]
    pop_share_queue_nums: tuple[int, ...]
    assumed: Annotated[bool, "popShareQueueNum is not known, and what brokers have by default is taken"]
    queues: tuple[PopChange, ...]
    by_proxy: bool = False


class RebalancePlan(Result, frozen=True):
    """What a change of consumers, strategy or route does to a group.

    Attributes:
        strategy_origin: how the strategy before is known: given, reported (by consumers), observed (it fits the
            observed owners) or assumed.
        convergence: what the consumers go through in between; null when that was not simulated.
        strategies_reported: strategy → number of consumers that report it; empty where they do not decide.
        pop_topics: the topics that are consumed by POP, of which no queue has an owner.
        sdks: the client libraries of the consumers before, and how well their rules are known; none in Python.
    """

    group: Annotated[str | None, "the group; null when the source names none"]
    strategy: Annotated[str, "before, by RocketMQ's name"]
    strategy_after: Annotated[str, "afterwards"]
    strategy_origin: Origin
    changes: Annotated[tuple[str, ...], "the changes asked for, a line each"]
    topics: Annotated[tuple[TopicPlan, ...], "queue by queue"]
    consumers: Annotated[tuple[ConsumerPlan, ...], "client id by client id, sorted as clients sort them"]
    sorted_consumers_before: Annotated[tuple[str, ...], "the consumers in the clients' order, duplicates kept"]
    sorted_consumers_after: Annotated[tuple[str, ...], "the same afterwards"]
    summary: Annotated[Summary, "in numbers"]
    convergence: Convergence | None
    comparison: Annotated[tuple[Comparison, ...], "the same change under each strategy asked for, the plan's own first"]
    conditions: tuple[TriedCondition, ...] = ()
    strategies_reported: Mapping[str, int] = {}
    pop_topics: tuple[PopTopicPlan, ...] = ()
    sdks: tuple[SdkUse, ...] = ()

    @property
    def moves(self) -> list[Move]:
        return [move for topic in self.topics for move in topic.queues]

    @property
    def by_pop(self) -> bool:
        """No queue has an owner: all topics are consumed by POP."""
        return bool(self.pop_topics) and not self.topics

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue: none can move."""
        return self.strategy == BROADCASTING


class PlansSummary(Struct, frozen=True, rename="camel"):
    """The effect of the change on all groups together.

    Attributes:
        moved_range: moved over the orders of client ids that are not known yet; null when the ids themselves decide.
        lag_unassigned: messages waiting in the queues without an owner afterwards; null when not known for all of them.
        lag_removed: messages waiting in the queues that exist only before; null when not known for all of them.
    """

    groups: Annotated[int, "how many"]
    queues: Annotated[int, "queues afterwards"]
    moved: Annotated[int, "queues that go from one owner to another"]
    moved_range: MovedRange | None
    newly_assigned: Annotated[int, "queues that had no owner and get one"]
    newly_unassigned: Annotated[int, "queues that lose their owner and get none"]
    added: Annotated[int, "queues that exist only afterwards"]
    removed: Annotated[int, "queues that exist only before"]
    unassigned: Annotated[int, "queues without an owner afterwards"]
    duplicate_owners: Annotated[int, "queues with duplicate owners afterwards"]
    lag_unassigned: int | None
    lag_removed: int | None


class PlanOfGroups(Result, frozen=True):
    """What a change does to several groups."""

    groups: Annotated[tuple[RebalancePlan, ...], "each group's plan, as rmqlb/plan has it"]
    summary: Annotated[PlansSummary, "of all of them"]


_SUMMED = ("moved", "newly_assigned", "newly_unassigned", "added", "removed", "idle", "unassigned", "duplicate_owners")
_SUMMED_IF_KNOWN = ("minimum_moves", "lag_moved", "lag_unassigned", "lag_removed")
_SUMMED_OF_SPREADS = ("queues", "idle", "unassigned", "duplicate_owners", "queues_of_duplicate_client_ids", "consumers")


def plans_of_groups(plans: Sequence[RebalancePlan]) -> PlanOfGroups:
    """The plans of several groups, and what the change does to all of them."""
    total = total_of([plan.summary for plan in plans])
    names = set(PlansSummary.__struct_fields__) - {"groups", "queues"}
    numbers = {name: getattr(total, name) for name in names}
    return PlanOfGroups(tuple(plans), PlansSummary(groups=len(plans), queues=total.after.queues, **numbers))


def total_of(summaries: Sequence[Summary]) -> Summary:
    observed = [summary.observed for summary in summaries if summary.observed is not None]
    known: dict[str, Any] = {name: sum_if_known(getattr(each, name) for each in summaries) for name in _SUMMED_IF_KNOWN}
    return Summary(
        **_sums(summaries, _SUMMED),
        **known,
        writable_queues_before=0,
        writable_queues_after=0,
        imbalance=None,
        before=_spread([summary.before for summary in summaries]),
        after=_spread([summary.after for summary in summaries]),
        moved_range=_range([summary.moved_range for summary in summaries]),
        observed=ObservedOwners(**_sums(observed, ObservedOwners.__struct_fields__)) if observed else None,
    )


def _sums(parts: Sequence[Struct], names: Iterable[str]) -> dict[str, Any]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _range(ranges: Sequence[MovedRange | None]) -> MovedRange | None:
    """Each group's new consumers sort on their own: the fewest of each may come together."""
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges):
        return None
    complete = all(each.complete for each in known)
    return MovedRange(sum(each.fewest for each in known), sum(each.most for each in known), complete)


def _spread(spreads: Sequence[Spread]) -> Spread:
    return Spread(**_sums(spreads, _SUMMED_OF_SPREADS), queues_per_consumer=None, imbalance=None)
