"""A cluster before its first night: brokers, topics, groups, and who reads what. Sizes are heavy-tailed."""

from __future__ import annotations

import itertools
import math
from enum import StrEnum
from random import Random

import msgspec
import numpy as np
import numpy.typing as npt

from tests.support.synthetic import names
from tests.support.synthetic.clients import Clients
from tests.support.synthetic.shape import (
    MOST_CONSUMERS,
    MOST_QUEUES,
    STRATEGIES,
    FleetShape,
    chance,
    share_out,
    share_pairs,
    sizes,
)

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
    queues = None if asked.queues is None else _part(asked.queues, pairs, number)
    drawn = _topics(shape, random, readers, queues)
    before = sum(groups[:number])
    brokers = _brokers(shape, random, number)
    return FleetCluster(
        name=f"fleet-{names.letters(number)}",
        number=number,
        brokers=brokers,
        topics=drawn,
        groups=_with_other_clients(shape, number, _groups(shape, random, subscriptions, drawn, before), before),
    )


def _part(total: int, weights: list[int], number: int) -> int:
    """The so many-th part of a total by weight; together the parts are the total."""
    before, whole = sum(weights[:number]), sum(weights)
    return total * (before + weights[number]) // whole - total * before // whole


def _brokers(shape: FleetShape, random: Random, number: int) -> tuple[FleetBroker, ...]:
    odd = shape.odd_names > 0 and number == 0 and shape.brokers > 2
    return tuple(
        FleetBroker(
            name=names.broker_name(i, rooms=number % 3 == 1, odd=odd and i >= shape.brokers - 2),
            ip=f"10.{number % 100}.{i}.1",
            has_slave=random.random() < 0.5,
        )
        for i in range(shape.brokers)
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


def _topics(shape: FleetShape, random: Random, readers: Ints, queues: int | None) -> tuple[FleetTopic, ...]:
    count = len(readers)
    wish = np.exp([random.gauss(0, 1) for _ in range(count)])
    spans = np.array([shape.brokers if random.random() < 0.6 else random.randint(1, shape.brokers) for _ in readers])
    spans, per_broker = _sized(wish, spans, readers, queues)
    left = 0 if queues is None else queues - int((spans * per_broker * readers).sum())
    topics, odd_kinds = [], itertools.count(random.randrange(len(names.ODD)))
    for number in range(count):
        span, each = int(spans[number]), int(per_broker[number])
        more = 0
        if readers[number] and left > 0:
            more = min(left // int(readers[number]), span if span * (each + 1) <= MOST_QUEUES else 0)
            left -= more * int(readers[number])
        brokers = sorted(random.sample(range(shape.brokers), span))
        counts = tuple((broker, each + (place < more)) for place, broker in enumerate(brokers))
        odd = random.random() < shape.odd_names
        name = names.odd_name(next(odd_kinds), number) if odd else names.topic_name(number)
        topics.append(FleetTopic(name, counts))
    return tuple(topics)


def _sized(wish: npt.NDArray[np.float64], spans: Ints, readers: Ints, queues: int | None) -> tuple[Ints, Ints]:
    """Brokers of each topic, and queues on each of them; not more than asked for over all pairs, and not far below."""

    # Sizes stay in the proportions that were drawn; only their common scale is searched for, by halving, because the
    # rounding to whole queues on whole brokers has no inverse.
    def at(scale: float) -> tuple[Ints, Ints]:
        size = np.clip(wish * scale, 1, MOST_QUEUES)
        span = np.minimum(spans, size.astype(np.int64))
        return span, (size / span).astype(np.int64)

    if queues is None:
        return at(_MEDIAN_QUEUES)
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        span, each = at(middle)
        low, high = (middle, high) if int((span * each * readers).sum()) <= queues else (low, middle)
    return at(low)


def _groups(
    shape: FleetShape, random: Random, subscriptions: list[tuple[int, ...]], topics: tuple[FleetTopic, ...], before: int
) -> tuple[FleetGroup, ...]:
    """The groups; faults go round, starting where the clusters before have left off."""
    groups: list[FleetGroup] = []
    strategies, weights = zip(*STRATEGIES.items(), strict=True)
    odd_kinds = itertools.count(random.randrange(len(names.ODD)))
    ill_before = math.ceil(before * shape.faults)
    count = math.ceil((before + len(subscriptions)) * shape.faults) - ill_before
    ill = set(random.sample(range(len(subscriptions)), count))
    kinds = itertools.islice(itertools.cycle(Fault), ill_before % len(Fault), None)
    for number, its in enumerate(subscriptions):
        fault = next(kinds) if number in ill else None
        size = min(max(round(random.lognormvariate(math.log(shape.consumers) - 0.5, 1.0)), 1), MOST_CONSUMERS)
        if fault is not None:
            size = max(size, 3)
        if fault is Fault.IDLE_CONSUMERS:
            size = max(topics[topic].size for topic in its) + 2
        odd = random.random() < shape.odd_names
        groups.append(
            FleetGroup(
                name=names.odd_name(next(odd_kinds), number) if odd else names.group_name(number),
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
    return msgspec.structs.replace(group, clients=clients, strategy=strategy, size=max(group.size, 2))
