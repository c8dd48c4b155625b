"""`expr:arg % n`: Java's arithmetic, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import MessageQueue, UsageError, select_by_hash
from rmqlb.engine.send.expressions import JavaError, expression_selector
from rmqlb.engine.send.java_hash import hash_code
from tests.support.builders import queues

QUEUES = queues(7)
MIN_HASH = "polygenelubricants"
"""A text whose hashCode() is Integer.MIN_VALUE."""


def index(text: str, key: object, key_type: str = "int", of: list[MessageQueue] = QUEUES) -> int:
    return expression_selector(text, key_type)(of, key).queue_id


@pytest.mark.parametrize(
    ("text", "key", "key_type", "expected"),
    [
        ("arg % n", 12, "int", 5),
        (" arg % n ", 12, "long", 5),
        ("-arg % n + 6", 12, "int", 1),  # -12 % 7 is -5 in Java
        ("-7 / 2 + 5", 0, "int", 2),  # towards zero: -3
        ("-7 // 2 + 5", 0, "int", 2),
        ("floorMod(arg, n)", -1, "int", 6),
        ("abs(arg) % n", -12, "long", 5),
        ("abs(arg) % n", -(2**33) - 5, "long", 6),  # 2^33 is 8^11, a seven times something and 1; 32 bits would leave 5
        ("(arg * 3 + 1 - n) % n", 4, "int", 6),
        ("arg & 3", 6, "int", 2),
        ("+arg", 3, "int", 3),
        ("arg * 2 % n", 2**30, "int", None),  # wraps to -2^31
        ("arg * 2 % n", 2**30, "long", 2),
        ("arg + 2147483648 - 2147483648", 3, "int", 3),  # a literal that is a long makes a long
        ("hash(arg) % n", "order-1", "string", None),
        ("hash(arg) & 2147483647", "", "string", 0),
        ("hash(arg) % n", 2**32 + 1, "long", 0),  # Long.hashCode: 1 ^ 1
        ("hash(arg) % n", 12, "int", 5),
        ("hash(arg) * 2 % n", 2**30, "int", None),  # a hash is an int: it wraps too
        ("hash(arg) * 2 % n", MIN_HASH, "string", 0),  # that of a text too: -2^32 wraps to 0
        ("-arg % n", 2**30 + 1, "int", None),
        ("-arg % n", -(2**63), "long", None),  # what is negated stays a long: -2^63 again
        ("abs(hash(arg)) + 2147483647 + 6", MIN_HASH, "string", 5),  # Math.abs(MIN_VALUE) is MIN_VALUE
    ],
)  # fmt: skip
def test_it_is_computed_as_java_does(text: str, key: object, key_type: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(JavaError, match=r"IndexOutOfBoundsException: index -[0-9]+ of 7 queues"):
            index(text, key, key_type)
    else:
        assert index(text, key, key_type) == expected


def test_a_division_by_zero_is_javas_exception() -> None:
    for text in ("arg / 0", "arg % (n - 7)", "floorMod(arg, 0)"):
        with pytest.raises(JavaError, match="ArithmeticException: / by zero"):
            index(text, 5)


@given(key=st.text())
def test_the_remainder_of_the_magnitude_is_the_hash_selector(key: str) -> None:
    if hash_code(key) != -(2**31):
        assert expression_selector("abs(hash(arg)) % n", "string")(QUEUES, key) == select_by_hash(QUEUES, key)


@given(left=st.integers(-(2**63), 2**63 - 1), right=st.integers(1, 2**31 - 1))
def test_the_remainder_has_the_sign_of_its_left_side(left: int, right: int) -> None:
    expected = abs(left) % right * (-1 if left < 0 else 1)
    select = expression_selector(
        f"(arg % {right}) - {expected}" if expected >= 0 else f"(arg % {right}) + {-expected}", "long"
    )
    assert select(QUEUES, left).queue_id == 0


@pytest.mark.parametrize(
    "text",
    [
        "", "arg %", "(((", "foo", "arg ** 2", "arg < 3", "n if n else 0", "__import__('os')", "arg.real", "[arg]", "1.5", "'a'",
        "True", "lambda: 1", "abs(arg, 1)", "abs()", "floorMod(arg)", "hash(n)", "hash(arg=1)", "abs(*n)", "arg and n", "~arg",
        "arg | 1", "9223372036854775808", "f'{arg}'", "(x := 1)", "arg\0", "(" * 150 + "1" + ")" * 49, "1" * 201, "arg @ n",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--selector expr:") as caught:
        expression_selector(text, "int")
    assert len(str(caught.value)) < 500


def test_a_text_of_200_characters_is_not_too_long() -> None:
    assert index("1" + "+0" * 99 + " ", 0) == 1


def test_a_text_is_no_number() -> None:
    with pytest.raises(UsageError, match="arg is a text") as caught:
        expression_selector("arg % n", "string")
    assert caught.value.hint == "write hash(arg), or --key-type int or long"
    expression_selector("hash(arg) % n", "string")


@given(text=st.text(alphabet="argnhashbs()+-*/%& 0123456789,", max_size=40), key=st.integers(-(2**63), 2**63 - 1))
def test_whatever_is_written_is_a_queue_an_exception_of_java_or_refused(text: str, key: int) -> None:
    try:
        queue = expression_selector(text, "long")(QUEUES, key)
    except (UsageError, JavaError):
        return
    assert queue in QUEUES
