"""`rmqlb simulate-send`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, command
from rmqlb.cli.common.panel import panel
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_send.options import FailureOptions, LoadOptions, ProducerOptions

what_option = panel("What to show")


@command(renamed={"timeout": "source_timeout", "retries": "source_retries"})
def simulate_send(
    source: SourceOptions,
    topic: Annotated[str, Option("-t", "--topic", metavar="TOPIC", help="The topic that is sent to.")],
    failing: FailureOptions,
    load: LoadOptions,
    producer: ProducerOptions,
    output: OutputOptions,
    trace: Annotated[
        bool, what_option("--trace", help="List attempts and lost messages; -o jsonl streams them.")
    ] = False,
    compare: Annotated[bool, what_option("--compare", help="Latency fault off and on side by side.")] = False,
    compare_clients: Annotated[
        bool, what_option("--compare-clients", help="Every stretch of client versions.")
    ] = False,
    trials: Annotated[
        str | None, what_option(metavar="N", help="Run N times with other random parts; confidence intervals.")
    ] = None,
    precision: Annotated[
        str | None, what_option(metavar="P", help="Stop the trials when each interval is ±P: 0.1%.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        what_option(metavar="CONDITION", help="Exit 3 when it is met: 'lost>0', 'share\\[broker-a]>60%'; repeatable."),
    ] = None,
) -> None:
    r"""Simulate which queues a producer picks while brokers fail, what it retries, and whom it isolates.

    Examples:
      rmqlb simulate-send -s examples/cluster.json --topic OrderEvents --fail broker-b

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b@45s- --rate 100 --for 2m --compare

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b:timeout --fail-on 'lost>0' -o json

      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail 'broker-*@#45-#60' --messages 100 -o jsonl

    A failure is BROKER\[@FROM-TO]\[:KIND]. FROM and TO are times (45s, 1m30s) or message numbers (#45); KIND is
    refused (the default), timeout, slow=800ms, read-only, a store status or a response code by RocketMQ's name or
    number.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to write to,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common import amounts
    from rmqlb.cli.common.fail_on import conditions
    from rmqlb.cli.simulate_send.inputs import gather
    from rmqlb.cli.simulate_send.output import stream, write
    from rmqlb.engine.fail_on_figures.of_sends import SEND_FIGURES
    from rmqlb.model.limits import MOST_SEND_TRIALS

    terminal = Terminal("simulate-send", output, more_formats=("jsonl",))
    asked = conditions(fail_on or (), SEND_FIGURES)
    number = None if trials is None else amounts.count(trials, "--trials", most=MOST_SEND_TRIALS, least=2)
    stop_at = None if precision is None else amounts.percentage(precision, "--precision")
    found = gather(source, topic, failing, load, producer, terminal)
    if terminal.format == "jsonl":
        stream(found, terminal, asked, trace=trace, alone=not (compare or compare_clients or number))
        return
    write(
        found,
        terminal,
        asked,
        trace=trace or "attempts" in (output.section or ()),
        compare=compare,
        compare_clients=compare_clients,
        trials=number,
        precision=stop_at,
    )
