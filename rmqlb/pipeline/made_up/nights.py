"""A cluster night by night, as a source would have seen it: one `ClusterSnapshot` a night."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import msgspec

from rmqlb.model.group import ConsumerGroup, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from rmqlb.pipeline.made_up.draw import DISAGREED, FleetCluster, FleetTopic
from rmqlb.pipeline.made_up.faults import Fault, Owners, silent_member
from rmqlb.pipeline.made_up.groups import GroupLook, owners_of, owners_seen, seen_group
from rmqlb.pipeline.made_up.members import first_members, next_members, present
from rmqlb.pipeline.made_up.offsets import NightOffsets, Offsets
from rmqlb.pipeline.made_up.routes import BrokerState, broker_data, broker_states, retry_route, route
from rmqlb.pipeline.made_up.shape import FleetShape, chance

_VIEWS = 2
"""Brokers asked for a group's members: more of them make snapshots larger and say the same."""


def nights(shape: FleetShape, cluster: FleetCluster) -> Iterator[tuple[date, ClusterSnapshot]]:
    """Every night's date and snapshot, in order."""
    life = _Life(shape, cluster)
    states = broker_states(chance(shape.seed, cluster.number, "brokers"), cluster, shape.days)
    for number, state in enumerate(states):
        yield shape.first + timedelta(days=number), life.night(number, state)


class _Route(msgspec.Struct, frozen=True):
    """A topic's route, its subscribe queues, and their places among the topic's queues when all brokers are up."""

    data: TopicRouteData
    queues: list[MessageQueue]
    places: list[int]


class _Night(msgspec.Struct, frozen=True):
    number: int
    seen: Seen
    brokers: list[str]
    offsets: NightOffsets | None


class _Life:
    """A cluster's state from one night to the next.

    Args:
        shape: the fleet's.
        cluster: the cluster.
    """

    def __init__(self, shape: FleetShape, cluster: FleetCluster) -> None:
        self._shape, self._cluster = shape, cluster
        self._address = f"rocketmq://10.{cluster.number % 100}.255.1:9876"
        self._all_up = [_route(cluster, topic, BrokerState()) for topic in cluster.topics]
        counts = [0 if each is None else len(each.queues) for each in self._all_up]
        self._offsets = Offsets(cluster, counts, shape.seed) if shape.observed else None
        random = self._random("members")
        self._members = [first_members(random, group, cluster.number) for group in cluster.groups]
        self._state: BrokerState | None = None
        self._routes: list[_Route | None] = []
        self._settled: list[dict[str, list[Owners]]] = [{} for _ in cluster.groups]
        self._client_ids: list[tuple[str, ...]] = [() for _ in cluster.groups]

    def night(self, number: int, state: BrokerState) -> ClusterSnapshot:
        """The snapshot of a night; nights come in order, from 0."""
        cluster = self._cluster
        if state != self._state:
            self._change_brokers(state)
        if number:
            random = self._random("members", number)
            self._members = [
                next_members(random, members, group, cluster.number, self._shape.churn)
                for members, group in zip(self._members, cluster.groups, strict=True)
            ]
        night = self._night(number, state)
        groups = [self._group(place, night, state) for place in range(len(cluster.groups))]
        found = [
            _sighting(topic, its, night.seen) for topic, its in zip(cluster.topics, self._routes, strict=True) if its
        ]
        return ClusterSnapshot(
            kind="nameserver",
            endpoint=self._address,
            taken_at=night.seen.at,
            routes={sighting.route.topic: sighting for sighting in found},
            groups={group.group: group for group in groups},
            unread=tuple(self._unread(number)),
        )

    def _random(self, *purpose: object) -> Random:
        return chance(self._shape.seed, self._cluster.number, *purpose)

    def _change_brokers(self, state: BrokerState) -> None:
        self._state = state
        self._routes = [
            None if whole is None else _route(self._cluster, topic, state, whole)
            for topic, whole in zip(self._cluster.topics, self._all_up, strict=True)
        ]
        self._settled = [{} for _ in self._cluster.groups]

    def _night(self, number: int, state: BrokerState) -> _Night:
        day = self._shape.first + timedelta(days=number)
        taken_at = datetime.combine(day, time(2, self._cluster.number % 60, 7), UTC)
        brokers = [broker_data(self._cluster, i, state) for i in range(self._shape.brokers) if i not in state.down]
        addresses = [addr for broker in brokers for _, addr in sorted(broker.broker_addrs.items())]
        offsets = self._offsets.at(number, int(taken_at.timestamp() * 1000)) if self._offsets else None
        return _Night(number, Seen(self._address, taken_at), (addresses * _VIEWS)[:_VIEWS], offsets)

    def _group(self, place: int, night: _Night, state: BrokerState) -> ConsumerGroup:
        group = self._cluster.groups[place]
        members = present(self._members[place], group, night.number)
        names = [self._cluster.topics[topic].name for topic in group.topics]
        look = GroupLook(group, members, names, night.brokers, night.seen)
        if night.offsets is None or group.fault is Fault.BROADCASTING:
            return seen_group(look, {})
        if look.client_ids != self._client_ids[place]:
            self._client_ids[place] = look.client_ids
            self._settled[place] = {}
        random = self._random(place, night.number)
        return seen_group(look, self._queues(place, look, night.offsets, random, state))

    def _queues(
        self, place: int, look: GroupLook, offsets: NightOffsets, random: Random, state: BrokerState
    ) -> dict[MessageQueue, QueueState]:
        states: dict[MessageQueue, QueueState] = {}
        topics = self._cluster.groups[place].topics
        for topic, first in zip(topics, self._offsets.pair_start[place] if self._offsets else (), strict=True):
            its = self._routes[topic]
            if its is None or not self._offsets:
                continue
            written = self._offsets.topic_start[topic]
            owners = owners_seen(self._owners(place, its, look), look, random)
            for queue, at, its_owners in zip(its.queues, its.places, owners, strict=True):
                states[queue] = QueueState(
                    its_owners,
                    offsets.broker[written + at],
                    offsets.consumer[first + at],
                    offsets.last_timestamp[first + at],
                )
        if self._shape.retry_queues:
            data = retry_route(self._cluster, look.group.name, state)
            retry = _Route(data, data.subscribe_queues(), [])
            owners = owners_seen(self._owners(place, retry, look), look, random)
            pairs = zip(retry.queues, owners, strict=True)
            states.update((queue, QueueState(its_owners, 0, 0, 0)) for queue, its_owners in pairs)
        return states

    def _owners(self, place: int, its: _Route, look: GroupLook) -> list[Owners]:
        """Reckoned anew only when the members or the brokers have changed."""
        settled = self._settled[place]
        if its.data.topic not in settled:
            settled[its.data.topic] = owners_of(its.data, its.queues, look)
        return settled[its.data.topic]

    def _unread(self, night: int) -> Iterator[Unread]:
        for group, members in zip(self._cluster.groups, self._members, strict=True):
            if group.fault is Fault.SILENT_MEMBER:
                silent = silent_member([member.client_id for member in present(members, group, night)])
                yield Unread("member", group.name, "no answer within 5s", silent)


def _route(cluster: FleetCluster, topic: FleetTopic, state: BrokerState, whole: _Route | None = None) -> _Route | None:
    data = route(cluster, topic, state)
    if data is None:
        return None
    queues = data.subscribe_queues()
    if whole is None or len(whole.queues) == len(queues):
        return _Route(data, queues, list(range(len(queues))))
    now = set(queues)
    return _Route(data, queues, [place for place, queue in enumerate(whole.queues) if queue in now])


def _sighting(topic: FleetTopic, its: _Route, seen: Seen) -> RouteSighting:
    others: tuple[RouteSighting, ...] = ()
    if topic.kind == DISAGREED:
        elsewhere = Seen(seen.where.replace(".255.1:", ".255.2:"), seen.at)
        others = (RouteSighting(TopicRouteData(topic.name, (), ()), elsewhere),)
    return RouteSighting(its.data, seen, others)
