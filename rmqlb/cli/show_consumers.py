"""`rmqlb show-consumers`."""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.reading import Reader, wanted_for
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal


@command
def show_consumers(
    source: SourceOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    group: Annotated[
        str | None, Option("-g", "--group", metavar="GROUP", help="Consumer group; may be left out when there is one.")
    ] = None,
) -> None:
    """Show a group's consumers: each running process with its address, version, queues and lag.

    Examples:
      rmqlb show-consumers -s examples/cluster.json -g order-svc

      rmqlb show-consumers -s examples/cluster.json -g bill-svc -o json

    Two processes that share a client ID are two rows. What a client ID owns is then said of both: each of them reads
    these queues.

    Exit codes: 0 done, 2 usage, 4 the group is not there, 5 endpoint unreachable.
    """
    from msgspec.structs import replace

    from rmqlb.cli.common.inputs import only_group
    from rmqlb.cli.common.options import GroupOptions
    from rmqlb.cli.common.strategies import Strategies
    from rmqlb.engine.check.group_facts import gaps
    from rmqlb.engine.overview.consumers import consumers_of
    from rmqlb.engine.overview.groups import facts_of, unread_of_groups
    from rmqlb.engine.source_findings import source_findings
    from rmqlb.views.overview.consumers import consumers_report

    terminal = Terminal("show-consumers", output, more_formats=("jsonl",))
    check_watch(watching, source, None, terminal)
    strategies = Strategies(strategy_options.strategy_option)
    strategies.must_apply(reported=True)
    wanted = wanted_for(source, GroupOptions(group))
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read(wanted)
        name = only_group(snapshot, group).group
        own = strategies.settings_for(list(snapshot.routes), name)
        unread = unread_of_groups(snapshot)
        facts = facts_of(snapshot, gaps(snapshot), name, own)
        consumers = consumers_of(facts, unread.get(name, ()))
        others = tuple(part for part in snapshot.unread if part not in unread.get(name, ()))
        found = (*(finding.brief for finding in consumers.findings), *source_findings(replace(snapshot, unread=others)))
        return SnapshotView(consumers_report(consumers), snapshot, found)

    show(look, watching, terminal)
