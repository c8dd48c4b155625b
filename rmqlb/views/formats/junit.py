"""A `CheckReport` as JUnit XML: a suite is a rule, a case is a limit for a group or topic.

A failed limit that decides the outcome is a failure, one that could not be judged an error; waived and not applicable
are skipped. A rule below the severity that decides passes, and says in its output what it found. What a failure says
stands in its `message` and in its text: some CI servers show the one, some the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rmqlb.model.checking import FAILED, INCOMPLETE, NOT_APPLICABLE, PASSED, CheckReport, Judgement
from rmqlb.model.finding import Severity
from rmqlb.model.policy import Rule
from rmqlb.views.check import sentence, waiver_text
from rmqlb.views.formats.text import fit_for_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_KINDS = {FAILED: "failure", INCOMPLETE: "error", NOT_APPLICABLE: "skipped"}


def as_junit(report: CheckReport, taken_at: datetime | None) -> str:
    """The check as JUnit XML, in UTF-8."""
    from xml.etree.ElementTree import Element, indent, tostring

    suites = Element("testsuites", name="rmqlb check")
    for rule, own in report.by_rule:
        suites.append(_suite(rule, own, report, taken_at))
    for key in ("tests", "failures", "errors"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    suites.set("time", "0")
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, "unicode")}\n'


def _suite(rule: Rule, judgements: Sequence[Judgement], report: CheckReport, taken_at: datetime | None) -> Element:
    from xml.etree.ElementTree import Element

    cases = [_case(one, report.fail_from) for one in judgements]
    tags = [child.tag for case in cases for child in case]
    suite = Element("testsuite", name=fit_for_xml(rule.name), tests=str(len(cases)))
    suite.set("failures", str(tags.count("failure")))
    suite.set("errors", str(tags.count("error")))
    suite.set("skipped", str(tags.count("skipped")))
    suite.set("time", "0")
    if taken_at is not None:
        suite.set("timestamp", taken_at.replace(tzinfo=None).isoformat(timespec="seconds"))
    suite.extend(cases)
    return suite


def _case(one: Judgement, fail_from: Severity) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    limit = one.limit.name if one.limit else "anything to check"
    name = limit if one.subject is None else f"{one.rule.about} {one.subject}: {limit}"
    case = Element("testcase", name=fit_for_xml(name), classname=fit_for_xml(one.rule.name), time="0")
    if one.verdict == PASSED:
        return case
    text = fit_for_xml(sentence(one))
    if one.waiver is not None:
        SubElement(case, "skipped", message=fit_for_xml(f"{waiver_text(one.waiver)} ({text})"))
    elif one.verdict != NOT_APPLICABLE and not one.rule.counts_from(fail_from):
        SubElement(case, "system-out").text = f"{one.rule.severity}: {text}"
    else:
        SubElement(case, _KINDS[one.verdict], type=one.verdict, message=text).text = text
    return case
