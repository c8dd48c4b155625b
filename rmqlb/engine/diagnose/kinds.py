"""Rules for groups whose queues no listed consumer owns: nobody is online, a Proxy is between, or POP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.engine.assignment.consumers import ask_proxy, only_grpc, popped_topics
from rmqlb.engine.assignment.consumers import behind_proxy as proxy_evidence
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import CONSUME_POP, ConsumerGroup, is_grpc
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.words import messages


def no_consumer_online(case: Hypotheses) -> Iterator[GroupFinding]:
    """All brokers answered, and all Proxies that are known, and none lists a consumer."""
    evidence = case.evidence
    if not _is_offline(evidence):
        return
    if proxy_evidence(evidence.group) is not None:
        raise DoesNotApply("its consumers are probably behind a Proxy, which brokers do not list")
    states = evidence.group.without_foreign_offsets.queues
    waiting = evidence.lag(tuple(states))
    all_read = bool(states) and all(state.lag == 0 for state in states.values())
    proxies = evidence.group.proxies or ()
    unless = "" if proxies else ", unless through a Proxy, whose consumers are not visible here"
    yield GroupFinding(
        "no-consumer-online",
        ERROR if waiting else INFO if all_read else WARNING,
        evidence.group.group,
        evidence=(
            evidence.seen("consumers that brokers list", 0),
            *(evidence.seen(f"consumers that {view.seen.where} lists", 0, by=view.seen) for view in proxies),
        ),
        consequence=f"No queue is read{unless}" + (f"; {messages(waiting)} unread." if waiting else "."),
        remedy="Start a consumer." if proxies else f"Start a consumer; if it has some, {ask_proxy(evidence.group)}.",
    )


def behind_proxy(case: Hypotheses) -> Iterator[GroupFinding]:
    """Clients of a Proxy (gRPC), which gives them messages one by one."""
    evidence, group = case.evidence, case.evidence.group
    ids = sort_client_ids(filter(is_grpc, evidence.processes))
    shown = proxy_evidence(group)
    if ids or shown is not None:
        shares = bool(ids) and len(ids) < len(evidence.processes)
        yield GroupFinding(
            "behind-proxy",
            WARNING if shares else INFO,
            group.group,
            consumers=tuple(ids),
            evidence=_listed_grpc(evidence, ids)
            if ids
            else (evidence.seen("consumption without a listed consumer", shown or ""),),
            consequence=_consequence(group, ids, shares=shares),
            remedy=_remedy(group, visible=bool(ids), shares=shares),
        )
    elif not _is_offline(evidence):
        evidence.must_be_all_lists()
    elif group.polling_num is None and not group.proxies:
        raise DataError(
            "the number of receive requests that wait at brokers is unknown",
            hint="diagnose a live cluster over its NameServers (-s rocketmq://HOST:9876), or with --proxy HOST:8080",
        )


def _listed_grpc(evidence: GroupEvidence, ids: Sequence[str]) -> tuple[Evidence, ...]:
    """How many of them are visible, and where: at Proxies that were asked, or at brokers with a Proxy of their own."""
    proxies = [view for view in evidence.group.proxies or () if not {*ids}.isdisjoint(view.client_ids)]
    if not proxies:
        return (evidence.seen("client IDs of the form of gRPC clients", len(ids), threshold=1),)
    return tuple(
        evidence.seen(f"gRPC clients that {view.seen.where} lists", len({*ids} & {*view.client_ids}), by=view.seen)
        for view in proxies
    )


def _consequence(group: ConsumerGroup, ids: Sequence[str], *, shares: bool) -> str:
    if not ids:
        likely = "" if group.polling_num else "probably "
        return f"Its consumers are {likely}behind a Proxy, not visible here; none of them owns a queue."
    if not shares:
        return "A Proxy gives messages to these consumers; none of them owns a queue."
    if not {*ids}.isdisjoint(i for view in group.views or () for i in view.client_ids):
        return "Other consumers leave these a share, which stays unassigned."
    return "Consumers that own queues and consumers of a Proxy read the same queues."


def _remedy(group: ConsumerGroup, *, visible: bool, shares: bool) -> str:
    if shares:
        return "Do not mix gRPC clients and older ones in a group."
    return "Nothing is wrong." if visible else f"Nothing is known to be wrong; {ask_proxy(group)}."


def pop_consumption(case: Hypotheses) -> Iterator[GroupFinding]:
    """Topics of which several consumers take messages at once, so that no consumer owns a queue."""
    group = case.evidence.group
    if only_grpc(group) or proxy_evidence(group) is not None:
        raise DoesNotApply("its consumers are behind a Proxy, which takes messages by POP for them")
    topics = tuple(sorted(popped_topics(group)))
    if group.consume_type == CONSUME_POP or topics:
        fact = "topics in POP mode" if topics else "consume type"
        yield GroupFinding(
            "pop-consumption",
            INFO,
            group.group,
            topics[0] if len(topics) == 1 else None,
            evidence=(case.evidence.seen(fact, ", ".join(topics) or CONSUME_POP),),
            consequence="Several consumers take messages from one queue by POP; none of them owns it.",
            remedy="Nothing is wrong.",
        )
    elif group.consume_type is None:
        raise DataError(
            "how its consumers take messages is unknown", hint="diagnose while one of its consumers is online"
        )
    elif group.request_modes is None and any(
        i not in group.reports or group.reports[i].client_rebalance is None for i in case.evidence.processes
    ):
        raise DataError("whether brokers assign its queues is unknown", hint=ASK_CONSUMERS)


def _is_offline(evidence: GroupEvidence) -> bool:
    """No broker lists a consumer (raises DataError as long as one that was not asked may)."""
    if evidence.group.views is None:
        raise DataError("its consumers are unknown", hint="diagnose a live cluster, or a snapshot that lists them")
    if not evidence.group.client_ids and evidence.facts.untold is not None:
        raise DataError(evidence.facts.untold, hint=ASK_BROKERS)
    return not evidence.group.client_ids
