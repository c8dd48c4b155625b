"""`rmqlb plan-rollout`."""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.group_simulation.options import (
    GroupOverTimeOptions,
    GroupSimulationOptions,
    MemberOptions,
    MembersStrategy,
)
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.plan_rollout.options import ChoiceTrialOptions, RolloutOptions


@command(without=("explain",))
def plan_rollout(
    *,
    source: SourceOptions,
    which: GroupOverTimeOptions,
    configured: MemberOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    strategy: MembersStrategy = None,
    rollout: RolloutOptions,
    dice: ChoiceTrialOptions,
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when the best choice meets it: 'misassigned>0'; repeatable."),
    ] = None,
) -> None:
    """Find the order and the pause of a rolling restart, or of a change of strategy, with the least gaps and overlaps.

    Examples:
      rmqlb plan-rollout -s examples/cluster.json --group order-svc --pause 30s,60s

      rmqlb plan-rollout -s examples/cluster.json --group order-svc --to-strategy AVG_BY_CIRCLE --pause 60s

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.plan_rollout.run import run

    options = GroupSimulationOptions(source, configured, strategy_options, dice.seed)
    run(options, which, strategy, rollout, dice.trials, fail_on or (), Terminal("plan-rollout", output))
