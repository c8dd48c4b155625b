"""`rmqlb simulate-receive`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_receive.options import (
    ArrivalOptions,
    ReceiveFailureOptions,
    ReceiverOptions,
    ReceiveWhatOptions,
    WhereOptions,
)


@command
def simulate_receive(
    source: SourceOptions,
    where: WhereOptions,
    receiver: ReceiverOptions,
    arriving: ArrivalOptions,
    failing: ReceiveFailureOptions,
    output: OutputOptions,
    what: ReceiveWhatOptions,
    topic: Annotated[
        str | None, Option("-t", "--topic", metavar="TOPIC", help="The topic that is received from.")
    ] = None,
) -> None:
    """Simulate how long messages wait for consumers that receive: gRPC clients through a Proxy, and POP.

    Examples:
      rmqlb simulate-receive -s examples/cluster.json --topic OrderEvents --target-wait 1s

      rmqlb simulate-receive --broker broker-a:8 --broker broker-b:8 --loops 4 --rate 50 --for 10m

      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --type push --fail broker-b@30s-5m

      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --processes 2 --crash 1@1m --consume-time 20ms

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to receive from,
    5 endpoint unreachable.
    """
    from rmqlb.cli.simulate_receive.inputs import gather
    from rmqlb.cli.simulate_receive.output import asked_for, write
    from rmqlb.engine.fail_on_figures.of_receives import RECEIVE_FIGURES
    from rmqlb.verbs.parse import conditions

    terminal = Terminal("simulate-receive", output)
    asked = conditions(what.fail_on or (), RECEIVE_FIGURES)
    wanted = asked_for(what, output.section or ())
    found = gather(source, topic, where, receiver, arriving, failing, terminal)
    write(found, terminal, asked, wanted)
