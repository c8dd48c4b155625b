"""The rule for topics without a readable queue."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose.rule import Case
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.finding import WARNING
from rmqlb.model.route import TopicRouteData
from rmqlb.model.words import messages


def no_read_queues(case: Case) -> Iterator[GroupFinding]:
    """No broker gives consumers a queue of a topic: each lacks the read permission, or has no read queues."""
    evidence, facts = case.evidence, case.evidence.facts
    if evidence.group.own_topics is None:
        _ = evidence.lists
    for topic in evidence.topics:
        sighting = facts.snapshot.routes.get(topic)
        if sighting is not None and not sighting.route.subscribe_queues():
            waiting = evidence.lag(tuple(queue for queue in evidence.group.queues if queue.topic == topic))
            yield GroupFinding(
                "no-read-queues",
                WARNING,
                evidence.group.group,
                topic,
                evidence=tuple(evidence.seen(fact, value) for fact, value in _facts(sighting.route)),
                consequence=f"Topic {topic} has no readable queue: consumers get nothing of it"
                + (f"; {messages(waiting)} unread there." if waiting else "."),
                remedy=f"Check perm and readQueueNums with show-route -t {topic}; mqadmin updateTopic -p 6 -r N makes "
                "queues readable.",
            )
    for why in facts.unknown_routes.values():
        raise DataError(why.message, hint="diagnose again with that topic's route")


def _facts(route: TopicRouteData) -> Iterator[tuple[str, str]]:
    for data in route.queue_datas:
        yield (
            f"permission and read queues of {route.topic} at {data.broker_name}",
            f"perm {data.perm}, readQueueNums {data.read_queue_nums}",
        )
