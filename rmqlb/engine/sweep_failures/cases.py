"""The possible losses of a cluster, and each case of one or two losses, judged for groups and topics.

The processes and broker addresses of a group or topic are numbered, and a failure is their bit mask. Failures with
equal masks have equal outcomes, so one of them is computed and the others are counted.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from itertools import combinations, takewhile
from math import comb
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.machines import host
from rmqlb.engine.allocate.rules import BY_PLACE, JAVA
from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest, spread
from rmqlb.engine.assignment.consumers import without_lock
from rmqlb.engine.check import LOCK_UNKNOWN, Measured, measure_group, measure_topic, verdict, writable_brokers
from rmqlb.engine.group import Given, Group
from rmqlb.engine.plan.changes import Edits, change_route, change_routes
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import MemberView, QueueState
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids
from rmqlb.model.owners import Spread
from rmqlb.model.policy import FAILED, GROUP, INCOMPLETE, TOPIC, About, Bound, Limit, Rule
from rmqlb.model.result import Progress, counted, named, sum_if_known
from rmqlb.model.route import MASTER_ID, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.model.sweep_failures import LOSS_KINDS, CaseCounts, GroupOutcome, Loss, LossKind, LossParts, TopicOutcome


class Thing(NamedTuple):
    kind: Literal["process", "address"]
    name: str  # the client ID or the broker's name
    number: int | None  # among the processes of this client ID, from 0; or the broker's ID, None without an address


class Lost(Struct, frozen=True):
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
        """The pattern as a network; None for another pattern (raises UsageError for a malformed network)."""
        if not re.fullmatch(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*/[0-9]+", self.pattern):
            return None
        try:
            return ip_network(self.pattern, strict=False)
        except ValueError:
            problem = f"zone {self.zone}: {self.pattern} is not a network"
            raise UsageError(problem, hint="write 10.1.0.0/16, or a pattern as '10.1.*'", code="unknown-zone") from None


class Placement(Struct, frozen=True):
    hosts: Mapping[Thing, str]  # thing → its host; empty when unknown, as for an application's own client IDs
    zones: Mapping[str, str]  # broker → the zone in its route
    rules: Sequence[ZoneRule]  # the first match counts

    def failures(self, kinds: Sequence[LossKind]) -> tuple[Lost, ...]:
        return tuple(failure for kind in LOSS_KINDS if kind in kinds for failure in self._failures(kind))

    def _failures(self, kind: LossKind) -> list[Lost]:
        found = grouped((key, thing) for thing in self.hosts if (key := self._key(kind, thing)) is not None)
        keys = sorted(found) if kind in ("host", "zone") else found  # others are sorted already
        return [Lost(Loss(kind, key[0]), frozenset(found[key])) for key in keys]

    def _key(self, kind: LossKind, thing: Thing) -> tuple[str, int | None] | None:
        """The key of all things that are lost together; None where no loss of this kind takes the thing."""
        if kind in ("host", "zone"):
            where = self.hosts[thing] if kind == "host" else self._zone(thing)
            return (where, None) if where else None
        if thing.kind == "process":
            return (thing.name, thing.number) if kind == "consumer" else None
        return (thing.name, None) if kind == "broker" or (kind == "master" and thing.number == MASTER_ID) else None

    def empty_zones(self) -> dict[str, str]:
        used = {failure.loss.name for failure in self._failures("zone")}
        return {zone: self._why_empty(zone) for zone in dict.fromkeys(r.zone for r in self.rules) if zone not in used}

    def outside_zones(self, failures: Iterable[Lost]) -> str:
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
                    return f"an earlier pattern puts all matches of {rule.pattern} into zone {self._zone(thing)}"
        return f"{named(patterns)} {'matches' if len(patterns) == 1 else 'match'} no consumer, broker or address"


_NOUNS = {"process": "consumer", "address": "broker"}


def cluster_of(
    groups: Iterable[Sequence[str]], routes: Iterable[TopicRouteData], rules: Sequence[ZoneRule] = ()
) -> Placement:
    """The consumers of these groups and the brokers of these topics.

    A client ID has as many processes as in the group that lists it most often, because a process has one ID in all its
    groups (`MQClientManager.getOrCreateMQClientInstance`).
    """
    most: Counter[str] = Counter()
    for client_ids in groups:
        most |= Counter(client_ids)
    hosts = {thing: host(thing.name) if "@" in thing.name else "" for thing in processes_of(most)}
    known = [*routes]
    zones = {each.broker_name: each.zone_name or "" for route in known for each in route.broker_datas}
    return Placement(hosts | addresses_of(known), zones, rules)


def processes_of(numbers: Mapping[str, int]) -> list[Thing]:
    return [Thing("process", each, number) for each in sort_client_ids(numbers) for number in range(numbers[each])]


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


MOST_STEPS = 6_000_000
"""Steps of `Subject.work` for the pairs of failures of one group; single failures are all tried."""
_PROGRESS_EVERY = 100
_NOBODY = -1
_QUEUES_PER_STEP = 16
"""Queues whose owners are compared in the time in which one consumer's share is computed."""
_OUTCOME_LIMITS = {
    "imbalance": ("imbalance", "no queue has an owner"),
    "idle": ("idle", None),
    "unassigned": ("unassigned", None),
    "duplicateOwners": ("duplicate_owners", None),
    "withoutLock": ("without_lock", LOCK_UNKNOWN),
}
"""Limit → the figure of an outcome that it bounds, and why the figure may be unknown."""


class Effect(Struct, frozen=True):
    places: tuple[int, ...] = ()  # of the lost processes, among the sorted client IDs
    brokers: tuple[str, ...] = ()  # without an address left
    masters: tuple[str, ...] = ()  # brokers whose master is lost and a slave is left


Outcome = TypeVar("Outcome", GroupOutcome, TopicOutcome)


class Subject(ABC, Generic[Outcome]):
    about: About
    work = 0  # steps that an outcome takes, of some microseconds each; 0 needs no bound

    def __init__(self, name: str, client_ids: Iterable[str], routes: Iterable[TopicRouteData]) -> None:
        self.name = name
        self.client_ids: Sequence[str] = sort_client_ids(client_ids)
        self.outcomes: dict[Effect, Outcome] = {}
        self._effects: dict[int, Effect] = {}
        things = [*processes_of(Counter(self.client_ids)), *addresses_of(routes)]
        self.bits = {thing: 1 << at for at, thing in enumerate(things)}
        self._brokers: dict[str, int] = {}  # name → bits of all its addresses
        for thing in things[len(self.client_ids) :]:
            self._brokers[thing.name] = self._brokers.get(thing.name, 0) | self.bits[thing]
        self.has_brokers = bool(self._brokers)

    def effect(self, mask: int) -> Effect:
        """The effect of lost processes and addresses; a lost slave alone has none."""
        if mask not in self._effects:
            brokers = tuple(name for name, bits in self._brokers.items() if bits & mask == bits)
            masters = (name for name in self._brokers if self.bits.get(Thing("address", name, MASTER_ID), 0) & mask)
            places = tuple(bit.bit_length() - 1 for bit in bits_of(mask & ((1 << len(self.client_ids)) - 1)))
            self._effects[mask] = Effect(places, brokers, tuple(name for name in masters if name not in brokers))
        return self._effects[mask]

    def outcome(self, effect: Effect) -> Outcome:
        if effect not in self.outcomes:
            self.outcomes[effect] = self._outcome(effect)
        return self.outcomes[effect]

    @abstractmethod
    def _outcome(self, effect: Effect) -> Outcome: ...

    @abstractmethod
    def measure(self, limit: Limit, effect: Effect) -> Measured: ...


class TopicSubject(Subject[TopicOutcome]):
    """A topic and its brokers that producers can use (raises DataError where they are unknown)."""

    about: About = TOPIC

    def __init__(self, sighting: RouteSighting) -> None:
        route = sighting.route
        if sighting.others:
            raise DataError("NameServers have different routes of the topic")
        if route.is_static:
            raise DataError("it is a static topic: its queues are logical and do not follow single brokers")
        super().__init__(route.topic, (), (route,))
        self.sighting, names = sighting, writable_brokers(route)
        queues = Counter(queue.broker_name for queue in route.publish_queues())
        self.queues = {name: number for name, number in queues.items() if name in names}  # in producers' order

    def _outcome(self, effect: Effect) -> TopicOutcome:
        # Producers cannot use a broker without its master, whatever the route says.
        left = [n for name, n in self.queues.items() if name not in effect.brokers and name not in effect.masters]
        return TopicOutcome(len(left), sum(left))

    def measure(self, limit: Limit, effect: Effect) -> Measured:
        if limit.name == "writableBrokers":
            return Measured(self.outcome(effect).writable_brokers)
        lost = Edits(remove_brokers=effect.brokers, remove_masters=effect.masters)
        return measure_topic(limit.name, replace(self.sighting, route=change_route(self.sighting.route, lost)))


class _Placed(Struct, frozen=True):
    """The owners of the remaining queues, as places among the remaining consumers."""

    spread: Spread
    owners: Sequence[int]  # queue by queue the place that owns it, or _NOBODY
    before: Sequence[int]  # the same while nothing is lost
    lags: Sequence[int | None]


class GroupSubject(Subject[GroupOutcome]):
    """A group whose consumers share its queues (raises RmqlbError where they do not, or that is unknown).

    Strategies in `BY_PLACE` give equal shares after every loss of equally many consumers, so their queues are allocated
    once per number of consumers and set of brokers. Other strategies run for every case.
    """

    about: About = GROUP

    def __init__(self, group: Group, *, orderly: bool | None) -> None:
        self.group, self.orderly, self.routes = group, orderly, group.routes
        _ = group.all_client_ids  # raises where they are unknown
        self.members, self.basis = group.members, group.basis
        self.static_topics = [route.topic for route in self.routes if route.is_static]
        # Which queues of a static topic a broker takes with it is unknown, so no loss of a broker is tried.
        super().__init__(group.name or "", self.members.client_ids, () if self.static_topics else self.routes)
        self.before = owners_at_rest(self.routes, self.members)
        topics = {route.topic for route in self.routes}
        self.by_place = (
            self.members.name in BY_PLACE
            and not self.members.strategy_of
            and self.members.sdks == (JAVA,)  # other libraries sort names in other orders
            and len(set(self.client_ids)) == len(self.client_ids)
            and all(topics <= read for read in self.members.subscribed.values())
        )
        queues, shares = len(self.before), len(self.routes) * len(self.client_ids)
        self.work = 1 + queues // _QUEUES_PER_STEP if self.by_place else max(queues + shares, 1)
        self._placed: dict[tuple[tuple[str, ...], int], _Placed] = {}
        self._without = cache(lambda brokers: change_routes(self.routes, Edits(remove_brokers=brokers)))

    def routes_after(self, effect: Effect) -> tuple[TopicRouteData, ...]:
        """The remaining routes; consumers keep reading a broker that has lost only its master."""
        return self._without(effect.brokers)

    def members_after(self, effect: Effect) -> Members:
        return replace(self.members, client_ids=tuple(self.client_ids[at] for at in self._left(effect)))

    def _left(self, effect: Effect) -> list[int]:
        lost = set(effect.places)
        return [place for place in range(len(self.client_ids)) if place not in lost]

    def _outcome(self, effect: Effect) -> GroupOutcome:
        if self.by_place:
            even, lags = self._moves_by_place(effect)
        else:
            members = self.members_after(effect)
            after = owners_at_rest(self.routes_after(effect), members)
            moved = [queue for queue, was in self.before.items() if was and after.get(queue) and after[queue] != was]
            even, lags = spread(after, members.client_ids), [self._lag(queue) for queue in moved]
        figures = ("consumers", "queues", "unassigned", "duplicate_owners", "idle", "imbalance")
        return GroupOutcome(
            **{name: getattr(even, name) for name in figures},
            moved=len(lags),
            lag_moved=sum_if_known(lags),
            without_lock=without_lock(self.routes_after(effect), effect.masters, orderly=self.orderly),
        )

    def _moves_by_place(self, effect: Effect) -> tuple[Spread, list[int | None]]:
        left = self._left(effect)
        key = effect.brokers, len(left)
        if key not in self._placed:
            ids = tuple(f"{place:06d}" for place in range(len(left)))
            members = Members(ids, self.members.strategy, self.members.settings)
            owners = owners_at_rest(self.routes_after(effect), members)
            before = _places((self.before[queue] for queue in owners), self.client_ids)
            lags = [self._lag(queue) for queue in owners]
            self._placed[key] = _Placed(spread(owners, ids), _places(owners.values(), ids), before, lags)
        placed = self._placed[key]
        left.append(_NOBODY)  # is at index −1, which _NOBODY is
        triples = zip((left[place] for place in placed.owners), placed.before, placed.lags, strict=True)
        moved = [lag for own, was, lag in triples if own != was and _NOBODY not in (own, was)]
        return placed.spread, moved

    def _lag(self, queue: MessageQueue) -> int | None:
        return self.group.group.queues.get(queue, QueueState()).lag

    def measure(self, limit: Limit, effect: Effect) -> Measured:
        """The outcome's figure, if it has one; `check` measures other limits on the snapshot after the failure."""
        outcome = self.outcome(effect)
        if limit.name == "minConsumers":
            return Measured(len(self.client_ids) - len(effect.places))  # processes, as check counts them
        if limit.name in _OUTCOME_LIMITS:
            figure, unknown = _OUTCOME_LIMITS[limit.name]
            value: float | None = getattr(outcome, figure)
            return Measured(value, missing=unknown if value is None else None)
        if limit.name in ("movedOnConsumerLoss", "movedOnBrokerLoss"):
            lost = bool(effect.places), bool(effect.brokers)
            if lost != ((True, False) if limit.name == "movedOnConsumerLoss" else (False, True)):
                return Measured(apart="it covers other losses")
            return Measured(outcome.moved / outcome.queues if outcome.queues else 0.0)
        return measure_group(limit, self.group_after(effect))

    def group_after(self, effect: Effect) -> Group:
        """The group as a snapshot shows it after the failure and a rebalance, without reports of the time before."""
        group, seen, members = self.group, self.group.group, self.members_after(effect)
        owners: Owners = owners_at_rest(self.routes_after(effect), members)
        states = ((queue, seen.queues.get(queue, QueueState()), frozenset(ids)) for queue, ids in owners.items())
        queues = {queue: replace(state, owners=own) for queue, state, own in states}
        routes = change_routes(self.routes_after(effect), Edits(remove_masters=effect.masters))
        changed = {route.topic: replace(group.snapshot.routes[route.topic], route=route) for route in routes}
        # Brokers still know a group that has lost all of its consumers.
        views = tuple(_view(view, Counter(members.client_ids)) for view in seen.views or ())
        reports = {i: replace(each, evidence=None) for i, each in seen.reports.items() if i in members.client_ids}
        left = replace(seen, views=views, reports=reports, queues=queues)
        snapshot = replace(group.snapshot, routes={**group.snapshot.routes, **changed}, groups={left.group: left})
        assume = group.given.assume or self.members.group_strategy
        return Group(snapshot, group.name, group.settings, Given(assume=assume))


AnySubject = GroupSubject | TopicSubject


def _places(owners: Iterable[tuple[str, ...]], client_ids: Sequence[str]) -> list[int]:
    places = {client_id: place for place, client_id in enumerate(client_ids)}
    return [places[own[0]] if own else _NOBODY for own in owners]


def _view(view: MemberView, left: Counter[str]) -> MemberView:
    kept = []
    for connection in view.connections:
        if left[connection.client_id] > 0:
            left[connection.client_id] -= 1
            kept.append(connection)
    return replace(view, connections=tuple(kept))


def bits_of(mask: int) -> Iterator[int]:
    """Each bit that is set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


ByThing = Mapping[Thing, Sequence[int]]
"""Process or address → the failures that take it, by their numbers."""
Broken = Mapping[int, Bound]
"""Number of a limit → the value that breaks it."""


def by_thing(failures: Sequence[Lost]) -> ByThing:
    return grouped((thing, number) for number, failure in enumerate(failures) for thing in failure.things)


def touching(subject: AnySubject, failures: ByThing) -> list[tuple[int, int]]:
    found: Counter[int] = Counter()
    for thing, bit in subject.bits.items():
        for number in failures.get(thing, ()):
            found[number] |= bit
    return sorted(found.items())


class CaseClass(Struct):  # all cases with the same mask
    first: tuple[int, ...]  # the first case with the fewest failures, by their numbers
    singles: int = 0
    pairs: int = 0  # in which each failure takes something

    @property
    def fewest(self) -> int:
        return self.singles or self.pairs


def classes_of(own: Sequence[tuple[int, int]], *, pairs: bool) -> dict[int, CaseClass]:
    """Mask → its cases, single failures first; pairs whose second failure takes nothing are left out."""
    numbers = grouped((mask, number) for number, mask in own)
    found = {mask: CaseClass(first=(some[0],), singles=len(some)) for mask, some in numbers.items()}
    if not pairs:
        return found
    for mask, some in numbers.items():
        found[mask].pairs += comb(len(some), 2)
    for (mask, some), (other, more) in combinations(numbers.items(), 2):
        found.setdefault(mask | other, CaseClass((some[0], more[0]))).pairs += len(some) * len(more)
    return found


class Cases(Struct, frozen=True):
    """The judged cases of a group or topic; another process may have judged them."""

    touching: Sequence[tuple[int, int]]
    classes: Mapping[int, CaseClass]  # by mask, of the masks that were tried
    untried: frozenset[int]  # masks of pairs, where the group is too large for all of them
    pairable: int  # the number of failures that pairs are made of, 0 without pairs
    limits: Sequence[tuple[Rule, Limit]]  # those that apply
    already: Broken  # while nothing is lost
    broken: Mapping[int, Broken]  # mask → the other limits that it breaks
    unknown: Mapping[int, str]  # number of a limit → why it could not be judged
    outcomes: Mapping[Effect, Any]  # those that were computed

    @property
    def number(self) -> int:
        others = max(self.pairable - len(self.touching), 0)
        return len(self.touching) + comb(self.pairable, 2) - comb(others, 2)

    def count(self, masks: Iterable[int]) -> int:
        """The number of cases with these masks; a single failure also pairs with failures that take nothing."""
        classes = [self.classes[mask] for mask in masks]
        singles, pairs = sum(each.singles for each in classes), sum(each.pairs for each in classes)
        return singles + (pairs + singles * (self.pairable - len(self.touching)) if self.pairable else 0)

    def smallest(self, limit: int) -> list[int]:
        """The masks that break this limit and have no smaller part that does."""
        found: list[int] = []
        by_lowest: dict[int, list[int]] = {}  # lowest bit → the found masks that have it, the smallest first
        for mask in sorted((mask for mask, limits in self.broken.items() if limit in limits), key=int.bit_count):
            if not any(_has_part(by_lowest.get(bit, ()), mask) for bit in bits_of(mask)):
                found.append(mask)
                by_lowest.setdefault(mask & -mask, []).append(mask)
        return found


def _has_part(found: Sequence[int], mask: int) -> bool:
    smaller = takewhile(lambda each: each.bit_count() < mask.bit_count(), found)
    return any(each & mask == each for each in smaller)


def judge(
    subject: AnySubject,
    rules: Sequence[Rule],
    own: Sequence[tuple[int, int]],  # the failures that touch it
    pairable: int,
    most_steps: int,
    progress: Progress,
) -> Cases:
    """Judge a group or topic in every case by the rules about it (raises RmqlbError)."""
    classes = classes_of(own, pairs=bool(pairable))
    tried = _tried(subject, classes, most_steps)
    limits = [(rule, limit) for rule in rules for limit in rule.limits]
    unknown: dict[int, str] = {}
    already = _broken(subject, Effect(), dict(enumerate(limit for _, limit in limits)), unknown)
    others = {number: limit for number, (_, limit) in enumerate(limits) if number not in already}
    by_effect: dict[Effect, Broken] = {}
    broken: dict[int, Broken] = {}
    for done, mask in enumerate(tried):
        if done % _PROGRESS_EVERY == 0:
            progress(subject.name, done, len(tried))
        effect = subject.effect(mask)
        if effect not in by_effect:
            subject.outcome(effect)
            by_effect[effect] = _broken(subject, effect, others, unknown)
        if by_effect[effect]:
            broken[mask] = by_effect[effect]
    untried = frozenset(classes.keys() - tried.keys())
    return Cases(own, tried, untried, pairable, limits, already, broken, unknown, subject.outcomes)


def _tried(subject: AnySubject, classes: Mapping[int, CaseClass], most_steps: int) -> Mapping[int, CaseClass]:
    """All single failures, and as many pairs as the work allows: those that take most brokers first, then evenly."""
    pairs = [mask for mask, cases in classes.items() if not cases.singles]
    room = most_steps // subject.work if subject.work else len(pairs)
    if len(pairs) <= room:
        return classes
    by_brokers = grouped(((mask >> len(subject.client_ids)).bit_count(), mask) for mask in pairs)
    chosen: set[int] = set()
    for _, masks in sorted(by_brokers.items(), reverse=True):
        number = min(len(masks), room - len(chosen))
        chosen.update(masks[at * len(masks) // number] for at in range(number))
    return {mask: cases for mask, cases in classes.items() if cases.singles or mask in chosen}


def _broken(
    subject: AnySubject, effect: Effect, limits: Mapping[int, Limit], unknown: dict[int, str]
) -> dict[int, Bound]:
    found: dict[int, Bound] = {}
    after_loss = effect != Effect()
    for number, limit in limits.items():
        measured = subject.measure(limit, effect)
        judged = verdict(limit, measured)
        if judged == FAILED and measured.value is not None:
            found[number] = measured.value
        # A failure that leaves no owner leaves no imbalance to judge.
        elif judged == INCOMPLETE and measured.missing is not None and not (after_loss and limit.name == "imbalance"):
            unknown.setdefault(number, measured.missing)
    return found


def count_cases(failures: int, judged: Sequence[Cases], at_once: int) -> CaseCounts:
    """Count the cases that break a limit of any group or topic.

    Most pairs share no group or topic, and break what their single failures break. Other pairs are examined one by
    one, failures with equal masks everywhere only once. A pair that was not tried for one group or topic, and breaks a
    limit of another, counts as tried.
    """
    masks: dict[int, dict[int, int]] = {}  # failure → each group or topic that it touches, with the mask
    for place, cases in enumerate(judged):
        for number, mask in cases.touching:
            masks.setdefault(number, {})[place] = mask
    weights = Counter(tuple(each.items()) for each in masks.values())
    kinds, weight = [dict(kind) for kind in weights], list(weights.values())
    breaks = [{place for place, mask in kind.items() if mask in judged[place].broken} for kind in kinds]
    broken_singles = sum(number for number, places in zip(weight, breaks, strict=True) if places)
    pairs = broken_pairs = untried = 0
    if at_once > 1:
        pairs = comb(failures, 2)
        broken_pairs = pairs - comb(failures - broken_singles, 2)
        by_place = grouped((place, at) for at, kind in enumerate(kinds) for place in kind)
        for first, second in {pair for own in by_place.values() for pair in combinations(own, 2)}:
            one, other = kinds[first], kinds[second]
            both = [(judged[place], one[place] | other[place]) for place in one.keys() & other.keys()]
            is_broken = (
                any(mask in cases.broken for cases, mask in both)
                or not breaks[first] <= other.keys()
                or not breaks[second] <= one.keys()
            )
            number = weight[first] * weight[second]
            broken_pairs += number * (is_broken - bool(breaks[first] or breaks[second]))
            if not is_broken and any(mask in cases.untried for cases, mask in both):
                untried += number
    return CaseCounts(
        all=failures + pairs,
        singles=failures,
        pairs=pairs,
        tried=failures + pairs - untried,
        computed=sum(len(cases.outcomes) for cases in judged),
        broken=broken_singles + broken_pairs,
        broken_singles=broken_singles,
    )
