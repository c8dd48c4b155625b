"""Many lists of unlike lengths, one after another in one array: `sizes` says how long each is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rmqlb.engine.arrays.lanes import Ints


def starts(sizes: Ints) -> Ints:
    """Where each list begins, and where the last one ends.

    >>> starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]

    Args:
        sizes: shape (lists,).

    Returns:
        Shape (lists + 1,).
    """
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def numbers(sizes: Ints) -> Ints:
    """The list in which each element stands.

    >>> numbers(np.array([2, 0, 3])).tolist()
    [0, 0, 2, 2, 2]

    Args:
        sizes: shape (lists,).

    Returns:
        Shape (sum(sizes),).
    """
    return np.repeat(np.arange(len(sizes)), sizes)


def offsets(sizes: Ints) -> Ints:
    """The place of each element in its own list, from 0.

    >>> offsets(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]

    Args:
        sizes: shape (lists,).

    Returns:
        Shape (sum(sizes),).
    """
    begins = starts(sizes)
    return np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)


def elements(sizes: Ints, which: Ints) -> Ints:
    """Where the elements of chosen lists stand.

    >>> elements(np.array([2, 1, 3]), np.array([2, 0])).tolist()
    [3, 4, 5, 0, 1]

    Args:
        sizes: of all lists; shape (lists,).
        which: numbers of lists; shape (n,).

    Returns:
        Shape (sum(sizes[which]),).
    """
    chosen = sizes[which]
    return offsets(chosen) + np.repeat(starts(sizes)[which], chosen)


def runs(ordered: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Where stretches of equal values begin, and how long they are.

    >>> [part.tolist() for part in runs(np.array([7, 7, 9]))]
    [[0, 2], [2, 1]]

    Args:
        ordered: equal values next to each other; shape (n,).

    Returns:
        Two arrays of shape (stretches,).
    """
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    begins = np.concatenate((np.zeros(min(len(ordered), 1), np.int64), changes))
    return begins, np.diff(begins, append=len(ordered))
