"""The causes that, taken together, give each queue its observed owners.

Rule of this file: only direct evidence makes a cause suspected. The explanation is the smallest combination of
suspected causes that reproduces every observed owner; among equals the first in `CAUSES` order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import sdk_named
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, GroupEvidence
from rmqlb.engine.group import known
from rmqlb.errors import AllocationError, DataError
from rmqlb.model.diagnosis import Explains
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

Cause = Literal[
    "duplicate-client-id",
    "mixed-strategies",
    "subscription-mismatch",
    "mixed-sdks",
    "broker-unreachable-from-consumer",
    "stale-connections",
    "split-consumer-view",
]
DUPLICATE: Cause = "duplicate-client-id"
MIXED: Cause = "mixed-strategies"
SUBSCRIPTIONS: Cause = "subscription-mismatch"
SDKS: Cause = "mixed-sdks"
UNREACHABLE: Cause = "broker-unreachable-from-consumer"
STALE: Cause = "stale-connections"
SPLIT: Cause = "split-consumer-view"
CAUSES: tuple[Cause, ...] = (DUPLICATE, MIXED, SUBSCRIPTIONS, SDKS, UNREACHABLE, STALE, SPLIT)

Causes = tuple[Cause, ...]
_NONE: frozenset[MessageQueue] = frozenset()


class Hypotheses(Struct, dict=True, eq=False):
    """The owners that a group's consumers would have with any of the suspected causes."""

    evidence: GroupEvidence

    @cached_property
    def _known(self) -> dict[Causes, tuple[Owners, ...]]:
        return {}

    @cached_property
    def suspected(self) -> Causes:
        """Causes with direct evidence, in `CAUSES` order."""
        evidence = self.evidence
        lists_differ = evidence.group.has_split_view
        has_evidence = {
            DUPLICATE: any(number > 1 for number in evidence.processes.values()),
            MIXED: len(set(evidence.strategies.values())) > 1,
            SUBSCRIPTIONS: len(set(evidence.subscriptions.values())) > 1,
            SDKS: bool(evidence.facts.sdks.sdk_of),
            # The queues that a consumer lacks show which broker it does not reach, so all owners must be known.
            UNREACHABLE: lists_differ and bool(self.cut_off) and evidence.all_observed,
            STALE: bool(evidence.group.stale_channels or evidence.ghosts),
            SPLIT: lists_differ,
        }
        return tuple(cause for cause in CAUSES if has_evidence[cause])

    @cached_property
    def cut_off(self) -> Mapping[str, frozenset[str]]:
        """Client ID → the brokers that do not list it although others do."""
        found: dict[str, set[str]] = {}
        for view in self.evidence.views:
            name = self.evidence.broker_name(view)
            if name is not None:
                for client_id in self.evidence.processes.keys() - set(view.client_ids):
                    found.setdefault(client_id, set()).add(name)
        return {client_id: frozenset(found[client_id]) for client_id in sort_client_ids(found)}

    @cached_property
    def smallest(self) -> Causes | None:
        """The fewest causes that reproduce all observed owners; None when none do (raises DataError).

        () means that every owner is the one that a healthy group would have.
        """
        for number in range(len(self.suspected) + 1):
            for causes in combinations(self.suspected, number):
                try:
                    if self.reproduces(causes):
                        return causes
                except AllocationError:  # clients throw then, and keep their queues
                    continue
        return None

    @cached_property
    def explanation(self) -> Causes:
        """The same; () where it is unknown."""
        return known(lambda: self.smallest) or ()

    @cached_property
    def is_explained(self) -> bool:
        """Some combination of causes, or none of them, reproduces all observed owners."""
        return known(lambda: self.smallest) is not None

    @cached_property
    def present(self) -> Causes:
        """The suspected causes, minus those implied by another cause or contradicted by the observed owners."""
        doubtful = {UNREACHABLE, SDKS} if self.is_explained else {UNREACHABLE}
        found = [cause for cause in self.suspected if cause not in doubtful or cause in self.explanation]
        return tuple(cause for cause in found if cause != SPLIT or UNREACHABLE not in found)

    @property
    def acting(self) -> Causes:
        """The present causes, without differing lists where the owners do not need them."""
        acting = {*self.present, *self.explanation}
        if self.is_explained and SPLIT not in self.explanation:
            acting.discard(SPLIT)
        return tuple(cause for cause in CAUSES if cause in acting)

    def possible(self, causes: Causes) -> tuple[Owners, ...]:
        """The owners with exactly these causes; one prediction for each list that a consumer may have received.

        Raises:
            DataError: something that decides the owners is unknown.
            AllocationError: every client throws then.
        """
        if causes not in self._known and not self.suspected and self._is_predicted:
            self._known[causes] = (self.evidence.facts.predicted,)
        elif causes not in self._known:
            members = self._members(causes)
            self._known[causes] = tuple(self._owners(members, ids, causes) for ids in self._lists(causes))
        return self._known[causes]

    @property
    def _is_predicted(self) -> bool:
        """The prediction for the group is also one for consumers that all subscribe to all its topics."""
        topics = {*self.evidence.topics}
        is_all = all(topics <= own for own in self.evidence.subscriptions.values())
        return is_all and topics == {route.topic for route in self.evidence.facts.routes}

    def reproduces(self, causes: Causes) -> bool:
        """Each consumer owns of each topic what one of the possible predictions gives it (raises as `possible`)."""
        evidence = self.evidence
        observed = {queue: evidence.observed[queue] for queue in evidence.queues if queue in evidence.observed}
        if not observed:
            raise DataError("no owner was observed", hint=ASK_CONSUMERS)
        possible = self.possible(causes)
        if any(all(owners.get(queue) == observed[queue] for queue in observed) for owners in possible):
            return True
        shares = _shares(observed)
        predicted = [_shares({q: ids for q, ids in owners.items() if q in observed}) for owners in possible]
        return all(
            _fits(shares.get(key, _NONE), [each.get(key, _NONE) for each in predicted], evidence.processes[key[1]])
            for key in set(shares).union(*predicted)
        )

    def owning_by(self, client_ids: tuple[str, ...]) -> int | None:
        """The number of these consumers that own what this list predicts; None where that cannot be predicted."""
        causes = tuple(cause for cause in self.acting if cause != SPLIT)
        owners = known(lambda: self._owners(self._members(causes), client_ids, causes))
        if owners is None or not self.evidence.all_observed:
            return None
        observed = _shares({queue: self.evidence.observed[queue] for queue in self.evidence.queues})
        predicted = _shares(owners)
        topics = [route.topic for route in self.evidence.routes]
        return sum(
            all(observed.get((topic, each)) == predicted.get((topic, each)) for topic in topics)
            for each in dict.fromkeys(client_ids)
        )

    def gives(self, queue: MessageQueue, owners: tuple[str, ...]) -> bool:
        """The present causes give the queue these owners, whatever they give others."""
        predicted = known(lambda: self.possible(self.present)) if self.present else None
        return predicted is not None and len(predicted) == 1 and predicted[0].get(queue) == owners

    def explains(self, cause: Cause) -> Explains:
        """How much of what is observed the cause explains."""
        reproduces = known(lambda: self.reproduces(self.acting) if self.smallest is not None else False)
        after = self._without(cause)
        given, otherwise = self._as_observed(self._with), self._as_observed(after)
        if after is None or reproduces is False:  # an unknown cause acts too, whose effect is unknown
            return Explains(reproduces, queues_explained=given, queues_explained_without=otherwise)
        if len(after) > 1:  # brokers still disagree
            return Explains(reproduces, fixes_all=False, queues_explained=given, queues_explained_without=otherwise)
        unassigned = sum(not owners for owners in after[0].values())
        duplicate = sum(len(owners) > 1 for owners in after[0].values())
        return Explains(reproduces, not unassigned and not duplicate, unassigned, duplicate, given, otherwise)

    def _as_observed(self, possible: tuple[Owners, ...] | None) -> int | None:
        """The number of queues whose observed owners the prediction gives; None without a prediction or owners."""
        if possible is None or len(possible) > 1 or not self.evidence.all_observed:
            return None
        observed = self.evidence.observed
        return sum(set(possible[0].get(queue, ())) == set(observed[queue]) for queue in self.evidence.queues)

    def queues_of(self, cause: Cause) -> tuple[MessageQueue, ...]:
        """The queues without exactly one owner that have one by prediction without the cause."""
        after = self._without(cause)
        if after is None:
            return ()
        bad = {queue for queue, owners in self.now.items() if len(owners) != 1}
        if len(after) == 1:
            return tuple(sort_queues(queue for queue in bad if len(after[0].get(queue, ())) == 1))
        # Brokers still disagree: a queue counts when the cause changes it by the list of one of them.
        pairs = list(zip(self.possible(self.acting), after, strict=True))
        changed = (q for q in bad if any(len(was[q]) != 1 and len(becomes[q]) == 1 for was, becomes in pairs))
        return tuple(sort_queues(changed))

    @cached_property
    def now(self) -> Owners:
        """The observed owners; where none was observed, those predicted with all acting causes."""
        observed, queues = self.evidence.observed, self.evidence.queues
        if any(queue in observed for queue in queues):
            return {queue: observed[queue] for queue in queues if queue in observed}
        owners = self._with
        return owners[0] if owners is not None and len(owners) == 1 else {}

    @property
    def _with(self) -> tuple[Owners, ...] | None:
        return known(lambda: self.possible(self.acting))

    def _without(self, cause: Cause) -> tuple[Owners, ...] | None:
        gone = {cause, SPLIT} if cause == UNREACHABLE else {cause}
        return known(lambda: self.possible(tuple(each for each in self.acting if each not in gone)))

    def _members(self, causes: Causes) -> Members:
        members = self.evidence.facts.members
        if SDKS not in causes and members.sdk_of:  # as if all ran the library that most run, which may have no other
            usual = sdk_named(members.sdk).sdk
            members = replace(members, strategy=usual.strategy(members.group_strategy), sdk_of={})
        return replace(
            members,
            strategy_of=members.strategy_of if MIXED in causes else {},
            subscribed=self.evidence.subscriptions if SUBSCRIPTIONS in causes else {},
        )

    def _lists(self, causes: Causes) -> Iterator[tuple[str, ...]]:
        """The consumer lists that clients may receive."""
        group, ghosts = self.evidence.group, self.evidence.ghosts
        if STALE in causes and group.stale_channels:  # the lists with every channel in them
            yield from dict.fromkeys(view.client_ids for view in self.evidence.views)
            return
        lists = [tuple(self.evidence.processes.elements())]
        if SPLIT in causes:
            lists = [group.processes_in(view) for view in self.evidence.views]
        yield from dict.fromkeys(tuple(i for i in ids if STALE in causes or i not in ghosts) for ids in lists)

    def _owners(self, members: Members, ids: tuple[str, ...], causes: Causes) -> Owners:
        own = {each: each for each in ids}
        if DUPLICATE not in causes and STALE not in causes:
            own = _with_own_ids(ids)
            members = replace(
                members,
                strategy_of={new: members.strategy_for(old) for new, old in own.items()} if members.strategy_of else {},
                subscribed={new: members.subscribed[old] for new, old in own.items() if old in members.subscribed},
                sdk_of={new: members.sdk_of[old] for new, old in own.items() if old in members.sdk_of},
            )
            ids = tuple(own)
        cut = self.cut_off if UNREACHABLE in causes else {}
        ghosts = self.evidence.ghosts
        return {
            queue: tuple(
                own[owner]
                for owner in owners
                if queue.broker_name not in cut.get(own[owner], ()) and own[owner] not in ghosts
            )
            for queue, owners in owners_at_rest(self.evidence.routes, replace(members, client_ids=ids)).items()
        }


def _with_own_ids(ids: Sequence[str]) -> dict[str, str]:
    """An ID of its own for each process → the ID that it has now."""
    numbers: Counter[str] = Counter()
    now: dict[str, str] = {}
    for client_id in ids:
        numbers[client_id] += 1
        now[client_id if numbers[client_id] == 1 else f"{client_id}#{numbers[client_id]}"] = client_id
    return now


def _fits(observed: frozenset[MessageQueue], possible: Sequence[frozenset[MessageQueue]], processes: int) -> bool:
    """The share is a possible one; processes with one client ID may each have another."""
    if processes < 2:
        return observed in possible
    fitting = [share for share in possible if share <= observed]
    return bool(fitting) and observed == _NONE.union(*fitting)


def _shares(owners: Owners) -> dict[tuple[str, str], frozenset[MessageQueue]]:
    """(topic, client ID) → its queues; a consumer without a queue of the topic is absent."""
    found: dict[tuple[str, str], set[MessageQueue]] = {}
    for queue, ids in owners.items():
        for client_id in ids:
            found.setdefault((queue.topic, client_id), set()).add(queue)
    return {key: frozenset(queues) for key, queues in found.items()}
