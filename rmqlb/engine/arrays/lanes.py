"""What is kept for each lane or for each of its threads, and how arrays of it are read, written and shortened."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rmqlb.engine.arrays.splitmix import GAMMA, Bits, mix, stream_keys

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
_Kind = TypeVar("_Kind", bound=np.generic)


class PerLane:
    """Something whose arrays all have one axis, of something × lanes + lane; `lanes` is how many there are now."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def keep(self, lanes: Ints) -> None:
        """Drop the lanes but these, in order; shape (n,)."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, np.ascontiguousarray(values.reshape(-1, self.lanes)[:, lanes]).ravel())
        self.lanes = len(lanes)


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
