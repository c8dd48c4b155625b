from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from textwrap import wrap

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue, grouped, queue_ranges
from rmqlb.model.owners import PopTopic
from rmqlb.model.plan import PopTopicPlan
from rmqlb.model.result import ERROR, Severity, counted, named, sum_if_known
from rmqlb.views.columns import Column
from rmqlb.views.report import BETWEEN, Section

_SCREEN = 100
_LEAST = 18
_UNASSIGNED = ("(unassigned)",)
_COLUMN = 13
"""Columns of a number and of the blanks around the number and the client IDs."""
Owners = tuple[tuple[str, ...], ...]
"""The owners of a queue in each column, such as before and after a change."""


class OwnerLine(Struct, frozen=True):
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
    *,
    broadcasting: bool = False,  # several owners in the last column are right
    severity: Severity | None = None,  # of every line; None goes by the last column
) -> list[OwnerLine]:
    """Join queues (owners, queue, lag) with the same owners: errors first, then by the owners' places."""
    found = grouped((owners, (queue, lag)) for owners, queue, lag in queues)

    def order(line: OwnerLine) -> tuple[bool, list[list[int]]]:
        return line.severity != ERROR, [[places.get(owner, len(places)) for owner in each] for each in line.owners]

    lines = []
    for owners, some in found.items():
        bad = not owners[-1] or (len(owners[-1]) > 1 and not broadcasting)
        queues_of, lag = tuple(queue for queue, _ in some), sum_if_known(lag for _, lag in some)
        lines.append(OwnerLine(owners, queues_of, lag, severity or (ERROR if bad else None)))
    return sorted(lines, key=order)


def owner_section(name: str, title: str, columns: Sequence[Column], lines: Sequence[OwnerLine], room: int) -> Section:
    """The lines as a table that fits so many lines of a screen; `columns` are those of owners."""
    signs, lags = any(line.severity for line in lines), any(line.lag for line in lines)
    # the width that the other columns leave for the lists of queues
    widths = (
        max(len(" ".join(each)) for each in (_UNASSIGNED, *owners))
        for owners in zip(*[line.owners for line in lines], strict=True)
    )
    width = max(_SCREEN - _COLUMN - 4 * signs - 9 * lags - sum(widths), _LEAST)
    shown = (
        Column("", "severity", "sign", shown=signs),
        *columns,
        Column("queues", "queues", "number", fold=1),
        Column("lag", "lag", "number", shown=lags, fold=2),
        Column("which", "which", "prose"),
    )
    rows = tuple(
        (line.severity, *line.owners, len(line.queues), None if line.lag is None else f"{line.lag:,}", line.which)
        for line in lines
    )
    brief = fitting([line.which for line in lines], [line.badness for line in lines], room, width)
    return Section(name, title, shown, rows, heads=1 + len(columns), audience="screen", brief=brief)


def fitting(texts: Sequence[str], badness: Sequence[float], lines: int, width: int) -> tuple[int, ...] | None:
    """The places of the texts that fit into so many lines of that width, worst first; None when all do.

    At least one fits, and none is omitted if the line with their count would be as long.

    >>> fitting(["a", "b" * 140, "c", "d"], [0, 5, 1, 0], 3, width=75), fitting(["a" * 300, "b"], [1, 0], 2, width=75)
    ((1, 2), (0,))
    >>> fitting(["a", "b", "c"], [0, 0, 0], 2, width=75)
    """
    ordered = sorted(range(len(texts)), key=lambda at: -badness[at])
    ends = list(accumulate(max(len(wrap(texts[at], width)), 1) for at in ordered))
    fit = max(sum(end <= lines for end in ends), 1)
    return None if not ends or ends[-1] <= lines + 1 else tuple(sorted(ordered[:fit]))


def pop_title(topics: Iterable[PopTopic | PopTopicPlan]) -> str:
    how = "through a Proxy" if any(topic.by_proxy for topic in topics) else "by POP"
    return f"{how} (queue -1 is any queue of the broker)"


def pop_facts(topics: Iterable[PopTopic | PopTopicPlan], *more: str) -> Iterator[str]:
    """How brokers assign the topics: one line for all topics with the same settings."""
    afters = ((each, each.strategy_after if isinstance(each, PopTopicPlan) else each.strategy) for each in topics)
    same = grouped(((each.strategy, after, each.pop_share_queue_nums), each.topic) for each, after in afters)
    for (before, after, shares), names in same.items():
        parts = [f"{counted(len(names), 'topic')} {'through a Proxy' if before is None else 'by POP'} {named(names)}"]
        if before is not None:
            strategy = before if before == after else f"{before} → {after}"
            parts += [f"popShareQueueNum {' or '.join(map(str, shares))}", f"strategy {strategy}"]
        yield f"  {BETWEEN.join((*parts, *more))}"
