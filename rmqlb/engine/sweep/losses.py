"""What can be lost of a cluster: consumers, brokers, masters, and the hosts and zones that hold some of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from msgspec import Struct

from rmqlb.engine.allocate.pin import host
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import MASTER_ID, BrokerData, TopicRouteData
from rmqlb.model.sweep import LOSS_KINDS, Loss, LossKind, LossParts
from rmqlb.model.words import counted, named

Process = tuple[str, int]
"""A client ID, and which of the processes with it, from 0."""
Address = tuple[str, int | None]
"""A broker's name and ID; None of a broker without an address."""


class Taken(Struct, frozen=True):
    """A loss, and all that it takes."""

    loss: Loss
    processes: frozenset[Process] = frozenset()
    addresses: frozenset[Address] = frozenset()

    @property
    def parts(self) -> LossParts:
        ids = sort_client_ids(client_id for client_id, _ in self.processes)
        texts = sorted(name if number is None else f"{name}/{number}" for name, number in self.addresses)
        return LossParts(self.loss.kind, self.loss.name, tuple(ids), tuple(texts))


class ZoneRule(Struct, frozen=True):
    """Whose name or address matches is in the zone.

    Attributes:
        zone: its name.
        pattern: a network such as 10.1.0.0/16, or a shell pattern of an address, a broker's name or a client ID.
    """

    zone: str
    pattern: str

    def takes(self, *names: str) -> bool:
        return any(name == self.pattern or fnmatchcase(name, self.pattern) or self._has(name) for name in names)

    def _has(self, name: str) -> bool:
        if self.network is None:
            return False
        try:
            return ip_address(name) in self.network
        except ValueError:
            return False

    @property
    def network(self) -> IPv4Network | IPv6Network | None:
        """The network that the pattern is; None of one that is none (raises UsageError where it tries to be)."""
        if not re.fullmatch(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*/[0-9]+", self.pattern):
            return None
        try:
            return ip_network(self.pattern, strict=False)
        except ValueError:
            raise UsageError(
                f"zone {self.zone}: {self.pattern} is not a network",
                hint="write 10.1.0.0/16, or a pattern as '10.1.*'",
                code="unknown-zone",
            ) from None


class Cluster(Struct, frozen=True):
    """Who is there to be lost."""

    processes: tuple[Process, ...]
    brokers: Mapping[str, BrokerData | None]  # name → its addresses; None where no route has any

    @property
    def addresses(self) -> dict[Address, str]:
        """Each with the machine that it is on, as far as that is known."""
        found: dict[Address, str] = {}
        for name, broker in self.brokers.items():
            if broker is None or not broker.broker_addrs:
                found[name, None] = ""
            else:
                found |= {(name, number): machine(text) for number, text in broker.broker_addrs.items()}
        return found


def cluster_of(members: Iterable[Sequence[str]], routes: Iterable[TopicRouteData]) -> Cluster:
    """The consumers of these groups and the brokers of these topics.

    Of a client ID there are as many processes as in the group that lists it most often: one process has one ID, and
    brings it to all groups in which it consumes (`MQClientManager.getOrCreateMQClientInstance`).
    """
    most: Counter[str] = Counter()
    for ids in members:
        most |= Counter(ids)
    brokers: dict[str, BrokerData | None] = {}
    for route in routes:
        known = route.brokers_by_name()
        for data in route.queue_datas:
            found = known.get(data.broker_name)
            if found is not None or data.broker_name not in brokers:
                brokers[data.broker_name] = found
    processes = tuple((each, place) for each in sort_client_ids(most) for place in range(most[each]))
    return Cluster(processes, dict(sorted(brokers.items())))


def machine(address: str) -> str:
    """The host of `HOST:PORT`."""
    return address.rpartition(":")[0].strip("[]")


def losses(cluster: Cluster, kinds: Sequence[LossKind], zones: Sequence[ZoneRule]) -> tuple[Taken, ...]:
    """Every single loss of these kinds, in their order (raises UsageError where a rule is no pattern)."""
    made = {
        "consumer": _consumers(cluster),
        "broker": _brokers(cluster),
        "master": _masters(cluster),
        "host": _hosts(cluster),
        "zone": _zones(cluster, zones),
    }
    return tuple(each for kind in LOSS_KINDS if kind in kinds for each in made[kind])


def _consumers(cluster: Cluster) -> Iterator[Taken]:
    for process in cluster.processes:
        yield Taken(Loss("consumer", process[0]), frozenset({process}))


def _brokers(cluster: Cluster) -> Iterator[Taken]:
    for name in cluster.brokers:
        own = frozenset(address for address in cluster.addresses if address[0] == name)
        yield Taken(Loss("broker", name), addresses=own)


def _masters(cluster: Cluster) -> Iterator[Taken]:
    for address in cluster.addresses:
        if address[1] == MASTER_ID:
            yield Taken(Loss("master", address[0]), addresses=frozenset({address}))


def _hosts(cluster: Cluster) -> Iterator[Taken]:
    where = {process: _host(process) for process in cluster.processes}
    yield from _places("host", where, cluster.addresses)


def _zones(cluster: Cluster, zones: Sequence[ZoneRule]) -> Iterator[Taken]:
    processes = {process: _zone(zones, process[0], _host(process)) for process in cluster.processes}
    addresses: dict[Address, str] = {}
    for (name, number), where in cluster.addresses.items():
        broker = cluster.brokers[name]
        own = "" if broker is None else broker.zone_name or ""
        addresses[name, number] = _zone(zones, name, where) or own
    yield from _places("zone", processes, addresses)


def empty_zones(cluster: Cluster, zones: Sequence[ZoneRule]) -> dict[str, str]:
    """The zones of the rules that have nothing in them, each with why."""
    named = dict.fromkeys(rule.zone for rule in zones)
    found = {each.loss.name for each in _zones(cluster, zones)}
    return {zone: _why_empty(zone, cluster, zones) for zone in named if zone not in found}


def _why_empty(zone: str, cluster: Cluster, zones: Sequence[ZoneRule]) -> str:
    own = [rule for rule in zones if rule.zone == zone]
    names = [(process[0], _host(process)) for process in cluster.processes]
    names += [(address[0], where) for address, where in cluster.addresses.items()]
    for rule in own:
        taken = [each for each in names if rule.takes(*each)]
        if taken:
            return f"{rule.pattern} matches only what is in zone {_zone(zones, *taken[0])} by an earlier pattern"
    patterns = named(rule.pattern for rule in own)
    return f"{patterns} {'matches' if len(own) == 1 else 'match'} no consumer, broker or address"


def _host(process: Process) -> str:
    """The machine in the client ID; an ID that an application made up without one has none."""
    return host(process[0]) if "@" in process[0] else ""


def _zone(zones: Sequence[ZoneRule], *names: str) -> str:
    return next((rule.zone for rule in zones if rule.takes(*names)), "")


def _places(kind: LossKind, processes: Mapping[Process, str], addresses: Mapping[Address, str]) -> Iterator[Taken]:
    for name in sorted({*processes.values(), *addresses.values()} - {""}):
        yield Taken(
            Loss(kind, name),
            frozenset(process for process, where in processes.items() if where == name),
            frozenset(address for address, where in addresses.items() if where == name),
        )


def without_zone(taken: Sequence[Taken], cluster: Cluster) -> str:
    """What no zone has although there are zones, in words; empty where all have one."""
    zones = [each for each in taken if each.loss.kind == "zone"]
    if not zones:
        return ""
    ids = {process[0] for process in cluster.processes}.difference(
        process[0] for each in zones for process in each.processes
    )
    brokers = set(cluster.brokers).difference(address[0] for each in zones for address in each.addresses)
    parts = [(ids, "consumer"), (brokers, "broker")]
    return " and ".join(f"{counted(len(some), what)} ({named(sorted(some))})" for some, what in parts if some)
