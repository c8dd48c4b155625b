"""The rule for consumers that hold more than they may, so that they do not pull."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.lags import another_look, lags_of, must_know_all
from rmqlb.engine.diagnose.reports import ConsumerReports, Doubts, gravest, is_at_limit, named, of_each, one_topic
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.words import counted

_CAUSES = ("consume-failing", "blocked-consumer", "head-blocked", "hot-queue", "slow-consumer")


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
    left, causes = case.without_those_of(queues, _CAUSES)
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
    try:
        must_know_all(evidence, lags)
    except DataError as doubt:
        doubts.add(doubt)
    if lags.of("standing", "undecided"):
        doubts.add(another_look(evidence, lags, "standing", "undecided"))
    found = lags.of("stalled", "growing")
    return tuple(queue for queue in found if lags.queues[queue].state == "stalled" or lags.queues[queue].is_behind)


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
            for consumer, each in gravest(found, lambda each: each.value / max(each.limit, 1))
        ),
        f"{counted(len(queues), 'queue')} not pulled until the listener has caught up; {evidence.unread_in(queues)}.",
        "Nothing is wrong as long as the lag shrinks."
        if passes
        else f"Make the listener of {ids[0]} faster or give it more threads; more consumers help where there are "
        "queues for them.",
    )
