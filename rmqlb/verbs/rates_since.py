"""Rates of queues, from an earlier snapshot to this one."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.group import Group
from rmqlb.engine.rebalance.rates import observed_rates
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.verbs.source import Earlier


def rates_since(earlier: Earlier, wanted: Wanted, found: Group, snapshot: ClusterSnapshot) -> dict[MessageQueue, float]:
    """Queue → messages per second, of those that both snapshots know (raises DataError, UsageError)."""
    group = found.seen
    if group is None:
        raise DataError(f"{earlier.option}: the source does not report the group, so that no rate follows")
    then = earlier.source.fetch(replace(wanted, group=group.group))
    return observed_rates(
        group,
        then.group(group.group),
        (group.seen.at or snapshot.taken_at, then.group(group.group).seen.at or then.taken_at),
        found.pulled_queues,
        earlier.option,
    )
