"""The rule for a consumer that ended without unregistering, so that no other may take its queues yet."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.evidence import CONVERGES_MS, GroupEvidence
from rmqlb.engine.diagnose.reports import one_topic
from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import RmqlbError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, named

LOCK_LASTS_MS = 60_000
"""A broker gives a queue to another client once its lock is older than this (`RebalanceLockManager`)."""
_REBALANCES_MS = 20_000


def consumer_gone(case: Case) -> Iterator[GroupFinding]:
    """A consumer has left the lists of brokers, and its queues wait for new owners.

    A consumer that is killed unlocks nothing. The others are told at once, and each of them leaves out a queue whose
    lock it does not get (`RebalanceImpl.updateProcessQueueTableInRebalance`), until the broker's 60 s are over.
    """
    evidence = case.evidence
    evidence.must_share()
    waiting = tuple(sort_queues(q for q in evidence.queues if evidence.observed.get(q) == ()))
    if not waiting or case.explanation or case.present:
        return
    evidence.must_be_all_lists()
    left = _left(evidence)
    locked = _locked(case, waiting)
    queues = tuple(q for q in waiting if q in locked or any(q in its for its in left.values()))
    if not queues:
        return
    ids = tuple(sort_client_ids(client_id for client_id, its in left.items() if not its.isdisjoint(queues)))
    who = named(ids) if ids else "a consumer that ended"
    orderly = bool(locked)
    lasts = (LOCK_LASTS_MS + _REBALANCES_MS if orderly else CONVERGES_MS) // 1000
    why = f"{who} left without a word and keeps their locks" if orderly else f"{who} left the lists"
    yield GroupFinding(
        "consumer-gone",
        ERROR if evidence.lag(queues) else WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        ids,
        tuple(_facts(evidence, ids, queues, orderly=orderly)),
        f"{counted(len(queues), 'queue')} unassigned: {why}; others get them within {lasts} s; "
        f"{evidence.unread_in(queues)}.",
        f"Wait {lasts} s. Look at why the process of {who} ended: kill -9, out of memory, a lost host.",
    )


def _left(evidence: GroupEvidence) -> dict[str, frozenset[MessageQueue]]:
    """Consumer that earlier looks list and no broker now → the queues that it owned and that have no owner now."""
    found: dict[str, frozenset[MessageQueue]] = {}
    for look in evidence.earlier:
        for client_id in {*(look.client_ids or ())} - evidence.processes.keys():
            owned = {queue for queue, state in look.queues.items() if client_id in (state.owners or ())}
            free = {queue for queue in owned if evidence.observed.get(queue) == ()}
            found[client_id] = found.get(client_id, frozenset()) | free
    return {client_id: queues for client_id, queues in found.items() if queues}


def _locked(case: Case, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
    """The queues that an orderly consumer lacks although it is theirs by prediction, and has been for long enough."""
    evidence = case.evidence
    if evidence.is_younger_than(CONVERGES_MS) or _have_waited_ms(evidence, queues) > LOCK_LASTS_MS + _REBALANCES_MS:
        return ()
    try:
        (predicted,) = case.possible(())
    except (RmqlbError, ValueError):
        return ()
    others = {q: its for q, its in evidence.observed.items() if q not in queues and q in predicted}
    if any(its != predicted[q] for q, its in others.items()):
        return ()
    return tuple(q for q in queues if all(_is_orderly(evidence, i) for i in predicted.get(q, ())) and predicted.get(q))


def _have_waited_ms(evidence: GroupEvidence, queues: tuple[MessageQueue, ...]) -> int:
    """For how long the looks show these queues without an owner."""
    since = evidence.read_at[-1]
    for look, at in zip(reversed(evidence.looks), reversed(evidence.read_at), strict=True):
        if any(queue not in look.queues or look.queues[queue].owners != frozenset() for queue in queues):
            break
        since = at
    return evidence.read_at[-1] - since


def _is_orderly(evidence: GroupEvidence, client_id: str) -> bool:
    report = evidence.group.reports.get(client_id)
    return report is not None and report.evidence is not None and report.evidence.orderly is True


def _facts(
    evidence: GroupEvidence, ids: tuple[str, ...], queues: tuple[MessageQueue, ...], *, orderly: bool
) -> Iterator[Evidence]:
    for client_id in ids:
        last = next(look for look in reversed(evidence.earlier) if client_id in (look.client_ids or ()))
        at = "at an earlier look" if last.seen.at is None else utc_text(last.seen.at)
        yield evidence.seen(f"brokers listed {client_id} last", at, by=last.seen)
    yield evidence.seen("queues without an owner", len(queues), threshold=1)
    if orderly:
        yield evidence.seen("their owners by prediction", "orderly consumers, which do not get the locks")
