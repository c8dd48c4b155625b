"""The figures of a simulation that `--fail-on` can ask about, and what may be called by the name of a broker."""

from __future__ import annotations

from math import fsum

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.simulate_send import BrokerTally, SendReport, TrialsReport
from rmqlb.model.snapshot import suggestion

_TOTALS = (
    *("lost", "stored", "not-store-ok", "duplicated", "retried", "attempts", "failed-attempts", "retries"),
    *("failing-ms", "longest-send-ms"),
)
"""Fields of `SendTotals`."""
_BROKER = ("share", "picks", "failed", "isolated-ms", "isolations")
_OF_MESSAGES = ("lost", "stored", "not-store-ok", "duplicated", "retried")
_OF_ATTEMPTS = ("failed-attempts", "retries")
SEND_FIGURES = Figures(
    names=tuple(_TOTALS),
    of_subject=_BROKER,
    shares=(*_OF_MESSAGES, *_OF_ATTEMPTS, "share", "picks", "failed"),
)
"""`share[BROKER]` is a percentage of the messages that were stored, with or without the sign; that of `picks[BROKER]`
is one of all picks, which are more than the requests where some come after a send's deadline."""


def try_on_send(condition: Condition, report: SendReport) -> TriedCondition:
    """Whether the condition is there in a simulation (raises UsageError)."""
    totals, name = report.totals, condition.name
    if condition.subject is None:
        whole = totals.messages if name in _OF_MESSAGES else totals.attempts
        return condition.try_on(getattr(totals, name.replace("-", "_")), whole)
    broker = _broker(condition, report)
    value = broker.stored if name == "share" else getattr(broker, name.replace("-", "_"))
    if name == "share":
        stored = sum(each.stored for each in report.brokers)
        return condition.try_on(_percentage(value, stored, condition), stored)
    return condition.try_on(value, sum(each.picks for each in report.brokers) if name == "picks" else totals.attempts)


def _percentage(value: float, whole: float, condition: Condition) -> float | None:
    """A share without a percent sign is one all the same."""
    if condition.percent:
        return value
    return 100 * value / whole if whole else None


def try_on_trials(condition: Condition, trials: TrialsReport, report: SendReport) -> TriedCondition:
    """Whether it is there in the mean of many trials (raises UsageError); of the longest send, in the worst of them."""
    messages = trials.messages.mean
    attempts = fsum(each.mean for each in trials.attempts_at.values())
    name = condition.name
    if condition.subject is not None:
        broker = _broker(condition, report).broker_name
        if name == "share":
            share = trials.shares.get(broker)
            value = None if share is None else 100 * share.mean
            return condition.try_on(value if not condition.percent or value is None else value / 100, 1)
        of_brokers = {"isolations": trials.isolations, "picks": trials.picks, "failed": trials.failed_at}
        times = of_brokers.get(name, {}).get(broker)
        whole = fsum(each.mean for each in trials.picks.values()) if name == "picks" else attempts
        return condition.try_on(times.mean if times else None, whole)
    longest = trials.longest_send_ms
    values = {
        "lost": trials.lost_messages.mean,
        "stored": messages - trials.lost_messages.mean,
        "not-store-ok": trials.not_store_ok.mean,
        "duplicated": trials.duplicated.mean,
        "retried": trials.retried.mean,
        "attempts": attempts,
        "failed-attempts": fsum(each.mean for each in trials.failed_at.values()),
        "retries": trials.retries.mean,
        "failing-ms": trials.failing_ms.mean,
        "longest-send-ms": None if longest is None else longest.max_ms,
    }
    whole = messages if name in _OF_MESSAGES else attempts
    return condition.try_on(values.get(name), whole)


def _broker(condition: Condition, report: SendReport) -> BrokerTally:
    names = [broker.broker_name for broker in report.brokers]
    if condition.subject not in names:
        raise UsageError(
            f"--fail-on {condition.text!r}: topic {report.topic} has no broker {condition.subject}",
            hint=suggestion("brokers", condition.subject or "", names),
            code="unknown-broker",
        )
    return report.brokers[names.index(condition.subject)]
