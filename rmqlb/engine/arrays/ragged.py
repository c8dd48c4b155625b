"""Many lists of unlike lengths, one after another in one array: `sizes`, of shape (lists,), says how long each is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rmqlb.engine.arrays.lanes import Ints


def starts(sizes: Ints) -> Ints:
    """Where each list begins, and where the last one ends; shape (lists + 1,).

    >>> starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def numbers(sizes: Ints) -> Ints:
    """The list in which each element stands; shape (sum(sizes),).

    >>> numbers(np.array([2, 0, 3])).tolist()
    [0, 0, 2, 2, 2]
    """
    return np.repeat(np.arange(len(sizes)), sizes)


def offsets(sizes: Ints) -> Ints:
    """The place of each element in its own list, from 0; shape (sum(sizes),).

    >>> offsets(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    begins = starts(sizes)
    return np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)


def elements(sizes: Ints, which: Ints) -> Ints:
    """Where the elements of the lists with these numbers stand; shape (sum(sizes[which]),).

    >>> elements(np.array([2, 1, 3]), np.array([2, 0])).tolist()
    [3, 4, 5, 0, 1]
    """
    chosen = sizes[which]
    return offsets(chosen) + np.repeat(starts(sizes)[which], chosen)


def runs(ordered: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Where stretches of equal values begin, and how long they are; both of shape (stretches,).

    >>> [part.tolist() for part in runs(np.array([7, 7, 9]))]
    [[0, 2], [2, 1]]
    """
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    begins = np.concatenate((np.zeros(min(len(ordered), 1), np.int64), changes))
    return begins, np.diff(begins, append=len(ordered))
