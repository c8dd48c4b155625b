"""`rmqlb plan-topic`."""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.plan_topic.options import ChangeOptions, TopicOptions


@command
def plan_topic(
    source: SourceOptions,
    topic: Annotated[str, Option("-t", "--topic", metavar="TOPIC", help="The topic; required.")],
    change: ChangeOptions,
    which: TopicOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
) -> None:
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
    from rmqlb.cli.plan_topic.run import run

    run(source, topic, change, which, strategy_options, Terminal("plan-topic", output))
