"""A long table for people, by what draws it and how wide the terminal is: `python -m benchmarks.tables`.

Seconds to read, and ratios to the bare interpreter's loop of a million rounds in the same run to compare.
"""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console

from benchmarks.measuring import machine, ratio
from benchmarks.sections import Hold, Section, least, loop, measure, parser_of
from benchmarks.sections import broken as sections_broken
from rmqlb.views import report as shown
from rmqlb.views.columns import QUEUE_COLUMNS, Column
from rmqlb.views.formats.people import as_plain, print_tables

ROUNDS = 10**6
ROWS = 20_000
WIDTHS = {"one table": 132, "by topic, with labels": 40, "blocks": 24}
"""How the rows are drawn → columns of a terminal that is so wide."""
HOLDS: dict[tuple[str, ...], Hold] = {
    **{("tables", "terminal", how): Hold(most=25) for how in WIDTHS},
    ("tables", "plain", ""): Hold(most=25),
    ("tables", "markdown", ""): Hold(most=25),
}
_CHANGES = ("same", "moved", "assigned", "unassigned")


def queues(rows: int) -> shown.Report:
    """The queues of a plan, 500 to a topic, with 50 consumers."""
    ids = [f"192.0.2.{at}@{1000 + at}#{at * 7919}" for at in range(50)]
    columns = (
        *QUEUE_COLUMNS,
        Column("before", "ownersBefore", "clients"),
        Column("after", "ownersAfter", "clients"),
        Column("change", "change", "change"),
        Column("lag", "lag", "number"),
    )
    cells = tuple(
        (
            f"orders-{at // 500}",
            f"broker-{at % 5}",
            at % 100,
            (ids[at % 50],),
            (ids[at * 7 % 50],),
            _CHANGES[at % 4],
            at * 37 if at % 3 else None,
        )
        for at in range(rows)
    )
    section = shown.Section("queues", "queues", columns, cells, heads=3)
    return shown.Report("rmqlb/plan", {}, (), (section,), shown.labels(ids))


def tables(turns: int, rows: int = ROWS) -> Section:
    """One table of so many rows."""
    report = queues(rows)
    draw: dict[tuple[str, str], Callable[[], object]] = {
        ("plain", ""): lambda: as_plain(report),
        ("markdown", ""): lambda: as_plain(is_markdown=True, report=report),
    }
    for how, width in WIDTHS.items():
        draw["terminal", how] = partial(_on_a_terminal, report, width)
    section = Section((f"{rows:,} rows", "", "seconds", "time / loop"))
    for (what, how), call in draw.items():
        ours, bare = [], []
        for _ in range(turns):
            ours.append(least(call))
            bare.append(least(lambda: loop(ROUNDS)))
        section.rows.append((what, how, f"{min(ours):.2g}", ratio(ours, bare)))
        section.ratios["tables", what, how] = ratio(ours, bare)
    return section


def _on_a_terminal(report: shown.Report, width: int) -> None:
    print_tables(report, Console(file=io.StringIO(), width=width, force_terminal=True, color_system="256"))


def broken(sections: Sequence[Section]) -> list[str]:
    """A line for each hold that is broken, and for each thing that was not there to be measured."""
    return sections_broken(sections, defaultdict(Hold, HOLDS))


def main() -> None:
    """Measure, print the table, and with `--check` end with 1 when a hold is broken."""
    options = parser_of("benchmarks.tables", __doc__, ("tables",), turns=3).parse_args()
    sys.stdout.write(f"{machine()}, {options.turns} turns\n")
    measure({"tables": partial(tables, options.turns)}, broken, check=options.check)


if __name__ == "__main__":
    main()
