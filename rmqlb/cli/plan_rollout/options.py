"""The options of `plan-rollout`: what restarts, what is tried, and how often."""

from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.group_simulation.options import trials_option
from rmqlb.cli.common.options import panel

rollout_option = panel("Rollout")


class RolloutOptions(Struct, frozen=True):
    """Who restarts, what they come back with, and what to try."""

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


class ChoiceTrialOptions(Struct, frozen=True):
    """How often each choice is simulated, with which dice."""

    trials: Annotated[str, trials_option(metavar="N", help="Simulations of each choice.")] = "20"
    seed: Annotated[int, trials_option(help="Random seed.")] = 1
