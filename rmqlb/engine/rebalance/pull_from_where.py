"""Where a new owner of a queue starts to pull: RocketMQ's `RebalancePushImpl.computePullFromWhereWithException`."""

from __future__ import annotations

from rmqlb.model.group import NOT_STORED, RETRY_PREFIX, QueueState
from rmqlb.model.group_report import StartOffset
from rmqlb.model.group_scenario import CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP

_NOTHING = "nothing is stored"


def pull_from_where(
    consume_from: str,  # `consumeFromWhere`; the deprecated values mean CONSUME_FROM_LAST_OFFSET
    # what the client's `RemoteBrokerOffsetStore.readOffset` makes of the broker's answer for the group: an offset, −1
    # when it has none (`QUERY_NOT_FOUND`), less when the answer is an error, None when nobody looked.
    stored: int | None,
    *,
    topic: str,
    end: int | None = None,  # the queue's end (`maxOffset`), or None
    begin: int | None = None,  # the queue's first message that is still there (`minOffset`), or None
    found: int | None = None,  # what the broker finds for the consumer's `consumeTimestamp` (`searchOffset`), or None
    none: str = _NOTHING,  # how the reason says that there is no offset
) -> StartOffset:
    """The offset that a push consumer begins with.

    Where that lies before the queue's first message, the broker sends the consumer there (`OFFSET_ILLEGAL`).

    >>> pull_from_where("CONSUME_FROM_LAST_OFFSET", -1, topic="T", end=70).offset
    70
    >>> pull_from_where("CONSUME_FROM_LAST_OFFSET", -1, topic="%RETRY%g", end=70).offset
    0
    >>> pull_from_where("CONSUME_FROM_FIRST_OFFSET", -1, topic="T", end=70, begin=20).offset
    20
    """
    start = _computed(consume_from, stored, none, is_retry=topic.startswith(RETRY_PREFIX), end=end, found=found)
    if start.offset is None or begin is None or start.offset >= begin:
        return start
    return StartOffset(start.rule, begin, f"{start.reason}; the first message that is still there is {begin}")


def _computed(
    consume_from: str, stored: int | None, none: str, *, is_retry: bool, end: int | None, found: int | None
) -> StartOffset:
    """What `computePullFromWhereWithException` returns."""
    if stored is None:
        return StartOffset("unknown", None, "the group's offset was not observed")
    if stored >= 0:
        return StartOffset("stored", stored, f"the group has stored {stored}")
    if stored < NOT_STORED:
        return StartOffset("refused", None, "the broker answers with an error: not taken until the next rebalance")
    if consume_from == CONSUME_FROM_FIRST_OFFSET:
        return StartOffset("beginning", 0, f"{none}, and {consume_from}")
    if consume_from == CONSUME_FROM_TIMESTAMP:
        if is_retry:
            return StartOffset("end", end, f"{none}, and {consume_from} on a retry topic")
        return StartOffset("timestamp", found, f"{none}, and {consume_from}: what the broker finds for it")
    if is_retry:
        return StartOffset("beginning", 0, f"{none}, and it is a retry topic")
    return StartOffset("end", end, f"{none}, and {consume_from}")


def start_of(state: QueueState | None, consume_from: str, *, topic: str, is_new: bool = False) -> StartOffset:
    """Likewise from what was observed of the queue; one that is new is empty, and each rule begins it at 0.

    Consume stats report an offset of 0 for a queue of which the broker stores none, so that 0 may mean either unless
    the broker was asked for it; of a static topic they report what it has, which is −1 when that is none. Any offset
    below 0 it answers to a client as none (`ConsumerManageProcessor.queryConsumerOffset`): it is no error, which is
    never stored.
    """
    if is_new:
        return _of_new(consume_from, topic)
    if state is None:
        return pull_from_where(consume_from, None, topic=topic)
    answer = state.consumer_offset if state.stored_offset is None else state.stored_offset
    if state.stored_offset is None and answer == 0 and state.broker_offset != 0:
        return StartOffset("unknown", None, "0 is reported, which may also mean that nothing is stored")
    return _of_state(state, consume_from, None if answer is None else max(answer, NOT_STORED), topic)


def start_without_file(state: QueueState | None, consume_from: str, *, topic: str, is_new: bool = False) -> StartOffset:
    """Where a consumer in BROADCASTING mode starts that has no offset of the queue in its own file.

    `LocalFileOffsetStore.readOffset` answers −1 then, whatever brokers store: they store nothing of such a group.
    """
    none = "it has no offset of its own"
    if is_new:
        return _of_new(consume_from, topic, none)
    return _of_state(state or QueueState(), consume_from, NOT_STORED, topic, none)


def _of_new(consume_from: str, topic: str, none: str = _NOTHING) -> StartOffset:
    start = pull_from_where(consume_from, NOT_STORED, topic=topic, end=0, found=0, none=none)
    return StartOffset(start.rule, start.offset, f"{start.reason}: the queue is new")


def _of_state(
    state: QueueState, consume_from: str, stored: int | None, topic: str, none: str = _NOTHING
) -> StartOffset:
    return pull_from_where(
        consume_from,
        stored,
        topic=topic,
        end=state.broker_offset,
        begin=state.min_offset,
        found=state.timestamp_offset,
        none=none,
    )
