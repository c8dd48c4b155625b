"""A fleet night by night: who is in each group, how far queues are read, and one `ClusterSnapshot` a night and cluster.

Processes restart, join and leave; who stays keeps its ID. Arrays of offsets are flat: `topic` arrays have a row for each
queue of each topic, `pair` arrays one for each queue of each topic of each group, in the groups' order. Offsets never go
back.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from rmqlb.engine.allocate import allocate
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.model.format_version import FORMAT_VERSION
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
from rmqlb.sources.formats.snapshot_file import SCHEMA, to_document
from tests.support.synthetic.draw import (
    BROKERS,
    FIRST,
    MOST_CONSUMERS,
    Fault,
    FleetCluster,
    FleetGroup,
    FleetShape,
    FleetTopic,
    address,
    chance,
    draw_cluster,
    is_owned,
    language_of,
    new_client_id,
    odd_name,
    sdk_of,
    seen_as,
    sizes,
)

_VERSIONS = ("V4_9_7", "V5_1_4", "V5_5_0")


class FleetMember(msgspec.Struct, frozen=True):
    """A process of a group: its client id, its machine, the port of its connection, its client's version, language."""

    client_id: str
    ip: str
    port: int
    version: str
    language: str = "JAVA"


def first_members(random: Random, group: FleetGroup, cluster: int) -> list[FleetMember]:
    """The members of the first night, the longest-serving first."""
    version = random.choice(_VERSIONS)
    return [_member(random, group, cluster, place, version) for place in range(group.size)]


def next_members(
    random: Random, members: list[FleetMember], group: FleetGroup, cluster: int, churn: float
) -> list[FleetMember]:
    """The members a night later; `churn` is how likely it is that anything changes."""
    if random.random() >= churn or group.fault is Fault.IDLE_CONSUMERS:
        return members
    event = random.choices(("restart", "join", "leave", "deploy"), (5, 2, 2, 1))[0]
    changed = list(members)
    fewest = 1 if group.fault is None else 3
    if event == "deploy":
        changed = [_restarted(random, member, group) for member in members]
    elif event == "join" and len(members) < MOST_CONSUMERS:
        changed.append(_member(random, group, cluster, random.randrange(1000, 10**6), members[0].version))
    elif event == "leave" and len(members) > fewest:
        del changed[random.randrange(fewest, len(changed))]
    else:
        place = random.randrange(len(changed))
        changed[place] = _restarted(random, changed[place], group)
    return changed


def present(members: list[FleetMember], group: FleetGroup, night: int) -> list[FleetMember]:
    """Those that are there on a night (from 0): of a flapping group the second is away every other night."""
    return members[:1] + members[2:] if group.fault is Fault.FLAPPING and night % 2 else members


def _member(random: Random, group: FleetGroup, cluster: int, place: int, version: str) -> FleetMember:
    ip = address(random, "10.244" if group.id_kind == "container" else f"10.{100 + cluster % 100}")
    language, its = language_of(group.clients, place)
    return FleetMember(
        _client_id(random, group, ip, place), ip, random.randrange(32768, 61000), its or version, language
    )


def _restarted(random: Random, member: FleetMember, group: FleetGroup) -> FleetMember:
    """The process anew: a container has another address then, a process another id, a named one neither."""
    if group.id_kind in ("named", "odd"):
        return replace(member, port=random.randrange(32768, 61000))
    ip = address(random, "10.244") if group.id_kind == "container" else member.ip
    return replace(member, client_id=_client_id(random, group, ip, 0), ip=ip, port=random.randrange(32768, 61000))


def _client_id(random: Random, group: FleetGroup, ip: str, place: int) -> str:
    if group.id_kind == "odd":
        return f"10.1.1.1@{odd_name(place, place)}"
    if group.id_kind == "named":
        return f"{ip}@{group.name}-{place}"
    return new_client_id(random, ip, container=group.id_kind == "container")


_HOT = 0.004
"""Share of the queues whose readers have fallen behind."""
_DAY_MS = 86_400_000


class NightOffsets(NamedTuple):
    """A night's figures as lists, topic rows first, then pair rows."""

    broker: list[int]
    consumer: list[int]
    last_timestamp: list[int]


class Offsets:
    """A cluster's offsets; `counts`: queues of each topic, shape (topics,).

    `topic_start`: first row of each topic, shape (topics + 1,); `pair_start`: group → first pair row of each of its
    topics.
    """

    def __init__(self, cluster: FleetCluster, counts: list[int], seed: int) -> None:
        self._seed = [seed, cluster.number]
        draw = np.random.default_rng([*self._seed, 0])
        sizes = np.array(counts, np.int64)
        self.topic_start = np.concatenate(([0], np.cumsum(sizes))).tolist()
        rows = int(sizes.sum())
        self._rate = draw.lognormal(8.0, 2.0, len(counts)).repeat(sizes) * draw.lognormal(0.0, 0.3, rows)
        self._base = draw.integers(0, 10**7, rows)
        topics = np.fromiter((topic for group in cluster.groups for topic in group.topics), np.int64)
        starts = np.concatenate(([0], np.cumsum(sizes[topics])))
        within = np.arange(int(starts[-1])) - starts[:-1].repeat(sizes[topics])
        self._row = np.array(self.topic_start, np.int64)[topics].repeat(sizes[topics]) + within
        self.pair_start: list[list[int]] = []
        first = 0
        for group in cluster.groups:
            self.pair_start.append(starts[first : first + len(group.topics)].tolist())
            first += len(group.topics)
        self._hot = draw.random(len(self._row)) < _HOT
        self._consumer = np.zeros(len(self._row), np.int64)

    def at(self, night: int, now_ms: int) -> NightOffsets:
        """The figures of a night, taken at `now_ms` (ms since 1970); nights come in order, from 0."""
        draw = np.random.default_rng([*self._seed, 1, night])
        grown = np.floor(self._rate * (night + draw.random(len(self._rate)))).astype(np.int64)
        broker = self._base + grown
        written = broker[self._row]
        lag = draw.lognormal(1.5, 2.0, len(self._row)) * np.where(self._hot, 2000.0, 1.0)
        self._consumer = np.maximum(self._consumer, written - np.minimum(lag.astype(np.int64), written))
        behind = (written - self._consumer) / np.maximum(self._rate[self._row], 1.0)
        last = now_ms - np.minimum(behind, 30.0) * _DAY_MS - draw.random(len(self._row)) * 1000
        return NightOffsets(broker.tolist(), self._consumer.tolist(), last.astype(np.int64).tolist())


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
        yield FIRST + timedelta(days=number), life.night(number, state)


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
    offsets: NightOffsets
    state: BrokerState


class _Life:
    """A cluster's state from one night to the next."""

    def __init__(self, shape: FleetShape, cluster: FleetCluster) -> None:
        self._shape, self._cluster = shape, cluster
        self._address = f"rocketmq://10.{cluster.number % 100}.255.1:9876"
        self._all_up = [_route(cluster, topic, BrokerState()) for topic in cluster.topics]
        counts = [0 if each is None else len(each.queues) for each in self._all_up]
        self._offsets = Offsets(cluster, counts, shape.seed)
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
        day = FIRST + timedelta(days=number)
        taken_at = datetime.combine(day, time(2, self._cluster.number % 60, 7), UTC)
        brokers = [_broker_data(self._cluster, i, state) for i in range(BROKERS) if i not in state.down]
        addresses = [addr for broker in brokers for _, addr in sorted(broker.broker_addrs.items())]
        offsets = self._offsets.at(number, int(taken_at.timestamp() * 1000))
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
        """What is seen of the queues of a group."""
        states: dict[MessageQueue, QueueState] = {}
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


LEVEL = 4


def generate(shape: FleetShape, folder: str) -> None:
    """Write `cluster=NAME/date=YYYY-MM-DD/snapshot.json.gz` for every cluster and night into a folder."""
    for number in range(sizes(shape).clusters):
        cluster = draw_cluster(shape, number)
        for day, snapshot in nights(shape, cluster):
            path = Path(folder, f"cluster={cluster.name}", f"date={day.isoformat()}", "snapshot.json.gz")
            path.parent.mkdir(parents=True)
            path.write_bytes(gzip.compress(document(snapshot), LEVEL, mtime=0))


def document(snapshot: ClusterSnapshot) -> bytes:
    """What `fetch-routes` would print of it, as JSON."""
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            "formatVersion": FORMAT_VERSION,
            "command": "fetch-routes",
            "source": {"kind": snapshot.kind, "endpoint": snapshot.endpoint, "takenAt": snapshot.taken_at},
            "data": to_document(snapshot),
            "findings": [],
        }
    )
