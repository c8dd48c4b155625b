"""The limit that forbids findings of a diagnosis by their codes."""

from __future__ import annotations

from rmqlb.engine.check.policy_limits import Measured
from rmqlb.engine.diagnose.diagnose import diagnose
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.group import Group
from rmqlb.model.policy import Limit


def forbidden_findings(limit: Limit, facts: Group) -> Measured:
    """Which of the codes are the case, what comes of a cause included; unknown as long as a rule could not decide."""
    codes = limit.bound if isinstance(limit.bound, tuple) else ()
    _ = facts.group
    found = diagnose(GroupEvidence(facts))
    causes = {each.code: each.causes for each in found.consequences}
    there = {each.code for each in found.findings} | causes.keys()
    value = tuple(code for code in codes if code in there)
    named = {*value}.union(*(causes.get(code, ()) for code in value))
    findings = tuple(each for each in found.findings if each.code in named)
    missing = [f"{each.code}: {each.reason}" for each in found.unknown if each.code in codes]
    apart = {each.code: each.reason for each in found.not_applicable}
    return Measured(
        value,
        missing="; ".join(missing) or None,
        apart=apart[codes[0]] if all(code in apart for code in codes) else None,
        why="; ".join(each.message for each in findings),
        findings=findings,
    )
