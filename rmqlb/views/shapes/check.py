"""`rmqlb/check`: a policy, limit by limit."""

from __future__ import annotations

from typing import TypedDict

from rmqlb.model.checking import Basis, Verdict, WaiverState
from rmqlb.model.policy import About, Severity, Unit


class JudgementData(TypedDict):
    """What one limit of one rule comes to for one group or topic.

    Attributes:
        rule: the rule's name.
        severity: of the rule.
        about: what the rule is about.
        name: of the group or topic; null is the rule as a whole, which did not find all or anything to check.
        limit: the limit's name; null for the rule as a whole.
        verdict: what it comes to.
        value: what was measured, a fraction where the unit is share; null when it cannot be told.
        bound: what the limit allows, in the same unit.
        unit: count and ratio (at most so much), share (a fraction, at most so much), least (at least so many), names
            (only these).
        basis: seen at the cluster, predicted by the strategy that members run, or assumed by the one that the rule
            names; null where that is no question.
        why: where to look, or why it cannot be told.
    """

    rule: str
    severity: Severity
    about: About
    name: str | None
    limit: str | None
    verdict: Verdict
    value: float | list[str] | None
    bound: float | list[str] | None
    unit: Unit | None
    basis: Basis | None
    why: str | None


class WaivedData(JudgementData):
    """A judgement that a waiver lets pass.

    Attributes:
        rule: the rule's name.
        severity: of the rule.
        about: what the rule is about.
        name: of the group or topic; null is the rule as a whole.
        limit: the limit's name; null for the rule as a whole.
        verdict: what it would come to without the waiver.
        value: what was measured; null when it cannot be told.
        bound: what the limit allows, in the same unit.
        unit: of both.
        basis: seen, predicted or assumed; null where that is no question.
        why: where to look, or why it cannot be told.
        until: the last day on which the waiver counts, YYYY-MM-DD.
        reason: why it is there.
    """

    until: str
    reason: str


class RuleData(TypedDict):
    """A rule, counted.

    Attributes:
        rule: its name.
        severity: error, warning or note.
        about: group or topic.
        names: how many groups or topics fit its patterns.
        limits: how many limits were judged, one for each name.
        holds: how many of them hold.
        violated: how many are violated and not waived.
        waived: how many a waiver lets pass.
        incomplete: how many cannot be told; a rule that found nothing to check counts here too.
        notApplicable: how many make no sense for their name.
    """

    rule: str
    severity: Severity
    about: About
    names: int
    limits: int
    holds: int
    violated: int
    waived: int
    incomplete: int
    notApplicable: int


class WaiverData(TypedDict):
    """A waiver and what became of it.

    Attributes:
        rule: the rule's name; null is any rule.
        group: pattern of group names; null is no matter which.
        topic: pattern of topic names; null is no matter which.
        limit: the limit's name; null is any limit.
        until: the last day on which it counts, YYYY-MM-DD.
        reason: why it is there.
        state: used, unused (it lets nothing pass) or expired.
        waived: how many judgements it lets pass.
    """

    rule: str | None
    group: str | None
    topic: str | None
    limit: str | None
    until: str
    reason: str
    state: WaiverState
    waived: int


class CheckSummaryData(TypedDict):
    """All rules together.

    Attributes:
        rules: how many there are.
        limits: how many limits were judged.
        holds: how many of them hold.
        violated: how many are violated and not waived.
        waived: how many a waiver lets pass.
        incomplete: how many cannot be told, with rules that found nothing to check.
        notApplicable: how many make no sense for their name.
    """

    rules: int
    limits: int
    holds: int
    violated: int
    waived: int
    incomplete: int
    notApplicable: int


class CheckData(TypedDict):
    """A policy checked on a cluster.

    Attributes:
        policy: the file.
        today: the day on which waivers were looked at, YYYY-MM-DD.
        failFrom: the lowest severity that decides the outcome.
        outcome: of the rules grave enough; violated goes before incomplete.
        violations: limits that are violated and not waived.
        waived: judgements that a waiver lets pass.
        incomplete: limits that cannot be told, and rules that found nothing to check.
        notApplicable: limits that make no sense for their name.
        rules: rule by rule.
        waivers: in the policy's order.
        summary: all rules together.
    """

    policy: str
    today: str
    failFrom: Severity
    outcome: Verdict
    violations: list[JudgementData]
    waived: list[WaivedData]
    incomplete: list[JudgementData]
    notApplicable: list[JudgementData]
    rules: list[RuleData]
    waivers: list[WaiverData]
    summary: CheckSummaryData
