from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqlb
from fuzz.api_values import tried
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.arguments import require, shown
from rmqlb.engine.send.queues import GoRoundRobin
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import Selector
from tests.support.builders import queues, route
from tests.support.mismatches import every_case, refusal

AB = route(a=2, b=2)
TWO = rmqlb.Members(("x@1", "y@1"), "AVG")
REFUSED = rmqlb.Reaction("refused", "refused", 0, 1000)


def sends(**fields: Any) -> Callable[[], object]:
    return lambda: rmqlb.simulate_send(AB, rmqlb.SendScenario(**{"messages": 3} | fields))


def group(
    *events: rmqlb.Event, members: rmqlb.Members = TWO, routes: Any = (AB,), **fields: Any
) -> Callable[[], object]:
    return lambda: rmqlb.simulate_group("g", members, routes, rmqlb.GroupScenario(events, **fields))


def failing(reaction: Any = REFUSED, *moments: Any, name: str = "a") -> Callable[[], object]:
    return sends(failures=(rmqlb.Failure(name, reaction, *moments),))


MANY: Any = 10**12
WRONG: list[tuple[str, Callable[[], object], str, str | None]] = [
    ("a misspelt broker fails", failing(name="aa"), "'aa' fails: topic T has no such broker", "did you mean a?"),
    ("one has a latency", sends(latencies={"c": rmqlb.Latency("1ms", (1000,))}), "'c' has a latency: topic T has no", None),
    ("a kind of reaction", failing(rmqlb.Reaction("refuse", "x")), "kind is 'refuse': one of refused, timeout, slow", "did you mean refused"),  # type: ignore[arg-type]
    ("no messages", sends(messages=0), "SendScenario.messages is 0: a number from 1 to 1000000000000", None),
    ("a truth as a number", sends(messages=True), "messages is True: a whole number is needed", None),
    ("a rate beyond floats", sends(rate=10**400), "a rate of a number of 1329 bits messages", None),
    ("a zone that is a number", lambda: rmqlb.allocate("MACHINE_ROOM_NEARBY", queues(2), ["x"], broker_zones=len), "the zone of 'broker-a' is 8: text", None),  # type: ignore[arg-type]
    ("text for a set", sends(exclude="a"), "SendScenario.exclude is 'a': a set of text is needed", None),
    ("a mode", sends(mode="snyc"), "mode is 'snyc': one of sync, async, oneway", "did you mean sync"),
    ("a moment of nothing", failing(REFUSED, rmqlb.Moment()), r"failures\[0\].start is either a time or a message", None),
    ("an end before the start", failing(REFUSED, rmqlb.Moment(us=5), rmqlb.Moment(us=5)), r"failures\[0\] ends before", None),
    ("a status", failing(rmqlb.Reaction("status", "FLUSH_DISK", 10)), "name is 'FLUSH_DISK': expected one of", "FLUSH_DISK_TIMEOUT"),
    ("a selector's queue", sends(selector=Selector("queue")), "only a selector of kind queue takes a queue", None),
    ("a scenario of None", lambda: rmqlb.simulate_send(AB, None), "SendScenario is None: SendScenario is needed", None),  # type: ignore[arg-type]
    ("a route of text", lambda: rmqlb.simulate_send("T", rmqlb.SendScenario()), "TopicRouteData is 'T'", None),  # type: ignore[arg-type]
    ("one trial", lambda: rmqlb.simulate_trials(AB, rmqlb.SendScenario(), 1), "trials is 1: a number from 2 to 10000000", None),
    ("a kind of event", group(rmqlb.Event("jion", 0, "z@1")), "kind is 'jion': one of join", "did you mean join"),  # type: ignore[arg-type]
    ("queues without end", group(rmqlb.Event("route-change", 0, "T", read_queues=MANY)), "read_queues is 1000000000000", None),
    ("a timer of a period", group(timers=rmqlb.Timers(heartbeat_us=0)), "timers.heartbeat_us is 0: a number from 1", None),
    ("a rate of NaN", group(rates={rmqlb.MessageQueue("T", "a", 0): float("nan")}), "is nan: a number is needed", None),
    ("where to begin", group(consume_from="first"), "consume_from is 'first': one of CONSUME_FROM_LAST", None),
    ("nodes without end", lambda: rmqlb.allocate("CONSISTENT_HASH", queues(2), ["x"], virtual_nodes=MANY), "virtual_n", None),
    ("CONFIG with text", lambda: rmqlb.allocate("CONFIG", queues(2), ["x"], config="abc"), "config is 'abc': a list of MessageQueue or a mapping is", None),  # type: ignore[arg-type]
    ("queues of text", lambda: rmqlb.allocate("AVG", ["q"], ["x"]), r"queues\[0\] is 'q': MessageQueue is needed", None),  # type: ignore[list-item]
    ("ids without end", lambda: rmqlb.allocate("AVG", queues(2), map(str, count())), "more than 100000 elements", None),
    ("hosts as text", lambda: rmqlb.allocate("PIN", queues(2), ["x@1"], hosts="x"), "hosts is 'x': a list of text", None),
    ("a zone's pattern", lambda: rmqlb.allocate_for("x", "MACHINE_ROOM_NEARBY", queues(2), ["x"], broker_zones="("), "not a", None),
    ("an id of bytes", lambda: rmqlb.allocate_for(b"x", "AVG", queues(2), ["x"]), "client_id is of type bytes", None),  # type: ignore[arg-type]
    ("a clock of None", lambda: rmqlb.MQFaultStrategy(True, lambda: None).is_available("a"), "clock's time is None", None),  # type: ignore[arg-type, return-value]
    ("a version of None", lambda: rmqlb.MQFaultStrategy(client_version=None), "client_version is None: text", None),  # type: ignore[arg-type]
    ("a latency beyond a long", lambda: rmqlb.MQFaultStrategy().update_fault_item("a", 2**63), "current_latency is 9223372036854775808", None),
    ("a start beyond 32 bits", lambda: GoRoundRobin(queues(2), 2**32), "start is 4294967296", None),
    ("a topic of None", lambda: rmqlb.parse_route("{}", None), "the topic is of type NoneType", None),  # type: ignore[arg-type]
]  # fmt: skip


@every_case(("call", "message", "hint"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_what_cannot_be_is_refused_by_name(call: Callable[[], object], message: str, hint: str | None) -> None:
    with pytest.raises((rmqlb.DataError, rmqlb.UsageError), match=message) as caught:
        call()
    assert "\n" not in caught.value.message
    assert (hint or "") in (caught.value.hint or "")


def test_more_queues_than_any_topic_has_are_refused_before_they_are_listed() -> None:
    endless = TopicRouteData("T", (rmqlb.QueueData("a", MANY, MANY, 6),), AB.broker_datas)
    for listed in (endless.publish_queues, endless.subscribe_queues):
        assert "1000000000000 queues of a, more than 200000" in refusal(rmqlb.DataError, listed).message
    some = TopicRouteData("T", tuple(rmqlb.QueueData(name, 90_000, 90_000, 6) for name in "abc"), AB.broker_datas)
    with pytest.raises(rmqlb.DataError, match="270000 queues, more than 200000"):
        rmqlb.simulate_send(some, rmqlb.SendScenario())


def test_what_java_throws_is_both_an_error_of_ours_and_pythons_own() -> None:
    strategy, nothing = rmqlb.MQFaultStrategy(clock=lambda: 0), rmqlb.TopicPublishInfo(())
    calls: list[Callable[[], object]] = [
        lambda: rmqlb.select_by_hash([], "x"),
        lambda: strategy.select_one_message_queue(nothing, None),
    ]
    for call in calls:
        with pytest.raises(ZeroDivisionError) as divided:
            call()
        assert isinstance(divided.value, rmqlb.DataError)
    with pytest.raises(ValueError, match="bound must be positive") as refused:
        rmqlb.select_by_random([], rmqlb.JavaRandom(1))
    assert isinstance(refused.value, rmqlb.UsageError)
    with pytest.raises(rmqlb.AllocationError, match="illegal virtualNodeCnt :-1"):
        rmqlb.allocate("CONSISTENT_HASH", queues(2), ["x"], virtual_nodes=-1)


def test_lists_and_sets_of_any_make_are_taken() -> None:
    ids = (client_id for client_id in ("x", "y"))
    assert rmqlb.allocate("AVG", iter(queues(2)), ids) == rmqlb.allocate("AVG", queues(2), {"x": 0, "y": 0}.keys())
    tuples = rmqlb.simulate_send(
        AB, rmqlb.SendScenario(messages=3, failures=(rmqlb.Failure("a", REFUSED),), exclude=frozenset({"b"}))
    )
    lists: Any = rmqlb.SendScenario(messages=3, failures=[rmqlb.Failure("a", REFUSED)], exclude=["b"])  # type: ignore[arg-type]
    assert rmqlb.simulate_send(AB, lists).totals == tuples.totals
    settings_ = Settings(broker_zones=str.upper, client_zones={"x": None})
    require(settings_, Settings, "Settings")


@every_case(("value", "text"), [
    ("a" * 99, "'" + "a" * 60 + "…'"),
    ("\ud800\n", "'\\ud800\\n'"),
    (2.5, "2.5"),
    (b"x", "of type bytes"),
    (None, "None"),
])  # fmt: skip
def test_values_in_messages_are_short_and_on_one_line(value: object, text: str) -> None:
    assert shown(value) == text


@settings(max_examples=400)
@given(st.integers(0, 2**40))
def test_whatever_is_given_comes_a_value_or_an_error_of_ours(seed: int) -> None:
    tried(seed)


def test_the_fuzzer_notices_what_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.api_values.ALLOWED", (KeyError,))
    with pytest.raises(rmqlb.RmqlbError):
        assert [tried(seed) for seed in range(50)] == []
