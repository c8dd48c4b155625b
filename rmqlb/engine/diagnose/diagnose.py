"""Every rule asked about a group, and the answers in order: the likeliest cause first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from rmqlb.engine.diagnose.evidence import DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.engine.diagnose.rule import Case, ComesOf, DiagnosisRule
from rmqlb.engine.diagnose.rules import RULES
from rmqlb.engine.diagnose.state import counts_of, looks_of, stacks_of
from rmqlb.model.diagnosis import Consequence, Diagnosis, GroupFinding, Undecided
from rmqlb.model.finding import INFO, SEVERITIES
from rmqlb.model.message_queue import queue_ranges
from rmqlb.model.words import named


def diagnose(evidence: GroupEvidence, rules: Sequence[DiagnosisRule] = RULES) -> Diagnosis:
    """What the rules say of the group."""
    case = Case(evidence, rules)
    findings = _in_order(case)
    consequences: list[Consequence] = []
    checked: list[str] = []
    unknown: list[Undecided] = []
    not_applicable: list[Undecided] = []
    for rule in rules:
        answer = case.answer(rule.code)
        if isinstance(answer.why, ComesOf):
            consequences.append(Consequence(rule.code, answer.why.causes))
        elif isinstance(answer.why, DoesNotApply):
            not_applicable.append(Undecided(rule.code, str(answer.why)))
        elif answer.why is not None:
            if all(finding.severity == INFO for finding in answer.findings):  # otherwise it might show more of the same
                unknown.append(Undecided(rule.code, answer.why.message, answer.why.hint))
        elif not answer.findings:
            checked.append(rule.code)
    found_any = any(finding.severity != INFO for finding in findings)
    return Diagnosis(
        evidence.facts.name or "",
        "found" if found_any else "unknown" if unknown else "inOrder",
        looks_of(evidence),
        counts_of(evidence),
        findings,
        tuple(consequences),
        tuple(checked),
        tuple(unknown),
        tuple(not_applicable),
        stacks_of(evidence),
    )


def findings_by(rules: Sequence[DiagnosisRule], evidence: GroupEvidence) -> tuple[GroupFinding, ...]:
    """What a diagnosis by these rules finds, without the rest of it."""
    return _in_order(Case(evidence, rules))


def findings_of(code: str, evidence: GroupEvidence) -> tuple[GroupFinding, ...]:
    """What one rule finds in the group; other rules are asked only where it needs them."""
    return tuple(replace(each, message=_message(each)) for each in Case(evidence, RULES).answer(code).findings)


def _in_order(case: Case) -> tuple[GroupFinding, ...]:
    """All findings with their messages, the likeliest cause first."""
    order = [rule.code for rule in case.rules]
    found = [replace(each, message=_message(each)) for code in order for each in case.answer(code).findings]
    return tuple(sorted(found, key=lambda finding: _place(finding, case, order)))


def _place(finding: GroupFinding, case: Hypotheses, order: list[str]) -> tuple[bool, int, bool, int, int]:
    """Causes that explain the owners first, those before that concern more queues; then by severity and rule."""
    explains = finding.severity != INFO and finding.code in case.explanation
    severity, place = SEVERITIES.index(finding.severity), order.index(finding.code)
    return not explains, severity, finding.explains is None, 0 if explains else place, -len(finding.queues)


def _message(finding: GroupFinding) -> str:
    """Whom it is about, what comes of it, and where."""
    who = ", ".join((f"group {finding.group}", *([named(finding.consumers)] if finding.consumers else ())))
    text = finding.consequence.removesuffix(".")
    where = f" ({queue_ranges(finding.queues)})" if finding.queues else ""
    return f"{who}: {text[:1].lower()}{text[1:]}{where}"
