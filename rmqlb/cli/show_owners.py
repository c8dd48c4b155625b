from functools import partial

from rmqlb.cli.common.declare import Texts, about, command
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, PopOptions, SourceOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal


class OwnersOptions(PopOptions, GroupsOptions):
    strategies: Texts = about(
        "--strategy STRATEGY", "Or FILE.py:NAME, which is run; repeatable; default: those without settings."
    )


@command
def show_owners(source: SourceOptions, options: OwnersOptions, output: OutputOptions, watching: WatchOptions) -> None:
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
    found = ask(verb.show_owners, Reader(source, terminal), options)
    show_verb(found, partial(owners_report, explained=options.explain), terminal, watching, verb="predicting")
