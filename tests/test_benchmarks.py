"""The parts of the benchmarks that need no clock: the synthetic cluster, the synthetic groups, and the arithmetic."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from benchmarks import (
    allocation,
    memory,
    mixed_groups,
    producer,
    rebalancing,
    sending,
    sizing,
    startup,
    sweeping,
    tables,
)
from benchmarks.allocation import HELD, LISTED, SIZES, STRATEGIES, Group, Row, checksum
from benchmarks.cluster import as_bytes, group_name, make_cluster, topic_name
from benchmarks.measuring import MEGABYTE, Spread, Usage, markdown, peak_megabytes, ratio, run
from benchmarks.rocketmq import VERSION, Selections
from benchmarks.sections import Section
from rmqlb import MessageQueue, TopicPublishInfo, allocate
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.model.send_scenario import NEWEST
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from tests.support.mismatches import every_case


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


@every_case("size", SIZES)
def test_groups_have_the_size_asked_for_and_stand_in_clients_order(size: tuple[int, int]) -> None:
    group = Group.of(*size)
    assert (len(group.queues), len(set(group.client_ids))) == size
    queues, client_ids = group.shuffled()
    assert (queues, client_ids) == group.shuffled() != (list(group.queues), list(group.client_ids))
    assert allocate("AVG", queues, client_ids) == allocate("AVG", group.queues, group.client_ids, presorted=True)


@every_case("strategy", STRATEGIES)
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


def test_start_up_is_held() -> None:
    held = {case.name: case.hold for case in startup.CASES if case.hold is not None}
    kept = {case.name: Spread(case.hold or 9.0, 0.5, 9.0) for case in startup.CASES}
    assert startup.broken(kept) == []
    for name, hold in held.items():
        (line,) = startup.broken(kept | {name: Spread(hold + 0.01, 0.5, 9.0)})
        assert line.startswith(f"{name}: ")


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


class OwnPicks:
    """Answers what `Selections.java` would, with our picks; with `strays` one of them is another queue."""

    def __init__(self, strays: bool = False) -> None:
        self.strays = strays
        self.queues: list[MessageQueue] = []
        self.case = producer.PICKS[0]

    def load(self, queues: list[MessageQueue]) -> None:
        self.queues = queues

    def start(self, latency_fault: bool, isolated: str | None) -> None:
        self.case = next(c for c in producer.PICKS if (c.latency_fault, c.isolated) == (latency_fault, isolated))

    def checksum(self, picks: int) -> int:
        strategy, info = self.case.state(self.queues)
        picked = [strategy.select(info, TopicPublishInfo(()), None, 0) for _ in range(picks - self.strays)]
        return producer.checksum(picked + self.queues[:1] * self.strays)

    def rate(self, seconds: float) -> float:
        return 1 / (seconds + 1)


def test_rocketmqs_version_is_the_one_that_is_simulated() -> None:
    assert VERSION == NEWEST


def test_picks_are_measured_beside_rocketmqs_and_without() -> None:
    beside = producer.picks(cast("Selections", OwnPicks()), turns=1, run=0, messages=100)
    assert len(beside.rows) == 3
    assert len(beside.ratios) == 6
    assert set(beside.ratios) <= set(sending.HOLDS)
    alone = producer.picks(None, turns=1, run=0, messages=100)
    assert [row[1] for row in alone.rows] == ["–"] * 3
    assert "missing" in str(alone)
    assert sending.broken([alone]) == ["hold not measured: RocketMQ's own picks"]


def test_picks_that_differ_are_not_timed() -> None:
    with pytest.raises(RuntimeError, match="differ"):
        producer.picks(cast("Selections", OwnPicks(strays=True)), turns=1, run=0, messages=100)


def test_the_isolated_broker_is_not_picked() -> None:
    queues = producer.made_route().publish_queues()
    strategy, info = producer.PICKS[2].state(queues)
    assert producer.FAILING not in {strategy.select(info, TopicPublishInfo(()), None, 0).broker_name for _ in queues}


def test_traces_are_measured_in_processes_of_their_own() -> None:
    section = sending.traces(rounds=1, attempts=20)
    assert len(section.rows) == 4
    assert len(section.ratios) == 4
    assert set(section.ratios) <= set(sending.HOLDS)


@every_case("kind", [producer.WINDOWS_OF_TIME, producer.WINDOWS_OF_MESSAGES])
@every_case("latency_fault", [False, True])
def test_the_windows_come_and_go(kind: str, latency_fault: bool) -> None:
    scenario = producer.windows(kind, 10_000, latency_fault=latency_fault)
    report = simulate_send(producer.made_route(), scenario, trace=False)
    assert all(failure.failed and failure.ended_ms for failure in report.failures)
    times = [(failure.began_ms or 0, failure.ended_ms or 0) for failure in report.failures]
    assert times == sorted(times)
    assert all(end <= start for (_, end), (start, _) in pairwise(times))


def test_totals_are_measured_by_the_number_of_messages() -> None:
    section = producer.totals(1, (20, 1000))
    assert [row[2] for row in section.rows] == ["20", "10^3"] * 4
    assert len(section.ratios) == 4
    assert set(section.ratios) <= set(sending.HOLDS)


def test_trials_are_measured_by_latency_fault_latency_and_threads() -> None:
    section = producer.trials(1, messages=5, at_least=0, fewest=2)
    assert len(section.rows) == len({row[:3] for row in section.rows}) == 8
    assert set(section.ratios) <= set(sending.HOLDS)


@pytest.mark.parametrize(("median", "lines"), [(1.5, 0), (1.51, 1)])
def test_sending_is_held(median: float, lines: int) -> None:
    section = Section((), ratios={("trace, peak", producer.ON): Spread(median, 1, 9), ("trials",): Spread(9, 9, 9)})
    assert len(sending.broken([section])) == lines


def test_groups_over_time_are_measured_by_their_size() -> None:
    section = rebalancing.minutes(1, sizes=((2, 8), (3, 12)), length=1)
    assert [row[:2] for row in section.rows] == [
        (kind, size) for kind in ("join", "rolling restart") for size in ("2 x 8", "3 x 12")
    ]
    assert [row[4] for row in section.rows[::2]] == ["", ""]
    trials = rebalancing.trials(1, number=2)
    assert set(trials.ratios) <= set(rebalancing.HOLDS)
    assert not rebalancing.broken([Section((), ratios=dict(section.ratios))])


@pytest.mark.parametrize(("median", "lines"), [(40, 0), (41, 1)])
def test_groups_over_time_are_held(median: float, lines: int) -> None:
    section = Section((), ratios={("minutes", "join", "100 x 1,000"): Spread(median, 1, 99)})
    assert len(rebalancing.broken([section])) == lines


def test_sizes_of_groups_are_measured_by_how_many_there_are() -> None:
    section = sizing.sizes(1, pairs=((2, 2), (3, 3)))
    assert [row[:2] for row in section.rows] == [(name, size) for name in sizing.CASES for size in ("2 x 2", "3 x 3")]
    assert {name for _, name, _ in sizing.HOLDS} == set(sizing.CASES)
    assert not sizing.broken([section])
    name = ("sizes", "AVG", sizing.LARGEST)
    assert sizing.broken([Section((), ratios={name: Spread(99, 1, 99)})])


def test_sweeps_are_measured_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "ROUNDS", 1000)
    section = sweeping.sizes(1, chosen=((1, 2, 3), (2, 2, 3)))
    assert [row[0] for row in section.rows] == ["1 x 2 x 3", "2 x 2 x 3"]
    assert [bool(row[6]) for row in section.rows] == [False, True]
    strategies = sweeping.strategies(1, (1, 2, 3))
    assert {key[1] for key in strategies.ratios} >= {key[1] for key in sweeping.HOLDS if key[0] == "strategies"}
    assert not sweeping.broken([Section((), ratios=dict(section.ratios))])


@pytest.mark.parametrize(("median", "lines"), [(250, 0), (251, 1)])
def test_sweeps_are_held(median: float, lines: int) -> None:
    section = Section((), ratios={("sizes", "100 x 8 x 20"): Spread(median, 1, 999)})
    assert len(sweeping.broken([section])) == lines


def test_long_tables_are_measured_by_what_draws_them() -> None:
    section = tables.tables(1, rows=1_200)
    assert set(section.ratios) == set(tables.HOLDS)
    assert not tables.broken([section])


def test_a_ratio_without_a_hold_must_be_said_to_have_none() -> None:
    with pytest.raises(KeyError):
        sending.broken([Section((), ratios={("unheard of",): Spread(1, 1, 1)})])


def test_each_strategy_of_mixed_groups_is_measured_and_held() -> None:
    section = mixed_groups.mixed(1, sizes=((64, 16),))
    assert [row[0] for row in section.rows] == list(mixed_groups.STRATEGIES)
    assert section.ratios.keys() <= mixed_groups.HOLDS.keys()
