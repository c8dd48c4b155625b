"""Attributes of results that have new names are there under their former ones too, as in 1.0 of the Python API."""

from __future__ import annotations

from rmqlb import (
    Event,
    Failure,
    GroupScenario,
    Members,
    Moment,
    Reaction,
    SendScenario,
    simulate_group,
    simulate_group_trials,
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


def test_a_group_over_time() -> None:
    scenario = GroupScenario((Event("crash", 5_000_000, "a"),), rates={})
    report = simulate_group("g", Members(("a", "b"), "AVG"), [TWO], scenario)
    found = report.figures
    assert (found.settled_us, found.longest_none_us) == (found.convergence_ms * 1000, found.longest_gap_ms * 1000)  # type: ignore[operator]
    assert (found.none_us, found.several_us) == (found.total_gap_ms * 1000, found.total_overlap_ms * 1000)
    assert (found.queues_none, found.queues_several, found.queues_outage, found.again) == (2, 0, 0, None)
    assert (found.queues_none_at_end, found.queues_several_at_end, found.queues_outage_at_end) == (0, 0, 0)
    for line in report.timelines:
        assert (line.none_us, line.several_us, line.outage_us) == (line.total_gap_ms * 1000, 0, 0)
        assert [each.from_us for each in line.intervals[1:]] == [each.to_us for each in line.intervals[:-1]]
        for takeover in line.takeovers:
            assert (takeover.queue, takeover.start.rule) == (line.queue, takeover.start_rule)
            assert (takeover.again_us, takeover.again) == (takeover.redelivered_ms * 1000, takeover.redelivered)


def test_trials_of_a_group() -> None:
    scenario = GroupScenario((Event("crash", 5_000_000, "a"),))
    trials = simulate_group_trials("g", Members(("a", "b"), "AVG"), [TWO], scenario, 3)
    assert (trials.settled, set(trials.spreads["taken"].__struct_fields__)) == (3, {"p50", "p95", "max", "max_trial"})
    former, spread = trials.spreads["longest_none_us"], trials.figures.longest_gap_ms
    assert (former.median, former.worst, former.worst_trial) == (spread.p50 * 1000, spread.max * 1000, spread.max_trial)
    assert "again" not in trials.spreads
