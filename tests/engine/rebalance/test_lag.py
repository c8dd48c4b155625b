"""The lag of a group over time, by closed forms on the simulated timelines; `tests/engine/test_backlog.py` has the rest."""

from typing import Any

import pytest

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group import QueueState
from rmqlb.model.group_scenario import Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_rebalance import LagOverTime, RebalanceResult
from tests.support.builders import route

S = 1_000_000
A, B = "10.0.0.1@1", "10.0.0.2@1"
CRASH = Event("crash", 30 * S, A)


def simulated(*events: Event, each: float = 10, lag: int = 0, **more: Any) -> RebalanceResult:
    topic = route("T", a=2, b=2)
    queues = topic.subscribe_queues()
    usual: dict[str, Any] = {"rates": dict.fromkeys(queues, each), "consume_us": 50_000, "consume_threads": 4}
    scenario = GroupScenario(events=events, **usual | more)
    states = {queue: QueueState(frozenset(), 1_000 + lag, 1_000) for queue in queues}
    return simulate_group("g", Members((A, B), "AVG"), [topic], scenario, states=states)


def lag_of(found: RebalanceResult) -> LagOverTime:
    assert found.lag is not None
    return found.lag


def lag_figures(found: RebalanceResult) -> tuple[int | None, float | None, int | None]:
    return found.figures.peak_lag, found.figures.lag_gone_ms, found.figures.queues_never_drained


def test_lag_is_what_comes_while_no_consumer_reads() -> None:
    found = simulated(CRASH)
    lag = lag_of(found)
    moved = [line for line in found.queues if line.takeovers]
    assert [line.queue for line in moved] == [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    for line in moved:
        (takeover,) = line.takeovers
        curve = next(each.lag for each in lag.queues if each.queue == line.queue)
        expected = 10 * line.unread_ms / 1000 + (takeover.redelivered or 0)
        assert curve.peak is not None
        assert (curve.peak.at_ms, curve.peak.messages) == (takeover.reads_from_ms, pytest.approx(expected, abs=1e-3))
    # B reads all: 80 messages per second, of which 40 are new.
    group = lag.group
    assert group.peak is not None
    assert group.gone_ms is not None
    assert group.gone_ms == pytest.approx(group.peak.at_ms + 1000 * group.peak.messages / 40, abs=60)
    assert lag_figures(found) == (round(group.peak.messages), pytest.approx(group.gone_ms - 30_000), 0)


def test_lag_begins_with_the_observed_one() -> None:
    lag = lag_of(simulated(Event("leave", 900 * S, A), lag=600)).group
    assert lag.points[0].messages == 2_400
    assert lag.at(20_000) == pytest.approx(2_400 - 20 * 120)  # two consumers of 80, and 40 are new


def test_too_few_consumers_never_catch_up() -> None:
    found = simulated(CRASH, each=25)
    lag = lag_of(found).group
    assert (lag.gone_ms, lag.peak, lag.growth_per_second) == (None, None, pytest.approx(20))
    assert lag_figures(found) == (None, None, 4)


def test_a_lag_that_stays_has_a_peak() -> None:
    found = simulated(Event("leave", 30 * S, A), Event("leave", 30 * S, B), each=0, lag=6_000)
    assert lag_figures(found) == (24_000, None, 4)


def test_messages_of_a_lost_broker_go_to_the_other_queues() -> None:
    lag = lag_of(simulated(Event("broker-down", 30 * S, "b"), each=25))
    growth = {each.broker_name: each.lag.growth_per_second for each in lag.queues}
    # 100 per second on two queues of one consumer each, or of one for a while: 80 are possible in each.
    assert growth == {"a": 0, "b": 0}
    assert lag.group.gone_ms is not None


def test_new_queues_take_their_part() -> None:
    new = {MessageQueue("T", name, number): 10.0 for name in "ab" for number in (2, 3)}
    old = dict.fromkeys(route("T", a=2, b=2).subscribe_queues(), 10.0)
    grown = Event("route-change", 30 * S, "T", read_queues=4)
    for rates in (old | new, old):  # rates of new queues are known, or those of the others
        lag = lag_of(simulated(grown, Event("crash", 90 * S, A), rates=rates, consume_us=125_000))
        # 40 per second in all, as before; B alone consumes 32.
        assert [round(each.lag.growth_per_second, 3) for each in lag.queues] == [1.0] * 8


def test_unknown_rates_or_times_give_no_lag() -> None:
    some = {MessageQueue("T", "a", 0): 10.0}
    unknown: list[dict[str, Any]] = [
        {"rates": {}},
        {"rates": some},
        {"consume_us": 0},
        {"broadcasting": True},
        {"consumer_type": "pull"},
    ]
    found = [simulated(CRASH, **more) for more in unknown]
    assert [each.lag for each in found] == [None] * 5
    assert [*map(lag_figures, found)] == [(None, None, None)] * 5
