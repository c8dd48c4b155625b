"""What each limit measures of many odd clusters, as `limits.txt` records it, and the verdict on what was measured."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.check import (
    GROUP_MEASURES,
    TOPIC_MEASURES,
    Measured,
    check_policy,
    measure_group,
    measure_topic,
    verdict,
)
from rmqlb.engine.group import Given, Group
from rmqlb.model.group import MemberReport, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.policy import DRAIN_TIME, FORBIDDEN, GROUP, LIMITS, Bound, Limit
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from tests.engine.test_show_groups import GROUPS
from tests.support.builders import HERE, route
from tests.support.mismatches import assert_recorded, every_case

from .clusters import AVG_CLASS, DAY, checked, cluster, members, policy


def half_told(owners: str | None = None, *routes: TopicRouteData) -> ClusterSnapshot:
    seen = members("x y", strategy=None, owners=owners)
    reports = {"x": MemberReport("x", strategy_class=AVG_CLASS)}
    return cluster(replace(seen, reports=reports), routes=routes or (route(a=4),))


def ordered(*, has_master: bool, reported: bool | None = True, acting: bool = False) -> ClusterSnapshot:
    found = members("x")
    report = replace(found.reports["x"], evidence=ConsumerEvidence(orderly=reported))
    broker = BrokerData("c", "a", {0 if has_master else 1: "a:1"}, acting)
    here = replace(route(a=4), broker_datas=(broker,))
    return cluster(replace(found, reports={"x": report}), routes=(here,))


READ = members("x", lag={0: 5, 1: 0, 2: 0, 3: 0})
USED = (("reads", 1, 0, 4), ("writes", 0, 1, 2), ("nothing-to-read", 0, 1, 4), ("nothing-to-write", 1, 0, 2))
STATIC = replace(
    route(a=4), topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo("T", "__global__", 4, "a", 1, {})}
)
TWO_CLASSES = {i: MemberReport(i, strategy_class=name) for i, name in (("x", AVG_CLASS), ("y", "OurOwn"))}
CLUSTERS: dict[str, ClusterSnapshot] = {
    **GROUPS,
    "orderly, a master": ordered(has_master=True),
    "orderly, no master": ordered(has_master=False),
    "orderly, a slave acts as the master": ordered(has_master=False, acting=True),
    "not orderly, no master": ordered(has_master=False, reported=False),
    "order unknown, a master": ordered(has_master=True, reported=None),
    "order unknown, no master": ordered(has_master=False, reported=None),
    "three consumers": cluster(members("x y z")),  # x has two queues of four, y and z one each
    "three consumers, y owns three queues": cluster(members("x y z", owners="y y y z")),
    "x owns all": cluster(members("x y", owners="x x x x")),
    "nine consumers": cluster(members("1 2 3 4 5 6 7 8 9")),
    "two queues unassigned": cluster(members("x y", owners="x - y -")),
    "one owner unknown, no strategy": cluster(members("x y", owners="x ? y y", strategy=None)),
    "no queue has an owner": cluster(members("x y", owners="- - - -")),
    "two brokers": cluster(members("x y"), routes=(route(a=2, b=2),)),
    "two topics": cluster(members("x y", topics="T U"), routes=(route(a=4), route("U", a=1, b=1))),
    "other topics": cluster(members("x y z", subscribed={"x": "T", "y": "T %RETRY%g", "z": "U"})),
    "other topics, z silent": cluster(members("x y z", subscribed={"x": "T", "y": "U"})),
    "b 2 lists others": cluster(members("x y", "x y", "x")),
    "lists in another order": cluster(members("x y", "y x")),
    "two strategies": cluster(replace(members("x y"), reports=TWO_CLASSES)),
    "no strategy reported, AVG_BY_CIRCLE fits": cluster(members("x y", strategy=None, owners="x y x y")),
    "no strategy reported, several fit": cluster(members("x", strategy=None, owners="x x x x")),
    "no strategy reported, none fits": cluster(members("x y", strategy=None, owners="x x x y")),
    "no strategy reported, AVG fits, no route of U": cluster(members("x y", strategy=None, topics="T U", owners="x x y y")),
    "y silent, AVG fits": half_told("x x y y"),
    "y silent, AVG does not fit": half_told("x y x y"),
    "y silent, a queue for each": half_told("x y", route(a=2)),  # AVG and AVG_BY_CIRCLE give the same owners
    "y silent, no route of T": half_told("x x y y", route("U", a=4)),
    "lag in two queues": cluster(members("x", lag={0: 5, 1: 7, 2: 0, 3: 0})),
    "lag in part": cluster(members("x", lag={0: 5})),
    "an offset ahead of the broker's": cluster(members("x", lag={0: 5, 1: -3, 2: 0, 3: 0})),
    "nine messages to retry": cluster(replace(READ, queues={**READ.queues, MessageQueue("%RETRY%g", "a", 0): QueueState(None, 109, 100)})),
    "no route of U, lag": cluster(members("x", topics="T U", lag={0: 5, 1: 0, 2: 0, 3: 0})),
    "no route of U": cluster(members("x y", topics="T U", owners="x - y y")),
    "a gRPC client among others": cluster(members("x host@1@0@abc")),
    "NameServers list other brokers": replace(cluster(members("x y")), routes={"T": RouteSighting(route(a=4), HERE, (RouteSighting(route(a=3, b=1), HERE),))}),
    "a static topic": cluster(members("x y"), routes=(STATIC,)),
    "no master": cluster(routes=(route(masters=False, a=4, b=4),)),
    "no permission to write": cluster(routes=(route(perm=4, a=1),)),
    "no permission": cluster(routes=(route(perm=0, a=4, b=4),)),
    "no queue on b": cluster(routes=(route(a=4, b=0),)),
    "brokers used halfway": cluster(routes=(TopicRouteData("T", tuple(QueueData(*each) for each in USED), ()),)),
}  # fmt: skip


def measured(snapshot: ClusterSnapshot) -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for name in snapshot.groups or snapshot.gaps.groups:
        group = Group(snapshot, name, Settings(), Given(assume=None))
        for limit in (*GROUP_MEASURES, DRAIN_TIME):
            found.setdefault(shown(measure_group(Limit(limit, 0), group)), []).append(limit)
    for topic, sighting in snapshot.routes.items():
        for limit in TOPIC_MEASURES:
            found.setdefault(shown(measure_topic(limit, sighting)), []).append(f"{limit} of {topic}")
    for text, limits in found.items():
        yield f"{', '.join(limits)}: {text}"


def shown(value: Measured) -> str:
    values = ((name, getattr(value, name)) for name in value.__struct_fields__)
    return "; ".join(f"{name} {each}" for name, each in values if each not in (None, "", (), False) or name == "value")


def test_every_limit_measures_what_is_recorded(request: pytest.FixtureRequest) -> None:
    assert {name for name, kind in LIMITS.items() if kind.about == GROUP} == {*GROUP_MEASURES, DRAIN_TIME, FORBIDDEN}
    assert {name for name, kind in LIMITS.items() if kind.about != GROUP} == set(TOPIC_MEASURES)
    answers = {name: measured(snapshot) for name, snapshot in CLUSTERS.items()}
    assert_recorded(Path(__file__).with_name("limits.txt"), answers, request)


@every_case(("limit", "bound", "value", "expected"), [
    *(("idle", bound, Measured(1), expected) for bound, expected in ((0, "failed"), (1, "passed"))),
    *(("imbalance", bound, Measured(1.5), expected) for bound, expected in ((1.49, "failed"), (1.5, "passed"))),
    *(("minConsumers", bound, Measured(3), expected) for bound, expected in ((4, "failed"), (3, "passed"))),
    ("idle", 0, Measured(apart="it is broadcasting"), "notApplicable"),
    ("idle", 2, Measured(missing="its topics are unknown"), "incomplete"),
    # Certain values decide; missing values never count as good.
    *(("lag", bound, Measured(5, missing="?"), expected) for bound, expected in ((4, "failed"), (5, "incomplete"))),
    *(("minConsumers", bound, Measured(2, missing="?"), expected) for bound, expected in ((2, "passed"), (3, "incomplete"))),
    ("maxDrainTime", 1e12, Measured(inf), "failed"),
    *(("unassigned", bound, Measured(1, missing="?", most=2), expected) for bound, expected in ((0, "failed"), (1, "incomplete"), (2, "passed"))),
    ("strategies", ("AVG",), Measured(("AVG",)), "passed"),
    ("strategies", ("AVG",), Measured(("AVG", "OurOwn")), "failed"),
    ("strategies", ("AVG",), Measured(("AVG",), missing="?"), "incomplete"),
    ("strategies", ("CONFIG",), Measured(("AVG",), missing="?"), "failed"),
    # One of these is true.
    ("strategies", ("CONFIG",), Measured(("AVG", "AVG_BY_CIRCLE"), one_of=True), "failed"),
    ("strategies", ("AVG",), Measured(("AVG", "AVG_BY_CIRCLE"), one_of=True), "incomplete"),
    ("strategies", ("AVG", "AVG_BY_CIRCLE"), Measured(("AVG", "AVG_BY_CIRCLE"), one_of=True), "passed"),
])  # fmt: skip
def test_the_verdict_on_a_measure(limit: str, bound: Bound, value: Measured, expected: str) -> None:
    assert verdict(Limit(limit, bound), value) == expected


def test_a_judgement_has_the_value_or_the_reason() -> None:
    snapshot = cluster(members("x", lag={0: 5}))
    failed, unknown = (checked(snapshot, {"lag": bound}).judged[0] for bound in (4, 5))
    assert (failed.value, failed.why) == (5, "T a 0")
    assert (unknown.value, unknown.why) == (None, "the offsets of 3 queues are unknown (T a 1-3)")


SILENT = cluster(members("x y", strategy=None))


def test_a_rule_assumes_a_strategy_where_members_report_none() -> None:
    for snapshot, assume, basis in (
        (SILENT, "AVG_BY_CIRCLE", "assumed"),
        (cluster(members("x y")), "CONFIG", "predicted"),
    ):
        (judged,) = checked(snapshot, {"idle": 0}, assume=assume).judged
        assert (judged.verdict, judged.basis) == ("passed", basis)


def test_a_strategy_that_needs_settings_is_predicted_once_they_are_given() -> None:
    seen = members("x y", strategy="AllocateMessageQueueByMachineRoom")
    snapshot = cluster(seen, routes=(route("T", 6, True, **{"r1@a": 4}),))
    report = check_policy(snapshot, policy({"idle": 0}), DAY, settings=Settings(consumer_idcs=frozenset({"r1"})))
    assert [(one.verdict, one.basis) for one in report.judged] == [("passed", "predicted")]


@every_case("inner", ["CONFIG", "PIN-CONFIG"])
def test_the_strategy_inside_another_needs_its_settings_as_well(inner: str) -> None:
    given = Settings(inner=inner, hosts=frozenset({"x"}))
    (judgement,) = check_policy(SILENT, policy({"unassigned": 0}, assume="PIN"), DAY, settings=given).judged
    assert judgement.verdict == "incomplete"
    assert (judgement.why or "").startswith("consumers run CONFIG, but its settings are unknown")
