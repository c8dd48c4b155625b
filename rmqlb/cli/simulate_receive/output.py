"""Receives simulated and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.fail_on import judge, require_known
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.fail_on_figures.conditions import Condition
from rmqlb.engine.fail_on_figures.of_receives import try_on_receive
from rmqlb.engine.receive.findings import ended_findings
from rmqlb.engine.receive.how_many import receives_within
from rmqlb.engine.receive.simulate import receive_trials, simulate_receive
from rmqlb.model.receive_scenario import MOST_RECEIVE_TRIALS
from rmqlb.verbs import amounts

if TYPE_CHECKING:
    from rmqlb.cli.simulate_receive.inputs import Gathered
    from rmqlb.cli.simulate_receive.options import ReceiveWhatOptions


class Asked(Struct, frozen=True):
    """What is simulated beside the scenario itself."""

    target_us: int | None = None
    trials: int | None = None
    trace: bool = False


def asked_for(what: ReceiveWhatOptions, sections: Sequence[str]) -> Asked:
    """The options as values (raises UsageError)."""
    target, trials = what.target_wait, what.trials
    return Asked(
        target_us=None if target is None else amounts.duration_us(target, "--target-wait"),
        trials=None if trials is None else amounts.count(trials, "--trials", most=MOST_RECEIVE_TRIALS, least=2),
        trace=what.trace or "messages" in sections,
    )


def write(
    found: Gathered,
    terminal: Terminal,
    asked: Sequence[Condition],
    wanted: Asked,
) -> None:
    """Simulate, and show what came of it."""
    from rmqlb.views.receive.view import receive_report

    route, scenario = found.route, found.scenario
    total = 0 if scenario.messages is None or scenario.duration_us is not None else scenario.messages
    with terminal.progress(verb="simulating") as progress:
        report = simulate_receive(
            route,
            scenario,
            trace=wanted.trace,
            progress=lambda number: progress("messages", number, max(total, number) if total else 0),
        )
        if wanted.target_us is not None:
            target = receives_within(
                route, scenario, wanted.target_us, progress=lambda loops: progress(f"{loops} receives", 0, 0)
            )
            report = replace(report, target=target)
        if wanted.trials is not None:
            trials = wanted.trials
            several = receive_trials(route, scenario, trials, lambda done: progress("trials", done, trials))
            report = replace(report, trials=several)
    tried = [try_on_receive(condition, report) for condition in asked]
    require_known(tried, "no message is received: ask for left")
    shown = receive_report(replace(report, conditions=tuple(tried)))
    terminal.show(shown, found.snapshot, (*found.findings, *ended_findings(report)))
    judge(tried, terminal)
