"""Java's numbers: random numbers, hash codes, and the order that these give a map of names."""

import struct
from collections.abc import Iterable
from math import isnan

from rmqlb.engine.arguments import require
from rmqlb.errors import JavaArgumentError, UsageError
from rmqlb.model.limits import JavaInt

MASK = 0x7FFFFFFF
_MULTIPLIER, _INCREMENT, _BITS = 0x5DEECE66D, 0xB, (1 << 48) - 1


def int32(value: int) -> int:
    return (value + 0x80000000) % 0x100000000 - 0x80000000


def java_abs(value: int) -> int:
    """`Math.abs` of an int: −2^31 stays negative."""
    return value if value >= 0 or value == -0x80000000 else -value


def position(index: int, size: int) -> int:
    """The place of an index in a list: Java's remainder, and 0 where the index is negative."""
    place = index % size
    return place if index >= 0 else 0


def remainder(value: int, divisor: int) -> int:
    """Java's `%`, which has the sign of the value."""
    return value % divisor if value >= 0 else -(-value % divisor)


class JavaRandom:
    """`java.util.Random`; 48 bits of the seed count."""

    def __init__(self, seed: int) -> None:
        require(seed, int, "seed")
        self._state = (seed ^ _MULTIPLIER) & _BITS

    def next_int(self, bound: int | None = None) -> int:
        """Any int, or with a bound one of 0 … bound − 1.

        Raises:
            JavaArgumentError: the bound is not positive, as in Java; it is a ValueError too.
            UsageError: it is no Java int.
        """
        if bound is None:
            return int32(self._next(32))
        require(bound, JavaInt, "bound")
        if bound <= 0:
            raise JavaArgumentError("bound must be positive")
        if bound & (bound - 1) == 0:  # a power of two takes the upper bits, which are the more random ones
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            value = bits % bound
            # The last multiples of the bound do not all fit below 2^31: Java sees its int overflow, and draws again.
            if bits - value + (bound - 1) < 2**31:
                return value

    def _next(self, bits: int) -> int:
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _BITS
        return self._state >> (48 - bits)


def hash_code(arg: object) -> int:
    """`arg.hashCode()` as Java computes it, a signed 32-bit number.

    A str is a String; bool a Boolean; int an Integer if it fits 32 bits, otherwise a Long; float a Double. The hash of
    other values (None, bytes, objects) cannot be known: UsageError.
    """
    if isinstance(arg, str):
        code = 0
        for unit in memoryview(arg.encode("utf-16-le", "surrogatepass")).cast("H"):
            code = (code * 31 + unit) & 0xFFFFFFFF
        return int32(code)
    if isinstance(arg, bool):
        return 1231 if arg else 1237
    if isinstance(arg, int):
        return arg if -(2**31) <= arg < 2**31 else long_hash_code(arg)
    if isinstance(arg, float):
        return _fold(struct.unpack(">q", struct.pack(">d", arg))[0] if not isnan(arg) else 0x7FF8000000000000)
    raise UsageError(f"the Java hash of a {type(arg).__name__} is not known", hint="use text, a number or a boolean")


def long_hash_code(value: int) -> int:
    """`Long.hashCode`, also for numbers that an Integer could hold; UsageError of more than 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise UsageError(f"a number of {value.bit_length()} bits does not fit a Java Long (64 bits)")
    return _fold(value)


def map_order(names: Iterable[str]) -> list[str]:
    """The order in which a `ConcurrentHashMap(16)` iterates over names that were put there in this order, none removed.

    The table doubles as soon as three quarters of it are taken. When a bucket is split, its last names that stay
    together keep their order, and the others come before them in reverse order (`ConcurrentHashMap.transfer`).
    """
    size = 32
    buckets: list[list[tuple[int, str]]] = [[] for _ in range(size)]
    for count, name in enumerate(names, 1):
        code = hash_code(name) & 0xFFFFFFFF
        code ^= code >> 16
        buckets[code & (size - 1)].append((code, name))
        if count >= size * 3 // 4:
            ordered = [_in_transfer_order(bucket, size) for bucket in buckets]
            buckets = [[item for item in bucket if not item[0] & size] for bucket in ordered]
            buckets += [[item for item in bucket if item[0] & size] for bucket in ordered]
            size *= 2
    return [name for bucket in buckets for _, name in bucket]


def _in_transfer_order(bucket: list[tuple[int, str]], bit: int) -> list[tuple[int, str]]:
    run = len(bucket)
    while run and bucket[run - 1][0] & bit == bucket[-1][0] & bit:
        run -= 1
    return bucket[:run][::-1] + bucket[run:]


def _fold(value: int) -> int:
    bits = value & 0xFFFFFFFFFFFFFFFF
    return int32((bits ^ (bits >> 32)) & 0xFFFFFFFF)
