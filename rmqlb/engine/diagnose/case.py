"""The case that diagnosis rules examine: a group's evidence, the causes that explain its owners, the rules' answers.

A new rule is a function with `@rule(code)` in one of the files next to this one, the words of its code in
`model/diagnosis.py`, and a page in `views/explanations.toml`.

Only direct evidence makes a cause suspected. The explanation is the smallest combination of suspected causes that
reproduces every observed owner; among equals the first in `CAUSES` order.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import sdk_named
from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest
from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, DoesNotApply, GroupEvidence, Troubles
from rmqlb.engine.group import known
from rmqlb.errors import AllocationError, DataError, RmqlbError
from rmqlb.model.diagnosis import Evidence, Explains, GroupFinding
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.result import INFO, Severity

Cause = Literal[
    "duplicate-client-id",
    "mixed-strategies",
    "subscription-mismatch",
    "mixed-sdks",
    "broker-unreachable-from-consumer",
    "stale-connections",
    "split-consumer-view",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)
Causes = tuple[Cause, ...]
_NONE: frozenset[MessageQueue] = frozenset()


class ComesOf(Exception):
    """Raised by a rule whose problem exists, but is explained by these causes."""

    def __init__(self, *causes: str) -> None:
        super().__init__(*causes)
        self.causes = causes


class Answer(Struct, frozen=True):
    """The findings of a rule, and why it ended early; None when it examined everything."""

    findings: tuple[GroupFinding, ...]
    why: ComesOf | DoesNotApply | RmqlbError | None


class Case(GroupEvidence, dict=True, eq=False):
    _answers: dict[str, Answer] = field(default_factory=dict)  # of the rules that were asked, by code
    _predictions: dict[Causes, tuple[Owners, ...]] = field(default_factory=dict)

    def answer(self, code: str) -> Answer:
        if code not in self._answers:
            findings: list[GroupFinding] = []
            why: ComesOf | DoesNotApply | RmqlbError | None = None
            try:
                for finding in CHECKS[code](self):
                    findings.append(replace(finding, code=code))  # noqa: PERF401 - an error later undoes no finding
            except (ComesOf, DoesNotApply, RmqlbError) as error:
                why = error
            self._answers[code] = Answer(tuple(findings), why)
        return self._answers[code]

    def has(self, code: str) -> bool:
        return bool(self.answer(code).findings)

    def explained(self, queues: Collection[MessageQueue], causes: Sequence[str]) -> tuple[set[MessageQueue], list[str]]:
        """The queues of grave findings of these causes, and the codes of the causes among them."""
        explained, acting = set[MessageQueue](), []
        for code in causes if queues else ():
            findings = self.answer(code).findings
            concerned = {queue for each in findings if each.severity != INFO for queue in each.queues}
            if not concerned.isdisjoint(queues):
                acting.append(code)
                explained |= concerned
        return explained, acting

    def unexplained(self, queues: Collection[MessageQueue], causes: Sequence[str]) -> tuple[MessageQueue, ...]:
        """The other queues, sorted; raises ComesOf when grave findings of these causes concern all queues."""
        explained, acting = self.explained(queues, causes)
        left = tuple(sort_queues({*queues} - explained))
        if queues and not left:
            raise ComesOf(*acting)
        return left

    def finding(
        self,
        severity: Severity,
        consequence: str,
        remedy: str,
        *,
        of: Troubles | None = None,
        queues: Collection[MessageQueue] | None = None,
        consumers: Iterable[str] | None = None,
        facts: Iterable[Evidence] | None = None,
        topic: str | None = None,
        explains: Explains | None = None,
    ) -> GroupFinding:
        """A finding of the present rule; `of` gives the queues, consumers and facts that are not given.

        The topic is the one of all queues, unless given.
        """
        of = of or Troubles()
        found = {*(of.queues if queues is None else queues)}
        topics = {queue.topic for queue in found}
        return GroupFinding(
            "",
            severity,
            self.group.group,
            topics.pop() if len(topics) == 1 else topic,
            tuple(sort_queues(found)),
            tuple(sort_client_ids({*(of.ids if consumers is None else consumers)})),
            tuple(of.facts if facts is None else facts),
            consequence,
            remedy,
            explains,
        )

    @cached_property
    def suspected(self) -> Causes:
        """Causes with direct evidence, in `CAUSES` order."""
        lists_differ = self.group.has_split_view
        has_evidence: dict[Cause, bool] = {
            "duplicate-client-id": any(number > 1 for number in self.processes.values()),
            "mixed-strategies": len(set(self.strategies.values())) > 1,
            "subscription-mismatch": len(set(self.subscriptions.values())) > 1,
            "mixed-sdks": bool(self.facts.sdks.sdk_of),
            # The queues that a consumer lacks show which broker it does not reach, so all owners must be known.
            "broker-unreachable-from-consumer": lists_differ and bool(self.cut_off) and self.all_observed,
            "stale-connections": bool(self.group.stale_channels or self.ghosts),
            "split-consumer-view": lists_differ,
        }
        return tuple(cause for cause in CAUSES if has_evidence[cause])

    @cached_property
    def cut_off(self) -> Mapping[str, frozenset[str]]:
        """Client ID → the brokers that do not list it although others do."""
        views = ((view, name) for view in self.views if (name := self.broker_name(view)) is not None)
        found = grouped((i, name) for view, name in views for i in self.processes.keys() - set(view.client_ids))
        return {client_id: frozenset(found[client_id]) for client_id in sort_client_ids(found)}

    @cached_property
    def smallest(self) -> Causes | None:
        """The fewest causes that reproduce all observed owners; () for a healthy group, None when none do."""
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
        return known(lambda: self.smallest) or ()

    @cached_property
    def is_explained(self) -> bool:
        return known(lambda: self.smallest) is not None

    @cached_property
    def present(self) -> Causes:
        """The suspected causes, minus those implied by another cause or contradicted by the observed owners."""
        doubtful: set[Cause] = {"broker-unreachable-from-consumer"}
        doubtful |= {"mixed-sdks"} if self.is_explained else set()
        found = [cause for cause in self.suspected if cause not in doubtful or cause in self.explanation]
        implied: set[Cause] = {"split-consumer-view"} if "broker-unreachable-from-consumer" in found else set()
        return tuple(cause for cause in found if cause not in implied)

    @property
    def acting(self) -> Causes:
        """The present causes, without differing lists where the owners do not need them."""
        acting = {*self.present, *self.explanation}
        if self.is_explained and "split-consumer-view" not in self.explanation:
            acting.discard("split-consumer-view")
        return tuple(cause for cause in CAUSES if cause in acting)

    def possible(self, causes: Causes) -> tuple[Owners, ...]:
        """The owners with exactly these causes, a prediction for each list that a consumer may have received.

        Raises DataError where something that decides the owners is unknown, AllocationError where every client throws.
        """
        if causes not in self._predictions:
            if not self.suspected and self._is_predicted:  # unknown where a broker did not list its consumers
                self._predictions[causes] = (self.facts.predicted,)
            else:
                members = self._members(causes)
                self._predictions[causes] = tuple(self._owners(members, ids, causes) for ids in self._lists(causes))
        return self._predictions[causes]

    @property
    def _is_predicted(self) -> bool:
        topics = {*self.topics}
        is_all = all(topics <= own for own in self.subscriptions.values())
        return is_all and topics == {route.topic for route in self.facts.routes}

    def _members(self, causes: Causes) -> Members:
        members = self.facts.members
        if "mixed-sdks" not in causes and members.sdk_of:  # as if all ran the usual library with its only strategy
            members = replace(members, strategy=sdk_named(members.sdk).sdk.strategy(members.group_strategy), sdk_of={})
        strategy_of = members.strategy_of if "mixed-strategies" in causes else {}
        subscribed = self.subscriptions if "subscription-mismatch" in causes else {}
        return replace(members, strategy_of=strategy_of, subscribed=subscribed)

    def _lists(self, causes: Causes) -> Iterator[tuple[str, ...]]:
        is_stale = "stale-connections" in causes
        if is_stale and self.group.stale_channels:  # the lists with every channel in them
            yield from dict.fromkeys(view.client_ids for view in self.views)
            return
        lists = [tuple(self.processes.elements())]
        if "split-consumer-view" in causes:
            lists = [self.group.processes_in(view) for view in self.views]
        yield from dict.fromkeys(tuple(i for i in ids if is_stale or i not in self.ghosts) for ids in lists)

    def _owners(self, members: Members, ids: tuple[str, ...], causes: Causes) -> Owners:
        own, members = {each: each for each in ids}, replace(members, client_ids=ids)
        if "duplicate-client-id" not in causes and "stale-connections" not in causes:
            own = _with_own_ids(ids)
            members = replace(members.known_as(own), client_ids=tuple(own))
        cut = self.cut_off if "broker-unreachable-from-consumer" in causes else {}

        def takes(client_id: str, queue: MessageQueue) -> bool:
            return client_id not in self.ghosts and queue.broker_name not in cut.get(client_id, ())

        owners = owners_at_rest(self.routes, members)
        return {queue: tuple(own[i] for i in ids if takes(own[i], queue)) for queue, ids in owners.items()}

    def reproduces(self, causes: Causes) -> bool:
        """Whether each consumer owns, in each topic, the queues of one prediction (raises as `possible`)."""
        observed = self._observed_queues
        if not observed:
            raise DataError("no owner was observed", hint=ASK_CONSUMERS)
        shares, possible = _shares(observed), self.possible(causes)
        predicted = [_shares({q: ids for q, ids in owners.items() if q in observed}) for owners in possible]
        return all(
            _fits(shares.get(key, _NONE), [each.get(key, _NONE) for each in predicted], self.processes[key[1]])
            for key in set(shares).union(*predicted)
        )

    @property
    def _observed_queues(self) -> Owners:
        return {queue: self.observed[queue] for queue in self.queues if queue in self.observed}

    def owning_by(self, client_ids: tuple[str, ...]) -> int | None:
        """The number of these consumers whose queues this list predicts; None where it cannot be predicted."""
        causes = tuple(cause for cause in self.acting if cause != "split-consumer-view")
        owners = known(lambda: self._owners(self._members(causes), client_ids, causes))
        if owners is None or not self.all_observed:
            return None
        observed, predicted = _shares(self._observed_queues), _shares(owners)
        return sum(
            all(observed.get((topic, each)) == predicted.get((topic, each)) for topic in self.topics)
            for each in dict.fromkeys(client_ids)
        )

    def gives(self, queue: MessageQueue, owners: tuple[str, ...]) -> bool:
        predicted = known(lambda: self.possible(self.present)) if self.present else None
        return predicted is not None and len(predicted) == 1 and predicted[0].get(queue) == owners

    def explains(self, cause: Cause) -> Explains:
        reproduces = known(lambda: self.reproduces(self.acting) if self.smallest is not None else False)
        after, unassigned, duplicate, fixes_all = self._without(cause), None, None, None
        if after is not None and reproduces is not False:  # otherwise an unknown cause acts too
            fixes_all = False
            if len(after) == 1:  # otherwise brokers still disagree
                unassigned = sum(not owners for owners in after[0].values())
                duplicate = sum(len(owners) > 1 for owners in after[0].values())
                fixes_all = not unassigned and not duplicate
        explained = self._as_observed(self._with), self._as_observed(after)
        return Explains(reproduces, fixes_all, unassigned, duplicate, *explained)

    def _as_observed(self, possible: tuple[Owners, ...] | None) -> int | None:
        if possible is None or len(possible) > 1 or not self.all_observed:
            return None
        return sum(set(possible[0].get(queue, ())) == set(self.observed[queue]) for queue in self.queues)

    def queues_of(self, cause: Cause) -> tuple[MessageQueue, ...]:
        """The queues that have exactly one owner only without the cause."""
        after = self._without(cause) or ()
        bad = sort_queues(queue for queue, owners in self.now.items() if len(owners) != 1)
        if len(after) == 1:
            return tuple(queue for queue in bad if len(after[0].get(queue, ())) == 1)
        # Brokers still disagree: a queue counts when the list of one of them gives it an owner without the cause.
        pairs = list(zip(self.possible(self.acting), after, strict=True)) if after else []
        return tuple(q for q in bad if any(len(was[q]) != 1 and len(becomes[q]) == 1 for was, becomes in pairs))

    @cached_property
    def now(self) -> Owners:
        """The observed owners, otherwise those predicted with all acting causes."""
        if observed := self._observed_queues:
            return observed
        owners = self._with
        return owners[0] if owners is not None and len(owners) == 1 else {}

    @property
    def _with(self) -> tuple[Owners, ...] | None:
        return known(lambda: self.possible(self.acting))

    def _without(self, cause: Cause) -> tuple[Owners, ...] | None:
        gone = {cause, "split-consumer-view"} if cause == "broker-unreachable-from-consumer" else {cause}
        return known(lambda: self.possible(tuple(each for each in self.acting if each not in gone)))


def _with_own_ids(ids: Sequence[str]) -> dict[str, str]:
    """A unique ID for each process → its present ID."""
    numbers: Counter[str] = Counter()
    now: dict[str, str] = {}
    for client_id in ids:
        numbers[client_id] += 1
        now[client_id if numbers[client_id] == 1 else f"{client_id}#{numbers[client_id]}"] = client_id
    return now


def _fits(observed: frozenset[MessageQueue], possible: Sequence[frozenset[MessageQueue]], processes: int) -> bool:
    """Whether the share is a possible one; processes that share a client ID may have different shares."""
    if processes < 2:
        return observed in possible
    fitting = [share for share in possible if share <= observed]
    return bool(fitting) and observed == _NONE.union(*fitting)


def _shares(owners: Owners) -> dict[tuple[str, str], frozenset[MessageQueue]]:
    """(topic, client ID) → its queues; a consumer without a queue of the topic is absent."""
    found = grouped(((queue.topic, client_id), queue) for queue, ids in owners.items() for client_id in ids)
    return {key: frozenset(queues) for key, queues in found.items()}


Check = Callable[[Case], Iterator[GroupFinding]]
"""Yields findings, none when all is in order.

Raises DataError where evidence is missing, DoesNotApply, or ComesOf where another finding is the cause.
"""


CHECKS: dict[str, Check] = {}  # by code, once the file of the rule is imported
OVER_TIME: set[str] = set()  # codes of rules that find nothing in a single sample


def rule(code: str, *, one_sample: bool = True) -> Callable[[Check], Check]:
    def registered(check: Check) -> Check:
        CHECKS[code] = check
        OVER_TIME.update(() if one_sample else (code,))
        return check

    return registered
