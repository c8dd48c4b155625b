from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
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
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, ProxyView, QueueState, Seen, is_grpc
from rmqlb.model.message_queue import sort_queues
from rmqlb.model.owners import ConsumerQueues, PopTopic, QueueOwners
from rmqlb.model.result import INFO, WARNING, Finding
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import assert_recorded, every_case, refusal, vectors

CLIENTS = tuple(f"10.0.0.{number}@1" for number in range(1, 5))
XYZ = ("x", "y", "z")
# Both brokers are in zone z; only x is there, and CONFIG, which has no list, throws for it.
NEAR_X = Settings(inner="CONFIG", broker_zones={"a": "z"}, client_zones={"x": "z", "y": "y", "z": "w"})
CONFIGURED = Settings(
    config={"x": [MessageQueue("T", "a", 0), MessageQueue("T", "gone", 7), MessageQueue("Other", "a", 0)]}
)
SUBSCRIBED = Members(("a", "b"), "AVG", subscribed={"b": {"T", "U"}})
ASKING = Members(("a", "b", "c"), "CONSISTENT_HASH", by_broker=True, by_broker_of={"b": False})
ASSIGNED: Mapping[str, tuple[TopicRouteData, Members]] = {
    "y does not subscribe": (route(a=2), Members(("x", "y"), "AVG", subscribed={"y": {"Other"}})),
    "y does not subscribe, BROADCASTING": (route(a=2), Members(("x", "y"), "AVG", subscribed={"y": {"Other"}}, broadcasting=True)),
    "no readable queue": (route(perm=2, a=4), Members(("x", "y"), "AVG")),
    "no readable queue, BROADCASTING": (route(perm=2, a=4), Members(("x", "y"), "AVG", broadcasting=True)),
    "no consumer": (route(a=2), Members((), "AVG")),
    "queues that only a CONFIG list names": (route(a=1), Members(("x",), "CONFIG", CONFIGURED)),
    "the client of x throws": (route(a=1), Members(XYZ, "MACHINE_ROOM_NEARBY", NEAR_X)),
    "the client of x throws, others run AVG": (route(a=3), Members(XYZ, "AVG", NEAR_X, strategy_of={"x": "MACHINE_ROOM_NEARBY"})),
    "all clients throw": (route(a=1), Members(("x", "x"), "MACHINE_ROOM_NEARBY", Settings(broker_zones={}))),
    "the constructor throws without settings": (route(a=1), Members(("x",), "MACHINE_ROOM_NEARBY")),
    "the constructor throws": (route(a=1), Members(("x",), "CONSISTENT_HASH", Settings(virtual_nodes=-1))),
    "two strategies": (route(a=4), Members(("x", "y"), "AVG", strategy_of={"y": "AVG_BY_CIRCLE"})),
    "an inner strategy": (route(a=2), Members(("x",), "PIN", Settings(inner="AVG_BY_CIRCLE", hosts=frozenset("x")))),
    # a consumer that computes its share itself keeps its place and its share
    "brokers do not have the strategy, except for b": (route(x=8), ASKING),
    "brokers do not have the strategy": (route(x=8), replace(ASKING, by_broker_of={})),
    "brokers have the strategy": (route(x=4), replace(ASKING, strategy="AVG")),
}  # fmt: skip


def assigned(topic: TopicRouteData, members: Members) -> Iterator[str]:
    try:
        found = assign(topic, members, explain=True)
    except AllocationError as error:
        yield f"{error.message} [{error.hint}]"
        return
    yield found.strategy
    for queue in found.queues:
        owners = " ".join(found.owners[queue]) or "nobody"
        yield f"{queue.topic} {queue.broker_name} {queue.queue_id}: {owners}, {found.reasons.get(queue)}"
    yield from (f"{client_id} is idle: {why}" for client_id, why in found.idle.items())
    yield from (f"{client_id} throws: {error}" for client_id, error in found.failures.items())


def test_assignments_and_their_reasons_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: [*assigned(*case)] for name, case in ASSIGNED.items()}
    routes = [route("U", perm=2, x=4), route("T", x=1), route("V", x=1), route("W", x=2)]
    assignments = [assign(one, SUBSCRIBED) for one in routes]
    answers["why b is idle"] = [why_idle("b", some) for some in (assignments[1:2], assignments)]
    assert_recorded(Path(__file__).with_name("assignments.txt"), answers, request)


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
    assert "unknown SDK" in refusal(UsageError, Members, CLIENTS, "AVG", sdk="perl").message
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
BY_PROXY = ("h@2@0@zz", "h@1@0@zz")
ABC, ONE_SHARE = group("a b c"), replace(group("a b c"), pop_share_queue_nums={"T": (1,)})
THREE, BOTH_BROKERS = [route(x=3)], [route(x=3, y=1)]


def pop_cases() -> Iterator[tuple[str, tuple[PopTopic, ...]]]:
    yield "the share of the brokers", brokers.pop_topics(ONE_SHARE, THREE, IDS)
    yield "another share is given", brokers.pop_topics(ONE_SHARE, THREE, IDS, share=2)
    yield "a share that is not known", brokers.pop_topics(ABC, THREE, IDS)
    yield "more consumers than queues", brokers.pop_topics(None, THREE, tuple("abcde"), share=1)
    yield "no consumer", brokers.pop_topics(None, THREE, (), share=1)
    yield "no readable queue", brokers.pop_topics(None, [route(perm=2, x=3)], IDS, share=1)
    # with a and b alone all read all: their number less one is the share
    views = tuple(view for ids in ("a b c", "a b") for view in group(ids).views or ())
    yield "brokers that list other consumers", brokers.pop_topics(replace(ONE_SHARE, views=views), THREE, IDS)
    both = replace(ABC, pop_share_queue_nums={"T": (0, 1)})
    yield "brokers with two shares", brokers.pop_topics(both, THREE, IDS)
    for ids in (IDS, (*IDS, "host@7@1@abc")):
        yield f"{ids} of two brokers", brokers.pop_topics(None, BOTH_BROKERS, ids, share=1)
    without = [route(masters=False, x=3)]
    yield "a gRPC client, no master", brokers.pop_topics(None, without, (*IDS, "host@7@1@abc"), share=1)
    view = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
    yield "a gRPC client at a Proxy", brokers.pop_topics(replace(ABC, proxies=(view,)), THREE, IDS, share=1)
    for name, routes in (("with masters", BOTH_BROKERS), ("without a master", without)):
        yield f"all behind a Proxy, {name}", brokers.proxy_topics(routes, BY_PROXY)
    yield "behind a Proxy that did not report them", brokers.proxy_topics(THREE, None)
    report = MemberReport("a", strategy_class=CLASSES["CONSISTENT_HASH"], client_rebalance=False)
    seen = replace(ABC, reports={"a": report})
    yield "a strategy that brokers do not have", brokers.pop_topics(seen, THREE, IDS)
    yield "another strategy is given", brokers.pop_topics(seen, THREE, IDS, strategy="AVG")
    circle = replace(seen, reports={"a": replace(report, strategy_class=CLASSES["AVG_BY_CIRCLE"])})
    yield "a strategy that brokers have", brokers.pop_topics(circle, THREE, IDS)


def pop_lines(topics: Sequence[PopTopic]) -> Iterator[str]:
    for topic in topics:
        known = "assumed" if topic.assumed else "by a Proxy" if topic.by_proxy else "known"
        yield f"{topic.strategy}, popShareQueueNum {topic.pop_share_queue_nums} {known}"
        for queue in topic.queues or ():
            consumers = "unknown" if queue.consumers is None else " ".join(queue.consumers)
            yield f"  {queue.broker_name} {queue.queue_id}: {consumers}"
    yield from (f"{each.code}: {each.message}" for each in brokers.pop_findings(topics, "g"))


CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
T = route("T", a=2, b=2)
ADDRESSES = {data.broker_name: data.address for data in T.broker_datas}
Answers = dict[AssignmentQuestion, AssignmentAnswer]


def asked_group(listed: dict[str, str], *, by_broker: str = "x", **more: Any) -> ConsumerGroup:
    listed_ids = {broker: ids.split() for broker, ids in listed.items()}
    views = tuple(MemberView(tuple(map(Connection, i)), Seen(b), ADDRESSES[b]) for b, i in listed_ids.items())
    reports = {i: MemberReport(i, client_rebalance=i != by_broker) for ids in listed_ids.values() for i in ids}
    return ConsumerGroup("g", Seen("here"), views=views, reports=reports, **more)


def answered(mode: str = "PULL", **told: str | None) -> Answers:
    """Broker and consumer, such as `ax` → the queues that the broker answers; None is no answer."""
    found: Answers = {}
    for key, text in told.items():
        question = AssignmentQuestion("T", key[1], "AVG", key[0], str(ADDRESSES[key[0]]))
        places = ((each[0], int(each[1:])) for each in (text or "").split())
        queues = None if text is None else frozenset(MessageQueue("T", *place) for place in places)
        found[question] = AssignmentAnswer(None if text is None else mode, queues)
    return found


def asked_cases() -> Iterator[tuple[str, ConsumerGroup, Answers]]:
    # Broker b lists x alone, which therefore has every queue there.
    own = answered(ax="a0 a1", ay="b0 b1", bx="a0 a1 b0 b1")
    yield "each broker by its own list", asked_group({"a": "x y", "b": "x"}), own
    yield "other answers than predicted", asked_group({"a": "x y"}), answered(ax="a0", ay=None)
    seen = asked_group({"a": "x y z"}, pop_share_queue_nums={"T": (0, 1)})
    for places in ("a-1 b-1", "a0 a1 b0", "a0 a1"):
        yield f"{places} by POP, of which two shares are known", seen, answered("POP", ax=places)


def asked_lines(seen: ConsumerGroup, answers: Answers) -> Iterator[str]:
    compared = brokers.compare_assignments(seen, [T], answers)
    for each in compared:
        yield f"{each.broker_name} answers {each.consumers} in {each.modes}"
        for mismatch in each.mismatches:
            queues = (mismatch.queues_answered, mismatch.queues_predicted)
            yield f"  {mismatch.client_id}: " + ", not ".join(str(own and [*map(astuple, own)]) for own in queues)
    yield from (f"{each.code}: {each.message} {each.consumers}" for each in brokers.assignment_findings(compared, 3))


def test_what_brokers_give_consumers_is_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: [*pop_lines(topics)] for name, topics in pop_cases()}
    answers |= {name: [*asked_lines(seen, its)] for name, seen, its in asked_cases()}
    assert_recorded(Path(__file__).with_name("brokers.txt"), answers, request)


def test_each_broker_is_asked_for_each_consumer_with_its_strategy() -> None:
    seen = asked_group({"a": "x y", "b": "y z"})
    circle = MemberReport("y", None, CLASSES["AVG_BY_CIRCLE"])
    seen = replace(seen, reports={**seen.reports, "y": circle})
    questions = [(each.broker_name, each.client_id, each.strategy) for each in brokers.assignment_questions(seen, [T])]
    assert questions == [(b, i, "AVG_BY_CIRCLE" if i == "y" else "AVG") for b in ("a", "b") for i in ("x", "y", "z")]
    assert list(brokers.assignment_questions(asked_group({"a": "x y"}, by_broker="nobody"), [T])) == []


NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
QUEUE = MessageQueue("T", "x", 0)
AVG, CIRCLE = "AllocateMessageQueueAveragely", "AllocateMessageQueueAveragelyByCircle"
NEARBY = "AllocateMachineRoomNearby"


def reports(**told: tuple[bool | None, str | None]) -> dict[str, MemberReport]:
    pops = {name: None if pop is None else frozenset(pop.split()) for name, (_, pop) in told.items()}
    return {i: MemberReport(i, client_rebalance=own, pop_topics=pops[i]) for i, (own, _) in told.items()}


def line_of(found: Finding) -> str:
    return f"{found.severity} {found.code} of {found.group}, {found.consumers}: {found.message}"


def owner_lines() -> Iterator[tuple[str, Iterable[Finding]]]:
    """Waiting messages are counted of unassigned queues only, as far as they are known."""
    q = queues(6, "x")
    owners = {q[0]: ("a",), q[1]: (), q[2]: (), q[3]: ("b", "a"), q[4]: ("c", "b"), q[5]: ()}
    states = {q[0]: QueueState(None, 7, 0), q[1]: QueueState(None, 1200, 0), q[2]: QueueState()}
    yield "unassigned queues and duplicate owners", detect.owner_findings(owners, "group g", "g", "observed", states)
    some = {q[0]: (), q[1]: ("a",)}
    yield "one of two queues unassigned", detect.owner_findings(some, "the group", None, "predicted", {})
    yield "each queue has an owner", detect.owner_findings({q[0]: ("a",)}, "the group", None, "observed", {})
    # AVG gives queue 0 to a, 1 to b and 2 to c; b owns its own, whoever else owns it too.
    predicted = owners_at_rest([route(x=3)], Members(("a", "b", "c"), "AVG"))
    for seen in ({0: "a", 1: "b d", 2: "c"}, {0: "a", 1: "b", 2: "b"}, {2: ""}):
        own = {MessageQueue("T", "x", number): ids for number, ids in seen.items()}
        yield f"AVG, observed {seen}", detect.mismatch_findings(predicted, "AVG", group("a b c", owners=own).queues)
    yield "shared IDs", consumers.shared_id_findings(("a", "b", "a"))


def test_findings_on_owners_are_as_recorded(request: pytest.FixtureRequest) -> None:
    found = {name: [*map(line_of, findings)] or ["none"] for name, findings in owner_lines()}
    assert_recorded(Path(__file__).with_name("owners.txt"), found, request)


def unlisted(age_s: float | None = None, **known: Any) -> ConsumerGroup:
    read = None if age_s is None else round((NOW - timedelta(seconds=age_s)).timestamp() * 1000)
    states = {QUEUE: QueueState(broker_offset=5, consumer_offset=5, last_timestamp=read)}
    return replace(group(), views=(), seen=Seen("a test", NOW), queues=states, **known)


def proxy(address: str, *client_ids: str) -> ProxyView:
    return ProxyView(tuple(map(Connection, client_ids)), Seen(f"Proxy {address}", NOW), address)


def modes(told: dict[str, tuple[bool | None, str | None]], its: tuple[str, ...], **more: Any) -> ConsumerGroup:
    return replace(group("a b"), reports=reports(**told), request_modes={"T": its} if its else None, **more)


HOLDS = {QUEUE: QueueState(frozenset({"a"}))}
CONSUMING: Mapping[str, ConsumerGroup] = {
    "pushes": group("a"), "takes by POP": group("a", consume_type="CONSUME_POP"),
    "all rebalance, mode POP": modes({"a": (True, ""), "b": (True, "")}, ("POP",)),
    "b rebalances, mode POP": modes({"a": (False, ""), "b": (True, "")}, ("POP",)),
    "none rebalances, mode PULL": modes({"a": (False, ""), "b": (False, "")}, ("PULL",)),
    "none rebalances, both modes": modes({"a": (False, ""), "b": (False, "")}, ("PULL", "POP")),
    "a reports POP of T": modes({"a": (False, "T"), "b": (False, "")}, ()),
    "a reports POP of U too": modes({"a": (False, "T U")}, ("POP",)),
    "a rebalances, b is silent": modes({"a": (True, "")}, ("POP",)),
    "all are silent, mode POP": modes({}, ("POP",)), "all are silent, owners": modes({}, ("POP",), queues=HOLDS),
    "all are silent": modes({}, ()),
    "all topics by POP": replace(group("a"), topics=("U", "T"), reports=reports(a=(False, "T U V"))),
    "some topics by POP": replace(group("a"), topics=("T", "U"), reports=reports(a=(False, "T"))),
    "its retry topic by POP": replace(group("a"), topics=("%RETRY%g",), reports=reports(a=(False, "%RETRY%g"))),
    "broadcasts": group("a", message_model="BROADCASTING"), "not observed": ConsumerGroup("g", HERE),
    "gRPC clients": group("host@124@1@abc12z host@123@0@abc12z"),
    "pulls": group("a", consume_type="CONSUME_ACTIVELY"),
    "gRPC clients that pull": group("h@1@0@zz", consume_type="CONSUME_ACTIVELY"),
    "an ID twice": group("b a a"), "brokers know no consumer": replace(group(), views=()),
    "gRPC and other clients at a Proxy": replace(group("a b"), proxies=(proxy("p:8080", "h@1@0@zz", "p"),)),
    "the same, none at brokers": replace(group(), views=(), proxies=(proxy("p:8080", "h@1@0@zz", "p"),)),
    "two requests wait": unlisted(polling_num=2), "one request waits": unlisted(polling_num=1, consume_tps=3.0),
    "messages were given out": unlisted(consume_tps=2.56, polling_num=0),
    **{f"read a message stored {age} s before": unlisted(age) for age in (-2, 30.52, 60, 60.001)},
    "reads nothing": unlisted(3600, consume_tps=0.0, polling_num=0),
    "no time of the look": replace(unlisted(3), seen=Seen("a test")), "no list": replace(unlisted(3), views=None),
    "listed consumers": replace(group("a"), polling_num=2, consume_tps=9.0),
    "no request waits": unlisted(polling_num=0), "nothing is known": unlisted(),
    "Proxies that did not answer": unlisted(proxies=()),
    "a Proxy without consumers": unlisted(polling_num=0, proxies=(proxy("p:1"),)),
    "a Proxy with a consumer": unlisted(proxies=(proxy("p:1"), proxy("q:1", "a"))),
    "a Proxy without consumers, requests wait": unlisted(polling_num=2, proxies=(proxy("p:1"),)),
}  # fmt: skip


def consuming(seen: ConsumerGroup) -> Iterator[str]:
    evidence, offline = consumers.behind_proxy(seen), consumers.is_surely_offline(seen)
    popped = sorted(consumers.popped_topics(seen))
    yield f"POP {popped}, behind a Proxy: {evidence}, surely offline: {offline}"
    yield f"share queues: {' '.join(consumers.rebalanced_members(seen)) or 'nobody'}"
    if not seen.client_ids:
        error = consumers.nobody_online("g", seen, "try")
        yield f"nobody: {error.message} [{error.hint}]"
    for reason, refused in consumers.refusals(seen).items():
        yield f"{reason}, {refused.code}: {refused.message} [{refused.hint}]"
    yield from map(line_of, consumers.unusual_findings(seen))


def test_ways_to_consume_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: consuming(seen) for name, seen in CONSUMING.items()}
    assert_recorded(Path(__file__).with_name("consumers.txt"), answers, request)


def test_new_consumers_are_assigned_as_most_are_and_ids_show_grpc_clients() -> None:
    asking = replace(group("a b c"), reports=reports(a=(False, None), b=(False, None), c=(True, None)))
    found = [consumers.assigned_by_broker(asking, tuple(ids)) for ids in ("abcd", "ac")]
    assert found == [(True, {"c": False}), (False, {"a": True})]
    assert not any(map(is_grpc, ["10.0.0.1@1#2", "10.0.0.1@DEFAULT", "10.0.0.1@i@unit", "h@1@unit1@STREAM"]))


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


CONFIG, ROOM = "AllocateMessageQueueByConfig", "AllocateMessageQueueByMachineRoom"
CIRCLING = {q: "ab"[q.queue_id % 2] for q in queues(4, "x")}
DETECTED: Mapping[str, tuple[Any, ConsumerGroup | None]] = {
    **{
        f"{given} given, a reports {reported}": (given, group("a b", reports={"a": reported}))
        for given, reported in (
            *(("AVG", AVG), ("AVG", CIRCLE), ("AVG", "MyStrategy")),
            *((f"MACHINE_ROOM_NEARBY-{inner}", name) for inner, name in (("AVG_BY_CIRCLE", NEARBY), ("AVG", AVG))),
            ("PIN", "MyStrategy"),  # RocketMQ has no class for PIN: consumers that run one report a class of their own
        )
    },
    "a function given, a class of its own reported": (averagely_too, group("a b", reports={"a": "MyStrategy"})),
    "a function given, AVG reported": (averagely_too, group("a b", reports={"a": AVG})),
    "AVG_BY_CIRCLE reported": (None, group("a b", reports={"a": CIRCLE})),
    "AVG and AVG_BY_CIRCLE reported": (None, group("a b c", reports={"a": AVG, "b": AVG, "c": CIRCLE})),
    "owners of AVG_BY_CIRCLE": (None, group("a b", owners=CIRCLING)),
    "nothing known": (None, group("a b")), "no consumer": (None, group()), "no group": (None, None),
    "classes of the application": (None, group("a b c", reports={"a": "YourStrategy", "b": "MyStrategy", "c": AVG})),
    # Without settings CONFIG would be said to leave every queue without owner, and the others to throw.
    **{f"AVG and {name} reported": (None, group("a b", reports={"a": AVG, "b": name})) for name in (CONFIG, ROOM, NEARBY)},
    "MACHINE_ROOM_NEARBY reported": (None, group("a b", reports={"a": NEARBY})),
}  # fmt: skip
KNOWN = Settings(consumer_idcs=frozenset(), config={}, broker_zones={}, client_zones={})


def detected(given: Any, seen: ConsumerGroup | None) -> Iterator[str]:
    members = Members(("a", "b"), given or "AVG")
    try:
        found = detect.detect_strategy(given and members.group_strategy, seen, [route(x=4)], members)
        yield f"{found.strategy}, {found.origin}, reported {found.reported}, consumers run {found.run_by_members}"
        yield from map(line_of, found.findings)
        detect.must_be_set(found.run_by_members, KNOWN)
        detect.must_be_set(found.run_by_members, Settings())
    except DataError as error:
        yield f"{error.code}: {error.message} [{error.hint}]"
    for shown in ("AVG", "MACHINE_ROOM_NEARBY-AVG"):
        findings = () if seen is None else detect.not_shown(seen, [shown])
        yield from (f"  shown {shown}: {finding.message}" for finding in findings)


def test_detected_strategies_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: detected(*case) for name, case in DETECTED.items()}
    assert_recorded(Path(__file__).with_name("strategies.txt"), answers, request)


@every_case(("reported", "observed", "expected"), [
    ("AVG AVG_BY_CIRCLE", ("a", "ab", "", "b"), 0),
    ("AVG_BY_CIRCLE AVG", ("a", "ab", "", "b"), 2),
    ("AVG AVG", ("a", "ab", "", "b"), None),
    ("AVG CONFIG", ("a", "ab", "", "b"), None),
    ("AVG AVG_BY_CIRCLE", (), None),
])  # fmt: skip
def test_mixed_strategies_meet_observed_owners(reported: str, observed: Sequence[str], expected: int | None) -> None:
    """AVG gives a the queues 0 and 1, AVG_BY_CIRCLE gives b the queues 1 and 3; the other way round 0, 2 and 2, 3."""
    states = {queue: QueueState(frozenset(ids)) for queue, ids in zip(queues(4, "b"), observed, strict=False)}
    names = dict(zip("ab", reported.split(), strict=True))
    assert detect.mixed_mismatches(names, [route(b=4)], Members(("a", "b"), "CONSISTENT_HASH"), states) == expected
    throws = Members(("a",), "AVG", Settings(virtual_nodes=-1))
    fits = detect.fitting_strategies([route(x=1)], throws, {QUEUE: QueueState(frozenset("a"))})
    assert fits == ("AVG", "AVG_BY_CIRCLE")


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
