"""`rmqlb size-group`: the size of a group of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import runnable
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.rebalance.rates import spread_evenly
from rmqlb.engine.route_findings import one_broker_findings
from rmqlb.engine.size_group.size_group import SIZE_FIGURES, try_on_size
from rmqlb.engine.size_group.size_group import size_group as find_size
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.size_group import (
    MOST_ID_TRIALS,
    MOST_QUEUES_PER_BROKER,
    MOST_SIZE,
    GroupSize,
    SizeLimits,
    SizeQuestion,
)
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.model.words import counted
from rmqlb.verbs import amounts
from rmqlb.verbs.parse import conditions
from rmqlb.verbs.selection import select
from rmqlb.verbs.simulated_group import rates as parse_rates
from rmqlb.verbs.simulated_group import rates_since as rates_between
from rmqlb.verbs.source import Earlier, Reader
from rmqlb.verbs.strategies import Strategies

_USUAL_IMBALANCE, _USUAL_UTILISATION = 1.1, 0.8
_ALL = "all"


class SizeOptions(Struct, frozen=True, kw_only=True):
    """The command's options, as typed."""

    group: str | None = None
    topic: Sequence[str] | None = None
    include_retry: bool = False
    sdk: str | None = None
    max_imbalance: str | None = None
    no_idle: bool = False
    survive: str | None = None
    survive_broker: bool = False
    max_utilisation: str | None = None
    consumers: str | None = None
    queues_per_broker: str | None = None
    strategy: Sequence[str] | None = None
    strategy_option: Sequence[str] | None = None
    rate: Sequence[str] | None = None
    rates_since: Earlier | None = None
    consume_time: str | None = None
    threads: int = 20
    orderly: bool = False
    trials: str = "100"
    share: str = "100%"
    seed: int = 1
    fail_on: Sequence[str] | None = None

    @property
    def has_rate(self) -> bool:
        return bool(self.rate) or self.rates_since is not None

    @property
    def question(self) -> SizeQuestion:
        """What needs no source; `consumers` is (1, 1) where the source decides (raises UsageError)."""
        if "=" in (self.sdk or ""):
            hint = "name one library for all: --sdk go"
            raise UsageError(f"--sdk {self.sdk}: future consumers have no IDs", hint=hint)
        for option, text in (
            ("--max-utilisation", self.max_utilisation),
            ("--consume-time", self.consume_time),
            ("--orderly", "" if self.orderly else None),
        ):
            if text is not None and not self.has_rate:
                problem = f"{option} {text}".strip() + ": how many messages come?"
                raise UsageError(problem, hint="say it: --rate R or --rates-since FILE")
        consumers = None if self.consumers is None else amounts.span(self.consumers, "--consumers", MOST_SIZE)
        survive = 0 if self.survive is None else amounts.count(self.survive, "--survive", most=MOST_SIZE - 1)
        if consumers is not None and survive >= consumers[1]:
            raise UsageError(
                f"--survive {self.survive} and --consumers {self.consumers}: no consumer would be left",
                hint=f"look at more than {survive} consumers",
                code="contradicting-limits",
            )
        imbalance, utilisation, queues = self.max_imbalance, self.max_utilisation, self.queues_per_broker
        usual_utilisation = _USUAL_UTILISATION if self.has_rate else None
        limits = SizeLimits(
            max_imbalance=None if imbalance is None else amounts.imbalance(imbalance, "--max-imbalance"),
            no_idle=self.no_idle,
            max_utilisation=usual_utilisation
            if utilisation is None
            else amounts.share(utilisation, "--max-utilisation"),
            survive=survive,
            survive_broker=self.survive_broker,
            share=amounts.share(self.share, "--share"),
        )
        if self.without_limits:
            limits = replace(limits, max_imbalance=_USUAL_IMBALANCE, no_idle=True)
        return SizeQuestion(
            limits=limits,
            consumers=consumers or (1, 1),
            queues_per_broker=None
            if queues is None
            else amounts.span(queues, "--queues-per-broker", MOST_QUEUES_PER_BROKER),
            threads=self.threads,
            trials=amounts.count(self.trials, "--trials", most=MOST_ID_TRIALS),
            seed=self.seed,
        )

    @property
    def without_limits(self) -> bool:
        """Nothing is asked of a size, except perhaps to survive."""
        return self.max_imbalance is None and self.max_utilisation is None and not (self.no_idle or self.has_rate)


def size_group(source: Reader, options: SizeOptions, progress: Progress = no_progress) -> GroupSize:
    """Size a group of a source; all that needs no source is checked before it is read (raises RmqlbError)."""
    asked = conditions(options.fail_on or (), SIZE_FIGURES)
    question = options.question
    consume_us = None
    if options.consume_time is not None:
        consume_us = amounts.duration_us(options.consume_time, "--consume-time")
    strategies = Strategies(options.strategy_option)
    names: list[str] = []
    for text in options.strategy or ():
        names += WITHOUT_SETTINGS if text.lower() == _ALL else [strategies.name(text)]
    names = list(dict.fromkeys(names))
    strategies.must_apply(reported=not names)
    sdk = () if options.sdk is None else (options.sdk,)
    chosen = select(None, options.topic or (), sdk=sdk, include_retry=options.include_retry)
    if options.group is None and not options.topic and source.live:
        hint = "name it with --group; of a group that does not run yet name only its topics, with --topic"
        raise UsageError("which group?", hint=hint, code="which-group")
    wanted = Wanted(chosen.topics or None, options.group, retry=options.include_retry)
    snapshot = source.fetch(replace(wanted, evidence=options.has_rate))
    settings_of, strategy = strategies.settings_for, names[0] if names else None
    if _is_new(snapshot, options):
        chosen = replace(chosen, consumers=1)
    group = chosen.resolve(snapshot, options.group, settings_of, strategy=strategy)
    group.must_share()
    rates, rates_of_topics = _rates(options, wanted, group, snapshot)
    consume_ms: dict[str, float] = {}
    if options.has_rate:
        consume_ms = _consume_ms(consume_us, group)
        _require_rates(rates, rates_of_topics, question, group)
    present = () if group.assumed else group.client_ids
    if any(text.lower() == _ALL for text in options.strategy or ()):
        names = list(runnable(names, replace(group.members, client_ids=present)))
    question = replace(
        question,
        consumers=question.consumers if options.consumers is not None else _usual_sizes(question, group),
        strategies=tuple(names) or (group.strategy.strategy,),
        work={queue: rate * consume_ms[queue.topic] / 1000 for queue, rate in rates.items()},
        work_of_topics={topic: rate * consume_ms[topic] / 1000 for topic, rate in rates_of_topics.items()},
        orderly=options.orderly or (group.seen is not None and bool(rates) and is_orderly(group.seen) is True),
        present=present,
        subscribed=_subscribed(group, present),
        sdk=group.sdks.usual,
    )
    title = group.title
    size = find_size(
        group.name,
        group.pulled_routes,
        question,
        group.settings,
        progress=lambda done, total: progress(title, done, total),
    )
    size = _with_rates(size, group, rates, rates_of_topics, consume_ms)
    size = replace(size, conditions=tuple(try_on_size(condition, size) for condition in asked))
    return with_meta(size, Meta(snapshot, tuple(dict.fromkeys(_findings(options, question, group)))))


def _is_new(snapshot: ClusterSnapshot, options: SizeOptions) -> bool:
    """The group does not run, so that it has the topics that are named, and no consumers."""
    if options.group is not None:
        seen = snapshot.groups.get(options.group)
    else:
        seen = next(iter(snapshot.groups.values())) if len(snapshot.groups) == 1 else None
    return (seen is None or seen.client_ids is None) and bool(options.topic or seen is not None or not snapshot.groups)


def _subscribed(group: Group, present: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Client ID → its topics, of the consumers that do not read all of them."""
    topics = {route.topic for route in group.pulled_routes}
    read = {client_id: group.subscribed[client_id] for client_id in present if client_id in group.subscribed}
    return {client_id: own for client_id, own in read.items() if not topics <= own}


def _findings(options: SizeOptions, question: SizeQuestion, group: Group) -> Iterator[Finding]:
    if options.without_limits:
        text = (
            f"no limit is given: an imbalance of at most {_USUAL_IMBALANCE:g} and no idle consumer are asked for; "
            "--max-imbalance, --no-idle and --max-utilisation say otherwise"
        )
        yield Finding("assumed-limits", text, severity=INFO)
    yield from (each for each in planning_findings(group, pop=False) if each.code != "placeholder-ids")
    if group.sdks.sdk_of and not group.assumed:
        text = f"consumers run several client libraries; those of each size are taken to run {group.sdks.usual} alone"
        yield Finding("one-sdk", text, group.name)
    if question.limits.survive_broker and len(group.pulled_routes) > 1:
        for route in group.pulled_routes:  # without an only topic nothing is left, which fails
            yield from one_broker_findings(route)


def _usual_sizes(question: SizeQuestion, group: Group) -> tuple[int, int]:
    """Up to the queues of the largest topic: more consumers are idle; those that may be lost come on top."""
    routes = group.pulled_routes
    if question.queues_per_broker is None:
        largest = max((len(route.subscribe_queues()) for route in routes), default=1)
    else:
        brokers = max((len({data.broker_name for data in route.queue_datas}) for route in routes), default=1)
        largest = question.queues_per_broker[1] * brokers
    return 1, min(max(largest, 1) + question.limits.survive, MOST_SIZE)


def _rates(
    options: SizeOptions, wanted: Wanted, group: Group, snapshot: ClusterSnapshot
) -> tuple[Mapping[MessageQueue, float], Mapping[str, float]]:
    """The rates of queues, and those typed for topics without one; both are empty when no rate is given."""
    typed = parse_rates(options.rate or (), [route.topic for route in group.pulled_routes])
    given = spread_evenly(typed, group.pulled_routes)
    if options.rates_since is not None:
        given = rates_between(options.rates_since, wanted, group, snapshot) | given
    with_queues = {queue.topic for queue in group.pulled_queues}
    return given, {topic: rate for topic, rate in typed.items() if topic not in with_queues}


def _require_rates(
    rates: Mapping[MessageQueue, float], rates_of_topics: Mapping[str, float], question: SizeQuestion, group: Group
) -> None:
    """Refuse queues of unknown rate, and rates of nothing but topics that get no queue (raises DataError)."""
    unknown = list(dict.fromkeys(queue.topic for queue in group.pulled_queues if queue not in rates))
    if unknown:
        raise DataError(
            f"how many messages come to {counted(len(unknown), 'topic')} is unknown ({', '.join(unknown[:3])})",
            hint=f"say it: --rate {unknown[0]}=R",
            code="rate-unknown",
        )
    if rates_of_topics and not rates and question.queues_per_broker is None:
        names = ", ".join(rates_of_topics)
        raise DataError(
            f"no readable queue in {names}: consumers get none of its messages",
            hint="say how many read queues there will be: --queues-per-broker N..M",
            code="no-readable-queue",
        )


def _consume_ms(typed_us: int | None, group: Group) -> dict[str, float]:
    """How long a listener takes for a message of each topic: as typed, or the longest that a consumer reports."""
    if typed_us is not None:
        return dict.fromkeys((route.topic for route in group.pulled_routes), typed_us / 1000)
    reports = group.seen.reports.values() if group.seen is not None else ()
    statuses = [report.evidence.statuses or {} for report in reports if report.evidence is not None]
    found: dict[str, float] = {}
    for route in group.pulled_routes:
        times = [status[route.topic].consume_ms for status in statuses if route.topic in status]
        known = [each for each in times if each]
        if not known:
            raise DataError(
                f"how long listeners take for a message of {route.topic} is not reported by consumers",
                hint="say it: --consume-time 40ms",
                code="consume-time-unknown",
            )
        found[route.topic] = max(known)
    return found


def _with_rates(
    size: GroupSize,
    group: Group,
    rates: Mapping[MessageQueue, float],
    rates_of_topics: Mapping[str, float],
    consume_ms: Mapping[str, float],
) -> GroupSize:
    """The size with its rates, and the present number of consumers only if a size describes it.

    That needs a client ID for each consumer, and one strategy and library for all.
    """
    present = group.members
    if len(set(present.client_ids)) < len(present.client_ids) or present.strategy_of or present.sdk_of:
        size = replace(size, consumers_now=None)
    if not consume_ms:
        return size
    of_topics = dict(rates_of_topics)
    for route in group.pulled_routes:
        if queues := route.subscribe_queues():
            of_topics[route.topic] = fsum(rates[queue] for queue in queues)
    topics = tuple(
        replace(each, rate_per_second=of_topics.get(each.topic), consume_ms=consume_ms[each.topic])
        for each in size.topics
    )
    return replace(size, topics=topics)
