"""Any value of a type of ours, small: what a property needs that must hold for every report there can be."""

from __future__ import annotations

import collections.abc
import types
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

_DEEPEST = 5
_TEXTS = ("", "a", "broker-b", "%RETRY%g", "192.0.2.2@inst0", "\u202e\x1b[31m", "\U0001f600 ü|")
_SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(_TEXTS),
    int: st.one_of(st.integers(0, 12), st.sampled_from((-1, 1500, 2**53 + 1))),
    float: st.floats(0, 1e9),
    bool: st.booleans(),
    type(None): st.none(),
    Fraction: st.fractions(0, 1000, max_denominator=60),
    datetime: st.datetimes(timezones=st.just(UTC)),
    date: st.dates(),
}
_NUMBER_OF_QUEUES = st.integers(0, 5)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "read_queue_nums": _NUMBER_OF_QUEUES,
    "write_queue_nums": _NUMBER_OF_QUEUES,
    "total_queues": _NUMBER_OF_QUEUES,
    "order_topic_conf": st.sampled_from((None, "", "broker-b:2", "a:1;b:2")),
}
"""Fields that not every value of their type fits."""


def a_function(*_: object) -> None:
    """What stands for a function that a user wrote."""


def any_of(kind: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    origin, args = get_origin(kind), get_args(kind)
    if kind in _SIMPLE or origin is collections.abc.Callable:
        return _SIMPLE.get(kind, st.just(a_function))
    if origin is Annotated:
        return any_of(args[0], depth)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([any_of(each, depth) for each in args])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return st.builds(
            kind, **{f.name: _FIELDS[f.name] if f.name in _FIELDS else any_of(f.type, depth + 1) for f in fields(kind)}
        )
    most = 2 if depth < _DEEPEST else 0
    if origin in (dict, collections.abc.Mapping):
        keys, values = (any_of(each, depth + 1) if most else st.nothing() for each in args)
        return st.dictionaries(keys, values, max_size=most)
    if origin in (tuple, list, frozenset) and (origin is not tuple or args[-1] is ...):
        return st.lists(any_of(args[0], depth + 1) if most else st.nothing(), max_size=most).map(origin)
    if origin is tuple:
        return st.tuples(*(any_of(each, depth + 1) for each in args))
    raise AssertionError(f"no values are known of {kind}")
