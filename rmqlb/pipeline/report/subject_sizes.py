"""What `size` and `sweep` found: how many consumers each group should have, and which single loss hurts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as fn

from rmqlb.pipeline.report.frames import Asked, Row, Tables, count_if
from rmqlb.pipeline.report.page import Section, counts, decimals, grid_of, names, said, words
from rmqlb.pipeline.report.queries import rows_query
from rmqlb.pipeline.report.text import capitalize_first, number_of
from rmqlb.pipeline.schemas import BROKEN_LIMITS, SIZES, WORST_LOSSES

_TOO_FEW = "satisfied IS NOT TRUE AND problem IS NULL"
_BY_SIZE = ("-queues", "cluster", "group")
_BY_LOSS = ("-unassigned", "-broken", "-moved", "cluster", "group")
_BY_LIMIT = ("-losses", "cluster", "group", "limitName", "kind", "name")


class SizeTotals(Row, frozen=True):
    """Groups that were sized; `unsatisfied`: their number of consumers breaks a limit; `no_size`: any would."""

    sized: int
    unsatisfied: int
    no_size: int


class GroupSizeRow(Row, frozen=True):
    """A group whose number of consumers breaks a limit."""

    cluster: str
    group: str
    strategy: str | None
    sdk: str | None
    queues: int | None
    consumers: int | None
    fails: str | None
    fewest: int | None
    next_fewer: int | None
    next_more: int | None


class LossTotals(Row, frozen=True):
    """Groups that were swept, those that a single loss brings below a limit, and the losses that do."""

    swept: int
    touched: int
    losses: int


class GroupLosses(Row, frozen=True):
    """A group that a single loss brings below a limit."""

    cluster: str
    group: str
    strategy: str | None
    losses: int | None
    broken: int | None
    unassigned: int | None
    imbalance: float | None
    imbalance_by: str | None
    idle: int | None
    moved: int | None
    moved_by: str | None


class BrokenLimit(Row, frozen=True):
    """A limit of a group that losses break, of which one is named."""

    cluster: str
    group: str
    limit_name: str
    bound: float | None
    value: float | None
    kind: str | None
    name: str | None
    losses: int | None


def sizes(tables: Tables, asked: Asked, top: int) -> Callable[[], dict[str, Any]]:
    """The fields of `Figures` that come from SIZES, WORST_LOSSES and BROKEN_LIMITS."""
    sized, worst, limits = (tables.whole(table) for table in (SIZES, WORST_LOSSES, BROKEN_LIMITS))
    totals = listed = of_losses = by_loss = broken = None
    if sized is not None:
        judged = sized.where("problem IS NULL")
        totals = asked.rows(
            SizeTotals,
            judged.agg(
                fn.count("*").alias("sized"),
                count_if(fn.expr(_TOO_FEW)).alias("unsatisfied"),
                count_if(fn.col("fewest").isNull()).alias("noSize"),
            ),
        )
        listed = asked.first(GroupSizeRow, sized.where(_TOO_FEW), top, *_BY_SIZE)
    if worst is not None and limits is not None:
        of_losses = asked.rows(
            LossTotals,
            worst.where("problem IS NULL").agg(
                fn.count("*").alias("swept"),
                count_if(fn.col("broken") > 0).alias("touched"),
                fn.coalesce(fn.sum("broken"), fn.lit(0)).alias("losses"),
            ),
        )
        by_loss = asked.first(GroupLosses, worst.where("broken > 0"), top, *_BY_LOSS)
        broken = asked.first(BrokenLimit, limits, top, *_BY_LIMIT)

    def found() -> dict[str, Any]:
        figures: dict[str, Any] = {}
        if totals and listed is not None:
            figures |= {"size_totals": totals.rows[0], "sizes": listed.rows}
        if of_losses and by_loss is not None and broken is not None:
            figures |= {"loss_totals": of_losses.rows[0], "losses": by_loss.rows, "broken_limits": broken.rows}
        return figures

    return found


def group_sizes(totals: SizeTotals, found: tuple[GroupSizeRow, ...]) -> Section:
    """The groups whose number of consumers breaks a limit."""
    name, title = "sizes", "How many consumers a group should have"
    if not totals.sized:
        return Section(name, title, (said("Nothing: no group was sized."),))
    if not found:
        return Section(name, title, (said("Nothing: every group's number of consumers keeps the limits."),))
    their = number_of(totals.unsatisfied, "group")
    seen = f"{capitalize_first(their)} of {totals.sized:,} should have another number of consumers"
    if totals.no_size:
        none = number_of(totals.no_size, "group")
        seen += f"; in {none} any number up to the queues of the largest topic breaks a limit"
    seen += "."
    grid = grid_of(
        "Groups with the most queues first; next fewer and more: the nearest numbers of consumers that keep the limits",
        found,
        names("cluster", "group"),
        words("strategy", "sdk"),
        counts("queues", "consumers", "next_fewer", "next_more"),
        words(("what does not hold", lambda one: one.fails if one.consumers else "no consumer")),
        query=rows_query("sizes", _TOO_FEW, _BY_SIZE, len(found)),
    )
    advice = "rmqlb size-group shows each size of a group, with limits of your own, rates and other numbers of queues."
    return Section(name, title, (said(seen),), advice, grids=(grid,))


def single_losses(totals: LossTotals, found: tuple[GroupLosses, ...], limits: tuple[BrokenLimit, ...]) -> Section:
    """The groups that a single loss brings below a limit."""
    name, title = "losses", "Limits that a single loss breaks"
    if not totals.swept:
        return Section(name, title, (said("Nothing: no group was swept."),))
    if not found and not limits:
        return Section(name, title, (said("Nothing: no single loss breaks a limit of a group."),))
    seen = (
        f"In {number_of(totals.touched, 'group')} of {totals.swept:,} a limit is broken as soon as one consumer, "
        "broker, master or host is lost."
    )
    worst = grid_of(
        "Groups with the most queues unassigned after a single loss, then those with the most such losses",
        found,
        names("cluster", "group"),
        words("strategy"),
        counts("losses", "broken", "unassigned"),
        decimals("imbalance"),
        names(("imbalance by", lambda one: one.imbalance_by or "no loss")),
        counts("idle", "moved"),
        names(("moved by", lambda one: one.moved_by or "no loss")),
        query=rows_query("worst_losses", "broken > 0", _BY_LOSS, len(found)),
    )
    broken = grid_of(
        "Limits, with one of the losses that break them; without one they are broken as it is",
        limits,
        names("cluster", "group"),
        words(("limit", "limit_name")),
        decimals("bound", "value"),
        words("kind"),
        names("name"),
        counts(("losses alike", "losses")),
        query=rows_query("broken_limits", "", _BY_LIMIT, len(limits)),
    )
    advice = "rmqlb sweep-failures tries pairs of losses too, and zones, with limits of a policy."
    return Section(name, title, (said(seen),), advice, grids=(worst, broken))
