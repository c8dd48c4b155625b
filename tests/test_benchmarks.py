"""The parts of the benchmarks that need no clock: the made-up cluster, the made-up groups, and the arithmetic."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks import allocation, memory, startup
from benchmarks.allocation import HELD, LISTED, SIZES, STRATEGIES, Group, Row, checksum
from benchmarks.cluster import as_bytes, group_name, make_cluster, topic_name
from benchmarks.measuring import MEGABYTE, Spread, Usage, markdown, peak_megabytes, ratio, run
from rmqlb import allocate
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource


def test_equal_seeds_give_equal_bytes() -> None:
    assert as_bytes(make_cluster(60, 12, seed=3)) == as_bytes(make_cluster(60, 12, seed=3))
    assert as_bytes(make_cluster(60, 12, seed=3)) != as_bytes(make_cluster(60, 12, seed=4))


def test_the_cluster_is_read_as_it_was_made(tmp_path: Path) -> None:
    made = make_cluster(60, 12)
    file = tmp_path / "cluster.json"
    file.write_bytes(as_bytes(made))
    read = DumpSource(str(file)).fetch(Wanted())
    assert len(read.routes) == 60
    assert read.routes == made.routes
    assert read.groups == made.groups
    assert not read.unread
    assert not read.notes


def test_each_group_owns_every_queue_of_its_topics() -> None:
    made = make_cluster(60, 12)
    for group in made.groups.values():
        assert 2 <= len(group.client_ids or ()) <= 16
        assert set(group.queues) == {
            queue for topic in group.topics or () for queue in made.route(topic).subscribe_queues()
        }
        assert all(state.owners and state.owners <= set(group.client_ids or ()) for state in group.queues.values())


def test_the_commands_measured_ask_for_what_is_in_the_file() -> None:
    assert (group_name(500), topic_name(501)) == (memory.GROUP, memory.TOPIC)


@pytest.mark.parametrize("size", SIZES)
def test_groups_have_the_size_asked_for_and_stand_in_clients_order(size: tuple[int, int]) -> None:
    group = Group.of(*size)
    assert (len(group.queues), len(set(group.client_ids))) == size
    queues, client_ids = group.shuffled()
    assert (queues, client_ids) == group.shuffled() != (list(group.queues), list(group.client_ids))
    assert allocate("AVG", queues, client_ids) == allocate("AVG", group.queues, group.client_ids, presorted=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_groups_give_every_strategy_all_it_can_hand_out(strategy: str) -> None:
    group = Group.of(64, 16)
    handed = [queue for share in allocate(strategy, *group.shuffled(), **group.settings()).values() for queue in share]
    expected = [queue for queue in group.queues if strategy != "MACHINE_ROOM" or queue.broker_name[:2] in LISTED]
    assert sorted(handed) == sorted(expected)


def test_the_checksum_sees_who_got_what() -> None:
    group = Group.of(16, 4)
    sums = {checksum(allocate(name, group.queues, group.client_ids)) for name in ("AVG", "AVG_BY_CIRCLE")}
    assert len(sums) == 2


def test_a_ratio_is_taken_turn_by_turn() -> None:
    assert ratio([3.0, 8.0, 4.0], [2.0, 4.0, 4.0]) == Spread(1.5, 1.0, 2.0)
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("median", "lines"), [(1.8, 0), (1.81, 1)])
def test_start_up_is_held(median: float, lines: int) -> None:
    ratios = {case.name: Spread(median if case.hold else 9.0, 0.5, 9.0) for case in startup.CASES}
    assert len(startup.broken(ratios)) == lines


@pytest.mark.parametrize(("megabytes", "lines"), [(300, 0), (301, 1)])
def test_memory_is_held_for_rmqlb_alone(megabytes: int, lines: int) -> None:
    usages = {"rmqlb x": [Usage(1.0, 5), Usage(1.0, megabytes * MEGABYTE)], memory.JSON: [Usage(1.0, 900 * MEGABYTE)]}
    assert len(memory.broken(usages)) == lines


def test_allocation_is_held_and_must_be_measured_to_be_so() -> None:
    strategy, size = HELD
    assert allocation.complaint([Row(strategy, size, (1.0, 1.0), (100.0, 120.0))]) is None
    assert "broken" in (allocation.complaint([Row(strategy, size, (1.0,), (99.0,))]) or "")
    assert "not measured" in (allocation.complaint([Row(strategy, size, (1.0,), ())]) or "")


def test_the_allocation_table_shows_growth_and_what_was_not_measured() -> None:
    table = allocation.table([Row("AVG", (16, 4), (2e-5,), (1e-5,)), Row("AVG", (64, 16), (8e-5,), ())])
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]] == [
        ["AVG", "16×4", "20", "", "10", "0.5 (0.5..0.5)"],
        ["AVG", "64×16", "80", "4.0", "–", "–"],
    ]


def test_numbers_stand_to_the_right() -> None:
    assert markdown(("what", "n"), [("a", 1.50)]).splitlines()[1] == "|:-------|----:|"


def test_a_child_is_accounted_for_and_its_failure_told() -> None:
    usage = run([sys.executable, "-c", "b = b'x' * 60_000_000"], os.environ)
    assert peak_megabytes([usage]).most > 60
    with pytest.raises(RuntimeError, match=r"ended with 3:\nno"):
        run([sys.executable, "-c", "import sys; print('no', file=sys.stderr); sys.exit(3)"], os.environ)
