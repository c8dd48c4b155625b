from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, written
from rmqlb.cli.common.options import OutputOptions, RateFlags, SomeGroupsOnTopics, SourceOptions
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.cli.common.show_or_watch import answer
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_THREADS
from rmqlb.model.size_group import MOST_ID_TRIALS, MOST_QUEUES_PER_BROKER, MOST_SIZE, SizeLimits, SizeQuestion

_limits, _sizes, _work = Panel("Limits"), Panel("Sizes"), Panel("Work")


class SizeOptions(SettingsOptions, RateFlags, SomeGroupsOnTopics):
    sdk: Text = setting("sdk=[ID=]java|go|cpp")
    max_imbalance: Text = _limits(
        "X",
        "Limit for imbalance; 1 is perfectly even. Imbalance is the largest queue count of a consumer over the mean.",
    )
    no_idle: bool = _limits.flag("Require a queue for every consumer.")
    survive: Text = _limits(
        "K", "Tolerate K lost consumers. All limits still hold after the loss of any K consumers or fewer."
    )
    survive_host: bool = _limits.flag(
        "Tolerate one lost host. All limits still hold after the loss of any one consumer host."
    )
    survive_broker: bool = _limits.flag(
        "Tolerate one lost broker. All limits still hold after the loss of any one broker."
    )
    max_utilisation: Text = _limits(
        "SHARE", "Limit for the share of busy consume threads. With a rate, the default is 80%."
    )
    outage: Text = _limits("TIME", "Outage to recover from: messages arrive, and none is consumed. Needs --catch-up.")
    catch_up: Text = _limits("TIME", "Limit for the catch-up time after --outage. The backlog is gone by then.")
    drain_in: Text = _limits("TIME", "Limit for the time until today's lag is gone.")
    sizes: Text = _sizes("N..M", "Consumer counts to try. Default: 1 to the queue count of the largest topic.")
    queues_per_broker: Text = _sizes("N..M", "Queues per topic and broker to try. Default: the current counts.")
    strategies: Texts = about(
        "--strategy STRATEGY|all",
        "Allocation strategy, or FILE.py:NAME. FILE.py is run; repeatable, to compare; default: as "
        "consumers report, or as their queues show.",
    )
    consume_time: Text = _work("TIME", "Processing time per message; default: as reported.")
    consume_threads: int | None = setting("consume-threads=N", most=MOST_THREADS)
    orderly: bool = setting("orderly")
    id_sets: str = setting("id-sets=N", "100")
    id_share: str = setting("id-share=SHARE", "100%")
    seed: int = setting("seed=N", 1)
    fail_on: Texts = written("CONDITION", "Exit 3 if a condition holds: unsatisfied, 'consumers>10'; repeatable.")

    def arguments(self) -> dict[str, Any]:
        """The verb's arguments: the question, and what depends on the source (raises UsageError)."""
        from rmqlb.verbs.amounts import duration_us, given, span

        sizes = given(span, self.sizes, "--sizes", MOST_SIZE)
        of_verb = ("group", "topics", "include_retry", "sdk", "strategies", "strategy_options", "fail_on")
        names = (*of_verb, "consume_threads", *RateFlags.fields)
        return {name: value for name, value in super().arguments().items() if name in names} | {
            "question": self._question(sizes),
            "sizes": sizes,
            "consume_us": given(duration_us, self.consume_time, "--consume-time"),
        }

    def _question(self, sizes: tuple[int, int] | None) -> SizeQuestion:
        from rmqlb.verbs.amounts import count, given, imbalance, share, span

        if "=" in (self.sdk or ""):
            hint = "name one library for all: --set sdk=go"
            raise UsageError(f"--set sdk={self.sdk}: future consumers have no IDs", hint=hint)
        needs_rate = {
            "--outage": self.outage,
            "--drain-in": self.drain_in,
            "--max-utilisation": self.max_utilisation,
            "--consume-time": self.consume_time,
            "--set orderly": "" if self.orderly else None,
        }
        for option, text in needs_rate.items():
            if text is not None and not self.rates and self.rates_since is None:
                problem = f"{option} {text}".strip() + " needs a rate"
                raise UsageError(problem, hint="pass --rate R or --earlier FILE")
        if (self.outage is None) != (self.catch_up is None):
            problem = "--outage needs --catch-up" if self.outage else "--catch-up needs --outage"
            raise UsageError(problem, hint="give both: --outage 30m --catch-up 30m")
        survive = 0 if self.survive is None else count(self.survive, "--survive", most=MOST_SIZE - 1)
        if sizes is not None and survive >= sizes[1]:
            text = f"--survive {self.survive} and --sizes {self.sizes}: no consumer would be left"
            raise UsageError(text, hint=f"pass --sizes with more than {survive} consumers", code="contradicting-limits")
        return SizeQuestion(
            limits=SizeLimits(
                max_imbalance=given(imbalance, self.max_imbalance, "--max-imbalance"),
                no_idle=self.no_idle,
                max_utilisation=given(share, self.max_utilisation, "--max-utilisation"),
                outage_ms=_ms(self.outage, "--outage"),
                catch_up_ms=_ms(self.catch_up, "--catch-up"),
                drain_in_ms=_ms(self.drain_in, "--drain-in"),
                survive=survive,
                survive_host=self.survive_host,
                survive_broker=self.survive_broker,
                share=share(self.id_share, "--set id-share="),
            ),
            queues_per_broker=given(span, self.queues_per_broker, "--queues-per-broker", MOST_QUEUES_PER_BROKER),
            orderly=self.orderly,
            trials=count(self.id_sets, "--set id-sets=", most=MOST_ID_TRIALS),
            seed=self.seed,
        )


def _ms(text: str | None, option: str) -> float | None:
    from rmqlb.verbs.amounts import duration_us, given

    us = given(duration_us, text, option)
    return None if us is None else us / 1000


@command
def size_group(source: SourceOptions, options: SizeOptions, output: OutputOptions) -> None:
    """Find how many consumers a group needs: the fewest within limits for balance, load and failures.

    Examples:
      rmqlb size-group -s examples/cluster.json --group order-svc
      rmqlb size-group -s examples/cluster.json -g order-svc --rate 500 --consume-time 40ms --survive-broker
      rmqlb size-group -s examples/cluster.json -g order-svc --rate 500 --consume-time 40ms --outage 30m --catch-up 30m
      rmqlb size-group -s examples/cluster.json -g order-svc --max-imbalance 1.1 --no-idle --survive 1 --sizes 2..40
      rmqlb size-group -s examples/cluster.json -g order-svc --queues-per-broker 4..32 --sizes 8..12 -o json
      --fail-on unsatisfied

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or rates are missing,
    5 endpoint unreachable.
    """
    hint = "no size satisfies all limits: add --fail-on unsatisfied"
    answer("size-group", "size_report", source, options, output, doing="sizing", hint=hint)
