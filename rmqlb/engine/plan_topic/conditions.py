"""Whether what a step waits for holds in a snapshot: true, false, or unknown with what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rmqlb.model.group import BROADCASTING, CONSUME_POP, ConsumerGroup, QueueState
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.plan_topic import Checked, Step, StepCheck, WaitFor
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.model.words import counted, messages, named

_LASTING = ("readable", "writable")
"""What an earlier step has waited for and must still hold."""


def check_step(
    steps: Sequence[Step], number: int, snapshot: ClusterSnapshot, topic: str, groups: Sequence[str]
) -> StepCheck:
    """Whether the step after step `number` (from 1) may begin (raises DataError where the topic is not there)."""
    waits = [wait for step in steps[: number - 1] for wait in step.wait_for if wait.kind in _LASTING]
    waits += steps[number - 1].wait_for
    found = tuple(check(wait, snapshot, topic, groups) for wait in dict.fromkeys(waits))
    return StepCheck(number, all_hold(each.holds for each in found), found)


def all_hold(each: Iterable[bool | None]) -> bool | None:
    """One that does not hold decides; otherwise one that is unknown does.

    >>> all_hold([True, None]), all_hold([None, False]), all_hold([])
    (None, False, True)
    """
    values = list(each)
    return False if False in values else None if None in values else True


def check(wait: WaitFor, snapshot: ClusterSnapshot, topic: str, groups: Sequence[str]) -> Checked:
    """What came of waiting for it (raises DataError where the topic is not there)."""
    snapshot.route(topic)
    sighting = snapshot.routes[topic]
    if wait.kind in ("readable", "writable", "not-readable"):
        return _of_routes(wait, sighting)
    present = {name: snapshot.groups[name] for name in groups if name in snapshot.groups}
    unread = [each.what for each in snapshot.unread if each.kind in ("groups", "group", "members", "member", "offsets")]
    if wait.kind == "drained":
        if not snapshot.groups:
            unread.append("the source has no group of the topic")
        return _drained(wait, topic, present, unread)
    return _owned(wait, topic, present)


def _of_routes(wait: WaitFor, sighting: RouteSighting) -> Checked:
    faults = [fault for each in (sighting, *sighting.others) if (fault := _fault_of_route(wait, each)) is not None]
    return Checked(wait.kind, not faults, "; ".join(faults))


def _fault_of_route(wait: WaitFor, sighting: RouteSighting) -> str | None:
    queues = sighting.route.publish_queues() if wait.kind == "writable" else sighting.route.subscribe_queues()
    found = [QueueName(queue.broker_name, queue.queue_id) for queue in queues]
    if wait.kind == "writable":
        return None if found == [*wait.queues] else f"producers have {counted(len(found), 'queue')}: {_listed(found)}"
    if wait.kind == "readable":
        missing = [queue for queue in wait.queues if queue not in set(found)]
        return f"consumers cannot read {_listed(missing)}" if missing else None
    left = [queue for queue in found if queue in set(wait.queues)]
    return f"consumers can still read {_listed(left)}" if left else None


def _drained(wait: WaitFor, topic: str, groups: Mapping[str, ConsumerGroup], unread: Sequence[str]) -> Checked:
    behind: list[str] = []
    unknown: list[str] = []
    for name, group in groups.items():
        lags = [_state(group, topic, queue).lag for queue in wait.queues]
        if any(lags):
            known = sum(lag or 0 for lag in lags)
            which = [queue for queue, lag in zip(wait.queues, lags, strict=True) if lag]
            behind.append(f"group {name} has {messages(known, 'unread ')} in {_listed(which)}")
        elif None in lags:
            unknown.append(f"group {name}: lag of {counted(lags.count(None), 'queue')}")
    if behind:
        return Checked(wait.kind, holds=False, found="; ".join(behind))
    unknown += unread
    if not wait.queues or not unknown:
        return Checked(wait.kind, holds=True, found="")
    return Checked(wait.kind, holds=None, found="unknown: " + named(unknown))


def _owned(wait: WaitFor, topic: str, groups: Mapping[str, ConsumerGroup]) -> Checked:
    missing: list[str] = []
    unknown: list[str] = []
    for name, group in groups.items():
        if not group.client_ids or group.message_model == BROADCASTING or _by_pop(group, topic):
            continue
        owners = [_state(group, topic, queue).owners for queue in wait.queues]
        without = [queue for queue, ids in zip(wait.queues, owners, strict=True) if ids is not None and not ids]
        if without:
            missing.append(f"group {name}: {_listed(without)} without an owner")
        elif None in owners:
            unknown.append(f"group {name}: owners of {counted(owners.count(None), 'queue')}")
    if missing:
        return Checked(wait.kind, holds=False, found="; ".join(missing))
    return Checked(wait.kind, None if unknown else True, "unknown: " + named(unknown) if unknown else "")


def _by_pop(group: ConsumerGroup, topic: str) -> bool:
    return group.consume_type == CONSUME_POP or "POP" in (group.request_modes or {}).get(topic, ())


def _state(group: ConsumerGroup, topic: str, queue: QueueName) -> QueueState:
    return group.queues.get(MessageQueue(topic, queue.broker_name, queue.queue_id), QueueState())


def _listed(queues: Sequence[QueueName]) -> str:
    return named(f"{queue.broker_name} {queue.queue_id}" for queue in queues)
