"""Every metric that `-o prometheus` may write, and the samples of each result.

All metrics are gauges, and samples have no time: node_exporter's textfile collector reads the classic text format, with
neither OpenMetrics' other types nor such times. The metrics of a group are the figures of its line.

A label has the name in the form of `visible`, with its own backslashes doubled: two names never become one, and nothing
raw is written. Each line of the OpenMetrics text is also a line of Prometheus's classic text format.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, time
from typing import get_args

from msgspec import Struct

from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups, Outcome
from rmqlb.model.groups import STATUSES, GroupLine, GroupState, Overview
from rmqlb.model.owners import OwnersOfGroups, OwnersReport
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.model.policy import FAILED, GROUP, INCOMPLETE, NOT_APPLICABLE, PASSED, CheckResult, JudgedLimit
from rmqlb.model.result import Finding, annotated_figures
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.columns import attribute_of
from rmqlb.views.formats.text import visible
from rmqlb.views.report import Report

_WAIVED = "waived"


class Metric(Struct, frozen=True):
    name: str  # without the prefix; a name with a unit ends in the unit
    help: str  # a noun phrase without characters that need an escape
    labels: tuple[str, ...] = ()  # in the order in which they are written

    @property
    def unit(self) -> str:
        """Empty for counts and ratios."""
        return "seconds" if self.name.endswith("_seconds") else ""

    @property
    def full_name(self) -> str:
        return f"rmqlb_{self.name}"


class Sample(Struct, frozen=True):
    metric: Metric
    value: float | None  # None is unknown, and not written
    labels: tuple[str | None, ...] = ()  # values of the metric's labels; None or an empty one is not written


_GROUP = ("cluster", "group")
_QUEUE = ("cluster", "topic", "group", "broker", "queue")
_STRATEGY = (*_GROUP, "strategy")
_LIMIT = ("cluster", "topic", "group", "rule", "limit", "severity")
_FIGURES = annotated_figures(GroupState)

SNAPSHOT_TIME = Metric("snapshot_timestamp_seconds", "Time of the snapshot, since 1970", ("command",))
GROUPS = Metric("groups", "Consumer groups by status, hidden ones included", ("status",))
GROUP_STATUS = Metric("group_status", "1 for the status of the group, 0 for the others", (*_GROUP, "status"))
OF_GROUP: Mapping[str, Metric] = {
    field: Metric(figure.metric, figure.what[:1].upper() + figure.what[1:], _GROUP)
    for field, figure in _FIGURES.items()
    if figure.metric
}
QUEUE_OWNERS = Metric("queue_owners", "Observed owners of the queue: 0 is unassigned, 2 or more are duplicate", _QUEUE)
QUEUE_LAG = Metric("queue_lag", "Messages of the queue not yet read", _QUEUE)
OF_STRATEGY: Mapping[str, Metric] = {
    field: Metric(f"strategy_{_FIGURES[field].metric}", f"Under the strategy: {_FIGURES[field].what}", _STRATEGY)
    for field in ("unassigned", "duplicate_owners", "idle", "imbalance", "mismatches")
}
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
FLEET_NIGHT = Metric("fleet_night_timestamp_seconds", "The fleet's last night, since 1970")
FLEET = Metric("fleet", "Figures of the fleet's last night, by name", ("what",))
FLEET_FIGURES = ("clusters", "groups", "failed", "incomplete", "waived", "errors", "new", "gone")
FLEET_SILENT = Metric("fleet_silent_cluster", "1 for an expected cluster that did not report", ("cluster",))
FINDINGS = Metric(
    "findings", "Findings by code; rmqlb explain CODE describes a code", (*_GROUP, "code", "severity", "command")
)

METRICS = (
    *(SNAPSHOT_TIME, GROUPS, GROUP_STATUS, *OF_GROUP.values(), QUEUE_OWNERS, QUEUE_LAG, *OF_STRATEGY.values()),
    *(CHECK_OUTCOME, CHECK_LIMITS, CHECK_NOT_PASSED, CHECK_VALUE, CHECK_BOUND),
    *(DIAGNOSIS_OUTCOME, UNDECIDED_RULES, FLEET_NIGHT, FLEET, FLEET_SILENT, FINDINGS),
)


def metrics_of(
    report: Report, command: str, snapshot: ClusterSnapshot, findings: Iterable[Finding]
) -> Iterator[Sample]:
    """Yield the samples of a result and its findings; the command is a label, since a folder has a file of each."""
    if snapshot.taken_at is not None:
        yield Sample(SNAPSHOT_TIME, snapshot.taken_at.timestamp(), (command,))
    yield from _samples(report.data, snapshot)
    counted = Counter((finding.group, finding.code, finding.severity) for finding in findings)
    groups = report.data.groups if isinstance(report.data, Overview | DiagnosisOfGroups) else [report.data]
    for each in groups:
        if isinstance(each, GroupLine | Diagnosis):
            counted.update((each.group, one.brief.code, one.brief.severity) for one in each.findings)
    for (group, code, severity), number in counted.items():
        yield Sample(FINDINGS, number, (_cluster_of_group(snapshot, group), group, code, severity, command))


def _samples(data: object, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    match data:
        case Overview():
            yield from _overview(data, snapshot)
        case OwnersReport():
            yield from _owners(data, snapshot)
        case CheckResult():
            yield from _check(data, snapshot)
        case Diagnosis(group=group):
            labels = (_cluster_of_group(snapshot, group), group)
            yield from _one_of(DIAGNOSIS_OUTCOME, get_args(Outcome), data.outcome, *labels)
            yield Sample(UNDECIDED_RULES, len(data.unknown), labels)
        case OwnersOfGroups() | DiagnosisOfGroups():
            for each in data.groups:
                yield from _samples(each, snapshot)
        case PipelineResult():
            yield from _pipeline(data)


def _one_of(metric: Metric, names: tuple[str, ...], name: str, *labels: str | None) -> Iterator[Sample]:
    """1 for the name and 0 for each of the others, so that no series ends when the name changes."""
    return (Sample(metric, int(each == name), (*labels, each)) for each in names)


def _overview(overview: Overview, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    s = overview.summary
    numbers = (s.with_errors, s.with_warnings, s.lagging, s.unknown, s.offline, s.in_order)
    for status, number in zip(STATUSES, numbers, strict=True):
        yield Sample(GROUPS, number, (status,))
    for line in overview.groups:
        labels = (_cluster_of_topics(snapshot, line.topics), line.group)
        yield from _one_of(GROUP_STATUS, STATUSES, line.status, *labels)
        for field, metric in OF_GROUP.items():
            value: float | None = getattr(line, field)
            yield Sample(metric, value / 1000 if value is not None and metric.unit else value, labels)


def _owners(report: OwnersReport, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    clusters = {
        (topic, broker.broker_name): broker.cluster
        for topic in report.topics
        if topic in snapshot.routes
        for broker in snapshot.routes[topic].route.broker_datas
    }
    for queue in report.queues:
        cluster = clusters.get((queue.topic, queue.broker_name))
        labels = (cluster, queue.topic, report.group, queue.broker_name, str(queue.queue_id))
        owners = queue.owners_observed
        yield Sample(QUEUE_OWNERS, None if owners is None else len(owners), labels)
        yield Sample(QUEUE_LAG, queue.lag, labels)
    cluster = _cluster_of_topics(snapshot, report.topics)
    for each in report.strategies:
        place = (cluster, report.group, each.strategy)
        yield from (Sample(metric, getattr(each, field), place) for field, metric in OF_STRATEGY.items())


def _check(result: CheckResult, snapshot: ClusterSnapshot) -> Iterator[Sample]:
    yield from _one_of(CHECK_OUTCOME, (PASSED, FAILED, INCOMPLETE), result.outcome)
    for rule in result.rules:
        for verdict in (PASSED, FAILED, _WAIVED, INCOMPLETE, NOT_APPLICABLE):
            yield Sample(CHECK_LIMITS, getattr(rule, attribute_of(verdict)), (rule.rule, rule.severity, verdict))
    kinds = ((FAILED, result.failed), (_WAIVED, result.waived), (INCOMPLETE, result.incomplete))
    judged = [(verdict, one, _labels(one, snapshot)) for verdict, limits in kinds for one in limits]
    # A rule may be incomplete for several reasons, which its labels do not distinguish.
    counted = Counter((*labels, verdict) for verdict, _, labels in judged)
    yield from (Sample(CHECK_NOT_PASSED, number, labels) for labels, number in counted.items())
    for _, one, labels in judged:  # the value of an incomplete limit is only its known part
        yield Sample(CHECK_VALUE, _number(one, one.value) if one.verdict == FAILED else None, labels)
        yield Sample(CHECK_BOUND, _number(one, one.bound), labels)


def _labels(one: JudgedLimit, snapshot: ClusterSnapshot) -> tuple[str | None, ...]:
    of_rule = (one.rule, one.limit, one.severity)
    if one.about == GROUP:
        return _cluster_of_group(snapshot, one.name), None, one.name, *of_rule
    return _cluster_of_topics(snapshot, None if one.name is None else (one.name,)), one.name, None, *of_rule


def _number(one: JudgedLimit, value: object) -> float | None:
    """A number as it is; of a time, the seconds."""
    number = value if isinstance(value, int | float) else None
    return number / 1000 if number is not None and one.unit == "ms" else number


def _pipeline(result: PipelineResult) -> Iterator[Sample]:
    verdict = result.verdict
    if verdict is None:
        return
    yield Sample(FLEET_NIGHT, datetime.combine(verdict.date, time(), UTC).timestamp())
    figures = {name: getattr(verdict, name) for name in FLEET_FIGURES}
    for what, number in {**figures, "silent": len(verdict.silent), "quarantined": len(result.quarantined)}.items():
        yield Sample(FLEET, number, (what,))
    yield from (Sample(FLEET_SILENT, 1, (cluster,)) for cluster in verdict.silent)


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
    lines: dict[Metric, list[str]] = {metric: [] for metric in METRICS}
    for sample in samples:
        if sample.value is not None:
            lines[sample.metric].append(_line(sample))
    parts = (part for metric, own in lines.items() if own for part in (*_head(metric), *own))
    return "\n".join((*parts, "# EOF\n"))


def label_value(name: str) -> str:
    r"""A name as a label, before the format's own escapes.

    >>> label_value("orders"), label_value("a\x1b"), label_value("a\\x1b")
    ('orders', 'a\\x1b', 'a\\\\x1b')
    """
    return visible(name.replace("\\", "\\\\"))


def _head(metric: Metric) -> tuple[str, ...]:
    name = metric.full_name
    unit = (f"# UNIT {name} {metric.unit}",) if metric.unit else ()
    return (f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", *unit)


def _line(sample: Sample) -> str:
    given = zip(sample.metric.labels, sample.labels, strict=True)
    # `visible` leaves no line end, which the format would escape too.
    escaped = ((label, label_value(name).replace("\\", r"\\").replace('"', r"\"")) for label, name in given if name)
    labels = ",".join(f'{label}="{name}"' for label, name in escaped)
    return f"{sample.metric.full_name}{f'{{{labels}}}' if labels else ''} {sample.value!r}"
