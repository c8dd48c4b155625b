from typing import TYPE_CHECKING

from rmqlb.cli.common.declare import Text, Texts, about, command, written
from rmqlb.cli.common.group_options import ChangeFlags
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, PopOptions, SourceOptions
from rmqlb.cli.common.output_files import PageOptions
from rmqlb.cli.common.set_option import setting
from rmqlb.cli.common.show_or_watch import WatchOptions, answer
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_THREADS

if TYPE_CHECKING:
    from rmqlb.model.plan import PlanOfGroups, RebalancePlan
    from rmqlb.views.report import Report


class PlanFlags(PageOptions, ChangeFlags, PopOptions, GroupsOptions):
    strategy: Texts = about(
        "STRATEGY|all",
        "Allocation strategy, or FILE.py:NAME. FILE.py is run; repeatable, to compare; default: as "
        "consumers report, or as their queues show.",
    )
    rates: Texts = setting("rate=[TOPIC=]R")
    rates_since: Text = setting("earlier=FILE|TIME", stdin="-")
    consume_time: str = setting("consume-time=TIME", "0s")
    consume_threads: int | None = setting("consume-threads=N", most=MOST_THREADS)
    fail_on: Texts = written("CONDITION", "Exit 3 if a condition holds: 'idle>0', 'moved>50%'; repeatable.")
    timeline: bool = written.flag("Also simulate the change and draw its timeline.", for_verb=False)
    changed: bool = written.flag("Show only queues that change.", for_verb=False)


@command
def plan_rebalance(source: SourceOptions, options: PlanFlags, output: OutputOptions, watching: WatchOptions) -> None:
    """Plan a change of consumers, strategy, brokers or queue counts: which queues move.

    Examples:
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1
      rmqlb plan-rebalance -s examples/cluster.json -g '*-svc' --scale-to 5
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --remove-broker broker-b --strategy all
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1 -o json --fail-on 'moved>50%'
      rmqlb plan-rebalance -s examples/cluster.json -g order-svc -g bill-svc --remove-broker broker-b
      rmqlb plan-rebalance -s examples/cluster.json -g order-svc --remove 1 --rate 500 --set consume-time=40ms

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are missing
    or a server did not answer, 5 endpoint unreachable.
    """

    def report(found: "RebalancePlan | PlanOfGroups") -> "Report":
        from rmqlb.views.plan_rebalance import plan_report

        shown = plan_report(found, changed_only=options.changed)
        return _with_timeline(shown, found, options) if options.timeline else shown

    if options.timeline and output.output in ("json", "yaml") and not (output.section or options.files):
        hint = "for the data, run simulate-rebalance with the same changes"
        raise UsageError(f"--timeline draws a picture, which -o {output.output} cannot show", hint=hint)
    hint = "leave the condition out to see the plan"
    answer("plan-rebalance", report, source, options, output, watching, formats=("jsonl",), doing="planning", hint=hint)


def _with_timeline(report: "Report", found: "RebalancePlan | PlanOfGroups", options: PlanFlags) -> "Report":
    from msgspec.structs import replace

    from rmqlb.model.plan import RebalancePlan
    from rmqlb.model.simulate_rebalance import RebalanceResult
    from rmqlb.verbs.parse import texts_of
    from rmqlb.verbs.simulate_rebalance import simulate_rebalance
    from rmqlb.views.simulate_rebalance import group_facts
    from rmqlb.views.timeline import consumer_labels, lag_section, timeline_section

    names = texts_of(options.strategy)
    compares = len(names) > 1 or any(name.lower() == "all" for name in names)
    others = ["pop_share", "explain", "fail_on", "strategy", "rates_since"]
    arguments = {name: value for name, value in options.arguments().items() if name not in others}
    arguments |= {"strategy": None if compares else next(iter(names), None), "rates_since": found.meta.made_from}
    simulated = simulate_rebalance(found.meta.snapshot, **arguments)
    if not isinstance(simulated, RebalanceResult):
        raise UsageError("--timeline needs one group", hint="name a group with --group", code="which-group")
    if not isinstance(found, RebalancePlan) or found.convergence is None:
        report = replace(report, facts=(*report.facts, *group_facts(simulated)[:1]))
    letters = ", ".join(f"{letter} {name}" for name, letter in consumer_labels(simulated.client_ids).items())
    lag = () if simulated.lag is None else (lag_section(simulated, simulated.lag.group),)
    sections = (*report.sections, timeline_section(simulated), *lag)
    return replace(report, sections=sections, closing=(*report.closing, f"in the timeline: {letters}"))
