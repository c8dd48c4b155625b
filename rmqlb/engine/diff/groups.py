"""What differs of one group between two snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from rmqlb.engine.diff.explain import Prediction, explanations, queue_diffs, sdks_that_differ
from rmqlb.engine.diff.sides import GroupSide
from rmqlb.engine.diff.topics import presence, settings_that_differ
from rmqlb.model.diff import GroupDiff, ProcessesDiff, SettingDiff
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import sort_client_ids


def group_diff(name: str, before: GroupSide | None, after: GroupSide | None) -> GroupDiff:
    """What of a group differs, if anything does; a side that is None is not there."""
    was, becomes = (None if side is None else side.summary for side in (before, after))
    if before is None or after is None:
        return GroupDiff(name, presence(before, after), was, becomes)
    prediction = Prediction(before, after)
    queues = tuple(queue_diffs(before, after, prediction))
    found = GroupDiff(
        group=name,
        change="same",
        before=was,
        after=becomes,
        joined=_gone(after, before),
        left=_gone(before, after),
        processes=tuple(_processes(before, after)),
        topics_added=_topics(after, before),
        topics_removed=_topics(before, after),
        strategy_changed=_strategy_changed(before, after, prediction),
        strategy_assumed=bool(queues) and prediction.problem is None and not _known(before, after),
        settings=tuple(_settings(before, after)),
        explanations=explanations(queues),
        queues=queues,
        not_predicted=prediction.problem if queues else None,
    )
    is_other = (
        *(found.queues, found.joined, found.left, found.processes),
        *(found.topics_added, found.topics_removed, found.settings),
    )
    changed = found.strategy_changed or any(is_other)
    return _with_offsets(replace(found, change="changed") if changed else found, before, after)


def _with_offsets(found: GroupDiff, before: GroupSide, after: GroupSide) -> GroupDiff:
    was, becomes = before.states, after.states
    both = [(was[queue], becomes[queue]) for queue in was.keys() & becomes.keys()]
    growth = [then.lag - first.lag for first, then in both if first.lag is not None and then.lag is not None]
    ends = [_step(first.broker_offset, then.broker_offset) for first, then in both]
    steps = [_step(_stored(first), _stored(then)) for first, then in both]
    produced, consumed = ([step for step in some if step is not None] for some in (ends, steps))
    return replace(
        found,
        lag_growth=sum(growth) if growth else None,
        produced=sum(produced) if produced else None,
        consumed=sum(consumed) if consumed else None,
        offsets_back=sum(step < 0 for step in consumed),
    )


def _stored(state: QueueState) -> int | None:
    """The offset that the group has stored; None when it is unknown, or none is stored."""
    return None if state.consumer_offset is None or state.consumer_offset < 0 else state.consumer_offset


def _step(first: int | None, then: int | None) -> int | None:
    return None if first is None or then is None else then - first


def _gone(one: GroupSide, other: GroupSide) -> tuple[str, ...]:
    """The client IDs of one that the other has not; none where not all consumers are reported."""
    if one.client_ids is None or other.client_ids is None:
        return ()
    return tuple(sort_client_ids(set(one.client_ids) - set(other.client_ids)))


def _processes(before: GroupSide, after: GroupSide) -> Iterator[ProcessesDiff]:
    if before.client_ids is None or after.client_ids is None:
        return
    first, then = Counter(before.client_ids), Counter(after.client_ids)
    for client_id in sort_client_ids(first.keys() & then.keys()):
        if first[client_id] != then[client_id]:
            yield ProcessesDiff(client_id, first[client_id], then[client_id])


def _topics(one: GroupSide, other: GroupSide) -> tuple[str, ...]:
    """The topics that one subscribes to and the other does not; none where they are not reported."""
    mine, others = one.group.own_topics, other.group.own_topics
    return () if mine is None or others is None else tuple(topic for topic in mine if topic not in others)


def _strategy_changed(before: GroupSide, after: GroupSide, prediction: Prediction) -> bool:
    if prediction.problem is None:
        return "strategy" in prediction.changed
    first, then = before.strategies, after.strategies
    return bool(first and then) and set(first) != set(then)


def _known(before: GroupSide, after: GroupSide) -> bool:
    return before.strategy_known or after.strategy_known


def _settings(before: GroupSide, after: GroupSide) -> Iterator[SettingDiff]:
    first, then = before.group, after.group
    if before.offline or after.offline:  # nobody reports them any more
        return iter(())
    return settings_that_differ(
        {
            "messageModel": (first.message_model, then.message_model),
            "consumeType": (first.consume_type, then.consume_type),
            "consumeFromWhere": (first.consume_from_where, then.consume_from_where),
            **{f"sdk of {each}": (was, becomes) for each, was, becomes in sorted(sdks_that_differ(before, after))},
        }
    )
