from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from rmqlb import MessageQueue, TopicRouteData
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.diff import compare_snapshots, diff_findings
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.model.diff import GroupDiff, SnapshotDiff
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Unread
from rmqlb.views.diff import diff_report
from tests.engine.check.clusters import cluster as undated
from tests.support.builders import HERE, route
from tests.support.mismatches import every_case

DATA = Path(__file__).parent / "comparisons.txt"
"""The name of a case, then its comparison as people read it."""
CLASSES = {name: java for java, name in JAVA_CLASSES.items()}
AT = datetime(2026, 11, 21, tzinfo=UTC)
LATER = datetime(2026, 11, 22, tzinfo=UTC)


def group(
    ids: Sequence[str],
    routes: Sequence[TopicRouteData],
    strategy: str = "AVG",
    *,
    name: str = "g",
    owners: Mapping[MessageQueue, tuple[str, ...]] | None = None,
    reported: bool = True,
    lag: int = 0,
) -> ConsumerGroup:
    found = owners_at_rest(routes, Members(tuple(ids), strategy)) if owners is None else owners
    return ConsumerGroup(
        name, HERE, consume_type="CONSUME_PASSIVELY", message_model="CLUSTERING",
        topics=tuple(each.topic for each in routes), views=(MemberView(tuple(Connection(each) for each in ids), HERE),),
        queues={queue: QueueState(frozenset(own), 1000, 1000 - lag) for queue, own in found.items()},
        reports={each: MemberReport(each, strategy_class=CLASSES[strategy]) for each in ids} if reported else {},
    )  # fmt: skip


def cluster(*groups: ConsumerGroup, routes: Sequence[TopicRouteData]) -> ClusterSnapshot:
    return replace(undated(*groups, routes=routes), endpoint="here", taken_at=AT)


T = route("T", a=4, b=4)
ABC = cluster(group("abc", [T]), routes=[T])


def only(diff: SnapshotDiff) -> GroupDiff:
    (found,) = diff.groups
    return found


def as_read(diff: SnapshotDiff) -> list[str]:
    report, shown = diff_report(diff), ("groups", "topics")
    rows = [" | ".join(map(str, row)) for each in report.sections if each.name in shown for row in each.rows]
    return [report.facts[0], *rows, *(f"{each.severity} {each.code}: {each.message}" for each in diff_findings(diff))]


AVG = dict(owners_at_rest([T], Members(("a", "b", "c"), "AVG")))
FOUR = dict(owners_at_rest([T], Members(("a", "b", "c", "d"), "AVG")))
MOVING = next(queue for queue in FOUR if FOUR[queue] != AVG[queue])
FIRST, SECOND, THIRD, *_ = T.subscribe_queues()
U, WIDER, NONE = route("U", a=2), route("T", a=8, b=4), route("T", a=0)
TWO_MORE = route("T", a=4, b=4, c=2)


def after(ids: str, owners: Mapping[MessageQueue, tuple[str, ...]] | None = None, **more: Any) -> ClusterSnapshot:
    return cluster(replace(group(ids, [T], owners=owners), **more), routes=[T])


def taken_by(owners: tuple[str, ...]) -> ClusterSnapshot:
    """The consumer d has come for c: the queues that go from c to d have these owners still, or already."""
    there = "abcd" if "c" in owners else "abd"
    then = dict(owners_at_rest([T], Members(tuple(there), "AVG")))
    moving = [queue for queue in then if AVG[queue] == ("c",) and then[queue] == ("d",)]
    return after(there, then | dict.fromkeys(moving, owners))


def subscribed(topics_of_c: str) -> ClusterSnapshot:
    reads = {"a": {"T", "U"}, "b": {"T", "U"}, "c": {*topics_of_c}}
    owners = owners_at_rest([T, U], Members(("a", "b", "c"), "AVG", subscribed=reads))
    reports = {each: MemberReport(each, frozenset(topics), CLASSES["AVG"]) for each, topics in reads.items()}
    return cluster(replace(group("abc", [T, U], owners=owners), reports=reports), routes=[T, U])


BLOCKS = [block.splitlines() for block in DATA.read_text(encoding="utf-8").split("\n\n")]
EXPECTED = {name: lines for name, *lines in BLOCKS}
MIXED = dict.fromkeys("abc", "AVG_BY_CIRCLE") | {"d": "AVG"}
UNREPORTED = cluster(group("abc", [T], reported=False), routes=[T])
UNREPORTED_CIRCLE = cluster(group("abc", [T], "AVG_BY_CIRCLE", reported=False), routes=[T])
NOBODYS, ALL_OF_A = (dict.fromkeys(T.subscribe_queues(), owners) for owners in ((), ("a",)))
TIMED_OUT = Unread("group", "g", "timed out"), Unread("route", "T", "no answer")
UNLISTED = (Unread("members", "g", "timed out", "broker-a"),)
OWN = {"a": MemberReport("a", strategy_class="MyStrategy")}
NEARBY = {each: MemberReport(each, strategy_class=CLASSES["MACHINE_ROOM_NEARBY"]) for each in "abc"}
MIXED_REPORTS = {each: MemberReport(each, strategy_class=CLASSES[name]) for each, name in MIXED.items()}
AND_H = cluster(group("abc", [T]), group("x", [U], name="h"), routes=[T, U])
CASES: dict[str, tuple[ClusterSnapshot, ClusterSnapshot]] = {
    "nothing differs": (ABC, ABC),
    "consumers explain moves": (ABC, after("abcd")),
    "a strategy that nobody reports is the one that the owners show": (UNREPORTED, UNREPORTED_CIRCLE),
    "a strategy known on one side only is no change": (ABC, cluster(group("abc", [T], owners=ALL_OF_A, reported=False), routes=[T])),
    "two changes explain together what neither does alone": (ABC, cluster(group("abcd", [T], "AVG_BY_CIRCLE"), routes=[T])),
    "more queues explain new ones and moves": (ABC, cluster(group("abc", [WIDER]), routes=[WIDER])),
    "a broker more": (ABC, cluster(group("abc", [TWO_MORE]), routes=[TWO_MORE])),
    "a new topic of the subscription takes both changes": (ABC, cluster(group("abc", [T, U]), routes=[T, U])),
    "owners that are now as predicted before have converged": (after("abc", AVG | {FIRST: ()}), ABC),
    "queues with their former owners are pending": (ABC, after("abcd", AVG)),
    "one queue with its former owner is pending": (ABC, after("abcd", FOUR | {MOVING: AVG[MOVING]})),
    "queues that nobody has taken yet are pending": (ABC, taken_by(())),
    "queues that two consumers have meanwhile are pending": (ABC, taken_by(("c", "d"))),
    "a group without consumers": (ABC, after("", NOBODYS, views=(), topics=None, reports={})),
    "a second process of a client ID": (ABC, after("abcc")),
    "a second process that moves nothing": (ABC, after("abcc", AVG)),
    "consumers that no queue is for": (cluster(group("a", [NONE]), routes=[NONE]), cluster(group("b", [NONE]), routes=[NONE])),
    "a group and a topic more": (ABC, AND_H),
    "a group and a topic less": (AND_H, ABC),
    "two clusters": (ABC, cluster(group("x", [U], name="h"), routes=[U])),
    "swapped": (ABC, replace(ABC, taken_at=datetime(2026, 11, 20, tzinfo=UTC))),
    "a snapshot that could not read everything": (ABC, replace(cluster(routes=[]), unread=TIMED_OUT)),
    "consumers that a broker did not report have not left": (ABC, replace(after("ab"), unread=UNLISTED)),
    "unknown consumers": (ABC, after("abc", ALL_OF_A, views=None)),
    "a strategy of one's own": (ABC, after("abc", ALL_OF_A, reports=OWN)),
    "a strategy without its settings": (ABC, after("abc", ALL_OF_A, reports=NEARBY)),
    "a new consumer runs another strategy": (cluster(group("abc", [T], "AVG_BY_CIRCLE"), routes=[T]), after("abcd", reports=MIXED_REPORTS)),
    "queues that lost their owners": (ABC, after("abc", NOBODYS)),
    "a queue with two owners": (ABC, after("abc", AVG | {FIRST: ("a", "b")})),
    "offsets alone make no group changed": (ABC, cluster(group("abc", [T], lag=5), routes=[T])),
    "a consumer no longer subscribes to a topic": (subscribed("TU"), subscribed("U")),
    "a setting": (ABC, after("abc", consume_from_where="CONSUME_FROM_FIRST_OFFSET")),
    "a broadcasting group moves no queue": (after("abc", message_model="BROADCASTING"), after("abcd", message_model="BROADCASTING")),
}  # fmt: skip


@every_case("name", CASES)
def test_differences_are_explained_by_the_fewest_changes(name: str) -> None:
    assert as_read(compare_snapshots(*CASES[name])) == EXPECTED[name]


def test_figures_and_details_of_a_comparison() -> None:
    wider = compare_snapshots(ABC, CASES["more queues explain new ones and moves"][1])
    ((broker,),) = (topic.brokers for topic in wider.topics)
    assert (broker.broker_name, broker.change, wider.topics[0].groups) == ("a", "changed", ("g",))
    assert [each and each.read_queue_nums for each in (broker.before, broker.after)] == [4, 8]
    pending = compare_snapshots(ABC, taken_by(("c", "d"))).summary
    assert (pending.newly_duplicate_owners, pending.newly_unassigned, pending.unexplained) == (2, 0, 0)
    lagging = compare_snapshots(ABC, CASES["offsets alone make no group changed"][1])
    found = only(lagging)
    lag = found.change, found.lag_growth, found.produced, found.consumed, found.offsets_back
    assert lag == ("same", 40, 0, -40, 8)
    assert (lagging.summary.groups_changed, lagging.summary.lag_growth) == (0, 40)
    gone = compare_snapshots(ABC, CASES["a group without consumers"][1]).summary
    assert (gone.newly_unassigned, gone.consumers_left) == (8, 3)
    throws = Settings(broker_zones={}, client_zones={})
    found = only(compare_snapshots(*CASES["a strategy without its settings"], settings=throws))
    assert (found.not_predicted or "").startswith("topic T: Machine room is null for mq MessageQueue")
    hidden = only(compare_snapshots(ABC, CASES["consumers that a broker did not report have not left"][1]))
    assert (hidden.joined, hidden.left) == ((), ())


def test_the_report_is_as_grave_as_its_worst_group_which_comes_first() -> None:
    both = cluster(group("abc", [T]), group("abc", [T], name="h"), routes=[T])
    lost = cluster(replace(group("abcd", [T]), group="h"), group("abc", [T], owners=NOBODYS), routes=[T])
    report = diff_report(compare_snapshots(both, lost))
    rows = next(section.rows for section in report.sections if section.name == "groups")
    assert (report.grave, [row[:2] for row in rows]) == ("error", [("error", "g"), ("info", "h")])
    same, moved = diff_report(compare_snapshots(ABC, ABC)), diff_report(compare_snapshots(ABC, after("abcd")))
    assert (same.grave, same.more, same.only(()).sections, same.only(()).table.name) == ("inOrder", "", (), "groups")
    assert (moved.grave, moved.more) == ("", "--section queues lists 5 queues with different owners")
    read = group("abc", [T], name="h")
    read = replace(read, queues={q: QueueState(state.owners, 1010, 1010) for q, state in read.queues.items()})
    lagging = diff_report(compare_snapshots(both, cluster(group("abc", [T], lag=5), read, routes=[T])))
    (lag,) = (section for section in lagging.only((), screen=True).sections if section.name == "lag")
    assert ([row[0] for row in lag.rows], lag.brief) == (["g", "h"], (0,))  # the lag of h has not grown


@every_case(("wanted", "names"), [
    (Everything(), ["g", "h"]),
    (Everything(groups=("h*",)), ["h"]),
    (Everything(system=True), ["CID_RMQ_SYS_TRACE", "g", "h"]),
])  # fmt: skip
def test_only_named_groups_are_compared_and_system_ones_on_request(wanted: Everything, names: list[str]) -> None:
    own = route("RMQ_SYS_TRACE_TOPIC", a=1)
    groups = ("g", T), ("h", T), ("CID_RMQ_SYS_TRACE", own)
    first, then = (cluster(*(group(i, [t], name=n) for n, t in groups), routes=[T, own]) for i in ("abc", "abcd"))
    assert [each.group for each in compare_snapshots(first, then, wanted).groups] == names


def with_offset(seen: ConsumerGroup, offset: int | None, *queues: MessageQueue) -> ConsumerGroup:
    states = {queue: replace(seen.queues[queue], consumer_offset=offset) for queue in queues}
    return replace(seen, queues={**seen.queues, **states})


def later(seen: ConsumerGroup) -> ClusterSnapshot:
    return replace(cluster(seen, routes=[T]), taken_at=LATER)


def test_an_offset_that_went_back_is_found_by_the_rule_of_a_diagnosis() -> None:
    # The offset of a queue in one snapshot only, or one that was never stored, is not compared.
    before = with_offset(with_offset(group("abc", [T]), None, SECOND), -1, THIRD)
    diff = compare_snapshots(cluster(before, routes=[T]), later(with_offset(before, 990, FIRST, SECOND, THIRD)))
    (finding,) = only(diff).findings
    assert (finding.code, finding.severity, finding.queues) == ("offset-rewound", "warning", (FIRST,))
    (seen,) = finding.evidence
    assert (seen.fact, seen.value, seen.threshold) == ("messages back in T a:0", 10, 1)
    assert finding.consequence == "10 messages of 1 queue redelivered."
    assert finding.remedy.startswith("If you did not reset the offsets")
    (found,) = diff_findings(diff)
    assert (found.code, found.severity) == ("offset-rewound", "warning")
    assert found.message == "the offsets of 1 queue of group g went back: messages from that offset on are redelivered"


def test_an_offset_that_went_back_while_owners_change_or_for_a_cause_is_still_reported() -> None:
    now = group("abcd", [T])
    moved = next(queue for queue, state in now.queues.items() if state.owners != ABC.groups["g"].queues[queue].owners)
    diff = compare_snapshots(ABC, later(with_offset(now, 990, moved)))
    (finding,) = only(diff).findings
    assert (finding.code, finding.severity, finding.queues) == ("offset-rewound", "info", (moved,))
    assert [each.severity for each in diff_findings(diff)] == ["info"]
    states = ABC.groups["g"].queues
    first, then = (
        after("abc", queues={**states, FIRST: QueueState(frozenset("ab"), 1000, stored)}) for stored in (1000, 990)
    )
    (finding,) = only(compare_snapshots(first, then)).findings
    assert (finding.code, finding.severity, finding.evidence) == ("offset-rewound", "warning", ())
    assert compare_snapshots(replace(first, taken_at=LATER), then).groups[0].findings == ()  # swapped


IDS = st.lists(st.sampled_from([f"10.0.0.{n}@1" for n in range(1, 9)]), min_size=1, max_size=6)
NAMES = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]
BROKERS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), min_size=1, max_size=3)
TOPICS = st.dictionaries(st.sampled_from("TUV"), BROKERS, min_size=1, max_size=3)
ROUTES = TOPICS.map(lambda topics: [route(topic, **brokers) for topic, brokers in topics.items()])  # type: ignore[arg-type]


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    routes, ids, strategy = draw(ROUTES), draw(IDS), draw(st.sampled_from(NAMES))
    own = dict(owners_at_rest(routes, Members(tuple(ids), strategy)))
    for queue in draw(st.lists(st.sampled_from(sorted(own)), max_size=4)) if own else ():
        own[queue] = draw(st.sampled_from([(), ("10.0.0.1@1",), ("10.0.0.2@1", "10.0.0.9@1")]))
    found = group(ids, routes, strategy, owners=own, reported=draw(st.booleans()), lag=draw(st.integers(0, 9)))
    return cluster(found, routes=routes)


@given(clusters(), clusters())
@settings(max_examples=200)
def test_each_queue_that_differs_is_in_exactly_one_explanation(before: ClusterSnapshot, after: ClusterSnapshot) -> None:
    same = compare_snapshots(before, before)
    assert (same.groups, same.topics, same.not_compared, [*diff_findings(same)]) == ((), (), (), [])
    assert same.summary.groups_changed == same.summary.moved == same.summary.unexplained == 0
    assert same.summary.lag_growth in (0, None)
    diff = compare_snapshots(before, after)
    for found in diff.groups:
        names = [queue.queue for queue in found.queues]
        assert len(set(names)) == len(names) == sum(each.queues for each in found.explanations)
        first, then = (
            {queue: state.sorted_owners for queue, state in side.groups[found.group].queues.items()}
            for side in (before, after)
        )
        assert {queue for queue in first.keys() & then.keys() if first[queue] != then[queue]} <= set(names)
        for queue in found.queues:
            predicted = queue.predicted_before != queue.predicted_after
            assert queue.owners_before != queue.owners_after or predicted


CHANGES = st.one_of(
    st.builds(lambda n: Edits(add=(n,)), st.integers(1, 3)),
    st.builds(lambda n: Edits(remove=(n,)), st.integers(1, 2)),
    st.builds(lambda name: Edits(to_strategy=name), st.sampled_from(NAMES)),
    st.builds(lambda n: Edits(read_queues=(QueueCount(n),)), st.integers(0, 6)),
    st.just(Edits(add_brokers=(NewBroker("z", 3),))),
    st.builds(lambda n, name: Edits(add=(n,), to_strategy=name), st.integers(1, 2), st.sampled_from(NAMES)),
)


@given(ROUTES, st.lists(st.sampled_from([f"10.0.0.{n}@1" for n in range(1, 9)]), min_size=2, unique=True), CHANGES)
@settings(max_examples=200)
def test_the_change_of_a_plan_explains_moves(routes: list[TopicRouteData], ids: list[str], changes: Edits) -> None:
    after_ids = change_members(ids, changes)
    after_routes = change_routes(routes, changes)
    name = changes.to_strategy or "AVG"
    before, after = Side(Members(tuple(ids), "AVG"), tuple(routes)), Side(Members(after_ids, name), after_routes)
    plan = plan_rebalance("g", before, after)
    diff = compare_snapshots(
        cluster(group(ids, routes), routes=routes), cluster(group(after_ids, after_routes, name), routes=after_routes)
    )
    queues = [queue for found in diff.groups for queue in found.queues]
    changed = [(topic.topic, move) for topic in plan.topics for move in topic.queues if move.change != "same"]
    moves = [(topic, move.broker_name, move.queue_id, move.change) for topic, move in changed]
    assert {(*astuple(queue.queue), queue.change) for queue in queues} == {*moves}
    asked = {
        "consumers": changes.add or changes.remove, "strategy": changes.to_strategy, "routes": changes.touches_route,
    }  # fmt: skip
    kinds = {kind for kind, change in asked.items() if change}
    assert all(queue.how == "predicted" and set(queue.causes) <= kinds for queue in queues)
