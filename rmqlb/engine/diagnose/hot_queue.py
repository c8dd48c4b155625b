"""The rule for a queue that gets so many more messages than the others of its topic that its owner cannot keep up."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.lags import (
    CAUSES_OF_LAG,
    Lags,
    another_look,
    lags_of,
    must_commit,
    must_have_offsets,
    must_know_all,
    passes,
)
from rmqlb.engine.diagnose.reports import named
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import WARNING
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.words import counted

HOT = 3
"""A queue is hot that has that many times the mean of the topic's other queues, of the inflow and of the lag."""


class HotQueue(Struct, frozen=True):
    """A queue with too large a share of its topic, in percent.

    Attributes:
        queue: which one.
        inflow: of the messages that arrive in the topic.
        lag: of the unread messages of the topic.
        least: from which on a queue is hot.
        inflow_per_s: messages that arrive per second.
    """

    queue: MessageQueue
    inflow: int
    lag: int
    least: int
    inflow_per_s: float


def hot_queue(case: Case) -> Iterator[GroupFinding]:
    """One queue of a topic gets and holds far more messages than the others, and its lag grows."""
    evidence = case.evidence
    if evidence.receives:
        raise DoesNotApply("any of its consumers may read any queue")
    must_have_offsets(case)
    lags = lags_of(evidence)
    growing = lags.of("growing")
    must_commit(evidence, growing)
    hot = [each for queue in growing if (each := _hot(lags, queue)) is not None and lags.queues[queue].is_behind]
    left, causes = case.without_those_of([each.queue for each in hot], CAUSES_OF_LAG)
    lasting = [each for each in hot if each.queue in left and not passes(evidence, each.queue)]
    for topic in sorted({each.queue.topic for each in lasting}):
        yield _finding(evidence, growing, [each for each in lasting if each.queue.topic == topic])
    if hot and not left:
        raise ComesOf(causes)
    if lags.of("standing", "undecided"):
        raise another_look(evidence, lags, "standing", "undecided")
    must_know_all(evidence, lags)


def _hot(lags: Lags, queue: MessageQueue) -> HotQueue | None:
    """The shares of the queue; None where they are not that large, or the topic has no other queue."""
    its = {each: lag for each, lag in lags.queues.items() if each.topic == queue.topic}
    if len(its) < 2:
        return None
    least = ceil(100 * HOT / (HOT + len(its) - 1))
    inflow = sum(max(lag.inflow_per_s, 0) for lag in its.values())
    share = int(100 * its[queue].inflow_per_s / inflow) if inflow > 0 else 0
    unread = int(100 * its[queue].lags[-1] / sum(lag.lags[-1] for lag in its.values()))
    if share < least or unread < least:
        return None
    return HotQueue(queue, share, unread, least, its[queue].inflow_per_s)


def _finding(evidence: GroupEvidence, growing: tuple[MessageQueue, ...], hot: list[HotQueue]) -> GroupFinding:
    """The hot queues, and the queues that wait because the same consumer reads them."""
    owners = {owner for each in hot for owner in evidence.observed.get(each.queue, ())}
    also = {queue for queue in growing if owners.intersection(evidence.observed.get(queue, ()))}
    queues = tuple(sort_queues({each.queue for each in hot} | also))
    topic, names = hot[0].queue.topic, ", ".join(named(each.queue) for each in hot)
    waits = "its consumer falls" if len(hot) == 1 else "their consumers fall"
    return GroupFinding(
        "hot-queue",
        WARNING,
        evidence.group.group,
        topic,
        queues,
        tuple(sort_client_ids(owners)),
        tuple(fact for each in hot for fact in _facts(evidence, each)),
        f"{names} get{'s' * (len(hot) == 1)} {sum(each.inflow for each in hot)} % of the messages of {topic}, "
        f"and {waits} behind in {counted(len(queues), 'queue')}; {evidence.unread_in(queues)}.",
        f"Look at how producers choose a queue of {topic}: spread the keys that fill this queue, or select no queue. "
        "One consumer reads a queue, so that more consumers do not help.",
    )


def _facts(evidence: GroupEvidence, hot: HotQueue) -> Iterator[Evidence]:
    name, topic = named(hot.queue), hot.queue.topic
    yield evidence.seen(f"percent of the messages of {topic} that arrive in {name}", hot.inflow, threshold=hot.least)
    yield evidence.seen(f"percent of the unread messages of {topic} in {name}", hot.lag, threshold=hot.least)
    yield evidence.seen(f"messages that arrive in {name} per second", round(hot.inflow_per_s))
