"""`rmqlb simulate-rebalance`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from rmqlb.cli.common.group_simulation.options import EventOptions, GroupOverTimeOptions, MemberOptions, TrialOptions
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.panel import panel
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.cli.common.group_simulation.inputs import Gathered
    from rmqlb.model.group_report import GroupReport, GroupTrials

what_option = panel("What to show")


@command
def simulate_rebalance(
    source: SourceOptions,
    which: GroupOverTimeOptions,
    happens: EventOptions,
    configured: MemberOptions,
    dice: TrialOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    strategy: Annotated[
        str | None,
        Option(metavar="STRATEGY", help="Or FILE.py:NAME, which is run. Default: as members report or show, else AVG."),
    ] = None,
    svg: Annotated[str | None, what_option(metavar="FILE|-", help="Write the picture as SVG; - is stdout.")] = None,
    html: Annotated[
        str | None, what_option(metavar="FILE|-", help="Write picture and tables as one HTML page.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        what_option(
            metavar="CONDITION",
            help="Exit 3 when it is met: 'longest-gap-ms>5000', with --trials of 95 %; repeatable.",
        ),
    ] = None,
) -> None:
    r"""Simulate what a group goes through while members and brokers come and go: which queues nobody reads, or two do.

    Examples:
      rmqlb simulate-rebalance -s examples/cluster.json --group order-svc --event 'join 192.0.2.2@inst3@30s'

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'crash #1@30s' --explain --trials 100

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --rate 500
      --event 'rolling-restart *@30s, every 60s, down 15s' -o json

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'broker-down broker-b@30s-5m' --orderly

    An event is VERB WHO@TIME, times counting from the start:
      join ID@T\[, strategy S], join N@T with made-up ids
      leave ID@T, crash ID@T, host-loss ID@T, pull-stall ID@T
      freeze ID@T or ID@T-T: a stopped process, a long GC pause
      broker-down NAME@T or NAME@T-T\[, with slaves], broker-loss likewise
      broker-up NAME@T, a new one NAME\[:READ\[:WRITE]]@T
      route-change \[TOPIC:]\[BROKER=]READ\[/WRITE]@T, in queues a broker
      restart ID@T, down TIME\[, as ID]
      rolling-restart ID…@T, every TIME, down TIME\[, at once N]
      strategy-change S@T, every TIME, down TIME\[, order ID…]

    ID may be a pattern, or #N, the N-th of the first members from 0 on.
    Restarts may end in ', by crash', ', new ids' and ', same ids'.

    Timers: rebalance-wait, rebalance-min, route-poll, heartbeat, persist,
    pull-delay, pull-idle, pull-hold, lock-renewal, lock-life, lock-retry,
    unlock-delay, release-wait, channel-expiry, broker-scan, socket-idle,
    notify-batch, rpc-timeout, nameserver-expiry, nameserver-scan, registration,
    start, connect, close.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or members are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.fail_on import conditions, judge, require_known
    from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, gather, trials_of
    from rmqlb.cli.common.strategies import Strategies
    from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, try_on_group, try_on_group_trials
    from rmqlb.views.group.view import group_report

    terminal = Terminal("simulate-rebalance", output)
    asked = conditions(fail_on or (), GROUP_FIGURES)
    trials, trial = trials_of(dice)
    if svg == "-" and html == "-":
        raise UsageError("--svg - and --html - both write to stdout")
    if not happens.event and not happens.all_new and happens.for_ is None:
        raise UsageError(
            "nothing happens to the group", hint="say what does: --event 'join 1@30s', or --all-new for its start"
        )
    strategies = Strategies(strategy_options.inner)
    given = strategies.optional(strategy)
    found = gather(source, which, given, strategies, strategy_options, happens, configured, dice.seed, terminal)
    report, spread = _simulated(found, trials, trial, terminal, explain=which.explain)
    tried = [
        try_on_group(condition, report) if spread is None else try_on_group_trials(condition, spread)
        for condition in asked
    ]
    require_known(tried, RATE_HINT)
    findings = tuple(dict.fromkeys((*found.findings, *report.findings)))
    _draw(report, spread, svg, html, terminal)
    if "-" in (svg, html):
        terminal.warn(findings)
    else:
        with terminal.progress(verb="drawing") as progress:
            progress("the timeline", 0, 0)
            shown = group_report(report, trials=spread, explain=which.explain, conditions=tried)
        terminal.show(shown, found.snapshot, findings)
    judge(tried, terminal)


def _simulated(
    found: "Gathered", trials: int | None, trial: int, terminal: Terminal, *, explain: bool
) -> "tuple[GroupReport, GroupTrials | None]":
    from rmqlb.engine.consume.simulate import simulate_group

    name, members, routes, scenario = found.on_topics.name, found.members, found.on_topics.routes, found.scenario
    with terminal.progress(verb="simulating") as progress:
        progress("the group", 0, 0)
        report = simulate_group(name, members, routes, scenario, states=found.states, trial=trial, explain=explain)
        if trials is None:
            return report, None
        from rmqlb.engine.consume.trials import simulate_group_trials

        spread = simulate_group_trials(
            name,
            members,
            routes,
            scenario,
            trials,
            states=found.states,
            progress=lambda done: progress("trials", done, trials),
        )
    return report, spread


def _draw(
    report: "GroupReport", spread: "GroupTrials | None", svg: str | None, html: str | None, terminal: Terminal
) -> None:
    """The pictures that were asked for, each whole or not at all."""
    if svg is None and html is None:
        return
    from rmqlb.cli.common.output_files import write_whole
    from rmqlb.views.group.picture import html_page, svg_picture

    for option, path in (("--svg", svg), ("--html", html)):
        if path is None:
            continue
        with terminal.progress(verb="drawing") as progress:
            progress("the picture", 0, 0)
            picture = svg_picture(report) if option == "--svg" else html_page(report, trials=spread)
        if path == "-":
            terminal.write(picture)
        else:
            write_whole(path, picture, option)
            terminal.say(f"written to {path}")
