"""Explain owners that changed: they are predicted from the first snapshot, with changes applied to it.

Rule of this file: each of `CAUSES` decides owners separately, and is taken from the first snapshot or the second. The
smallest combination that gives a queue its present owners explains it; among equals the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.engine.group import Group, gaps, known
from rmqlb.engine.plan.rebalance import change_of
from rmqlb.engine.record.compare import Expected, outcome_of
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diff import CAUSES, Cause, Explained, GroupOwners, How, PredictedGroup, PredictionSummary, QueueDiff
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup, QueueState, States
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.plan import SAME
from rmqlb.model.recording import DIFFERENCES, QueueComparison
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting

Causes = tuple[Cause, ...]
_QueueOwners = tuple[str, ...] | None
"""None is a queue that does not exist."""


class GroupSide(Struct, frozen=True):
    """A group in one snapshot."""

    group: ConsumerGroup  # the group without offsets of other groups
    # with duplicates; None when not all of them are reported, or they are behind an unknown Proxy
    client_ids: tuple[str, ...] | None
    members: Members | None  # the consumers and their strategy; None when `problem` says why nothing can be predicted
    strategy_known: bool  # it is reported, or follows from the observed owners; otherwise it is the default
    topics: tuple[str, ...] | None  # those whose queues its consumers share; None when unknown
    routes: Mapping[str, RouteSighting]  # those of all topics of the snapshot
    observed: Owners  # queue → its reported owners
    problem: str | None  # why nothing can be predicted; None when it can

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
    """The group in one snapshot; `facts.assume` replaces a strategy that nobody reports."""
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
        return replace(side, members=Members((), DEFAULT, facts.settings), topics=known(lambda: _topics(facts)))
    try:
        is_known = facts.basis != "assumed"
        _ = facts.all_client_ids
        return replace(side, members=facts.members, strategy_known=is_known, topics=_topics(facts))
    except DataError as error:
        return replace(side, problem=error.message)


def _topics(facts: Group) -> tuple[str, ...]:
    return tuple(route.topic for route in facts.routes)


class Prediction:
    """The owners that a group would have with any of the changes between two snapshots.

    Attributes:
        changed: what differs.
        problem: why nothing can be predicted; None when it can.
        ends: the owners without any change, and with all; empty where none can be predicted or nothing differs.
    """

    def __init__(self, before: GroupSide, after: GroupSide) -> None:
        self._before, self._after = _completed(before, after)
        self.problem = self._before.problem or self._after.problem
        self.changed = () if self.problem else tuple(_changed(self._before, self._after))
        self._known: dict[Causes, Owners] = {}
        self.ends: tuple[Owners, Owners] = {}, {}
        if self.problem is None and (self.changed or before.observed != after.observed):
            try:
                self.ends = self.owners(()), self.owners(self.changed)
            except RmqlbError as error:  # what a client would throw
                self.problem = error.message

    def owners(self, causes: Causes) -> Owners:
        """Queue → its owners with these changes applied to the first snapshot.

        Raises:
            AllocationError: every client throws then.
        """
        if causes not in self._known:
            self._known[causes] = self._predicted(causes)
        return self._known[causes]

    def causes_of(self, queue: MessageQueue, owners: _QueueOwners) -> Causes | None:
        """The fewest changes that give the queue these owners; None when none do."""
        for number in range(len(self.changed) + 1):
            for causes in combinations(self.changed, number):
                try:
                    if self.owners(causes).get(queue) == owners:
                        return causes
                except RmqlbError:  # clients throw with these changes, and keep their queues
                    continue
        return None

    def _predicted(self, causes: Causes) -> Owners:
        chosen = {cause: self._after if cause in causes else self._before for cause in CAUSES}
        strategy, ids = chosen["strategy"].members, chosen["consumers"].client_ids
        topics, routes = chosen["subscriptions"].topics, chosen["routes"].routes
        if strategy is None or ids is None or topics is None:
            return {}
        first, then = self._before, self._after
        if chosen["subscriptions"] is first:
            first, then = then, first
        subscribed = {**_subscribed(first), **_subscribed(then)}
        sdks = {**_sdks(self._before), **_sdks(self._after), **_sdks(chosen["consumers"])}
        members = replace(strategy, client_ids=ids, subscribed=subscribed, sdk_of=sdks)
        return owners_at_rest([routes[topic].route for topic in topics if topic in routes], members)


def queue_diffs(before: GroupSide, after: GroupSide, prediction: Prediction) -> Iterator[QueueDiff]:
    """Each queue whose observed or predicted owners differ, in the clients' order."""
    if before.broadcasting or after.broadcasting:
        return
    first, last = prediction.ends
    for queue in sort_queues({*first, *last, *before.observed, *after.observed}):
        found = _queue_diff(queue, before, after, prediction, (first.get(queue), last.get(queue)))
        if found is not None:
            yield found


def explanations(queues: tuple[QueueDiff, ...]) -> tuple[Explained, ...]:
    """The queues counted by explanation, most first."""
    counts = Counter((queue.how, queue.causes) for queue in queues)
    return tuple(Explained(how, causes, number) for (how, causes), number in counts.most_common())


def _queue_diff(
    queue: MessageQueue,
    before: GroupSide,
    after: GroupSide,
    prediction: Prediction,
    predicted: tuple[_QueueOwners, _QueueOwners],
) -> QueueDiff | None:
    """What became of a queue; None when nothing did, or when it is not known."""
    observed = before.observed.get(queue), after.observed.get(queue)
    exists = [owners is not None for owners in predicted]
    if not any(exists):  # no prediction, or a queue that no route has any more
        exists = [True, True]
    is_observed = all(seen is not None for seen, there in zip(observed, exists, strict=True) if there)
    if not is_observed and predicted == (None, None):
        return None
    was, becomes = (
        (owners if there else None)
        for owners, there in zip(observed if is_observed else predicted, exists, strict=True)
    )
    if was == becomes and predicted[0] == predicted[1]:
        return None
    how, causes = _explained(queue, was, becomes, prediction, predicted)
    return QueueDiff(
        topic=queue.topic,
        broker_name=queue.broker_name,
        queue_id=queue.queue_id,
        change=SAME if was == becomes else change_of(was, becomes),
        basis="observed" if is_observed else "predicted",
        owners_before=was,
        owners_after=becomes,
        predicted_before=predicted[0],
        predicted_after=predicted[1],
        how=how,
        causes=causes,
        lag_before=before.group.queues.get(queue, QueueState()).lag,
        lag_after=after.group.queues.get(queue, QueueState()).lag,
    )


def _explained(
    queue: MessageQueue,
    was: _QueueOwners,
    becomes: _QueueOwners,
    prediction: Prediction,
    predicted: tuple[_QueueOwners, _QueueOwners],
) -> tuple[How, Causes]:
    if prediction.problem is not None:
        return "unexplained", ()
    causes = prediction.causes_of(queue, becomes)
    if causes is not None and (causes or was != becomes):
        return ("predicted" if causes else "converged"), causes
    first, last = predicted
    # On its way a queue has its former owner, the new one, both or none.
    if first != last and set(becomes or ()) <= {*(was or ()), *(last or ())}:
        return "pending", prediction.causes_of(queue, last) or ()
    return "unexplained", ()


def _completed(before: GroupSide, after: GroupSide) -> tuple[GroupSide, GroupSide]:
    """Both sides, each with what the other knows in place of what nobody reports."""
    return _with(before, after), _with(after, before)


def _with(side: GroupSide, other: GroupSide) -> GroupSide:
    members = side.members
    if members is not None and other.members is not None and not side.strategy_known and other.strategy_known:
        members = replace(members, strategy=other.members.strategy, strategy_of=other.members.strategy_of)
    return replace(side, members=members, topics=other.topics if side.topics is None else side.topics)


def _changed(before: GroupSide, after: GroupSide) -> Iterator[Cause]:
    if before.client_ids != after.client_ids or next(sdks_that_differ(before, after), None) is not None:
        yield "consumers"
    if _strategies_differ(before, after):
        yield "strategy"
    topics, others = before.topics or (), after.topics or ()
    first, then = _subscribed(before), _subscribed(after)
    looked_at = {*topics, *others}
    stayed = first.keys() & then.keys()
    if set(topics) != set(others) or any((first[each] ^ then[each]) & looked_at for each in stayed):
        yield "subscriptions"
    for topic in dict.fromkeys((*topics, *others)):
        was, becomes = (side.routes.get(topic) for side in (before, after))
        if (was and was.route.subscribe_queues()) != (becomes and becomes.route.subscribe_queues()):
            yield "routes"
            return


def _strategies_differ(before: GroupSide, after: GroupSide) -> bool:
    """Some consumer of both runs another strategy, or a new one runs another than they did."""
    first, then = before.members, after.members
    if first is None or then is None or before.offline or after.offline:
        return False
    stayed = set(first.client_ids) & set(then.client_ids)
    new = set(then.client_ids) - stayed
    return any(first.strategy_for(each) != then.strategy_for(each) for each in stayed) or any(
        then.strategy_for(each) != first.group_strategy for each in new
    )


def sdks_that_differ(before: GroupSide, after: GroupSide) -> Iterator[tuple[str, str, str]]:
    """The consumers of both that run another client library: client ID, the one before, the one after."""
    first, then = _sdks(before), _sdks(after)
    for client_id in first.keys() & then.keys():
        if first[client_id] != then[client_id]:
            yield client_id, first[client_id], then[client_id]


def _sdks(side: GroupSide) -> dict[str, str]:
    """Client ID → its client library."""
    members = side.members
    return {} if members is None else {each: members.sdk_for(each).name for each in members.client_ids}


def _subscribed(side: GroupSide) -> dict[str, frozenset[str]]:
    reports = side.group.reports
    return {each: report.topics for each, report in reports.items() if report.topics is not None}


# -- a stored plan or simulation: did it go as planned? ----------------------------------------------------------------


def predicted_group(expected: Expected, name: str, after: ClusterSnapshot) -> PredictedGroup:
    """Compare the predicted owners of a group with those of the snapshot (raises DataError: the group is not there)."""
    group = Group(after, name, gaps=gaps(after))
    names = expected.placeholders(set(group.group.client_ids or ()))
    queues = []
    for queue in sort_queues(expected.after):
        before, owners = expected.owners(queue, names)
        observed = group.observed.get(queue)
        seen = None if observed is None else tuple(sort_client_ids(observed))
        outcome = outcome_of(before, seen, owners)
        queues.append(QueueComparison(*(queue.topic, queue.broker_name, queue.queue_id), outcome, owners, seen))
    return PredictedGroup(name, expected.kind, names, tuple(queues))


def prediction_summary(groups: Iterable[PredictedGroup]) -> PredictionSummary:
    """The number of queues by outcome."""
    numbers = Counter(queue.outcome for group in groups for queue in group.queues)
    differences = sum(numbers[outcome] for outcome in DIFFERENCES)
    total = sum(numbers.values())
    return PredictionSummary(total, differences, numbers["other-owner"], numbers["not-yet"], numbers["unknown"])
