"""The result of `check`: a policy, limit by limit."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.assignment import Basis
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import SEVERITIES, Finding, Severity
from rmqlb.model.policy import About, Bound, Policy, Unit
from rmqlb.model.result import Result

Verdict = Literal["passed", "failed", "incomplete", "notApplicable"]
PASSED: Verdict = "passed"
FAILED: Verdict = "failed"
INCOMPLETE: Verdict = "incomplete"
NOT_APPLICABLE: Verdict = "notApplicable"
WaiverState = Literal["used", "unused", "undecided", "expired"]


class JudgedLimit(Struct, frozen=True):
    """What one limit of one rule comes to for one group or topic."""

    rule: Annotated[str, "the rule's name"]
    severity: Annotated[Severity, "of the rule"]
    about: Annotated[About, "what the rule is about"]
    name: Annotated[str | None, "group or topic; null is the rule as a whole, which found nothing to check"]
    limit: Annotated[str | None, "the limit's name; null for the rule as a whole"]
    verdict: Annotated[Verdict, "what it comes to; of a waived one, without the waiver"]
    value: Annotated[Bound | None, "what was measured, a fraction where the unit is share; null when it is unknown"]
    bound: Annotated[Bound | None, "what the limit allows, in the same unit"]
    unit: Annotated[Unit | None, "count, ratio or share (at most), least, names (only these), noneOf (these findings)"]
    basis: Annotated[Basis | None, "observed, predicted or assumed owners; null where that is no question"]
    why: Annotated[str | None, "where to look, or why it could not be judged"]
    findings: Annotated[tuple[GroupFinding, ...], "findings that break a forbiddenFindings limit"]

    def decides(self, fail_from: Severity) -> bool:
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(fail_from)


class WaivedLimit(JudgedLimit, frozen=True):
    """A limit that a waiver lets pass."""

    until: Annotated[date, "the last day on which the waiver counts, YYYY-MM-DD"]
    reason: Annotated[str, "why it is there"]
    owner: Annotated[str | None, "who answers for the waiver; null when it names no owner"]


class LimitCounts(Struct, frozen=True, rename="camel"):
    """Limits, counted."""

    limits: Annotated[int, "how many were judged, one for each name"]
    passed: Annotated[int, "how many of them passed"]
    failed: Annotated[int, "how many failed and are not waived"]
    waived: Annotated[int, "how many a waiver lets pass"]
    incomplete: Annotated[int, "how many could not be judged; a rule that found nothing to check counts here too"]
    not_applicable: Annotated[int, "how many make no sense for their name"]


class RuleCounts(LimitCounts, frozen=True):
    """A rule, counted."""

    rule: Annotated[str, "its name"]
    severity: Annotated[Severity, "error, warning or info"]
    about: Annotated[About, "group or topic"]
    names: Annotated[int, "how many groups or topics fit its patterns"]


class CheckSummary(LimitCounts, frozen=True):
    """All rules together."""

    rules: Annotated[int, "how many there are"]


class WaiverResult(Struct, frozen=True):
    """A waiver and what became of it."""

    rule: Annotated[str | None, "the rule's name; null is any rule"]
    group: Annotated[str | None, "pattern of group names; null is no matter which"]
    topic: str | None
    limit: Annotated[str | None, "the limit's name; null is any limit"]
    until: Annotated[date, "the last day on which it counts, YYYY-MM-DD"]
    reason: Annotated[str, "why it is there"]
    state: Annotated[WaiverState, "used, unused (it waives nothing), undecided (its limits are incomplete) or expired"]
    waived: Annotated[int, "how many judgements it lets pass"]


class CheckResult(Result, frozen=True):
    """A policy checked on a cluster."""

    policy: Annotated[str, "the file"]
    today: Annotated[date, "the day on which waivers were looked at, YYYY-MM-DD"]
    fail_from: Annotated[Severity, "the lowest severity that decides the outcome"]
    outcome: Annotated[Verdict, "of the rules grave enough; failed goes before incomplete"]
    failed: Annotated[tuple[JudgedLimit, ...], "limits that failed and are not waived, the gravest first"]
    waived: Annotated[tuple[WaivedLimit, ...], "limits that a waiver lets pass"]
    incomplete: Annotated[tuple[JudgedLimit, ...], "limits not judged, and rules without anything to check"]
    not_applicable: Annotated[tuple[JudgedLimit, ...], "limits that make no sense for their name"]
    rules: Annotated[tuple[RuleCounts, ...], "rule by rule"]
    waivers: Annotated[tuple[WaiverResult, ...], "in the policy's order"]
    summary: Annotated[CheckSummary, "all rules together"]


class JudgedPolicy(Struct, frozen=True):
    """A policy checked on a snapshot, with the limits that passed, which reports for CI list."""

    policy: Policy
    judged: tuple[JudgedLimit, ...]  # by rule, then by name, then by limit
    result: CheckResult
    findings: tuple[Finding, ...]
