"""Lists of unlike lengths in one array."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.arrays.ragged import elements, runs
from tests.engine.vectorized.batches import ints

SIZES = st.lists(st.integers(0, 4), max_size=8)


@given(SIZES.filter(bool), st.data())
def test_the_elements_of_chosen_lists_are_found(sizes: list[int], data: st.DataObject) -> None:
    which = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=6))
    expected = [sum(sizes[:number]) + offset for number in which for offset in range(sizes[number])]
    assert elements(ints(sizes), ints(which)).tolist() == expected


@given(st.lists(st.integers(0, 3), max_size=12))
def test_runs_are_stretches_of_equal_values(values: list[int]) -> None:
    lengths = [len(list(equal)) for _, equal in groupby(values)]
    assert [part.tolist() for part in runs(ints(values))] == [[sum(lengths[:i]) for i in range(len(lengths))], lengths]
