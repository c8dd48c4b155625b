from functools import partial
from typing import Annotated

from typer import Argument

from rmqlb.cli.common.declare import Texts, about, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.reading import Reading, ask, named_source
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError


class DiffOptions(PageOptions, StrategyOptions):
    groups: Texts = own("-g --group GLOB", "Consumer groups by name or pattern ('pay-*'); default: all; repeatable.")
    fail_on: Texts = own("CONDITION", "Exit 3 if a condition holds: 'moved>0', 'unexplained>0'; repeatable.")
    system: bool = about.flag("Include RocketMQ's own topics and groups.")


@command(without=("source", "namesrv_addr", "context"))
def diff(
    *,
    before: Annotated[
        str,
        Argument(
            metavar="A", help="First snapshot: a source, a context, or a stored plan. Write the source as for -s."
        ),
    ],
    after: Annotated[str, Argument(metavar="B", help="Second snapshot, such as the live cluster; written like A.")],
    source: SourceOptions,
    options: DiffOptions,
    output: OutputOptions,
) -> None:
    """Compare two snapshots of a cluster, or a plan with a snapshot: changes, moved queues and the cause of each move.

    Examples:
      rmqlb diff examples/cluster.json examples/cluster-later.json
      rmqlb diff examples/cluster.json examples/cluster-later.json -g 'order-*' --section queues
      rmqlb diff examples/cluster.json examples/cluster-later.json --fail-on 'unexplained>0' -o json

    If A is a plan or a simulation from -o json, rmqlb compares its predicted owners with the owners in B. The figures
    for --fail-on are then differences, other-owner, not-yet and unknown.

    Otherwise, rmqlb predicts the owners from A and applies changes from B: consumers, strategy, subscriptions, routes.
    A move is explained by the fewest changes that give the queue its new owner.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a snapshot cannot be read, 5 endpoint unreachable.
    """
    from rmqlb.verbs import diff as verb
    from rmqlb.verbs.stored import stored_prediction

    terminal = Terminal("diff", output, more_formats=("jsonl",), files=options)
    if before == after == "-":
        raise UsageError("A and B both read stdin")
    stored = stored_prediction(before)
    then = Reading(named_source(after, source), terminal)
    if stored is not None:
        groups, conditions = options.groups or (), options.fail_on or ()
        ask_stored = partial(verb.diff_prediction, stored, before, then, groups, fail_on=conditions)
        show_verb(ask_stored, "diff.prediction_report", terminal, doing="comparing")
        return
    compared = ask(verb.diff, Reading(named_source(before, source), terminal), options, after=then)
    hint = "leave the condition out to see the differences"
    show_verb(compared, "diff.diff_report", terminal, doing="comparing", hint=hint)
