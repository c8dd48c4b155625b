"""`rmqlb plan-rebalance`."""

from functools import partial
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import asdict
from typer import Option

from rmqlb.cli.common.options import (
    GroupsOptions,
    OutputOptions,
    PopShare,
    SourceOptions,
    StrategyOptions,
    about_option,
    command,
    panel,
    shown_option,
)
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.model.limits import MOST_CONSUMERS

members_option = panel("What changes: consumers")
route_option = panel("What changes: route")


class PlanOptions(Struct, frozen=True):
    strategy: Annotated[
        str | None,
        about_option(
            metavar="STRATEGY|all",
            help="Or FILE.py:NAME, which is run. Default: as consumers report or show; all compares.",
        ),
    ] = None
    pop_share: PopShare = None
    scale_to: Annotated[
        int | None,
        members_option(metavar="N", min=0, max=MOST_CONSUMERS, help="N consumers in the end: add, or remove the last."),
    ] = None
    add: Annotated[list[str] | None, members_option(metavar="N|ID", help="Add N consumers or this one.")] = None
    remove: Annotated[
        list[str] | None, members_option(metavar="N|ID", help="Remove the last N in sorted order or this one.")
    ] = None
    replace_ids: Annotated[
        list[str] | None, members_option("--replace", metavar="OLD=NEW", help="One id goes, another comes.")
    ] = None
    to_strategy: Annotated[
        str | None, members_option(metavar="STRATEGY", help="The strategy afterwards, or FILE.py:NAME.")
    ] = None
    add_brokers: Annotated[
        list[str] | None,
        route_option(
            "--add-broker",
            metavar="NAME[:READ[:WRITE]]",
            help="A broker that gets queues of the topics; counts default to those of the other brokers.",
        ),
    ] = None
    remove_brokers: Annotated[
        list[str] | None, route_option("--remove-broker", metavar="NAME", help="A broker that is lost.")
    ] = None
    remove_masters: Annotated[
        list[str] | None,
        route_option("--remove-master", metavar="NAME", help="A broker whose master is lost; its slaves stay."),
    ] = None
    read_queues: Annotated[list[str] | None, route_option(metavar="[BROKER=]N", help="New number of read queues.")] = (
        None
    )
    write_queues: Annotated[
        list[str] | None, route_option(metavar="[BROKER=]N", help="New number of write queues.")
    ] = None
    changed: Annotated[bool, shown_option("--changed", help="Show only queues that change.")] = False
    fail_on: Annotated[
        list[str] | None, Option(metavar="CONDITION", help="Exit 3 when it is met: 'idle>0', 'moved>50%'; repeatable.")
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs import parse

        given = {name: value for name, value in asdict(self).items() if value is not None and name != "changed"}
        parsed = {
            "add": [parse.count_or_id(text, "--add") for text in self.add or ()],
            "remove": [parse.count_or_id(text, "--remove") for text in self.remove or ()],
            "replace_ids": [parse.pair(text, "--replace") for text in self.replace_ids or ()],
        }
        return given | parsed


@command
def plan_rebalance(
    source: SourceOptions,
    groups: GroupsOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    watching: WatchOptions,
    plan: PlanOptions,
) -> None:
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
    from rmqlb.views.plan_rebalance import plan_report

    terminal = Terminal("plan-rebalance", output, more_formats=("jsonl",))
    show_verb(
        partial(
            verb.plan_rebalance,
            **groups.arguments(source.source),
            **plan.arguments,
            strategy_options=strategy_options.texts,
            explain=groups.explain,
        ),
        partial(plan_report, changed_only=plan.changed, explained=groups.explain),
        source,
        watching,
        terminal,
        verb="planning",
        consumers=groups.consumers,
        unknown_hint="leave the condition out to see the plan",
    )
