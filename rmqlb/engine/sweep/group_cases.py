"""What a group comes to in each case.

Under a strategy that looks at a consumer's place alone (AVG, AVG_BY_CIRCLE, MACHINE_ROOM) losses of equally many
consumers are symmetric: whoever is left, the consumer at a place gets what the place gets. So the queues are
distributed once per number of consumers and set of brokers that are left, and of each single case only the moves are
counted, by comparing who stands at the places. CONSISTENT_HASH looks at each queue by itself: it is run once per set of
consumers that are left. Other strategies are run for every case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress
from operator import ne

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import BY_PLACE, HASHING
from rmqlb.engine.allocate.sdks import JAVA
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import Owners, spread
from rmqlb.engine.assignment.consumers import without_lock
from rmqlb.engine.group import Group
from rmqlb.engine.plan.changes import Changes, change_routes
from rmqlb.engine.sweep.effects import Atoms, Effect
from rmqlb.model.evenness import Spread
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.sweep import GroupOutcome
from rmqlb.model.unknown import sum_if_known

_NOBODY = -1
_QUEUES_A_STEP = 16
"""Queues whose places are compared in the time in which one consumer's share is computed."""


class _Placed(Struct, frozen=True):
    """The queues of the brokers that are left, dealt out to so many places."""

    spread: Spread
    places: Sequence[int]  # of each queue the place that owns it, −1 is nobody
    before: Sequence[int]  # of each queue the place that owns it while nothing is lost
    lags: Sequence[int | None]
    all_owned: bool  # nobody is neither in `places` nor in `before`


class GroupCases:
    """One group whose consumers share its queues (raises RmqlbError where that is not so, or not known)."""

    def __init__(self, facts: Group, *, orderly: bool | None) -> None:
        """`orderly`: its consumers consume in order; None is unknown."""
        self.facts = facts
        self.name = facts.name or ""
        self.routes = facts.routes
        _ = facts.all_client_ids
        self.members, self.basis = facts.members, facts.basis
        self.orderly = orderly
        self.static = tuple(route.topic for route in self.routes if route.is_static)
        # of a static topic it is not known which queues a broker takes with it: no loss of a broker is tried
        self.atoms = Atoms(self.members.client_ids, () if self.static else self.routes)
        self.before = owners_at_rest(self.routes, self.members)
        self._placed: dict[tuple[tuple[str, ...], int], _Placed] = {}
        self._routes: dict[tuple[str, ...], tuple[TopicRouteData, ...]] = {(): self.routes}
        self._owners: dict[tuple[int, ...], Owners] = {(): self.before}
        self.found: dict[Effect, GroupOutcome] = {}

    @property
    def computed(self) -> int:
        """How many different results were computed."""
        return len(self.found)

    @property
    def work(self) -> int:
        """How many steps a result takes, of some microseconds each."""
        queues = len(self.before)
        if self.only_places_count:
            return 1 + queues // _QUEUES_A_STEP
        return max(queues + len(self.routes) * len(self.members.client_ids), 1)

    def outcome(self, effect: Effect) -> GroupOutcome:
        """What it comes to (raises RmqlbError)."""
        if effect not in self.found:
            self.found[effect] = self._by_place(effect) if self.only_places_count else self._by_running(effect)
        return self.found[effect]

    @cached_property
    def only_places_count(self) -> bool:
        """Each consumer runs the same strategy in Java's client, reads every topic, and is known by its place alone."""
        members, topics = self.members, {route.topic for route in self.routes}
        return (
            members.name in BY_PLACE
            and not members.strategy_of
            and members.sdks == (JAVA,)  # others sort names in other orders
            and len(set(members.client_ids)) == len(members.client_ids)
            and all(topics <= read for read in members.subscribed.values())
        )

    @property
    def each_queue_alone(self) -> bool:
        """Each consumer finds a queue's owner on Java's ring of client IDs, whatever other queues there are."""
        members = self.members
        return members.name in HASHING and not members.strategy_of and members.sdks == (JAVA,)

    def routes_without(self, effect: Effect) -> tuple[TopicRouteData, ...]:
        """The routes of its topics that are left; consumers go on with a broker that has lost its master."""
        if effect.brokers not in self._routes:
            self._routes[effect.brokers] = change_routes(self.routes, Changes(remove_brokers=effect.brokers))
        return self._routes[effect.brokers]

    def members_without(self, effect: Effect) -> Members:
        """The consumers that are left."""
        lost = set(effect.places)
        ids = tuple(each for place, each in enumerate(self.atoms.client_ids) if place not in lost)
        return replace(self.members, client_ids=ids)

    def owners_without(self, effect: Effect) -> Owners:
        """Who owns the queues that are left (raises RmqlbError)."""
        if not self.each_queue_alone:
            return owners_at_rest(self.routes_without(effect), self.members_without(effect))
        if effect.places not in self._owners:
            self._owners[effect.places] = owners_at_rest(self.routes, self.members_without(effect))
        lost = set(effect.brokers)
        owners = self._owners[effect.places]
        return {queue: own for queue, own in owners.items() if queue.broker_name not in lost} if lost else owners

    def _by_running(self, effect: Effect) -> GroupOutcome:
        after = self.owners_without(effect)
        moved = [queue for queue, was in self.before.items() if was and after.get(queue) and after[queue] != was]
        return self._outcome(
            effect,
            spread(after, self.members_without(effect).client_ids),
            len(moved),
            sum_if_known(self._lag(queue) for queue in moved),
        )

    def _by_place(self, effect: Effect) -> GroupOutcome:
        placed = self._dealt(effect)
        lost = set(effect.places)
        left = [place for place in range(len(self.atoms.client_ids)) if place not in lost]
        left.append(_NOBODY)  # at the index −1
        owners = [left[place] for place in placed.places]
        if placed.all_owned:
            differs = list(map(ne, owners, placed.before))
        else:
            pairs = zip(owners, placed.before, strict=True)
            differs = [own != was and own >= 0 and was >= 0 for own, was in pairs]
        moved, lags = sum(differs), compress(placed.lags, differs)
        return self._outcome(effect, placed.spread, moved, sum_if_known(lags))

    def _dealt(self, effect: Effect) -> _Placed:
        number = len(self.atoms.client_ids) - len(effect.places)
        key = effect.brokers, number
        if key not in self._placed:
            ids = tuple(f"{place:06d}" for place in range(number))
            places = Members(ids, self.members.strategy, self.members.settings)
            owners = owners_at_rest(self.routes_without(effect), places)
            here = {client_id: place for place, client_id in enumerate(ids)}
            before = {client_id: place for place, client_id in enumerate(self.atoms.client_ids)}
            then = [_place(own, here) for own in owners.values()]
            now = [_place(self.before[queue], before) for queue in owners]
            lags = [self._lag(queue) for queue in owners]
            self._placed[key] = _Placed(spread(owners, ids), then, now, lags, _NOBODY not in (*then, *now))
        return self._placed[key]

    def _lag(self, queue: MessageQueue) -> int | None:
        return self.facts.group.queues.get(queue, QueueState()).lag

    def _outcome(self, effect: Effect, even: Spread, moved: int, lag_moved: int | None) -> GroupOutcome:
        return GroupOutcome(
            consumers=even.consumers,
            queues=even.queues,
            unassigned=even.unassigned,
            duplicate_owners=even.duplicate_owners,
            idle=even.idle,
            imbalance=even.imbalance,
            moved=moved,
            lag_moved=lag_moved,
            without_lock=without_lock(self.routes_without(effect), effect.masters, orderly=self.orderly),
        )


def _place(owners: tuple[str, ...], places: Mapping[str, int]) -> int:
    return places[owners[0]] if owners else _NOBODY
