"""Every single loss of a consumer, broker, master or host on every group: `sweep-failures --at-once 1` for a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.sweep_failures.sweep import sweep_failures
from rmqlb.errors import DataError
from rmqlb.model.route import LOGICAL_PREFIX, BrokerData, TopicRouteData
from rmqlb.model.sweep_failures import FailureSweep, Loss, LossKind, Worst
from rmqlb.pipeline.groups.running_groups import Row, RunningGroup, each_group, with_left_out
from rmqlb.pipeline.schemas import BROKEN_LIMITS, GROUP, WORST_LOSSES, Table, struct
from rmqlb.pipeline.spark.progress import Count
from rmqlb.pipeline.spark.reading import read_parquet
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Writing

_KINDS: tuple[LossKind, ...] = ("consumer", "broker", "master", "host")
_OF_CONSUMERS: tuple[LossKind, ...] = ("consumer", "host")
_LIMIT = {name: kind for name, kind in BROKEN_LIMITS.columns.items() if name not in (*GROUP, "strategy")}
SWEPT = Table(
    "swept_groups",
    {
        **WORST_LOSSES.columns,
        "limits": f"array<{struct(_LIMIT)}>",
    },
)
"""Rows of WORST_LOSSES, each with its own of BROKEN_LIMITS."""
_FIGURES = ("unassigned", "imbalance", "idle", "moved")


def write_losses(
    groups: DataFrame,
    left_out: DataFrame,
    limits: Mapping[str, float],
    settings: Settings,
    writing: Writing,
    made_from: Mapping[str, str],
    where: Where | None = None,
    count: Count | None = None,
) -> None:
    """Sweep groups (as `running_groups` gives them) once, and write WORST_LOSSES and BROKEN_LIMITS.

    `left_out`: rows of GROUPS, of which those with a problem have a row too; `where`: the rows that give way.
    """
    aside = writing.aside(SWEPT.name)
    swept = each_group(groups, SWEPT.columns, settings, partial(swept_rows, dict(limits)), count)
    swept.write.parquet(aside)
    found = read_parquet(groups.sparkSession, SWEPT.ddl, aside)
    rows = with_left_out(found.select(*WORST_LOSSES.columns), left_out)
    writing.replace(WORST_LOSSES, rows.select(*WORST_LOSSES.columns), made_from, where)
    limit = fn.explode("limits").alias("of")
    broken = found.select(*GROUP, "strategy", limit).select(*GROUP, "strategy", "of.*")
    writing.replace(BROKEN_LIMITS, broken.select(*BROKEN_LIMITS.columns), made_from, where)


def swept_rows(limits: Mapping[str, float], group: RunningGroup) -> Iterator[Row]:
    """The row of a group (raises RmqlbError)."""
    found = _swept(limits, group)
    (its,) = found.groups
    row: Row = {"consumers": its.consumers, "queues": its.queues, "losses": its.cases, "broken": its.broken}
    for name in _FIGURES:
        worst: Worst | None = getattr(its, name)
        if worst is not None:
            row[name] = float(worst.value) if name == "imbalance" else int(worst.value)
            row[f"{name}By"] = f"{worst.losses[0].kind} {worst.losses[0].name}" if worst.losses else None
    already = [_broken(one.limit, one.bound, one.value, None, 0) for one in found.broken_already if one.name == _NAME]
    by_loss = [
        _broken(one.limit, one.bound, one.value, one.losses[0], one.cases)
        for one in found.counterexamples
        if one.name == _NAME
    ]
    yield {**row, "limits": [*already, *by_loss]}


_NAME = "the group"


def _broken(limit: str, bound: object, value: object, loss: Loss | None, losses: int) -> Row:
    return {
        "limitName": limit,
        "bound": _number(bound),
        "value": _number(value),
        "kind": loss and loss.kind,
        "name": loss and loss.name,
        "losses": losses,
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _swept(limits: Mapping[str, float], group: RunningGroup) -> FailureSweep:
    routes = tuple(_with_addresses(route, group.addresses) for route in group.routes)
    logical = any(data.broker_name.startswith(LOGICAL_PREFIX) for route in routes for data in route.queue_datas)
    members = replace(group.members, settings=replace(group.members.settings, group=_NAME))
    # Of a static topic it is not known which queues a broker takes with it.
    kinds = _OF_CONSUMERS if logical else _KINDS
    found = sweep_failures({_NAME: members}, routes, limits=limits, kinds=kinds, at_once=1)
    if not found.groups:
        raise DataError(next((one.why for one in found.unjudged if one.name == _NAME), "it could not be swept"))
    return found


def _with_addresses(route: TopicRouteData, addresses: Mapping[str, Mapping[int, str]]) -> TopicRouteData:
    names = [data.broker_name for data in route.queue_datas]
    known = tuple(BrokerData("", name, dict(addresses[name])) for name in names if name in addresses)
    return replace(route, broker_datas=known)
