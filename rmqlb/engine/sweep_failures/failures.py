"""What a cluster can lose: consumers, brokers, masters, and the hosts and zones that run several of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal, NamedTuple

from msgspec import Struct

from rmqlb.engine.allocate.pin import host
from rmqlb.errors import UsageError
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.result import counted, named
from rmqlb.model.route import MASTER_ID, TopicRouteData
from rmqlb.model.sweep_failures import LOSS_KINDS, Loss, LossKind, LossParts


class Thing(NamedTuple):
    kind: Literal["process", "address"]
    name: str  # the client ID or the broker's name
    number: int | None  # among the processes of this client ID, from 0; or the broker's ID, None without an address


class Failure(Struct, frozen=True):
    loss: Loss
    things: frozenset[Thing]  # that it takes

    @property
    def parts(self) -> LossParts:
        ids = sort_client_ids(each.name for each in self.things if each.kind == "process")
        brokers = [(each.name, each.number) for each in self.things if each.kind == "address"]
        addresses = sorted(name if number is None else f"{name}/{number}" for name, number in brokers)
        return LossParts(self.loss.kind, self.loss.name, tuple(ids), tuple(addresses))


class ZoneRule(Struct, frozen=True):
    zone: str
    pattern: str  # a network such as 10.1.0.0/16, or a shell pattern of an address, a broker's name or a client ID

    def matches(self, *names: str) -> bool:
        return any(name == self.pattern or fnmatchcase(name, self.pattern) or self._contains(name) for name in names)

    def _contains(self, name: str) -> bool:
        network = self._network
        try:
            return network is not None and ip_address(name) in network
        except ValueError:
            return False

    @property
    def _network(self) -> IPv4Network | IPv6Network | None:
        """None for another pattern (raises UsageError for a malformed network)."""
        if not re.fullmatch(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*/[0-9]+", self.pattern):
            return None
        try:
            return ip_network(self.pattern, strict=False)
        except ValueError:
            problem = f"zone {self.zone}: {self.pattern} is not a network"
            raise UsageError(problem, hint="write 10.1.0.0/16, or a pattern as '10.1.*'", code="unknown-zone") from None


class Cluster(Struct, frozen=True):
    hosts: Mapping[Thing, str]  # thing → its host; empty when unknown, as for an application's own client IDs
    zones: Mapping[str, str]  # broker → the zone in its route
    rules: Sequence[ZoneRule]  # the first match counts

    def failures(self, kinds: Sequence[LossKind]) -> tuple[Failure, ...]:
        return tuple(failure for kind in LOSS_KINDS if kind in kinds for failure in self._failures(kind))

    def _failures(self, kind: LossKind) -> list[Failure]:
        found: dict[tuple[str, int | None], set[Thing]] = {}
        for thing in self.hosts:
            if (key := self._key(kind, thing)) is not None:
                found.setdefault(key, set()).add(thing)
        keys = sorted(found) if kind in ("host", "zone") else found  # others are sorted already
        return [Failure(Loss(kind, key[0]), frozenset(found[key])) for key in keys]

    def _key(self, kind: LossKind, thing: Thing) -> tuple[str, int | None] | None:
        """Things that are lost together have the same key; None where no loss of this kind takes the thing."""
        if kind in ("host", "zone"):
            where = self.hosts[thing] if kind == "host" else self._zone(thing)
            return (where, None) if where else None
        if thing.kind == "process":
            return (thing.name, thing.number) if kind == "consumer" else None
        return (thing.name, None) if kind == "broker" or (kind == "master" and thing.number == MASTER_ID) else None

    def empty_zones(self) -> dict[str, str]:
        used = {failure.loss.name for failure in self._failures("zone")}
        return {zone: self._why_empty(zone) for zone in dict.fromkeys(r.zone for r in self.rules) if zone not in used}

    def outside_zones(self, failures: Iterable[Failure]) -> str:
        """Consumers and brokers without a zone, as a phrase; empty if there are no zones."""
        inside = [failure.things for failure in failures if failure.loss.kind == "zone"]
        if not inside:
            return ""
        named_inside = {(each.kind, each.name) for things in inside for each in things}
        outside = sorted({(each.kind, each.name) for each in self.hosts} - named_inside)
        parts = [([name for kind, name in outside if kind == of], noun) for of, noun in _NOUNS.items()]
        return " and ".join(f"{counted(len(some), noun)} ({named(some)})" for some, noun in parts if some)

    def _zone(self, thing: Thing) -> str:
        found = next((rule.zone for rule in self.rules if rule.matches(thing.name, self.hosts[thing])), "")
        return found or (self.zones.get(thing.name, "") if thing.kind == "address" else "")

    def _why_empty(self, zone: str) -> str:
        patterns = [rule.pattern for rule in self.rules if rule.zone == zone]
        for rule in self.rules:
            for thing, where in self.hosts.items():
                if rule.zone == zone and rule.matches(thing.name, where):
                    return f"{rule.pattern} matches only what is in zone {self._zone(thing)} by an earlier pattern"
        return f"{named(patterns)} {'matches' if len(patterns) == 1 else 'match'} no consumer, broker or address"


_NOUNS = {"process": "consumer", "address": "broker"}


def cluster_of(
    groups: Iterable[Sequence[str]], routes: Iterable[TopicRouteData], rules: Sequence[ZoneRule] = ()
) -> Cluster:
    """The consumers of these groups and the brokers of these topics.

    A client ID has as many processes as in the group that lists it most often, because a process has one ID in all its
    groups (`MQClientManager.getOrCreateMQClientInstance`).
    """
    most: Counter[str] = Counter()
    for client_ids in groups:
        most |= Counter(client_ids)
    hosts = {
        Thing("process", client_id, number): host(client_id) if "@" in client_id else ""
        for client_id in sort_client_ids(most)
        for number in range(most[client_id])
    }
    known = [*routes]
    zones = {each.broker_name: each.zone_name or "" for route in known for each in route.broker_datas}
    return Cluster(hosts | addresses_of(known), zones, rules)


def addresses_of(routes: Iterable[TopicRouteData]) -> dict[Thing, str]:
    """Broker addresses by name and ID, of brokers with queues → their hosts."""
    brokers: dict[str, dict[int, str]] = {}
    for route in routes:
        known = route.brokers_by_name()
        for name in (data.broker_name for data in route.queue_datas):
            brokers.setdefault(name, {}).update(known[name].broker_addrs if name in known else {})
    return {
        Thing("address", name, number): text.rpartition(":")[0].strip("[]")
        for name, addresses in sorted(brokers.items())
        for number, text in sorted(addresses.items()) or ((None, ""),)
    }
