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
    topic: Text = own("-t TOPIC", "The topic.", positional="TOPIC")
    queues: Text = _change("N", "N read and N write queues on each broker, more or fewer.")
    add_brokers: Texts = _change(
        "--add-broker NAME[:READ[:WRITE]]",
        "A broker that gets queues of the topic; counts default to the others'; repeatable.",
    )
    drain_brokers: Texts = _change("--drain-broker NAME", "A broker that loses its queues; repeatable.")
    move_to_cluster: Text = _change("CLUSTER", "To the brokers of this cluster, away from all others.")
    message_type: Text = _change(
        "TYPE",
        "normal, fifo, delay, transaction, mixed, priority or lite, for brokers that get the topic. "
        "Default: as a running broker reports.",
    )
    unordered: bool = _change.flag("No message is sent by key: leave out the steps that hold producers.")
    groups: Texts = own(
        "-g --group GROUP", "Its groups, by name or as 'pay-*'; repeatable; default: all that read the topic."
    )
    strategy: Text = about("STRATEGY", "Or FILE.py:NAME, which is run. Default: as consumers report or show.")
    sdks: Texts = _keys("--sdk SDK[@VERSION]", "Whose producers send them, as go; repeatable; default: all.")
    proxy_mode: str = _keys(
        "local|cluster", "How the Proxy of gRPC producers runs: in each broker, or by itself.", "local"
    )
    rates_since: Text = about("FILE", "An earlier snapshot: how fast groups read, for the estimated time.", stdin="-")
    check_step: int | None = own("N", "Exit 3 while what step N waits for does not hold.", min=1, max=_MOST_STEPS)
    keys_file: Text = _keys("FILE|-", "Keys of its messages, one per line: how many move.", stdin="-", for_verb=False)

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.parse import named_topic

        return super().arguments() | {"topic": named_topic(self.topic)}


@command
def plan_topic(source: SourceOptions, options: TopicOptions, output: OutputOptions) -> None:
    """Plan a change of a topic's queues in steps, with the mqadmin commands to copy and what to wait for.

    Examples:
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 16
      rmqlb plan-topic -s examples/cluster.json --topic Skewed --drain-broker broker-b --keys-file examples/keys.txt
      rmqlb plan-topic -s examples/cluster.json --topic OrderEvents --queues 8 --check-step 6

    Nothing is run: the commands are printed. With the same options the numbers of the steps stay the same, and steps
    whose change the route has already are shown as done.

    Exit codes: 0 done, 2 usage, 3 what --check-step waits for does not hold, 4 the topic is not there or whether the
    step holds is unknown, 5 endpoint unreachable.
    """
    from rmqlb.verbs import plan_topic as verb
    from rmqlb.views.plan_topic import topic_plan_report

    terminal = Terminal("plan-topic", output)
    reader, path = Reader(source, terminal), options.keys_file
    planned = ask(verb.plan_topic, reader, options, keys=None if path is None else keys_in(path, source.max_size))
    plan = show_verb(planned, topic_plan_report, terminal, verb="planning")
    if plan.checked is not None and not plan.checked.holds:
        raise typer.Exit(ExitCode.CONDITION)
