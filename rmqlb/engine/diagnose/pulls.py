"""The rule for queues that their owner does not pull any more."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, AnotherLookNeeded
from rmqlb.engine.diagnose.reports import ConsumerReports, Doubts, is_at_limit, named, of_each, one_topic
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.words import counted

PULLS_WITHIN_MS = 120_000
"""A pull leads to the next one (`ProcessQueue.PULL_MAX_IDLE_TIME`)."""
_CAUSES = ("broker-silent", "broker-gone", "broker-unreachable-from-consumer", "blocked-consumer")
LONGEST_PULL_MS = 20_000
"""A pull that finds no message ends after 15 s (`brokerSuspendMaxTimeMillis`), for which brokers look every 5 s."""


def pull_stopped(case: Case) -> Iterator[GroupFinding]:
    """A consumer has a queue and does not pull from it, although it may."""
    evidence = case.evidence
    found, doubts = of_each(evidence, stopped_pulls)
    left, causes = case.without_those_of([item.queue for _, item in found], _CAUSES)
    own = [(consumer, item) for consumer, item in found if item.queue in left]
    if own:
        waiting = evidence.lag(left)
        ids = tuple(sort_client_ids({consumer.client_id for consumer, _ in own}))
        yield GroupFinding(
            "pull-stopped",
            ERROR if waiting else WARNING,
            evidence.group.group,
            one_topic(left),
            left,
            ids,
            tuple(
                consumer.seen(
                    f"seconds since {consumer.client_id} pulled from {named(item.queue)}",
                    consumer.clock.age(item.last_pull or 0) // 1000,
                    PULLS_WITHIN_MS // 1000,
                )
                for consumer, item in own
            ),
            f"{counted(len(left), 'queue')} not pulled; {evidence.unread_in(left)}.",
            f"Look for errors of the pull and rebalance threads in the log of {ids[0]}, and restart it: "
            "others take its queues meanwhile.",
        )
    if found and not own:
        raise ComesOf(causes)
    doubts.settle()


def stopped_pulls(consumer: ConsumerReports) -> Iterator[ProcessQueue]:
    """The queues of the consumer from which it has not pulled for two minutes (raises DataError)."""
    doubts = Doubts()
    for item in consumer.queues:
        try:
            stopped = _is_old(consumer, item) and is_at_limit(consumer, item) is None
        except DataError as doubt:
            doubts.add(doubt)
        else:
            if stopped:
                yield item
    doubts.settle()


def _is_old(consumer: ConsumerReports, item: ProcessQueue) -> bool:
    if item.last_pull is None:
        raise DataError(f"{consumer.client_id} does not report when it last pulled", hint=ASK_OTHERWISE)
    try:
        return consumer.clock.is_older(item.last_pull, PULLS_WITHIN_MS)
    except AnotherLookNeeded:
        # A clock that is behind looks the same, but then some pull would have moved.
        if _none_moved_ms(consumer) > LONGEST_PULL_MS:
            return True
        raise


def _none_moved_ms(consumer: ConsumerReports) -> int:
    """For how long the looks show no pull of the consumer (raises DataError)."""
    (read_at, now), *earlier = reversed(consumer.history)
    stood = 0
    for before, look in earlier:
        if look.keys() != now.keys() or any(look[queue].last_pull != now[queue].last_pull for queue in now):
            break
        stood = read_at - before
    return stood
