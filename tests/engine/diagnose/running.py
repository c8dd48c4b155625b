"""A group of running processes, and the snapshot that somebody takes of it: each process computes its own share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import floor, inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb import MessageQueue, TopicRouteData
from rmqlb.engine.allocate.rules import JAVA_CLASSES, sdk_of_connection
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.diagnose.case import Case
from rmqlb.engine.diagnose.diagnose import diagnose
from rmqlb.engine.group import group_of
from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.message_queue import sort_queues
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.result import INFO
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import route

CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
AT = datetime(2026, 11, 21, 2, tzinfo=UTC)
VERSIONS = {"GO": "V4_5_2", "CPP": "V4_6_0"}
"""What all versions of these libraries report."""
TWO_BROKERS = (route(a=4, b=4),)


class Process(Struct, frozen=True):
    """A running consumer.

    `asks` is the broker whose list of consumers it got, `unlisted` are brokers that do not list it, and `cut` those that
    it does not reach either, so that it reads no queue there.
    """

    client_id: str
    strategy: str = "AVG"
    topics: tuple[str, ...] = ("T",)
    asks: str = "a"
    unlisted: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    language: str = "JAVA"
    age_s: int = 3600
    takes: str = "*"


def running(*processes: Process, routes: Sequence[TopicRouteData] = TWO_BROKERS, lag: int = 10) -> ClusterSnapshot:
    """What is seen of a group g of these processes on these topics; messages wait in queues without an owner."""
    brokers = sorted({queue.broker_name for each in routes for queue in each.subscribe_queues()})
    lists = {broker: _listed(broker, processes) for broker in brokers}
    held: dict[MessageQueue, set[str]] = {queue: set() for each in routes for queue in each.subscribe_queues()}
    for process in processes:
        for queue in _share(process, lists, routes):
            held[queue].add(process.client_id)
    group = ConsumerGroup(
        "g", Seen("the cluster", AT), consume_type="CONSUME_PASSIVELY", message_model="CLUSTERING",
        topics=tuple(sorted({topic for process in processes for topic in process.topics})) or ("T",),
        views=tuple(
            MemberView(tuple(lists[broker]), Seen(f"broker {broker}", AT), f"{broker}:10911")
            for broker in brokers
            if processes
        ),
        queues={q: QueueState(frozenset(its), 1000, 1000 if its else 1000 - lag) for q, its in held.items()},
        reports={process.client_id: _report(process) for process in reversed(processes)}, request_modes={}, polling_num=0,
    )  # fmt: skip
    return ClusterSnapshot(
        "test", "the cluster", AT, {each.topic: RouteSighting(each, Seen("the cluster")) for each in routes},
        {"g": group},
    )  # fmt: skip


def case_of(snapshot: ClusterSnapshot, name: str = "g", earlier: tuple[ConsumerGroup, ...] = ()) -> Case:
    return Case(group_of(snapshot, name), earlier)


def diagnosed(snapshot: ClusterSnapshot, name: str = "g", earlier: tuple[ConsumerGroup, ...] = ()) -> Diagnosis:
    return diagnose(case_of(snapshot, name, earlier))


def changed(snapshot: ClusterSnapshot, **changes: Any) -> ClusterSnapshot:
    return replace(snapshot, groups={"g": replace(snapshot.groups["g"], **changes)})


def answer(found: Diagnosis, code: str) -> str:
    causes = {each.code: f"of {', '.join(each.causes)}" for each in found.consequences}
    for each in found.findings:
        if each.code == code:
            return each.severity
    if code in causes or code in found.checked:
        return causes.get(code, "in order")
    return "unknown" if code in {each.code for each in found.unknown} else "not applicable"


def grave(found: Diagnosis) -> list[str]:
    return [finding.code for finding in found.findings if finding.severity != INFO]


def _listed(broker: str, processes: Iterable[Process]) -> list[Connection]:
    port = 40000 + ord(broker[0])
    return [
        Connection(each.client_id, f"192.0.2.{place}:{port}", each.language, VERSIONS.get(each.language, "V5_5_0"))
        for place, each in enumerate(processes)
        if broker not in {*each.unlisted, *each.cut}
    ]


def _share(
    process: Process, lists: dict[str, list[Connection]], routes: Iterable[TopicRouteData]
) -> Iterable[MessageQueue]:
    ids = tuple(each.client_id for each in lists[process.asks])
    sdk = sdk_of_connection(process.language, VERSIONS.get(process.language)).sdk
    members = Members(ids, sdk.strategy(process.strategy), sdk=sdk.name)
    for each in routes:
        if each.topic in process.topics:
            owners = assign(each, members).owners
            yield from (q for q, its in owners.items() if process.client_id in its and q.broker_name not in process.cut)


def _report(process: Process) -> MemberReport:
    return MemberReport(
        process.client_id, topics=frozenset(process.topics),
        strategy_class=CLASSES[process.strategy] if process.language == "JAVA" else None, client_rebalance=True,
        consumer_type="push", started_at=int((AT.timestamp() - process.age_s) * 1000),
        evidence=ConsumerEvidence(filters=dict.fromkeys(process.topics, process.takes)),
    )  # fmt: skip


LOOKS = (-20, -10, 0)
PER_S = 10
OFFSET = Callable[[float], float]
"""An offset, or a time, as it is at a time."""


def stored(t: float) -> float:
    return 100_000 + PER_S * (t + 1000)


class Doing(Struct, frozen=True):
    """What a consumer does with a queue; as it stands, a healthy one that is 2 messages behind.

    `done`, `pulled`: the first message that is not consumed, or not pulled. `gaps`: later messages that are consumed
    already. `consuming`: messages that an orderly listener has. `stored_at`: when the message of an offset was stored.
    `reports`: the offset that it reports to commit instead, as it has finished no message of the queue yet.
    """

    end: OFFSET = stored
    done: OFFSET = lambda t: stored(t) - 2
    pulled: OFFSET = stored
    consumed_at: OFFSET = lambda t: t - 0.1
    pulled_at: OFFSET = lambda t: t - 1
    locked_at: OFFSET = lambda t: 20 * floor((t - 7) / 20) + 7
    locked: bool = True
    dropped: bool = False
    consuming: int = 0
    mib: int = 0
    gaps: int = 0
    stored_at: OFFSET = lambda offset: (offset - 100_000) / PER_S - 1000
    since: float = -inf
    until: float = inf
    reports: int | None = None

    def state(self, t: float, owners: frozenset[str] | None) -> QueueState:
        """What brokers know of the queue: consumers commit every 5 s."""
        committed = floor(self.done(5 * floor(t / 5)))
        return QueueState(owners, floor(self.end(t)), committed, last_timestamp=ms(self.stored_at(committed - 1)))

    def has(self, t: float) -> bool:
        return self.since <= t < self.until

    def process_queue(self, queue: MessageQueue, t: float, skew_s: float) -> ProcessQueue:
        done, pulled = floor(self.done(t)), floor(self.pulled(t))
        cached = max(pulled - done - self.consuming - self.gaps, 0)
        return ProcessQueue(
            queue, cached=cached, cached_mib=self.mib, min_offset=done + self.consuming if cached else 0,
            max_offset=pulled - 1 if cached else 0, consuming=self.consuming,
            consuming_min_offset=done if self.consuming else 0,
            consuming_max_offset=done + self.consuming - 1 if self.consuming else 0,
            commit_offset=done if self.reports is None else self.reports, dropped=self.dropped, locked=self.locked,
            unlock_tries=0, last_lock=ms(self.locked_at(t) + skew_s), last_pull=ms(self.pulled_at(t) + skew_s),
            last_consume=ms(self.consumed_at(t) + skew_s),
        )  # fmt: skip


class Reporting(Struct, frozen=True):
    """What a consumer says of itself.

    `skew_s`: by how much its clock is ahead. Rates are per topic; None is what its queues get.
    """

    orderly: bool = False
    call_ms: float = 20.0
    skew_s: float = 0.0
    pulled_per_s: float | None = None
    consumed_per_s: float | None = None
    failed_per_s: float = 0.0
    limits: PullLimits = PullLimits(1000, 100, 2000)
    answers: bool = True
    stacks: tuple[str, ...] | None = None


def ms(t: float) -> int:
    return round((AT.timestamp() + t) * 1000)


def watched(
    snapshot: ClusterSnapshot,
    doing: Mapping[tuple[str, MessageQueue], Doing] | None = None,
    reporting: Mapping[str, Reporting] | None = None,
    looks: Sequence[float] = LOOKS,
    *,
    name: str = "g",
) -> tuple[ClusterSnapshot, ...]:
    """The looks at a group g of these times, the oldest first; consumers without a value do the healthy thing."""
    group = snapshot.groups[name]
    shares = {client_id: owned(snapshot, client_id, name) for client_id in group.reports}
    does = {(i, queue): Doing() for i, its in shares.items() for queue in its} | dict(doing or {})
    return tuple(_look(snapshot, group, does, reporting or {}, t) for t in looks)


def of_looks(looks: Sequence[ClusterSnapshot]) -> Diagnosis:
    return diagnosed(looks[-1], earlier=earlier(looks))


def earlier(looks: Sequence[ClusterSnapshot], name: str = "g") -> tuple[ConsumerGroup, ...]:
    return tuple(look.groups[name] for look in looks[:-1])


def owned(snapshot: ClusterSnapshot, client_id: str, name: str = "g") -> list[MessageQueue]:
    return sort_queues(q for q, state in snapshot.groups[name].queues.items() if client_id in (state.owners or ()))


def _look(
    snapshot: ClusterSnapshot,
    group: ConsumerGroup,
    doing: Mapping[tuple[str, MessageQueue], Doing],
    reporting: Mapping[str, Reporting],
    t: float,
) -> ClusterSnapshot:
    at, name = AT + timedelta(seconds=t), group.group
    silent = {client_id for client_id, its in reporting.items() if not its.answers}
    having: dict[MessageQueue, dict[str, Doing]] = {queue: {} for queue in group.queues}
    mine: dict[str, dict[MessageQueue, Doing]] = {client_id: {} for client_id in group.reports}
    for (client_id, queue), does in doing.items():
        if does.has(t):
            mine[client_id][queue] = does
            if not does.dropped:
                having[queue][client_id] = does
    unread = {queue: Doing(done=lambda _: 100_000) for queue in group.queues}
    unread |= {queue: does for (_, queue), does in doing.items() if not does.dropped}
    queues = {
        queue: (next(iter(its.values())) if its else unread[queue]).state(
            t, None if silent & its.keys() else frozenset(its)
        )
        for queue, its in having.items()
    }
    reports = {
        i: replace(report, evidence=_evidence(report, mine[i], reporting.get(i, Reporting()), t))
        for i, report in group.reports.items()
        if i not in silent
    }
    group = replace(group, seen=replace(group.seen, at=at), queues=queues, reports=reports)
    missing = tuple(Unread("member", name, "timed out after 5 s", i, no_answer=True) for i in sorted(silent))
    return replace(snapshot, taken_at=at, groups={name: group}, unread=(*snapshot.unread, *missing))


def _evidence(report: MemberReport, mine: Mapping[MessageQueue, Doing], says: Reporting, t: float) -> ConsumerEvidence:
    rates = {topic: PER_S * sum(queue.topic == topic for queue in mine) for topic in report.topics or ()}
    return ConsumerEvidence(
        read_at=ms(t + 0.5),
        queues=tuple(mine[queue].process_queue(queue, t, says.skew_s) for queue in sort_queues(mine)),
        statuses={
            topic: ConsumeStatus(
                says.call_ms, rate if says.consumed_per_s is None else says.consumed_per_s, says.failed_per_s, 0,
                rate if says.pulled_per_s is None else says.pulled_per_s,
            )
            for topic, rate in rates.items()
        },
        limits=says.limits,
        orderly=says.orderly,
        stacks=says.stacks,
        filters=dict.fromkeys(report.topics or (), "*"),
    )  # fmt: skip
