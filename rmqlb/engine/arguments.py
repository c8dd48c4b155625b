"""Arguments of the Python API, checked against the annotations of our own types.

msgspec does not do this: it takes an instance of a Struct as it is, knows no functions, patterns and fractions, and has
no bounds beyond 64 bits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from rmqlb.errors import DataError, UsageError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import close_names

Check = Callable[[Any], None]
"""Raises `_Refused` for a value that does not fit."""
_SHOWN = 60
_LARGEST = sys.float_info.max
_Item = TypeVar("_Item")


class _Refused(Exception):
    """A value that does not fit; the path to it grows on its way up."""

    def __init__(self, value: object, expected: str, hint: str | None = None) -> None:
        super().__init__(expected)
        self.value, self.expected, self.hint, self.path = value, expected, hint, ""

    def at(self, step: str) -> _Refused:
        self.path = step + self.path
        return self


def require(value: object, hint: Any, name: str) -> None:
    """Refuse (UsageError) a value that an annotation, or a Struct and the annotations of its fields, does not allow."""
    try:
        _check_of(hint)(value)
    except _Refused as wrong:
        text = f"{name}{wrong.path} is {shown(wrong.value)}: {wrong.expected} is needed"
        raise UsageError(text, hint=wrong.hint) from None


def items(values: object, kind: type[_Item], name: str, most: int) -> list[_Item]:
    """The elements of any iterable but text, which would be taken for its characters (raises UsageError)."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is {shown(values)}: a list of {_word(kind)} is needed")
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise UsageError(f"{name} has more than {most} elements")
    require(found, tuple[kind, ...], name)  # type: ignore[valid-type]
    return found


def shown(value: object) -> str:
    """A value in a message: short, and only the type of foreign objects."""
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


def is_fraction(kind: type) -> bool:
    """Decided without importing `fractions`, which takes half a millisecond: its users have imported it."""
    return any((base.__module__, base.__name__) == ("fractions", "Fraction") for base in kind.__mro__)


def check_route(route: TopicRouteData) -> None:
    """Refuse fields of a wrong type (UsageError), or more queues than any topic has (DataError)."""
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
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _struct(hint)
    if origin is Annotated:
        return _bounded(_check_of(args[0]), [meta for meta in args[1:] if isinstance(meta, Meta)])
    if origin in (Union, UnionType):
        return _union(args)
    if origin is Literal:
        return _one_of(args)
    if isinstance(origin, type) and args and origin is not re.Pattern and issubclass(origin, Iterable):
        return _mapping(*args) if issubclass(origin, Mapping) else _many(origin, args[0])
    return _single(origin or hint)


def _single(kind: Any) -> Check:
    if kind in (Any, object):
        return lambda _: None
    if getattr(kind, "__name__", "") == "Callable" or getattr(kind, "_is_protocol", False):
        kind = Callable
    expected = _word(kind)

    def check(value: object) -> None:
        if not _fits(value, kind):
            raise _Refused(value, expected)

    return check


def _fits(value: object, kind: Any) -> bool:
    if kind is int:
        return type(value) is int
    if kind is Callable:  # objects with a method of RocketMQ's interfaces are functions, too
        return callable(value) or any(callable(getattr(value, name, None)) for name in ("allocate", "select"))
    if isinstance(value, bool) and kind is not bool:
        return False
    if kind is float:
        return isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST
    return isinstance(value, (int, kind) if is_fraction(kind) else kind)


def _bounded(check: Check, metas: list[Meta]) -> Check:
    def bounded(value: Any) -> None:
        check(value)
        for meta in metas:
            least, most = meta.min_length or 0, meta.max_length
            if (least or most is not None) and not least <= len(value) <= (most or len(value)):
                raise _Refused(value, f"a length from {least}" + (f" to {most}" if most else ""))
            if (meta.ge is not None and value < meta.ge) or (meta.le is not None and value > meta.le):
                low, high = f"at least {meta.ge}", f"from {meta.ge} to {meta.le}"
                raise _Refused(value, f"a number {low if meta.le is None else high}")

    return bounded


def _union(kinds: tuple[Any, ...]) -> Check:
    checks = [_check_of(kind) for kind in kinds if kind is not NoneType]

    def union(value: object) -> None:
        if value is None and NoneType in kinds:
            return None
        wrongs: list[_Refused] = []
        for check in checks:
            try:
                return check(value)
            except _Refused as wrong:
                wrongs.append(wrong)
        if any(wrong.path for wrong in wrongs):
            raise next(wrong for wrong in wrongs if wrong.path)
        expected = " or ".join(dict.fromkeys(wrong.expected for wrong in wrongs))
        raise _Refused(value, expected, wrongs[0].hint)

    return union


def _one_of(values: tuple[Any, ...]) -> Check:
    def one_of(value: object) -> None:
        if not isinstance(value, str) or value not in values:
            hint = close_names(value[:_SHOWN], values) if isinstance(value, str) else None
            raise _Refused(value, "one of " + ", ".join(map(str, values)), hint)

    return one_of


def _many(origin: type, kind: Any) -> Check:
    check, is_set = _check_of(kind), issubclass(origin, AbstractSet)
    kinds = (list, tuple, AbstractSet) if is_set else (list, tuple)

    def many(values: Any) -> None:
        if not isinstance(values, kinds):
            raise _Refused(values, f"a {'set' if is_set else 'list'} of {_word(kind)}")
        for place, value in enumerate(values):
            try:
                check(value)
            except _Refused as wrong:
                raise wrong.at(f"[{place}]") from None

    return many


def _mapping(key_kind: Any, value_kind: Any) -> Check:
    check_key, check_value = _check_of(key_kind), _check_of(value_kind)

    def mapping(value: object) -> None:
        if not isinstance(value, Mapping):
            raise _Refused(value, "a mapping")
        for key, each in value.items():
            try:
                check_key(key)
                check_value(each)
            except _Refused as wrong:
                raise wrong.at(f"[{shown(key) if isinstance(key, str) else str(key)[:100]}]") from None

    return mapping


def _struct(kind: type[Struct]) -> Check:
    @cache
    def fields() -> list[tuple[str, Check]]:  # read late, because a Struct may have its own kind in it
        hints = get_type_hints(kind, include_extras=True)
        return [(name, _check_of(hints[name])) for name in kind.__struct_fields__]

    def struct(value: object) -> None:
        if not isinstance(value, kind):
            raise _Refused(value, kind.__name__)
        for name, check in fields():
            try:
                check(getattr(value, name))
            except _Refused as wrong:
                raise wrong.at(f".{name}") from None

    return struct


_WORDS: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    re.Pattern: "a pattern",
    Callable: "a function",
}


def _word(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _word(get_args(kind)[0])
    if isinstance(kind, type) and is_fraction(kind):
        return "a Fraction or a whole number"
    return str(_WORDS.get(kind) or getattr(kind, "__name__", kind))
