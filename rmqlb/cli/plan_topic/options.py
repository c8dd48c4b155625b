"""The options of `plan-topic`: what becomes of the topic, and what its clients are."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import about_option, panel

_change_option = panel("What changes")
_keys_option = panel("Keys")
_MOST_STEPS = 6


class ChangeOptions(Struct, frozen=True):
    """What becomes of the topic, all of it in one plan."""

    queues: Annotated[
        str | None, _change_option(metavar="N", help="N read and N write queues on each broker, more or fewer.")
    ] = None
    add_broker: Annotated[
        list[str] | None,
        _change_option(
            metavar="NAME[:READ[:WRITE]]",
            help="A broker that gets queues of the topic; counts default to the others'; repeatable.",
        ),
    ] = None
    drain_broker: Annotated[
        list[str] | None, _change_option(metavar="NAME", help="A broker that loses its queues; repeatable.")
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
        bool,
        _change_option("--unordered", help="No message is sent by key: leave out the steps that hold producers."),
    ] = False


class TopicOptions(Struct, frozen=True):
    """Which groups and keys are looked at, and which step is checked."""

    group: Annotated[
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
        about_option(
            metavar="STRATEGY",
            help="Or FILE.py:NAME, which is run. Default: as consumers report or show.",
        ),
    ] = None
    keys_file: Annotated[
        str | None, _keys_option(metavar="FILE|-", help="Keys of its messages, one per line: how many move.")
    ] = None
    sdk: Annotated[
        list[str] | None,
        _keys_option(metavar="SDK[@VERSION]", help="Whose producers send them, as go; repeatable; default: all."),
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
