from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from rmqlb import AllocationError, MessageQueue, UsageError, allocate, assign_pop
from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment import brokers
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, ProxyView, Seen
from rmqlb.model.message_queue import sort_queues
from rmqlb.model.owners import PopTopic
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from tests.support.builders import group, queues, route, short
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

POPS, QUERIES = list(vectors("pop-allocate")), list(vectors("query-assignment"))


def message_queues(rows: list[list[Any]]) -> list[MessageQueue]:
    return [MessageQueue(*row) for row in rows]


def test_allocate4pop_returns_what_the_broker_returned_doubles_included() -> None:
    """A consumer of the group gets each of its queues once from `assign_pop`."""
    doubles = 0
    for vector in POPS:
        lists, share = (message_queues(vector["mqAll"]), vector["cidAll"]), vector["popShareQueueNum"]
        for client_id, expected in vector["expected"].items():
            found: object
            try:
                strategy = prepare(vector["strategy"], *lists, Settings())
                found = [[*astuple(queue)] for queue in brokers.pop_queues(strategy, *lists, client_id, share)]
                if client_id in vector["cidAll"]:
                    shares = assign_pop(vector["strategy"], *lists, share, presorted=True)
                    assert shares.keys() == set(vector["cidAll"]), vector["id"]
                    assert shares[client_id] == list(dict.fromkeys(message_queues(expected))), vector["id"]
                    doubles += len(expected) - len(shares[client_id])
            except AllocationError as error:
                found = {"error": str(error)}
            assert found == expected, (vector["id"], client_id)
    assert (len(POPS), doubles > 0) == (400, True)


def test_a_broker_answers_a_request_as_the_broker_did() -> None:
    assert len(QUERIES) == 320
    for vector in QUERIES:
        broker = brokers.AskedBroker(
            vector["brokerName"], tuple(vector["cidAll"]) or None, vector["mode"] or "PULL",
            vector["popShareQueueNum"], vector["serverLoadBalancerEnable"],
        )  # fmt: skip
        answers = brokers.query_assignment(
            broker,
            vector["strategy"],
            vector["topic"],
            message_queues(vector["mqAll"]),
            vector["ask"],
            broadcasting=vector["messageModel"] == "BROADCASTING",
        )
        expected = {
            client_id: None if share is None else sort_queues(message_queues(share))
            for client_id, share in vector["expected"].items()
        }
        assert answers == expected, vector["id"]


@given(st.integers(1, 8), st.integers(1, 8), st.integers(-1, 9), st.sampled_from(["AVG", "AVG_BY_CIRCLE"]))
def test_each_pop_queue_has_a_reader_and_one_per_share(consumers: int, number: int, share: int, strategy: str) -> None:
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


@every_case(("listed", "strategy", "topic", "numbers"), [
    (("x", "y"), "AVG", "%RETRY%g", [2, 2]),  # a retry topic is pulled, whatever the mode is
    (("x",), "AVG", "%RETRY%g", [4, 0]),
    (None, "AVG", "T", [None, None]),
    *(((("x", "y"), name, "T", [None, None])) for name in ("CONSISTENT_HASH", "CONFIG", "avg", "PIN")),
])  # fmt: skip
def test_a_broker_answers_by_its_own_list_and_by_two_strategies(
    listed: tuple[str, ...] | None, strategy: str, topic: str, numbers: list[int | None]
) -> None:
    asked = brokers.AskedBroker("broker-a", listed, "POP", 0)
    answers = brokers.query_assignment(asked, strategy, topic, queues(4, topic=topic), ["x", "y"])
    assert [None if own is None else len(own) for own in answers.values()] == numbers
    if strategy != "AVG":
        with pytest.raises(UsageError, match="brokers have AVG and AVG_BY_CIRCLE only"):
            assign_pop(strategy, queues(1), ["x"], 1)


IDS = ("a", "b", "c")


def shown(topic: PopTopic) -> dict[str, str]:
    return {f"{queue.broker_name}{queue.queue_id}": " ".join(queue.consumers or ("?",)) for queue in topic.queues or ()}


def one(
    seen: ConsumerGroup | None, ids: tuple[str, ...] = IDS, share: int | None = None, on: TopicRouteData | None = None
) -> PopTopic:
    (topic,) = brokers.pop_topics(seen, [on or route(x=3)], ids, share=share)
    return topic


def test_the_share_that_is_given_goes_before_that_of_brokers_and_without_either_theirs_is_assumed() -> None:
    seen = replace(group("a b c"), pop_share_queue_nums={"T": (1,)})
    assert shown(one(seen)) == {"x0": "a c", "x1": "a b", "x2": "b c"}  # its own queue and that of the next
    assert (one(seen).assumed, one(seen).pop_share_queue_nums) == (False, (1,))
    assert shown(one(seen, share=2)) == {"x-1": "a b c"}
    unknown = one(group("a b c"))
    assert (shown(unknown), unknown.assumed, unknown.pop_share_queue_nums) == ({"x-1": "a b c"}, True, (-1,))
    assert [finding.code for finding in brokers.pop_findings([unknown], "g")] == ["assumed-pop-share"]
    assert list(brokers.pop_findings([one(seen)], "g")) == []
    assert shown(one(None, ("a", "b", "c", "d", "e"), 1)) == {"x0": "a d", "x1": "b e", "x2": "c"}
    assert one(None, IDS, 1, on=route(perm=2, x=3)).queues == ()


def test_brokers_that_differ_each_answer_some_of_the_time() -> None:
    views = [group(ids).views or () for ids in ("a b c", "a b")]
    seen = replace(group("a b c"), views=tuple(view for its in views for view in its))
    # with a and b alone all read all: their number less one is the share
    expected = {"x-1": "a b", "x0": "a c", "x1": "a b", "x2": "b c"}
    assert shown(one(replace(seen, pop_share_queue_nums={"T": (1,)}))) == expected
    both = one(replace(group("a b c"), pop_share_queue_nums={"T": (0, 1)}))
    assert (shown(both), both.pop_share_queue_nums) == ({**expected, "x-1": "a b c"}, (0, 1))


def test_a_grpc_consumer_reads_every_broker_with_a_master_and_others_keep_what_they_have() -> None:
    grpc = "host@7@1@abc"
    on = route(x=3, y=1)
    assert shown(one(None, IDS, 1, on=on)) == {"x0": "a c", "x1": "a c", "x2": "a b", "y0": "b c"}
    with_grpc = shown(one(None, (*IDS, grpc), 1, on=on))
    assert (with_grpc["x-1"], with_grpc["y-1"]) == (grpc, grpc)
    lost = shown(one(None, (*IDS, grpc), 1, on=route(masters=False, x=3)))
    assert "x-1" not in lost


def test_brokers_answer_nothing_to_a_strategy_that_they_do_not_have() -> None:
    report = MemberReport("a", strategy_class="AllocateMessageQueueConsistentHash", client_rebalance=False)
    seen = replace(group("a b c"), reports={"a": report})
    silent = one(seen)
    assert (silent.strategy, silent.queues) == ("CONSISTENT_HASH", None)
    codes = [finding.code for finding in brokers.pop_findings([silent], "g")]
    assert codes == ["assumed-pop-share", "broker-strategy"]
    circle = replace(report, strategy_class="AllocateMessageQueueAveragelyByCircle")
    assert one(replace(seen, reports={"a": circle})).strategy == "AVG_BY_CIRCLE"
    (named,) = brokers.pop_topics(seen, [route(x=1)], IDS, strategy="AVG")
    assert named.strategy == "AVG"


def test_behind_a_proxy_every_consumer_may_read_every_master() -> None:
    ids = ("h@2@0@zz", "h@1@0@zz")
    (topic,) = brokers.proxy_topics([route(x=3, y=2)], ids)
    assert (topic.by_proxy, topic.strategy, topic.pop_share_queue_nums, topic.assumed) == (True, None, (), False)
    assert shown(topic) == {"x-1": "h@1@0@zz h@2@0@zz", "y-1": "h@1@0@zz h@2@0@zz"}
    (lost,) = brokers.proxy_topics([route(masters=False, x=3)], ids)
    assert lost.queues == ()
    (hidden,) = brokers.proxy_topics([route(x=3)], None)
    assert [queue.consumers for queue in hidden.queues or ()] == [None]
    view = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
    listed = shown(one(replace(group("a b c"), proxies=(view,)), share=1))
    assert listed == {"x-1": "h@1@0@zz", "x0": "a c", "x1": "a b", "x2": "b c"}


CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
T = route("T", a=2, b=2)
ADDRESSES = {data.broker_name: data.address for data in T.broker_datas}


def asked_group(listed: dict[str, str], *, by_broker: str = "x", **more: Any) -> ConsumerGroup:
    views = tuple(
        MemberView(tuple(map(Connection, ids.split())), Seen(broker), ADDRESSES[broker])
        for broker, ids in listed.items()
    )
    reports = {
        each: MemberReport(each, client_rebalance=each != by_broker) for ids in listed.values() for each in ids.split()
    }
    return ConsumerGroup("g", Seen("here"), views=views, reports=reports, **more)


def answer(*places: tuple[str, int], mode: str | None = "PULL") -> AssignmentAnswer:
    return AssignmentAnswer(mode, frozenset(MessageQueue("T", *place) for place in places))


def test_each_broker_of_a_topic_is_asked_for_each_consumer_with_the_strategy_of_its_own() -> None:
    seen = asked_group({"a": "x y", "b": "y z"})
    circle = MemberReport("y", None, CLASSES["AVG_BY_CIRCLE"])
    seen = replace(seen, reports={**seen.reports, "y": circle})
    asked = [(each.broker_name, each.client_id, each.strategy) for each in brokers.assignment_questions(seen, [T])]
    assert asked == [(b, i, "AVG_BY_CIRCLE" if i == "y" else "AVG") for b in ("a", "b") for i in ("x", "y", "z")]
    assert list(brokers.assignment_questions(asked_group({"a": "x y"}, by_broker="nobody"), [T])) == []


def test_a_broker_answers_by_its_own_list() -> None:
    """Broker b lists x alone, which therefore has every queue there."""
    seen = asked_group({"a": "x y", "b": "x"})
    half = {"x": (("a", 0), ("a", 1)), "y": (("b", 0), ("b", 1))}
    questions = brokers.assignment_questions(seen, [T])
    answers = {each: answer(*half[each.client_id]) for each in questions if each.broker_name == "a"}
    answers[AssignmentQuestion("T", "x", "AVG", "b", str(ADDRESSES["b"]))] = answer(*half["x"], *half["y"])
    asked = brokers.compare_assignments(seen, [T], answers)
    found = [(each.broker_name, each.consumers, each.modes, each.mismatches) for each in asked]
    assert found == [("a", 2, ("PULL",), ()), ("b", 1, ("PULL",), ())]
    assert list(brokers.assignment_findings(asked, 3)) == []


def test_an_answer_that_is_not_the_predicted_one_is_shown_and_found() -> None:
    seen = asked_group({"a": "x y"})
    first, second = (AssignmentQuestion("T", i, "AVG", "a", str(ADDRESSES["a"])) for i in "xy")
    asked = brokers.compare_assignments(seen, [T], {first: answer(("a", 0)), second: AssignmentAnswer(None, None)})
    (one,) = asked
    assert [(each.client_id, each.queues_answered) for each in one.mismatches][1] == ("y", None)
    mismatch, missing = brokers.assignment_findings(asked, 4)
    assert mismatch.message == (
        "2 of 2 answers of brokers differ from the prediction; first a for x, topic T: answered a:0, predicted a:0, a:1"
    )
    assert mismatch.consumers == ("x", "y")
    assert missing.message == "what brokers assign: 2 questions of 4 without an answer"


def test_by_pop_any_share_that_brokers_have_may_be_the_one() -> None:
    seen = asked_group({"a": "x y z"}, pop_share_queue_nums={"T": (0, 1)})
    question = AssignmentQuestion("T", "x", "AVG", "a", str(ADDRESSES["a"]))
    for share, fits in (
        (answer(("a", -1), ("b", -1), mode="POP"), True),
        (answer(("a", 0), ("a", 1), ("b", 0), mode="POP"), True),
        (answer(("a", 0), ("a", 1), mode="POP"), False),
    ):
        (one,) = brokers.compare_assignments(seen, [T], {question: share})
        assert (not one.mismatches) is fits
        assert one.modes == ("POP",)
