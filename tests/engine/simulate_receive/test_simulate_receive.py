import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as some
from msgspec.json import encode
from msgspec.structs import replace

from rmqlb import BrokerData, DataError, QueueData, TopicRouteData, UsageError
from rmqlb.engine.kernel import Clock
from rmqlb.engine.simulate_receive.revive import IDLE_US, ReviveService, TimerWheel
from rmqlb.engine.simulate_receive.rules import (
    BROKERS,
    SCAN_US,
    again_after_us,
    broker_rules,
    longest_receive_us,
    rare_receives,
    rare_wait_us,
    unpolled_us,
)
from rmqlb.engine.simulate_receive.simulate_receive import (
    closed_forms,
    ended_findings,
    readable_queues,
    receive_findings,
    receive_trials,
    receives_within,
    simulate_receive,
)
from rmqlb.engine.simulate_receive.simulation import MOST_FURTHER, PopMessage
from rmqlb.model.send_scenario import HOST_LOSS_US, REFUSED_US, Failure, Moment, Reaction
from rmqlb.model.simulate_receive import (
    INVISIBLE_US,
    SECOND_US,
    Crash,
    QueueRate,
    ReceiveClient,
    ReceivedMessage,
    ReceiveScenario,
)
from tests.support.builders import route
from tests.support.mismatches import every_case, refusal

TWO = route(a=8, b=8)
MINUTE_US = 60 * SECOND_US


def rates(topic: TopicRouteData, **per_second: float) -> tuple[QueueRate, ...]:
    """So many messages per second of each broker, the same for each of its queues: `rates(TWO, a=5)`."""
    found = []
    for data in topic.queue_datas:
        of_queue = Fraction(per_second.get(data.broker_name, 0)) / max(data.read_queue_nums, 1)
        found += [QueueRate(data.broker_name, queue, of_queue) for queue in range(data.read_queue_nums) if of_queue]
    return tuple(found)


def _failing(broker: str, reaction: Reaction, begin_s: int, end_s: int | None, notices_us: int) -> Failure:
    end = None if end_s is None else Moment(us=end_s * SECOND_US)
    return Failure(broker, reaction, Moment(us=begin_s * SECOND_US), end, notices_us)


def refused(broker: str, begin_s: int, end_s: int | None) -> Failure:
    return _failing(broker, Reaction("refused", "refused", 0, REFUSED_US), begin_s, end_s, 0)


def silent(broker: str, begin_s: int, end_s: int | None) -> Failure:
    return _failing(broker, Reaction("timeout", "timeout"), begin_s, end_s, HOST_LOSS_US)


FOUR = route(a=4, b=4)
LOADED = ReceiveScenario(rates=rates(TWO, a=3, b=3), duration_us=3 * MINUTE_US)


@some.composite
def scenarios(draw: some.DrawFn) -> ReceiveScenario:
    client = draw(some.sampled_from(["simple", "push", "pop"]))
    consumers = draw(some.integers(1, 3))
    either = some.sampled_from([refused("b", 20, 90), silent("a", 30, 70), refused("a", 50, None)])
    failures = draw(some.lists(either, max_size=2))
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
    trials, one = (receive_trials(TWO, LOADED, number) for number in (3, 1))
    assert trials.wait is not None
    assert one.wait == several[0].wait
    assert trials.wait.messages == sum(each.totals.received for each in several)
    assert trials.wait.max_ms == max(each.wait.max_ms for each in several if each.wait)
    assert trials.lowest_p95_ms == min(each.wait.p95_ms for each in several if each.wait)


@every_case("scenario", [
    LOADED,
    replace(LOADED, client="push", batch=1, consume_us=100_000),
    replace(LOADED, loops=9, rates=rates(TWO, a=8)),
    replace(LOADED, consumers=2, consume_us=2 * SECOND_US, crashes=(Crash(1, 30 * SECOND_US),)),
    replace(LOADED, loops=2, failures=(refused("b", 20, 90),)),
])  # fmt: skip
def test_a_run_that_measures_fewer_messages_gives_these_the_same_waits(scenario: ReceiveScenario) -> None:
    whole = simulate_receive(TWO, scenario, trace=True).messages or ()
    for few in (replace(scenario, messages=200), replace(scenario, duration_us=40 * SECOND_US)):
        received = [each.received_ms for each in simulate_receive(TWO, few, trace=True).messages or ()]
        assert len(received) >= 150
        assert received == [each.received_ms for each in whole[: len(received)]]


def test_arrivals_end_when_nobody_lives_or_the_measured_ones_take_too_long() -> None:
    report = simulate_receive(TWO, replace(LOADED, crashes=(Crash(1, MINUTE_US),)))
    assert (report.totals.left > 0, report.totals.further, report.messages) == (True, 0, None)
    assert list(ended_findings(report)) == []
    topic = route(a=1)
    slow = ReceiveScenario("simple", batch=1, consume_us=2 * SECOND_US, messages=100)
    late = simulate_receive(topic, replace(slow, rates=rates(topic, a=1000)))
    assert (late.totals.further, late.totals.left) == (MOST_FURTHER, 0)
    assert [finding.code for finding in ended_findings(late)] == ["arrivals-ended"]


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


@every_case(("version", "walks", "retries_first"), [
    ("5.3.0", [[2, 3, 0, 1], [3, 0, 1, 2]], range(0, 100, 5)),
    ("5.3.1", [[2, 3, 0, 1], [3, 0, 1, 2]], range(20)),
    ("5.3.4", [[2, 3, 0, 1], [3, 0, 1, 2]], range(20)),
    ("5.4.0", [[1, 0, 3, 2], [2, 1, 0, 3]], range(20)),
])  # fmt: skip
def test_each_broker_version_walks_as_its_class(version: str, walks: list[list[int]], retries_first: range) -> None:
    orders = [broker_rules(version).order(number, 4, ReceiveScenario()) for number in range(100)]
    assert [list(orders[number][1]) for number in (2, 99)] == walks
    assert [number for number in range(100) if orders[number][0]] == list(retries_first)


def test_the_rules_of_a_version_are_named_for_the_first_that_has_them() -> None:
    for rules in BROKERS:
        since = ".".join(map(str, rules.since))
        assert broker_rules(since) is rules
        assert rules.name.startswith(since)


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
    orders = (broker_rules(version).order(number, 150, ReceiveScenario()) for number in range(100))
    assert {next(queues) for _, queues in orders} == begins


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


@every_case("client", ["simple", "push"])
def test_in_order_a_queue_is_with_one_consumer_until_it_is_done(client: ReceiveClient) -> None:
    topic = route(a=2, b=1)
    scenario = ReceiveScenario(client, consumers=3, fifo=True, batch=2, consume_us=50_000, duration_us=MINUTE_US)
    report = simulate_receive(topic, replace(scenario, rates=rates(topic, a=4, b=4)), trace=True)
    by_queue: dict[tuple[str, int], list[ReceivedMessage]] = defaultdict(list)
    for message in report.messages or ():
        by_queue[message.broker_name, message.queue_id].append(message)
    for one, other in (pair for own in by_queue.values() for pair in itertools.pairwise(own)):
        assert one.done_ms is not None
        assert (one.received_ms or 0) <= (other.received_ms or 0)
        assert other.consumer == one.consumer or (other.received_ms or 0) >= one.done_ms


@every_case(("client", "unacknowledged"), [("pop", {0}), ("simple", {0, 1, 2})])
def test_a_closed_connection_takes_no_more_messages(client: ReceiveClient, unacknowledged: set[int]) -> None:
    scenario = ReceiveScenario(client, consumers=2, rates=rates(TWO, a=5, b=5), duration_us=3 * MINUTE_US)
    (crash,) = simulate_receive(TWO, replace(scenario, crashes=(Crash(1, MINUTE_US),))).crashes
    assert crash.unacknowledged in unacknowledged


def test_a_broker_that_fails_keeps_its_messages_and_costs_each_loop_its_await() -> None:
    gone = replace(LOADED, failures=(refused("b", 60, None),), batch=1, rates=rates(TWO, a=3, b=30))
    report = simulate_receive(TWO, gone)
    (failure,) = report.failures
    assert report.totals.left == failure.left > 0 < report.totals.not_stored
    assert failure.received_again_ms is failure.to_ms is None
    topic = route(a=1, b=1)
    scenario = ReceiveScenario(rates=rates(topic, a=2), duration_us=5 * MINUTE_US, failures=(silent("b", 60, 150),))
    report = simulate_receive(topic, scenario)
    assert report.failures[0].failed > 0
    assert 22_000 <= report.brokers[0].longest_unpolled_ms <= 23_002
    dropped = (refused("b", 40, None),)
    scenario = ReceiveScenario(rates=rates(FOUR, a=50, b=50), duration_us=2 * MINUTE_US, failures=dropped)
    (failure,) = simulate_receive(FOUR, scenario).failures
    assert failure.last_failed_ms is not None
    assert failure.last_failed_ms <= 60_000 + 1000  # its view is 20 s old at the most


def test_readable_queues_are_those_of_masters_in_the_routes_order() -> None:
    datas = QueueData("b", 2, 4, 6), QueueData("w", 9, 9, 2), QueueData("s", 3, 3, 6), QueueData("a", 1, 0, 4)
    addresses: dict[str, Any] = {"a": {0: "a:1"}, "b": {0: "b:1", 1: "b:2"}, "s": {1: "s:1"}, "w": {0: "w:1"}}
    topic = TopicRouteData("T", datas, tuple(BrokerData("c", *each) for each in addresses.items()))
    assert [(queue.broker_name, queue.queue_id) for queue in readable_queues(topic)] == [("b", 0), ("b", 1), ("a", 0)]
    assert "no queue to receive from" in refusal(DataError, readable_queues, route(a=0)).message


ON_A = Reaction("refused", "refused")


@every_case(("changed", "text"), [
    ({"loops": 0}, "loops"),
    ({"client": "push", "loops": 2}, "one receive per broker"),
    ({"client": "pop", "fifo": True}, "do not consume in order"),
    ({"invisible_us": SECOND_US}, "the Proxy refuses less than 10 s"),
    ({"await_us": 2 * SECOND_US}, "the Proxy refuses each receive"),
    ({"consume_us": -1}, "consume_us"),
    ({"rates": (QueueRate("x", 0, Fraction(1)),)}, "no queue x:0"),
    ({"rates": (QueueRate("a", 8, Fraction(1)),)}, "no queue a:8"),
    ({"rates": (QueueRate("a", 0, Fraction(0)),)}, "must be above 0"),
    ({"failures": (refused("x", 1, 2),)}, "no broker x"),
    ({"failures": (Failure("a", Reaction("slow", "slow", 0, 5)),)}, "refused or timeout"),
    ({"failures": (Failure("a", ON_A, Moment(message=3)),)}, "receives need times"),
    ({"crashes": (Crash(2, 0),)}, "consumer 2 dies, but there are only 1"),
    ({"crashes": (Crash(1, 0), Crash(1, 5))}, "dies twice"),
    ({"duration_us": None}, "would not end"),
    ({"broker_version": "latest"}, "latest: not a broker version"),
    ({"broker_version": "5.0.0"}, "brokers older than 5.1.0 are not"),
])  # fmt: skip
def test_a_scenario_that_cannot_be_is_refused(changed: dict[str, object], text: str) -> None:
    assert text in refusal((DataError, UsageError), simulate_receive, TWO, replace(LOADED, **changed)).message


QUEUES = some.lists(some.integers(1, 6), min_size=2, max_size=4)
FEW = settings(max_examples=60, deadline=None)


def names_of(queues: list[int]) -> str:
    return "abcd"[: len(queues)]


def topic_of(queues: list[int]) -> TopicRouteData:
    return route(**dict(zip(names_of(queues), queues, strict=True)))  # type: ignore[arg-type]


def round_by_hand(queues: list[int], loops: int) -> int:
    """The most turns in a row in which no loop is at some broker, wherever the loops begin."""
    order = [broker for broker, number in enumerate(queues) for _ in range(number)]
    size, worst = len(order), 0
    for start, broker in itertools.product(range(size), range(len(queues))):
        without = 0
        for turn in range(4 * size):
            at = {order[(start + turn * loops + loop) % size] for loop in range(loops)}
            without = 0 if broker in at else without + 1
            worst = max(worst, without)
    return worst


@FEW
@given(QUEUES, some.integers(1, 14))
def test_the_wait_of_rare_messages_is_the_longest_row_of_turns_elsewhere(queues: list[int], loops: int) -> None:
    assert rare_wait_us(queues, loops, 1) == round_by_hand(queues, loops)


@FEW
@given(QUEUES, some.integers(0, 30), some.integers(1, 9))
def test_the_number_for_a_wait_is_the_least(queues: list[int], target_us: int, receive_us: int) -> None:
    found = rare_receives(queues, target_us, receive_us)
    assert found is not None
    assert rare_wait_us(queues, found, receive_us) <= target_us
    assert found == 1 or rare_wait_us(queues, found - 1, receive_us) > target_us


@settings(max_examples=25, deadline=None)
@given(QUEUES, some.integers(0, 10**6), some.integers(0, 2000))
def test_one_loop_waits_as_long_as_the_closed_form_says(queues: list[int], seed: int, round_trip_us: int) -> None:
    topic = topic_of(queues)
    scenario = ReceiveScenario(seed=seed, round_trip_us=round_trip_us, messages=20)
    report, whole = simulate_receive(topic, scenario), sum(queues)
    for broker in report.brokers:
        row = whole - broker.queues
        longest = row * longest_receive_us(scenario) / 1000
        # A receive ends at a look, of which there is one every 20 ms; then it has to come to the broker.
        assert longest - row * SCAN_US / 1000 <= broker.longest_unpolled_ms <= longest + round_trip_us / 1000
    assert report.wait is not None
    assert report.wait.max_ms <= report.closed_forms.wait_ms + 2 * round_trip_us / 1000


@settings(max_examples=40, deadline=None)
@example(queues=[1, 1], loops=1, per_minute=[20, 1, 0, 0], consume_us=200_000, batch=1, seed=0)
@given(
    QUEUES,
    some.integers(1, 12),
    some.lists(some.sampled_from([0, 1, 20, 300]), min_size=4, max_size=4),
    some.sampled_from([0, 3000, 200_000]),
    some.integers(1, 32),
    some.integers(0, 10**6),
)
def test_at_no_rates_a_broker_is_without_a_receive_for_longer_than_the_bound(
    queues: list[int], loops: int, per_minute: list[int], consume_us: int, batch: int, seed: int
) -> None:
    topic = topic_of(queues)
    rate_of = dict(zip(names_of(queues), per_minute, strict=False))
    load = tuple(QueueRate(name, 0, Fraction(rate, 60)) for name, rate in rate_of.items() if rate)
    scenario = ReceiveScenario(
        loops=loops, rates=load, consume_us=consume_us, batch=batch, seed=seed, messages=150, duration_us=10 * MINUTE_US
    )
    report = simulate_receive(topic, scenario)
    bound = report.closed_forms.unpolled_ms
    assert bound == unpolled_us(queues, loops, longest_receive_us(scenario), batch * consume_us) / 1000
    assert max(broker.longest_unpolled_ms for broker in report.brokers) <= bound + 1  # the way there


def test_the_number_at_rates_is_found_by_simulation() -> None:
    target = receives_within(TWO, ReceiveScenario(rates=rates(TWO, a=5, b=5), messages=300), SECOND_US)
    assert (target.simulated, target.rare, target.receives is not None) == (True, 9, True)
    assert target.max_ms is not None
    assert target.max_ms <= 1000
    rare = receives_within(TWO, ReceiveScenario(), SECOND_US)
    assert (rare.receives, rare.simulated, rare.max_ms) == (9, False, 0)


@every_case("client", ["push", "pop"])
def test_clients_that_wait_everywhere_need_one_receive(client: ReceiveClient) -> None:
    scenario = ReceiveScenario(client)
    assert receives_within(TWO, scenario, SECOND_US).receives == 1
    assert closed_forms([8, 8], scenario).wait_ms == 1
    wait = simulate_receive(TWO, scenario).wait
    assert wait is not None
    assert wait.max_ms <= 2


@settings(max_examples=20, deadline=None)
@given(some.sampled_from(["simple", "push", "pop"]), some.booleans(), some.integers(0, 10**6))
def test_the_closed_form_tells_when_orphans_come_back(client: ReceiveClient, fifo: bool, seed: int) -> None:
    topic = route(a=3)
    scenario = ReceiveScenario(
        client,
        consumers=2,
        loops=30 if client == "simple" else 1,  # one consumer alone keeps up with what arrives
        fifo=fifo and client != "pop",
        batch=1,
        consume_us=20 * SECOND_US,
        rates=rates(topic, a=1),
        messages=4,
        duration_us=MINUTE_US,
        crashes=(Crash(1, 6 * SECOND_US), Crash(2, 1800 * SECOND_US)),
        seed=seed,
    )
    early_us, late_us = again_after_us(scenario)
    report = simulate_receive(topic, scenario, trace=True)
    crash = report.crashes[0]
    if crash.after is None:
        return
    assert crash.again_latest_ms == late_us / 1000
    # A simple or POP client's message was received up to 6 s before the death; and then a receive must come by. What an
    # orphaned receive took is back sooner.
    assert crash.after.max_ms <= crash.again_latest_ms + 20_000
    kept = [m for m in report.messages or () if m.consumer == 1 and m.deliveries > 1]
    assert all(m.done_ms is not None and m.done_ms - 20_000 >= early_us / 1000 for m in kept)


MS = 1000
EXACT = TimerWheel(0, 0)
NOWHERE: Any = None


class Taken(NamedTuple):
    at_us: int
    visible_us: int
    acknowledged: bool = False


def brought_back(takes: Sequence[Taken], timer: TimerWheel = EXACT, age: int = 0) -> list[int]:
    """How long after it was visible again each message was in the retry topic; a rest began so long before the start."""
    clock = Clock()
    back: dict[int, int] = {}

    def revive(messages: tuple[PopMessage, ...]) -> None:
        for message in messages:
            assert message.number not in back, "once"
            back[message.number] = clock.now - message.stored

    service = ReviveService(clock, timer, age, revive)

    def take(number: int, taken: Taken) -> None:
        own = () if taken.acknowledged else (PopMessage(number, NOWHERE, 0, taken.visible_us),)
        service.checkpoint(taken.visible_us, own, acknowledged=taken.acknowledged)

    for number, taken in enumerate(takes):
        clock.call(taken.at_us, take, number, taken)
    while clock.do_next(max(taken.visible_us for taken in takes) + 60 * SECOND_US):
        pass
    assert sorted(back) == [number for number, taken in enumerate(takes) if not taken.acknowledged]
    return [back[number] for number in sorted(back)]


# With nothing to do a service rests from 0 s to 4 s and from 8.1 s to 12.1 s; it looks in between, every 100 ms.
BY_HAND = {
    "visible at 12 s, handed over at 11 s, read at 12.1 s: 3 s later than due at 14.1 s": ([Taken(0, 12_000 * MS)], [2100 * MS]),
    "visible at 9.3 s, handed over at 9 s, old enough when it is read at 12.1 s": ([Taken(0, 9300 * MS)], [2800 * MS]),
    "visible at 7 s, handed over at 6 s in a look": ([Taken(0, 7000 * MS)], [2100 * MS]),
    "the second, due at 12.5 s and read at 13 s, lets the first wait until 15.6 s":
        ([Taken(0, 12_000 * MS), Taken(0, 13_500 * MS)], [3600 * MS, 2100 * MS]),
    "the second is due 2.1 s after the first is visible: it is read at 15 s, and itself with the next look":
        ([Taken(0, 12_000 * MS), Taken(0, 15_100 * MS)], [2100 * MS, 2100 * MS]),
    "handed over at once where it is due already, at 10 s; read at 12.1 s": ([Taken(10_000 * MS, 11_000 * MS)], [2100 * MS]),
    # An acknowledgement that stays ends each look at once: after that of 8.1 s it looks at 9.1, 11.1, 14.1 and 18.1 s.
    "handed over at 15 s, read at 18.1 s": ([Taken(0, 5000 * MS, acknowledged=True), Taken(0, 15_500 * MS)], [2600 * MS]),
}  # fmt: skip


@every_case("name", BY_HAND)
def test_messages_are_brought_back_as_worked_out_by_hand(name: str) -> None:
    takes, expected = BY_HAND[name]
    assert brought_back(takes) == expected


@settings(max_examples=150, deadline=None)
@given(
    some.lists(some.tuples(some.integers(0, 6_000_000), some.booleans()), min_size=1, max_size=40),
    some.builds(TimerWheel, some.integers(0, SECOND_US - 1), some.integers(0, 100 * MS - 1)),
    some.integers(0, IDLE_US - 1),
)
def test_messages_come_back_within_the_closed_form(gaps: list[tuple[int, bool]], timer: TimerWheel, age: int) -> None:
    at, takes = 0, []
    for gap, acknowledged in gaps:
        at += gap
        takes.append(Taken(at, at + INVISIBLE_US, acknowledged))
    early_us, late_us = (end - INVISIBLE_US for end in again_after_us(ReceiveScenario()))
    assert all(early_us < after <= late_us for after in brought_back(takes, timer, age))
