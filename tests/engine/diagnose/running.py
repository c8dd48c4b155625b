"""A group of running processes, and the snapshot that somebody takes of it: each process computes its own share."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rmqlb import MessageQueue, TopicRouteData
from rmqlb.engine.allocate.rules import JAVA_CLASSES, sdk_of_connection
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.diagnose.diagnose import diagnose
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.group import Group, assumption, gaps
from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.result import INFO
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
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
        "g",
        Seen("the cluster", AT),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        topics=tuple(sorted({topic for process in processes for topic in process.topics})) or ("T",),
        views=tuple(
            MemberView(tuple(lists[broker]), Seen(f"broker {broker}", AT), f"{broker}:10911")
            for broker in brokers
            if processes
        ),
        queues={q: QueueState(frozenset(its), 1000, 1000 if its else 1000 - lag) for q, its in held.items()},
        reports={process.client_id: _report(process) for process in reversed(processes)},
        request_modes={},
        polling_num=0,
    )
    return ClusterSnapshot(
        "test",
        "the cluster",
        AT,
        {each.topic: RouteSighting(each, Seen("the cluster")) for each in routes},
        {"g": group},
    )


def evidence_of(snapshot: ClusterSnapshot, name: str = "g", earlier: tuple[ConsumerGroup, ...] = ()) -> GroupEvidence:
    return GroupEvidence(Group(snapshot, name, Settings(), assumption(snapshot, name), gaps(snapshot)), earlier)


def diagnosed(snapshot: ClusterSnapshot, name: str = "g", earlier: tuple[ConsumerGroup, ...] = ()) -> Diagnosis:
    return diagnose(evidence_of(snapshot, name, earlier))


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
    return [
        Connection(
            process.client_id,
            f"192.0.2.{place}:{40000 + ord(broker[0])}",
            process.language,
            VERSIONS.get(process.language, "V5_5_0"),
        )
        for place, process in enumerate(processes)
        if broker not in {*process.unlisted, *process.cut}
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
        process.client_id,
        topics=frozenset(process.topics),
        strategy_class=CLASSES[process.strategy] if process.language == "JAVA" else None,
        client_rebalance=True,
        consumer_type="push",
        started_at=int((AT.timestamp() - process.age_s) * 1000),
        evidence=ConsumerEvidence(filters=dict.fromkeys(process.topics, process.takes)),
    )
