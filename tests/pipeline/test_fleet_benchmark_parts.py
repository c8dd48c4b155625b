"""The parts of the fleet benchmarks that need neither a clock nor Spark: what is watched, and what the JVM is told."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

from benchmarks import fleet, fleet_jvm, fleet_pairs, fleet_parts
from benchmarks.fleet_run import Ran
from benchmarks.fleet_strategies import SETTINGS, WITH_CLASS
from benchmarks.measuring import MEGABYTE, Spread
from benchmarks.process_tree import Look, Watch, look, peak, resident_pages
from benchmarks.sections import Section
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.model.route import QueueData, TopicRouteData

pytestmark = pytest.mark.spark

EATS_AND_WAITS = "b = b'x' * 60_000_000; print('here', flush=True); input()"
STARTS_ANOTHER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EATS_AND_WAITS!r}])"


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", STARTS_ANOTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "here\n"
        yield process
        process.communicate("\n")


def test_memory_is_that_of_a_process_and_of_those_it_started(parent: subprocess.Popen[str]) -> None:
    seen = look(parent.pid)
    assert seen.resident_bytes > 60 * MEGABYTE
    assert seen.cpu_seconds > 0
    own = look(os.getpid())
    assert own.resident_bytes > seen.resident_bytes
    assert own.at > seen.at


def test_a_watch_looks_again_and_again(parent: subprocess.Popen[str]) -> None:
    before = look(parent.pid)
    with Watch(parent.pid, every=0.001) as watch:
        while len(watch.looks) < 2:
            pass
    after = look(parent.pid)
    assert peak(watch.looks, before, after) > 60 * MEGABYTE


def test_a_child_that_is_still_its_parents_memory_does_not_count_twice() -> None:
    java, chmod = (["S", "1", *["0"] * 18, size, "700"] for size in ("9000", "9001"))
    assert resident_pages(java, java) == 0
    assert resident_pages(chmod, java) == 700
    assert resident_pages(java, None) == 700


def test_what_is_gone_takes_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    seen = look(process.pid)
    assert (seen.resident_bytes, seen.cpu_seconds) == (0, 0)


def test_the_peak_is_looked_for_between_two_looks() -> None:
    looks = [Look(at, size, 0.0) for at, size in ((1, 5), (2, 9), (3, 7), (4, 100))]
    assert peak(looks, Look(1.5, 1, 0), Look(3.5, 1, 0)) == 9
    assert peak([], Look(0, 3, 0), Look(9, 2, 0)) == 3


def groups(queues: int = 16, members: int = 3, rows: int = 32) -> pa.Table:
    return fleet_pairs.groups_of_one_size(queues, members, rows)


def test_groups_of_one_size_have_it() -> None:
    made = groups(64, 16, 640)
    assert fleet_pairs.sizes(made) == {"groups": 10, "pairs": 10, "members": 160, "queues": 640}
    assert made == groups(64, 16, 640)


def test_the_batches_are_all_groups_and_never_too_large() -> None:
    made = fleet_pairs.groups_of_one_size(1024, 4, 2**21)
    sizes = [batch.num_rows for batch in fleet_pairs.batches(made)]
    assert sizes == [1024, 1024]


@pytest.mark.parametrize("strategy", WITH_CLASS)
def test_the_owners_are_the_engines(strategy: str) -> None:
    made = groups()
    for row, found in zip(made.to_pylist(), fleet_pairs.owners(made, strategy), strict=True):
        topic = row["topics"][0]
        datas = [QueueData(run["brokerName"], run["queues"], run["queues"], 6) for run in topic["subscribe"]]
        dealt = assign(
            TopicRouteData(topic["topic"], tuple(datas), ()), Members(tuple(row["clientIds"]), strategy, SETTINGS)
        )
        assert [(owner,) if owner else () for owner in found] == [tuple(dealt.owners[queue]) for queue in dealt.queues]


def test_every_strategy_has_something_to_hand_out_and_rooms_and_zones_matter() -> None:
    owned = {
        strategy: [owner for pair in fleet_pairs.owners(groups(), strategy) for owner in pair]
        for strategy in WITH_CLASS
    }
    assert len({tuple(its) for its in owned.values()}) == len(WITH_CLASS)
    assert all(any(its) for its in owned.values())
    assert None in owned["MACHINE_ROOM"]


def test_the_jvm_reads_lines_of_words() -> None:
    made = groups(8, 1, 8).to_pylist()[0]
    made["topics"][0]["absent"] = ["x@1"]
    file = io.StringIO()
    fleet_pairs.write_lines(pa.Table.from_pylist([made], groups().schema), file)
    kinds = [line.split("\t") for line in file.getvalue().splitlines()]
    assert [line[0] for line in kinds] == ["group", "topic", "absent"]
    assert kinds[0][2] == made["clientIds"][0]
    assert kinds[0][3].isdigit()
    assert kinds[1][2:5] == ["r1@broker-0", "0", "2"]
    assert kinds[2] == ["absent", "x@1"]


def test_a_name_that_would_break_a_line_is_refused() -> None:
    made = groups(8, 1, 8).to_pylist()
    made[0]["group"] = "a\tb"
    with pytest.raises(ValueError, match="tab"):
        fleet_pairs.write_lines(pa.Table.from_pylist(made, groups().schema), io.StringIO())


class OwnOwners:
    """Answers what `FleetAllocations.java` would, with our owners; with `strays` a queue is somebody else's."""

    def __init__(self, made: pa.Table, strays: bool = False) -> None:
        self.made = made
        self.strays = strays

    def load(self, file: str, *, whole: bool) -> None:
        assert os.path.getsize(file)
        assert not whole

    def check(self, strategy: str, _seconds: float) -> tuple[int, int]:
        owners = [*next(fleet_pairs.owners(self.made, strategy.partition("/")[0]))]
        return 1, fleet_pairs.checksum([*owners[: len(owners) - self.strays], *["stray"] * self.strays])

    def rate(self, _strategy: str, _seconds: float) -> float:
        return 1e6


def compared(java: OwnOwners | None, made: pa.Table, folder: Path) -> Section:
    section = Section(fleet_jvm.HEADERS)
    beside = cast("fleet_jvm.FleetAllocations", java)
    fleet_jvm.compare("16×3", made, None, beside, ("AVG", "CONSISTENT_HASH"), (1, 0.0), section, str(folder))
    return section


def test_kernels_are_measured_beside_rocketmqs_classes_and_without(tmp_path: Path) -> None:
    beside = compared(OwnOwners(groups()), groups(), tmp_path)
    assert set(beside.ratios) == {
        ("kernels", "AVG", "16×3"),
        ("kernels", "CONSISTENT_HASH", "16×3"),
        ("one ring", "CONSISTENT_HASH", "16×3"),
    }
    alone = compared(None, groups(), tmp_path)
    assert not alone.ratios
    assert [row[2] for row in alone.rows] == ["–", "–"]
    assert {len(row) for row in (*beside.rows, *alone.rows)} == {len(fleet_jvm.HEADERS)}
    assert not list(tmp_path.iterdir())


def test_owners_that_differ_are_not_timed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="differ"):
        compared(OwnOwners(groups(), strays=True), groups(), tmp_path)


def ran(seconds: float, megabytes: int = 100, stage: str = "allocate") -> Ran:
    return Ran(stage, seconds, 2 * seconds, megabytes * MEGABYTE, {"assignments": 1000})


def test_a_row_is_over_the_turns() -> None:
    assert fleet_parts._row("allocate", [ran(1, 100), ran(4, 90), ran(2, 80)])[1:] == (
        *(Spread(2, 1, 4), "4.0", "1,000", "500", "100"),
    )


def test_memory_is_in_units_of_what_is_allowed() -> None:
    assert fleet_parts._memory([[ran(1, 4295), ran(1, 1)]]).median == pytest.approx(1, abs=0.001)


def test_the_holds_of_the_jvm_are_the_least_over_the_sizes() -> None:
    section = Section((), ratios={
        ("kernels", "CONSISTENT_HASH", "64×16"): Spread(7, 7, 7),
        ("kernels", "CONSISTENT_HASH", "256×64"): Spread(6, 6, 6),
        ("kernels", "CONSISTENT_HASH", fleet_jvm.FLEET): Spread(1, 1, 1),
        ("kernels", "AVG", "64×16"): Spread(0.5, 0.5, 0.5),
        ("one ring", "CONSISTENT_HASH", "64×16"): Spread(0.1, 0.1, 0.1),
    })  # fmt: skip
    fleet_parts._hold_jvm(section)
    assert section.ratios["kernels", "CONSISTENT_HASH"].median == 6
    assert section.ratios["kernels", "others"].median == 0.5
    assert ("stage", "others") not in section.ratios


@pytest.mark.parametrize(("median", "lines"), [(1.0, 0), (1.01, 1)])
def test_memory_is_held(median: float, lines: int) -> None:
    section = Section((), ratios={("memory", "rows"): Spread(median, 1, 2), ("stage", "AVG", "64×16"): Spread(0, 0, 0)})
    assert len(fleet.broken([section])) == lines


def test_what_was_not_there_is_told() -> None:
    assert fleet.broken([Section((), missing=["RocketMQ's own allocations"])]) == [
        "hold not measured: RocketMQ's own allocations"
    ]
