"""The counts of a simulation: per queue, broker, failure and slice of time; and the report of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.send.cluster import Cluster, FailureCourse, Message
from rmqlb.model import simulate_send as result
from rmqlb.model.message_queue import MessageQueue, queue_order, sort_key
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import SendScenario

Place = TypeVar("Place", MessageQueue, str)
MOST_KINDS = 100
_MOST_SLICES = 120
_COUNTED = ("messages", "stored", "not_store_ok", "duplicated", "lost", "retried", "retries")
_TIMES = ("began", "ended", "first_failed", "last_failed", "isolated", "used_again")


class _Mark(Struct):
    at: int  # tick
    attempts: Counter[str]
    failed: Counter[str]
    isolated: Counter[str]
    lost: int


def queue_of_priority(priority: int, write_queues: int) -> int:
    """The queue of a broker 5.4.0 or newer that stores a message with this priority (`SendMessageProcessor`).

    The broker ignores the producer's pick and the topic's type. A message without a priority stays in the picked queue.
    So does a message of a batch, and one with a sharding key, a delay or a transaction (`TopicMessageType`).

    >>> [queue_of_priority(priority, 4) for priority in (0, 3, 4, 100)]
    [0, 3, 3, 3]
    """
    return min(priority, write_queues - 1)


class Recorder:
    """Counts what the simulation does; the simulation never depends on it. Times are ticks."""

    def __init__(self, route: TopicRouteData, scenario: SendScenario, cluster: Cluster, per_us: int) -> None:
        self.sinks = list[Callable[[result.Attempt], None]]()  # get each attempt as it ends
        self.lost_sinks = list[Callable[[result.LostMessage], None]]()
        names = [data.broker_name for data in route.queue_datas] + [queue.broker_name for queue in cluster.queues]
        self.counts = {figure: Counter[MessageQueue]() for figure in ("picks", "attempts", "failed", "stored")}
        self.messages = self.stored = self.not_store_ok = self.duplicated = self.lost = 0
        self.retries = self.retried = self.failing = self.longest = self.last_done = 0
        self.lost_by: Counter[str] = Counter()
        self._exceptions: dict[tuple[object, ...], result.ExceptionKind] = {}
        self._priorities = scenario.priorities
        self._write_queues = {data.broker_name: data.write_queue_nums for data in route.queue_datas}
        self.isolations: Counter[str] = Counter()
        self.isolated = Counter({name: 0 for name in names if name not in scenario.exclude})  # broker → ticks
        self._isolated_until = dict.fromkeys(self.isolated, 0)
        self._isolated_counted = 0  # the tick up to which `isolated` is counted
        self._unlisted: frozenset[str] = frozenset()
        self.selector_threw = ""  # the first exception of the user's selector
        self._cluster = cluster
        self._unused: dict[str, list[FailureCourse]] = {}  # broker → its failures that ended, until it is used again
        self._per_ms = 1000 * per_us
        self._width = max(_slice_width_us(scenario) * per_us, 1)
        self._marks, self.next_slice = [self._mark(0)], self._width

    def note_changes(self, now: int) -> None:
        cluster = self._cluster
        self._unused = {}
        self.count_isolation(now)
        self._unlisted = cluster.unlisted
        for course in cluster.courses:
            name = course.failure.broker_name
            if course.lasts and course.isolated is None and name in cluster.unlisted:
                course.isolated, course.isolated_by = now, "route"
            if course.ended is not None and course.used_again is None:
                self._unused.setdefault(name, []).append(course)

    def pick(self, queue: MessageQueue) -> None:
        self.counts["picks"][queue] += 1

    def attempt(self, message: Message) -> None:
        self.counts["attempts"][message.queue] += 1
        if message.attempt > 1:
            self.retries += 1
            self.retried += message.attempt == 2

    def will_succeed(self, message: Message) -> None:
        for course in self._unused.pop(message.queue.broker_name, ()):
            course.used_again = message.started

    def attempt_done(self, message: Message, now: int) -> None:
        failed, took = message.outcome.failed, now - message.started
        queue = message.queue if failed else self._stored_in(message)
        self.counts["failed" if failed else "stored"][queue] += 1
        if failed:
            self.failing += took
            if (course := message.failing) is not None:
                course.failed += 1
                course.first_failed = message.started if course.first_failed is None else course.first_failed
                course.last_failed = max(course.last_failed or 0, message.started)
        if self.sinks:
            row = result.Attempt(
                *(message.number, message.attempt, message.thread.number, message.started / self._per_ms),
                *(queue.broker_name, queue.queue_id, message.outcome.name, took / self._per_ms),
            )
            for sink in self.sinks:
                sink(row)

    def _stored_in(self, message: Message) -> MessageQueue:
        picked, priorities = message.queue, self._priorities
        priority = priorities[(message.number - 1) % len(priorities)] if priorities else None
        write_queues = self._write_queues.get(picked.broker_name)
        if priority is None or write_queues is None:
            return picked
        return replace(picked, queue_id=queue_of_priority(priority, write_queues))

    def finish(self, message: Message, now: int, lost: result.LostMessage | None) -> None:
        if lost is None:
            self.stored += 1
        else:
            self.lost += 1
            self.lost_by[lost.reason] += 1
            for sink in self.lost_sinks:
                sink(lost)
            if lost.exception is not None:
                self._count_exception(lost, lost.exception)
        self.last_done = max(self.last_done, now)
        if message.attempt:
            self.longest = max(self.longest, now - message.began)

    def _count_exception(self, lost: result.LostMessage, exception: result.MessageException) -> None:
        name, code, cause = exception.exception_class, exception.response_code, exception.cause
        sent: tuple[str, ...] | None = lost.brokers_sent
        if (name, code, cause, sent) not in self._exceptions and len(self._exceptions) >= MOST_KINDS:
            sent = None
        kind = (name, code, cause, sent)
        known = self._exceptions.get(kind) or result.ExceptionKind(
            0, name, code, cause, sent, lost.message, exception.text
        )
        self._exceptions[kind] = replace(known, messages=known.messages + 1)

    def isolate(self, broker_name: str, now: int, until: int) -> None:
        self.isolations[broker_name] += 1
        self.isolated_until(broker_name, now, until)
        for course in self._cluster.courses:
            if course.lasts and course.isolated is None and course.failure.broker_name == broker_name:
                course.isolated, course.isolated_by = now, "isolation"

    def isolated_until(self, broker_name: str, now: int, until: int) -> None:
        self.count_isolation(now)
        self._isolated_until[broker_name] = until

    def count_isolation(self, now: int) -> None:
        since = self._isolated_counted
        for name, until in self._isolated_until.items():
            end = now if name in self._unlisted else min(until, now)
            if end > since:
                self.isolated[name] += end - since
        self._isolated_counted = now

    def end_slice(self, now: int) -> None:
        """End a slice of the timeline; when there are too many, drop each second boundary."""
        self.count_isolation(now)
        self._marks.append(self._mark(self.next_slice))
        if len(self._marks) > _MOST_SLICES:
            self._width *= 2
            self._marks = self._marks[::2]
        self.next_slice = self._marks[-1].at + self._width

    def by_broker(self, figure: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for queue, number in self.counts[figure].items():
            found[queue.broker_name] += number
        return found

    def _mark(self, at: int) -> _Mark:
        return _Mark(at, self.by_broker("attempts"), self.by_broker("failed"), self.isolated.copy(), self.lost)

    def slices(self, end: int) -> tuple[result.Slice, ...]:
        marks = [mark for mark in self._marks if mark.at < end] or self._marks[:1]
        marks.append(self._mark(max(end, marks[-1].at)))
        names = sorted({*self.isolated, *marks[-1].attempts}, key=sort_key)
        found = list[result.Slice]()
        for since, until in pairwise(marks):
            brokers = tuple(
                result.BrokerSlice(
                    *(name, until.attempts[name] - since.attempts[name], until.failed[name] - since.failed[name]),
                    (until.isolated[name] - since.isolated[name]) / self._per_ms,
                )
                for name in names
            )
            times = since.at / self._per_ms, until.at / self._per_ms
            found += [result.Slice(*times, until.lost - since.lost, brokers)] if until.at > since.at else []
        return tuple(found)

    def queue_tallies(self, publish_queues: Iterable[MessageQueue]) -> tuple[result.QueueTally, ...]:
        used = {*self.counts["picks"], *self.counts["stored"]}
        queues = dict.fromkeys((*publish_queues, *sorted(used, key=queue_order)))
        figures = _figures(self.counts)
        return tuple(result.QueueTally(queue.broker_name, queue.queue_id, **figures(queue)) for queue in queues)

    def broker_tallies(self, publish_queues: Iterable[MessageQueue]) -> tuple[result.BrokerTally, ...]:
        listed = Counter(queue.broker_name for queue in publish_queues)
        figures = _figures({figure: self.by_broker(figure) for figure in self.counts})
        return tuple(
            result.BrokerTally(
                broker_name=name,
                queues=listed[name],
                **figures(name),
                isolations=self.isolations[name],
                isolated_ms=self.isolated[name] / self._per_ms,
            )
            for name in sorted({*self.isolated, *self.by_broker("picks")}, key=sort_key)
        )

    def totals(self, failures: Sequence[result.FailureTaken]) -> result.SendTotals:
        attempts = self.counts["attempts"].total()
        isolated = (each.isolated_after_ms for each in failures)
        used_again = (each.used_again_after_ms for each in failures)
        return result.SendTotals(
            **{name: getattr(self, name) for name in _COUNTED},
            attempts=attempts,
            failed_attempts=self.counts["failed"].total(),
            lost_by=dict(sorted(self.lost_by.items())),
            failing_ms=self.failing / self._per_ms,
            longest_send_ms=self.longest / self._per_ms if attempts else None,
            lasted_ms=self.last_done / self._per_ms,
            until_isolated_ms=max((ms for ms in isolated if ms is not None), default=None),
            until_used_again_ms=max((ms for ms in used_again if ms is not None), default=None),
        )

    def exceptions(self) -> tuple[result.ExceptionKind, ...]:
        return tuple(sorted(self._exceptions.values(), key=lambda kind: (-kind.messages, kind.first_message)))

    def failures(self) -> tuple[result.FailureTaken, ...]:
        return tuple(map(self._failure, self._cluster.courses))

    def _failure(self, course: FailureCourse) -> result.FailureTaken:
        failure, reaction = course.failure, course.failure.reaction
        ticks = ((name, getattr(course, name)) for name in _TIMES)
        times = {name: None if at is None else at / self._per_ms for name, at in ticks}
        return result.FailureTaken(
            broker_name=failure.broker_name,
            kind=reaction.kind,
            name=reaction.name,
            code=reaction.code or None,
            nameserver_notices_ms=None if failure.notices_us is None else failure.notices_us / 1000,
            failed=course.failed,
            isolated_after_ms=_between(times["began"], times["isolated"]),
            isolated_by=course.isolated_by,
            used_again_after_ms=_between(times["ended"], times["used_again"]),
            **{f"{name}_ms": ms for name, ms in times.items()},
        )


def _figures(counts: Mapping[str, Counter[Place]]) -> Callable[[Place], dict[str, Any]]:
    whole = counts["stored"].total()
    return lambda place: {
        **{figure: found[place] for figure, found in counts.items()},
        "share": counts["stored"][place] / whole if whole else None,
    }


def _between(since: float | None, then: float | None) -> float | None:
    return None if then is None or since is None else then - since


def _slice_width_us(scenario: SendScenario) -> int:
    alone = Fraction(scenario.latency.table[0], scenario.threads)
    per_message = alone if scenario.rate is None else Fraction(1_000_000) / scenario.rate
    ends = [] if scenario.duration_us is None else [Fraction(scenario.duration_us)]
    if scenario.messages is not None:
        ends.append(scenario.messages * per_message)
    wanted = min(ends) / 60
    return next((w * 10**e for e in range(14) for w in (1, 2, 5) if w * 10**e >= wanted), 10**14)
