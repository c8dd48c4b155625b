"""The parts of the benchmarks that need no clock: the synthetic cluster and groups, the arithmetic, and each section once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import allocation, memory, mixed_groups, rebalancing, sending, sizing, startup, sweeping
from benchmarks.allocation import HELD, LISTED, STRATEGIES, Group, Row
from benchmarks.cluster import as_bytes, group_name, make_cluster, topic_name
from benchmarks.measuring import MEGABYTE, Spread, Usage
from benchmarks.rocketmq import VERSION
from benchmarks.sections import Section
from rmqlb import allocate
from rmqlb.model.send_scenario import NEWEST
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from tests.support.mismatches import every_case


def test_the_cluster_is_read_as_it_was_made_and_every_group_owns_its_queues(tmp_path: Path) -> None:
    made = make_cluster(60, 12, seed=3)
    assert as_bytes(made) == as_bytes(make_cluster(60, 12, seed=3)) != as_bytes(make_cluster(60, 12, seed=4))
    file = tmp_path / "cluster.json"
    file.write_bytes(as_bytes(made))
    read = DumpSource(str(file)).fetch(Wanted())
    assert (read.routes, read.groups) == (made.routes, made.groups)
    assert (len(read.routes), read.unread, read.notes) == (60, (), ())
    for group in made.groups.values():
        queues = {queue for topic in group.topics or () for queue in made.route(topic).subscribe_queues()}
        assert set(group.queues) == queues
        assert all(state.owners and state.owners <= set(group.client_ids or ()) for state in group.queues.values())
    assert (group_name(500), topic_name(501)) == (memory.GROUP, memory.TOPIC)


@every_case("strategy", STRATEGIES)
def test_the_groups_give_every_strategy_all_it_can_assign(strategy: str) -> None:
    group = Group.of(64, 16)
    queues, client_ids = group.shuffled()
    assert (queues, client_ids) != (list(group.queues), list(group.client_ids))
    given = [queue for share in allocate(strategy, queues, client_ids, **group.settings()).values() for queue in share]
    expected = [queue for queue in group.queues if strategy != "MACHINE_ROOM" or queue.broker_name[:2] in LISTED]
    assert sorted(given) == sorted(expected)


def test_start_up_memory_and_allocation_have_limits() -> None:
    kept = {case.name: Spread(case.hold or 9.0, 0.5, 9.0) for case in startup.CASES}
    assert startup.broken(kept) == []
    for name, most in ((case.name, case.hold) for case in startup.CASES if case.hold is not None):
        (line,) = startup.broken(kept | {name: Spread(most + 0.01, 0.5, 9.0)})
        assert line.startswith(f"{name}: ")
    for megabytes, lines in ((300, 0), (301, 1)):
        used = {"rmqlb x": [Usage(1.0, megabytes * MEGABYTE)], memory.JSON: [Usage(1.0, 900 * MEGABYTE)]}
        assert len(memory.broken(used)) == lines
    strategy, size = HELD
    for theirs, complaint in (((100.0,), None), ((99.0,), "broken"), ((), "not measured")):
        told = allocation.complaint([Row(strategy, size, (1.0,), theirs)])
        assert told is complaint is None or (complaint or "-") in (told or "")
    assert VERSION == NEWEST


SECTIONS: list[tuple[Callable[[], Section], int, Any]] = [
    (lambda: sending.traces(rounds=1, attempts=20), 4, sending),
    (lambda: sending.trials(1, number=2, messages=5), 2, sending),
    (lambda: rebalancing.minutes(1, sizes=((2, 8), (3, 12)), length=1), 4, None),
    (lambda: rebalancing.trials(1, number=2), 1, rebalancing),
    (lambda: sizing.sizes(1, pairs=((2, 2), (3, 3))), 2 * len(sizing.CASES), None),
    (lambda: mixed_groups.mixed(1, sizes=((64, 16),)), len(mixed_groups.STRATEGIES), mixed_groups),
]
"""A section at its smallest → the fewest rows, and the benchmark that has a limit for each of its ratios."""


@every_case(("measure", "rows", "benchmark"), SECTIONS)
def test_sections_are_measured_and_have_limits(measure: Callable[[], Section], rows: int, benchmark: Any) -> None:
    section = measure()
    assert len(section.rows) >= rows
    assert benchmark is None or set(section.ratios) <= set(benchmark.HOLDS)


def test_sweeps_are_measured_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "ROUNDS", 1000)
    assert [row[0] for row in sweeping.sizes(1, chosen=((1, 2, 3), (2, 2, 3))).rows] == ["1 x 2 x 3", "2 x 2 x 3"]
    strategies = sweeping.strategies(1, (1, 2, 3))
    assert {key[1] for key in strategies.ratios} >= {key[1] for key in sweeping.HOLDS if key[0] == "strategies"}


@every_case(("benchmark", "name", "most"), [
    (sending, ("trace, peak", sending.ON), 1.5),
    (rebalancing, ("minutes", "join", "100 x 1,000"), 40),
    (sweeping, ("sizes", "100 x 8 x 20"), 250),
])  # fmt: skip
def test_a_median_above_its_limit_is_reported(benchmark: Any, name: tuple[str, ...], most: float) -> None:
    for median, lines in ((most, 0), (most * 1.01, 1)):
        assert len(benchmark.broken([Section((), ratios={name: Spread(median, 1, 999)})])) == lines
    with pytest.raises(KeyError):
        sending.broken([Section((), ratios={("unheard of",): Spread(1, 1, 1)})])
    assert sending.broken([Section((), missing=["x"])]) == ["hold not measured: x"]
    assert sizing.broken([Section((), ratios={("sizes", "AVG", sizing.LARGEST): Spread(99, 1, 99)})])
