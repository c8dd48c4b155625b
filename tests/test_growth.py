"""Twice the topics, consumers, brokers or queues is at most twice the work: counted, which no clock disturbs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.growth import BASES, COMMANDS, Size, calls, cluster, write
from rmqlb.engine.assign import Members
from rmqlb.engine.consume.simulate import GroupSimulation
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario

DOUBLE = 2.25
"""Twice, and a little for what a settling takes longer."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growth")


@pytest.mark.parametrize("dimension", BASES)
@pytest.mark.parametrize("command", COMMANDS)
def test_twice_as_much_takes_twice_the_calls(command: str, dimension: str, folder: Path) -> None:
    calls(command, write(Size(), folder))  # what is imported or made once
    base = BASES[dimension]
    once, twice, four_times = (calls(command, write(base.times(dimension, factor), folder))[0] for factor in (1, 2, 4))
    assert twice <= DOUBLE * once
    assert four_times <= DOUBLE * twice


def bytecodes(action: Callable[[], object]) -> int:
    """How many of Python's instructions an action takes: turns of a loop within one line count, too."""
    count = 0

    def follow(_: FrameType, event: str, __: object) -> Any:
        nonlocal count
        count += event == "opcode"
        return follow

    def enter(frame: FrameType, _: str, __: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return follow

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("dimension", "base"),
    [("topics", Size(60, 3, 1, 2)), ("consumers", Size(1, 60, 1, 120)), ("queues", BASES["queues"])],
)
def test_the_same_time_of_a_larger_group_takes_instructions_in_proportion(dimension: str, base: Size) -> None:
    """What is the same at any size is left out: the second step is compared with the first, which is half of it."""
    taken = []
    for factor in (1, 2, 4):
        snapshot = cluster(base.times(dimension, factor))
        members = Members(snapshot.groups["g"].client_ids or (), "AVG")
        routes = [sighting.route for sighting in snapshot.routes.values()]
        scenario = GroupScenario((Event("join", 10 * SECOND_US, "1.0.0.1@new"),), until_us=30 * SECOND_US)
        taken.append(bytecodes(GroupSimulation("g", members, routes, scenario).run))
    once, twice, four_times = taken
    assert four_times - twice <= 2.5 * (twice - once)
