from typing import NamedTuple

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.check import GROUP_MEASURES, TOPIC_MEASURES, check_policy
from rmqlb.model.group import CONSUME_POP, MemberReport, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.policy import FORBIDDEN, GROUP, LIMITS, Bound, JudgedLimit
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, route
from tests.support.mismatches import every_case

from .clusters import AVG_CLASS, DAY, checked, cluster, members, policy

BY_CIRCLE = "AllocateMessageQueueAveragelyByCircle"
BY_HASH = "AllocateMessageQueueConsistentHash"


class Case(NamedTuple):
    snapshot: ClusterSnapshot
    limit: str
    bound: Bound
    verdict: str
    value: Bound | None
    why: str = ""


def one(snapshot: ClusterSnapshot, limit: str, bound: Bound, **more: object) -> JudgedLimit:
    report = checked(snapshot, {limit: bound}, **more)
    (judgement,) = (each for each in report.judged if each.limit is not None)
    return judgement


def half_told(owners: str | None = None, *routes: TopicRouteData) -> ClusterSnapshot:
    seen = replace(
        members("x y", strategy=None, owners=owners), reports={"x": MemberReport("x", strategy_class=AVG_CLASS)}
    )
    return cluster(seen, routes=routes or (route(a=4),))


READ = members("x", lag={0: 5, 1: 0, 2: 0, 3: 0})
RETRIED = cluster(replace(READ, queues={**READ.queues, MessageQueue("%RETRY%g", "a", 0): QueueState(None, 109, 100)}))
"""Nine messages that the group gave back wait beside five of its topic's."""
USED_HALFWAY = TopicRouteData(
    "T",
    (
        QueueData("reads", 1, 0, 4),
        QueueData("writes", 0, 1, 2),
        QueueData("nothing-to-read", 0, 1, 4),
        QueueData("nothing-to-write", 1, 0, 2),
    ),
    (),
)
XYZ = cluster(members("x y z"))
"""Predicted by AVG: x has two queues of four, y and z one each."""
TWO_STRATEGIES = cluster(
    replace(
        members("x y"),
        reports={"x": MemberReport("x", strategy_class=AVG_CLASS), "y": MemberReport("y", strategy_class="OurOwn")},
    )
)
"""Each is run by some member: neither is in doubt."""
GRPC = "host@1@0@abc"


def ordered(*, has_master: bool, reported: bool | None = True, acting: bool = False) -> ClusterSnapshot:
    found = members("x")
    report = replace(found.reports["x"], evidence=ConsumerEvidence(orderly=reported))
    broker = BrokerData("c", "a", {0 if has_master else 1: "a:1"}, acting)
    here = replace(route(a=4), broker_datas=(broker,))
    return cluster(replace(found, reports={"x": report}), routes=(here,))


NO_LOCK = "whether its consumers consume in order, or a slave acts as the master, is not known"
ONE_OWNER = cluster(members("x y", owners="x x x x"))
HALF_OWNED = cluster(members("x y", owners="x - y -"))
SHARED_ID = cluster(members("x x y"))
CIRCLE_FITS = cluster(members("x y", strategy=None, owners="x y x y"))
ANY_FITS = cluster(members("x", strategy=None, owners="x x x x"))
FITTING = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
FITS = "the observed owners match "
TWO_BROKERS = cluster(members("x y"), routes=(route(a=2, b=2),))
TWO_TOPICS = cluster(members("x y", topics="T U"), routes=(route(a=4), route("U", a=1, b=1)))
OTHER_TOPICS = cluster(members("x y z", subscribed={"x": "T", "y": "T %RETRY%g", "z": "U"}))
X_IS_LOST = "3 of 4 queues move when consumer x is lost"  # x x y z becomes y y z z
A_IS_LOST = "queues move when broker a is lost"
MEASURED = [
    Case(ordered(has_master=True), "withoutLock", 0, "passed", 0),
    Case(ordered(has_master=False), "withoutLock", 4, "passed", 4, "T a 0-3"),
    Case(ordered(has_master=False), "withoutLock", 3, "failed", 4, "T a 0-3"),
    Case(ordered(has_master=False, reported=False), "withoutLock", 0, "passed", 0),
    Case(ordered(has_master=True, reported=None), "withoutLock", 0, "passed", 0),
    Case(ordered(has_master=False, reported=None), "withoutLock", 0, "incomplete", None, NO_LOCK),
    Case(ordered(has_master=False, acting=True), "withoutLock", 0, "incomplete", None, NO_LOCK),
    Case(cluster(routes=(route(a=1),)), "writableBrokers", 1, "passed", 1, "a"),
    Case(cluster(routes=(route(a=1, b=1),)), "writableBrokers", 3, "failed", 2, "a, b"),
    Case(cluster(routes=(route("T", 6, False, a=1),)), "writableBrokers", 1, "failed", 0),
    Case(cluster(routes=(route("T", 4, True, a=1),)), "writableBrokers", 1, "failed", 0),
    Case(XYZ, "minConsumers", 3, "passed", 3),
    Case(XYZ, "minConsumers", 4, "failed", 3),
    Case(cluster(members("x x")), "minConsumers", 2, "passed", 2),
    Case(XYZ, "imbalance", 1.5, "passed", 1.5),
    Case(XYZ, "imbalance", 1.49, "failed", 1.5, "x has 2 of 4 queues"),
    Case(cluster(members("x y z", owners="y y y z")), "imbalance", 2, "failed", 2.25, "y has 3 of 4 queues"),
    Case(ONE_OWNER, "idle", 0, "failed", 1, "y"),
    Case(ONE_OWNER, "idle", 1, "passed", 1),
    Case(cluster(members("1 2 3 4 5 6 7 8 9")), "idle", 0, "failed", 5, "5, 6, 7 and 2 more"),
    Case(XYZ, "unassigned", 0, "passed", 0),
    Case(HALF_OWNED, "unassigned", 1, "failed", 2, "T a 1,3"),
    Case(SHARED_ID, "unassigned", 0, "failed", 1, "T a 2"),
    Case(cluster(members("x y", owners="x+y x y y")), "duplicateOwners", 0, "failed", 1, "T a 0"),
    Case(HALF_OWNED, "duplicateOwners", 0, "passed", 0),
    Case(SHARED_ID, "duplicateClientIds", 0, "failed", 1, "x"),
    Case(XYZ, "duplicateClientIds", 0, "passed", 0),
    Case(XYZ, "movedOnConsumerLoss", 0.75, "passed", 0.75, X_IS_LOST),
    Case(XYZ, "movedOnConsumerLoss", 0.74, "failed", 0.75, X_IS_LOST),
    Case(cluster(members("x")), "movedOnConsumerLoss", 0.0, "passed", 0),
    Case(TWO_BROKERS, "movedOnBrokerLoss", 0.4, "failed", 0.5, f"1 of 2 {A_IS_LOST}"),
    Case(cluster(members("x y")), "movedOnBrokerLoss", 0.0, "passed", 0),
    Case(TWO_TOPICS, "movedOnBrokerLoss", 0.9, "failed", 1, f"1 of 1 {A_IS_LOST}"),
    Case(OTHER_TOPICS, "mixedSubscriptions", 0, "failed", 1, "z"),
    Case(cluster(members("x y", subscribed={"x": "T", "y": "T %RETRY%g"})), "mixedSubscriptions", 0, "passed", 0),
    Case(cluster(members("x")), "mixedSubscriptions", 0, "passed", 0),
    Case(cluster(members("x y", "x y", "x")), "splitViews", 0, "failed", 1, "broker 2"),
    Case(cluster(members("x y", "y x")), "splitViews", 0, "passed", 0),
    Case(TWO_STRATEGIES, "mixedStrategies", 0, "failed", 1),
    Case(TWO_STRATEGIES, "mixedStrategies", 1, "passed", 1),
    Case(CIRCLE_FITS, "mixedStrategies", 0, "passed", 0),
    Case(cluster(members("x", strategy=None)), "mixedStrategies", 0, "passed", 0),
    Case(half_told("x x y y"), "mixedStrategies", 0, "passed", 0),
    Case(cluster(members("x", lag={0: 5, 1: 7, 2: 0, 3: 0})), "lag", 11, "failed", 12, "T a 1, T a 0"),
    Case(cluster(members("x", lag={0: 5, 1: -3, 2: 0, 3: 0})), "lag", 5, "passed", 5),
    Case(RETRIED, "lag", 5, "passed", 5),
    Case(XYZ, "strategies", ("AVG",), "passed", ("AVG",)),
    Case(XYZ, "strategies", ("AVG_BY_CIRCLE", "CONFIG"), "failed", ("AVG",)),
    Case(TWO_STRATEGIES, "strategies", ("AVG",), "failed", ("AVG", "OurOwn")),
    Case(TWO_STRATEGIES, "strategies", ("AVG", "OurOwn"), "passed", ("AVG", "OurOwn")),
    Case(CIRCLE_FITS, "strategies", ("AVG_BY_CIRCLE",), "passed", ("AVG_BY_CIRCLE",)),
    Case(CIRCLE_FITS, "strategies", ("AVG",), "failed", ("AVG_BY_CIRCLE",), f"{FITS}AVG_BY_CIRCLE"),
    Case(ANY_FITS, "strategies", ("CONFIG",), "failed", FITTING, FITS + " or ".join(FITTING)),
    Case(ANY_FITS, "strategies", FITTING, "passed", FITTING),
    Case(half_told("x x y y"), "strategies", ("AVG",), "passed", ("AVG",), f"{FITS}AVG"),
    Case(half_told("x x y y"), "strategies", ("CONFIG",), "failed", ("AVG",), f"{FITS}AVG"),
    Case(cluster(routes=(route(a=4, b=4),)), "minBrokers", 2, "passed", 2),
    Case(cluster(routes=(USED_HALFWAY,)), "minBrokers", 3, "failed", 2, "reads, writes"),
    Case(cluster(routes=(route(a=4, b=0),)), "minBrokers", 2, "failed", 1, "a"),
    Case(cluster(routes=(route(perm=0, a=4, b=4),)), "minBrokers", 1, "failed", 0),
    Case(cluster(routes=(route(masters=False, a=4, b=4),)), "missingMasters", 1, "failed", 2, "a, b"),
    Case(cluster(routes=(TopicRouteData("T", (QueueData("a", 4, 4, 6),), ()),)), "missingMasters", 0, "failed", 1, "a"),
    Case(cluster(), "missingMasters", 0, "passed", 0),
]


def test_every_limit_is_measured_broken_and_kept_above() -> None:
    assert {name for name, kind in LIMITS.items() if kind.about == GROUP} == {*GROUP_MEASURES, FORBIDDEN}
    assert {name for name, kind in LIMITS.items() if kind.about != GROUP} == set(TOPIC_MEASURES)
    for verdict in ("passed", "failed"):
        assert {case.limit for case in MEASURED if case.verdict == verdict} == {*LIMITS} - {FORBIDDEN}


UNSEEN = cluster(replace(members("x"), views=None))
NO_ROUTE = cluster(members("x y", topics="T U", owners="x - y y"))
NO_ROUTE_READ = cluster(members("x", topics="T U", lag={0: 5, 1: 0, 2: 0, 3: 0}))
SPLIT_ROUTE = replace(
    cluster(members("x y")), routes={"T": RouteSighting(route(a=4), HERE, (RouteSighting(route(a=3, b=1), HERE),))}
)
UNTOLD = cluster(members("x y"), unread=(Unread("members", "g", "timeout", "b"),))
SILENT = cluster(members("x y", strategy=None))
STATIC = TopicRouteData(
    "T",
    (QueueData("a", 4, 4, 6),),
    (BrokerData("c", "a", {0: "a:1"}),),
    topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {})},
)
NO_STRATEGY = "the strategy of its consumers is not known (`assume` in the rule names one)"
U_UNKNOWN = "the route of topic U is not known"
B_SILENT = "broker b did not report its consumers: timeout"
Y_SILENT = "y did not report a strategy"
NONE_REPORTED = "its consumers report no strategy, and "
LAGGING = cluster(members("x", lag={0: 5}))
PULLING = cluster(members("x y", consume_type="CONSUME_ACTIVELY"))
UNSET = cluster(members("x y", strategy="AllocateMessageQueueByMachineRoom"))
OWN_CLASS = cluster(members("x y", strategy="OurOwn"))
NO_FIT = cluster(members("x y", strategy=None, owners="x x x y"))
FIT_BUT_NO_ROUTE = cluster(members("x y", strategy=None, topics="T U", owners="x x y y"))
INCOMPLETE = [
    *(
        Case(UNSEEN, limit, 1, "incomplete", None, "its consumers are unknown")
        for limit in ("minConsumers", "idle", "duplicateClientIds", "splitViews", "movedOnConsumerLoss")
    ),
    Case(UNSEEN, "mixedStrategies", 1, "incomplete", None, "its consumers are unknown"),
    Case(UNSEEN, "mixedSubscriptions", 1, "incomplete", None, "its consumers are unknown"),
    Case(SILENT, "mixedStrategies", 0, "incomplete", None, "x, y did not report a strategy"),
    Case(half_told("x y x y"), "mixedStrategies", 0, "incomplete", None, Y_SILENT),
    Case(cluster(members("")), "imbalance", 2, "incomplete", None, "no consumer is visible"),
    Case(cluster(members("", topics=None)), "idle", 2, "incomplete", None, "no consumer is visible to report its topics"),
    Case(cluster(members("x", topics=None)), "idle", 2, "incomplete", None, "its topics are unknown"),
    Case(cluster(members("x", topics="%RETRY%g")), "idle", 2, "incomplete", None, "it subscribes to no topic"),
    Case(NO_ROUTE, "idle", 2, "incomplete", None, U_UNKNOWN),
    Case(NO_ROUTE, "unassigned", 0, "failed", 1, "T a 1"),
    Case(NO_ROUTE, "unassigned", 1, "incomplete", None, U_UNKNOWN),
    Case(SPLIT_ROUTE, "idle", 2, "incomplete", None, "NameServers give different routes of topic T"),
    Case(SPLIT_ROUTE, "minBrokers", 2, "incomplete", None, "NameServers give different routes of it"),
    Case(SPLIT_ROUTE, "missingMasters", 0, "passed", 0),
    Case(UNTOLD, "idle", 2, "incomplete", None, B_SILENT),
    Case(UNTOLD, "minConsumers", 2, "passed", 2),
    Case(UNTOLD, "minConsumers", 3, "incomplete", None, B_SILENT),
    Case(UNTOLD, "duplicateClientIds", 0, "incomplete", None, B_SILENT),
    Case(SILENT, "idle", 2, "incomplete", None, NO_STRATEGY),
    Case(SILENT, "movedOnConsumerLoss", 1.0, "incomplete", None, NO_STRATEGY),
    Case(SILENT, "strategies", ("AVG",), "incomplete", None, f"{NONE_REPORTED}no queue's owner is known"),
    Case(FIT_BUT_NO_ROUTE, "strategies", ("AVG",), "incomplete", None, NONE_REPORTED + U_UNKNOWN),
    Case(NO_FIT, "strategies", ("AVG",), "incomplete", None),
    Case(SILENT, "mixedSubscriptions", 0, "incomplete", None, "x, y did not report what they subscribe to"),
    Case(cluster(members("x y z", subscribed={"x": "T", "y": "U"})), "mixedSubscriptions", 0, "failed", 1),
    Case(ANY_FITS, "strategies", ("AVG", "CONSISTENT_HASH"), "incomplete", None, FITS + " or ".join(FITTING)),
    # A queue for each: AVG and AVG_BY_CIRCLE give the same owners.
    Case(half_told("x y", route(a=2)), "strategies", ("AVG",), "incomplete", None, Y_SILENT),
    Case(half_told("x x y y", route("U", a=4)), "strategies", ("CONFIG",), "failed", ("AVG",)),
    Case(OWN_CLASS, "idle", 2, "incomplete", None),
    Case(cluster(members("x y", owners="x ? y y", strategy=None)), "duplicateOwners", 0, "passed", 0),
    Case(LAGGING, "lag", 4, "failed", 5),
    Case(LAGGING, "lag", 5, "incomplete", None, "the offsets of 3 queues are not known (T a 1-3)"),
    Case(NO_ROUTE_READ, "lag", 4, "failed", 5, "T a 0"),
    Case(NO_ROUTE_READ, "lag", 5, "incomplete", None, U_UNKNOWN),
    Case(cluster(members(f"x {GRPC}")), "idle", 2, "incomplete", None),
    Case(PULLING, "idle", 2, "incomplete", None),
    Case(cluster(members("x y", owners="- - - -")), "imbalance", 2, "incomplete", None, "no queue has an owner"),
    Case(cluster(members("x y"), routes=(STATIC,)), "movedOnBrokerLoss", 1.0, "incomplete", None),
    Case(UNSET, "idle", 2, "incomplete", None),
]  # fmt: skip


@every_case("case", [*MEASURED, *INCOMPLETE], ids=lambda case: f"{case.limit}-{case.verdict}-{case.why[:40]}")
def test_what_is_certain_decides_and_what_is_missing_is_never_taken_for_good(case: Case) -> None:
    judgement = one(case.snapshot, case.limit, case.bound)
    assert (judgement.verdict, judgement.value) == (case.verdict, case.value)
    if case.why:
        assert judgement.why == case.why


DEALT = ("imbalance", "idle", "unassigned", "duplicateOwners", "movedOnConsumerLoss", "movedOnBrokerLoss", "strategies")


@every_case("limit", DEALT)
@every_case(("snapshot", "why"), [
    (cluster(members("x", message_model="BROADCASTING")), "group g is BROADCASTING: every consumer reads"),
    (cluster(members("x", consume_type=CONSUME_POP)), "group g consumes by POP: several consumers may take"),
    (cluster(replace(members(""), polling_num=2)), "brokers list no consumer of group g, but 2 receive requests"),
    (cluster(members(GRPC)), "the consumers of group g look like gRPC clients (host@1@0@abc): the Proxy gives"),
])  # fmt: skip
def test_a_group_that_deals_out_no_queues_is_apart(snapshot: ClusterSnapshot, why: str, limit: str) -> None:
    judgement = one(snapshot, limit, 1)
    assert judgement.verdict == "notApplicable"
    assert (judgement.why or "").startswith(why)


def test_a_broadcasting_group_has_no_lag_at_the_brokers() -> None:
    snapshot = cluster(members("x", message_model="BROADCASTING", lag={0: 5}))
    assert one(snapshot, "lag", 0).verdict == "notApplicable"


@every_case(("snapshot", "assume", "bound", "value", "basis"), [
    (SILENT, "AVG_BY_CIRCLE", 0, 0, "assumed"),
    (XYZ, "CONFIG", 0, 0, "predicted"),  # what members report goes before what a rule assumes
    (cluster(members("x y", consume_type=None)), None, 0, 0, "predicted"),  # taken for push consumers
    (ONE_OWNER, None, 1, 1, "observed"),
])  # fmt: skip
def test_the_basis_of_owners(snapshot: ClusterSnapshot, assume: str | None, bound: int, value: int, basis: str) -> None:
    judgement = one(snapshot, "idle", bound, assume=assume)
    assert (judgement.verdict, judgement.value, judgement.basis) == ("passed", value, basis)


@every_case(("strategy", "by_client", "basis"), [
    (AVG_CLASS, True, "predicted"),
    (AVG_CLASS, False, "predicted"),
    (BY_CIRCLE, False, "predicted"),
    (BY_HASH, True, "predicted"),
    (BY_HASH, None, "predicted"),
    (BY_HASH, False, None),
])  # fmt: skip
def test_strategies_that_brokers_have_are_predictable(strategy: str, by_client: bool | None, basis: str | None) -> None:
    """Brokers have AVG and AVG_BY_CIRCLE (`QueryAssignmentProcessor.doLoadBalance`)."""
    seen = members("x y", strategy=strategy)
    reports = {name: replace(report, client_rebalance=by_client) for name, report in seen.reports.items()}
    judgement = one(cluster(replace(seen, reports=reports, request_modes={})), "idle", 2)
    assert judgement.basis == basis
    assert ("which brokers do not have" in (judgement.why or "")) == (basis is None)


def test_without_request_modes_it_is_unknown_whether_brokers_assign_queues_or_consumers_pop() -> None:
    seen = members("x y", strategy=AVG_CLASS)
    reports = {name: replace(report, client_rebalance=False) for name, report in seen.reports.items()}
    judgement = one(cluster(replace(seen, reports=reports)), "unassigned", 0)
    assert (judgement.verdict, judgement.value) == ("incomplete", None)
    assert "no broker reported its request modes" in (judgement.why or "")


def test_a_strategy_that_needs_settings_is_predicted_once_they_are_given() -> None:
    snapshot = cluster(
        members("x y", strategy="AllocateMessageQueueByMachineRoom"), routes=(route("T", 6, True, **{"r1@a": 4}),)
    )
    report = check_policy(snapshot, policy({"idle": 0}), DAY, settings=Settings(consumer_idcs=frozenset({"r1"})))
    assert [(one.verdict, one.basis) for one in report.judged] == [("passed", "predicted")]


@every_case("inner", ["CONFIG", "PIN-CONFIG"])
def test_the_strategy_inside_another_needs_its_settings_as_well(inner: str) -> None:
    given = Settings(inner=inner, hosts=frozenset({"x"}))
    (judgement,) = check_policy(SILENT, policy({"unassigned": 0}, assume="PIN"), DAY, settings=given).judged
    assert judgement.verdict == "incomplete"
    assert (judgement.why or "").startswith("consumers run CONFIG, whose settings are not known")
