"""Follow a live group from sample to sample: the news of each sample, and the summary of all samples.

Rules of this file:
- If all brokers answered, a consumer that no broker lists owns nothing. A listed consumer that does not answer may own
  its former queues and any others, from its last answer before to its first one after.
- A state that two successive samples show was the same in between.
- The truth lies between the certain and the possible: the longest gap is at least the longest time without a possible
  owner, and at most the longest time without a certain one; overlaps likewise.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import popped_topics
from rmqlb.engine.group import Given, Group, known
from rmqlb.model import recording as result
from rmqlb.model.group import RETRY_PREFIX, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.snapshot import ClusterSnapshot

STEADY_MS = 25_000  # each consumer rebalances every 20 s on its own timer: owners that are the same for longer stay
_LONGEST = tuple(name for name in result.QueueRecording.__struct_fields__ if name.startswith("longest_"))
SINCE_EVER, FOR_EVER = -(1 << 62), 1 << 62
_EVER, _NEVER = result.Between(SINCE_EVER, SINCE_EVER), result.Between(FOR_EVER, FOR_EVER)
_NO_REPORT = "it did not say which queues it owns"


def sample_of(
    snapshot: ClusterSnapshot,
    group: str,
    asked_at: int,
    answered_at: int,
    topics: Sequence[str] = (),
    settings: Settings | None = None,
) -> result.GroupSample:
    """Make a sample of a snapshot: all topics of the group, or these (raises DataError for an unknown group).

    `asked_at` and `answered_at` are the times of the first request and the last answer, in milliseconds since 1970.
    """
    seen, routes = snapshot.group(group), snapshot.routes
    names = set(topics or seen.own_topics or ()) - popped_topics(seen)
    listed = frozenset(seen.client_ids or ())
    silent = {part.detail: part.reason for part in snapshot.unread if (part.kind, part.name) == ("member", group)}
    complete = seen.views is not None and ("members", group) not in {(part.kind, part.name) for part in snapshot.unread}
    facts = Group(snapshot, group, settings or Settings(), Given(assume=None))
    predicted = known(lambda: facts.predicted) if known(lambda: facts.strategy.origin) == "reported" else None
    return result.GroupSample(
        asked_at,
        answered_at,
        owned={client_id: _owned(seen, client_id, topics) for client_id in seen.reports},
        unanswered={each: silent.get(each, _NO_REPORT) for each in sorted(listed - seen.reports.keys())},
        listed=listed if complete else None,
        routes={each: tuple(routes[each].route.subscribe_queues()) for each in sorted(names & routes.keys())},
        predicted=predicted,
        strategy=None if predicted is None else ", ".join(facts.strategy.run_by_members),
    )


def _owned(group: ConsumerGroup, client_id: str, topics: Sequence[str]) -> frozenset[MessageQueue]:
    own = (queue for queue, state in group.queues.items() if client_id in (state.owners or ()))
    return frozenset(q for q in own if (q.topic in topics if topics else not q.topic.startswith(RETRY_PREFIX)))


class _Span(Struct):
    """A consumer owns a queue: from a gain, or the first sample, to a loss, or the last sample."""

    gain: result.Between = _EVER
    loss: result.Between = _NEVER


class _Stretch(Struct, frozen=True):
    from_ms: int
    to_ms: int
    certain: frozenset[str]  # consumers that own the queue
    possible: frozenset[str]  # these, and consumers that owned it just before or after
    silent: frozenset[str]  # further consumers that did not report
    exists: bool | None  # whether the queue exists; None while it comes or goes

    @property
    def state(self) -> result.KnownState:
        """The queue's state; a silent consumer that was not its owner counts only if no other consumer owns it."""
        if self.exists is False:
            return "gone"
        if len(self.certain) > 1:
            return "duplicate-owners"
        if self.possible != self.certain or (not self.certain and self.silent) or self.exists is None:
            return "unknown"
        return "one" if self.certain else "unassigned"


class _Followed(Struct):
    """The history of a queue; `came` and `went` are None if the first sample and the last sample have the queue."""

    came: result.Between | None = None
    went: result.Between | None = None
    owners_before: tuple[str, ...] | None = None
    spans: dict[str, list[_Span]] = field(default_factory=dict)
    changes: list[result.OwnerChange] = field(default_factory=list)

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(sort_client_ids(i for i, spans in self.spans.items() if spans[-1].loss.to_ms == FOR_EVER))

    def stretches(self, silences: Mapping[str, Sequence[result.Between]], end_ms: int) -> Iterator[_Stretch]:
        """The states of the queue, one after the other; its own existence has no client ID."""
        spans = [("", _Span(self.came or _EVER, self.went or _NEVER))]
        spans += ((client_id, one) for client_id, own in self.spans.items() for one in own)
        marks: dict[int, list[tuple[Counter[str], str, int]]] = {0: [], end_ms: []}
        certain, possible, silent = Counter[str](), Counter[str](), Counter[str]()
        times = [(certain, who, one.gain.to_ms, one.loss.from_ms) for who, one in spans]
        times += [(possible, who, one.gain.from_ms, one.loss.to_ms) for who, one in spans]
        times += [(silent, each, one.from_ms, one.to_ms) for each, several in silences.items() for one in several]
        for kind, who, begin, end in times:
            if max(begin, 0) < min(end, end_ms):
                marks.setdefault(max(begin, 0), []).append((kind, who, 1))
                marks.setdefault(min(end, end_ms), []).append((kind, who, -1))
        for begin, end in pairwise(sorted(marks)):
            for kind, who, step in marks[begin]:
                kind[who] += step
            exists = True if certain[""] else None if possible[""] else False
            owning, maybe, speechless = (frozenset(+kind) - {""} for kind in (certain, possible, silent))
            yield _Stretch(begin, end, owning - speechless, maybe, speechless - maybe, exists)


def _longest(found: Sequence[_Stretch], has: Callable[[_Stretch], bool]) -> int:
    runs = [list(equal) for is_so, equal in groupby(found, key=has) if is_so]
    return max((run[-1].to_ms - run[0].from_ms for run in runs), default=0)


class _Consumer(Struct):
    queues_before: int | None  # the number of its queues in the first sample
    answered: int = 0  # the last sample in which it reported its queues, or all brokers did not list it; 0 is none
    answered_ms: int = SINCE_EVER  # the request of that sample
    queues: frozenset[MessageQueue] = frozenset()  # the queues that it owned then
    silent_because: str | None = None  # why it does not answer now; None when it does
    listed: bool = False  # a broker lists it
    listed_ms: int = 0  # the request of the last sample in which it was listed
    silences: list[result.Silence] = field(default_factory=list)
    changes: list[result.ConsumerChange] = field(default_factory=list)


class Follower:
    def __init__(self, group: str, every_ms: int) -> None:
        self._group, self._every_ms = group, every_ms
        self.samples = self._failed = self.changed_queues = 0
        self._origin = self._asked_ms = self._answered_ms = self._steady_since_ms = 0
        self._last = result.GroupSample(0, 0)
        self._lists: tuple[int, int] | None = None  # the last sample in which all brokers listed consumers; its request
        self._routes: dict[str, int] = {}  # topic → the request of the last sample that had its route
        self._consumers: dict[str, _Consumer] = {}
        self._queues: dict[MessageQueue, _Followed] = {}
        self.has_changed = False  # the owners, or the list of consumers

    def add(self, sample: result.GroupSample) -> list[result.RecordLine]:
        self.samples += 1
        if self.samples == 1:
            self._origin = sample.answered_at
        self._asked_ms, self._answered_ms = sample.asked_at - self._origin, sample.answered_at - self._origin
        before, self._last = self._last.failed, sample
        if sample.failed is not None:
            self._failed += 1
            return [] if before is not None else [self._line("failed", reason=sample.failed)]
        self._add_routes(sample)
        lines = [self._line("seen")] if before is not None else []
        lines += [*self._add_lists(sample), *self._add_silences(sample)]
        changes = [*self._add_answers(sample)]  # all of them, before a line says who owns a queue now
        lines += [self._line(change.change, change, client_id=change.client_id, queue=q) for q, change in changes]
        if self.samples == 1:
            lines += self._first()
        if any(line.change in ("gained", "lost", "joined", "left") for line in lines):
            self._steady_since_ms, self.has_changed = self._answered_ms, True
        return lines

    def converged(self) -> result.ConvergedBy | None:
        """The evidence that each queue has its one final owner; None without that evidence."""
        sample, there = self._last, [queue for queue, history in self._queues.items() if history.went is None]
        if sample.failed is not None or sample.listed is None or sample.unanswered or not there:
            return None
        if self._steady_since_ms == self._answered_ms or any(self._state(queue) != "one" for queue in there):
            return None
        if sample.predicted is not None:
            right = all(sample.predicted.get(queue) == self._queues[queue].owners for queue in there)
            return "prediction" if right else None
        return "unchanged" if self._asked_ms - self._steady_since_ms >= STEADY_MS else None

    def ended(self, ended: result.Ended, by: result.ConvergedBy | None) -> result.RecordLine:
        if ended == "converged" and by is not None:
            reasons = {"prediction": "as the strategy predicts", "unchanged": "unchanged for 25 s"}
            return self._line("converged", reason=reasons[by])
        return self._line("ended", reason={"time": "the time is over", "interrupted": "interrupted"}.get(ended))

    def recording(self, ended: result.Ended, event_at_ms: int | None = None) -> result.Recording:
        end_ms = max(self._asked_ms, 0)
        silences = {client_id: self._silences(each) for client_id, each in self._consumers.items()}
        queues = tuple(self._recorded_queue(queue, silences, end_ms) for queue in sort_queues(self._queues))
        gained = Counter(each.client_id for one in queues for each in one.changes if each.change == "gained")
        lost = Counter(each.client_id for one in queues for each in one.changes if each.change == "lost")
        consumers = tuple(
            result.ConsumerRecording(
                client_id,
                each.queues_before,
                None if self._is_silent(client_id) else len(each.queues),
                gained[client_id],
                lost[client_id],
                tuple(each.changes),
                tuple(replace(s, from_ms=max(s.from_ms, 0), to_ms=min(s.to_ms, end_ms)) for s in silences[client_id]),
            )
            for client_id, each in ((each, self._consumers[each]) for each in sort_client_ids(self._consumers))
        )
        event, by = None if event_at_ms is None else event_at_ms - self._origin, self.converged()
        return result.Recording(
            group=self._group,
            started_at=self._text(0),
            end_ms=end_ms,
            every_ms=self._every_ms,
            samples=self.samples,
            ended=ended,
            converged_by=by,
            strategy=self._last.strategy,
            event_at_ms=event,
            figures=_figures(queues, consumers, self._failed, event, is_converged=by is not None),
            queues=queues,
            consumers=consumers,
        )

    def _add_routes(self, sample: result.GroupSample) -> None:
        for topic, queues in sample.routes.items():
            before = self._routes.get(topic)
            since = result.Between(before or 0, self._answered_ms)
            for queue in queues:
                if queue not in self._queues:
                    self._queues[queue] = _Followed(came=None if self.samples == 1 else since)
                self._queues[queue].went = None
            there = set(queues)
            for queue, history in self._queues.items():
                if queue.topic == topic and queue not in there and history.went is None and before is not None:
                    history.went = since
            self._routes[topic] = self._asked_ms

    def _add_lists(self, sample: result.GroupSample) -> Iterator[result.RecordLine]:
        present = (sample.listed or frozenset()) | sample.owned.keys() | sample.unanswered.keys()
        for client_id in sort_client_ids(present):
            each = self._consumers.get(client_id)
            if each is None:
                each = _Consumer(None) if self._lists is None else _Consumer(0, *self._lists)
                self._consumers[client_id] = each
            if not each.listed and self._lists is not None:
                yield self._come_or_go("joined", client_id, self._lists[1])
            each.listed, each.listed_ms = True, self._asked_ms
        if sample.listed is None:
            return
        for client_id, each in self._consumers.items():
            if each.listed and client_id not in present:
                yield self._come_or_go("left", client_id, each.listed_ms)
                each.listed = False
        self._lists = self.samples, self._asked_ms

    def _come_or_go(self, change: Literal["joined", "left"], client_id: str, from_ms: int) -> result.RecordLine:
        what = result.ConsumerChange(from_ms, self._answered_ms, change, client_id)
        self._consumers[client_id].changes.append(what)
        return self._line(change, what, client_id=client_id)

    def _add_silences(self, sample: result.GroupSample) -> Iterator[result.RecordLine]:
        for client_id, each in self._consumers.items():
            reason = sample.unanswered.get(client_id)
            if reason is None and each.listed and client_id not in sample.owned:
                reason = "a broker did not say whether it lists it"
            if (reason is None) != (each.silent_because is None) and each.listed:
                yield self._line("answers" if reason is None else "silent", client_id=client_id, reason=reason)
            each.silent_because = reason or None

    def _add_answers(self, sample: result.GroupSample) -> Iterator[tuple[MessageQueue, result.OwnerChange]]:
        for client_id in sort_client_ids(self._consumers):
            each = self._consumers[client_id]
            if each.silent_because is not None:
                continue
            queues, since = sample.owned.get(client_id, frozenset()), each.answered_ms
            if self.samples > 1 and each.answered < self.samples - 1:
                each.silences.append(result.Silence(since, self._answered_ms, "it did not answer"))
            for queue in sort_queues(queues ^ each.queues):
                spans = self._queues.setdefault(queue, _Followed()).spans.setdefault(client_id, [])
                if not each.answered:  # it may always have owned the queue
                    spans.append(_Span())
                    continue
                gains = queue in queues
                change = result.OwnerChange(since, self._answered_ms, "gained" if gains else "lost", client_id)
                if gains:
                    spans.append(_Span(result.Between(since, self._answered_ms)))
                else:
                    spans[-1].loss = result.Between(since, self._answered_ms)
                self.changed_queues += not self._queues[queue].changes
                self._queues[queue].changes.append(change)
                yield queue, change
            each.queues, each.answered, each.answered_ms = queues, self.samples, self._asked_ms

    def _first(self) -> Iterator[result.RecordLine]:
        for each in self._consumers.values():
            each.queues_before = None if each.silent_because is not None else len(each.queues)
        for queue in sort_queues(self._queues):
            self._queues[queue].owners_before = self._known_owners(queue)
            yield self._line("owners", queue=queue)

    def _is_silent(self, client_id: str) -> bool:
        return self._last.failed is not None or self._consumers[client_id].silent_because is not None

    def _state(self, queue: MessageQueue) -> result.KnownState:
        owners = self._queues[queue].owners
        known = sum(not self._is_silent(each) for each in owners)
        if known > 1:
            return "duplicate-owners"
        if known < len(owners) or (not owners and any(map(self._is_silent, self._consumers))):
            return "unknown"
        return "one" if owners else "unassigned"

    def _known_owners(self, queue: MessageQueue) -> tuple[str, ...] | None:
        return None if self._state(queue) == "unknown" else self._queues[queue].owners

    def _text(self, ms: int) -> str:
        return _iso(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self._origin + ms))

    def _line(
        self,
        change: result.LineChange,
        between: result.Between | None = None,
        *,
        client_id: str | None = None,
        reason: str | None = None,
        queue: MessageQueue | None = None,
    ) -> result.RecordLine:
        line = result.RecordLine(
            self._text(self._answered_ms), self.samples, change, client_id=client_id, reason=reason
        )
        if between is not None:
            line = replace(line, not_before=self._text(between.from_ms), not_after=self._text(between.to_ms))
        if queue is None:
            return line
        known = tuple(each for each in self._queues[queue].owners if not self._is_silent(each))
        return replace(_about(line, queue), state=self._state(queue), owners=known)

    def _silences(self, each: _Consumer) -> tuple[result.Silence, ...]:
        if each.answered == self.samples:
            return tuple(each.silences)
        reason = each.silent_because or self._last.failed or "it did not answer"
        return (*each.silences, result.Silence(each.answered_ms, FOR_EVER, reason))

    def _recorded_queue(
        self, queue: MessageQueue, silences: Mapping[str, Sequence[result.Silence]], end_ms: int
    ) -> result.QueueRecording:
        history = self._queues[queue]
        found = list(history.stretches(silences, end_ms))
        runs = [(key, [*run]) for key, run in groupby(found, key=lambda each: (each.state, each.certain))]
        intervals = (
            result.RecordedInterval(run[0].from_ms, run[-1].to_ms, state, tuple(sort_client_ids(owners)))
            for (state, owners), run in runs
        )
        return result.QueueRecording(
            *(queue.topic, queue.broker_name, queue.queue_id),
            owners_before=history.owners_before if history.came is None else (),
            owners_after=self._known_owners(queue) if history.went is None else (),
            longest_gap_at_least_ms=_longest(found, lambda one: bool(one.exists) and not (one.possible or one.silent)),
            longest_gap_at_most_ms=_longest(found, lambda one: one.exists is not False and not one.certain),
            longest_overlap_at_least_ms=_longest(found, lambda one: len(one.certain) > 1),
            longest_overlap_at_most_ms=_longest(found, lambda one: len(one.possible | one.silent) > 1),
            changes=tuple(history.changes),
            intervals=tuple(intervals),
        )


def lines_of(recording: result.Recording) -> list[result.RecordLine]:
    since = datetime.fromisoformat(recording.started_at)
    found: list[result.RecordLine] = []
    changes: list[tuple[result.QueueRecording | None, result.OwnerChange | result.ConsumerChange]]
    changes = [*((None, change) for change in recording.consumer_changes), *recording.changes]
    for queue, each in sorted(changes, key=lambda pair: pair[1].to_ms):
        seen, before = (_iso(since + timedelta(milliseconds=ms)) for ms in (each.to_ms, each.from_ms))
        line = result.RecordLine(seen, None, each.change, client_id=each.client_id, not_before=before, not_after=seen)
        found.append(line if queue is None else _about(line, queue.queue))
    return found


def _about(line: result.RecordLine, queue: MessageQueue) -> result.RecordLine:
    return replace(line, topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id)


def _iso(at: datetime) -> str:
    return f"{at.isoformat(timespec='milliseconds')[:-6]}Z"


def at_event(recording: result.Recording, event_at_ms: int) -> result.Recording:
    is_converged, failed = recording.converged_by is not None, recording.figures.failed_samples
    figures = _figures(recording.queues, recording.consumers, failed, event_at_ms, is_converged=is_converged)
    return replace(recording, event_at_ms=event_at_ms, figures=figures)


def _figures(
    queues: tuple[result.QueueRecording, ...],
    consumers: tuple[result.ConsumerRecording, ...],
    failed: int,
    event_ms: int | None,
    *,
    is_converged: bool,
) -> result.RecordingFigures:
    after = [queue.owners_after for queue in queues if not (queue.intervals and queue.intervals[-1].state == "gone")]
    owners = [(queue.owners_before, queue.owners_after) for queue in queues]
    changes = [change for queue in queues for change in queue.changes]
    bounds: tuple[int | None, int | None] = None, None
    if changes and is_converged:
        seen = [*changes, *(change for consumer in consumers for change in consumer.changes)]
        first = (min(each.from_ms for each in seen), min(each.to_ms for each in seen))
        begin, until = first if event_ms is None else (event_ms, event_ms)
        last = (max(each.from_ms for each in changes), max(each.to_ms for each in changes))
        bounds = max(last[0] - until, 0), max(last[1] - begin, 0)
    return result.RecordingFigures(
        queues=len(queues),
        changed=sum(bool(queue.changes) for queue in queues),
        moved=sum(None not in pair and pair[0] != pair[1] for pair in owners),
        unassigned=sum(owners == () for owners in after),
        duplicate_owners=sum(owners is not None and len(owners) > 1 for owners in after),
        unknown=sum(owners is None for owners in after),
        **{name: max((getattr(queue, name) for queue in queues), default=0) for name in _LONGEST},
        convergence_at_least_ms=bounds[0],
        convergence_at_most_ms=bounds[1],
        failed_samples=failed,
    )
