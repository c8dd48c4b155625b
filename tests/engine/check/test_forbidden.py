"""A policy forbids findings of a diagnosis by their codes."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.check.check import check_policy
from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.model.check_result import check_result
from rmqlb.model.checking import Judgement
from rmqlb.model.diagnosis import CODES
from rmqlb.model.policy import Waiver
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.check import sentence
from tests.engine.check.clusters import DAY, checked, policy
from tests.engine.diagnose.running import Process, running

TWICE = running(Process("x"), Process("x"), Process("y"))
HEALTHY = running(Process("x"), Process("y"))


def judged(snapshot: ClusterSnapshot, *codes: str) -> Judgement:
    return checked(snapshot, {"forbiddenFindings": codes}).judgements[0]


def test_the_codes_are_those_of_the_rules() -> None:
    assert tuple(rule.code for rule in RULES) == CODES


def test_a_finding_that_is_forbidden_fails_with_its_evidence() -> None:
    one = judged(TWICE, "mixed-strategies", "duplicate-client-id")
    assert (one.verdict, one.value) == ("failed", ("duplicate-client-id",))
    (finding,) = one.findings
    assert (finding.code, finding.consumers, finding.evidence[0].value) == ("duplicate-client-id", ("x",), 2)
    text = "group g: forbiddenFindings is duplicate-client-id, allowed is none of mixed-strategies, duplicate-client-id"
    assert sentence(one) == f"{text} ({finding.message})"
    (failed,) = check_result(checked(TWICE, {"forbiddenFindings": ("duplicate-client-id",)})).failed
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
    assert one.why.startswith("mixed-strategies: ")
    assert judged(silent, "duplicate-client-id").verdict == "passed"


def test_a_group_that_cannot_have_it_is_apart() -> None:
    (group,) = HEALTHY.groups.values()
    broadcasting = replace(HEALTHY, groups={"g": replace(group, message_model="BROADCASTING")})
    assert judged(broadcasting, "unassigned-queues").verdict == "notApplicable"


def test_it_is_waived_like_other_limits() -> None:
    waiver = Waiver("known", DAY, group="g", limit="forbiddenFindings")
    report = check_policy(TWICE, policy({"forbiddenFindings": ("duplicate-client-id",)}, waivers=(waiver,)), DAY)
    assert (report.outcome, [one.waiver for one in report.judgements]) == ("passed", [waiver])
