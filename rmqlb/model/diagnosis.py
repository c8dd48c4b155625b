"""Why a group is as it is: findings with evidence, consequence and remedy, and what is unknown."""

from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import SEVERITIES, WARNING, Finding, Result, Severity

Outcome = Literal["found", "unknown", "inOrder"]
MAX_LAG = 1_000
"""The lag above which a group lags, unless the user says otherwise."""
SECOND_SAMPLE, MORE_SAMPLES = "a second sample", "more samples"
"""What an undecided rule needs where a change over time decides."""


CODES: tuple[str, ...] = (
    *("broker-silent", "broker-gone", "no-consumer-online", "behind-proxy", "pop-consumption", "no-read-queues"),
    *("duplicate-client-id", "broker-unreachable-from-consumer", "stale-connections", "split-consumer-view"),
    *("mixed-strategies", "subscription-mismatch", "mixed-sdks", "frozen-consumer", "consume-failing"),
    *("blocked-consumer", "head-blocked", "pull-stopped", "lock-lost", "dropped-but-consuming", "consumer-gone"),
    *("unassigned-queues", "duplicate-owners", "mismatch", "hot-queue", "slow-consumer", "flow-control"),
    *("lag-growing", "lag-stalled", "offset-rewound", "more-consumers-than-queues", "idle-by-strategy"),
)  # the rules of a diagnosis, causes before their effects


class Evidence(Struct, frozen=True, rename="camel"):
    """One observed fact."""

    fact: Annotated[str, "what was measured"]
    value: Annotated[str | int, "the observed value"]
    threshold: Annotated[str | int | None, "the threshold; null where no number decides"]
    source: Annotated[str, "URL, address or file, never with a secret in it"]
    at: Annotated[str | None, "ISO-8601 in UTC; null when the source does not report it"]


class Explains(Struct, frozen=True, rename="camel"):
    """The prediction for a cause; null is what cannot be predicted, as where something unknown acts too."""

    reproduces: Annotated[bool | None, "all causes together predict the observed owners; null without any"] = None
    fixes_all: Annotated[bool | None, "without this cause, each queue has one owner by prediction"] = None
    unassigned_after: Annotated[int | None, "unassigned queues by prediction without this cause"] = None
    duplicate_owners_after: Annotated[int | None, "queues with duplicate owners without this cause"] = None
    queues_explained: Annotated[int | None, "queues whose observed owners all causes together predict"] = None
    queues_explained_without: Annotated[int | None, "queues whose observed owners are predicted without this cause"] = (
        None
    )


class GroupFinding(Struct, frozen=True, rename="camel"):
    """A finding on a group."""

    code: Annotated[str, "stable, for scripts; `rmqlb explain CODE` explains it"]
    severity: Annotated[Severity, "error: queues without one owner, or waiting messages; info: no fault"]
    group: Annotated[str, "the consumer group"]
    topic: Annotated[str | None, "its topic; null when it is not about a single one"] = None
    queues: Annotated[tuple[MessageQueue, ...], "queues that it concerns, as clients sort them"] = ()
    consumers: Annotated[tuple[str, ...], "client IDs that it is about, as clients sort them"] = ()
    evidence: Annotated[tuple[Evidence, ...], "observed facts"] = ()
    consequence: Annotated[str, "its consequence, a sentence"] = ""
    remedy: Annotated[str, "what to do, a sentence"] = ""
    explains: Annotated[Explains | None, "how many of the observed owners it explains; null if none"] = None
    message: Annotated[str, "one line for people, naming what it is about"] = ""

    @property
    def brief(self) -> Finding:
        return Finding(self.code, self.message, self.group, self.severity, self.consumers)


def group_finding(finding: Finding, group: str) -> GroupFinding:
    """A finding of another origin than a rule of a diagnosis."""
    return GroupFinding(finding.code, finding.severity, group, consumers=finding.consumers, message=finding.message)


class DiagnosedSample(Struct, frozen=True, rename="camel"):
    """A moment at which the group was read."""

    source: Annotated[str, "URL, address or file, never with a secret in it"]
    at: Annotated[str | None, "ISO-8601 in UTC; null when the source does not report it"]


class GroupCounts(Struct, frozen=True, rename="camel"):
    """The group in numbers, by the last sample; null is unknown."""

    consumers: Annotated[int | None, "distinct client IDs that brokers list"] = None
    processes: Annotated[int | None, "running clients, of which several may share a client ID"] = None
    queues: Annotated[int | None, "readable queues of its topics"] = None
    unassigned: Annotated[int | None, "queues observed without an owner; null when unknown or not shared"] = None
    duplicate_owners: Annotated[int | None, "queues with two or more observed owners; null in the same cases"] = None
    owners_unknown: Annotated[
        int | None, "queues with unknown owners; null when not shared, or without any known owner"
    ] = None
    lag: Annotated[int | None, "unread messages; null when they are not known of every queue"] = None
    lag_at_least: Annotated[int | None, "unread messages of queues where they are known; null without any"] = None


class Lagging(Struct, frozen=True, rename="camel"):
    """A lag above its limit, and the place of most of it."""

    lag: Annotated[int, "unread messages, as far as they are known"]
    limit: Annotated[int, "the lag above which a group lags"]
    consumer: Annotated[str | None, "the only owner of the queues with most of the lag; null when unknown"] = None
    share: Annotated[float, "the part of the lag in these queues, 0..1"] = 1
    queues: Annotated[tuple[MessageQueue, ...], "the consumer's queues with unread messages; without one, all"] = ()


class Drain(Struct, frozen=True, rename="camel"):
    """When a lag is gone at the rates between the last samples, up to three; null is unknown or does not apply."""

    drains: Annotated[Literal["finite", "never", "unknown"], "whether the lag is gone after some time"]
    drain_ms: Annotated[float | None, "time until the lag is gone; 0 where commits explain the lag"] = None
    drain_ms_at_least: Annotated[float | None, "the least time, as exact as the samples are"] = None
    drain_ms_at_most: Annotated[float | None, "the most time; null when the samples set no limit"] = None
    inflow_per_second: Annotated[float | None, "messages stored per second"] = None
    consumed_per_second: Annotated[float | None, "messages consumed per second, as far as committed"] = None
    consumers_at_least: Annotated[int | None, "the fewest consumers, each as fast as the fastest one"] = None
    reason: Annotated[str | None, "why it is never or unknown, or may take longer"] = None


class QueueDrain(Struct, frozen=True, rename="camel"):
    """When the lag of a queue is gone."""

    topic: str
    broker_name: str
    queue_id: int
    owners: Annotated[tuple[str, ...] | None, "its owners, observed or predicted; null when unknown"]
    lag: Annotated[int | None, "messages not yet read; null when unknown"]
    drain: Annotated[Drain, "when the queue's lag is gone"]


class ConsumerStacks(Struct, frozen=True, rename="camel"):
    """The stack traces of a consumer."""

    client_id: str
    threads: Annotated[tuple[str, ...], "the stack trace of each of its consume threads"]


class Undecided(Struct, frozen=True, rename="camel"):
    """A rule that gives no answer."""

    code: Annotated[str, "code of the finding that it looks for"]
    reason: Annotated[str, "the evidence that is missing, or why the rule does not apply"]
    remedy: Annotated[str | None, "how to get that evidence; null where nothing is known to"] = None
    needs: Annotated[str | None, "the missing evidence in a few words; null for a rule that does not apply"] = None
    suspected: Annotated[str | None, "a sign of the problem that another sample has to confirm; null without"] = None


class Consequence(Struct, frozen=True, rename="camel"):
    """A finding that another cause explains, so that it is no cause itself."""

    code: Annotated[str, "code of the finding that it would be"]
    causes: Annotated[tuple[str, ...], "codes of the findings that cause it"]


class Diagnosis(Result, frozen=True):
    """Why a group is as it is: the answers of all rules, each rule in one of the lists."""

    group: Annotated[str, "the consumer group"]
    outcome: Annotated[Outcome, "found (an error or a warning), unknown (a rule was not decided) or inOrder"]
    samples: Annotated[tuple[DiagnosedSample, ...], "of the group, the oldest first; the last one is diagnosed"] = ()
    counts: Annotated[GroupCounts, "the group in numbers"] = GroupCounts()
    findings: Annotated[tuple[GroupFinding, ...], "the likeliest cause first"] = ()
    consequences: Annotated[tuple[Consequence, ...], "findings that others explain"] = ()
    checked: Annotated[tuple[str, ...], "codes of rules that found nothing"] = ()
    unknown: Annotated[tuple[Undecided, ...], "rules that could not be decided"] = ()
    not_applicable: Annotated[tuple[Undecided, ...], "rules that do not apply to such a group"] = ()
    stacks: Annotated[tuple[ConsumerStacks, ...] | None, "stack traces; null when they were not requested"] = None
    lagging: Annotated[Lagging | None, "where the lag is, if it is above the limit; null otherwise"] = None
    drain: Annotated[Drain | None, "when the lag is gone; null when the group was not read"] = None
    slowest: Annotated[tuple[QueueDrain, ...], "up to 8 queues with lag, the slowest first; none from one sample"] = ()

    @property
    def status(self) -> str:
        """The gravest severity of its findings, otherwise warning for a suspicion, lagging, or its outcome."""
        gravest = min((each.severity for each in self.findings), key=SEVERITIES.index, default="")
        if self.outcome == "found":
            return gravest
        if any(each.suspected for each in self.unknown):
            return WARNING
        return "lagging" if self.lagging is not None else self.outcome


class DiagnosisSummary(Struct, frozen=True, rename="camel"):
    """Diagnoses of groups in numbers."""

    groups: Annotated[int, "groups"]
    with_errors: Annotated[int, "groups whose gravest finding is an error"]
    with_warnings: Annotated[int, "groups whose gravest finding is a warning, or with a suspicion"]
    lagging: Annotated[int, "other groups with a lag above the limit"]
    unknown: Annotated[int, "other groups with a rule that could not be decided"]
    in_order: Annotated[int, "the remaining groups"]


class DiagnosisOfGroups(Result, frozen=True):
    """Why several groups are as they are."""

    groups: Annotated[tuple[Diagnosis, ...], "each group's diagnosis, as rmqlb/diagnosis has it, the worst first"]
    summary: Annotated[DiagnosisSummary, "of all groups together"]
