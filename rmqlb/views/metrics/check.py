"""The metrics of check: the outcome, the limits of each rule, and what was measured of those that did not pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rmqlb.model.check_result import CheckResult, JudgedLimit
from rmqlb.model.checking import FAILED, INCOMPLETE, NOT_APPLICABLE, PASSED
from rmqlb.model.policy import GROUP, Bound
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.metrics import catalogue as of
from rmqlb.views.metrics.catalogue import Sample, one_of
from rmqlb.views.metrics.clusters import cluster_of_group, cluster_of_topics

_WAIVED = "waived"


def of_check(result: CheckResult, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """Of a policy on a cluster."""
    yield from one_of(of.CHECK_OUTCOME, (PASSED, FAILED, INCOMPLETE), result.outcome)
    for rule in result.rules:
        for verdict, number in (
            (PASSED, rule.passed),
            (FAILED, rule.failed),
            (_WAIVED, rule.waived),
            (INCOMPLETE, rule.incomplete),
            (NOT_APPLICABLE, rule.not_applicable),
        ):
            yield Sample(of.CHECK_LIMITS, number, {"rule": rule.rule, "severity": rule.severity, "verdict": verdict})
    yield from _not_passed(result, snapshot)


def _not_passed(result: CheckResult, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    """A rule as a whole may be incomplete for several reasons, which its labels do not tell apart."""
    kinds = ((FAILED, result.failed), (_WAIVED, result.waived), (INCOMPLETE, result.incomplete))
    judged = [(verdict, one, _labels(one, snapshot)) for verdict, limits in kinds for one in limits]
    numbers = Counter(tuple({**labels, "verdict": verdict}.items()) for verdict, _, labels in judged)
    for told, number in numbers.items():
        yield Sample(of.CHECK_NOT_PASSED, number, dict(told))
    for _, one, labels in judged:
        # of what could not be judged it is but the part that is known
        yield Sample(of.CHECK_VALUE, _number(one.value) if one.verdict == FAILED else None, labels)
        yield Sample(of.CHECK_BOUND, _number(one.bound), labels)


def _labels(one: JudgedLimit, snapshot: ClusterSnapshot) -> dict[str, str | None]:
    is_group = one.about == GROUP
    topics = None if one.name is None else (one.name,)
    return {
        "cluster": cluster_of_group(snapshot, one.name) if is_group else cluster_of_topics(snapshot, topics),
        "topic": None if is_group else one.name,
        "group": one.name if is_group else None,
        "rule": one.rule,
        "limit": one.limit,
        "severity": one.severity,
    }


def _number(value: Bound | None) -> float | None:
    """What is no number, such as the names of strategies, is no metric."""
    return None if isinstance(value, tuple) else value
