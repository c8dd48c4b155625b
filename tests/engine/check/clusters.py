from collections.abc import Mapping, Sequence
from datetime import date

from msgspec.structs import replace

from rmqlb import MessageQueue, TopicRouteData
from rmqlb.engine.check import check_policy
from rmqlb.model.group import ConsumerGroup, MemberReport, QueueState
from rmqlb.model.policy import GROUP, LIMITS, Bound, JudgedPolicy, Limit, Policy, Rule, Waiver
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, route

DAY = date(2026, 6, 15)
AVG_CLASS = "AllocateMessageQueueAveragely"


def cluster(
    *groups: ConsumerGroup, routes: Sequence[TopicRouteData] = (route(a=4),), unread: tuple[Unread, ...] = ()
) -> ClusterSnapshot:
    return ClusterSnapshot(
        "test", "a test", routes={each.topic: RouteSighting(each, HERE) for each in routes},
        groups={each.group: each for each in groups}, unread=unread,
    )  # fmt: skip


def members(
    *views: str,
    name: str = "g",
    topics: str | None = "T",
    owners: str | None = None,
    strategy: str | None = AVG_CLASS,
    subscribed: Mapping[str, str] | None = None,
    lag: Mapping[int, int] | None = None,
    **more: str | None,
) -> ConsumerGroup:
    """A group whose members each broker lists in one text; `strategy` None: no member reports one.

    `owners` are those of each queue of T on broker a, `lag` its unread messages: `x x y+z -`, where `-` is nobody and `?`
    unknown.
    """
    ids = {client_id for view in views for client_id in view.split()}
    found = group(*views, name=name, **more)  # type: ignore[arg-type]
    held = {"-": frozenset[str](), "?": None}
    states = {
        MessageQueue("T", "a", i): QueueState(held.get(who, frozenset(who.split("+"))))
        for i, who in enumerate((owners or "").split())
    }
    for i, number in (lag or {}).items():
        queue = MessageQueue("T", "a", i)
        states[queue] = replace(states.get(queue, QueueState()), broker_offset=100 + number, consumer_offset=100)
    reading = {client_id: frozenset(its.split()) for client_id, its in (subscribed or {}).items()}
    reporting = sorted(ids if strategy or subscribed else ())
    reports = {client_id: MemberReport(client_id, reading.get(client_id), strategy) for client_id in reporting}
    return replace(found, topics=None if topics is None else tuple(topics.split()), queues=states, reports=reports)


def policy(limits: Mapping[str, Bound], *patterns: str, waivers: tuple[Waiver, ...] = (), **more: object) -> Policy:
    about = {LIMITS[name].about for name in limits}.pop() if limits else GROUP
    bounds = tuple(Limit(name, bound) for name, bound in limits.items())
    return Policy("p.yaml", (Rule("r", about, patterns or ("*",), bounds, **more),), waivers)  # type: ignore[arg-type]


def checked(snapshot: ClusterSnapshot, limits: Mapping[str, Bound], *patterns: str, **more: object) -> JudgedPolicy:
    return check_policy(snapshot, policy(limits, *patterns, **more), DAY)  # type: ignore[arg-type]
