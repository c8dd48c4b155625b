"""A fleet before its first night: its size, names, brokers, topics, groups, and who reads what; sizes are heavy-tailed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import CPP, GO
from rmqlb.model.group import ConsumerGroup, MemberReport

BROKERS = 4
"""In each cluster."""
FIRST = date(2026, 11, 1)
MOST_CONSUMERS = 64
MOST_QUEUES = 256
"""Of one topic."""
STRATEGIES = {"AVG": 80, "AVG_BY_CIRCLE": 10, "CONSISTENT_HASH": 10}
"""What consumers run, and how many of a hundred groups do."""
_CONSUMERS = 5.0
"""Of a group, on average."""
_QUEUES_A_PAIR = 20
_ROWS_A_CLUSTER = 150_000
"""Keeps a night's snapshot well below the largest document that rmqlb reads."""


class FleetShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet to generate.

    Attributes:
        seed: equal seeds (and numpy versions) give equal bytes.
        clusters: None for 3, or as many as keep every snapshot readable.
        topics, groups: in the whole fleet; None for a fifth of the pairs, and for two in five pairs.
        pairs: (group, topic) subscriptions in the whole fleet, `%RETRY%` topics not counted.
        days: nights, one snapshot of each cluster a night.
        faults, odd_names, churn: share, 0 to 1, of groups with a fault, of odd names, of groups that change in a night.
        other_clients: share of groups, among those without a fault, with Go, C++, mixed, POP or gRPC clients.
        retry_queues: also the groups' `%RETRY%` queues, one on each broker.
    """

    seed: int = 0
    clusters: int | None = None
    topics: int | None = None
    groups: int | None = None
    pairs: int | None = None
    days: int = 1
    faults: float = 0.15
    odd_names: float = 0.02
    churn: float = 0.1
    other_clients: float = 0.1
    retry_queues: bool = True


class Sizes(msgspec.Struct, frozen=True):
    """A fleet's numbers with nothing left open."""

    clusters: int
    topics: int
    groups: int
    pairs: int


def sizes(shape: FleetShape) -> Sizes:
    """What is given, and what follows for the rest."""
    pairs = shape.pairs
    if pairs is None:
        pairs = 500 if shape.groups is None else shape.groups * 5 // 2
    groups = shape.groups or max(pairs * 2 // 5, 1)
    topics = shape.topics or max(pairs // 5, 1)
    clusters = shape.clusters or min(max(3, -(-pairs * _QUEUES_A_PAIR // _ROWS_A_CLUSTER)), groups, topics)
    found = Sizes(clusters, topics, groups, pairs)
    if shape.pairs is None and topics >= clusters <= groups <= pairs:
        return replace(found, pairs=min(pairs, sum(_room(found))))
    return found


def chance(seed: int, *purpose: object) -> Random:
    """The random numbers of one purpose; the same ones in every run."""
    return Random("/".join(map(str, (seed, *purpose))))


def share_out(total: int, clusters: int) -> list[int]:
    """So many things over the clusters, the first ones getting up to twice as many as the last."""
    weights = [2 - number / max(clusters - 1, 1) for number in range(clusters)]
    rest = total - clusters
    parts = [1 + int(rest * weight / sum(weights)) for weight in weights]
    for number in range(total - sum(parts)):
        parts[number] += 1
    return parts


def share_pairs(asked: Sizes) -> list[int]:
    """The pairs of each cluster: one for each of its groups, and its part of the rest, as far as its topics go."""
    groups, room = share_out(asked.groups, asked.clusters), _room(asked)
    more = share_out(asked.pairs - asked.groups + asked.clusters, asked.clusters)
    parts = [min(group + extra - 1, most) for group, extra, most in zip(groups, more, room, strict=True)]
    for number, most in enumerate(room):
        parts[number] += min(most - parts[number], asked.pairs - sum(parts))
    return parts


def _room(asked: Sizes) -> list[int]:
    """The most pairs that each cluster can have: every group on every topic."""
    groups, topics = share_out(asked.groups, asked.clusters), share_out(asked.topics, asked.clusters)
    return [a * b for a, b in zip(groups, topics, strict=True)]


# Names as fleets have them, and names that no one should have and some do; clusters share many of them

_WORDS = ("order", "stock", "ship", "bill", "audit", "user", "cart", "price", "mail", "trace", "alert", "refund")
_KINDS = ("Events", "Commands", "Changes", "Log")
ODD = (
    "\U0001f680rocket",
    "\ue000private",
    "with space",
    "price$1",
    'say "hi"',
    "it's",
    "=1+1",
    "a,b;c",
    "<b>&amp;</b>",
    "back\\slash",
    "up/../down",
    "\uff21\u202eleft",
    "{}%s",
    "x" * 250,
)
"""Above U+FFFF and above U+E000 (which Java sorts the other way round), and what CSV, HTML, SQL, shells and
spreadsheets stumble over."""


def letters(number: int) -> str:
    """A name for the so many-th thing."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def odd_name(kind: int, number: int) -> str:
    """An odd name of its own for each number; the kinds go round."""
    return f"{ODD[kind % len(ODD)]}-{number}"


def topic_name(number: int) -> str:
    """`OrderEvents-0`, `StockEvents-1` and so on."""
    kind = _KINDS[number // len(_WORDS) % len(_KINDS)]
    return f"{_WORDS[number % len(_WORDS)].capitalize()}{kind}-{number}"


def group_name(number: int) -> str:
    """`order-svc-0`, `stock-svc-1` and so on."""
    return f"{_WORDS[number % len(_WORDS)]}-svc-{number}"


def broker_name(number: int, *, rooms: bool, odd: bool) -> str:
    """`broker-a`; in rooms `r1@broker-3`; odd ones differ in their order between Java and Python."""
    if odd:
        return "broker-" + ODD[number % 2]
    return f"r{number % 3 + 1}@broker-{number}" if rooms else f"broker-{letters(number)}"


def address(random: Random, first: str) -> str:
    """An IPv4 address below two given numbers, such as `10.4`."""
    return f"{first}.{random.randrange(256)}.{random.randrange(1, 255)}"


def new_client_id(random: Random, ip: str, *, container: bool) -> str:
    """`IP@PID#NANOS`, the id that a client gives itself; in a container the process is always the first."""
    return f"{ip}@{1 if container else random.randrange(300, 65536)}#{random.randrange(10**12, 10**16)}"


# Groups whose consumers are not, or not all, Java's that share queues among themselves

_SHARES = (-1, 1, 2, 0)
"""`popShareQueueNum`, which brokers have at -1 where nothing is set."""


class Clients(StrEnum):
    """What a group's consumers are; healthy groups that are not Java's take the others in turn."""

    JAVA = "java"
    MIXED = "java-and-go"
    POP = "pop"
    GO = "go"
    GRPC = "grpc"
    """Behind a Proxy: no broker lists them."""
    CPP = "cpp"


def language_of(clients: Clients, place: int) -> tuple[str, str | None]:
    """The language of the process at this place of a group, and its version where the library reports a fixed one."""
    if clients is Clients.GO or (clients is Clients.MIXED and place % 2):
        return GO.languages[0], GO.reports[-1]
    if clients is Clients.CPP:
        return CPP.languages[0], CPP.reports[-1]
    return "JAVA", "V5_5_0" if clients is Clients.POP else None


def sdk_of(language: str) -> str:
    """The client library behind the language of a generated process."""
    return next((sdk.name for sdk in (GO, CPP) if language in sdk.languages), "java")


def seen_as(group: ConsumerGroup, clients: Clients, languages: Sequence[str], nth: int) -> ConsumerGroup:
    """A group as brokers and its consumers tell of it; `languages` are those of its reports, in their order."""
    reports = {
        client_id: report if language == "JAVA" else MemberReport(client_id, report.topics)
        for language, (client_id, report) in zip(languages, group.reports.items(), strict=True)
    }
    if clients is Clients.POP:
        topics = list(group.own_topics or ())
        return replace(
            group,
            reports={i: replace(report, client_rebalance=False) for i, report in reports.items()},
            request_modes=dict.fromkeys(topics, ("POP",)),
            pop_share_queue_nums=dict.fromkeys(topics, (_SHARES[nth % len(_SHARES)],)),
        )
    if clients is Clients.GRPC:
        views = tuple(replace(view, connections=()) for view in group.views or ())
        return replace(group, views=views, reports={}, polling_num=1 + nth % 8)
    return replace(group, reports=reports)


def is_owned(clients: Clients) -> bool:
    """Whether queues of such a group have owners that consumers can report."""
    return clients not in (Clients.POP, Clients.GRPC)


# Clusters

Ints = npt.NDArray[np.int64]

_POPULARITY = 0.7
_MEDIAN_QUEUES = 8.0
_ID_KINDS = ("process", "container", "named")


class Fault(StrEnum):
    """What is wrong with a group; it stays so every night."""

    MISMATCHES = "mismatches"
    """Queues are held by another consumer, or by one that is gone."""
    UNASSIGNED = "unassigned"
    DUPLICATE_OWNERS = "duplicate-owners"
    IDLE_CONSUMERS = "idle-consumers"
    """More consumers than queues."""
    FLAPPING = "flapping"
    """A consumer comes and goes every other night."""


class FleetBroker(msgspec.Struct, frozen=True):
    """A broker group; `ip` is its master's, a slave's is the next address."""

    name: str
    ip: str
    has_slave: bool


class FleetTopic(msgspec.Struct, frozen=True):
    """A topic: how many queues it has on which brokers (by number)."""

    name: str
    queues: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """All its read queues."""
        return sum(count for _, count in self.queues)


class FleetGroup(msgspec.Struct, frozen=True):
    """A group: its topics (by number), how many consumers it starts with, what they are, and what is wrong with it."""

    name: str
    topics: tuple[int, ...]
    size: int
    strategy: str
    id_kind: str
    fault: Fault | None = None
    clients: Clients = Clients.JAVA


class FleetCluster(msgspec.Struct, frozen=True):
    """A cluster; `number` is its place in the fleet."""

    name: str
    number: int
    brokers: tuple[FleetBroker, ...]
    topics: tuple[FleetTopic, ...]
    groups: tuple[FleetGroup, ...]


def draw_cluster(shape: FleetShape, number: int) -> FleetCluster:
    """The so many-th cluster of a fleet, from 0."""
    asked = sizes(shape)
    random = chance(shape.seed, number)
    topics = share_out(asked.topics, asked.clusters)[number]
    groups = share_out(asked.groups, asked.clusters)
    pairs = share_pairs(asked)
    subscriptions = _subscriptions(random, groups[number], pairs[number], topics)
    readers = np.bincount(np.fromiter((t for its in subscriptions for t in its), np.int64), minlength=topics)
    drawn = _topics(shape, random, readers)
    before = sum(groups[:number])
    brokers = _brokers(shape, random, number)
    return FleetCluster(
        name=f"fleet-{letters(number)}",
        number=number,
        brokers=brokers,
        topics=drawn,
        groups=_with_other_clients(shape, number, _groups(shape, random, subscriptions, drawn, before), before),
    )


def _brokers(shape: FleetShape, random: Random, number: int) -> tuple[FleetBroker, ...]:
    odd = shape.odd_names > 0 and number == 0
    return tuple(
        FleetBroker(
            name=broker_name(i, rooms=number % 3 == 1, odd=odd and i >= BROKERS - 2),
            ip=f"10.{number % 100}.{i}.1",
            has_slave=random.random() < 0.5,
        )
        for i in range(BROKERS)
    )


def _subscriptions(random: Random, groups: int, pairs: int, topics: int) -> list[tuple[int, ...]]:
    weights = np.array([random.paretovariate(1.5) for _ in range(groups)])
    counts = 1 + _dealt(pairs - groups, weights, topics - 1)
    order = random.sample(range(topics), topics)
    popularity = list(itertools.accumulate((rank + 1) ** -_POPULARITY for rank in range(topics)))
    return [_chosen(random, order, popularity, count) for count in counts.tolist()]


def _dealt(total: int, weights: npt.NDArray[np.float64], most: int) -> Ints:
    """A total in parts by weight, none above the most; there is room for all of it."""
    parts = np.zeros(len(weights), np.int64)
    while (left := total - int(parts.sum())) > 0:
        part = np.where(parts < most, weights, 0.0)
        add = np.floor(left * part / part.sum()).astype(np.int64)
        if not add.any():
            add[np.argsort(-part, kind="stable")[:left]] = 1
        parts = np.minimum(parts + add, most)
    return parts


def _chosen(random: Random, order: list[int], popularity: list[float], count: int) -> tuple[int, ...]:
    """So many topics, no topic twice; popular ones more often."""
    chosen: set[int] = set()
    for _ in range(20):
        chosen.update(random.choices(order, cum_weights=popularity, k=count - len(chosen)))
        if len(chosen) == count:
            return tuple(sorted(chosen))
    rest = [topic for topic in order if topic not in chosen]
    return tuple(sorted((*chosen, *rest[: count - len(chosen)])))


def _topics(shape: FleetShape, random: Random, readers: Ints) -> tuple[FleetTopic, ...]:
    wish = np.exp([random.gauss(0, 1) for _ in readers])
    spans = np.array([BROKERS if random.random() < 0.6 else random.randint(1, BROKERS) for _ in readers])
    size = np.clip(wish * _MEDIAN_QUEUES, 1, MOST_QUEUES)
    spans = np.minimum(spans, size.astype(np.int64))
    per_broker = (size / spans).astype(np.int64)
    topics, odd_kinds = [], itertools.count(random.randrange(len(ODD)))
    for number, (span, each) in enumerate(zip(spans.tolist(), per_broker.tolist(), strict=True)):
        brokers = sorted(random.sample(range(BROKERS), span))
        odd = random.random() < shape.odd_names
        name = odd_name(next(odd_kinds), number) if odd else topic_name(number)
        topics.append(FleetTopic(name, tuple((broker, each) for broker in brokers)))
    return tuple(topics)


def _groups(
    shape: FleetShape, random: Random, subscriptions: list[tuple[int, ...]], topics: tuple[FleetTopic, ...], before: int
) -> tuple[FleetGroup, ...]:
    """The groups; faults go round, starting where the clusters before have left off."""
    groups: list[FleetGroup] = []
    strategies, weights = zip(*STRATEGIES.items(), strict=True)
    odd_kinds = itertools.count(random.randrange(len(ODD)))
    ill_before = math.ceil(before * shape.faults)
    count = math.ceil((before + len(subscriptions)) * shape.faults) - ill_before
    ill = set(random.sample(range(len(subscriptions)), count))
    kinds = itertools.islice(itertools.cycle(Fault), ill_before % len(Fault), None)
    for number, its in enumerate(subscriptions):
        fault = next(kinds) if number in ill else None
        size = min(max(round(random.lognormvariate(math.log(_CONSUMERS) - 0.5, 1.0)), 1), MOST_CONSUMERS)
        if fault is not None:
            size = max(size, 3)
        if fault is Fault.IDLE_CONSUMERS:
            size = max(topics[topic].size for topic in its) + 2
        odd = random.random() < shape.odd_names
        groups.append(
            FleetGroup(
                name=odd_name(next(odd_kinds), number) if odd else group_name(number),
                topics=its,
                size=size,
                strategy="AVG" if fault is Fault.IDLE_CONSUMERS else random.choices(strategies, weights)[0],
                id_kind="odd" if odd else random.choices(_ID_KINDS, (6, 3, 1))[0],
                fault=fault,
            )
        )
    return tuple(groups)


def _with_other_clients(
    shape: FleetShape, number: int, groups: tuple[FleetGroup, ...], before: int
) -> tuple[FleetGroup, ...]:
    """The groups of one cluster, a share of the healthy ones with other clients; `before` are in earlier ones."""
    first = int(before * shape.other_clients)
    wanted = int((before + len(groups)) * shape.other_clients) - first
    healthy = [place for place, group in enumerate(groups) if group.fault is None]
    chosen = chance(shape.seed, number, "clients").sample(healthy, min(wanted, len(healthy)))
    kinds = [kind for kind in Clients if kind is not Clients.JAVA]
    changed = list(groups)
    for nth, place in zip(itertools.count(first), chosen, strict=False):
        changed[place] = _with(groups[place], kinds[nth % len(kinds)])
    return tuple(changed)


def _with(group: FleetGroup, clients: Clients) -> FleetGroup:
    strategy = "AVG" if clients in (Clients.POP, Clients.CPP) else group.strategy
    return replace(group, clients=clients, strategy=strategy, size=max(group.size, 2))
