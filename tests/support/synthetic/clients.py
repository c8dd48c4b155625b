"""Groups whose consumers are not, or not all, Java's that share queues among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec.structs import replace

from rmqlb.engine.allocate.sdks import CPP, GO
from rmqlb.model.group import ConsumerGroup, MemberReport

_SHARES = (-1, 1, 2, 0)
"""`popShareQueueNum`, which brokers have at -1 where nothing is set."""


class Clients(StrEnum):
    """What a group's consumers are; healthy groups that are not Java's take the others in turn."""

    JAVA = "java"
    MIXED = "java-and-go"
    POP = "pop"
    GO = "go"
    GRPC = "grpc"
    """Behind a Proxy: no broker lists them."""
    CPP = "cpp"


def language_of(clients: Clients, place: int) -> tuple[str, str | None]:
    """The language of the process at this place of a group, and its version where the library reports a fixed one."""
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
