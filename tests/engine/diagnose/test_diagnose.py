"""Each fault is named first, its consequences are not causes, and what is healthy has no finding."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.model.diagnosis import Explains
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import BROADCASTING, CONSUME_POP, Connection, ConsumerGroup, ProxyView, Seen
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from tests.engine.diagnose.running import (
    Process,
    causes,
    changed,
    diagnosed,
    finding,
    grave,
    reason,
    running,
    severities,
)
from tests.support.builders import route, short
from tests.support.mismatches import every_case

SECOND_TOPIC = (route(a=4, b=4), route("U", a=4, b=4))
BOTH = ("T", "U")
HASH = "CONSISTENT_HASH"

FAULTS: Mapping[str, ClusterSnapshot] = {
    "duplicate-client-id": running(Process("x"), Process("x"), Process("y")),
    "mixed-strategies": running(Process("x"), Process("y", "AVG_BY_CIRCLE")),
    "subscription-mismatch": running(Process("x", topics=BOTH), Process("y"), routes=SECOND_TOPIC),
    "mixed-sdks": running(Process("x", HASH), Process("y", HASH, language="GO"), Process("z", HASH)),
    "split-consumer-view": running(Process("x"), Process("y", asks="b", unlisted=("a",))),
    "broker-unreachable-from-consumer": running(Process("x"), Process("y", cut=("b",))),
    "no-consumer-online": running(),
}
"""Code → a group that has what the code means, and no other fault."""


@every_case("code", FAULTS)
def test_a_fault_is_named_first_and_alone(code: str) -> None:
    found = diagnosed(FAULTS[code])
    assert grave(found) == [code]
    assert found.findings[0].severity == "error"
    assert found.outcome == "found"


@every_case("code", [code for code in FAULTS if code != "no-consumer-online"])
def test_acting_on_a_single_cause_fixes_all(code: str) -> None:
    explains = finding(diagnosed(FAULTS[code]), code).explains
    assert explains is not None
    assert (explains.reproduces, explains.fixes_all) == (True, True)
    assert (explains.unassigned_after, explains.duplicate_owners_after) == (0, 0)


@every_case("code", FAULTS)
def test_each_rule_answers_once(code: str) -> None:
    found = diagnosed(FAULTS[code])
    lists = ({f.code for f in found.findings}, {c.code for c in found.consequences}, set(found.checked))
    undecided = ({u.code for u in found.unknown}, {u.code for u in found.not_applicable})
    answered = [code for codes in (*lists, *undecided) for code in codes]
    assert sorted(answered) == sorted(rule.code for rule in RULES)


def test_two_processes_with_one_id_leave_the_second_share_unassigned() -> None:
    found = diagnosed(FAULTS["duplicate-client-id"])
    cause = finding(found, "duplicate-client-id")
    # Eight queues on x, x, y: 3, 3, 2. Both processes x take the first three.
    queues = ["a0", "a1", "a2", "a3", "b0", "b1"]
    assert (cause.topic, short(list(cause.queues)), cause.consumers) == ("T", queues, ("x",))
    assert [(e.value, e.threshold, e.source, e.at) for e in cause.evidence] == [
        (2, 2, "broker a", "2026-11-21T02:00:00Z"),
        (2, 2, "broker b", "2026-11-21T02:00:00Z"),
    ]
    assert cause.evidence[0].fact == "connections of x at a from 192.0.2.0:40097, 192.0.2.1:40097"
    assert cause.consequence == (
        "2 processes share a client ID and take the same queues: 3 queues unassigned, 3 queues read by each of these "
        "processes; 30 messages unread in unassigned queues."
    )
    assert [(each.code, each.causes) for each in found.consequences] == [
        ("unassigned-queues", ("duplicate-client-id",)),
        ("duplicate-owners", ("duplicate-client-id",)),
    ]


def test_a_split_view_says_what_each_broker_lists() -> None:
    cause = finding(diagnosed(FAULTS["split-consumer-view"]), "split-consumer-view")
    # Broker a lists x alone, so that x takes all; y takes its half by the list of broker b.
    assert (cause.consumers, short(list(cause.queues))) == (("y",), ["b0", "b1", "b2", "b3"])
    assert cause.evidence[0].fact == "consumers that a:10911 lists"
    # x owns what the list of broker a gives it; by that of broker b it would own half, and y the other half, as it does.
    assert [(e.value, e.source) for e in cause.evidence] == [
        ("x", "broker a"),
        (1, "broker a"),
        ("x, y", "broker b"),
        (1, "broker b"),
    ]


def test_a_split_view_comes_of_a_broker_that_a_consumer_does_not_reach() -> None:
    found = diagnosed(FAULTS["broker-unreachable-from-consumer"])
    cause = finding(found, "broker-unreachable-from-consumer")
    assert (cause.consumers, short(list(cause.queues))) == (("y",), ["b0", "b1", "b2", "b3"])
    assert (cause.evidence[-1].fact, cause.evidence[-1].value) == ("queues of y at b", 0)
    assert causes(found) == {
        "split-consumer-view": ("broker-unreachable-from-consumer",),
        "unassigned-queues": ("broker-unreachable-from-consumer",),
    }


TWO_FAULTS = {
    "an ID twice, mixed strategies": (
        running(Process("x"), Process("x"), Process("y", "AVG_BY_CIRCLE"), Process("z")),
        {"duplicate-client-id", "mixed-strategies"},
    ),
    "an ID twice, other topics": (
        running(Process("x", topics=BOTH), Process("x", topics=BOTH), Process("y"), routes=SECOND_TOPIC),
        {"duplicate-client-id", "subscription-mismatch"},
    ),
    "mixed strategies, other topics": (
        running(Process("x", topics=BOTH), Process("y", "AVG_BY_CIRCLE"), routes=SECOND_TOPIC),
        {"mixed-strategies", "subscription-mismatch"},
    ),
    "an ID twice, a broker not reached": (
        running(Process("x"), Process("x"), Process("y"), Process("z", cut=("b",))),
        {"duplicate-client-id", "broker-unreachable-from-consumer"},
    ),
    "mixed strategies, lists that differ": (
        running(Process("x"), Process("y", "AVG_BY_CIRCLE", asks="b", unlisted=("a",))),
        {"mixed-strategies", "split-consumer-view"},
    ),
}


@every_case("name", TWO_FAULTS)
def test_two_faults_at_once_are_both_named(name: str) -> None:
    snapshot, codes = TWO_FAULTS[name]
    found = diagnosed(snapshot)
    assert set(grave(found)) == codes
    for cause in found.findings:
        assert cause.explains is not None
        assert cause.explains.reproduces is True
    assert not any(cause.explains and cause.explains.fixes_all for cause in found.findings)


def test_owners_that_nothing_explains_are_said_as_they_are() -> None:
    snapshot = running(Process("x"), Process("y"))
    queues = dict(snapshot.groups["g"].queues)
    first, second = sorted(queues)[:2]
    queues[first] = replace(queues[first], owners=frozenset(), consumer_offset=400)
    queues[second] = replace(queues[second], owners=frozenset("xy"))
    found = diagnosed(changed(snapshot, queues=queues))
    assert grave(found) == ["unassigned-queues", "duplicate-owners"]
    assert finding(found, "unassigned-queues").consequence == "1 queue unassigned; 600 messages unread there."
    assert finding(found, "duplicate-owners").consumers == ("x", "y")
    assert [(each.value, each.threshold) for one in found.findings for each in one.evidence] == [(1, 1), (1, 1)]
    assert [(each.code, each.causes) for each in found.consequences] == [
        ("mismatch", ("duplicate-owners", "unassigned-queues"))
    ]


def test_processes_with_one_id_own_no_more_than_their_lists_give_them() -> None:
    listed_late = Process("z", unlisted=("a",), asks="b")
    snapshot = running(*(Process(i, asks="b") for i in ("x", "x", "y")), listed_late)
    # By the list of b x, x, y and z have two queues each, and the second process of x takes those of the first.
    assert finding(diagnosed(snapshot), "duplicate-client-id").explains == Explains(True, True, 0, 0, 8, 6)
    queues = dict(snapshot.groups["g"].queues)
    last = max(queues)
    queues[last] = replace(queues[last], owners=frozenset("xz"))
    found = diagnosed(changed(snapshot, queues=queues))
    assert finding(found, "duplicate-client-id").explains == Explains(reproduces=False)


def test_lists_that_differ_are_found_where_nothing_can_be_predicted() -> None:
    snapshot = FAULTS["split-consumer-view"]
    reports = {
        i: replace(report, strategy_class="AllocateMessageQueueByMachineRoom")
        for i, report in snapshot.groups["g"].reports.items()
    }
    cause = finding(diagnosed(changed(snapshot, reports=reports)), "split-consumer-view")
    assert (cause.severity, cause.explains, cause.queues) == ("warning", Explains(), ())
    assert [each.value for each in cause.evidence] == ["x", "x, y"]


def test_a_cause_that_does_not_reproduce_the_owners_promises_nothing() -> None:
    """A queue that a fault of an unknown kind leaves unassigned stands beside the cause that was found."""
    snapshot = FAULTS["duplicate-client-id"]
    queues = dict(snapshot.groups["g"].queues)
    first = min(queues)
    queues[first] = replace(queues[first], owners=frozenset())
    found = diagnosed(changed(snapshot, queues=queues))
    assert grave(found) == ["duplicate-client-id", "unassigned-queues"]
    assert finding(found, "duplicate-client-id").explains == Explains(
        reproduces=False, queues_explained=7, queues_explained_without=4
    )
    assert finding(found, "unassigned-queues").queues == (first,)


def test_without_observed_owners_the_prediction_says_what_a_cause_does() -> None:
    snapshot = FAULTS["duplicate-client-id"]
    queues = {queue: replace(state, owners=None) for queue, state in snapshot.groups["g"].queues.items()}
    found = diagnosed(changed(snapshot, queues=queues))
    cause = finding(found, "duplicate-client-id")
    assert cause.explains == Explains(None, True, 0, 0)
    assert short(list(cause.queues)) == ["a3", "b0", "b1"]
    assert {"unassigned-queues", "duplicate-owners", "mismatch"} <= {each.code for each in found.unknown}


def test_a_group_that_has_just_changed_is_to_wait() -> None:
    snapshot = running(Process("x"), Process("y", age_s=49))
    queues = {queue: replace(state, owners=frozenset("x")) for queue, state in snapshot.groups["g"].queues.items()}
    found = diagnosed(changed(snapshot, queues=queues))
    assert severities(found) == [("mismatch", "info")]
    older = running(Process("x"), Process("y", age_s=50))
    assert grave(diagnosed(changed(older, queues=queues))) == ["mismatch"]


def test_lists_that_differ_without_consequence_are_a_warning_once_brokers_had_their_time() -> None:
    def severity(age_s: int) -> list[tuple[str, str]]:
        found = diagnosed(running(Process("x", asks="b"), Process("y", asks="b", unlisted=("a",), age_s=age_s)))
        return severities(found)

    assert severity(119) == [("split-consumer-view", "info")]
    assert severity(120) == [("split-consumer-view", "warning")]


def test_more_consumers_than_queues_are_idle_and_nothing_is_wrong() -> None:
    found = diagnosed(running(*map(Process, "uvwxyz"), routes=(route(a=2, b=2),)))
    assert grave(found) == []
    cause = finding(found, "more-consumers-than-queues")
    assert (cause.consumers, cause.evidence[0].value, cause.evidence[0].threshold) == (("y", "z"), 6, 5)


def test_nobody_online_is_as_grave_as_what_waits() -> None:
    def severity(lag: int | None) -> str:
        snapshot = running(lag=lag or 0)
        states = snapshot.groups["g"].queues.items()
        queues = {q: state if lag is not None else replace(state, broker_offset=None) for q, state in states}
        return finding(diagnosed(changed(snapshot, queues=queues)), "no-consumer-online").severity

    assert [severity(lag) for lag in (10, 0, None)] == ["error", "info", "warning"]


def test_a_group_behind_a_proxy_has_consumers() -> None:
    found = diagnosed(changed(running(), polling_num=2))
    assert severities(found) == [("behind-proxy", "info")]
    assert found.findings[0].evidence[0].value == "2 receive requests of it wait there"
    assert found.findings[0].consequence.startswith("Its consumers are behind a Proxy, not visible here; ")
    assert found.counts.consumers is None
    assert "no-consumer-online" in {each.code for each in found.not_applicable}
    read = diagnosed(changed(running(), consume_tps=2.0)).findings[0]
    assert read.consequence.startswith("Its consumers are probably behind a Proxy")


def test_grpc_clients_that_a_proxy_lists_own_nothing_and_lack_nothing() -> None:
    """Clients of several languages share no queue either, and only where no Proxy was asked receive requests matter."""
    proxies = (listing("p:8080", "host@1@0@abc1", "host@2@0@abc1"), listing("q:8080", "host@1@0@abc1"))
    found = diagnosed(changed(running(), proxies=proxies, polling_num=None))
    assert severities(found) == [("behind-proxy", "info")]
    (only,) = found.findings
    assert (only.consumers, only.remedy) == (("host@1@0@abc1", "host@2@0@abc1"), "Nothing is wrong.")
    assert [(each.fact, each.value) for each in only.evidence] == [
        ("gRPC clients that Proxy p:8080 lists", 2),
        ("gRPC clients that Proxy q:8080 lists", 1),
    ]
    assert {each.code for each in found.unknown} <= {"offset-rewound", "lag-growing", "lag-stalled"}  # another look


def test_a_proxy_that_does_not_answer_leaves_open_whether_a_consumer_is_online() -> None:
    silent = replace(changed(running(), proxies=()), unread=(Unread("proxy", "p:8080", "refused"),))
    found = diagnosed(silent)
    assert found.findings == ()
    reasons = {each.code: each.reason for each in found.unknown}
    assert reasons["no-consumer-online"] == "Proxy p:8080 did not report its consumers: refused"
    certain = diagnosed(replace(silent, groups=changed(running(), polling_num=2, proxies=()).groups))
    assert [each.code for each in certain.findings] == ["behind-proxy"]


def test_grpc_clients_beside_consumers_that_own_queues_read_the_same_ones() -> None:
    """Brokers do not list those of a Proxy in cluster mode, so that the others leave them no share."""
    found = diagnosed(changed(running(Process("x")), proxies=(listing("p:8080", "host@1@0@abc1"),)))
    cause = finding(found, "behind-proxy")
    assert (cause.severity, cause.consumers) == ("warning", ("host@1@0@abc1",))
    assert cause.consequence == "Consumers that own queues and consumers of a Proxy read the same queues."


def test_consumers_of_the_remoting_protocol_behind_a_proxy_are_online() -> None:
    found = diagnosed(changed(running(), proxies=(listing("p:8080", "x", "y"),), topics=("T",)))
    assert {each.code for each in found.findings}.isdisjoint({"no-consumer-online", "behind-proxy"})
    assert found.counts.consumers == 2


def listing(address: str, *client_ids: str) -> ProxyView:
    """What a Proxy lists."""
    return ProxyView(tuple(map(Connection, client_ids)), Seen(f"Proxy {address}"), address)


def test_grpc_clients_beside_others_take_a_share_that_no_consumer_reads() -> None:
    found = diagnosed(running(Process("x"), Process("host@1@0@abc1")))
    assert grave(found)[0] == "behind-proxy"
    cause = finding(found, "behind-proxy")
    assert (cause.severity, cause.consumers) == ("warning", ("host@1@0@abc1",))
    assert (cause.evidence[0].value, cause.evidence[0].threshold) == (1, 1)
    alone = diagnosed(running(Process("host@1@0@abc1"), Process("host@2@0@abc1")))
    assert [(each.code, each.severity) for each in alone.findings] == [("behind-proxy", "info")]


@pytest.mark.parametrize(("age_s", "severity"), [(49, "info"), (50, "error")])
def test_lists_that_differ_while_a_consumer_has_just_started_may_pass(age_s: int, severity: str) -> None:
    """Brokers hear of it one after another, and may be read in between; the others share by what they hear."""
    found = diagnosed(running(Process("x"), Process("y", asks="b"), Process("z", unlisted=("b",), age_s=age_s)))
    assert severities(found) == [("split-consumer-view", severity)]


def test_pop_has_no_owners_to_be_wrong() -> None:
    found = diagnosed(changed(running(Process("x"), Process("y")), consume_type=CONSUME_POP))
    assert [each.code for each in found.findings] == ["pop-consumption"]
    assert [(each.fact, each.value) for each in found.findings[0].evidence] == [("consume type", "CONSUME_POP")]
    assert {"unassigned-queues", "mixed-strategies"} <= {each.code for each in found.not_applicable}


def test_a_group_all_of_whose_topics_are_in_pop_mode_has_as_many_brokers_to_know_as_others() -> None:
    pops = {i: replace(r, client_rebalance=False) for i, r in running(Process("x")).groups["g"].reports.items()}
    popping = changed(running(Process("x")), reports=pops, request_modes={"T": ("POP",)}, queues={})
    decided = {"behind-proxy", "duplicate-client-id", "mixed-sdks"}
    assert decided <= {*diagnosed(popping).checked}
    bare = changed(popping, views=(popping.groups["g"].views or ())[:1])
    unknown = {each.code: each.reason for each in diagnosed(bare).unknown if each.code in decided}
    assert unknown == dict.fromkeys(decided, "the consumers that broker b lists are unknown")


def test_broadcasting_consumers_own_every_queue_rightly() -> None:
    snapshot = running(Process("x"), Process("y"))
    queues = {queue: replace(state, owners=frozenset("xy")) for queue, state in snapshot.groups["g"].queues.items()}
    found = diagnosed(changed(snapshot, message_model=BROADCASTING, queues=queues))
    assert found.findings == ()


def test_offsets_that_went_back_need_an_earlier_look() -> None:
    snapshot = running(Process("x"))
    earlier = snapshot.groups["g"]
    first = min(earlier.queues)
    queues = {**earlier.queues, first: replace(earlier.queues[first], consumer_offset=960)}
    found = diagnosed(changed(snapshot, queues=queues), earlier=(earlier,))
    assert (grave(found), found.findings[0].queues, found.findings[0].evidence[0].value) == (
        ["offset-rewound"],
        (first,),
        40,
    )
    assert "offset-rewound" in diagnosed(snapshot, earlier=(earlier,)).checked
    unread = {**earlier.queues, first: replace(earlier.queues[first], consumer_offset=None)}
    for now, then in ((unread, earlier.queues), (earlier.queues, unread)):
        found = diagnosed(changed(snapshot, queues=now), earlier=(replace(earlier, queues=then),))
        assert {each.code: each.reason for each in found.unknown}["offset-rewound"] == (
            "some offsets are known of one look only"
        )
    assert "offset-rewound" in {each.code for each in diagnosed(snapshot).unknown}


def test_offsets_that_two_owners_store_over_each_others_come_of_what_gave_them_two() -> None:
    snapshot = running(Process("x"), Process("y"), Process("z", strategy="AVG_BY_CIRCLE"))
    group = snapshot.groups["g"]
    twice = [queue for queue, state in group.queues.items() if len(state.owners or ()) > 1]
    queues = {**group.queues, twice[0]: replace(group.queues[twice[0]], consumer_offset=1007)}
    found = diagnosed(snapshot, earlier=(replace(group, queues=queues),))
    assert causes(found)["offset-rewound"] == ("mixed-strategies",)
    assert grave(found) == ["mixed-strategies"]


def test_an_offset_that_is_no_longer_stored_went_back_to_the_start() -> None:
    snapshot = running(Process("x"))
    first, second, *_ = sorted(snapshot.groups["g"].queues)

    def at(*offsets: int) -> ConsumerGroup:
        queues = dict(snapshot.groups["g"].queues)
        for queue, offset in zip((first, second), offsets, strict=True):
            queues[queue] = replace(queues[queue], consumer_offset=offset)
        return replace(snapshot.groups["g"], queues=queues)

    found = diagnosed(replace(snapshot, groups={"g": at(-1, 0)}), earlier=(at(7, -1),))
    cause = finding(found, "offset-rewound")
    assert (cause.queues, cause.consequence) == ((first,), "7 messages of 1 queue redelivered.")


def test_the_cause_of_more_queues_stands_first() -> None:
    """Of two that explain the owners only together."""
    few = running(*map(Process, "uvwxy"), Process("y"), Process("z", "AVG_BY_CIRCLE"), routes=(route(a=9, b=9),))
    found = diagnosed(few)
    numbers = [len(each.queues) for each in found.findings]
    assert [each.code for each in found.findings] == ["mixed-strategies", "duplicate-client-id"]
    assert numbers == sorted(numbers, reverse=True)
    # With the same strategy for all, the ID that stands twice leaves its second share unassigned, with no duplicates;
    # with an ID of its own for each, the shares by AVG and by circle of the last consumer overlap.
    assert finding(found, "mixed-strategies").explains == Explains(True, False, 2, 0, 18, 14)
    assert finding(found, "duplicate-client-id").explains == Explains(True, False, 2, 2, 18, 16)


def test_what_is_missing_is_named() -> None:
    def reasons(snapshot: ClusterSnapshot, **changes: object) -> dict[str, str]:
        return {each.code: each.reason for each in diagnosed(changed(snapshot, **changes)).unknown}

    healthy = running(Process("x"), Process("y"))
    group = healthy.groups["g"]
    assert group.views is not None
    missing = reasons(healthy, views=group.views[:1])
    assert missing["split-consumer-view"] == "the consumers that broker b lists are unknown"
    assert missing["mixed-strategies"] == "the consumers that broker b lists are unknown"
    bare = {i: replace(report, client_rebalance=None) for i, report in group.reports.items()}
    assert reasons(healthy, request_modes=None, reports=bare)["pop-consumption"] == (
        "whether brokers assign its queues is unknown"
    )
    assert "pop-consumption" not in reasons(healthy, request_modes=None)
    assert reasons(running(), polling_num=None)["behind-proxy"] == (
        "the number of receive requests that wait at brokers is unknown"
    )
    assert "behind-proxy" not in reasons(running())
    half = {
        queue: replace(s, owners=None if queue.broker_name == "b" else s.owners) for queue, s in group.queues.items()
    }
    assert reasons(healthy, queues=half)["unassigned-queues"] == "the owners of 4 queues are unknown"
    silent = {i: replace(report, strategy_class=None) if i == "y" else report for i, report in group.reports.items()}
    assert reasons(healthy, reports=silent)["mixed-strategies"] == (
        "the strategy of 1 consumer is unknown: y did not report it"
    )


healthy_groups = st.builds(
    lambda ids, strategy, routes: running(
        *(Process(i, strategy, tuple(each.topic for each in routes)) for i in ids), routes=routes
    ),
    st.lists(st.text("abcxyz019.@", min_size=1, max_size=6), min_size=1, max_size=8, unique=True),
    st.sampled_from(WITHOUT_SETTINGS),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3).map(
        lambda sizes: tuple(route(f"T{n}", a=a, b=b) for n, (a, b) in enumerate(sizes))
    ),
)


@given(healthy_groups)
@settings(max_examples=100)
def test_a_healthy_group_has_no_finding_above_info(snapshot: ClusterSnapshot) -> None:
    found = diagnosed(snapshot)
    assert grave(found) == []
    assert {"duplicate-client-id", "split-consumer-view", "unassigned-queues", "mismatch"} <= set(found.checked)


def test_a_process_that_has_just_restarted_with_its_former_id_may_be_listed_twice() -> None:
    """Until the broker forgets its former connection, which takes no share."""

    def severity(age_s: int) -> str:
        snapshot = running(Process("x"), Process("y", age_s=age_s))
        views = tuple(
            replace(view, connections=(*view.connections, Connection("y", "192.0.2.9:1")))
            for view in snapshot.groups["g"].views or ()
        )
        return finding(diagnosed(changed(snapshot, views=views)), "duplicate-client-id").severity

    assert (severity(119), severity(120)) == ("info", "error")


def test_consumers_that_take_different_messages_of_a_topic_lose_some() -> None:
    found = diagnosed(running(Process("x", takes="red"), Process("y", takes="blue || red"), Process("z", takes="red")))
    assert grave(found) == ["subscription-mismatch"]
    (cause,) = found.findings
    assert (cause.severity, cause.topic, cause.consumers, cause.queues) == (WARNING, "T", ("y",), ())
    assert [(each.fact, each.value) for each in cause.evidence] == [
        ("messages of T for x, z", "red"),
        ("messages of T for y", "blue || red"),
    ]


def test_other_tags_pass_in_a_rolling_release() -> None:
    found = diagnosed(running(Process("x", takes="red"), Process("y", takes="blue", age_s=60)))
    assert severities(found) == [("subscription-mismatch", INFO)]


def test_tags_that_a_consumer_does_not_report_are_unknown() -> None:
    snapshot = running(Process("x"), Process("y"))
    group = snapshot.groups["g"]
    reports = {**group.reports, "y": replace(group.reports["y"], evidence=None)}
    found = diagnosed(replace(snapshot, groups={"g": replace(group, reports=reports)}))
    assert {each.code: each.reason for each in found.unknown}["subscription-mismatch"] == (
        "the tag filter of 1 consumer is unknown: y did not report it"
    )
    bare = {i: replace(report, evidence=ConsumerEvidence()) for i, report in group.reports.items()}
    assert reason(diagnosed(changed(snapshot, reports=bare)), "subscription-mismatch") == (
        "the snapshot has no tag filters of its consumers"
    )
    one = {**bare, "x": group.reports["x"]}  # some consumer reports its filters, so that those of others are missing
    assert reason(diagnosed(changed(snapshot, reports=one)), "subscription-mismatch").startswith("the tag filter of 1 ")
    silent = {"x": bare["x"]}  # a consumer that did not report comes first
    assert reason(diagnosed(changed(snapshot, reports=silent)), "subscription-mismatch") == (
        "the subscription of 1 consumer is unknown: y did not report it"
    )
