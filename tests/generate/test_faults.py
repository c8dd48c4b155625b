"""Every fault that is promised is there, and shows in what a reader of the files sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rmqlb.engine.assignment.consumers import is_grpc, member_findings, reported_strategies
from rmqlb.errors import DataError
from rmqlb.model.group import BROADCASTING, CONSUME_POP, ConsumerGroup
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.pipeline.made_up.draw import draw_cluster
from rmqlb.pipeline.made_up.faults import Fault
from rmqlb.pipeline.made_up.generate import generate
from rmqlb.pipeline.made_up.shape import FleetShape
from tests.generate.reading import good, moves_of

SHAPE = FleetShape(seed=3, groups=240, topics=60, days=2, churn=0)
Seen = tuple[ClusterSnapshot, ConsumerGroup]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[list[ClusterSnapshot]]:
    """The snapshots of each cluster, night by night."""
    folder = tmp_path_factory.mktemp("faults")
    summary = generate(SHAPE, str(folder))
    assert set(summary.faults) == {str(fault) for fault in Fault}
    return [good(cluster) for cluster in sorted(folder.iterdir())]


def drifts(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    moves = moves_of(snapshot, group)
    return any(move.observed and move.observed != move.owners_before for move in moves)


def is_unowned(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return any(move.observed == () and move.owners_before for move in moves_of(snapshot, group))


def has_two_owners(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return any(len(move.observed or ()) == 2 for move in moves_of(snapshot, group))


def has_idle_members(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    busy = {owner for move in moves_of(snapshot, group) for owner in move.observed or ()}
    return len(group.client_ids or ()) > len(busy)


def finds(code: str) -> Callable[[ClusterSnapshot, ConsumerGroup], bool]:
    return lambda _, group: code in {finding.code for finding in member_findings(group)}


def is_read_by_all(_: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return group.message_model == BROADCASTING and not group.queues


def is_pop(_: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return group.consume_type == CONSUME_POP and all(state.owners == set() for state in group.queues.values())


def is_empty(_: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return group.client_ids == () and all(state.owners == set() for state in group.queues.values())


def is_unseen(_: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return group.views is None and all(state.owners is None for state in group.queues.values())


def has_a_silent_member(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    silent = set(group.client_ids or ()) - group.reports.keys()
    assert {f"member of group {group.group} {client_id}" for client_id in silent} <= {u.what for u in snapshot.unread}
    return len(silent) == 1 and any(state.owners is None for state in group.queues.values())


def runs_a_foreign_strategy(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    with pytest.raises(DataError, match="not one of RocketMQ's own"):
        moves_of(snapshot, group)
    return True


def runs_different_strategies(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    assert all(move.observed == move.owners_before for move in moves_of(snapshot, group))
    return len(set(reported_strategies(group).values())) > 1


def is_of_grpc(_: ClusterSnapshot, group: ConsumerGroup) -> bool:
    return all(map(is_grpc, group.client_ids or ())) and group.reports == {}


def lost_a_topic(snapshot: ClusterSnapshot, group: ConsumerGroup) -> bool:
    lost = set(group.topics or ()) - snapshot.routes.keys() - {f"%RETRY%{group.group}"}
    return lost == {f"Retired-{group.group}"}


SHOWS: dict[Fault, Callable[[ClusterSnapshot, ConsumerGroup], bool]] = {
    Fault.DRIFT: drifts,
    Fault.UNOWNED: is_unowned,
    Fault.TWO_OWNERS: has_two_owners,
    Fault.IDLE_MEMBERS: has_idle_members,
    Fault.SHARED_ID: finds("shared-client-id"),
    Fault.MISSING_SUBSCRIPTION: finds("mixed-subscriptions"),
    Fault.SPLIT_VIEW: finds("split-view"),
    Fault.MIXED_STRATEGIES: runs_different_strategies,
    Fault.BROADCASTING: is_read_by_all,
    Fault.POP: is_pop,
    Fault.NO_MEMBERS: is_empty,
    Fault.UNSEEN_MEMBERS: is_unseen,
    Fault.SILENT_MEMBER: has_a_silent_member,
    Fault.FOREIGN_STRATEGY: runs_a_foreign_strategy,
    Fault.GRPC: is_of_grpc,
    Fault.LOST_TOPIC: lost_a_topic,
}


@pytest.mark.parametrize("fault", SHOWS, ids=str)
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


def test_a_group_without_members_reads_nothing(nights: list[list[ClusterSnapshot]]) -> None:
    for number, (first, second) in enumerate(nights):
        for group in draw_cluster(SHAPE, number).groups:
            if group.fault is Fault.NO_MEMBERS:
                before, after = first.groups[group.name].queues, second.groups[group.name].queues
                assert all(after[queue].consumer_offset == state.consumer_offset for queue, state in before.items())
                assert any((after[queue].lag or 0) > (state.lag or 0) for queue, state in before.items())


def test_topics_and_brokers_of_every_kind_are_there(nights: list[list[ClusterSnapshot]]) -> None:
    sightings = [seen for snapshots in nights for snapshot in snapshots for seen in snapshot.routes.values()]
    routes = [seen.route for seen in sightings]
    datas = [data for route in routes for data in route.queue_datas]
    assert any(route.is_order_topic and route.publish_queues() for route in routes)
    assert any(route.is_static and len(route.subscribe_queues()) > 1 for route in routes)
    assert any(route.differs_from(other.route) for seen in sightings for route in [seen.route] for other in seen.others)
    assert any(data.readable and not data.writable for data in datas)
    assert any(data.write_queue_nums < data.read_queue_nums for data in datas)
    assert any(not broker.has_master for route in routes for broker in route.broker_datas)


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
