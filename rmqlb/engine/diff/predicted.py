"""Compare a stored plan or simulation with a snapshot: did it go as planned?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rmqlb.engine.group import Group, gaps
from rmqlb.engine.record.compare import Expected, outcome_of
from rmqlb.model.diff import PredictedGroup, PredictionSummary
from rmqlb.model.message_queue import sort_client_ids, sort_queues
from rmqlb.model.recording import DIFFERENCES, QueueComparison
from rmqlb.model.snapshot import ClusterSnapshot


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
