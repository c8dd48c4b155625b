"""Tables and sentences about queues that show-owners and plan-rebalance share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from textwrap import wrap

from msgspec import Struct

from rmqlb.model.finding import ERROR, Severity
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import PopTopicPlan
from rmqlb.model.unknown import sum_if_known
from rmqlb.model.words import counted, named
from rmqlb.views.report import BETWEEN, Cell, Column, Kind, Section, attribute_of

_SCREEN = 100
_LEAST = 18
_UNASSIGNED = ("(unassigned)",)
_COLUMN = 13
"""Columns of a number and of the blanks around it and the client IDs."""
Owners = tuple[tuple[str, ...], ...]
"""The owners of a queue in each column, such as before and after a change."""


class OwnerLine(Struct, frozen=True):
    """The queues with the same owners: one line of a screen."""

    owners: Owners
    queues: tuple[MessageQueue, ...]
    lag: int | None
    severity: Severity | None

    @property
    def which(self) -> str:
        return queue_ranges(self.queues, len(self.queues)) if self.queues else "idle"

    @property
    def badness(self) -> float:
        return 1e18 if self.severity == ERROR else (self.lag or 0) + len(self.queues) / 1e6


def owner_lines(
    queues: Iterable[tuple[Owners, MessageQueue, int | None]],
    places: Mapping[str, int],
    severity: Callable[[Owners], Severity | None],
) -> list[OwnerLine]:
    """Join queues (owners, queue, lag) with the same owners: errors first, then by the owners' places."""
    found: dict[Owners, list[tuple[MessageQueue, int | None]]] = {}
    for owners, queue, lag in queues:
        found.setdefault(owners, []).append((queue, lag))
    lines = [
        OwnerLine(owners, tuple(queue for queue, _ in some), sum_if_known(lag for _, lag in some), severity(owners))
        for owners, some in found.items()
    ]

    def order(line: OwnerLine) -> tuple[bool, list[list[int]]]:
        return line.severity != ERROR, [[places.get(owner, len(places)) for owner in each] for each in line.owners]

    return sorted(lines, key=order)


def owner_section(
    name: str, title: str, columns: Mapping[str, tuple[str, Kind]], lines: Sequence[OwnerLine], room: int
) -> Section:
    """The lines as a table for screens.

    Args:
        columns: the key of each column of owners → its title and kind.
        room: how many lines of a screen the queues may take.
    """
    signs, lags = any(line.severity for line in lines), any(line.lag for line in lines)
    beside = [[line.owners[at] for line in lines] for at in range(len(columns))]
    brief = fitting(
        [line.which for line in lines],
        [line.badness for line in lines],
        room,
        beside=beside,
        more=4 * signs + 9 * lags,
    )
    shown = (
        Column("", "severity", "sign", shown=signs),
        *(Column(title_, key, kind) for key, (title_, kind) in columns.items()),
        Column("queues", "queues", "number", fold=1),
        Column("lag", "lag", "number", shown=lags, fold=2),
        Column("which", "which", "prose"),
    )
    rows = tuple(
        (line.severity, *line.owners, len(line.queues), None if line.lag is None else f"{line.lag:,}", line.which)
        for line in lines
    )
    return Section(name, title, shown, rows, heads=1 + len(columns), audience="screen", brief=brief)


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
