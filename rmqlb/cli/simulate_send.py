from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.send_options import SendOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError


@command(without=("proxy",))
def simulate_send(source: SourceOptions, options: SendOptions, output: OutputOptions) -> None:
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
    from rmqlb.cli.common.send_question import answer, read_question
    from rmqlb.engine.send.findings import SEND_FIGURES
    from rmqlb.verbs import parse

    terminal = Terminal("simulate-send", output, more_formats=("jsonl",))
    conditions = parse.conditions(options.fail_on, SEND_FIGURES)
    if options.topic is None:
        raise UsageError("which topic?", hint="name the one that is sent to with --topic", code="which-topic")
    question = read_question(source, options.topic, options, terminal)
    answer(question, terminal, conditions, trace=options.trace or "attempts" in (output.section or ()))
