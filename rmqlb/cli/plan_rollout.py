from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, command, written
from rmqlb.cli.common.options import OneGroupOptions, OutputOptions, SourceOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.simulation_options import RATE_HINT, MemberOptions
from rmqlb.cli.common.terminal import Terminal

_rollout = Panel("Rollout")


class RolloutOptions(MemberOptions, OneGroupOptions):
    restart: Texts = _rollout("ID|all", "A consumer, or a pattern of them, that restarts; repeatable; default: all.")
    to_strategy: Text = _rollout("STRATEGY", "What they come back with; or FILE.py:NAME.")
    down: str = _rollout("TIME", "How long each is away.", "15s")
    pauses: str = _rollout("--pause TIME,…", "To try, from one going down to the next.", "10s,30s,60s")
    at_once: str = _rollout("N,…", "To try: how many go down together.", "1")
    order: Text = _rollout("ID,ID,…", "An order of all of them, to try besides others.")
    ids: Text = _rollout("new|same", "Whether ids of the form host@pid#time change with the restart; default: new.")
    trials: str = _rollout("N", "Simulations of each choice.", "20")
    fail_on: Texts = written("CONDITION", "Exit 3 when the best choice meets it: 'misassigned>0'; repeatable.")

    def arguments(self) -> dict[str, Any]:
        order = {} if self.order is None else {"order": [part.strip() for part in self.order.split(",")]}
        return super().arguments() | order


@command
def plan_rollout(source: SourceOptions, options: RolloutOptions, output: OutputOptions) -> None:
    """Find the best order and pause of a rolling restart: the least gaps and overlaps, with a new strategy too.

    Examples:
      rmqlb plan-rollout -s examples/cluster.json --group order-svc --pause 30s,60s
      rmqlb plan-rollout -s examples/cluster.json --group order-svc --to-strategy AVG_BY_CIRCLE --pause 60s

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there,
    5 endpoint unreachable.
    """
    from rmqlb.verbs import plan_rollout as verb
    from rmqlb.views.plan_rollout import rollout_report

    terminal = Terminal("plan-rollout", output)
    planned = ask(verb.plan_rollout, Reader(source, terminal), options)
    show_verb(planned, rollout_report, terminal, verb="simulating", unknown_hint=RATE_HINT)
