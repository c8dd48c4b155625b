"""Drain times: when the lag of a queue, a consumer or a group is gone at the rates between the last three samples.

- Stored offsets are exact, but a sample's queues are read within 2 s. Consumers commit every 5 s, so the offsets of two
  samples `span` apart may differ by what was consumed in `span` ± 7 s, and two calls of the listener more. From this
  follow the bounds of a drain time.
- A lag that commits explain counts as none, as in a diagnosis.
- The slowest queue decides. Queues with lag of one concurrent Java consumer share its threads (`engine/backlog.py`), so
  the last ones are consumed faster. So do those of an orderly one with fewer threads than queues. POP consumers share
  all queues.
- Batches: the present consumption does not last, since messages that come in at the end come alone. The threads and the
  time of a call count, as reported.
- Consumed messages that fail come back from the retry topic, whose queues count. Messages that wait for their delay are
  in no queue, so the time has no upper bound while some may wait.
- What two successive intervals contradict, or the bounds of both rates leave open, is unknown.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, inf

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.backlog import PULLED_AHEAD, Flow, Pool, backlog, full_call, gone_in
from rmqlb.engine.diagnose.evidence import SAMPLES, GroupEvidence, queue_text
from rmqlb.engine.diagnose.lags import COMMITTED_MS, SPAN_MS, LagSamples, lags_of, may_store_elsewhere, queue_lag
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Drain, QueueDrain
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, States, retry_topic
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, threads_of
from rmqlb.model.result import rate_text, sum_if_known

READ_MS = 2_000  # a sample's queues are read within this time
RETURNS_MS = 10_000  # the delay of a message that failed once (level 3 of `messageDelayLevel`)
_ONE_SAMPLE = "needs 2 samples, got 1"
_MOST_SHARING = 64  # more queues with lag of one consumer get one drain time: the model's work is quadratic


class Drains(Struct, frozen=True):
    group: Drain
    consumers: Mapping[str, Drain] = {}  # client ID → the drain time of its queues; only consumers known to own some
    queues: Mapping[MessageQueue, Drain] = {}
    listed: tuple[QueueDrain, ...] = ()  # those that never drain first, then unknown ones, then the slowest


class Shared(Struct, frozen=True):
    """Queues with lag that take their shares of one consumption."""

    costs: Mapping[MessageQueue, float]  # thread time per message, in any unit; in seconds if `batch` is not 1
    certain: bool = True  # False: each may also have a consumption of its own
    equal: bool = True  # they get equal rates; False: any of them may get all
    orderly: bool = False
    threads: int | None = None  # of the consumer, where they limit more than the sum; None: they do not
    batch: float = 1.0  # messages of a full call
    cached: int = PULLED_AHEAD


def drains_of(evidence: GroupEvidence) -> Drains:
    try:
        lags, queues = _recent(evidence), sort_queues(evidence.queues)
    except DataError as error:
        return Drains(_unknown(error.message))
    if not queues:
        return Drains(_unknown("no readable queue"))
    queues += sort_queues(lags.keys() - {*queues})  # of the retry topic
    owners = _owners(evidence, queues)
    by_owner = grouped((client_id, queue) for queue, ids in owners.items() for client_id in ids)
    found = queue_drains(lags, _sharing(evidence, lags, by_owner))
    each = {queue: found[queue] if queue in found else _unknown("its offsets are unknown") for queue in queues}
    consumers = {client_id: slowest({queue: each[queue] for queue in own}) for client_id, own in by_owner.items()}
    group = slowest(each)
    if evidence.facts.owns_nothing:
        if len({lag.at for lag in lags.values()}) != 1 or len(lags) < len(each):
            lacking = f"the offsets of {len(each) - len(lags)} queues are unknown" if len(lags) < len(each) else None
            group = _unknown(lacking or "some of its queues are missing in some samples")
        elif group.drains == "never" and group.consumed_per_second and group.inflow_per_second:
            needed = group.inflow_per_second / group.consumed_per_second * len(evidence.processes)
            group = replace(group, consumers_at_least=floor(needed) + 1 if needed else None)
    elif group.drains == "never":
        group = replace(group, consumers_at_least=_needed(group, consumers.values(), each.values()))
    return Drains(_until_returned(group, evidence), consumers, each, _listed(evidence.facts.states, each, owners))


def _owners(evidence: GroupEvidence, queues: Iterable[MessageQueue]) -> dict[MessageQueue, tuple[str, ...]]:
    """The owners of queues, observed or predicted; of retries, observed. Queues with unknown owners are absent."""
    owned = None if evidence.facts.owns_nothing else known(lambda: evidence.facts.ownership)
    if owned is None or owned.unknown or owned.basis == "assumed":
        return {}
    observed = {queue: state.owners for queue, state in evidence.facts.states.items()}
    each = ((queue, owned.owners.get(queue, observed.get(queue))) for queue in queues)
    return {queue: tuple(sort_client_ids(ids)) for queue, ids in each if ids is not None}


def _listed(
    states: States, drains: Mapping[MessageQueue, Drain], owners: Mapping[MessageQueue, tuple[str, ...]]
) -> tuple[QueueDrain, ...]:
    lags = {queue: state.lag for queue, state in states.items()}
    found = [
        QueueDrain(queue.topic, queue.broker_name, queue.queue_id, owners.get(queue), lags.get(queue), drain)
        for queue, drain in drains.items()
    ]
    kinds = ("never", "unknown", "finite")
    found.sort(key=lambda each: (kinds.index(each.drain.drains), -(each.drain.drain_ms or 0), -(each.lag or 0)))
    return tuple(found)


def _recent(evidence: GroupEvidence) -> Mapping[MessageQueue, LagSamples]:
    """The queues over the last samples, without those whose offsets are unknown (raises DataError)."""
    if evidence.group.message_model == BROADCASTING:
        raise DataError("BROADCASTING consumers keep their own offsets")
    states = evidence.facts.states
    retried = [queue for queue in states if queue.topic == retry_topic(evidence.facts.name or "")]
    queues = dict.fromkeys((*evidence.queues, *retried))
    if evidence.earlier:
        if may_store_elsewhere(evidence):
            raise DataError("its consumers pull on their own, and may store their offsets elsewhere")
        return lags_of(GroupEvidence(evidence.facts, evidence.earlier[1 - SAMPLES :]), queues).queues
    lags = {queue: states[queue].lag for queue in queues if queue in states}
    return {queue: queue_lag((0,), (0,), (lag,)) for queue, lag in lags.items() if lag is not None}


def _sharing(
    evidence: GroupEvidence, lags: Mapping[MessageQueue, LagSamples], by_owner: Mapping[str, Sequence[MessageQueue]]
) -> Iterator[Shared]:
    if evidence.facts.owns_nothing and len({lag.at for lag in lags.values()}) == 1:
        yield Shared({queue: 1.0 for queue, lag in lags.items() if _waited(lag)}, equal=False)
    owners = Counter(queue for queues in by_owner.values() for queue in queues)
    for client_id, queues in by_owner.items():
        report = evidence.report_of(client_id)
        own = {queue: lags[queue] for queue in queues if queue in lags and owners[queue] == 1}
        waited = [queue for queue, lag in own.items() if _waited(lag)]
        busy = [queue for queue, lag in own.items() if lag.per_s > 0 or queue in waited]
        turns = report.orderly and _take_turns([own[queue] for queue in busy], report.threads)
        sharing = busy if turns else waited
        if len({own[queue].at for queue in sharing}) > 1 or evidence.processes[client_id] != 1:
            continue
        topics = {queue.topic for queue in sharing}
        times = {topic: (report.statuses or {}).get(topic, ConsumeStatus()).consume_ms or 0.0 for topic in topics}
        is_compared = len(topics) > 1 and min(times.values()) > 0
        costs = {queue: times[queue.topic] if is_compared else 1.0 for queue in sharing}
        connection = evidence.group.connection_of.get(client_id)
        is_java = connection is not None and connection.language == "JAVA"
        certain = is_java and report.orderly is not None and (is_compared or len(topics) == 1)
        is_pool = certain and not report.orderly
        moving = [queue for queue in waited if own[queue].per_s]
        if turns and certain:
            yield Shared(costs, orderly=True, threads=report.threads)
        elif report.orderly and len(waited) <= threads_of(report):
            continue
        elif is_pool and waited and (report.batch or 1) > 1 and report.threads and all(times.values()):
            seconds = {queue: times[queue.topic] / 1000 for queue in waited}
            limit = report.limits.messages or PULLED_AHEAD
            yield Shared(seconds, threads=report.threads, batch=full_call(report.batch or 1), cached=limit)
        elif is_pool and len(waited) > 1 and _are_cached(report, waited):
            yield Shared(costs)
        elif len(moving) > 1 and _is_fair([own[queue] for queue in moving], own.values()):
            yield Shared({queue: costs[queue] for queue in moving}, certain=is_pool)


def _waited(lag: LagSamples) -> bool:
    """Whether messages wait, or did at an earlier sample; such consumption is available to queues with lag."""
    drain = _without_rates(lag)
    return drain is None or (drain.drains == "finite" and max(lag.lags) > lag.per_s * COMMITTED_MS / 1000)


def _are_cached(report: ConsumerEvidence, queues: Iterable[MessageQueue]) -> bool:
    """Whether messages of each queue wait in its consumer for a thread, so threads limit its rate, not pulls.

    Threads take messages in the order of their pulls. A round over 1,000 messages of each queue may last longer than
    the samples, in which some queue then seems to stand still.
    """
    cached = {each.queue: each.cached or 0 for each in report.queues or ()}
    return all(cached.get(queue) for queue in queues)


def _take_turns(queues: Collection[LagSamples], threads: int | None) -> bool:
    """Whether all threads of an orderly consumer were busy, some queues at a time (`MAX_TIME_CONSUME_CONTINUOUSLY`)."""
    if threads is None or len(queues) <= threads or any(lag.state == "rewound" for lag in queues):
        return False
    waiting = [[lag > each.inflow_per_s * COMMITTED_MS / 1000 for lag in each.lags] for each in queues]
    return min(map(sum, zip(*waiting, strict=False))) >= threads


def _is_fair(waited: Sequence[LagSamples], own: Iterable[LagSamples]) -> bool:
    """Whether queues with lag may have equal rates, and other queues of their consumer no higher ones."""
    level = min((_speeds(lag)[1].consumed for lag in waited if _without_rates(lag) is None), default=inf)
    return all(_speeds(lag)[2].consumed <= level for lag in own if lag.span_ms)


def _unknown(reason: str, inflow: float | None = None, consumed: float | None = None) -> Drain:
    return Drain("unknown", inflow_per_second=inflow, consumed_per_second=consumed, reason=reason)


class _Speed(Struct, frozen=True):
    lag: float
    inflow: float  # messages per second
    consumed: float


def _speeds(lag: LagSamples) -> tuple[_Speed, ...]:
    """Speeds: the measured one, the fastest and slowest within the bounds, and that between each two samples."""
    span_s, last = lag.span_ms / 1000, lag.lags[-1]
    late_s = (COMMITTED_MS + 2 * lag.call_ms) / 1000
    least, most = _bounds(lag.per_s * span_s, span_s, late_s)
    least_inflow, most_inflow = _bounds(lag.inflow_per_s * span_s, span_s, READ_MS / 1000)
    samples = pairwise(zip(lag.at, lag.offsets, lag.lags, strict=True))
    steps = [((b - a) / 1000, after - before, end - begin) for (a, before, begin), (b, after, end) in samples]
    return (
        _Speed(last, lag.inflow_per_s, lag.per_s),
        _Speed(max(last - most * late_s, 0), least_inflow, most),
        _Speed(last, most_inflow, least),
        *(_Speed(last, (number + grown) / step_s, number / step_s) for step_s, number, grown in steps),
    )


def _bounds(number: float, span_s: float, off_s: float) -> tuple[float, float]:
    """The least and the most messages per second, of a number in `span_s` ± `off_s`."""
    most = (number + 1) / (span_s - off_s) if span_s > off_s else inf
    return max(number - 1, 0) / (span_s + off_s), most


class _Ends(Struct, frozen=True):
    """The milliseconds until a lag is gone at each speed (`_speeds`); None is never."""

    present: float | None
    fastest: float | None
    slowest: float | None
    steps: tuple[float | None, ...]
    inflow: float  # of all queues that share the consumption
    consumed: float


def _ends(lags: Mapping[MessageQueue, LagSamples], shared: Shared) -> dict[MessageQueue, _Ends]:
    by_speed = zip(*map(_speeds, lags.values()), strict=True)
    present, fast, *others = (dict(zip(lags, each, strict=True)) for each in by_speed)
    full = {queue: _full(lag, shared.cached) for queue, lag in lags.items()}
    now, slowest, *steps = (_gone(each, shared, full) for each in (present, *others))
    fastest = _gone(fast, shared, {})
    rates = sum(lag.inflow_per_s for lag in lags.values()), sum(lag.per_s for lag in lags.values())
    return {q: _Ends(now[q], fastest[q], slowest[q], tuple(step[q] for step in steps), *rates) for q in lags}


def _full(lag: LagSamples, cached: int) -> float:
    """The messages of the lag that come in full calls, judged by those that waited at the broker in the samples.

    Messages that come in after all others are cached come alone.
    """
    samples = [*zip(lag.offsets, lag.lags, strict=True)]
    for (offset, before), (later, after) in reversed([*pairwise(samples)]):
        if before > cached >= after:
            consumed = (later - offset) * (cached - after) / (before - after)
            return max(cached - consumed - (lag.offsets[-1] - later), 0.0)
    return lag.lags[-1] if lag.lags[-1] > cached else 0.0


def _gone(
    speeds: Mapping[MessageQueue, _Speed], shared: Shared, full: Mapping[MessageQueue, float]
) -> Mapping[MessageQueue, float | None]:
    """When each lag is gone; `full` has the messages that come in full calls, all of them for absent queues."""
    costs, threads = shared.costs, shared.threads
    capacity = sum(speed.consumed * costs[queue] for queue, speed in speeds.items())
    if shared.batch == 1 and capacity in (0, inf):
        return dict.fromkeys(speeds, 0.0 if capacity else None)
    if shared.batch > 1 or (shared.equal and 1 < len(speeds) <= _MOST_SHARING):
        pool = Pool(capacity if threads is None else threads, shared.orderly)
        scale = threads / capacity if threads is not None and shared.batch == 1 else 1.0
        flows = {
            queue: Flow(
                *(each.inflow, costs[queue] * scale, each.lag, ("",)), *(shared.batch, shared.cached, full.get(queue))
            )
            for queue, each in speeds.items()
        }
        ends = backlog(flows, {"": pool}).queues
        return {queue: None if (gone_s := lag.gone_s) is None else 1000 * gone_s for queue, lag in ends.items()}
    lag = sum(1000 * speed.lag * costs[queue] for queue, speed in speeds.items())
    inflow = sum(speed.inflow * costs[queue] for queue, speed in speeds.items())
    return dict.fromkeys(speeds, gone_in(lag, inflow, capacity))


def queue_drains(lags: Mapping[MessageQueue, LagSamples], shared: Iterable[Shared] = ()) -> dict[MessageQueue, Drain]:
    """The drain time of each queue; a queue in no `shared` has a consumption of its own."""
    pools = [pool for pool in shared if pool.costs]
    certain = {queue: pool.certain for pool in pools for queue in pool.costs}
    together = {q: ends for pool in pools for q, ends in _ends({each: lags[each] for each in pool.costs}, pool).items()}
    found = {}
    for queue, lag in lags.items():
        if (drain := _without_rates(lag)) is None:
            ends = together[queue] if certain.get(queue) else _alone(lag)
            drain = _drain(lag, ends, together.get(queue, ends).fastest)
        elif lag.lags[-1] and certain.get(queue) and drain.drain_ms_at_most is not None:
            # Commits may explain its lag; otherwise the lag of other queues delays it.
            slowest_ms = together[queue].slowest
            most = None if slowest_ms is None else max(drain.drain_ms_at_most, slowest_ms + READ_MS)
            drain = replace(drain, drain_ms_at_most=most)
        found[queue] = drain
    return found


def _alone(lag: LagSamples) -> _Ends:
    queue = MessageQueue("", "", 0)
    return _ends({queue: lag}, Shared({queue: 1.0}))[queue]


def _without_rates(lag: LagSamples) -> Drain | None:
    """The drain time where no rates decide, since no messages wait, or none are known; None otherwise."""
    consumed, inflow = lag.per_s, lag.inflow_per_s
    if not lag.lags[-1]:
        return Drain("finite", 0, 0, 0, *((inflow, consumed) if lag.span_ms else ()))
    if not lag.span_ms:
        return _unknown(_ONE_SAMPLE)
    if lag.state == "rewound" or min(min(each.inflow, each.consumed) for each in _speeds(lag)) < 0:
        return _unknown("offsets went back between the samples")
    if lag.lags[-1] > consumed * COMMITTED_MS / 1000:
        return None
    at_most = _alone(lag).slowest
    return Drain("finite", 0, 0, None if at_most is None else at_most + READ_MS, inflow, consumed)


def _drain(lag: LagSamples, ends: _Ends, sharing: float | None) -> Drain:
    """The drain time of waiting messages; `sharing` is when their lag ends at the fastest if the queue shares."""
    consumed, inflow = lag.per_s, lag.inflow_per_s
    usual = consumed * COMMITTED_MS / 1000
    if len({end is None for end in (ends.present, *ends.steps)}) > 1 or min(lag.lags[1:-1], default=inf) <= usual:
        return _unknown("its lag did not change the same way between the samples", inflow, consumed)
    if ends.present is not None:
        measured = [end for end in ends.steps if end is not None]
        at_least = min(end for end in (ends.fastest, sharing, *measured) if end is not None)
        at_most = None if ends.slowest is None else max(ends.slowest + READ_MS, *measured)
        return Drain("finite", ends.present, at_least, at_most, inflow, consumed)
    needed_ms = max(SPAN_MS, 2 * lag.call_ms)
    if (consumed == 0 and lag.span_ms >= needed_ms) or (consumed and ends.fastest is None and sharing is None):
        reason = _never(ends.inflow, ends.consumed)
        return Drain("never", inflow_per_second=inflow, consumed_per_second=consumed, reason=reason)
    reason = f"its offsets do not move; needs samples over at least {ceil(needed_ms / 1000)} s"
    if consumed:
        rates = f"inflow {rate_text(ends.inflow)}/s and consumption {rate_text(ends.consumed)}/s"
        reason = f"{rates} are too close: needs samples over more time"
        if ends.fastest is None:
            reason = f"{rates}, but its consumer may read it faster when its other queues have no lag"
    return _unknown(reason, inflow, consumed)


def _until_returned(drain: Drain, evidence: GroupEvidence) -> Drain:
    """The drain time with failed messages, which return after a delay that grows with each failure."""
    reports = [report for client_id in evidence.processes if not (report := evidence.report_of(client_id)).orderly]
    statuses = [pair for report in reports for pair in (report.statuses or {}).items()]
    retries = [status for topic, status in statuses if topic.startswith(RETRY_PREFIX)]
    again = any(status.failed_per_s or status.failed_last_hour for status in retries)
    failing = sum(status.failed_per_s or 0 for topic, status in statuses if not topic.startswith(RETRY_PREFIX))
    if not drain.drain_ms or not (failing or again):
        return drain
    at_most = None if again or not retries else drain.drain_ms_at_most
    which = f"{rate_text(failing)}/s fail and" if failing else "messages that failed again"
    return replace(
        drain,
        drain_ms=drain.drain_ms + (RETURNS_MS if failing else 0),
        drain_ms_at_most=None if at_most is None else at_most + RETURNS_MS + READ_MS,
        reason=f"{which} come back after {'30 s' if again else '10 s'} or more",
    )


def slowest(drains: Mapping[MessageQueue, Drain]) -> Drain:
    """The drain time of queues with separate consumption: that of the slowest queue."""
    inflows, consumptions = zip(
        *((each.inflow_per_second, each.consumed_per_second) for each in drains.values()), strict=True
    )
    inflow, consumed = sum_if_known(inflows), sum_if_known(consumptions)
    of = {kind: {q: each for q, each in drains.items() if each.drains == kind} for kind in ("never", "unknown")}
    if never := of["never"]:
        queue, worst = max(never.items(), key=lambda pair: pair[1].inflow_per_second or 0)
        reason = worst.reason if len(drains) == 1 else f"{queue_text(queue)}: {worst.reason}"
        if inflow is not None and consumed is not None and consumed <= inflow:
            reason = _never(inflow, consumed)
        return Drain("never", inflow_per_second=inflow, consumed_per_second=consumed, reason=reason)
    if unknown := of["unknown"]:
        queue, first = next(iter(unknown.items()))
        is_of_all = len(drains) == 1 or {each.reason for each in unknown.values()} == {_ONE_SAMPLE}
        reason = f"{first.reason}" if is_of_all else f"{queue_text(queue)}: {first.reason}"
        return _unknown(reason, inflow, consumed)
    waiting = [each for each in drains.values() if each.drain_ms] or [*drains.values()]
    has_most = all(each.drain_ms_at_most is not None for each in waiting)
    return Drain(
        "finite",
        max(each.drain_ms or 0 for each in drains.values()),
        max(each.drain_ms_at_least or 0 for each in drains.values()),
        max(each.drain_ms_at_most or 0 for each in drains.values()) if has_most else None,
        inflow,
        consumed,
    )


def _needed(group: Drain, consumers: Iterable[Drain], queues: Iterable[Drain]) -> int | None:
    """The fewest consumers, each as fast as the fastest one, that exceed the inflow; None if no number does.

    A queue has one consumer: its inflow must be below the rate of one, and more consumers than queues do not help.
    """
    rates, each = [consumer.consumed_per_second for consumer in consumers], [*queues]
    fastest = max((each for each in rates if each is not None), default=0.0)
    if None in rates or group.inflow_per_second is None or fastest <= max(q.inflow_per_second or 0 for q in each):
        return None
    number = floor(group.inflow_per_second / fastest) + 1
    return number if len(rates) < number <= len(each) else None


def _never(inflow: float, consumed: float) -> str:
    return f"never at this rate: inflow {rate_text(inflow)}/s, consumption {rate_text(consumed)}/s"
