"""Rules for groups whose queues no listed consumer owns: nobody is online, a Proxy is between, or POP."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.assignment.consumers import is_grpc
from rmqlb.engine.assignment.pop_and_proxy import behind_proxy as proxy_evidence
from rmqlb.engine.assignment.pop_and_proxy import popped_topics
from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_CONSUMERS, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import CONSUME_POP
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.words import messages


def no_consumer_online(case: Hypotheses) -> Iterator[GroupFinding]:
    """All brokers answered, and none lists a consumer."""
    evidence = case.evidence
    if not _is_offline(evidence):
        return
    if proxy_evidence(evidence.group) is not None:
        raise DoesNotApply("its consumers are probably behind a Proxy, which brokers do not list")
    states = evidence.group.without_foreign_offsets.queues
    waiting = evidence.lag(tuple(states))
    all_read = bool(states) and all(state.lag == 0 for state in states.values())
    yield GroupFinding(
        "no-consumer-online",
        ERROR if waiting else INFO if all_read else WARNING,
        evidence.group.group,
        evidence=(evidence.seen("consumers that brokers list", 0, threshold=1),),
        consequence=f"No queue is read; {messages(waiting)} unread." if waiting else "No queue is read.",
        remedy="Start a consumer.",
    )


def behind_proxy(case: Hypotheses) -> Iterator[GroupFinding]:
    """Clients of a Proxy (gRPC), which gives them messages one by one."""
    evidence = case.evidence
    offline = _is_offline(evidence)
    ids = sort_client_ids(filter(is_grpc, evidence.processes))
    shown = proxy_evidence(evidence.group) if offline else None
    if ids or shown is not None:
        shares = len(ids) < len(evidence.processes)
        yield GroupFinding(
            "behind-proxy",
            WARNING if shares else INFO,
            evidence.group.group,
            consumers=tuple(ids),
            evidence=(
                evidence.seen("client IDs of the form of gRPC clients", len(ids), threshold=1)
                if ids
                else evidence.seen("consumption without a listed consumer", shown or ""),
            ),
            consequence="Other consumers leave these a share, which stays unassigned."
            if shares
            else "A Proxy gives messages to these consumers; none of them owns a queue.",
            remedy="Do not mix gRPC clients and older ones in a group." if shares else "Nothing is wrong.",
        )
    elif not offline:
        evidence.must_be_all_lists()
    elif evidence.group.polling_num is None:
        raise DataError(
            "the number of receive requests that wait at brokers is unknown",
            hint="diagnose a live cluster over its brokers (--nameserver)",
        )


def pop_consumption(case: Hypotheses) -> Iterator[GroupFinding]:
    """Topics of which several consumers take messages at once, so that no consumer owns a queue."""
    group = case.evidence.group
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
