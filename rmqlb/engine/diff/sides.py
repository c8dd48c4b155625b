"""A group in one of two snapshots: what decides the owners of its queues, and what was observed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.engine.group import Group
from rmqlb.errors import DataError
from rmqlb.model.diff import GroupOwners
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup, States
from rmqlb.model.snapshot import RouteSighting


class GroupSide(Struct, frozen=True):
    """A group in one snapshot.

    Attributes:
        client_ids: duplicates kept; None when not all of them are reported, or they are behind a Proxy that is not.
        members: who decides; None when `problem` says why nothing can be predicted.
        strategy_known: it is reported, or follows from the owners observed; otherwise it is the default.
        topics: those whose queues its consumers share; None when not known.
        routes: of all topics of the snapshot.
        observed: queue → its owners, where they are reported.
    """

    group: ConsumerGroup
    client_ids: tuple[str, ...] | None
    members: Members | None
    strategy_known: bool
    topics: tuple[str, ...] | None
    routes: Mapping[str, RouteSighting]
    observed: Owners
    problem: str | None

    @property
    def broadcasting(self) -> bool:
        """Each consumer reads every queue."""
        return self.group.message_model == BROADCASTING

    @property
    def offline(self) -> bool:
        """Brokers list no consumer: what it ran, and often what it subscribed to, nobody reports any more."""
        return self.client_ids == ()

    @property
    def states(self) -> States:
        """What is known of its queues, without those of its retry topic."""
        return {q: state for q, state in self.group.queues.items() if not q.topic.startswith(RETRY_PREFIX)}

    @property
    def summary(self) -> GroupOwners:
        """What of it is compared."""
        lags = [state.lag for state in self.states.values() if state.lag is not None]
        return GroupOwners(
            consumers=None if self.client_ids is None else len(set(self.client_ids)),
            topics=self.group.own_topics,
            strategies=self.strategies,
            queues=len(self.observed),
            unassigned=sum(not owners for owners in self.observed.values()),
            duplicate_owners=0 if self.broadcasting else sum(len(owners) > 1 for owners in self.observed.values()),
            lag=sum(lags) if lags else None,
        )

    @property
    def strategies(self) -> tuple[str, ...]:
        """What its consumers run, the most frequent first; empty when not known."""
        reported = Counter(reported_strategies(self.group).values())
        if reported:
            return tuple(name for name, _ in reported.most_common())
        return (self.members.name,) if self.members is not None and self.strategy_known and self.client_ids else ()


def group_side(facts: Group) -> GroupSide:
    """What the facts of a group say; `facts.assume` stands for a strategy that nobody reports."""
    group = facts.group.without_foreign_offsets
    side = GroupSide(
        group=group,
        client_ids=None if facts.untold is not None else facts.listed,
        members=None,
        strategy_known=False,
        topics=None,
        routes=facts.snapshot.routes,
        observed=facts.observed,
        problem=facts.apart,
    )
    if side.problem is not None:
        return side
    if side.offline:
        return replace(side, members=Members((), DEFAULT, facts.settings), topics=_topics(facts))
    try:
        known = facts.basis != "assumed"
        _ = facts.all_client_ids
        return replace(side, members=facts.members, strategy_known=known, topics=_topics(facts, needed=True))
    except DataError as error:
        return replace(side, problem=error.message)


def _topics(facts: Group, *, needed: bool = False) -> tuple[str, ...] | None:
    try:
        return tuple(route.topic for route in facts.routes)
    except DataError:
        if needed:
            raise
        return None
