"""What came of a policy: a judgement for each limit of each rule on each group or topic, and what became of waivers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Literal

from msgspec import Struct

from rmqlb.model.assignment import Basis
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import ERROR, Finding, Severity
from rmqlb.model.policy import Bound, Limit, Policy, Rule, Waiver

Verdict = Literal["passed", "failed", "incomplete", "notApplicable"]
PASSED: Verdict = "passed"
FAILED: Verdict = "failed"
INCOMPLETE: Verdict = "incomplete"
NOT_APPLICABLE: Verdict = "notApplicable"

WaiverState = Literal["used", "unused", "undecided", "expired"]


class Judgement(Struct, frozen=True):
    """What one limit of one rule comes to for one group or topic."""

    rule: Rule
    # name of the group or topic; None is the rule as a whole, which did not find all or anything to check
    subject: str | None
    limit: Limit | None
    verdict: Verdict  # passed, failed, incomplete (unknown) or notApplicable (it makes no sense there)
    value: Bound | None = None  # what was measured; None when unknown. Of a failed limit it may be more yet.
    why: str = ""  # where to look, or why it is unknown; may be empty
    # observed (at the cluster), predicted (by the strategy that the consumers run) or assumed (by the one that the rule
    # names); None where that is no question
    basis: Basis | None = None
    waiver: Waiver | None = None  # what lets it pass, or None
    findings: tuple[GroupFinding, ...] = ()  # of a diagnosis, which break the limit


class WaiverUse(Struct, frozen=True):
    """What became of a waiver."""

    waiver: Waiver
    state: WaiverState  # used, unused (it lets nothing pass), undecided (its limits are incomplete) or expired
    waived: int  # how many judgements it lets pass


class CheckReport(Struct, frozen=True):
    """A policy checked on a snapshot."""

    policy: Policy
    today: date  # the day on which waivers were looked at
    judgements: tuple[Judgement, ...]  # by rule, then by name, then by limit
    waivers: tuple[WaiverUse, ...] = ()  # in the policy's order
    findings: tuple[Finding, ...] = ()
    fail_from: Severity = ERROR  # the lowest severity that decides the outcome

    def of(self, verdict: Verdict) -> Iterator[Judgement]:
        return (one for one in self.judgements if one.verdict == verdict and one.waiver is None)

    @property
    def waived(self) -> Iterator[Judgement]:
        return (one for one in self.judgements if one.waiver is not None)

    @property
    def by_rule(self) -> list[tuple[Rule, list[Judgement]]]:
        own: dict[str, list[Judgement]] = {rule.name: [] for rule in self.policy.rules}
        for one in self.judgements:
            own[one.rule.name].append(one)
        return [(rule, own[rule.name]) for rule in self.policy.rules]

    @property
    def outcome(self) -> Verdict:
        """Of the rules grave enough: failed goes before incomplete, for it is certain; otherwise passed."""
        for verdict in (FAILED, INCOMPLETE):
            if any(one.rule.counts_from(self.fail_from) for one in self.of(verdict)):
                return verdict
        return PASSED
