"""Random numbers over arrays are the engine's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine import randomness
from rmqlb.engine.arrays.lanes import mix

WORDS = st.integers(0, 2**64 - 1)


@given(st.lists(WORDS, min_size=1, max_size=20))
def test_mixing_is_that_of_the_engine(values: list[int]) -> None:
    assert mix(np.array(values, np.uint64)).tolist() == [randomness.mix(value) for value in values]


def test_mixing_leaves_its_argument_as_it_was() -> None:
    values = np.array([5], np.uint64)
    mix(values)
    assert values.tolist() == [5]
