"""`rmqlb plan-rebalance`."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from rmqlb.cli.common.options import (
    GroupOptions,
    GroupsOptions,
    OutputOptions,
    ReplayOptions,
    SourceOptions,
    StrategyOptions,
    command,
    shown_option,
)
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.show_or_watch import WatchOptions, check_watch, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.cli.plan_rebalance.options import PlanOptions

if TYPE_CHECKING:
    from rmqlb.cli.common.each_group import Parts
    from rmqlb.model.plan import RebalancePlan
    from rmqlb.views.report import Report


@command
def plan_rebalance(
    source: SourceOptions,
    groups: GroupsOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    plan: PlanOptions,
    replay: ReplayOptions,
    changed: Annotated[bool, shown_option("--changed", help="Show only queues that change.")] = False,
    fail_on: Annotated[
        list[str] | None, Option(metavar="CONDITION", help="Exit 3 when it is met: 'idle>0', 'moved>50%'; repeatable.")
    ] = None,
) -> None:
    """Preview what adding or removing consumers, brokers or queues does to a group's queues.

    Examples:
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1

      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --remove-broker broker-b --strategy all

      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1 -o json --fail-on 'moved>50%'

      rmqlb plan-rebalance -s examples/cluster.json -g order-svc -g bill-svc --remove-broker broker-b

      rmqlb plan-rebalance -s examples/cluster.json -g '*-svc' --scale-to 5

      rmqlb plan-rebalance -s examples/cluster.json --scenario examples/scenario.yaml

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.against import earlier_results
    from rmqlb.cli.common.each_group import EachGroup
    from rmqlb.cli.common.fail_on import require_known
    from rmqlb.cli.plan_rebalance.look import conditions_of, look_at_group, question_of

    terminal = Terminal("plan-rebalance", output, more_formats=("jsonl",))
    check_watch(watching, source, groups.consumers, terminal)
    each = EachGroup(groups, source)
    asked = conditions_of(fail_on)
    earlier = earlier_results(replay.against, source.source)
    question = question_of(plan, strategy_options, asked, changed, earlier)
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read(each.wanted)
        plans: list[RebalancePlan] = []

        def one(which: GroupOptions) -> SnapshotView:
            found, seen = look_at_group(which, question, snapshot, read, terminal)
            plans.append(found)
            return seen

        seen = each.look(snapshot, one, lambda parts: _joined(parts, plans))
        require_known(seen.tried, "leave the condition out to see the plan")
        return seen

    show(look, watching, terminal)


def _joined(parts: "Parts", plans: "list[RebalancePlan]") -> "Report":
    from rmqlb.views.plan.several import plans_report

    return plans_report(parts, plans)
