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
from rmqlb.model.finding import Severity
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.groups import ConsumerProcess, GroupLine
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


PROXY = ProxyView((), Seen("Proxy p:8080"), "p:8080")
GRPC = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
PULL = "CONSUME_ACTIVELY"


def mixed() -> ConsumerGroup:
    group = members("x y", owners="x x+y - y")
    return replace(group, reports={**group.reports, "y": replace(group.reports["y"], strategy_class=CIRCLE_CLASS)})


@every_case(
    ("group", "status", "findings", "figures"),
    [
        (
            members("x y", owners="x x y y", lag={0: 5, 1: 0, 2: 7, 3: 0}),
            *("inOrder", [], {"basis": "observed", "topics": ("T",), "consumers": 2, "processes": 2, "queues": 4}),
        ),
        (
            members("x y", owners="x x y y", lag={0: 5, 1: 0, 2: 7, 3: 0}),
            *("inOrder", [], {"lag": 12, "unassigned": 0, "duplicate_owners": 0, "idle": 0, "imbalance": 1.0}),
        ),
        (
            members("x y"),
            *("inOrder", [], {"basis": "predicted", "unassigned": 0, "mismatches": None, "lag_at_least": None}),
        ),
        (
            members("x y", strategy=None),
            *("unknown", ["assumed-strategy"], {"strategies": ("AVG",), "strategy_origin": "assumed"}),
        ),
        (
            members("x x", owners="x x - -"),
            *("error", ["duplicate-client-id"], {"consumers": 1, "processes": 2, "unassigned": 2, "mismatches": 0}),
        ),
        (
            mixed(),
            *("error", ["mixed-strategies"], {"unassigned": 1, "duplicate_owners": 1, "mismatches": 0}),
        ),
        (
            members("x y", owners="x y x y", subscribed={"x": "T", "y": "T"}),
            *("warning", ["mismatch"], {"mismatches": 2}),
        ),
        (members("x y z", owners="x x y x", strategy=None), "unknown", ["assumed-strategy"], {"mismatches": 1}),
        (members("u v w x y z", owners="u v w x"), "inOrder", ["more-consumers-than-queues"], {"idle": 2}),
        (
            members("", owners="- - - -", lag={0: 0, 1: 3, 2: 0, 3: 0}),
            *("error", ["no-consumer-online"], {"unassigned": None}),
        ),
        (
            members("", lag={0: 0, 1: 0, 2: 0, 3: 0}),
            *("offline", ["no-consumer-online"], {"consumers": 0, "idle": None, "imbalance": None, "strategies": ()}),
        ),
        # without a Proxy that was asked, the group may be consumed through one
        (replace(members("", lag={0: 0}), proxies=(PROXY,)), "offline", ["no-consumer-online"], {"unassigned": 4}),
        (
            replace(members("", lag={0: 0, 1: 2, 2: 0, 3: 0}), polling_num=2),
            *("unknown", ["behind-proxy"], {"consumers": None, "unassigned": None, "lag": 2}),
        ),
        (
            replace(members("", lag={0: 0}), proxies=(GRPC,)),
            *("inOrder", ["behind-proxy"], {"consumers": 1, "unassigned": None}),
        ),
        (
            members("x y", consume_type="CONSUME_POP"),
            *("unknown", ["pop-consumption"], {"unassigned": None, "basis": None, "strategies": (), "queues": 4}),
        ),
        (
            members("x y", message_model="BROADCASTING", owners="x+y x+y x+y x+y", lag={0: 9}),
            *("inOrder", ["broadcasting"], {"duplicate_owners": 0, "lag": None, "lag_at_least": None}),
        ),
        (members("x y", consume_type=PULL), "unknown", ["pull-consumers"], {"unassigned": None, "basis": None}),
        (
            members("x y", consume_type=PULL, owners="x x y y"),
            *("inOrder", ["pull-consumers"], {"unassigned": 0, "basis": "observed"}),
        ),
        (
            members("x y", strategy="AllocateMessageQueueByMachineRoom"),
            *("unknown", ["settings-unknown"], {"strategies": ("MACHINE_ROOM",)}),
        ),
        (members("x y", strategy="OfOurOwn"), "unknown", ["unknown-strategy-class"], {"strategies": ("OfOurOwn",)}),
        (members("", topics=None), "offline", ["no-consumer-online"], {"queues": None, "consumers": 0}),
        # what is observed is certain where other owners are not known
        (
            members("x y", strategy=None, consume_type=PULL, owners="x+y ? - ?"),
            *("error", None, {"unassigned": 1, "duplicate_owners": 1, "basis": "observed", "idle": None}),
        ),
        (
            members("x", topics="T U %RETRY%g", owners="x x x x"),
            *("warning", ["no-route"], {"topics": ("T", "U"), "queues": None, "unassigned": None}),
        ),
    ],
)
def test_a_group_in_a_line(
    group: ConsumerGroup, status: str, findings: list[str] | None, figures: dict[str, object]
) -> None:
    found = line(group)
    assert (found.status, {name: getattr(found, name) for name in figures}) == (status, figures)
    if findings is not None:
        assert codes(found) == findings


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
    nobody = line(members(""), unread=unread[:1])  # no consumer so far is not no consumer
    assert (nobody.status, codes(nobody), nobody.consumers, nobody.processes) == ("warning", ["unread"], None, None)


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
    severities: tuple[Severity | None, ...] = ("error", "warning", "info", None)
    for number, severity in enumerate(severities, 1):
        shown = whole.at_least(severity, ())
        assert [each.group for each in shown.groups] == ["bad", "odd", "pop", "fine"][:number]
        assert shown.summary == whole.summary


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


def test_processes_on_one_host_and_stale_connections_cannot_be_told_apart() -> None:
    one_host = replace(members("x x"), views=listed(a="x=h:1 x=h:4", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(one_host)] == [[("a", "h:1")], [("a", "h:4")]]
    stale = replace(members("x"), views=listed(a="x=h:1", b="x=h:2 x=h:3"))
    assert [addresses(each) for each in processes(stale)] == [[("a", "h:1")]]


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


FINE = members("x y", name="fine", owners="x x y y", lag={0: 5, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 1, 1: 0, 2: 0, 3: 0})
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


@every_case(
    ("compare", "value", "met"),
    [
        (">=2", 2, True),
        ("<=1", 2, False),
        ("<=2", None, None),
        (">1", 2, True),
        ("<2", 2, False),
        (">2", None, None),
        ("=2", None, None),
        ("!=2", None, None),
    ],
)
def test_what_is_not_known_can_only_add(compare: str, value: float | None, met: bool | None) -> None:
    assert tried(f"unassigned{compare}", BAD, PULLS) == (value, met)
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
