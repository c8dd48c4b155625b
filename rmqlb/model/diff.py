"""Two snapshots of a cluster compared: what changed, and which change gives each queue its new owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.condition import TriedCondition
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.figures import Figure
from rmqlb.model.recording import QueueComparison
from rmqlb.model.result import Result

Change = Literal["same", "moved", "assigned", "unassigned", "added", "removed"]
Cause = Literal["consumers", "strategy", "subscriptions", "routes"]
CAUSES: tuple[Cause, ...] = ("consumers", "strategy", "subscriptions", "routes")
"""What decides the owners, in the order in which changes of it are tried."""
How = Literal["predicted", "converged", "pending", "unexplained"]
Presence = Literal["added", "removed", "changed"]


class SnapshotSide(Struct, frozen=True, rename="camel"):
    """One of the two snapshots.

    Attributes:
        kind: which kind of source it is, such as dump or dashboard.
        endpoint: its URL or path, never with a secret in it.
        taken_at: when it was taken, ISO-8601 in UTC; null when the source does not report it.
        context: the context that named the source; null when none did.
    """

    kind: str
    endpoint: str
    taken_at: str | None
    context: str | None


class SettingDiff(Struct, frozen=True):
    """A setting that differs.

    Attributes:
        name: such as messageModel or orderTopicConf.
        before: its value in the first snapshot; null when it was not reported, or not set.
        after: its value in the second; null in the same cases.
    """

    name: str
    before: str | None
    after: str | None


class BrokerQueues(Struct, frozen=True, rename="camel"):
    """What a topic has on a broker.

    Attributes:
        read_queue_nums: queues that consumers can read.
        write_queue_nums: queues that producers can write.
        perm: bits: 4 read, 2 write; 6 is usual.
        broker_addrs: broker ID → `host:port`; ID 0 is the master; empty when the route has no address.
    """

    read_queue_nums: int
    write_queue_nums: int
    perm: int
    broker_addrs: Mapping[str, str]


class BrokerDiff(Struct, frozen=True, rename="camel"):
    """A broker of a topic that differs.

    Attributes:
        broker_name: its name.
        change: added, removed or changed.
        before: in the first snapshot; null when the topic is not on it.
        after: in the second; null when the topic is not on it.
    """

    broker_name: str
    change: Presence
    before: BrokerQueues | None
    after: BrokerQueues | None


class TopicDiff(Struct, frozen=True):
    """A topic whose route differs.

    Attributes:
        topic: its name.
        change: added, removed or changed.
        brokers: those that differ, by name.
        settings: what else differs.
        groups: the groups that subscribe to it in either snapshot, by name.
    """

    topic: str
    change: Presence
    brokers: tuple[BrokerDiff, ...]
    settings: tuple[SettingDiff, ...]
    groups: tuple[str, ...]


class QueueDiff(Struct, frozen=True, rename="camel"):
    """A queue whose observed or predicted owners differ.

    Attributes:
        topic: its topic.
        broker_name: its broker.
        queue_id: its number there, from 0.
        change: same, moved, assigned (had no owner), unassigned (has none now), added or removed (the queue itself).
        basis: observed when both snapshots report the queue's owners, otherwise predicted: what is compared.
        owners_before: client IDs, sorted; null when the queue did not exist.
        owners_after: in the second snapshot; null when the queue does not exist.
        predicted_before: the predicted owners; null when the queue did not exist, or nothing could be predicted.
        predicted_after: those of the second snapshot; null in the same cases.
        how: predicted (the causes give the owners that it has now), converged (they are those predicted before: the
            group had not converged then), pending (the causes give others, and it is on its way: it has the former
            ones, some of both, or none), or unexplained.
        causes: the fewest changes that give those owners, applied to the first snapshot; empty without any.
        lag_before: messages not yet read in the first snapshot.
        lag_after: messages not yet read in the second.
    """

    topic: str
    broker_name: str
    queue_id: int
    change: Change
    basis: Literal["observed", "predicted"]
    owners_before: tuple[str, ...] | None
    owners_after: tuple[str, ...] | None
    predicted_before: tuple[str, ...] | None
    predicted_after: tuple[str, ...] | None
    how: How
    causes: tuple[Cause, ...]
    lag_before: int | None
    lag_after: int | None

    @property
    def got_duplicate_owners(self) -> bool:
        """It has several owners and had one or none."""
        return len(self.owners_after or ()) > 1 >= len(self.owners_before or ())


class Explained(Struct, frozen=True):
    """How many queues have the same explanation.

    Attributes:
        how: predicted, converged, pending or unexplained.
        causes: the changes that explain them.
        queues: how many.
    """

    how: How
    causes: tuple[Cause, ...]
    queues: int


class ProcessesDiff(Struct, frozen=True, rename="camel"):
    """A client ID that more or fewer processes have than before.

    Attributes:
        client_id: the ID.
        before: how many processes in the first snapshot; 0 when it was not there.
        after: how many in the second; 0 when it is not there.
    """

    client_id: str
    before: int
    after: int


class GroupOwners(Struct, frozen=True, rename="camel"):
    """What of a group is compared, in one snapshot.

    Attributes:
        consumers: distinct client IDs; null when they are not reported.
        topics: that it subscribes to, without its retry topic; null when they are not reported.
        strategies: those that its consumers report or run by the owners observed, most used first; empty when unknown.
        queues: whose owners are observed.
        unassigned: those of them that have no owner.
        duplicate_owners: those that have several; of a BROADCASTING group 0.
        lag: messages not yet read, over all queues whose lag is known; null when none is.
    """

    consumers: int | None
    topics: tuple[str, ...] | None
    strategies: tuple[str, ...]
    queues: int
    unassigned: int
    duplicate_owners: int
    lag: int | None


class GroupDiff(Struct, frozen=True, rename="camel"):
    """A group in two snapshots.

    Attributes:
        group: its name.
        change: added, removed, changed, or same when only offsets differ.
        before: in the first snapshot; null when it is not there.
        after: in the second; null when it is not there.
        joined: client IDs that are new.
        left: client IDs that are gone.
        processes: client IDs in both that another number of processes has.
        topics_added: topics that it subscribes to only in the second.
        topics_removed: only in the first.
        strategy_changed: its consumers run another strategy, or some of them do; false when one side is unknown.
        strategy_assumed: neither snapshot shows what it runs: explanations are those of the client's default, AVG.
        settings: what else differs.
        explanations: the queues of `queues` counted by explanation, most first.
        queues: each queue whose observed or predicted owners differ, in the clients' order.
        not_predicted: why owners could not be predicted; null when they were, or when nothing was to be explained.
        lag_growth: by how much the lag grew, below 0 when it shrank, over the queues whose lag is known in both; null
            when it is of none.
        produced: messages that came into the queues whose ends are known in both; null when they are of none.
        consumed: messages by which offsets went forward in the queues whose offsets are known in both; null when they
            are of none.
        offsets_back: queues whose consumer offset is lower than before.
        findings: what is odd about what became of it; --against, which compares what decides the owners, has none.
    """

    group: str
    change: Literal["added", "removed", "changed", "same"]
    before: GroupOwners | None
    after: GroupOwners | None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    processes: tuple[ProcessesDiff, ...] = ()
    topics_added: tuple[str, ...] = ()
    topics_removed: tuple[str, ...] = ()
    strategy_changed: bool = False
    strategy_assumed: bool = False
    settings: tuple[SettingDiff, ...] = ()
    explanations: tuple[Explained, ...] = ()
    queues: tuple[QueueDiff, ...] = ()
    not_predicted: str | None = None
    lag_growth: int | None = None
    produced: int | None = None
    consumed: int | None = None
    offsets_back: int = 0
    findings: tuple[GroupFinding, ...] = ()

    @property
    def differs(self) -> bool:
        """Anything is different, if only offsets."""
        return self.change != "same" or any((self.lag_growth, self.produced, self.consumed, self.offsets_back))

    def count(self, *changes: Change) -> int:
        """How many queues have one of these changes."""
        return sum(queue.change in changes for queue in self.queues)


class NotCompared(Struct, frozen=True):
    """Something that one snapshot has and the other could not read.

    Attributes:
        kind: topic or group.
        name: its name.
        reason: why.
    """

    kind: Literal["topic", "group"]
    name: str
    reason: str


class DiffSummary(Struct, frozen=True, rename="camel"):
    """The differences in numbers.

    Attributes:
        groups: in either snapshot, those not compared left out.
        topics: in either snapshot, those not compared left out.
    """

    groups: int
    groups_changed: Annotated[
        int, Figure("groups that differ other than in offsets, added and removed ones included", of="groups")
    ]
    groups_added: Annotated[int, Figure("groups only in the second snapshot")]
    groups_removed: Annotated[int, Figure("groups only in the first snapshot")]
    topics: int
    topics_changed: Annotated[int, Figure("topics whose routes differ, added and removed ones included", of="topics")]
    consumers_joined: Annotated[int, Figure("client IDs that are new in groups of both snapshots")]
    consumers_left: Annotated[int, Figure("client IDs that are gone from groups of both snapshots")]
    strategies_changed: Annotated[int, Figure("groups that run another strategy")]
    moved: Annotated[int, Figure("queues that go from one owner to another")]
    newly_assigned: Annotated[int, Figure("queues that had no owner and have one")]
    newly_unassigned: Annotated[int, Figure("queues that had an owner and have none")]
    newly_duplicate_owners: Annotated[int, Figure("queues that have several owners and had one or none")]
    queues_added: Annotated[int, Figure("queues that are new to a group")]
    queues_removed: Annotated[int, Figure("queues that a group no longer has")]
    pending: Annotated[int, Figure("queues on their way to the owners that the changes give them")]
    unexplained: Annotated[int, Figure("queues whose new owners no change explains")]
    lag_growth: Annotated[
        int | None,
        Figure("messages by which the lag grew in the groups in which it grew", unknown="when it is known of none"),
    ]
    offsets_back: Annotated[int, Figure("queues whose consumer offset is lower than before")]


class SnapshotDiff(Result, frozen=True):
    """Two snapshots of a cluster compared.

    Attributes:
        before: the first.
        after: the second.
        summary: in numbers.
        groups: those that differ, by name.
        topics: those whose routes differ, by name.
        not_compared: what one snapshot could not read.
        conditions: what --fail-on asked for.
    """

    before: SnapshotSide
    after: SnapshotSide
    summary: DiffSummary
    groups: tuple[GroupDiff, ...]
    topics: tuple[TopicDiff, ...]
    not_compared: tuple[NotCompared, ...]
    conditions: tuple[TriedCondition, ...] = ()


class PredictedGroup(Struct, frozen=True, rename="camel"):
    """A group, and the owners that a plan or a simulation predicted.

    Attributes:
        group: its name.
        kind: plan or simulation.
        placeholders: placeholder consumer of the prediction → the client ID that came instead.
        queues: queue by queue; the times are null.
    """

    group: str
    kind: Literal["plan", "simulation"]
    placeholders: Mapping[str, str]
    queues: tuple[QueueComparison, ...]


class PredictionSummary(Struct, frozen=True, rename="camel"):
    """A stored prediction in numbers.

    Attributes:
        queues: the queues that it predicts.
    """

    queues: int
    differences: Annotated[int, Figure("queues with other owners than predicted", of="queues")]
    other_owner: Annotated[int, Figure("those of them with owners of neither before nor after", of="queues")]
    not_yet: Annotated[int, Figure("those of them that still have owners of before", of="queues")]
    unknown: Annotated[int, Figure("queues whose owners are unknown", of="queues")]


class PredictionDiff(Result, frozen=True):
    """A stored plan or simulation compared with a snapshot, to see whether it went as planned.

    Attributes:
        prediction: the file of the plan or simulation.
        after: the snapshot.
        summary: in numbers.
        groups: the groups of the prediction, by name.
        conditions: what --fail-on asked for.
    """

    prediction: str
    after: SnapshotSide
    summary: PredictionSummary
    groups: tuple[PredictedGroup, ...]
    conditions: tuple[TriedCondition, ...] = ()
