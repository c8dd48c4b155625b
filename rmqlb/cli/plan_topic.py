from typing import Any

import typer

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.reading import keys_in
from rmqlb.cli.common.show_or_watch import answer
from rmqlb.cli.exit_codes import ExitCode

_change, _keys = Panel("Changes"), Panel("Keys")
_MOST_STEPS = 6


class TopicOptions(StrategyOptions):
    topic: Text = own("-t TOPIC", "Topic to change.", positional="TOPIC")
    queues: Text = _change("N", "Read and write queues per broker.")
    add_brokers: Texts = _change(
        "--add-broker NAME[:READ[:WRITE]]",
        "Broker to add to the route. Queue counts default to those of the other brokers; repeatable.",
    )
    drain_brokers: Texts = _change("--drain-broker NAME", "Broker to drain; it loses its queues; repeatable.")
    move_to_cluster: Text = _change("CLUSTER", "Cluster to move all queues to.")
    message_type: Text = _change(
        "TYPE",
        "Message type on new brokers. One of normal, fifo, delay, transaction, mixed, priority or lite; default: as "
        "reported by a running broker.",
    )
    unordered: bool = _change.flag("Plan for messages without keys. The plan then has no steps that hold producers.")
    groups: Texts = own(
        "-g --group GROUP", "Consumer groups by name or pattern ('pay-*'); default: all of the topic; repeatable."
    )
    strategy: Text = about(
        "STRATEGY", "Allocation strategy of the groups, or FILE.py:NAME. FILE.py is run; default: as reported."
    )
    sdks: Texts = _keys("--sdk SDK[@VERSION]", "Client library of the producers, such as go; default: all; repeatable.")
    proxy_mode: str = _keys(
        "local|cluster",
        "Proxy mode of gRPC producers: local or cluster. A local Proxy runs in each broker, a cluster Proxy "
        "separately.",
        "local",
    )
    rates_since: Text = about(
        "--earlier FILE",
        "Earlier snapshot, to compute rates. Consumption rates show how long the change takes.",
        stdin="-",
    )
    check_step: int | None = own("N", "Check step N; exit 3 while it must wait.", min=1, max=_MOST_STEPS)
    keys: Text = _keys("FILE|-", "Message keys, one per line.", stdin="-", for_verb=False)

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.parse import named_topic

        return super().arguments() | {"topic": named_topic(self.topic)}


@command
def plan_topic(source: SourceOptions, options: TopicOptions, output: OutputOptions) -> None:
    """Plan a change of a topic's queues: the steps, their mqadmin commands, and the waits between them.

    Examples:
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 16
      rmqlb plan-topic -s examples/cluster.json --topic Skewed --drain-broker broker-b --keys examples/keys.txt
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 8 --check-step 6

    rmqlb prints the commands and runs none of them. With the same options, each step keeps its number, and a step that
    the route already contains is shown as done.

    Exit codes: 0 done, 2 usage, 3 the step of --check-step must wait, 4 the topic does not exist or the state of the
    step is unknown, 5 endpoint unreachable.
    """
    keys = None if options.keys is None else keys_in(options.keys, source.max_size)
    plan = answer("plan-topic", "topic_plan_report", source, options, output, doing="planning", keys=keys)
    if plan.checked is not None and not plan.checked.holds:
        raise typer.Exit(ExitCode.CONDITION)
