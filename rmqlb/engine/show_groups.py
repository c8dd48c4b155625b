"""Groups, one per line, the consumers of one group, and conditions on them."""

import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Owners, counts
from rmqlb.engine.assignment.consumers import only_grpc, popped_topics, reported_strategies, subscriptions
from rmqlb.engine.check import GROUP_MEASURES
from rmqlb.engine.conditions import Condition, FailOn
from rmqlb.engine.diagnose.diagnose import case_since, lagging
from rmqlb.engine.drain import drains_of
from rmqlb.engine.group import Group, Ownership, all_groups, group_of, known
from rmqlb.engine.group_findings import group_findings
from rmqlb.engine.source_findings import unread_findings
from rmqlb.errors import UsageError
from rmqlb.model.diagnosis import CODES, MAX_LAG, Drain, GroupFinding, Lagging, group_finding
from rmqlb.model.group import (
    BROADCASTING,
    CONSUME_PASSIVELY,
    CONSUME_POP,
    Connection,
    ConsumerGroup,
    MemberView,
    ProxyView,
    is_grpc,
    is_system_group,
)
from rmqlb.model.groups import (
    STATUSES,
    ConsumerProcess,
    Consumers,
    ConsumersOfGroups,
    GroupLine,
    GroupState,
    Overview,
    OverviewSummary,
    ProcessAddress,
    Status,
)
from rmqlb.model.message_queue import grouped
from rmqlb.model.owners import Origin
from rmqlb.model.policy import DRAIN_TIME, Policy
from rmqlb.model.result import ERROR, WARNING, Progress, TriedCondition, no_progress, utc_text
from rmqlb.model.snapshot import ClusterSnapshot, Unread, UnreadKind, suggestion


def group_line(
    group: Group, unread: Sequence[Unread], max_lag: int, drain: Drain | None = None, max_drain_ms: float = math.inf
) -> GroupLine:
    """The group in numbers, with its findings; `unread` are its unread parts. A finding says why a figure is None.

    A lag above `max_lag` counts for its status, and below that limit one that is never gone or takes longer than
    `max_drain_ms`.
    """
    name = group.name or ""
    if name not in group.snapshot.groups:
        missing = tuple(group_finding(finding, name) for finding in unread_findings(unread))
        return GroupLine(name, "warning", findings=missing)
    seen, owned = group.group, known(lambda: group.ownership)
    lasts = drain is not None and (drain.drains == "never" or (drain.drain_ms_at_least or 0) > max_drain_ms)
    findings, late = group_findings(group, unread), lagging(group, 0 if lasts else max_lag)
    mismatches = group.mismatches if group.shares else None
    strategies, origin = _strategies(group)
    ids, lags = group.listed, [state.lag for state in seen.queues.values()]
    processes = Counter(ids or ())
    lag = GROUP_MEASURES["lag"](group)
    return GroupLine(
        group=name,
        shares_queues=_shares(group),
        status=_status(findings, group, owned, late),
        topics=seen.own_topics,
        message_model=seen.message_model,
        consume_type=seen.consume_type,
        consumers=None if ids is None else len(processes),
        processes=None if ids is None else len(ids),
        queues=known(lambda: _queues(group)),
        lag=lag.value if lag.missing is None else None,  # type: ignore[arg-type]
        lag_at_least=lag.value if any(each is not None for each in lags) else None,  # type: ignore[arg-type]
        strategies=strategies,
        strategy_origin=origin,
        duplicate_client_ids=None if ids is None else sum(number > 1 for number in processes.values()),
        mismatches=None if mismatches is None else len(mismatches),
        findings=findings,
        lagging=late,
        drain=drain,
        **_owned(group, owned),
    )


def _queues(group: Group) -> int | None:
    if group.unknown_routes:
        return None
    return sum(len(group.snapshot.routes[topic].route.subscribe_queues()) for topic in group.topics)


def _shares(group: Group) -> bool | None:
    if group.refusal is not None:
        return False if group.refusal.code in CODES else None
    return None if group.unsettled else group.group.message_model != BROADCASTING


def _owned(group: Group, owned: Ownership | None) -> dict[str, Any]:
    """The figures of owners, which are lower bounds where some owners are unknown."""
    if owned is None and not group.shares:
        return {}
    faults = group.faults
    if faults.basis is None:
        return {"owners_unknown": faults.unknown}
    whole = owned if owned is not None and not owned.unknown else None
    none = None if whole is None else 0
    return {
        "unassigned": len(faults.unassigned) or none,
        "duplicate_owners": len(faults.duplicate_owners) or none,
        "owners_unknown": faults.unknown,
        "basis": faults.basis,
        "idle": None if whole is None else whole.spread.idle,
        "imbalance": None if whole is None else whole.spread.imbalance,
    }


def _strategies(group: Group) -> tuple[tuple[str, ...], Origin | None]:
    if not group.shares:
        return (), None
    found = known(lambda: group.strategy)
    if found is not None:
        return found.run_by_members or (found.strategy,), found.origin
    reported = tuple(sorted(set(reported_strategies(group.group).values())))
    return reported, "reported" if reported else None


def _status(findings: Sequence[GroupFinding], group: Group, owned: Ownership | None, late: Lagging | None) -> Status:
    """A group's status: without a grave finding, owners decide, and oddities without a proven fault are unknown."""
    worst = {each.severity for each in findings if each.code != "no-consumer-online" or each.severity == ERROR}
    if ERROR in worst or WARNING in worst:
        return "error" if ERROR in worst else "warning"
    if late is not None:
        return "lagging"
    if group.listed == () and group.refusal is None:
        return "offline"
    if only_grpc(group.group):
        return "inOrder"
    if owned is None or owned.unknown or owned.basis == "assumed" or (group.shares and group.mismatches):
        return "unknown"
    return "unknown" if owned.spread.unassigned or owned.spread.duplicate_owners else "inOrder"


_OF_GROUP: tuple[UnreadKind, ...] = ("group", "members", "member", "link", "offsets", "stored-offsets")


def overview(
    snapshot: ClusterSnapshot,
    names: Sequence[str],
    settings: Settings,
    max_lag: int = MAX_LAG,
    policy: Policy | None = None,
    *,
    earlier: Sequence[ClusterSnapshot] = (),
    progress: Progress = no_progress,
) -> Overview:
    """The groups in a line each, the worst first.

    A group lags above `max_lag` messages, or the least limits of its lag and its drain time in the policy. Drain times
    need `earlier` snapshots, the oldest first.
    """

    def limit(of: str, name: str, default: float) -> float:
        return default if policy is None else policy.least(of, name, default)

    unread, lines = unread_of_groups(snapshot), []
    for done, name in enumerate(names):
        progress("groups", done, len(names))
        group = group_of(snapshot, name, settings)
        drain, lag = drains_of(case_since(group, earlier)).group, int(limit("lag", name, max_lag))
        lines.append(group_line(group, unread.get(name, ()), lag, drain, limit(DRAIN_TIME, name, math.inf)))
    lines.sort(key=_badness)
    own = snapshot.own_groups or sum(map(is_system_group, {*all_groups(snapshot)}.difference(names)))
    return Overview(tuple(lines), _summary(lines, own))


def unread_of_groups(snapshot: ClusterSnapshot) -> dict[str, list[Unread]]:
    """Group → its unread parts."""
    return grouped((part.name, part) for part in snapshot.unread if part.kind in _OF_GROUP)


def unread_of_no_group(snapshot: ClusterSnapshot, lines: Sequence[GroupLine]) -> tuple[Unread, ...]:
    """The unread parts without a finding in any line, such as a broker's list of groups."""
    topics = {topic for line in lines for topic in line.topics or ()}
    others = [part for part in snapshot.unread if part.kind not in _OF_GROUP]
    return tuple(part for part in others if part.kind != "route" or part.name not in topics)


def _badness(line: GroupLine) -> tuple[int, int, int, str]:
    bad = (line.unassigned or 0) + (line.duplicate_owners or 0)
    return STATUSES.index(line.status), -(line.lag_at_least or 0), -bad, line.group


def _summary(lines: Sequence[GroupState], own: int) -> OverviewSummary:
    statuses = Counter(line.status for line in lines)
    summed = ("queues", "duplicate_owners", "idle", "duplicate_client_ids", "mismatches")
    return OverviewSummary(
        groups=len(lines),
        with_errors=statuses["error"],
        with_warnings=statuses["warning"],
        lagging=statuses["lagging"],
        unknown=statuses["unknown"],
        offline=statuses["offline"],
        in_order=statuses["inOrder"],
        lag=sum(line.lag_at_least or 0 for line in lines),
        unassigned=sum(line.unassigned or 0 for line in lines if line.status != "offline"),
        own=own,
        **{name: sum(getattr(line, name) or 0 for line in lines) for name in summed},
    )


_Seen = tuple[MemberView | ProxyView, Connection]  # a broker's or Proxy's list, and a connection in it


def consumers_of(
    group: Group, unread: Sequence[Unread], max_lag: int = MAX_LAG, earlier: Sequence[ClusterSnapshot] = ()
) -> Consumers:
    drains = drains_of(case_since(group, earlier))
    line = group_line(group, unread, max_lag, drains.group)
    state = GroupState(**{name: getattr(line, name) for name in GroupState.__struct_fields__})
    rows = tuple(_rows(group, line.findings, drains.consumers)) if group.name in group.snapshot.groups else ()
    return Consumers(state, rows, line.findings, drains.listed if earlier else ())


def consumers_of_groups(found: Sequence[Consumers]) -> ConsumersOfGroups:
    return ConsumersOfGroups(tuple(found), _summary([each.overview for each in found], own=0))


def _rows(group: Group, findings: Sequence[GroupFinding], drains: Mapping[str, Drain]) -> Iterator[ConsumerProcess]:
    seen = group.group
    processes = Counter(seen.client_ids or ())
    ids = tuple(processes)
    listed = [grouped((each.client_id, (view, each)) for each in view.connections) for view in seen.lists]
    by_proxy = {client_id for view in seen.proxies or () for client_id in view.client_ids}
    codes = grouped((client_id, finding.code) for finding in findings for client_id in finding.consumers)
    observed, predicted, lags = _observed(group, ids), _predicted(group, ids), _lags(group, ids)
    strategies, topics, own = reported_strategies(seen), subscriptions(seen), seen.own_topics
    pops = seen.consume_type == CONSUME_POP or bool(own and popped_topics(seen).issuperset(own))
    for client_id in ids:
        of_id = ConsumerProcess(
            client_id=client_id,
            processes=processes[client_id],
            consume_type=_consume_type(seen, client_id, pops=pops),
            strategy=strategies.get(client_id),
            topics=tuple(sorted(topics[client_id])) if client_id in topics else None,
            queues_observed=observed.get(client_id),
            queues_predicted=predicted.get(client_id),
            lag=lags.get(client_id),
            drain=drains.get(client_id),
            started_at=_started_at(seen, client_id),
            not_listed_by=tuple(
                view.place
                for view, connections in zip(seen.lists, listed, strict=True)
                if isinstance(view, MemberView) and client_id not in connections and client_id not in by_proxy
            ),
            findings=tuple(dict.fromkeys(codes.get(client_id, ()))),
        )
        yield from _processes([connections.get(client_id, []) for connections in listed], of_id)


def _processes(listed: Sequence[list[_Seen]], of_id: ConsumerProcess) -> Iterator[ConsumerProcess]:
    """A row for each process with the client ID, by the broker that lists the right number of them.

    A process has another port at each broker. Only a host that no other process of the ID uses identifies it there.
    """
    first, *others = sorted(listed, key=lambda pairs: (len(pairs) != of_id.processes, -len(pairs)))
    hosts = Counter(_host(connection) for _, connection in first)
    # A process with a unique ID may reach brokers from several hosts.
    only = _host(first[0][1]) if len(first) == 1 else None
    by_host = [grouped((_host(pair[1]) if only is None else only, pair) for pair in pairs) for pairs in others]
    for view, connection in sorted(first, key=lambda pair: pair[1].client_addr or ""):
        same, host = [(view, connection)], _host(connection)
        if hosts[host] == 1:
            same += [pairs[0] for at_host in by_host if len(pairs := at_host.get(host, [])) == 1]
        yield replace(
            of_id,
            addresses=tuple(
                ProcessAddress(None, each.client_addr, at.proxy_addr)
                if isinstance(at, ProxyView)
                else ProcessAddress(at.broker_addr, each.client_addr)
                for at, each in same
                if each.client_addr is not None
            ),
            language=next((each.language for _, each in same if each.language is not None), None),
            version=next((each.version for _, each in same if each.version is not None), None),
        )


def _host(connection: Connection) -> str:
    return (connection.client_addr or "").rpartition(":")[0]


def _observed(group: Group, ids: Sequence[str]) -> Mapping[str, int]:
    """Client ID → number of observed queues; consumers that may own more are left out."""
    if not group.observed:
        return {}
    all_seen = all(state.owners is not None for state in group.group.queues.values())
    numbers = counts(group.observed, ids)
    return {i: number for i, number in numbers.items() if number or all_seen or i in group.group.reports}


def _predicted(group: Group, ids: Sequence[str]) -> Mapping[str, int]:
    """Client ID → number of predicted queues; empty where they cannot be predicted."""
    owners: Owners | None = known(lambda: group.predicted) if group.shares or group.broadcasting else None
    return {} if owners is None else counts(owners, ids)


def _lags(group: Group, ids: Sequence[str]) -> dict[str, int]:
    owned = known(lambda: group.ownership)
    if owned is None or owned.unknown:
        return {}
    states = group.group.without_foreign_offsets.queues
    lags: dict[str, int | None] = dict.fromkeys(ids, 0)
    for queue, owners in owned.owners.items():
        lag = states[queue].lag if queue in states else None
        for client_id in owners:
            before = lags.get(client_id, 0)
            lags[client_id] = None if lag is None or before is None else before + lag
    return {client_id: lag for client_id, lag in lags.items() if lag is not None}


def _consume_type(group: ConsumerGroup, client_id: str, *, pops: bool) -> str | None:
    """The reported type, otherwise the type in the group's heartbeats if it decides."""
    if is_grpc(client_id):
        return "grpc"
    if pops:
        return "pop"
    report = group.reports.get(client_id)
    if report is not None and report.consumer_type is not None:
        return report.consumer_type
    return "push" if group.consume_type == CONSUME_PASSIVELY else None


def _started_at(group: ConsumerGroup, client_id: str) -> str | None:
    report = group.reports.get(client_id)
    if report is None or report.started_at is None:
        return None
    try:
        return utc_text(datetime.fromtimestamp(report.started_at // 1000, UTC))
    except (OverflowError, OSError, ValueError):  # the reported number may be no time
        return None


_GROUPS: dict[str, Status] = {
    "groups-with-errors": "error",
    "groups-with-warnings": "warning",
    "groups-lagging": "lagging",
    "groups-unknown": "unknown",
    "groups-offline": "offline",
}
_OWNED = ("unassigned", "duplicate-owners", "idle", "mismatches", "imbalance")
_SUMMED = (*_OWNED, "duplicate-client-ids", "lag", "drain-ms")
_LARGEST = ("imbalance", "drain-ms")
GROUPS_FIGURES = FailOn(
    (*_GROUPS, *_SUMMED), of_subject=(*_SUMMED, "consumers", "processes", "queues"), shares=tuple(_GROUPS)
)  # fields of `GroupLine`. Percentages are of groups; `_LARGEST` are not summed.


def try_on_groups(condition: Condition, lines: Sequence[GroupLine]) -> TriedCondition:
    """Whether the condition is met in the groups; certain facts decide before unknown ones."""
    if condition.name in _GROUPS and condition.subject is None:
        return condition.try_on(sum(line.status == _GROUPS[condition.name] for line in lines), len(lines))
    chosen = [_one(condition, lines)] if condition.subject is not None else lines
    bounds = [_bounds(condition.name, line) for line in chosen if condition.subject or _applies(condition.name, line)]
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    total = (lambda each: max(each, default=None)) if condition.name in _LARGEST else sum
    least, most = condition.try_on(total(lows)), condition.try_on(total(highs))
    if least.value == most.value:
        return least
    is_exact = condition.compare in (operator.eq, operator.ne)
    return condition.try_on(None) if is_exact or least.met != most.met else least


def _bounds(name: str, line: GroupLine) -> tuple[float, float]:
    value: float | None = getattr(line, name.replace("-", "_"))
    if (name == "unassigned" and line.status == "offline") or (name == "imbalance" and line.basis and value is None):
        value = 0
    if name == "drain-ms" and value != 0 and line.drain is not None:
        least, most = line.drain.drain_ms_at_least, line.drain.drain_ms_at_most
        return math.inf if line.drain.drains == "never" else least or 0, math.inf if most is None else most
    if value is None and line.consumers == 0 and name in _OWNED:
        return 0, 0  # owners are unknown in a group without a visible consumer, and add nothing
    if name in _OWNED[:2] and line.owners_unknown and line.status != "offline":
        return value or 0, (value or 0) + line.owners_unknown
    return (0, math.inf) if value is None else (value, value)


def _one(condition: Condition, lines: Sequence[GroupLine]) -> GroupLine:
    for line in lines:
        if line.group == condition.subject:
            return line
    problem = f"--fail-on {condition.text!r}: group {condition.subject} is not selected"
    raise UsageError(problem, hint=suggestion("groups", condition.subject or "", [line.group for line in lines]))


def _applies(name: str, line: GroupLine) -> bool:
    if name == "duplicate-client-ids":
        return True
    if line.message_model == BROADCASTING:
        return name == "idle"
    return name in ("lag", "drain-ms") or line.shares_queues is not False  # queues without owners add nothing
