import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from rmqlb.engine.check import check_policy
from rmqlb.model.policy import GROUP, JudgedPolicy, Limit, Policy, Rule, Waiver
from rmqlb.model.result import SEVERITIES, Severity
from rmqlb.model.snapshot import Unread
from rmqlb.views.check import check_report
from rmqlb.views.formats.ci_reports import as_junit, as_sarif
from rmqlb.views.formats.text import visible
from rmqlb.views.report import Report
from tests.engine.check.clusters import DAY, cluster, members
from tests.support.builders import route
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

TAKEN = datetime(2026, 6, 15, 8, 30, tzinfo=UTC)
EVIL = "e\x1b]0;x\x07\x00\u202e\ud800\ufffe\uffff<&\"']]>\r\n"

# Element → its required attributes, its other attributes, and what may stand in it: the schema that Jenkins uses.
JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"skipped", "time", "timestamp"}, {"testcase"}),
    "testcase": ({"name"}, {"classname", "time"}, {"skipped", "failure", "error", "system-out"}),
    "failure": (set(), {"type", "message"}, set()), "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()), "system-out": (set(), set(), set()),
}  # fmt: skip


def report(name: str = "g") -> JudgedPolicy:
    groups = (
        members("x y", name=name, owners="x x x -"),
        members("x y z", name=f"{name}2", topics=None),
        members("x", name=f"{name}3", message_model="BROADCASTING"),
    )
    rules = (
        Rule(name, "group", ("*",), (Limit("idle", 0), Limit("minConsumers", 1))),
        Rule(f"{name}-warns", "group", ("*",), (Limit("unassigned", 0),), severity="warning"),
        Rule(f"{name}-waived", "topic", ("*",), (Limit("minBrokers", 2),)),
        Rule(f"{name}-none", "topic", ("none",), (Limit("minBrokers", 2),)),
    )
    waivers = (Waiver(name, DAY, f"{name}-waived"), Waiver("old", DAY.replace(year=2025), group="x"))
    snapshot = cluster(*groups, routes=(route(a=4), route(name, a=4)), unread=(Unread("route", f"{name}4", name),))
    return check_policy(snapshot, Policy("p", rules, waivers), DAY)


def junit(of: JudgedPolicy) -> Element:
    text = as_junit(of, TAKEN)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    lines = text.replace("\n", "")
    assert visible(lines) == lines
    root = fromstring(text.encode())
    must_be_valid(root)
    return root


def must_be_valid(element: Element) -> None:
    required, others, inside = JUNIT[element.tag]
    assert required <= set(element.attrib) <= required | others
    assert {child.tag for child in element} <= inside
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        if element.tag in ("testsuite", "testsuites") and key in element.attrib:
            assert int(element.get(key, "")) == len(list(element.iter(tag)))
    if element.tag in ("failure", "error"):
        assert element.text == element.get("message"), "GitLab shows the text, Jenkins the attribute first"
    for child in element:
        must_be_valid(child)


def test_a_suite_is_a_rule_and_a_case_a_limit() -> None:
    suites = [{case.get("name", ""): " ".join(one.tag for one in case) for case in suite} for suite in junit(report())]
    g, warns, waived, none = suites
    assert [*g] == [f"group {name}: {limit}" for name in ("g", "g2", "g3") for limit in ("idle", "minConsumers")]
    assert [*g.values()][:3] == ["failure", "", "error"]
    assert [*g.values()][4:] == ["skipped", ""]
    assert [*warns.values()] == ["system-out", "system-out", "skipped"]
    assert waived == {
        "topic T: minBrokers": "skipped", "topic g: minBrokers": "skipped", "topic g4: minBrokers": "error",
    }  # fmt: skip
    assert none == {"anything to check": "error"}


def sarif(of: JudgedPolicy) -> dict[str, Any]:
    text = as_sarif(of, "1.2.3", 3)
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    log: dict[str, Any] = json.loads(text)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert {rule["defaultConfiguration"]["level"] for rule in rules} <= {"error", "warning", "note"}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        levels = {"fail": ("note", "warning", "error"), "open": ("none",), "notApplicable": ("none",)}
        assert result["level"] in levels[result["kind"]]
        assert result["message"]["text"]
        for place in result.get("locations", ()):
            (logical,) = place["logicalLocations"]
            assert set(logical) == {"name", "fullyQualifiedName", "kind"}
        assert {each["kind"] for each in result.get("suppressions", ())} <= {"external"}
    prints = [result["partialFingerprints"]["limit/v1"] for result in run["results"] if "locations" in result]
    assert len(set(prints)) == len(prints)
    checked: dict[str, Any] = run
    return checked


def test_a_result_is_what_does_not_simply_hold() -> None:
    results = sarif(report())["results"]
    kinds = [f"{r['ruleId']} {r['kind']} {r['level']}{' waived' * ('suppressions' in r)}" for r in results]
    assert kinds == [
        *("g fail error", "g open none", "g notApplicable none"),
        *("g-warns fail warning", "g-warns open none", "g-warns notApplicable none"),
        *("g-waived fail error waived", "g-waived fail error waived", "g-waived open none", "g-none open none"),
    ]
    place = {"name": "g", "fullyQualifiedName": "group/g", "kind": "group"}
    assert results[0]["locations"] == [{"logicalLocations": [place]}]


@every_case("name", [EVIL, "x" * 10_000, "]]>", "&amp;", "\ufeff", "名前"])
def test_hostile_names_spoil_neither(name: str) -> None:
    of = report(name)
    suites = list(junit(of))
    assert suites[0].get("name") == visible(name).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    assert sarif(of)["tool"]["driver"]["rules"][0]["id"] == visible(name)


def test_no_name_is_a_link_in_a_message() -> None:
    """`[text](destination)` in a message of SARIF is a link; viewers differ in which brackets they let one escape."""
    name = "[log in](https://attacker.example)"
    results = sarif(report(name))["results"]
    assert results[0]["message"]["text"].startswith("group [log in]\\(https://attacker.example): idle is 1")
    assert results[0]["locations"][0]["logicalLocations"][0]["name"] == name
    assert "](" not in "".join(result["message"]["text"] for result in results)


# -- what people see of a check ------------------------------------------------------------------------------------

UNEVEN = cluster(members("x y", owners="x x x x"), members("x", name="h"))
"""In g consumer y is idle; h is in order."""
UNKNOWN = cluster(members("x", name="h"), members("x y", name="u", strategy=None))


def rule(name: str, severity: Severity = "error", **limits: float) -> Rule:
    return Rule(name, GROUP, ("*",), tuple(Limit(*limit) for limit in limits.items()), severity=severity)


def shown(*rules: Rule, waivers: Sequence[Waiver] = (), fail_on: Severity = "error", unknown: bool = False) -> Report:
    policy = Policy("p.yaml", rules, tuple(waivers))
    return check_report(check_policy(UNKNOWN if unknown else UNEVEN, policy, DAY, fail_on=fail_on).result)


WAIVED = Waiver("known", DAY, group="g")


@every_case(("report", "facts", "grave"), [
    (shown(rule("r", idle=1)), ("all 2 limits passed", "  2 passed; 1 rule of p.yaml on 2026-06-15"), "inOrder"),
    (shown(rule("r", idle=0)), ("1 of 2 limits failed: group g: idle is 1 (at most 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "error"),
    (shown(rule("w", "warning", idle=0), fail_on="warning"), ("1 of 2 limits failed: group g: idle is 1 (at most 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "warning", idle=0)), ("1 of 2 limits failed, none of severity error: group g: idle is 1 (at most 0)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "info", minConsumers=3), rule("e", idle=0)), ("3 of 4 limits failed: group g: idle is 1 (at most 0), and 2 more", "  1 passed; 2 rules of p.yaml on 2026-06-15"), "error"),
    (shown(rule("r", idle=0), waivers=(WAIVED,)), ("none of 2 limits failed", "  1 passed, 1 waived; 1 rule of p.yaml on 2026-06-15"), "inOrder"),
    (shown(rule("r", idle=0), unknown=True), ("1 limit could not be judged: group u: idle: the strategy of its consumers is unknown (set `assume` in the rule)", "  1 passed; 1 rule of p.yaml on 2026-06-15"), "warning"),
    (shown(rule("w", "warning", idle=0), unknown=True), ("none of 2 limits failed, 1 could not be judged", "  1 passed; 1 rule of p.yaml on 2026-06-15"), ""),
    (shown(rule("r", idle=0, minConsumers=9), unknown=True), ("2 of 4 limits failed: group h: minConsumers is 1 (at least 9), and 1 more", "  1 passed, 1 could not be judged; 1 rule of p.yaml on 2026-06-15"), "error"),
])  # fmt: skip
def test_the_first_line_is_the_verdict(report: Report, facts: tuple[str, ...], grave: str) -> None:
    assert (report.facts, report.grave) == (facts, grave)


def test_a_screen_in_order_has_no_empty_table() -> None:
    screen = on_a_terminal(shown(rule("r", idle=1)), 100)
    assert ("none" in screen, "✗" in screen) == (False, False)


@every_case("severity", SEVERITIES)
def test_what_could_not_be_judged_is_on_a_screen_where_it_decides(severity: Severity) -> None:
    report = shown(rule("r", severity, idle=0), unknown=True)
    assert ("incomplete" in on_a_terminal(report, 100).replace("more: incomplete", "")) == (severity == "error")
    assert "incomplete" in on_a_terminal(report, 100, "incomplete")


def test_the_gravest_failed_limit_comes_first() -> None:
    (failed, *_) = shown(rule("i", "info", idle=0), rule("e", idle=0), rule("w", "warning", idle=0)).sections
    assert [row[:2] for row in failed.rows] == [("error", "e"), ("warning", "w"), ("info", "i")]
