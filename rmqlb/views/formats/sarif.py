"""A checked policy as SARIF 2.1.0: the policy's rules, and a result for each limit that did not simply pass.

Locations are logical, for a group or topic stands in no file. What could not be judged is of kind `open`, what does not
apply of kind `notApplicable`; a waived result is suppressed. What a viewer might obey in a text is shown as escapes.
"""

from __future__ import annotations

from typing import Any

from rmqlb.model.check_result import (
    FAILED,
    INCOMPLETE,
    NOT_APPLICABLE,
    PASSED,
    JudgedLimit,
    JudgedPolicy,
    Verdict,
    WaivedLimit,
)
from rmqlb.model.finding import Severity
from rmqlb.model.policy import Rule
from rmqlb.views.check import allowed_text, sentence, waiver_text
from rmqlb.views.formats.machine import as_json
from rmqlb.views.formats.text import visible

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_KINDS: dict[Verdict, str] = {FAILED: "fail", INCOMPLETE: "open", NOT_APPLICABLE: "notApplicable"}


def as_sarif(checked: JudgedPolicy, version: str, exit_code: int) -> str:
    places = {rule.name: index for index, rule in enumerate(checked.policy.rules)}
    run = {
        "tool": {
            "driver": {
                "name": "rmqlb",
                "semanticVersion": version,
                "rules": [_rule(rule) for rule in checked.policy.rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": exit_code,
                "toolConfigurationNotifications": [
                    {
                        "descriptor": {"id": finding.code},
                        "level": "warning",
                        "message": {"text": _text(finding.message)},
                    }
                    for finding in checked.findings
                ],
            }
        ],
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, places) for one in checked.judged if one.verdict != PASSED],
    }
    return as_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _text(text: str) -> str:
    """A message, in which `[text](destination)` is a link to viewers: a client id that is one is not to become it."""
    return visible(text).replace("](", "]\\(")


def _rule(rule: Rule) -> dict[str, Any]:
    limits = "; ".join(
        f"{limit.name} {allowed_text(limit.kind.unit, limit.bound)} ({limit.kind.what})" for limit in rule.limits
    )
    return {
        "id": visible(rule.name),
        "shortDescription": {"text": _text(f"limits of {rule.about}s {', '.join(rule.patterns)}")},
        "fullDescription": {"text": _text(limits)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(one: JudgedLimit, places: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": visible(one.rule),
        "ruleIndex": places[one.rule],
        "kind": _KINDS[one.verdict],
        "level": _LEVELS[one.severity] if one.verdict == FAILED else "none",
        "message": {"text": _text(sentence(one))},
        "properties": {"limit": one.limit, "value": one.value, "basis": one.basis},
    }
    if one.name is not None:
        name = visible(one.name)
        place = {"name": name, "fullyQualifiedName": f"{one.about}/{name}", "kind": one.about}
        result["locations"] = [{"logicalLocations": [place]}]
        result["partialFingerprints"] = {"limit/v1": visible(f"{one.rule}/{one.about}/{one.name}/{one.limit}")}
    if isinstance(one, WaivedLimit):
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": visible(waiver_text(one))}
        ]
    return result
