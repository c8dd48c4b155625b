from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as some

from rmqlb.engine.kernel import Clock
from rmqlb.engine.simulate_receive.broker import IDLE_US, Message, ReviveService, TimerWheel
from rmqlb.engine.simulate_receive.rules import (
    SCAN_US,
    again_after_us,
    longest_receive_us,
    longest_row,
    rare_receives,
    rare_wait_us,
    unpolled_us,
)
from rmqlb.engine.simulate_receive.simulate_receive import closed_forms, receives_within, simulate_receive
from rmqlb.model.route import TopicRouteData
from rmqlb.model.simulate_receive import INVISIBLE_US, SECOND_US, Crash, QueueRate, ReceiveClient, ReceiveScenario
from tests.engine.simulate_receive.scenarios import MINUTE_US, TWO, rates
from tests.support.builders import route
from tests.support.mismatches import every_case

QUEUES = some.lists(some.integers(1, 6), min_size=2, max_size=4)
FEW = settings(max_examples=60, deadline=None)


def names_of(queues: list[int]) -> str:
    return "abcd"[: len(queues)]


def topic_of(queues: list[int]) -> TopicRouteData:
    return route(**dict(zip(names_of(queues), queues, strict=True)))  # type: ignore[arg-type]


def round_by_hand(queues: list[int], loops: int) -> int:
    """The most turns in a row in which no loop is at some broker, wherever the loops begin."""
    order = [broker for broker, number in enumerate(queues) for _ in range(number)]
    worst = 0
    for start in range(len(order)):
        at = [
            {order[(start + turn * loops + loop) % len(order)] for loop in range(loops)}
            for turn in range(4 * len(order))
        ]
        for broker in range(len(queues)):
            without = 0
            for brokers in at:
                without = 0 if broker in brokers else without + 1
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


@settings(max_examples=25, deadline=None)
@given(QUEUES, some.integers(1, 12), some.integers(0, 10**6))
def test_rare_messages_wait_no_longer_than_the_closed_form(queues: list[int], loops: int, seed: int) -> None:
    topic = topic_of(queues)
    report = simulate_receive(topic, ReceiveScenario(seed=seed, loops=loops, messages=20))
    assert report.wait is not None
    turns = longest_row(queues) // loops + 1
    assert report.wait.max_ms <= report.closed_forms.wait_ms + turns * SCAN_US / 1000 + 2


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
    load = tuple(
        QueueRate(name, 0, Fraction(rate, 60)) for name, rate in zip(names_of(queues), per_minute, strict=False) if rate
    )
    scenario = ReceiveScenario(
        loops=loops, rates=load, consume_us=consume_us, batch=batch, seed=seed, messages=150, duration_us=10 * MINUTE_US
    )
    report = simulate_receive(topic, scenario)
    bound = report.closed_forms.unpolled_ms
    assert bound == unpolled_us(queues, loops, longest_receive_us(scenario), batch * consume_us) / 1000
    assert max(broker.longest_unpolled_ms for broker in report.brokers) <= bound + 1  # the way there


def test_the_number_at_rates_is_found_by_simulation() -> None:
    target = receives_within(TWO, ReceiveScenario(rates=rates(TWO, a=5, b=5), messages=300), SECOND_US)
    assert target.simulated
    assert target.rare == 9
    assert target.receives is not None
    assert target.max_ms is not None
    assert target.max_ms <= 1000
    rare = receives_within(TWO, ReceiveScenario(), SECOND_US)
    assert (rare.receives, rare.simulated, rare.max_ms) == (9, False, 0)


def test_clients_that_wait_everywhere_need_one_receive() -> None:
    for client in ("push", "pop"):
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

    def revive(messages: tuple[Message, ...]) -> None:
        for message in messages:
            assert message.number not in back, "once"
            back[message.number] = clock.now - message.stored

    service = ReviveService(clock, timer, age, revive)

    def take(number: int, taken: Taken) -> None:
        own = () if taken.acknowledged else (Message(number, NOWHERE, 0, taken.visible_us),)
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
    "the second, due at 12.5 s and read at 13 s, lets the first wait until 15.6 s": (
        [Taken(0, 12_000 * MS), Taken(0, 13_500 * MS)],
        [3600 * MS, 2100 * MS],
    ),
    "the second is due 2.1 s after the first is visible: it is read at 15 s, and itself with the next look": (
        [Taken(0, 12_000 * MS), Taken(0, 15_100 * MS)],
        [2100 * MS, 2100 * MS],
    ),
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
