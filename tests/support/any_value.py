"""Any value of a type of ours, small: what a property needs that must hold for every report there can be."""

import collections.abc
import types
from collections.abc import Mapping
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

_DEEPEST = 5
_TEXTS = ("", "a", "broker-b", "%RETRY%g", "192.0.2.2@inst0", "\u202e\x1b[31m", "\U0001f600 ü|")
_QUEUE_NUMS = st.integers(0, 5)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(_TEXTS),
    int: st.one_of(st.integers(0, 12), st.sampled_from((-1, 1500, 2**53 + 1))),
    float: st.floats(0, 1e9),
    bool: st.booleans(),
    type(None): st.none(),
    Fraction: st.fractions(0, 1000, max_denominator=60),
    datetime: st.datetimes(timezones=st.just(UTC)),
    date: st.dates(),
    **dict.fromkeys(("read_queue_nums", "write_queue_nums", "total_queues"), _QUEUE_NUMS),
    "order_topic_conf": st.sampled_from((None, "", "broker-b:2", "a:1;b:2")),
}
"""Values of a type, or of a field by its name where not every value of its type fits."""


def a_function(*_: object) -> None:
    """What stands for a function that a user wrote."""


def any_of(kind: Any, simple: Mapping[Any, st.SearchStrategy[Any]] = SIMPLE, depth: int = 0) -> st.SearchStrategy[Any]:
    origin, args = get_origin(kind), get_args(kind)
    inner = partial(any_of, simple=simple, depth=depth + 1)
    if kind in simple or origin is collections.abc.Callable:
        return simple.get(kind, st.just(a_function))
    if origin is Annotated:
        return any_of(args[0], simple, depth)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([any_of(each, simple, depth) for each in args])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return st.builds(kind, **{f.name: simple[f.name] if f.name in simple else inner(f.type) for f in fields(kind)})
    most = 2 if depth < _DEEPEST else 0
    if origin in (dict, collections.abc.Mapping):
        keys, values = (inner(each) if most else st.nothing() for each in args)
        return st.dictionaries(keys, values, max_size=most)
    if origin in (tuple, list, frozenset) and (origin is not tuple or args[-1] is ...):
        return st.lists(inner(args[0]) if most else st.nothing(), max_size=most).map(origin)
    if origin is tuple:
        return st.tuples(*map(inner, args))
    raise AssertionError(f"no values are known of {kind}")
