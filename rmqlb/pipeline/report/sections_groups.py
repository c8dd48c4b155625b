"""The groups as they are: queues that nobody reads, lopsided groups, strategies side by side, idle consumers, lag."""

from __future__ import annotations

import math
from itertools import pairwise

from rmqlb.pipeline.report.charts import Picture, Series, bars, histograms
from rmqlb.pipeline.report.figures import Figures, Worst
from rmqlb.pipeline.report.page import Kind, Section, grid_of, said
from rmqlb.pipeline.report.values import EVEN, LOPSIDED, SKEW_BINS, StrategyScores
from rmqlb.pipeline.report.words import capitalize_first, labels_of, number_of, share_of
from rmqlb.views.report import percent

IN_PICTURE = 12
"""Bars of a picture; the table below it has more."""
_WHO: tuple[tuple[str, Kind, str], ...] = (
    ("cluster", "name", "cluster"),
    ("group", "name", "group"),
    ("strategy", "word", "strategy"),
)


def group_sections(figures: Figures) -> tuple[Section, ...]:
    """The sections that come from SCORES."""
    parts: list[Section] = []
    if figures.worst is not None:
        parts += [_unread(figures.worst), _otherwise(figures.worst), _lopsided(figures.worst)]
    if figures.strategies is not None:
        parts.append(_strategies(figures.strategies))
    if figures.worst is not None:
        parts += [_idle(figures.worst), _one_member(figures.worst)]
    return tuple(parts)


def _unread(worst: Worst) -> Section:
    name, title, totals = "unread", "Queues without a reader, or with several", worst.totals
    if not worst.unowned:
        return Section(name, title, (said("Nothing: the strategy that each group runs gives each queue one reader."),))
    seen = (
        f"Under the strategy that each runs, {number_of(totals.with_unowned, 'group')} of {totals.groups:,} leave "
        f"{number_of(totals.unowned, 'queue')} without a reader; in {number_of(totals.with_multiply_owned, 'group')} "
        f"{number_of(totals.multiply_owned, 'queue')} have several."
    )
    few = worst.unowned[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: queues without a reader and queues with several, for the groups with the most."),
        labels_of(few, "group"),
        [
            Series("without reader", [one.unowned for one in few]),
            Series("with several readers", [one.multiply_owned for one in few]),
        ],
        "queues",
    )

    return Section(
        name,
        title,
        (said(seen),),
        "give each process its own client id, and let all members of a group subscribe to the same topics; these are "
        "the usual causes. rmqlb show-owners tells which queues of a group it is.",
        (picture,),
        (
            grid_of(
                "Groups with the most such queues first",
                worst.unowned,
                *_WHO,
                ("consumers", "count", "members"),
                ("queues", "count", "queues"),
                ("without reader", "count", "unowned"),
                ("with several", "count", "multiply_owned"),
                ("lag", "count", "lag"),
            ),
        ),
    )


def _otherwise(worst: Worst) -> Section:
    name, title, totals = "otherwise", "Queues that were seen otherwise", worst.totals
    if not totals.observed:
        return Section(name, title, (said("Unknown: nobody looked who holds the queues."),))
    looked = number_of(totals.observed, "queue")
    if not worst.drift:
        return Section(name, title, (said(f"Nothing: {looked} seen, each with the one reader that it is dealt to."),))
    seen = f"Of {looked} whose readers were looked for, {totals.drift:,} in {number_of(totals.with_drift, 'group')} "
    seen += "had others than the strategy of the group says."
    if totals.held_by_nobody is not None and totals.held_by_several is not None:
        seen += f" {totals.held_by_nobody:,} had nobody, {totals.held_by_several:,} had several."
    return Section(
        name,
        title,
        (said(seen),),
        "look again: after a rebalance it is gone. What stays is read by nobody, or twice: look for members that hang, "
        "that run another strategy, or that see other members. rmqlb show-owners names the queues.",
        grids=(
            grid_of(
                "Groups with the most queues that had nobody first. Known: how the strategy is known",
                worst.drift,
                *_WHO,
                ("known", "word", "origin"),
                ("consumers", "count", "members"),
                ("looked at", "count", "observed"),
                ("otherwise", "count", "drift"),
                ("nobody", "count", "held_by_nobody"),
                ("several", "count", "held_by_several"),
                ("lag", "count", "lag"),
            ),
        ),
    )


def _lopsided(worst: Worst) -> Section:
    name, title, totals = "lopsided", "Lopsided groups", worst.totals
    if not worst.lopsided:
        return Section(name, title, (said("Nothing: no group with a queue for everybody is lopsided."),))
    first = worst.lopsided[0]
    seen = said(
        f"In {number_of(totals.lopsided, 'group')} of {totals.groups:,} the busiest consumer holds at least "
        f"{LOPSIDED:g} times the mean. Of the groups with a queue for everybody the most lopsided is {{}} in "
        "{}: {} of its {} queues with one of {} consumers, {} times the mean.",
        first.group, first.cluster, first.most, first.queues, first.members, first.skew,
    )  # fmt: skip
    few = worst.lopsided[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: what the busiest consumer holds, as a multiple of the mean; 1 is perfectly even."),
        labels_of(few, "group"),
        [Series("most / mean", [one.skew for one in few])],
        "queues of the busiest consumer / mean (1 is even)",
        start=1,
    )

    return Section(
        name,
        title,
        (seen,),
        "look at the column “first id”, the queues that the first client id has beyond the mean. AVG and "
        "AVG_BY_CIRCLE begin each topic with that client, so the odd queues of many topics pile up there: numbers of "
        "queues that the number of consumers divides cure it. With CONSISTENT_HASH it is chance; see the other "
        "strategies below.",
        (picture,),
        (
            grid_of(
                "Most lopsided first, of the groups with a queue for every consumer",
                worst.lopsided,
                *_WHO,
                ("topics", "count", "topics"),
                ("consumers", "count", "members"),
                ("queues", "count", "queues"),
                ("most", "count", "most"),
                ("mean", "figure", "mean"),
                ("most / mean", "figure", "skew"),
                ("first id", "signed", "first_id_bias"),
            ),
        ),
    )


def _strategies(found: tuple[StrategyScores, ...]) -> Section:
    name, title = "skew", "How lopsided each strategy is"
    if not found:
        return Section(name, title, (said("Nothing: no group was scored."),))
    best = max(found, key=lambda one: share_of(one.even, one.groups) or 0)
    share = percent(share_of(best.even, best.groups) or 0)
    seen = said(
        "Each group was dealt its queues by every strategy, with the members and queues it has. {} leaves the most "
        f"groups even ({share} have a busiest consumer with at most {EVEN:g} times the mean).",
        best.strategy,
    )
    picture = histograms(
        Picture(name, title, "A histogram for each strategy: the share of groups by the skew of their queues."),
        _bin_names(),
        [Series(one.strategy, [share_of(count, one.groups) or 0 for count in one.bins]) for one in found],
        "queues of the busiest consumer / mean",
        "share of groups",
    )

    return Section(
        name,
        title,
        (seen,),
        "choose a strategy for what it does to your groups, not by its name; every member of a group must run the "
        "same one.",
        (picture,),
        (
            grid_of(
                "The strategies by name. Worst tenth: one group in ten is at least so lopsided. Refused: topics of "
                "groups that cannot run it",
                found,
                ("strategy", "word", "strategy"),
                ("groups", "count", "groups"),
                ("run it", "count", "running"),
                (f"even (≤ {EVEN:g})", "share", lambda one: share_of(one.even, one.groups)),
                ("median", "figure", "median"),
                ("worst tenth", "figure", "p90"),
                ("worst", "figure", "worst"),
                ("idle", "count", "idle"),
                ("without reader", "count", "unowned"),
                ("refused", "count", "refused"),
            ),
        ),
    )


def _bin_names() -> list[str]:
    return [f"{low:g}–{high:g}" if math.isfinite(high) else f"{low:g}+" for low, high in pairwise(SKEW_BINS)]


def _idle(worst: Worst) -> Section:
    name, title, totals = "idle", "Idle consumers", worst.totals
    if not worst.idle:
        return Section(name, title, (said("Nothing: every consumer has a queue."),))
    seen = (
        f"{capitalize_first(number_of(totals.idle, 'consumer'))} in {number_of(totals.with_idle, 'group')} get no "
        f"queue at all; {totals.surplus:,} of them because their group has more consumers than queues."
    )
    few = worst.idle[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: consumers with queues and consumers without, for the groups with the most idle."),
        labels_of(few, "group"),
        [
            Series("idle", [one.idle for one in few]),
            Series("with queues", [None if one.members is None else one.members - (one.idle or 0) for one in few]),
        ],
        "consumers",
    )

    return Section(
        name,
        title,
        (said(seen),),
        "a queue has one consumer of a group at a time, so consumers beyond the queues only wait. Stop them, or give "
        "the topics more queues. Where there are queues enough, it is the strategy: rmqlb show-owners says why.",
        (picture,),
        (
            grid_of(
                "Groups with the most idle consumers first",
                worst.idle,
                *_WHO,
                ("topics", "count", "topics"),
                ("queues", "count", "queues"),
                ("consumers", "count", "members"),
                ("idle", "count", "idle"),
            ),
        ),
    )


def _one_member(worst: Worst) -> Section:
    name, title, totals = "lag", "Lag that waits for one consumer", worst.totals
    if not worst.one_member:
        return Section(name, title, (said("Nothing: no group is known to have most of its lag with one consumer."),))
    seen = (
        f"In {number_of(totals.on_one_member, 'group')} of {totals.groups:,} more than half of the messages that wait, "
        "wait for one of several consumers."
    )
    few = worst.one_member[:IN_PICTURE]
    picture = bars(
        Picture(name, title, "Bars: messages that wait for the busiest consumer, and for all the others together."),
        labels_of(few, "group"),
        [
            Series("one consumer", [one.most_lag for one in few]),
            Series(
                "all others",
                [None if one.lag is None or one.most_lag is None else max(0, one.lag - one.most_lag) for one in few],
            ),
        ],
        "messages that wait",
    )

    return Section(
        name,
        title,
        (said(seen),),
        "see whether that consumer is slow or its queues are busy. A slow one is replaced; busy queues want keys or "
        "selectors that spread better. More consumers alone do not help while a queue has one reader.",
        (picture,),
        (
            grid_of(
                "Groups with the most messages waiting for one consumer first",
                worst.one_member,
                *_WHO,
                ("consumers", "count", "members"),
                ("queues", "count", "queues"),
                ("lag", "count", "lag"),
                ("of one", "count", "most_lag"),
                ("share", "share", "lag_share"),
            ),
        ),
    )
