"""Every group in one line: what SCORES, FLEET, GROUPS and REFUSALS know of it, by one shuffle."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.codes import NO_CONSUMER_ONLINE, NO_ROUTE, REFUSED
from rmqlb.pipeline.report.frames import Seen, Tables
from rmqlb.pipeline.schemas import FLEET, GROUP_IN_SNAPSHOT, GROUPS, OVERVIEW, REFUSALS, SCORES

_NO_TOPIC = "it subscribes to no topic that has a route"
_NO_CONSUMER = "no broker lists a consumer of it"
_OF_SCORES = tuple(name for name in SCORES.columns if name in OVERVIEW.columns and name not in GROUP_IN_SNAPSHOT)
_SEEN = "flatten(transform(filter(topics, t -> t.owners is not null), t -> t.owners))"
_OF_FLEET = {
    "mostQueues": "array_max(transform(topics, t -> aggregate(t.subscribe, 0, (sum, run) -> sum + run.queues)))",
    "hasDuplicateClientIds": "size(clientIds) > size(array_distinct(clientIds))",
    "mixedSubscriptions": "exists(topics, t -> size(t.absent) > 0)",
    "observedUnassigned": "if(size(seen) > 0, size(filter(seen, q -> size(q.owners) = 0)), null)",
    "observedDuplicateOwners": "if(size(seen) > 0, size(filter(seen, q -> size(array_distinct(q.owners)) > 1)), null)",
}
_OF_GROUPS = ("hasSplitView", "mixedStrategies", "problem", "problemCode", "processes", "date")


def overview(tables: Tables) -> DataFrame | None:
    """Rows of OVERVIEW: each cluster's last snapshot that was scored; None when there are no SCORES."""
    return tables.made(OVERVIEW.name, lambda: _overview(tables))


def judged(tables: Tables) -> tuple[Seen, ...]:
    """The snapshots in GROUPS that the page is about: those that were scored, of other clusters the last."""
    scored = {(one.cluster, one.snapshot) for one in tables.last_seen(SCORES)}
    there = {one.cluster: one for one in tables.last_seen(GROUPS)}
    there |= {one.cluster: one for one in tables.seen(GROUPS) if (one.cluster, one.snapshot) in scored}
    return tuple(there.values())


def _overview(tables: Tables) -> DataFrame | None:
    scores = tables.last(SCORES)
    if scores is None:
        return None
    parts = [_part(scores.where("runs"), "score", fn.struct("strategy", *_without("strategy")))]
    fleet, groups, refusals = tables.last(FLEET), tables.rows_of(GROUPS, judged(tables)), tables.last(REFUSALS)
    if fleet is not None:
        facts = fn.struct(*(fn.expr(of).alias(name) for name, of in _OF_FLEET.items()))
        parts.append(_part(fleet.withColumn("seen", fn.expr(_SEEN)), "fleet", facts))
    if groups is not None:
        parts.append(_part(groups, "known", fn.struct(*_OF_GROUPS)))
    if refusals is not None:
        parts.append(_part(refusals, "refused", fn.col("reason")))
    every = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    found = every.groupBy(*GROUP_IN_SNAPSHOT).agg(
        *(fn.min(name).alias(name) if name in ("score", "refused") else _any(name) for name in every.columns[3:])
    )
    return _with_reasons(found).select(*OVERVIEW.columns)


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _OF_SCORES if name not in names)


def _part(frame: DataFrame, name: str, value: Column) -> DataFrame:
    return frame.select(*GROUP_IN_SNAPSHOT, value.alias(name))


def _any(name: str) -> Column:
    return fn.first(name, ignorenulls=True).alias(name)


def _with_reasons(found: DataFrame) -> DataFrame:
    """Groups with a score, and those of the snapshot without one, which have a reason instead."""
    has_groups = "known" in found.columns
    there = fn.col("score").isNotNull()
    found = found.where(there | fn.col("known").isNotNull() if has_groups else there)
    values = {name: fn.col(f"score.{name}") for name in _OF_SCORES}
    lag, most = values["lag"], values["maxLagPerConsumer"]
    values["lagShare"] = fn.when(lag > 0, fn.try_divide(most, lag))
    for name, kind in OVERVIEW.columns.items():
        if name in _OF_FLEET:
            values[name] = fn.col(f"fleet.{name}") if "fleet" in found.columns else fn.lit(None).cast(kind)
        elif name in ("hasSplitView", "mixedStrategies", "leftOut", "code"):
            values[name] = fn.lit(None).cast(kind)
    if has_groups:
        values |= {name: fn.col(f"known.{name}") for name in ("hasSplitView", "mixedStrategies")}
        values["date"] = fn.coalesce("score.date", "known.date")
        values |= _reasons("refused" in found.columns)
    return found.withColumns(values)


def _reasons(has_refusals: bool) -> dict[str, Column]:
    refused = fn.col("refused") if has_refusals else fn.lit(None).cast("string")
    offline, problem = fn.col("known.processes") == 0, fn.col("known.problem")
    why = fn.coalesce(problem, refused, fn.when(offline, _NO_CONSUMER), fn.lit(_NO_TOPIC))
    otherwise = fn.when(refused.isNotNull(), REFUSED).when(offline, NO_CONSUMER_ONLINE).otherwise(NO_ROUTE)
    code = fn.when(problem.isNotNull(), fn.col("known.problemCode")).otherwise(otherwise)
    without = fn.col("score").isNull()
    return {"leftOut": fn.when(without, why), "code": fn.when(without, code)}
