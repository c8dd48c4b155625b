"""Parts of the tables and sentences about queues that show-owners and plan-rebalance share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from textwrap import wrap

from rmqlb.model.finding import ERROR, Severity
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import PopTopicPlan
from rmqlb.model.words import counted, named
from rmqlb.views.report import BETWEEN, Cell, Column, attribute_of

_SCREEN = 100
_LEAST = 18
_UNASSIGNED = ("(unassigned)",)
_COLUMN = 13
"""Columns of a number and of the blanks around it and the client IDs."""


def lag_column(title: str, key: str, items: Sequence[object], fold: int) -> Column:
    """Unread messages with a thousands separator; hidden where every item has none."""
    field = attribute_of(key)

    def text(item: object) -> Cell:
        lag = getattr(item, field)
        return None if lag is None else f"{lag:,}"

    return Column(title, key, "number", shown=any(getattr(item, field) for item in items), fold=fold, of=text)


def figure_column(title: str, key: str, items: Sequence[object], *, fold: int = 0, within: str = "") -> Column:
    """A figure that people see where it is known and not 0 for some item.

    Args:
        within: the attribute that has the figure; empty is the item itself.
    """
    field = attribute_of(key)

    def value(item: object) -> Cell:
        found: Cell = getattr(getattr(item, within) if within else item, field)
        return found

    return Column(title, key, "number", shown=any(map(value, items)), fold=fold, of=value)


def severity_of(owners: Sequence[str], *, broadcasting: bool) -> Severity | None:
    """An error for a queue without an owner, or with several where it must have one."""
    return ERROR if not owners or (len(owners) > 1 and not broadcasting) else None


def place_of(owners: Iterable[str], places: Mapping[str, int]) -> tuple[int, ...]:
    """A sort key: queues in the order of their consumers, with unknown owners last."""
    return tuple(places.get(owner, len(places)) for owner in owners)


def fitting(
    lists: Sequence[str],
    badness: Sequence[float],
    lines: int,
    *,
    beside: Sequence[Iterable[Sequence[str]]],
    more: int = 4,
) -> tuple[int, ...] | None:
    """The places of the rows that fit into so many lines of 100 columns, the worst first; None when all do.

    At least one fits, and none is left out where the line that counts it would be as long.

    Args:
        beside: columns of owners.
        more: the width of further columns.

    >>> fitting(["a", "b" * 140, "c", "d"], [0, 5, 1, 0], 3, beside=[["xyz"] * 4])
    (1, 2)
    >>> fitting(["a", "b", "c"], [0, 0, 0], 2, beside=[])
    """
    owners = sum(max(len(" ".join(each)) for each in (*column, _UNASSIGNED)) for column in beside)
    room = max(_SCREEN - _COLUMN - more - owners, _LEAST)
    ordered = sorted(range(len(lists)), key=lambda at: -badness[at])
    ends = list(accumulate(max(len(wrap(lists[at], room)), 1) for at in ordered))
    fit = max(sum(end <= lines for end in ends), 1)
    return None if not ends or ends[-1] <= lines + 1 else tuple(sorted(ordered[:fit]))


def pop_title(topics: Iterable[PopTopic | PopTopicPlan]) -> str:
    """The title of the table of topics without owners."""
    how = "through a Proxy" if any(topic.by_proxy for topic in topics) else "by POP"
    return f"{how} (queue -1 is any queue of the broker)"


def pop_facts(topics: Iterable[PopTopic | PopTopicPlan], *more: str) -> Iterator[str]:
    """How brokers assign the topics: one line for all topics with the same settings."""
    same: dict[tuple[str | None, str | None, tuple[int, ...]], list[str]] = {}
    for topic in topics:
        after = topic.strategy_after if isinstance(topic, PopTopicPlan) else topic.strategy
        same.setdefault((topic.strategy, after, topic.pop_share_queue_nums), []).append(topic.topic)
    for (before, after, shares), names in same.items():
        parts = [f"{counted(len(names), 'topic')} {'through a Proxy' if before is None else 'by POP'} {named(names)}"]
        if before is not None:
            strategy = before if before == after else f"{before} → {after}"
            parts += [f"popShareQueueNum {' or '.join(map(str, shares))}", f"strategy {strategy}"]
        yield f"  {BETWEEN.join((*parts, *more))}"
