"""How long a client's next messages are under way, many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rmqlb.engine.arrays.lanes import GAMMA, mix


class WaysAhead:
    """What the next numbers of any stream make of the ways for which they are drawn."""

    def __init__(self, lengths: Sequence[int]) -> None:
        """With all lengths, each as likely; their number is a power of two, 2 at least."""
        self._lengths = np.array(lengths, np.int64)
        self._shift = np.uint64(65 - len(lengths).bit_length())

    def ways(self, state: int, begin: int, count: int) -> list[int]:
        """The lengths of so many ways to come, from a place on, of the stream in that state (64 bits)."""
        places = np.arange(begin + 1, begin + 1 + count, dtype=np.uint64)
        drawn = mix(places * GAMMA + np.uint64(state)) >> self._shift
        return self._lengths[drawn].tolist()  # type: ignore[no-any-return]
