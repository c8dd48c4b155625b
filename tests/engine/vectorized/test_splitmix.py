"""The kernels' random numbers are the engine's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine import randomness
from rmqlb.engine.arrays.lanes import Streams, mix, stream_keys

WORDS = st.integers(0, 2**64 - 1)


@given(st.lists(WORDS, min_size=1, max_size=20))
def test_mixing_is_that_of_the_engine(values: list[int]) -> None:
    assert mix(np.array(values, np.uint64)).tolist() == [randomness.mix(value) for value in values]


def test_mixing_leaves_its_argument_as_it_was() -> None:
    values = np.array([5], np.uint64)
    mix(values)
    assert values.tolist() == [5]


@given(st.integers(-(2**70), 2**70), st.lists(st.integers(0, 2**40), min_size=1, max_size=9), st.integers(1, 2000))
def test_keys_are_those_of_the_engine(seed: int, trials: list[int], thread: int) -> None:
    keys = stream_keys(seed, np.array(trials, np.int64), thread)
    assert keys.tolist() == [randomness.stream_key(seed, trial, thread) for trial in trials]


def test_streams_go_on_where_each_thread_is() -> None:
    streams = Streams(7, np.array([3, 4]), threads=2)
    keys = [randomness.stream_key(7, trial, thread) for thread in (1, 2) for trial in (3, 4)]
    assert streams.draw(None).tolist() == [randomness.draw(key, 0) for key in keys]
    assert streams.draw(np.array([2])).tolist() == [randomness.draw(keys[2], 1)]
    streams.keep(np.array([0]))
    assert streams.draw(None).tolist() == [randomness.draw(keys[0], 1), randomness.draw(keys[2], 2)]
