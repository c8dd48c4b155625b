from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.check import check_policy
from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.diagnosis import CODES
from rmqlb.model.policy import GROUP, TOPIC, About, JudgedLimit, JudgedPolicy, Limit, Policy, Rule, WaivedLimit, Waiver
from rmqlb.model.result import INFO, WARNING, Severity
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Unread, Wanted
from rmqlb.views.check import sentence
from tests.engine.diagnose.running import Process, running
from tests.support.builders import route, side
from tests.support.mismatches import every_case

from .clusters import DAY, checked, cluster, members, policy

UNEVEN = cluster(members("x y", owners="x x x x"), members("x", name="h"))
UNSEEN = cluster(replace(members("x"), views=None))
IDLE = {"idle": 0}


def verdicts(report: JudgedPolicy) -> list[tuple[str | None, str]]:
    return [(one.name, "waived" if isinstance(one, WaivedLimit) else one.verdict) for one in report.judged]


@every_case(("patterns", "exclude", "names"), [
    (("*",), (), ["g", "h"]),
    (("g",), (), ["g"]),
    (("x", "h"), (), ["h"]),
    (("*",), ("g",), ["h"]),
    (("[gh]",), ("?",), [None]),
    (("none-*",), (), [None]),
])  # fmt: skip
def test_patterns_name_the_groups(patterns: tuple[str, ...], exclude: tuple[str, ...], names: list[str | None]) -> None:
    report = checked(UNEVEN, IDLE, *patterns, exclude=exclude)
    assert [one.name for one in report.judged] == names


def test_a_rule_without_anything_to_check_is_incomplete() -> None:
    report = checked(UNEVEN, IDLE, "none-*", "no", exclude=("x",))
    (one,) = report.judged
    assert (one.verdict, one.limit, one.why) == ("incomplete", None, "no group matches none-* or no without x")
    assert report.result.outcome == "incomplete"
    report = checked(cluster(members("x", message_model="BROADCASTING")), IDLE)  # its limits apply nowhere
    assert verdicts(report) == [("g", "notApplicable"), (None, "incomplete")]
    waived_rule = check_policy(UNEVEN, policy(IDLE, "none", waivers=(Waiver("to come", DAY, rule="r"),)), DAY)
    assert (waived_rule.result.outcome, waived_rule.result.waivers[0].state) == ("incomplete", "undecided")


def test_groups_without_a_consumer_can_be_skipped_where_all_brokers_reported() -> None:
    lost, unseen = Unread("members", "i", "timeout", "b"), Unread("group", "lost", "timeout")
    snapshot = cluster(members("x"), *(members("", name=name) for name in "hi"), unread=(lost, unseen))
    named = [one.name for one in checked(snapshot, {"minConsumers": 1}, skip_offline=True).judged]
    assert named == ["g", "i", "lost"]
    assert [one.name for one in checked(snapshot, {"minConsumers": 1}).judged] == ["g", "h", "i", "lost"]


@every_case(("unread", "limit", "expected"), [
    (Unread("group", "lost", "timeout"), "minConsumers", [("g", "passed"), ("lost", "incomplete")]),
    (Unread("route", "lost", "it has no route"), "minBrokers", [("T", "passed"), ("lost", "incomplete")]),
    (Unread("groups", "b", "timeout"), "minConsumers", [("g", "passed"), (None, "incomplete")]),
    (Unread("groups", "b", "timeout"), "minBrokers", [("T", "passed")]),
    (Unread("name-server", "s:9876", "timeout"), "minConsumers", [("g", "passed")]),
    (Unread("member", "g", "-", "x"), "minConsumers", [("g", "passed")]),
])  # fmt: skip
def test_unread_parts_leave_their_limits_incomplete(
    unread: Unread, limit: str, expected: list[tuple[str | None, str]]
) -> None:
    report = checked(cluster(members("x"), unread=(unread,)), {limit: 1})
    assert verdicts(report) == expected
    assert all(unread.reason in (one.why or "") for one in report.judged if one.verdict == "incomplete")


def test_rocketmqs_own_topics_and_groups_are_left_out() -> None:
    names = ("T", "%RETRY%g", "%DLQ%g", "RMQ_SYS_TRACE_TOPIC", "a", "c")  # a broker and a cluster are called a and c
    snapshot = cluster(
        members("x"), members("x", name="TOOLS_CONSUMER"), routes=tuple(route(name, a=1) for name in names)
    )
    assert verdicts(checked(snapshot, {"minBrokers": 1})) == [("T", "passed")]
    assert verdicts(checked(snapshot, {"minConsumers": 1})) == [("g", "passed")]


@every_case(("day", "fields", "state", "findings"), [
    (-1, {"group": "g"}, "used", []),
    (0, {"group": "g"}, "used", []),
    (1, {"group": "g", "rule": "r"}, "expired", ["expired-waiver"]),
    (0, {"group": "[g]"}, "used", []),
    (0, {"rule": "r"}, "used", []),
    (0, {"rule": "r", "group": "*", "limit": "idle"}, "used", []),
    (0, {"group": "h"}, "unused", ["unused-waiver"]),
    (0, {"topic": "g"}, "unused", ["unused-waiver"]),
    (0, {"group": "g", "limit": "lag"}, "unused", ["unused-waiver"]),
])  # fmt: skip
def test_a_waiver_counts_through_its_day(day: int, fields: dict[str, str], state: str, findings: list[str]) -> None:
    waiver = Waiver("known", DAY, **fields)
    report = check_policy(UNEVEN, policy(IDLE, waivers=(waiver,)), DAY + timedelta(days=day))
    is_used = state == "used"
    assert verdicts(report) == [("g", "waived" if is_used else "failed"), ("h", "passed")]
    assert report.result.outcome == ("passed" if is_used else "failed")
    assert [(use.state, use.waived) for use in report.result.waivers] == [(state, int(is_used))]
    assert [finding.code for finding in report.findings] == findings


@every_case("fields", [{"rule": "r"}, {"rule": "r", "limit": "idle"}, {"group": "*"}])
def test_no_waiver_covers_what_is_unknown(fields: dict[str, str]) -> None:
    waiver = Waiver("to come", DAY, **fields)
    report = check_policy(UNSEEN, policy(IDLE, waivers=(waiver,)), DAY)
    assert (report.result.outcome, verdicts(report)) == ("incomplete", [("g", "incomplete")])
    assert [(use.state, use.waived) for use in report.result.waivers] == [("undecided", 0)]
    assert not report.findings


def test_a_failure_goes_before_what_is_incomplete() -> None:
    snapshot = cluster(members("x y", owners="x x x x"), members("x", name="h", topics=None))
    assert {one.verdict for one in checked(snapshot, IDLE).judged} == {"failed", "incomplete"}
    assert checked(snapshot, IDLE).result.outcome == "failed"


@every_case(("severity", "fail_from", "outcome"), [
    *((WARNING, "error", "passed"), (WARNING, "warning", "failed")),
    *((INFO, "warning", "passed"), (INFO, "info", "failed")),
])  # fmt: skip
def test_only_rules_grave_enough_decide(severity: Severity, fail_from: Severity, outcome: str) -> None:
    report = check_policy(UNEVEN, policy(IDLE, severity=severity), DAY, fail_from=fail_from)
    assert verdicts(report) == [("g", "failed"), ("h", "passed")]
    assert report.result.outcome == outcome


def rule(about: About, *patterns: str) -> Rule:
    return Rule(f"{about}-{patterns}", about, patterns, (Limit("idle" if about == GROUP else "minBrokers", 1),))


@every_case(("rules", "wanted"), [
    ([rule(TOPIC, "a*")], Wanted(owners=False, groups=False)),
    ([rule(GROUP, "a*")], Wanted(everything=Everything((), ("a*",)))),
    ([rule(GROUP, "a*", "b"), rule(TOPIC, "t"), rule(GROUP, "b")], Wanted(everything=Everything(("t",), ("a*", "b")))),
])  # fmt: skip
def test_a_source_is_asked_only_for_what_rules_look_at(rules: list[Rule], wanted: Wanted) -> None:
    assert Policy("p", tuple(rules)).wanted == wanted


TWICE = running(Process("x"), Process("x"), Process("y"))
HEALTHY = running(Process("x"), Process("y"))


def judged(snapshot: ClusterSnapshot, *codes: str) -> JudgedLimit:
    return checked(snapshot, {"forbiddenFindings": codes}).judged[0]


def test_the_codes_are_those_of_the_rules() -> None:
    assert tuple(rule.code for rule in RULES) == CODES


def test_a_finding_that_is_forbidden_fails_with_its_evidence() -> None:
    one = judged(TWICE, "mixed-strategies", "duplicate-client-id")
    assert (one.verdict, one.value) == ("failed", ("duplicate-client-id",))
    (finding,) = one.findings
    assert (finding.code, finding.consumers, finding.evidence[0].value) == ("duplicate-client-id", ("x",), 2)
    text = "group g: forbiddenFindings is duplicate-client-id, allowed is none of mixed-strategies, duplicate-client-id"
    assert sentence(one) == f"{text} ({finding.message})"
    (failed,) = checked(TWICE, {"forbiddenFindings": ("duplicate-client-id",)}).result.failed
    assert failed.findings == (finding,)


def test_what_comes_of_a_cause_is_forbidden_too_and_the_cause_is_shown() -> None:
    one = judged(TWICE, "unassigned-queues")
    assert (one.verdict, one.value) == ("failed", ("unassigned-queues",))
    assert [finding.code for finding in one.findings] == ["duplicate-client-id"]


def test_what_could_not_be_decided_is_incomplete() -> None:
    (group,) = HEALTHY.groups.values()
    silent = replace(HEALTHY, groups={"g": replace(group, reports={})})
    one = judged(silent, "duplicate-client-id", "mixed-strategies")
    assert (one.verdict, one.value) == ("incomplete", None)
    assert (one.why or "").startswith("mixed-strategies: ")
    passed = judged(silent, "duplicate-client-id")
    assert (passed.verdict, passed.value, passed.findings) == ("passed", (), ())
    broadcasting = replace(HEALTHY, groups={"g": replace(group, message_model="BROADCASTING")})
    assert judged(broadcasting, "unassigned-queues").verdict == "notApplicable"


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
