"""Who really owns a queue, put together from what single members say they hold."""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec.structs import replace

from rmqlb.model.group import MemberReport, QueueState
from rmqlb.model.message_queue import MessageQueue


def with_owners(
    queues: Mapping[MessageQueue, QueueState],
    held: Mapping[str, Set[MessageQueue]],  # client id → the queues it holds; a member that did not answer is absent
    members: Set[str] | None,
    popped: Set[str] = frozenset(),  # topics whose messages members take by POP, which makes nobody an owner
) -> dict[MessageQueue, QueueState]:
    """The queues, and those that members hold, with their owners as the members themselves report them.

    A queue that nobody holds has no owner when every member answered, unless they take its messages by POP; otherwise
    what was known before stands.
    """
    owners: dict[MessageQueue, set[str]] = {}
    for client_id, its_queues in held.items():
        for queue in its_queues:
            owners.setdefault(queue, set()).add(client_id)
    complete = bool(members) and members is not None and members <= held.keys()
    states = {queue: queues.get(queue, QueueState()) for queue in (*queues, *owners)}
    for queue, state in states.items():
        if queue in owners:
            states[queue] = replace(state, owners=frozenset(owners[queue]))
        elif complete and queue.topic not in popped:
            states[queue] = replace(state, owners=frozenset())
    return states


def popped_topics(reports: Mapping[str, MemberReport]) -> frozenset[str]:
    """The topics of which members report that they take messages by POP."""
    return frozenset[str]().union(*(report.pop_topics or () for report in reports.values()))
