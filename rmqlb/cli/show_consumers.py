from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OneGroup, OutputOptions, SourceOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal


@command
def show_consumers(source: SourceOptions, options: OneGroup, output: OutputOptions, watching: WatchOptions) -> None:
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
    found = ask(verb.show_consumers, Reader(source, terminal), options)
    show_verb(found, consumers_report, terminal, watching, verb="judging")
