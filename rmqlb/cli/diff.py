"""`rmqlb diff`."""

from functools import partial
from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, about_option, command
from rmqlb.cli.common.show_or_watch import show_once
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError


@command(without=("source", "context"))
def diff(
    *,
    before: Annotated[
        str,
        Argument(metavar="A", help="The first snapshot: a source as for -s, or a context; or a stored plan."),
    ],
    after: Annotated[str, Argument(metavar="B", help="The second, perhaps the live cluster: as A.")],
    source: SourceOptions,
    group: Annotated[
        list[str] | None, Option("-g", "--group", metavar="GLOB", help="Only these consumer groups; repeatable.")
    ] = None,
    system: Annotated[bool, about_option("--system", help="RocketMQ's own topics and groups too.")] = False,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when it is met: 'moved>0', 'unexplained>0'; repeatable."),
    ] = None,
) -> None:
    """Compare two snapshots of a cluster, or a plan with a snapshot: what changed, and which change moved each queue.

    Examples:
      rmqlb diff examples/cluster.json examples/cluster-later.json

      rmqlb diff examples/cluster.json examples/cluster-later.json -g 'order-*' --section queues

      rmqlb diff examples/cluster.json examples/cluster-later.json --fail-on 'unexplained>0' -o json

    If A is a plan or a simulation that -o json wrote, its predicted owners are compared with those of B: did it go as
    planned? Conditions then ask about differences, other-owner, not-yet and unknown.

    Owners are predicted from A, then with changes from B: consumers, strategy, subscriptions, routes. The fewest that
    give a queue its new owner explain its move.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a snapshot cannot be read, 5 endpoint unreachable.
    """
    from rmqlb.cli.common.reading import Reader, named_source
    from rmqlb.verbs import diff as verb
    from rmqlb.verbs.stored import stored_prediction
    from rmqlb.views.diff import diff_report, prediction_report

    terminal = Terminal("diff", output, more_formats=("jsonl",))
    if before == after == "-":
        raise UsageError("A and B both read stdin")
    stored = stored_prediction(before)
    then = Reader(named_source(after, source), terminal)
    if stored is not None:
        ask_stored = partial(verb.diff_prediction, stored, before, then, group or (), fail_on=fail_on or ())
        show_once(ask_stored, prediction_report, terminal, verb="comparing")
        return
    first = Reader(named_source(before, source), terminal)
    ask = partial(
        verb.diff,
        first,
        then,
        group or (),
        system=system,
        strategy_options=strategy_options.texts,
        fail_on=fail_on or (),
    )
    show_once(
        ask,
        diff_report,
        terminal,
        verb="comparing",
        unknown_hint="leave the condition out to see the differences",
    )
