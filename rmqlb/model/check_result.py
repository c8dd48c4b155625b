"""What `check` prints as JSON: a policy, limit by limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Any

from msgspec import Struct

from rmqlb.model.assignment import Basis
from rmqlb.model.checking import (
    FAILED,
    INCOMPLETE,
    NOT_APPLICABLE,
    CheckReport,
    Judgement,
    Verdict,
    WaiverState,
)
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import SEVERITIES, Severity
from rmqlb.model.policy import About, Bound, Unit
from rmqlb.model.result import Result


class JudgedLimit(Struct, frozen=True):
    """What one limit of one rule comes to for one group or topic.

    Attributes:
        name: of the group or topic; null is the rule as a whole, which did not find all or anything to check.
        unit: count and ratio (at most so much), share (a fraction, at most so much), least (at least so many), names
            (only these), noneOf (findings, none of these).
        basis: observed at the cluster, predicted by the strategy that consumers run, or assumed by the one that the
            rule names; null where that is no question.
        findings: of a diagnosis that break the limit, or that what breaks it comes of; of forbiddenFindings only.
    """

    rule: Annotated[str, "the rule's name"]
    severity: Annotated[Severity, "of the rule"]
    about: Annotated[About, "what the rule is about"]
    name: str | None
    limit: Annotated[str | None, "the limit's name; null for the rule as a whole"]
    verdict: Annotated[Verdict, "what it comes to; of a waived one, without the waiver"]
    value: Annotated[Bound | None, "what was measured, a fraction where the unit is share; null when it is unknown"]
    bound: Annotated[Bound | None, "what the limit allows, in the same unit"]
    unit: Unit | None
    basis: Basis | None
    why: Annotated[str | None, "where to look, or why it could not be judged"]
    findings: tuple[GroupFinding, ...]


class WaivedLimit(JudgedLimit, frozen=True):
    """A limit that a waiver lets pass."""

    until: Annotated[date, "the last day on which the waiver counts, YYYY-MM-DD"]
    reason: Annotated[str, "why it is there"]


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
    """A waiver and what became of it.

    Attributes:
        state: used, unused (it lets nothing pass), undecided (its limits are incomplete) or expired.
    """

    rule: Annotated[str | None, "the rule's name; null is any rule"]
    group: Annotated[str | None, "pattern of group names; null is no matter which"]
    topic: str | None
    limit: Annotated[str | None, "the limit's name; null is any limit"]
    until: Annotated[date, "the last day on which it counts, YYYY-MM-DD"]
    reason: Annotated[str, "why it is there"]
    state: WaiverState
    waived: Annotated[int, "how many judgements it lets pass"]


class CheckResult(Result, frozen=True):
    """A policy checked on a cluster.

    Attributes:
        incomplete: limits that could not be judged, and rules that found nothing to check.
    """

    policy: Annotated[str, "the file"]
    today: Annotated[date, "the day on which waivers were looked at, YYYY-MM-DD"]
    fail_from: Annotated[Severity, "the lowest severity that decides the outcome"]
    outcome: Annotated[Verdict, "of the rules grave enough; failed goes before incomplete"]
    failed: Annotated[tuple[JudgedLimit, ...], "limits that failed and are not waived, the gravest first"]
    waived: Annotated[tuple[WaivedLimit, ...], "limits that a waiver lets pass"]
    incomplete: tuple[JudgedLimit, ...]
    not_applicable: Annotated[tuple[JudgedLimit, ...], "limits that make no sense for their name"]
    rules: Annotated[tuple[RuleCounts, ...], "rule by rule"]
    waivers: Annotated[tuple[WaiverResult, ...], "in the policy's order"]
    summary: Annotated[CheckSummary, "all rules together"]


def check_result(report: CheckReport) -> CheckResult:
    """The check for machines."""
    failed, incomplete, not_applicable = (
        tuple(JudgedLimit(**_fields(one)) for one in sorted(report.of(verdict), key=_gravity))
        for verdict in (FAILED, INCOMPLETE, NOT_APPLICABLE)
    )
    return CheckResult(
        policy=report.policy.where,
        today=report.today,
        fail_from=report.fail_from,
        outcome=report.outcome,
        failed=failed,
        waived=tuple(
            WaivedLimit(**_fields(one), until=one.waiver.until, reason=one.waiver.reason)
            for one in report.waived
            if one.waiver
        ),
        incomplete=incomplete,
        not_applicable=not_applicable,
        rules=tuple(
            RuleCounts(
                rule=rule.name,
                severity=rule.severity,
                about=rule.about,
                names=len({one.subject for one in own} - {None}),
                **_counts(own),
            )
            for rule, own in report.by_rule
        ),
        waivers=tuple(
            WaiverResult(w.rule, w.group, w.topic, w.limit, w.until, w.reason, use.state, use.waived)
            for use in report.waivers
            for w in (use.waiver,)
        ),
        summary=CheckSummary(rules=len(report.policy.rules), **_counts(report.judgements)),
    )


def _gravity(one: Judgement) -> int:
    return SEVERITIES.index(one.rule.severity)


def _fields(one: Judgement) -> dict[str, Any]:
    return {
        "rule": one.rule.name,
        "severity": one.rule.severity,
        "about": one.rule.about,
        "name": one.subject,
        "limit": one.limit and one.limit.name,
        "verdict": one.verdict,
        "value": one.value,
        "bound": one.limit and one.limit.bound,
        "unit": one.limit and one.limit.kind.unit,
        "basis": one.basis,
        "why": one.why or None,
        "findings": one.findings,
    }


def _counts(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Those of a `LimitCounts`; a rule that found nothing to check counts as incomplete, not as a limit."""
    counts: Counter[str] = Counter()
    for one in judgements:
        counts["limits"] += one.limit is not None
        counts["waived" if one.waiver is not None else one.verdict] += 1
    keys = zip(LimitCounts.__struct_fields__, LimitCounts.__struct_encode_fields__, strict=True)
    return {field: counts[key] for field, key in keys}
