"""What changed between two snapshots, and what came of it, in a few words each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rmqlb.model.diff import BrokerDiff, BrokerQueues, Cause, Change, Explained, GroupDiff, QueueDiff, TopicDiff
from rmqlb.model.route import MASTER_ID
from rmqlb.model.words import counted, named

_MOST_PROCESSES = 3
_MASTER = str(MASTER_ID)
_VERBS: Mapping[Change, str] = {
    "moved": "moved",
    "unassigned": "became unassigned",
    "assigned": "got an owner",
    "added": "added",
    "removed": "removed",
}
"""The worst are said elsewhere first; here in the order of a plan's verdict."""


def cause_text(cause: Cause, group: GroupDiff, topics: Mapping[str, TopicDiff]) -> str:
    """What changed, of one kind."""
    match cause:
        case "consumers":
            return "; ".join(_consumers(group))
        case "strategy":
            return f"strategy {strategies_text(group, 'before')} → {strategies_text(group, 'after')}"
        case "subscriptions":
            return "; ".join(_subscriptions(group))
    return "; ".join(f"{topic}: {route_text(topics[topic])}" for topic in _routes_of(group, topics))


def strategies_text(group: GroupDiff, which: str) -> str:
    """The strategies of a side; the default where neither shows any."""
    side = group.before if which == "before" else group.after
    others = group.after if which == "before" else group.before
    known = next((each.strategies for each in (side, others) if each is not None and each.strategies), ())
    return ", ".join(known) or ("AVG (assumed)" if group.strategy_assumed else "unknown")


def route_text(topic: TopicDiff) -> str:
    """What changed of a topic's route."""
    if topic.change != "changed":
        return f"topic {topic.change}"
    settings = [f"{each.name} {each.before or 'not set'} → {each.after or 'not set'}" for each in topic.settings]
    return "; ".join([*(broker_text(broker) for broker in topic.brokers), *settings])


def broker_text(broker: BrokerDiff) -> str:
    """What changed of a topic on a broker."""
    if broker.before is None or broker.after is None:
        there = broker.after or broker.before
        queues = "" if there is None else f" ({there.read_queue_nums} read, {there.write_queue_nums} write queues)"
        return f"{'+' if broker.before is None else '-'} {broker.broker_name}{queues}"
    return f"{broker.broker_name} {', '.join(_of_broker(broker.before, broker.after))}"


def queues_of(explained: Explained, group: GroupDiff) -> list[QueueDiff]:
    """The queues that have this explanation."""
    return [queue for queue in group.queues if (queue.how, queue.causes) == (explained.how, explained.causes)]


def effect_text(explained: Explained, group: GroupDiff) -> str:
    """What came of it, as one explanation says it."""
    queues = queues_of(explained, group)
    if explained.how == "pending":
        unassigned = sum(queue.change == "unassigned" for queue in queues)
        meanwhile = f"; {unassigned} of them unassigned" if unassigned else ""
        strategy = strategies_text(group, "after")
        return f"{counted(len(queues), 'queue')} not yet with the owners that {strategy} predicts{meanwhile}"
    counts = changes_text(queues)
    if explained.how == "converged":
        return f"{counts}, to the owners predicted before: the group had not converged"
    if explained.how == "predicted":
        return f"{counts}, as {strategies_text(group, 'after')} predicts"
    return f"{counts}, unexplained" + (f": {group.not_predicted}" if group.not_predicted else "")


def changes_text(queues: Iterable[QueueDiff]) -> str:
    """How many queues moved, became unassigned and so on.

    >>> changes_text([])
    'owners unchanged'
    """
    queues = list(queues)
    counts = Counter(queue.change for queue in queues)
    duplicate = sum(queue.got_duplicate_owners for queue in queues)
    parts = [f"{number} {_VERBS[change]}" for change in _VERBS if (number := counts[change])]
    if not parts:
        return f"{counted(counts['same'], 'queue')} had these owners already" if counts["same"] else "owners unchanged"
    first, _, rest = parts[0].partition(" ")
    got = [f"{duplicate} with duplicate owners now"] if duplicate else []
    return ", ".join([f"{counted(int(first), 'queue')} {rest}", *parts[1:], *got])


def causes_without_effect(group: GroupDiff) -> Iterator[Cause]:
    """What changed without being the cause of anything."""
    named = {cause for each in group.explanations for cause in each.causes}
    if (group.joined or group.left or group.processes) and "consumers" not in named:
        yield "consumers"
    if group.strategy_changed and "strategy" not in named:
        yield "strategy"
    if (group.topics_added or group.topics_removed) and "subscriptions" not in named:
        yield "subscriptions"


def _consumers(group: GroupDiff) -> Iterator[str]:
    if group.joined:
        yield f"+ {named(group.joined)}"
    if group.left:
        yield f"- {named(group.left)}"
    for each in group.processes[:_MOST_PROCESSES]:
        yield f"{each.client_id}: {each.before} → {each.after} process{'' if each.after == 1 else 'es'}"


def _subscriptions(group: GroupDiff) -> Iterator[str]:
    if group.topics_added:
        yield f"subscribes to {named(group.topics_added)}"
    if group.topics_removed:
        yield f"no longer subscribes to {named(group.topics_removed)}"
    if not group.topics_added and not group.topics_removed:
        yield "subscriptions of single consumers"


def _routes_of(group: GroupDiff, topics: Mapping[str, TopicDiff]) -> list[str]:
    concerned = {queue.topic for queue in group.queues}
    return [name for name, topic in topics.items() if name in concerned or group.group in topic.groups]


def _of_broker(before: BrokerQueues, after: BrokerQueues) -> Iterator[str]:
    if before.read_queue_nums != after.read_queue_nums:
        yield f"{before.read_queue_nums} → {counted(after.read_queue_nums, 'read queue')}"
    if before.write_queue_nums != after.write_queue_nums:
        yield f"{before.write_queue_nums} → {counted(after.write_queue_nums, 'write queue')}"
    if before.perm != after.perm:
        yield f"{_perm(before.perm)} → {_perm(after.perm)}"
    if before.broker_addrs != after.broker_addrs:
        was, becomes = before.broker_addrs.get(_MASTER), after.broker_addrs.get(_MASTER)
        yield f"master {was or 'none'} → {becomes or 'none'}" if was != becomes else "other slaves"


def _perm(perm: int) -> str:
    """As mqadmin writes it.

    >>> _perm(6), _perm(4), _perm(0)
    ('RW', 'R-', '--')
    """
    return ("R" if perm & 4 else "-") + ("W" if perm & 2 else "-")
