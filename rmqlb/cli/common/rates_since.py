"""`--rates-since FILE`: what came into each queue since an earlier snapshot."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.cli.common.options import GroupOptions, SourceOptions
from rmqlb.cli.common.reading import fetch, wanted_for
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.consume.rates import observed_rates
from rmqlb.engine.group import Group
from rmqlb.errors import DataError, UsageError
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot


def rates_since(
    path: str,
    source: SourceOptions,
    which: GroupOptions,
    found: Group,
    snapshot: ClusterSnapshot,
    terminal: Terminal,
) -> dict[MessageQueue, float]:
    """Queue → messages per second, of those that both snapshots know (raises DataError, UsageError)."""
    option = f"--rates-since {path}"
    if "://" in path:
        raise UsageError(f"{option}: an earlier snapshot is a file", hint="write one with fetch-routes --to FILE")
    group = found.seen
    if group is None:
        raise DataError(f"{option}: the source does not report the group, so that no rate follows")
    wanted = replace(wanted_for(source, which), group=group.group)
    earlier = fetch(replace(source, source=path), wanted, terminal)
    return observed_rates(
        group,
        earlier.group(group.group),
        (group.seen.at or snapshot.taken_at, earlier.group(group.group).seen.at or earlier.taken_at),
        found.pulled_queues,
        option,
    )
