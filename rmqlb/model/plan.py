"""A plan: the owners of every queue before and after a change, what changes, and how even both sides are.

A rollout is a plan for restarts: the ways to restart the consumers, and what each of them costs.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

from msgspec import Struct, field

from rmqlb.model.client_versions import SdkUse
from rmqlb.model.group import BROADCASTING
from rmqlb.model.owners import REPORTED, AssumedShare, ByProxy, Change, Origin, PopShares, Spread
from rmqlb.model.result import Figure, RateSource, Result, TriedCondition
from rmqlb.model.simulate_rebalance import GroupTrials, LagCurve

MOVED: Final = "moved"
ASSIGNED: Final = "assigned"
ADDED: Final = "added"
_Summed = TypeVar("_Summed", bound=Struct)


class Move(Struct, frozen=True, rename="camel"):
    """A queue before and after the change."""

    broker_name: str
    queue_id: int
    owners_before: Annotated[tuple[str, ...], "predicted client IDs, sorted; none when unassigned or not there before"]
    owners_after: Annotated[tuple[str, ...], "the same afterwards"]
    change: Annotated[Change, "same, moved, assigned, unassigned (of owners), added or removed (the queue itself)"]
    owners_observed: Annotated[tuple[str, ...] | None, "observed owners; null when not observed"] = None
    lag: Annotated[int | None, "messages not yet read"] = None
    reason_before: Annotated[str | None, "why it goes where it goes before; null without --explain"] = None
    reason_after: Annotated[str | None, "why it goes where it goes afterwards; null without --explain"] = None
    start_offset: Annotated[int | None, "where a new owner starts to pull; null when unknown or not taken"] = None
    start_rule: Annotated[
        str | None, "why it starts there: stored, end, beginning, timestamp, refused or unknown; null when not taken"
    ] = None


class TopicPlan(Struct, frozen=True):
    """The queues of a topic."""

    topic: str
    queues: Annotated[tuple[Move, ...], "in the clients' order"]


class ConsumerPlan(Struct, frozen=True, rename="camel"):
    """A client id over all topics of the plan."""

    client_id: str
    queues_before: Annotated[int, "number of queues that it owns before"]
    queues_after: Annotated[int, "number of queues that it owns afterwards"]
    gained: Annotated[int, "number of queues that it owns only afterwards"]
    lost: Annotated[int, "number of queues that it owns only before"]
    lag_gained: Annotated[int | None, "messages waiting in the queues gained; null when not known for all of them"]
    lag_lost: Annotated[int | None, "messages waiting in the queues lost; null when not known for all of them"]
    index_before: Annotated[int | None, "its place among the sorted consumers, from 0; null when it is not there"]
    index_after: Annotated[int | None, "its place among them afterwards; null when it is not there"]
    processes_before: Annotated[int, "how many processes have the ID"]
    processes_after: Annotated[int, "how many have it afterwards"]
    placeholder: Annotated[bool, "the ID is a placeholder, because only a number was given"] = False
    idle_reason: Annotated[str | None, "why it gets nothing afterwards; null when it gets something or is gone"] = None
    queues_observed: Annotated[int | None, "queues observed as its own before; null when no owner was seen"] = None


class MovedRange(Struct, frozen=True):
    """How many queues move, wherever client ids that are not known yet sort."""

    fewest: Annotated[int, "in the best order"]
    most: Annotated[int, "in the worst order"]
    complete: Annotated[bool, "all orders were tried; otherwise others may have fewer or more"] = True


class ObservedOwners(Struct, frozen=True, rename="camel"):
    """The owners that the source saw before the change."""

    queues: Annotated[int, "queues before the change whose owners were observed"]
    unassigned: Annotated[int, "those of them that had no owner"]
    duplicate_owners: Annotated[int, "those with duplicate owners"]
    mismatches: Annotated[int, "of these, queues whose owners differ from the prediction"]
    moved: Annotated[int, "queues that had an owner and get another one afterwards"]


_OF_SOME = "when not known for all of them"
Moved = Annotated[int, Figure("queues that go from one owner to another", of="kept")]
NewlyAssigned = Annotated[int, Figure("queues that had no owner and get one", of="queues")]
NewlyUnassigned = Annotated[int, Figure("queues that lose their owner and get none", of="queues")]
Added = Annotated[int, Figure("queues that exist only afterwards")]
Removed = Annotated[int, Figure("queues that exist only before")]
Unassigned = Annotated[int, Figure("queues without an owner afterwards", of="queues")]
DuplicateOwners = Annotated[int, Figure("queues with duplicate owners afterwards", of="queues")]
LagUnassigned = Annotated[
    int | None, Figure("messages waiting in the queues without an owner afterwards", unknown=_OF_SOME)
]
LagRemoved = Annotated[int | None, Figure("messages waiting in the queues that exist only before", unknown=_OF_SOME)]
Range = Annotated[MovedRange | None, "moved over the orders of unknown client IDs; null when the IDs themselves decide"]


class Summary(Struct, frozen=True, rename="camel"):
    """A plan in numbers; all of it is predicted, except `observed`."""

    moved: Moved
    minimum_moves: Annotated[
        int | None, "fewest moves of any plan with balanced topics; null without a consumer afterwards"
    ]
    newly_assigned: NewlyAssigned
    newly_unassigned: NewlyUnassigned
    added: Added
    removed: Removed
    lag_moved: Annotated[int | None, Figure("messages waiting in the queues that move", unknown=_OF_SOME)]
    writable_queues_before: Annotated[int, "queues that producers can write before"]
    writable_queues_after: Annotated[int, "queues that producers can write afterwards"]
    idle: Annotated[int, Figure("consumers without a queue afterwards", of="consumers")]
    unassigned: Unassigned
    duplicate_owners: DuplicateOwners
    imbalance: Annotated[
        float | None,
        Figure(
            "most queues of one consumer over the mean afterwards; 1 is perfectly even",
            unknown="when there is nothing to divide",
        ),
    ]
    before: Annotated[Spread, "the spread before"]
    after: Annotated[Spread, "the spread afterwards"]
    moved_range: Range = None
    lag_unassigned: LagUnassigned = None
    lag_removed: LagRemoved = None
    observed: Annotated[ObservedOwners | None, "the observed owners; null when none were observed"] = None

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
    strategy_after: Annotated[str, "the strategy after the change"]
    summary: Annotated[Summary, "the plan in numbers"]


class Convergence(Struct, frozen=True, rename="camel"):
    """What the group goes through in between, over a few simulations; times in milliseconds."""

    trials: Annotated[int, "how many simulations"]
    converged: Annotated[int, "how many of them converged"]
    convergence_ms: Annotated[float | None, "median time until all queues have their final owners; null when none has"]
    max_convergence_ms: Annotated[float | None, "the longest such time; null when one did not converge"]
    longest_gap_ms: Annotated[float | None, "longest time of a queue without owner; null if the plan leaves one so"]
    longest_overlap_ms: Annotated[float | None, "longest time of duplicate owners; null if the plan leaves some"]
    unread_ms: Annotated[float, "the longest time until a new owner's first pull"]
    lag: Annotated[LagCurve | None, "the longest lag of a trial; null if a rate or the consume time is unknown"] = None


class PopChange(Struct, frozen=True, rename="camel"):
    """A queue, or a broker's queues, and who may read there before and after."""

    broker_name: str
    queue_id: Annotated[int, "its number there; -1 is any queue of the broker"]
    consumers_before: Annotated[tuple[str, ...] | None, "client IDs, sorted; null when the queue does not exist"]
    consumers_after: Annotated[tuple[str, ...] | None, "the same afterwards"]


class PopTopicPlan(Struct, frozen=True, rename="camel"):
    """A topic that is consumed by POP, before and after: no consumer owns a queue of it, so that none moves."""

    topic: str
    strategy: Annotated[str | None, "that brokers assign by before; null behind a Proxy, where none decides"]
    strategy_after: Annotated[str | None, "the strategy after the change"]
    pop_share_queue_nums: PopShares
    assumed: AssumedShare
    queues: Annotated[tuple[PopChange, ...], "consumers by queue; empty where brokers lack one of the strategies"]
    by_proxy: ByProxy = False


class RebalancePlan(Result, frozen=True):
    """What a change of consumers, strategy or route does to a group."""

    group: Annotated[str | None, "the group; null when the source names none"]
    strategy: Annotated[str, "before, by RocketMQ's name"]
    strategy_after: Annotated[str, "the strategy after the change"]
    strategy_origin: Annotated[Origin, "given, reported (by consumers), observed (fits observed owners) or assumed"]
    changes: Annotated[tuple[str, ...], "the requested changes, one line each"]
    topics: Annotated[tuple[TopicPlan, ...], "queue by queue"]
    consumers: Annotated[tuple[ConsumerPlan, ...], "each client ID, sorted as clients sort them"]
    sorted_consumers_before: Annotated[tuple[str, ...], "the consumers in the clients' order, duplicates kept"]
    sorted_consumers_after: Annotated[tuple[str, ...], "the same afterwards"]
    summary: Annotated[Summary, "the plan in numbers"]
    convergence: Annotated[Convergence | None, "the simulated transition; null when not simulated"]
    comparison: Annotated[tuple[Comparison, ...], "the same change under each requested strategy, the plan's own first"]
    conditions: tuple[TriedCondition, ...] = ()
    strategies_reported: Annotated[Mapping[str, int], REPORTED] = {}
    pop_topics: Annotated[tuple[PopTopicPlan, ...], "the topics that are consumed by POP, without owners"] = ()
    sdks: Annotated[tuple[SdkUse, ...], "client libraries of the consumers before; none in Python"] = ()
    rates: Annotated[RateSource | None, "where the rates come from; null without rates"] = None

    @property
    def moves(self) -> list[Move]:
        return [move for topic in self.topics for move in topic.queues]

    @property
    def by_pop(self) -> bool:
        return bool(self.pop_topics) and not self.topics

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue, so none can move."""
        return self.strategy == BROADCASTING


class PlansSummary(Struct, frozen=True, rename="camel"):
    """The effect of the change on all groups together."""

    groups: Annotated[int, "number of groups"]
    queues: Annotated[int, "queues afterwards"]
    moved: Moved
    moved_range: Range
    newly_assigned: NewlyAssigned
    newly_unassigned: NewlyUnassigned
    added: Added
    removed: Removed
    unassigned: Unassigned
    duplicate_owners: DuplicateOwners
    lag_unassigned: LagUnassigned
    lag_removed: LagRemoved


class PlanOfGroups(Result, frozen=True):
    """What a change does to several groups."""

    groups: Annotated[tuple[RebalancePlan, ...], "each group's plan, as rmqlb/plan has it"]
    summary: Annotated[PlansSummary, "the effect on all groups, in numbers"]


_NOT_SUMMED = ("imbalance", "queues_per_consumer")


def plans_of_groups(plans: Sequence[RebalancePlan]) -> PlanOfGroups:
    total = total_of([plan.summary for plan in plans])
    numbers = {name: getattr(total, name) for name in PlansSummary.__struct_fields__ if name != "groups"}
    return PlanOfGroups(tuple(plans), PlansSummary(groups=len(plans), **numbers))


def total_of(parts: Sequence[_Summed]) -> _Summed:
    """The sum of each figure; null where one is unknown, except observed owners.

    New consumers of each group sort independently, so the fewest moves of all groups may occur together.
    """
    names = parts[0].__struct_fields__
    return type(parts[0])(**{name: _sum(name, [getattr(part, name) for part in parts]) for name in names})


def _sum(name: str, values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    if name in _NOT_SUMMED or not known or (len(known) < len(values) and name != "observed"):
        return None
    if isinstance(known[0], Struct):
        return total_of(known)
    return all(known) if isinstance(known[0], bool) else sum(known)


class RolloutChoice(GroupTrials, frozen=True, rename="camel"):
    """One way to restart a group's consumers, and what many trials of it say."""

    order: Annotated[tuple[str, ...], "client IDs in the order in which they stop"]
    order_name: Annotated[str, "the kind of order, such as sorted, reversed, least overlap or given"]
    at_once: Annotated[int, "how many stop at once"]
    pause_ms: Annotated[float, "time between two stops"]
    down_ms: Annotated[float, "downtime of each"]
    takes_ms: Annotated[float | None, "from the first stop until convergence, in 95 % of trials; null for never"]
    restarts: Annotated[int, "restarts in the trials, evenly spread; fewer than all where the group is too large"]
    best: Annotated[bool, "no other choice that was tried is better"] = False


class MixedStage(Struct, frozen=True, rename="camel"):
    """A stage of a strategy change at rest: some consumers run the new strategy, the others still the old one."""

    changed: Annotated[int, "how many consumers run the new strategy"]
    next_id: Annotated[str | None, "the consumer that changes next; null after the last"]
    duplicate_owners: Annotated[int, "queues that two consumers own during the stage"]
    unassigned: Annotated[int, "queues without an owner during the stage"]


class Rollout(Result, frozen=True):
    """A rolling restart or a change of strategy, planned."""

    group: Annotated[str | None, "the group; null when the source names none"]
    strategy_before: Annotated[str, "by RocketMQ's name"]
    strategy_after: Annotated[str, "by RocketMQ's name; the same if only a restart is planned"]
    members: Annotated[tuple[str, ...], "client IDs to restart, in the clients' order"] = field(name="consumers")
    choices: Annotated[tuple[RolloutChoice, ...], "the choices that were tried, best first"]
    stages: Annotated[tuple[MixedStage, ...], "mixed stages of the best order; empty if only a restart is planned"]
    misassigned: Annotated[int, "queues that are unassigned or have duplicate owners, summed over these stages"]
    misassigned_is_minimum: Annotated[bool, "every order was tried: none has fewer"]
    choices_in_all: Annotated[int, "number of possible choices; more than were tried if the group is too large"] = 0
    conditions: tuple[TriedCondition, ...] = ()
