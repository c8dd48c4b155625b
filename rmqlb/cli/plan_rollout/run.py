"""A rollout planned and shown: from the options to the exit code."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.cli.common.amounts import count, duration_us
from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, Gathered, gather
from rmqlb.cli.common.group_simulation.options import GroupSimulationOptions
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.plan_rollout import parse as values
from rmqlb.cli.plan_rollout.options import RolloutOptions
from rmqlb.engine.fail_on_figures.of_simulation import ROLLOUT_FIGURES, try_on_rollout
from rmqlb.engine.rollout.plan import plan_rollout
from rmqlb.engine.rollout.request import RolloutRequest
from rmqlb.model.finding import Finding
from rmqlb.model.limits import MOST_GROUP_TRIALS
from rmqlb.model.rollout import PlannedRollout
from rmqlb.views.rollout_view import rollout_report


def run(
    options: GroupSimulationOptions,
    strategy: str | None,
    rollout: RolloutOptions,
    trials: str,
    fail_on: Sequence[str],
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    asked = conditions(fail_on, ROLLOUT_FIGURES)
    request = RolloutRequest(
        down_us=duration_us(rollout.down, "--down"),
        pauses_us=values.pauses(rollout.pause),
        at_once=values.numbers(rollout.at_once),
    )
    number = count(trials, "--trials", most=MOST_GROUP_TRIALS, least=2)
    strategies = Strategies(options.strategies.inner)
    request = replace(request, to_strategy=strategies.optional(rollout.to_strategy, "--to-strategy"))
    found = gather(options, strategies.optional(strategy), strategies, terminal, broadcasting_too=False)
    request, of_ids = _of_members(request, rollout, found.on_topics.client_ids)
    plan = _planned(found, request, number, terminal)
    tried = [try_on_rollout(condition, plan) for condition in asked]
    require_known(tried, RATE_HINT)
    findings = tuple(dict.fromkeys((*found.findings, *of_ids, *plan.findings)))
    terminal.show(rollout_report(plan, conditions=tried), found.snapshot, findings)
    judge(tried, terminal)


def _of_members(
    request: RolloutRequest, options: RolloutOptions, client_ids: Sequence[str]
) -> tuple[RolloutRequest, tuple[Finding, ...]]:
    """The request with what the options say of the members, now that they are known."""
    restart = values.restarted(options.restart or (), client_ids)
    becomes, findings = values.becomes(restart or client_ids, client_ids, options.ids)
    return replace(request, restart=restart, becomes=becomes, order=values.order(options.order)), findings


def _planned(found: Gathered, request: RolloutRequest, trials: int, terminal: Terminal) -> PlannedRollout:
    with terminal.progress(verb="simulating") as progress:
        return plan_rollout(
            found.on_topics.name,
            found.members,
            found.on_topics.routes,
            found.scenario,
            request,
            trials=trials,
            states=found.states,
            progress=lambda done, total: progress("trials", done, total),
        )
