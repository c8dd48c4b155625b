"""A policy on a snapshot: every limit of every rule on everything that the rule is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.check.group_facts import GroupFacts
from rmqlb.engine.check.measured import Measured, verdict
from rmqlb.engine.check.policy_limits import GROUP_MEASURES, measure_topic
from rmqlb.engine.check.subjects import Gaps, gaps, subjects
from rmqlb.engine.check.waivers import waive, waiver_findings
from rmqlb.errors import RmqlbError
from rmqlb.model.checking import INCOMPLETE, NOT_APPLICABLE, CheckReport, Judgement
from rmqlb.model.finding import ERROR, Severity
from rmqlb.model.policy import GROUP, Limit, Policy, Rule
from rmqlb.model.snapshot import ClusterSnapshot

Told = Callable[[str, int, int], None]
"""Told about the work: what is being checked, how many are done, of how many."""


def check_policy(
    snapshot: ClusterSnapshot,
    policy: Policy,
    today: date,  # the day on which waivers are looked at
    *,
    # what the members' strategy objects were constructed with; None is RocketMQ's defaults
    settings: Settings | None = None,
    fail_from: Severity = ERROR,  # the lowest severity that decides the report's outcome
    progress: Told = lambda what, done, total: None,  # noqa: ARG005 - nobody watches by default
) -> CheckReport:
    """What each limit of the policy comes to."""
    missing = gaps(snapshot)
    judgements: list[Judgement] = []
    for rule in policy.rules:
        judgements += _judgements(rule, snapshot, missing, settings or Settings(), progress)
    waived, uses = waive(judgements, policy.waivers, today)
    return CheckReport(policy, today, waived, uses, tuple(waiver_findings(uses)), fail_from)


def _judgements(
    rule: Rule, snapshot: ClusterSnapshot, missing: Gaps, settings: Settings, progress: Told
) -> Iterator[Judgement]:
    names = subjects(rule, snapshot, missing)
    found = []
    for done, name in enumerate(names):
        progress(f"rule {rule.name}", done, len(names))
        if rule.about == GROUP:
            facts = GroupFacts(snapshot, missing, name, settings, rule.assume)
            found += [_judgement(rule, name, limit, _of_group(limit, facts)) for limit in rule.limits]
        else:
            found += [_judgement(rule, name, limit, _of_topic(limit, name, snapshot, missing)) for limit in rule.limits]
    yield from found
    if rule.about == GROUP and missing.unlisted is not None:
        yield Judgement(rule, None, None, INCOMPLETE, why=missing.unlisted)
    elif not names:
        yield Judgement(rule, None, None, INCOMPLETE, why=f"no {rule.about} fits {_patterns(rule)}")
    elif all(one.verdict == NOT_APPLICABLE for one in found):
        yield Judgement(rule, None, None, INCOMPLETE, why=f"its limits apply to no {rule.about} that fits")


def _judgement(rule: Rule, name: str, limit: Limit, measured: Measured) -> Judgement:
    came_to = verdict(limit, measured)
    why = measured.why
    if measured.apart is not None:
        why = measured.apart
    elif came_to == INCOMPLETE:
        why = measured.missing or why
    value = None if came_to == INCOMPLETE else measured.value
    return Judgement(rule, name, limit, came_to, value, why, measured.basis)


def _of_group(limit: Limit, facts: GroupFacts) -> Measured:
    try:
        return GROUP_MEASURES[limit.name](facts)
    except RmqlbError as error:  # what is missing, or what RocketMQ's clients would throw
        return Measured(missing=error.message)


def _of_topic(limit: Limit, name: str, snapshot: ClusterSnapshot, missing: Gaps) -> Measured:
    if name not in snapshot.routes:
        return Measured(missing=f"its route could not be read: {missing.topics[name]}")
    return measure_topic(limit.name, snapshot.routes[name])


def _patterns(rule: Rule) -> str:
    text = " or ".join(rule.patterns)
    return f"{text} without {', '.join(rule.exclude)}" if rule.exclude else text
