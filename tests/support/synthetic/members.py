"""Who is in a group, night by night: processes restart, join and leave; who stays keeps its id."""

from __future__ import annotations

from random import Random

import msgspec
from msgspec.structs import replace

from tests.support.synthetic import names
from tests.support.synthetic.clients import language_of
from tests.support.synthetic.draw import Fault, FleetGroup
from tests.support.synthetic.shape import MOST_CONSUMERS

_VERSIONS = ("V4_9_7", "V5_1_4", "V5_5_0")


class FleetMember(msgspec.Struct, frozen=True):
    """A process of a group: its client id, its machine, the port of its connection, its client's version, language."""

    client_id: str
    ip: str
    port: int
    version: str
    language: str = "JAVA"


def first_members(random: Random, group: FleetGroup, cluster: int) -> list[FleetMember]:
    """The members of the first night, the longest-serving first."""
    version = random.choice(_VERSIONS)
    return [_member(random, group, cluster, place, version) for place in range(group.size)]


def next_members(
    random: Random, members: list[FleetMember], group: FleetGroup, cluster: int, churn: float
) -> list[FleetMember]:
    """The members a night later; `churn` is how likely it is that anything changes."""
    if random.random() >= churn or group.fault is Fault.IDLE_CONSUMERS:
        return members
    event = random.choices(("restart", "join", "leave", "deploy"), (5, 2, 2, 1))[0]
    changed = list(members)
    fewest = 1 if group.fault is None else 3
    if event == "deploy":
        changed = [_restarted(random, member, group) for member in members]
    elif event == "join" and len(members) < MOST_CONSUMERS:
        changed.append(_member(random, group, cluster, random.randrange(1000, 10**6), members[0].version))
    elif event == "leave" and len(members) > fewest:
        del changed[random.randrange(fewest, len(changed))]
    else:
        place = random.randrange(len(changed))
        changed[place] = _restarted(random, changed[place], group)
    return changed


def present(members: list[FleetMember], group: FleetGroup, night: int) -> list[FleetMember]:
    """Those that are there on a night (from 0): of a flapping group the second is away every other night."""
    return members[:1] + members[2:] if group.fault is Fault.FLAPPING and night % 2 else members


def _member(random: Random, group: FleetGroup, cluster: int, place: int, version: str) -> FleetMember:
    ip = names.address(random, "10.244" if group.id_kind == "container" else f"10.{100 + cluster % 100}")
    language, its = language_of(group.clients, place)
    return FleetMember(
        _client_id(random, group, ip, place), ip, random.randrange(32768, 61000), its or version, language
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
    return names.client_id(random, ip, container=group.id_kind == "container")
