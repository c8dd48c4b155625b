"""Which groups and topics a rule is about, those included that could not be read."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from rmqlb.model.policy import GROUP, Rule
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.system_names import is_system_group, is_system_topic


class Gaps(Struct, frozen=True):
    """What of a snapshot could not be read, by name."""

    topics: Mapping[str, str]  # topic → why its route was not read
    groups: Mapping[str, str]  # group → why it was not read
    members: Mapping[str, str]  # group → which broker did not tell its members, and why
    unlisted: str | None = None  # why there may be groups that nobody named; None when there are none


def gaps(snapshot: ClusterSnapshot) -> Gaps:
    """The gaps; what else could not be read leaves values unknown, and whoever needs those says so."""
    topics: dict[str, str] = {}
    groups: dict[str, str] = {}
    members: dict[str, str] = {}
    unlisted = None
    for part in snapshot.unread:
        if part.kind == "route":
            topics[part.name] = part.reason
        elif part.kind == "group":
            groups[part.name] = part.reason
        elif part.kind == "members":
            members[part.name] = f"broker {part.detail} did not tell its members: {part.reason}"
        elif part.kind == "groups":
            unlisted = f"broker {part.name} did not list its groups: {part.reason}"
    return Gaps(topics, groups, members, unlisted)


def subjects(rule: Rule, snapshot: ClusterSnapshot, missing: Gaps) -> list[str]:
    """The names that the rule takes, sorted; RocketMQ's own topics and groups are nobody's to keep within limits."""
    if rule.about == GROUP:
        return sorted(name for name in {*snapshot.groups, *missing.groups} if _takes(rule, name, is_system_group(name)))
    own = _own_topics(snapshot)
    names = {*snapshot.routes, *missing.topics}
    return sorted(name for name in names if _takes(rule, name, name in own or is_system_topic(name)))


def _takes(rule: Rule, name: str, is_system: bool) -> bool:
    return not is_system and rule.takes(name)


def _own_topics(snapshot: ClusterSnapshot) -> set[str]:
    """The topic of its own name that each broker and each cluster has (`TopicConfigManager`)."""
    brokers = [broker for sighting in snapshot.routes.values() for broker in sighting.route.broker_datas]
    return {name for broker in brokers for name in (broker.broker_name, broker.cluster)}
