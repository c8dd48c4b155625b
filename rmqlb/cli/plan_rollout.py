from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, command, written
from rmqlb.cli.common.group_options import RATE_HINT, MemberOptions
from rmqlb.cli.common.options import OneGroupOptions, OutputOptions, SourceOptions
from rmqlb.cli.common.show_or_watch import answer

_rollout = Panel("Rollout")


class RolloutOptions(MemberOptions, OneGroupOptions):
    restart: Texts = _rollout("ID|all", "Consumers to restart, by ID or pattern; default: all; repeatable.")
    to_strategy: Text = _rollout("STRATEGY", "Strategy after the restart, or FILE.py:NAME.")
    down: str = _rollout("TIME", "Downtime of each consumer.", "15s")
    pauses: str = _rollout("--pause TIME,…", "Pauses to try between two stops.", "10s,30s,60s")
    at_once: str = _rollout("N,…", "Batch sizes to try: consumers stopped at once.", "1")
    order: Text = _rollout("ID,ID,…", "Additional restart order to try. It lists all consumers that restart.")
    ids: Text = _rollout(
        "new|same", "Client IDs after a restart; default: new. Applies to IDs of the form host@pid#time."
    )
    trials: str = _rollout("N", "Number of simulations per choice.", "20")
    fail_on: Texts = written(
        "CONDITION", "Exit 3 if a condition holds: 'misassigned>0'. The best choice decides; repeatable."
    )

    def arguments(self) -> dict[str, Any]:
        order = {} if self.order is None else {"order": [part.strip() for part in self.order.split(",")]}
        return super().arguments() | order


@command
def plan_rollout(source: SourceOptions, options: RolloutOptions, output: OutputOptions) -> None:
    """Plan a rolling restart: the order and pause with the smallest gaps and overlaps.

    Examples:
      rmqlb plan-rollout -s examples/cluster.json --group order-svc --pause 30s,60s
      rmqlb plan-rollout -s examples/cluster.json -g order-svc --to-strategy AVG_BY_CIRCLE --pause 60s

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are missing,
    5 endpoint unreachable.
    """
    answer("plan-rollout", "rollout_report", source, options, output, doing="simulating", hint=RATE_HINT)
