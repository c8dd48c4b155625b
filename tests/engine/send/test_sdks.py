from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import Failure, MessageQueue, Moment, PublishingLoadBalancer, go_round_robin, select_by_hash
from rmqlb.engine.send.profile import CLIENTS, NAMES, SDKS, sdk
from rmqlb.engine.send.queues import CppRoundRobin, cpp_attempts, publish_list, stored_list
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from tests.engine.send.scenarios import REFUSED, TWO, sent
from tests.support.builders import route
from tests.support.mismatches import assert_recorded, every_case, refusal, vectors

VECTORS = list(vectors("producers"))
PAIR = [MessageQueue("T", broker, number) for broker in "ab" for number in range(2)]


def answered(kind: str, name: str) -> Iterator[tuple[dict[str, Any], list[MessageQueue], Any]]:
    for vector in VECTORS:
        if vector["kind"] == kind and name in vector["expected"]:
            yield vector, [MessageQueue("T", *queue) for queue in vector["queues"]], vector["expected"][name]


def sdks_with(kind: str) -> list[str]:
    return sorted({name for vector in VECTORS if vector["kind"] == kind for name in vector["expected"]})


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RmqlbError:
        return "refused"


def test_every_profile_has_the_vectors_that_it_names() -> None:
    counts = Counter(name for vector in VECTORS for name in vector["expected"])
    counts["java@5.5.0"] = sum(len(line["args"]) for line in vectors("hash")) + sum(
        line["version"] == "5.5.0" for line in vectors("strategy")
    )
    for profile in SDKS:
        assert profile.vectors == counts.pop(f"{profile.name}@{profile.mirrors}", 0), profile.name
    assert counts == {"java-grpc@5.0.7": 784}
    kinds = Counter(vector["kind"] for vector in VECTORS)
    assert kinds == {"hash": 424, "take": 360, "send": 320}


@every_case("name", sdks_with("hash"))
def test_a_key_goes_where_the_sdk_sends_it(name: str) -> None:
    for vector, listed, expected in answered("hash", name):
        if isinstance(expected, dict):
            wanted: Any = "refused"
        elif isinstance(expected, list):
            wanted = MessageQueue("T", *expected)
        else:
            wanted = listed[expected]
        assert outcome(lambda: select_by_hash(listed, vector["key"], sdk=name)) == wanted, vector  # noqa: B023


@every_case("name", [name for name in sdks_with("take") if name != "go@2.1.2"])
def test_a_grpc_producer_takes_the_candidates_that_the_sdk_takes(name: str) -> None:
    for vector, listed, expected in answered("take", name):

        def taken() -> list[list[MessageQueue]]:
            balancer = PublishingLoadBalancer(listed, sdk=name, start=vector["start"])  # noqa: B023
            return [balancer.take_message_queues(frozenset(brokers), count) for count, brokers in vector["steps"]]  # noqa: B023

        wanted = "refused" if isinstance(expected, dict) else [[listed[at] for at in step] for step in expected]
        assert outcome(taken) == wanted, vector


def test_a_go_producer_goes_round_as_client_go_does() -> None:
    for vector, listed, expected in answered("take", "go@2.1.2"):
        robin = go_round_robin(listed, *filter(None, [vector["start"]]))  # 0 is the default
        picked = [robin.select(brokers[0] if brokers else None) for _, brokers in vector["steps"]]
        assert picked == [listed[at] for (at,) in expected], vector


def test_the_attempts_of_cpp_are_those_of_its_own_picks() -> None:
    for vector, listed, expected in answered("send", "cpp@2.2.0"):
        robin = CppRoundRobin(listed, vector["start"] % 2**31)
        for (_, brokers), places in zip(vector["steps"], expected, strict=True):
            taken = list[MessageQueue]()
            for queue in cpp_attempts(lambda: robin, 5):  # noqa: B023
                taken.append(queue)
                if queue.broker_name not in brokers:
                    break
            assert taken == [listed[at] for at in places], vector


def test_sdks_that_were_not_run_differ_from_java_as_their_source_says() -> None:
    def first(name: str, isolated: set[str]) -> list[str]:
        taken = PublishingLoadBalancer(PAIR, sdk=name).take_message_queues(isolated, 3)
        return [f"{queue.broker_name}{queue.queue_id}" for queue in taken]

    assert first("java-grpc", set()) == ["a0", "b0"]
    # They count before they look, so that the first message goes to the second queue.
    assert [first(name, set()) for name in ("go-grpc@master", "csharp-grpc")] == [["a1", "b0"]] * 2
    # When all are isolated C# goes on as if none were.
    assert first("csharp-grpc", {"a", "b"}) == ["a1", "b0"]
    assert len({select_by_hash(PAIR, half, sdk="nodejs-grpc") for half in "\ud800\udfff\ufffd"}) == 1


@every_case(("call", "problem"), [
    (lambda: select_by_hash(PAIR, "x", sdk="goo"), "goo: not an SDK"),
    (lambda: select_by_hash(PAIR, "x", sdk="csharp-grpc"), "csharp-grpc cannot be predicted: string.GetHashCode differs from process"),
    (lambda: select_by_hash(PAIR, "x", sdk="go-grpc@new"), "go-grpc@new: not a version of go-grpc"),
    (lambda: select_by_hash(PAIR, 7, sdk="go"), "arg is 7: text is needed"),
    (lambda: select_by_hash(PAIR, "", sdk="go"), "go: a message without a key goes to any queue"),
    (lambda: select_by_hash(PAIR, " ", sdk="proxy"), "proxy: a message without a key goes to any queue"),
    (lambda: select_by_hash(PAIR, "\ud800", sdk="go"), "half of a surrogate pair, which go cannot send"),
    (lambda: PublishingLoadBalancer(PAIR, sdk="go"), "go: not a gRPC SDK"),
    (lambda: PublishingLoadBalancer(PAIR, sdk="proxy"), "proxy: not a gRPC SDK"),
    (lambda: PublishingLoadBalancer(PAIR).take_message_queues(set(), 0), "count is 0"),
    (lambda: PublishingLoadBalancer(PAIR).take_message_queues("a", 1), "isolated is 'a'"),
    (lambda: go_round_robin(PAIR, -1), "start is -1"),
    (lambda: go_round_robin([]), "has no queue to pick from"),
    (lambda: PublishingLoadBalancer([]), "has no queue to pick from"),
    (lambda: select_by_hash([], "x", "go"), "has no queue to pick from"),
    # Node sees only queue 0 of each broker.
    (lambda: PublishingLoadBalancer(PAIR[1:2], sdk="nodejs-grpc"), "a producer of nodejs-grpc has no queue"),
])  # fmt: skip
def test_what_cannot_be_is_refused(call: Callable[[], object], problem: str) -> None:
    assert problem in refusal(DataError if "no queue" in problem else UsageError, call).message


@every_case(("text", "mirrors", "assumed"), [
    ("go-grpc", "5.1.4", False),
    ("go-grpc@5.1.4", "5.1.4", False),
    ("go-grpc@master", "master", False),
    ("go-grpc@5.1.3", "5.1.4", True),
    ("go-grpc@v5.2", "master", True),
    ("java-grpc", "5.2.0", False),
])  # fmt: skip
def test_versions_are_those_that_were_read_or_assumed(text: str, mirrors: str, assumed: bool) -> None:
    assert (sdk(text).profile.mirrors, sdk(text).assumed) == (mirrors, assumed)


ROUTE = TopicRouteData("T", (QueueData("b", 3, 2, 6), QueueData("a", 1, 2, 6), QueueData("c", 1, 1, 4), QueueData("d", 2, 2, 6)), (
    BrokerData("x", "a", {0: "192.0.2.1:10911", 1: "192.0.2.2:10911"}),
    BrokerData("x", "b", {0: "192.0.2.3:10911"}),
    BrokerData("x", "c", {0: "192.0.2.4:10911"}),
    BrokerData("x", "d", {1: "192.0.2.5:10911"}),
))  # fmt: skip
"""Brokers out of order, one with a slave, one that is read-only, one without a master, and other counts to read."""


STATIC = replace(
    ROUTE, topic_queue_mapping_by_broker={"a": TopicQueueMappingInfo("T", "__global__", 2, "a", 1, {0: 0})}
)
MANY = TopicRouteData("T", tuple(QueueData(f"b{number}", 1, 1, 6) for number in range(13)), ())
SPREAD = TopicRouteData(
    "T",
    (QueueData("a", 2, 2, 6), QueueData("b", 2, 2, 4)),
    (BrokerData("c", "a", {0: "192.0.2.1:1", 1: "192.0.2.2:1"}), BrokerData("c", "b", {0: "192.0.2.3:1"})),
)
"""A slave, and a broker that is for reading only: the list of go-grpc keeps both."""
KEYS = tuple(f"order-{number}" for number in range(200))


def lists_of(route: TopicRouteData) -> Iterator[str]:
    for name in NAMES:
        try:
            listed = publish_list(route, sdk(name).profile)
        except DataError as error:
            yield f"{name}: {error.message}"
        else:
            yield f"{name}: " + " ".join(f"{queue.broker_name}{queue.queue_id}" for queue in listed)


def lines_of(found: Any) -> Iterator[str]:
    yield from (f"{each.sdk}: unknown {each.unknown}, moved {each.moved}, {each.moved_share}" for each in found.sdks)
    yield from (f"{each.sdk}, {each.other_sdk}: {each.differ} differ, {each.differ_share}" for each in found.pairs)
    for row in found.keys[:12]:
        yield f"  {row.key}: {placed(row.queues)}" + (f", then {placed(row.queues_after)}" if row.queues_after else "")


def placed(queues: Mapping[str, MessageQueue | None]) -> str:
    return " ".join(f"{name} {queue and f'{queue.broker_name}{queue.queue_id}'}" for name, queue in queues.items())


def test_named_lists_and_keys_are_as_recorded(request: pytest.FixtureRequest) -> None:
    # A Proxy ends its list at a broker that the route does not name.
    unnamed = replace(ROUTE, queue_datas=(*ROUTE.queue_datas[:1], QueueData("x", 1, 1, 6), *ROUTE.queue_datas[1:]))
    routes = {"a route": ROUTE, "a static topic": STATIC, "13 brokers": MANY, "a broker without a name": unnamed}
    grpc = [sdk(name) for name in CLIENTS if name.endswith("-grpc")]
    two, more = route(a=8), ("16 write queues on every broker",)
    keys = {
        "gRPC, in cluster mode": key_queues(route(a=4, b=4), KEYS, [*grpc, sdk("proxy")], "cluster"),
        "a slave and a broker for reading, in local mode": key_queues(SPREAD, KEYS, [sdk("go-grpc"), sdk("java-grpc")]),
        "three SDKs": key_queues(two, KEYS, [sdk("java"), sdk("go"), sdk("cpp")]),
        # A Proxy's hash moves a key to a new queue or not at all.
        "twice as many queues": key_queues(two, KEYS, [sdk("java"), sdk("proxy")], after=route(a=16), changes=more),
    }
    answers = {f"lists of {name}": lists_of(each) for name, each in routes.items()}
    answers |= {f"keys of {name}": lines_of(found) for name, found in keys.items()}
    assert_recorded(Path(__file__).with_name("keys.txt"), answers, request)


def test_a_proxy_stores_in_its_own_broker_and_no_sdk_in_a_topic_without_writable_queues() -> None:
    assert [[queue.queue_id for queue in stored_list(ROUTE, broker)] for broker in ("b", "stranger")] == [[0, 1], []]
    with pytest.raises(DataError, match="topic T has no queue that producers can write"):
        key_queues(TopicRouteData("T", (QueueData("a", 2, 2, 4),), ()), ("a",), [sdk("java")])


def sends_of_a_route() -> Iterator[Any]:
    """Those questions whose queues are a route's: broker by broker, from 0 on."""
    for vector in VECTORS:
        counts: dict[str, int] = {}
        for broker, _ in vector["queues"]:
            counts[broker] = counts.get(broker, 0) + 1
        listed = [[broker, number] for broker, count in counts.items() for number in range(count)]
        if vector["kind"] == "send" and vector["queues"] == listed:
            yield vector, counts


def test_the_attempts_of_go_are_those_of_its_own_loop() -> None:
    questions = list(sends_of_a_route())
    assert len(questions) > 200
    for vector, counts in questions:
        # A route lists its brokers in any order; Java's list, in which a start is given, is sorted.
        topic = route(**counts)
        listed = [MessageQueue("T", broker, number) for broker, number in vector["queues"]]
        first = listed[(vector["start"] + 1) % len(listed)]
        failures = tuple(
            Failure(broker, REFUSED, Moment(message=number), Moment(message=number + 1))
            for number, (_, brokers) in enumerate(vector["steps"], start=1)
            for broker in brokers
            if broker in counts
        )
        wraps = vector["start"] + 4 * len(vector["steps"]) >= 2**32
        if wraps and 2**32 % len(listed):
            continue
        start = topic.publish_queues().index(first)
        report = sent(
            *failures, topic=topic, sdk="go", rate=Fraction(1), messages=len(vector["steps"]), start_at=start, retries=3
        )
        attempts: dict[int, list[int]] = {}
        for attempt in report.attempts or ():
            place = listed.index(MessageQueue("T", attempt.broker_name, attempt.queue_id))
            attempts.setdefault(attempt.message, []).append(place)
        assert list(attempts.values()) == vector["expected"]["go@2.1.2"], vector


def test_slaves_are_not_simulated_where_an_sdk_sends_to_them() -> None:
    slaves = tuple(BrokerData("c", name, {0: "192.0.2.1:1", 1: "192.0.2.2:1"}) for name in "ab")
    topic = TopicRouteData("T", TWO.queue_datas, slaves)
    with pytest.raises(DataError, match="producers of rust-grpc also send to slaves, which a has"):
        sent(topic=topic, sdk="rust-grpc")
    assert sent(topic=topic, sdk="java-grpc").totals.stored == 6
    assert sent(topic=topic, sdk="rust-grpc", proxy_mode="cluster").totals.stored == 6
