"""Attributes of results that have new names are there under their former ones too, as in 1.0 of the Python API."""

from __future__ import annotations

from rmqlb import (
    Failure,
    Moment,
    Reaction,
    SendScenario,
    simulate_send,
)
from rmqlb.engine.send.trials import simulate_trials
from tests.support.builders import route

REFUSED = Failure("a", Reaction("refused", "refused"), Moment(us=1000))
TWO = route(a=2, b=2)


def test_one_simulation_of_sends() -> None:
    report = simulate_send(TWO, SendScenario(messages=40, failures=(REFUSED,), latency_fault=True, retries=0))
    assert (report.brokers[0].avoided_ms, report.totals.extra_attempts) == (report.brokers[0].isolated_ms, 0)
    (failed,) = report.failures
    assert (failed.failure, failed.avoided_ms, failed.avoided_by) == (REFUSED, failed.isolated_ms, "isolation")
    assert [queue.queue for queue in report.queues] == list(report.publish_queues)
    (tally,) = report.exceptions
    assert (tally.first.message, tally.exception.exception_class) == (tally.first_message, tally.exception_class)
    for each in report.slices:
        assert list(each.attempts.items()) == [(one.broker_name, one.attempts) for one in each.brokers]
        assert list(each.failed.values()) == [one.failed for one in each.brokers]
        assert list(each.avoided_ms.values()) == [one.isolated_ms for one in each.brokers]


def test_trials_of_sends() -> None:
    report = simulate_trials(TWO, SendScenario(messages=40, failures=(REFUSED,), latency_fault=True), 3)
    assert (report.lost, report.extra_attempts) == (report.lost_share, report.retries)
    assert report.longest_send is not None
    assert report.longest_send.max_ms > 0
    (failed,) = report.failures
    assert (failed.failure, failed.avoided, failed.until_avoided) == (REFUSED, 3, failed.until_isolated)
