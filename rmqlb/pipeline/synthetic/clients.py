"""Groups whose consumers are not, or not all, Java's that deal out queues among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import CPP, GO
from rmqlb.model.group import ConsumerGroup, MemberReport
from rmqlb.pipeline.synthetic.shape import FleetShape, chance

if TYPE_CHECKING:
    from rmqlb.pipeline.synthetic.draw import FleetGroup

_SHARES = (-1, 1, 2, 0)
"""`popShareQueueNum`, which brokers have at -1 where nothing is set."""


class Clients(StrEnum):
    """What a group's consumers are; those of healthy groups that are not Java's go round in this order."""

    JAVA = "java"
    MIXED = "java-and-go"
    POP = "pop"
    GO = "go"
    GRPC = "grpc"
    """Behind a Proxy: no broker lists them."""
    CPP = "cpp"


def with_other_clients(
    shape: FleetShape, number: int, groups: tuple[FleetGroup, ...], before: int
) -> tuple[FleetGroup, ...]:
    """The groups of the so many-th cluster, a share of the healthy ones with other clients; `before` are in others."""
    first = int(before * shape.other_clients)
    wanted = int((before + len(groups)) * shape.other_clients) - first
    healthy = [place for place, group in enumerate(groups) if group.fault is None]
    chosen = chance(shape.seed, number, "clients").sample(healthy, min(wanted, len(healthy)))
    kinds = [kind for kind in Clients if kind is not Clients.JAVA]
    changed = list(groups)
    for nth, place in zip(count(first), chosen, strict=False):
        changed[place] = _with(groups[place], kinds[nth % len(kinds)])
    return tuple(changed)


def _with(group: FleetGroup, clients: Clients) -> FleetGroup:
    strategy = "AVG" if clients in (Clients.POP, Clients.CPP) else group.strategy
    return replace(group, clients=clients, strategy=strategy, size=max(group.size, 2))


def language_of(clients: Clients, place: int) -> tuple[str, str | None]:
    """The language of a group's so many-th process, and its version where the library reports a fixed one."""
    if clients is Clients.GO or (clients is Clients.MIXED and place % 2):
        return GO.languages[0], GO.reports[-1]
    if clients is Clients.CPP:
        return CPP.languages[0], CPP.reports[-1]
    return "JAVA", "V5_5_0" if clients is Clients.POP else None


def sdk_of(language: str) -> str:
    """The client library behind the language of a generated process."""
    return next((sdk.name for sdk in (GO, CPP) if language in sdk.languages), "java")


def seen_as(group: ConsumerGroup, clients: Clients, languages: Sequence[str], nth: int) -> ConsumerGroup:
    """A group as brokers and its consumers tell of it; `languages` are those of its reports, in their order."""
    reports = {
        client_id: report if language == "JAVA" else MemberReport(client_id, report.topics)
        for language, (client_id, report) in zip(languages, group.reports.items(), strict=True)
    }
    if clients is Clients.POP:
        topics = list(group.own_topics or ())
        return replace(
            group,
            reports={i: replace(report, client_rebalance=False) for i, report in reports.items()},
            request_modes=dict.fromkeys(topics, ("POP",)),
            pop_share_queue_nums=dict.fromkeys(topics, (_SHARES[nth % len(_SHARES)],)),
        )
    if clients is Clients.GRPC:
        views = tuple(replace(view, connections=()) for view in group.views or ())
        return replace(group, views=views, reports={}, polling_num=1 + nth % 8)
    return replace(group, reports=reports)


def is_owned(clients: Clients) -> bool:
    """Whether queues of such a group have owners that consumers can report."""
    return clients not in (Clients.POP, Clients.GRPC)
