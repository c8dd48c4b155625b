"""`rmqlb simulate-send`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from msgspec.structs import replace
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_send.options import FailureOptions, LoadOptions, ProducerOptions, WhatOptions
from rmqlb.errors import UsageError


@command(without=("proxy",))
def simulate_send(
    source: SourceOptions,
    failing: FailureOptions,
    load: LoadOptions,
    producer: ProducerOptions,
    output: OutputOptions,
    what: WhatOptions,
    topic: Annotated[str | None, Option("-t", "--topic", metavar="TOPIC", help="The topic that is sent to.")] = None,
) -> None:
    """Simulate which queues a producer picks while brokers fail, what it retries, and whom it isolates.

    Examples:
      rmqlb simulate-send -s examples/cluster.json --topic OrderEvents --fail broker-b

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b@45s- --rate 100 --for 2m --compare

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b:timeout --fail-on 'lost>0' -o json

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail 'broker-*@#45-#60' --messages 100 -o jsonl

    A failure is BROKER[@FROM-TO][:KIND]. FROM and TO are times (45s, 1m30s) or message numbers (#45); KIND is
    refused (the default), timeout, slow=800ms, read-only, a store status or a response code by RocketMQ's name or
    number.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to write to,
    5 endpoint unreachable.
    """
    from rmqlb.cli.simulate_send.inputs import gather
    from rmqlb.cli.simulate_send.output import stream, write
    from rmqlb.engine.fail_on_figures.of_sends import SEND_FIGURES
    from rmqlb.model.limits import MOST_SEND_TRIALS
    from rmqlb.verbs import amounts
    from rmqlb.verbs.parse import conditions

    terminal = Terminal("simulate-send", output, more_formats=("jsonl",))
    asked = conditions(what.fail_on or (), SEND_FIGURES)
    trials = None if what.trials is None else amounts.count(what.trials, "--trials", most=MOST_SEND_TRIALS, least=2)
    precision = None if what.precision is None else amounts.percentage(what.precision, "--precision")
    if topic is None:
        raise UsageError("which topic?", hint="name the one that is sent to with --topic", code="which-topic")
    found = gather(source, topic, failing, load, producer, terminal)
    if terminal.format == "jsonl":
        stream(found, terminal, asked, what)
    else:
        traced = what.trace or "attempts" in (output.section or ())
        write(found, terminal, asked, replace(what, trace=traced), trials, precision)
