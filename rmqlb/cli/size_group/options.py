"""The options of `size-group`: what is asked of a size, which sizes are looked at, and the work of the consumers."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import GroupOptions, IncludeRetry, Topics, about_option, panel, shown_option
from rmqlb.model.limits import MOST_THREADS

limits_option = panel("What is asked for")
sizes_option = panel("Which sizes")
work_option = panel("Work")
ids_option = panel("Strategies that look at client IDs")


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

    @property
    def which(self) -> GroupOptions:
        sdk = None if self.sdk is None else [self.sdk]
        return GroupOptions(self.group, self.topic, include_retry=self.include_retry, sdk=sdk)


class LimitOptions(Struct, frozen=True):
    """What a group of the right size keeps to."""

    max_imbalance: Annotated[
        str | None,
        limits_option(metavar="X", help="Most queues of a consumer over the mean, at most; 1 is perfectly even."),
    ] = None
    no_idle: Annotated[bool, limits_option("--no-idle", help="Every consumer has a queue.")] = False
    survive: Annotated[
        str | None, limits_option(metavar="K", help="The same after any K consumers, or fewer, are lost.")
    ] = None
    survive_broker: Annotated[
        bool, limits_option("--survive-broker", help="The same after any one broker is lost.")
    ] = False
    max_utilisation: Annotated[
        str | None,
        limits_option(
            metavar="SHARE", help="Share of a consumer's threads that consume, at most; with a rate: 80% by default."
        ),
    ] = None


class WhichSizesOptions(Struct, frozen=True):
    """Which sizes are looked at."""

    consumers: Annotated[
        str | None,
        sizes_option(metavar="N..M", help="Numbers of consumers; default: from 1 to the queues of the largest topic."),
    ] = None
    queues_per_broker: Annotated[
        str | None,
        sizes_option(metavar="N..M", help="Queues of each topic on each broker; default: as many as there are."),
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
        work_option(
            metavar="[TOPIC=]R",
            help="Messages per second of the topic, or of each, spread evenly over its queues; repeatable.",
        ),
    ] = None
    rates_since: Annotated[
        str | None, work_option(metavar="FILE", help="An earlier snapshot: each queue's rate is what came since.")
    ] = None
    consume_time: Annotated[
        str | None,
        work_option(metavar="TIME", help="How long the listener takes for a message; default: as consumers report it."),
    ] = None
    threads: Annotated[
        int, work_option(min=1, max=MOST_THREADS, help="Consume threads of a consumer (consumeThreadMin).")
    ] = 20
    orderly: Annotated[
        bool,
        work_option("--orderly", help="A queue is consumed by one thread at a time; default: as consumers report it."),
    ] = False

    @property
    def has_rate(self) -> bool:
        return bool(self.rate) or self.rates_since is not None


class FutureIdOptions(Struct, frozen=True):
    """Sets of client IDs that are tried."""

    trials: Annotated[str, ids_option(metavar="N", help="How many sets of client IDs are tried.")] = "100"
    share: Annotated[
        str, ids_option(metavar="SHARE", help="For which share of them all limits must hold, at least.")
    ] = "100%"
    seed: Annotated[int, ids_option(help="Random seed.")] = 1


class ShowSizeOptions(Struct, frozen=True):
    """The picture, and the conditions."""

    svg: Annotated[str | None, shown_option(metavar="FILE|-", help="Write the curve as SVG; - is stdout.")] = None
    fail_on: Annotated[
        list[str] | None,
        shown_option(metavar="CONDITION", help="Exit 3 when it is met: unsatisfied, 'consumers>10'; repeatable."),
    ] = None
