"""A whole policy: its rules and waivers, the outcome, forbidden findings and losses."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.check import check_policy
from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.engine.plan.rebalance import plan_rebalance
from rmqlb.model.check_result import JudgedLimit, JudgedPolicy, WaivedLimit
from rmqlb.model.diagnosis import CODES
from rmqlb.model.finding import INFO, WARNING, Severity
from rmqlb.model.policy import GROUP, TOPIC, About, Limit, Policy, Rule, Waiver
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


def waived(snapshot_day: date, **fields: str) -> JudgedPolicy:
    waiver = Waiver("known", DAY, **fields)
    return check_policy(UNEVEN, policy(IDLE, waivers=(waiver,)), snapshot_day)


@every_case(
    ("patterns", "exclude", "names"),
    [
        (("*",), (), ["g", "h"]),
        (("g",), (), ["g"]),
        (("x", "h"), (), ["h"]),
        (("*",), ("g",), ["h"]),
        (("[gh]",), ("?",), [None]),
        (("none-*",), (), [None]),
    ],
)
def test_patterns_name_the_groups(patterns: tuple[str, ...], exclude: tuple[str, ...], names: list[str | None]) -> None:
    report = checked(UNEVEN, IDLE, *patterns, exclude=exclude)
    assert [one.name for one in report.judged] == names


def test_a_rule_that_nothing_fits_is_incomplete() -> None:
    report = checked(UNEVEN, IDLE, "none-*", "no", exclude=("x",))
    (one,) = report.judged
    assert (one.verdict, one.limit, one.why) == ("incomplete", None, "no group matches none-* or no without x")
    assert report.result.outcome == "incomplete"


def test_groups_without_a_consumer_can_be_skipped_where_all_brokers_reported() -> None:
    lost, unseen = Unread("members", "i", "timeout", "b"), Unread("group", "lost", "timeout")
    snapshot = cluster(members("x"), *(members("", name=name) for name in "hi"), unread=(lost, unseen))
    named = [one.name for one in checked(snapshot, {"minConsumers": 1}, skip_offline=True).judged]
    assert named == ["g", "i", "lost"]
    assert [one.name for one in checked(snapshot, {"minConsumers": 1}).judged] == ["g", "h", "i", "lost"]


def test_a_rule_whose_limits_apply_nowhere_is_incomplete() -> None:
    report = checked(cluster(members("x", message_model="BROADCASTING")), IDLE)
    assert verdicts(report) == [("g", "notApplicable"), (None, "incomplete")]
    assert report.result.outcome == "incomplete"


def test_a_group_that_could_not_be_read_is_checked_all_the_same() -> None:
    snapshot = cluster(members("x"), unread=(Unread("group", "lost", "timeout"), Unread("group", "other", "x")))
    report = checked(snapshot, {"minConsumers": 1}, "g", "lost")
    assert [(one.name, one.verdict, one.why) for one in report.judged] == [
        ("g", "passed", None),
        ("lost", "incomplete", "the group could not be read: timeout"),
    ]


def test_a_topic_that_could_not_be_read_is_checked_all_the_same() -> None:
    snapshot = cluster(unread=(Unread("route", "lost", "it is listed and has no route"),))
    report = checked(snapshot, {"minBrokers": 1})
    assert [(one.name, one.verdict) for one in report.judged] == [("T", "passed"), ("lost", "incomplete")]
    assert report.judged[1].why == "its route could not be read: it is listed and has no route"


def test_a_broker_that_did_not_list_its_groups_leaves_every_rule_for_groups_incomplete() -> None:
    snapshot = cluster(members("x"), unread=(Unread("groups", "b", "timeout"),))
    report = checked(snapshot, {"minConsumers": 1})
    assert verdicts(report) == [("g", "passed"), (None, "incomplete")]
    assert checked(snapshot, {"minBrokers": 1}).result.outcome == "passed"


def test_what_else_could_not_be_read_leaves_only_those_limits_incomplete_that_need_it() -> None:
    snapshot = cluster(
        members("x"), unread=(Unread("name-server", "s:9876", "timeout"), Unread("member", "g", "-", "x"))
    )
    assert checked(snapshot, {"minConsumers": 1}).result.outcome == "passed"


def test_rocketmqs_own_topics_and_groups_are_left_out() -> None:
    names = ("T", "%RETRY%g", "%DLQ%g", "RMQ_SYS_TRACE_TOPIC", "a", "c")  # a broker and a cluster are called a and c
    snapshot = cluster(
        members("x"), members("x", name="TOOLS_CONSUMER"), routes=tuple(route(name, a=1) for name in names)
    )
    assert verdicts(checked(snapshot, {"minBrokers": 1})) == [("T", "passed")]
    assert verdicts(checked(snapshot, {"minConsumers": 1})) == [("g", "passed")]


@every_case(("day", "state"), [(-1, "waived"), (0, "waived"), (1, "failed")])
def test_a_waiver_counts_to_the_end_of_its_last_day(day: int, state: str) -> None:
    report = waived(DAY + timedelta(days=day), group="g")
    assert verdicts(report) == [("g", state), ("h", "passed")]
    assert report.result.outcome == ("passed" if state == "waived" else "failed")


def test_an_expired_waiver_is_reported() -> None:
    report = waived(DAY + timedelta(days=1), group="g", rule="r")
    assert [(f.code, f.message) for f in report.findings] == [
        ("expired-waiver", "the waiver for rule r, group g expired after 2026-06-15")
    ]
    assert [(use.state, use.waived) for use in report.result.waivers] == [("expired", 0)]


@every_case("fields", [{"group": "h"}, {"group": "none"}, {"topic": "g"}, {"group": "g", "limit": "lag"}])
def test_a_waiver_that_lets_nothing_pass_is_reported(fields: dict[str, str]) -> None:
    report = waived(DAY, **fields)
    assert [finding.code for finding in report.findings] == ["unused-waiver"]
    assert report.result.outcome == "failed"


@every_case("fields", [{"group": "[g]"}, {"rule": "r"}, {"rule": "r", "group": "*", "limit": "idle"}])
def test_a_waiver_may_name_a_rule_a_limit_and_patterns(fields: dict[str, str]) -> None:
    report = waived(DAY, **fields)
    assert report.result.outcome == "passed"
    assert report.findings == ()
    assert [(use.state, use.waived) for use in report.result.waivers] == [("used", 1)]


@every_case("fields", [{"rule": "r"}, {"rule": "r", "limit": "idle"}, {"group": "*"}])
def test_no_waiver_covers_what_is_unknown(fields: dict[str, str]) -> None:
    waiver = Waiver("to come", DAY, **fields)
    report = check_policy(UNSEEN, policy(IDLE, waivers=(waiver,)), DAY)
    assert (report.result.outcome, verdicts(report)) == ("incomplete", [("g", "incomplete")])
    assert [(use.state, use.waived) for use in report.result.waivers] == [("undecided", 0)]
    assert not report.findings


def test_no_waiver_covers_a_rule_without_anything_to_check() -> None:
    report = check_policy(UNEVEN, policy(IDLE, "none", waivers=(Waiver("to come", DAY, rule="r"),)), DAY)
    assert (report.result.outcome, [use.state for use in report.result.waivers]) == ("incomplete", ["undecided"])


def test_a_failure_goes_before_what_is_incomplete() -> None:
    snapshot = cluster(members("x y", owners="x x x x"), members("x", name="h", topics=None))
    assert {one.verdict for one in checked(snapshot, IDLE).judged} == {"failed", "incomplete"}
    assert checked(snapshot, IDLE).result.outcome == "failed"


@every_case(
    ("severity", "fail_from", "outcome"),
    [
        (WARNING, "error", "passed"),
        (WARNING, "warning", "failed"),
        (INFO, "warning", "passed"),
        (INFO, "info", "failed"),
    ],
)
def test_only_rules_grave_enough_decide(severity: Severity, fail_from: Severity, outcome: str) -> None:
    report = check_policy(UNEVEN, policy(IDLE, severity=severity), DAY, fail_from=fail_from)
    assert verdicts(report) == [("g", "failed"), ("h", "passed")]
    assert report.result.outcome == outcome


def rule(about: About, *patterns: str) -> Rule:
    return Rule(f"{about}-{patterns}", about, patterns, (Limit("idle" if about == GROUP else "minBrokers", 1),))


@every_case(
    ("rules", "wanted"),
    [
        ([rule(TOPIC, "a*")], Wanted(owners=False, groups=False)),
        ([rule(GROUP, "a*")], Wanted(everything=Everything((), ("a*",)))),
        (
            [rule(GROUP, "a*", "b"), rule(TOPIC, "t"), rule(GROUP, "b")],
            Wanted(everything=Everything(("t",), ("a*", "b"))),
        ),
    ],
)
def test_a_source_is_asked_only_for_what_rules_look_at(rules: list[Rule], wanted: Wanted) -> None:
    assert Policy("p", tuple(rules)).wanted == wanted


def test_whoever_watches_is_told_of_each_group() -> None:
    told: list[tuple[str, int, int]] = []
    check_policy(UNEVEN, policy(IDLE), DAY, progress=lambda *what: told.append(what))
    assert told == [("rule r", 0, 2), ("rule r", 1, 2)]


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


def test_what_is_not_there_passes() -> None:
    one = judged(HEALTHY, "duplicate-client-id", "unassigned-queues")
    assert (one.verdict, one.value, one.findings) == ("passed", (), ())


def test_what_could_not_be_decided_is_incomplete() -> None:
    (group,) = HEALTHY.groups.values()
    silent = replace(HEALTHY, groups={"g": replace(group, reports={})})
    one = judged(silent, "duplicate-client-id", "mixed-strategies")
    assert (one.verdict, one.value) == ("incomplete", None)
    assert (one.why or "").startswith("mixed-strategies: ")
    assert judged(silent, "duplicate-client-id").verdict == "passed"


def test_a_group_that_cannot_have_it_is_apart() -> None:
    (group,) = HEALTHY.groups.values()
    broadcasting = replace(HEALTHY, groups={"g": replace(group, message_model="BROADCASTING")})
    assert judged(broadcasting, "unassigned-queues").verdict == "notApplicable"


def test_it_is_waived_like_other_limits() -> None:
    waiver = Waiver("known", DAY, group="g", limit="forbiddenFindings")
    report = check_policy(TWICE, policy({"forbiddenFindings": ("duplicate-client-id",)}, waivers=(waiver,)), DAY)
    assert (report.result.outcome, [type(one) for one in report.judged]) == ("passed", [WaivedLimit])


CLASSES = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash",
}
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
