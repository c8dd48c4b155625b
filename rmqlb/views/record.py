from collections.abc import Iterator, Sequence

from rmqlb.model import recording as model
from rmqlb.model.result import ERROR, WARNING, annotated_figures, counted, named, of_all
from rmqlb.views.columns import NOT_THERE, QUEUE_COLUMNS, Cell, Column, columns_from, columns_of, rows_of
from rmqlb.views.numbers import about, duration, moment
from rmqlb.views.report import BETWEEN, Report, Section, section_of, worst
from rmqlb.views.timeline import consumer_labels, intervals_section, symbols, timeline_section

_MOST_ROWS = 40
_OUTCOMES = {outcome: outcome.replace("-", " ") for outcome in model.OUTCOMES}
_OUTCOMES |= {"other-owner": "with another owner", "not-yet": "not yet moved"}
_ALIGNED = {
    "event-at": "the simulation's first event is aligned with --event-at",
    "left": "the simulation's first event is aligned with the time when its consumer left the group",
    "first-change": "the simulation's first owner change is aligned with the first one here",
}
_ENDED = {"converged": "", "time": "", "interrupted": "interrupted, "}


def recording_report(recording: model.Recording) -> Report:
    compared, changes, names = recording.comparison, _changes(recording), consumer_labels(recording.client_ids)
    against = () if compared is None else tuple(_comparison(compared))
    first = (section for section in against[:1] if section.rows)
    consumers, intervals = _consumers(recording.consumers), intervals_section(recording.queues, _INTERVALS, heads=3)
    last = (*against[1:], _summary(recording.figures))
    sections = (*first, timeline_section(recording), consumers, changes, _queues(recording.queues), intervals, *last)
    tables = (changes, *(section for section in sections if section is not changes))
    facts, grave, closing = _facts(recording), _gravity(recording), _settings(recording)
    return Report("rmqlb/record", recording, facts, sections, names, tables=tables, grave=grave, closing=closing)


def _facts(recording: model.Recording) -> tuple[str, ...]:
    compared = recording.comparison
    against = () if compared is None else (f"  {_against(compared)}",)
    return f"{recording.group}: {'; '.join(_verdict(recording))}", *against, f"  {BETWEEN.join(_looked(recording))}"


def _gravity(recording: model.Recording) -> str:
    f, compared = recording.figures, recording.comparison
    if f.unassigned or f.duplicate_owners or (compared is not None and compared.other_owner):
        return ERROR
    unsure = f.unknown or f.failed_samples or (f.changed and recording.converged_by is None)
    return WARNING if unsure or (compared is not None and compared.differences) else "inOrder"


def _settings(recording: model.Recording) -> tuple[str, ...]:
    strategy = "" if recording.strategy is None else f"; consumers report {recording.strategy}"
    lines = [f"times count from {recording.started_at}, the response to the first sample{strategy}"]
    lines.append("changes happen between two samples; a change and its reversal between two samples are not observed")
    compared = recording.comparison
    if compared is not None and compared.aligned_by is not None:
        lines.append(f"{_ALIGNED[compared.aligned_by]}; tolerance {duration(compared.tolerance_ms)}")
    return tuple(lines)


def _verdict(recording: model.Recording) -> Iterator[str]:
    f = recording.figures
    if f.changed:
        yield f"{of_all(f.changed, f.queues)} changed {'owner' if f.changed == 1 else 'owners'}"
    else:
        yield f"no owner of {counted(f.queues, 'queue')} changed"
    bad = [f"{f.unassigned} unassigned"] if f.unassigned else []
    bad += [f"{f.duplicate_owners} with duplicate owners"] if f.duplicate_owners else []
    if bad:
        yield f"{' and '.join(bad)} at the end"
    if f.unknown:
        yield f"the owners of {f.unknown} are unknown at the end"
    if f.longest_gap_at_most_ms and f.changed:
        worst = max(recording.queues, key=lambda q: (q.longest_gap_at_least_ms, q.longest_gap_at_most_ms))
        least = ""
        if f.longest_gap_at_least_ms:
            queue = f"{worst.topic} {worst.broker_name} {worst.queue_id}"
            least = f", at least {about(f.longest_gap_at_least_ms)} ({queue})"
        yield f"longest gap at most {about(f.longest_gap_at_most_ms)}{least}"
    if f.longest_overlap_at_least_ms:  # an overlap that is only possible is in the tables
        most, least = about(f.longest_overlap_at_most_ms), about(f.longest_overlap_at_least_ms)
        yield f"longest overlap at most {most}, at least {least}"
    if recording.converged_by is None:
        yield "not converged when the recording ended" if f.changed else "it is unknown whether the group has converged"
        return
    how = " as predicted" if recording.converged_by == "prediction" else " (no prediction: unchanged for 25 s)"
    after = "the event" if recording.event_at_ms is not None else "the first change"
    most = "" if f.convergence_at_most_ms is None else f" at most {about(f.convergence_at_most_ms)} after {after}"
    yield f"converged{how}{most}"


def _looked(recording: model.Recording) -> Iterator[str]:
    f = recording.figures
    failed = f", {f.failed_samples} failed" if f.failed_samples else ""
    yield (
        f"{_ENDED[recording.ended]}{counted(recording.samples, 'sample')} in {about(recording.end_ms)}, "
        f"one every {duration(recording.every_ms)}{failed}"
    )
    changes = recording.consumer_changes
    if changes:
        yield named(("+ " if change.change == "joined" else "- ") + change.client_id for change in changes)
    silent = [consumer for consumer in recording.consumers if consumer.silences]
    if silent:
        longest = max(one.to_ms - one.from_ms for consumer in silent for one in consumer.silences)
        yield f"{named(consumer.client_id for consumer in silent)} did not answer for up to {about(longest)}"


def _against(compared: model.RecordingComparison) -> str:
    parts = [f"{of_all(compared.count('as-predicted'), compared.compared)} as {compared.file} predicts"]
    for outcome in model.OUTCOMES:
        queues = [queue for queue in compared.queues if queue.outcome == outcome]
        if queues and outcome != "as-predicted":  # with the queue that is furthest beside the prediction
            first = max(queues, key=lambda queue: queue.beside_ms)
            beside = f" by {about(first.beside_ms)}" if first.beside_ms else ""
            where = f"{first.topic} {first.broker_name} {first.queue_id}{beside}"
            parts.append(f"{len(queues)} {_OUTCOMES[outcome]} ({where})")
    if compared.placeholders:
        parts.append(", ".join(f"{came} replaces {name}" for name, came in compared.placeholders.items()))
    return "; ".join(parts)


def _changes(recording: model.Recording) -> Section:
    keys = "fromMs=from toMs=to change:text clientId=consumer:clients"
    columns = columns_of(model.OwnerChange, keys, clientId=lambda change: (change.client_id,))
    rows = tuple(
        (*cells, queue.topic, queue.broker_name, queue.queue_id)
        for queue, change in recording.changes
        for cells in rows_of(columns, [change])
    )
    title, shown = "changes, each between two samples", (*columns, *QUEUE_COLUMNS)
    return Section("changes", title, shown, rows, heads=2, audience="scripts")


def _consumers(found: Sequence[model.ConsumerRecording]) -> Section:
    letters = symbols([each.client_id for each in found])
    events = {each.client_id: _events(each) for each in found}
    keys = "clientId=consumer queuesBefore=before queuesAfter=after gained lost events:text?"
    columns = (
        Column("", "letter", of=lambda each: letters[each.client_id]),
        *columns_of(model.ConsumerRecording, keys, events=lambda each: events[each.client_id]),
    )
    brief = worst([each.gained + each.lost + len(each.changes) + len(each.silences) for each in found], _MOST_ROWS)
    return section_of("consumers", "consumers: queues before and after", columns, found, heads=2, brief=brief)


def _events(each: model.ConsumerRecording) -> str:
    parts = [(one.to_ms, f"{one.change} by {moment(max(one.to_ms, 0))}") for one in each.changes]
    parts += [(one.to_ms, f"no answer from {moment(one.from_ms)} to {moment(one.to_ms)}") for one in each.silences]
    return ", ".join(text for _, text in sorted(parts))


def _queues(queues: Sequence[model.QueueRecording]) -> Section:
    columns = (
        *QUEUE_COLUMNS,
        *columns_of(
            model.QueueRecording,
            "ownersBefore=before:clients ownersAfter=after:clients changes longestGapAtLeastMs=longest_gap,_at_least "
            "longestGapAtMostMs=at_most longestOverlapAtLeastMs=longest_overlap,_at_least "
            "longestOverlapAtMostMs=at_most",
            changes=lambda queue: len(queue.changes),
        ),
    )
    return section_of("queues", "queues", columns, queues, heads=3, named_only=True)


_INTERVALS = columns_of(model.RecordedInterval, "fromMs=from toMs=to state:text owners:clients")
_COMPARED = (
    *QUEUE_COLUMNS,
    *columns_of(
        model.QueueComparison,
        "outcome ownersPredicted=predicted:clients ownersAfter=seen:clients "
        "predictedFromMs=predicted_from predictedToMs=to seenFromMs=seen_from seenToMs=to",
        outcome=lambda queue: _OUTCOMES[queue.outcome],
        ownersPredicted=lambda queue: queue.owners_predicted or NOT_THERE,
    ),
)


def _comparison(compared: model.RecordingComparison) -> Iterator[Section]:
    found = [queue for queue in compared.queues if queue.outcome in model.DIFFERENCES]
    title = "queues that differ from the prediction"
    yield section_of("differences", title, _COMPARED, found, heads=3, first=_MOST_ROWS)
    title = "queues: predicted and observed"
    yield section_of("comparison", title, _COMPARED, compared.queues, heads=3, named_only=True)


def _summary(figures: model.RecordingFigures) -> Section:
    columns = columns_from("figure= shown=value name/hidden value:number/hidden")
    keys = dict(zip(figures.__struct_fields__, figures.__struct_encode_fields__, strict=True))
    rows: list[tuple[Cell, ...]] = [("queues", str(figures.queues), "queues", figures.queues)]
    for name, figure in annotated_figures(model.RecordingFigures).items():
        value = getattr(figures, name)
        shown = "not converged" if value is None else duration(value) if name.endswith("_ms") else str(value)
        rows.append((figure.what, shown, keys[name], value))
    return Section("summary", "summary", columns, tuple(rows), named_only=True, audience="scripts")
