"""A `SendReport` for machines: the `data` of the JSON, whose keys are fixed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rmqlb.model.plan import TriedCondition
from rmqlb.model.send_report import (
    BrokerTally,
    ExceptionTally,
    FailureReport,
    KeySpread,
    QueueTally,
    SendReport,
    TrialsReport,
)
from rmqlb.views.report import conditions_data
from rmqlb.views.send.timeline import timeline_data
from rmqlb.views.send.trials import trials_data

if TYPE_CHECKING:
    from rmqlb.views.shapes import send as shapes
    from rmqlb.views.shapes.send_scenario import SendScenarioData


def send_data(
    report: SendReport,
    compared: Sequence[SendReport],
    clients: Sequence[SendReport],
    trials: TrialsReport | None,
    conditions: Sequence[TriedCondition],
    keys: KeySpread | None,
) -> shapes.SendData:
    """The whole result."""
    whole = stored(report)
    return {
        "topic": report.topic,
        "scenario": _scenario_data(report),
        "attempts": None if report.attempts is None else [msgspec.to_builtins(a) for a in report.attempts],
        "lostMessages": (
            None if report.lost_messages is None else [msgspec.to_builtins(lost) for lost in report.lost_messages]
        ),
        "exceptions": [_exception_data(tally) for tally in report.exceptions],
        "queues": [_queue_data(tally, whole) for tally in report.queues],
        "brokers": [_broker_data(tally, whole) for tally in report.brokers],
        "totals": _totals_data(report),
        "failures": [_failure_data(failure) for failure in report.failures],
        "timeline": timeline_data(report),
        "keys": None if keys is None else _keys_data(keys),
        "comparison": [_brief_data(each) for each in compared] if len(compared) > 1 else [],
        "clients": [_brief_data(each) for each in clients],
        "trials": None if trials is None else trials_data(trials),
        "conditions": conditions_data(conditions),
    }


def stored(report: SendReport) -> int:
    """Messages stored, on all queues together; one that a retry stored again counts twice."""
    return sum(tally.stored for tally in report.queues)


def share(part: int, whole: int) -> float | None:
    """A part of the whole, unknown when there is none."""
    return part / whole if whole else None


def after(at: float | None, since: float | None) -> float | None:
    """How long after something that was; None when either is."""
    return None if at is None or since is None else at - since


def _scenario_data(report: SendReport) -> SendScenarioData:
    s = report.scenario
    return {
        "clientVersion": s.client_version,
        "profile": report.profile,
        "mode": s.mode,
        "latencyFault": s.latency_fault,
        "detector": s.detector,
        "latencyMaxMs": list(report.latency_max),
        "notAvailableDurationMs": list(report.not_available_duration),
        "failureIsolatesMs": report.failure_isolates_ms,
        "threads": s.threads,
        "messages": s.messages,
        "ratePerSecond": None if s.rate is None else float(s.rate),
        "durationMs": None if s.duration_us is None else s.duration_us / 1000,
        "retries": s.retries,
        "timeoutMs": s.timeout_ms,
        "timeoutPerRequestMs": s.timeout_per_request_ms,
        "retryNotStoreOk": s.retry_not_store_ok,
        "latency": {"default": s.latency.text, **{name: latency.text for name, latency in s.latencies.items()}},
        "exclude": sorted(s.exclude),
        "selector": None if s.chosen_by is None else s.chosen_by.name,
        "seed": s.seed,
        "firstPollMs": report.first_poll_ms,
        "pollMs": s.poll_us / 1000,
    }


def _queue_data(tally: QueueTally, whole: int) -> shapes.SendQueueData:
    return {
        "brokerName": tally.queue.broker_name,
        "queueId": tally.queue.queue_id,
        **_counts_data(tally, whole),
    }


def _broker_data(tally: BrokerTally, whole: int) -> shapes.SendBrokerData:
    return {
        "brokerName": tally.broker_name,
        "queues": tally.queues,
        **_counts_data(tally, whole),
        "isolations": tally.isolations,
        "avoidedMs": tally.avoided_ms,
    }


def _counts_data(tally: QueueTally | BrokerTally, whole: int) -> shapes.SendCountsData:
    return {
        "picks": tally.picks,
        "attempts": tally.attempts,
        "failed": tally.failed,
        "stored": tally.stored,
        "share": share(tally.stored, whole),
    }


def _totals_data(report: SendReport) -> shapes.SendTotalsData:
    """The times until a broker is avoided and used again are the longest over all failures that came to that."""
    totals = report.totals
    return {
        "messages": totals.messages,
        "stored": totals.stored,
        "notStoreOk": totals.not_store_ok,
        "duplicated": totals.duplicated,
        "lost": totals.lost,
        "lostBy": dict(totals.lost_by),
        "retried": totals.retried,
        "attempts": totals.attempts,
        "failedAttempts": totals.failed_attempts,
        "extraAttempts": totals.extra_attempts,
        "failingMs": totals.failing_ms,
        "longestSendMs": totals.longest_send_ms,
        "lastedMs": totals.lasted_ms,
        "untilAvoidedMs": _longest(after(f.avoided_ms, f.began_ms) for f in report.failures),
        "untilUsedAgainMs": _longest(after(f.used_again_ms, f.ended_ms) for f in report.failures),
    }


def _exception_data(tally: ExceptionTally) -> shapes.ExceptionData:
    return {
        "messages": tally.messages,
        "exceptionClass": tally.exception.exception_class,
        "responseCode": tally.exception.response_code,
        "cause": tally.exception.cause,
        "brokersSent": None if tally.brokers_sent is None else list(tally.brokers_sent),
        "firstMessage": tally.first.message,
        "text": tally.exception.text,
    }


def _longest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _failure_data(f: FailureReport) -> shapes.FailureData:
    failure = f.failure
    return {
        "brokerName": failure.broker_name,
        "kind": failure.reaction.kind,
        "name": failure.reaction.name,
        "code": failure.reaction.code or None,
        "nameserverNoticesMs": None if failure.notices_us is None else failure.notices_us / 1000,
        "beganMs": f.began_ms,
        "endedMs": f.ended_ms,
        "failed": f.failed,
        "firstFailedMs": f.first_failed_ms,
        "avoidedMs": f.avoided_ms,
        "avoidedAfterMs": after(f.avoided_ms, f.began_ms),
        "avoidedBy": f.avoided_by,
        "usedAgainMs": f.used_again_ms,
        "usedAgainAfterMs": after(f.used_again_ms, f.ended_ms),
    }


def _keys_data(keys: KeySpread) -> shapes.KeysData:
    return {
        "distinct": keys.distinct,
        "messages": keys.messages,
        "hottest": [
            {
                "key": h.key,
                "messages": h.messages,
                "brokerName": None if h.queue is None else h.queue.broker_name,
                "queueId": None if h.queue is None else h.queue.queue_id,
            }
            for h in keys.hottest
        ],
    }


def _brief_data(report: SendReport) -> shapes.BriefSendData:
    whole = stored(report)
    return {
        "clientVersion": report.scenario.client_version,
        "profile": report.profile,
        "latencyFault": report.scenario.latency_fault,
        "totals": _totals_data(report),
        "brokers": [_broker_data(tally, whole) for tally in report.brokers],
        "failures": [_failure_data(failure) for failure in report.failures],
    }
