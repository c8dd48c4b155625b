from typing import TYPE_CHECKING, Any

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, PopOptions, SourceOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.model.limits import MOST_CONSUMERS

if TYPE_CHECKING:
    from rmqlb.model.plan import PlanOfGroups, RebalancePlan
    from rmqlb.views.report import Report

_members, _route = Panel("What changes: consumers"), Panel("What changes: route")


class PlanOptions(PopOptions, GroupsOptions):
    strategy: Texts = about(
        "STRATEGY|all", "Or FILE.py:NAME, which is run; repeatable, to compare; default: as consumers report or show."
    )
    scale_to: Text = _members("N", "N consumers in the end: add, or remove the last.")
    add: Texts = _members("N|ID", "Add N consumers or this one.")
    remove: Texts = _members("N|ID", "Remove the last N in sorted order or this one.")
    replace_ids: Texts = _members("--replace OLD=NEW", "One id goes, another comes.")
    to_strategy: Text = _members("STRATEGY", "The strategy afterwards, or FILE.py:NAME.")
    add_brokers: Texts = _route(
        "--add-broker NAME[:READ[:WRITE]]",
        "A broker that gets queues of the topics; counts default to those of the other brokers.",
    )
    remove_brokers: Texts = _route("--remove-broker NAME", "A broker that is lost.")
    remove_masters: Texts = _route("--remove-master NAME", "A broker whose master is lost; its slaves stay.")
    read_queues: Texts = _route("[BROKER=]N", "New number of read queues.")
    write_queues: Texts = _route("[BROKER=]N", "New number of write queues.")
    fail_on: Texts = own("CONDITION", "Exit 3 when it is met: 'idle>0', 'moved>50%'; repeatable.")
    changed: bool = shown.flag("Show only queues that change.", for_verb=False)

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs import parse

        return super().arguments() | {
            "scale_to": None if self.scale_to is None else parse.scale_to(self.scale_to, MOST_CONSUMERS),
            "add": [parse.added(text) for text in self.add or ()],
            "remove": [parse.count_or_id(text, "--remove") for text in self.remove or ()],
            "replace_ids": [parse.pair(text, "--replace") for text in self.replace_ids or ()],
        }


@command
def plan_rebalance(source: SourceOptions, options: PlanOptions, output: OutputOptions, watching: WatchOptions) -> None:
    """Preview what adding or removing consumers, brokers or queues does to a group's queues.

    Examples:
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --remove-broker broker-b --strategy all
      rmqlb plan-rebalance -s examples/cluster.json --group order-svc --add 1 -o json --fail-on 'moved>50%'
      rmqlb plan-rebalance -s examples/cluster.json -g order-svc -g bill-svc --remove-broker broker-b
      rmqlb plan-rebalance -s examples/cluster.json -g '*-svc' --scale-to 5

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there
    or a server did not answer, 5 endpoint unreachable.
    """
    from rmqlb.verbs import plan_rebalance as verb

    def report(found: "RebalancePlan | PlanOfGroups") -> "Report":
        from rmqlb.views.plan_rebalance import plan_report

        return plan_report(found, changed_only=options.changed, explained=options.explain)

    terminal = Terminal("plan-rebalance", output, more_formats=("jsonl",))
    planned = ask(verb.plan_rebalance, Reader(source, terminal), options)
    hint = "leave the condition out to see the plan"
    show_verb(planned, report, terminal, watching, verb="planning", unknown_hint=hint)
