"""A `GroupReport` for machines: the `data` of the JSON, whose keys are fixed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from rmqlb.model.group_report import GroupReport, GroupTrials, Interval, QueueTimeline, Step, Takeover
from rmqlb.model.group_scenario import TIMER_NAMES, Event, Timers
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import TriedCondition
from rmqlb.model.times import milliseconds, milliseconds_if_known
from rmqlb.views.group.figures import figure_key, figures_data, trials_data
from rmqlb.views.report import conditions_data

if TYPE_CHECKING:
    from rmqlb.views.shapes import group as shapes
    from rmqlb.views.shapes import group_scenario as asked


class Part(Struct, frozen=True):
    """What one client id has of a simulation.

    Attributes:
        client_id: the id.
        at_start: queues that it owns at the beginning.
        at_end: queues that it owns at the end.
        taken: how often it took a queue.
    """

    client_id: str
    at_start: int
    at_end: int
    taken: int


def parts(report: GroupReport) -> list[Part]:
    """What each member has of the simulation, in the clients' order."""
    owned = [(one.intervals[0].owners, one.intervals[-1].owners) for one in report.timelines if one.intervals]
    at_start = Counter(owner for owners, _ in owned for owner in set(owners))
    at_end = Counter(owner for _, owners in owned for owner in set(owners))
    taken = Counter(takeover.client_id for one in report.timelines for takeover in one.takeovers)
    return [Part(each, at_start[each], at_end[each], taken[each]) for each in dict.fromkeys(report.members)]


def group_data(
    report: GroupReport, trials: GroupTrials | None, conditions: Sequence[TriedCondition], *, explain: bool
) -> shapes.GroupData:
    """The whole result."""
    return {
        "group": report.group,
        "strategy": report.strategy,
        "scenario": _scenario(report),
        "events": [_event(event) for event in report.events],
        "trial": report.trial,
        "endMs": milliseconds(report.end_us),
        "figures": figures_data(report.figures),
        "queues": [_timeline(timeline) for timeline in report.timelines],
        "consumers": [_part(part) for part in parts(report)],
        "steps": [_step(step) for step in report.steps] if explain else None,
        "trials": None if trials is None else trials_data(trials),
        "conditions": conditions_data(conditions),
    }


def timers_data(timers: Timers) -> asked.TimersData:
    """Every timer; null is what the client version does."""
    lengths = {figure_key(field): milliseconds_if_known(getattr(timers, field)) for field in TIMER_NAMES.values()}
    return cast("asked.TimersData", lengths)


def _scenario(report: GroupReport) -> asked.GroupScenarioData:
    s = report.scenario
    return {
        "clientVersion": s.client_version,
        "profile": report.profile,
        "orderly": s.orderly,
        "broadcasting": s.broadcasting,
        "consumeFromWhere": s.consume_from,
        "consumerType": s.consumer_type,
        "consumerTypes": dict(s.consumer_types),
        "timers": timers_data(s.timers),
        "latencyMs": milliseconds(s.latency_us),
        "consumeMs": milliseconds(s.consume_us),
        "rates": [{**_queue(queue), "ratePerSecond": rate} for queue, rate in sorted(s.rates.items())],
        "untilMs": milliseconds_if_known(s.until_us),
        "patienceMs": milliseconds(s.patience_us),
        "allNew": s.all_new,
        "seed": s.seed,
    }


def _event(event: Event) -> asked.EventData:
    return {
        "atMs": milliseconds(event.at_us),
        "kind": event.kind,
        "subject": event.subject,
        "strategy": event.strategy_name,
        "brokerName": event.broker_name,
        "readQueueNums": event.read_queues,
        "writeQueueNums": event.write_queues,
        "withSlaves": event.with_slaves,
        "text": event.text,
    }


def _timeline(timeline: QueueTimeline) -> shapes.QueueTimelineData:
    return {
        **_queue(timeline.queue),
        "noneMs": milliseconds(timeline.none_us),
        "longestNoneMs": milliseconds(timeline.longest_none_us),
        "severalMs": milliseconds(timeline.several_us),
        "longestSeveralMs": milliseconds(timeline.longest_several_us),
        "outageMs": milliseconds(timeline.outage_us),
        "longestOutageMs": milliseconds(timeline.longest_outage_us),
        "unreadMs": milliseconds(timeline.unread_us),
        "again": timeline.again,
        "intervals": [_interval(interval) for interval in timeline.intervals],
        "takeovers": [_takeover(takeover) for takeover in timeline.takeovers],
    }


def _interval(interval: Interval) -> shapes.IntervalData:
    return {
        "fromMs": milliseconds(interval.from_us),
        "toMs": milliseconds(interval.to_us),
        "state": interval.state,
        "owners": list(interval.owners),
    }


def _takeover(takeover: Takeover) -> shapes.TakeoverData:
    return {
        "clientId": takeover.client_id,
        "atMs": milliseconds(takeover.at_us),
        "readsFromMs": milliseconds_if_known(takeover.reads_from_us),
        "unreadMs": milliseconds_if_known(takeover.unread_us),
        "startRule": takeover.start.rule,
        "startOffset": takeover.start.offset,
        "startReason": takeover.start.reason,
        "againMs": milliseconds(takeover.again_us),
        "again": takeover.again,
    }


def _part(part: Part) -> shapes.GroupConsumerData:
    return {
        "clientId": part.client_id,
        "queuesAtStart": part.at_start,
        "queuesAtEnd": part.at_end,
        "taken": part.taken,
    }


def _step(step: Step) -> shapes.StepData:
    return {
        "atMs": milliseconds(step.at_us),
        "who": step.who,
        "what": step.what,
        "text": step.text,
        "queues": [_queue(queue) for queue in step.queues],
    }


def _queue(queue: MessageQueue) -> asked.TopicQueueData:
    return {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id}
