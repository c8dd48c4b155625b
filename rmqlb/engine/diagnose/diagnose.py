"""Every rule asked about a group, and the answers in order: the likeliest cause first."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.engine.diagnose.evidence import DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.engine.diagnose.rule import ComesOf, DiagnosisRule
from rmqlb.engine.diagnose.rules import RULES
from rmqlb.engine.diagnose.state import counts_of, looks_of, stacks_of
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import Consequence, Diagnosis, GroupFinding, Undecided
from rmqlb.model.finding import INFO, SEVERITIES


def diagnose(evidence: GroupEvidence, rules: Sequence[DiagnosisRule] = RULES) -> Diagnosis:
    """What the rules say of the group."""
    case = Hypotheses(evidence)
    findings: list[GroupFinding] = []
    consequences: list[Consequence] = []
    checked: list[str] = []
    unknown: list[Undecided] = []
    not_applicable: list[Undecided] = []
    for rule in rules:
        found: list[GroupFinding] = []
        try:
            for finding in rule.check(case):
                found.append(finding)  # noqa: PERF402 - what was found stands, whatever is missing after it
            if not found:
                checked.append(rule.code)
        except ComesOf as other:
            consequences.append(Consequence(rule.code, other.causes))
        except DoesNotApply as why:
            not_applicable.append(Undecided(rule.code, str(why)))
        except RmqlbError as error:
            if not found:  # more evidence might show more of the same
                unknown.append(Undecided(rule.code, error.message, error.hint))
        findings += found
    findings.sort(key=lambda finding: _place(finding, case))
    found_any = any(finding.severity != INFO for finding in findings)
    return Diagnosis(
        evidence.facts.name,
        "found" if found_any else "unknown" if unknown else "inOrder",
        looks_of(evidence),
        counts_of(evidence),
        tuple(findings),
        tuple(consequences),
        tuple(checked),
        tuple(unknown),
        tuple(not_applicable),
        stacks_of(evidence),
    )


def _place(finding: GroupFinding, case: Hypotheses) -> tuple[bool, bool, int, int]:
    """Causes that explain the owners first, those before that concern more queues; then by severity."""
    explains = finding.severity != INFO and finding.code in case.explanation
    return not explains, finding.explains is None, SEVERITIES.index(finding.severity), -len(finding.queues)
