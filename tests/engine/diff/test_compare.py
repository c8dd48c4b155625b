"""What differs between two snapshots, and which change explains each queue's new owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.engine.diff.compare import compare_snapshots, diff_findings
from rmqlb.engine.plan.changes import Changes, NewBroker, QueueCount, change_members, change_routes
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.model.diff import GroupDiff, SnapshotDiff
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Everything, RouteSighting, Unread
from tests.support.builders import HERE, route

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
    """A group whose queues have the owners that its strategy predicts, or these."""
    found = owners_at_rest(routes, Members(tuple(ids), strategy)) if owners is None else owners
    return ConsumerGroup(
        name,
        HERE,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        topics=tuple(each.topic for each in routes),
        views=(MemberView(tuple(Connection(each) for each in ids), HERE),),
        queues={queue: QueueState(frozenset(its), 1000, 1000 - lag) for queue, its in found.items()},
        reports={each: MemberReport(each, strategy_class=CLASSES[strategy]) for each in ids} if reported else {},
    )


def cluster(*groups: ConsumerGroup, routes: Sequence[TopicRouteData]) -> ClusterSnapshot:
    return ClusterSnapshot(
        "dump",
        "here",
        AT,
        {each.topic: RouteSighting(each, HERE) for each in routes},
        {each.group: each for each in groups},
    )


T = route("T", a=4, b=4)
ABC = cluster(group("abc", [T]), routes=[T])


def only(diff: SnapshotDiff) -> GroupDiff:
    (found,) = diff.groups
    return found


def explained(found: GroupDiff) -> dict[tuple[str, tuple[str, ...]], int]:
    return {(each.how, each.causes): each.queues for each in found.explanations}


def codes(diff: SnapshotDiff) -> list[str]:
    return [finding.code for finding in diff_findings(diff)]


def test_a_strategy_that_nobody_reports_is_the_one_that_the_owners_show() -> None:
    before = cluster(group("abc", [T], reported=False), routes=[T])
    after = cluster(group("abc", [T], "AVG_BY_CIRCLE", reported=False), routes=[T])
    assert set(explained(only(compare_snapshots(before, after)))) == {("predicted", ("strategy",))}


def test_a_strategy_known_on_one_side_only_is_no_change() -> None:
    moving = dict.fromkeys(T.subscribe_queues(), ("a",))
    after = cluster(group("abc", [T], owners=moving, reported=False), routes=[T])
    found = only(diff := compare_snapshots(ABC, after))
    assert not found.strategy_changed
    assert set(explained(found)) == {("unexplained", ())}
    assert codes(diff) == ["unexplained-owners"]


def test_two_changes_explain_together_what_neither_does_alone() -> None:
    found = only(compare_snapshots(ABC, cluster(group("abcd", [T], "AVG_BY_CIRCLE"), routes=[T])))
    causes = {each.causes for each in found.explanations}
    assert ("consumers", "strategy") in causes
    assert all(each.how == "predicted" for each in found.explanations)


def test_more_queues_explain_those_that_are_new_and_those_that_moved() -> None:
    wider = route("T", a=8, b=4)
    diff = compare_snapshots(ABC, cluster(group("abc", [wider]), routes=[wider]))
    found = only(diff)
    assert diff.summary.queues_added == 4
    assert {(queue.change, queue.how, queue.causes) for queue in found.queues} == {
        ("added", "predicted", ("routes",)),
        ("moved", "predicted", ("routes",)),
    }
    (topic,) = diff.topics
    (broker,) = topic.brokers
    assert (topic.change, topic.groups, broker.broker_name, broker.change) == ("changed", ("g",), "a", "changed")
    assert broker.before is not None
    assert broker.after is not None
    assert (broker.before.read_queue_nums, broker.after.read_queue_nums) == (4, 8)


def test_a_new_topic_of_the_subscription_takes_both_changes() -> None:
    other = route("U", a=2)
    found = only(compare_snapshots(ABC, cluster(group("abc", [T, other]), routes=[T, other])))
    assert found.topics_added == ("U",)
    assert explained(found) == {("predicted", ("subscriptions", "routes")): 2}


def test_owners_that_are_now_as_predicted_before_have_converged() -> None:
    odd = {**owners_at_rest([T], Members(("a", "b", "c"), "AVG"))}
    odd[T.subscribe_queues()[0]] = ()
    diff = compare_snapshots(cluster(group("abc", [T], owners=odd), routes=[T]), ABC)
    assert explained(only(diff)) == {("converged", ()): 1}
    assert diff.summary.newly_assigned == 1


def test_queues_that_still_have_their_former_owners_are_pending() -> None:
    same = owners_at_rest([T], Members(("a", "b", "c"), "AVG"))
    diff = compare_snapshots(ABC, cluster(group("abcd", [T], owners=same), routes=[T]))
    found = only(diff)
    assert {(queue.how, queue.causes, queue.change) for queue in found.queues} == {("pending", ("consumers",), "same")}
    assert diff.summary.pending == len(found.queues)
    assert codes(diff) == ["not-moved-yet"]


@pytest.mark.parametrize("taken", [(), ("c", "d")])
def test_queues_that_are_on_their_way_are_pending(taken: tuple[str, ...]) -> None:
    """Nobody has taken those of c yet, or d has while c is still there."""
    there = "abd" if not taken else "abcd"
    before = owners_at_rest([T], Members(("a", "b", "c"), "AVG"))
    after = dict(owners_at_rest([T], Members(tuple(there), "AVG")))
    moving = [queue for queue in after if before[queue] == ("c",) and after[queue] == ("d",)]
    diff = compare_snapshots(ABC, cluster(group(there, [T], owners=after | dict.fromkeys(moving, taken)), routes=[T]))
    found = {(queue.broker_name, queue.queue_id): queue for queue in only(diff).queues}
    assert {found[queue.broker_name, queue.queue_id].how for queue in moving} == {"pending"}
    assert diff.summary.newly_duplicate_owners == (len(moving) if taken else 0)
    assert diff.summary.newly_unassigned == (0 if taken else len(moving))
    assert diff.summary.unexplained == 0


def test_a_group_without_consumers_leaves_its_queues_unassigned() -> None:
    gone = replace(group("", [T], owners=dict.fromkeys(T.subscribe_queues(), ())), views=(), topics=None, reports={})
    diff = compare_snapshots(ABC, cluster(gone, routes=[T]))
    assert explained(only(diff)) == {("predicted", ("consumers",)): 8}
    assert (diff.summary.newly_unassigned, diff.summary.consumers_left) == (8, 3)


def test_a_second_process_of_a_client_id_is_a_change_of_consumers() -> None:
    found = only(compare_snapshots(ABC, cluster(group("abcc", [T]), routes=[T])))
    assert [(each.client_id, each.before, each.after) for each in found.processes] == [("c", 1, 2)]
    assert {each.causes for each in found.explanations} == {("consumers",)}


def test_groups_and_topics_that_are_in_one_snapshot_only() -> None:
    other = route("U", a=2)
    both = cluster(group("abc", [T]), group("x", [other], name="h"), routes=[T, other])
    there, back = compare_snapshots(ABC, both), compare_snapshots(both, ABC)
    assert (only(there).change, only(back).change) == ("added", "removed")
    assert [topic.change for topic in (*there.topics, *back.topics)] == ["added", "removed"]
    assert (there.summary.groups_added, back.summary.groups_removed) == (1, 1)


def test_what_one_snapshot_could_not_read_is_not_compared() -> None:
    partial = replace(cluster(routes=[]), unread=(Unread("group", "g", "timed out"), Unread("route", "T", "no answer")))
    diff = compare_snapshots(ABC, partial)
    assert (diff.groups, diff.topics) == ((), ())
    assert [(each.kind, each.name, each.reason) for each in diff.not_compared] == [
        ("topic", "T", "no answer"),
        ("group", "g", "timed out"),
    ]
    assert codes(diff) == ["not-compared", "not-compared"]


def test_consumers_that_a_broker_did_not_report_have_not_left() -> None:
    partial = replace(cluster(group("ab", [T]), routes=[T]), unread=(Unread("members", "g", "timed out", "broker-a"),))
    found = only(compare_snapshots(ABC, partial))
    assert (found.joined, found.left) == ((), ())
    assert found.not_predicted == "broker broker-a did not report its consumers: timed out"
    assert {queue.how for queue in found.queues} == {"unexplained"}


def test_offsets_alone_make_no_group_changed() -> None:
    diff = compare_snapshots(ABC, cluster(group("abc", [T], lag=5), routes=[T]))
    found = only(diff)
    assert (found.change, found.lag_growth, found.produced, found.consumed, found.offsets_back) == (
        "same",
        40,
        0,
        -40,
        8,
    )
    assert (diff.summary.groups_changed, diff.summary.lag_growth) == (0, 40)
    assert codes(diff) == ["offset-rewound"]


def with_offset(its: ConsumerGroup, offset: int | None, *queues: MessageQueue) -> ConsumerGroup:
    states = {queue: replace(its.queues[queue], consumer_offset=offset) for queue in queues}
    return replace(its, queues={**its.queues, **states})


def test_an_offset_that_went_back_is_found_by_the_rule_of_a_diagnosis() -> None:
    first, second, third = list(T.subscribe_queues())[:3]
    # What is known of one snapshot only, or was never stored, is not compared.
    before = with_offset(with_offset(group("abc", [T]), None, second), -1, third)
    now = with_offset(before, 990, first, second, third)
    diff = compare_snapshots(cluster(before, routes=[T]), replace(cluster(now, routes=[T]), taken_at=LATER))
    (finding,) = only(diff).findings
    assert (finding.code, finding.severity, finding.group, finding.queues) == (
        "offset-rewound",
        "warning",
        "g",
        (first,),
    )
    (seen,) = finding.evidence
    assert (seen.fact, seen.value, seen.threshold) == ("messages back in T a:0", 10, 1)
    assert finding.consequence == "10 messages of 1 queue redelivered."
    assert finding.remedy.startswith("If no one has reset the offsets")
    (short,) = diff_findings(diff)
    text = "the offsets of 1 queue of group g went back: messages from there on are redelivered"
    assert (short.code, short.severity, short.message) == ("offset-rewound", "warning", text)


def test_an_offset_that_went_back_while_its_queue_changed_hands_is_information() -> None:
    now = group("abcd", [T])
    moved = next(queue for queue, state in now.queues.items() if state.owners != ABC.groups["g"].queues[queue].owners)
    diff = compare_snapshots(ABC, replace(cluster(with_offset(now, 990, moved), routes=[T]), taken_at=LATER))
    (finding,) = only(diff).findings
    assert (finding.code, finding.severity, finding.queues) == ("offset-rewound", "info", (moved,))
    assert [each.severity for each in diff_findings(diff)] == ["info"]


def test_offsets_that_went_back_for_a_cause_are_still_said_to_have() -> None:
    queue = next(iter(T.subscribe_queues()))
    before = group("abc", [T])
    both = {**before.queues, queue: QueueState(frozenset("ab"), 1000, 990)}
    held = {**before.queues, queue: QueueState(frozenset("ab"), 1000, 1000)}
    first, then = cluster(replace(before, queues=held), routes=[T]), cluster(replace(before, queues=both), routes=[T])
    (finding,) = only(compare_snapshots(first, then)).findings
    assert (finding.code, finding.severity, finding.evidence) == ("offset-rewound", "warning", ())
    assert compare_snapshots(replace(first, taken_at=LATER), then).groups[0].findings == ()  # swapped


def test_queues_that_no_change_explains_are_a_finding_of_their_group() -> None:
    swapped = dict.fromkeys(T.subscribe_queues(), ("c",))
    diff = compare_snapshots(ABC, cluster(group("abc", [T], owners=swapped), routes=[T]))
    (finding,) = only(diff).findings
    odd = [queue for queue, state in ABC.groups["g"].queues.items() if state.owners != {"c"}]
    assert (finding.code, {*finding.queues}, finding.evidence[0].value) == ("unexplained-owners", {*odd}, len(odd))
    assert list(diff_findings(diff)) == [finding.brief]


def test_a_broadcasting_group_moves_no_queue() -> None:
    def broadcasting(ids: str) -> ClusterSnapshot:
        return cluster(replace(group(ids, [T]), message_model="BROADCASTING"), routes=[T])

    found = only(compare_snapshots(broadcasting("abc"), broadcasting("abcd")))
    assert (found.joined, found.queues, found.not_predicted) == (("d",), (), None)


def test_system_groups_and_topics_are_left_out_unless_asked_for() -> None:
    def with_system(ids: str) -> ClusterSnapshot:
        own = route("RMQ_SYS_TRACE_TOPIC", a=1)
        return cluster(group(ids, [own], name="CID_RMQ_SYS_TRACE"), routes=[own] if ids else [])

    assert compare_snapshots(with_system("ab"), with_system("abc")).summary.groups == 0
    assert compare_snapshots(with_system("ab"), with_system("abc"), Everything(system=True)).summary.groups == 1


def test_only_the_named_groups_are_compared() -> None:
    both = cluster(group("abc", [T]), group("abc", [T], name="h"), routes=[T])
    other = cluster(group("abcd", [T]), group("abcd", [T], name="h"), routes=[T])
    assert [each.group for each in compare_snapshots(both, other, Everything(groups=("h*",))).groups] == ["h"]


def test_swapped_snapshots_and_those_of_two_clusters_are_told() -> None:
    earlier = replace(ABC, taken_at=datetime(2026, 11, 20, tzinfo=UTC))
    assert codes(compare_snapshots(ABC, earlier)) == ["snapshots-swapped"]
    other = route("U", a=2)
    assert codes(compare_snapshots(ABC, cluster(group("x", [other], name="h"), routes=[other]))) == [
        "nothing-in-common"
    ]


# -- properties -------------------------------------------------------------------------------------------------------

IDS = st.lists(st.sampled_from([f"10.0.0.{n}@1" for n in range(1, 9)]), min_size=1, max_size=6)
NAMES = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]
ROUTES = st.lists(
    st.builds(
        lambda topic, queues: route(topic, **queues),
        st.sampled_from("TUV"),
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 5), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.topic,
)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSnapshot:
    """A cluster with a group whose queues may have any owners, or none that are reported."""
    routes, ids, strategy = draw(ROUTES), draw(IDS), draw(st.sampled_from(NAMES))
    own = dict(owners_at_rest(routes, Members(tuple(ids), strategy)))
    for queue in draw(st.lists(st.sampled_from(sorted(own)), max_size=4)) if own else ():
        own[queue] = draw(st.sampled_from([(), ("10.0.0.1@1",), ("10.0.0.2@1", "10.0.0.9@1")]))
    found = group(ids, routes, strategy, owners=own, reported=draw(st.booleans()), lag=draw(st.integers(0, 9)))
    return cluster(found, routes=routes)


@given(clusters())
@settings(max_examples=100)
def test_a_snapshot_does_not_differ_from_itself(snapshot: ClusterSnapshot) -> None:
    diff = compare_snapshots(snapshot, snapshot)
    assert (diff.groups, diff.topics, diff.not_compared) == ((), (), ())
    assert list(diff_findings(diff)) == []
    assert diff.summary.groups_changed == diff.summary.moved == diff.summary.unexplained == 0
    assert diff.summary.lag_growth in (0, None)


@given(clusters(), clusters())
@settings(max_examples=200)
def test_each_queue_whose_owners_differ_is_in_exactly_one_explanation(
    before: ClusterSnapshot, after: ClusterSnapshot
) -> None:
    diff = compare_snapshots(before, after)
    for found in diff.groups:
        names = [(queue.topic, queue.broker_name, queue.queue_id) for queue in found.queues]
        assert len(set(names)) == len(names) == sum(each.queues for each in found.explanations)
        first, then = (
            {queue: state.sorted_owners for queue, state in side.groups[found.group].queues.items()}
            for side in (before, after)
        )
        observed = {queue for queue in first.keys() & then.keys() if first[queue] != then[queue]}
        assert {(queue.topic, queue.broker_name, queue.queue_id) for queue in observed} <= set(names)
        assert {
            (queue.topic, queue.broker_name, queue.queue_id)
            for queue in found.queues
            if queue.owners_before != queue.owners_after or queue.predicted_before != queue.predicted_after
        } == set(names)


CHANGES = st.one_of(
    st.builds(lambda n: Changes(add=(n,)), st.integers(1, 3)),
    st.builds(lambda n: Changes(remove=(n,)), st.integers(1, 2)),
    st.builds(lambda name: Changes(to_strategy=name), st.sampled_from(NAMES)),
    st.builds(lambda n: Changes(read_queues=(QueueCount(n),)), st.integers(0, 6)),
    st.just(Changes(add_brokers=(NewBroker("z", 3),))),
    st.builds(lambda n, name: Changes(add=(n,), to_strategy=name), st.integers(1, 2), st.sampled_from(NAMES)),
)


@given(ROUTES, st.lists(st.sampled_from([f"10.0.0.{n}@1" for n in range(1, 9)]), min_size=2, unique=True), CHANGES)
@settings(max_examples=200)
def test_the_change_of_a_plan_is_what_explains_its_moves(
    routes: list[TopicRouteData], ids: list[str], changes: Changes
) -> None:
    after_ids = change_members(ids, changes)
    after_routes = change_routes(routes, changes)
    name = changes.to_strategy or "AVG"
    before, after = (
        Side(Members(tuple(members), strategy), tuple(some))
        for members, strategy, some in ((ids, "AVG", routes), (after_ids, name, after_routes))
    )
    plan = plan_rebalance("g", before, after)
    diff = compare_snapshots(
        cluster(group(ids, routes), routes=routes),
        cluster(group(after_ids, after_routes, name), routes=after_routes),
    )
    queues = [queue for found in diff.groups for queue in found.queues]
    changed = [(topic.topic, move) for topic in plan.topics for move in topic.queues if move.change != "same"]
    assert {(queue.topic, queue.broker_name, queue.queue_id, queue.change) for queue in queues} == {
        (topic, move.broker_name, move.queue_id, move.change) for topic, move in changed
    }
    kinds = {
        *(["consumers"] if changes.add or changes.remove else []),
        *(["strategy"] if changes.to_strategy else []),
        *(["routes"] if changes.touches_route else []),
    }
    assert all(queue.how == "predicted" and set(queue.causes) <= kinds for queue in queues)


@pytest.mark.parametrize("problem", ["no consumers", "own class"])
def test_where_nothing_can_be_predicted_moves_are_unexplained_and_the_reason_is_told(problem: str) -> None:
    moved = dict.fromkeys(T.subscribe_queues(), ("a",))
    after = group("abc", [T], owners=moved)
    if problem == "no consumers":
        after = replace(after, views=None)
    else:
        after = replace(after, reports={"a": MemberReport("a", strategy_class="MyStrategy")})
    diff = compare_snapshots(ABC, cluster(after, routes=[T]))
    found = only(diff)
    assert found.not_predicted is not None
    assert set(explained(found)) == {("unexplained", ())}
    (finding,) = diff_findings(diff)
    assert found.not_predicted in finding.message
