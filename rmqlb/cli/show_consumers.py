"""`rmqlb show-consumers`."""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal


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

    Exit codes: 0 done, 2 usage, 4 the group is not there or a server did not answer, 5 endpoint
    unreachable.
    """
    from rmqlb.verbs.selection import select
    from rmqlb.verbs.show_groups import consumers_in
    from rmqlb.verbs.strategies import reported_strategies
    from rmqlb.views.overview.consumers import consumers_report

    terminal = Terminal("show-consumers", output, more_formats=("jsonl",))
    strategies = reported_strategies(strategy_options.strategy_option or ())
    chosen = select(group)
    show_verb(
        lambda reader, _: consumers_in(reader, chosen, strategies),
        consumers_report,
        source,
        watching,
        terminal,
        verb="judging",
    )
