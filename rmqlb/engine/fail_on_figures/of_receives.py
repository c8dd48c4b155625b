"""The figures of simulated receives that `--fail-on` can ask about.

Of many trials the figures of waits are those of all
their messages together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from rmqlb.engine.conditions import Condition, Figures
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.simulate_receive import BrokerReceives, ReceiveReport, WaitTimes
from rmqlb.model.snapshot import suggestion

_SPREAD: Mapping[str, Callable[[WaitTimes], float]] = {
    "mean": lambda times: times.mean_ms,
    "p50": lambda times: times.p50_ms,
    "p95": lambda times: times.p95_ms,
    "p99": lambda times: times.p99_ms,
    "max": lambda times: times.max_ms,
}
_WAITS = {f"wait-{name}-ms": of for name, of in _SPREAD.items()}
_BACKS = {f"back-{name}-ms": of for name, of in _SPREAD.items()}
_TOTALS = ("left", "not-stored", "redelivered", "dead-lettered", "receives", "empty-receives", "failed-receives")
"""Fields of `ReceiveTotals`."""
_OF_RECEIVES = ("empty-receives", "failed-receives")
_OF_MESSAGES = ("left", "redelivered", "dead-lettered")
_NEEDED = "receives-needed"
_BROKER: Mapping[str, Callable[[BrokerReceives], float]] = {
    "receives": lambda broker: broker.receives,
    "unpolled-ms": lambda broker: broker.longest_unpolled_ms,
}
RECEIVE_FIGURES = Figures(
    names=(*_WAITS, *_BACKS, *_TOTALS, "unpolled-ms", _NEEDED),
    of_subject=(*_WAITS, *_BROKER),
    shares=(*_OF_RECEIVES, *_OF_MESSAGES, "receives"),
)
"""`unpolled-ms` is the longest time in which no receive waited at a broker, `receives-needed` is of --target-wait."""


def try_on_receive(condition: Condition, report: ReceiveReport) -> TriedCondition:
    """Whether the condition is there (raises UsageError)."""
    name, totals = condition.name, report.totals
    if condition.subject is not None:
        return _of_broker(condition, report)
    if name in _WAITS:
        wait = report.wait if report.trials is None else report.trials.wait
        return condition.try_on(None if wait is None else _WAITS[name](wait))
    if name in _BACKS:
        # What is never delivered again comes back after no time.
        return condition.try_on(0 if report.back is None else _BACKS[name](report.back))
    if name == "unpolled-ms":
        return condition.try_on(max(broker.longest_unpolled_ms for broker in report.brokers))
    if name == _NEEDED:
        return _needed(condition, report)
    whole = totals.receives if name in (*_OF_RECEIVES, "receives") else totals.messages
    return condition.try_on(getattr(totals, name.replace("-", "_")), whole)


def _needed(condition: Condition, report: ReceiveReport) -> TriedCondition:
    if report.target is None:
        raise UsageError(f"--fail-on {condition.text!r}: for which wait?", hint="name it with --target-wait TIME")
    if report.target.receives is None:
        return TriedCondition(condition.text, None, condition.compare(math.inf, condition.limit))
    return condition.try_on(report.target.receives)


def _of_broker(condition: Condition, report: ReceiveReport) -> TriedCondition:
    broker = next((each for each in report.brokers if each.broker_name == condition.subject), None)
    if broker is None:
        raise UsageError(
            f"--fail-on {condition.text!r}: topic {report.topic} has no broker {condition.subject}",
            hint=suggestion("brokers", condition.subject or "", [each.broker_name for each in report.brokers]),
            code="unknown-broker",
        )
    if condition.name in _WAITS:
        return condition.try_on(None if broker.wait is None else _WAITS[condition.name](broker.wait))
    return condition.try_on(_BROKER[condition.name](broker), report.totals.receives)
