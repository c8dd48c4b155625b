"""Rules for listeners that are slower than what arrives: pulling that is held back, and one consumer among others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_BROKERS, ASK_OTHERWISE, AnotherLookNeeded, GroupEvidence
from rmqlb.engine.diagnose.lags import LOOKS, SPAN_MS, Lags, QueueLag, lags_of, must_have_offsets
from rmqlb.engine.diagnose.reports import ConsumerReports, Doubts, is_at_limit, of_each, one_topic, push_consumers
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import BROADCASTING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.words import counted

SLOWER = 2
"""A consumer is slow whose listener takes that many times what the others' takes."""


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


def slow_consumer(case: Case) -> Iterator[GroupFinding]:
    """The lag of some consumers grows while that of others does not, and their listeners take longer."""
    evidence = case.evidence
    must_have_offsets(evidence)
    doubts, lags = Doubts(), lags_of(evidence)
    reports = {consumer.client_id: consumer for consumer in push_consumers(evidence, doubts)}
    shares = _shares(evidence, lags)
    others = [i for i, its in shares.items() if all(lag.state in ("fine", "draining") for lag in its.values())]
    slow: list[tuple[str, tuple[MessageQueue, ...]]] = []
    covered: list[str] = []
    for client_id in sort_client_ids(shares) if others else ():
        growing = [queue for queue, lag in shares[client_id].items() if lag.state == "growing"]
        left, causes = case.without_those_of(growing, ("frozen-consumer", "blocked-consumer", "head-blocked"))
        covered += causes
        try:
            if _is_slow(reports, shares[client_id], client_id, others, left):
                slow.append((client_id, left))
        except DataError as doubt:
            doubts.add(doubt)
    if slow:
        yield _slow(evidence, reports, shares, slow, others)
    if lags.of("growing"):
        doubts.settle()
        evidence.must_be_observed()
    if lags.of("standing", "undecided"):
        raise AnotherLookNeeded(f"whose lag grows shows in {LOOKS} looks over {SPAN_MS // 1000} s or more")
    if lags.unknown:
        raise DataError(f"how far the group is in {counted(lags.unknown, 'queue')} is unknown", hint=ASK_BROKERS)
    if covered and not slow:
        raise ComesOf(tuple(dict.fromkeys(covered)))


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
            consumer.seen(
                f"{each.what} that {consumer.client_id} holds of {_short(each.queue)}", each.value, each.limit
            )
            for consumer, each in found
        ),
        f"{counted(len(queues), 'queue')} not pulled until the listener has caught up; {evidence.unread_in(queues)}.",
        "Nothing is wrong as long as the lag shrinks."
        if passes
        else f"Make the listener of {ids[0]} faster or give it more threads; more consumers help where there are "
        "queues for them.",
    )


def _short(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"


def _shares(evidence: GroupEvidence, lags: Lags) -> Mapping[str, Mapping[MessageQueue, QueueLag]]:
    """Client ID → its queues, of those with a single observed owner."""
    shares: dict[str, dict[MessageQueue, QueueLag]] = {}
    for queue, lag in lags.queues.items():
        owners = evidence.observed.get(queue, ())
        if len(owners) == 1:
            shares.setdefault(owners[0], {})[queue] = lag
    return shares


def _is_slow(
    reports: Mapping[str, ConsumerReports],
    share: Mapping[MessageQueue, QueueLag],
    client_id: str,
    others: list[str],
    growing: tuple[MessageQueue, ...],
) -> bool:
    """It is behind, and its listener takes longer than that of the others (raises DataError)."""
    for topic in sorted({queue.topic for queue in growing}):
        own, usual = _call_ms(reports, client_id, topic), _usual(reports, others, topic)
        if own is None or usual is None:
            raise DataError(
                f"how long calls of the listener of {client_id} and of the others take is unknown", hint=ASK_OTHERWISE
            )
        if own >= SLOWER * usual and any(share[queue].is_behind for queue in growing if queue.topic == topic):
            return True
    return False


def _usual(reports: Mapping[str, ConsumerReports], others: list[str], topic: str) -> float | None:
    known = [ms for i in others if (ms := _call_ms(reports, i, topic)) is not None]
    return median(known) if known else None


def _call_ms(reports: Mapping[str, ConsumerReports], client_id: str, topic: str) -> float | None:
    return reports[client_id].usual_ms(topic) if client_id in reports else None


def _slow(
    evidence: GroupEvidence,
    reports: Mapping[str, ConsumerReports],
    shares: Mapping[str, Mapping[MessageQueue, QueueLag]],
    slow: list[tuple[str, tuple[MessageQueue, ...]]],
    others: list[str],
) -> GroupFinding:
    queues = tuple(queue for _, its in slow for queue in its)
    facts: list[Evidence] = []
    for client_id, its in slow:
        consumer = reports[client_id]
        for topic in sorted({queue.topic for queue in its}):
            own, usual = _call_ms(reports, client_id, topic) or 0, _usual(reports, others, topic) or 0
            facts.append(
                consumer.seen(f"ms per call of the listener of {client_id}", round(own), round(SLOWER * usual))
            )
            consumed = consumer.status(topic).consumed_per_s
            inflow = sum(lag.inflow_per_s for queue, lag in shares[client_id].items() if queue.topic == topic)
            if consumed is not None:
                facts.append(
                    consumer.seen(f"messages of {topic} that {client_id} consumes per second", round(consumed))
                )
            facts.append(evidence.seen(f"messages of {topic} that arrive for {client_id} per second", round(inflow)))
    ids = tuple(client_id for client_id, _ in slow)
    return GroupFinding(
        "slow-consumer",
        WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        ids,
        tuple(facts),
        f"The lag of {counted(len(queues), 'queue')} grows, that of {counted(len(others), 'other consumer')} does not; "
        f"{evidence.unread_in(queues)}.",
        f"Compare {ids[0]} with the others: its machine, its connections, the messages that it gets.",
    )
