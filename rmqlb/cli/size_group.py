"""`rmqlb size-group`."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import (
    IncludeRetry,
    OutputOptions,
    SourceOptions,
    StrategyOptions,
    Topics,
    about_option,
    command,
    panel,
    shown_option,
)
from rmqlb.cli.common.terminal import Terminal
from rmqlb.model.limits import MOST_THREADS

_limits_option = panel("What is asked for")
_sizes_option = panel("Which sizes")
_work_option = panel("Work")
_ids_option = panel("Strategies that look at client IDs")


class SizedGroupOptions(Struct, frozen=True):
    """Which group, on which topics."""

    group: Annotated[
        str | None, Option("-g", "--group", metavar="GROUP", help="Consumer group; may be left out when there is one.")
    ] = None
    topic: Topics = None
    include_retry: IncludeRetry = False
    sdk: Annotated[
        str | None,
        about_option(
            metavar="java|go|cpp", help="Client library of the consumers; default: as connections say, or java."
        ),
    ] = None


class SizeLimitOptions(Struct, frozen=True):
    """What a group of the right size keeps to."""

    max_imbalance: Annotated[
        str | None,
        _limits_option(metavar="X", help="Most queues of a consumer over the mean, at most; 1 is perfectly even."),
    ] = None
    no_idle: Annotated[bool, _limits_option("--no-idle", help="Every consumer has a queue.")] = False
    survive: Annotated[
        str | None, _limits_option(metavar="K", help="The same after any K consumers, or fewer, are lost.")
    ] = None
    survive_broker: Annotated[
        bool, _limits_option("--survive-broker", help="The same after any one broker is lost.")
    ] = False
    max_utilisation: Annotated[
        str | None,
        _limits_option(
            metavar="SHARE", help="Share of a consumer's threads that consume, at most; with a rate: 80% by default."
        ),
    ] = None


class WhichSizesOptions(Struct, frozen=True):
    """Which sizes are looked at."""

    consumers: Annotated[
        str | None,
        _sizes_option(metavar="N..M", help="Numbers of consumers; default: from 1 to the queues of the largest topic."),
    ] = None
    queues_per_broker: Annotated[
        str | None,
        _sizes_option(metavar="N..M", help="Queues of each topic on each broker; default: as many as there are."),
    ] = None
    strategy: Annotated[
        list[str] | None,
        about_option(
            metavar="STRATEGY|all",
            help="Or FILE.py:NAME, which is run; repeatable, to compare; default: as consumers report or show.",
        ),
    ] = None


class WorkOptions(Struct, frozen=True):
    """What comes into the queues, and how fast it is consumed."""

    rate: Annotated[
        list[str] | None,
        _work_option(
            metavar="[TOPIC=]R",
            help="Messages per second of the topic, or of each, spread evenly over its queues; repeatable.",
        ),
    ] = None
    rates_since: Annotated[
        str | None, _work_option(metavar="FILE", help="An earlier snapshot: each queue's rate is what came since.")
    ] = None
    consume_time: Annotated[
        str | None,
        _work_option(
            metavar="TIME", help="How long the listener takes for a message; default: as consumers report it."
        ),
    ] = None
    threads: Annotated[
        int, _work_option(min=1, max=MOST_THREADS, help="Consume threads of a consumer (consumeThreadMin).")
    ] = 20
    orderly: Annotated[
        bool,
        _work_option("--orderly", help="A queue is consumed by one thread at a time; default: as consumers report it."),
    ] = False


class FutureIdOptions(Struct, frozen=True):
    """Sets of client IDs that are tried, and conditions."""

    trials: Annotated[str, _ids_option(metavar="N", help="How many sets of client IDs are tried.")] = "100"
    share: Annotated[
        str, _ids_option(metavar="SHARE", help="For which share of them all limits must hold, at least.")
    ] = "100%"
    seed: Annotated[int, _ids_option(help="Random seed.")] = 1
    fail_on: Annotated[
        list[str] | None,
        shown_option(metavar="CONDITION", help="Exit 3 when it is met: unsatisfied, 'consumers>10'; repeatable."),
    ] = None


@command
def size_group(
    *,
    source: SourceOptions,
    which: SizedGroupOptions,
    limits: SizeLimitOptions,
    sizes: WhichSizesOptions,
    work: WorkOptions,
    ids: FutureIdOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
) -> None:
    """Find the fewest consumers, and queues, with which a group is as balanced and as robust as asked.

    Examples:
      rmqlb size-group -s examples/cluster.json --group order-svc

      rmqlb size-group -s examples/cluster.json -g order-svc --max-imbalance 1.1 --no-idle --survive 1 --consumers 2..40

      rmqlb size-group -s examples/cluster.json -g order-svc --rate 500 --consume-time 40ms --survive-broker

      rmqlb size-group -s examples/cluster.json -g order-svc --queues-per-broker 4..32 --consumers 8..12 -o json
      --fail-on unsatisfied

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or rates are not there,
    5 endpoint unreachable.
    """
    from functools import partial

    from msgspec.structs import asdict

    from rmqlb.cli.common.reading import Reader, earlier_snapshot
    from rmqlb.cli.common.show_or_watch import show_once
    from rmqlb.verbs import size_group as verb
    from rmqlb.views.size_group import size_report

    terminal = Terminal("size-group", output)
    options = verb.SizeOptions(
        **asdict(which),
        **asdict(limits),
        **asdict(sizes),
        **asdict(work) | {"rates_since": earlier_snapshot(source, work.rates_since, terminal)},
        **asdict(ids),
        **asdict(strategy_options),
    )
    ask = partial(verb.size_group, Reader(source, terminal), options)
    show_once(ask, size_report, terminal, verb="sizing", unknown_hint="no size satisfies all: ask for unsatisfied too")
