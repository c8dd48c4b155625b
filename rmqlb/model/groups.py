"""Consumer groups at a glance, the worst first, and the consumers of one of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.assignment import Basis
from rmqlb.model.condition import TriedCondition
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.figures import Figure
from rmqlb.model.finding import ERROR, WARNING, Severity
from rmqlb.model.plan import Origin
from rmqlb.model.result import Result

Status = Literal["error", "warning", "unknown", "offline", "inOrder"]
STATUSES: tuple[Status, ...] = ("error", "warning", "unknown", "offline", "inOrder")
"""The worst first."""


class GroupState(Struct, frozen=True, rename="camel"):
    """A consumer group in numbers.

    Attributes:
        status: error or warning, as its worst finding; otherwise unknown (who owns its queues is neither observed nor
            certain to predict, or what is odd about the owners may pass), offline (no consumer is visible: brokers list
            none, nor do Proxies that were asked, and nothing shows consumption) or inOrder (also of clients of a Proxy
            that are visible, which own no queues).
        topics: to which it subscribes, the one for retries left out; null when they are not known.
        consume_type: CONSUME_PASSIVELY (push), CONSUME_ACTIVELY (pull) or CONSUME_POP; null when it is not known.
        owners_unknown: queues whose owners are neither observed nor predicted: so many more queues may be unassigned or
            have duplicate owners; null when the number of queues is not known, or no consumer owns queues.
        basis: how the owners are known: observed, predicted (by the strategy that consumers run) or assumed (by
            RocketMQ's default); null when they are not.
        strategy_origin: how that is known: reported, observed (it fits the observed owners) or assumed; null when it is
            not.
        shares_queues: its consumers share the queues among themselves; false in BROADCASTING, by POP and behind a
            Proxy; null when its consumers are not known.
    """

    group: Annotated[str, "its name"]
    status: Status
    topics: tuple[str, ...] | None = None
    message_model: Annotated[str | None, "CLUSTERING or BROADCASTING; null when it is not known"] = None
    consume_type: str | None = None
    consumers: Annotated[
        int | None, Figure("distinct client IDs of the group", metric="consumers", unknown="when they are not known")
    ] = None
    processes: Annotated[
        int | None,
        Figure(
            "running clients, of which several may share a client ID",
            metric="processes",
            unknown="when they are not known",
        ),
    ] = None
    queues: Annotated[
        int | None,
        Figure("readable queues of the group's topics", metric="queues", unknown="when a route is not known"),
    ] = None
    lag: Annotated[
        int | None,
        Figure("messages not yet read", metric="group_lag", unknown="when they are not known of every queue"),
    ] = None
    lag_at_least: Annotated[
        int | None,
        Figure(
            "messages not yet read, as far as they are known",
            metric="group_lag_at_least",
            unknown="where brokers hold no offset of the group",
        ),
    ] = None
    unassigned: Annotated[
        int | None,
        Figure(
            "queues without an owner",
            metric="unassigned_queues",
            unknown="when none is certain, and some owner is unknown",
        ),
    ] = None
    duplicate_owners: Annotated[
        int | None,
        Figure(
            "queues with two or more owners",
            metric="queues_with_duplicate_owners",
            unknown="when none is certain, and some owner is unknown",
        ),
    ] = None
    owners_unknown: int | None = None
    idle: Annotated[
        int | None, Figure("consumers without a queue", metric="idle_consumers", unknown="when that is not known")
    ] = None
    basis: Basis | None = None
    duplicate_client_ids: Annotated[
        int | None,
        Figure(
            "client IDs with two or more processes",
            metric="duplicate_client_ids",
            unknown="when consumers are not known",
        ),
    ] = None
    mismatches: Annotated[
        int | None,
        Figure(
            "queues whose observed owners differ from the predicted ones",
            metric="mismatches",
            unknown="when either is not known",
        ),
    ] = None
    imbalance: Annotated[
        float | None,
        Figure(
            "most queues of one consumer over the mean; 1 is perfectly even",
            metric="imbalance",
            unknown="when owners are not known, or there are none",
        ),
    ] = None
    strategies: Annotated[tuple[str, ...], "what its consumers run; none when that is not known, or none decides"] = ()
    strategy_origin: Origin | None = None
    shares_queues: bool | None = None


class GroupLine(GroupState, frozen=True):
    """A consumer group in numbers, and what is odd about it."""

    findings: Annotated[tuple[GroupFinding, ...], "the worst first"] = ()

    def reaches(self, severity: Severity) -> bool:
        """It is at least so bad; a group of which nothing is known counts as info."""
        least: tuple[Status, ...] = {ERROR: STATUSES[:1], WARNING: STATUSES[:2]}.get(severity, STATUSES[:4])
        return self.status in least


class OverviewSummary(Struct, frozen=True, rename="camel"):
    """Groups in numbers."""

    groups: Annotated[int, "how many"]
    with_errors: Annotated[int, "those whose worst finding is an error"]
    with_warnings: Annotated[int, "those whose worst finding is a warning"]
    unknown: Annotated[int, "those of which it is not known who owns their queues"]
    offline: Annotated[int, "those without a visible consumer, and without messages that are known to wait"]
    in_order: Annotated[int, "the others"]
    queues: Annotated[int, "of all groups, as far as they are known"]
    lag: Annotated[int, "messages not yet read, of all groups, as far as they are known"]
    unassigned: Annotated[int, "queues known to have no owner; those of groups that are offline are left out"]
    duplicate_owners: Annotated[int, "queues known to have two or more owners"]
    idle: Annotated[int, "consumers known to have no queue"]
    duplicate_client_ids: Annotated[int, "client IDs known to be carried by several processes"]
    mismatches: Annotated[int, "queues known to have other observed owners than predicted"]


class Overview(Result, frozen=True):
    """Groups, the worst first."""

    groups: Annotated[tuple[GroupLine, ...], "those that are shown"]
    summary: Annotated[OverviewSummary, "of all that were looked at, those included that are not shown"]
    conditions: tuple[TriedCondition, ...] = ()

    def at_least(self, severity: Severity | None, conditions: tuple[TriedCondition, ...]) -> Overview:
        """The same with only the groups shown that are at least so bad; None shows all."""
        shown = tuple(line for line in self.groups if severity is None or line.reaches(severity))
        return Overview(shown, self.summary, conditions)


class ProcessAddress(Struct, frozen=True, rename="camel"):
    """Where a process is connected from.

    Attributes:
        broker_addr: the broker that reports it; null when the source does not say which, or a Proxy reports it.
        proxy_addr: the Proxy that reports it, its own connection or one of another Proxy; null when a broker does.
    """

    broker_addr: str | None
    client_addr: Annotated[str, "the process's end of the connection, `ip:port`"]
    proxy_addr: str | None = None


class ConsumerProcess(Struct, frozen=True, rename="camel"):
    """A running client of a group; what is said of its client ID is said of each process that carries it.

    Attributes:
        addresses: of its connections, broker by broker; of processes that share a client ID and a host only those of
            one broker, for the others cannot be distinguished.
        consume_type: push, pull, lite-pull, assign (it assigns itself queues), pop or grpc (its ID is one of gRPC's
            clients); null when it is not known.
        topics: to which it subscribes, the one for retries left out; null when it does not report them.
        queues_predicted: queues that it owns by its strategy; null when that cannot be predicted.
        lag: messages not yet read in its queues; null when they are not known of each, or its queues are not known.
    """

    client_id: str
    processes: Annotated[int, "how many processes carry it"]
    addresses: tuple[ProcessAddress, ...] = ()
    language: Annotated[str | None, "of its client library; null when it is not known"] = None
    version: Annotated[str | None, "of its client library; null when it is not known"] = None
    consume_type: str | None = None
    strategy: Annotated[str | None, "which it reports, by RocketMQ's name; null when it reports none"] = None
    topics: tuple[str, ...] | None = None
    queues_observed: Annotated[int | None, "queues that it was observed to own; null when it was not observed"] = None
    queues_predicted: int | None = None
    lag: int | None = None
    started_at: Annotated[str | None, "when it started, ISO-8601 in UTC; null when it is not known"] = None
    not_listed_by: Annotated[tuple[str, ...], "brokers that list the group without it"] = ()
    findings: Annotated[tuple[str, ...], "codes of the findings that are about it"] = ()


class Consumers(Result, frozen=True):
    """The consumers of a group."""

    overview: Annotated[GroupState, "the group in numbers"]
    consumers: Annotated[tuple[ConsumerProcess, ...], "process by process, in the clients' order of their IDs"]
    findings: Annotated[tuple[GroupFinding, ...], "of the group, the worst first"]
