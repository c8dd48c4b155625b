"""Two snapshots of a cluster compared: what changed, and which change gives each queue its new owner."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.owners import Change
from rmqlb.model.recording import QueueComparison
from rmqlb.model.result import Figure, Result, SnapshotSide, TriedCondition
from rmqlb.model.simulate_rebalance import OfQueue

Cause = Literal["consumers", "strategy", "subscriptions", "routes"]
CAUSES: tuple[Cause, ...] = ("consumers", "strategy", "subscriptions", "routes")  # in the order of trials
How = Literal["predicted", "converged", "pending", "unexplained"]
Presence = Literal["added", "removed", "changed"]


class SettingDiff(Struct, frozen=True):
    """A setting that differs."""

    name: Annotated[str, "such as messageModel or orderTopicConf"]
    before: Annotated[str | None, "its value in the first snapshot; null when it was not reported, or not set"]
    after: Annotated[str | None, "its value in the second; null in the same cases"]


class QueueCounts(Struct, frozen=True, rename="camel"):
    """A topic's queues on a broker."""

    read_queue_nums: Annotated[int, "queues that consumers can read"]
    write_queue_nums: Annotated[int, "queues that producers can write"]
    perm: Annotated[int, "bits: 4 read, 2 write; 6 is usual"]
    broker_addrs: Annotated[Mapping[str, str], "broker ID → `host:port`; 0 is the master; empty without an address"]


class BrokerDiff(Struct, frozen=True, rename="camel"):
    """A broker of a topic that differs."""

    broker_name: str
    change: Annotated[Presence, "added, removed or changed"]
    before: Annotated[QueueCounts | None, "in the first snapshot; null when the topic is not on it"]
    after: Annotated[QueueCounts | None, "in the second; null when the topic is not on it"]


class TopicDiff(Struct, frozen=True):
    """A topic whose route differs."""

    topic: str
    change: Annotated[Presence, "added, removed or changed"]
    brokers: Annotated[tuple[BrokerDiff, ...], "brokers that differ, by name"]
    settings: Annotated[tuple[SettingDiff, ...], "other settings that differ"]
    groups: Annotated[tuple[str, ...], "the groups that subscribe to it in either snapshot, by name"]


class QueueDiff(OfQueue, frozen=True, rename="camel"):
    """A queue whose observed or predicted owners differ."""

    change: Annotated[Change, "same, moved, assigned (had no owner), unassigned (has none now), added or removed"]
    basis: Annotated[Literal["observed", "predicted"], "observed where both snapshots report owners"]
    owners_before: Annotated[tuple[str, ...] | None, "client IDs, sorted; null when the queue did not exist"]
    owners_after: Annotated[tuple[str, ...] | None, "in the second snapshot; null when the queue does not exist"]
    predicted_before: Annotated[tuple[str, ...] | None, "predicted owners; null without the queue or a prediction"]
    predicted_after: Annotated[
        tuple[str, ...] | None, "predicted owners in the second snapshot; null in the same cases"
    ]
    how: Annotated[How, "predicted by causes, converged (predicted before), pending or unexplained"]
    causes: Annotated[tuple[Cause, ...], "the fewest changes to the first snapshot that give those owners"]
    lag_before: Annotated[int | None, "unread messages in the first snapshot"]
    lag_after: Annotated[int | None, "unread messages in the second"]

    @property
    def got_duplicate_owners(self) -> bool:
        return len(self.owners_after or ()) > 1 >= len(self.owners_before or ())


class Explained(Struct, frozen=True):
    """The number of queues with the same explanation."""

    how: Annotated[How, "predicted, converged, pending or unexplained"]
    causes: Annotated[tuple[Cause, ...], "the changes that explain them"]
    queues: Annotated[int, "number of queues"]


class ProcessesDiff(Struct, frozen=True, rename="camel"):
    """A client ID that more or fewer processes have than before."""

    client_id: str
    before: Annotated[int, "processes in the first snapshot; 0 when it was not there"]
    after: Annotated[int, "processes in the second; 0 when it is not there"]


class GroupOwners(Struct, frozen=True, rename="camel"):
    """A group in one snapshot."""

    consumers: Annotated[int | None, "distinct client IDs; null when they are not reported"]
    topics: Annotated[tuple[str, ...] | None, "its topics, without its retry topic; null when they are not reported"]
    strategies: Annotated[
        tuple[str, ...], "reported, or derived from the observed owners, most used first; empty when unknown"
    ]
    queues: Annotated[int, "queues whose owners are observed"]
    unassigned: Annotated[int, "of these, queues without an owner"]
    duplicate_owners: Annotated[int, "of these, queues with several owners; 0 for a BROADCASTING group"]
    lag: Annotated[int | None, "unread messages in all queues whose lag is known; null when none is"]


class GroupDiff(Struct, frozen=True, rename="camel"):
    """A group in two snapshots."""

    group: Annotated[str, "its name"]
    change: Annotated[Literal["added", "removed", "changed", "same"], "same when only offsets differ"]
    before: Annotated[GroupOwners | None, "in the first snapshot; null when it is not there"]
    after: Annotated[GroupOwners | None, "in the second; null when it is not there"]
    joined: Annotated[tuple[str, ...], "client IDs that are new"] = ()
    left: Annotated[tuple[str, ...], "client IDs that are gone"] = ()
    processes: Annotated[tuple[ProcessesDiff, ...], "client IDs in both that another number of processes has"] = ()
    topics_added: Annotated[tuple[str, ...], "topics that it subscribes to only in the second"] = ()
    topics_removed: Annotated[tuple[str, ...], "topics that it subscribes to only in the first"] = ()
    strategy_changed: Annotated[bool, "some consumers run another strategy; false when one side is unknown"] = False
    strategy_assumed: Annotated[bool, "neither snapshot shows the strategy: explanations assume AVG"] = False
    settings: Annotated[tuple[SettingDiff, ...], "other settings that differ"] = ()
    explanations: Annotated[tuple[Explained, ...], "the queues of `queues` counted by explanation, most first"] = ()
    queues: Annotated[tuple[QueueDiff, ...], "queues whose owners differ, in the clients' order"] = ()
    not_predicted: Annotated[str | None, "why owners could not be predicted; null without a reason"] = None
    lag_growth: Annotated[int | None, "growth of the lag over the queues known in both; null without any"] = None
    produced: Annotated[int | None, "messages stored in queues whose ends are known in both; null without any"] = None
    consumed: Annotated[int | None, "messages consumed where both offsets are known; null without any"] = None
    offsets_back: Annotated[int, "queues whose consumer offset is lower than before"] = 0
    findings: Annotated[tuple[GroupFinding, ...], "findings on the changes"] = ()

    @property
    def differs(self) -> bool:
        """Anything differs, even if only offsets do."""
        return self.change != "same" or any((self.lag_growth, self.produced, self.consumed, self.offsets_back))

    def count(self, *changes: Change) -> int:
        return sum(queue.change in changes for queue in self.queues)


class NotCompared(Struct, frozen=True):
    """Something that one snapshot has and the other could not read."""

    kind: Annotated[Literal["topic", "group"], "topic or group"]
    name: Annotated[str, "its name"]
    reason: Annotated[str, "why it could not be read"]


class DiffSummary(Struct, frozen=True, rename="camel"):
    """The differences in numbers."""

    groups: Annotated[int, "in either snapshot, those not compared left out"]
    groups_changed: Annotated[int, Figure("groups that are new, gone, or differ in more than offsets", of="groups")]
    groups_added: Annotated[int, Figure("groups only in the second snapshot")]
    groups_removed: Annotated[int, Figure("groups only in the first snapshot")]
    topics: Annotated[int, "in either snapshot, those not compared left out"]
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
    pending: Annotated[int, Figure("queues that have not yet reached the owners that the changes give them")]
    unexplained: Annotated[int, Figure("queues whose new owners no change explains")]
    lag_growth: Annotated[
        int | None, Figure("growth of the lag in groups where it grew", unknown="if known for no group")
    ]
    offsets_back: Annotated[int, Figure("queues whose consumer offset is lower than before")]


class SnapshotDiff(Result, frozen=True):
    """Two snapshots of a cluster compared."""

    before: Annotated[SnapshotSide, "the first snapshot"]
    after: Annotated[SnapshotSide, "the second snapshot"]
    summary: Annotated[DiffSummary, "the differences in numbers"]
    groups: Annotated[tuple[GroupDiff, ...], "brokers that differ, by name"]
    topics: Annotated[tuple[TopicDiff, ...], "topics whose routes differ, by name"]
    not_compared: Annotated[tuple[NotCompared, ...], "what one snapshot could not read"]
    conditions: tuple[TriedCondition, ...] = ()


class PredictedGroup(Struct, frozen=True, rename="camel"):
    """A group, and the owners that a plan or a simulation predicted."""

    group: Annotated[str, "its name"]
    kind: Annotated[Literal["plan", "simulation"], "plan or simulation"]
    placeholders: Annotated[Mapping[str, str], "placeholder consumer → the client ID that replaced it"]
    queues: Annotated[tuple[QueueComparison, ...], "queue by queue; the times are null"]


class PredictionSummary(Struct, frozen=True, rename="camel"):
    """A stored prediction in numbers."""

    queues: Annotated[int, "the queues that it predicts"]
    differences: Annotated[int, Figure("queues with other owners than predicted", of="queues")]
    other_owner: Annotated[int, Figure("of these, queues with owners of neither before nor after", of="queues")]
    not_yet: Annotated[int, Figure("of these, queues that still have their former owners", of="queues")]
    unknown: Annotated[int, Figure("queues whose owners are unknown", of="queues")]


class PredictionDiff(Result, frozen=True):
    """A stored plan or simulation compared with a snapshot, to see whether it went as planned."""

    prediction: Annotated[str, "the file of the plan or simulation"]
    after: Annotated[SnapshotSide, "the snapshot"]
    summary: Annotated[PredictionSummary, "the comparison in numbers"]
    groups: Annotated[tuple[PredictedGroup, ...], "the groups of the prediction, by name"]
    conditions: tuple[TriedCondition, ...] = ()
