from collections.abc import Mapping, Sequence
from datetime import date

from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import BrokerData, MessageQueue, QueueData, TopicRouteData
from rmqlb.engine.allocate.rules import RULES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.sweep_failures.cases import Lost, ZoneRule, cluster_of
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.model.group import ConsumerGroup, MemberReport, QueueState
from rmqlb.model.policy import LIMITS, Limit, Policy, Rule
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.sweep_failures import LOSS_KINDS, FailureSweep
from tests.engine.check.clusters import cluster
from tests.support.builders import group

DAY = date(2026, 6, 15)
CLASSES = {name: RULES[name].java_class for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM")}
ROOMS = Settings(consumer_idcs=frozenset({"r1"}))
GROUP_LIMITS = {
    "unassigned": 0, "imbalance": 1.5, "idle": 0, "minConsumers": 2, "duplicateOwners": 0, "withoutLock": 0,
    "movedOnConsumerLoss": 0.4, "movedOnBrokerLoss": 0.3,
}  # fmt: skip
TOPIC_LIMITS = {"writableBrokers": 1, "minBrokers": 2, "missingMasters": 0}


def policy(of_groups: Mapping[str, float] = GROUP_LIMITS, of_topics: Mapping[str, float] = TOPIC_LIMITS) -> Policy:
    rules = [
        Rule(name, LIMITS[next(iter(limits))].about, ("*",), tuple(Limit(*each) for each in limits.items()))
        for name, limits in (("groups", of_groups), ("topics", of_topics))
        if limits
    ]
    return Policy("p.yaml", tuple(rules))


def broker(name: str, *hosts: str) -> BrokerData:
    return BrokerData("c", name, {number: f"{host}:10911" for number, host in enumerate(hosts)})


def route(topic: str, brokers: Sequence[BrokerData], queues: Sequence[int]) -> TopicRouteData:
    datas = tuple(QueueData(b.broker_name, n, n, 6) for b, n in zip(brokers, queues, strict=True))
    return TopicRouteData(topic, datas, tuple(brokers))


def consumers(
    name: str,
    ids: Sequence[str],
    topics: Sequence[str],
    strategy: str = "AVG",
    *,
    subscribed: dict[str, frozenset[str]] | None = None,
    lags: dict[MessageQueue, int] | None = None,
) -> ConsumerGroup:
    found = group(" ".join(ids), name=name)
    reports = {each: MemberReport(each, (subscribed or {}).get(each), CLASSES[strategy]) for each in set(ids)}
    queues = {queue: QueueState(None, 100 + lag, 100) for queue, lag in (lags or {}).items()}
    return replace(found, topics=tuple(topics), reports=reports, queues=queues)


def zones(snapshot: ClusterSnapshot) -> tuple[ZoneRule, ...]:
    ids = [client_id for each in snapshot.groups.values() for client_id in each.client_ids or ()]
    datas = [each for sighting in snapshot.routes.values() for each in sighting.route.broker_datas]
    hosts = [each.partition("@")[0] for each in ids]
    hosts += [address.partition(":")[0] for each in datas for address in each.broker_addrs.values()]
    inside = {host in ("10.0.0.1", "10.0.0.2", "10.0.0.3") for host in hosts}
    every = ZoneRule("z2", "*")
    return (ZoneRule("z1", "10.0.0.0/30"), every) if len(inside) == 2 else (every,)


def request(snapshot: ClusterSnapshot, **more: object) -> SweepRequest:
    values = {"zones": zones(snapshot), **more}
    return SweepRequest(sorted(snapshot.groups), sorted(snapshot.routes), **values)  # type: ignore[arg-type]


def swept(snapshot: ClusterSnapshot, rules: Policy | None = None, **more: object) -> FailureSweep:
    return sweep_snapshot(snapshot, rules or policy(), request(snapshot, **more), DAY, settings=ROOMS)[0]


def every_loss(snapshot: ClusterSnapshot) -> tuple[Lost, ...]:
    ids = [each.client_ids or () for each in snapshot.groups.values()]
    routes = [each.route for each in snapshot.routes.values()]
    return cluster_of(ids, routes, zones(snapshot)).failures(LOSS_KINDS)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    """Up to 5 brokers and 8 consumers on machines that they may share, up to 2 topics and 3 groups."""
    hosts = st.sampled_from([f"10.0.0.{number}" for number in range(1, 7)])
    names = draw(st.lists(st.sampled_from(["r1@a", "r2@b", "r1@c", "r2@d", "e"]), min_size=1, max_size=5, unique=True))
    brokers = [broker(name, *draw(st.lists(hosts, min_size=1, max_size=2))) for name in names]
    routes = []
    for topic in draw(st.sampled_from([("T",), ("T", "U")])):
        own = draw(st.lists(st.sampled_from(brokers), min_size=1, unique_by=lambda each: each.broker_name))
        routes.append(route(topic, own, [draw(st.integers(0, 4)) for _ in own]))
    ids = [f"{draw(hosts)}@{number}" for number in range(draw(st.integers(1, 8)))]
    groups = []
    for name in draw(st.sampled_from([("g",), ("g", "h"), ("g", "h", "i")])):
        own_ids = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=8, unique=not draw(st.booleans())))
        topics = draw(st.sampled_from([("T",), tuple(each.topic for each in routes)]))
        reads = {each: frozenset(draw(st.sampled_from([topics, topics, topics[:1]]))) for each in own_ids}
        queues = [queue for each in routes if each.topic in topics for queue in each.subscribe_queues()]
        lags = {queue: draw(st.integers(0, 9)) for queue in queues if draw(st.booleans())}
        strategy = draw(st.sampled_from(sorted(CLASSES)))
        known = draw(st.booleans())
        groups.append(consumers(name, own_ids, topics, strategy, subscribed=reads if known else None, lags=lags))
    return cluster(*groups, routes=routes)
