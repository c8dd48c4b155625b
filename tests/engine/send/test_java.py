import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import JavaRandom, UsageError, select_by_hash, select_by_machine_room, select_by_random
from rmqlb.engine.send.java import hash_code, map_order
from tests.support.builders import queues
from tests.support.mismatches import every_case

EIGHT = [*queues(4, "broker-a"), *queues(4, "broker-b")]


@every_case(("arg", "code", "of_8", "of_3"), [
    ("order-1", -1207111310, 6, 2),
    ("polygenelubricants", -2147483648, 0, 2),
    (-7, -7, 7, 1),
    (-2147483648, -2147483648, 0, 2),
    (2147483647, 2147483647, 7, 1),
    (12345678901, -539222985, 1, 0),
    # `Long.hashCode` folds both halves; a Long is what does not fit an Integer.
    (2**31, -(2**31), 0, 2),
    (-(2**31) - 1, -(2**31), 0, 2),
    (2**63 - 1, -(2**31), 0, 2),
    (-(2**63), -(2**31), 0, 2),
    (True, 1231, 7, 1),
    (False, 1237, 5, 1),
    ("x", 120, 0, 0),
    (1.5, 1073217536, 0, 2),
])  # fmt: skip
def test_hashes_and_places_are_javas(arg: object, code: int, of_8: int, of_3: int) -> None:
    assert hash_code(arg) == code
    assert select_by_hash(EIGHT, arg) == EIGHT[of_8]
    assert select_by_hash(EIGHT[:3], arg) == EIGHT[of_3]


@given(st.text())
def test_a_strings_hash_is_a_java_int(text: str) -> None:
    data = text.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2)]
    expected = sum(unit * 31 ** (len(units) - 1 - place) for place, unit in enumerate(units)) % 2**32
    assert hash_code(text) % 2**32 == expected
    assert -(2**31) <= hash_code(text) < 2**31


@every_case("expected", [
    "2 3 0 1 13 14 8 11 22 9 12 6 20 7 10 21 4 5 19 17 18 15 16",
    "2 3 0 1 22 23 20 21 13 14 11 8 12 9 6 10 7 4 5 19 17 18 15 16",
    (
        "2 3 0 1 24 25 22 23 20 21 28 29 26 27 13 14 11 12 10 19 17 18 15 16 46 47 44 45 42 43 40 41 48 49 35 36 8 33 "
        "9 34 6 31 7 32 4 5 30 39 37 38"
    ),
], ids=lambda expected: str(len(expected.split())))  # fmt: skip
def test_a_map_of_brokers_iterates_as_java_does_while_it_grows(expected: str) -> None:
    """As a `ConcurrentHashMap(16)` of Java 17 gave `broker-0`, `broker-1`, …: it doubles at 24 and at 48 names."""
    names = [f"broker-{number}" for number in expected.split()]
    assert map_order(sorted(names, key=lambda name: int(name.partition("-")[2]))) == names


@every_case("arg", [None, b"bytes", object(), [1], 2**63, -(2**63) - 1])
def test_what_java_hashes_by_identity_is_refused(arg: object) -> None:
    with pytest.raises(UsageError):
        select_by_hash(EIGHT, arg)


@every_case(("bound", "numbers"), [
    (None, [-1170105035, 234785527, -1360544799]),
    (8, [5, 0, 5, 0, 2]),
    (6, [2, 3, 0, 2, 0]),
    (5, [0, 3, 3, 4, 0, 0, 0, 3]),
    (10, [0, 3, 8, 4, 0, 5, 5, 8]),
    (2**30, [781215565, 58696381, 733605624]),
    (2**30 + 1, [117392763, 102948884, 662969970]),
])  # fmt: skip
def test_random_numbers_are_javas(bound: int | None, numbers: list[int]) -> None:
    random = JavaRandom(42)
    assert [random.next_int(bound) for _ in numbers] == numbers
    with pytest.raises(ValueError, match="bound must be positive"):
        random.next_int(0)


def test_random_and_machine_room() -> None:
    assert select_by_random(EIGHT, JavaRandom(42)) == EIGHT[5]
    assert [select_by_machine_room(EIGHT, room) for room in ("room", "broker", None)] == [None] * 3  # type: ignore[func-returns-value]
