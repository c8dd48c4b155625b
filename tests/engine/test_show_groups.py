"""Groups in a line each, the consumers of a group, and conditions on groups."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.group import Group, all_groups, assumption, gaps
from rmqlb.engine.show_groups import (
    GROUPS_FIGURES,
    consumers_of,
    overview,
    try_on_groups,
    unread_of_groups,
    unread_of_no_group,
)
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.groups import ConsumerProcess, GroupLine, GroupState
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.engine.check.clusters import cluster, members
from tests.support.builders import HERE, route
from tests.support.mismatches import every_case

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


def processes(group: ConsumerGroup, *unread: Unread) -> tuple[ConsumerProcess, ...]:
    snapshot = cluster(group, unread=unread)
    facts = Group(snapshot, group.group, Settings(), assumption(snapshot, group.group), gaps(snapshot))
    return consumers_of(facts, unread_of_groups(snapshot).get(group.group, ())).consumers


def listed(**brokers: str) -> tuple[MemberView, ...]:
    """What brokers list: `broker="id=ip:port …"`."""
    return tuple(
        MemberView(tuple(Connection(*each.split("=")) for each in text.split()), HERE, broker)
        for broker, text in brokers.items()
    )


def addresses(one: ConsumerProcess) -> list[tuple[str | None, str]]:
    return [(each.broker_addr, each.client_addr) for each in one.addresses]


def test_a_process_has_an_address_at_each_broker() -> None:
    group = replace(members("x y"), views=listed(a="x=h1:1 y=h2:2", b="y=h2:3 x=h1:4"))
    x, y = processes(group)
    assert (addresses(x), addresses(y)) == ([("a", "h1:1"), ("b", "h1:4")], [("a", "h2:2"), ("b", "h2:3")])
    assert (x.processes, x.not_listed_by, x.findings) == (1, (), ())


def test_two_processes_with_one_id_are_two_rows() -> None:
    group = replace(members("x x", owners="x x - -"), views=listed(a="x=h2:1 x=h1:2", b="x=h1:3 x=h2:4"))
    one, two = processes(group)
    assert (addresses(one), addresses(two)) == ([("a", "h1:2"), ("b", "h1:3")], [("a", "h2:1"), ("b", "h2:4")])
    assert one.findings == two.findings == ("duplicate-client-id",)
    assert (one.processes, one.queues_observed, two.queues_observed, two.queues_predicted) == (2, 2, 2, 2)


def test_processes_on_one_host_are_told_apart_at_one_broker_only() -> None:
    group = replace(members("x x"), views=listed(a="x=h:1 x=h:4", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(group)] == [[("a", "h:1")], [("a", "h:4")]]


def test_stale_connections_at_one_broker_are_no_processes() -> None:
    group = replace(members("x"), views=listed(a="x=h:1", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(group)] == [[("a", "h:1")]]


def test_a_consumer_that_a_broker_does_not_list() -> None:
    group = replace(members("x y"), views=listed(a="x=h1:1 y=h2:1", b="x=h1:2"))
    x, y = processes(group)
    assert (x.not_listed_by, x.findings, y.not_listed_by, y.findings) == ((), (), ("b",), ("split-consumer-view",))


def test_lag_is_that_of_the_queues_it_owns() -> None:
    x, y = processes(members("x y", owners="x x y y", lag={0: 4, 1: 0, 2: 0}))
    assert (x.lag, y.lag) == (4, None)
    assert [each.lag for each in processes(members("x y", lag={0: 4, 1: 1, 2: 0, 3: 7}))] == [5, 7]
    broadcast = members("x y", message_model="BROADCASTING", owners="x+y x+y x+y x+y", lag={0: 4, 1: 0, 2: 0, 3: 0})
    assert [(each.lag, each.queues_observed, each.queues_predicted) for each in processes(broadcast)] == [
        (None, 4, 4),
        (None, 4, 4),
    ]


def test_observed_queues_are_unknown_where_the_consumer_did_not_say() -> None:
    group = members("x y", owners="x x ? ?")
    group = replace(group, reports={"x": group.reports["x"]})
    x, y = processes(group, Unread("member", "g", "late", "y"))
    assert (x.queues_observed, y.queues_observed, y.strategy, y.findings) == (2, None, None, ("unread",))


def test_consume_type_as_far_as_it_is_known() -> None:
    def types(group: ConsumerGroup) -> list[str | None]:
        return [each.consume_type for each in processes(group)]

    assert types(members("x")) == ["push"]
    assert types(members("x", consume_type="CONSUME_ACTIVELY")) == [None]
    assert types(members("x", consume_type="CONSUME_POP")) == ["pop"]
    assert types(members("h@1@0@2abc x")) == ["grpc", "push"]
    group = members("x y", consume_type="CONSUME_ACTIVELY")
    group = replace(group, reports={i: replace(r, consumer_type="lite-pull") for i, r in group.reports.items()})
    assert types(group) == ["lite-pull", "lite-pull"]


def test_what_it_says_of_itself() -> None:
    group = members("x y", subscribed={"x": "T %RETRY%g", "y": "T U"})
    reports = {i: replace(report, started_at=1_767_225_600_123) for i, report in group.reports.items()}
    x, y = processes(replace(group, reports=reports))
    assert (x.topics, y.topics, x.strategy, x.started_at) == (("T",), ("T", "U"), "AVG", "2026-01-01T00:00:00Z")
    assert (x.findings, y.findings) == ((), ("subscription-mismatch",))
    absurd = {"x": replace(reports["x"], started_at=10**30)}
    assert processes(replace(group, reports=absurd))[0].started_at is None


def test_nobody_online_has_no_rows() -> None:
    assert processes(members("")) == ()
    assert processes(replace(members(""), views=None)) == ()


FINE = members("x y", name="fine", owners="x x y y", lag={0: 5, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 1, 1: 0, 2: 0, 3: 0})
POP = members("x", name="pop", consume_type="CONSUME_POP", lag={0: 2, 1: 0, 2: 0, 3: 0})
GONE = members("", name="gone", owners="- - - -", lag={0: 0, 1: 0, 2: 0, 3: 0})
PULLS = members("x", name="pulls", consume_type="CONSUME_ACTIVELY")


def tried(text: str, *groups: ConsumerGroup) -> tuple[float | None, bool | None]:
    snapshot = cluster(*groups)
    lines = overview(snapshot, all_groups(snapshot), Settings()).groups
    found = try_on_groups(parse_condition(text, GROUPS_FIGURES), lines)
    return found.value, found.met


ONE = GroupLine(
    "one",
    "error",
    consumers=3,
    processes=4,
    queues=5,
    lag=6,
    lag_at_least=60,
    unassigned=7,
    duplicate_owners=8,
    idle=9,
    basis="observed",
    duplicate_client_ids=10,
    mismatches=11,
    imbalance=1.5,
)
TWO = GroupLine(
    "two",
    "warning",
    lag=600,
    unassigned=700,
    duplicate_owners=800,
    idle=900,
    basis="observed",
    duplicate_client_ids=1000,
    mismatches=1100,
    imbalance=1.25,
)


@every_case(
    ("name", "of_one", "of_both"),
    [
        ("consumers", 3, None),
        ("processes", 4, None),
        ("queues", 5, None),
        ("lag", 6, 606),
        ("unassigned", 7, 707),
        ("duplicate-owners", 8, 808),
        ("idle", 9, 909),
        ("duplicate-client-ids", 10, 1010),
        ("mismatches", 11, 1111),
        ("imbalance", 1.5, 1.5),
    ],
)
def test_each_figure_of_groups_is_its_own(name: str, of_one: float, of_both: float | None) -> None:
    assert try_on_groups(parse_condition(f"{name}[one]>0", GROUPS_FIGURES), (TWO, ONE)).value == of_one
    if of_both is not None:
        assert try_on_groups(parse_condition(f"{name}>0", GROUPS_FIGURES), (TWO, ONE)).value == of_both


@every_case(
    ("name", "broadcasting", "pop", "proxy", "offline"),
    [
        ("lag", 600, 606, 606, 606),
        ("unassigned", 700, 700, 700, 700),
        ("duplicate-owners", 800, 800, 800, 808),
        ("idle", 909, 900, 900, 909),
        ("duplicate-client-ids", 1010, 1010, 1010, 1010),
        ("mismatches", 1100, 1100, 1100, 1111),
        ("imbalance", 1.25, 1.25, 1.25, 1.5),
    ],
)
def test_a_group_adds_only_to_figures_that_it_can_have(
    name: str, broadcasting: float, pop: float, proxy: float, offline: float
) -> None:
    """Each consumer of a broadcasting group owns every queue; nobody owns those that are consumed by POP or a Proxy."""
    ones = (
        replace(ONE, message_model="BROADCASTING"),
        replace(ONE, shares_queues=False),
        replace(ONE, shares_queues=False, basis=None),
        replace(ONE, status="offline"),
    )
    condition = parse_condition(f"{name}>0", GROUPS_FIGURES)
    assert [try_on_groups(condition, (one, TWO)).value for one in ones] == [broadcasting, pop, proxy, offline]


def test_queues_that_nobody_reads_are_even_and_those_not_known_are_unknown() -> None:
    idle, unknown = replace(ONE, imbalance=None), replace(ONE, imbalance=None, basis=None)
    for text, lines, value, met in (
        ("imbalance[one]>0", (idle,), 0, False),
        ("imbalance[one]>0", (unknown,), None, None),
        ("imbalance>1", (unknown, TWO), 1.25, True),
        ("imbalance>2", (unknown, TWO), None, None),
        ("imbalance>=1", (), None, None),
        ("lag>=0", (), 0, True),
    ):
        found = try_on_groups(parse_condition(text, GROUPS_FIGURES), lines)
        assert (found.value, found.met) == (value, met)


def test_what_is_not_known_can_only_add() -> None:
    assert tried("unassigned>=2", BAD, PULLS) == (2, True)
    assert tried("unassigned<=1", BAD, PULLS) == (2, False)
    assert tried("unassigned<=2", BAD, PULLS) == (None, None)
    assert tried("unassigned>1", BAD, PULLS) == (2, True)
    assert tried("unassigned<2", BAD, PULLS) == (2, False)
    assert tried("unassigned>2", BAD, PULLS) == (None, None)
    assert tried("unassigned=2", BAD, PULLS) == (None, None)
    assert tried("unassigned!=2", BAD, PULLS) == (None, None)
    assert tried("lag>0", FINE, PULLS) == (5, True)


def test_a_group_without_a_visible_consumer_adds_nothing_to_figures_of_owners() -> None:
    """It may be behind a Proxy: its queues are unknown, and the figures of the others stand."""
    nobody = replace(
        ONE, consumers=0, unassigned=None, idle=None, mismatches=None, duplicate_owners=None, imbalance=None
    )
    nobody = replace(nobody, basis=None)
    for name in ("unassigned", "idle", "mismatches", "duplicate-owners", "imbalance"):
        condition = parse_condition(f"{name}>0", GROUPS_FIGURES)
        assert try_on_groups(condition, (nobody, TWO)).value == try_on_groups(condition, (TWO,)).value
        assert try_on_groups(parse_condition(f"{name}[one]>0", GROUPS_FIGURES), (nobody,)).value == 0
    asked = replace(nobody, unassigned=4)
    both = try_on_groups(parse_condition("unassigned>0", GROUPS_FIGURES), (asked, TWO)).value
    assert both == 4 + (TWO.unassigned or 0)
