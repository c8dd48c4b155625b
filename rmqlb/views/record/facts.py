"""The lines above the tables of a recording: what happened, how long, and whether it was as predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.recording import OUTCOMES, ConsumerRecording, QueueComparison, Recording, RecordingComparison
from rmqlb.model.words import counted, of_all
from rmqlb.views.report import BETWEEN, about, duration

OUTCOME_WORDS = {
    "as-predicted": "as predicted",
    "earlier": "earlier",
    "later": "later",
    "other-owner": "with another owner",
    "not-yet": "not yet moved",
    "unknown": "unknown",
}
_MOST_NAMES = 4
_ALIGNED = {
    "event-at": "the simulation's first event is set at --event-at",
    "left": "the simulation's first event is set where its consumer left the group",
    "first-change": "the simulation's first change of an owner is set at the first one here",
}
_ENDED = {"converged": "", "time": "", "interrupted": "interrupted, "}


def recording_facts(recording: Recording) -> tuple[str, ...]:
    """The verdict, then what it rests on."""
    compared = recording.comparison
    return (
        f"{recording.group}: {'; '.join(_verdict(recording))}",
        *(() if compared is None else (f"  {_against(compared)}",)),
        f"  {BETWEEN.join(_looked(recording))}",
    )


def gravity(recording: Recording) -> str:
    """How grave it is: error of queues without owner or with several at the end, or of other owners than predicted."""
    f, compared = recording.figures, recording.comparison
    outcomes = set() if compared is None else {queue.outcome for queue in compared.queues}
    if f.unassigned or f.duplicate_owners or "other-owner" in outcomes:
        return ERROR
    unsure = f.unknown or f.failed_looks or (f.changed and recording.converged_by is None)
    return WARNING if unsure or (compared is not None and compared.differences) else "inOrder"


def recording_settings(recording: Recording) -> tuple[str, ...]:
    """What it was made by, and what the times mean."""
    strategy = "" if recording.strategy is None else f"; consumers report {recording.strategy}"
    lines = [f"times count from {recording.started_at}, when the first look was answered{strategy}"]
    lines.append("a change lies between two looks; what changes and changes back between two looks is not seen")
    compared = recording.comparison
    if compared is not None and compared.aligned_by is not None:
        lines.append(f"{_ALIGNED[compared.aligned_by]}; tolerance {duration(compared.tolerance_ms)}")
    return tuple(lines)


def _verdict(recording: Recording) -> Iterator[str]:
    f = recording.figures
    if f.changed:
        yield f"{of_all(f.changed, f.queues)} changed {'owner' if f.changed == 1 else 'owners'}"
    else:
        yield f"no owner of {counted(f.queues, 'queue')} changed"
    bad = [
        f"{number} {what}"
        for number, what in ((f.unassigned, "unassigned"), (f.duplicate_owners, "with duplicate owners"))
        if number
    ]
    if bad:
        yield f"{' and '.join(bad)} at the end"
    if f.unknown:
        yield f"the owners of {f.unknown} are unknown at the end"
    yield from _gap(recording)
    yield from _overlap(recording)
    yield _converged(recording)


def _gap(recording: Recording) -> Iterator[str]:
    f = recording.figures
    if not f.longest_gap_at_most_ms or not f.changed:
        return
    worst = max(recording.queues, key=lambda q: (q.longest_gap_at_least_ms, q.longest_gap_at_most_ms))
    where = f" ({worst.topic} {worst.broker_name} {worst.queue_id})" if f.longest_gap_at_least_ms else ""
    least = f", at least {about(f.longest_gap_at_least_ms)}" if f.longest_gap_at_least_ms else ""
    yield f"longest gap at most {about(f.longest_gap_at_most_ms)}{least}{where}"


def _overlap(recording: Recording) -> Iterator[str]:
    """An overlap that is certain; what is only possible is in the tables."""
    f = recording.figures
    if f.longest_overlap_at_least_ms:
        yield (
            f"longest overlap at most {about(f.longest_overlap_at_most_ms)}, "
            f"at least {about(f.longest_overlap_at_least_ms)}"
        )


def _converged(recording: Recording) -> str:
    f = recording.figures
    if recording.converged_by is None:
        return "not converged when the recording ended" if f.changed else "the group is not known to be converged"
    how = " as predicted" if recording.converged_by == "prediction" else ", as far as can be known: unchanged for 25 s"
    if f.convergence_at_most_ms is None:
        return f"converged{how}"
    after = "the event" if recording.event_at_ms is not None else "the first change"
    return f"converged{how} at most {about(f.convergence_at_most_ms)} after {after}"


def _looked(recording: Recording) -> Iterator[str]:
    f = recording.figures
    failed = f", {f.failed_looks} failed" if f.failed_looks else ""
    yield (
        f"{_ENDED[recording.ended]}{counted(recording.looks, 'look')} in {about(recording.end_ms)}, "
        f"one every {duration(recording.every_ms)}{failed}"
    )
    changes = recording.consumer_changes
    if changes:
        signs = [("+ " if change.change == "joined" else "- ") + change.client_id for change in changes]
        more = f" and {len(signs) - _MOST_NAMES} more" if len(signs) > _MOST_NAMES else ""
        yield ", ".join(signs[:_MOST_NAMES]) + more
    silent = [consumer for consumer in recording.consumers if consumer.silences]
    if silent:
        yield _silent(silent)


def _silent(consumers: list[ConsumerRecording]) -> str:
    longest = max(one.to_ms - one.from_ms for consumer in consumers for one in consumer.silences)
    names = ", ".join(consumer.client_id for consumer in consumers[:_MOST_NAMES])
    more = f" and {len(consumers) - _MOST_NAMES} more" if len(consumers) > _MOST_NAMES else ""
    return f"{names}{more} did not answer for up to {about(longest)}"


def _against(compared: RecordingComparison) -> str:
    counts = Counter(queue.outcome for queue in compared.queues)
    whole = len(compared.queues)
    told = [f"{of_all(counts['as-predicted'], whole)} as {compared.file} predicts"]
    told += [
        f"{counts[outcome]} {OUTCOME_WORDS[outcome]}{_worst(compared, outcome)}"
        for outcome in OUTCOMES
        if outcome != "as-predicted" and counts[outcome]
    ]
    if compared.placeholders:
        told.append(", ".join(f"{came} came for {name}" for name, came in compared.placeholders.items()))
    return "; ".join(told)


def _worst(compared: RecordingComparison, outcome: str) -> str:
    """The queue that is furthest beside the prediction, or the first of other owners."""
    of: list[QueueComparison] = [queue for queue in compared.queues if queue.outcome == outcome]
    worst = max(of, key=lambda queue: queue.beside_ms)
    beside = f" by {about(worst.beside_ms)}" if worst.beside_ms else ""
    return f" ({worst.topic} {worst.broker_name} {worst.queue_id}{beside})"
