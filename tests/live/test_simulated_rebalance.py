"""The simulation against real groups: consumers join, stop in good order, are killed or frozen, a broker is new.

Each recording is simulated many times with the same events, and the report of the comparison is printed.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.rebalance_comparison import compared, disagreements, report

from .living_groups import ACTS, LivingGroups

pytestmark = [pytest.mark.live, pytest.mark.slow]

TRIALS = 200


@pytest.mark.parametrize("name", ACTS)
def test_a_group_goes_through_what_the_simulation_foretells(
    lived: LivingGroups, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = lived.recording(name)
    comparisons = compared(recording, TRIALS)
    with capsys.disabled():
        sys.stdout.write(f"\n{report(recording, comparisons)}\n")
    assert all(each.changing for each in comparisons)
    assert disagreements(comparisons) == []
