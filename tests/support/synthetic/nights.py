"""A cluster night by night, as a source would have seen it: one `ClusterSnapshot` a night."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import msgspec

from rmqlb.engine.allocate import allocate
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.model.group import (
    CLUSTERING,
    RETRY_PREFIX,
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    QueueState,
    Seen,
)
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from tests.support.synthetic.clients import is_owned, sdk_of, seen_as
from tests.support.synthetic.draw import Fault, FleetCluster, FleetTopic
from tests.support.synthetic.members import FleetMember, first_members, next_members, present
from tests.support.synthetic.offsets import NightOffsets, Offsets
from tests.support.synthetic.shape import FleetShape, chance

_VIEWS = 2
"""Brokers asked for a group's members: more of them make snapshots larger and say the same."""
_CLASSES = {name: java_class for java_class, name in JAVA_CLASSES.items()}
_OUTAGE = 0.02
Owners = frozenset[str]
NOBODY: Owners = frozenset()


def nights(shape: FleetShape, cluster: FleetCluster) -> Iterator[tuple[date, ClusterSnapshot]]:
    """Every night's date and snapshot, in order."""
    life = _Life(shape, cluster)
    states = _broker_states(chance(shape.seed, cluster.number, "brokers"), cluster, shape.days)
    for number, state in enumerate(states):
        yield shape.first + timedelta(days=number), life.night(number, state)


class BrokerState(msgspec.Struct, frozen=True):
    """Which brokers are missing on a night, by number: wholly, or only their master."""

    down: frozenset[int] = frozenset()
    headless: frozenset[int] = frozenset()


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
    state: BrokerState


class _Life:
    """A cluster's state from one night to the next."""

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
        # Group by group, topic → owners: reckoned anew only when the members or the brokers have changed.
        self._settled: list[dict[str, list[Owners]]] = []
        self._client_ids: list[tuple[str, ...]] = [() for _ in cluster.groups]

    def night(self, number: int, state: BrokerState) -> ClusterSnapshot:
        """The snapshot of a night; nights come in order, from 0."""
        cluster = self._cluster
        if state != self._state:
            self._state = state
            pairs = zip(cluster.topics, self._all_up, strict=True)
            self._routes = [whole and _route(cluster, topic, state, whole) for topic, whole in pairs]
            self._settled = [{} for _ in cluster.groups]
        if number:
            random = self._random("members", number)
            self._members = [
                next_members(random, members, group, cluster.number, self._shape.churn)
                for members, group in zip(self._members, cluster.groups, strict=True)
            ]
        night = self._night(number, state)
        groups = [self._group(place, night) for place in range(len(cluster.groups))]
        return ClusterSnapshot(
            kind="nameserver",
            endpoint=self._address,
            taken_at=night.seen.at,
            routes={its.data.topic: RouteSighting(its.data, night.seen) for its in self._routes if its},
            groups={group.group: group for group in groups},
        )

    def _random(self, *purpose: object) -> Random:
        return chance(self._shape.seed, self._cluster.number, *purpose)

    def _night(self, number: int, state: BrokerState) -> _Night:
        day = self._shape.first + timedelta(days=number)
        taken_at = datetime.combine(day, time(2, self._cluster.number % 60, 7), UTC)
        brokers = [_broker_data(self._cluster, i, state) for i in range(self._shape.brokers) if i not in state.down]
        addresses = [addr for broker in brokers for _, addr in sorted(broker.broker_addrs.items())]
        offsets = self._offsets.at(number, int(taken_at.timestamp() * 1000)) if self._offsets else None
        return _Night(number, Seen(self._address, taken_at), (addresses * _VIEWS)[:_VIEWS], offsets, state)

    def _group(self, place: int, night: _Night) -> ConsumerGroup:
        group = self._cluster.groups[place]
        members = present(self._members[place], group, night.number)
        client_ids = tuple(member.client_id for member in members)
        if client_ids != self._client_ids[place]:
            self._client_ids[place], self._settled[place] = client_ids, {}
        topics = sorted([f"{RETRY_PREFIX}{group.name}", *(self._cluster.topics[topic].name for topic in group.topics)])
        report = frozenset(topics), _CLASSES[group.strategy], True
        seen = ConsumerGroup(
            group=group.name,
            seen=night.seen,
            consume_type="CONSUME_PASSIVELY",
            message_model=CLUSTERING,
            consume_from_where=CONSUME_FROM_LAST_OFFSET,
            views=_views(members, night),
            topics=tuple(topics),
            queues=self._queues(place, night, self._random(place, night.number)),
            reports={client_id: MemberReport(client_id, *report) for client_id in client_ids},
        )
        return seen_as(seen, group.clients, [member.language for member in members], place)

    def _queues(self, place: int, night: _Night, random: Random) -> dict[MessageQueue, QueueState]:
        """What is seen of the queues of a group; nothing when nobody looks."""
        states: dict[MessageQueue, QueueState] = {}
        if night.offsets is None or self._offsets is None:
            return states
        group = self._cluster.groups[place]
        for topic, first in zip(group.topics, self._offsets.pair_start[place], strict=True):
            its = self._routes[topic]
            if its is None:
                continue
            written = self._offsets.topic_start[topic]
            for queue, at, owners in zip(its.queues, its.places, self._owners(place, its, random), strict=True):
                states[queue] = QueueState(
                    owners,
                    night.offsets.broker[written + at],
                    night.offsets.consumer[first + at],
                    night.offsets.last_timestamp[first + at],
                )
        if self._shape.retry_queues:
            data = _retry_route(self._cluster, group.name, night.state)
            retry = _Route(data, data.subscribe_queues(), [])
            pairs = zip(retry.queues, self._owners(place, retry, random), strict=True)
            states.update((queue, QueueState(owners, 0, 0, 0)) for queue, owners in pairs)
        return states

    def _owners(self, place: int, its: _Route, random: Random) -> Sequence[Owners | None]:
        """Who is seen to hold each queue of a topic; None where no owner can be seen."""
        if not is_owned(self._cluster.groups[place].clients):
            return [None] * len(its.queues)
        group, client_ids, settled = self._cluster.groups[place], self._client_ids[place], self._settled[place]
        if its.data.topic not in settled:
            sdks = {member.client_id: sdk_of(member.language) for member in self._members[place]}
            settled[its.data.topic] = _dealt(group.strategy, its.queues, client_ids, sdks)
        return _disturb(settled[its.data.topic], group.fault, client_ids, random)


def _dealt(
    strategy: str, queues: list[MessageQueue], client_ids: Sequence[str], sdks: Mapping[str, str]
) -> list[Owners]:
    shares = allocate(strategy, queues, client_ids, sdks=sdks)
    alone = {client_id: frozenset((client_id,)) for client_id in shares}
    holders: dict[MessageQueue, Owners] = {}
    for client_id, its in shares.items():
        for queue in its:
            holders[queue] = holders[queue] | alone[client_id] if queue in holders else alone[client_id]
    return [holders.get(queue, NOBODY) for queue in queues]


def _views(members: Sequence[FleetMember], night: _Night) -> tuple[MemberView, ...]:
    connections = tuple(
        Connection(member.client_id, f"{member.ip}:{member.port}", member.language, member.version)
        for member in members
    )
    return tuple(MemberView(connections, night.seen, address) for address in night.brokers)


def _route(cluster: FleetCluster, topic: FleetTopic, state: BrokerState, whole: _Route | None = None) -> _Route | None:
    data = _topic_route(cluster, topic, state)
    if data is None:
        return None
    queues = data.subscribe_queues()
    if whole is None or len(whole.queues) == len(queues):
        return _Route(data, queues, list(range(len(queues))))
    now = set(queues)
    return _Route(data, queues, [place for place, queue in enumerate(whole.queues) if queue in now])


def _disturb(owners: list[Owners], fault: Fault | None, client_ids: tuple[str, ...], random: Random) -> list[Owners]:
    """The owners of a topic's queues as they are seen where the group's strategy gives these: a quarter differs."""
    if fault not in (Fault.MISMATCHES, Fault.UNASSIGNED, Fault.DUPLICATE_OWNERS) or not owners:
        return owners
    seen = list(owners)
    for place in random.sample(range(len(seen)), -(-len(seen) // 4)):
        seen[place] = _disturbed(seen[place], fault, client_ids, random)
    return seen


def _disturbed(owners: Owners, fault: Fault, client_ids: tuple[str, ...], random: Random) -> Owners:
    if fault is Fault.UNASSIGNED:
        return NOBODY
    others = [client_id for client_id in client_ids if client_id not in owners]
    if fault is Fault.MISMATCHES and random.random() < 0.5:
        others = [f"10.255.0.1@1#{len(client_ids)}"]
    return frozenset({random.choice(others)} | (owners if fault is Fault.DUPLICATE_OWNERS else NOBODY))


def _broker_states(random: Random, cluster: FleetCluster, days: int) -> list[BrokerState]:
    """Which brokers are missing each night: none on the first; later one is for sure if there are three nights or more.

    Without any faults in the cluster no broker dies. One broker is always up.
    """
    count = len(cluster.brokers)
    ill = any(group.fault for group in cluster.groups)
    unlucky = random.randrange(count)
    states = []
    for night in range(days):
        gone = {i for i in range(1, count) if night and ill and random.random() < _OUTAGE}
        if ill and count > 1 and days > 2 and days // 3 <= night <= days // 2:
            gone.add(unlucky)
        if len(gone) == count:
            gone.discard(0)
        headless = {i for i in gone if cluster.brokers[i].has_slave and night % 2}
        states.append(BrokerState(frozenset(gone - headless), frozenset(headless)))
    return states


def _topic_route(cluster: FleetCluster, topic: FleetTopic, state: BrokerState) -> TopicRouteData | None:
    """What a NameServer answers, or None when no broker has the topic."""
    up = [(broker, count) for broker, count in topic.queues if broker not in state.down]
    return _route_data(cluster, topic.name, up, state) if up else None


def _retry_route(cluster: FleetCluster, group: str, state: BrokerState) -> TopicRouteData:
    """The route of the group's `%RETRY%` topic: one queue on each broker."""
    up = [(number, 1) for number in range(len(cluster.brokers)) if number not in state.down]
    return _route_data(cluster, f"{RETRY_PREFIX}{group}", up, state)


def _route_data(cluster: FleetCluster, topic: str, up: list[tuple[int, int]], state: BrokerState) -> TopicRouteData:
    return TopicRouteData(
        topic,
        tuple(QueueData(cluster.brokers[number].name, count, count, PERM_READ | PERM_WRITE) for number, count in up),
        tuple(_broker_data(cluster, number, state) for number, _ in up),
    )


def _broker_data(cluster: FleetCluster, number: int, state: BrokerState) -> BrokerData:
    """Where a broker that is up can be reached."""
    broker = cluster.brokers[number]
    addrs = {} if number in state.headless else {0: f"{broker.ip}:10911"}
    if broker.has_slave:
        addrs[1] = f"{broker.ip.rpartition('.')[0]}.2:10911"
    return BrokerData(cluster.name, broker.name, addrs)
