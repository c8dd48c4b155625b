"""One look at a group: what a snapshot says of who owns what, and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import popped_topics
from rmqlb.engine.group import Given, Group, gaps
from rmqlb.errors import RmqlbError
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import Look
from rmqlb.model.snapshot import ClusterSnapshot

_NO_REPORT = "it did not say which queues it owns"


def look_of(
    snapshot: ClusterSnapshot,
    group: str,
    asked_at: int,
    answered_at: int,
    topics: Sequence[str] = (),
    settings: Settings | None = None,
) -> Look:
    """What the snapshot says of the group (raises DataError: the group is not there).

    Args:
        asked_at: when the snapshot's first request went out, in milliseconds since 1970.
        answered_at: when its last answer was there.
        topics: only these; none stands for those that the group subscribes to.
        settings: what the consumers' strategies are constructed with.
    """
    seen = snapshot.group(group)
    names = set(topics or seen.own_topics or ()) - popped_topics(seen)
    listed = frozenset(seen.client_ids or ())
    silent = {part.detail: part.reason for part in snapshot.unread if (part.kind, part.name) == ("member", group)}
    complete = seen.views is not None and ("members", group) not in {(part.kind, part.name) for part in snapshot.unread}
    predicted, strategy = _predicted(snapshot, group, settings or Settings())
    return Look(
        asked_at,
        answered_at,
        held={client_id: _held(seen, client_id, topics) for client_id in seen.reports},
        unanswered={each: silent.get(each, _NO_REPORT) for each in sorted(listed - seen.reports.keys())},
        listed=listed if complete else None,
        routes={name: _queues(snapshot, name) for name in sorted(names & snapshot.routes.keys())},
        predicted=predicted,
        strategy=strategy,
    )


def failed_look(asked_at: int, answered_at: int, reason: str) -> Look:
    """A look that showed nothing."""
    return Look(asked_at, answered_at, failed=reason)


def _held(group: ConsumerGroup, client_id: str, topics: Sequence[str]) -> frozenset[MessageQueue]:
    return frozenset(
        queue
        for queue, state in group.queues.items()
        if state.owners
        and client_id in state.owners
        and (queue.topic in topics if topics else not queue.topic.startswith(RETRY_PREFIX))
    )


def _queues(snapshot: ClusterSnapshot, topic: str) -> tuple[MessageQueue, ...]:
    return tuple(snapshot.routes[topic].route.subscribe_queues())


def _predicted(
    snapshot: ClusterSnapshot, group: str, settings: Settings
) -> tuple[Mapping[MessageQueue, tuple[str, ...]] | None, str | None]:
    """The owners under the strategy that the consumers report, and its name; None where that cannot be known."""
    facts = Group(snapshot, group, settings, Given(assume=None), gaps(snapshot))
    try:
        if facts.strategy.origin != "reported":
            return None, None
        strategy = ", ".join(facts.strategy.run_by_members)
        owners = facts.predicted
    except RmqlbError:
        return None, None
    return owners, strategy
