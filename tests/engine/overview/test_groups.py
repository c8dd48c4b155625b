"""Every group in a line: what is known of it, what is odd, and which is the worst."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import all_groups
from rmqlb.engine.show_groups import overview, unread_of_no_group
from rmqlb.model.group import Connection, ConsumerGroup, ProxyView, Seen
from rmqlb.model.groups import GroupLine, GroupState
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.engine.check.clusters import cluster, members
from tests.support.builders import HERE, route

CIRCLE_CLASS = "AllocateMessageQueueAveragelyByCircle"


def lines(snapshot: ClusterSnapshot) -> dict[str, GroupLine]:
    return {line.group: line for line in overview(snapshot, all_groups(snapshot), Settings()).groups}


def line(group: ConsumerGroup, *routes: TopicRouteData, unread: tuple[Unread, ...] = ()) -> GroupLine:
    snapshot = cluster(group, routes=routes or (route(a=4),), unread=unread)
    return lines(snapshot)[group.group]


def codes(found: GroupLine) -> list[str]:
    return [finding.code for finding in found.findings]


def test_a_group_whose_queues_have_one_owner_each_is_in_order() -> None:
    found = line(members("x y", owners="x x y y", lag={0: 5, 1: 0, 2: 7, 3: 0}))
    assert (found.status, codes(found), found.basis) == ("inOrder", [], "observed")
    assert (found.topics, found.consumers, found.processes, found.queues, found.lag) == (("T",), 2, 2, 4, 12)
    assert (found.unassigned, found.duplicate_owners, found.idle, found.mismatches) == (0, 0, 0, 0)
    assert (found.strategies, found.strategy_origin, found.imbalance) == (("AVG",), "reported", 1.0)


def test_owners_that_nobody_looked_at_are_predicted_by_the_reported_strategy() -> None:
    found = line(members("x y"))
    assert (found.status, found.basis, found.unassigned, found.mismatches) == ("inOrder", "predicted", 0, None)
    assert (found.lag, found.lag_at_least) == (None, None)


def test_a_strategy_that_nobody_reports_is_assumed_and_the_group_is_unknown() -> None:
    found = line(members("x y", strategy=None))
    assert (found.status, found.basis, codes(found)) == ("unknown", "assumed", ["assumed-strategy"])
    assert (found.strategies, found.strategy_origin) == (("AVG",), "assumed")


def test_two_processes_with_one_id_are_an_error_before_what_comes_of_it() -> None:
    found = line(members("x x", owners="x x - -"))
    assert (found.status, found.consumers, found.processes, found.duplicate_client_ids) == ("error", 1, 2, 1)
    assert codes(found) == ["duplicate-client-id"]
    assert found.findings[0].message == (
        "group g, x: 2 processes take the same share under one client ID: 2 queues unassigned, 2 queues read by each of "
        "these processes (T a 0-3)"
    )
    assert (found.unassigned, found.mismatches) == (2, 0)


def test_mixed_strategies_leave_queues_without_an_owner_and_with_two() -> None:
    group = members("x y", owners="x x+y - y")
    reports = {i: replace(report, strategy_class=CIRCLE_CLASS) for i, report in group.reports.items() if i == "y"}
    found = line(replace(group, reports={**group.reports, **reports}))
    assert codes(found) == ["mixed-strategies"]
    assert [finding.consumers for finding in found.findings] == [("x", "y")]
    assert (found.unassigned, found.duplicate_owners, found.mismatches, found.status) == (1, 1, 0, "error")
    assert found.strategies == ("AVG", "AVG_BY_CIRCLE")


def test_owners_that_are_not_the_predicted_ones_are_a_warning() -> None:
    found = line(members("x y", owners="x y x y", subscribed={"x": "T", "y": "T"}))
    assert (found.status, codes(found), found.mismatches) == ("warning", ["mismatch"], 2)
    assert found.findings[0].consumers == ("x", "y")


def test_other_owners_than_a_strategy_that_is_assumed_would_give_are_unknown() -> None:
    found = line(members("x y z", owners="x x y x", strategy=None))
    assert (found.status, codes(found), found.mismatches) == ("unknown", ["assumed-strategy"], 1)


def test_idle_consumers_are_said_and_nothing_is_wrong() -> None:
    found = line(members("u v w x y z", owners="u v w x"))
    assert (found.status, found.idle, codes(found)) == ("inOrder", 2, ["more-consumers-than-queues"])
    assert found.findings[0].message == "group g, y, z: 2 consumers idle: a queue has one owner"


def test_nobody_online_is_an_error_where_messages_wait_and_offline_otherwise() -> None:
    waiting = line(members("", owners="- - - -", lag={0: 0, 1: 3, 2: 0, 3: 0}))
    assert (waiting.status, codes(waiting), waiting.unassigned) == ("error", ["no-consumer-online"], None)
    assert waiting.findings[0].message.endswith("; 3 messages unread")
    calm = line(members("", lag={0: 0, 1: 0, 2: 0, 3: 0}))
    assert (calm.status, codes(calm), calm.consumers, calm.idle) == ("offline", ["no-consumer-online"], 0, None)
    assert (calm.imbalance, calm.strategies) == (None, ())


def test_queues_have_no_owner_for_certain_once_a_proxy_was_asked() -> None:
    """Without one the group may be consumed through it."""
    asked = replace(members("", lag={0: 0}), proxies=(ProxyView((), Seen("Proxy p:8080"), "p:8080"),))
    found = line(asked)
    assert (found.status, found.consumers, found.unassigned, found.idle) == ("offline", 0, 4, 0)


def test_consumers_behind_a_proxy_are_unknown_and_not_none() -> None:
    hidden = line(replace(members("", lag={0: 0, 1: 2, 2: 0, 3: 0}), polling_num=2))
    assert (hidden.status, codes(hidden), hidden.consumers, hidden.unassigned) == (
        "unknown",
        ["behind-proxy"],
        None,
        None,
    )
    assert hidden.lag == 2
    view = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
    known = line(replace(members("", lag={0: 0}), proxies=(view,)))
    assert (known.status, codes(known), known.consumers, known.unassigned) == ("inOrder", ["behind-proxy"], 1, None)


def test_pop_has_no_owners_and_is_unknown() -> None:
    found = line(members("x y", consume_type="CONSUME_POP"))
    assert (found.status, codes(found)) == ("unknown", ["pop-consumption"])
    assert (found.unassigned, found.idle, found.basis, found.strategies, found.queues) == (None, None, None, (), 4)


def test_broadcasting_consumers_own_every_queue_rightly() -> None:
    found = line(members("x y", message_model="BROADCASTING", owners="x+y x+y x+y x+y", lag={0: 9}))
    assert (found.status, codes(found), found.duplicate_owners, found.unassigned) == (
        "inOrder",
        ["broadcasting"],
        0,
        0,
    )
    assert (found.lag, found.lag_at_least, found.strategies) == (None, None, ())


def test_pulling_consumers_are_unknown_unless_their_owners_were_observed() -> None:
    unseen = line(members("x y", consume_type="CONSUME_ACTIVELY"))
    assert (unseen.status, unseen.unassigned, unseen.basis, codes(unseen)) == (
        "unknown",
        None,
        None,
        ["pull-consumers"],
    )
    seen = line(members("x y", consume_type="CONSUME_ACTIVELY", owners="x x y y"))
    assert (seen.status, seen.unassigned, seen.basis) == ("inOrder", 0, "observed")


def test_a_strategy_whose_settings_nobody_told_is_unknown() -> None:
    found = line(members("x y", strategy="AllocateMessageQueueByMachineRoom"))
    assert (found.status, codes(found), found.strategies) == ("unknown", ["settings-unknown"], ("MACHINE_ROOM",))
    other = line(members("x y", strategy="OfOurOwn"))
    assert (other.status, codes(other), other.strategies) == ("unknown", ["unknown-strategy-class"], ("OfOurOwn",))


def test_a_group_that_could_not_be_read_is_a_warning_and_has_no_figures() -> None:
    unread = (Unread("group", "h", "timed out"),)
    found = lines(cluster(members("x", owners="x x x x"), unread=unread))
    assert {name: each.status for name, each in found.items()} == {"h": "warning", "g": "inOrder"}
    assert [f.message for f in found["h"].findings] == ["not read: group h: timed out"]
    assert found["h"] == GroupLine("h", "warning", findings=found["h"].findings)


def test_a_broker_that_did_not_list_consumers_leaves_owners_unknown() -> None:
    unread = (Unread("members", "g", "timed out", "b"), Unread("member", "g", "late", "x"))
    found = line(members("x y"), unread=unread)
    assert (found.status, codes(found), found.unassigned) == ("warning", ["unread", "unread"], None)
    assert [finding.consumers for finding in found.findings] == [(), ("x",)]


def test_no_consumer_so_far_is_not_no_consumer() -> None:
    found = line(members(""), unread=(Unread("members", "g", "timed out", "b"),))
    assert (found.status, codes(found), found.consumers, found.processes) == ("warning", ["unread"], None, None)


def test_nobody_online_of_whom_nothing_is_known_is_offline() -> None:
    found = line(members("", topics=None))
    assert (found.status, found.queues, found.unassigned, found.consumers) == ("offline", None, None, 0)


def test_what_is_observed_and_bad_is_certain_where_other_owners_are_not_known() -> None:
    found = line(members("x y", strategy=None, consume_type="CONSUME_ACTIVELY", owners="x+y ? - ?"))
    assert (found.unassigned, found.duplicate_owners, found.basis, found.idle) == (1, 1, "observed", None)
    assert found.status == "error"


def test_a_topic_without_a_route_leaves_figures_unknown() -> None:
    found = line(members("x", topics="T U %RETRY%g", owners="x x x x"))
    assert (found.topics, found.queues, found.unassigned, found.status) == (("T", "U"), None, None, "warning")
    assert codes(found) == ["no-route"]


def test_name_servers_that_differ_are_a_warning() -> None:
    snapshot = cluster(members("x", owners="x x x x"))
    other = RouteSighting(route(a=6), HERE)
    snapshot = replace(snapshot, routes={"T": replace(snapshot.routes["T"], others=(other,))})
    assert codes(lines(snapshot)["g"]) == ["routes-differ"]


def test_the_worst_group_stands_first() -> None:
    snapshot = cluster(
        members("x", name="fine", owners="x x x x", lag={0: 9_000}),
        members("x x", name="bad", owners="x x x x", lag={0: 1}),
        members("x x", name="worse", owners="x x x x", lag={0: 5}),
        members("x y", name="odd", owners="x y x y", subscribed={"x": "T", "y": "T"}),
        members("x", name="pop", consume_type="CONSUME_POP"),
        members("", name="gone"),
    )
    found = overview(snapshot, all_groups(snapshot), Settings())
    assert [each.group for each in found.groups] == ["worse", "bad", "odd", "pop", "gone", "fine"]
    s = found.summary
    assert (s.groups, s.with_errors, s.with_warnings, s.unknown, s.offline, s.in_order) == (6, 2, 1, 1, 1, 1)
    assert (s.lag, s.duplicate_client_ids, s.mismatches, s.unassigned) == (9_006, 2, 6, 0)


def test_a_severity_shows_groups_that_are_at_least_so_bad_and_counts_all() -> None:
    snapshot = cluster(
        members("x", name="fine", owners="x x x x"),
        members("x x", name="bad", owners="x x x x"),
        members("x y", name="odd", owners="x y x y", subscribed={"x": "T", "y": "T"}),
        members("x", name="pop", consume_type="CONSUME_POP"),
    )
    whole = overview(snapshot, all_groups(snapshot), Settings())
    shown = {
        severity: [each.group for each in whole.at_least(severity, ()).groups]
        for severity in ("error", "warning", "info", None)
    }
    assert shown == {
        "error": ["bad"],
        "warning": ["bad", "odd"],
        "info": ["bad", "odd", "pop"],
        None: ["bad", "odd", "pop", "fine"],
    }
    assert whole.at_least("error", ()).summary == whole.summary


def test_parts_that_no_line_tells_are_left_for_the_source() -> None:
    parts = (
        Unread("groups", "b", "timed out"),
        Unread("route", "T", "timed out"),
        Unread("route", "Other", "timed out"),
        Unread("member", "g", "late", "x"),
    )
    snapshot = cluster(members("x"), routes=(), unread=parts)
    found = overview(snapshot, all_groups(snapshot), Settings())
    assert [part.name for part in unread_of_no_group(snapshot, found.groups)] == ["b", "Other"]


def test_a_line_has_every_key_of_the_state() -> None:
    found = line(members("x", owners="x x x x"))
    assert set(GroupState.__struct_fields__) | {"findings"} == set(found.__struct_fields__)
