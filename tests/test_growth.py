"""Twice the topics, consumers or brokers is at most twice the work: counted, which no clock disturbs."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from benchmarks.growth import COMMANDS, GROUP, Size, calls, cluster, write
from rmqlb import Members, MessageQueue
from rmqlb.engine.assignment.owners import owners_by_strategy
from rmqlb.engine.diff import compare_snapshots
from rmqlb.engine.group import group_of
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rebalance.simulate import GroupSimulation
from rmqlb.engine.rebalance.start_offsets import with_starts
from rmqlb.engine.rebalance.timelines import EventLog, Hold, timelines
from rmqlb.engine.show_groups import consumers_of
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.snapshot import ClusterSnapshot
from tests.support.mismatches import every_case

MORE = 2.35
"""From 2n to 4n as much comes as twice from n to 2n, and a little for how the queues fall; of a square it is 4."""
SMALL = {"topics": Size(8), "consumers": Size(1, 32, 1, 16), "brokers": Size(2, 3, 8, 4)}
LARGE = {"topics": Size(16, 4, 2, 8), "consumers": Size(1, 100, 1, 2048), "brokers": Size(2, 4, 16, 8)}
"""Too large for a plan to be simulated, or tried with newcomers at every place: both are left out from some size on. There are
many queues per consumer: of few, the lists of those that move are other ones at each size."""
OF_COMMANDS = [
    pytest.param(command, dimension, size, id=f"{command}-{dimension}")
    for command, sizes in {"show-owners": SMALL, "plan-rebalance": LARGE, "simulate-rebalance": SMALL}.items()
    for dimension, size in sizes.items()
]
SIDES = {"topics": Size(30, 3, 1, 2), "consumers": Size(1, 30, 1, 15), "brokers": Size(1, 3, 30, 1)}


def grows_in_proportion(work: Callable[[Size], int], base: Size, dimension: str) -> bool:
    """The constant part of the work does not count: a square could hide behind it."""
    once, twice, four_times = (work(base.times(dimension, factor)) for factor in (1, 2, 4))
    return four_times - twice <= MORE * (twice - once)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("growth")
    for command in ("show-owners", "plan-rebalance", "simulate-rebalance"):
        calls(command, write(Size(), folder))  # what is imported or made once
    return folder


@every_case(("command", "dimension", "size"), OF_COMMANDS)
def test_twice_as_much_takes_a_command_twice_the_calls(command: str, dimension: str, size: Size, folder: Path) -> None:
    assert command in COMMANDS
    calls(command, write(size, folder))  # hashes that are kept for the next size
    assert grows_in_proportion(lambda size: calls(command, write(size, folder))[0], size, dimension)


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


def side_of(snapshot: ClusterSnapshot, *more: str) -> Side:
    ids = snapshot.groups[GROUP].client_ids or ()
    return Side(Members((*ids, *more), "AVG"), tuple(sighting.route for sighting in snapshot.routes.values()))


def shown(size: Size) -> Callable[[], object]:
    side = side_of(cluster(size))
    return lambda: owners_by_strategy(GROUP, side.routes, side.members, ["AVG"], explain=True)


def planned(size: Size) -> Callable[[], object]:
    snapshot = cluster(size)
    before, after = side_of(snapshot), side_of(snapshot, "1.0.0.1@new")

    def plan() -> None:
        made = plan_rebalance(GROUP, before, after, placeholders=["1.0.0.1@new"])
        with_starts(made, cluster(size).groups[GROUP].queues, "CONSUME_FROM_LAST_OFFSET", before.routes)

    return plan


def at_a_glance(size: Size) -> Callable[[], object]:
    snapshot = cluster(size)
    facts = group_of(snapshot, GROUP)
    return lambda: consumers_of(facts, ())


def simulated(size: Size) -> Callable[[], object]:
    side = side_of(cluster(size))
    scenario = GroupScenario((Event("join", SECOND_US, "1.0.0.1@new"),), until_us=33 * SECOND_US)
    return GroupSimulation(GROUP, side.members, side.routes, scenario).run


def compared(size: Size) -> Callable[[], object]:
    before, more = cluster(size), cluster(Size(size.topics, size.consumers + 1, size.brokers, size.queues))
    return lambda: compare_snapshots(before, more)


@every_case("dimension", SIDES)
@every_case("work", [shown, planned, at_a_glance, simulated, compared])
def test_twice_as_much_is_twice_the_instructions(work: Callable[[Size], Callable[[], object]], dimension: str) -> None:
    assert grows_in_proportion(lambda size: bytecodes(work(size)), SIDES[dimension], dimension)


@every_case("broadcasting", [False, True])
def test_twice_the_owners_of_a_queue_one_after_the_other_take_twice_the_instructions(broadcasting: bool) -> None:
    """As a rolling restart leaves them: what one owner delivers again depends on all before it."""
    queue = MessageQueue("T", "a", 0)

    def read(size: Size) -> int:
        log = EventLog(explain=False)
        log.exist([queue], 0, there=True)
        for at in range(size.consumers):
            hold = Hold(queue, f"c{at}", at * SECOND_US, lambda at_us: at_us)
            hold.reads_from_us = hold.from_us
            log.take(hold)
            log.drop(hold, hold.from_us + SECOND_US, persisted=True)
        scenario = GroupScenario(broadcasting=broadcasting)
        return bytecodes(lambda: timelines(log, scenario, {}, size.consumers * SECOND_US))

    assert grows_in_proportion(read, Size(consumers=20), "consumers")


def test_a_square_is_noticed() -> None:
    def with_a_square(size: Size) -> int:
        return bytecodes(lambda: [other for one in range(size.topics) for other in range(size.topics) if other == one])

    assert not grows_in_proportion(with_a_square, SIDES["topics"], "topics")
