"""What is kept for each lane or for each of its threads, and how arrays of it are read, written and shortened."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]

_BITS = 0xFFFFFFFFFFFFFFFF
GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BY_30, _BY_27, _BY_31 = np.uint64(30), np.uint64(27), np.uint64(31)


def mix(values: Bits) -> Bits:
    """SplitMix64's finish: 64 bits, each depending on all bits of the value; a new array of one axis or more."""
    mixed = values >> _BY_30
    mixed ^= values
    mixed *= _FIRST
    mixed ^= mixed >> _BY_27
    mixed *= _SECOND
    mixed ^= mixed >> _BY_31
    return mixed


def stream_keys(seed: int, trials: npt.NDArray[np.int64], thread: int) -> Bits:
    """The keys of one thread's numbers in many trials, shape (n,); threads count from 1, of the seed 64 bits count."""
    start = mix(np.array([seed & _BITS], np.uint64))
    return mix(mix(start + trials.astype(np.uint64)) + np.array([thread], np.uint64))


Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
_Kind = TypeVar("_Kind", bound=np.generic)


class PerLane:
    """Something whose arrays all have one axis, of something × lanes + lane; `lanes` is how many there are now."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.all_lanes = np.arange(lanes)

    def keep(self, lanes: Ints) -> None:
        """Drop the lanes but these, in order; shape (n,)."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, np.ascontiguousarray(values.reshape(-1, self.lanes)[:, lanes]).ravel())
        self.lanes = len(lanes)
        self.all_lanes = np.arange(self.lanes)


class Streams(PerLane):
    """The random numbers of each lane's threads; of `trials` each is a lane's."""

    def __init__(self, seed: int, trials: Ints, threads: int) -> None:
        super().__init__(len(trials))
        self._next: Bits = np.concatenate([stream_keys(seed, trials, thread + 1) for thread in range(threads)])
        self._next += GAMMA

    def draw(self, places: Ints | None) -> Bits:
        """The next numbers of these threads (thread × lanes + lane; shape (n,)), each once, or of all; shape (n,)."""
        if places is None:
            bits = mix(self._next)
            self._next += GAMMA
            return bits
        state = self._next[places]
        bits = mix(state)
        state += GAMMA
        self._next[places] = state
        return bits


def take(values: npt.NDArray[_Kind], where: Ints | None) -> npt.NDArray[_Kind]:
    """The values of those places; None stands for all, and gives the very array."""
    return values if where is None else values[where]


def assign(values: npt.NDArray[Any], where: Ints | None, new: npt.NDArray[Any] | int) -> None:
    """Write the values of those places; None stands for all."""
    if where is None:
        values[:] = new
    else:
        values[where] = new
