"""A group's size: from the options to the exit code."""

from __future__ import annotations

from rmqlb.cli.common.fail_on import judge, require_known
from rmqlb.cli.common.options import SourceOptions, StrategyOptions
from rmqlb.cli.common.pictures import check_folder, write_picture
from rmqlb.cli.common.reading import earlier_snapshot, fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.size_group.gather import Gathered, gather, wanted
from rmqlb.cli.size_group.options import (
    FutureIdOptions,
    LimitOptions,
    ShowSizeOptions,
    SizedGroupOptions,
    WhichSizesOptions,
    WorkOptions,
)
from rmqlb.cli.size_group.question import asked_of, strategies_of
from rmqlb.engine.fail_on_figures.of_size import SIZE_FIGURES, try_on_size
from rmqlb.engine.size.size_group import size_group
from rmqlb.model.group_size import GroupSize
from rmqlb.verbs.parse import conditions
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.size.facts import size_facts
from rmqlb.views.size.svg import size_picture
from rmqlb.views.size.view import size_report


def run(
    source: SourceOptions,
    which: SizedGroupOptions,
    limits: LimitOptions,
    sizes: WhichSizesOptions,
    work: WorkOptions,
    ids: FutureIdOptions,
    strategy_options: StrategyOptions,
    what: ShowSizeOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    tried = conditions(what.fail_on or (), SIZE_FIGURES)
    check_folder(what.svg, "--svg")
    earlier_snapshot(source, work.rates_since, terminal)
    asked = asked_of(limits, sizes, work, ids, which.sdk)
    strategies = Strategies(strategy_options.strategy_option)
    names = strategies_of(sizes, strategies)
    strategies.must_apply(reported=not names)
    snapshot = fetch(source, wanted(source, which.which, work), terminal)
    found = gather(source, which.which, work, asked, names, strategies, snapshot, terminal)
    size = _sized(found, terminal)
    judged = [try_on_size(condition, size) for condition in tried]
    require_known(judged, "no size satisfies all: ask for unsatisfied too")
    size = found.told(size, tuple(judged))
    if what.svg is not None:
        write_picture(size_picture(size, size_facts(size)), what.svg, "--svg", terminal)
    if what.svg == "-":
        terminal.warn(found.findings)
    else:
        terminal.show(size_report(size), snapshot, found.findings)
    judge(judged, terminal)


def _sized(found: Gathered, terminal: Terminal) -> GroupSize:
    with terminal.progress(verb="sizing") as progress:
        return size_group(
            found.on_topics.name,
            found.on_topics.pulled_routes,
            found.question,
            found.settings,
            progress=lambda done, total: progress(found.on_topics.title, done, total),
        )
