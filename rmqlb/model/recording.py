"""A live group's owners over time, as the samples show them.

- Times count in milliseconds since the last answer of the first sample. A sample takes some time: each consumer
  reported its queues between the sample's first request (`asked_at`) and its last answer (`answered_at`).
- A change lies between the request of the last sample with the former state and the answer of the first sample with the
  new one. A change that is undone between two samples stays unseen.
- A consumer that did not answer may still own its queues, and may own others.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Figure, Microseconds, TriedCondition
from rmqlb.model.simulate_rebalance import OfQueue, OwnerState

Ended = Literal["converged", "time", "interrupted"]
ConvergedBy = Literal["prediction", "unchanged"]
KnownState = OwnerState | Literal["unknown"]
AlignedBy = Literal["event-at", "left", "first-change"]
LineChange = Literal[
    "owners", "gained", "lost", "joined", "left", "silent", "answers", "failed", "seen", "converged", "ended"
]
Outcome = Literal["as-predicted", "earlier", "later", "other-owner", "not-yet", "unknown"]
OUTCOMES: tuple[Outcome, ...] = ("other-owner", "not-yet", "later", "earlier", "unknown", "as-predicted")
DIFFERENCES = OUTCOMES[:4]
_CONVERGED = "when no owner changed, or the group is not converged in the last sample"


class GroupSample(Struct, frozen=True):
    """One sample of a group; `failed` is why it showed nothing."""

    asked_at: int  # time of the first request, in milliseconds since 1970, rounded down
    answered_at: int  # time of the last answer, rounded up
    owned: Mapping[str, frozenset[MessageQueue]] = {}  # client ID → its queues; absent without an answer
    unanswered: Mapping[str, str] = {}  # client ID → why a listed consumer did not answer
    listed: frozenset[str] | None = None  # all consumers in brokers' lists; None when a list is missing
    routes: Mapping[str, tuple[MessageQueue, ...]] = {}  # topic → readable queues, of the routes that were read
    predicted: Mapping[MessageQueue, tuple[str, ...]] | None = None  # owners under the reported strategy, if known
    strategy: str | None = None
    failed: str | None = None


class Between(Struct, frozen=True, rename="camel"):
    """A stretch of time."""

    from_ms: Annotated[int, "its begin; for a change, the request of the last sample with the former state"]
    to_ms: Annotated[int, "its end; for a change, the last answer of the first sample with the new state"]


class OwnerChange(Between, frozen=True):
    """A consumer gained a queue, or lost it."""

    change: Annotated[Literal["gained", "lost"], "gained or lost"]
    client_id: str


class ConsumerChange(Between, frozen=True):
    """A consumer came to the lists of the brokers, or left all of them."""

    change: Annotated[Literal["joined", "left"], "joined or left"]
    client_id: str


class Silence(Between, frozen=True):
    """A stretch in which a consumer's queues are unknown: from its last answer before to its first one after."""

    reason: Annotated[str, "why it did not answer"]


class RecordedInterval(Between, frozen=True):
    """A stretch of time in which the known owners of a queue do not change."""

    state: Annotated[KnownState, "gone, unassigned, one, duplicate-owners or unknown (a change, or no answer)"]
    owners: Annotated[tuple[str, ...], "client IDs that own it for certain, sorted"]

    from_us = Microseconds("from_ms")
    to_us = Microseconds("to_ms")


class QueueRecording(OfQueue, frozen=True, rename="camel"):
    """One queue over the whole recording."""

    owners_before: Annotated[tuple[str, ...] | None, "its owners in the first sample; null when they are unknown"]
    owners_after: Annotated[tuple[str, ...] | None, "its owners in the last sample; null when they are unknown"]
    longest_gap_at_least_ms: Annotated[int, "lower bound of the longest time without owner"]
    longest_gap_at_most_ms: Annotated[int, "upper bound of it"]
    longest_overlap_at_least_ms: Annotated[int, "longest overlap, at least"]
    longest_overlap_at_most_ms: Annotated[int, "upper bound of it"]
    changes: Annotated[tuple[OwnerChange, ...], "changes of its owners, in the order in which they were seen"]
    intervals: Annotated[tuple[RecordedInterval, ...], "they cover the time from 0 to the end; neighbours differ"]

    @property
    def longest_bad_ms(self) -> float:
        return max(self.longest_gap_at_least_ms, self.longest_overlap_at_least_ms)


class ConsumerRecording(Struct, frozen=True, rename="camel"):
    """A consumer over the whole recording."""

    client_id: str
    queues_before: Annotated[int | None, "queues that it owned in the first sample; null when it did not report them"]
    queues_after: Annotated[int | None, "queues that it owned in the last sample; null when it did not report them"]
    gained: Annotated[int, "queues that it gained, each time counted"]
    lost: Annotated[int, "queues that it lost, each time counted"]
    changes: Annotated[tuple[ConsumerChange, ...], "when it joined or left the group"]
    silences: Annotated[tuple[Silence, ...], "when it did not answer"]


class RecordingFigures(Struct, frozen=True, rename="camel"):
    """A recording in numbers; of two bounds the truth is between them."""

    queues: Annotated[int, "number of queues"]
    changed: Annotated[int, Figure("queues that changed owners", of="queues")]
    moved: Annotated[int, Figure("queues with other owners at the end", of="queues")]
    unassigned: Annotated[int, Figure("queues unassigned at the end", of="queues")]
    duplicate_owners: Annotated[int, Figure("queues with duplicate owners at the end", of="queues")]
    unknown: Annotated[int, Figure("queues with unknown owners at the end", of="queues")]
    longest_gap_at_least_ms: Annotated[int, Figure("longest gap, at least")]
    longest_gap_at_most_ms: Annotated[int, Figure("longest gap, at most")]
    longest_overlap_at_least_ms: Annotated[int, Figure("longest overlap, at least")]
    longest_overlap_at_most_ms: Annotated[int, Figure("longest overlap, at most")]
    convergence_at_least_ms: Annotated[int | None, Figure("converged after, at least", unknown=_CONVERGED)]
    convergence_at_most_ms: Annotated[int | None, Figure("converged after, at most", unknown=_CONVERGED)]
    failed_samples: Annotated[int, Figure("failed samples")]


class QueueComparison(OfQueue, frozen=True, rename="camel"):
    """A queue as it was recorded and as it was predicted."""

    outcome: Annotated[Outcome, "as-predicted, earlier, later, other-owner, not-yet (former owners) or unknown"]
    owners_predicted: Annotated[tuple[str, ...], "predicted client IDs, sorted; placeholders replaced by real ones"]
    owners_after: Annotated[tuple[str, ...] | None, "the owners in the last sample; null when they are unknown"]
    predicted_from_ms: Annotated[int | None, "when it gets them, in the recording's time; null without times"] = None
    predicted_to_ms: Annotated[int | None, "the latest such time of all trials and possible event times"] = None
    seen_from_ms: Annotated[int | None, "earliest time at which it got them; null when they did not change"] = None
    seen_to_ms: Annotated[int | None, "latest time at which it got them"] = None

    @property
    def beside_ms(self) -> int:
        """The least time by which it was earlier or later."""
        if self.outcome == "later" and self.seen_from_ms is not None and self.predicted_to_ms is not None:
            return self.seen_from_ms - self.predicted_to_ms
        if self.outcome == "earlier" and self.seen_to_ms is not None and self.predicted_from_ms is not None:
            return self.predicted_from_ms - self.seen_to_ms
        return 0


class RecordingComparison(Struct, frozen=True, rename="camel"):
    """A recording compared with a plan or a simulation made before."""

    file: Annotated[str, "the file with the prediction"]
    kind: Annotated[Literal["plan", "simulation"], "plan (only owners) or simulation (also times)"]
    aligned_by: Annotated[AlignedBy | None, "the event that times are counted from, there and here; null for a plan"]
    aligned_from_ms: Annotated[int | None, "earliest time of that event in the recording; null for a plan"]
    aligned_to_ms: Annotated[int | None, "latest time of that event"]
    tolerance_ms: Annotated[int, "largest difference in time that still counts as predicted"]
    placeholders: Annotated[Mapping[str, str], "placeholder of the prediction → the client ID that replaced it"]
    differences: Annotated[int, Figure("queues earlier, later, not yet or with another owner", of="compared")]
    queues: Annotated[tuple[QueueComparison, ...], "queue by queue"]

    @property
    def compared(self) -> int:
        return len(self.queues)

    def count(self, outcome: Outcome) -> int:
        return sum(queue.outcome == outcome for queue in self.queues)

    @property
    def other_owner(self) -> Annotated[int, Figure("queues with another owner", of="compared")]:
        return self.count("other-owner")

    @property
    def not_yet(self) -> Annotated[int, Figure("queues that still have their former owners", of="compared")]:
        return self.count("not-yet")

    @property
    def later(self) -> Annotated[int, Figure("queues that got their owners later", of="compared")]:
        return self.count("later")

    @property
    def earlier(self) -> Annotated[int, Figure("queues that got their owners earlier", of="compared")]:
        return self.count("earlier")


class Recording(Struct, frozen=True, rename="camel"):
    """The owners of a live group's queues over time."""

    group: Annotated[str, "the group"]
    started_at: Annotated[str, "when the first sample had its last answer, ISO-8601 in UTC; all times count from there"]
    end_ms: Annotated[int, "where the time axis ends: the request of the last sample"]
    every_ms: Annotated[int, "time between two samples"]
    samples: Annotated[int, "number of samples"]
    ended: Annotated[Ended, "converged, time (the time was over) or interrupted"]
    converged_by: Annotated[ConvergedBy | None, "prediction, unchanged (none is possible) or null (not converged)"]
    strategy: Annotated[str | None, "that the consumers report in the last sample; null when it is not known"]
    event_at_ms: Annotated[int | None, "when the event happened, from --event-at; null without it"]
    figures: Annotated[RecordingFigures, "the recording in numbers"]
    queues: Annotated[tuple[QueueRecording, ...], "queue by queue, in the clients' order"]
    consumers: Annotated[tuple[ConsumerRecording, ...], "consumer by consumer, in the clients' order"]
    comparison: Annotated[RecordingComparison | None, "with the prediction of --against; null without it"] = None
    conditions: tuple[TriedCondition, ...] = ()

    end_us = Microseconds("end_ms")
    broadcasting = False  # a group that is BROADCASTING is not recorded

    @property
    def client_ids(self) -> tuple[str, ...]:
        return tuple(consumer.client_id for consumer in self.consumers)

    @property
    def events(self) -> tuple[Event, ...]:
        """For a picture; a consumer joins or leaves when first observed."""
        return tuple(
            Event("join" if change.change == "joined" else "leave", max(change.to_ms, 0) * 1000, change.client_id)
            for change in self.consumer_changes
        )

    @property
    def consumer_changes(self) -> list[ConsumerChange]:
        found = [change for consumer in self.consumers for change in consumer.changes]
        return sorted(found, key=lambda change: (change.to_ms, change.from_ms))

    @property
    def changes(self) -> list[tuple[QueueRecording, OwnerChange]]:
        found = [(queue, change) for queue in self.queues for change in queue.changes]
        return sorted(found, key=lambda pair: (pair[1].to_ms, pair[1].from_ms))


class RecordLine(Struct, frozen=True, rename="camel"):
    """The news of a sample, a line each; the queue, the consumer and the owners are null where it is not about one."""

    at: Annotated[str, "when the sample had its last answer, ISO-8601 in UTC"]
    sample: Annotated[int | None, "its number, from 1; null where a recording is shown again"]
    change: Annotated[LineChange, "owners of the first sample, a later change, no answer, or the end"]
    topic: str | None = None
    broker_name: str | None = None
    queue_id: int | None = None
    client_id: str | None = None
    not_before: Annotated[str | None, "request of the last sample with the former state; null for no change"] = None
    not_after: Annotated[str | None, "the last answer of the sample that shows it, or null"] = None
    state: Annotated[KnownState | None, "of the queue from then on; null where a recording is shown again"] = None
    owners: Annotated[tuple[str, ...] | None, "known owners from then on, sorted; null in the same cases"] = None
    reason: Annotated[str | None, "in a line: why there is no answer, why it ended; or null"] = None
