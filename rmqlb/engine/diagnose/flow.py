"""The rule for consumers that hold more than they may, so that they do not pull."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_BROKERS, AnotherLookNeeded, GroupEvidence
from rmqlb.engine.diagnose.lags import LOOKS, lags_of
from rmqlb.engine.diagnose.reports import ConsumerReports, Doubts, is_at_limit, named, of_each, one_topic
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.words import counted


class AtLimit(Struct, frozen=True):
    """A queue that its consumer does not pull, since it holds more than it may."""

    queue: MessageQueue
    what: str
    value: int
    limit: int


def flow_control(case: Case) -> Iterator[GroupFinding]:
    """A consumer holds more of a queue than it may, so that it does not pull, and the lag does not shrink."""
    evidence = case.evidence
    found, doubts = of_each(evidence, limited)
    queues = [each.queue for _, each in found]
    left, causes = case.without_those_of(queues, ("blocked-consumer", "head-blocked", "slow-consumer"))
    if queues and not left:
        raise ComesOf(causes)
    lasting = _lasting(evidence, left, doubts) if left else ()
    if lasting:
        yield _held_back(evidence, [each for each in found if each[1].queue in lasting], lasting)
    doubts.settle()
    if left and not lasting:
        yield _held_back(evidence, [each for each in found if each[1].queue in left], left, passes=True)


def limited(consumer: ConsumerReports) -> Iterator[AtLimit]:
    """The queues of which the consumer holds more than it may (raises DataError)."""
    doubts = Doubts()
    for item in consumer.queues:
        try:
            reached = is_at_limit(consumer, item)
        except DataError as doubt:
            doubts.add(doubt)
        else:
            if reached is not None:
                yield AtLimit(item.queue, *reached)
    doubts.settle()


def _lasting(evidence: GroupEvidence, queues: tuple[MessageQueue, ...], doubts: Doubts) -> tuple[MessageQueue, ...]:
    """The queues whose lag grows or stands still for longer than a burst."""
    if evidence.group.message_model == BROADCASTING:
        doubts.add(
            DataError(
                "how far BROADCASTING consumers are is known to themselves only",
                hint="look at the consumers' own offsets (.rocketmq_offsets)",
            )
        )
        return ()
    lags = lags_of(evidence, queues)
    if lags.unknown:
        doubts.add(DataError(f"how far the group is in {counted(lags.unknown, 'queue')} is unknown", hint=ASK_BROKERS))
    found = []
    for queue, lag in lags.queues.items():
        if lag.state in ("standing", "undecided"):
            doubts.add(
                AnotherLookNeeded(f"whether the lag of {counted(len(queues), 'queue')} shrinks shows in {LOOKS} looks")
            )
        elif lag.state == "stalled" or (lag.state == "growing" and lag.is_behind):
            found.append(queue)
    return tuple(found)


def _held_back(
    evidence: GroupEvidence,
    found: list[tuple[ConsumerReports, AtLimit]],
    queues: tuple[MessageQueue, ...],
    *,
    passes: bool = False,
) -> GroupFinding:
    ids = tuple(sort_client_ids({consumer.client_id for consumer, _ in found}))
    return GroupFinding(
        "flow-control",
        INFO if passes else WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        ids,
        tuple(
            consumer.seen(f"{each.what} that {consumer.client_id} holds of {named(each.queue)}", each.value, each.limit)
            for consumer, each in found
        ),
        f"{counted(len(queues), 'queue')} not pulled until the listener has caught up; {evidence.unread_in(queues)}.",
        "Nothing is wrong as long as the lag shrinks."
        if passes
        else f"Make the listener of {ids[0]} faster or give it more threads; more consumers help where there are "
        "queues for them.",
    )
