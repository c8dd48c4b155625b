"""Every metric that `-o prometheus` may write, and the samples of each result.

All metrics are gauges, and samples have no time of their own: node_exporter's textfile collector reads the classic text
format, which knows neither OpenMetrics' other types nor such times. The metrics of a group are the figures of its line.

A label has the name as `visible` shows it, with its own backslashes doubled: two names never become one, and nothing
raw is written. Each line of the OpenMetrics text is one of Prometheus's classic text format too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from msgspec import Struct

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups, Outcome
from rmqlb.model.figures import annotated_figures
from rmqlb.model.finding import Finding
from rmqlb.model.groups import STATUSES, GroupLine, GroupState, Overview
from rmqlb.model.owners import OwnersOfGroups, OwnersReport
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.model.policy import FAILED, GROUP, INCOMPLETE, NOT_APPLICABLE, PASSED, CheckResult, JudgedLimit
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.formats.text import visible
from rmqlb.views.report import Report

_PREFIX = "rocketmq_lb_"
_WAIVED = "waived"


class Metric(Struct, frozen=True):
    """One metric.

    Attributes:
        name: without the prefix; a name with a unit ends in the unit.
        help: a noun phrase without characters that need an escape.
        labels: in the order in which they are written.
        unit: seconds; empty for counts and ratios.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""

    @property
    def full_name(self) -> str:
        return _PREFIX + self.name


class Sample(Struct, frozen=True):
    """A metric's value.

    Attributes:
        metric: the metric.
        value: None is unknown, and not written.
        labels: label → value; a label that is None or empty is not written.
    """

    metric: Metric
    value: float | None
    labels: Mapping[str, str | None] = {}


_GROUP = ("cluster", "group")
_QUEUE = ("cluster", "topic", "group", "broker", "queue")
_STRATEGY = (*_GROUP, "strategy")
_LIMIT = ("cluster", "topic", "group", "rule", "limit", "severity")

SNAPSHOT_TIME = Metric("snapshot_timestamp_seconds", "When the snapshot was taken, since 1970", ("command",), "seconds")
GROUPS = Metric("groups", "Consumer groups by status, hidden ones included", ("status",))
GROUP_STATUS = Metric("group_status", "1 for the status of the group, 0 for the others", (*_GROUP, "status"))
OF_GROUP: Mapping[str, Metric] = {
    field: Metric(figure.metric, figure.what[:1].upper() + figure.what[1:], _GROUP)
    for field, figure in annotated_figures(GroupState).items()
    if figure.metric
}
"""Field of a group's line → its metric."""
QUEUE_OWNERS = Metric("queue_owners", "Observed owners of the queue: 0 is unassigned, 2 or more are duplicate", _QUEUE)
QUEUE_LAG = Metric("queue_lag", "Messages of the queue not yet read", _QUEUE)
OF_STRATEGY: Mapping[str, Metric] = {
    field: Metric(
        f"strategy_{OF_GROUP[field].name}",
        f"Under the strategy: {annotated_figures(GroupState)[field].what}",
        _STRATEGY,
    )
    for field in ("unassigned", "duplicate_owners", "idle", "imbalance", "mismatches")
}
"""Field of a strategy's line → its metric."""
CHECK_OUTCOME = Metric("check_outcome", "1 for the outcome of the policy, 0 for the others", ("outcome",))
CHECK_LIMITS = Metric("check_limits", "Limits by verdict", ("rule", "severity", "verdict"))
CHECK_NOT_PASSED = Metric(
    "check_not_passed", "Limits that failed, are waived or could not be judged", (*_LIMIT, "verdict")
)
CHECK_VALUE = Metric("check_value", "Measured value of a limit that is in check_not_passed", _LIMIT)
CHECK_BOUND = Metric("check_bound", "Bound of a limit that is in check_not_passed", _LIMIT)
DIAGNOSIS_OUTCOME = Metric(
    "diagnosis_outcome", "1 for the outcome of the diagnosis, 0 for the others", (*_GROUP, "outcome")
)
UNDECIDED_RULES = Metric("diagnosis_undecided_rules", "Rules of the diagnosis that could not be decided", _GROUP)
FINDINGS = Metric(
    "findings", "Findings by code; rmqlb explain CODE describes a code", (*_GROUP, "code", "severity", "command")
)

FLEET_NIGHT = Metric("fleet_night_timestamp_seconds", "The fleet's last night, since 1970", (), "seconds")
FLEET = Metric("fleet", "Figures of the fleet's last night, by name", ("what",))
FLEET_FIGURES = ("clusters", "groups", "failed", "incomplete", "waived", "errors", "new", "gone")
"""Fields of a night's verdict."""
FLEET_SILENT = Metric("fleet_silent_cluster", "1 for an expected cluster that did not report", ("cluster",))

METRICS = (
    *(SNAPSHOT_TIME, GROUPS, GROUP_STATUS, *OF_GROUP.values(), QUEUE_OWNERS, QUEUE_LAG, *OF_STRATEGY.values()),
    *(CHECK_OUTCOME, CHECK_LIMITS, CHECK_NOT_PASSED, CHECK_VALUE, CHECK_BOUND),
    *(DIAGNOSIS_OUTCOME, UNDECIDED_RULES, FLEET_NIGHT, FLEET, FLEET_SILENT, FINDINGS),
)
"""In the order in which they are written."""


def metrics_of(
    report: Report, command: str, snapshot: ClusterSnapshot, findings: Iterable[Finding]
) -> Iterator[Sample]:
    """The samples of a result.

    Args:
        command: a label of metrics that several commands write, so that a folder may hold a file of each command.
        findings: those beside the result's data.
    """
    if snapshot.taken_at is not None:
        yield Sample(SNAPSHOT_TIME, snapshot.taken_at.timestamp(), {"command": command})
    data = report.data
    yield from _OF[report.schema](data, snapshot)
    parts = data.groups if isinstance(data, (Overview, DiagnosisOfGroups)) else [data]
    found = [(finding.group, finding) for finding in findings]
    for part in parts:
        if isinstance(part, GroupLine | Diagnosis):
            found += [(part.group, one.brief) for one in part.findings]
    for (group, code, severity), number in Counter((name, one.code, one.severity) for name, one in found).items():
        cluster = _cluster_of_group(snapshot, group)
        labels = {"cluster": cluster, "group": group, "code": code, "severity": severity, "command": command}
        yield Sample(FINDINGS, number, labels)


def _one_of(metric: Metric, names: tuple[str, ...], name: str, **labels: str | None) -> Iterator[Sample]:
    """1 for the name and 0 for each of the others, so that no series ends when the name changes."""
    for each in names:
        yield Sample(metric, int(each == name), {**labels, metric.labels[-1]: each})


def _overview(overview: Overview, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    s = overview.summary
    numbers = (s.with_errors, s.with_warnings, s.unknown, s.offline, s.in_order)
    for status, number in zip(STATUSES, numbers, strict=True):
        yield Sample(GROUPS, number, {"status": status})
    for line in overview.groups:
        labels = {"cluster": _cluster_of_topics(snapshot, line.topics), "group": line.group}
        yield from _one_of(GROUP_STATUS, STATUSES, line.status, **labels)
        for field, metric in OF_GROUP.items():
            yield Sample(metric, getattr(line, field), labels)


def _owners(report: OwnersReport, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    clusters = {
        (topic, broker.broker_name): broker.cluster
        for topic in report.topics
        if topic in snapshot.routes
        for broker in snapshot.routes[topic].route.broker_datas
    }
    for queue in report.queues:
        labels = {
            "cluster": clusters.get((queue.topic, queue.broker_name)),
            "topic": queue.topic,
            "group": report.group,
            "broker": queue.broker_name,
            "queue": str(queue.queue_id),
        }
        owners = queue.owners_observed
        yield Sample(QUEUE_OWNERS, None if owners is None else len(owners), labels)
        yield Sample(QUEUE_LAG, queue.lag, labels)
    cluster = _cluster_of_topics(snapshot, report.topics)
    for each in report.strategies:
        for field, metric in OF_STRATEGY.items():
            labels = {"cluster": cluster, "group": report.group, "strategy": each.strategy}
            yield Sample(metric, getattr(each, field), labels)


def _owners_of_groups(report: OwnersOfGroups, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    return (sample for each in report.groups for sample in _owners(each, snapshot))


def _check(result: CheckResult, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    yield from _one_of(CHECK_OUTCOME, (PASSED, FAILED, INCOMPLETE), result.outcome)
    for rule in result.rules:
        for verdict, number in (
            (PASSED, rule.passed),
            (FAILED, rule.failed),
            (_WAIVED, rule.waived),
            (INCOMPLETE, rule.incomplete),
            (NOT_APPLICABLE, rule.not_applicable),
        ):
            yield Sample(CHECK_LIMITS, number, {"rule": rule.rule, "severity": rule.severity, "verdict": verdict})
    kinds = ((FAILED, result.failed), (_WAIVED, result.waived), (INCOMPLETE, result.incomplete))
    judged = [(verdict, one, _labels(one, snapshot)) for verdict, limits in kinds for one in limits]
    # A rule may be incomplete for several reasons, which its labels do not distinguish.
    numbers = Counter(tuple({**labels, "verdict": verdict}.items()) for verdict, _, labels in judged)
    for labelled, number in numbers.items():
        yield Sample(CHECK_NOT_PASSED, number, dict(labelled))
    for _, one, labels in judged:  # the value of a limit that could not be judged is only the part that is known
        yield Sample(CHECK_VALUE, _number(one.value) if one.verdict == FAILED else None, labels)
        yield Sample(CHECK_BOUND, _number(one.bound), labels)


def _labels(one: JudgedLimit, snapshot: ClusterSnapshot) -> dict[str, str | None]:
    is_group = one.about == GROUP
    topics = None if one.name is None else (one.name,)
    return {
        "cluster": _cluster_of_group(snapshot, one.name) if is_group else _cluster_of_topics(snapshot, topics),
        "topic": None if is_group else one.name,
        "group": one.name if is_group else None,
        "rule": one.rule,
        "limit": one.limit,
        "severity": one.severity,
    }


def _number(value: object) -> float | None:
    """The value; None of names, such as those of strategies."""
    return value if isinstance(value, int | float) else None


def _diagnosis(found: Diagnosis, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    labels = {"cluster": _cluster_of_group(snapshot, found.group), "group": found.group}
    yield from _one_of(DIAGNOSIS_OUTCOME, get_args(Outcome), found.outcome, **labels)
    yield Sample(UNDECIDED_RULES, len(found.unknown), labels)


def _diagnoses(whole: DiagnosisOfGroups, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    return (sample for found in whole.groups for sample in _diagnosis(found, snapshot))


def _pipeline(result: PipelineResult, _: ClusterSnapshot) -> Iterator[Sample]:
    verdict = result.verdict
    if verdict is None:
        return
    night = datetime(verdict.date.year, verdict.date.month, verdict.date.day, tzinfo=UTC)
    yield Sample(FLEET_NIGHT, night.timestamp())
    for name in FLEET_FIGURES:
        yield Sample(FLEET, getattr(verdict, name), {"what": name})
    yield Sample(FLEET, len(verdict.silent), {"what": "silent"})
    for cluster in verdict.silent:
        yield Sample(FLEET_SILENT, 1, {"cluster": cluster})
    yield Sample(FLEET, len(result.quarantined), {"what": "quarantined"})


_OF: Mapping[str, Callable[[Any, ClusterSnapshot], Iterator[Sample]]] = {
    "rmqlb/groups": _overview,
    "rmqlb/owners": _owners,
    "rmqlb/owners-of-groups": _owners_of_groups,
    "rmqlb/check": _check,
    "rmqlb/diagnosis": _diagnosis,
    "rmqlb/diagnosis-of-groups": _diagnoses,
    "rmqlb/pipeline": _pipeline,
}
"""Schema → the samples of the result."""


def _cluster_of_topics(snapshot: ClusterSnapshot, topics: Iterable[str] | None) -> str | None:
    """The one cluster of all brokers of these topics; None for several, or when a route is unknown."""
    routes = None if topics is None else [snapshot.routes.get(topic) for topic in topics]
    if routes is None or None in routes:
        return None
    found = {broker.cluster for sighting in routes if sighting is not None for broker in sighting.route.broker_datas}
    return found.pop() if len(found) == 1 else None


def _cluster_of_group(snapshot: ClusterSnapshot, group: str | None) -> str | None:
    known = None if group is None else snapshot.groups.get(group)
    return None if known is None else _cluster_of_topics(snapshot, known.own_topics)


def as_prometheus(samples: Iterable[Sample]) -> str:
    """The samples that are known, metric by metric; one of which nothing is known is left out."""
    lines: dict[Metric, list[str]] = {metric: [] for metric in METRICS}
    for sample in samples:
        if sample.value is not None:
            lines[sample.metric].append(_line(sample, sample.value))
    parts = (part for metric, own in lines.items() if own for part in (*_head(metric), *own))
    return "\n".join((*parts, "# EOF\n"))


def label_value(name: str) -> str:
    r"""What a name is in a label, before the format's own escapes.

    >>> label_value("orders"), label_value("a\x1b"), label_value("a\\x1b")
    ('orders', 'a\\x1b', 'a\\\\x1b')
    """
    return visible(name.replace("\\", "\\\\"))


def _head(metric: Metric) -> tuple[str, ...]:
    name = metric.full_name
    unit = (f"# UNIT {name} {metric.unit}",) if metric.unit else ()
    return (f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", *unit)


def _line(sample: Sample, value: float) -> str:
    given = ((label, sample.labels.get(label)) for label in sample.metric.labels)
    labels = ",".join(f'{label}="{_escaped(name)}"' for label, name in given if name)
    return f"{sample.metric.full_name}{f'{{{labels}}}' if labels else ''} {value!r}"


def _escaped(name: str) -> str:
    """Of what the format has to escape, line ends are no longer there."""
    return label_value(name).replace("\\", r"\\").replace('"', r"\"")
