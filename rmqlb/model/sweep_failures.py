"""The result of `sweep-failures`: what each loss of consumers, brokers, hosts and zones does to groups and topics."""

from typing import Annotated, Literal, get_args

from msgspec import Struct

from rmqlb.model.policy import About, Bound
from rmqlb.model.result import Figure, Result, Severity, TriedCondition

LossKind = Literal["consumer", "broker", "master", "host", "zone"]
LOSS_KINDS: tuple[LossKind, ...] = get_args(LossKind)
SILENT: tuple[LossKind, ...] = ("host", "zone")  # machines; a process that ends closes its connections


class Loss(Struct, frozen=True):
    """Things that are lost together."""

    kind: Annotated[LossKind, "consumer, broker, master (slaves stay), or a silent machine (host or zone)"]
    name: Annotated[str, "client ID, broker name, address or zone"]


class LossParts(Loss, frozen=True):
    """A loss that was tried, and what it takes."""

    consumers: Annotated[tuple[str, ...], "client IDs; a shared one once for each process that is lost"] = ()
    addresses: Annotated[tuple[str, ...], "of brokers, as `broker-a/0` (name and ID); a name without an address"] = ()


class CaseCounts(Struct, frozen=True, rename="camel"):
    """How many cases there are; a case is one loss, or two at once."""

    all: Annotated[int, "single losses and pairs of them"]
    singles: Annotated[int, "single losses"]
    pairs: Annotated[int, "pairs of different losses"]
    tried: Annotated[int, "cases with a known result; fewer than all where a group is too large for all pairs"]
    computed: Annotated[int, "results computed: one for all equal cases of a group or topic"]
    broken: Annotated[int, "cases that break a limit which holds while nothing is lost"]
    broken_singles: Annotated[int, "single losses among them"]


class GroupOutcome(Struct, frozen=True, rename="camel"):
    """A group after a failure."""

    consumers: Annotated[int, "client IDs left"]
    queues: Annotated[int, "queues left"]
    unassigned: Annotated[int, "queues without an owner"]
    duplicate_owners: Annotated[int, "queues with several owners"]
    idle: Annotated[int, "consumers left without a queue"]
    imbalance: Annotated[float | None, "of the queues per consumer; null without queues or consumers"]
    moved: Annotated[int, "queues that go from one owner to another"]
    lag_moved: Annotated[int | None, "messages waiting in the queues that move; null when not known for all of them"]
    without_lock: Annotated[int | None, "queues of an orderly group on brokers without a master; null when unknown"]


class TopicOutcome(Struct, frozen=True, rename="camel"):
    """What producers of a topic can write to after a failure."""

    writable_brokers: Annotated[int, "brokers with a master and with writable queues"]
    writable_queues: Annotated[int, "writable queues on them"]


class BrokenAlready(Struct, frozen=True, rename="camel"):
    """A limit that is broken while nothing is lost, so that no loss is to blame."""

    rule: Annotated[str, "of the policy"]
    severity: Annotated[Severity, "the rule's"]
    about: Annotated[About, "group or topic"]
    name: Annotated[str, "its name"]
    limit: Annotated[str, "name of the limit"]
    bound: Annotated[Bound, "what the limit allows"]
    value: Annotated[Bound, "the measured value"]


class Counterexample(BrokenAlready, frozen=True, rename="camel"):
    """A smallest failure that breaks a limit: none that takes less of the group or topic breaks the same limit."""

    losses: Annotated[tuple[Loss, ...], "one, or two at once; of similar cases the one with the most moves"]
    cases: Annotated[int, "similar cases: equal kinds of losses that break the same limit with the same value"]
    group: Annotated[GroupOutcome | None, "the group after it; null for a topic"] = None
    topic: Annotated[TopicOutcome | None, "the topic after it; null for a group"] = None
    command: Annotated[str | None, "the command that shows it in full; null where none can name it"] = None
    gap_command: Annotated[str | None, "the command that simulates its gaps; null for a topic, or without gaps"] = None


class Unjudged(Struct, frozen=True):
    """A group or topic, or a limit of it, that could not be judged."""

    about: Annotated[About, "group or topic"]
    name: Annotated[str, "its name"]
    limit: Annotated[str | None, "which limit; null means the whole group or topic"]
    why: Annotated[str, "what is missing"]


class Worst(Struct, frozen=True):
    """The largest value of a figure over all cases."""

    value: Annotated[float, "the largest value"]
    losses: Annotated[tuple[Loss, ...], "the smallest loss that causes it; none when no loss is needed"]


class GroupWorst(Struct, frozen=True, rename="camel"):
    """The worst of a group over all cases, figure by figure; null where a figure is unknown in some case."""

    group: Annotated[str, "its name"]
    strategy: str
    basis: Annotated[
        Literal["predicted", "assumed"], "basis of the owners: predicted (reported or observed) or assumed"
    ]
    consumers: Annotated[int, "client IDs while nothing is lost"]
    queues: Annotated[int, "queues while nothing is lost"]
    cases: Annotated[int, "cases that affect it"]
    computed: Annotated[int, "of these, results that were computed; the others are the same"]
    broken: Annotated[int, "cases that break a limit of it"]
    unassigned: Annotated[Worst | None, Figure("queues without an owner", of="queues")]
    imbalance: Annotated[Worst | None, Figure("of the queues per consumer")]
    idle: Annotated[Worst | None, Figure("consumers without a queue")]
    moved: Annotated[Worst | None, Figure("queues that move", of="queues")]
    lag_moved: Annotated[Worst | None, Figure("messages waiting in them")]
    without_lock: Annotated[Worst | None, Figure("queues of an orderly group that no broker locks")]


class TopicWorst(Struct, frozen=True, rename="camel"):
    """The worst of a topic over all cases."""

    topic: str
    writable_brokers: Annotated[int, "brokers that producers can write to while nothing is lost"]
    cases: Annotated[int, "cases that affect it"]
    unwritable: Annotated[int, "of these, cases that leave no writable queue"]
    broken: Annotated[int, "cases that break a limit of it"]
    least_writable: Annotated[Worst, "the fewest brokers left that producers can write to"]


class FailureSweep(Result, frozen=True):
    """The effects of all losses."""

    policy: Annotated[str, "the file that has the limits"]
    most_losses: Annotated[int, "maximum number of losses at once"]
    cases: Annotated[CaseCounts, "how many cases"]
    losses: Annotated[tuple[LossParts, ...], "the losses that were tried, singly and in pairs"]
    counterexamples: Annotated[tuple[Counterexample, ...], "the smallest failures that break a limit, worst first"]
    waived: Annotated[int, "how many further counterexamples are waived"]
    broken_already: Annotated[tuple[BrokenAlready, ...], "limits that are broken while nothing is lost"]
    groups: Annotated[tuple[GroupWorst, ...], "the worst of each group, the worst first"]
    topics: Annotated[tuple[TopicWorst, ...], "the worst of each topic, the worst first"]
    unjudged: Annotated[tuple[Unjudged, ...], "what could not be judged"]
    conditions: tuple[TriedCondition, ...] = ()

    @property
    def nothing_judged(self) -> bool:
        return not self.groups and not self.topics
