"""Random numbers that depend on nothing but their address: seed, trial, thread and how many were drawn before.

The kernels draw the same numbers for many trials at once, so that each of their trials can be held against a simulation
of its own. The mixing is SplitMix64's.
"""

from __future__ import annotations

from rmqlb.model.java import sort_key

BITS = 0xFFFFFFFFFFFFFFFF
GAMMA = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value: int) -> int:
    """64 bits, each depending on all bits of the value."""
    value &= BITS
    value = ((value ^ (value >> 30)) * _FIRST) & BITS
    value = ((value ^ (value >> 27)) * _SECOND) & BITS
    return value ^ (value >> 31)


def stream_key(seed: int, trial: int, thread: int) -> int:
    """The key of one thread's numbers in one trial."""
    return mix(mix(mix(seed) + trial) + thread)


def thread_named(name: str) -> int:
    """The thread number of a name, 64 bits: a broker keeps its numbers whichever others there are."""
    number = 0
    for byte in sort_key(name):
        number = mix(number + byte + 1)
    return number


def draw(key: int, counter: int) -> int:
    """The number of that place in a stream: 64 bits."""
    return mix(key + (counter + 1) * GAMMA)


class Draws:
    """The numbers of one stream, one after the other."""

    __slots__ = ("_state",)

    def __init__(self, key: int) -> None:
        self._state = key

    def below(self, bound: int) -> int:
        """A number from 0 on, less than the bound, each as likely; 0 for a bound of 0."""
        self._state += GAMMA
        return (mix(self._state) * bound) >> 64

    @property
    def state(self) -> int:
        """Where the stream is: 64 bits, of which the next number is made."""
        return self._state & BITS

    def skip(self, count: int) -> None:
        self._state += count * GAMMA
