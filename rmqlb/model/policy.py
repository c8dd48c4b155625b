"""A policy: the limits of a cluster's groups and topics, waivers, and the result of `check`."""

from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.groups import GroupState
from rmqlb.model.owners import Basis
from rmqlb.model.result import ERROR, SEVERITIES, Finding, Result, Severity, annotated_figures
from rmqlb.model.snapshot import Everything, Wanted

About = Literal["group", "topic"]
GROUP: About = "group"
TOPIC: About = "topic"

Unit = Literal["count", "ratio", "share", "ms", "least", "names", "noneOf"]
Bound = float | tuple[str, ...]

FORBIDDEN = "forbiddenFindings"
DRAIN_TIME = "maxDrainTime"


class LimitKind(Struct, frozen=True):
    about: About
    # count, ratio, share, ms (at most), least (at least), names (only these), noneOf (none of these findings)
    unit: Unit
    what: str


def _of_figure(field: str, unit: Unit = "count") -> LimitKind:
    return LimitKind(GROUP, unit, annotated_figures(GroupState)[field].what)


LIMITS: Mapping[str, LimitKind] = {
    "minConsumers": LimitKind(GROUP, "least", "processes of consumers that brokers list"),
    "imbalance": _of_figure("imbalance", "ratio"),
    "idle": _of_figure("idle"),
    "unassigned": _of_figure("unassigned"),
    "duplicateOwners": _of_figure("duplicate_owners"),
    "duplicateClientIds": _of_figure("duplicate_client_ids"),
    "movedOnConsumerLoss": LimitKind(GROUP, "share", "queues that move when the worst single consumer is lost"),
    "movedOnBrokerLoss": LimitKind(GROUP, "share", "remaining queues that move when the worst single broker is lost"),
    "mixedStrategies": LimitKind(GROUP, "count", "consumers whose strategy differs from that of most"),
    "mixedSubscriptions": LimitKind(GROUP, "count", "consumers whose topics differ from those of most"),
    "splitViews": LimitKind(GROUP, "count", "brokers whose list of consumers differs from that of most"),
    "withoutLock": LimitKind(GROUP, "count", "queues of an orderly group on brokers without a master to lock them"),
    "lag": _of_figure("lag"),
    DRAIN_TIME: _of_figure("drain_ms", "ms"),
    "strategies": LimitKind(GROUP, "names", "allocation strategies that the consumers run"),
    FORBIDDEN: LimitKind(GROUP, "noneOf", "findings of a diagnosis, by code"),
    "minBrokers": LimitKind(TOPIC, "least", "brokers that have queues of the topic"),
    "writableBrokers": LimitKind(TOPIC, "least", "brokers that producers can send the topic's messages to"),
    "missingMasters": LimitKind(TOPIC, "count", "brokers of the topic without a master"),
}
_OF_EVIDENCE = (FORBIDDEN, DRAIN_TIME, "withoutLock")
"""Limits that need the reports of running consumers."""


class Limit(Struct, frozen=True):
    name: str
    bound: Bound  # a number, as a fraction for shares; the names allowed for `names`; the codes for `noneOf`

    @property
    def kind(self) -> LimitKind:
        return LIMITS[self.name]


class Rule(Struct, frozen=True):
    name: str  # unique in the policy
    about: About
    patterns: tuple[str, ...]  # shell patterns of names, of which one must match
    limits: tuple[Limit, ...]  # at least one, all about the same
    exclude: tuple[str, ...] = ()  # patterns of names that are left out
    severity: Severity = ERROR
    assume: str | None = None  # strategy of groups whose consumers do not report theirs; None leaves it unknown
    skip_offline: bool = False  # groups that are known to have no consumer online are left out

    def takes(self, name: str) -> bool:
        return _fits_any(name, self.patterns) and not _fits_any(name, self.exclude)


class Waiver(Struct, frozen=True):
    reason: str
    until: date  # the last day on which it counts
    rule: str | None = None  # the rule's name; None is any rule
    group: str | None = None  # shell pattern of group names; None is no matter which
    topic: str | None = None
    limit: str | None = None
    cluster: str | None = None  # shell pattern of cluster names of a fleet; None is no matter which
    owner: str | None = None  # who answers for it

    def fits(self, rule: str, about: str, subject: str | None, limit: str | None) -> bool:
        """It concerns this limit of this rule for this group or topic; `subject` None is the rule as a whole."""
        if self.rule not in (None, rule) or self.limit not in (None, limit):
            return False
        pattern = self.group if about == GROUP else self.topic
        if pattern is None:
            return self.group is None and self.topic is None
        return subject is not None and fnmatchcase(subject, pattern)


class Policy(Struct, frozen=True):
    where: str
    rules: tuple[Rule, ...]
    waivers: tuple[Waiver, ...] = ()  # in the file's order

    def least(self, limit: str, name: str, default: float) -> float:
        """The smallest bound that rules which take this name have for a numeric limit; the default without any."""
        limits = ((rule, each.bound) for rule in self.rules for each in rule.limits if each.name == limit)
        bounds = (bound for rule, bound in limits if rule.takes(name) and isinstance(bound, int | float))
        return min(bounds, default=default)

    @property
    def wanted(self) -> Wanted:
        """The parts of a cluster for the rules; without a rule for groups no group is read."""
        groups = [rule for rule in self.rules if rule.about == GROUP]
        if not groups:
            return Wanted(owners=False, groups=False)
        topics = [rule for rule in self.rules if rule.about == TOPIC]
        evidence = any(limit.name in _OF_EVIDENCE for rule in groups for limit in rule.limits)
        return Wanted(everything=Everything(_patterns(topics), _patterns(groups)), evidence=evidence)


def _patterns(rules: Iterable[Rule]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pattern for rule in rules for pattern in rule.patterns))


def _fits_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# -- the result of `check`: a policy, limit by limit

Verdict = Literal["passed", "failed", "incomplete", "notApplicable"]
PASSED: Verdict = "passed"
FAILED: Verdict = "failed"
INCOMPLETE: Verdict = "incomplete"
NOT_APPLICABLE: Verdict = "notApplicable"
WaiverState = Literal["used", "unused", "undecided", "expired"]


class JudgedLimit(Struct, frozen=True):
    """The verdict on one limit of one rule, for one group or topic."""

    rule: Annotated[str, "the rule's name"]
    severity: Annotated[Severity, "of the rule"]
    about: Annotated[About, "what the rule is about"]
    name: Annotated[str | None, "group or topic; null is the rule as a whole, which found nothing to check"]
    limit: Annotated[str | None, "the limit's name; null for the rule as a whole"]
    verdict: Annotated[Verdict, "its result; of a waived limit, the result without the waiver"]
    value: Annotated[Bound | None, "what was measured, a fraction where the unit is share; null is unknown, or never"]
    bound: Annotated[Bound | None, "what the limit allows, in the same unit"]
    unit: Annotated[Unit | None, "count, ratio, share, ms (at most), least, names (only), noneOf (these findings)"]
    basis: Annotated[Basis | None, "observed, predicted or assumed owners; null where owners do not matter"]
    why: Annotated[str | None, "where to look, or why it could not be judged"]
    findings: Annotated[tuple[GroupFinding, ...], "findings that break a forbiddenFindings limit"]

    def decides(self, fail_on: Severity) -> bool:
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(fail_on)


class WaivedLimit(JudgedLimit, frozen=True):
    """A limit that a waiver lets pass."""

    until: Annotated[date, "the last day on which the waiver counts, YYYY-MM-DD"]
    reason: Annotated[str, "the reason"]
    owner: Annotated[str | None, "who is responsible for the waiver; null when it names no owner"]


class LimitCounts(Struct, frozen=True, rename="camel"):
    """Limits, counted."""

    limits: Annotated[int, "how many were judged, one for each name"]
    passed: Annotated[int, "how many of them passed"]
    failed: Annotated[int, "how many failed and are not waived"]
    waived: Annotated[int, "how many are waived"]
    incomplete: Annotated[int, "how many could not be judged; a rule that found nothing to check counts here too"]
    not_applicable: Annotated[int, "how many do not apply to their group or topic"]


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
    group: Annotated[str | None, "pattern of group names; null is any group"]
    topic: str | None
    limit: Annotated[str | None, "the limit's name; null is any limit"]
    until: Annotated[date, "the last day on which it counts, YYYY-MM-DD"]
    reason: Annotated[str, "the reason"]
    state: Annotated[WaiverState, "used, unused (it waives nothing), undecided (its limits are incomplete) or expired"]
    waived: Annotated[int, "how many judgements it waives"]


class CheckResult(Result, frozen=True):
    """A policy checked on a cluster."""

    policy: Annotated[str, "the file"]
    today: Annotated[date, "the day for which waivers were checked, YYYY-MM-DD"]
    fail_on: Annotated[Severity, "the lowest severity that decides the outcome"]
    outcome: Annotated[Verdict, "over the rules of that severity or above; failed takes precedence over incomplete"]
    failed: Annotated[tuple[JudgedLimit, ...], "limits that failed and are not waived, the gravest first"]
    waived: Annotated[tuple[WaivedLimit, ...], "limits that a waiver lets pass"]
    incomplete: Annotated[tuple[JudgedLimit, ...], "limits not judged, and rules without anything to check"]
    not_applicable: Annotated[tuple[JudgedLimit, ...], "limits that do not apply to their group or topic"]
    rules: Annotated[tuple[RuleCounts, ...], "rule by rule"]
    waivers: Annotated[tuple[WaiverResult, ...], "in the policy's order"]
    summary: Annotated[CheckSummary, "all rules together"]


class JudgedPolicy(Struct, frozen=True):
    """A checked policy, with the passed limits for CI reports."""

    policy: Policy
    judged: tuple[JudgedLimit, ...]  # by rule, then by name, then by limit
    result: CheckResult
    findings: tuple[Finding, ...]
