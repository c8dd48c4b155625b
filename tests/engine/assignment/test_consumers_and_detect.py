"""Consumers that take part, their strategy, and findings on them and on owners."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import MessageQueue
from rmqlb.engine.allocate.strategy import Settings, StrategyFunction
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.assignment.consumers import (
    behind_proxy,
    broadcasting_finding,
    is_surely_offline,
    member_findings,
    must_be_listed,
    must_rebalance,
    nobody_online,
    other_subscriptions,
    popped_topics,
    proxy_findings,
    rebalanced_members,
    shared_id_findings,
    sort_findings,
)
from rmqlb.engine.assignment.detect import (
    detect_strategy,
    fitting_strategies,
    mismatch_findings,
    mixed_mismatches,
    must_be_set,
    not_shown,
    owner_findings,
)
from rmqlb.errors import DataError
from rmqlb.model.finding import ERROR, INFO, Finding
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, ProxyView, QueueState, Seen, is_grpc
from tests.support.builders import HERE, group, queues, route
from tests.support.mismatches import every_case


def test_queues_without_an_owner_and_with_several_are_counted_and_named() -> None:
    """What waits is told of unassigned queues only, as far as it is known."""
    q = queues(6, "x")
    owners = {q[0]: ("a",), q[1]: (), q[2]: (), q[3]: ("b", "a"), q[4]: ("c", "b"), q[5]: ()}
    states = {
        q[0]: QueueState(None, 7, 0),
        q[1]: QueueState(None, 1200, 0),
        q[2]: QueueState(),
        q[3]: QueueState(None, 9, 0),
    }
    assert list(owner_findings(owners, "group g", "g", "observed", states)) == [
        Finding(
            "unassigned-queues",
            "3 of 6 queues of group g are unassigned (observed), 1,200 messages waiting: T x 1-2,5",
            "g",
            ERROR,
        ),
        Finding(
            "duplicate-owners",
            "2 of 6 queues of group g have duplicate owners (observed): T x 3-4",
            "g",
            ERROR,
            ("a", "b", "c"),
        ),
    ]


def test_one_queue_is_told_as_one() -> None:
    one, other = queues(2, "x")
    (unassigned,) = owner_findings({one: (), other: ("a",)}, "the group", None, "predicted", {})
    assert unassigned.message == "1 of 2 queues of the group is unassigned (predicted): T x 0"
    (several,) = owner_findings({one: ("b", "a")}, "the group", None, "assumed", {})
    assert several.message == "1 of 1 queue of the group has duplicate owners (assumed): T x 0"
    assert list(owner_findings({one: ("a",), other: ("a",)}, "the group", None, "observed", {})) == []


NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
QUEUE = MessageQueue("T", "x", 0)


def reports(**told: tuple[bool | None, str | None]) -> dict[str, MemberReport]:
    """Of each member: whether it rebalances by itself, and the topics of its POP table, in one text."""
    return {
        name: MemberReport(name, client_rebalance=own, pop_topics=None if pop is None else frozenset(pop.split()))
        for name, (own, pop) in told.items()
    }


@every_case(
    ("told", "modes", "popped"),
    [
        ({"a": (True, ""), "b": (True, "")}, {"T": ("POP",)}, set()),
        ({"a": (False, ""), "b": (True, "")}, {"T": ("POP",)}, {"T"}),
        ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL",)}, set()),
        ({"a": (False, ""), "b": (False, "")}, {"T": ("PULL", "POP")}, {"T"}),
        ({"a": (False, ""), "b": (False, "")}, None, set()),
        ({"a": (False, "T"), "b": (False, "")}, None, {"T"}),
        ({"a": (False, "T U")}, {"V": ("POP",)}, {"T", "U", "V"}),
        ({"a": (True, "")}, {"T": ("POP",)}, {"T"}),
        ({}, {"T": ("POP",)}, {"T"}),
        ({}, None, set()),
    ],
)
def test_pop_is_what_members_report_or_what_brokers_tell_those_who_do_not_rebalance(
    told: dict[str, tuple[bool | None, str | None]], modes: dict[str, tuple[str, ...]] | None, popped: set[str]
) -> None:
    assert popped_topics(replace(group("a b"), reports=reports(**told), request_modes=modes)) == popped


def test_a_topic_whose_queues_are_held_is_pulled_whatever_its_mode_is_by_now() -> None:
    held = replace(group("a"), request_modes={"T": ("POP",)}, queues={QUEUE: QueueState(frozenset({"a"}))})
    assert popped_topics(held) == set()
    assert popped_topics(replace(held, queues={QUEUE: QueueState(frozenset())})) == {"T"}


def test_a_group_that_pulls_nothing_does_not_rebalance() -> None:
    rest = "by POP: several consumers may take messages from one queue, none owns it"
    for popped, start in (
        (group("a", consume_type="CONSUME_POP"), "group g consumes "),
        (replace(group("a"), topics=("T", "%RETRY%g"), reports=reports(a=(False, "T"))), "group g consumes T "),
        (replace(group("a"), topics=("U", "T"), reports=reports(a=(False, "T U V"))), "group g consumes T, U "),
    ):
        with pytest.raises(DataError) as raised:
            must_rebalance(popped)
        assert (raised.value.code, raised.value.message) == ("pop-consumption", start + rest)
    must_rebalance(replace(group("a"), topics=("T", "U"), reports=reports(a=(False, "T"))))
    must_rebalance(replace(group("a"), topics=("%RETRY%g",), reports=reports(a=(False, "%RETRY%g"))))


ASK = "--proxy HOST:8080, a Proxy's remoting port, tells the consumers behind it (of a file: in fetch-routes)"


def unlisted(age_s: float | None = None, **known: Any) -> ConsumerGroup:
    """A group without consumers, which has read a message of that age."""
    read = None if age_s is None else round((NOW - timedelta(seconds=age_s)).timestamp() * 1000)
    states = {QUEUE: QueueState(broker_offset=5, consumer_offset=5, last_timestamp=read)}
    return replace(group(), views=(), seen=Seen("a test", NOW), queues=states, **known)


@every_case(
    ("seen", "evidence"),
    [
        (unlisted(polling_num=2), "2 receive requests of it wait there"),
        (unlisted(polling_num=1, consume_tps=3.0), "1 receive request of it waits there"),
        (unlisted(consume_tps=2.56, polling_num=0), "they gave it 2.56 messages per second over the last minute"),
        (unlisted(3.2), "it has read a message that was stored 3 s before"),
        (unlisted(-2), "it has read a message that was stored 0 s before"),
        (unlisted(30.48), "it has read a message that was stored 30 s before"),
        (unlisted(30.52), "it has read a message that was stored 31 s before"),
        (unlisted(60), "it has read a message that was stored 60 s before"),
        (unlisted(60.001), None),
        (unlisted(3600, consume_tps=0.0, polling_num=0), None),
        (unlisted(), None),
        (replace(unlisted(3), seen=Seen("a test")), None),
        (replace(unlisted(3), views=None), None),
        (replace(group("a"), polling_num=2, consume_tps=9.0), None),
    ],
)
def test_what_shows_consumers_that_no_broker_lists(seen: ConsumerGroup, evidence: str | None) -> None:
    assert behind_proxy(seen) == evidence
    if evidence is None:
        must_be_listed(seen)
        assert proxy_findings(seen) == []
        return
    with pytest.raises(DataError) as raised:
        must_be_listed(seen)
    assert raised.value.code == "behind-proxy"
    assert raised.value.message.startswith(f"brokers list no consumer of group g, but {evidence}: its consumers are ")
    assert ("probably" in raised.value.message) == (seen.polling_num in (0, None))
    left = "" if seen.polling_num else "; or the consumers have left within the last minute"
    assert raised.value.hint == ASK + left
    must_be_listed(seen, assumed=True)
    (finding,) = proxy_findings(seen)
    connected, _, _ = raised.value.message.partition("; they are")
    assert (finding.code, finding.message) == ("behind-proxy", f"{connected}; they are not visible here")


def listing(address: str, *client_ids: str) -> ProxyView:
    """What a Proxy lists."""
    return ProxyView(tuple(map(Connection, client_ids)), Seen(f"Proxy {address}", NOW), address)


def test_nobody_is_offline_who_may_be_behind_a_proxy() -> None:
    either = "it is offline, or behind a Proxy"
    idle = nobody_online("g", unlisted(polling_num=0), "try this")
    assert idle.message == f"no consumer of group g is visible, no receive request of it waits at a broker: {either}"
    old = nobody_online("g", unlisted(), "try this")
    assert (old.message, old.hint) == (f"no consumer of group g is visible: {either}", f"try this; {ASK}")
    nobody = nobody_online(None, None, "try this", " on the broker")
    assert (nobody.message, nobody.hint) == ("the group has no consumer online on the broker", "try this")
    silent = nobody_online("g", unlisted(proxies=()), "try this")
    assert silent.message == f"no consumer of group g is visible: {either}"
    assert silent.hint == "try this; no Proxy that was given has answered"


def test_who_is_at_no_broker_and_at_no_proxy_is_offline() -> None:
    asked = unlisted(polling_num=0, proxies=(listing("p:8080"), listing("q:8080")))
    told = nobody_online("g", asked, "try this")
    assert told.message == "group g has no consumer online, at brokers or at Proxy p:8080, q:8080"
    assert told.hint == "try this"
    assert is_surely_offline(asked)
    assert not is_surely_offline(unlisted())
    assert not is_surely_offline(replace(asked, proxies=(listing("p:8080"), listing("q:8080", "a"))))


def test_a_proxy_that_lists_nobody_of_a_group_that_is_consumed_is_not_the_one() -> None:
    with pytest.raises(DataError) as raised:
        must_be_listed(unlisted(polling_num=2, proxies=(listing("p:8080"),)))
    assert raised.value.hint == "give each Proxy with --proxy; Proxy p:8080 lists no consumer of it"


def codes(seen: ConsumerGroup) -> list[str]:
    return [finding.code for finding in member_findings(seen)]


def test_members_are_sorted_and_keep_their_duplicates() -> None:
    assert rebalanced_members(group("b a a")) == ("a", "a", "b")
    assert rebalanced_members(group("h@1@0@zz a")) == ("a", "h@1@0@zz")  # one is no gRPC client


@every_case(
    ("seen", "words"),
    [
        (group("a", message_model="BROADCASTING"), "is BROADCASTING: every consumer reads every queue"),
        (group("a", consume_type="CONSUME_POP"), "consumes by POP"),
        (group("host@124@1@abc12z host@123@0@abc12z"), r"look like gRPC clients \(host@123@0@abc12z\)"),
        (ConsumerGroup("g", HERE), "the consumers of group g are not in a test"),
    ],
)
def test_a_group_whose_clients_own_no_queues_gets_no_plan(seen: ConsumerGroup, words: str) -> None:
    with pytest.raises(DataError, match=words):
        rebalanced_members(seen)


def test_a_group_known_to_be_empty_has_no_members() -> None:
    assert rebalanced_members(replace(group(), views=())) == ()


def test_ids_of_remoting_clients_are_not_taken_for_grpc_ones() -> None:
    assert not any(map(is_grpc, ["10.0.0.1@1#2", "10.0.0.1@DEFAULT", "10.0.0.1@i@unit", "h@1@unit1@STREAM"]))


def test_brokers_that_list_other_members_are_a_finding_and_all_members_count() -> None:
    seen = group("a a b", "a a")
    assert seen.client_ids == ("a", "a", "b")
    assert codes(seen) == ["duplicate-client-id", "split-consumer-view"]
    split = list(member_findings(seen))[1]
    assert (split.message.count(": 3"), split.message.count(": 2")) == (1, 1)  # each broker, and how many it lists
    first, second = seen.views or ()
    named = replace(seen, views=(replace(first, broker_addr="127.0.0.1:10911"), second))
    split = list(member_findings(named))[1]
    assert split.message == (
        "brokers list different consumers of group g (127.0.0.1:10911: 3; broker 1: 2); all of them are counted"
    )


def test_what_is_odd_about_members_is_said() -> None:
    assert codes(group("a", consume_type="CONSUME_ACTIVELY")) == ["pull-consumers"]
    assert codes(group("a h@1@0@zz")) == ["behind-proxy"]
    (found,) = member_findings(group("a h@1@0@zz"))
    assert "the others count them all the same" in found.message  # as the tables do, which give them a share
    assert found.consumers == ("h@1@0@zz",)
    broker_side = {"a": MemberReport("a", client_rebalance=False)}
    assert codes(replace(group("a"), reports=broker_side)) == ["broker-rebalance"]
    for own in (True, None):
        assert codes(replace(group("a"), reports={"a": MemberReport("a", client_rebalance=own)})) == []
    mixed = {"a": MemberReport("a", frozenset({"T", "%RETRY%g"})), "b": MemberReport("b", frozenset({"U", "%RETRY%g"}))}
    assert codes(replace(group("a b"), reports=mixed)) == ["subscription-mismatch"]
    (found,) = member_findings(replace(group("a b"), reports=mixed))
    assert found.message.startswith("consumers of group g subscribe to different topics (a and b): ")
    (found,) = member_findings(replace(group("a b"), reports=mixed, topics=("T",)))
    unlisted = sorted({topic for report in mixed.values() for topic in report.topics or ()} - {"T", "%RETRY%g"})
    assert f"; brokers do not list {', '.join(unlisted)} now" in found.message  # they keep the last heartbeat's topics


def test_findings_name_the_consumers_that_they_are_about() -> None:
    """Both brokers know two processes of b, and only the second one knows c."""
    shared, split = member_findings(group("a b b", "a b b c"))
    assert (shared.consumers, split.consumers) == (("b",), ("c",))
    assert shared.message.startswith("2 processes share the client ID b: ")
    assert list(shared_id_findings("ab")) == []
    assert other_subscriptions(group("a b")) == ()
    assert broadcasting_finding("group g", "g") == Finding(
        "broadcasting",
        "group g is BROADCASTING: each consumer reads every queue, and duplicate owners are as it should be",
        "g",
        INFO,
    )


def test_ids_that_do_not_sort_by_number_are_pointed_out_once() -> None:
    findings = list(sort_findings(["10.0.0.9@1", "10.0.0.10@1", "10.0.0.100@1"], "client ids"))
    assert [finding.message for finding in findings] == [
        "client ids sort by character, not by number: 10.0.0.100@1 stands before 10.0.0.10@1"
    ]
    assert not list(sort_findings(["a-1", "a-2", "b-1"], "broker names"))
    assert not list(sort_findings(["a-1", "a1", "a-2", "a.10", "a1b"], "broker names"))  # by sign, not by number
    assert list(sort_findings(["a-1", "a1", "a-10", "a-9"], "broker names"))
    assert not list(sort_findings(["1", "01", "a", "a1b", "ab"], "broker names"))  # 01 and 1 are one number


def test_numbers_of_any_length_are_compared_as_numbers() -> None:
    long, longer = "9" * 5000, "1" + "0" * 5000
    assert [finding.code for finding in sort_findings([longer, long], "client ids")] == ["surprising-order"]
    assert not list(sort_findings([long, "a-00", "a-007", "a-08"], "client ids"))


AVG, CIRCLE = "AllocateMessageQueueAveragely", "AllocateMessageQueueAveragelyByCircle"


def test_the_strategy_is_what_the_user_says_and_a_contradiction_is_told() -> None:
    seen = group("a b", reports={"a": CIRCLE})
    detected = detect_strategy("AVG", seen, [route(x=4)], Members(("a", "b"), "AVG"))
    assert (detected.strategy, detected.origin) == ("AVG", "given")
    assert [finding.code for finding in detected.findings] == ["strategy-differs"]


def averagely_too(_: str, client_id: str, queues: list[MessageQueue], client_ids: list[str]) -> list[MessageQueue]:
    return queues[client_ids.index(client_id) :: len(client_ids)]


@every_case(
    ("given", "reported", "others"),
    [
        ("AVG", AVG, ""),
        ("AVG", CIRCLE, "AVG_BY_CIRCLE"),
        ("AVG_BY_CIRCLE", AVG, "AVG"),
        ("AVG", "MyStrategy", "MyStrategy"),
        ("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "AllocateMachineRoomNearby", ""),
        ("MACHINE_ROOM_NEARBY-AVG", AVG, "AVG"),
        # RocketMQ has no class for PIN: members that run one report a class of the application's own.
        ("PIN", "MyStrategy", ""),
        (averagely_too, "MyStrategy", ""),
        (averagely_too, AVG, "AVG"),
    ],
)
def test_only_what_cannot_be_true_of_the_members_is_a_contradiction(
    given: str | StrategyFunction, reported: str, others: str
) -> None:
    members = Members(("a", "b"), given)
    detected = detect_strategy(members.group_strategy, group("a b", reports={"a": reported}), [], members)
    assert [finding.message for finding in detected.findings] == (
        [f"the plan uses {members.group_strategy}, but consumers report {others}"] if others else []
    )


def test_a_strategy_that_throws_fits_no_owners() -> None:
    """CONSISTENT_HASH with a negative number of virtual nodes: the client's constructor throws."""
    members = Members(("a",), "AVG", Settings(virtual_nodes=-1))
    seen = group("a", owners={MessageQueue("T", "x", 0): "a"})
    assert fitting_strategies([route(x=1)], members, seen.queues) == ("AVG", "AVG_BY_CIRCLE")


def test_else_it_is_what_the_members_report() -> None:
    detected = detect_strategy(None, group("a b", reports={"a": CIRCLE}), [], Members(("a", "b"), "AVG"))
    assert (detected.strategy, detected.origin, detected.findings) == ("AVG_BY_CIRCLE", "reported", ())


def test_members_that_report_different_strategies_each_keep_their_own() -> None:
    seen = group("a b c", reports={"a": AVG, "b": AVG, "c": CIRCLE})
    detected = detect_strategy(None, seen, [], Members(("a", "b", "c"), "AVG"))
    assert detected.strategy == "AVG"
    assert detected.strategy_of["c"] == "AVG_BY_CIRCLE"
    assert [finding.code for finding in detected.findings] == ["mixed-strategies"]


def test_a_class_of_the_users_own_is_not_guessed() -> None:
    reports = {"a": "YourStrategy", "b": "MyStrategy", "c": AVG}
    with pytest.raises(DataError, match="the strategy class MyStrategy, which"):
        detect_strategy(None, group("a b c", reports=reports), [], Members(("a", "b", "c"), "AVG"))


@every_case(
    ("java_class", "options"),
    [
        ("AllocateMessageQueueByConfig", "--strategy-option queues=FILE"),
        ("AllocateMessageQueueByMachineRoom", "--strategy-option idc=ROOM"),
        ("AllocateMachineRoomNearby", "--strategy-option broker-zone=… and --strategy-option client-zone=…"),
    ],
)
def test_settings_that_only_the_application_knows_are_not_guessed(java_class: str, options: str) -> None:
    """Without them CONFIG would be said to leave every queue without owner, and the others to throw."""
    seen = group("a b", reports={"a": AVG, "b": java_class})
    detected = detect_strategy(None, seen, [route(x=4)], Members(("a", "b"), "AVG"))
    known = Settings(consumer_idcs=frozenset(), config={}, broker_zones={}, client_zones={})
    must_be_set(detected.run_by_members, known)
    (other,) = {*detected.run_by_members} - {"AVG"}
    with pytest.raises(DataError, match=f"whose settings are not known \\({options} says them"):
        must_be_set(("AVG", other), Settings())


def test_owners_under_other_strategies_than_the_members_are_told_to_be_so() -> None:
    mixed, circle = group("a b", reports={"a": AVG, "b": CIRCLE}), group("a b", reports={"a": CIRCLE})
    nearby = group("a b", reports={"a": "AllocateMachineRoomNearby"})
    shown = ["AVG", "AVG_BY_CIRCLE"]
    assert [finding.code for finding in not_shown(mixed, shown)] == ["mixed-strategies"]
    assert list(not_shown(circle, shown)) == []
    assert [finding.message for finding in not_shown(nearby, shown)] == [
        "consumers report MACHINE_ROOM_NEARBY, which is not among those shown"
    ]
    assert list(not_shown(nearby, ["MACHINE_ROOM_NEARBY-AVG"])) == []
    assert list(not_shown(group("a b"), shown)) == []


def test_only_what_members_report_must_be_known() -> None:
    seen = group("a b", reports={"a": "AllocateMessageQueueByConfig"})
    assert detect_strategy("CONFIG", seen, [], Members(("a", "b"), "AVG")).run_by_members == ()


def test_else_it_is_what_fits_the_owners_seen() -> None:
    dealt = {MessageQueue("T", "x", i): "ab"[i % 2] for i in range(4)}
    seen = group("a b", owners=dealt)
    detected = detect_strategy(None, seen, [route(x=4)], Members(("a", "b"), "AVG"))
    assert (detected.strategy, detected.origin) == ("AVG_BY_CIRCLE", "observed")


def test_else_the_clients_default_is_assumed_and_labelled() -> None:
    detected = detect_strategy(None, None, [route(x=4)], Members(("a",), "AVG"))
    assert (detected.strategy, detected.origin) == ("AVG", "assumed")
    assert [finding.message for finding in detected.findings] == [
        "AVG, the client's default, is assumed: the consumers are not real ones"
    ]
    for seen, known in (
        (group("a"), "its consumers do not report their strategy"),
        (group(), "the consumers are not real ones"),
    ):
        (finding,) = detect_strategy(None, seen, [route(x=4)], Members(("a",), "AVG")).findings
        assert finding.message == f"AVG, the client's default, is assumed: {known}"


def test_observed_owners_that_are_not_the_predicted_ones_are_a_mismatch() -> None:
    seen = group("a b", owners={MessageQueue("T", "x", 0): "b", MessageQueue("T", "x", 1): ""})
    findings = list(mismatch_findings(owners_at_rest([route(x=2)], Members(("a", "b"), "AVG")), "AVG", seen.queues))
    assert [finding.message for finding in findings] == [
        "observed owners of 2 of 2 queues differ from what AVG predicts; first x:0 of T: observed b, predicted a"
    ]


def test_consumers_that_own_other_queues_than_predicted_are_named() -> None:
    """AVG gives queue 0 to a, 1 to b and 2 to c; b owns its own, whoever else owns it too."""
    predicted = owners_at_rest([route(x=3)], Members(("a", "b", "c"), "AVG"))
    for seen, who in (({0: "a", 1: "b d", 2: "c"}, ("d",)), ({0: "a", 1: "b", 2: "b"}, ("b", "c")), ({2: ""}, ("c",))):
        owners = {MessageQueue("T", "x", number): ids for number, ids in seen.items()}
        (found,) = mismatch_findings(predicted, "AVG", group("a b c", owners=owners).queues)
        assert found.consumers == who
    assert found.message == (
        "observed owners of 1 of 1 queue differ from what AVG predicts; first x:2 of T: observed no owner, predicted c"
    )


def test_different_strategies_are_held_against_the_observed_owners_together() -> None:
    """AVG gives a the queues 0 and 1, AVG_BY_CIRCLE gives b the queues 1 and 3; the other way round 0, 2 and 2, 3."""
    routes, ids = [route(b=4)], ("a", "b")
    both = {"a": "AVG", "b": "AVG_BY_CIRCLE"}
    observed = {
        queue: QueueState(frozenset(owners.split()))
        for queue, owners in zip(queues(4, "b"), ("a", "a b", "", "b"), strict=True)
    }
    members = Members(ids, "CONSISTENT_HASH")
    assert mixed_mismatches(both, routes, members, observed) == 0
    assert mixed_mismatches({"a": "AVG_BY_CIRCLE", "b": "AVG"}, routes, members, observed) == 2
    assert mixed_mismatches({"a": "AVG", "b": "AVG"}, routes, members, observed) is None
    assert mixed_mismatches({"a": "AVG", "b": "CONFIG"}, routes, members, observed) is None
    assert mixed_mismatches(both, routes, members, {}) is None


def test_grpc_clients_that_only_a_proxy_lists_are_not_counted_by_consumers_at_brokers() -> None:
    """Those share the queues by what brokers list; where a Proxy lists both, they count them."""
    view = ProxyView((Connection("h@1@0@zz"), Connection("p")), Seen("Proxy p:8080"), "p:8080")
    mixed = replace(group("a b"), proxies=(view,))
    assert rebalanced_members(mixed) == ("a", "b", "p")
    (told,) = [finding.message for finding in member_findings(mixed) if finding.code == "behind-proxy"]
    assert told.endswith("a Proxy gives them messages of the same queues that the others own")
    at_proxy = replace(group("a"), views=(), proxies=(view,))
    assert rebalanced_members(at_proxy) == ("h@1@0@zz", "p")
    (told,) = [finding.message for finding in member_findings(at_proxy) if finding.code == "behind-proxy"]
    assert told.endswith("the others count them all the same, and their shares stay unassigned")
    local = replace(group("a h@1@0@zz"), proxies=(view,))
    assert rebalanced_members(local) == ("a", "h@1@0@zz", "p")
