"""Every metric that `-o prometheus` may write: its name, its labels, and what it counts.

All of them are gauges, which the classic text format has too: the textfile collector of node_exporter reads that one,
in which the further types of OpenMetrics are errors, and refuses samples with a time of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

PREFIX = "rocketmq_lb_"


class Metric(Struct, frozen=True):
    """One metric.

    Attributes:
        name: without the prefix; one with a unit ends in it.
        help: a sentence, in which no character needs an escape.
        labels: in the order in which they are written.
        unit: seconds; empty for what is counted and for ratios.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""

    @property
    def full_name(self) -> str:
        """As it is written."""
        return PREFIX + self.name


class Sample(Struct, frozen=True):
    """A metric's value.

    Attributes:
        metric: which.
        value: None is unknown, and not written.
        labels: label → value; one that is None or empty is not written, which is the same to Prometheus.
    """

    metric: Metric
    value: float | None
    labels: Mapping[str, str | None] = {}


_GROUP = ("cluster", "group")
_QUEUE = ("cluster", "topic", "group", "broker", "queue")
_STRATEGY = (*_GROUP, "strategy")
_LIMIT = ("cluster", "topic", "group", "rule", "limit", "severity")

SNAPSHOT_TIME = Metric(
    "snapshot_timestamp_seconds", "When the cluster was looked at, in seconds since 1970", ("command",), "seconds"
)
FINDINGS = Metric(
    "findings",
    "Findings by their code; rmqlb explain CODE says what one means",
    (*_GROUP, "code", "severity", "command"),
)

GROUPS = Metric("groups", "Consumer groups by status, those included that are not shown", ("status",))
GROUP_STATUS = Metric("group_status", "1 for the status that the group has, 0 for the others", (*_GROUP, "status"))
CONSUMERS = Metric("consumers", "Distinct client IDs of the group", _GROUP)
PROCESSES = Metric("processes", "Running clients of the group, of which several may share a client ID", _GROUP)
QUEUES = Metric("queues", "Readable queues of the group's topics", _GROUP)
GROUP_LAG = Metric("group_lag", "Messages not yet read, where they are known of every queue of the group", _GROUP)
GROUP_LAG_AT_LEAST = Metric("group_lag_at_least", "Messages not yet read, as far as they are known", _GROUP)
UNASSIGNED = Metric("unassigned_queues", "Queues without an owner", _GROUP)
DUPLICATE_OWNERS = Metric("queues_with_duplicate_owners", "Queues with two or more consumers as owners", _GROUP)
IDLE = Metric("idle_consumers", "Consumers without a queue", _GROUP)
DUPLICATE_IDS = Metric("duplicate_client_ids", "Client IDs that several processes carry", _GROUP)
MISMATCHES = Metric("mismatches", "Queues whose observed owners differ from the predicted ones", _GROUP)
IMBALANCE = Metric("imbalance", "Most queues of one consumer over the mean; 1 is perfectly even", _GROUP)

QUEUE_OWNERS = Metric("queue_owners", "Observed owners of the queue: 0 is unassigned, 2 or more are duplicate", _QUEUE)
QUEUE_LAG = Metric("queue_lag", "Messages of the queue not yet read", _QUEUE)
UNDER_UNASSIGNED = Metric("strategy_unassigned_queues", "Queues without an owner under the strategy", _STRATEGY)
UNDER_DUPLICATE = Metric(
    "strategy_queues_with_duplicate_owners", "Queues with two or more owners under the strategy", _STRATEGY
)
UNDER_IDLE = Metric("strategy_idle_consumers", "Consumers without a queue under the strategy", _STRATEGY)
UNDER_IMBALANCE = Metric(
    "strategy_imbalance",
    "Most queues of one consumer over the mean under the strategy",
    _STRATEGY,
)
UNDER_MISMATCHES = Metric(
    "strategy_mismatches", "Queues whose observed owners differ from those that the strategy gives", _STRATEGY
)

CHECK_OUTCOME = Metric("check_outcome", "1 for the outcome of the policy, 0 for the others", ("outcome",))
CHECK_LIMITS = Metric("check_limits", "Limits by what they come to", ("rule", "severity", "verdict"))
CHECK_NOT_PASSED = Metric(
    "check_not_passed",
    "Limits that failed, are waived or could not be judged",
    (*_LIMIT, "verdict"),
)
CHECK_VALUE = Metric("check_value", "What was measured, of a limit that is in check_not_passed", _LIMIT)
CHECK_BOUND = Metric("check_bound", "What the limit allows, of one that is in check_not_passed", _LIMIT)

DIAGNOSIS_OUTCOME = Metric(
    "diagnosis_outcome", "1 for the outcome of the diagnosis, 0 for the others", (*_GROUP, "outcome")
)
UNDECIDED_RULES = Metric("diagnosis_undecided_rules", "Rules of the diagnosis that could not be decided", _GROUP)

FLEET_NIGHT = Metric("fleet_night_timestamp_seconds", "The fleet's last night, in seconds since 1970", (), "seconds")
FLEET = Metric("fleet", "Figures of the fleet's last night, by name", ("what",))
FLEET_SILENT = Metric("fleet_silent_cluster", "1 for an expected cluster that did not report", ("cluster",))

METRICS = (
    SNAPSHOT_TIME,
    *(GROUPS, GROUP_STATUS, CONSUMERS, PROCESSES, QUEUES, GROUP_LAG, GROUP_LAG_AT_LEAST, UNASSIGNED, DUPLICATE_OWNERS),
    *(IDLE, DUPLICATE_IDS, MISMATCHES, IMBALANCE),
    *(QUEUE_OWNERS, QUEUE_LAG),
    *(UNDER_UNASSIGNED, UNDER_DUPLICATE, UNDER_IDLE, UNDER_IMBALANCE, UNDER_MISMATCHES),
    *(CHECK_OUTCOME, CHECK_LIMITS, CHECK_NOT_PASSED, CHECK_VALUE, CHECK_BOUND),
    *(DIAGNOSIS_OUTCOME, UNDECIDED_RULES),
    *(FLEET_NIGHT, FLEET, FLEET_SILENT),
    FINDINGS,
)
"""In the order in which they are written."""


def one_of(metric: Metric, names: tuple[str, ...], name: str, **labels: str | None) -> Iterator[Sample]:
    """1 for the one that is the case and 0 for each of the others, so that no series ends when that changes.

    Args:
        names: what the metric's last label may be.
    """
    for each in names:
        yield Sample(metric, int(each == name), {**labels, metric.labels[-1]: each})
