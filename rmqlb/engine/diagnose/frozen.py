"""The rule for consumers whose process stands still, although they are connected."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_CONSUMERS, AnotherLookNeeded, GroupEvidence
from rmqlb.engine.diagnose.reports import HELD_MS, SHOWN_CONSUMERS, Doubts, one_topic
from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.snapshot import Unread
from rmqlb.model.words import counted


class _Frozen(Struct, frozen=True):
    """A consumer that does not answer, its predicted queues with messages, and for how long none of them is read."""

    client_id: str
    queues: tuple[MessageQueue, ...]
    stood_ms: int
    reason: str


def frozen_consumer(case: Case) -> Iterator[GroupFinding]:
    """A broker lists a consumer that does not answer, and none of its predicted queues is read."""
    evidence = case.evidence
    evidence.must_share()
    doubts, found = Doubts(), list[_Frozen]()
    for client_id in sort_client_ids(
        i for i in evidence.processes if i not in evidence.group.reports and i not in evidence.ghosts
    ):
        try:
            frozen = _frozen(case, client_id)
        except DataError as doubt:
            doubts.add(doubt)
        else:
            if frozen is not None:
                found.append(frozen)
    if found:
        queues = tuple(sort_queues({queue for each in found for queue in each.queues}))
        ids = tuple(each.client_id for each in found)
        yield GroupFinding(
            "frozen-consumer",
            ERROR,
            evidence.group.group,
            one_topic(queues),
            queues,
            ids,
            tuple(fact for each in found[:SHOWN_CONSUMERS] for fact in _facts(evidence, each)),
            f"{counted(len(ids), 'consumer')} connected and not running: {counted(len(queues), 'queue')} not read; "
            f"{evidence.unread_in(queues)}.",
            f"Look at the process of {ids[0]}: garbage collection, a debugger, a stopped or starved container. "
            "A restart gives its queues to the others.",
        )
    try:
        evidence.must_be_all_lists()
    except DataError as doubt:
        doubts.add(doubt)
    doubts.settle()


def _frozen(case: Case, client_id: str) -> _Frozen | None:
    """What shows that the consumer stands still; None when its queues are read (raises DataError)."""
    evidence = case.evidence
    unread = _unanswered(evidence, client_id)
    queues = _predicted(case, client_id)
    looks = [
        (at, look)
        for at, look in zip(evidence.read_at, evidence.looks, strict=True)
        if client_id in (look.client_ids or ()) and client_id not in look.reports
    ]
    stood: list[MessageQueue] = []
    for queue in queues:
        states = [look.queues.get(queue) for _, look in looks]
        offsets = [None if state is None else state.consumer_offset for state in states]
        if None in offsets:
            raise DataError(
                f"how far the group is in the queues predicted for {client_id} is unknown",
                hint=evidence.ask_offsets,
            )
        if len(set(offsets)) > 1:
            return None
        if all(state is not None and state.lag for state in states):
            stood.append(queue)
    span = looks[-1][0] - looks[0][0]
    if not stood:
        raise AnotherLookNeeded(f"{client_id} did not answer, and no message waits in the queues predicted for it")
    if span < HELD_MS:
        raise AnotherLookNeeded(f"{client_id} did not answer; whether its queues are read shows in a later look")
    return _Frozen(client_id, tuple(sort_queues(stood)), span, unread.reason)


def _unanswered(evidence: GroupEvidence, client_id: str) -> Unread:
    """The request that the consumer left unanswered (raises DataError when it was another reason)."""
    parts = [
        part
        for part in evidence.facts.snapshot.unread
        if (part.kind, part.name, part.detail) == ("member", evidence.group.group, client_id)
    ]
    if not parts:
        raise DataError(f"{client_id} did not report: whether it was asked is unknown", hint=ASK_CONSUMERS)
    if not parts[0].no_answer:
        raise DataError(f"{client_id} did not report: {parts[0].reason}", hint=ASK_CONSUMERS)
    return parts[0]


def _predicted(case: Case, client_id: str) -> tuple[MessageQueue, ...]:
    """The queues that no other consumer is observed to own, of those predicted for it (raises DataError)."""
    evidence = case.evidence
    if len(evidence.processes) > 1:
        subscribed = {*evidence.subscriptions.values(), *(frozenset(look.own_topics or ()) for look in evidence.looks)}
        if len(subscribed - {frozenset()}) > 1:
            raise DataError(
                f"{client_id} did not answer, as consumers with different subscriptions may not", hint=ASK_CONSUMERS
            )
        if not evidence.group.reports:
            raise DataError(
                "no consumer answered, as consumers with different subscriptions may not", hint=ASK_CONSUMERS
            )
        if evidence.facts.basis == "assumed":
            raise DataError("the strategy of its consumers is unknown", hint=ASK_CONSUMERS)
    try:
        predictions = case.possible(case.present)
    except RmqlbError as error:
        raise DataError(f"the queues of {client_id} cannot be predicted: {error.message}") from error
    if len(predictions) > 1:
        raise DataError(
            f"brokers list different consumers, so that the queues of {client_id} are unknown",
            hint="look again after two minutes, when brokers have forgotten consumers that left",
        )
    return tuple(
        queue
        for queue, owners in predictions[0].items()
        if client_id in owners and not set(evidence.observed.get(queue, ())) - {client_id}
    )


def _facts(evidence: GroupEvidence, frozen: _Frozen) -> Iterator[Evidence]:
    own = frozen.client_id
    for view in evidence.views:
        if own in view.client_ids:
            yield evidence.seen(f"consumers that {view.broker_addr or view.seen.where} lists", own, by=view.seen)
    yield evidence.seen(f"answer of {own} to the request for its running information", frozen.reason)
    yield evidence.seen(
        f"seconds in which no message of {counted(len(frozen.queues), 'queue')} predicted for {own} was consumed",
        frozen.stood_ms // 1000,
        threshold=HELD_MS // 1000,
    )
