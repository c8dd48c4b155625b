"""Groups simulated and shown: from the options to the exit code."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.cli.common.each_group import EachGroup
from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, scenario_of, trials_of
from rmqlb.cli.common.group_simulation.options import GroupSimulationOptions, GroupsOverTimeOptions, TrialOptions
from rmqlb.cli.common.pictures import draw
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.simulate_rebalance.look import Looks, Question
from rmqlb.cli.simulate_rebalance.options import ShowOptions
from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group_report import GroupReport
from rmqlb.model.snapshot import Everything
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.group.facts import group_facts


def run(
    options: GroupSimulationOptions,
    groups: GroupsOverTimeOptions,
    strategy: str | None,
    dice: TrialOptions,
    what: ShowOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    trials, trial = trials_of(dice)
    each = EachGroup(groups, options.source)
    _check(options, what, several=each.several)
    strategies = Strategies(options.strategies.strategy_option)
    question = Question(
        options,
        strategies.optional(strategy),
        strategies,
        trials,
        trial,
        conditions(what.fail_on or (), GROUP_FIGURES),
    )
    scenario_of(options)
    everything = "*" in (groups.group or ()) and not groups.topic
    wanted = replace(each.wanted, several=(), everything=Everything()) if everything else each.wanted
    snapshot = Reader(options.source, terminal)(wanted)
    looks = Looks(question, snapshot, terminal, several=each.several, everything=everything)
    seen = each.look(snapshot, looks.one, looks.joined)
    require_known(seen.tried, RATE_HINT)
    _show(seen, (*seen.findings, *looks.findings), looks.simulations[0], what, terminal)
    judge(seen.tried, terminal)


def _check(options: GroupSimulationOptions, what: ShowOptions, *, several: bool) -> None:
    happens = options.happens
    if happens is not None and not happens.event and not happens.all_new and happens.for_ is None:
        hint = "say what does: --event 'join 1@30s', or --all-new for its start"
        raise UsageError("nothing happens to the group", hint=hint)
    what.check()
    if several and what.named is not None:
        raise UsageError(f"{what.named}: the picture of which group?", hint="name one with --group", code="which-group")


def _show(
    seen: SnapshotView, findings: tuple[Finding, ...], simulated: GroupReport, what: ShowOptions, terminal: Terminal
) -> None:
    draw(simulated, group_facts(simulated), seen.report, simulated.findings, what, terminal)
    if what.fill_stdout:
        terminal.warn(findings)
    else:
        terminal.show(seen.report, seen.snapshot, findings)
