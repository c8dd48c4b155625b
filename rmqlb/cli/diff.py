"""`rmqlb diff`."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, about_option, command
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.model.diff import SnapshotDiff
    from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
    from rmqlb.verbs.strategies import Strategies


@command(without=("source", "context"))
def diff(
    *,
    before: Annotated[str, Argument(metavar="A", help="The first snapshot: a source as for -s, or a context.")],
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
    """Compare two snapshots of a cluster: what changed, and which change moved each queue.

    Examples:
      rmqlb diff examples/cluster.json examples/cluster-later.json

      rmqlb diff examples/cluster.json examples/cluster-later.json -g 'order-*' --section queues

      rmqlb diff examples/cluster.json examples/cluster-later.json --fail-on 'unexplained>0' -o json

    Owners are predicted from A, then with changes from B: consumers, strategy, subscriptions, routes. The fewest that
    give a queue its new owner explain its move.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a snapshot cannot be read, 5 endpoint unreachable.
    """
    from msgspec.structs import replace

    from rmqlb.cli.common.fail_on import conditions, judge, require_known
    from rmqlb.engine.diff.findings import diff_findings
    from rmqlb.engine.fail_on_figures.of_diff import DIFF_FIGURES, try_on_diff
    from rmqlb.model.snapshot import Everything, Wanted
    from rmqlb.verbs.globs import in_vain_of
    from rmqlb.verbs.strategies import Strategies
    from rmqlb.views.diff.view import diff_report

    terminal = Terminal("diff", output, more_formats=("jsonl",))
    asked = conditions(fail_on or (), DIFF_FIGURES)
    if before == after == "-":
        raise UsageError("A and B both read stdin")
    strategies = Strategies(strategy_options.strategy_option)
    strategies.must_apply(reported=True)
    wanted = Everything(groups=tuple(group or ()), system=system)
    first, then = (_read(text, source, Wanted(everything=wanted), terminal) for text in (before, after))
    names = {*first.groups, *then.groups}
    taken = {name for name in names if wanted.takes_group(name)}
    in_vain = in_vain_of("group", wanted.groups, names, taken, f"{first.endpoint} and {then.endpoint}")
    found = _compared(first, then, wanted, strategies, terminal)
    tried = tuple(try_on_diff(condition, found.summary) for condition in asked)
    require_known(tried, "leave the condition out to see the differences")
    findings = [*diff_findings(found), *in_vain, *source_findings(first), *source_findings(then)]
    terminal.show(diff_report(replace(found, conditions=tried)), then, dict.fromkeys(findings))
    judge(tried, terminal)


def _compared(
    first: "ClusterSnapshot",
    then: "ClusterSnapshot",
    wanted: "Everything",
    strategies: "Strategies",
    terminal: Terminal,
) -> "SnapshotDiff":
    from rmqlb.engine.diff.compare import compare_snapshots

    with terminal.progress(verb="comparing") as progress:
        own = strategies.settings_for([*first.routes, *then.routes])
        return compare_snapshots(first, then, wanted, settings=own, progress=progress)


def _read(text: str, options: SourceOptions, wanted: "Wanted", terminal: Terminal) -> "ClusterSnapshot":
    from rmqlb.cli.common.named_source import named_source
    from rmqlb.errors import DocumentError

    try:
        return fetch(named_source(text, options), wanted, terminal)
    except DocumentError as error:
        if error.code in ("topic-not-named", "group-not-named"):  # one option could not name it for A or B
            error.hint = "compare snapshots, as fetch-routes writes them"
        raise
