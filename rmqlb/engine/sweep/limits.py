"""The limits of a policy on what is left of a group or topic.

What an outcome tells is taken from it; every other limit is measured as `check` measures it, on the snapshot as it is
without what is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from rmqlb.engine.check.policy_limits import GROUP_MEASURES, Measured, measure_topic
from rmqlb.engine.group import Given, Group
from rmqlb.engine.plan.changes import Changes, change_routes
from rmqlb.engine.sweep.effects import Effect
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.errors import RmqlbError
from rmqlb.model.group import ConsumerGroup, MemberView, QueueState
from rmqlb.model.policy import FORBIDDEN, Limit
from rmqlb.model.sweep import GroupOutcome

_OF_OUTCOME: Mapping[str, Callable[[GroupOutcome], float | None]] = {
    "imbalance": lambda o: o.imbalance,
    "idle": lambda o: o.idle,
    "unassigned": lambda o: o.unassigned,
    "duplicateOwners": lambda o: o.duplicate_owners,
    "withoutLock": lambda o: o.without_lock,
}
_UNKNOWN = {
    "imbalance": "no queue has an owner",
    "withoutLock": "whether its consumers consume in order, or a slave acts as the master, is not known",
}
_MOVED = {
    "movedOnConsumerLoss": lambda effect: effect.places and not effect.brokers,
    "movedOnBrokerLoss": lambda effect: effect.brokers and not effect.places,
}
"""Limit → whether a case is about it."""
OF_CASES = (*_OF_OUTCOME, *_MOVED, "minConsumers", "writableBrokers", "minBrokers", "missingMasters")
"""Limits that what is left decides, and nothing else that a snapshot tells."""


def measure(limit: Limit, cases: GroupCases, effect: Effect) -> Measured:
    """What the limit comes to without what is lost."""
    outcome = cases.outcome(effect)
    if limit.name == "minConsumers":
        return Measured(len(cases.atoms.client_ids) - len(effect.places))  # processes, as check counts them
    if limit.name in _OF_OUTCOME:
        value = _OF_OUTCOME[limit.name](outcome)
        return Measured(value, missing=_UNKNOWN[limit.name] if value is None else None)
    if limit.name in _MOVED:
        if not _MOVED[limit.name](effect):
            return Measured(apart="it is about other losses")
        return Measured(outcome.moved / outcome.queues if outcome.queues else 0.0)
    try:
        facts = facts_without(cases, effect)
        if limit.name == FORBIDDEN:
            from rmqlb.engine.check.policy_limits import forbidden_findings

            return forbidden_findings(limit, facts)
        return GROUP_MEASURES[limit.name](facts)
    except RmqlbError as error:
        return Measured(missing=error.message)


def measure_topic_without(limit: Limit, cases: TopicCases, effect: Effect) -> Measured:
    """What the limit of a topic comes to without what is lost."""
    if limit.name == "writableBrokers":
        return Measured(cases.outcome(effect).writable_brokers)
    return measure_topic(limit.name, replace(cases.sighting, route=cases.route_without(effect)))


def facts_without(cases: GroupCases, effect: Effect) -> Group:
    """What a snapshot would tell of the group once its consumers have rebalanced without what is lost.

    What consumers reported of their queues is of the time before, and left out.
    """
    facts, owners = cases.facts, cases.owners_without(effect)
    changed = change_routes(cases.routes_without(effect), Changes(remove_masters=effect.masters))
    routes = {route.topic: route for route in changed}
    queues = {
        queue: replace(facts.group.queues.get(queue, QueueState()), owners=frozenset(ids))
        for queue, ids in owners.items()
    }
    group = replace(_without(facts.group, cases.members_without(effect).client_ids), queues=queues)
    sightings = {
        topic: replace(sighting, route=routes[topic]) if topic in routes else sighting
        for topic, sighting in facts.snapshot.routes.items()
    }
    snapshot = replace(facts.snapshot, routes=sightings, groups={group.group: group})
    assume = facts.given.assume or cases.members.group_strategy
    return Group(snapshot, facts.name, facts.settings, Given(assume=assume), facts.gaps)


def _without(group: ConsumerGroup, left: tuple[str, ...]) -> ConsumerGroup:
    """The group with those consumers only; one that has lost all of them is still known to brokers."""
    views = tuple(_view(view, left) for view in group.views or ())
    reports = {
        client_id: report if report.evidence is None else replace(report, evidence=None)
        for client_id, report in group.reports.items()
        if client_id in left
    }
    return replace(group, views=views, reports=reports)


def _view(view: MemberView, left: tuple[str, ...]) -> MemberView:
    """Of a client ID as many connections as processes are left."""
    room: dict[str, int] = {}
    for client_id in left:
        room[client_id] = room.get(client_id, 0) + 1
    kept = []
    for connection in view.connections:
        if room.get(connection.client_id, 0) > 0:
            room[connection.client_id] -= 1
            kept.append(connection)
    return replace(view, connections=tuple(kept))
