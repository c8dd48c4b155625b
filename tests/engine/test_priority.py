from fractions import Fraction

from rmqlb import DataError, UsageError, simulate_send
from rmqlb.engine.simulate_receive.simulate_receive import simulate_receive
from rmqlb.model.send_scenario import Failure, Reaction, Selector, SendScenario
from rmqlb.model.simulate_receive import QueueRate, ReceiveScenario
from tests.support.builders import queues, route
from tests.support.mismatches import refusal
from tests.support.priority import RECEIVES, STRAYS, ReceiveCase, receive_cases, recorded, send_cases

SIMULATED = 400


def test_messages_are_stored_as_a_broker_stored_them() -> None:
    assert [case.predicted for case in send_cases()] == recorded()["queues"]


def test_receives_are_served_as_a_broker_served_them() -> None:
    for case, found in zip(receive_cases(), recorded()["receives"], strict=True):
        assert sum(found.values()) == RECEIVES
        case.assert_fits(found, strays=STRAYS)


def test_a_simulation_serves_receives_by_the_same_shares() -> None:
    case = ReceiveCase(50)
    case.assert_fits(case.simulated(SIMULATED), with_retry=False)


def test_low_priorities_wait_until_the_higher_ones_are_received() -> None:
    rates = tuple(QueueRate("a", queue, Fraction(24)) for queue in range(4))
    common = {"batch": 1, "rates": rates, "consume_us": 10_000, "round_trip_us": 0, "messages": 1000}
    by_priority, by_turns = (
        [queue.mean_ms or 0 for queue in simulate_receive(route(a=4), scenario).queue_waits]
        for scenario in (ReceiveScenario(**common, priority_factor=100), ReceiveScenario(**common))  # type: ignore[arg-type]
    )
    assert by_priority == sorted(by_priority, reverse=True)
    assert by_priority[0] > 10 * by_priority[3]
    assert max(by_turns) < 3 * min(by_turns)


def test_retries_go_where_the_next_broker_stores_the_priority() -> None:
    failing = Failure("a", Reaction("refused", "refused", cost_us=1000))
    scenario = SendScenario(messages=8, start_at=0, priorities=(5, None), failures=(failing,))
    report = simulate_send(route(a=8, b=3), scenario)
    places = [(each.broker_name, each.queue_id) for each in report.attempts or () if each.outcome == "SEND_OK"]
    assert all(broker == "b" for broker, _ in places)
    assert all(queue == 2 for _, queue in places[::2])
    assert {queue.queue_id: queue.stored for queue in report.queues if queue.broker_name == "b"}[2] >= 4
    assert sum(queue.attempts for queue in report.queues) == report.totals.attempts


def test_a_priority_overrides_the_queue_of_a_selector() -> None:
    selector = Selector("queue", queue=queues(4, "a")[0])
    report = simulate_send(route(a=4), SendScenario(messages=3, selector=selector, priorities=(2,)))
    assert [each.queue_id for each in report.attempts or ()] == [2, 2, 2]
    assert [each.code for each in report.findings] == ["stored-by-priority"]


def test_old_brokers_and_receives_in_order_have_no_priorities() -> None:
    for scenario, problem in (
        (ReceiveScenario(priority_factor=0, broker_version="5.3.4"), "brokers 5.3.4 have no PRIORITY topics"),
        (ReceiveScenario(priority_factor=100, fifo=True), "receives in order ignore priorities"),
        (ReceiveScenario(priority_retry_percent=30), "priority-retry has no effect without receives by priority"),
    ):
        assert problem in refusal(UsageError, simulate_receive, route(a=4), scenario).message


def test_the_scenario_checks_its_bounds() -> None:
    for scenario in (ReceiveScenario(priority_factor=101), ReceiveScenario(priority_retry_percent=-1)):
        refusal((UsageError, DataError), simulate_receive, route(a=4), scenario)
    refusal(UsageError, simulate_send, route(a=4), SendScenario(priorities=(-1,)))
