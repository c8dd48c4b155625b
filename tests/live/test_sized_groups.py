"""What `size-group` answers, held against running groups of that size, and of the next smaller one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from .cluster import RocketMQCluster
from .members import Members, Owned, running_members
from .test_members_own_what_the_strategies_say import TOPICS, queues
from .test_rmqlb_reads_the_cluster import rmqlb

pytestmark = [pytest.mark.live, pytest.mark.slow]

NAMES = tuple(f"c{number}" for number in (9, 10, 1, 22, 3, 14, 5, 16, 7, 8, 11, 12, 13))
"""Of consumers, in the order in which they join; they sort otherwise."""
ANSWERS = {
    "AVG": (("--max-imbalance", "1.1", "--no-idle", "--consumers", "5..16"), 9),
    "AVG_BY_CIRCLE": (("--max-imbalance", "1.2", "--survive", "1", "--consumers", "5..16"), 5),
    # The retry topic has a queue on each broker, so that the first of 9 consumers owns 2 + 1 + 1 of 27 queues.
    "AVG with its retry topic": (("--max-imbalance", "1.34", "--consumers", "7..13", "--include-retry"), 9),
}
STARTS = 3


def held(members: Members, group: str, *, with_retry: bool) -> Owned:
    topics = [*queues("OrderEvents", broker_a=8, broker_b=8), *queues("Skewed", broker_a=6, broker_b=3)]
    if with_retry:
        topics += queues(f"%RETRY%{group}", broker_a=1, broker_b=1)
    return members.settled(topics)


def join(members: Members, name: str) -> str:
    """Start a consumer; its name. On a busy machine one may not reach the NameServer in time, and another is started."""
    for attempt in range(STARTS):
        try:
            members.join(f"{name}-{attempt}")
        except RuntimeError:
            if attempt + 1 == STARTS:
                raise
        else:
            break
    return f"{name}-{attempt}"


def assert_is(point: dict[str, Any], owned: Owned) -> None:
    numbers = Counter({client_id: len(its) for client_id, its in owned.items()})
    assert point["consumers"] == len(numbers)
    assert point["imbalance"] == max(numbers.values()) * len(numbers) / sum(numbers.values())
    assert point["idle"] == list(numbers.values()).count(0)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_running_group_of_the_answered_size_is_as_the_answer_says(cluster: RocketMQCluster, name: str) -> None:
    strategy, group = name.partition(" ")[0], f"sized-{len(name)}"
    options, answer = ANSWERS[name]
    with running_members(cluster, group, strategy, TOPICS, NAMES[:1]) as members:
        second, _ = join(members, NAMES[1]), join(members, NAMES[2])
        held(members, group, with_retry=False)
        source = ("-s", f"rocketmq://{cluster.name_server}", "--group", group)
        size = rmqlb("size-group", *source, *options)["data"]
        assert (size["strategy"], size["everyOrder"], size["consumersNow"]) == (strategy, True, 3)
        assert size["consumers"] == answer
        points = {point["consumers"]: point for point in size["curve"]}
        for joiner in NAMES[3:answer]:
            join(members, joiner)
        with_retry = "--include-retry" in options
        assert_is(points[answer], held(members, group, with_retry=with_retry))
        members.leave(second)
        owned = held(members, group, with_retry=with_retry)
        if answer - 1 in points:
            assert not points[answer - 1]["satisfied"]
            assert_is(points[answer - 1], owned)
        if points[answer]["afterLoss"] is not None:
            assert_is(points[answer]["afterLoss"] | {"consumers": answer - 1}, owned)
