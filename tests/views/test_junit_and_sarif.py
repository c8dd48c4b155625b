import json
from datetime import UTC, datetime
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from rmqlb.engine.check import check_policy
from rmqlb.model.policy import JudgedPolicy, Limit, Policy, Rule, Waiver
from rmqlb.model.result import Severity
from rmqlb.model.snapshot import Unread
from rmqlb.views.formats.ci_reports import as_junit, as_sarif
from rmqlb.views.formats.text import visible
from tests.engine.check.clusters import DAY, cluster, members
from tests.support.builders import route
from tests.support.mismatches import every_case

TAKEN = datetime(2026, 6, 15, 8, 30, tzinfo=UTC)
EVIL = "e\x1b]0;x\x07\x00\u202e\ud800\ufffe\uffff<&\"']]>\r\n"

# Element → its required attributes, its other attributes, and what may stand in it: the schema that Jenkins uses.
JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"skipped", "time", "timestamp"}, {"testcase"}),
    "testcase": ({"name"}, {"classname", "time"}, {"skipped", "failure", "error", "system-out"}),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}


def report(name: str = "g", *, fail_from: Severity = "error") -> JudgedPolicy:
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
    return check_policy(snapshot, Policy("p", rules, waivers), DAY, fail_from=fail_from)


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
    for child in element:
        must_be_valid(child)


def cases(root: Element) -> dict[str, dict[str, list[str]]]:
    return {
        suite.get("name", ""): {case.get("name", ""): [child.tag for child in case] for case in suite} for suite in root
    }


def test_a_suite_is_a_rule_and_a_case_a_limit() -> None:
    g, warns, waived, none = cases(junit(report())).values()
    assert list(g.items())[:3] == [
        ("group g: idle", ["failure"]),
        ("group g: minConsumers", []),
        ("group g2: idle", ["error"]),
    ]
    assert list(g.items())[4:] == [("group g3: idle", ["skipped"]), ("group g3: minConsumers", [])]
    assert list(warns.values()) == [["system-out"], ["system-out"], ["skipped"]]
    assert waived == {
        f"topic {name}: minBrokers": [tag] for name, tag in (("T", "skipped"), ("g", "skipped"), ("g4", "error"))
    }
    assert none == {"anything to check": ["error"]}


def test_a_failure_says_what_and_where() -> None:
    root = junit(report())
    failure = next(root.iter("failure"))
    assert failure.attrib == {"type": "failed", "message": "group g: idle is 1, allowed is at most 0 (y)"}
    assert failure.text == failure.get("message"), "GitLab shows the text, Jenkins the attribute first"
    assert all(error.text == error.get("message") for error in root.iter("error"))
    skipped = next(case for case in root.iter("testcase") if case.get("name") == "topic g: minBrokers")
    assert skipped[0].get("message") == (
        "waived until 2026-06-15: g (topic g: minBrokers is 1, allowed is at least 2 (a))"
    )
    assert next(root.iter("testsuite")).get("timestamp") == "2026-06-15T08:30:00"


def sarif(of: JudgedPolicy) -> dict[str, Any]:
    text = as_sarif(of, "1.2.3", 3)
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    log: dict[str, Any] = json.loads(text)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["kind"] in ("fail", "open", "notApplicable")
        assert result["level"] in ("none", "note", "warning", "error")
        assert (result["level"] == "none") == (result["kind"] != "fail")
        assert result["message"]["text"]
        for place in result.get("locations", ()):
            (logical,) = place["logicalLocations"]
            assert set(logical) == {"name", "fullyQualifiedName", "kind"}
        for suppression in result.get("suppressions", ()):
            assert suppression["kind"] == "external"
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
