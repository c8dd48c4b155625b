from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.check import check_policy
from rmqlb.engine.diagnose.case import CHECKS
from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.diagnosis import CODES
from rmqlb.model.policy import GROUP, TOPIC, About, JudgedPolicy, Limit, Policy, Rule, WaivedLimit, Waiver
from rmqlb.model.result import INFO, WARNING, Severity
from rmqlb.model.snapshot import Everything, Unread, Wanted
from rmqlb.views.check import sentence
from tests.engine.diagnose.running import Process, running
from tests.support.builders import route, side
from tests.support.mismatches import assert_recorded, every_case

from .clusters import DAY, checked, cluster, members, policy

UNEVEN = cluster(members("x y", owners="x x x x"), members("x", name="h"))
UNSEEN = cluster(replace(members("x"), views=None))
IDLE = {"idle": 0}


TWICE = running(Process("x"), Process("x"), Process("y"))
HEALTHY = running(Process("x"), Process("y"))
WAIVERS: Mapping[str, tuple[int, dict[str, str]]] = {
    "the day before it ends": (-1, {"group": "g"}),
    "on its last day": (0, {"group": "g"}),
    "the day after": (1, {"group": "g", "rule": "r"}),
    "a pattern": (0, {"group": "[g]"}),
    "a rule": (0, {"rule": "r"}),
    "a rule, group and limit": (0, {"rule": "r", "group": "*", "limit": "idle"}),
    "another group": (0, {"group": "h"}),
    "a topic": (0, {"topic": "g"}),
    "another limit": (0, {"group": "g", "limit": "lag"}),
}


def named_checks() -> Iterator[tuple[str, JudgedPolicy]]:
    for chosen in ("*", "g", "x h", "* -g", "[gh] -?", "none-* no -x"):
        patterns = tuple(each for each in chosen.split() if each[0] != "-")
        exclude = tuple(each[1:] for each in chosen.split() if each[0] == "-")
        yield f"patterns {patterns} without {exclude}", checked(UNEVEN, IDLE, *patterns, exclude=exclude)
    yield "limits that apply nowhere", checked(cluster(members("x", message_model="BROADCASTING")), IDLE)
    waiver = Waiver("to come", DAY, rule="r")
    yield "a waiver of a rule without groups", check_policy(UNEVEN, policy(IDLE, "none", waivers=(waiver,)), DAY)
    # Groups without a consumer can be skipped where all brokers reported.
    parts = (Unread("members", "i", "timeout", "b"), Unread("group", "lost", "timeout"))
    offline = cluster(members("x"), *(members("", name=name) for name in "hi"), unread=parts)
    for skip in (True, False):
        yield f"skip_offline {skip}", checked(offline, {"minConsumers": 1}, skip_offline=skip)
    for unread, limit in (
        (Unread("group", "lost", "timeout"), "minConsumers"), (Unread("route", "lost", "it has no route"), "minBrokers"),
        (Unread("groups", "b", "timeout"), "minConsumers"), (Unread("groups", "b", "timeout"), "minBrokers"),
        (Unread("name-server", "s:9876", "timeout"), "minConsumers"), (Unread("member", "g", "-", "x"), "minConsumers"),
    ):  # fmt: skip
        yield f"{unread.what} unread, {limit}", checked(cluster(members("x"), unread=(unread,)), {limit: 1})
    names = ("T", "%RETRY%g", "%DLQ%g", "RMQ_SYS_TRACE_TOPIC", "a", "c")  # a broker and a cluster are called a and c
    routes = tuple(route(name, a=1) for name in names)
    for limit in ("minBrokers", "minConsumers"):
        system = cluster(members("x"), members("x", name="TOOLS_CONSUMER"), routes=routes)
        yield f"{limit} of RocketMQ's own topics and groups", checked(system, {limit: 1})
    for name, (day, fields) in WAIVERS.items():
        rules = policy(IDLE, waivers=(Waiver("known", DAY, **fields),))
        yield f"waiver, {name}", check_policy(UNEVEN, rules, DAY + timedelta(days=day))
    for fields in ({"rule": "r"}, {"rule": "r", "limit": "idle"}, {"group": "*"}):
        rules = policy(IDLE, waivers=(Waiver("to come", DAY, **fields),))
        yield f"{fields} waived, which is unknown", check_policy(UNSEEN, rules, DAY)
    both = cluster(members("x y", owners="x x x x"), members("x", name="h", topics=None))
    yield "a failure goes before what is incomplete", checked(both, IDLE)
    yield (
        "a waiver of a failure and of an unknown limit",
        checked(both, IDLE, waivers=(Waiver("known", DAY, group="*"),)),
    )
    levels: tuple[tuple[Severity, Severity], ...] = (
        (WARNING, "error"),
        (WARNING, WARNING),
        (INFO, WARNING),
        (INFO, INFO),
    )
    for severity, fail_on in levels:
        report = check_policy(UNEVEN, policy(IDLE, severity=severity), DAY, fail_on=fail_on)
        yield f"{severity} where {fail_on} decides", report
    (group,) = HEALTHY.groups.values()
    silent = replace(HEALTHY, groups={"g": replace(group, reports={})})
    broadcasting = replace(HEALTHY, groups={"g": replace(group, message_model="BROADCASTING")})
    for snapshot, forbidden in (
        (TWICE, ("mixed-strategies", "duplicate-client-id")), (TWICE, ("unassigned-queues",)),
        (silent, ("duplicate-client-id", "mixed-strategies")), (silent, ("duplicate-client-id",)),
        (broadcasting, ("unassigned-queues",)),
    ):  # fmt: skip
        name = {id(TWICE): "an ID twice", id(silent): "consumers are silent"}.get(id(snapshot), "broadcasting")
        yield f"{name}, forbidden {forbidden}", checked(snapshot, {"forbiddenFindings": forbidden})


def lines_of(report: JudgedPolicy) -> Iterator[str]:
    yield report.result.outcome
    for one in report.judged:
        given = "waived" if isinstance(one, WaivedLimit) else one.verdict
        yield f"  {one.name} {one.limit}: {given}, {one.value}, {one.why}"
        yield from (f"    {each.code} {each.consumers} {each.evidence[0].value}" for each in one.findings)
        if one.verdict == "failed":
            yield f"    {sentence(one)}"
    yield from (f"  waiver {use.state}, {use.waived}" for use in report.result.waivers)
    yield from (f"  {finding.code}: {finding.message}" for finding in report.findings)


def test_named_checks_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(report) for name, report in named_checks()}
    assert_recorded(Path(__file__).with_name("checks.txt"), answers, request)


def rule(about: About, *patterns: str) -> Rule:
    return Rule(f"{about}-{patterns}", about, patterns, (Limit("idle" if about == GROUP else "minBrokers", 1),))


@every_case(("rules", "wanted"), [
    ([rule(TOPIC, "a*")], Wanted(owners=False, groups=False)),
    ([rule(GROUP, "a*")], Wanted(everything=Everything((), ("a*",)))),
    ([rule(GROUP, "a*", "b"), rule(TOPIC, "t"), rule(GROUP, "b")], Wanted(everything=Everything(("t",), ("a*", "b")))),
])  # fmt: skip
def test_a_source_is_asked_only_for_what_rules_look_at(rules: list[Rule], wanted: Wanted) -> None:
    assert Policy("p", tuple(rules)).wanted == wanted


def test_the_codes_are_those_of_the_rules() -> None:
    assert CHECKS.keys() == {*CODES}


CLASSES = {name: java for java, name in JAVA_CLASSES.items() if name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")}
IDS = st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=6)
BROKERS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 7), min_size=1)


@given(IDS, BROKERS, st.sampled_from(sorted(CLASSES)))
def test_the_worst_loss_is_the_worst_plan(ids: list[str], brokers: dict[str, int], strategy: str) -> None:
    here = route("T", 6, True, **brokers)
    before = side(" ".join(ids), here, strategy=strategy)
    without_member = [
        side(" ".join((Counter(ids) - Counter([lost])).elements()), here, strategy=strategy) for lost in set(ids)
    ]
    left = ({name: number for name, number in brokers.items() if name != lost} for lost in brokers)
    without_broker = [side(" ".join(ids), route("T", 6, True, **rest), strategy=strategy) for rest in left]
    snapshot = cluster(members(" ".join(ids), strategy=CLASSES[strategy]), routes=(here,))
    for limit, losses in (("movedOnConsumerLoss", without_member), ("movedOnBrokerLoss", without_broker)):
        plans = [plan_rebalance(None, before, after).summary for after in losses]
        shares = [plan.moved / (plan.before.queues - plan.removed) for plan in plans if plan.moved]
        (judgement,) = checked(snapshot, {limit: 1.0}).judged
        assert judgement.value == max(shares, default=0)
