"""Kinds of arrays, and SplitMix64 over one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint64]

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


Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
