"""Every loss on groups that a caller gives, instead of those of a snapshot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from math import isfinite
from typing import Annotated

from msgspec import Meta

from rmqlb.engine.allocate import check_settings
from rmqlb.engine.arguments import check_routes, require
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.group import Given, Group
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.limits import OF_CASES
from rmqlb.engine.sweep.losses import ZoneRule
from rmqlb.engine.sweep.sweep import SweepRequest, sweep_cases
from rmqlb.engine.sweep.topic_cases import topic_cases
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import BROADCASTING, ConsumerGroup, Seen
from rmqlb.model.policy import GROUP, LIMITS, TOPIC, About, Limit, Policy, Rule
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, suggestion
from rmqlb.model.sweep import LOSS_KINDS, FailureSweep, LossKind, Unjudged

DEFAULT_LIMITS: Mapping[str, float] = {
    "unassigned": 0,
    "duplicateOwners": 0,
    "minConsumers": 1,
    "withoutLock": 0,
    "imbalance": 2,
    "writableBrokers": 1,
}
"""Those of the command's built-in policy."""
_HERE = Seen("given", None)
_NO_DAY = date.min  # there is no waiver to look at


def sweep_failures(
    groups: Mapping[str, Members],
    routes: Sequence[TopicRouteData],
    *,
    limits: Mapping[str, float] = DEFAULT_LIMITS,
    kinds: Sequence[LossKind] = LOSS_KINDS,
    zones: Mapping[str, Sequence[str]] | None = None,
    at_once: int = 2,
    orderly: Collection[str] = (),
) -> FailureSweep:
    """Every loss of consumers, brokers, masters, hosts and zones, alone and in pairs: the least that break a limit.

    Args:
        groups: name → its consumers; they subscribe to all topics, or to those that `subscribed` names.
        routes: the topics.
        limits: limits of policies of groups and topics, with the most that is allowed (of `min…` and
            `writableBrokers` the least; shares are 0 to 1).
        kinds: what is lost: consumer, broker, master, host, zone.
        zones: zone → patterns of addresses, broker names and client IDs, or networks; without them brokers' zoneName.
        at_once: how many losses come together at most, 1 or 2.
        orderly: groups that consume in order.

    Raises:
        UsageError: an argument is not what it can be, a zone has nothing in it, or there are too many cases.
    """
    _check(groups, limits, kinds, zones or {}, at_once, orderly)
    check_routes(routes)
    request = SweepRequest(
        tuple(groups),
        tuple(route.topic for route in routes),
        kinds=kinds,
        zones=[ZoneRule(zone, pattern) for zone, patterns in (zones or {}).items() for pattern in patterns],
        at_once=at_once,
    )
    unjudged: list[Unjudged] = []
    sightings = {route.topic: RouteSighting(route, _HERE) for route in routes}
    of_groups, of_topics = [], []
    for name, members in groups.items():
        try:
            of_groups.append(_group_cases(name, members, sightings, orderly=name in orderly))
        except DataError as error:
            unjudged.append(Unjudged(GROUP, name, None, error.message))
    for topic, sighting in sightings.items():
        try:
            of_topics.append(topic_cases(sighting))
        except DataError as error:
            unjudged.append(Unjudged(TOPIC, topic, None, error.message))
    return sweep_cases(of_groups, of_topics, _policy(limits), request, _NO_DAY, unjudged)[0]


def _check(
    groups: Mapping[str, Members],
    limits: Mapping[str, float],
    kinds: object,
    zones: Mapping[str, Sequence[str]],
    at_once: object,
    orderly: Collection[str],
) -> None:
    require(groups, Mapping[str, Members], "groups")
    require(limits, Mapping[str, float], "limits")
    require(kinds, Sequence[LossKind], "kinds")
    require(zones, Mapping[str, Sequence[str]], "zones")
    require(at_once, Annotated[int, Meta(ge=1, le=2)], "at_once")
    require(orderly, Collection[str], "orderly")
    for members in groups.values():
        check_settings(members.settings)
    if empty := [zone for zone, patterns in zones.items() if not patterns]:
        raise UsageError(f"zone {empty[0]}: it has no pattern", code="unknown-zone")
    if unknown := [name for name in orderly if name not in groups]:
        raise UsageError(
            f"orderly: {unknown[0]} is not among the groups", hint=suggestion("groups", unknown[0], groups)
        )
    for name, bound in limits.items():
        if name not in OF_CASES:
            raise UsageError(f"limits: there is no limit {name} here", hint=suggestion("limits", name, OF_CASES))
        if not (isfinite(bound) and bound >= 0):
            raise UsageError(f"limits[{name!r}] is {bound}, not a number from 0")


def _group_cases(name: str, members: Members, sightings: Mapping[str, RouteSighting], *, orderly: bool) -> GroupCases:
    subscribed = {topic for topics in members.subscribed.values() for topic in topics}
    topics = tuple(topic for topic in sightings if not subscribed or topic in subscribed)
    group = ConsumerGroup(name, _HERE, message_model=BROADCASTING if members.broadcasting else None, topics=topics)
    snapshot = ClusterSnapshot("given", "given", routes=sightings, groups={name: group})
    given = Given(client_ids=members.client_ids, topics=topics, members=members)
    facts = Group(snapshot, name, given=given)
    if members.broadcasting:
        raise DataError(facts.apart or "")
    return GroupCases(facts, orderly=orderly)


def _policy(limits: Mapping[str, float]) -> Policy:
    return Policy("limits", tuple(rule for about in (GROUP, TOPIC) if (rule := _rule(about, limits)).limits))


def _rule(about: About, limits: Mapping[str, float]) -> Rule:
    own = tuple(Limit(name, bound) for name, bound in limits.items() if LIMITS[name].about == about)
    return Rule(f"{about}s", about, ("*",), own)
