"""What a cluster can lose: consumers, brokers, masters, and the hosts and zones that run several of them."""

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
from rmqlb.model.sweep_failures import LOSS_KINDS, Loss, LossKind, LossParts
from rmqlb.model.words import counted, named

Process = tuple[str, int]
"""A client ID, and the number of the process among those with this ID, from 0."""
Address = tuple[str, int | None]
"""A broker's name and ID; the ID is None for a broker without an address."""
Thing = tuple[str, str, int | None]
"""A process or address, after the word which of them it is: a client ID may be equal to a broker's name."""


class Failure(Struct, frozen=True):
    """A loss with the processes and broker addresses that it takes."""

    loss: Loss
    processes: frozenset[Process] = frozenset()
    addresses: frozenset[Address] = frozenset()

    @property
    def things(self) -> Iterator[Thing]:
        yield from (("process", *process) for process in self.processes)
        yield from (("address", *address) for address in self.addresses)

    @property
    def parts(self) -> LossParts:
        ids = sort_client_ids(client_id for client_id, _ in self.processes)
        texts = sorted(name if number is None else f"{name}/{number}" for name, number in self.addresses)
        return LossParts(self.loss.kind, self.loss.name, tuple(ids), tuple(texts))


class ZoneRule(Struct, frozen=True):
    """A zone, and a pattern of what is in it."""

    zone: str
    pattern: str  # a network such as 10.1.0.0/16, or a shell pattern of an address, a broker's name or a client ID

    def matches(self, *names: str) -> bool:
        return any(name == self.pattern or fnmatchcase(name, self.pattern) or self._contains(name) for name in names)

    def _contains(self, name: str) -> bool:
        network = self.network
        try:
            return network is not None and ip_address(name) in network
        except ValueError:
            return False

    @property
    def network(self) -> IPv4Network | IPv6Network | None:
        """The pattern as a network; None for another pattern (raises UsageError for a malformed network)."""
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
    processes: Mapping[Process, str]  # process → its host; empty for a client ID that an application made up
    addresses: Mapping[Address, str]  # broker address → its host; empty where unknown
    zones: Mapping[str, str]  # broker → the zone that its route reports
    rules: Sequence[ZoneRule]  # of several patterns that match the first counts

    @property
    def brokers(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.addresses))

    def failures(self, kinds: Sequence[LossKind]) -> tuple[Failure, ...]:
        """Every single loss of these kinds (raises UsageError for a malformed zone pattern)."""
        found: dict[LossKind, Iterable[Failure]] = {
            "consumer": (Failure(Loss("consumer", each[0]), frozenset({each})) for each in self.processes),
            "broker": (
                Failure(Loss("broker", name), addresses=frozenset(each for each in self.addresses if each[0] == name))
                for name in self.brokers
            ),
            "master": (
                Failure(Loss("master", each[0]), addresses=frozenset({each}))
                for each in self.addresses
                if each[1] == MASTER_ID
            ),
            "host": _by_place("host", self.processes, self.addresses),
            "zone": self._zone_failures(),
        }
        return tuple(failure for kind in LOSS_KINDS if kind in kinds for failure in found[kind])

    def empty_zones(self) -> dict[str, str]:
        """The zones of the rules that contain nothing → the reason."""
        used = {failure.loss.name for failure in self._zone_failures()}
        return {zone: self._why_empty(zone) for zone in dict.fromkeys(r.zone for r in self.rules) if zone not in used}

    def outside_zones(self, failures: Iterable[Failure]) -> str:
        """The consumers and brokers without a zone, as a phrase; empty if all have one or there are no zones."""
        zones = [failure for failure in failures if failure.loss.kind == "zone"]
        if not zones:
            return ""
        ids = {name for name, _ in self.processes} - {name for zone in zones for name, _ in zone.processes}
        brokers = set(self.brokers) - {name for zone in zones for name, _ in zone.addresses}
        parts = [(ids, "consumer"), (brokers, "broker")]
        return " and ".join(f"{counted(len(some), what)} ({named(sorted(some))})" for some, what in parts if some)

    def _zone_failures(self) -> Iterator[Failure]:
        processes = {each: self._zone(each[0], where) for each, where in self.processes.items()}
        addresses = {
            each: self._zone(each[0], where) or self.zones.get(each[0], "") for each, where in self.addresses.items()
        }
        return _by_place("zone", processes, addresses)

    def _zone(self, *names: str) -> str:
        return next((rule.zone for rule in self.rules if rule.matches(*names)), "")

    def _why_empty(self, zone: str) -> str:
        patterns = [rule.pattern for rule in self.rules if rule.zone == zone]
        for rule in self.rules:
            for thing, where in (*self.processes.items(), *self.addresses.items()):
                if rule.zone == zone and rule.matches(thing[0], where):
                    other = self._zone(thing[0], where)
                    return f"{rule.pattern} matches only what is in zone {other} by an earlier pattern"
        return f"{named(patterns)} {'matches' if len(patterns) == 1 else 'match'} no consumer, broker or address"


def _by_place(kind: LossKind, processes: Mapping[Process, str], addresses: Mapping[Address, str]) -> Iterator[Failure]:
    found: dict[str, tuple[set[Process], set[Address]]] = {}
    for process, place in processes.items():
        found.setdefault(place, (set(), set()))[0].add(process)
    for address, place in addresses.items():
        found.setdefault(place, (set(), set()))[1].add(address)
    for place in sorted(found.keys() - {""}):
        yield Failure(Loss(kind, place), *map(frozenset, found[place]))  # type: ignore[arg-type]


def cluster_of(
    groups: Iterable[Sequence[str]], routes: Iterable[TopicRouteData], rules: Sequence[ZoneRule] = ()
) -> Cluster:
    """The consumers of these groups and the brokers of these topics.

    A client ID has as many processes as in the group that lists it most often: a process has one ID, which it brings to
    all groups in which it consumes (`MQClientManager.getOrCreateMQClientInstance`).
    """
    most: Counter[str] = Counter()
    for client_ids in groups:
        most |= Counter(client_ids)
    processes = {
        (client_id, number): host(client_id) if "@" in client_id else ""
        for client_id in sort_client_ids(most)
        for number in range(most[client_id])
    }
    brokers: dict[str, BrokerData | None] = {}
    for route in routes:
        known = route.brokers_by_name()
        for data in route.queue_datas:
            brokers[data.broker_name] = known.get(data.broker_name) or brokers.get(data.broker_name)
    addresses: dict[Address, str] = {}
    zones: dict[str, str] = {}
    for name, broker in sorted(brokers.items()):
        if broker is not None and broker.zone_name:
            zones[name] = broker.zone_name
        if broker is None or not broker.broker_addrs:
            addresses[name, None] = ""
        else:
            addresses |= {(name, number): _host_of(text) for number, text in broker.broker_addrs.items()}
    return Cluster(processes, addresses, zones, rules)


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
