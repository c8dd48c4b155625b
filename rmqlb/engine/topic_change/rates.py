"""How fast a group reads each queue, from two snapshots."""

from __future__ import annotations

from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.times import utc_text


def consumed_per_ms(now: ClusterSnapshot, then: ClusterSnapshot, group: str, where: str) -> dict[MessageQueue, float]:
    """Messages per millisecond of each queue that both snapshots know (raises DataError).

    Args:
        now: the later one.
        then: the earlier one.
        group: a group of the later one; one that the earlier one does not have has no rates.
        where: what the earlier one is called in errors.
    """
    if group not in then.groups:
        return {}
    later, earlier = now.groups[group], then.groups[group]
    to, since = later.seen.at or now.taken_at, earlier.seen.at or then.taken_at
    if to is None or since is None:
        which = f"{where} does" if since is None else "the source does"
        raise DataError(f"{which} not report when it was taken, so that no rate follows")
    if to <= since:
        raise DataError(
            f"{where} is not earlier than the source: {utc_text(since)} and {utc_text(to)}",
            hint="-s is the later snapshot, --rates-since the earlier one",
        )
    length_ms = (to - since).total_seconds() * 1000
    rates: dict[MessageQueue, float] = {}
    for queue, state in later.queues.items():
        old = earlier.queues.get(queue)
        if old is None or None in (state.consumer_offset, old.consumer_offset):
            continue
        read = max(state.consumer_offset or 0, 0) - max(old.consumer_offset or 0, 0)
        rates[queue] = max(read, 0) / length_ms
    return rates
