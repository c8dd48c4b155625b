"""Every fault that is promised is there, and shows in what a reader of the files sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rmqlb.model.group import ConsumerGroup
from rmqlb.model.snapshot import ClusterSnapshot
from tests.support.mismatches import every_case
from tests.support.synthetic.draw import Fault, draw_cluster
from tests.support.synthetic.faults import FAULTS, put_faults
from tests.support.synthetic.generate import generate
from tests.support.synthetic.reading import good, moves_of
from tests.support.synthetic.shape import FleetShape

SHAPE = FleetShape(seed=3, groups=120, topics=40, days=2, churn=0)
Seen = tuple[ClusterSnapshot, ConsumerGroup]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[list[ClusterSnapshot]]:
    """The snapshots of each cluster, night by night."""
    folder = tmp_path_factory.mktemp("faults")
    summary = generate(SHAPE, str(folder))
    assert set(summary.faults) == {str(fault) for fault in Fault}
    return [good(cluster) for cluster in sorted(folder.iterdir())]


def has_mismatches(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    moves = moves_of(snapshot, group)
    return any(move.owners_observed and move.owners_observed != move.owners_before for move in moves)


def is_unassigned(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return any(move.owners_observed == () and move.owners_before for move in moves_of(snapshot, group))


def has_two_owners(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return any(len(move.owners_observed or ()) == 2 for move in moves_of(snapshot, group))


def has_idle_consumers(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    busy = {owner for move in moves_of(snapshot, group) for owner in move.owners_observed or ()}
    return len(group.client_ids or ()) > len(busy)


SHOWS: dict[Fault, Callable[[ClusterSnapshot, ConsumerGroup], bool]] = {
    Fault.MISMATCHES: has_mismatches,
    Fault.UNASSIGNED: is_unassigned,
    Fault.DUPLICATE_OWNERS: has_two_owners,
    Fault.IDLE_CONSUMERS: has_idle_consumers,
}


@every_case("fault", SHOWS, ids=str)
def test_a_fault_shows_every_night(fault: Fault, nights: list[list[ClusterSnapshot]]) -> None:
    ill = [
        (snapshot, snapshot.groups[group.name])
        for number, snapshots in enumerate(nights)
        for group in draw_cluster(SHAPE, number).groups
        if group.fault is fault
        for snapshot in snapshots
    ]
    assert len(ill) >= 2
    for snapshot, group in ill:
        assert SHOWS[fault](snapshot, group), group.group


def test_a_flapping_groups_member_is_away_every_other_night(nights: list[list[ClusterSnapshot]]) -> None:
    names = [(n, g.name) for n in range(3) for g in draw_cluster(SHAPE, n).groups if g.fault is Fault.FLAPPING]
    for number, name in names:
        first, second = (set(snapshot.groups[name].client_ids or ()) for snapshot in nights[number])
        assert second < first
    assert names


def test_the_tests_own_faults_can_be_read_again(tmp_path: Path) -> None:
    generate(FleetShape(seed=3, groups=40, topics=20, clusters=1), str(tmp_path))
    (healthy,) = good(tmp_path)
    put_faults(tmp_path, every=2)
    (ill,) = good(tmp_path)
    assert len(FAULTS) <= sum(group != healthy.groups[name] for name, group in ill.groups.items()) <= 20
    assert sum(seen != healthy.routes[name] for name, seen in ill.routes.items()) == 10


def test_a_fleet_without_faults_has_none(tmp_path: Path) -> None:
    summary = generate(FleetShape(groups=30, topics=10, faults=0, days=5, observed=False), str(tmp_path))
    assert summary.faults == {}
    masters = [
        broker.has_master
        for snapshot in good(tmp_path)
        for seen in snapshot.routes.values()
        for broker in seen.route.broker_datas
    ]
    assert all(masters)
    assert summary.topics == 5 * 10
