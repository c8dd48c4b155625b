"""Explain changed owners: predict them from the first snapshot with changes applied.

Each of `CAUSES` decides owners separately, and comes from the first snapshot or the second. The smallest combination
that gives a queue its present owners explains it; among equals the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.engine.group import Group, gaps, known
from rmqlb.engine.plan.rebalance import change_of
from rmqlb.engine.record.compare import Expected
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diff import CAUSES, Cause, Explained, GroupOwners, How, PredictedGroup, PredictionSummary, QueueDiff
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, QueueState
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.plan import SAME
from rmqlb.model.recording import DIFFERENCES
from rmqlb.model.snapshot import ClusterSnapshot

Causes = tuple[Cause, ...]
_QueueOwners = tuple[str, ...] | None
"""None is a queue that does not exist."""


class GroupSide:
    """A group in one snapshot: the facts that decide its owners, and its observed owners.

    Attributes:
        client_ids: with duplicates; None when not all of them are reported, or they are behind an unknown Proxy.
        members: the consumers and their strategy; None when `problem` says why nothing can be predicted.
        strategy_known: the strategy is reported, or follows from the observed owners; otherwise it is the default.
        topics: those whose queues its consumers share; None when unknown.
        offline: brokers list no consumer, so the strategy and often the subscriptions are not reported.
        states: its queues without those of its retry topic, and without offsets of other groups.
    """

    def __init__(self, facts: Group) -> None:
        self.group = facts.group.without_foreign_offsets
        self.client_ids = None if facts.untold is not None else facts.listed
        self.routes, self.observed = facts.snapshot.routes, facts.observed
        self.broadcasting = self.group.message_model == BROADCASTING
        self.offline = self.client_ids == ()
        self.states = {q: state for q, state in self.group.queues.items() if not q.topic.startswith(RETRY_PREFIX)}
        self.members: Members | None = None
        self.topics: tuple[str, ...] | None = None
        self.strategy_known, self.problem = False, facts.apart
        if self.problem is None and self.offline:
            self.members = Members((), DEFAULT, facts.settings)
            routes = known(lambda: facts.routes)
            self.topics = None if routes is None else tuple(route.topic for route in routes)
        elif self.problem is None:
            try:
                is_known, _ = facts.basis != "assumed", facts.all_client_ids
                members, topics = facts.members, tuple(route.topic for route in facts.routes)
                self.members, self.topics, self.strategy_known = members, topics, is_known
            except DataError as error:
                self.problem = error.message

    @property
    def summary(self) -> GroupOwners:
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
        reported = Counter(reported_strategies(self.group).values())
        if reported:
            return tuple(name for name, _ in reported.most_common())
        return (self.members.name,) if self.members is not None and self.strategy_known and self.client_ids else ()

    @property
    def sdks(self) -> dict[str, str]:
        members = self.members
        return {} if members is None else {each: members.sdk_for(each).name for each in members.client_ids}

    @property
    def subscribed(self) -> dict[str, frozenset[str]]:
        reports = self.group.reports
        return {each: report.topics for each, report in reports.items() if report.topics is not None}

    def complete_from(self, other: GroupSide) -> None:
        mine, theirs = self.members, other.members
        if mine is not None and theirs is not None and not self.strategy_known and other.strategy_known:
            self.members = replace(mine, strategy=theirs.strategy, strategy_of=theirs.strategy_of)
        if self.topics is None:
            self.topics = other.topics


class Prediction:
    """The owners with any of the changes between two snapshots; `ends` has those with none and with all."""

    def __init__(self, before: GroupSide, after: GroupSide) -> None:
        self._before, self._after = before, after
        before.complete_from(after)
        after.complete_from(before)
        self.problem = before.problem or after.problem
        self.changed = () if self.problem else tuple(_changed(before, after))
        self._known: dict[Causes, Owners] = {}
        self.ends: tuple[Owners, Owners] = {}, {}
        if self.problem is None and (self.changed or before.observed != after.observed):
            try:
                self.ends = self._owners(()), self._owners(self.changed)
            except RmqlbError as error:  # a client would throw
                self.problem = error.message

    def causes_of(self, queue: MessageQueue, owners: _QueueOwners) -> Causes | None:
        """The fewest changes that give the queue these owners; None when none do."""
        for number in range(len(self.changed) + 1):
            for causes in combinations(self.changed, number):
                try:
                    if self._owners(causes).get(queue) == owners:
                        return causes
                except RmqlbError:  # clients throw with these changes, and keep their queues
                    continue
        return None

    def _owners(self, causes: Causes) -> Owners:
        """Queue → its owners with these changes applied to the first snapshot (raises AllocationError)."""
        if causes in self._known:
            return self._known[causes]
        first, then = self._before, self._after
        chosen = {cause: then if cause in causes else first for cause in CAUSES}
        strategy, ids = chosen["strategy"].members, chosen["consumers"].client_ids
        topics, routes = chosen["subscriptions"].topics, chosen["routes"].routes
        owners: Owners = {}
        if strategy is not None and ids is not None and topics is not None:
            if chosen["subscriptions"] is first:
                first, then = then, first
            subscribed = {**first.subscribed, **then.subscribed}
            sdks = {**self._before.sdks, **self._after.sdks, **chosen["consumers"].sdks}
            members = replace(strategy, client_ids=ids, subscribed=subscribed, sdk_of=sdks)
            owners = owners_at_rest([routes[topic].route for topic in topics if topic in routes], members)
        self._known[causes] = owners
        return owners


def queue_diffs(before: GroupSide, after: GroupSide, prediction: Prediction) -> Iterator[QueueDiff]:
    if before.broadcasting or after.broadcasting:
        return
    first, last = prediction.ends
    for queue in sort_queues({*first, *last, *before.observed, *after.observed}):
        found = _queue_diff(queue, before, after, prediction, (first.get(queue), last.get(queue)))
        if found is not None:
            yield found


def explanations(queues: tuple[QueueDiff, ...]) -> tuple[Explained, ...]:
    counts = Counter((queue.how, queue.causes) for queue in queues)
    return tuple(Explained(how, causes, number) for (how, causes), number in counts.most_common())


def _queue_diff(
    queue: MessageQueue,
    before: GroupSide,
    after: GroupSide,
    prediction: Prediction,
    predicted: tuple[_QueueOwners, _QueueOwners],
) -> QueueDiff | None:
    """The change of a queue; None when nothing changed, or when the change is unknown."""
    observed = before.observed.get(queue), after.observed.get(queue)
    # Without a prediction, or without any route to the queue, the queue exists on both sides.
    exists = [owners is not None or predicted == (None, None) for owners in predicted]
    is_observed = all(seen is not None for seen, there in zip(observed, exists, strict=True) if there)
    if not is_observed and predicted == (None, None):
        return None
    sides = zip(observed if is_observed else predicted, exists, strict=True)
    was, becomes = (owners if there else None for owners, there in sides)
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
    # A moving queue has its former owner, the new one, both or none.
    if first != last and set(becomes or ()) <= {*(was or ()), *(last or ())}:
        return "pending", prediction.causes_of(queue, last) or ()
    return "unexplained", ()


def _changed(before: GroupSide, after: GroupSide) -> Iterator[Cause]:
    if before.client_ids != after.client_ids or sdks_that_differ(before, after):
        yield "consumers"
    if _strategies_differ(before, after):
        yield "strategy"
    topics, others = before.topics or (), after.topics or ()
    first, then, all_topics = before.subscribed, after.subscribed, dict.fromkeys((*topics, *others))
    changed = ((first[each] ^ then[each]) & all_topics.keys() for each in first.keys() & then.keys())
    if set(topics) != set(others) or any(changed):
        yield "subscriptions"
    for topic in all_topics:
        was, becomes = (side.routes.get(topic) for side in (before, after))
        if (was and was.route.subscribe_queues()) != (becomes and becomes.route.subscribe_queues()):
            yield "routes"
            return


def _strategies_differ(before: GroupSide, after: GroupSide) -> bool:
    """Whether a consumer of both runs another strategy, or a new one differs from the group's."""
    first, then = before.members, after.members
    if first is None or then is None or before.offline or after.offline:
        return False
    known = set(first.client_ids)
    strategies = ((first.strategy_for(i) if i in known else first.group_strategy, i) for i in set(then.client_ids))
    return any(then.strategy_for(client_id) != strategy for strategy, client_id in strategies)


def sdks_that_differ(before: GroupSide, after: GroupSide) -> dict[str, tuple[str, str]]:
    """Client ID → its client library before and after, for consumers of both that changed it."""
    first, then = before.sdks, after.sdks
    return {each: (first[each], then[each]) for each in first.keys() & then.keys() if first[each] != then[each]}


# -- a stored plan or simulation: did it go as planned? ----------------------------------------------------------------


def predicted_group(expected: Expected, name: str, after: ClusterSnapshot) -> PredictedGroup:
    group = Group(after, name, gaps=gaps(after))
    names = expected.placeholders(set(group.group.client_ids or ()))
    owners = {queue: tuple(sort_client_ids(observed)) for queue, observed in group.observed.items()}
    queues = tuple(expected.compare(queue, owners.get(queue), names) for queue in sort_queues(expected.after))
    return PredictedGroup(name, expected.kind, names, queues)


def prediction_summary(groups: Iterable[PredictedGroup]) -> PredictionSummary:
    numbers = Counter(queue.outcome for group in groups for queue in group.queues)
    differences = sum(numbers[outcome] for outcome in DIFFERENCES)
    kinds = (numbers[outcome] for outcome in ("other-owner", "not-yet", "unknown"))
    return PredictionSummary(numbers.total(), differences, *kinds)
