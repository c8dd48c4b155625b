"""Where a new owner of a queue starts to pull: RocketMQ's `RebalancePushImpl.computePullFromWhereWithException`."""

from __future__ import annotations

from rmqlb.model.group import RETRY_PREFIX, QueueState
from rmqlb.model.group_report import StartOffset
from rmqlb.model.group_scenario import CONSUME_FROM_FIRST_OFFSET, CONSUME_FROM_TIMESTAMP

NOT_FOUND = -1


def pull_from_where(consume_from: str, stored: int | None, *, topic: str, end: int | None = None) -> StartOffset:
    """The offset that a push consumer in CLUSTERING mode begins with.

    Args:
        consume_from: `consumeFromWhere`; the deprecated values mean CONSUME_FROM_LAST_OFFSET.
        stored: what the client's `RemoteBrokerOffsetStore.readOffset` makes of the broker's answer for the group: an
            offset, −1 when it has none (`QUERY_NOT_FOUND`), less when the answer is an error, None when nobody looked.
        topic: the queue's topic; retry topics have rules of their own.
        end: the queue's end (`maxOffset`), or None.

    >>> pull_from_where("CONSUME_FROM_LAST_OFFSET", -1, topic="T", end=70).offset
    70
    >>> pull_from_where("CONSUME_FROM_LAST_OFFSET", -1, topic="%RETRY%g", end=70).offset
    0
    """
    if stored is None:
        return StartOffset("unknown", None, "the group's offset was not observed")
    if stored >= 0:
        return StartOffset("stored", stored, f"the group has stored {stored}")
    if stored < NOT_FOUND:
        return StartOffset("refused", None, "the broker answers with an error: not taken until the next rebalance")
    retry = topic.startswith(RETRY_PREFIX)
    if consume_from == CONSUME_FROM_FIRST_OFFSET:
        return StartOffset("beginning", 0, f"nothing is stored, and {consume_from}")
    if consume_from == CONSUME_FROM_TIMESTAMP:
        if retry:
            return StartOffset("end", end, f"nothing is stored, and {consume_from} on a retry topic")
        return StartOffset("timestamp", None, f"nothing is stored, and {consume_from}: what the broker finds for it")
    if retry:
        return StartOffset("beginning", 0, "nothing is stored, and it is a retry topic")
    return StartOffset("end", end, f"nothing is stored, and {consume_from}")


def start_of(state: QueueState | None, consume_from: str, *, topic: str) -> StartOffset:
    """Likewise from what was observed of the queue.

    Servers report an offset of 0 for a queue of which they store none, so that 0 may mean either; of a static topic
    they report what they have, −1 when that is none. To a client they answer any offset below 0 as none
    (`ConsumerManageProcessor.queryConsumerOffset`): it is no error, which is never stored.

    Args:
        state: what was observed, or None.
        consume_from: `consumeFromWhere`.
        topic: the queue's topic.
    """
    if state is None:
        return pull_from_where(consume_from, None, topic=topic)
    stored = None if state.consumer_offset is None else max(state.consumer_offset, NOT_FOUND)
    start = pull_from_where(consume_from, stored, topic=topic, end=state.broker_offset)
    if state.consumer_offset == 0 and state.broker_offset != 0:
        return StartOffset("unknown", None, "0 is reported, which may also mean that nothing is stored")
    return start
