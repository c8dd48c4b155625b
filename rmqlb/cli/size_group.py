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
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_THREADS
from rmqlb.model.size_group import MOST_ID_TRIALS, MOST_QUEUES_PER_BROKER, MOST_SIZE, SizeLimits, SizeQuestion

_limits_option = panel("What is asked for")
_sizes_option = panel("Which sizes")
_work_option = panel("Work")
_ids_option = panel("Strategies that look at client IDs")


class SizeOptions(Struct, frozen=True):
    """Which group, the limits, the sizes to try, the work, and the sets of client IDs."""

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
    trials: Annotated[str, _ids_option(metavar="N", help="How many sets of client IDs are tried.")] = "100"
    share: Annotated[
        str, _ids_option(metavar="SHARE", help="For which share of them all limits must hold, at least.")
    ] = "100%"
    seed: Annotated[int, _ids_option(help="Random seed.")] = 1
    fail_on: Annotated[
        list[str] | None,
        shown_option(metavar="CONDITION", help="Exit 3 when it is met: unsatisfied, 'consumers>10'; repeatable."),
    ] = None

    def question(self, consumers: tuple[int, int] | None) -> SizeQuestion:
        """All that needs no source (raises UsageError)."""
        from rmqlb.verbs.amounts import count, imbalance, share, span

        if "=" in (self.sdk or ""):
            hint = "name one library for all: --sdk go"
            raise UsageError(f"--sdk {self.sdk}: future consumers have no IDs", hint=hint)
        needs_rate = {
            "--max-utilisation": self.max_utilisation,
            "--consume-time": self.consume_time,
            "--orderly": "" if self.orderly else None,
        }
        for option, text in needs_rate.items():
            if text is not None and not self.rate and self.rates_since is None:
                problem = f"{option} {text}".strip() + ": how many messages come?"
                raise UsageError(problem, hint="say it: --rate R or --rates-since FILE")
        survive = 0 if self.survive is None else count(self.survive, "--survive", most=MOST_SIZE - 1)
        if consumers is not None and survive >= consumers[1]:
            raise UsageError(
                f"--survive {self.survive} and --consumers {self.consumers}: no consumer would be left",
                hint=f"look at more than {survive} consumers",
                code="contradicting-limits",
            )
        most, used, queues = self.max_imbalance, self.max_utilisation, self.queues_per_broker
        return SizeQuestion(
            limits=SizeLimits(
                max_imbalance=None if most is None else imbalance(most, "--max-imbalance"),
                no_idle=self.no_idle,
                max_utilisation=None if used is None else share(used, "--max-utilisation"),
                survive=survive,
                survive_broker=self.survive_broker,
                share=share(self.share, "--share"),
            ),
            queues_per_broker=None if queues is None else span(queues, "--queues-per-broker", MOST_QUEUES_PER_BROKER),
            threads=self.threads,
            orderly=self.orderly,
            trials=count(self.trials, "--trials", most=MOST_ID_TRIALS),
            seed=self.seed,
        )


@command
def size_group(
    *, source: SourceOptions, options: SizeOptions, strategy_options: StrategyOptions, output: OutputOptions
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

    from rmqlb.cli.common.reading import Reader, earlier_snapshot
    from rmqlb.cli.common.show_or_watch import show_once
    from rmqlb.verbs import size_group as verb
    from rmqlb.verbs.amounts import duration_us, span
    from rmqlb.views.size_group import size_report

    terminal = Terminal("size-group", output)
    took, sizes = options.consume_time, options.consumers
    rates_since = earlier_snapshot(source, options.rates_since, terminal)
    consumers = None if sizes is None else span(sizes, "--consumers", MOST_SIZE)
    ask = partial(
        verb.size_group,
        Reader(source, terminal),
        options.question(consumers),
        group=options.group,
        topics=options.topic or (),
        include_retry=options.include_retry,
        sdk=options.sdk,
        consumers=consumers,
        strategies=options.strategy or (),
        strategy_options=strategy_options.texts,
        rates=options.rate or (),
        rates_since=rates_since,
        consume_us=None if took is None else duration_us(took, "--consume-time"),
        fail_on=options.fail_on or (),
    )
    show_once(ask, size_report, terminal, verb="sizing", unknown_hint="no size satisfies all: ask for unsatisfied too")
