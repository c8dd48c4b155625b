"""The lag of a group while consumers and brokers come and go: the fluid model on the queues' simulated readers.

- A topic's inflow goes to its queues that exist and whose brokers run, in the ratio of their rates. A lost broker's
  messages so go to the other queues, and a new queue takes its part.
- A new owner without another reader begins at the stored offset: what is redelivered is lag again.
- Lag begins with the observed one.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rmqlb.engine.backlog import Change, Flow, Lag, Pool, backlog
from rmqlb.engine.rebalance.timelines import EventLog
from rmqlb.model.group import RETRY_PREFIX, States
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.message_queue import MessageQueue, grouped
from rmqlb.model.simulate_rebalance import LagCurve, LagOverTime, LagPoint, QueueLag, QueueTimeline

Switches = Sequence[tuple[int, bool]]
Reads = Mapping[MessageQueue, Sequence[tuple[int, int, str]]]  # queue → from, to, client ID


def lag_over_time(
    log: EventLog, lines: Sequence[QueueTimeline], scenario: GroupScenario, states: States, end_us: int
) -> LagOverTime | None:
    """The lag; None if a rate or a listener's time is unknown, or the consumers have no consume threads."""
    queues = [line.queue for line in lines]
    unknown = (each for each in queues if each not in scenario.rates and not each.topic.startswith(RETRY_PREFIX))
    known = scenario.consume_us > 0 and scenario.rates and not any(_is(log.there[each], 0) for each in unknown)
    kinds = {scenario.consumer_type, *scenario.consumer_types.values()}
    if not known or scenario.broadcasting or kinds != {"push"}:
        return None
    reads: dict[MessageQueue, list[tuple[int, int, str]]] = {queue: [] for queue in queues}
    for hold in log.holds:
        reads[hold.queue] += ((begin, end, hold.client_id) for begin, end in hold.reads(end_us))
    of_topics = grouped((queue.topic, rate) for queue, rate in scenario.rates.items())
    usual = {topic: sum(rates) / len(rates) for topic, rates in of_topics.items()}  # of queues that events add
    weights = {each: scenario.rates.get(each, usual.get(each.topic, 0.0)) for each in queues}
    switches = [*log.there.values(), *log.served.values()]
    inflow = {at: _inflow(log, weights, at) for at in {0, *(at for each in switches for at, _ in each)}}
    flows = {
        queue: Flow(
            inflow[0][queue],
            scenario.consume_us / SECOND_US,
            float((state.lag or 0) if (state := states.get(queue)) is not None else 0),
            _readers(reads[queue], 0, end_us),
        )
        for queue in queues
    }
    pools = {hold.client_id: Pool(scenario.consume_threads, scenario.orderly) for hold in log.holds}
    changes = [Change(at / SECOND_US, inflow=rates) for at, rates in inflow.items() if at > 0]
    for queue, spans in reads.items():
        times = sorted({at for begin, end, _ in spans for at in (begin, end) if 0 < at < end_us})
        changes += (Change(at / SECOND_US, {queue: _readers(spans, at, end_us)}) for at in times)
    found = backlog(flows, pools, [*changes, *_redelivered(lines, reads)])
    each = tuple(QueueLag(q.topic, q.broker_name, q.queue_id, lag=_curve(lag)) for q, lag in found.queues.items())
    return LagOverTime(_curve(found.group), each, scenario.consume_threads)


def _is(switches: Switches, at_us: int) -> bool:
    place = bisect_right(switches, at_us, key=lambda switch: switch[0])
    return place > 0 and switches[place - 1][1]


def _inflow(log: EventLog, weights: Mapping[MessageQueue, float], at_us: int) -> dict[MessageQueue, float]:
    total, taking = defaultdict[str, float](float), defaultdict[str, float](float)
    is_up = {each: _is(log.there[each], at_us) and _is(log.served.get(each, [(0, True)]), at_us) for each in weights}
    for queue, weight in weights.items():
        total[queue.topic] += weight * _is(log.there[queue], 0)
        taking[queue.topic] += weight * is_up[queue]
    scale = {topic: total[topic] / weight if weight else 0.0 for topic, weight in taking.items()}
    return {queue: weight * scale[queue.topic] * is_up[queue] for queue, weight in weights.items()}


def _readers(spans: Sequence[tuple[int, int, str]], at_us: int, end_us: int) -> tuple[str, ...]:
    """The readers from then on; the end of the simulation does not end them."""
    return tuple(dict.fromkeys(who for begin, end, who in spans if begin <= at_us and (at_us < end or end == end_us)))


def _redelivered(lines: Sequence[QueueTimeline], reads: Reads) -> list[Change]:
    found = []
    for line in lines:
        for each in line.takeovers:
            if each.reads_from_ms is None or not each.redelivered:
                continue
            at_us = round(each.reads_from_ms * 1000)
            if not any(begin < at_us < end for begin, end, _ in reads[line.queue]):
                found.append(Change(at_us / SECOND_US, again={line.queue: float(each.redelivered)}))
    return found


def _curve(lag: Lag) -> LagCurve:
    points = tuple(LagPoint(round(1000 * at, 3), round(messages, 3)) for at, messages in lag.points)
    peak = None if lag.peak is None else LagPoint(round(1000 * lag.peak[0], 3), round(lag.peak[1], 3))
    return LagCurve(points, peak, None if lag.gone_s is None else round(1000 * lag.gone_s, 3), round(lag.growth, 3))
