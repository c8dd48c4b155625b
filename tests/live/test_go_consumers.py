from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import wait_until
from .members import Members, go_members, running_members
from .watched_groups import OWNED_DEADLINE, Watched, owned_twice, unassigned

pytestmark = [pytest.mark.live, pytest.mark.slow]

EAST, WEST = "east@broker-a", "west@broker-b"
TOPICS = ("OrderEvents", "Skewed", "Few")
# Sorted as text: c1, c10, c9; the joiner c2 lands in the middle.
FIRST, JOINER, LEAVER = ("c9", "c10", "c1"), "c2", "c10"
# Java sorts the second of these first, by its UTF-16 code units; Go the first one, by its UTF-8 bytes.
HIGH, EMOJI = "\uffee", "\U0001f600"


@pytest.fixture(scope="module")
def rooms() -> Iterator[RocketMQCluster]:
    """Two brokers, each in a room of its own; Few has fewer queues than groups have consumers."""
    with RocketMQCluster("5.5.0", brokers=[EAST, WEST]) as running:
        running.create_topics(
            [
                TopicOnBroker("OrderEvents", EAST, 8, 8),
                TopicOnBroker("OrderEvents", WEST, 8, 8),
                TopicOnBroker("Skewed", EAST, 6, 4),
                TopicOnBroker("Skewed", WEST, 3, 3),
                TopicOnBroker("Few", EAST, 2, 2),
                TopicOnBroker("Few", WEST, 1, 1),
            ]
        )
        yield running


def ids(*names: str) -> list[str]:
    return [f"127.0.0.1@{name}" for name in names]


def through_join_and_leave(group: Watched, program: Members, first: Sequence[str]) -> None:
    (joiner,), (leaver,) = ids(JOINER), ids(LEAVER)
    group.must_own(ids(*first))
    after = group.planned("--add", joiner)
    program.join(JOINER)
    group.must_own(ids(*first, JOINER), after)
    after = group.planned("--remove", leaver)
    program.leave(LEAVER)
    group.must_own([each for each in ids(*first, JOINER) if each != leaver], after)


@pytest.mark.parametrize(
    ("strategy", "settings", "options"),
    [
        ("AVG", "", ()),
        ("AVG_BY_CIRCLE", "", ()),
        ("CONSISTENT_HASH", "", ()),
        ("MACHINE_ROOM_NEARBY", "", ()),
        ("MACHINE_ROOM", ":east", ("--strategy-option", "idc=east")),
    ],
)
def test_go_consumers_own_what_is_predicted_before_and_after_one_joins_and_one_leaves(
    rooms: RocketMQCluster, go_consumer: Path, strategy: str, settings: str, options: tuple[str, ...]
) -> None:
    name = f"go-{strategy}-svc"
    with go_members(rooms, go_consumer, name, strategy + settings, TOPICS, FIRST) as program:
        through_join_and_leave(Watched(rooms, name, [program], strategy, options), program, FIRST)


def test_go_consumers_with_a_list_of_queues_all_own_that_list(
    rooms: RocketMQCluster, go_consumer: Path, tmp_path: Path
) -> None:
    listed = [f"{EAST}/{number}" for number in (0, 2, 5)] + [f"{WEST}/1"]
    file = tmp_path / "queues.json"
    queues = [each.replace("/", ":") for each in listed]
    file.write_text(json.dumps(dict.fromkeys(ids("a", "b"), queues)), encoding="utf-8")
    strategy, options = f"CONFIG:{','.join(listed)}", ("--strategy-option", f"queues={file}")
    with go_members(rooms, go_consumer, "go-config-svc", strategy, ["OrderEvents"], ["a", "b"]) as program:
        owners = Watched(rooms, "go-config-svc", [program], "CONFIG", options).must_own(ids("a", "b"))
    assert (len(owned_twice(owners)), len(unassigned(owners))) == (4, 12)


@pytest.mark.parametrize("strategy", ["AVG", "CONSISTENT_HASH"])
def test_a_go_group_of_any_size_owns_what_is_predicted(
    rooms: RocketMQCluster, go_consumer: Path, strategy: str
) -> None:
    name = f"go-sizes-{strategy}-svc"
    with go_members(rooms, go_consumer, name, strategy, TOPICS) as program:
        group = Watched(rooms, name, [program], strategy)
        names: list[str] = []
        for size in (1, 2, 3, 5, 18):
            for number in range(len(names), size):
                names.append(f"c{number}")
                program.join(names[-1])
            group.must_own(ids(*names))


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_java_and_go_in_a_group_own_what_each_of_them_computes(
    rooms: RocketMQCluster, go_consumer: Path, strategy: str
) -> None:
    """Which queues have no owner and which have two is predicted queue by queue, joins and leaves included."""
    name = f"mixed-{strategy}-svc"
    with (
        running_members(rooms, name, strategy, TOPICS, ["a1", "b2"]) as java,
        go_members(rooms, go_consumer, name, strategy, TOPICS, ["a2", "b1"]) as go,
    ):
        group = Watched(rooms, name, [java, go], strategy)
        names = ["a1", "a2", "b1", "b2"]
        owners = group.must_own(ids(*names))
        assert bool(unassigned(owners)) == bool(owned_twice(owners)) == (strategy == "CONSISTENT_HASH")
        for program, sdk, joiner in ((go, "go", HIGH), (java, "java", EMOJI), (go, "go", "a3")):
            (client_id,) = ids(joiner)
            after = group.planned("--add", client_id, "--sdk", f"{client_id}={sdk}")
            program.join(joiner)
            names.append(joiner)
            owners = group.must_own(ids(*names), after)
        assert unassigned(owners)
        assert owned_twice(owners)
        for program, leaver in ((java, "a1"), (go, HIGH)):
            after = group.planned("--remove", *ids(leaver))
            program.leave(leaver)
            names.remove(leaver)
            group.must_own(ids(*names), after)


def mix_found(group: Watched) -> dict[str, Any]:
    said = group.say("diagnose", "--deadline", "2m")["data"]["findings"]
    (found,) = (each for each in said if each["code"] == "mixed-sdks")
    assert found["severity"] == "info" or found is said[0]
    return dict(found)


def named(found: dict[str, Any]) -> list[MessageQueue]:
    return sorted(MessageQueue(each["topic"], each["brokerName"], each["queueId"]) for each in found["queues"])


def test_a_mix_of_java_and_go_is_diagnosed_by_the_damage_that_it_does(
    rooms: RocketMQCluster, go_consumer: Path
) -> None:
    name = "mixed-diagnosed-svc"
    with (
        running_members(rooms, name, "AVG", TOPICS, ["a1", "b2"]) as java,
        go_members(rooms, go_consumer, name, "AVG", TOPICS, ["a2"]) as go,
    ):
        group = Watched(rooms, name, [java, go])
        group.must_own(ids("a1", "b2", "a2"))
        harmless = mix_found(group)
        assert (harmless["severity"], harmless["consumers"]) == ("info", ids("a2"))
        go.join(HIGH)
        java.join(EMOJI)
        owners = group.must_own(ids("a1", "b2", "a2", HIGH, EMOJI))

        def is_error() -> bool:
            return bool(mix_found(group)["severity"] == "error")

        wait_until(is_error, OWNED_DEADLINE, lambda: f"{mix_found(group)}", 2.0)
        found = mix_found(group)
    assert sorted(found["consumers"]) == sorted(ids("a2", HIGH))
    assert named(found) == sorted([*unassigned(owners), *owned_twice(owners)])
