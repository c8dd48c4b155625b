"""A group as a source sees it on a night: members broker by broker, their reports, who holds what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import msgspec

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.model.group import (
    BROADCASTING,
    CLUSTERING,
    CONSUME_POP,
    RETRY_PREFIX,
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    QueueState,
    Seen,
)
from rmqlb.model.group_scenario import CONSUME_FROM_LAST_OFFSET
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.pipeline.made_up.draw import FleetGroup
from rmqlb.pipeline.made_up.faults import NOBODY, WITHOUT_OWNERS, WITHOUT_REPORTS, Fault, Owners, disturb, silent_member
from rmqlb.pipeline.made_up.members import FleetMember

_CLASSES = {name: java_class for java_class, name in JAVA_CLASSES.items()}
_FOREIGN_CLASS = "AllocateMessageQueueByWeight"
_UNKNOWN_OWNERS = frozenset({Fault.UNSEEN_MEMBERS, Fault.GRPC})
_UNLIKE_MEMBERS = frozenset({Fault.MIXED_STRATEGIES, Fault.MISSING_SUBSCRIPTION})
_SETTINGS = Settings()


class GroupLook(msgspec.Struct, frozen=True):
    """A group on a night.

    Attributes:
        group: the group.
        members: those that are there, the longest-serving first.
        names: its topics' names, in its own order.
        brokers: addresses that are asked for members.
        seen: where and when.
    """

    group: FleetGroup
    members: Sequence[FleetMember]
    names: Sequence[str]
    brokers: Sequence[str]
    seen: Seen

    @property
    def client_ids(self) -> tuple[str, ...]:
        """The members' ids, in the members' order."""
        return tuple(member.client_id for member in self.members)

    @property
    def topics(self) -> list[str]:
        """Everything the group subscribes to."""
        lost = [f"Retired-{self.group.name}"] if self.group.fault is Fault.LOST_TOPIC else []
        return sorted([f"{RETRY_PREFIX}{self.group.name}", *self.names, *lost])

    @property
    def lacking(self) -> tuple[str, str] | None:
        """The client id that does not subscribe to a topic, and the topic."""
        if self.group.fault is not Fault.MISSING_SUBSCRIPTION:
            return None
        return self.members[0].client_id, self.names[0]


def seen_group(look: GroupLook, queues: Mapping[MessageQueue, QueueState]) -> ConsumerGroup:
    """The group with these queues."""
    fault = look.group.fault
    known = fault is not Fault.NO_MEMBERS
    return ConsumerGroup(
        group=look.group.name,
        seen=look.seen,
        consume_type=(CONSUME_POP if fault is Fault.POP else "CONSUME_PASSIVELY") if known else None,
        message_model=(BROADCASTING if fault is Fault.BROADCASTING else CLUSTERING) if known else None,
        consume_from_where=CONSUME_FROM_LAST_OFFSET if known else None,
        views=None if fault is Fault.UNSEEN_MEMBERS else _views(look),
        topics=tuple(look.topics),
        queues={} if fault is Fault.BROADCASTING else queues,
        reports={} if fault in WITHOUT_REPORTS else _reports(look),
    )


def owners_of(route: TopicRouteData, queues: Sequence[MessageQueue], look: GroupLook) -> list[Owners]:
    """Who holds each of the route's subscribe queues, if all goes well.

    Args:
        route: a topic's.
        queues: its subscribe queues, made once for all groups.
        look: the group.
    """
    fault = look.group.fault
    if fault in WITHOUT_OWNERS:
        return [NOBODY] * len(queues)
    if fault in _UNKNOWN_OWNERS:
        return [None] * len(queues)
    if fault in _UNLIKE_MEMBERS:
        return _owners_of_unlike_members(route, look)
    client_ids = sort_client_ids(look.client_ids)
    strategy = prepare(look.group.strategy, queues, client_ids, _SETTINGS)
    alone = {client_id: frozenset((client_id,)) for client_id in client_ids}
    holders = {queue: its for client_id, its in alone.items() for queue in strategy.share(client_id)}
    return [holders.get(queue, NOBODY) for queue in queues]


def _owners_of_unlike_members(route: TopicRouteData, look: GroupLook) -> list[Owners]:
    mixed, lacking = look.group.fault is Fault.MIXED_STRATEGIES, look.lacking
    members = Members(
        client_ids=look.client_ids,
        strategy=look.group.strategy,
        strategy_of={member.client_id: member.strategy for member in look.members} if mixed else {},
        subscribed={lacking[0]: frozenset(look.topics) - {lacking[1]}} if lacking else {},
    )
    return [frozenset(its) for its in assign(route, members).owners.values()]


def owners_seen(owners: list[Owners], look: GroupLook, random: Random) -> list[Owners]:
    """Who is seen to hold them, with what is wrong in the group."""
    return disturb(owners, look.group.fault, list(look.client_ids), random)


def _views(look: GroupLook) -> tuple[MemberView, ...]:
    if not look.members:
        return ()
    connections = tuple(
        Connection(member.client_id, f"{member.ip}:{member.port}", "JAVA", member.version) for member in look.members
    )
    split = look.group.fault is Fault.SPLIT_VIEW
    return tuple(
        MemberView(connections[:-1] if split and place else connections, look.seen, address)
        for place, address in enumerate(look.brokers)
    )


def _reports(look: GroupLook) -> dict[str, MemberReport]:
    topics, lacking, fault = frozenset(look.topics), look.lacking, look.group.fault
    reports = {}
    for member in look.members:
        its = topics - {lacking[1]} if lacking and lacking[0] == member.client_id else topics
        java_class = _FOREIGN_CLASS if fault is Fault.FOREIGN_STRATEGY else _CLASSES[member.strategy]
        reports[member.client_id] = MemberReport(
            member.client_id, its, None if fault is Fault.POP else java_class, fault is not Fault.POP
        )
    if fault is Fault.SILENT_MEMBER:
        del reports[silent_member(list(look.client_ids))]
    return reports
