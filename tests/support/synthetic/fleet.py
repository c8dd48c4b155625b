"""A fleet drawn from a seed and lived night by night: one snapshot per cluster and night.

Everything random comes from the seed, the cluster and the night; no clock. Processes restart, join and leave, offsets
never go back. Sizes are heavy-tailed, and some names are odd.
"""

import gzip
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import accumulate, count, cycle
from pathlib import Path
from random import Random

import msgspec
from msgspec.structs import replace

from rmqlb import MessageQueue, allocate
from rmqlb.engine.allocate.rules import CPP, GO, JAVA_CLASSES, sdk_of_connection
from rmqlb.model.group import (
    BROADCASTING,
    CLUSTERING,
    CONSUME_POP,
    RETRY_PREFIX,
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    QueueState,
    Seen,
)
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.result import FORMAT_VERSION
from rmqlb.model.route import PERM_READ, PERM_WRITE, BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Everything, RouteSighting, Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.formats.snapshot_file import SCHEMA, to_document

FIRST = date(2026, 11, 1)
BROKERS = 4
"""In each cluster."""
MOST_CONSUMERS = 64
MOST_QUEUES = 256
"""The most queues of one topic."""
STRATEGIES = {"AVG": 80, "AVG_BY_CIRCLE": 10, "CONSISTENT_HASH": 10}
"""What consumers run, and how many of a hundred groups do."""
_VERSIONS = ("V4_9_7", "V5_1_4", "V5_5_0")
_VIEWS = 2
"""Brokers that list a group's consumers; more of them make snapshots larger and say the same."""
_DAY_MS = 86_400_000
_CLASSES = {name: java_class for java_class, name in JAVA_CLASSES.items()}
_WORDS = ("order", "stock", "ship", "bill", "audit", "user", "cart", "price", "mail", "trace", "alert", "refund")
_KINDS = ("Events", "Commands", "Changes", "Log")
ODD = (
    *("\U0001f680rocket", "\ue000private", "with space", "price$1", 'say "hi"', "it's", "=1+1", "a,b;c"),
    *("<b>&amp;</b>", "back\\slash", "up/../down", "\uff21\u202eleft", "{}%s", "x" * 250),
)
"""Above U+FFFF and above U+E000 (which Java sorts the other way round), and what CSV, HTML, SQL, shells and
spreadsheets stumble over."""


class FleetShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet to generate; equal shapes give equal bytes.

    Attributes:
        topics, groups: in the whole fleet.
        days: nights, one snapshot of each cluster a night.
        faults, odd_names, churn: share, 0 to 1, of groups with a fault, of odd names, of groups that change in a night.
        other_clients: share of groups, among those without a fault, with Go, C++, mixed, POP or gRPC clients.
        retry_queues: also the groups' `%RETRY%` queues, one on each broker.
        hot: share of the queues whose consumers have fallen behind.
    """

    seed: int = 0
    clusters: int = 3
    topics: int = 45
    groups: int = 200
    days: int = 1
    faults: float = 0.15
    odd_names: float = 0.02
    churn: float = 0.1
    other_clients: float = 0.1
    retry_queues: bool = True
    hot: float = 0.004


class Fault(StrEnum):
    MISMATCHES = "mismatches"  # queues are held by another consumer, or by one that is gone
    UNASSIGNED = "unassigned"
    DUPLICATE_OWNERS = "duplicate-owners"
    IDLE_CONSUMERS = "idle-consumers"  # more consumers than queues
    FLAPPING = "flapping"  # a consumer comes and goes every other night


class Clients(StrEnum):
    JAVA = "java"
    MIXED = "java-and-go"
    POP = "pop"
    GO = "go"
    GRPC = "grpc"  # behind a Proxy: no broker lists them
    CPP = "cpp"


class _Group(msgspec.Struct):
    name: str
    topics: list[TopicRouteData]
    strategy: str
    id_kind: str  # of client IDs: process, container, named or odd
    fault: Fault | None
    clients: Clients
    members: list[Connection] = []
    owners: dict[tuple[str, tuple[str, ...]], dict[MessageQueue, frozenset[str]]] = {}
    """Topic and client IDs → owners by the strategy, which most nights share."""


def generate(shape: FleetShape, folder: str) -> None:
    """Write `cluster=NAME/date=YYYY-MM-DD/snapshot.json.gz` for every cluster and night into a folder."""
    for number in range(shape.clusters):
        cluster = _Cluster(shape, number)
        for night in range(shape.days):
            snapshot = cluster.night(night)
            day = f"date={FIRST + timedelta(days=night)}"
            path = Path(folder, f"cluster={cluster.name}", day, "snapshot.json.gz")
            path.parent.mkdir(parents=True)
            path.write_bytes(gzip.compress(document(snapshot), 4, mtime=0))


def planted(shape: FleetShape) -> dict[tuple[str, str], Fault | Clients]:
    """The cluster and name of each group with a fault, or with clients of two languages."""
    clusters = [_Cluster(shape, number) for number in range(shape.clusters)]
    all_groups = {(of.name, group.name): group.fault or group.clients for of in clusters for group in of.groups}
    return {name: kind for name, kind in all_groups.items() if isinstance(kind, Fault) or kind is Clients.MIXED}


def document(snapshot: ClusterSnapshot) -> bytes:
    source = {"kind": snapshot.kind, "endpoint": snapshot.endpoint, "takenAt": snapshot.taken_at}
    head = {"schema": SCHEMA, "formatVersion": FORMAT_VERSION, "command": "fetch-routes", "source": source}
    return msgspec.json.encode({**head, "data": to_document(snapshot), "findings": []})


def _part(total: int, clusters: int, number: int) -> int:
    return total // clusters + (number < total % clusters)


class _Cluster:
    def __init__(self, shape: FleetShape, number: int) -> None:
        self.name = f"fleet-{chr(ord('a') + number)}"
        self._shape, self._number = shape, number
        random = self._random("drawn")
        self._brokers = [self._broker(at, random) for at in range(BROKERS)]
        odd = count(random.randrange(len(ODD)))
        topics = [self._topic(at, random, odd) for at in range(_part(shape.topics, shape.clusters, number))]
        random.shuffle(topics)
        self._routes = {route.topic: route for route in topics}
        self.groups = list(self._draw_groups(random, topics, odd))
        queues = [queue for route in topics for queue in route.subscribe_queues()]
        self._rates = {queue: random.lognormvariate(8, 2) for queue in queues}  # messages per day
        self._first = {queue: random.randrange(10**7) for queue in queues}
        self._read: dict[tuple[str, MessageQueue], int] = {}

    def _random(self, *purpose: object) -> Random:
        return Random("/".join(map(str, (self._shape.seed, self._number, *purpose))))

    def _broker(self, at: int, random: Random) -> BrokerData:
        if self._shape.odd_names and self._number == 0 and at >= BROKERS - 2:
            name = f"broker-{ODD[at % 2]}"  # the two differ in their order between Java and Python
        else:
            name = f"r{at % 3 + 1}@broker-{at}" if self._number % 3 == 1 else f"broker-{chr(ord('a') + at)}"
        ip = f"10.{self._number}.{at}"
        slave = {1: f"{ip}.2:10911"} if random.random() < 0.5 else {}
        return BrokerData(self.name, name, {0: f"{ip}.1:10911", **slave})

    def _route(self, topic: str, queues: Mapping[int, int]) -> TopicRouteData:
        brokers = [self._brokers[at] for at in sorted(queues)]
        numbers = zip(brokers, (queues[at] for at in sorted(queues)), strict=True)
        datas = tuple(QueueData(each.broker_name, n, n, PERM_READ | PERM_WRITE) for each, n in numbers)
        return TopicRouteData(topic, datas, tuple(brokers))

    def _name(self, usual: str, at: int, random: Random, odd: Iterator[int]) -> str:
        return f"{ODD[next(odd) % len(ODD)]}-{at}" if random.random() < self._shape.odd_names else usual

    def _topic(self, at: int, random: Random, odd: Iterator[int]) -> TopicRouteData:
        size = min(max(round(8 * random.lognormvariate(0, 1)), 1), MOST_QUEUES)
        span = min(BROKERS if random.random() < 0.6 else random.randint(1, BROKERS), size)
        usual = f"{_WORDS[at % len(_WORDS)].capitalize()}{_KINDS[at // len(_WORDS) % len(_KINDS)]}-{at}"
        brokers = random.sample(range(BROKERS), span)
        return self._route(self._name(usual, at, random, odd), dict.fromkeys(brokers, size // span))

    def _draw_groups(self, random: Random, topics: Sequence[TopicRouteData], odd: Iterator[int]) -> Iterator[_Group]:
        """Faults and other clients come at even distances, their kinds in turn."""
        popularity = list(accumulate((rank + 1) ** -0.7 for rank in range(len(topics))))
        faults, others = cycle(Fault), cycle([kind for kind in Clients if kind is not Clients.JAVA])
        ill = well = 0.0
        for at in range(_part(self._shape.groups, self._shape.clusters, self._number)):
            wanted = int(random.paretovariate(1.5))
            own = {route.topic: route for route in random.choices(topics, cum_weights=popularity, k=wanted)}
            fault, clients = None, Clients.JAVA
            ill += self._shape.faults
            if ill >= 1:
                fault, ill = next(faults), ill - 1
            else:
                well += self._shape.other_clients
            if well >= 1:
                clients, well = next(others), well - 1
            usual = f"{_WORDS[at % len(_WORDS)]}-svc-{at}"
            name = self._name(usual, at, random, odd)
            kind = "odd" if name != usual else random.choices(("process", "container", "named"), (6, 3, 1))[0]
            strategy = random.choices([*STRATEGIES], [*STRATEGIES.values()])[0]
            if fault is Fault.IDLE_CONSUMERS or clients in (Clients.POP, Clients.CPP):
                strategy = "AVG"
            group = _Group(name, [own[topic] for topic in sorted(own)], strategy, kind, fault, clients)
            size = min(max(round(5 * random.lognormvariate(-0.5, 1)), 1 if fault is None else 3), MOST_CONSUMERS)
            if fault is Fault.IDLE_CONSUMERS:
                size = 2 + max(len(route.subscribe_queues()) for route in group.topics)
            elif clients is not Clients.JAVA:
                size = max(size, 2)
            version = random.choice(_VERSIONS)
            group.members = [self._member(random, group, place, version) for place in range(size)]
            yield group

    def _member(self, random: Random, group: _Group, place: int, version: str) -> Connection:
        language = "JAVA"
        if group.clients is Clients.GO or (group.clients is Clients.MIXED and place % 2):
            language, version = GO.languages[0], GO.reports[-1]
        elif group.clients is Clients.CPP:
            language, version = CPP.languages[0], CPP.reports[-1]
        elif group.clients is Clients.POP:
            version = "V5_5_0"
        net = "10.244" if group.id_kind == "container" else f"10.{100 + self._number}"
        ip = f"{net}.{random.randrange(256)}.{random.randrange(1, 255)}"
        client_id = {
            "odd": f"10.1.1.1@{ODD[place % len(ODD)]}-{place}",
            "named": f"{ip}@{group.name}-{place}",
            "container": f"{ip}@1#{random.randrange(10**12, 10**16)}",
        }.get(group.id_kind, f"{ip}@{random.randrange(300, 65536)}#{random.randrange(10**12, 10**16)}")
        return Connection(client_id, f"{ip}:{random.randrange(32768, 61000)}", language, version)

    def _change(self, random: Random, group: _Group) -> None:
        """A consumer restarts, joins or leaves, or all are deployed again; named ones keep their IDs."""
        if random.random() >= self._shape.churn or group.fault is Fault.IDLE_CONSUMERS:
            return
        members = group.members
        event = random.choices(("restart", "join", "leave", "deploy"), (5, 2, 2, 1))[0]
        fewest = 1 if group.fault is None else 3
        if event == "join" and len(members) < MOST_CONSUMERS:
            place = 1000 + random.randrange(10**6) * 2  # even: a Java client of a mixed group
            members.append(self._member(random, group, place, members[0].version or _VERSIONS[0]))
        elif event == "leave" and len(members) > fewest:
            del members[random.randrange(fewest, len(members))]
        elif group.id_kind not in ("named", "odd"):
            places = range(len(members)) if event == "deploy" else [random.randrange(len(members))]
            for place in places:
                new = self._member(random, group, place, members[place].version or _VERSIONS[0])
                members[place] = replace(new, language=members[place].language, version=members[place].version)

    def night(self, night: int) -> ClusterSnapshot:
        """The snapshot of a night; nights come in order, from 0."""
        taken_at = datetime.combine(FIRST + timedelta(days=night), time(2, self._number, 7), UTC)
        seen = Seen(f"rocketmq://10.{self._number}.255.1:9876", taken_at)
        random = self._random("night", night)
        for group in self.groups if night else ():
            self._change(random, group)
        written = {
            queue: self._first[queue] + int(rate * (night + random.random())) for queue, rate in self._rates.items()
        }
        groups = {group.name: self._seen(group, night, seen, written, random) for group in self.groups}
        return ClusterSnapshot(
            kind="nameserver", endpoint=seen.where, taken_at=taken_at,
            routes={topic: RouteSighting(route, seen) for topic, route in self._routes.items()}, groups=groups,
        )  # fmt: skip

    def _seen(
        self, group: _Group, night: int, seen: Seen, written: Mapping[MessageQueue, int], random: Random
    ) -> ConsumerGroup:
        members = list(group.members)
        if group.fault is Fault.FLAPPING and night % 2:
            del members[1]
        retry = f"{RETRY_PREFIX}{group.name}"
        topics = tuple(sorted([retry, *(route.topic for route in group.topics)]))
        states: dict[MessageQueue, QueueState] = {}
        for route in group.topics:
            for queue, owners in self._owners(group, members, route, random).items():
                states[queue] = self._state((group.name, queue), owners, written[queue], seen, random)
        if self._shape.retry_queues:
            route = self._route(retry, dict.fromkeys(range(BROKERS), 1))
            for queue, owners in self._owners(group, members, route, random).items():
                states[queue] = QueueState(owners, 0, 0, 0)
        addresses = [text for broker in self._brokers for _, text in sorted(broker.broker_addrs.items())]
        connections = () if group.clients is Clients.GRPC else tuple(members)
        is_pop = group.clients is Clients.POP
        own = [topic for topic in topics if topic != retry]
        return ConsumerGroup(
            group.name, seen, consume_type="CONSUME_PASSIVELY", message_model=CLUSTERING,
            consume_from_where=CONSUME_FROM_LAST_OFFSET, topics=topics, queues=states,
            views=tuple(MemberView(connections, seen, address) for address in addresses[:_VIEWS]),
            reports={
                each.client_id: MemberReport(each.client_id, frozenset(topics), _CLASSES[group.strategy], not is_pop)
                if each.language == "JAVA" else MemberReport(each.client_id, frozenset(topics))
                for each in connections
            },
            request_modes=dict.fromkeys(own, ("POP",)) if is_pop else None,
            pop_share_queue_nums=dict.fromkeys(own, (-1,)) if is_pop else None,
            polling_num=1 if group.clients is Clients.GRPC else None,
        )  # fmt: skip

    def _state(
        self, key: tuple[str, MessageQueue], owners: frozenset[str] | None, written: int, seen: Seen, random: Random
    ) -> QueueState:
        lag = int(random.lognormvariate(1.5, 2) * (2000 if random.random() < self._shape.hot else 1))
        self._read[key] = max(self._read.get(key, 0), written - min(lag, written))
        days = min((written - self._read[key]) / max(self._rates[key[1]], 1), 30)
        now_ms = seen.at.timestamp() * 1000 if seen.at else 0
        read_at = math.floor(now_ms - days * _DAY_MS - random.random() * 1000)
        return QueueState(owners, written, self._read[key], read_at)

    def _owners(
        self, group: _Group, members: Sequence[Connection], route: TopicRouteData, random: Random
    ) -> dict[MessageQueue, frozenset[str] | None]:
        """The observed owners of a topic's queues: a fault changes a quarter of those that the strategy gives."""
        queues = route.subscribe_queues()
        if group.clients in (Clients.POP, Clients.GRPC):
            return dict.fromkeys(queues)
        ids = tuple(each.client_id for each in members)
        key = route.topic, ids
        if key not in group.owners:
            sdks = {each.client_id: sdk_of_connection(each.language, each.version).sdk.name for each in members}
            shares = allocate(group.strategy, queues, ids, sdks=sdks)
            found: dict[MessageQueue, set[str]] = {queue: set() for queue in queues}
            for client_id, share in shares.items():
                for queue in share:
                    found[queue].add(client_id)
            group.owners[key] = {queue: frozenset(own) for queue, own in found.items()}
        owners: dict[MessageQueue, frozenset[str] | None] = dict(group.owners[key])
        if group.fault in (Fault.MISMATCHES, Fault.UNASSIGNED, Fault.DUPLICATE_OWNERS):
            for queue in random.sample(queues, math.ceil(len(queues) / 4)):
                owners[queue] = _disturbed(group.owners[key][queue], group.fault, ids, random)
        return owners


def _disturbed(owners: frozenset[str], fault: Fault, ids: Sequence[str], random: Random) -> frozenset[str]:
    if fault is Fault.UNASSIGNED:
        return frozenset()
    others = [client_id for client_id in ids if client_id not in owners]
    if fault is Fault.MISMATCHES and random.random() < 0.5:
        others = [f"10.255.0.1@1#{len(ids)}"]
    return frozenset({random.choice(others)} | (owners if fault is Fault.DUPLICATE_OWNERS else frozenset()))


WHOLE = Wanted(everything=Everything(system=True))
ConnectionsOf = Callable[[tuple[Connection, ...]], Iterable[Connection]]


def connected(group: ConsumerGroup, change: ConnectionsOf) -> ConsumerGroup:
    views = tuple(replace(view, connections=tuple(change(view.connections))) for view in group.views or ())
    known = {connection.client_id for view in views for connection in view.connections}
    return replace(group, views=views, reports={i: report for i, report in group.reports.items() if i in known})


def first_reports(group: ConsumerGroup, change: Callable[[MemberReport], MemberReport]) -> ConsumerGroup:
    first = min(group.reports, default="")
    return replace(group, reports={i: change(each) if i == first else each for i, each in group.reports.items()})


def all_report(group: ConsumerGroup, **changes: object) -> ConsumerGroup:
    return replace(group, reports={i: replace(each, **changes) for i, each in group.reports.items()})


def held_by(group: ConsumerGroup, owners: frozenset[str] | None, **changes: object) -> ConsumerGroup:
    return replace(group, queues={q: replace(state, owners=owners, **changes) for q, state in group.queues.items()})


def shared_id(its: tuple[Connection, ...]) -> tuple[Connection, ...]:
    return (its[0], replace(its[1], client_id=its[0].client_id), *its[2:]) if len(its) > 1 else its


def split_view(group: ConsumerGroup) -> ConsumerGroup:
    first, *others = group.views or ()
    return replace(group, views=(first, *(replace(view, connections=view.connections[:-1]) for view in others)))


def silent_member(group: ConsumerGroup) -> ConsumerGroup:
    silent = min(group.reports, default="")
    group = replace(group, reports={i: each for i, each in group.reports.items() if i != silent})
    queues = {q: replace(s, owners=None) if silent in (s.owners or ()) else s for q, s in group.queues.items()}
    return replace(group, queues=queues)


def no_members(group: ConsumerGroup) -> ConsumerGroup:
    """Nothing was read lately: otherwise its members are behind a Proxy."""
    group = replace(group, consume_type=None, message_model=None, views=(), reports={})
    return held_by(group, frozenset(), last_timestamp=1)


def grpc_ids(its: tuple[Connection, ...]) -> Iterable[Connection]:
    return (replace(each, client_id=f"host-{place}@1@0@abcdef{place}") for place, each in enumerate(its))


FAULTS: dict[str, Callable[[ConsumerGroup], ConsumerGroup]] = {
    "shared id": lambda group: connected(group, shared_id),
    "missing subscription": lambda group: first_reports(
        group, lambda each: replace(each, topics=frozenset(sorted(each.topics or ())[:-1]))
    ),
    "split view": split_view,
    "mixed strategies": lambda group: first_reports(
        group, lambda each: replace(each, strategy_class="AllocateMessageQueueConsistentHash")
    ),
    "broadcasting": lambda group: replace(group, message_model=BROADCASTING, queues={}, reports={}),
    "pop": lambda group: held_by(
        all_report(replace(group, consume_type=CONSUME_POP), strategy_class=None, client_rebalance=False), frozenset()
    ),
    "no members": no_members,
    "unseen members": lambda group: held_by(replace(group, views=None, reports={}), None),
    "silent member": silent_member,
    "foreign strategy": lambda group: all_report(group, strategy_class="AllocateMessageQueueByWeight"),
    "grpc": lambda group: held_by(connected(group, grpc_ids), None),
    "lost topic": lambda group: replace(group, topics=(*(group.topics or ()), f"Retired-{group.group}")),
}


def static(route: TopicRouteData) -> TopicRouteData:
    """Logical queues, dealt to the brokers in blocks."""
    total, first, mapping = sum(each.read_queue_nums for each in route.queue_datas), 0, {}
    for each in route.queue_datas:
        ids = {first + number: number for number in range(each.read_queue_nums)}
        mapping[each.broker_name] = TopicQueueMappingInfo(route.topic, "__global__", total, each.broker_name, 1, ids)
        first += each.read_queue_nums
    return replace(route, topic_queue_mapping_by_broker=mapping)


def queues_changed(route: TopicRouteData, **changes: int) -> TopicRouteData:
    return replace(route, queue_datas=tuple(replace(each, **changes) for each in route.queue_datas))


ROUTES: dict[str, Callable[[TopicRouteData], TopicRouteData]] = {
    "ordered": lambda route: replace(
        route, order_topic_conf=";".join(f"{q.broker_name}:{q.read_queue_nums}" for q in route.queue_datas)
    ),
    "static": static,
    "shrinking": lambda route: queues_changed(route, write_queue_nums=1),
    "read only": lambda route: queues_changed(route, perm=PERM_READ),
}


def put_faults(folder: Path, every: int) -> None:
    """Give every so many-th group and topic of each snapshot one, the kinds going round."""
    for path in sorted(folder.rglob("snapshot.json.gz")):
        snapshot = DumpSource(str(path)).fetch(WHOLE)
        of_groups, of_routes = cycle(FAULTS.values()), cycle(ROUTES.values())
        groups = {
            name: group if number % every else next(of_groups)(group)
            for number, (name, group) in enumerate(snapshot.groups.items())
        }
        routes = {
            name: seen if number % every else replace(seen, route=next(of_routes)(seen.route))
            for number, (name, seen) in enumerate(snapshot.routes.items())
        }
        path.write_bytes(gzip.compress(document(replace(snapshot, groups=groups, routes=routes))))
