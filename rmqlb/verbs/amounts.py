"""Amounts as typed, parsed: times, numbers, rates, sizes, dates. Each error names the option."""

import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from rmqlb.errors import UsageError, typed
from rmqlb.model.limits import DAY_US, LONGEST_US, MOST_MESSAGES, MOST_RATE, UNITS_US, time_us
from rmqlb.model.snapshot import close_names

if TYPE_CHECKING:
    from fractions import Fraction

Choice = TypeVar("Choice", bound=str)
Value = TypeVar("Value")
_MOST_BYTES = 1 << 40
_LARGEST_IMBALANCE = 1000


def _wrong(option: str, text: str, problem: str, hint: str | None = None) -> UsageError:
    return UsageError(f"{typed(option, text)}: {problem}", hint=hint)


def _match(pattern: str, text: str, option: str, what: str, hint: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text.strip())
    if match is None:
        raise _wrong(option, text, what, hint)
    return match


def given(read: Callable[..., Value], text: str | None, *rest: Any) -> Value | None:
    """The value of an option, or None where the option is not given."""
    return None if text is None else read(text, *rest)


def duration_us(text: str, option: str, *, zero: bool = False) -> int:
    """A time such as `45s`, `1m30s`, `250us`; only 0 needs no unit."""
    given = text.strip().lower()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", given):
        if float(given):
            raise _wrong(option, text, f"which unit? {_with_units(given)}")
        given = "0s"
    value = time_us(given)
    if value is None:
        raise _wrong(option, text, "not a time", "write 45s, 1m30s, 800ms or 250us")
    if value > LONGEST_US:
        raise _wrong(option, text, "longer than a year")
    if value == 0 and not zero:
        raise _wrong(option, text, "must be longer than 0")
    return value


def _with_units(number: str) -> str:
    """What a bare number may mean: thousands are the milliseconds of RocketMQ's own settings."""
    thousands = number.removesuffix("000")
    return f"{number}ms or {thousands}s" if thousands not in ("", number) else f"{number}s or {number}ms"


def seconds(text: str, option: str) -> float:
    """A time of a day at the most, in seconds."""
    us = duration_us(text, option)
    if us > DAY_US:
        raise _wrong(option, text, "longer than a day")
    return us / UNITS_US["s"]


def spacing(since: object, option: str = "--earlier") -> float | None:
    """The time between two samples, where the option has one instead of a file."""
    if not isinstance(since, str) or time_us(since) is None or os.path.exists(since):
        return None
    return seconds(since, option)


def whole_ms(text: str, option: str) -> int:
    """A time in milliseconds, as the client's settings have it; 0 is one."""
    us = duration_us(text, option, zero=True)
    if us % 1000:
        raise _wrong(option, text, "the client uses whole milliseconds")
    return us // 1000


def days(text: str, option: str) -> int:
    """A number of days such as `90d`; a bare number is days."""
    return int(_match(r"(?ai)0*([1-9]\d{0,4})d?", text, option, "not a number of days", "write 90d")[1])


def milliseconds(text: str, option: str) -> tuple[int, ...]:
    """Whole milliseconds separated by commas, ascending or equal."""
    numbers = r"\s*\d{1,9}\s*(?:,\s*\d{1,9}\s*)*"
    _match(numbers, text, option, "not milliseconds separated by commas", "write 50,100,550,1800")
    values = tuple(map(int, text.split(",")))
    if list(values) != sorted(values):
        raise _wrong(option, text, "the numbers must increase")
    return values


def count(text: str, option: str, most: int = MOST_MESSAGES, least: int = 1) -> int:
    """A whole number; `1_000_000`, `1e6` and `5k`, `2M` are understood."""
    match = re.fullmatch(r"(\d(?:_?\d){0,15})(?:e(\d{1,2})|([kKMG]))?", text.strip())
    factor = {"k": 1000, "K": 1000, "M": 10**6, "G": 10**9, "": 1}
    value = int(match[1]) * 10 ** int(match[2] or 0) * factor[match[3] or ""] if match else -1
    if not least <= value <= most:
        hint = "write 1000 or 1k, without a comma" if "," in text else None
        raise _wrong(option, text, f"not a number from {least} to {most:,}", hint)
    return value


def rate(text: str, option: str) -> "Fraction":
    """Messages a second: `100`, `1k`, `2.5`, `100/s`, `30/m`."""
    from fractions import Fraction

    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)(k?)(?:/(s|m|h))?", text.strip())
    per = {"s": 1, "m": 60, "h": 3600}
    value = Fraction(match[1]) * (1000 if match[2] else 1) / per[match[3] or "s"] if match else Fraction(0)
    if not 0 < value <= MOST_RATE:
        raise _wrong(option, text, "not a rate", "write 100, 2.5/s or 30/m; at most 10000000 per second")
    return value


def percentage(text: str, option: str) -> float:
    """`0.1%` or `0.001`, as a fraction."""
    return _fraction(text, option, "not a precision", "write 0.1% or 0.001", is_part=True)


def share(text: str, option: str) -> float:
    """`80%` or `0.8`, more than nothing and at most the whole, as a fraction."""
    return _fraction(text, option, "not a share", "write 80% or 0.8, at most 100%")


def _fraction(text: str, option: str, problem: str, hint: str, *, is_part: bool = False) -> float:
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,40})?)(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value <= 1 or (is_part and value == 1):
        raise _wrong(option, text, problem, hint)
    return value


def imbalance(text: str, option: str) -> float:
    """Most queues of a consumer over the mean."""
    match = re.fullmatch(r"\d{1,4}(?:\.\d{1,40})?", text.strip())
    value = float(match[0]) if match else _LARGEST_IMBALANCE + 1
    if not 1 <= value <= _LARGEST_IMBALANCE:
        low = "the smallest possible value is 1 (perfectly even)"
        why = low if value < 1 else f"not a number from 1 to {_LARGEST_IMBALANCE}"
        raise _wrong(option, text, why, "write 1.1")
    return value


def span(text: str, option: str, most: int) -> tuple[int, int]:
    """`2..40`, or `9` for `9..9`: two whole numbers, the first at least 1."""
    match = _match(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text, option, "not a range", "write 2..40, or one number")
    first, last = int(match[1]), int(match[2] or match[1])
    if not first or not last:
        raise _wrong(option, text, "the smallest is 1", "write 1..40")
    if max(first, last) > most:
        raise _wrong(option, text, f"more than {most}")
    if first > last:
        raise _wrong(option, text, f"{first} is more than {last}", f"write {last}..{first}")
    return first, last


def byte_count(text: str, option: str) -> int:
    """A size: `64MB`, `1GB`; a bare number is bytes."""
    match = _match(r"(?i)(\d+(?:\.\d+)?)\s*([kmg]?)i?b?", text, option, "not a size", "write 500KB, 64MB or 1GB")
    value = float(match[1]) * 1024 ** " kmg".index(match[2].lower() or " ")
    if value > _MOST_BYTES:
        raise _wrong(option, text, "more than 1 TB")
    return int(value)


def day(text: str, option: str) -> date:
    try:
        return date.fromisoformat(_match(r"(?a)\d{4}-\d{2}-\d{2}", text, option, "not a date", "write YYYY-MM-DD")[0])
    except ValueError:
        raise _wrong(option, text, "not a date", "write YYYY-MM-DD") from None


def moment_ms(text: str, option: str) -> int:
    """A moment as `2026-11-01T12:00:00.250Z`, in milliseconds since 1970."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            hint = "append Z for UTC, or an offset such as +02:00"
            raise _wrong(option, text, "in which time zone?", hint)
        return (found - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
    except ValueError:
        raise _wrong(option, text, "not a point in time", "write 2026-11-01T12:00:00Z") from None


def one_of(text: str, option: str, choices: Sequence[Choice]) -> Choice:
    """One of several words, in any case."""
    found = next((choice for choice in choices if choice.lower() == text.lower()), None)
    if found is None:
        hint = close_names(text.upper() if choices[0].isupper() else text.lower(), choices)
        raise _wrong(option, text, f"write {', '.join(choices[:-1])} or {choices[-1]}", hint)
    return found


def on_or_off(text: str, option: str) -> bool:
    if text.lower() not in {"on", "true", "yes", "off", "false", "no"}:
        raise _wrong(option, text, "write on or off")
    return text.lower() in {"on", "true", "yes"}
