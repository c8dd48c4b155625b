"""Drain times: when the lag of a queue, a consumer or a group is gone at the rates between the last three samples.

- Stored offsets are exact, but a sample's queues are read within 2 s. Consumers commit every 5 s, so the offsets of two
  samples `span` apart may differ by what was consumed in `span` ± 7 s, and two calls of the listener more. From this
  follow the bounds of a drain time.
- A lag that commits explain counts as none, as in a diagnosis.
- The slowest queue decides, since a queue has one consumer. POP consumers share the queues, so sums decide.
- What two successive intervals contradict, or the bounds of both rates leave open, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, inf

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.diagnose.evidence import LOOKS, GroupEvidence, queue_text
from rmqlb.engine.diagnose.lags import COMMITTED_MS, SPAN_MS, QueueLag, lags_of, may_store_elsewhere, queue_lag
from rmqlb.engine.group import known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Drain
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.result import rate_text

READ_MS = 2_000  # a sample's queues are read within this time
_ONE_SAMPLE = "needs 2 samples, got 1"


class Drains(Struct, frozen=True):
    group: Drain
    consumers: Mapping[str, Drain] = {}  # client ID → the drain time of its queues; only consumers known to own some
    queues: Mapping[MessageQueue, Drain] = {}


def drains_of(evidence: GroupEvidence) -> Drains:
    try:
        lags, queues = _recent(evidence), sort_queues(evidence.queues)
    except DataError as error:
        return Drains(_unknown(error.message))
    if not queues:
        return Drains(_unknown("no readable queue"))
    each = {
        queue: queue_drain(lags[queue]) if queue in lags else _unknown("its offsets are unknown") for queue in queues
    }
    if evidence.facts.owns_nothing:
        group = shared_drain([lags[queue] for queue in each if queue in lags], len(each))
        if group.drains == "never" and group.consumed_per_second and group.inflow_per_second:
            needed = group.inflow_per_second / group.consumed_per_second * len(evidence.processes)
            group = replace(group, consumers_at_least=floor(needed) + 1 if needed else None)
        return Drains(group, queues=each)
    owned = known(lambda: evidence.facts.ownership)
    by_owner: dict[str, dict[MessageQueue, Drain]] = {}
    if owned is not None and not owned.unknown and owned.basis != "assumed":
        for queue, drain in each.items():
            for client_id in owned.owners.get(queue, ()):
                by_owner.setdefault(client_id, {})[queue] = drain
    consumers = {client_id: slowest(own) for client_id, own in by_owner.items()}
    group = slowest(each)
    if group.drains == "never":
        group = replace(group, consumers_at_least=_needed(group, consumers.values(), each.values()))
    return Drains(group, consumers, each)


def _recent(evidence: GroupEvidence) -> Mapping[MessageQueue, QueueLag]:
    """The queues over the last samples, without those whose offsets are unknown (raises DataError)."""
    if evidence.group.message_model == BROADCASTING:
        raise DataError("BROADCASTING consumers keep their offsets themselves")
    if evidence.earlier:
        if may_store_elsewhere(evidence):
            raise DataError("its consumers pull on their own, and may store their offsets elsewhere")
        return lags_of(GroupEvidence(evidence.facts, evidence.earlier[1 - LOOKS :])).queues
    states = evidence.facts.states
    lags = {queue: states[queue].lag for queue in evidence.queues if queue in states}
    return {queue: queue_lag((0,), (0,), (lag,)) for queue, lag in lags.items() if lag is not None}


def _unknown(reason: str, inflow: float | None = None, consumed: float | None = None) -> Drain:
    return Drain("unknown", inflow_per_second=inflow, consumed_per_second=consumed, reason=reason)


def queue_drain(lag: QueueLag, queues: int = 1) -> Drain:
    """The drain time of a queue, or of the sums over several queues.

    >>> lag = queue_lag((0, 100_000, 200_000), (0, 31_000, 62_000), (88_000, 69_000, 50_000))
    >>> queue_drain(lag).drain_ms == 50_000 * 1000 / (310 - 120)
    True
    """
    span_s, last, consumed, inflow = lag.span_ms / 1000, lag.lags[-1], lag.per_s, lag.inflow_per_s
    if not last:
        return Drain("finite", 0, 0, 0, *((inflow, consumed) if span_s else ()))
    if not span_s:
        return _unknown(_ONE_SAMPLE)
    if lag.state == "rewound" or consumed < 0 or inflow < 0:
        return _unknown("offsets went back between the samples")
    late_s = (COMMITTED_MS + 2 * lag.call_ms) / 1000
    least, most = _bounds(consumed * span_s, span_s, late_s, queues)
    least_inflow, most_inflow = _bounds(inflow * span_s, span_s, READ_MS / 1000, queues)
    at_most = last * 1000 / (least - most_inflow) + READ_MS if least > most_inflow else None
    usual = consumed * COMMITTED_MS / 1000
    if last <= usual:
        return Drain("finite", 0, 0, at_most, inflow, consumed)
    looks = pairwise(zip(lag.at, lag.lags, strict=True))
    steps = [(before - after) * 1000 / (then - at) for (at, before), (then, after) in looks]
    if min(steps) <= 0 < max(steps) or min(lag.lags[1:-1], default=inf) <= usual:
        return _unknown("its lag did not change the same way between the samples", inflow, consumed)
    if min(steps) > 0:
        by_step = [last * 1000 / step for step in steps]
        at_least = max(last - most * late_s, 0) * 1000 / (most - least_inflow)
        at_most = None if at_most is None else max(at_most, *by_step)
        return Drain("finite", last * 1000 / (consumed - inflow), min(at_least, *by_step), at_most, inflow, consumed)
    needed_ms = max(SPAN_MS, 2 * lag.call_ms)
    stands = consumed == 0 and lag.span_ms >= needed_ms
    if stands or (consumed and most <= least_inflow):
        return Drain("never", inflow_per_second=inflow, consumed_per_second=consumed, reason=_never(inflow, consumed))
    reason = f"its offsets stand still: needs samples over at least {ceil(needed_ms / 1000)} s"
    if consumed:
        rates = f"inflow {rate_text(inflow)}/s and consumption {rate_text(consumed)}/s"
        reason = f"{rates} are too close: needs samples over more time"
    return _unknown(reason, inflow, consumed)


def _bounds(number: float, span_s: float, off_s: float, queues: int) -> tuple[float, float]:
    """The least and the most messages per second, of a number in `span_s` ± `off_s`."""
    most = (number + queues) / (span_s - off_s) if span_s > off_s else inf
    return max(number - queues, 0) / (span_s + off_s), most


def shared_drain(lags: Sequence[QueueLag], queues: int) -> Drain:
    """The drain time of queues that all consumers share."""
    if len(lags) < queues:
        return _unknown(f"the offsets of {queues - len(lags)} queues are unknown")
    if len({lag.at for lag in lags}) != 1:
        return _unknown("some samples lack some of its queues")
    total = replace(
        lags[0],
        lags=tuple(map(sum, zip(*(lag.lags for lag in lags), strict=True))),
        state="rewound" if any(lag.state == "rewound" for lag in lags) else "undecided",
        call_ms=max(lag.call_ms for lag in lags),
        per_s=sum(lag.per_s for lag in lags),
        inflow_per_s=sum(lag.inflow_per_s for lag in lags),
    )
    return queue_drain(total, queues)


def slowest(drains: Mapping[MessageQueue, Drain]) -> Drain:
    """The drain time of queues of which each has its own consumption: that of the slowest queue."""
    inflows, consumptions = zip(
        *((each.inflow_per_second, each.consumed_per_second) for each in drains.values()), strict=True
    )
    inflow, consumed = _sum(inflows), _sum(consumptions)
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
    mosts = [each.drain_ms_at_most for each in waiting]
    return Drain(
        "finite",
        max(each.drain_ms or 0 for each in drains.values()),
        max(each.drain_ms_at_least or 0 for each in drains.values()),
        None if None in mosts else max(most or 0 for most in mosts),
        inflow,
        consumed,
    )


def _sum(rates: Iterable[float | None]) -> float | None:
    listed = [*rates]
    known_rates = [each for each in listed if each is not None]
    return sum(known_rates) if len(known_rates) == len(listed) else None


def _needed(group: Drain, consumers: Iterable[Drain], queues: Iterable[Drain]) -> int | None:
    """The least number of consumers whose rate, at most the fastest one's, exceeds the inflow; None if none would do.

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
