"""A policy on a snapshot: every limit of every rule on everything that the rule is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.consumers import behind_proxy
from rmqlb.engine.check.policy_limits import GROUP_MEASURES, Measured, measure_topic, verdict
from rmqlb.engine.group import Gaps, Given, Group, gaps
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.checking import FAILED, INCOMPLETE, NOT_APPLICABLE, CheckReport, Judgement, WaiverState, WaiverUse
from rmqlb.model.finding import ERROR, Finding, Severity
from rmqlb.model.policy import FORBIDDEN, GROUP, Limit, Policy, Rule, Waiver
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.system_names import is_system_group, is_system_topic


def check_policy(
    snapshot: ClusterSnapshot,
    policy: Policy,
    today: date,  # the day on which waivers are looked at
    *,
    # what the members' strategy objects were constructed with; None is RocketMQ's defaults
    settings: Settings | None = None,
    fail_from: Severity = ERROR,  # the lowest severity that decides the report's outcome
    cluster: str | None = None,  # its name in a fleet, by which waivers are chosen; without it those for clusters wait
    progress: Progress = no_progress,
) -> CheckReport:
    """What each limit of the policy comes to."""
    missing = gaps(snapshot)
    judgements: list[Judgement] = []
    for rule in policy.rules:
        judgements += _judgements(rule, snapshot, missing, settings or Settings(), progress)
    waivers = [each for each in policy.waivers if each.cluster is None or fnmatchcase(cluster or "", each.cluster)]
    waived, uses = waive(judgements, waivers, today)
    return CheckReport(policy, today, waived, uses, tuple(waiver_findings(uses)), fail_from)


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


def _judgements(
    rule: Rule, snapshot: ClusterSnapshot, missing: Gaps, settings: Settings, progress: Progress
) -> Iterator[Judgement]:
    names = subjects(rule, snapshot, missing)
    found = []
    for done, name in enumerate(names):
        progress(f"rule {rule.name}", done, len(names))
        if rule.about == GROUP:
            facts = Group(snapshot, name, settings, Given(assume=rule.assume), missing)
            found += [_judgement(rule, name, limit, _of_group(limit, facts)) for limit in rule.limits]
        else:
            found += [_judgement(rule, name, limit, _of_topic(limit, name, snapshot, missing)) for limit in rule.limits]
    yield from found
    if rule.about == GROUP and missing.unlisted is not None:
        yield Judgement(rule, None, None, INCOMPLETE, why=missing.unlisted)
    elif not names:
        yield Judgement(rule, None, None, INCOMPLETE, why=f"no {rule.about} matches {_patterns(rule)}")
    elif all(one.verdict == NOT_APPLICABLE for one in found):
        yield Judgement(rule, None, None, INCOMPLETE, why=f"its limits apply to no {rule.about} that matches")


def _judgement(rule: Rule, name: str, limit: Limit, measured: Measured) -> Judgement:
    came_to = verdict(limit, measured)
    why = measured.why
    if measured.apart is not None:
        why = measured.apart
    elif came_to == INCOMPLETE:
        why = measured.missing or why
    value = None if came_to == INCOMPLETE else measured.value
    return Judgement(rule, name, limit, came_to, value, why, measured.basis, findings=measured.findings)


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
    judgements: Sequence[Judgement], waivers: Sequence[Waiver], today: date
) -> tuple[tuple[Judgement, ...], tuple[WaiverUse, ...]]:
    """The judgements with the first waiver in force that lets each pass, and what became of every waiver.

    A waiver accepts a known failure. A limit that could not be judged stays incomplete: its value is
    unknown, so no waiver can accept it.
    """
    waived = tuple(
        replace(one, waiver=_first(one, waivers, today)) if one.verdict == FAILED else one for one in judgements
    )
    uses = Counter(waivers.index(one.waiver) for one in waived if one.waiver is not None)
    open_for = [_first(one, waivers, today) for one in judgements if one.verdict == INCOMPLETE]
    return waived, tuple(
        WaiverUse(waiver, _state(waiver, uses[index], waiver in open_for, today), uses[index])
        for index, waiver in enumerate(waivers)
    )


def waiver_findings(uses: Sequence[WaiverUse]) -> Iterator[Finding]:
    """A finding for each waiver that has expired or lets nothing pass."""
    for use in uses:
        waiver = use.waiver
        if use.state == "expired":
            yield Finding("expired-waiver", f"the waiver for {target(waiver)} expired after {waiver.until}")
        elif use.state == "unused":
            yield Finding("unused-waiver", f"the waiver for {target(waiver)} lets nothing pass: it can go")


def target(waiver: Waiver) -> str:
    """What a waiver is about, in words."""
    parts = (("rule", waiver.rule), ("limit", waiver.limit), ("group", waiver.group), ("topic", waiver.topic))
    return ", ".join(f"{what} {name}" for what, name in parts if name is not None)


def _first(one: Judgement, waivers: Sequence[Waiver], today: date) -> Waiver | None:
    limit = None if one.limit is None else one.limit.name
    for waiver in waivers:
        if waiver.until >= today and waiver.fits(one.rule.name, one.rule.about, one.subject, limit):
            return waiver
    return None


def _state(waiver: Waiver, uses: int, is_open: bool, today: date) -> WaiverState:
    if waiver.until < today:
        return "expired"
    return "used" if uses else "undecided" if is_open else "unused"
