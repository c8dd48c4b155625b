"""Looks at a group, one after the other: what is new in each, and what all of them show together.

Rules of this file:
- A consumer that no broker lists owns nothing, if all brokers said whom they list. One that is listed and does not
  answer may own what it owned, and anything else, from its last answer before to its first one after.
- What is the same in two looks that follow each other was so in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.record.bounds import FOR_EVER, SINCE_EVER, Span, intervals, longest_gap, longest_overlap, stretches
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.recording import (
    Between,
    ConsumerChange,
    ConsumerRecording,
    ConvergedBy,
    Ended,
    KnownState,
    LineChange,
    Look,
    OwnerChange,
    QueueRecording,
    Recording,
    RecordingFigures,
    RecordLine,
    Silence,
)

STEADY_MS = 25_000
"""Each consumer rebalances every 20 s by itself: owners that are the same for longer stay so."""


class _Told(Struct, frozen=True):
    """The last look that said something: its number and its request."""

    look: int
    asked_ms: int


class _Consumer(Struct):
    """What is known of a consumer so far."""

    told: _Told | None  # when it last said what it owns, or no broker listed it
    queues: frozenset[MessageQueue] = frozenset()  # that it owned then
    mute: str | None = None  # why it does not answer now
    listed: bool = False
    listed_ms: int = 0  # the request of the last look in which it was listed
    queues_before: int | None = None
    silences: list[Silence] = field(default_factory=list)
    changes: list[ConsumerChange] = field(default_factory=list)


class _Queue(Struct):
    """What is known of a queue so far."""

    came: Between | None = None
    went: Between | None = None
    owners_before: tuple[str, ...] | None = None
    spans: dict[str, list[Span]] = field(default_factory=dict)
    changes: list[OwnerChange] = field(default_factory=list)


class Follower:
    """Takes the looks at a group as they come; the first one has to show something."""

    def __init__(self, group: str, every_ms: int) -> None:
        self._group, self._every_ms = group, every_ms
        self._looks = self._failed = 0
        self._origin = self._asked_ms = self._answered_ms = self._steady_since_ms = 0
        self._last = Look(0, 0)
        self._blind: str | None = None  # why the last look showed nothing
        self._lists: _Told | None = None  # the last look in which all brokers said whom they list
        self._routes: dict[str, _Told] = {}  # topic → the last look that had its route
        self._consumers: dict[str, _Consumer] = {}
        self._queues: dict[MessageQueue, _Queue] = {}
        self.has_changed = False  # the owners, or the list of consumers
        self.changed_queues = 0

    @property
    def looks(self) -> int:
        """How many so far."""
        return self._looks

    def add(self, look: Look) -> list[RecordLine]:
        """What the look shows that is new."""
        self._looks += 1
        if self._looks == 1:
            self._origin = look.answered_at
        self._asked_ms, self._answered_ms = look.asked_at - self._origin, look.answered_at - self._origin
        self._last = look
        before, self._blind = self._blind, look.failed
        if look.failed is not None:
            self._failed += 1
            return [] if before is not None else [self._line("failed", reason=look.failed)]
        self._take_routes(look)
        lines = [self._line("seen")] if before is not None else []
        lines += [*self._take_lists(look), *self._take_silences(look)]
        changes = [*self._take_answers(look)]
        lines += [self._owners_line(change.change, queue, change) for queue, change in changes]
        if self._looks == 1:
            lines += self._first()
        if self._looks == 1 or any(line.change in ("gained", "lost", "joined", "left") for line in lines):
            self._steady_since_ms = self._answered_ms
            self.has_changed |= self._looks > 1
        return lines

    def converged(self) -> ConvergedBy | None:
        """Whether each queue has the one owner that it will keep, and how that is known; None where it is not so."""
        states = [self._state(queue) for queue, its in self._queues.items() if its.went is None]
        if self._blind is not None or self._last.listed is None or any(state != "one" for state in states):
            return None
        if self._last.unanswered or not states or self._steady_since_ms == self._answered_ms:
            return None
        predicted = self._last.predicted
        if predicted is not None:
            right = all(predicted.get(queue) == self._owners(queue) for queue in self._there())
            return "prediction" if right else None
        return "unchanged" if self._asked_ms - self._steady_since_ms >= STEADY_MS else None

    def ended(self, ended: Ended, by: ConvergedBy | None) -> RecordLine:
        """The last line of a stream."""
        reasons = {"prediction": "as the strategy predicts", "unchanged": "unchanged for 25 s"}
        if ended == "converged" and by is not None:
            return self._line("converged", reason=reasons[by])
        return self._line("ended", reason={"time": "the time is over", "interrupted": "interrupted"}.get(ended))

    def recording(self, ended: Ended, event_at_ms: int | None = None) -> Recording:
        """What all looks show together; `event_at_ms` counts from 1970."""
        end_ms = max(self._asked_ms, 0)
        silences = {client_id: self._silences(each) for client_id, each in self._consumers.items()}
        queues = tuple(self._queue(queue, silences, end_ms) for queue in sort_queues(self._queues))
        consumers = tuple(self._consumer(each, queues, silences) for each in sort_client_ids(self._consumers))
        event = None if event_at_ms is None else event_at_ms - self._origin
        by = self.converged()
        return Recording(
            group=self._group,
            started_at=self._text(0),
            end_ms=end_ms,
            every_ms=self._every_ms,
            looks=self._looks,
            ended=ended,
            converged_by=by,
            strategy=self._last.strategy,
            event_at_ms=event,
            figures=_figures(queues, consumers, self._failed, event, is_converged=by is not None),
            queues=queues,
            consumers=consumers,
        )

    # -- a look ----------------------------------------------------------------------------------------------------

    def _take_routes(self, look: Look) -> None:
        for topic, queues in look.routes.items():
            told = self._routes.get(topic)
            since = Between(told.asked_ms if told else 0, self._answered_ms)
            for queue in queues:
                if queue not in self._queues:
                    self._queues[queue] = _Queue(came=None if self._looks == 1 else since)
                self._queues[queue].went = None
            there = set(queues)
            for queue, its in self._queues.items():
                if queue.topic == topic and queue not in there and its.went is None and told is not None:
                    its.went = since
            self._routes[topic] = _Told(self._looks, self._asked_ms)

    def _take_lists(self, look: Look) -> Iterator[RecordLine]:
        present = (look.listed or frozenset()) | look.held.keys() | look.unanswered.keys()
        for client_id in sort_client_ids(present):
            each = self._consumers.get(client_id)
            if each is None:
                each = self._consumers[client_id] = _Consumer(self._lists)
                each.queues_before = None if self._lists is None else 0
            if not each.listed and self._lists is not None:
                yield self._moved("joined", client_id, self._lists.asked_ms)
            each.listed, each.listed_ms = True, self._asked_ms
        if look.listed is None:
            return
        for client_id, each in self._consumers.items():
            if each.listed and client_id not in present:
                yield self._moved("left", client_id, each.listed_ms)
                each.listed = False
        self._lists = _Told(self._looks, self._asked_ms)

    def _moved(self, change: str, client_id: str, from_ms: int) -> RecordLine:
        joined = change == "joined"
        what = ConsumerChange(from_ms, self._answered_ms, "joined" if joined else "left", client_id)
        self._consumers[client_id].changes.append(what)
        return self._line(what.change, between=what, client_id=client_id)

    def _take_silences(self, look: Look) -> Iterator[RecordLine]:
        for client_id, each in self._consumers.items():
            reason = look.unanswered.get(client_id)
            if reason is None and each.listed and client_id not in look.held:
                reason = "a broker did not say whether it lists it"
            if (reason is None) != (each.mute is None) and each.listed:
                yield self._line("answers" if reason is None else "silent", client_id=client_id, reason=reason)
            each.mute = reason or None

    def _take_answers(self, look: Look) -> Iterator[tuple[MessageQueue, OwnerChange]]:
        for client_id in sort_client_ids(self._consumers):
            each = self._consumers[client_id]
            if each.mute is not None:
                continue
            queues, told = look.held.get(client_id, frozenset()), each.told
            if self._looks > 1 and (told is None or told.look < self._looks - 1):
                from_ms = SINCE_EVER if told is None else told.asked_ms
                each.silences.append(Silence(from_ms, self._answered_ms, "it did not answer"))
            for queue in sort_queues(queues ^ each.queues):
                change = self._changed(queue, client_id, told, gains=queue in queues)
                if change is not None:
                    yield queue, change
            each.queues, each.told = queues, _Told(self._looks, self._asked_ms)

    def _changed(self, queue: MessageQueue, client_id: str, told: _Told | None, *, gains: bool) -> OwnerChange | None:
        """A consumer owns a queue now, or no longer; None where it may always have owned it."""
        its = self._queues.setdefault(queue, _Queue())
        spans = its.spans.setdefault(client_id, [])
        if told is None:
            spans.append(Span())
            return None
        between = Between(told.asked_ms, self._answered_ms)
        if gains:
            spans.append(Span(between))
        else:
            spans[-1] = replace(spans[-1], loss=between)
        change = OwnerChange(between.from_ms, between.to_ms, "gained" if gains else "lost", client_id)
        self.changed_queues += not its.changes
        its.changes.append(change)
        return change

    def _first(self) -> Iterator[RecordLine]:
        for each in self._consumers.values():
            each.queues_before = None if each.mute is not None else len(each.queues)
        for queue in sort_queues(self._queues):
            self._queues[queue].owners_before = self._known_owners(queue)
            yield self._owners_line("owners", queue)

    # -- what is known now -----------------------------------------------------------------------------------------

    def _there(self) -> list[MessageQueue]:
        return [queue for queue, its in self._queues.items() if its.went is None]

    def _owners(self, queue: MessageQueue) -> tuple[str, ...]:
        """Those that own the queue as far as is known, silent ones included."""
        return tuple(sort_client_ids(i for i, spans in self._queues[queue].spans.items() if spans[-1].loss is None))

    def _is_silent(self, client_id: str) -> bool:
        return self._blind is not None or self._consumers[client_id].mute is not None

    def _state(self, queue: MessageQueue) -> KnownState:
        owners = self._owners(queue)
        telling = [each for each in owners if not self._is_silent(each)]
        if len(telling) > 1:
            return "duplicate-owners"
        if len(telling) < len(owners) or (not owners and any(map(self._is_silent, self._consumers))):
            return "unknown"
        return "one" if owners else "unassigned"

    def _known_owners(self, queue: MessageQueue) -> tuple[str, ...] | None:
        return None if self._state(queue) == "unknown" else self._owners(queue)

    # -- lines -----------------------------------------------------------------------------------------------------

    def _text(self, ms: int) -> str:
        """A time of the recording as ISO 8601, with milliseconds."""
        at = datetime.fromtimestamp(self._origin // 1000, UTC) + timedelta(milliseconds=self._origin % 1000 + ms)
        return _iso(at)

    def _line(
        self,
        change: LineChange,
        between: Between | None = None,
        *,
        client_id: str | None = None,
        reason: str | None = None,
    ) -> RecordLine:
        return RecordLine(
            self._text(self._answered_ms),
            self._looks,
            change,
            client_id=client_id,
            not_before=None if between is None else self._text(between.from_ms),
            not_after=None if between is None else self._text(between.to_ms),
            reason=reason,
        )

    def _owners_line(self, change: LineChange, queue: MessageQueue, what: OwnerChange | None = None) -> RecordLine:
        line = self._line(change, what, client_id=None if what is None else what.client_id)
        telling = tuple(each for each in self._owners(queue) if not self._is_silent(each))
        return replace(
            line,
            topic=queue.topic,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            state=self._state(queue),
            owners=telling,
        )

    # -- all looks -------------------------------------------------------------------------------------------------

    def _silences(self, each: _Consumer) -> tuple[Silence, ...]:
        """Those that are over, and the one that is not."""
        if each.told is not None and each.told.look == self._looks:
            return tuple(each.silences)
        from_ms = SINCE_EVER if each.told is None else each.told.asked_ms
        reason = each.mute or self._blind or "it did not answer"
        return (*each.silences, Silence(from_ms, FOR_EVER, reason))

    def _queue(self, queue: MessageQueue, silences: dict[str, tuple[Silence, ...]], end_ms: int) -> QueueRecording:
        its = self._queues[queue]
        found = stretches(its.spans, silences, end_ms, came=its.came, went=its.went)
        gap, overlap = longest_gap(found), longest_overlap(found)
        return QueueRecording(
            *(queue.topic, queue.broker_name, queue.queue_id),
            owners_before=its.owners_before if its.came is None else (),
            owners_after=self._known_owners(queue) if its.went is None else (),
            longest_gap_at_least_ms=gap.at_least_ms,
            longest_gap_at_most_ms=gap.at_most_ms,
            longest_overlap_at_least_ms=overlap.at_least_ms,
            longest_overlap_at_most_ms=overlap.at_most_ms,
            changes=tuple(its.changes),
            intervals=tuple(intervals(found)),
        )

    def _consumer(
        self, client_id: str, queues: Iterable[QueueRecording], silences: dict[str, tuple[Silence, ...]]
    ) -> ConsumerRecording:
        each, end_ms = self._consumers[client_id], max(self._asked_ms, 0)
        mine = [change.change for queue in queues for change in queue.changes if change.client_id == client_id]
        clipped = [
            replace(one, from_ms=max(one.from_ms, 0), to_ms=min(one.to_ms, end_ms)) for one in silences[client_id]
        ]
        return ConsumerRecording(
            client_id,
            each.queues_before,
            None if self._is_silent(client_id) else len(each.queues),
            mine.count("gained"),
            mine.count("lost"),
            tuple(each.changes),
            tuple(clipped),
        )


def lines_of(recording: Recording) -> list[RecordLine]:
    """The changes of a recording as lines, in the order in which they were seen."""
    since = datetime.fromisoformat(recording.started_at)

    def line(change: OwnerChange | ConsumerChange, queue: QueueRecording | None) -> RecordLine:
        seen, before = (_iso(since + timedelta(milliseconds=ms)) for ms in (change.to_ms, change.from_ms))
        told = RecordLine(seen, None, change.change, client_id=change.client_id, not_before=before, not_after=seen)
        if queue is None:
            return told
        return replace(told, topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id)

    found = [(each.to_ms, line(each, None)) for each in recording.consumer_changes]
    found += [(each.to_ms, line(each, queue)) for queue, each in recording.changes]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def _iso(at: datetime) -> str:
    """ISO 8601 with milliseconds."""
    return f"{at.isoformat(timespec='milliseconds')[:-6]}Z"


def at_event(recording: Recording, event_at_ms: int) -> Recording:
    """The recording of which it is known when the event happened, in its own time."""
    figures = _figures(
        recording.queues,
        recording.consumers,
        recording.figures.failed_looks,
        event_at_ms,
        is_converged=recording.converged_by is not None,
    )
    return replace(recording, event_at_ms=event_at_ms, figures=figures)


def _figures(
    queues: tuple[QueueRecording, ...],
    consumers: tuple[ConsumerRecording, ...],
    failed: int,
    event_ms: int | None,
    *,
    is_converged: bool,
) -> RecordingFigures:
    after = [queue.owners_after for queue in queues if not (queue.intervals and queue.intervals[-1].state == "gone")]
    changes = [change for queue in queues for change in queue.changes]
    bounds: tuple[int | None, int | None] = None, None
    if changes and is_converged:
        seen = [*changes, *(change for consumer in consumers for change in consumer.changes)]
        first = (min(each.from_ms for each in seen), min(each.to_ms for each in seen))
        begin, until = first if event_ms is None else (event_ms, event_ms)
        last = (max(each.from_ms for each in changes), max(each.to_ms for each in changes))
        bounds = max(last[0] - until, 0), max(last[1] - begin, 0)
    return RecordingFigures(
        queues=len(queues),
        changed=sum(bool(queue.changes) for queue in queues),
        moved=sum(
            None not in (queue.owners_before, queue.owners_after) and queue.owners_before != queue.owners_after
            for queue in queues
        ),
        unassigned=sum(owners == () for owners in after),
        duplicate_owners=sum(owners is not None and len(owners) > 1 for owners in after),
        unknown=sum(owners is None for owners in after),
        longest_gap_at_least_ms=max((queue.longest_gap_at_least_ms for queue in queues), default=0),
        longest_gap_at_most_ms=max((queue.longest_gap_at_most_ms for queue in queues), default=0),
        longest_overlap_at_least_ms=max((queue.longest_overlap_at_least_ms for queue in queues), default=0),
        longest_overlap_at_most_ms=max((queue.longest_overlap_at_most_ms for queue in queues), default=0),
        convergence_at_least_ms=bounds[0],
        convergence_at_most_ms=bounds[1],
        failed_looks=failed,
    )
