from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmqlb import MessageQueue

from .cluster import RocketMQCluster
from .jvm import wait_until
from .members import go_members, running_members
from .watched_groups import OWNED_DEADLINE, Watched, ids, owned_twice, unassigned

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPICS = ("OrderEvents", "Skewed", "Few")
# Java sorts the second of these first, by its UTF-16 code units; Go the first one, by its UTF-8 bytes.
HIGH, EMOJI = "\uffee", "\U0001f600"


@pytest.mark.parametrize("strategy", ["AVG", "CONSISTENT_HASH"])
def test_java_and_go_in_a_group_own_what_each_of_them_computes_and_the_mix_is_diagnosed(
    cluster: RocketMQCluster, go_consumer: Path, strategy: str
) -> None:
    """Which queues have no owner and which have two is predicted queue by queue, joins and leaves included."""
    name = f"mixed-{strategy}-svc"
    with (
        running_members(cluster, name, strategy, TOPICS, ["a1", "b2", "b3", "b4"]) as java,
        go_members(cluster, go_consumer, name, strategy, TOPICS, ["a2", "b1"]) as go,
    ):
        group = Watched(cluster, name, [java, go], strategy)
        names = ["a1", "a2", "b1", "b2", "b3", "b4"]  # most are Java's at all times: the others are named
        owners = group.must_own(ids(*names))
        assert bool(unassigned(owners)) == bool(owned_twice(owners)) == (strategy == "CONSISTENT_HASH")
        assert mix_found(group, "error" if unassigned(owners) else "info")["consumers"] == ids("a2", "b1")
        for program, sdk, joiner in ((go, "go", HIGH), (java, "java", EMOJI), (go, "go", "a3")):
            (client_id,) = ids(joiner)
            after = group.planned("--add", client_id, "--sdk", f"{client_id}={sdk}")
            program.join(joiner)
            names.append(joiner)
            owners = group.must_own(ids(*names), after)
        assert unassigned(owners)
        assert owned_twice(owners)
        found = mix_found(group, "error")
        assert sorted(found["consumers"]) == sorted(ids("a2", "b1", "a3", HIGH))
        assert named(found) == sorted([*unassigned(owners), *owned_twice(owners)])
        for program, leaver in ((java, "a1"), (go, HIGH)):
            after = group.planned("--remove", *ids(leaver))
            program.leave(leaver)
            names.remove(leaver)
            group.must_own(ids(*names), after)


def mix_found(group: Watched, severity: str) -> dict[str, Any]:
    """What diagnose says of the mix, once it says it as gravely; nothing else comes before damage that it does."""
    last: dict[str, Any] = {}

    def is_so() -> bool:
        said = group.say("diagnose", "--deadline", "2m")["data"]["findings"]
        (found,) = (each for each in said if each["code"] == "mixed-sdks")
        last.update(found, isFirst=found is said[0])
        return bool(found["severity"] == severity)

    wait_until(is_so, OWNED_DEADLINE, lambda: f"{last}", 2.0)
    assert severity == "info" or last["isFirst"]
    return last


def named(found: dict[str, Any]) -> list[MessageQueue]:
    return sorted(MessageQueue(each["topic"], each["brokerName"], each["queueId"]) for each in found["queues"])
