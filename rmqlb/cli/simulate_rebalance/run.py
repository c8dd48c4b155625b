"""A group simulated and shown: from the options to the exit code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rmqlb.cli.common.against import compared, earlier_results
from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, Gathered, gather, trials_of
from rmqlb.cli.common.group_simulation.options import GroupSimulationOptions, TrialOptions
from rmqlb.cli.common.options import ReplayOptions
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_rebalance.options import ShowOptions
from rmqlb.engine.consume.simulate import simulate_group
from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, try_on_group, try_on_group_trials
from rmqlb.errors import UsageError
from rmqlb.model.group_report import GroupReport, GroupTrials
from rmqlb.views.group.view import group_report
from rmqlb.views.made_from_view import dated
from rmqlb.views.report import Report


def run(
    options: GroupSimulationOptions,
    strategy: str | None,
    dice: TrialOptions,
    what: ShowOptions,
    replay: ReplayOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    asked = conditions(what.fail_on or (), GROUP_FIGURES)
    trials, trial = trials_of(dice)
    if what.svg == "-" and what.html == "-":
        raise UsageError("--svg - and --html - both write to stdout")
    happens = options.happens
    if happens is not None and not happens.event and not happens.all_new and happens.for_ is None:
        hint = "say what does: --event 'join 1@30s', or --all-new for its start"
        raise UsageError("nothing happens to the group", hint=hint)
    explain, earlier = options.which.explain, earlier_results(replay.against, options.source.source)
    strategies = Strategies(options.strategies.strategy_option)
    found = gather(options, strategies.optional(strategy), strategies, terminal)
    report, spread = _simulated(found, trials, trial, terminal, explain=explain)
    tried = [
        try_on_group(condition, report) if spread is None else try_on_group_trials(condition, spread)
        for condition in asked
    ]
    require_known(tried, RATE_HINT)
    against, moved_on = compared(found.used, earlier, found.members.settings)

    def shown(explain: bool) -> Report:
        made = group_report(report, trials=spread, explain=explain, conditions=tried)
        return dated(made, found.used, against)

    findings = tuple(dict.fromkeys((*moved_on, *found.findings, *report.findings)))
    _draw(report, shown, what, terminal)
    if "-" in (what.svg, what.html):
        terminal.warn(findings)
    else:
        with terminal.progress(verb="drawing") as progress:
            progress("the timeline", 0, 0)
            drawn = shown(explain)
        terminal.show(drawn, found.snapshot, findings)
    judge(tried, terminal)


def _simulated(
    found: Gathered, trials: int | None, trial: int, terminal: Terminal, *, explain: bool
) -> tuple[GroupReport, GroupTrials | None]:
    group = found.on_topics
    asked, states = (group.name, found.members, group.routes, found.scenario), group.states
    with terminal.progress(verb="simulating") as progress:
        progress("the group", 0, 0)
        report = simulate_group(*asked, states=states, trial=trial, explain=explain)
        if trials is None:
            return report, None
        from rmqlb.engine.consume.trials import simulate_group_trials

        count = partial(progress, "trials", total=trials)
        return report, simulate_group_trials(*asked, trials, states=states, progress=count)


def _draw(report: GroupReport, shown: Callable[[bool], Report], what: ShowOptions, terminal: Terminal) -> None:
    if what.svg is None and what.html is None:
        return
    from rmqlb.cli.common.output_files import write_whole
    from rmqlb.views.group.picture import html_page, svg_picture

    for option, path in (("--svg", what.svg), ("--html", what.html)):
        if path is None:
            continue
        with terminal.progress(verb="drawing") as progress:
            progress("the picture", 0, 0)
            picture = svg_picture(report) if option == "--svg" else html_page(report, shown(bool(report.steps)))
        if path == "-":
            terminal.write(picture)
        else:
            write_whole(path, picture, option)
            terminal.say(f"written to {path}")
