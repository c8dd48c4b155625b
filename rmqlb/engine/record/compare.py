"""Compare a recording with an earlier plan or simulation: queue by queue, by owners, and by times if it has any.

Rules of this file:
- Recorded times are intervals, and predicted times may be (several trials, an uncertain time of the event). A queue is
  earlier or later only if the two intervals and the tolerance do not overlap.
- A simulation's times are aligned with the recording's at one moment that both have: the event, or the first change.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.conditions import Condition, FailOn, declared
from rmqlb.engine.plan.changes import PLACEHOLDER_PREFIX
from rmqlb.errors import UsageError
from rmqlb.model import recording as result
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids
from rmqlb.model.plan import TopicPlan
from rmqlb.model.result import TriedCondition
from rmqlb.model.simulate_rebalance import QueueTimeline

_LEAVING = ("leave", "crash", "host-loss")
Owners = Mapping[MessageQueue, tuple[str, ...]]


class Expected(Struct, frozen=True):
    kind: Literal["plan", "simulation"]
    before: Owners  # queue → its owners at the beginning
    after: Owners  # queue → its owners at the end
    # queue → when it gets its new owners, in each trial; a plan has no times
    gained_ms: Mapping[MessageQueue, tuple[float, ...]] = {}
    first_change_ms: tuple[float, ...] = ()  # time of the first change of an owner, in each trial
    event: tuple[str, str, float] | None = None  # kind, subject and time of the first event; None in a plan

    def placeholders(self, client_ids: Set[str]) -> dict[str, str]:
        """Placeholder → the consumer that joined in its place, both in the clients' order."""
        known = {each for owners in (*self.before.values(), *self.after.values()) for each in owners}
        invented = sort_client_ids(each for each in known if each.startswith(PLACEHOLDER_PREFIX))
        came = sort_client_ids(client_ids - known)
        return dict(zip(invented, came, strict=True)) if len(invented) == len(came) else {}

    def compare(
        self,
        queue: MessageQueue,
        observed: tuple[str, ...] | None,
        names: Mapping[str, str],
        before: tuple[str, ...] | None = None,
    ) -> result.QueueComparison:
        """Compare a queue by its owners alone; `names` has the consumers that joined for placeholders.

        A queue with some of its old and new owners has not moved yet; predicted old owners replace unobserved ones.
        """
        owners = tuple(sort_client_ids(names.get(each, each) for each in self.after[queue]))
        was = tuple(sort_client_ids(self.before.get(queue, ()))) if before is None else before
        outcome: result.Outcome = "as-predicted"
        if observed is None:
            outcome = "unknown"
        elif observed != owners:
            outcome = "not-yet" if was != owners and set(observed) <= {*was, *owners} else "other-owner"
        return result.QueueComparison(queue.topic, queue.broker_name, queue.queue_id, outcome, owners, observed)


def planned(topics: Iterable[TopicPlan]) -> Expected:
    moves = [(MessageQueue(topic.topic, m.broker_name, m.queue_id), m) for topic in topics for m in topic.queues]
    return Expected("plan", {q: m.owners_before for q, m in moves}, {q: m.owners_after for q, m in moves})


def simulated(trials: Sequence[Sequence[QueueTimeline]], event: tuple[str, str, float] | None = None) -> Expected:
    """The prediction of a simulation's trials, with the final owners of the first trial."""
    first = [one for one in trials[0] if one.intervals]
    gained = grouped((one.queue, at) for trial in trials for one in trial if (at := gained_at(one)) is not None)
    changes = []
    for trial in trials:
        times = [then.from_ms for one in trial for was, then in pairwise(one.intervals) if was.owners != then.owners]
        changes += [min(times)] if times else []
    return Expected(
        "simulation",
        {one.queue: tuple(dict.fromkeys(one.intervals[0].owners)) for one in first},
        {one.queue: tuple(dict.fromkeys(one.intervals[-1].owners)) for one in first},
        {queue: tuple(times) for queue, times in gained.items()},
        tuple(changes),
        event,
    )


def gained_at(one: QueueTimeline) -> float | None:
    """The time at which a queue gets its final owners; None if it always had them, or has none."""
    last = one.intervals[-1].owners if one.intervals else ()
    pairs = pairwise(one.intervals)
    times = (then.from_ms for was, then in pairs if any(i in then.owners and i not in was.owners for i in last))
    return max(times, default=None)


def placed(seen: tuple[float, float], predicted: tuple[float, float], tolerance: float) -> result.Outcome:
    """Whether a moment in one interval is clearly before or after a moment in the other, in any one unit."""
    if seen[1] < predicted[0] - tolerance:
        return "earlier"
    return "later" if seen[0] > predicted[1] + tolerance else "as-predicted"


def compared(
    recording: result.Recording, expected: Expected, file: str, tolerance_ms: int
) -> result.RecordingComparison:
    names = expected.placeholders({each.client_id for each in recording.consumer_changes if each.change == "joined"})
    by, anchor, zero = _aligned(recording, expected)
    queues = []
    for queue in recording.queues:
        if queue.queue not in expected.after:
            continue
        found = expected.compare(queue.queue, queue.owners_after, names, queue.owners_before)
        times, when = expected.gained_ms.get(queue.queue, ()), None
        if times and anchor is not None:
            when = round(anchor.from_ms + min(times) - zero[1]), round(anchor.to_ms + max(times) - zero[0])
            found = replace(found, predicted_from_ms=when[0], predicted_to_ms=when[1])
        gains = [one for one in queue.changes if one.change == "gained" and one.client_id in (queue.owners_after or ())]
        if gains:
            seen = max(one.from_ms for one in gains), max(one.to_ms for one in gains)
            found = replace(found, seen_from_ms=seen[0], seen_to_ms=seen[1])
            if when is not None and found.outcome == "as-predicted":
                found = replace(found, outcome=placed(seen, when, tolerance_ms))
        queues.append(found)
    return result.RecordingComparison(
        file=file,
        kind=expected.kind,
        aligned_by=by,
        aligned_from_ms=None if anchor is None else anchor.from_ms,
        aligned_to_ms=None if anchor is None else anchor.to_ms,
        tolerance_ms=tolerance_ms,
        placeholders=names,
        differences=sum(each.outcome in result.DIFFERENCES for each in queues),
        queues=tuple(queues),
    )


def _aligned(
    recording: result.Recording, expected: Expected
) -> tuple[result.AlignedBy | None, result.Between | None, tuple[float, float]]:
    """The event that aligns the times: its kind, its time in the recording, and its time in the simulation."""
    if expected.kind == "plan":
        return None, None, (0, 0)
    kind, subject, at_ms = expected.event or ("", "", 0)
    if recording.event_at_ms is not None and expected.event is not None:
        return "event-at", result.Between(recording.event_at_ms, recording.event_at_ms), (at_ms, at_ms)
    if kind in _LEAVING:
        for change in recording.consumer_changes:
            if (change.change, change.client_id) == ("left", subject):
                return "left", change, (at_ms, at_ms)
    changes = [change for queue in recording.queues for change in queue.changes]
    if not changes or not expected.first_change_ms:
        return None, None, (0, 0)
    first = result.Between(min(each.from_ms for each in changes), min(each.to_ms for each in changes))
    return "first-change", first, (min(expected.first_change_ms), max(expected.first_change_ms))


_OF_RECORDING, _OF_COMPARISON = declared(result.RecordingFigures), declared(result.RecordingComparison)
FIGURES = FailOn((*_OF_RECORDING.names, *_OF_COMPARISON.names), shares=(*_OF_RECORDING.shares, *_OF_COMPARISON.shares))


def judged(conditions: Iterable[Condition], recording: result.Recording) -> tuple[TriedCondition, ...]:
    return tuple(_judged(condition, recording) for condition in conditions)


def must_be_askable(conditions: Iterable[Condition], *, is_compared: bool) -> None:
    for condition in conditions:
        if condition.name in _OF_COMPARISON.names and not is_compared:
            raise UsageError(
                f"--fail-on {condition.text!r}: against which prediction?", hint="name the prediction with --against"
            )


def _judged(condition: Condition, recording: result.Recording) -> TriedCondition:
    if condition.name in _OF_COMPARISON.names and recording.comparison is not None:
        return condition.judge(recording.comparison)
    tried = condition.judge(recording.figures)
    if tried.value is not None:
        return tried
    is_over = recording.converged_by is not None
    return condition.try_on(0, recording.figures.queues) if is_over else condition.try_on_endless()
