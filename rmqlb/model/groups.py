"""Consumer groups at a glance, the worst first, and the consumers of one of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.diagnosis import Drain, GroupFinding, Lagging, QueueDrain
from rmqlb.model.owners import Basis, Origin
from rmqlb.model.result import ERROR, WARNING, Figure, Result, Severity, TriedCondition

Status = Literal["error", "warning", "lagging", "unknown", "offline", "inOrder"]
STATUSES: tuple[Status, ...] = ("error", "warning", "lagging", "unknown", "offline", "inOrder")  # the worst first


class GroupState(Struct, frozen=True, rename="camel"):
    """A consumer group in numbers.

    The status is unknown if owners are neither observed nor certain, or a fault may pass; offline if no consumer is
    visible and nothing shows consumption; inOrder also if its consumers are visible clients of a Proxy.
    """

    group: Annotated[str, "its name"]
    status: Annotated[Status, "of the worst finding, otherwise lagging (above the limit), unknown, offline or inOrder"]
    topics: Annotated[tuple[str, ...] | None, "subscribed topics without the retry topic; null when unknown"] = None
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING; null when unknown"] = None
    consume_type: Annotated[str | None, "CONSUME_PASSIVELY, CONSUME_ACTIVELY, CONSUME_POP; null when unknown"] = None
    consumers: Annotated[int | None, Figure("distinct client IDs of the group", metric="consumers")] = None
    processes: Annotated[
        int | None, Figure("running clients, of which several may share a client ID", metric="processes")
    ] = None
    queues: Annotated[
        int | None, Figure("readable queues of the group's topics", metric="queues", unknown="when a route is unknown")
    ] = None
    lag: Annotated[
        int | None, Figure("messages not yet read", metric="group_lag", unknown="when unknown for a queue")
    ] = None
    lag_at_least: Annotated[
        int | None,
        Figure(
            "messages not yet read, as far as they are known", metric="group_lag_at_least", unknown="without offsets"
        ),
    ] = None
    unassigned: Annotated[
        int | None, Figure("queues without an owner", metric="unassigned_queues", unknown="when none is certain")
    ] = None
    duplicate_owners: Annotated[
        int | None,
        Figure("queues with two or more owners", metric="queues_with_duplicate_owners", unknown="when none is certain"),
    ] = None
    owners_unknown: Annotated[int | None, "queues with unknown owners; null without owners or a number of queues"] = (
        None
    )
    idle: Annotated[
        int | None, Figure("consumers without a queue", metric="idle_consumers", unknown="when owners are unknown")
    ] = None
    basis: Annotated[Basis | None, "whether owners are observed, predicted or assumed; null when unknown"] = None
    duplicate_client_ids: Annotated[
        int | None, Figure("client IDs with two or more processes", metric="duplicate_client_ids")
    ] = None
    mismatches: Annotated[
        int | None, Figure("queues whose observed owners differ from the predicted ones", metric="mismatches")
    ] = None
    imbalance: Annotated[
        float | None,
        Figure(
            "most queues of one consumer over the mean; 1 is perfectly even",
            metric="imbalance",
            unknown="without known owners",
        ),
    ] = None
    strategies: Annotated[tuple[str, ...], "what its consumers run; none when unknown, or none decides"] = ()
    strategy_origin: Annotated[Origin | None, "reported, observed (fits the owners), assumed; null when unknown"] = None
    shares_queues: Annotated[bool | None, "false in BROADCASTING, by POP and behind a Proxy; null when unknown"] = None
    lagging: Annotated[Lagging | None, "where the lag is, if it is above the limit; null otherwise"] = None
    drain: Annotated[Drain | None, "when the lag is gone; null when the group was not read"] = None

    @property
    def drain_ms(
        self,
    ) -> Annotated[
        float | None,
        Figure("time until the lag is gone", metric="group_drain_seconds", unknown="when it never is, or is unknown"),
    ]:
        return None if self.drain is None else self.drain.drain_ms


class GroupLine(GroupState, frozen=True):
    """A consumer group in numbers, and what is odd about it."""

    findings: Annotated[tuple[GroupFinding, ...], "the worst first"] = ()

    def reaches(self, severity: Severity) -> bool:
        least: tuple[Status, ...] = {ERROR: STATUSES[:1], WARNING: STATUSES[:3]}.get(severity, STATUSES[:5])
        return self.status in least


class OverviewSummary(Struct, frozen=True, rename="camel"):
    """Groups in numbers."""

    groups: Annotated[int, "number of groups"]
    with_errors: Annotated[int, "those whose worst finding is an error"]
    with_warnings: Annotated[int, "those whose worst finding is a warning"]
    lagging: Annotated[int, "other groups with a lag above the limit"]
    unknown: Annotated[int, "groups whose queue owners are unknown"]
    offline: Annotated[int, "groups without a visible consumer and without known waiting messages"]
    in_order: Annotated[int, "the others"]
    queues: Annotated[int, "of all groups, as far as they are known"]
    lag: Annotated[int, "messages not yet read, of all groups, as far as they are known"]
    unassigned: Annotated[int, "queues known to have no owner; those of groups that are offline are left out"]
    duplicate_owners: Annotated[int, "queues known to have two or more owners"]
    idle: Annotated[int, "consumers known to have no queue"]
    duplicate_client_ids: Annotated[int, "client IDs known to have several processes"]
    mismatches: Annotated[int, "queues known to have observed owners that differ from the prediction"]
    own: Annotated[int, "RocketMQ's own groups, which are left out and not counted above"] = 0


class Overview(Result, frozen=True):
    """Groups, the worst first."""

    groups: Annotated[tuple[GroupLine, ...], "groups that are shown"]
    summary: Annotated[OverviewSummary, "of all selected groups, including those that are not shown"]
    conditions: tuple[TriedCondition, ...] = ()

    def at_least(self, severity: Severity | None, conditions: tuple[TriedCondition, ...]) -> Overview:
        """Show only groups that are at least so bad; None shows all."""
        shown = tuple(line for line in self.groups if severity is None or line.reaches(severity))
        return Overview(shown, self.summary, conditions)


class ProcessAddress(Struct, frozen=True, rename="camel"):
    """Where a process is connected from."""

    broker_addr: Annotated[str | None, "the reporting broker; null when unknown, or when a Proxy reports it"]
    client_addr: Annotated[str, "the process's end of the connection, `ip:port`"]
    proxy_addr: Annotated[str | None, "the Proxy that reports it; null when a broker does"] = None


class ConsumerProcess(Struct, frozen=True, rename="camel"):
    """A running client of a group; what is said of its client ID is said of each process that carries it."""

    client_id: str
    processes: Annotated[int, "how many processes have it"]
    addresses: Annotated[tuple[ProcessAddress, ...], "where its connections come from, by broker"] = ()
    language: Annotated[str | None, "of its client library; null when it is not known"] = None
    version: Annotated[str | None, "of its client library; null when it is not known"] = None
    consume_type: Annotated[str | None, "push, pull, lite-pull, assign, pop or grpc; null when unknown"] = None
    strategy: Annotated[str | None, "which it reports, by RocketMQ's name; null when it reports none"] = None
    topics: Annotated[tuple[str, ...] | None, "topics it subscribes to, but the retry topic; null if unreported"] = None
    queues_observed: Annotated[int | None, "queues that it was observed to own; null when it was not observed"] = None
    queues_predicted: Annotated[int | None, "queues that it owns by its strategy; null when unpredictable"] = None
    lag: Annotated[int | None, "messages not yet read in its queues; null when unknown for one of them"] = None
    drain: Annotated[Drain | None, "when the lag of its queues is gone; null when its queues are unknown"] = None
    started_at: Annotated[str | None, "when it started, ISO-8601 in UTC; null when it is not known"] = None
    not_listed_by: Annotated[tuple[str, ...], "brokers that list the group without it"] = ()
    findings: Annotated[tuple[str, ...], "codes of the findings that are about it"] = ()


class Consumers(Result, frozen=True):
    """The consumers of a group."""

    overview: Annotated[GroupState, "the group in numbers"]
    consumers: Annotated[tuple[ConsumerProcess, ...], "process by process, in the clients' order of their IDs"]
    findings: Annotated[tuple[GroupFinding, ...], "of the group, the worst first"]
    queues: Annotated[tuple[QueueDrain, ...], "the slowest to drain first; none without an earlier snapshot"] = ()


class ConsumersOfGroups(Result, frozen=True):
    """The consumers of several groups."""

    groups: Annotated[tuple[Consumers, ...], "each group's consumers, as rmqlb/consumers has them"]
    summary: Annotated[OverviewSummary, "all groups in numbers"]
