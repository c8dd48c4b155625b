"""`rmqlb plan-rollout`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.group_simulation.options import GroupOverTimeOptions, MemberOptions, trials_option
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.panel import panel
from rmqlb.cli.common.terminal import Terminal

rollout_option = panel("Rollout")


@command(without=("explain",))
def plan_rollout(
    source: SourceOptions,
    which: GroupOverTimeOptions,
    configured: MemberOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    strategy: Annotated[
        str | None,
        Option(metavar="STRATEGY", help="Or FILE.py:NAME, which is run. Default: as members report or show, else AVG."),
    ] = None,
    restart: Annotated[
        list[str] | None,
        rollout_option(
            metavar="ID|all", help="A member, or a pattern of them, that restarts; repeatable; default: all."
        ),
    ] = None,
    to_strategy: Annotated[
        str | None, rollout_option(metavar="STRATEGY", help="What they come back with; or FILE.py:NAME.")
    ] = None,
    down: Annotated[str, rollout_option(metavar="TIME", help="How long each is away.")] = "15s",
    pause: Annotated[
        str, rollout_option(metavar="TIME,…", help="To try, from one going down to the next.")
    ] = "10s,30s,60s",
    at_once: Annotated[str, rollout_option(metavar="N,…", help="To try: how many go down together.")] = "1",
    order: Annotated[
        str | None, rollout_option(metavar="ID,ID,…", help="An order of all of them, to try besides others.")
    ] = None,
    ids: Annotated[
        str | None,
        rollout_option(
            metavar="new|same", help="Whether ids of the form host@pid#time change with the restart; else they do."
        ),
    ] = None,
    trials: Annotated[str, trials_option(metavar="N", help="Simulations of each choice.")] = "20",
    seed: Annotated[int, trials_option(help="Of everything random.")] = 1,
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when the best choice meets it: 'misassigned>0'; repeatable."),
    ] = None,
) -> None:
    """Find the order and the pause of a rolling restart, or of a change of strategy, that hurt least.

    Examples:
      rmqlb plan-rollout -s examples/cluster.json --group order-svc --pause 30s,60s

      rmqlb plan-rollout -s examples/cluster.json --group order-svc --to-strategy AVG_BY_CIRCLE --pause 60s

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or members are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.amounts import count, duration_us
    from rmqlb.cli.common.fail_on import conditions, judge, require_known
    from rmqlb.cli.common.group_simulation.inputs import RATE_HINT, gather
    from rmqlb.cli.common.strategies import Strategies
    from rmqlb.cli.plan_rollout import parse as values
    from rmqlb.engine.fail_on_figures.of_simulation import ROLLOUT_FIGURES, try_on_rollout
    from rmqlb.engine.rollout.plan import plan_rollout as plan
    from rmqlb.model.limits import MOST_GROUP_TRIALS
    from rmqlb.views.rollout_view import rollout_report

    terminal = Terminal("plan-rollout", output)
    asked = conditions(fail_on or (), ROLLOUT_FIGURES)
    down_us = duration_us(down, "--down")
    pauses = values.pauses(pause)
    together = values.numbers(at_once)
    number = count(trials, "--trials", most=MOST_GROUP_TRIALS, least=2)
    strategies = Strategies(strategy_options.inner)
    strategy_after = strategies.optional(to_strategy, "--to-strategy")
    found = gather(
        source,
        which,
        strategies.optional(strategy),
        strategies,
        strategy_options,
        None,
        configured,
        seed,
        terminal,
        broadcasting_too=False,
    )
    restarted = values.restarted(restart or (), found.on_topics.client_ids)
    becomes, told = values.becomes(restarted or found.on_topics.client_ids, found.on_topics.client_ids, ids)
    with terminal.progress(verb="simulating") as progress:
        rollout = plan(
            found.on_topics.name,
            found.members,
            found.on_topics.routes,
            found.scenario,
            restart=restarted,
            to_strategy=strategy_after,
            down_us=down_us,
            pauses_us=pauses,
            at_once=together,
            order=values.order(order),
            becomes=becomes,
            trials=number,
            states=found.states,
            progress=lambda done, total: progress("trials", done, total),
        )
    tried = [try_on_rollout(condition, rollout) for condition in asked]
    require_known(tried, RATE_HINT)
    findings = tuple(dict.fromkeys((*found.findings, *told, *rollout.findings)))
    terminal.show(rollout_report(rollout, conditions=tried), found.snapshot, findings)
    judge(tried, terminal)
