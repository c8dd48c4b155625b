"""What a rebalance does when a broker does not answer, when there is none to ask, and when a topic has no route."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group import QueueState
from rmqlb.model.group_scenario import SECOND_US, GroupScenario
from rmqlb.model.route import TopicQueueMappingInfo
from tests.engine.rebalance.groups import at, line, owners_at_the_end, simulate, takeovers
from tests.support.builders import route
from tests.support.mismatches import every_case

LOST = at("broker-loss", "b", 10), at("join", "c2", 12)
"""The NameServers name the lost broker until two minutes have passed, so that the one that joins asks it."""


@every_case("trial", range(10))
def test_a_queue_whose_offset_is_not_told_is_not_taken(trial: int) -> None:
    """c2's half is what the lost broker has: it asks queue by queue, pass after pass, and owns nothing of it."""
    report = simulate("c1", *LOST, trial=trial, explain=True, until_us=60 * SECOND_US)
    refused = [step.text for step in report.steps or () if step.who == "c2" and "no offset from" in step.text]
    texts = [f"cannot take b:{number}: no offset from broker b" for number in range(4)]
    assert refused == (texts * 4)[: len(refused)]
    assert trial or len(refused) >= 8
    assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


def test_a_lock_that_no_broker_gives_ends_the_matter_before_an_offset_is_asked_for() -> None:
    """`RebalanceImpl.updateProcessQueueTableInRebalance`: the queue is passed over."""
    for version in ("5.5.0", "5.1.4", "4.9.7"):
        report = simulate("c1", *LOST, orderly=True, client_version=version, explain=True, until_us=60 * SECOND_US)
        assert not [step for step in report.steps or () if "no offset from" in step.text]
        assert all("c2" not in each.owners for queue in range(4) for each in line(report, "b", queue).intervals)


@every_case(("version", "lag", "after"), [("4.9.7", 3, 20), ("4.9.7", 0, 0), ("5.5.0", 3, 0)])
def test_older_clients_keep_the_lock_of_a_queue_with_cached_messages(version: str, lag: int, after: float) -> None:
    """`ProcessQueue.hasTempMessage`: `unlockDelay` gives the lock back 20 s after the queue; c2 takes a2 and a3."""
    states = {queue: QueueState(broker_offset=9, consumer_offset=9 - lag) for queue in route(a=4).subscribe_queues()}
    scenario = GroupScenario((at("join", "c2"),), orderly=True, client_version=version)
    report = simulate_group("g", Members(("c1",), "AVG"), [route(a=4)], scenario, states=states)
    for number in (2, 3):
        (given_up,) = (each.to_ms / 1000 for each in line(report, "a", number).intervals if each.owners == ("c1",))
        (taken,) = line(report, "a", number).takeovers
        # As often as c2 tries again: every 20 s, and 5.0.0 and newer twice a second.
        assert after <= taken.at_ms / 1000 - given_up <= after + 20


@pytest.mark.parametrize("latency_us", [0, 40_000])
def test_a_logical_queue_that_no_broker_serves_is_taken_after_a_question_to_the_name_server(latency_us: int) -> None:
    """Four queues of which two are mapped; the others have an owner, and a round trip is the least that it takes."""
    static = replace(
        route("T", a=2), topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo("T", "g", 4, "a", 1, {0: 0, 1: 1})}
    )
    at_once = simulate("c1", at("join", "c2"), routes=[static], latency_us=latency_us)
    assert list(owners_at_the_end(at_once).values()) == [("c1",), ("c1",), ("c2",), ("c2",)]
    taken = [each.at_ms for each in takeovers(at_once, "c2")]
    assert len(taken) == 2
    assert (taken[0] < taken[1]) == (latency_us > 0), "one after the other, each after its answer"
