"""Rules for queues that a consumer may not consume: those whose lock it lacks, and those that were taken away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, CONVERGES_MS, AnotherLookNeeded, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.reports import SHOWN_CONSUMERS, ConsumerReports, Doubts, gravest, named, of_each, one_topic
from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import BROADCASTING, ConsumerGroup
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.words import counted

LOCKED_MS = 30_000
"""An older lock is not used any more (`ProcessQueue.REBALANCE_LOCK_MAX_LIVE_TIME`); it is renewed every 20 s."""


class _Orderly(Struct, frozen=True):
    """A consumer that consumes in order, or not; and a queue without a lock."""

    is_orderly: bool
    lost: ProcessQueue | None = None


def lock_lost(case: Case) -> Iterator[GroupFinding]:
    """An orderly consumer has a queue without its lock, or two consumers have one lock."""
    evidence = case.evidence
    if evidence.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers need no locks")
    found, doubts = of_each(evidence, _locks)
    lost = [(consumer, each.lost) for consumer, each in found if each.lost is not None]
    twice = _locked_twice(evidence, doubts)
    queues = tuple(sort_queues({item.queue for _, item in lost} | twice.keys()))
    if queues:
        waiting = evidence.lag(queues)
        ids = {consumer.client_id for consumer, _ in lost}.union(*twice.values())
        young = evidence.is_younger_than(CONVERGES_MS)
        yield GroupFinding(
            "lock-lost",
            INFO if young else ERROR if waiting or twice else WARNING,
            evidence.group.group,
            one_topic(queues),
            queues,
            tuple(sort_client_ids(ids)),
            (
                *(_lost(consumer, item) for consumer, item in gravest(lost, lambda item: -(item.last_lock or 0))),
                *_twice(evidence, twice),
            ),
            f"{counted(len(queues), 'queue')} {'consumed by two consumers at once' if twice else 'not consumed'}; "
            f"{evidence.unread_in(queues)}.",
            "Look whether these consumers reach the brokers of these queues, and whether a broker has restarted; "
            "a consumer that was killed keeps its locks for 60 s.",
        )
    if not any(each.is_orderly for _, each in found):
        doubts.settle()
        raise DoesNotApply("its consumers do not consume in order")
    doubts.settle()


def dropped_but_consuming(case: Case) -> Iterator[GroupFinding]:
    """A consumer goes on consuming a queue that a rebalance took away from it."""
    evidence = case.evidence
    found, doubts = of_each(evidence, _consumed_after_drop)
    if found:
        queues = tuple(sort_queues({item.queue for _, item in found}))
        others = {client_id for queue in queues for client_id in evidence.observed.get(queue, ())}
        ids = {consumer.client_id for consumer, _ in found}
        shared = others - ids
        yield GroupFinding(
            "dropped-but-consuming",
            ERROR if shared else WARNING,
            evidence.group.group,
            one_topic(queues),
            queues,
            tuple(sort_client_ids(ids)),
            tuple(
                consumer.seen(
                    f"seconds since {consumer.client_id} consumed {named(item.queue)}, which was taken from it",
                    consumer.clock.age(item.last_consume or 0) // 1000,
                )
                for consumer, item in gravest(found, lambda item: item.last_consume or 0)
            ),
            f"{counted(len(queues), 'queue')} consumed by a former owner"
            + (f" beside {', '.join(sort_client_ids(shared))}: messages are delivered twice." if shared else "."),
            f"Look at what the listener of {sort_client_ids(ids)[0]} still does; restart that consumer if it goes on.",
        )
    doubts.settle()


def _locks(consumer: ConsumerReports) -> Iterator[_Orderly]:
    orderly = consumer.now.orderly
    if orderly is None:
        raise DataError(f"whether {consumer.client_id} consumes in order is unknown", hint=ASK_OTHERWISE)
    yield _Orderly(orderly)
    doubts = Doubts()
    for item in consumer.queues if orderly else ():
        try:
            if _has_no_lock(consumer, item):
                yield _Orderly(orderly, item)
        except DataError as doubt:
            doubts.add(doubt)
    doubts.settle()


def _has_no_lock(consumer: ConsumerReports, item: ProcessQueue) -> bool:
    if item.last_lock is None or item.locked is None:
        raise DataError(f"{consumer.client_id} does not report its locks", hint=ASK_OTHERWISE)
    if consumer.clock.is_older(item.last_lock, LOCKED_MS):
        return True
    if not item.locked:
        raise AnotherLookNeeded(f"{consumer.client_id} has lost the lock of {named(item.queue)} within the last 30 s")
    return False


def _locked_twice(evidence: GroupEvidence, doubts: Doubts) -> Mapping[MessageQueue, frozenset[str]]:
    """Queue → the consumers that all think that they have its lock, in the last look and in the one before."""
    now, *earlier = (_lock_owners(look) for look in reversed(evidence.looks))
    twice = {queue: ids for queue, ids in now.items() if len(ids) > 1}
    before = earlier[0] if earlier else {}
    lasting = {queue: ids for queue, ids in twice.items() if before.get(queue, frozenset()) >= ids}
    if lasting.keys() < twice.keys():
        doubts.add(AnotherLookNeeded("two consumers report the lock of a queue, which one may just have got"))
    return lasting


def _lock_owners(look: ConsumerGroup) -> dict[MessageQueue, frozenset[str]]:
    owners: dict[MessageQueue, frozenset[str]] = {}
    for client_id, report in look.reports.items():
        if report.evidence is None or not report.evidence.orderly:
            continue
        for item in report.evidence.queues or ():
            if item.locked and not item.dropped:
                owners[item.queue] = owners.get(item.queue, frozenset()) | {client_id}
    return owners


def _consumed_after_drop(consumer: ConsumerReports) -> Iterator[ProcessQueue]:
    doubts = Doubts()
    before = consumer.history[-2][1] if len(consumer.history) > 1 else {}
    for item in consumer.now.queues or ():
        was = before.get(item.queue)
        if item.dropped is None or (item.dropped and item.last_consume is None):
            doubts.add(
                DataError(f"{consumer.client_id} does not report which queues were taken from it", hint=ASK_OTHERWISE)
            )
        elif item.dropped and was is not None and was.dropped:
            if was.last_consume != item.last_consume:
                yield item
        elif item.dropped:
            doubts.add(AnotherLookNeeded(f"{named(item.queue)} was just taken from {consumer.client_id}"))
    doubts.settle()


def _lost(consumer: ConsumerReports, item: ProcessQueue) -> Evidence:
    fact = f"seconds since {consumer.client_id} got the lock of {named(item.queue)}"
    return consumer.seen(fact, consumer.clock.age(item.last_lock or 0) // 1000, LOCKED_MS // 1000)


def _twice(evidence: GroupEvidence, twice: Mapping[MessageQueue, frozenset[str]]) -> Iterator[Evidence]:
    for queue in sort_queues(twice)[:SHOWN_CONSUMERS]:
        ids = sort_client_ids(twice[queue])
        yield evidence.seen(
            f"consumers that report the lock of {named(queue)}: {', '.join(ids)}", len(ids), threshold=2
        )
