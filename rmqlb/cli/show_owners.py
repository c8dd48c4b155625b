"""`rmqlb show-owners`."""

from functools import partial
from typing import Annotated

from rmqlb.cli.common.options import (
    GroupsOptions,
    OutputOptions,
    PopShare,
    SourceOptions,
    StrategyOptions,
    about_option,
    command,
)
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal


@command
def show_owners(
    source: SourceOptions,
    groups: GroupsOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    strategy: Annotated[
        list[str] | None,
        about_option(
            metavar="STRATEGY", help="Or FILE.py:NAME, which is run; repeatable; default: those without settings."
        ),
    ] = None,
    pop_share: PopShare = None,
) -> None:
    """Show which consumer owns each queue under each strategy, next to the observed owner.

    Examples:
      rmqlb show-owners -s examples/cluster.json --group order-svc

      rmqlb show-owners -s examples/cluster.json --topic OrderEvents --consumers 5 --strategy AVG --section summary

      rmqlb show-owners -s examples/cluster.json -g order-svc -g 'bill-*' --strategy AVG

    Exit codes: 0 done, 2 usage, 4 group, topic or consumers are not there or a server did not
    answer, 5 endpoint unreachable.
    """
    from rmqlb.verbs import show_owners as verb
    from rmqlb.views.show_owners import owners_report

    terminal = Terminal("show-owners", output, more_formats=("jsonl", "prometheus"))
    show_verb(
        partial(
            verb.show_owners,
            **groups.arguments(source.source),
            strategies=strategy or (),
            strategy_options=strategy_options.texts,
            pop_share=pop_share,
            explain=groups.explain,
        ),
        partial(owners_report, explained=groups.explain),
        source,
        watching,
        terminal,
        verb="predicting",
        consumers=groups.consumers,
    )
