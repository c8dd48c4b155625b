"""A group in one line: its figures and its findings, the worst first.

A figure that is not known is None, and a finding says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rmqlb.engine.assignment.consumers import only_grpc, reported_strategies
from rmqlb.engine.check.policy_limits import GROUP_MEASURES
from rmqlb.engine.group import Group, Ownership, known
from rmqlb.engine.group_findings import JUDGED, group_findings
from rmqlb.engine.source_findings import unread_findings
from rmqlb.model.diagnosis import GroupFinding, group_finding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.groups import GroupLine, Status
from rmqlb.model.plan import Origin
from rmqlb.model.snapshot import Unread


def group_line(group: Group, unread: Sequence[Unread]) -> GroupLine:
    """The group in numbers, with its findings.

    Args:
        unread: the parts of it that could not be read.
    """
    name = group.name or ""
    if name not in group.snapshot.groups:
        told = tuple(group_finding(finding, name) for finding in unread_findings(unread))
        return GroupLine(name, "warning", findings=told)
    seen, owned = group.group, known(lambda: group.ownership)
    findings = group_findings(group, unread)
    mismatches = group.mismatches if group.shares else None
    strategies, origin = _strategies(group)
    ids = group.listed
    processes = Counter(ids or ())
    return GroupLine(
        group=name,
        shares_queues=_shares(group),
        status=_status(findings, group, owned),
        topics=seen.own_topics,
        message_model=seen.message_model,
        consume_type=seen.consume_type,
        consumers=None if ids is None else len(processes),
        processes=None if ids is None else len(ids),
        queues=known(lambda: _queues(group)),
        strategies=strategies,
        strategy_origin=origin,
        duplicate_client_ids=None if ids is None else sum(number > 1 for number in processes.values()),
        mismatches=None if mismatches is None else len(mismatches),
        findings=findings,
        **_lag(group),
        **_owned(group, owned),
    )


def _queues(group: Group) -> int | None:
    """Readable queues of its topics, POP's included (raises DataError)."""
    if group.unknown_routes:
        return None
    return sum(len(group.snapshot.routes[topic].route.subscribe_queues()) for topic in group.topics)


def _shares(group: Group) -> bool | None:
    if group.refusal is not None:
        return False if group.refusal.code in JUDGED else None
    return None if group.unsettled else group.group.message_model != BROADCASTING


def _lag(group: Group) -> dict[str, Any]:
    """`lag` and `lag_at_least`."""
    measured = GROUP_MEASURES["lag"](group)
    is_any = any(state.lag is not None for state in group.group.queues.values())
    return {
        "lag": measured.value if measured.missing is None else None,
        "lag_at_least": measured.value if is_any else None,
    }


def _owned(group: Group, owned: Ownership | None) -> dict[str, Any]:
    """The figures of owners; where some owners are unknown, the counts are lower bounds."""
    if owned is None and not group.shares:
        return {}
    faults = group.faults
    if faults.basis is None:
        return {"owners_unknown": faults.unknown}
    whole = owned.spread if owned is not None and not owned.unknown else None
    unassigned, duplicate_owners = len(faults.unassigned), len(faults.duplicate_owners)
    return {
        "unassigned": unassigned if whole is not None else unassigned or None,
        "duplicate_owners": duplicate_owners if whole is not None else duplicate_owners or None,
        "owners_unknown": faults.unknown,
        "basis": faults.basis,
        "idle": None if whole is None else whole.idle,
        "imbalance": None if whole is None else whole.imbalance,
    }


def _strategies(group: Group) -> tuple[tuple[str, ...], Origin | None]:
    if not group.shares:
        return (), None
    found = known(lambda: group.strategy)
    if found is not None:
        return found.run_by_members or (found.strategy,), found.origin
    reported = tuple(sorted(set(reported_strategies(group.group).values())))
    return reported, "reported" if reported else None


def _status(findings: Sequence[GroupFinding], group: Group, owned: Ownership | None) -> Status:
    """Without a grave finding the owners decide: what is odd about them and no fault yet is unknown."""
    worst = [each.severity for each in findings if each.code != "no-consumer-online" or each.severity == ERROR]
    if ERROR in worst:
        return "error"
    if WARNING in worst:
        return "warning"
    if group.listed == () and group.refusal is None:
        return "offline"
    if only_grpc(group.group):
        return "inOrder"
    if owned is None or owned.unknown or owned.basis == "assumed" or (group.shares and group.mismatches):
        return "unknown"
    return "unknown" if owned.spread.unassigned or owned.spread.duplicate_owners else "inOrder"
