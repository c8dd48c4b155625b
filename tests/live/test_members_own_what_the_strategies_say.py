"""The oracle of last resort: consumers that run, and the queues they hold, against what `rmqlb.allocate` foretells."""

from __future__ import annotations

import pytest

from rmqlb import MessageQueue, allocate

from .cluster import RocketMQCluster
from .members import Members, Owned, running_members

pytestmark = pytest.mark.live

TOPICS = ("OrderEvents", "Skewed")
# Sorted as text, as clients do: c1, c10, c9; the joiner c2 lands in the middle.
FIRST_MEMBERS = ("c9", "c10", "c1")
JOINER, LEAVER = "c2", "c10"


def queues(topic: str, **read_queues: int) -> list[MessageQueue]:
    """The read queues of a topic; brokers by keyword, ``_`` standing for ``-``."""
    return [
        MessageQueue(topic, broker.replace("_", "-"), queue_id)
        for broker, total in read_queues.items()
        for queue_id in range(total)
    ]


def foretold(strategy: str, by_topic: list[list[MessageQueue]], client_ids: list[str]) -> Owned:
    """One allocation a topic, as clients do, put together by client id."""
    shares = [allocate(strategy, of_topic, client_ids) for of_topic in by_topic]
    return {client_id: frozenset(queue for share in shares for queue in share[client_id]) for client_id in client_ids}


def assert_as_foretold(members: Members, strategy: str, by_topic: list[list[MessageQueue]], names: set[str]) -> None:
    owned = members.settled([queue for of_topic in by_topic for queue in of_topic])
    assert set(owned) == {f"127.0.0.1@{name}" for name in names}
    assert owned == foretold(strategy, by_topic, list(owned))


def assert_through_join_and_leave(
    cluster: RocketMQCluster, strategy: str, group: str, by_topic: list[list[MessageQueue]]
) -> None:
    first = set(FIRST_MEMBERS)
    with running_members(cluster, group, strategy, TOPICS, FIRST_MEMBERS) as members:
        assert_as_foretold(members, strategy, by_topic, first)
        members.join(JOINER)
        assert_as_foretold(members, strategy, by_topic, first | {JOINER})
        members.leave(LEAVER)
        assert_as_foretold(members, strategy, by_topic, (first | {JOINER}) - {LEAVER})


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_members_own_what_the_strategy_says_before_and_after_one_joins_and_one_leaves(
    cluster: RocketMQCluster, strategy: str
) -> None:
    group = f"live-{strategy}"
    by_topic = [
        queues("OrderEvents", broker_a=8, broker_b=8),
        queues("Skewed", broker_a=6, broker_b=3),
        queues(f"%RETRY%{group}", broker_a=1, broker_b=1),
    ]
    assert_through_join_and_leave(cluster, strategy, group, by_topic)


def test_members_of_version_4_own_what_the_strategy_says_too(legacy_cluster: RocketMQCluster) -> None:
    group = "live-legacy"
    by_topic = [queues("OrderEvents", legacy_a=8), queues("Skewed", legacy_a=6), queues(f"%RETRY%{group}", legacy_a=1)]
    assert_through_join_and_leave(legacy_cluster, "CONSISTENT_HASH", group, by_topic)
