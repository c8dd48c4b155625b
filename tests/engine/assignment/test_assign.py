from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from rmqlb import AllocationError, DataError, MessageQueue, TopicRouteData, UsageError, allocate, assign_pop
from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.rules import JAVA_CLASSES, WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment import brokers, consumers, detect
from rmqlb.engine.assignment.assign import Members, assign, owners_at_rest, runnable, under, why_idle
from rmqlb.engine.assignment.detect import fitting_strategies
from rmqlb.engine.assignment.owners import owners_by_strategy
from rmqlb.model.group import (
    Connection,
    ConsumerGroup,
    MemberReport,
    MemberView,
    ProxyView,
    QueueState,
    Seen,
    States,
    is_grpc,
)
from rmqlb.model.message_queue import sort_queues
from rmqlb.model.owners import ConsumerQueues, PopTopic, QueueOwners
from rmqlb.model.result import ERROR, INFO, WARNING, Finding
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import every_case, vectors

CLIENTS = tuple(f"10.0.0.{number}@1" for number in range(1, 5))
NO_QUEUE = "the topic has no readable queue"


def test_who_does_not_subscribe_takes_its_place_and_without_queues_or_consumers_nobody_owns() -> None:
    members = Members(("x", "y"), "AVG", subscribed={"y": {"Other"}})
    found = assign(route(a=2), members)
    assert ([*found.owners.values()], [*found.idle]) == ([("x",), ()], ["y"])
    everybody = replace(members, broadcasting=True)
    assert assign(route(a=2), everybody).idle == {"y": "this consumer does not subscribe to the topic"}
    assert assign(route(perm=2, a=2), everybody).idle == dict.fromkeys("xy", NO_QUEUE)
    found = assign(route(perm=2, a=4), Members(("x", "y"), "AVG"))
    assert (found.queues, found.idle) == ((), dict.fromkeys("xy", NO_QUEUE))
    assert [*assign(route(a=2), Members((), "AVG")).owners.values()] == [(), ()]
    ghost = MessageQueue("T", "gone", 7)  # queues that only a CONFIG list names come last
    config = {"x": [MessageQueue("T", "a", 0), ghost, MessageQueue("Other", "a", 0)]}
    found = assign(route(a=1), Members(("x",), "CONFIG", Settings(config=config)))
    assert found.queues == (MessageQueue("T", "a", 0), ghost)


def test_a_member_behind_one_whose_client_throws_has_its_share() -> None:
    """Both brokers are in zone z; only x is there, and CONFIG, which has no list, throws for it."""
    settings = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"x": "z", "y": "y", "z": "w"})
    found = assign(route(a=1), Members(("x", "y", "z"), "MACHINE_ROOM_NEARBY", settings), explain=True)
    assert (set(found.failures), set(found.idle)) == ({"x"}, {"y", "z"})
    mixed = Members(("x", "y", "z"), "AVG", settings, strategy_of={"x": "MACHINE_ROOM_NEARBY"})
    found = assign(route(a=3), mixed, explain=True)
    assert ([*found.owners.values()], [*found.failures]) == ([(), ("y",), ("z",)], ["x"])
    assert found.reasons[found.queues[0]] == "queue 0 is in block 0..0 of consumer 0"


@every_case(("ids", "strategy", "settings", "error", "hint"), [
    ("x x", "MACHINE_ROOM_NEARBY", Settings(broker_zones={}), "topic T: Machine room is null", "pass the settings of MACHINE_ROOM"),
    ("x", "MACHINE_ROOM_NEARBY", Settings(), "machineRoomResolver is null", "pass the settings of MACHINE_ROOM_NEARBY"),
    ("x", "CONSISTENT_HASH", Settings(virtual_nodes=-1), "illegal virtualNodeCnt :-1", "CONSISTENT_HASH cannot run"),
])  # fmt: skip
def test_no_assignment_if_all_clients_throw(ids: str, strategy: str, settings: Settings, error: str, hint: str) -> None:
    with pytest.raises(AllocationError) as raised:
        assign(route(a=1), Members(tuple(ids.split()), strategy, settings))
    assert raised.value.message.startswith(error)
    assert (raised.value.hint or "").startswith(hint)


def test_owners_by_strategy_come_queue_by_queue_and_strategy_by_strategy() -> None:
    """Nobody has seen who owns queue 3, and queue 9, which only CONFIG's list names, is none of the topic's."""
    q = [MessageQueue("T", "a", number) for number in (0, 1, 2, 3, 9)]
    members = Members(("y", "x", "x"), "AVG_BY_CIRCLE", Settings(config={"x": [q[3], q[4]]}))
    seen = {q[0]: "x", q[1]: "", q[2]: "z", q[4]: "x"}
    states = {queue: QueueState(frozenset(ids.split()), 9, queue.queue_id) for queue, ids in seen.items()}
    report = owners_by_strategy("g", [route(a=4)], members, ["AVG", "CONFIG"], states=states)
    rows = ((0, ("x",), 9, ("x",), ()), (1, (), 8, ("x",), ()), (2, ("z",), 7, (), ()), (3, None, None, ("y",), ("x",)))
    assert (report.group, report.topics, report.sorted_consumers) == ("g", ("T",), ("x", "x", "y"))
    assert report.queues == tuple(
        QueueOwners("T", "a", number, observed, lag, {"AVG": avg, "CONFIG": config}, {"AVG": None, "CONFIG": None})
        for number, observed, lag, avg, config in (*rows, (9, None, None, (), ("x",)))
    )
    idle = "no queue is configured for it"
    assert [(each.strategy, each.mismatches, each.consumers) for each in report.strategies] == [
        ("AVG", 2, (ConsumerQueues("x", 2, None), ConsumerQueues("y", 1, None))),
        ("CONFIG", 2, (ConsumerQueues("x", 2, None), ConsumerQueues("y", 0, idle))),
    ]
    explained = owners_by_strategy("g", [route(a=4)], members, ["AVG", "CONFIG"], explain=True)
    assert [each.mismatches for each in explained.strategies] == [None, None]
    assert [queue.reasons["CONFIG"] for queue in explained.queues] == ["by configuration"] * 4 + [None]


def test_a_queue_goes_where_its_owners_own_strategy_puts_it() -> None:
    members = Members(("x", "y"), "AVG", strategy_of={"y": "AVG_BY_CIRCLE"})
    found = assign(route(a=4), members, explain=True)
    begins = ["queue 0 is in", "AVG: queue 1 is in block", "AVG: queue 2 is in block", "queue 3, 3 mod"]
    assert [*found.owners.values()] == [("x",), ("x", "y"), (), ("y",)]
    for queue, begin in zip(found.queues, begins, strict=True):
        text, *other = found.reasons[queue].split("; ")
        assert text.startswith(begin)
        circle = f"AVG_BY_CIRCLE: queue {queue.queue_id}, {queue.queue_id} mod 2"
        assert [each.startswith(circle) for each in other] == [True] * begin.startswith("AVG:")
    nearby = Members(("x",), "MACHINE_ROOM_NEARBY", Settings(inner="AVG_BY_CIRCLE"))
    assert nearby.name == "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE"


def test_a_member_without_queues_has_a_reason_for_each_topic() -> None:
    members = Members(("a", "b"), "AVG", subscribed={"b": {"T", "U"}})
    too_few = "consumer 1 of 2 (counted from 0), and only 1 queues"
    routes = [route("U", perm=2, x=4), route("T", x=1), route("V", x=1), route("W", x=2)]
    assignments = [assign(one, members) for one in routes]
    assert why_idle("b", assignments[1:2]) == too_few
    assert why_idle("b", assignments) == (
        f"U: {NO_QUEUE}; T, V: {too_few}; "
        "W: this consumer does not subscribe to the topic, so its share stays unassigned"
    )


def test_consumers_whose_strategy_brokers_do_not_have_own_nothing() -> None:
    """Of a group in which only `b` computes its share itself, that one keeps its place and its share."""
    asking = Members(("a", "b", "c"), "CONSISTENT_HASH", by_broker=True, by_broker_of={"b": False})
    themselves = Members(("a", "b", "c"), "CONSISTENT_HASH")
    found, usual = (assign(route(x=8), members, explain=True) for members in (asking, themselves))
    assert found.owners == {queue: tuple({"b"} & set(ids)) for queue, ids in usual.owners.items()}
    assert {*found.idle} == {"a", "c"}
    nobody = assign(route(x=8), replace(asking, by_broker_of={}), explain=True)
    assert (set(nobody.owners.values()), set(nobody.reasons.values())) == ({()}, {found.idle["a"]})
    one, other = (assign(route(x=8), replace(members, strategy="AVG")).owners for members in (asking, themselves))
    assert one == other


SDK_OF = st.dictionaries(
    st.sampled_from(["￮@1", "\U0001f600@1", *CLIENTS]), st.sampled_from(["java", "go", "cpp"]), min_size=1
)


@given(st.sampled_from(WITHOUT_SETTINGS), SDK_OF, st.sampled_from(["java", "go"]), st.integers(1, 9))
def test_owners_of_a_mixed_group(strategy: str, sdks: dict[str, str], usual: str, number: int) -> None:
    topic = route(a=number, b=number)
    ids = (*sdks, "z@1")
    assignment = assign(topic, Members(ids, strategy, sdk=usual, sdk_of=sdks), explain=True)
    shares = allocate(strategy, topic.subscribe_queues(), ids, sdk=usual, sdks=sdks)
    owned = {i: {q for q, its in assignment.owners.items() if i in its} for i in ids}
    assert owned == {i: set(share) for i, share in shares.items()}
    assert assignment.reasons.keys() == assignment.owners.keys()
    assert set(assignment.idle) == {i for i, share in shares.items() if not share}


def test_each_library_runs_its_strategies_and_reasons_name_it_where_they_differ() -> None:
    for strategy, differ in (("CONSISTENT_HASH", True), ("AVG", False)):
        members = Members(CLIENTS, strategy, sdk_of={CLIENTS[1]: "go"})
        reasons = assign(route(a=8), members, explain=True).reasons.values()
        both = [f"{strategy} of go" in reason and f"{strategy} of java" in reason for reason in reasons]
        assert any(both) is differ
    members = Members(CLIENTS, "AVG", sdk="cpp")
    assert runnable(WITHOUT_SETTINGS, members) == ["AVG"]
    assert runnable(WITHOUT_SETTINGS, Members(CLIENTS, "AVG", sdk_of={CLIENTS[0]: "cpp"})) == list(WITHOUT_SETTINGS)
    with pytest.raises(UsageError, match="no other strategy can be set"):
        owners_at_rest([route(a=4)], under(members, "AVG_BY_CIRCLE"))
    with pytest.raises(UsageError, match="unknown SDK"):
        Members(CLIENTS, "AVG", sdk="perl")
    go = Members(CLIENTS, "CONSISTENT_HASH", sdk="go")
    states = {queue: QueueState(frozenset(ids)) for queue, ids in owners_at_rest([route(a=8)], go).items()}
    assert fitting_strategies([route(a=8)], go, states) == ("CONSISTENT_HASH",)
    assert fitting_strategies([route(a=8)], Members(CLIENTS, "AVG"), states) == ()


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
        listed, share = tuple(vector["cidAll"]) or None, vector["popShareQueueNum"]
        broker = brokers.AskedBroker(
            vector["brokerName"], listed, vector["mode"] or "PULL", share, vector["serverLoadBalancerEnable"]
        )
        lists, broadcasting = (message_queues(vector["mqAll"]), vector["ask"]), vector["messageModel"] == "BROADCASTING"
        answers = brokers.query_assignment(
            broker, vector["strategy"], vector["topic"], *lists, broadcasting=broadcasting
        )
        shares = vector["expected"].items()
        expected = {i: None if share is None else sort_queues(message_queues(share)) for i, share in shares}
        assert answers == expected, vector["id"]


@every_case(("listed", "numbers"), [(("x", "y"), [2, 2]), (("x",), [4, 0])])
def test_a_retry_topic_is_pulled_whatever_the_mode_is(listed: tuple[str, ...], numbers: list[int]) -> None:
    asked = brokers.AskedBroker("broker-a", listed, "POP", 0)
    answers = brokers.query_assignment(asked, "AVG", "%RETRY%g", queues(4, topic="%RETRY%g"), ["x", "y"])
    assert [len(own or ()) for own in answers.values()] == numbers


@every_case("strategy", ["CONSISTENT_HASH", "CONFIG", "avg", "PIN"])
def test_brokers_have_two_strategies(strategy: str) -> None:
    asked = brokers.AskedBroker("broker-a", ("x", "y"), "POP", 0)
    assert brokers.query_assignment(asked, strategy, "T", queues(4), ["x", "y"]) == {"x": None, "y": None}
    with pytest.raises(UsageError, match="brokers have only AVG and AVG_BY_CIRCLE"):
        assign_pop(strategy, queues(1), ["x"], 1)


IDS = ("a", "b", "c")


def shown(topic: PopTopic) -> dict[str, str]:
    return {f"{queue.broker_name}{queue.queue_id}": " ".join(queue.consumers or ("?",)) for queue in topic.queues or ()}


def one(
    seen: ConsumerGroup | None, ids: tuple[str, ...] = IDS, share: int | None = None, on: TopicRouteData | None = None
) -> PopTopic:
    (topic,) = brokers.pop_topics(seen, [on or route(x=3)], ids, share=share)
    return topic


def test_shares_are_given_or_those_of_each_broker_or_assumed() -> None:
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
    views = [group(ids).views or () for ids in ("a b c", "a b")]
    seen = replace(group("a b c"), views=tuple(view for its in views for view in its))
    # with a and b alone all read all: their number less one is the share
    expected = {"x-1": "a b", "x0": "a c", "x1": "a b", "x2": "b c"}
    assert shown(one(replace(seen, pop_share_queue_nums={"T": (1,)}))) == expected
    both = one(replace(group("a b c"), pop_share_queue_nums={"T": (0, 1)}))
    assert (shown(both), both.pop_share_queue_nums) == ({**expected, "x-1": "a b c"}, (0, 1))


def test_grpc_consumers_read_every_broker_with_a_master() -> None:
    grpc = "host@7@1@abc"
    on = route(x=3, y=1)
    assert shown(one(None, IDS, 1, on=on)) == {"x0": "a c", "x1": "a c", "x2": "a b", "y0": "b c"}
    with_grpc = shown(one(None, (*IDS, grpc), 1, on=on))
    assert (with_grpc["x-1"], with_grpc["y-1"]) == (grpc, grpc)
    assert "x-1" not in shown(one(None, (*IDS, grpc), 1, on=route(masters=False, x=3)))
    # behind a Proxy every consumer may read every master
    ids = ("h@2@0@zz", "h@1@0@zz")
    (topic,) = brokers.proxy_topics([route(x=3, y=2)], ids)
    assert (topic.by_proxy, topic.strategy, topic.pop_share_queue_nums, topic.assumed) == (True, None, (), False)
    assert shown(topic) == {"x-1": "h@1@0@zz h@2@0@zz", "y-1": "h@1@0@zz h@2@0@zz"}
    (slaves,) = brokers.proxy_topics([route(masters=False, x=3)], ids)
    assert slaves.queues == ()
    (hidden,) = brokers.proxy_topics([route(x=3)], None)
    assert [queue.consumers for queue in hidden.queues or ()] == [None]
    view = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
    listed = shown(one(replace(group("a b c"), proxies=(view,)), share=1))
    assert listed == {"x-1": "h@1@0@zz", "x0": "a c", "x1": "a b", "x2": "b c"}


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


CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
T = route("T", a=2, b=2)
ADDRESSES = {data.broker_name: data.address for data in T.broker_datas}


def asked_group(listed: dict[str, str], *, by_broker: str = "x", **more: Any) -> ConsumerGroup:
    listed_ids = {broker: ids.split() for broker, ids in listed.items()}
    views = tuple(MemberView(tuple(map(Connection, i)), Seen(b), ADDRESSES[b]) for b, i in listed_ids.items())
    reports = {i: MemberReport(i, client_rebalance=i != by_broker) for ids in listed_ids.values() for i in ids}
    return ConsumerGroup("g", Seen("here"), views=views, reports=reports, **more)


def answer(*places: tuple[str, int], mode: str | None = "PULL") -> AssignmentAnswer:
    return AssignmentAnswer(mode, frozenset(MessageQueue("T", *place) for place in places))


def test_each_broker_answers_for_each_consumer_by_its_own_list() -> None:
    seen = asked_group({"a": "x y", "b": "y z"})
    circle = MemberReport("y", None, CLASSES["AVG_BY_CIRCLE"])
    seen = replace(seen, reports={**seen.reports, "y": circle})
    questions = [(each.broker_name, each.client_id, each.strategy) for each in brokers.assignment_questions(seen, [T])]
    assert questions == [(b, i, "AVG_BY_CIRCLE" if i == "y" else "AVG") for b in ("a", "b") for i in ("x", "y", "z")]
    assert list(brokers.assignment_questions(asked_group({"a": "x y"}, by_broker="nobody"), [T])) == []
    # Broker b lists x alone, which therefore has every queue there.
    seen = asked_group({"a": "x y", "b": "x"})
    half = {"x": (("a", 0), ("a", 1)), "y": (("b", 0), ("b", 1))}
    of_a = (each for each in brokers.assignment_questions(seen, [T]) if each.broker_name == "a")
    answers = {each: answer(*half[each.client_id]) for each in of_a}
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
        "2 of 2 answers of brokers differ from the prediction; the first is a for x, topic T: answered a:0, predicted a:0, a:1"
    )
    assert mismatch.consumers == ("x", "y")
    assert missing.message == "assignments by brokers: 2 requests of 4 without an answer"


def test_by_pop_any_share_that_brokers_have_may_be_the_one() -> None:
    seen = asked_group({"a": "x y z"}, pop_share_queue_nums={"T": (0, 1)})
    question = AssignmentQuestion("T", "x", "AVG", "a", str(ADDRESSES["a"]))
    for places, fits in (("a-1 b-1", True), ("a0 a1 b0", True), ("a0 a1", False)):
        share = answer(*((place[0], int(place[1:])) for place in places.split()), mode="POP")
        (one,) = brokers.compare_assignments(seen, [T], {question: share})
        assert (not one.mismatches) is fits
        assert one.modes == ("POP",)


NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
QUEUE = MessageQueue("T", "x", 0)
AVG, CIRCLE = "AllocateMessageQueueAveragely", "AllocateMessageQueueAveragelyByCircle"
NEARBY = "AllocateMachineRoomNearby"


def reports(**told: tuple[bool | None, str | None]) -> dict[str, MemberReport]:
    pops = {name: None if pop is None else frozenset(pop.split()) for name, (_, pop) in told.items()}
    return {i: MemberReport(i, client_rebalance=own, pop_topics=pops[i]) for i, (own, _) in told.items()}


def test_queues_without_an_owner_with_several_or_with_another_than_predicted_are_counted_and_named() -> None:
    """Waiting messages are counted of unassigned queues only, as far as they are known."""
    q = queues(6, "x")
    owners = {q[0]: ("a",), q[1]: (), q[2]: (), q[3]: ("b", "a"), q[4]: ("c", "b"), q[5]: ()}
    states = {q[0]: QueueState(None, 7, 0), q[1]: QueueState(None, 1200, 0), q[2]: QueueState()}
    unassigned = "3 of 6 queues of group g are unassigned (observed), 1,200 messages waiting: T x 1-2,5"
    several = "2 of 6 queues of group g have duplicate owners (observed): T x 3-4"
    assert list(detect.owner_findings(owners, "group g", "g", "observed", states)) == [
        Finding("unassigned-queues", unassigned, "g", ERROR),
        Finding("duplicate-owners", several, "g", ERROR, ("a", "b", "c")),
    ]
    (one,) = detect.owner_findings({q[0]: (), q[1]: ("a",)}, "the group", None, "predicted", {})
    assert one.message == "1 of 2 queues of the group is unassigned (predicted): T x 0"
    assert list(detect.owner_findings({q[0]: ("a",)}, "the group", None, "observed", {})) == []
    # AVG gives queue 0 to a, 1 to b and 2 to c; b owns its own, whoever else owns it too.
    predicted = owners_at_rest([route(x=3)], Members(("a", "b", "c"), "AVG"))
    for seen, who in (({0: "a", 1: "b d", 2: "c"}, ("d",)), ({0: "a", 1: "b", 2: "b"}, ("b", "c")), ({2: ""}, ("c",))):
        own = {MessageQueue("T", "x", number): ids for number, ids in seen.items()}
        (found,) = detect.mismatch_findings(predicted, "AVG", group("a b c", owners=own).queues)
        assert found.consumers == who
    assert found.message == (
        "observed owners of 1 of 1 queue differ from the prediction of AVG; the first is x:2 of T: observed no owner, predicted c"
    )


@every_case(("told", "modes", "popped"), [
    ({"a": (True, ""), "b": (True, "")}, {"T": ("POP",)}, set()),
    ({"a": (False, ""), "b": (True, "")}, {"T": ("POP",)}, {"T"}),
    ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL",)}, set()),
    ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL", "POP")}, {"T"}),
    ({"a": (False, "T"), "b": (False, "")}, None, {"T"}),
    ({"a": (False, "T U")}, {"V": ("POP",)}, {"T", "U", "V"}),
    ({"a": (True, "")}, {"T": ("POP",)}, {"T"}),
    ({}, {"T": ("POP",)}, {"T"}),
    ({}, None, set()),
])  # fmt: skip
def test_pop_is_what_members_report_or_what_brokers_have_for_those_who_do_not_rebalance(
    told: dict[str, tuple[bool | None, str | None]], modes: dict[str, tuple[str, ...]] | None, popped: set[str]
) -> None:
    seen = replace(group("a b"), reports=reports(**told), request_modes=modes)
    assert consumers.popped_topics(seen) == popped
    if popped and not told:  # a topic whose queues are held is pulled, whatever its mode is by now
        assert consumers.popped_topics(replace(seen, queues={QUEUE: QueueState(frozenset({"a"}))})) == set()


def test_a_group_that_pulls_nothing_does_not_rebalance() -> None:
    rest = "by POP: several consumers may take messages from one queue, and none owns it"
    some = replace(group("a"), topics=("U", "T"), reports=reports(a=(False, "T U V")))
    for popped, start in (
        (group("a", consume_type="CONSUME_POP"), "group g consumes "),
        (some, "group g consumes T, U "),
    ):
        with pytest.raises(DataError) as raised:
            consumers.must_rebalance(popped)
        assert (raised.value.code, raised.value.message) == ("pop-consumption", start + rest)
    consumers.must_rebalance(replace(group("a"), topics=("T", "U"), reports=reports(a=(False, "T"))))
    consumers.must_rebalance(replace(group("a"), topics=("%RETRY%g",), reports=reports(a=(False, "%RETRY%g"))))


@every_case(("seen", "words"), [
    (group("a", message_model="BROADCASTING"), "is BROADCASTING: every consumer reads every queue"),
    (group("host@124@1@abc12z host@123@0@abc12z"), r"look like gRPC clients \(host@123@0@abc12z\)"),
    (ConsumerGroup("g", HERE), "a test does not report the consumers of group g"),
])  # fmt: skip
def test_a_group_whose_clients_own_no_queues_gets_no_plan(seen: ConsumerGroup, words: str) -> None:
    with pytest.raises(DataError, match=words):
        consumers.rebalanced_members(seen)


def test_members_are_sorted_and_keep_their_duplicates() -> None:
    """The gRPC clients that only a Proxy lists count in a group of which brokers list no consumer."""
    view = ProxyView((Connection("h@1@0@zz"), Connection("p")), Seen("Proxy p:8080"), "p:8080")
    for seen, expected in (
        (group("b a a"), ("a", "a", "b")),
        (replace(group(), views=()), ()),
        (replace(group("a b"), proxies=(view,)), ("a", "b", "p")),
        (replace(group("a"), views=(), proxies=(view,)), ("h@1@0@zz", "p")),
    ):
        assert consumers.rebalanced_members(seen) == expected
    assert not any(map(is_grpc, ["10.0.0.1@1#2", "10.0.0.1@DEFAULT", "10.0.0.1@i@unit", "h@1@unit1@STREAM"]))


@every_case(("ids", "expected"), [("abcd", (True, {"c": False})), ("ac", (False, {"a": True}))])
def test_new_consumers_are_assigned_as_most_are(ids: str, expected: tuple[bool, dict[str, bool]]) -> None:
    asking = replace(group("a b c"), reports=reports(a=(False, None), b=(False, None), c=(True, None)))
    assert consumers.assigned_by_broker(asking, tuple(ids)) == expected


ASK = "to list a Proxy's consumers, pass its remoting port, --proxy HOST:8080 (for a file, to fetch-routes)"


def unlisted(age_s: float | None = None, **known: Any) -> ConsumerGroup:
    read = None if age_s is None else round((NOW - timedelta(seconds=age_s)).timestamp() * 1000)
    states = {QUEUE: QueueState(broker_offset=5, consumer_offset=5, last_timestamp=read)}
    return replace(group(), views=(), seen=Seen("a test", NOW), queues=states, **known)


@every_case(("seen", "evidence"), [
    (unlisted(polling_num=2), "2 receive requests of the group wait there"),
    (unlisted(polling_num=1, consume_tps=3.0), "1 receive request of the group waits there"),
    (unlisted(consume_tps=2.56, polling_num=0), "they gave it 2.56 messages per second over the last minute"),
    (unlisted(-2), "it has read a message that was stored 0 s before"),
    (unlisted(30.52), "it has read a message that was stored 31 s before"),
    (unlisted(60), "it has read a message that was stored 60 s before"),
    (unlisted(60.001), None),
    (unlisted(3600, consume_tps=0.0, polling_num=0), None),
    (replace(unlisted(3), seen=Seen("a test")), None),
    (replace(unlisted(3), views=None), None),
    (replace(group("a"), polling_num=2, consume_tps=9.0), None),
])  # fmt: skip
def test_what_shows_consumers_that_no_broker_lists(seen: ConsumerGroup, evidence: str | None) -> None:
    assert consumers.behind_proxy(seen) == evidence
    if evidence is None:
        consumers.must_be_listed(seen)
        assert consumers.proxy_findings(seen) == []
        return
    with pytest.raises(DataError) as raised:
        consumers.must_be_listed(seen)
    assert raised.value.code == "behind-proxy"
    assert raised.value.message.startswith(f"brokers list no consumer of group g, but {evidence}: its consumers are ")
    assert ("probably" in raised.value.message) == (seen.polling_num in (0, None))
    left = "" if seen.polling_num else "; or the consumers have left within the last minute"
    assert raised.value.hint == ASK + left
    consumers.must_be_listed(seen, assumed=True)


def test_nobody_is_offline_who_may_be_behind_a_proxy() -> None:
    empty, other = (
        ProxyView(tuple(map(Connection, i)), Seen(f"Proxy {p}", NOW), p) for p, i in (("p:1", ""), ("q:1", "a"))
    )
    either = "no consumer of group g is visible{}: it is offline, or behind a Proxy"
    asked = unlisted(polling_num=0, proxies=(empty,))
    no_request = either.format(", and no broker holds a receive request of it")
    for seen, message, hint in (
        (unlisted(polling_num=0), no_request, f"try; {ASK}"),
        (unlisted(), either.format(""), f"try; {ASK}"),
        (unlisted(proxies=()), either.format(""), "try; none of the given Proxies answered"),
        (asked, "group g has no consumer online, at brokers or at Proxy p:1", "try"),
    ):
        told = consumers.nobody_online("g", seen, "try")
        assert (told.message, told.hint) == (message, hint)
    both = replace(asked, proxies=(empty, other))
    assert [consumers.is_surely_offline(each) for each in (asked, unlisted(), both)] == [True, False, False]
    with pytest.raises(DataError) as raised:
        consumers.must_be_listed(unlisted(polling_num=2, proxies=(empty,)))
    assert raised.value.hint == "pass each Proxy with --proxy; Proxy p:1 lists no consumer of the group"


@every_case(("seen", "codes"), [
    (group("a", consume_type="CONSUME_ACTIVELY"), ["pull-consumers"]),
    (group("h@1@0@zz", consume_type="CONSUME_ACTIVELY"), []),
    (replace(group("a"), reports=reports(a=(False, None))), ["broker-rebalance"]),
    (replace(group("a"), reports=reports(a=(True, None))), []),
])  # fmt: skip
def test_what_is_odd_about_members_is_said(seen: ConsumerGroup, codes: list[str]) -> None:
    assert [finding.code for finding in consumers.unusual_findings(seen)] == codes
    (shared,) = consumers.shared_id_findings(("a", "b", "a"))
    assert (shared.code, shared.consumers) == ("duplicate-client-id", ("a",))
    assert shared.message.startswith("2 processes share the client ID a: ")


@every_case(("names", "is_odd"), [
    (["10.0.0.9@1", "10.0.0.10@1", "10.0.0.100@1"], True),
    (["a-1", "a1", "a-10", "a-9"], True),
    (["9" * 5000, "1" + "0" * 5000], True),  # numbers of any length are compared as numbers
    (["a-1", "a-2", "b-1"], False),
    (["a-1", "a1", "a-2", "a.10", "a1b"], False),  # by sign, not by number
    (["1", "01", "a", "a1b", "ab"], False),  # 01 and 1 are one number
    (["9" * 5000, "a-00", "a-007", "a-08"], False),
])  # fmt: skip
def test_names_that_do_not_sort_by_number_are_pointed_out_once(names: list[str], is_odd: bool) -> None:
    assert [finding.code for finding in consumers.sort_findings(names, "client ids")] == ["surprising-order"] * is_odd


def averagely_too(_: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> list[MessageQueue]:
    return queues[client_ids.index(client_id) :: len(client_ids)]


@every_case(("given", "reported", "others"), [
    ("AVG", AVG, ""),
    ("AVG", CIRCLE, "AVG_BY_CIRCLE"),
    ("AVG", "MyStrategy", "MyStrategy"),
    ("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", NEARBY, ""),
    ("MACHINE_ROOM_NEARBY-AVG", AVG, "AVG"),
    # RocketMQ has no class for PIN: members that run one report a class of the application's own.
    ("PIN", "MyStrategy", ""),
    (averagely_too, "MyStrategy", ""),
    (averagely_too, AVG, "AVG"),
])  # fmt: skip
def test_only_impossible_reports_contradict_a_given_strategy(given: Any, reported: str, others: str) -> None:
    members = Members(("a", "b"), given)
    detected = detect.detect_strategy(members.group_strategy, group("a b", reports={"a": reported}), [], members)
    assert detected.origin == "given"
    text = f"the plan uses {members.group_strategy}, but consumers report {others}"
    assert [finding.message for finding in detected.findings] == ([text] if others else [])


@every_case(("seen", "strategy", "origin", "findings"), [
    (group("a b", reports={"a": CIRCLE}), "AVG_BY_CIRCLE", "reported", []),
    (group("a b c", reports={"a": AVG, "b": AVG, "c": CIRCLE}), "AVG", "reported", ["mixed-strategies"]),
    (group("a b", owners={q: "ab"[q.queue_id % 2] for q in queues(4, "x")}), "AVG_BY_CIRCLE", "observed", []),
    (group("a b"), "AVG", "assumed", ["assumed-strategy"]),
    (group(), "AVG", "assumed", ["assumed-strategy"]),
    (None, "AVG", "assumed", ["assumed-strategy"]),
])  # fmt: skip
def test_the_origin_of_a_strategy(seen: ConsumerGroup | None, strategy: str, origin: str, findings: list[str]) -> None:
    found = detect.detect_strategy(None, seen, [route(x=4)], Members(("a", "b"), "AVG"))
    assert (found.strategy, found.origin, [each.code for each in found.findings]) == (strategy, origin, findings)


def test_a_class_or_settings_that_only_the_application_knows_are_not_guessed() -> None:
    """Without settings CONFIG would be said to leave every queue without owner, and the others to throw."""
    own = group("a b c", reports={"a": "YourStrategy", "b": "MyStrategy", "c": AVG})
    with pytest.raises(DataError, match="the strategy class MyStrategy, which"):
        detect.detect_strategy(None, own, [], Members(("a", "b", "c"), "AVG"))
    known = Settings(consumer_idcs=frozenset(), config={}, broker_zones={}, client_zones={})
    nearby = "--strategy-option broker-zone=… and --strategy-option client-zone=…"
    config, room = "AllocateMessageQueueByConfig", "AllocateMessageQueueByMachineRoom"
    strategies = (config, "--strategy-option queues=FILE"), (room, "--strategy-option idc=ROOM"), (NEARBY, nearby)
    for java_class, options in strategies:
        seen = group("a b", reports={"a": AVG, "b": java_class})
        run = detect.detect_strategy(None, seen, [route(x=4)], Members(("a", "b"), "AVG")).run_by_members
        detect.must_be_set(run, known)
        with pytest.raises(DataError, match=f"but its settings are unknown \\(pass {options}"):
            detect.must_be_set(run, Settings())


@every_case(("reported", "shown", "codes"), [
    ({"a": NEARBY}, ["AVG", "AVG_BY_CIRCLE"], ["strategy-differs"]),
    ({"a": NEARBY}, ["MACHINE_ROOM_NEARBY-AVG"], []),
    ({"a": AVG, "b": CIRCLE}, ["AVG"], []),  # diagnose's finding says what they run
    ({}, ["AVG"], []),
])  # fmt: skip
def test_a_strategy_that_all_report_is_missed(reported: dict[str, str], shown: list[str], codes: list[str]) -> None:
    assert [finding.code for finding in detect.not_shown(group("a b", reports=reported), shown)] == codes


BOTH = {"a": "AVG", "b": "AVG_BY_CIRCLE"}
OBSERVED = dict(zip(queues(4, "b"), (QueueState(frozenset(ids)) for ids in ("a", "ab", "", "b")), strict=True))


@every_case(("reported", "states", "expected"), [
    (BOTH, OBSERVED, 0),
    ({"a": "AVG_BY_CIRCLE", "b": "AVG"}, OBSERVED, 2),
    ({"a": "AVG", "b": "AVG"}, OBSERVED, None),
    ({"a": "AVG", "b": "CONFIG"}, OBSERVED, None),
    (BOTH, {}, None),
])  # fmt: skip
def test_mixed_strategies_meet_observed_owners(reported: dict[str, str], states: States, expected: int | None) -> None:
    """AVG gives a the queues 0 and 1, AVG_BY_CIRCLE gives b the queues 1 and 3; the other way round 0, 2 and 2, 3."""
    members = Members(("a", "b"), "CONSISTENT_HASH")
    assert detect.mixed_mismatches(reported, [route(b=4)], members, states) == expected


def test_a_strategy_whose_constructor_throws_fits_nothing() -> None:
    throws = Members(("a",), "AVG", Settings(virtual_nodes=-1))
    found = detect.fitting_strategies([route(x=1)], throws, {QUEUE: QueueState(frozenset("a"))})
    assert found == ("AVG", "AVG_BY_CIRCLE")


def speaking(connections: Mapping[str, tuple[str | None, str | None]], **rest: Any) -> ConsumerGroup:
    listed = tuple(Connection(i, None, language, version) for i, (language, version) in connections.items())
    return ConsumerGroup("g", HERE, views=(MemberView(listed, HERE),), **rest)


GRPC = "h@7@1@abc"
Sdks = consumers.GroupSdks
GO, JAVA, CPP = ("GO", "V4_5_2"), ("JAVA", "V5_5_0"), ("CPP", "V4_6_0")
MOST_RUN_GO = speaking({"a": GO, "b": JAVA, "c": GO, "d": CPP})
TWO = speaking({"a": JAVA, "b": GO})
LATER_BROKER = tuple(MemberView((Connection("a", None, language, None),), HERE) for language in (None, "GO"))


@every_case(("seen", "ids", "given", "expected"), [
    (MOST_RUN_GO, "abcd", {}, Sdks("go", {"b": "java", "d": "cpp"})),
    (MOST_RUN_GO, "ab", {}, Sdks("java", {"a": "go"})),
    (None, "", {}, Sdks()),
    (None, "", {"given": "go"}, Sdks("go")),
    (speaking({"a": (None, None)}), "a", {}, Sdks(assumed=frozenset("a"))),
    (ConsumerGroup("g", HERE, views=LATER_BROKER), "a", {}, Sdks("go")),
    # what the user names goes before what connections say
    (TWO, "ab", {"given": "cpp"}, Sdks("cpp")),
    (TWO, "ab", {"given_of": {"b": "cpp", "c": "go@3.1"}}, Sdks("java", {"b": "cpp", "c": "go"}, assumed=frozenset("c"))),
])  # fmt: skip
def test_the_most_frequent_library_is_usual(
    seen: ConsumerGroup | None, ids: str, given: dict[str, Any], expected: consumers.GroupSdks
) -> None:
    assert consumers.group_sdks(seen, ids, **given) == expected


def test_a_language_that_is_not_known_has_the_nearest_rules_and_is_named() -> None:
    said = {
        "a": ("PYTHON", "V4_6_0"), "b": ("GO", "V5_0_0"), "c": ("RUST", None), "d": ("JAVA", None), GRPC: ("RUST", ""),
    }  # fmt: skip
    found = consumers.group_sdks(speaking(said), tuple(said))
    assert found.sdk_of == {"a": "cpp", "b": "go"}
    assert [(each.code, each.consumers) for each in found.findings] == [("assumed-sdk", (i,)) for i in "cba"]
    assert found.findings[1].message == (
        "consumers run GO V5_0_0, whose rules are not known: predicted by those of go "
        "(apache/rocketmq-client-go 2.0.0 to 2.1.2), the nearest"
    )
    assert [each.code for each in consumers.group_sdks(TWO, "ab", given="go@3.1").findings] == ["assumed-sdk"]


def test_several_libraries_are_as_grave_as_what_they_make_of_the_queues() -> None:
    found = consumers.group_sdks(speaking({"a": ("GO", None), "b": ("JAVA", None), "c": ("GO", None)}), "abc")
    (good,), (bad,) = (consumers.mixed_finding(found, "abc", unassigned=n, several=2 * n) for n in (0, 1))
    assert [each.severity for each in (good, bad)] == [INFO, WARNING]
    assert {(each.code, each.consumers) for each in (good, bad)} == {("mixed-sdks", ("b",))}
    assert bad.message.endswith("1 queue unassigned and 2 with duplicate owners, as predicted")
    assert good.message.endswith("each queue still has one owner")
    assert list(consumers.mixed_finding(found, "ac", unassigned=1, several=0)) == []
