"""What would change: another strategy, more or fewer consumers, a lost broker."""

from __future__ import annotations

from rmqlb.pipeline.report.charts import Picture, Series, bars, steps
from rmqlb.pipeline.report.figures import Figures
from rmqlb.pipeline.report.page import Grid, Section, grid_of, said
from rmqlb.pipeline.report.sections_groups import IN_PICTURE
from rmqlb.pipeline.report.values import BrokerLoss, GroupChange, MemberChange, StrategyChange
from rmqlb.pipeline.report.words import labels_of, number_of, share_of


def change_sections(figures: Figures) -> tuple[Section, ...]:
    """The sections that come from WHAT_IF and BROKER_LOSSES."""
    parts: list[Section] = []
    if figures.strategy_changes is not None:
        parts.append(_strategies(figures.strategy_changes, figures.gains))
    if figures.member_changes is not None:
        parts.append(_members(figures.member_changes))
    if figures.brokers is not None:
        parts.append(_brokers(figures.brokers))
    return tuple(parts)


def _strategies(found: tuple[StrategyChange, ...], gains: tuple[GroupChange, ...]) -> Section:
    name, title = "strategies", "Under another strategy"
    if not found:
        return Section(name, title, (said("Nothing: no change of strategy was looked at."),))
    best = max(found, key=lambda one: one.better - one.worse)
    seen = [
        said(
            "Of {} groups that do not run {}, the busiest consumer would get fewer queues in {} and more in {}. To "
            "change there moves {} queues once.",
            best.groups, best.strategy_after, best.better, best.worse, best.moved,
        )
    ]  # fmt: skip
    if gains:
        first = gains[0]
        seen.append(
            said(
                "{} in {} gains most: from {} to {} queues with its busiest consumer under {}.",
                first.group, first.cluster, first.most_before, first.most_after, first.strategy_after,
            )
        )  # fmt: skip
    picture = bars(
        Picture(name, title, "Bars: in how many groups the busiest consumer would get fewer, as many or more queues."),
        [one.strategy_after for one in found],
        [
            Series("fewer", [one.better for one in found]),
            Series("as many", [one.same for one in found]),
            Series("more", [one.worse for one in found]),
        ],
        "groups, by what their busiest consumer would get",
    )
    summary = grid_of(
        "All groups that do not run a strategy, if they did",
        found,
        ("strategy", "word", "strategy_after"),
        ("groups", "count", "groups"),
        ("better", "count", "better"),
        ("same", "count", "same"),
        ("worse", "count", "worse"),
        ("queues moved", "count", "moved"),
        ("of all", "share", lambda one: share_of(one.moved, one.queues)),
        ("idle now", "count", "idle_before"),
        ("idle then", "count", "idle_after"),
    )
    return Section(
        name,
        title,
        tuple(seen),
        "change all members of a group at once, in a quiet hour: while two strategies run side by side, some queues "
        "have two readers and some none. rmqlb plan-rebalance shows each move.",
        (picture,),
        (summary, _gains(gains)),
    )


def _gains(gains: tuple[GroupChange, ...]) -> Grid:
    return grid_of(
        "Groups that gain most, each under the strategy that suits it best",
        gains,
        ("cluster", "name", "cluster"),
        ("group", "name", "group"),
        ("from", "word", "strategy"),
        ("to", "word", "strategy_after"),
        ("consumers", "count", "members"),
        ("queues", "count", "queues"),
        ("most now", "count", "most_before"),
        ("most then", "count", "most_after"),
        ("moved", "count", "moved"),
        ("idle then", "count", "idle_after"),
    )


def _members(found: tuple[MemberChange, ...]) -> Section:
    name, title = "members", "With more or fewer consumers"
    if not found:
        return Section(name, title, (said("Nothing: no change of consumers was looked at."),))
    subjects = list(dict.fromkeys(one.subject for one in sorted(found, key=_subject)))
    strategies = list(dict.fromkeys(one.strategy for one in found))
    shares = {(one.strategy, one.subject): share_of(one.moved, one.queues) for one in found}
    picture = steps(
        Picture(
            name, title, "Lines: the share of queues that change owner, for each strategy and number of consumers."
        ),
        subjects,
        [Series(strategy, [shares.get((strategy, subject)) for subject in subjects]) for strategy in strategies],
        ("change of each group's consumers", "queues that move"),
    )
    grid = grid_of(
        "Groups by the strategy that they run",
        found,
        ("strategy", "word", "strategy"),
        ("consumers", "word", "subject"),
        ("groups", "count", "groups"),
        ("queues", "count", "queues"),
        ("moved", "count", "moved"),
        ("of all", "share", lambda one: shares[one.strategy, one.subject]),
        ("idle now", "count", "idle_before"),
        ("idle then", "count", "idle_after"),
    )
    return Section(
        name,
        title,
        (said("What every deployment, scale-out and crash costs: queues that move stop for a moment and may repeat."),),
        "where few consumers come and go at a time and each move is dear, a strategy with a low line is calmer.",
        (picture,),
        (grid,),
    )


def _subject(one: MemberChange) -> tuple[int, str]:
    try:
        return int(one.subject), one.subject
    except ValueError:
        return 0, one.subject


def _brokers(found: tuple[BrokerLoss, ...]) -> Section:
    name, title = "brokers", "The broker whose loss hurts most"
    if not found:
        return Section(name, title, (said("Nothing: no loss of a broker was looked at."),))
    worst = found[0]
    seen = said(
        "It is {} in {}: without it {} of its {} topics have no queue to write to; {} queues go, and {} of those that "
        "stay move to another consumer, in {} groups.",
        worst.broker_name, worst.cluster, worst.without_write, worst.topics, worst.removed, worst.moved, worst.groups,
    )  # fmt: skip
    few = found[:IN_PICTURE]
    queues = bars(
        Picture(
            "brokers-queues", "Queues that a lost broker takes or moves", "Bars: queues removed and moved, by broker."
        ),
        labels_of(few, "broker_name"),
        [Series("removed", [one.removed for one in few]), Series("moved", [one.moved for one in few])],
        "queues, once for each group that reads them",
    )
    topics = bars(
        Picture("brokers-topics", "Topics that a lost broker stops", "Bars: topics left without a queue to write to."),
        labels_of(few, "broker_name"),
        [Series("topics", [one.without_write for one in few])],
        "topics left without a queue to write to",
    )
    has_topics = any(one.without_write for one in few)
    return Section(
        name,
        title,
        (seen,),
        ("give the topics that would stop queues on a second broker, and " if has_topics else "")
        + "see that the consumers left can carry the lag that moves to them.",
        (queues, topics) if has_topics else (queues,),
        (_losses(found),),
    )


def _losses(found: tuple[BrokerLoss, ...]) -> Grid:
    return grid_of(
        f"The first {number_of(len(found), 'broker')}: those that stop most topics, then those that move most queues",
        found,
        ("cluster", "name", "cluster"),
        ("broker", "name", "broker_name"),
        ("topics", "count", "topics"),
        ("no write queue", "count", "without_write"),
        ("no read queue", "count", "without_read"),
        ("groups", "count", "groups"),
        ("removed", "count", "removed"),
        ("moved", "count", "moved"),
        ("lag moved", "count", "lag_moved"),
        ("idle then", "count", "idle_after"),
        ("without reader", "count", "unowned_after"),
    )
