"""`pytest tests/engine/test_show_groups.py --update-golden` rewrites `groups.txt`."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace

from rmqlb import UsageError, diagnose, show_consumers, show_groups
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.group import all_groups, group_of
from rmqlb.engine.show_groups import (
    GROUPS_FIGURES,
    consumers_of,
    group_line,
    overview,
    try_on_groups,
    unread_of_groups,
    unread_of_no_group,
)
from rmqlb.model.diagnosis import Diagnosis, Drain
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.groups import STATUSES, ConsumerProcess, Consumers, GroupLine, GroupState, Status
from rmqlb.model.result import Severity
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from rmqlb.views.show_groups import consumers_report, groups_report, headline
from tests.cli.run import ROOT
from tests.engine.check.clusters import cluster, members
from tests.support.builders import HERE
from tests.support.mismatches import assert_recorded, every_case, refusal
from tests.support.odd_groups import ODD
from tests.views.shown import on_a_terminal

UNREAD = (Unread("members", "g", "timed out", "b"), Unread("member", "g", "late", "x"))


def listed(group: ConsumerGroup, **brokers: str) -> ClusterSnapshot:
    """The group as brokers list it: `broker="id=ip:port …"`."""
    views = tuple(
        MemberView(tuple(Connection(*each.split("=")) for each in text.split()), HERE, broker)
        for broker, text in brokers.items()
    )
    return cluster(replace(group, views=views))


def reporting(group: ConsumerGroup, **changes: object) -> ClusterSnapshot:
    return cluster(replace(group, reports={i: replace(report, **changes) for i, report in group.reports.items()}))


LAG = {0: 5, 1: 0, 2: 7, 3: 0}
ALL_IN_ONE = {0: 1_500, 1: 0, 2: 0, 3: 0}
SAYS = members("x y", subscribed={"x": "T %RETRY%g", "y": "T U"})
PULLS = members("x y", consume_type="CONSUME_ACTIVELY")
SOME_SEEN = members("x y", owners="x x ? ?")
TWICE = " ".join(f"{name} {name}" for name in "abcde")
GROUPS: dict[str, ClusterSnapshot] = {
    **ODD,
    "lag of both consumers": cluster(members("x y", owners="x x y y", lag=LAG)),
    "lag of one consumer": cluster(members("x y", owners="x x y y", lag=ALL_IN_ONE)),
    "lag of the only consumer": cluster(members("x", owners="x x x x", lag=ALL_IN_ONE)),
    "lag of both equal": cluster(members("x y", owners="x x y y", lag={0: 1, 1: 0, 2: 1, 3: 0})),
    "lag known in part": cluster(members("x y", owners="x x y y", lag={0: 4, 1: 0, 2: 0})),
    "lag by predicted owners": cluster(members("x y", lag={0: 4, 1: 1, 2: 0, 3: 7})),
    "no strategy reported": cluster(members("x y", strategy=None)),
    "no strategy fits": cluster(members("x y z", owners="x x y x", strategy=None)),
    "other owners than predicted": cluster(members("x y", owners="x y x y", subscribed={"x": "T", "y": "T"})),
    "nobody online, all read": cluster(members("", lag={0: 0, 1: 0, 2: 0, 3: 0})),
    "nobody online, some unread": cluster(members("", owners="- - - -", lag={0: 0, 1: 3, 2: 0, 3: 0})),
    "receive requests wait": cluster(replace(members("", lag={0: 0, 1: 2, 2: 0, 3: 0}), polling_num=2)),
    "nobody online, no topics": cluster(members("", topics=None)),
    "gRPC at a Proxy, lag": cluster(replace(members("", lag={0: 0}), proxies=(ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p"), "p:8080"),))),
    "owners certain although others are unknown": cluster(members("x y", strategy=None, consume_type="CONSUME_ACTIVELY", owners="x+y ? - ?")),
    "three topics, one route": cluster(members("x", topics="T U %RETRY%g", owners="x x x x")),
    "consumers not listed, one late": cluster(members("x y"), unread=UNREAD),
    "no consumer so far": cluster(members(""), unread=UNREAD[:1]),
    "y late": cluster(replace(SOME_SEEN, reports={"x": SOME_SEEN.reports["x"]}), unread=(Unread("member", "g", "late", "y"),)),
    "many parts not read": cluster(members("x y", owners="x x y y"), unread=(*UNREAD[1:], Unread("offsets", "g", "timed out", "b"), Unread("stored-offsets", "g", "late", "b"))),
    "many IDs twice": cluster(members(TWICE)),
    "an address at each broker": listed(members("x y"), a="x=h1:1 y=h2:2", b="y=h2:3 x=h1:4"),
    "two processes of an ID": listed(members("x x", owners="x x - -"), a="x=h2:1 x=h1:2", b="x=h1:3 x=h2:4"),
    "two processes on a host": listed(members("x x"), a="x=h:1 x=h:4", b="x=h:2 x=h:3"),
    "a connection too many": listed(members("x"), a="x=h1:1", b="x=h:2 x=h:3"),
    "a consumer that b does not list": listed(members("x y"), a="x=h1:1 y=h2:1", b="x=h1:2"),
    "lite-pull consumers": reporting(PULLS, consumer_type="lite-pull"),
    "starts and subscriptions": reporting(SAYS, started_at=1_767_225_600_123),
    "a start at no time": reporting(members("x"), started_at=10**30),
}  # fmt: skip


def lines_of(snapshot: ClusterSnapshot) -> Iterator[str]:
    (name,) = all_groups(snapshot)
    group = group_of(snapshot, name)
    found = consumers_of(group, unread_of_groups(snapshot).get(name, ()))
    state, processes = found.overview, found.consumers
    yield from consumers_report(found).facts
    yield f"in a line: {headline(found.findings, state, state.lagging)}"
    yield shown(state)
    for finding in found.findings:
        yield f"  {finding.severity} {finding.code} ({' '.join(finding.consumers)}): {finding.message}"
    for process in processes:
        addresses = " ".join(f"{each.broker_addr or each.proxy_addr}={each.client_addr}" for each in process.addresses)
        yield f"  {shown(replace(process, addresses=()))} {addresses}".rstrip()
    (line,) = overview(snapshot, [name], Settings()).groups
    assert {each: getattr(line, each) for each in GroupState.__struct_fields__} == {
        each: getattr(state, each) for each in GroupState.__struct_fields__
    }


def shown(value: GroupState | ConsumerProcess) -> str:
    fields = ((name, getattr(value, name)) for name in value.__struct_fields__ if name not in ("lagging", "drain"))
    return " ".join(f"{name}={each}" for name, each in fields if each not in (None, ()))


def test_each_group_and_its_consumers_are_as_recorded(request: pytest.FixtureRequest) -> None:
    answers = {name: lines_of(snapshot) for name, snapshot in GROUPS.items()}
    assert_recorded(Path(__file__).with_name("groups.txt"), answers, request)


SEVERAL = cluster(
    members("x", name="fine", owners="x x x x", lag={0: 9_000}),
    members("x x", name="bad", owners="x x x x", lag={0: 1}),
    members("x x", name="worse", owners="x x x x", lag={0: 5}),
    members("x y", name="odd", owners="x y x y", subscribed={"x": "T", "y": "T"}),
    members("x", name="pop", consume_type="CONSUME_POP"),
    members("", name="gone"),
)


def test_the_worst_group_stands_first_and_a_severity_chooses_among_them() -> None:
    whole = overview(SEVERAL, all_groups(SEVERAL), Settings())
    s = whole.summary
    assert (s.groups, s.with_errors, s.with_warnings, s.lagging, s.unknown, s.offline) == (6, 2, 1, 1, 1, 1)
    assert (s.lag, s.duplicate_client_ids, s.mismatches, s.unassigned) == (9_006, 2, 6, 0)
    severities: tuple[tuple[Severity | None, int], ...] = (("error", 2), ("warning", 4), ("info", 6), (None, 6))
    for severity, number in severities:
        some = whole.at_least(severity, ())
        assert [each.group for each in some.groups] == ["worse", "bad", "odd", "fine", "pop", "gone"][:number]
        assert some.summary == s


def test_parts_that_no_line_tells_are_left_for_the_source() -> None:
    parts = (*(Unread("route", topic, "timed out") for topic in ("T", "Other")), Unread("groups", "b", "timed out"))
    snapshot = cluster(members("x"), routes=(), unread=(*parts, *UNREAD))
    found = overview(snapshot, all_groups(snapshot), Settings())
    assert [part.name for part in unread_of_no_group(snapshot, found.groups)] == ["Other", "b"]


SUMMED = ("lag", "unassigned", "duplicate_owners", "idle", "duplicate_client_ids", "mismatches", "imbalance")
NUMBERS = ("consumers", "processes", "queues", "lag_at_least", *SUMMED)


def line(name: str, status: Status, names: Sequence[str], *numbers: float) -> GroupLine:
    return replace(GroupLine(name, status, basis="observed"), **dict(zip(names, numbers, strict=True)))


def tried(text: str, *lines: GroupLine) -> tuple[float | None, bool | None]:
    found = try_on_groups(parse_condition(text, GROUPS_FIGURES), lines)
    return found.value, found.met


ONE = line("one", "error", NUMBERS, 3, 4, 5, 60, 6, 7, 8, 9, 10, 11, 1.5)
TWO = line("two", "warning", SUMMED, 600, 700, 800, 900, 1000, 1100, 1.25)
POP = replace(ONE, shares_queues=False)
OTHERS = {
    "broadcasting": replace(ONE, message_model="BROADCASTING"), "POP": POP, "a Proxy": replace(POP, basis=None),
    "one offline": replace(ONE, status="offline"),
}  # fmt: skip


def figures_of_groups() -> Iterator[tuple[str, Iterable[str]]]:
    """Each consumer of a broadcasting group owns every queue; nobody owns those that are consumed by POP or a Proxy."""
    for name in GROUPS_FIGURES.of_subject:
        yield f"{name} of one", [str(tried(f"{name}[one]>0", TWO, ONE)[0])]
    for name in GROUPS_FIGURES.names:
        with_others = (f"with {kind}: {tried(f'{name}>0', one, TWO)[0]}" for kind, one in OTHERS.items())
        yield name, [f"{tried(f'{name}>0', TWO, ONE)[0]}", *with_others]


def test_each_figure_of_groups_is_as_recorded(request: pytest.FixtureRequest) -> None:
    assert_recorded(Path(__file__).with_name("group-figures.txt"), dict(figures_of_groups()), request)


IDLE = replace(ONE, imbalance=None)
UNKNOWN = replace(IDLE, basis=None)
KNOWN, ACTIVE = (
    GroupLine("known", "error", basis="observed", unassigned=2, lag=5),
    GroupLine("active", "unknown", consumers=1),
)
PARTLY = replace(ACTIVE, owners_unknown=4)


@every_case(("text", "lines", "value", "met"), [
    # Queues that nobody reads are even.
    ("imbalance[one]>0", (IDLE,), 0, False),
    ("imbalance[one]>0", (UNKNOWN,), None, None),
    ("imbalance>1", (UNKNOWN, TWO), 1.25, True),
    ("imbalance>2", (UNKNOWN, TWO), None, None),
    ("imbalance>=1", (), None, None),
    ("lag>=0", (), 0, True),
    # Unknown parts can only add to a figure.
    *((f"unassigned{compare}", (KNOWN, ACTIVE), 2, False) for compare in ("<=1", "<2")),
    *((f"unassigned{compare}", (KNOWN, ACTIVE), None, None) for compare in ("<=2", ">2", "=2", "!=2")),
    *((f"unassigned{compare}", (KNOWN, PARTLY), value, met) for compare, value, met in (
        (">6", 2, False), ("<=6", 2, True), (">5", None, None), ("<2", 2, False), ("<3", None, None), ("=2", None, None),
    )),
    *((text, (KNOWN, ACTIVE), value, True) for text, value in (("unassigned>=2", 2), ("unassigned>1", 2), ("lag>0", 5))),
])  # fmt: skip
def test_what_is_unknown(text: str, lines: tuple[GroupLine, ...], value: float | None, met: bool | None) -> None:
    assert tried(text, *lines) == (value, met)


def test_a_group_without_a_visible_consumer_adds_nothing_to_figures_of_owners() -> None:
    names = ("unassigned", "idle", "mismatches", "duplicate_owners", "imbalance")
    nobody = replace(ONE, consumers=0, basis=None, **dict.fromkeys(names))
    for name in (each.replace("_", "-") for each in names):
        assert tried(f"{name}>0", nobody, TWO) == tried(f"{name}>0", TWO)
        assert tried(f"{name}[one]>0", nobody)[0] == 0
    assert tried("unassigned>0", replace(nobody, unassigned=4), TWO)[0] == 704


def policy(limit: int) -> dict[str, object]:
    return {"rules": [{"name": "lag", "groups": ["stock-*"], "limits": {"lag": limit}}]}


@every_case(("drain", "max_drain_ms", "lags"), [
    (Drain("never"), inf, True),
    (Drain("unknown"), 0, False),
    (Drain("finite", 60_000, 30_001, 90_000), 30_000, True),
    (Drain("finite", 60_000, 30_000, 90_000), 30_000, False),
])  # fmt: skip
def test_a_lag_that_lasts_counts_below_the_limit_of_messages(drain: Drain, max_drain_ms: float, lags: bool) -> None:
    snapshot = GROUPS["lag of both consumers"]
    group = group_of(snapshot, "g")
    line = group_line(group, (), 1_000, drain, max_drain_ms)
    assert (line.status, line.lagging is not None) == (("lagging", True) if lags else ("inOrder", False))


@every_case(("max_lag", "limits", "stock", "label"), [
    (1_000, None, "inOrder", "inOrder"),
    (912, None, "inOrder", "inOrder"),
    (911, None, "lagging", "inOrder"),
    (11, None, "lagging", "lagging"),
    (1_000, policy(100), "lagging", "inOrder"),
    (11, policy(1_000), "inOrder", "lagging"),
])  # fmt: skip
def test_when_a_group_lags(max_lag: int, limits: dict[str, object] | None, stock: Status, label: Status) -> None:
    found = show_groups(str(ROOT / "examples" / "faults.json"), max_lag=max_lag, policy=limits)
    of = {line.group: line for line in found.groups}
    assert (of["stock-svc"].status, of["label-svc"].status) == (stock, label)
    # One sample shows that the listener may be blocked.
    assert (of["ship-svc"].status, of["ship-svc"].findings[0].code) == ("warning", "blocked-consumer")
    late = of["ship-svc"].lagging
    assert late is None or (late.consumer, len(late.queues)) == ("192.0.2.68@7", 3)
    places = [STATUSES.index(line.status) for line in found.groups]
    assert places == sorted(places)


@every_case(("max_lag", "is_late"), [(1_500, False), (1_499, True)])
def test_every_verb_that_names_a_lagging_group_has_one_limit(max_lag: int, is_late: bool) -> None:
    source = str(ROOT / "examples" / "four-groups.yaml")
    consumers = show_consumers(source, "slow-svc", max_lag=max_lag)
    diagnosis = diagnose(source, "slow-svc", max_lag=max_lag)
    assert isinstance(consumers, Consumers)
    assert isinstance(diagnosis, Diagnosis)
    (line,) = show_groups(source, "slow-svc", max_lag=max_lag).groups
    late = line.lagging
    assert (late is not None, consumers.overview.lagging, diagnosis.lagging) == (is_late, late, late)
    for verb in (show_groups, show_consumers, diagnose):
        assert "--max-lag -1: less than 0" in refusal(UsageError, verb, source, "slow-svc", max_lag=-1).message


def test_a_narrow_table_has_a_line_per_group_and_cuts_names_in_the_middle() -> None:
    name = "payments-of-the-northern-region-settlement-consumer"
    whole = groups_report(show_groups(cluster(members("x x", name=name, owners="x x x -", lag={0: 5_000}))))
    lines = {width: on_a_terminal(whole, width).splitlines() for width in (80, 200)}
    assert [line for line in lines[80] if line.startswith("✗")] == [
        "✗   payments-of-…onsumer   5,000+   duplicate-client-id: 1 of 4 queues unassign…"
    ]
    assert any(name in line and line.rstrip().endswith("1 of 4 queues unassigned") for line in lines[200])


def test_the_groups_of_rocketmq_are_counted_and_not_listed() -> None:
    found = show_groups(
        cluster(members("x"), members("", name="CID_RMQ_SYS_TRANS"), members("", name="TOOLS_CONSUMER"))
    )
    assert ([line.group for line in found.groups], found.summary.own) == (["g"], 2)
    assert groups_report(found).facts[1] == "  2 groups of RocketMQ's own not listed"
