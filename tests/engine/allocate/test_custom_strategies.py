import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import (
    AllocationError,
    DataError,
    Event,
    GroupScenario,
    Members,
    MessageQueue,
    UsageError,
    allocate,
    allocate_for,
    check_strategy,
    simulate_group,
)
from rmqlb.engine.allocate.rules import NAMES, SDKS, sdk_named, sdk_of_connection
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arguments import STRATEGY, FromFile
from rmqlb.engine.assignment.assign import assign
from tests.support.builders import queues, route, short
from tests.support.mismatches import every_case, refusal, vectors

IDS = ("10.0.0.1@1", "10.0.0.10@1", "10.0.0.9@1")
EXAMPLE = Path(__file__).parents[3] / "examples" / "custom.py"
S = 1_000_000


def test_a_function_gets_the_group_and_lists_of_its_own_sorted_as_clients_sort() -> None:
    asked: list[tuple[Any, ...]] = []

    def note(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> list[MessageQueue]:
        asked.append((group, client_id, list(queues), list(client_ids)))
        queues.clear()
        client_ids.clear()
        return queues

    given, ids = queues(3), ["10.0.0.10@1", "10.0.0.9@1"]
    assert allocate(note, reversed(given), ids[::-1], group="g") == {client_id: [] for client_id in ids}
    assert asked == [("g", client_id, given, ids) for client_id in ids]


class ByCircle:
    def allocate(self, group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        return queues[client_ids.index(client_id) :: len(client_ids)]


@every_case("strategy", [
    ByCircle, ByCircle(), ByCircle().allocate, lambda *args: ByCircle().allocate(*args) * 10,
], ids=["class", "object", "method", "each queue ten times"])  # fmt: skip
def test_a_class_an_object_and_a_method_do_as_well(strategy: Any) -> None:
    assert allocate(strategy, queues(5), IDS) == allocate("AVG_BY_CIRCLE", queues(5), IDS)


@every_case(("answer", "told"), [
    (lambda queues: None, "returned None"),
    (iter, "returned a list_iterator"),
    (lambda queues: (queue for queue in queues), "returned a generator"),
    (lambda queues: queues[0], "returned a MessageQueue"),
    (lambda queues: [queues[0].queue_id], "returned a list with an int in it: 0"),
    (lambda queues: ["x" * 99], f"returned a list with a str in it: '{'x' * 58}…"),
    (lambda queues: [MessageQueue("T", "broker-z", 0)], "returned MessageQueue [topic=T, brokerName=broker-z, queueId=0], which is not one of the 4"),
    (lambda queues: queues * 1000, "returned 4,000 queues, but got 4"),
])  # fmt: skip
def test_a_wrong_answer_is_an_error_of_its_own(answer: Callable[[Any], Any], told: str) -> None:
    def wrong(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        return answer(queues)

    with pytest.raises(DataError, match=r"wrong \(test_custom_strategies.py\)") as caught:
        allocate(wrong, queues(4), IDS)
    assert told in str(caught.value)
    assert (caught.value.code, bool(caught.value.hint)) == ("custom-answer", True)
    assert not isinstance(caught.value, AllocationError)


@every_case(("strategy", "told"), [
    (lambda group: [], "<lambda> does not take 4 arguments"),
    (ByCircle.allocate, "allocate does not take 4 arguments"),
    (5, "an int is not callable"),
    (dict, "the class dict is not callable"),
    (None, "a NoneType is not callable"),
])  # fmt: skip
def test_what_is_no_strategy_is_refused(strategy: Any, told: str) -> None:
    for ask in (lambda: allocate(strategy, queues(4), IDS), lambda: Members(IDS, strategy)):
        caught = refusal(UsageError, ask)
        assert told in str(caught)
        assert "(group, client_id, queues, client_ids)" in (caught.hint or "")


def test_an_exception_says_the_line_it_comes_from_and_keeps_its_trace() -> None:
    def throws(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        return {}["no\nsuch"]  # type: ignore[index]

    line = throws.__code__.co_firstlineno + 1
    caught = refusal(AllocationError, allocate, throws, queues(4), IDS)
    assert str(caught) == f"KeyError: 'no\\nsuch' (test_custom_strategies.py:{line})"
    assert isinstance(caught.__cause__, KeyError)
    assert isinstance(refusal(AllocationError, assign, route(a=4), Members(IDS, throws)).__cause__, KeyError)


def test_members_and_their_strategies_may_be_functions_and_mixed() -> None:
    own: Any = ByCircle
    by_class, by_name = (Members(("a", "b", "c"), "AVG", strategy_of={"c": each}) for each in (own, "AVG_BY_CIRCLE"))
    assert assign(route(a=6), by_class).owners == assign(route(a=6), by_name).owners
    assert Members(("a",), own).name == "ByCircle (test_custom_strategies.py)"
    inner, named = (allocate("PIN", queues(4), IDS, inner=each, hosts=["10.0.0.9"]) for each in (own, "AVG_BY_CIRCLE"))
    assert inner == named


def test_a_member_whose_strategy_throws_keeps_what_it_holds() -> None:
    """`RebalanceImpl.rebalanceByTopic` catches the Throwable, and returns without a change."""
    asked: set[str] = set()

    def refuses_three(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        asked.add(group)
        return queues[client_ids.index(client_id) :: len(client_ids) if len(client_ids) < 3 else 0]

    scenario = GroupScenario((Event("join", 5 * S, "c"),), until_us=60 * S)
    report = simulate_group("g", Members(("a", "b"), refuses_three), [route(a=4)], scenario)
    assert [line.intervals[-1].owners for line in report.queues] == [("a",), ("b",), ("a",), ("b",)]
    assert asked == {"g"}


def codes(strategy: Any) -> dict[str, str]:
    return {finding.code: finding.message for finding in check_strategy(strategy, queues(8), IDS, group="g")}


def by_rule(takes: Callable[[int, int, int, int], bool]) -> Any:
    def strategy(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        own, size = sorted(client_ids).index(client_id), len(client_ids)
        return [queue for queue in queues if takes(queue.queue_id, own, len(queues), size)]

    return strategy


by_number = by_rule(lambda queue, own, _, size: queue % size == own)
rounds_down = by_rule(lambda queue, own, queues, size: queue % size == own and queue < queues // size * size)
first_to_all = by_rule(lambda queue, own, _, size: queue % size == own or queue == 0)
last_throws = by_rule(lambda queue, own, _, size: queue % size == own if own + 1 < size else bool(1 / 0))


@every_case(("strategy", "found"), [
    (by_number, {}),
    ("CONSISTENT_HASH", {}),
    (rounds_down, {"custom-unassigned": "leaves 2 queues (first broker-a:6 of T) unassigned: no consumer reads them"}),
    (first_to_all, {"custom-duplicate-owners": "gives 1 queue (broker-a:0 of T) to several consumers, which all read it"}),
    # What the one that throws does not take, it may hold: that is not unassigned.
    (last_throws, {"custom-throws": "throws for 1 of 3 consumers, which keep their queues; first 10.0.0.9@1: ZeroDivisionError"}),
])  # fmt: skip
def test_what_a_strategy_does_wrong_is_named(strategy: Any, found: dict[str, str]) -> None:
    told = codes(strategy)
    assert told.keys() == found.keys()
    assert all(text in told[code] for code, text in found.items())


def test_a_check_asks_for_each_topic_alone_and_tells_chance_from_order() -> None:
    sizes = []

    def note(group: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> Any:
        sizes.append((len({queue.topic for queue in queues}), len(queues), tuple(client_ids)))
        return queues if client_id == min(client_ids) else []

    both = [*queues(3, topic="T"), *queues(2, topic="U")]
    assert check_strategy(note, both, ["b", "a", "a"]) == ()
    assert {size[:2] for size in sizes} == {(1, 3), (1, 2)}
    assert {tuple(sorted(size[2])) for size in sizes} == {("a", "b")}
    assert check_strategy(note, both, []) == ()
    dice = random.Random(1)
    found = codes(by_rule(lambda *_: dice.random() < 0.5))
    assert "custom-varies" in found
    assert "custom-order" not in found


SOURCE = EXAMPLE.read_text(encoding="utf-8")


def test_the_example_gives_every_queue_once_by_weight_and_is_pickled_as_its_text() -> None:
    strategy = FromFile(SOURCE, str(EXAMPLE), "weighted", STRATEGY)
    ids = [f"192.0.2.2@inst{number}" for number in range(4)]
    assert [len(share) for share in allocate(strategy, queues(12), ids).values()] == [6, 2, 2, 2]
    assert [finding.code for finding in check_strategy(strategy, queues(13), ids)] == ["custom-order"]
    strategy = FromFile(SOURCE, "not/there.py", "weighted", STRATEGY)
    other = pickle.loads(pickle.dumps(strategy))
    assert (other, other.title, other.file) == (strategy, "weighted (there.py)", "not/there.py")
    assert allocate(other, queues(7), IDS) == allocate(strategy, queues(7), IDS)
    assert b"weighted" in pickle.dumps(Settings(custom={"weighted": strategy}))


ids = st.lists(st.text("abc10.@é\U0001f600￮", min_size=1, max_size=8), min_size=1, max_size=12)
BROKERS = st.sampled_from(["a", "b-10", "r@x", "￮", "\U0001f600"])
some_queues = st.lists(st.builds(MessageQueue, st.just("T"), BROKERS, st.integers(0, 30)), min_size=1, unique=True)
ZONES = dict.fromkeys(("broker_zones", "client_zones"), lambda name: name[0])
SETTINGS: dict[str, Any] = {"consumer_idcs": ["r"], "config": [MessageQueue("T", "a", 1)], "hosts": ["a", "1"], **ZONES}
ROOT = Path(__file__).parents[3]


@given(st.data(), st.sampled_from(NAMES), some_queues, ids)
def test_a_mixed_group_is_each_consumer_by_its_own_rule(
    data: st.DataObject, strategy: str, some: list[MessageQueue], client_ids: list[str]
) -> None:
    sdks = {i: data.draw(st.sampled_from(["java@5.5.0", "go", "cpp"])) for i in dict.fromkeys(client_ids)}
    # Without one consumer that can run it, nobody does.
    strategy = "AVG" if set(sdks.values()) == {"cpp"} else strategy
    shares = allocate(strategy, some, client_ids, sdks=sdks, **SETTINGS)
    assert list(shares) == list(allocate("AVG", some, client_ids))
    for client_id, sdk in sdks.items():
        own = "AVG" if sdk == "cpp" else strategy
        assert shares[client_id] == allocate_for(client_id, own, some, client_ids, sdk=sdk, **SETTINGS)


def test_a_cpp_consumer_runs_avg_in_any_group_and_throws_without_consumers() -> None:
    mixed = allocate("AVG_BY_CIRCLE", queues(4), ["x", "y"], sdks={"y": "cpp"})
    assert [short(share) for share in mixed.values()] == [["broker-a0", "broker-a2"], ["broker-a2", "broker-a3"]]
    for call in (
        lambda: allocate("AVG_BY_CIRCLE", queues(4), ["x"], sdk="cpp"),
        lambda: allocate("AVG_BY_CIRCLE", queues(4), [], sdk="cpp"),
        lambda: allocate("AVG_BY_CIRCLE", queues(4), ["x"], sdks={"x": "cpp"}),
        lambda: allocate_for("x", "CONFIG", queues(4), ["x"], sdk="cpp"),
    ):
        with pytest.raises(UsageError, match="no other strategy can be set") as raised:
            call()
        assert raised.value.code == "strategy-not-in-sdk"
    assert "unknown strategy AVGG" in refusal(UsageError, allocate, "AVGG", queues(4), ["x"], sdk="cpp").message
    for sdk, text in (("java", "cidAll is null or cidAll empty"), ("cpp", "cidAll is empty")):
        with pytest.raises(AllocationError, match=f"^{text}$"):
            allocate("AVG", queues(1), [], sdk=sdk)
    assert allocate("AVG", queues(1), [], sdk="go") == {}


@every_case("text", ["java", "go", "go@2.1.2", "go@v2.0.0", "cpp@2.2", "go@2.2.0?", "go@1.2.4?", "java@5.6.0?"])
def test_a_version_that_was_not_read_has_the_rules_of_the_nearest(text: str) -> None:
    guess = sdk_named(text.rstrip("?"))
    assert (guess.sdk.name, guess.assumed) == (text.partition("@")[0], text.endswith("?"))


WRONG = ["", "rust", "GO", "java-grpc", "go@", "go@x", "go@2", "@2.1.2"]


@every_case(
    "given_",
    [{"sdk": text} for text in WRONG]
    + [{"sdks": {"nobody": "rust"}}, {"sdk": 1}, {"sdks": ["go"]}, {"sdks": {"x": 1}}, {"sdks": {1: "go"}}],
)
def test_what_is_no_library_is_refused(given_: dict[str, Any]) -> None:
    refusal(UsageError, allocate, "AVG", queues(1), ["x"], **given_)


@every_case(("connections", "name", "assumed"), [
    ("JAVA V5_5_0, JAVA", "java", False),
    ("GO V4_5_2, GO", "go", False),
    ("GO V5_0_0", "go", True),
    ("CPP V4_6_0, CPP V3_1_8", "cpp", False),
    ("CPP V4_9_0, PYTHON V4_6_0, NODE_JS", "cpp", True),
    ("RUST, OTHER V5_5_0,", "java", True),
])  # fmt: skip
def test_a_connection_tells_the_library_or_the_nearest_is_assumed(connections: str, name: str, assumed: bool) -> None:
    for each in connections.split(","):
        language, _, version = each.strip().partition(" ")
        guess = sdk_of_connection(language or None, version or None)
        assert (guess.sdk.name, guess.assumed) == (name, assumed), each


def test_the_page_and_the_vectors_say_what_the_table_of_libraries_says() -> None:
    page = (ROOT / "docs/explanation/strategies.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    said = {row[0]: row[4:] for row in rows if len(row) == 8}
    for name, file in {"java": "allocate", "go": "go-allocate", "cpp": "cpp-allocate"}.items():
        sdk = SDKS[name]
        assert said[f"`{name}`"] == [sdk.newest, sdk.oldest, str(sdk.vectors), "yes" if sdk.live else "no"]
        assert len(list(vectors(file))) == sdk.vectors
