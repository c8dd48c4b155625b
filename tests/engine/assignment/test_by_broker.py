"""What brokers answer: every answer that a broker of 5.5.0 wrote down, and what follows for a group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import AllocationError, MessageQueue, UsageError, allocate, assign_pop
from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, assign
from rmqlb.engine.assignment.brokers import AskedBroker, pop_queues, query_assignment
from rmqlb.engine.assignment.consumers import assigned_by_broker
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.model.group import ConsumerGroup, MemberReport, Seen
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.message_queue import sort_queues
from tests.engine.rebalance.groups import owners_at_the_end
from tests.support.builders import queues, route, short
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

POPS, QUERIES = list(vectors("pop-allocate")), list(vectors("query-assignment"))


def message_queues(rows: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*row) for row in rows]


def returned(vector: dict[str, Any], client_id: str) -> object:
    lists = message_queues(vector["mqAll"]), vector["cidAll"]
    try:
        strategy = prepare(vector["strategy"], *lists, Settings())
        found = list(pop_queues(strategy, *lists, client_id, vector["popShareQueueNum"]))
    except AllocationError as error:
        return {"error": str(error)}
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in found]


def test_allocate4pop_returns_what_the_broker_returned_doubles_included() -> None:
    assert len(POPS) == 400
    for vector in POPS:
        for client_id, expected in vector["expected"].items():
            assert returned(vector, client_id) == expected, (vector["id"], client_id)
    lists = [given for v in POPS for given in v["expected"].values() if isinstance(given, list)]
    assert any(len(given) > len({tuple(row) for row in given}) for given in lists)


def test_a_group_gets_by_pop_what_its_consumers_get_each_queue_once() -> None:
    for vector in POPS:
        lists = message_queues(vector["mqAll"]), vector["cidAll"]
        own = {i: answer for i, answer in vector["expected"].items() if i in vector["cidAll"]}
        try:
            shares = assign_pop(vector["strategy"], *lists, vector["popShareQueueNum"], presorted=True)
        except AllocationError as error:
            assert {"error": str(error)} in own.values(), vector["id"]
        else:
            assert shares.keys() == set(vector["cidAll"]), vector["id"]
            for client_id, answer in own.items():
                assert shares[client_id] == list(dict.fromkeys(message_queues(answer))), vector["id"]


def test_a_broker_answers_a_request_as_the_broker_did() -> None:
    assert len(QUERIES) == 320
    for vector in QUERIES:
        broker = AskedBroker(
            vector["brokerName"],
            tuple(vector["cidAll"]) or None,
            vector["mode"] or "PULL",
            vector["popShareQueueNum"],
            vector["serverLoadBalancerEnable"],
        )
        answers = query_assignment(
            broker,
            vector["strategy"],
            vector["topic"],
            message_queues(vector["mqAll"]),
            vector["ask"],
            broadcasting=vector["messageModel"] == "BROADCASTING",
        )
        for client_id, expected in vector["expected"].items():
            found = answers[client_id]
            assert found == (None if expected is None else sort_queues(message_queues(expected))), (
                vector["id"],
                client_id,
            )


@given(st.integers(1, 8), st.integers(1, 8), st.integers(-1, 9), st.sampled_from(["AVG", "AVG_BY_CIRCLE"]))
def test_by_pop_every_queue_has_a_reader_and_with_a_share_one_more_for_each(
    consumers: int, number: int, share: int, strategy: str
) -> None:
    ids = [f"c{index}" for index in range(consumers)]
    readers = assign_pop(strategy, queues(number), ids, share)
    if share <= 0 or share >= consumers - 1:
        assert list(readers.values()) == [[MessageQueue("T", "broker-a", -1)]] * consumers
    elif consumers <= number:
        owned = allocate(strategy, queues(number), ids)
        for queue in queues(number):
            assert sum(queue in its for its in readers.values()) == 1 + share
            assert all(queue in readers[i] for i in ids if queue in owned[i])
    else:
        assert [short(its) for its in readers.values()] == [[f"broker-a{index % number}"] for index in range(consumers)]


def test_a_consumer_more_by_pop_takes_no_queue_from_anybody_where_all_read_all() -> None:
    before = assign_pop("AVG", queues(4), ["x", "y"], 0)
    assert assign_pop("AVG", queues(4), ["x", "y", "z"], 0) == {**before, "z": before["x"]}


def test_a_retry_topic_is_pulled_whatever_the_mode_is() -> None:
    topic = "%RETRY%g"
    (queue,) = queues(1, topic=topic)
    asked = AskedBroker("broker-a", ("x", "y"), "POP", 0)
    assert query_assignment(asked, "AVG", topic, [queue], ["x", "y"]) == {"x": [queue], "y": []}


def test_brokers_that_list_other_consumers_answer_otherwise() -> None:
    both, one = (AskedBroker("broker-a", ids) for ids in (("x", "y"), ("x",)))
    assert [len(query_assignment(asked, "AVG", "T", queues(4), ["x"])["x"] or ()) for asked in (both, one)] == [2, 4]
    assert query_assignment(one, "AVG", "T", queues(4), ["y"]) == {"y": []}
    assert query_assignment(AskedBroker("broker-a", None), "AVG", "T", queues(4), ["y"]) == {"y": None}


@every_case("strategy", ["CONSISTENT_HASH", "CONFIG", "avg", "PIN"])
def test_brokers_have_two_strategies(strategy: str) -> None:
    with pytest.raises(UsageError, match="brokers have AVG and AVG_BY_CIRCLE only"):
        assign_pop(strategy, queues(1), ["x"], 1)
    assert query_assignment(AskedBroker("broker-a", ("x",)), strategy, "T", queues(1), ["x"]) == {"x": None}


@every_case(
    "wrong",
    [
        lambda: assign_pop(1, queues(1), ["x"], 1),  # type: ignore[arg-type]
        lambda: assign_pop("AVG", "queues", ["x"], 1),  # type: ignore[arg-type]
        lambda: assign_pop("AVG", queues(1), "x", 1),
        lambda: assign_pop("AVG", queues(1), ["x"], 1.0),  # type: ignore[arg-type]
        lambda: assign_pop("AVG", queues(1), ["x"], True),
        lambda: assign_pop("AVG", queues(1), ["x"], 1, presorted=1),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_the_wrong_type_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        wrong()


def test_consumers_whose_strategy_brokers_do_not_have_own_nothing() -> None:
    """Of a group in which only `b` computes its share itself, that one keeps its place and its share."""
    asking = Members(("a", "b", "c"), "CONSISTENT_HASH", by_broker=True, by_broker_of={"b": False})
    themselves = Members(("a", "b", "c"), "CONSISTENT_HASH")
    found, usual = (assign(route(x=8), members, explain=True) for members in (asking, themselves))
    assert found.owners == {queue: tuple({"b"} & set(its)) for queue, its in usual.owners.items()}
    assert {*found.idle} == {"a", "c"}
    assert found.idle["a"].startswith("it lets brokers assign its queues")
    nobody = assign(route(x=8), replace(asking, by_broker_of={}), explain=True)
    assert set(nobody.owners.values()) == {()}
    assert set(nobody.reasons.values()) == {nobody.idle["a"]}
    under_avg = [assign(route(x=8), replace(members, strategy="AVG")).owners for members in (asking, themselves)]
    assert under_avg[0] == under_avg[1]


def test_consumers_whose_strategy_brokers_do_not_have_own_nothing_in_a_simulation_either() -> None:
    members = Members(("a", "b"), "CONSISTENT_HASH", by_broker=True)
    report = simulate_group("g", members, [route(x=4)], GroupScenario(all_new=True, until_us=60_000_000))
    assert set(owners_at_the_end(report).values()) == {()}


def test_new_consumers_do_as_most() -> None:
    reports = {
        name: MemberReport(name, client_rebalance=own) for name, own in {"a": False, "b": False, "c": True}.items()
    }
    group = ConsumerGroup("g", Seen("here"), reports=reports)
    assert assigned_by_broker(group, ("a", "b", "c", "d")) == (True, {"c": False})
    assert assigned_by_broker(group, ("a", "c")) == (False, {"a": True})
    assert assigned_by_broker(None, ("a",)) == (False, {})
