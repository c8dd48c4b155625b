import itertools
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.json import encode
from msgspec.structs import replace

from rmqlb.engine.simulate_receive.rules import BROKERS, broker_rules
from rmqlb.engine.simulate_receive.simulate_receive import (
    ended_findings,
    readable_queues,
    receive_findings,
    receive_trials,
    simulate_receive,
)
from rmqlb.engine.simulate_receive.simulation import MOST_FURTHER
from rmqlb.errors import DataError, UsageError
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.send_scenario import Failure, Moment, Reaction
from rmqlb.model.simulate_receive import SECOND_US, Crash, QueueRate, ReceivedMessage, ReceiveScenario
from tests.engine.simulate_receive.scenarios import MINUTE_US, TWO, rates, refused, silent
from tests.support.builders import route
from tests.support.mismatches import every_case

FOUR = route(a=4, b=4)
LOADED = ReceiveScenario(rates=rates(TWO, a=3, b=3), duration_us=3 * MINUTE_US)


@some.composite
def scenarios(draw: some.DrawFn) -> ReceiveScenario:
    client = draw(some.sampled_from(["simple", "push", "pop"]))
    consumers = draw(some.integers(1, 3))
    failures = draw(
        some.lists(some.sampled_from([refused("b", 20, 90), silent("a", 30, 70), refused("a", 50, None)]), max_size=2)
    )
    crashes = draw(some.sets(some.integers(1, consumers), max_size=consumers))
    return ReceiveScenario(
        client,  # type: ignore[arg-type]
        consumers=consumers,
        loops=draw(some.integers(1, 4)) if client == "simple" else 1,
        batch=draw(some.sampled_from([1, 2, 32])),
        fifo=client != "pop" and draw(some.booleans()),
        consume_us=draw(some.sampled_from([0, 10_000, 400_000, 15 * SECOND_US])),
        invisible_us=draw(some.sampled_from([10, 30])) * SECOND_US,
        rates=rates(TWO, a=draw(some.integers(1, 3)), b=1),
        messages=draw(some.integers(1, 120)),
        failures=tuple(failures),
        crashes=tuple(Crash(consumer, 40 * SECOND_US) for consumer in sorted(crashes)),
        seed=draw(some.integers(0, 99)),
    )


@settings(max_examples=80, deadline=None)
@given(scenarios())
def test_no_message_is_lost_or_made_and_equal_arguments_give_equal_bytes(scenario: ReceiveScenario) -> None:
    report = simulate_receive(TWO, scenario, trace=True)
    totals, messages = report.totals, report.messages or ()
    assert totals.messages + totals.not_stored == scenario.messages
    assert totals.acknowledged + totals.dead_lettered + totals.left == totals.messages == len(messages)
    received = sum(message.received_ms is not None for message in messages)
    assert totals.received == received == sum(broker.messages for broker in report.brokers) >= totals.acknowledged
    assert [message.message for message in messages] == list(range(1, totals.messages + 1))
    assert totals.received == sum(queue.messages for queue in report.queue_waits)
    assert totals.receives == sum(broker.receives for broker in report.brokers)
    for message in messages:
        assert (message.wait_ms or 0) >= 0
        assert message.received_ms is None or message.deliveries >= 1
        assert message.done_ms is None or message.received_ms is not None
    if len(scenario.crashes) < scenario.consumers and all(failure.end for failure in scenario.failures):
        assert totals.left == 0
    if scenario.seed % 9 == 0:
        assert encode(simulate_receive(TWO, scenario, trace=True)) == encode(report)


def test_trials_are_simulations_put_together() -> None:
    several = [simulate_receive(TWO, LOADED, trial=trial) for trial in range(3)]
    trials = receive_trials(TWO, LOADED, 3)
    assert trials.wait is not None
    assert trials.wait.messages == sum(each.totals.received for each in several)
    assert trials.wait.max_ms == max(each.wait.max_ms for each in several if each.wait)
    assert trials.lowest_p95_ms == min(each.wait.p95_ms for each in several if each.wait)


def test_a_run_that_measures_fewer_messages_gives_these_the_same_waits() -> None:
    for scenario in (
        LOADED,
        replace(LOADED, client="push", batch=1, consume_us=100_000),
        replace(LOADED, loops=9, rates=rates(TWO, a=8)),
        replace(LOADED, consumers=2, consume_us=2 * SECOND_US, crashes=(Crash(1, 30 * SECOND_US),)),
        replace(LOADED, loops=2, failures=(refused("b", 20, 90),)),
    ):
        whole = simulate_receive(TWO, scenario, trace=True)
        assert whole.messages is not None
        for few in (replace(scenario, messages=200), replace(scenario, duration_us=40 * SECOND_US)):
            part = simulate_receive(TWO, few, trace=True)
            messages = part.messages or ()
            assert len(messages) >= 150
            assert [each.received_ms for each in messages] == [
                each.received_ms for each in whole.messages[: len(messages)]
            ]


def test_arrivals_end_when_nobody_lives_or_the_measured_ones_take_too_long() -> None:
    died = replace(LOADED, crashes=(Crash(1, MINUTE_US),))
    report = simulate_receive(TWO, died)
    assert report.totals.left > 0
    assert report.totals.further == 0
    starved = ReceiveScenario(
        "pop", batch=1, rates=rates(route(a=150), a=1000), round_trip_us=10_000, messages=300, broker_version="5.3.3"
    )
    late = simulate_receive(route(a=150), starved)
    assert late.totals.further == MOST_FURTHER
    assert late.totals.left == 0
    assert [finding.code for finding in ended_findings(late)] == ["arrivals-ended"]
    assert list(ended_findings(report)) == []


TWO_OF_FOUR = (QueueRate("a", 0, Fraction(50)), QueueRate("a", 1, Fraction(50)))


@every_case(("version", "favoured"), [("5.1.4", 0), ("5.3.3", 0), ("5.3.4", 0), ("5.4.0", 1), ("5.5.1", 1)])
def test_brokers_count_down_their_queues_from_5_4_0_on(version: str, favoured: int) -> None:
    """Of four queues, 0 and 1 have a backlog: three of four receives meet the same one first."""
    scenario = ReceiveScenario("pop", batch=1, rates=TWO_OF_FOUR, round_trip_us=100_000, messages=2000)
    report = simulate_receive(route(a=4), replace(scenario, broker_version=version), trace=True)
    first = sorted(report.messages or (), key=lambda message: message.received_ms or 0)[:400]
    assert 0.68 <= sum(message.queue_id == favoured for message in first) / len(first) <= 0.82
    means = [each.mean_ms for each in report.queue_waits]
    assert (means[2], means[3]) == (None, None)
    assert 1.5 * (means[favoured] or 0) < (means[1 - favoured] or 0)


def test_each_broker_version_walks_its_queues_as_its_class_does() -> None:
    walks = {"5.3.4": [[2, 3, 0, 1], [3, 0, 1, 2]], "5.4.0": [[1, 0, 3, 2], [2, 1, 0, 3]]}
    assert {version: [list(broker_rules(version).walk(n, 4)) for n in (2, 99)] for version in walks} == walks
    for rules in BROKERS:
        since = ".".join(map(str, rules.since))
        assert broker_rules(since) is rules
        assert rules.name.startswith(since)
    first = {version: [n for n in range(100) if broker_rules(version).retry_first(n)] for version in ("5.3.0", "5.3.1")}
    assert first == {"5.3.0": list(range(0, 100, 5)), "5.3.1": list(range(20))}


def test_a_message_that_comes_back_wakes_no_receive_from_5_2_0_to_5_3_3() -> None:
    """Each of 16 redeliveries then waits until the time of the receive is over, up to 15 s, or for another message."""
    slow = ReceiveScenario("pop", rates=rates(route(a=1), a=0.001), consume_us=70 * SECOND_US, messages=5)
    latest = {}
    for version in ("5.1.4", "5.2.0", "5.3.3", "5.3.4", "5.5.1"):
        back = simulate_receive(route(a=1), replace(slow, broker_version=version)).back
        assert back is not None
        latest[version] = back.max_ms
    assert latest["5.1.4"] == latest["5.3.4"] == latest["5.5.1"] <= 16 * 65_300
    assert latest["5.2.0"] == latest["5.3.3"] > latest["5.5.1"] + 16 * 3000


@every_case(("scenario", "codes"), [
    (ReceiveScenario(await_us=3 * SECOND_US), ["await-limited"]),
    (ReceiveScenario(await_us=7 * SECOND_US), []),
    (ReceiveScenario(await_us=60 * SECOND_US), ["await-limited"]),
    (ReceiveScenario("pop", invisible_us=SECOND_US), ["invisible-limited"]),
    (ReceiveScenario(consume_us=SECOND_US, invisible_us=10 * SECOND_US), ["longer-than-invisible"]),
])  # fmt: skip
def test_settings_that_servers_and_clients_limit_are_found(scenario: ReceiveScenario, codes: list[str]) -> None:
    assert [finding.code for finding in receive_findings(scenario, [8, 100])] == codes


@every_case(("version", "text", "begins"), [
    ("5.3.4", "receives begin at one of queues 0 to 99 and go up", {*range(100)}),
    ("5.4.0", "receives begin at queue 149 or one of queues 0 to 98 and go down", {*range(99), 149}),
])  # fmt: skip
def test_what_many_queues_mean_depends_on_the_direction(version: str, text: str, begins: set[int]) -> None:
    (finding,) = receive_findings(ReceiveScenario(broker_version=version), [8, 150])
    assert text in finding.message
    assert {next(iter(broker_rules(version).walk(number, 150))) for number in range(100)} == begins


def test_what_takes_longer_than_it_is_invisible_is_redelivered_up_to_sixteen_times() -> None:
    topic = route(a=1)
    slow = ReceiveScenario(
        consume_us=4 * SECOND_US, invisible_us=10 * SECOND_US, rates=rates(topic, a=5), messages=40, batch=8
    )
    report = simulate_receive(topic, slow)
    assert (report.totals.redelivered > 0, report.totals.acknowledged) == (True, 40)
    assert report.back is not None
    assert report.back.max_ms > 12_000
    never = replace(slow, consume_us=11 * SECOND_US, rates=rates(topic, a=1), messages=1)
    report = simulate_receive(topic, never, trace=True)
    assert (report.totals.dead_lettered, report.totals.left) == (1, 0)
    assert [message.deliveries for message in report.messages or ()] == [17]


def test_in_order_a_queue_is_with_one_consumer_until_it_is_done() -> None:
    topic = route(a=2, b=1)
    for client in ("simple", "push"):
        scenario = ReceiveScenario(
            client, consumers=3, fifo=True, rates=rates(topic, a=4, b=4), batch=2, consume_us=50_000,
            duration_us=MINUTE_US,
        )  # fmt: skip
        by_queue: dict[tuple[str, int], list[ReceivedMessage]] = defaultdict(list)
        for message in simulate_receive(topic, scenario, trace=True).messages or ():
            by_queue[message.broker_name, message.queue_id].append(message)
        for one, other in (pair for own in by_queue.values() for pair in itertools.pairwise(own)):
            assert one.done_ms is not None
            assert (one.received_ms or 0) <= (other.received_ms or 0)
            assert other.consumer == one.consumer or (other.received_ms or 0) >= one.done_ms


def test_a_pop_clients_connection_is_closed_so_that_its_receives_take_nothing_more() -> None:
    scenario = ReceiveScenario(
        "pop", consumers=2, rates=rates(TWO, a=5, b=5), duration_us=3 * MINUTE_US, crashes=(Crash(1, MINUTE_US),)
    )
    (crash,) = simulate_receive(TWO, scenario).crashes
    assert crash.unacknowledged == 0
    grpc = simulate_receive(TWO, replace(scenario, client="simple", loops=1)).crashes[0]
    assert grpc.unacknowledged in (0, 1, 2)


def test_messages_on_a_broker_that_stays_away_are_left() -> None:
    gone = replace(LOADED, failures=(refused("b", 60, None),), batch=1, rates=rates(TWO, a=3, b=30))
    report = simulate_receive(TWO, gone)
    (failure,) = report.failures
    assert report.totals.left == failure.left > 0 < report.totals.not_stored
    assert failure.received_again_ms is failure.to_ms is None


def test_a_silent_broker_costs_a_loop_its_await_and_three_seconds() -> None:
    topic = route(a=1, b=1)
    scenario = ReceiveScenario(rates=rates(topic, a=2), duration_us=5 * MINUTE_US, failures=(silent("b", 60, 150),))
    report = simulate_receive(topic, scenario)
    assert report.failures[0].failed > 0
    assert 22_000 <= report.brokers[0].longest_unpolled_ms <= 23_002


def test_receives_for_a_broker_that_the_proxy_has_dropped_go_to_another_one() -> None:
    gone = (refused("b", 40, None),)
    scenario = ReceiveScenario(rates=rates(FOUR, a=50, b=50), duration_us=2 * MINUTE_US, failures=gone)
    (failure,) = simulate_receive(FOUR, scenario).failures
    assert failure.last_failed_ms is not None
    assert failure.last_failed_ms <= 60_000 + 1000  # its view is 20 s old at the most


def test_readable_queues_are_those_of_masters_in_the_routes_order() -> None:
    topic = TopicRouteData(
        "T",
        (QueueData("b", 2, 4, 6), QueueData("w", 9, 9, 2), QueueData("s", 3, 3, 6), QueueData("a", 1, 0, 4)),
        (
            BrokerData("c", "a", {0: "a:1"}),
            BrokerData("c", "b", {0: "b:1", 1: "b:2"}),
            BrokerData("c", "s", {1: "s:1"}),
            BrokerData("c", "w", {0: "w:1"}),
        ),
    )
    assert [(queue.broker_name, queue.queue_id) for queue in readable_queues(topic)] == [("b", 0), ("b", 1), ("a", 0)]
    with pytest.raises(DataError, match="no queue to receive from"):
        readable_queues(route(a=0))


ON_A = Reaction("refused", "refused")
BAD: dict[str, tuple[dict[str, object], str]] = {
    "no loops": ({"loops": 0}, "loops"),
    "loops of a PushConsumer": ({"client": "push", "loops": 2}, "one receive per broker"),
    "POP in order": ({"client": "pop", "fifo": True}, "do not consume in order"),
    "a short invisible duration": ({"invisible_us": SECOND_US}, "the Proxy refuses less than 10 s"),
    "an await that the Proxy refuses": ({"await_us": 2 * SECOND_US}, "the Proxy refuses each receive"),
    "negative time": ({"consume_us": -1}, "consume_us"),
    "an unknown broker's rate": ({"rates": (QueueRate("x", 0, Fraction(1)),)}, "no queue x:0"),
    "an unknown queue's rate": ({"rates": (QueueRate("a", 8, Fraction(1)),)}, "no queue a:8"),
    "a rate of nothing": ({"rates": (QueueRate("a", 0, Fraction(0)),)}, "more than 0"),
    "an unknown broker": ({"failures": (refused("x", 1, 2),)}, "no broker x"),
    "a slow broker": ({"failures": (Failure("a", Reaction("slow", "slow", 0, 5)),)}, "refused or timeout"),
    "message numbers": ({"failures": (Failure("a", ON_A, Moment(message=3)),)}, "receives count by times"),
    "a consumer that is not there": ({"crashes": (Crash(2, 0),)}, "consumer 2 dies, of 1"),
    "a consumer that dies twice": ({"crashes": (Crash(1, 0), Crash(1, 5))}, "dies twice"),
    "no end": ({"duration_us": None}, "would not end"),
    "no version": ({"broker_version": "latest"}, "latest: not a broker version"),
    "a version before POP worked so": ({"broker_version": "5.0.0"}, "brokers older than 5.1.0 are not"),
}


@every_case("name", BAD)
def test_a_scenario_that_cannot_be_is_refused(name: str) -> None:
    changed, text = BAD[name]
    with pytest.raises(UsageError) as raised:
        simulate_receive(TWO, replace(LOADED, **changed))
    assert text in raised.value.message
