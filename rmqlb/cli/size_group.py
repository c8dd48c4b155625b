from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, written
from rmqlb.cli.common.options import (
    RATE_HELP,
    RATES_SINCE_HELP,
    OutputOptions,
    SomeGroupsOnTopics,
    SourceOptions,
)
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.size_group import MOST_ID_TRIALS, MOST_QUEUES_PER_BROKER, MOST_SIZE, SizeLimits, SizeQuestion

_limits, _sizes, _work = Panel("What is asked for"), Panel("Which sizes"), Panel("Work")


class SizeOptions(SettingsOptions, SomeGroupsOnTopics):
    sdk: Text = about("java|go|cpp", "Client library of the consumers; default: as connections say, or java.")
    max_imbalance: Text = _limits("X", "Most queues of a consumer over the mean, at most; 1 is perfectly even.")
    no_idle: bool = _limits.flag("Every consumer has a queue.")
    survive: Text = _limits("K", "The same after any K consumers, or fewer, are lost.")
    survive_host: bool = _limits.flag("The same after any one host of consumers is lost.")
    survive_broker: bool = _limits.flag("The same after any one broker is lost.")
    max_utilisation: Text = _limits(
        "SHARE", "Share of a consumer's threads that consume, at most; with a rate: 80% by default."
    )
    sizes: Text = _sizes("N..M", "Numbers of consumers; default: from 1 to the queues of the largest topic.")
    queues_per_broker: Text = _sizes("N..M", "Queues of each topic on each broker; default: as many as there are.")
    strategies: Texts = about(
        "--strategy STRATEGY|all",
        "Or FILE.py:NAME, which is run; repeatable, to compare; default: as consumers report or show.",
    )
    rates: Texts = _work("--rate [TOPIC=]R", RATE_HELP)
    rates_since: Text = _work("--earlier FILE", RATES_SINCE_HELP, stdin="-")
    consume_time: Text = _work("TIME", "How long the listener takes for a message; default: as consumers report it.")
    consume_threads: int = setting("consume-threads")
    orderly: bool = _work.flag("A queue is consumed by one thread at a time; default: as consumers report it.")
    id_sets: str = setting("id-sets")
    id_share: str = setting("id-share")
    seed: int = setting("seed")
    fail_on: Texts = written("CONDITION", "Exit 3 when it is met: unsatisfied, 'consumers>10'; repeatable.")

    def arguments(self) -> dict[str, Any]:
        """The verb's arguments: the question, and what depends on the source (raises UsageError)."""
        from rmqlb.verbs.amounts import duration_us, given, span

        sizes = given(span, self.sizes, "--sizes", MOST_SIZE)
        of_verb = ("group", "topics", "include_retry", "sdk", "strategies", "strategy_options", "rates", "rates_since")
        names = (*of_verb, "fail_on")
        return {name: value for name, value in super().arguments().items() if name in names} | {
            "question": self._question(sizes),
            "sizes": sizes,
            "consume_us": given(duration_us, self.consume_time, "--consume-time"),
        }

    def _question(self, sizes: tuple[int, int] | None) -> SizeQuestion:
        from rmqlb.verbs.amounts import count, given, imbalance, share, span
        from rmqlb.verbs.settings import read_setting

        if "=" in (self.sdk or ""):
            hint = "name one library for all: --sdk go"
            raise UsageError(f"--sdk {self.sdk}: future consumers have no IDs", hint=hint)
        needs_rate = {
            "--max-utilisation": self.max_utilisation,
            "--consume-time": self.consume_time,
            "--orderly": "" if self.orderly else None,
        }
        for option, text in needs_rate.items():
            if text is not None and not self.rates and self.rates_since is None:
                problem = f"{option} {text}".strip() + ": how many messages come?"
                raise UsageError(problem, hint="say it: --rate R or --earlier FILE")
        survive = 0 if self.survive is None else count(self.survive, "--survive", most=MOST_SIZE - 1)
        if sizes is not None and survive >= sizes[1]:
            text = f"--survive {self.survive} and --sizes {self.sizes}: no consumer would be left"
            raise UsageError(text, hint=f"look at more than {survive} consumers", code="contradicting-limits")
        return SizeQuestion(
            limits=SizeLimits(
                max_imbalance=given(imbalance, self.max_imbalance, "--max-imbalance"),
                no_idle=self.no_idle,
                max_utilisation=given(share, self.max_utilisation, "--max-utilisation"),
                survive=survive,
                survive_host=self.survive_host,
                survive_broker=self.survive_broker,
                share=read_setting("id-share", share, self.id_share),
            ),
            queues_per_broker=given(span, self.queues_per_broker, "--queues-per-broker", MOST_QUEUES_PER_BROKER),
            threads=self.consume_threads,
            orderly=self.orderly,
            trials=read_setting("id-sets", count, self.id_sets, most=MOST_ID_TRIALS),
            seed=self.seed,
        )


@command
def size_group(source: SourceOptions, options: SizeOptions, output: OutputOptions) -> None:
    """Find how many consumers a group needs: the fewest, and queues, that are as balanced and robust as asked.

    Examples:
      rmqlb size-group -s examples/cluster.json --group order-svc
      rmqlb size-group -s examples/cluster.json -g order-svc --max-imbalance 1.1 --no-idle --survive 1 --sizes 2..40
      rmqlb size-group -s examples/cluster.json -g order-svc --rate 500 --consume-time 40ms --survive-broker
      rmqlb size-group -s examples/cluster.json -g order-svc --queues-per-broker 4..32 --sizes 8..12 -o json
      --fail-on unsatisfied

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or rates are not there,
    5 endpoint unreachable.
    """
    from rmqlb.verbs import size_group as verb
    from rmqlb.views.size_group import size_report

    terminal = Terminal("size-group", output)
    sized = ask(verb.size_group, Reader(source, terminal), options)
    hint = "no size satisfies all: ask for unsatisfied too"
    show_verb(sized, size_report, terminal, verb="sizing", unknown_hint=hint)
