"""What options say, as a `PipelinePlan`."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from rmqlb.cli.common import producer_values as send_values
from rmqlb.cli.common.options import StrategyOptions
from rmqlb.cli.pipeline.options import (
    LOSS_LIMITS,
    AsOfOptions,
    LossOptions,
    OnlyOptions,
    ScheduleOptions,
    SizeOptions,
    StrategiesOptions,
)
from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.errors import UsageError
from rmqlb.model.size_group import MOST_ID_TRIALS, MOST_SIZE, SizeLimits
from rmqlb.model.snapshot import close_names
from rmqlb.pipeline.pipeline_plan import EVERY_TOPIC, USUAL_SIZE, PipelinePlan
from rmqlb.pipeline.producers.send_rows import DIES, LOAD, SendSchedule, check_schedule
from rmqlb.pipeline.row_filter import parse_row_filter
from rmqlb.verbs import amounts
from rmqlb.verbs.parse import must_differ
from rmqlb.verbs.strategies import Strategies

_MOST_TRIALS = 100_000


def plan_for(
    which: OnlyOptions,
    strategies: StrategyOptions | None = None,
    schedule: ScheduleOptions | None = None,
    sizes: SizeOptions | None = None,
    losses: LossOptions | None = None,
    **rest: Any,
) -> PipelinePlan:
    """The plan; `rest` are further attributes of it."""
    if isinstance(which, AsOfOptions) and which.as_of is not None:
        rest["as_of"] = amounts.day(which.as_of, "--as-of")
    if isinstance(which, StrategiesOptions) and strategies is not None:
        rest |= _strategies(which, strategies)
    if schedule is not None:
        rest |= {"schedule": _schedule(schedule), "schedule_text": repr(schedule)}
    if sizes is not None:
        trials = amounts.count(sizes.id_trials, "--id-trials", most=MOST_ID_TRIALS)
        rest |= {"size_limits": _size_limits(sizes), "id_trials": trials}
    if losses is not None and losses.limit:
        rest["loss_limits"] = tuple(_limit(text) for text in losses.limit)
    return PipelinePlan(only=parse_row_filter(which.only or ()), **rest)


def _strategies(which: StrategiesOptions, options: StrategyOptions) -> dict[str, Any]:
    """The strategies by full name, each once, with what they are constructed with."""
    asked = Strategies(options.strategy_option)
    named = [asked.name(name) for name in which.strategy or WITHOUT_SETTINGS]
    names = tuple(dict.fromkeys(full_name(name, asked.settings) for name in named))
    nearby = [name for name in names if "MACHINE_ROOM_NEARBY" in name]
    if nearby and not asked.given.keys() >= {"broker-zone", "client-zone"}:
        raise UsageError(
            f"--strategy {nearby[0]}: it needs zones",
            hint="give --strategy-option broker-zone=… and --strategy-option client-zone=…",
        )
    asked.must_apply(reported=False)
    own = asked.settings_for([EVERY_TOPIC])
    return {"strategies": names, "settings": own, "settings_text": repr((options, own.config, asked.sources))}


def _size_limits(options: SizeOptions) -> SizeLimits:
    """Where nothing is asked of a size but to survive, what is usual."""
    imbalance = None if options.max_imbalance is None else amounts.imbalance(options.max_imbalance, "--max-imbalance")
    survive = amounts.count(options.survive, "--survive", least=0, most=MOST_SIZE - 1)
    usual = imbalance is None and not options.no_idle
    limits = USUAL_SIZE if usual else SizeLimits(max_imbalance=imbalance, no_idle=options.no_idle)
    return replace(limits, survive=survive, survive_broker=options.survive_broker)


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    if name not in LOSS_LIMITS:
        raise UsageError(
            f"--limit {text}: there is no limit {name}",
            hint=close_names(name, LOSS_LIMITS) or f"one of {', '.join(LOSS_LIMITS)}",
        )
    if not re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", number):
        raise UsageError(f"--limit {text}: expected LIMIT=NUMBER", hint="such as imbalance=1.5")
    return name, float(number)


def _schedule(options: ScheduleOptions) -> SendSchedule:
    """The schedule; without `--fail` each broker dies in turn."""
    failing = tuple(send_values.failure(text, (), options.nameserver_notices) for text in options.fail or ())
    must_differ(options.fail or (), [(each.broker_name, each.start, each.end) for each in failing], "--fail")
    scenario = replace(
        LOAD,
        client_version=options.client,
        latency_fault=amounts.on_or_off(options.latency_fault, "--latency-fault"),
        threads=options.threads,
        retries=options.send_retries,
        timeout_ms=amounts.whole_ms(options.send_timeout, "--send-timeout"),
        seed=options.seed,
        rate=amounts.rate(options.rate, "--rate"),
        duration_us=amounts.duration_us(options.for_, "--for"),
    )
    trials = amounts.count(options.trials, "--trials", most=_MOST_TRIALS, least=2)
    if not failing:
        notices = options.nameserver_notices
        failing = (DIES if notices is None else send_values.failure("*@30s-", (), notices),)
    schedule = SendSchedule(scenario, failing, in_turn=options.each or not options.fail, trials=trials)
    check_schedule(schedule)
    return schedule
