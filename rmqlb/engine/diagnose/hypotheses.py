"""Which causes, taken together, give each queue the owners that it is observed to have.

Rule of this file: a cause is suspected by direct evidence only. Of all combinations of suspected causes that reproduce
every observed owner, the smallest is the explanation; of equals the first in the order of `CAUSES`.
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
from rmqlb.errors import AllocationError, DataError, RmqlbError
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
_Shares = dict[tuple[str, str], frozenset[MessageQueue]]  # (topic, client ID) → its queues; who has none is absent


class Hypotheses(Struct, dict=True, eq=False):
    """What a group's consumers would own with any of the causes that are suspected."""

    evidence: GroupEvidence

    @cached_property
    def _known(self) -> dict[Causes, tuple[Owners, ...]]:
        return {}

    @cached_property
    def suspected(self) -> Causes:
        """The causes that some direct evidence speaks for, in the order of `CAUSES`."""
        evidence = self.evidence
        lists_differ = evidence.group.has_split_view
        speaks = {
            DUPLICATE: any(number > 1 for number in evidence.processes.values()),
            MIXED: len(set(evidence.strategies.values())) > 1,
            SUBSCRIPTIONS: len(set(evidence.subscriptions.values())) > 1,
            SDKS: bool(evidence.facts.sdks.sdk_of),
            # Which broker a consumer does not reach is seen by the queues that it lacks, so all must be known.
            UNREACHABLE: lists_differ and bool(self.cut_off) and all(q in evidence.observed for q in evidence.queues),
            STALE: bool(evidence.group.stale_channels or evidence.ghosts),
            SPLIT: lists_differ,
        }
        return tuple(cause for cause in CAUSES if speaks[cause])

    @cached_property
    def cut_off(self) -> Mapping[str, frozenset[str]]:
        """Client ID → the brokers that do not list it although others do."""
        found: dict[str, frozenset[str]] = {}
        for view in self.evidence.views:
            name = self.evidence.broker_name(view)
            for client_id in self.evidence.processes.keys() - set(view.client_ids) if name is not None else ():
                found[client_id] = found.get(client_id, frozenset()) | {name or ""}
        return {client_id: found[client_id] for client_id in sort_client_ids(found)}

    @cached_property
    def smallest(self) -> Causes | None:
        """The fewest causes that reproduce all observed owners; None when none do (raises DataError).

        () says that each owner is the one that a group without any fault would have.
        """
        return next((causes for causes in self._combinations() if self._reproduces_or_fails(causes)), None)

    @cached_property
    def explanation(self) -> Causes:
        """The same; () too where that is not known."""
        try:
            return self.smallest or ()
        except RmqlbError:
            return ()

    @cached_property
    def present(self) -> Causes:
        """The suspected causes but those that come of another one, or that the owners speak against."""
        doubtful = {UNREACHABLE, SDKS} if self.is_explained else {UNREACHABLE}
        found = [cause for cause in self.suspected if cause not in doubtful or cause in self.explanation]
        return tuple(cause for cause in found if cause != SPLIT or UNREACHABLE not in found)

    def possible(self, causes: Causes) -> tuple[Owners, ...]:
        """The owners when these causes are there and no other; one for each list that a consumer may have got.

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
        """What the group's facts predict is what consumers own that subscribe to all topics of the group."""
        topics = {*self.evidence.topics}
        is_all = all(topics <= own for own in self.evidence.subscriptions.values())
        return is_all and topics == {route.topic for route in self.evidence.facts.routes}

    def reproduces(self, causes: Causes) -> bool:
        """Each consumer owns of each topic what one of the possible predictions gives it (raises as `possible`)."""
        known = {queue for queue in self.evidence.queues if queue in self.evidence.observed}
        if not known:
            raise DataError("no owner was observed", hint=ASK_CONSUMERS)
        possible = self.possible(causes)
        if any(all(owners.get(q) == self.evidence.observed[q] for q in known) for owners in possible):
            return True
        observed = _shares({queue: self.evidence.observed[queue] for queue in known})
        predicted = [_shares({q: its for q, its in owners.items() if q in known}) for owners in possible]
        keys = set(observed).union(*predicted)
        return all(
            _fits(
                observed.get(key, _NONE),
                [shares.get(key, _NONE) for shares in predicted],
                self.evidence.processes[key[1]],
            )
            for key in keys
        )

    def owning_by(self, client_ids: tuple[str, ...]) -> int | None:
        """How many of these consumers own what they would by this list; None where that cannot be predicted."""
        try:
            causes = tuple(cause for cause in self._acting if cause != SPLIT)
            predicted = _shares(self._owners(self._members(causes), client_ids, causes))
        except RmqlbError:
            return None
        if any(queue not in self.evidence.observed for queue in self.evidence.queues):
            return None
        observed = _shares({queue: self.evidence.observed[queue] for queue in self.evidence.queues})
        topics = [route.topic for route in self.evidence.routes]
        return sum(
            all(observed.get((t, i)) == predicted.get((t, i)) for t in topics) for i in dict.fromkeys(client_ids)
        )

    def gives(self, queue: MessageQueue, owners: tuple[str, ...]) -> bool:
        """The causes that are present give the queue these owners, whatever they give others."""
        try:
            predicted = self.possible(self.present) if self.present else ()
        except RmqlbError:
            return False
        return len(predicted) == 1 and predicted[0].get(queue) == owners

    def explains(self, cause: Cause) -> Explains:
        """How much of what is observed the cause explains."""
        try:
            reproduces = self.reproduces(self._acting) if self.smallest is not None else False
        except RmqlbError:
            reproduces = None
        after = self._without(cause)
        given, otherwise = self._as_observed(self._with), self._as_observed(after)
        if after is None or reproduces is False:  # something else is there, of which it is unknown what it does
            return Explains(reproduces, queues_explained=given, queues_explained_without=otherwise)
        if len(after) > 1:  # brokers still disagree
            return Explains(reproduces, fixes_all=False, queues_explained=given, queues_explained_without=otherwise)
        unassigned, several = (sum(is_bad(its) for its in after[0].values()) for is_bad in (_is_empty, _is_several))
        return Explains(reproduces, not unassigned and not several, unassigned, several, given, otherwise)

    def _as_observed(self, possible: tuple[Owners, ...] | None) -> int | None:
        """How many queues have the observed owners by a prediction; None without one, or where owners are unknown."""
        observed = self.evidence.observed
        if possible is None or len(possible) > 1 or any(queue not in observed for queue in self.evidence.queues):
            return None
        return sum(set(possible[0].get(queue, ())) == set(observed[queue]) for queue in self.evidence.queues)

    def queues_of(self, cause: Cause) -> tuple[MessageQueue, ...]:
        """The queues without exactly one owner that have one by prediction with the cause gone."""
        now, after = self.now, self._without(cause)
        if after is None:
            return ()
        bad = {queue for queue, owners in now.items() if len(owners) != 1}
        if len(after) == 1:
            return tuple(sort_queues(queue for queue in bad if len(after[0].get(queue, ())) == 1))
        # Brokers still disagree: what the cause does to a queue by the list of one of them counts.
        pairs = list(zip(self.possible(self._acting), after, strict=True))
        changed = (q for q in bad if any(len(was[q]) != 1 and len(becomes[q]) == 1 for was, becomes in pairs))
        return tuple(sort_queues(changed))

    @property
    def _acting(self) -> Causes:
        """What is there now: the causes that are present, without lists that differ where the owners need none."""
        acting = {*self.present, *self.explanation}
        if self.is_explained and SPLIT not in self.explanation:
            acting.discard(SPLIT)
        return tuple(cause for cause in CAUSES if cause in acting)

    @cached_property
    def is_explained(self) -> bool:
        """Some combination of causes, or none of them, reproduces all observed owners."""
        try:
            return self.smallest is not None
        except RmqlbError:
            return False

    @cached_property
    def now(self) -> Owners:
        """The owners as observed, otherwise as predicted with all that is present."""
        queues = self.evidence.queues
        if any(queue in self.evidence.observed for queue in queues):
            return {queue: self.evidence.observed[queue] for queue in queues if queue in self.evidence.observed}
        owners = self._with
        return owners[0] if owners is not None and len(owners) == 1 else {}

    @property
    def _with(self) -> tuple[Owners, ...] | None:
        """What is possible with all that is there; None where that cannot be predicted."""
        try:
            return self.possible(self._acting)
        except RmqlbError:
            return None

    def _without(self, cause: Cause) -> tuple[Owners, ...] | None:
        """What is possible with the cause gone; None where that cannot be predicted."""
        gone = {cause, SPLIT} if cause == UNREACHABLE else {cause}
        try:
            return self.possible(tuple(each for each in self._acting if each not in gone))
        except RmqlbError:
            return None

    def _combinations(self) -> Iterator[Causes]:
        for number in range(len(self.suspected) + 1):
            yield from combinations(self.suspected, number)

    def _reproduces_or_fails(self, causes: Causes) -> bool:
        try:
            return self.reproduces(causes)
        except AllocationError:  # clients throw then, and keep what they have
            return False

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

    def _lists(self, causes: Causes) -> tuple[tuple[str, ...], ...]:
        group, ghosts = self.evidence.group, self.evidence.ghosts
        if STALE in causes and group.stale_channels:  # the lists that clients get, with every channel in them
            return tuple(dict.fromkeys(view.client_ids for view in self.evidence.views))
        lists = [tuple(self.evidence.processes.elements())]
        if SPLIT in causes:
            lists = [group.processes_in(view) for view in self.evidence.views]
        return tuple(dict.fromkeys(tuple(i for i in ids if STALE in causes or i not in ghosts) for ids in lists))

    def _owners(self, members: Members, ids: tuple[str, ...], causes: Causes) -> Owners:
        is_one = DUPLICATE in causes or STALE in causes
        real = {each: each for each in ids} if is_one else _with_own_ids(ids)
        if not is_one:
            members = replace(
                members,
                strategy_of={new: members.strategy_for(old) for new, old in real.items()}
                if members.strategy_of
                else {},
                subscribed={n: members.subscribed[old] for n, old in real.items() if old in members.subscribed},
                sdk_of={new: members.sdk_of[old] for new, old in real.items() if old in members.sdk_of},
            )
            ids = tuple(real)
        cut = self.cut_off if UNREACHABLE in causes else {}
        ghosts = self.evidence.ghosts
        return {
            queue: tuple(
                real[owner]
                for owner in its
                if queue.broker_name not in cut.get(real[owner], ()) and real[owner] not in ghosts
            )
            for queue, its in owners_at_rest(self.evidence.routes, replace(members, client_ids=ids)).items()
        }


def _with_own_ids(ids: tuple[str, ...]) -> dict[str, str]:
    """An ID of its own for each process → the ID that it has now."""
    numbers: Counter[str] = Counter()
    real: dict[str, str] = {}
    for client_id in ids:
        numbers[client_id] += 1
        own = client_id if numbers[client_id] == 1 else f"{client_id}#{numbers[client_id]}"
        real[own] = client_id
    return real


def _fits(observed: frozenset[MessageQueue], possible: Sequence[frozenset[MessageQueue]], processes: int) -> bool:
    """The share is a possible one; of processes with one ID each may have another."""
    if processes < 2:
        return observed in possible
    fitting = [share for share in possible if share <= observed]
    return bool(fitting) and observed == _NONE.union(*fitting)


def _shares(owners: Owners) -> _Shares:
    found: dict[tuple[str, str], set[MessageQueue]] = {}
    for queue, its in owners.items():
        for client_id in its:
            found.setdefault((queue.topic, client_id), set()).add(queue)
    return {key: frozenset(queues) for key, queues in found.items()}


def _is_empty(owners: tuple[str, ...]) -> bool:
    return not owners


def _is_several(owners: tuple[str, ...]) -> bool:
    return len(owners) > 1
