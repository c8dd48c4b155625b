"""A policy on a snapshot: every limit of every rule on everything that the rule is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase

from msgspec.structs import asdict

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import behind_proxy
from rmqlb.engine.check.policy_limits import GROUP_MEASURES, Measured, measure_topic, verdict
from rmqlb.engine.group import Gaps, Given, Group, gaps
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.assignment import Basis
from rmqlb.model.check_result import (
    FAILED,
    INCOMPLETE,
    NOT_APPLICABLE,
    PASSED,
    Checked,
    CheckResult,
    CheckSummary,
    JudgedLimit,
    LimitCounts,
    RuleCounts,
    Verdict,
    WaivedLimit,
    WaiverResult,
    WaiverState,
)
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import ERROR, SEVERITIES, Finding, Severity
from rmqlb.model.policy import FORBIDDEN, GROUP, Bound, Limit, Policy, Rule, Waiver
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.system_names import is_system_group, is_system_topic


def check_policy(
    snapshot: ClusterSnapshot,
    policy: Policy,
    today: date,
    *,
    settings: Settings | None = None,
    fail_from: Severity = ERROR,
    cluster: str | None = None,
    progress: Progress = no_progress,
) -> Checked:
    """Measure each limit of the policy.

    Args:
        today: the day for waivers.
        settings: those of the consumers' strategy objects; None is RocketMQ's defaults.
        fail_from: the lowest severity that decides the outcome.
        cluster: the cluster's name in a fleet, which chooses waivers; without it, waivers for clusters do not apply.
    """
    missing = gaps(snapshot)
    found: list[JudgedLimit] = []
    for rule in policy.rules:
        found += _judge(rule, snapshot, missing, settings or Settings(), progress)
    chosen = [each for each in policy.waivers if each.cluster is None or fnmatchcase(cluster or "", each.cluster)]
    judged, waivers = waive(found, chosen, today)
    return Checked(policy, judged, _result(policy, judged, waivers, today, fail_from), tuple(waiver_findings(waivers)))


def _result(
    policy: Policy,
    judged: Sequence[JudgedLimit],
    waivers: tuple[WaiverResult, ...],
    today: date,
    fail_from: Severity,
) -> CheckResult:
    def of(verdict: Verdict) -> tuple[JudgedLimit, ...]:
        found = (one for one in judged if one.verdict == verdict and not isinstance(one, WaivedLimit))
        return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.severity)))

    by_rule = {rule.name: [one for one in judged if one.rule == rule.name] for rule in policy.rules}
    failed, incomplete = of(FAILED), of(INCOMPLETE)
    decide = ((FAILED, failed), (INCOMPLETE, incomplete))  # what failed is certain, and goes first
    outcomes = (verdict for verdict, those in decide if any(one.decides(fail_from) for one in those))
    return CheckResult(
        policy=policy.where,
        today=today,
        fail_from=fail_from,
        outcome=next(outcomes, PASSED),
        failed=failed,
        waived=tuple(one for one in judged if isinstance(one, WaivedLimit)),
        incomplete=incomplete,
        not_applicable=of(NOT_APPLICABLE),
        rules=tuple(
            RuleCounts(
                rule=rule.name,
                severity=rule.severity,
                about=rule.about,
                names=len({one.name for one in by_rule[rule.name]} - {None}),
                **_counts(by_rule[rule.name]),
            )
            for rule in policy.rules
        ),
        waivers=waivers,
        summary=CheckSummary(rules=len(policy.rules), **_counts(judged)),
    )


def _counts(judged: Iterable[JudgedLimit]) -> dict[str, int]:
    """Those of a `LimitCounts`; a rule that found nothing to check counts as incomplete, not as a limit."""
    counts: Counter[str] = Counter()
    for one in judged:
        counts["limits"] += one.limit is not None
        counts["waived" if isinstance(one, WaivedLimit) else one.verdict] += 1
    keys = zip(LimitCounts.__struct_fields__, LimitCounts.__struct_encode_fields__, strict=True)
    return {field: counts[key] for field, key in keys}


def subjects(rule: Rule, snapshot: ClusterSnapshot, missing: Gaps) -> list[str]:
    """The names that the rule takes, sorted; RocketMQ's own topics and groups have no limits."""
    if rule.about == GROUP:
        skipped = _offline(snapshot, missing) if rule.skip_offline else ()
        names = {*snapshot.groups, *missing.groups}.difference(skipped)
        return sorted(name for name in names if not is_system_group(name) and rule.takes(name))
    own = snapshot.own_topics
    names = {*snapshot.routes, *missing.topics}
    return sorted(name for name in names if name not in own and not is_system_topic(name) and rule.takes(name))


def _offline(snapshot: ClusterSnapshot, missing: Gaps) -> Iterator[str]:
    """The groups without a visible consumer, where all brokers and Proxies reported and nothing shows consumption."""
    return (
        name
        for name, group in snapshot.groups.items()
        if group.client_ids == () and name not in missing.members and missing.proxies is None
        if behind_proxy(group) is None
    )


def _judge(
    rule: Rule, snapshot: ClusterSnapshot, missing: Gaps, settings: Settings, progress: Progress
) -> Iterator[JudgedLimit]:
    names = subjects(rule, snapshot, missing)
    found = []
    for done, name in enumerate(names):
        progress(f"rule {rule.name}", done, len(names))
        if rule.about == GROUP:
            facts = Group(snapshot, name, settings, Given(assume=rule.assume), missing)
            found += [_judged(rule, name, limit, _of_group(limit, facts)) for limit in rule.limits]
        else:
            found += [_judged(rule, name, limit, _of_topic(limit, name, snapshot, missing)) for limit in rule.limits]
    yield from found
    if rule.about == GROUP and missing.unlisted is not None:
        yield judgement(rule, None, None, INCOMPLETE, why=missing.unlisted)
    elif not names:
        yield judgement(rule, None, None, INCOMPLETE, why=f"no {rule.about} matches {_patterns(rule)}")
    elif all(one.verdict == NOT_APPLICABLE for one in found):
        yield judgement(rule, None, None, INCOMPLETE, why=f"its limits apply to no {rule.about} that matches")


def _judged(rule: Rule, name: str, limit: Limit, measured: Measured) -> JudgedLimit:
    result, why = verdict(limit, measured), measured.why
    if measured.apart is not None:
        why = measured.apart
    elif result == INCOMPLETE:
        why = measured.missing or why
    value = None if result == INCOMPLETE else measured.value
    return judgement(rule, name, limit, result, value, why, measured.basis, measured.findings)


def judgement(
    rule: Rule,
    name: str | None,
    limit: Limit | None,
    verdict: Verdict,
    value: Bound | None = None,
    why: str = "",
    basis: Basis | None = None,
    findings: tuple[GroupFinding, ...] = (),
) -> JudgedLimit:
    return JudgedLimit(
        rule=rule.name,
        severity=rule.severity,
        about=rule.about,
        name=name,
        limit=None if limit is None else limit.name,
        verdict=verdict,
        value=value,
        bound=None if limit is None else limit.bound,
        unit=None if limit is None else limit.kind.unit,
        basis=basis,
        why=why or None,
        findings=findings,
    )


def _of_group(limit: Limit, facts: Group) -> Measured:
    try:
        if limit.name == FORBIDDEN:
            from rmqlb.engine.check.policy_limits import forbidden_findings

            return forbidden_findings(limit, facts)
        return GROUP_MEASURES[limit.name](facts)
    except RmqlbError as error:  # what is missing, or what RocketMQ's clients would throw
        return Measured(missing=error.message)


def _of_topic(limit: Limit, name: str, snapshot: ClusterSnapshot, missing: Gaps) -> Measured:
    if name not in snapshot.routes:
        return Measured(missing=f"its route could not be read: {missing.topics[name]}")
    try:
        return measure_topic(limit.name, snapshot.routes[name])
    except DataError as error:  # a malformed order configuration
        return Measured(missing=error.message)


def _patterns(rule: Rule) -> str:
    text = " or ".join(rule.patterns)
    return f"{text} without {', '.join(rule.exclude)}" if rule.exclude else text


def waive(
    judged: Sequence[JudgedLimit], waivers: Sequence[Waiver], today: date
) -> tuple[tuple[JudgedLimit, ...], tuple[WaiverResult, ...]]:
    """The limits, those that a waiver in force lets pass as `WaivedLimit`, and each waiver with its state.

    A waiver accepts a known failure. A limit that could not be judged stays incomplete: its value is unknown, so no
    waiver can accept it.
    """
    uses: Counter[int] = Counter()
    undecided: set[int] = set()
    found: list[JudgedLimit] = []
    for one in judged:
        at = _first(one, waivers, today) if one.verdict in (FAILED, INCOMPLETE) else None
        if at is not None and one.verdict == FAILED:
            uses[at] += 1
            waiver = waivers[at]
            found.append(WaivedLimit(**asdict(one), until=waiver.until, reason=waiver.reason, owner=waiver.owner))
            continue
        found.append(one)
        if at is not None:
            undecided.add(at)

    def state(at: int) -> WaiverState:
        if waivers[at].until < today:
            return "expired"
        return "used" if uses[at] else "undecided" if at in undecided else "unused"

    return tuple(found), tuple(
        WaiverResult(w.rule, w.group, w.topic, w.limit, w.until, w.reason, state(at), uses[at])
        for at, w in enumerate(waivers)
    )


def _first(one: JudgedLimit, waivers: Sequence[Waiver], today: date) -> int | None:
    places = (
        at for at, w in enumerate(waivers) if w.until >= today and w.fits(one.rule, one.about, one.name, one.limit)
    )
    return next(places, None)


def waiver_findings(waivers: Sequence[WaiverResult]) -> Iterator[Finding]:
    for waiver in waivers:
        parts = (("rule", waiver.rule), ("limit", waiver.limit), ("group", waiver.group), ("topic", waiver.topic))
        target = ", ".join(f"{what} {name}" for what, name in parts if name is not None)
        if waiver.state == "expired":
            yield Finding("expired-waiver", f"the waiver for {target} expired after {waiver.until}")
        elif waiver.state == "unused":
            yield Finding("unused-waiver", f"the waiver for {target} lets nothing pass: it can go")
