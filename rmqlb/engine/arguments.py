"""What callers of the Python API hand in, held against the annotations of our own types.

Rules of this file:
- A value of the wrong type or out of bounds is a `UsageError` that names the field and what it can be. Where several
  fields contradict each other, the function that uses them says so.
- Text is never taken for a list of characters, a truth never for a number, a float never for a whole number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from itertools import islice
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import close_names

Check = Callable[[object], None]
_SHOWN = 60
_Item = TypeVar("_Item")


class _WrongError(Exception):
    """A value that does not fit; the path to it grows on its way up."""

    def __init__(self, value: object, expected: str, hint: str | None = None) -> None:
        super().__init__(expected)
        self.value, self.expected, self.hint = value, expected, hint
        self.path = ""

    def at(self, step: str) -> _WrongError:
        self.path = step + self.path
        return self


class _LengthError(_WrongError):
    """A list that is too short or too long: its length is what does not fit."""


def require(value: object, hint: Any, name: str) -> None:
    """Refuse (UsageError) a value that an annotation, or a Struct and the annotations of its fields, does not allow."""
    try:
        _check_of(hint)(value)
    except _WrongError as wrong:
        found = f"has {wrong.value} elements" if isinstance(wrong, _LengthError) else f"is {shown(wrong.value)}"
        raise UsageError(f"{name}{wrong.path} {found}: {wrong.expected} is needed", hint=wrong.hint) from None


def items(values: object, kind: type[_Item], name: str, most: int) -> list[_Item]:
    """The elements of any iterable but text, which would be taken for its characters (raises UsageError)."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is {shown(values)}: a list of {_kind(kind)} is needed")
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise UsageError(f"{name} has more than {most} elements")
    require(found, tuple[kind, ...], name)  # type: ignore[valid-type]
    return found


def shown(value: object) -> str:
    """A value in a message: short, and of things that are not ours the type alone."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 128 else f"a number of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(float(value))
    if is_fraction(type(value)):
        return f"{shown(value.numerator)}/{shown(value.denominator)}"  # type: ignore[attr-defined]
    if isinstance(value, str):
        text = ascii(str(value[:_SHOWN]))
        return text if len(value) <= _SHOWN else f"{text[:-1]}…{text[-1]}"
    return f"of type {type(value).__name__}"


def check_route(route: TopicRouteData) -> None:
    """Refuse fields that hold what they cannot (UsageError), or more queues than any topic has (DataError)."""
    require(route, TopicRouteData, "TopicRouteData")
    queues = sum(max(data.read_queue_nums, data.write_queue_nums, 0) for data in route.queue_datas)
    if queues > MOST_QUEUES:
        raise DataError(f"topic {route.topic}: {queues} queues, more than {MOST_QUEUES}")


def check_routes(routes: Sequence[TopicRouteData]) -> None:
    """`check_route` for each of several (raises UsageError, DataError)."""
    require(routes, list[TopicRouteData], "routes")
    for route in routes:
        check_route(route)


@cache
def _check_of(hint: Any) -> Check:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(_check_of(args[0]), [meta for meta in args[1:] if isinstance(meta, Meta)])
    if origin in (Union, UnionType):
        return _any_of(args)
    if origin is Literal:
        return _one_of(args)
    if isinstance(origin, type) and args and origin is not re.Pattern and issubclass(origin, Iterable):
        if issubclass(origin, Mapping):
            return _mapping(*args)
        is_set = issubclass(origin, AbstractSet)
        return _many(args[0], "set", AbstractSet, list, tuple) if is_set else _many(args[0], "list", list, tuple)
    return _plain(origin or hint)


def _plain(kind: Any) -> Check:
    if kind in (Any, object):
        return lambda _: None
    if getattr(kind, "__name__", "") == "Callable" or getattr(kind, "_is_protocol", False):
        kind = Callable

    fits, expected = _EXACTLY.get(kind) or (partial(_is_a, kind), _kind(kind))
    if isinstance(kind, type) and is_fraction(kind):
        fits, expected = partial(_is_rational, kind), "a Fraction or a whole number"

    def check(value: object) -> None:
        if not fits(value):
            raise _WrongError(value, expected)

    return check


def _is_rational(fraction: type, value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, fraction))


def _is_a(kind: Any, value: object) -> bool:
    """Objects with a method of RocketMQ's interfaces are functions, too; `user_functions` looks at their arguments."""
    if kind is Callable:
        return callable(value) or any(callable(getattr(value, name, None)) for name in ("allocate", "select"))
    return isinstance(value, kind)


def _is_finite(value: Any) -> bool:
    try:
        return isfinite(value)
    except OverflowError:
        return False


_EXACTLY: Mapping[Any, tuple[Callable[[object], bool], str]] = {
    int: (lambda value: type(value) is int, "a whole number"),
    float: (
        lambda value: not isinstance(value, bool) and isinstance(value, int | float) and _is_finite(value),
        "a number",
    ),
}
"""Numbers, of which Python takes one kind for another."""


def is_fraction(kind: type) -> bool:
    """Asked without importing `fractions`, which takes half a millisecond: whoever has one has imported it."""
    return any((base.__module__, base.__name__) == ("fractions", "Fraction") for base in kind.__mro__)


def _bounded(check: Check, metas: list[Meta]) -> Check:
    low = next((meta.ge for meta in metas if meta.ge is not None), None)
    high = next((meta.le for meta in metas if meta.le is not None), None)
    least = next((meta.min_length for meta in metas if meta.min_length is not None), 0)
    most = next((meta.max_length for meta in metas if meta.max_length is not None), None)

    def bounded(value: Any) -> None:
        check(value)
        if (low is not None and value < low) or (high is not None and value > high):
            raise _WrongError(value, _between(low, high))
        if (least or most is not None) and not least <= len(value) <= (most or len(value)):
            raise _LengthError(len(value), f"a length from {least}" + (f" to {most}" if most else ""))

    return bounded


def _between(low: float | None, high: float | None) -> str:
    if high is None:
        return f"a number of at least {low}"
    return f"a number of at most {high}" if low is None else f"a number from {low} to {high}"


def _any_of(kinds: tuple[Any, ...]) -> Check:
    checks = [(kind, _check_of(kind)) for kind in kinds if kind is not NoneType]

    def any_of(value: object) -> None:
        if value is None and NoneType in kinds:
            return None
        wrongs: list[_WrongError] = []
        for _, check in checks:
            try:
                return check(value)
            except _WrongError as wrong:
                wrongs.append(wrong)
        deepest = next((wrong for wrong in wrongs if wrong.path), None)
        if deepest is None and len(wrongs) > 1:
            expected = " or ".join(dict.fromkeys(wrong.expected for wrong in wrongs))
            deepest = _WrongError(value, expected)
        raise deepest or wrongs[0]

    return any_of


def _one_of(values: tuple[Any, ...]) -> Check:
    def one_of(value: object) -> None:
        if not isinstance(value, str) or value not in values:
            hint = close_names(value[:_SHOWN], values) if isinstance(value, str) else None
            raise _WrongError(value, "one of " + ", ".join(map(str, values)), hint)

    return one_of


def _many(kind: Any, what: str, *kinds: Any) -> Check:
    check = _check_of(kind)

    def many(values: Any) -> None:
        if not isinstance(values, kinds):
            raise _WrongError(values, f"a {what} of {_kind(kind)}")
        for place, value in enumerate(values):
            try:
                check(value)
            except _WrongError as wrong:
                raise wrong.at(f"[{place}]") from None

    return many


def _mapping(key_kind: Any, value_kind: Any) -> Check:
    check_key, check_value = _check_of(key_kind), _check_of(value_kind)

    def mapping(value: object) -> None:
        if not isinstance(value, Mapping):
            raise _WrongError(value, "a mapping")
        for key, each in value.items():
            try:
                check_key(key)
                check_value(each)
            except _WrongError as wrong:
                raise wrong.at(f"[{shown(key) if isinstance(key, str) else key!s:.100}]") from None

    return mapping


def _struct(kind: type[Struct]) -> Check:
    fields: list[tuple[str, Check]] | None = None

    def struct(value: object) -> None:
        nonlocal fields
        if not isinstance(value, kind):
            raise _WrongError(value, _kind(kind))
        if fields is None:
            hints = get_type_hints(kind, include_extras=True)
            fields = [(name, _check_of(hints[name])) for name in kind.__struct_fields__]
        for name, check in fields:
            try:
                check(getattr(value, name))
            except _WrongError as wrong:
                raise wrong.at(f".{name}") from None

    return struct


_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    re.Pattern: "a pattern",
    Callable: "a function",
}


def _kind(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return _kind(get_args(kind)[0])
    return str(_WORDS.get(kind) or getattr(kind, "__name__", kind))
