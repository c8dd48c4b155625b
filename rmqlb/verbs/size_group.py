from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum
from typing import Unpack

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import runnable
from rmqlb.engine.assignment.consumers import is_orderly
from rmqlb.engine.backlog import PULLED_AHEAD, full_call
from rmqlb.engine.group import Group
from rmqlb.engine.group_findings import planning_findings
from rmqlb.engine.size_group.size_group import SIZE_FIGURES, try_on_size
from rmqlb.engine.size_group.size_group import size_group as find_size
from rmqlb.engine.source_findings import one_broker_findings
from rmqlb.errors import DataError
from rmqlb.model.message_queue import MessageQueue, queue_ranges
from rmqlb.model.process_queue import ConsumerEvidence, threads_of
from rmqlb.model.result import INFO, Finding, Meta, Progress, counted, no_progress, with_meta
from rmqlb.model.size_group import MOST_SIZE, GroupSize, SizedTopic, SizeQuestion, SizesOfGroups, sizes_of_groups
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.verbs.parse import conditions
from rmqlb.verbs.rates import KnownRates, RateOptions, asked_rates, evidence_of
from rmqlb.verbs.selection import select
from rmqlb.verbs.source import Reader
from rmqlb.verbs.strategies import Strategies

_USUAL_IMBALANCE, _USUAL_UTILISATION = 1.1, 0.8


def size_group(
    source: Reader,
    question: SizeQuestion,
    *,
    group: str | Sequence[str] | None = None,
    topics: Sequence[str] = (),
    include_retry: bool = False,
    sdk: str | None = None,
    sizes: tuple[int, int] | None = None,
    strategies: Sequence[str] = (),
    strategy_options: Sequence[str] = (),
    consume_us: int | None = None,
    consume_threads: int | None = None,
    fail_on: Sequence[str] = (),
    progress: Progress = no_progress,
    **rates: Unpack[RateOptions],
) -> GroupSize | SizesOfGroups:
    """Size a group of a source; all that needs no source is checked before it is read (raises RmqlbError).

    Several groups, or a pattern, give a SizesOfGroups.
    `sizes` are the fewest and the most to try; `consume_us` is the time of a listener for a message. Without it and
    `consume_threads`, consumers' reports count. A question without limits gets the usual ones.
    """
    fail_conditions = conditions(fail_on, SIZE_FIGURES)
    asked_for_rates = asked_rates(rates)
    has_rate = asked_for_rates.given
    question, assumed = _usual_limits(question, has_rate=has_rate)
    named = Strategies(strategy_options)
    names, has_all = named.compared(strategies)
    named.must_apply(reported=not names)
    chosen = select(group, topics=topics, sdk=sdk, include_retry=include_retry)
    wanted = chosen.wanted(source, may_be_new=True)
    asked_for_rates, snapshot = asked_for_rates.read(source, wanted, progress)

    def size_of(name: str | None) -> tuple[GroupSize, tuple[Finding, ...]]:
        of_group = chosen
        if _is_new(snapshot, name, topics):
            of_group = select(name, topics=topics, consumers=1, sdk=sdk, include_retry=include_retry)
        found = of_group.resolve(snapshot, name, named.settings_for, strategy=names[0] if names else None)
        found.must_share()
        known = asked_for_rates.of(found, wanted, snapshot)
        timed, answered = question, None
        if has_rate:
            timed, answered = _with_work(found, question, known, consume_us, consume_threads)
        present = () if found.assumed else found.client_ids
        compared = runnable(names, replace(found.members, client_ids=present)) if has_all else names
        is_orderly_now = found.seen is not None and bool(known.of_queues) and is_orderly(found.seen) is True
        own = replace(
            timed,
            consumers=sizes or _usual_sizes(question, found),
            strategies=tuple(compared) or (found.strategy.strategy,),
            orderly=question.orderly or is_orderly_now,
            present=present,
            subscribed=_subscribed(found, present),
            sdk=found.sdks.usual,
        )
        steps = partial(progress, found.title)
        size = find_size(found.name, found.pulled_routes, own, found.settings, progress=steps)
        now = found.members
        if len(set(now.client_ids)) < len(now.client_ids) or now.strategy_of or now.sdk_of:
            size = replace(size, consumers_now=None)  # no size describes it
        size = size if answered is None else answered(size)
        size = replace(size, conditions=tuple(try_on_size(condition, size) for condition in fail_conditions))
        return size, tuple(_findings(own, found))

    found, findings = chosen.ask(snapshot, size_of)
    meta = Meta(snapshot, (*assumed, *findings))
    return with_meta(sizes_of_groups(found), meta) if chosen.several else with_meta(found[0], meta)


def _usual_limits(question: SizeQuestion, *, has_rate: bool) -> tuple[SizeQuestion, tuple[Finding, ...]]:
    limits = question.limits
    if has_rate:
        usual = replace(limits, max_utilisation=limits.max_utilisation or _USUAL_UTILISATION)
        return replace(question, limits=usual), ()
    if limits.max_imbalance is not None or limits.max_utilisation is not None or limits.no_idle:
        return question, ()
    text = f"limits assumed: imbalance at most {_USUAL_IMBALANCE:g} (--max-imbalance) and no idle consumer (--no-idle)"
    usual = replace(limits, max_imbalance=_USUAL_IMBALANCE, no_idle=True)
    return replace(question, limits=usual), (Finding("assumed-limits", text, severity=INFO),)


def _is_new(snapshot: ClusterSnapshot, group: str | None, topics: Sequence[str]) -> bool:
    """Whether the group does not run: it has the topics that are named, and no consumers."""
    only = next(iter(snapshot.groups)) if len(snapshot.groups) == 1 else ""
    seen = snapshot.groups.get(only if group is None else group)
    return (seen is None or seen.client_ids is None) and bool(topics or seen is not None or not snapshot.groups)


def _subscribed(group: Group, present: Sequence[str]) -> Mapping[str, frozenset[str]]:
    topics = {route.topic for route in group.pulled_routes}
    read = {client_id: group.subscribed[client_id] for client_id in present if client_id in group.subscribed}
    return {client_id: own for client_id, own in read.items() if not topics <= own}


def _findings(question: SizeQuestion, group: Group) -> Iterator[Finding]:
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


def _with_work(
    group: Group, question: SizeQuestion, rates: KnownRates, consume_us: int | None, threads: int | None
) -> tuple[SizeQuestion, Callable[[GroupSize], GroupSize]]:
    """The question with amounts in the time of a thread, and what gives its answer amounts in messages.

    Raises DataError for unknown rates, consume times and lags, and for rates of topics that get no queue.
    """
    queues, evidence = group.pulled_queues, evidence_of(group)
    consume_ms, batch = _consume_ms([route.topic for route in group.pulled_routes], consume_us, evidence)
    with_queues = {queue.topic for queue in queues}
    of_topics = {topic: rate for topic, rate in rates.of_topics.items() if topic not in with_queues}
    unknown = list(dict.fromkeys(queue.topic for queue in queues if queue not in rates.of_queues))
    if unknown:
        text = f"the rate of {counted(len(unknown), 'topic')} is unknown ({', '.join(unknown[:3])})"
        raise DataError(text, hint=f"pass --rate {unknown[0]}=R", code="rate-unknown")
    if of_topics and not rates.of_queues and question.queues_per_broker is None:
        text = f"no readable queue in {', '.join(of_topics)}: consumers get none of its messages"
        hint = "pass the planned number of read queues with --queues-per-broker N..M"
        raise DataError(text, hint=hint, code="no-readable-queue")
    lags = {} if question.limits.drain_in_ms is None else _lag(group)
    seconds = {topic: ms / 1000 for topic, ms in consume_ms.items()}

    def of_topic(topic: SizedTopic) -> SizedTopic:
        own = [rate for queue, rate in rates.of_queues.items() if queue.topic == topic.topic]
        rate = fsum(own) if own else of_topics.get(topic.topic)
        return replace(topic, rate_per_second=rate, consume_ms=consume_ms[topic.topic])

    def answered(size: GroupSize) -> GroupSize:
        outage_s = (size.limits.outage_ms or 0.0) / 1000
        messages = {"catch-up": outage_s * fsum((*rates.of_queues.values(), *of_topics.values()))}
        messages["drain-in"] = sum(lags.values())
        return replace(
            size,
            topics=tuple(map(of_topic, size.topics)),
            backlogs=tuple(replace(each, messages=messages[each.limit]) for each in size.backlogs),
            threads_reported=threads is None and any(each.threads for each in evidence),
            rates=rates.source,
        )

    return replace(
        question,
        work={queue: rate * seconds[queue.topic] for queue, rate in rates.of_queues.items()},
        work_of_topics={topic: rate * seconds[topic] for topic, rate in of_topics.items()},
        lag={queue: lag * seconds[queue.topic] for queue, lag in lags.items()},
        threads=threads or threads_of(*evidence),
        batch=full_call(batch),
        ahead={topic: PULLED_AHEAD * consume_s for topic, consume_s in seconds.items()},
    ), answered


def _lag(group: Group) -> dict[MessageQueue, int]:
    lags = {queue: group.states[queue].lag if queue in group.states else None for queue in group.pulled_queues}
    known = {queue: lag for queue, lag in lags.items() if lag is not None}
    if unknown := [queue for queue in lags if queue not in known]:
        text = f"the lag of {counted(len(unknown), 'queue')} is unknown, such as {queue_ranges(unknown[:1])}"
        hint = "use a source that has the offsets of the group, or plan for an outage with --outage 30m"
        raise DataError(text, hint=hint, code="lag-unknown")
    return known


def _consume_ms(
    topics: Sequence[str], typed_us: int | None, evidence: Sequence[ConsumerEvidence]
) -> tuple[dict[str, float], int]:
    """How long a listener takes for a message of each topic, as typed or the longest reported; messages of a call.

    Reports are of calls. A call of an orderly consumer has as many messages as its batch while messages wait; one of a
    concurrent consumer, only while they wait at the broker.
    """
    if typed_us is not None:
        return dict.fromkeys(topics, typed_us / 1000), 1
    batch = min((each.batch or 1 for each in evidence), default=1)
    orderly, found = any(each.orderly for each in evidence), dict[str, float]()
    for topic in topics:
        known = [each.statuses[topic].consume_ms for each in evidence if each.statuses and topic in each.statuses]
        found[topic] = max((each for each in known if each), default=0.0) / (batch if orderly else 1)
        if not found[topic]:
            text = f"no consumer reports the consume time per message of {topic}"
            raise DataError(text, hint="pass --consume-time 40ms", code="consume-time-unknown")
    return found, 1 if orderly else batch
