"""The rule for a consumer that handles less than arrives for it, while others keep up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.lags import Lags, QueueLag, another_look, lags_of, must_have_offsets, must_know_all
from rmqlb.engine.diagnose.reports import SHOWN_CONSUMERS, ConsumerReports, Doubts, one_topic, push_consumers
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import WARNING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.words import counted

SLOWER = 2
"""A consumer is slow whose listener takes that many times what the others' takes."""
_CAUSES = ("frozen-consumer", "consume-failing", "blocked-consumer", "head-blocked")


class Slow(Struct, frozen=True):
    """A consumer whose listener takes long for a topic.

    Attributes:
        consumer: its reports.
        topic: of which its lag grows.
        queues: of the topic whose lag grows.
        call_ms: the mean duration of a call of its listener.
        usual_ms: the median of that of the others.
        inflow_per_s: messages that arrive for it.
    """

    consumer: ConsumerReports
    topic: str
    queues: tuple[MessageQueue, ...]
    call_ms: float
    usual_ms: float
    inflow_per_s: float


def slow_consumer(case: Case) -> Iterator[GroupFinding]:
    """The lag of some consumers grows while that of others does not, and their listeners take longer."""
    evidence = case.evidence
    must_have_offsets(case)
    if evidence.lists and evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)
    doubts, lags = Doubts(), lags_of(evidence)
    reports = {consumer.client_id: consumer for consumer in push_consumers(evidence, doubts)}
    shares = _shares(evidence, lags)
    others = [i for i, its in shares.items() if all(lag.state in ("fine", "draining") for lag in its.values())]
    growing = lags.of("growing") if others else ()
    left, causes = case.without_those_of(growing, _CAUSES)
    slow = list(_slow_ones(reports, shares, others, left, doubts))
    if slow:
        yield _finding(evidence, slow, len(others))
    if lags.of("growing"):
        doubts.settle()
        evidence.must_be_observed()
    if lags.of("standing", "undecided"):
        raise another_look(evidence, lags, "standing", "undecided")
    must_know_all(evidence, lags)
    if growing and not left:
        raise ComesOf(causes)


def _shares(evidence: GroupEvidence, lags: Lags) -> Mapping[str, Mapping[MessageQueue, QueueLag]]:
    """Client ID → its queues, of those with a single observed owner."""
    shares: dict[str, dict[MessageQueue, QueueLag]] = {}
    for queue, lag in lags.queues.items():
        owners = evidence.observed.get(queue, ())
        if len(owners) == 1:
            shares.setdefault(owners[0], {})[queue] = lag
    return shares


def _slow_ones(
    reports: Mapping[str, ConsumerReports],
    shares: Mapping[str, Mapping[MessageQueue, QueueLag]],
    others: list[str],
    growing: tuple[MessageQueue, ...],
    doubts: Doubts,
) -> Iterator[Slow]:
    """The consumers that are behind, and whose listeners take longer than those of the others."""
    for client_id, share in shares.items():
        for topic in sorted({queue.topic for queue in growing if queue in share}):
            queues = tuple(queue for queue in growing if queue in share and queue.topic == topic)
            own, usual = _call_ms(reports, client_id, topic), _usual_ms(reports, others, topic)
            if own is None or usual is None:
                doubts.add(
                    DataError(
                        f"how long calls of the listener of {client_id} and of the others take is unknown",
                        hint=ASK_OTHERWISE,
                    )
                )
            elif own >= _too_long_ms(usual) and any(share[queue].is_behind for queue in queues):
                inflow = sum(lag.inflow_per_s for queue, lag in share.items() if queue.topic == topic)
                yield Slow(reports[client_id], topic, queues, own, usual, inflow)


def _too_long_ms(usual_ms: float) -> float:
    """A call of less than 1 ms counts as one of 1 ms: below it the figures say nothing."""
    return SLOWER * max(usual_ms, 1.0)


def _usual_ms(reports: Mapping[str, ConsumerReports], others: list[str], topic: str) -> float | None:
    known = [ms for i in others if (ms := _call_ms(reports, i, topic)) is not None]
    return median(known) if known else None


def _call_ms(reports: Mapping[str, ConsumerReports], client_id: str, topic: str) -> float | None:
    return reports[client_id].usual_ms(topic) if client_id in reports else None


def _finding(evidence: GroupEvidence, slow: list[Slow], others: int) -> GroupFinding:
    queues = tuple(sort_queues(queue for each in slow for queue in each.queues))
    ids = tuple(sort_client_ids({each.consumer.client_id for each in slow}))
    return GroupFinding(
        "slow-consumer",
        WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        ids,
        tuple(fact for each in slow[:SHOWN_CONSUMERS] for fact in _facts(evidence, each)),
        f"The lag of {counted(len(queues), 'queue')} grows, that of {counted(others, 'other consumer')} does not; "
        f"{evidence.unread_in(queues)}.",
        f"Compare {ids[0]} with the others: its machine, its connections, the messages that it gets.",
    )


def _facts(evidence: GroupEvidence, slow: Slow) -> Iterator[Evidence]:
    own, seen = slow.consumer.client_id, slow.consumer.seen
    yield seen(f"ms per call of the listener of {own}", round(slow.call_ms), round(_too_long_ms(slow.usual_ms)))
    consumed = slow.consumer.status(slow.topic).consumed_per_s
    if consumed is not None:
        yield seen(f"messages of {slow.topic} that {own} consumes per second", round(consumed))
    yield evidence.seen(f"messages of {slow.topic} that arrive for {own} per second", round(slow.inflow_per_s))
