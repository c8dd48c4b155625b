"""Attributes of results that have new names are there under their former ones too, as in 1.0 of the Python API."""

from __future__ import annotations

from rmqlb import (
    Event,
    GroupScenario,
    Members,
    simulate_group,
    simulate_group_trials,
)
from tests.support.builders import route

TWO = route(a=2, b=2)


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
