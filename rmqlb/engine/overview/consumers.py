"""The consumers of a group, a running process each: what brokers and the processes themselves report of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from rmqlb.engine.assignment.balance import Owners, counts
from rmqlb.engine.assignment.consumers import popped_topics, reported_strategies, subscriptions
from rmqlb.engine.group import Group, known
from rmqlb.engine.overview.group_line import group_line
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.group import (
    CONSUME_PASSIVELY,
    CONSUME_POP,
    Connection,
    ConsumerGroup,
    MemberView,
    ProxyView,
    is_grpc,
)
from rmqlb.model.groups import ConsumerProcess, Consumers, GroupState, ProcessAddress
from rmqlb.model.snapshot import Unread
from rmqlb.model.times import utc_text

_Seen = tuple[MemberView | ProxyView, Connection]  # a broker's or Proxy's list, and a connection in it


def consumers_of(facts: Group, unread: Sequence[Unread]) -> Consumers:
    """The group's consumers, and what is odd about the group.

    Args:
        unread: the parts of it that could not be read.
    """
    line = group_line(facts, unread)
    state = GroupState(**{name: getattr(line, name) for name in GroupState.__struct_fields__})
    is_there = facts.name in facts.snapshot.groups
    rows = tuple(_rows(facts, line.findings)) if is_there else ()
    return Consumers(state, rows, line.findings)


def _rows(facts: Group, findings: Sequence[GroupFinding]) -> Iterator[ConsumerProcess]:
    group, views = facts.group, facts.group.lists
    processes = Counter(group.client_ids or ())
    ids = tuple(processes)
    listed = [_by_id(view) for view in views]
    by_proxy = {client_id for view in group.proxies or () for client_id in view.client_ids}
    own = group.own_topics
    pops = group.consume_type == CONSUME_POP or bool(own and popped_topics(group).issuperset(own))
    codes: dict[str, dict[str, None]] = {}
    for finding in findings:
        for client_id in finding.consumers:
            codes.setdefault(client_id, {})[finding.code] = None
    observed, predicted, lags = _observed(facts, ids), _predicted(facts, ids), _lags(facts, ids)
    strategies, topics = reported_strategies(group), subscriptions(group)
    for client_id in ids:
        of_id = ConsumerProcess(
            client_id=client_id,
            processes=processes[client_id],
            consume_type=_consume_type(group, client_id, pops=pops),
            strategy=strategies.get(client_id),
            topics=tuple(sorted(topics[client_id])) if client_id in topics else None,
            queues_observed=observed.get(client_id),
            queues_predicted=predicted.get(client_id),
            lag=lags.get(client_id),
            started_at=_started_at(group, client_id),
            not_listed_by=tuple(
                view.broker_addr or view.seen.where
                for view, its in zip(views, listed, strict=True)
                if isinstance(view, MemberView) and client_id not in its and client_id not in by_proxy
            ),
            findings=tuple(codes.get(client_id, ())),
        )
        yield from _processes([its.get(client_id, []) for its in listed], of_id)


def _by_id(view: MemberView | ProxyView) -> dict[str, list[_Seen]]:
    """Client ID → its connections at the broker or Proxy, with where they were listed."""
    found: dict[str, list[_Seen]] = {}
    for connection in view.connections:
        found.setdefault(connection.client_id, []).append((view, connection))
    return found


def _processes(listed: Sequence[list[_Seen]], of_id: ConsumerProcess) -> Iterator[ConsumerProcess]:
    """A row for each process that carries the client ID, as a broker lists them that lists so many.

    A process is connected to each broker from another port. Which of several is which at another broker only its host
    tells, where no other of them is there.
    """
    first, *others = sorted(listed, key=lambda pairs: (len(pairs) != of_id.processes, -len(pairs)))
    hosts = Counter(_host(connection) for _, connection in first)
    by_host: list[dict[str, list[_Seen]]] = []
    for pairs in others:
        by_host.append({})
        for pair in pairs:
            # A process that is alone with its ID may reach brokers from several hosts.
            by_host[-1].setdefault(next(iter(hosts)) if len(first) == 1 else _host(pair[1]), []).append(pair)
    for view, connection in sorted(first, key=lambda pair: pair[1].client_addr or ""):
        same, host = [(view, connection)], _host(connection)
        if hosts[host] == 1:
            same += [pairs[0] for its in by_host if len(pairs := its.get(host, [])) == 1]
        yield replace(
            of_id,
            addresses=tuple(_address(at, each.client_addr) for at, each in same if each.client_addr is not None),
            language=next((each.language for _, each in same if each.language is not None), None),
            version=next((each.version for _, each in same if each.version is not None), None),
        )


def _address(view: MemberView | ProxyView, client_addr: str) -> ProcessAddress:
    if isinstance(view, ProxyView):
        return ProcessAddress(None, client_addr, view.proxy_addr)
    return ProcessAddress(view.broker_addr, client_addr)


def _host(connection: Connection) -> str:
    return (connection.client_addr or "").rpartition(":")[0]


def _observed(facts: Group, ids: Sequence[str]) -> Mapping[str, int]:
    """Client ID → how many queues it was observed to own; one that may own others, too, is left out."""
    owners = facts.observed
    if not owners:
        return {}
    all_seen = all(state.owners is not None for state in facts.group.queues.values())
    numbers = counts(owners, ids)
    return {i: number for i, number in numbers.items() if number or all_seen or i in facts.group.reports}


def _predicted(facts: Group, ids: Sequence[str]) -> Mapping[str, int]:
    """Client ID → how many queues it owns by its strategy; empty where that cannot be predicted."""
    owners: Owners | None = known(lambda: facts.predicted) if facts.shares or facts.broadcasting else None
    return {} if owners is None else counts(owners, ids)


def _lags(facts: Group, ids: Sequence[str]) -> dict[str, int]:
    """Client ID → messages not yet read in its queues; one is left out where they are not known of all its queues."""
    owned = known(lambda: facts.ownership)
    if owned is None or owned.unknown:
        return {}
    states = facts.group.without_foreign_offsets.queues
    lags = dict.fromkeys(ids, 0)
    unknown = set()
    for queue, owners in owned.owners.items():
        lag = states[queue].lag if queue in states else None
        for client_id in owners:
            if lag is None:
                unknown.add(client_id)
            else:
                lags[client_id] = lags.get(client_id, 0) + lag
    return {client_id: lag for client_id, lag in lags.items() if client_id not in unknown}


def _consume_type(group: ConsumerGroup, client_id: str, *, pops: bool) -> str | None:
    """What the consumer reports; else what its group's heartbeats said, as far as that decides."""
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
    except (OverflowError, OSError, ValueError):  # what a client says may be no time at all
        return None
