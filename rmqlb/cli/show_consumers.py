"""`rmqlb show-consumers`."""

from functools import partial
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
    from rmqlb.verbs import show_groups as verb
    from rmqlb.views.show_groups import consumers_report

    terminal = Terminal("show-consumers", output, more_formats=("jsonl",))
    show_verb(
        partial(verb.show_consumers, group=group, strategy_options=strategy_options.texts),
        consumers_report,
        source,
        watching,
        terminal,
        verb="judging",
    )
