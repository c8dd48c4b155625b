from typing import Any

import typer

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.reading import Reader, ask, keys_in
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode

_change, _keys = Panel("What changes"), Panel("Keys")
_MOST_STEPS = 6


class TopicOptions(StrategyOptions):
    topic: Text = own("-t TOPIC", "Topic that changes.", positional="TOPIC")
    queues: Text = _change("N", "Read and write queues on each broker.")
    add_brokers: Texts = _change(
        "--add-broker NAME[:READ[:WRITE]]",
        "A broker that gets queues. Counts default to the others'; repeatable.",
    )
    drain_brokers: Texts = _change("--drain-broker NAME", "A broker that loses its queues; repeatable.")
    move_to_cluster: Text = _change("CLUSTER", "All queues to this cluster's brokers.")
    message_type: Text = _change(
        "TYPE",
        "Message type on new brokers. One of normal, fifo, delay, transaction, mixed, priority or lite; default: as a "
        "running broker reports.",
    )
    unordered: bool = _change.flag("No message is sent by key. Leaves out the steps that hold producers.")
    groups: Texts = own(
        "-g --group GROUP", "Consumer groups, by name or as 'pay-*'; repeatable; default: all that read the topic."
    )
    strategy: Text = about("STRATEGY", "Strategy of the groups, or FILE.py:NAME, which is run; default: as reported.")
    sdks: Texts = _keys("--sdk SDK[@VERSION]", "Client library of the producers, as go. Repeatable; default: all.")
    proxy_mode: str = _keys(
        "local|cluster", "How gRPC producers' Proxy runs: local, in each broker; cluster, separately.", "local"
    )
    rates_since: Text = about(
        "--earlier FILE",
        "An earlier snapshot, for rates. How fast groups read shows how long the change takes.",
        stdin="-",
    )
    check_step: int | None = own("N", "Exit 3 while step N must wait.", min=1, max=_MOST_STEPS)
    keys: Text = _keys("FILE|-", "Message keys, one per line.", stdin="-", for_verb=False)

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.parse import named_topic

        return super().arguments() | {"topic": named_topic(self.topic)}


@command
def plan_topic(source: SourceOptions, options: TopicOptions, output: OutputOptions) -> None:
    """Plan a change of a topic's queues: steps, the mqadmin commands to copy, and what to wait for.

    Examples:
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 16
      rmqlb plan-topic -s examples/cluster.json --topic Skewed --drain-broker broker-b --keys examples/keys.txt
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 8 --check-step 6

    Nothing is run: the commands are printed. With the same options the numbers of the steps stay the same, and steps
    whose change the route has already are shown as done.

    Exit codes: 0 done, 2 usage, 3 what --check-step waits for does not hold, 4 the topic is not there or whether the
    step holds is unknown, 5 endpoint unreachable.
    """
    from rmqlb.verbs import plan_topic as verb
    from rmqlb.views.plan_topic import topic_plan_report

    terminal = Terminal("plan-topic", output)
    reader, path = Reader(source, terminal), options.keys
    planned = ask(verb.plan_topic, reader, options, keys=None if path is None else keys_in(path, source.max_size))
    plan = show_verb(planned, topic_plan_report, terminal, verb="planning")
    if plan.checked is not None and not plan.checked.holds:
        raise typer.Exit(ExitCode.CONDITION)
