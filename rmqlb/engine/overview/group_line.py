"""A group in one line: what is known of it, and what is odd about it, the worst first.

Every figure is one that a limit of `check` or a plan has too; what is not known is None, and a finding says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.balance import spread
from rmqlb.engine.assignment.consumers import (
    broadcasting_finding,
    rebalanced_members,
    reported_strategies,
    unusual_findings,
)
from rmqlb.engine.assignment.detect import DEFAULT, mismatch_findings, mismatches
from rmqlb.engine.assignment.owner_findings import owner_findings
from rmqlb.engine.assignment.pop_and_proxy import is_surely_offline, must_be_listed, only_grpc
from rmqlb.engine.check.group_facts import GroupFacts, Ownership
from rmqlb.engine.check.policy_limits import GROUP_MEASURES
from rmqlb.engine.diagnose.diagnose import findings_by
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.rules import ONE_LOOK, RULES
from rmqlb.engine.route_findings import sighting_findings, unreadable_findings
from rmqlb.engine.source_findings import no_route_findings, unread_findings
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diagnosis import GroupFinding, group_finding
from rmqlb.model.finding import ERROR, INFO, SEVERITIES, WARNING, Finding
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, ConsumerGroup
from rmqlb.model.groups import GroupLine, Status
from rmqlb.model.plan import Origin
from rmqlb.model.snapshot import ClusterSnapshot, Unread

Known = TypeVar("Known")

_JUDGED = frozenset(rule.code for rule in RULES)
_OWNERS = ("unassigned-queues", "duplicate-owners", "mismatch")


def assumed_strategy(group: ConsumerGroup) -> str | None:
    """What consumers run that do not report it: the default; of those that pull it is not known that they rebalance."""
    return None if group.consume_type == CONSUME_ACTIVELY else DEFAULT


def group_line(facts: GroupFacts, unread: Sequence[Unread]) -> GroupLine:
    """The group in numbers, with its findings.

    Args:
        unread: the parts of it that could not be read.
    """
    if facts.name not in facts.snapshot.groups:
        told = tuple(group_finding(finding, facts.name) for finding in unread_findings(unread))
        return GroupLine(facts.name, "warning", findings=told)
    group, owned = facts.group, known(lambda: ownership(facts))
    found = dict.fromkeys(_findings(facts, owned, unread))
    findings = tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
    differ = known(lambda: _mismatches(facts))
    strategies, origin = _strategies(facts)
    ids = facts.listed
    processes = Counter(ids or ())
    return GroupLine(
        group=facts.name,
        shares_queues=_shares(group),
        status=_status(findings, facts, owned, differ),
        topics=group.own_topics,
        message_model=group.message_model,
        consume_type=group.consume_type,
        consumers=None if ids is None else len(processes),
        processes=None if ids is None else len(ids),
        queues=_queues(group, facts.snapshot),
        strategies=strategies,
        strategy_origin=origin,
        duplicate_client_ids=None if ids is None else sum(number > 1 for number in processes.values()),
        mismatches=differ,
        findings=findings,
        **_lag(facts),
        **_owned(facts, owned),
    )


def known(ask: Callable[[], Known]) -> Known | None:
    """What is asked for; None where something that it needs is not known, or RocketMQ's clients would throw."""
    try:
        return ask()
    except RmqlbError:
        return None


def refusal(group: ConsumerGroup) -> DataError | None:
    """Why no consumer of the group owns a queue, or none is known; None where they share the queues."""
    try:
        must_be_listed(group)
        rebalanced_members(group, broadcasting_too=True)
    except DataError as error:
        return error
    return None


def _queues(group: ConsumerGroup, snapshot: ClusterSnapshot) -> int | None:
    topics = group.own_topics
    if topics is None or any(topic not in snapshot.routes for topic in topics):
        return None
    return sum(len(snapshot.routes[topic].route.subscribe_queues()) for topic in topics)


def ownership(facts: GroupFacts) -> Ownership | None:
    """Who owns the queues; None where no consumer does, and DataError where it is not known."""
    group, ids = facts.group, facts.group.client_ids
    if refusal(group) is not None:
        return None
    if ids:
        return everybody(facts) if group.message_model == BROADCASTING else facts.ownership
    if not is_surely_offline(group):
        raise DataError("no consumer is visible, and there may be some behind a Proxy")
    nobody = {queue: () for route in facts.routes for queue in route.subscribe_queues()}
    return Ownership(nobody, "observed", spread(nobody, ()))


def everybody(facts: GroupFacts) -> Ownership:
    """BROADCASTING: each consumer owns all queues of what it subscribes to."""
    members = Members(facts.client_ids, DEFAULT, facts.settings, subscribed=facts.subscribed, broadcasting=True)
    owners = owners_at_rest(facts.routes, members)
    return Ownership(owners, "predicted", spread(owners, members.client_ids, broadcasting=True))


def shares_queues(facts: GroupFacts) -> bool:
    """Its consumers share the queues among themselves."""
    group = facts.group
    return bool(group.client_ids) and group.message_model != BROADCASTING and refusal(group) is None


def _shares(group: ConsumerGroup) -> bool | None:
    if (error := refusal(group)) is not None:
        return False if error.code in _JUDGED else None
    return group.message_model != BROADCASTING


def _mismatches(facts: GroupFacts) -> int | None:
    if not shares_queues(facts) or not facts.seen_owners:
        return None
    return len(mismatches(facts.predicted[0], facts.group.queues))


def _lag(facts: GroupFacts) -> dict[str, Any]:
    """`lag` and `lag_at_least`."""
    measured = GROUP_MEASURES["lag"](facts)
    is_any = any(state.lag is not None for state in facts.group.queues.values())
    return {
        "lag": measured.value if measured.missing is None else None,
        "lag_at_least": measured.value if is_any else None,
    }


def _owned(facts: GroupFacts, owned: Ownership | None) -> dict[str, Any]:
    """The figures of owners; where not all are known, those that are observed and bad are certain."""
    if owned is not None:
        s = owned.spread
        return {
            "unassigned": s.unassigned,
            "duplicate_owners": s.duplicate_owners,
            "idle": s.idle,
            "basis": owned.basis,
            "imbalance": s.imbalance,
        }
    if not shares_queues(facts):
        return {}
    unassigned, several = (GROUP_MEASURES[name](facts).value or None for name in ("unassigned", "duplicateOwners"))
    return {
        "unassigned": unassigned,
        "duplicate_owners": several,
        "basis": "observed" if unassigned or several else None,
    }


def _strategies(facts: GroupFacts) -> tuple[tuple[str, ...], Origin | None]:
    if not shares_queues(facts):
        return (), None
    found = known(lambda: facts.detected)
    if found is not None:
        return found.run_by_members or (found.strategy,), found.origin
    reported = tuple(sorted(set(reported_strategies(facts.group).values())))
    return reported, "reported" if reported else None


def _status(findings: Sequence[GroupFinding], facts: GroupFacts, owned: Ownership | None, differ: int | None) -> Status:
    """Without a grave finding the owners decide: what is odd about them and no fault yet is unknown."""
    worst = [each.severity for each in findings if each.code != "no-consumer-online" or each.severity == ERROR]
    if ERROR in worst:
        return "error"
    if WARNING in worst:
        return "warning"
    if facts.listed == () and refusal(facts.group) is None:
        return "offline"
    if only_grpc(facts.group):
        return "inOrder"
    if owned is None or owned.basis == "assumed" or differ:
        return "unknown"
    return "unknown" if owned.spread.unassigned or owned.spread.duplicate_owners else "inOrder"


# -- findings ---------------------------------------------------------------------------------------------------------


def _findings(facts: GroupFacts, owned: Ownership | None, unread: Sequence[Unread]) -> Iterator[GroupFinding]:
    """What a diagnosis finds, causes first, and what is odd besides."""
    found = findings_by(ONE_LOOK, GroupEvidence(facts))
    others = [*unread_findings(unread), *_others(facts)]
    if shares_queues(facts) and not any(finding.explains or finding.code in _OWNERS for finding in found):
        others += known(lambda: [*_unexplained(facts, owned)]) or []
    yield from found
    yield from (group_finding(finding, facts.name) for finding in others)


def _unexplained(facts: GroupFacts, owned: Ownership | None) -> Iterator[Finding]:
    """What is certain of the owners, where too little is known to say why (raises RmqlbError)."""
    states = facts.group.queues
    if owned is not None and owned.basis != "observed":
        yield from owner_findings(owned.owners, f"group {facts.name}", facts.name, owned.basis, states)
    members, basis = facts.members
    if basis != "assumed":
        yield from mismatch_findings(facts.predicted[0], members.name, states)


def _others(facts: GroupFacts) -> Iterator[Finding]:
    """What no rule of a diagnosis is about."""
    group, topics = facts.group, facts.group.own_topics or ()
    if (error := refusal(group)) is not None and error.code not in _JUDGED:
        yield _told(error)
    elif group.message_model == BROADCASTING:
        yield broadcasting_finding(f"group {facts.name}", facts.name)
    yield from unusual_findings(group)
    yield from no_route_findings(facts.name, topics, facts.snapshot)
    for sighting in (facts.snapshot.routes[topic] for topic in topics if topic in facts.snapshot.routes):
        yield from sighting_findings(sighting)
        yield from unreadable_findings(sighting.route)
    if shares_queues(facts):
        yield from _of_strategy(facts)


def _told(error: RmqlbError) -> Finding:
    return Finding(error.code, error.message, error.group, INFO)


def _of_strategy(facts: GroupFacts) -> Iterator[Finding]:
    """How the strategy is known, or why its owners cannot be predicted."""
    try:
        yield from (finding for finding in facts.detected.findings if finding.code not in _JUDGED)
        _ = facts.predicted
    except RmqlbError as error:
        if error.code != DataError.code:  # another finding says what is missing
            yield _told(error)
