"""`hashCode()` of the values that applications hand to a queue selector, and the order that it gives a map of names."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from math import isnan

from rmqlb.errors import UsageError

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_TABLE_SIZE = 32


def hash_code(arg: object) -> int:
    """`arg.hashCode()` as Java computes it, a signed 32-bit number.

    A str is a String; bool a Boolean; int an Integer where it fits 32 bits, otherwise a Long; float a Double. Of other
    values the hash cannot be known (None, bytes and objects hash by identity or not at all): UsageError.

    >>> hash_code("order-1"), hash_code(True), hash_code(12345678901), hash_code(1.5)
    (-1207111310, 1231, -539222985, 1073217536)
    """
    if isinstance(arg, str):
        return _string(arg)
    if isinstance(arg, bool):
        return 1231 if arg else 1237
    if isinstance(arg, int):
        if _INT_MIN <= arg <= _INT_MAX:
            return arg
        return long_hash_code(arg)
    if isinstance(arg, float):
        return _fold(struct.unpack(">q", struct.pack(">d", arg))[0] if not isnan(arg) else 0x7FF8000000000000)
    raise UsageError(f"the Java hash of a {type(arg).__name__} is not known", hint="use text, a number or a boolean")


def long_hash_code(value: int) -> int:
    """`Long.hashCode`, also for numbers that an Integer could hold; UsageError of more than 64 bits.

    >>> long_hash_code(-1)
    0
    """
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise UsageError(f"a number of {value.bit_length()} bits: no Java Long, which has 64")
    return _fold(value)


def map_order(names: Iterable[str]) -> list[str]:
    """The names as the keys of a `ConcurrentHashMap(16)` iterate that were put there in this order, none removed.

    The table doubles as soon as three quarters of it are taken. Of a bucket's names that then part, the last ones that
    stay together keep their order, and the others come before them, turned round (`ConcurrentHashMap.transfer`).

    >>> map_order([f"broker-{i}" for i in range(4)])
    ['broker-2', 'broker-3', 'broker-0', 'broker-1']
    """
    size = _TABLE_SIZE
    buckets: list[list[tuple[int, str]]] = [[] for _ in range(size)]
    for count, name in enumerate(names, 1):
        code = hash_code(name) & 0xFFFFFFFF
        code ^= code >> 16
        buckets[code & (size - 1)].append((code, name))
        if count >= size * 3 // 4:
            parted = [_part(bucket, size) for bucket in buckets]
            buckets = [low for low, _ in parted] + [high for _, high in parted]
            size *= 2
    return [name for bucket in buckets for _, name in bucket]


def _part(bucket: list[tuple[int, str]], bit: int) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Those of a bucket whose hash lacks the bit, and those that have it."""
    run = len(bucket)
    while run and bucket[run - 1][0] & bit == bucket[-1][0] & bit:
        run -= 1
    ordered = bucket[:run][::-1] + bucket[run:]
    return [item for item in ordered if not item[0] & bit], [item for item in ordered if item[0] & bit]


def _string(text: str) -> int:
    code = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (code * 31 + unit) & 0xFFFFFFFF
    return _signed(code)


def _fold(value: int) -> int:
    bits = value & 0xFFFFFFFFFFFFFFFF
    return _signed((bits ^ (bits >> 32)) & 0xFFFFFFFF)


def _signed(bits: int) -> int:
    return bits - 2**32 if bits >= 2**31 else bits
