"""`rmqlb plan-rollout`."""

from functools import partial
from typing import Annotated, Any

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import GroupOptions, OutputOptions, SourceOptions, StrategyOptions, command, panel
from rmqlb.cli.common.show_or_watch import show_once
from rmqlb.cli.common.simulation_options import RATE_HINT, MemberOptions, MembersStrategy, arguments_of, trials_option
from rmqlb.cli.common.terminal import Terminal

rollout_option = panel("Rollout")


class RolloutOptions(Struct, frozen=True):
    restart: Annotated[
        list[str] | None,
        rollout_option(
            metavar="ID|all", help="A consumer, or a pattern of them, that restarts; repeatable; default: all."
        ),
    ] = None
    to_strategy: Annotated[
        str | None, rollout_option(metavar="STRATEGY", help="What they come back with; or FILE.py:NAME.")
    ] = None
    down: Annotated[str, rollout_option(metavar="TIME", help="How long each is away.")] = "15s"
    pause: Annotated[str, rollout_option(metavar="TIME,…", help="To try, from one going down to the next.")] = (
        "10s,30s,60s"
    )
    at_once: Annotated[str, rollout_option(metavar="N,…", help="To try: how many go down together.")] = "1"
    order: Annotated[
        str | None, rollout_option(metavar="ID,ID,…", help="An order of all of them, to try besides others.")
    ] = None
    ids: Annotated[
        str | None,
        rollout_option(
            metavar="new|same", help="Whether ids of the form host@pid#time change with the restart; default: new."
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        order = {} if self.order is None else {"order": [part.strip() for part in self.order.split(",")]}
        return arguments_of(self) | order


class ChoiceTrialOptions(Struct, frozen=True):
    trials: Annotated[str, trials_option(metavar="N", help="Simulations of each choice.")] = "20"
    seed: Annotated[int, trials_option(help="Random seed.")] = 1


@command(without=("explain",))
def plan_rollout(
    *,
    source: SourceOptions,
    which: GroupOptions,
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
    from rmqlb.cli.common.reading import Reader
    from rmqlb.verbs import plan_rollout as verb
    from rmqlb.views.plan_rollout import rollout_report

    terminal = Terminal("plan-rollout", output)
    ask = partial(
        verb.plan_rollout,
        Reader(source, terminal),
        **which.arguments(source.source),
        strategy=strategy,
        strategy_options=strategy_options.texts,
        **rollout.arguments(),
        **configured.arguments(source, terminal),
        **arguments_of(dice),
        fail_on=fail_on or (),
    )
    show_once(ask, rollout_report, terminal, verb="simulating", unknown_hint=RATE_HINT)
