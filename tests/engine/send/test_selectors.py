"""Selectors: Java's hashes and remainders, its random numbers, and sends that are never retried."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import (
    Failure,
    JavaRandom,
    MessageQueue,
    Moment,
    Reaction,
    SendScenario,
    UsageError,
    select_by_hash,
    select_by_machine_room,
    select_by_random,
    simulate_send,
)
from rmqlb.engine.send.java import hash_code, map_order
from rmqlb.model.send_scenario import Selector
from tests.engine.send.scenarios import REFUSED, TWO
from tests.support.builders import queues, route
from tests.support.mismatches import every_case

EIGHT = [*queues(4, "broker-a"), *queues(4, "broker-b")]


@every_case(
    ("arg", "code", "of_8", "of_3"),
    [
        ("order-1", -1207111310, 6, 2),
        ("polygenelubricants", -2147483648, 0, 2),
        (-7, -7, 7, 1),
        (-2147483648, -2147483648, 0, 2),
        (12345678901, -539222985, 1, 0),
        (True, 1231, 7, 1),
        ("x", 120, 0, 0),
        (1.5, 1073217536, 0, 2),
    ],
)
def test_hashes_and_places_are_javas(arg: object, code: int, of_8: int, of_3: int) -> None:
    assert hash_code(arg) == code
    assert select_by_hash(EIGHT, arg) == EIGHT[of_8]
    assert select_by_hash(EIGHT[:3], arg) == EIGHT[of_3]


@given(st.text())
def test_a_strings_hash_is_a_java_int(text: str) -> None:
    units = [
        int.from_bytes(text.encode("utf-16-be")[i : i + 2]) for i in range(0, 2 * len(text.encode("utf-16-be")) // 2, 2)
    ]
    expected = sum(unit * 31 ** (len(units) - 1 - i) for i, unit in enumerate(units)) % 2**32
    assert hash_code(text) % 2**32 == expected
    assert -(2**31) <= hash_code(text) < 2**31


@every_case(
    "expected",
    [
        "2 3 0 1 13 14 8 11 22 9 12 6 20 7 10 21 4 5 19 17 18 15 16",
        "2 3 0 1 22 23 20 21 13 14 11 8 12 9 6 10 7 4 5 19 17 18 15 16",
        (
            "2 3 0 1 24 25 22 23 20 21 28 29 26 27 13 14 11 12 10 19 17 18 15 16 46 47 44 45 42 43 40 41 48 49 35 36 8 33 "
            "9 34 6 31 7 32 4 5 30 39 37 38"
        ),
    ],
    ids=lambda expected: str(len(expected.split())),
)
def test_a_map_of_brokers_iterates_as_java_does_while_it_grows(expected: str) -> None:
    """As a `ConcurrentHashMap(16)` of Java 17 gave `broker-0`, `broker-1`, …: it doubles at 24 and at 48 names."""
    names = [f"broker-{number}" for number in expected.split()]
    assert map_order(sorted(names, key=lambda name: int(name.partition("-")[2]))) == names


@every_case("arg", [None, b"bytes", object(), [1], 2**63, -(2**63) - 1])
def test_what_java_hashes_by_identity_is_refused(arg: object) -> None:
    with pytest.raises(UsageError):
        select_by_hash(EIGHT, arg)


def test_random_numbers_are_javas() -> None:
    random = JavaRandom(42)
    assert [random.next_int() for _ in range(3)] == [-1170105035, 234785527, -1360544799]
    eight, six = JavaRandom(42), JavaRandom(42)
    assert [eight.next_int(8) for _ in range(5)] == [5, 0, 5, 0, 2]
    assert [six.next_int(6) for _ in range(5)] == [2, 3, 0, 2, 0]
    five, ten = JavaRandom(42), JavaRandom(42)
    assert [five.next_int(5) for _ in range(8)] == [0, 3, 3, 4, 0, 0, 0, 3]
    assert [ten.next_int(10) for _ in range(8)] == [0, 3, 8, 4, 0, 5, 5, 8]
    wide, odd = JavaRandom(42), JavaRandom(42)
    assert [wide.next_int(2**30) for _ in range(3)] == [781215565, 58696381, 733605624]
    assert [odd.next_int(2**30 + 1) for _ in range(3)] == [117392763, 102948884, 662969970]
    with pytest.raises(ValueError, match="bound must be positive"):
        six.next_int(0)


def test_random_and_machine_room() -> None:
    assert select_by_random(EIGHT, JavaRandom(42)) == EIGHT[5]
    assert [select_by_machine_room(EIGHT, room) for room in ("room", "broker", None)] == [None] * 3  # type: ignore[func-returns-value]


GONE = Failure("b", REFUSED, Moment(us=0), notices_us=0)


@every_case(
    ("failure", "order_topic", "remaps"),
    [
        (GONE, False, True),
        (GONE, True, False),
        (replace(GONE, notices_us=None), False, False),
        (replace(GONE, notices_us=5_000_000, end=Moment(us=4_000_000)), False, False),
        (replace(GONE, notices_us=3_000_000, end=Moment(us=4_000_000)), False, True),
        (replace(GONE, start=Moment(message=5), notices_us=0), False, True),
        (Failure("b", Reaction("code", "SYSTEM_ERROR", 1)), False, False),
        (Failure("b", Reaction("read-only", "read-only")), False, True),
    ],
)
def test_keys_go_elsewhere_where_the_list_can_change(failure: Failure, order_topic: bool, remaps: bool) -> None:
    topic = replace(route(a=2, b=2), order_topic_conf="a:2;b:2" if order_topic else None)
    scenario = SendScenario(messages=10, selector=Selector("hash", (3,)), failures=(failure,))
    codes = {finding.code for finding in simulate_send(topic, scenario).findings}
    assert ("hash-remaps" in codes, "order-topic" in codes) == (remaps, order_topic)


def test_a_selector_gets_each_key_in_turn_and_a_list_of_its_own() -> None:
    asked: list[tuple[int, object]] = []

    def chosen(listed: list[MessageQueue], key: object) -> MessageQueue:
        asked.append((len(listed), key))
        return listed.pop()

    keyed = Selector("function", function=chosen, keys=("x", "y", "z"))
    report = simulate_send(TWO, SendScenario(messages=4, selector=keyed))
    assert asked == [(4, "x"), (4, "y"), (4, "z"), (4, "x")]
    assert [tally.stored for tally in report.queues] == [0, 0, 0, 4]
    simulate_send(TWO, SendScenario(messages=2, selector=Selector("function", function=chosen)))
    assert asked[4:] == [(4, 1), (4, 2)]


def test_what_a_selector_throws_first_is_told() -> None:
    def chosen(_: list[MessageQueue], key: object) -> MessageQueue:
        raise ValueError(f"no {key}")

    report = simulate_send(TWO, SendScenario(messages=2, selector=Selector("function", function=chosen)))
    assert report.totals.lost_by == {"select message queue threw exception": 2}
    (text,) = (finding.message for finding in report.findings if finding.code == "selector-throws")
    assert "throws for 2 of 2 messages" in text
    assert "no 1" in text


def test_a_long_is_what_does_not_fit_an_integer() -> None:
    """`Long.hashCode` folds both halves: of −2^31 − 1, whose upper half is all ones, it leaves −(−2^31 − 1) − 1."""
    assert hash_code(2**31 - 1) == 2**31 - 1
    assert hash_code(2**31) == -(2**31)
    assert hash_code(-(2**31)) == -(2**31)
    assert hash_code(-(2**31) - 1) == -(2**31)
    assert (hash_code(2**63 - 1), hash_code(-(2**63))) == (-(2**31), -(2**31))
