"""Who is in a group, night by night: processes restart, join and leave; who stays keeps its id."""

from __future__ import annotations

from random import Random

import msgspec
from msgspec.structs import replace

from rmqlb.pipeline.made_up import names
from rmqlb.pipeline.made_up.draw import FleetGroup
from rmqlb.pipeline.made_up.faults import Fault
from rmqlb.pipeline.made_up.shape import MOST_MEMBERS, STRATEGIES

_VERSIONS = ("V4_9_7", "V5_1_4", "V5_5_0")


class FleetMember(msgspec.Struct, frozen=True):
    """A process of a group.

    Attributes:
        client_id: its id.
        ip: its machine.
        port: of its connection.
        strategy: the one it runs.
        version: of its client.
    """

    client_id: str
    ip: str
    port: int
    strategy: str
    version: str


def first_members(random: Random, group: FleetGroup, cluster: int) -> list[FleetMember]:
    """The members of the first night, the longest-serving first."""
    version = random.choice(_VERSIONS)
    if group.fault is Fault.NO_MEMBERS:
        return []
    members = [_member(random, group, cluster, place, version) for place in range(group.size)]
    return _with_fault(members, group)


def next_members(
    random: Random, members: list[FleetMember], group: FleetGroup, cluster: int, churn: float
) -> list[FleetMember]:
    """The members a night later.

    Args:
        random: the night's.
        members: the night before.
        group: the group.
        cluster: its cluster's number.
        churn: how likely it is that anything changes.
    """
    if not members or random.random() >= churn or group.fault is Fault.IDLE_MEMBERS:
        return members
    event = random.choices(("restart", "join", "leave", "deploy"), (5, 2, 2, 1))[0]
    changed = list(members)
    fewest = 1 if group.fault is None else 3
    if event == "deploy":
        changed = [_restarted(random, member, group) for member in members]
    elif event == "join" and len(members) < MOST_MEMBERS:
        changed.append(_member(random, group, cluster, random.randrange(1000, 10**6), members[0].version))
    elif event == "leave" and len(members) > fewest:
        del changed[random.randrange(fewest, len(changed))]
    else:
        place = random.randrange(len(changed))
        changed[place] = _restarted(random, changed[place], group)
    return _with_fault(changed, group)


def present(members: list[FleetMember], group: FleetGroup, night: int) -> list[FleetMember]:
    """Those that are there on a night (from 0): of a flapping group the second is away every other night."""
    return members[:1] + members[2:] if group.fault is Fault.FLAPPING and night % 2 else members


def _member(random: Random, group: FleetGroup, cluster: int, place: int, version: str) -> FleetMember:
    ip = names.address(random, "10.244" if group.id_kind == "container" else f"10.{100 + cluster % 100}")
    mixed = group.fault is Fault.MIXED_STRATEGIES
    return FleetMember(
        client_id=_client_id(random, group, ip, place),
        ip=ip,
        port=random.randrange(32768, 61000),
        strategy=[*STRATEGIES][place % len(STRATEGIES)] if mixed else group.strategy,
        version=version,
    )


def _restarted(random: Random, member: FleetMember, group: FleetGroup) -> FleetMember:
    """The process anew: a container has another address then, a process another id, a named one neither."""
    if group.id_kind in ("named", "odd"):
        return replace(member, port=random.randrange(32768, 61000))
    ip = names.address(random, "10.244") if group.id_kind == "container" else member.ip
    return replace(member, client_id=_client_id(random, group, ip, 0), ip=ip, port=random.randrange(32768, 61000))


def _client_id(random: Random, group: FleetGroup, ip: str, place: int) -> str:
    if group.id_kind == "odd":
        return f"10.1.1.1@{names.odd_name(place, place)}"
    if group.id_kind == "named":
        return f"{ip}@{group.name}-{place}"
    if group.id_kind == "grpc":
        return names.grpc_id(random, group.name)
    return (names.container_id if group.id_kind == "container" else names.process_id)(random, ip)


def _with_fault(members: list[FleetMember], group: FleetGroup) -> list[FleetMember]:
    if group.fault is Fault.SHARED_ID:
        return [members[0], replace(members[1], client_id=members[0].client_id), *members[2:]]
    return members
