"""What the options of `size-group` ask, before anything is read."""

from __future__ import annotations

from msgspec import Struct

from rmqlb.cli.size_group.options import FutureIdOptions, LimitOptions, WhichSizesOptions, WorkOptions
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_size import MOST_ID_TRIALS, MOST_QUEUES_PER_BROKER, MOST_SIZE, SizeLimits
from rmqlb.verbs import amounts
from rmqlb.verbs.strategies import Strategies

_USUAL_IMBALANCE, _USUAL_UTILISATION = 1.1, 0.8
_ALL = "all"


class Asked(Struct, frozen=True):
    """What the options say by themselves."""

    limits: SizeLimits
    consumers: tuple[int, int] | None
    queues_per_broker: tuple[int, int] | None
    consume_us: int | None
    threads: int
    trials: int
    seed: int
    all_strategies: bool  # each that needs no settings and that the consumers' library has
    findings: tuple[Finding, ...]


def asked_of(
    limits: LimitOptions, sizes: WhichSizesOptions, work: WorkOptions, ids: FutureIdOptions, sdk: str | None
) -> Asked:
    """The question so far (raises UsageError)."""
    if "=" in (sdk or ""):
        raise UsageError(f"--sdk {sdk}: future consumers have no IDs", hint="name one library for all: --sdk go")
    for option, text in (
        ("--max-utilisation", limits.max_utilisation),
        ("--consume-time", work.consume_time),
        ("--orderly", "" if work.orderly else None),
    ):
        if text is not None and not work.has_rate:
            problem = f"{option} {text}".strip() + ": how many messages come?"
            raise UsageError(problem, hint="say it: --rate R or --rates-since FILE")
    consumers = None if sizes.consumers is None else amounts.span(sizes.consumers, "--consumers", MOST_SIZE)
    queues = sizes.queues_per_broker
    survive = 0 if limits.survive is None else amounts.count(limits.survive, "--survive", most=MOST_SIZE - 1)
    if consumers is not None and survive >= consumers[1]:
        raise UsageError(
            f"--survive {limits.survive} and --consumers {sizes.consumers}: no consumer would be left",
            hint=f"look at more than {survive} consumers",
            code="contradicting-limits",
        )
    utilisation = limits.max_utilisation
    found = SizeLimits(
        max_imbalance=None
        if limits.max_imbalance is None
        else amounts.imbalance(limits.max_imbalance, "--max-imbalance"),
        no_idle=limits.no_idle,
        max_utilisation=amounts.share(utilisation, "--max-utilisation")
        if utilisation is not None
        else _USUAL_UTILISATION
        if work.has_rate
        else None,
        survive=survive,
        survive_broker=limits.survive_broker,
        share=amounts.share(ids.share, "--share"),
    )
    found, findings = _with_usual(found)
    return Asked(
        limits=found,
        consumers=consumers,
        queues_per_broker=None
        if queues is None
        else amounts.span(queues, "--queues-per-broker", MOST_QUEUES_PER_BROKER),
        consume_us=None if work.consume_time is None else amounts.duration_us(work.consume_time, "--consume-time"),
        threads=work.threads,
        trials=amounts.count(ids.trials, "--trials", most=MOST_ID_TRIALS),
        seed=ids.seed,
        all_strategies=_ALL in (text.lower() for text in sizes.strategy or ()),
        findings=findings,
    )


def strategies_of(sizes: WhichSizesOptions, strategies: Strategies) -> tuple[str, ...]:
    """The strategies that are named, in the order in which they are; () for those that consumers report."""
    found: list[str] = []
    for text in sizes.strategy or ():
        found += WITHOUT_SETTINGS if text.lower() == _ALL else [strategies.name(text)]
    return tuple(dict.fromkeys(found))


def _with_usual(limits: SizeLimits) -> tuple[SizeLimits, tuple[Finding, ...]]:
    """Where nothing is asked of a size but to survive, what is usual."""
    if limits.max_imbalance is not None or limits.no_idle or limits.max_utilisation is not None:
        return limits, ()
    text = (
        f"no limit is given: an imbalance of at most {_USUAL_IMBALANCE:g} and no idle consumer are asked for; "
        "--max-imbalance, --no-idle and --max-utilisation say otherwise"
    )
    from msgspec.structs import replace

    usual = replace(limits, max_imbalance=_USUAL_IMBALANCE, no_idle=True)
    return usual, (Finding("assumed-limits", text, severity=INFO),)
