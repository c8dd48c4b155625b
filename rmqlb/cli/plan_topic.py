"""`rmqlb plan-topic`."""

from functools import partial
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, about_option, command, panel
from rmqlb.cli.common.show_or_watch import show_once
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode

_change_option = panel("What changes")
_keys_option = panel("Keys")
_MOST_STEPS = 6


class ChangeOptions(Struct, frozen=True):
    queues: Annotated[
        str | None, _change_option(metavar="N", help="N read and N write queues on each broker, more or fewer.")
    ] = None
    add_brokers: Annotated[
        list[str] | None,
        _change_option(
            "--add-broker",
            metavar="NAME[:READ[:WRITE]]",
            help="A broker that gets queues of the topic; counts default to the others'; repeatable.",
        ),
    ] = None
    drain_brokers: Annotated[
        list[str] | None,
        _change_option("--drain-broker", metavar="NAME", help="A broker that loses its queues; repeatable."),
    ] = None
    move_to_cluster: Annotated[
        str | None, _change_option(metavar="CLUSTER", help="To the brokers of this cluster, away from all others.")
    ] = None
    message_type: Annotated[
        str | None,
        _change_option(
            metavar="TYPE",
            help="normal, fifo, delay, transaction, mixed, priority or lite, for brokers that get the topic. "
            "Default: as a running broker reports.",
        ),
    ] = None
    unordered: Annotated[
        bool, _change_option("--unordered", help="No message is sent by key: leave out the steps that hold producers.")
    ] = False


class TopicOptions(Struct, frozen=True):
    groups: Annotated[
        list[str] | None,
        Option(
            "-g",
            "--group",
            metavar="GROUP",
            help="Its groups, by name or as 'pay-*'; repeatable; default: all that read the topic.",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        about_option(metavar="STRATEGY", help="Or FILE.py:NAME, which is run. Default: as consumers report or show."),
    ] = None
    keys_file: Annotated[
        str | None, _keys_option(metavar="FILE|-", help="Keys of its messages, one per line: how many move.")
    ] = None
    sdks: Annotated[
        list[str] | None,
        _keys_option(
            "--sdk", metavar="SDK[@VERSION]", help="Whose producers send them, as go; repeatable; default: all."
        ),
    ] = None
    proxy_mode: Annotated[
        str,
        _keys_option(
            metavar="local|cluster", help="How the Proxy of gRPC producers runs: in each broker, or by itself."
        ),
    ] = "local"
    rates_since: Annotated[
        str | None,
        about_option(metavar="FILE", help="An earlier snapshot: how fast groups read, for the estimated time."),
    ] = None
    check_step: Annotated[
        int | None,
        Option(metavar="N", min=1, max=_MOST_STEPS, help="Exit 3 while what step N waits for does not hold."),
    ] = None


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
    from rmqlb.cli.common.reading import Reader, earlier_snapshot, file_of_keys
    from rmqlb.verbs import plan_topic as verb
    from rmqlb.views.plan_topic import topic_plan_report

    terminal = Terminal("plan-topic", output)
    reader = Reader(source, terminal)
    given = {**asdict(change), **asdict(which)}
    path = given.pop("keys_file")
    given["keys"] = None if path is None else file_of_keys(path, source.source, source.max_size)
    given["rates_since"] = earlier_snapshot(source, which.rates_since, terminal)
    ask = partial(verb.plan_topic, reader, topic, **given, strategy_options=strategy_options.texts)
    plan = show_once(ask, topic_plan_report, terminal, verb="planning")
    if plan.checked is not None and not plan.checked.holds:
        raise typer.Exit(ExitCode.CONDITION)
