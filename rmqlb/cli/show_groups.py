"""`rmqlb show-groups`."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command, shown_option
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal

if TYPE_CHECKING:
    from rmqlb.engine.allocate.strategy import Settings
    from rmqlb.model.finding import Finding
    from rmqlb.model.groups import Overview
    from rmqlb.model.snapshot import ClusterSnapshot, Everything


class ShowGroupsOptions(Struct, frozen=True):
    """Which groups are shown, and what fails."""

    group: Annotated[
        list[str] | None, Option("-g", "--group", metavar="GLOB", help="Only these groups; repeatable.")
    ] = None
    severity: Annotated[
        str | None,
        shown_option(metavar="SEVERITY", help="Only groups with a finding at least so grave: error, warning or info."),
    ] = None
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when it is met: 'groups-with-errors>0', 'lag[G]>1000'; repeatable."),
    ] = None


@command
def show_groups(
    source: SourceOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    chosen: ShowGroupsOptions,
) -> None:
    """Show every consumer group in a line, the worst first.

    Examples:
      rmqlb show-groups -s examples/cluster.json

      rmqlb show-groups -s examples/cluster.json -g 'order-*' -g bill-svc -o json

      rmqlb show-groups -s examples/cluster.json --severity warning --fail-on 'groups-with-errors>0'

      rmqlb show-groups -s examples/cluster.json -o prometheus

    A group is in order when each queue has one owner, as observed or as its consumers' strategy gives it, and when its
    consumers are visible clients of a Proxy (--proxy), which own none. It is unknown when that cannot be known, as for
    consumption by POP. --section findings lists all findings.

    A running cluster's brokers are asked for each group's consumers and offsets, and each consumer for its queues.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches no group or a figure of
    --fail-on is unknown, 5 endpoint unreachable.
    """
    from rmqlb.cli.common.fail_on import conditions, require_known
    from rmqlb.cli.common.parse import severity
    from rmqlb.cli.common.strategies import Strategies
    from rmqlb.engine.fail_on_figures.of_groups import GROUPS_FIGURES, try_on_groups
    from rmqlb.model.snapshot import Everything, Wanted
    from rmqlb.views.overview.groups import groups_report

    terminal = Terminal("show-groups", output, more_formats=("jsonl", "prometheus"))
    check_watch(watching, source, None, terminal)
    asked = conditions(chosen.fail_on or (), GROUPS_FIGURES)
    lowest = None if chosen.severity is None else severity(chosen.severity, "--severity")
    strategies = Strategies(strategy_options.strategy_option)
    strategies.must_apply(reported=True)
    everything = Everything(groups=tuple(chosen.group or ()), of_groups=True)
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read(Wanted(everything=everything))
        own = strategies.settings_for(list(snapshot.routes))
        whole, findings = _overview(snapshot, everything, own, terminal)
        tried = tuple(try_on_groups(condition, whole.groups) for condition in asked)
        require_known(tried, "leave the condition out to see the groups")
        return SnapshotView(groups_report(whole.at_least(lowest, tried)), snapshot, findings, tried)

    show(look, watching, terminal)


def _overview(
    snapshot: "ClusterSnapshot", everything: "Everything", own: "Settings", terminal: Terminal
) -> "tuple[Overview, tuple[Finding, ...]]":
    """The groups, those included that could not be read, and the findings that no group's line has."""
    from msgspec.structs import replace

    from rmqlb.cli.common.globs import each_matches
    from rmqlb.engine.overview.groups import all_groups, overview, unread_of_no_group
    from rmqlb.engine.source_findings import source_findings

    present = all_groups(snapshot)
    names = [name for name in present if everything.takes_group(name)]
    each_matches("group", everything.groups, present, names, snapshot.endpoint)
    with terminal.progress(verb="judging") as progress:
        whole = overview(snapshot, names, own, progress=progress)
    others = unread_of_no_group(snapshot, whole.groups)
    return whole, tuple(source_findings(replace(snapshot, unread=others)))
