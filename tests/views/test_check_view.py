from collections.abc import Sequence

from rmqlb.engine.check import check_policy
from rmqlb.model.policy import GROUP, Limit, Policy, Rule, Waiver
from rmqlb.model.result import SEVERITIES, Severity
from rmqlb.views.check import check_report
from rmqlb.views.report import Report
from tests.engine.check.clusters import DAY, cluster, members
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

UNEVEN = cluster(members("x y", owners="x x x x"), members("x", name="h"))
"""In g consumer y is idle; h is in order."""
UNKNOWN = cluster(members("x", name="h"), members("x y", name="u", strategy=None))


def rule(name: str, severity: Severity = "error", **limits: float) -> Rule:
    return Rule(name, GROUP, ("*",), tuple(Limit(*limit) for limit in limits.items()), severity=severity)


def shown(*rules: Rule, waivers: Sequence[Waiver] = (), fail_from: Severity = "error", unknown: bool = False) -> Report:
    policy = Policy("p.yaml", rules, tuple(waivers))
    return check_report(check_policy(UNKNOWN if unknown else UNEVEN, policy, DAY, fail_from=fail_from).result)


WAIVED = Waiver("known", DAY, group="g")


@every_case(("report", "facts", "grave"), [
    (shown(rule("r", idle=1)), ("all 2 limits passed", "  2 passed; 1 rule of p.yaml on 2026-06-15"), "inOrder"),
    (shown(rule("r", idle=0)), ("1 of 2 limits failed: group g: idle is 1 (max 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "error"),
    (shown(rule("w", "warning", idle=0), fail_from="warning"), ("1 of 2 limits failed: group g: idle is 1 (max 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "warning", idle=0)), ("1 of 2 limits failed, none of severity error: group g: idle is 1 (max 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "info", minConsumers=3), rule("e", idle=0)), ("3 of 4 limits failed: group g: idle is 1 (max 0), and 2 more", "  1 passed; 2 rules of p.yaml on 2026-06-15"), "error"),
    (shown(rule("r", idle=0), waivers=(WAIVED,)), ("none of 2 limits failed", "  1 passed, 1 waived; 1 rule of p.yaml on 2026-06-15"), "inOrder"),
    (shown(rule("r", idle=0), unknown=True), ("1 limit could not be judged: group u: idle: the strategy of its consumers is not known (`assume` in the rule names one)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "warning", idle=0), unknown=True), ("none of 2 limits failed, 1 could not be judged", "  1 passed; 1 rule of p.yaml on 2026-06-15"), ""),
    (shown(rule("r", idle=0, minConsumers=9), unknown=True), ("2 of 4 limits failed: group h: minConsumers is 1 (min 9), and 1 more", "  1 passed, 1 could not be judged; 1 rule of p.yaml on 2026-06-15"), "error"),
])  # fmt: skip
def test_the_first_line_is_the_verdict(report: Report, facts: tuple[str, ...], grave: str) -> None:
    assert (report.facts, report.grave) == (facts, grave)


def test_a_screen_has_what_decides_and_says_how_to_see_the_rest() -> None:
    screen = on_a_terminal(shown(rule("r", idle=0), waivers=(Waiver("gone", DAY, group="h"),)), 100)
    assert "failed: group" in screen
    assert "\nrules" not in screen
    assert screen.rstrip().endswith("--all shows more: rules, waivers, summary")
    in_order = on_a_terminal(shown(rule("r", idle=1)), 100)
    assert "none" not in in_order
    assert "✗" not in in_order


@every_case("severity", SEVERITIES)
def test_what_could_not_be_judged_is_on_a_screen_where_it_decides(severity: Severity) -> None:
    report = shown(rule("r", severity, idle=0), unknown=True)
    assert ("incomplete" in on_a_terminal(report, 100).replace("more: incomplete", "")) == (severity == "error")
    assert "incomplete" in on_a_terminal(report, 100, "incomplete")


def test_the_gravest_failed_limit_comes_first() -> None:
    (failed, *_) = shown(rule("i", "info", idle=0), rule("e", idle=0), rule("w", "warning", idle=0)).sections
    assert [row[:2] for row in failed.rows] == [("error", "e"), ("warning", "w"), ("info", "i")]
