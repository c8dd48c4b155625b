"""What the size of a group is asked of: its topics, its strategy, and the work that its messages bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common.options import GroupOptions, SourceOptions
from rmqlb.cli.common.reading import earlier_snapshot, wanted_for
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.size_group.options import WorkOptions
from rmqlb.cli.size_group.question import Asked
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import runnable
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.rebalance.rates import spread_evenly
from rmqlb.engine.route_findings import one_broker_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import Finding
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.group_size import MOST_SIZE, GroupSize, SizeQuestion
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.model.words import counted
from rmqlb.sources.source_text import is_live
from rmqlb.verbs.group_simulation.parse import rates as typed_rates
from rmqlb.verbs.rates_since import rates_since
from rmqlb.verbs.selection import Selection, select
from rmqlb.verbs.strategies import Strategies

_PLACEHOLDERS = "placeholder-ids"


class Gathered(Struct, frozen=True):
    """Everything that the engine needs, and what there is to say of it."""

    on_topics: Group
    question: SizeQuestion
    settings: Settings
    rates: Mapping[MessageQueue, float]
    rates_of_topics: Mapping[str, float]  # topic without a readable queue → its rate
    consume_ms: Mapping[str, float]  # topic → how long a listener takes for a message
    findings: tuple[Finding, ...]

    @property
    def _has_a_size(self) -> bool:
        """The present consumers have a client ID each, and all run one strategy and one library."""
        present = self.on_topics.members
        return len(set(present.client_ids)) == len(present.client_ids) and not (present.strategy_of or present.sdk_of)

    def told(self, size: GroupSize, conditions: tuple[TriedCondition, ...]) -> GroupSize:
        """The size with its rates, the conditions, and the present number of consumers if a size describes it."""
        size = size if self._has_a_size else replace(size, consumers_now=None)
        if not self.consume_ms:
            return replace(size, conditions=conditions)
        of_topics = dict(self.rates_of_topics)
        for route in self.on_topics.pulled_routes:
            if queues := route.subscribe_queues():
                of_topics[route.topic] = fsum(self.rates[queue] for queue in queues)
        topics = tuple(
            replace(each, rate_per_second=of_topics.get(each.topic), consume_ms=self.consume_ms[each.topic])
            for each in size.topics
        )
        return replace(size, topics=topics, conditions=conditions)


def wanted(source: SourceOptions, which: GroupOptions, work: WorkOptions) -> Wanted:
    """What is to be read: of consumers also how long they take, where nothing else says it."""
    if which.group is None and which.topic:
        which = replace(which, consumers="1")  # of a group that does not run yet the topics are enough
    elif which.group is None and is_live(source.source):
        hint = "name it with --group; of a group that does not run yet name only its topics, with --topic"
        raise UsageError("which group?", hint=hint, code="which-group")
    return replace(wanted_for(source, which), evidence=work.has_rate)


def gather(
    source: SourceOptions,
    which: GroupOptions,
    work: WorkOptions,
    asked: Asked,
    names: Sequence[str],
    strategies: Strategies,
    snapshot: ClusterSnapshot,
    terminal: Terminal,
) -> Gathered:
    """The question, complete (raises DataError, UsageError)."""
    found = _on_topics(snapshot, which, strategies, names)
    present = () if found.assumed else found.client_ids
    members = replace(found.members, client_ids=present)
    rates, rates_of_topics = _rates(source, which, work, found, snapshot, terminal)
    consume_ms = _consume_ms(asked, found) if work.has_rate else {}
    if work.has_rate:
        _require_rates(rates, rates_of_topics, asked, found)
    question = SizeQuestion(
        limits=asked.limits,
        consumers=asked.consumers or _usual_sizes(found.pulled_routes, asked),
        queues_per_broker=asked.queues_per_broker,
        strategies=tuple(runnable(names, members) if asked.all_strategies else names) or (found.strategy.strategy,),
        work={queue: rate * consume_ms[queue.topic] / 1000 for queue, rate in rates.items()},
        work_of_topics={topic: rate * consume_ms[topic] / 1000 for topic, rate in rates_of_topics.items()},
        threads=asked.threads,
        orderly=work.orderly or (found.seen is not None and bool(rates) and is_orderly(found.seen) is True),
        present=present,
        subscribed=_subscribed(found),
        sdk=found.sdks.usual,
        trials=asked.trials,
        seed=asked.seed,
    )
    of_group = [each for each in planning_findings(found, pop=False) if each.code != _PLACEHOLDERS]
    findings = [*asked.findings, *of_group, *_one_sdk(found)]
    if asked.limits.survive_broker and len(found.pulled_routes) > 1:
        # Without an only topic nothing is left, which fails.
        findings += [each for route in found.pulled_routes for each in one_broker_findings(route)]
    return Gathered(found, question, found.settings, rates, rates_of_topics, consume_ms, tuple(dict.fromkeys(findings)))


def _on_topics(snapshot: ClusterSnapshot, which: GroupOptions, strategies: Strategies, names: Sequence[str]) -> Group:
    """The group and its topics; a group that does not run yet has those that are named."""
    group = _known(snapshot, which.group)
    if (group is None or group.client_ids is None) and (which.topic or group is not None or not snapshot.groups):
        which = replace(which, consumers="1")
    settings_of, strategy = strategies.settings_for, names[0] if names else None
    chosen: Selection = select(**replace(which, group=None).arguments(None))
    found = chosen.resolve(snapshot, which.group, settings_of, strategy=strategy)
    found.must_share()
    return found


def _known(snapshot: ClusterSnapshot, name: str | None) -> ConsumerGroup | None:
    if name is not None:
        return snapshot.groups.get(name)
    return next(iter(snapshot.groups.values())) if len(snapshot.groups) == 1 else None


def _subscribed(found: Group) -> Mapping[str, frozenset[str]]:
    """Client ID → its topics, of the consumers that do not read all of them."""
    topics = {route.topic for route in found.pulled_routes}
    present = () if found.assumed else found.client_ids
    read = {client_id: found.subscribed[client_id] for client_id in present if client_id in found.subscribed}
    return {client_id: own for client_id, own in read.items() if not topics <= own}


def _one_sdk(found: Group) -> Iterator[Finding]:
    """That future consumers are taken to run the library of most of the present ones."""
    if found.sdks.sdk_of and not found.assumed:
        text = f"consumers run several client libraries; those of each size are taken to run {found.sdks.usual} alone"
        yield Finding("one-sdk", text, found.name)


def _usual_sizes(routes: Sequence[TopicRouteData], asked: Asked) -> tuple[int, int]:
    """Up to the queues of the largest topic: more consumers are idle, and those that may be lost come on top."""
    if asked.queues_per_broker is None:
        largest = max((len(route.subscribe_queues()) for route in routes), default=1)
    else:
        brokers = max((len({data.broker_name for data in route.queue_datas}) for route in routes), default=1)
        largest = asked.queues_per_broker[1] * brokers
    return 1, min(max(largest, 1) + asked.limits.survive, MOST_SIZE)


def _rates(
    source: SourceOptions,
    which: GroupOptions,
    work: WorkOptions,
    found: Group,
    snapshot: ClusterSnapshot,
    terminal: Terminal,
) -> tuple[Mapping[MessageQueue, float], Mapping[str, float]]:
    """The rates of queues, and those typed for topics without one; both are empty when no rate is given."""
    topics = [route.topic for route in found.pulled_routes]
    typed = typed_rates(work.rate or (), topics)
    given = spread_evenly(typed, found.pulled_routes)
    if work.rates_since is not None:
        earlier = earlier_snapshot(source, work.rates_since, terminal)
        given = (rates_since(earlier, wanted_for(source, which), found, snapshot) if earlier else {}) | given
    with_queues = {queue.topic for queue in found.pulled_queues}
    return given, {topic: rate for topic, rate in typed.items() if topic not in with_queues}


def _require_rates(
    rates: Mapping[MessageQueue, float], rates_of_topics: Mapping[str, float], asked: Asked, found: Group
) -> None:
    """Refuse queues of unknown rate, and rates of nothing but topics that get no queue (raises DataError)."""
    unknown = list(dict.fromkeys(queue.topic for queue in found.pulled_queues if queue not in rates))
    if unknown:
        raise DataError(
            f"how many messages come to {counted(len(unknown), 'topic')} is unknown ({', '.join(unknown[:3])})",
            hint=f"say it: --rate {unknown[0]}=R",
            code="rate-unknown",
        )
    if rates_of_topics and not rates and asked.queues_per_broker is None:
        names = ", ".join(rates_of_topics)
        raise DataError(
            f"no readable queue in {names}: consumers get none of its messages",
            hint="say how many read queues there will be: --queues-per-broker N..M",
            code="no-readable-queue",
        )


def _consume_ms(asked: Asked, found: Group) -> Mapping[str, float]:
    """How long a listener takes for a message of each topic: as typed, or the longest that a consumer reports."""
    if asked.consume_us is not None:
        return dict.fromkeys((route.topic for route in found.pulled_routes), asked.consume_us / 1000)
    reports = found.seen.reports.values() if found.seen is not None else ()
    statuses = [report.evidence.statuses or {} for report in reports if report.evidence is not None]
    told: dict[str, float] = {}
    for route in found.pulled_routes:
        times = [status[route.topic].consume_ms for status in statuses if route.topic in status]
        known = [each for each in times if each]
        if not known:
            raise DataError(
                f"how long listeners take for a message of {route.topic} is not reported by consumers",
                hint="say it: --consume-time 40ms",
                code="consume-time-unknown",
            )
        told[route.topic] = max(known)
    return told
