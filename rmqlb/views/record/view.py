"""A recording as a report: the picture of simulate-rebalance, the changes with their intervals, the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from rmqlb.model.group_scenario import Event
from rmqlb.model.recording import (
    DIFFERENCES,
    ConsumerRecording,
    QueueRecording,
    Recording,
    RecordingComparison,
    RecordingFigures,
)
from rmqlb.views.record.facts import OUTCOME_WORDS, gravity, recording_facts, recording_settings
from rmqlb.views.report import (
    NOT_THERE,
    QUEUE_COLUMNS,
    Cell,
    Column,
    Report,
    Section,
    duration,
    first_places,
    labels,
    rows_of,
    worst,
)
from rmqlb.views.timeline import SYMBOLS, letter_styles, symbols, timeline_section

_MOST_ROWS = 40
_BOUNDS = (("longest gap", "longest_gap"), ("longest overlap", "longest_overlap"), ("converged after", "convergence"))
_COUNTS = (
    ("queues", "queues"),
    ("queues that changed owners", "changed"),
    ("queues with other owners at the end", "moved"),
    ("queues unassigned at the end", "unassigned"),
    ("queues with duplicate owners at the end", "duplicateOwners"),
    ("queues with unknown owners at the end", "unknown"),
    ("failed looks", "failedLooks"),
)


class RecordedGroup(Struct, frozen=True):
    """A recording as pictures of groups over time take it; times in microseconds."""

    client_ids: tuple[str, ...]
    events: tuple[Event, ...]
    end_us: int
    queues: tuple[QueueRecording, ...]
    broadcasting: bool = False


def recorded_group(recording: Recording) -> RecordedGroup:
    """The value that is drawn; who joined or left is an event, when it was first seen."""
    kinds = {"joined": "join", "left": "leave"}
    events = [
        Event("join" if kinds[change.change] == "join" else "leave", max(change.to_ms, 0) * 1000, change.client_id)
        for change in recording.consumer_changes
    ]
    members = tuple(consumer.client_id for consumer in recording.consumers)
    return RecordedGroup(members, tuple(events), recording.end_ms * 1000, recording.queues)


def recording_report(recording: Recording) -> Report:
    """The recording for people and machines."""
    group = recorded_group(recording)
    compared = recording.comparison
    changes = _changes(recording)
    sections = (
        *(() if compared is None or not compared.differences else (_differences(compared),)),
        timeline_section(group),
        _consumers(recording),
        changes,
        _queues(recording.queues),
        _intervals(recording.queues),
        *(() if compared is None else (_comparison(compared),)),
        _summary(recording.figures),
    )
    ids = group.client_ids
    return Report(
        "rmqlb/record",
        recording,
        recording_facts(recording),
        sections,
        symbols(ids) if len(ids) <= len(SYMBOLS) else labels(ids),
        tables=(changes, *(section for section in sections if section is not changes)),
        grave=gravity(recording),
        closing=recording_settings(recording),
    )


def _changes(recording: Recording) -> Section:
    columns = (Column("from", "fromMs", "ms"), Column("to", "toMs", "ms"))
    rows = tuple(
        (*(change.from_ms, change.to_ms), change.change, (change.client_id,), *_name(queue))
        for queue, change in recording.changes
    )
    heads = (*columns, Column("change", "change"), Column("consumer", "clientId", "clients"), *QUEUE_COLUMNS)
    brief = first_places(len(rows), _MOST_ROWS)
    title = "changes, each between two looks"
    return Section(
        "changes", title, heads, rows, heads=2, brief=brief, chosen=f"the first {_MOST_ROWS}", audience="scripts"
    )


def _name(queue: QueueRecording) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id


def _consumers(recording: Recording) -> Section:
    letters = symbols([each.client_id for each in recording.consumers])
    events = {each.client_id: _events(each) for each in recording.consumers}
    columns = (
        Column("", "letter", styles=letter_styles(letters), of=lambda each: letters[each.client_id]),
        Column("consumer", "clientId"),
        Column("before", "queuesBefore", "number"),
        Column("after", "queuesAfter", "number"),
        Column("gained", "gained", "number"),
        Column("lost", "lost", "number"),
        Column("events", "events", shown=any(events.values()), of=lambda each: events[each.client_id]),
    )
    found = recording.consumers
    badness = [each.gained + each.lost + len(each.changes) + len(each.silences) for each in found]
    brief = worst(badness, _MOST_ROWS)
    return Section("consumers", "consumers: queues before and after", columns, rows_of(columns, found), 2, brief=brief)


def _events(each: ConsumerRecording) -> str:
    told = [(one.to_ms, f"{one.change} by {duration(max(one.to_ms, 0))}") for one in each.changes]
    told += [(one.to_ms, f"no answer from {duration(one.from_ms)} to {duration(one.to_ms)}") for one in each.silences]
    return ", ".join(text for _, text in sorted(told))


def _queues(queues: Sequence[QueueRecording]) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        Column("before", "ownersBefore", "clients"),
        Column("after", "ownersAfter", "clients"),
        Column("changes", "changes", "number", of=lambda queue: len(queue.changes)),
        Column("longest gap, at least", "longestGapAtLeastMs", "ms"),
        Column("at most", "longestGapAtMostMs", "ms"),
        Column("longest overlap, at least", "longestOverlapAtLeastMs", "ms"),
        Column("at most", "longestOverlapAtMostMs", "ms"),
    )
    brief = worst([len(queue.changes) + queue.longest_bad_ms for queue in queues], _MOST_ROWS)
    return Section("queues", "queues", columns, rows_of(columns, queues), heads=3, named_only=True, brief=brief)


def _intervals(queues: Sequence[QueueRecording]) -> Section:
    columns = (
        Column("from", "fromMs", "ms"),
        Column("to", "toMs", "ms"),
        Column("state", "state"),
        Column("owners", "owners", "clients"),
    )
    rows = tuple((*_name(queue), *row) for queue in queues for row in rows_of(columns, queue.intervals))
    return Section("intervals", "intervals", (*QUEUE_COLUMNS, *columns), rows, heads=3, named_only=True)


_COMPARED = (
    *QUEUE_COLUMNS,
    Column("outcome", "outcome", of=lambda queue: OUTCOME_WORDS[queue.outcome]),
    Column("predicted", "ownersPredicted", "clients", of=lambda queue: queue.owners_predicted or NOT_THERE),
    Column("seen", "ownersAfter", "clients"),
    Column("predicted from", "predictedFromMs", "ms"),
    Column("to", "predictedToMs", "ms"),
    Column("seen from", "seenFromMs", "ms"),
    Column("to", "seenToMs", "ms"),
)


def _differences(compared: RecordingComparison) -> Section:
    found = [queue for queue in compared.queues if queue.outcome in DIFFERENCES]
    brief = first_places(len(found), _MOST_ROWS)
    title = "queues that differ from the prediction"
    return Section("differences", title, _COMPARED, rows_of(_COMPARED, found), heads=3, brief=brief)


def _comparison(compared: RecordingComparison) -> Section:
    rows = rows_of(_COMPARED, compared.queues)
    return Section("comparison", "queue by queue, as predicted and as seen", _COMPARED, rows, heads=3, named_only=True)


def _summary(figures: RecordingFigures) -> Section:
    """In numbers; CSV has each as a text and as a number."""
    columns = (
        Column("", "figure"),
        Column("value", "shown"),
        Column("", "name", shown=False),
        Column("", "value", "number", shown=False),
    )
    by_key = dict(zip(figures.__struct_encode_fields__, figures.__struct_fields__, strict=True))
    rows: list[tuple[Cell, ...]] = []
    for title, key in _COUNTS:
        value = getattr(figures, by_key[key])
        rows.append((title, str(value), key, value))
    for title, name in _BOUNDS:
        for bound, words in (("at_least_ms", "at least"), ("at_most_ms", "at most")):
            value = getattr(figures, f"{name}_{bound}")
            key = figures.__struct_encode_fields__[figures.__struct_fields__.index(f"{name}_{bound}")]
            rows.append((f"{title}, {words}", "not converged" if value is None else duration(value), key, value))
    return Section("summary", "summary", columns, tuple(rows), named_only=True, audience="scripts")
