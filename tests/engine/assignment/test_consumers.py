from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment import consumers, detect
from rmqlb.engine.assignment.assign import Members, owners_at_rest
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
from rmqlb.model.result import ERROR, INFO, WARNING, Finding
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import every_case

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
        "observed owners of 1 of 1 queue differ from what AVG predicts; first x:2 of T: observed no owner, predicted c"
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
    rest = "by POP: several consumers may take messages from one queue, none owns it"
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
    (ConsumerGroup("g", HERE), "the consumers of group g are not in a test"),
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


ASK = "--proxy HOST:8080, a Proxy's remoting port, lists the consumers behind it (for a file: in fetch-routes)"


def unlisted(age_s: float | None = None, **known: Any) -> ConsumerGroup:
    read = None if age_s is None else round((NOW - timedelta(seconds=age_s)).timestamp() * 1000)
    states = {QUEUE: QueueState(broker_offset=5, consumer_offset=5, last_timestamp=read)}
    return replace(group(), views=(), seen=Seen("a test", NOW), queues=states, **known)


@every_case(("seen", "evidence"), [
    (unlisted(polling_num=2), "2 receive requests of it wait there"),
    (unlisted(polling_num=1, consume_tps=3.0), "1 receive request of it waits there"),
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
    no_request = either.format(", no receive request of it waits at a broker")
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
    assert raised.value.hint == "give each Proxy with --proxy; Proxy p:1 lists no consumer of it"


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
        with pytest.raises(DataError, match=f"whose settings are not known \\({options} says them"):
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
    assert good.message.endswith("each queue has one owner all the same")
    assert list(consumers.mixed_finding(found, "ac", unassigned=1, several=0)) == []
