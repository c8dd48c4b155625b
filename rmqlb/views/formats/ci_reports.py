"""A checked policy for CI servers: JUnit XML and SARIF 2.1.0.

JUnit: a suite is a rule, a case is a limit for a group or topic. A failed limit that decides the outcome is a failure,
an incomplete limit an error; waived and not applicable limits are skipped. A rule below the deciding severity passes,
with its findings in the output. A failure has its text in `message` and as content: CI servers show one or the other.

SARIF: the policy's rules, and a result for each limit that did not simply pass. Locations are logical, since a group or
topic is in no file. Incomplete limits are of kind `open`, others `notApplicable`; waived results are suppressed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rmqlb.model import policy
from rmqlb.model.result import Severity
from rmqlb.views.check import allowed_text, sentence, waiver_text
from rmqlb.views.formats.machine import as_json
from rmqlb.views.formats.text import fit_for_xml, visible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_JUNIT = {policy.FAILED: "failure", policy.INCOMPLETE: "error", policy.NOT_APPLICABLE: "skipped"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_SARIF: dict[policy.Verdict, str] = {"failed": "fail", "incomplete": "open", "notApplicable": "notApplicable"}


def as_junit(checked: policy.JudgedPolicy, taken_at: datetime | None) -> str:
    from xml.etree.ElementTree import Element, indent, tostring

    suites = Element("testsuites", name="rmqlb check")
    for rule in checked.policy.rules:
        own = [one for one in checked.judged if one.rule == rule.name]
        suites.append(_suite(rule.name, own, checked.result.fail_on, taken_at))
    for key in ("tests", "failures", "errors"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    suites.set("time", "0")
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, "unicode")}\n'


def _suite(rule: str, judged: Sequence[policy.JudgedLimit], fail_on: Severity, taken_at: datetime | None) -> "Element":
    from xml.etree.ElementTree import Element

    cases = [_case(one, fail_on) for one in judged]
    tags = [child.tag for case in cases for child in case]
    suite = Element("testsuite", name=fit_for_xml(rule), tests=str(len(cases)))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(tags.count(tag)))
    suite.set("time", "0")
    if taken_at is not None:
        suite.set("timestamp", taken_at.replace(tzinfo=None).isoformat(timespec="seconds"))
    suite.extend(cases)
    return suite


def _case(one: policy.JudgedLimit, fail_on: Severity) -> "Element":
    from xml.etree.ElementTree import Element, SubElement

    limit = one.limit or "anything to check"
    name = limit if one.name is None else f"{one.about} {one.name}: {limit}"
    case = Element("testcase", name=fit_for_xml(name), classname=fit_for_xml(one.rule), time="0")
    if one.verdict == policy.PASSED:
        return case
    text = fit_for_xml(sentence(one))
    if isinstance(one, policy.WaivedLimit):
        SubElement(case, "skipped", message=fit_for_xml(f"{waiver_text(one)} ({text})"))
    elif one.verdict != policy.NOT_APPLICABLE and not one.decides(fail_on):
        SubElement(case, "system-out").text = f"{one.severity}: {text}"
    else:
        SubElement(case, _JUNIT[one.verdict], type=one.verdict, message=text).text = text
    return case


def as_sarif(checked: policy.JudgedPolicy, version: str, exit_code: int) -> str:
    places = {rule.name: index for index, rule in enumerate(checked.policy.rules)}
    rules = [_rule(rule) for rule in checked.policy.rules]
    warnings = [
        {"descriptor": {"id": each.code}, "level": "warning", "message": {"text": _text(each.message)}}
        for each in checked.findings
    ]
    ended = {"executionSuccessful": True, "exitCode": exit_code, "toolConfigurationNotifications": warnings}
    run = {
        "tool": {"driver": {"name": "rmqlb", "semanticVersion": version, "rules": rules}},
        "invocations": [ended],
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, places) for one in checked.judged if one.verdict != policy.PASSED],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _text(text: str) -> str:
    """A message in which no client ID can become a viewer's link, `[text](destination)`."""
    return visible(text).replace("](", "]\\(")


def _rule(rule: policy.Rule) -> dict[str, Any]:
    limits = "; ".join(
        f"{limit.name} {allowed_text(limit.kind.unit, limit.bound)} ({limit.kind.what})" for limit in rule.limits
    )
    return {
        "id": visible(rule.name),
        "shortDescription": {"text": _text(f"limits of {rule.about}s {', '.join(rule.patterns)}")},
        "fullDescription": {"text": _text(limits)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(one: policy.JudgedLimit, places: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": visible(one.rule),
        "ruleIndex": places[one.rule],
        "kind": _SARIF[one.verdict],
        "level": _LEVELS[one.severity] if one.verdict == policy.FAILED else "none",
        "message": {"text": _text(sentence(one))},
        "properties": {"limit": one.limit, "value": one.value, "basis": one.basis},
    }
    if one.name is not None:
        name = visible(one.name)
        place = {"name": name, "fullyQualifiedName": f"{one.about}/{name}", "kind": one.about}
        result["locations"] = [{"logicalLocations": [place]}]
        result["partialFingerprints"] = {"limit/v1": visible(f"{one.rule}/{one.about}/{one.name}/{one.limit}")}
    if isinstance(one, policy.WaivedLimit):
        justification = visible(waiver_text(one))
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": justification}]
    return result
