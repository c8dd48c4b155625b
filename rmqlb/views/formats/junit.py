"""A checked policy as JUnit XML: a suite is a rule, a case is a limit for a group or topic.

A failed limit that decides the outcome is a failure, one that could not be judged an error; waived and not applicable
are skipped. A rule below the severity that decides passes, and says in its output what it found. What a failure says
stands in its `message` and in its text: some CI servers show the one, some the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rmqlb.model.check_result import FAILED, INCOMPLETE, NOT_APPLICABLE, PASSED, JudgedLimit, JudgedPolicy, WaivedLimit
from rmqlb.model.finding import Severity
from rmqlb.views.check import sentence, waiver_text
from rmqlb.views.formats.text import fit_for_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_KINDS = {FAILED: "failure", INCOMPLETE: "error", NOT_APPLICABLE: "skipped"}


def as_junit(checked: JudgedPolicy, taken_at: datetime | None) -> str:
    from xml.etree.ElementTree import Element, indent, tostring

    suites = Element("testsuites", name="rmqlb check")
    for rule in checked.policy.rules:
        own = [one for one in checked.judged if one.rule == rule.name]
        suites.append(_suite(rule.name, own, checked.result.fail_from, taken_at))
    for key in ("tests", "failures", "errors"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    suites.set("time", "0")
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, "unicode")}\n'


def _suite(rule: str, judged: Sequence[JudgedLimit], fail_from: Severity, taken_at: datetime | None) -> Element:
    from xml.etree.ElementTree import Element

    cases = [_case(one, fail_from) for one in judged]
    tags = [child.tag for case in cases for child in case]
    suite = Element("testsuite", name=fit_for_xml(rule), tests=str(len(cases)))
    suite.set("failures", str(tags.count("failure")))
    suite.set("errors", str(tags.count("error")))
    suite.set("skipped", str(tags.count("skipped")))
    suite.set("time", "0")
    if taken_at is not None:
        suite.set("timestamp", taken_at.replace(tzinfo=None).isoformat(timespec="seconds"))
    suite.extend(cases)
    return suite


def _case(one: JudgedLimit, fail_from: Severity) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    limit = one.limit or "anything to check"
    name = limit if one.name is None else f"{one.about} {one.name}: {limit}"
    case = Element("testcase", name=fit_for_xml(name), classname=fit_for_xml(one.rule), time="0")
    if one.verdict == PASSED:
        return case
    text = fit_for_xml(sentence(one))
    if isinstance(one, WaivedLimit):
        SubElement(case, "skipped", message=fit_for_xml(f"{waiver_text(one)} ({text})"))
    elif one.verdict != NOT_APPLICABLE and not one.decides(fail_from):
        SubElement(case, "system-out").text = f"{one.severity}: {text}"
    else:
        SubElement(case, _KINDS[one.verdict], type=one.verdict, message=text).text = text
    return case
