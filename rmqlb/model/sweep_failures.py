"""The result of `sweep-failures`: what each loss of consumers, brokers, hosts and zones does to groups and topics."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import Severity
from rmqlb.model.policy import About, Bound
from rmqlb.model.result import Result

LossKind = Literal["consumer", "broker", "master", "host", "zone"]
LOSS_KINDS: tuple[LossKind, ...] = ("consumer", "broker", "master", "host", "zone")
SILENT: tuple[LossKind, ...] = ("host", "zone")
"""Machines, which fall silent; a process that ends closes its connections."""


class Loss(Struct, frozen=True):
    """What is lost at once.

    Attributes:
        kind: consumer (a process ends), broker (it ends with its slaves), master (its slaves stay), host (a machine
            falls silent with all that runs there), zone (all of its machines).
        name: client ID, broker name, address or zone.
    """

    kind: LossKind
    name: str


class LossParts(Loss, frozen=True):
    """A loss that was tried, and what it takes.

    Attributes:
        consumers: client IDs; one that several processes share once for each that is lost.
        addresses: of brokers, as `broker-a/0`, the broker's name and ID; a broker without an address as its name.
    """

    consumers: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class CaseCounts(Struct, frozen=True, rename="camel"):
    """How many cases there are; a case is one loss, or two at once.

    Attributes:
        all: single losses and pairs of them.
        singles: single losses.
        pairs: pairs of different losses.
        tried: cases with a known result, computed or equal to a computed one; fewer than all where a group is too large
            for all pairs (finding `searched-in-part`).
        computed: results that were computed: for each group and topic one for all cases that take the same of it.
        broken: cases that break a limit which holds while nothing is lost.
        broken_singles: single losses among them.
    """

    all: int
    singles: int
    pairs: int
    tried: int
    computed: int
    broken: int
    broken_singles: int


class GroupOutcome(Struct, frozen=True, rename="camel"):
    """A group after a failure.

    Attributes:
        consumers: client IDs left.
        queues: queues left.
        unassigned: queues without an owner.
        duplicate_owners: queues with several owners.
        idle: consumers left without a queue.
        imbalance: of the queues per consumer; null without queues or consumers.
        moved: queues that go from one owner to another.
        lag_moved: messages waiting in the queues that move; null when not known for all of them.
        without_lock: queues of an orderly group on brokers without a master, which no consumer may consume; null when
            it is not known whether the group is orderly, or whether a slave stands in for the master.
    """

    consumers: int
    queues: int
    unassigned: int
    duplicate_owners: int
    idle: int
    imbalance: float | None
    moved: int
    lag_moved: int | None
    without_lock: int | None


class TopicOutcome(Struct, frozen=True, rename="camel"):
    """What producers of a topic can write to after a failure.

    Attributes:
        writable_brokers: brokers with a master and with writable queues.
        writable_queues: writable queues on them.
    """

    writable_brokers: int
    writable_queues: int


class BrokenAlready(Struct, frozen=True, rename="camel"):
    """A limit that is broken while nothing is lost, so that no loss is to blame.

    Attributes:
        rule: of the policy.
        severity: the rule's.
        about: group or topic.
        name: its name.
        limit: which limit.
        bound: what the limit allows.
        value: the measured value.
    """

    rule: str
    severity: Severity
    about: About
    name: str
    limit: str
    bound: Bound
    value: Bound


class Counterexample(BrokenAlready, frozen=True, rename="camel"):
    """A smallest failure that breaks a limit: none that takes less of the group or topic breaks the same limit.

    Attributes:
        losses: one, or two at once; of similar cases the one with the most moves.
        cases: how many cases are similar: as many losses of the same kinds break the same limit with the same value.
        group: the group after it; null for a topic.
        topic: the topic after it; null for a group.
        command: the command that shows it in full; null where no command line can name what is lost.
        gap_command: the command that simulates how long queues have no owner meanwhile; null for a topic, where queues
            stay without an owner or no consumer is left, and where no command line can name what is lost.
    """

    losses: tuple[Loss, ...]
    cases: int
    group: GroupOutcome | None = None
    topic: TopicOutcome | None = None
    command: str | None = None
    gap_command: str | None = None


class Unjudged(Struct, frozen=True):
    """A group or topic, or a limit of it, that could not be judged.

    Attributes:
        about: group or topic.
        name: its name.
        limit: which limit; null means the whole group or topic.
        why: what is missing.
    """

    about: About
    name: str
    limit: str | None
    why: str


class Worst(Struct, frozen=True):
    """The largest value of a figure over all cases.

    Attributes:
        value: the figure.
        losses: the first of the fewest losses that give it; none when it is the same without a loss.
    """

    value: float
    losses: tuple[Loss, ...]


class GroupWorst(Struct, frozen=True, rename="camel"):
    """The worst of a group over all cases, figure by figure; null where a figure is unknown in some case.

    Attributes:
        group: its name.
        strategy: its consumers'.
        basis: how that is known: predicted (reported or observed) or assumed.
        consumers: client IDs while nothing is lost.
        queues: queues while nothing is lost.
        cases: cases that take something of it.
        computed: of these, results that were computed; the others are the same.
        broken: cases that break a limit of it.
        unassigned: queues without an owner.
        imbalance: of the queues per consumer.
        idle: consumers without a queue.
        moved: queues that move.
        lag_moved: messages waiting in them.
        without_lock: queues of an orderly group that no broker locks.
    """

    group: str
    strategy: str
    basis: Literal["predicted", "assumed"]
    consumers: int
    queues: int
    cases: int
    computed: int
    broken: int
    unassigned: Worst | None
    imbalance: Worst | None
    idle: Worst | None
    moved: Worst | None
    lag_moved: Worst | None
    without_lock: Worst | None


class TopicWorst(Struct, frozen=True, rename="camel"):
    """The worst of a topic over all cases.

    Attributes:
        topic: its name.
        writable_brokers: brokers that producers can write to while nothing is lost.
        cases: cases that take something of it.
        unwritable: of these, those that leave no queue to write.
        broken: cases that break a limit of it.
        least_writable: the fewest brokers left that producers can write to.
    """

    topic: str
    writable_brokers: int
    cases: int
    unwritable: int
    broken: int
    least_writable: Worst


class FailureSweep(Result, frozen=True):
    """The effects of all losses.

    Attributes:
        policy: the file that has the limits.
        at_once: how many losses come together at most.
        cases: how many cases.
        losses: what was lost, one after the other and in pairs.
        counterexamples: the smallest failures that break a limit, worst first.
        waived: how many more counterexamples a waiver of the policy lets pass.
        broken_already: limits that are broken while nothing is lost.
        groups: the worst of each group, the worst first.
        topics: the worst of each topic, the worst first.
        unjudged: what could not be judged.
        conditions: what --fail-on asked for.
    """

    policy: str
    at_once: int
    cases: CaseCounts
    losses: tuple[LossParts, ...]
    counterexamples: tuple[Counterexample, ...]
    waived: int
    broken_already: tuple[BrokenAlready, ...]
    groups: tuple[GroupWorst, ...]
    topics: tuple[TopicWorst, ...]
    unjudged: tuple[Unjudged, ...]
    conditions: tuple[TriedCondition, ...] = ()

    @property
    def nothing_judged(self) -> bool:
        """No group and no topic was judged, so the absence of broken limits means nothing."""
        return not self.groups and not self.topics
