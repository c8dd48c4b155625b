from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.record.follow import look_of
from rmqlb.model.group import ConsumerGroup, MemberReport, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import Look
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues

AVG, HASH = "AllocateMessageQueueAveragely", "AllocateMessageQueueConsistentHash"
RETRY = MessageQueue("%RETRY%g", "broker-a", 0)


def four() -> TopicRouteData:
    return TopicRouteData("T", (QueueData("broker-a", 4, 4, 6),), (BrokerData("c", "broker-a", {0: "x:10911"}),))


def snapshot(seen: ConsumerGroup, *routes: TopicRouteData, unread: tuple[Unread, ...] = ()) -> ClusterSnapshot:
    given = routes or (four(),)
    named = {each.topic: RouteSighting(each, HERE) for each in given}
    return ClusterSnapshot(
        "nameserver", "x", routes=named, groups={"g": replace(seen, topics=("T", "%RETRY%g"))}, unread=unread
    )


def look(seen: ConsumerGroup, *unread: Unread, topics: tuple[str, ...] = (), settings: Settings | None = None) -> Look:
    return look_of(snapshot(seen, unread=unread), "g", 1, 2, topics, settings)


def owned(*owners: str) -> dict[MessageQueue, str]:
    return dict(zip(queues(4), owners, strict=True))


def test_who_answers_owns_what_it_says_but_for_the_retry_topic() -> None:
    seen = group("a b", owners={**owned("a", "a", "b", ""), RETRY: "a"}, reports=dict.fromkeys("ab", AVG))
    found = look(seen)
    some = queues(4)
    assert found.owned == {"a": frozenset(some[:2]), "b": frozenset(some[2:3])}
    assert (found.listed, found.unanswered, found.failed) == (frozenset("ab"), {}, None)
    assert found.routes == {"T": tuple(some)}
    assert (found.asked_at, found.answered_at) == (1, 2)


def test_who_is_listed_and_does_not_answer_is_unknown_with_the_reason() -> None:
    seen = group("a b c", owners=owned("a", "a", "a", "a"), reports={"a": AVG})
    found = look(seen, Unread("member", "g", "timed out", "b"), Unread("member", "other", "late", "c"))
    assert found.unanswered == {"b": "timed out", "c": "it did not say which queues it owns"}
    assert found.owned.keys() == {"a"}


def test_the_list_of_consumers_is_unknown_when_a_broker_did_not_say() -> None:
    seen = group("a", owners=owned("a", "a", "a", "a"), reports={"a": AVG})
    assert look(seen, Unread("members", "g", "timed out", "broker-b")).listed is None
    assert look(seen, Unread("members", "other", "timed out", "broker-b")).listed == frozenset("a")
    assert look(replace(seen, views=None)).listed is None


def test_the_strategy_that_consumers_report_is_predicted() -> None:
    seen = group("a b", owners=owned("a", "a", "a", "a"), reports=dict.fromkeys("ab", AVG))
    found = look(seen)
    assert found.strategy == "AVG"
    assert found.predicted == dict(zip(queues(4), (("a",), ("a",), ("b",), ("b",)), strict=True))


def test_what_only_the_owners_show_is_no_prediction() -> None:
    for reports in ({}, {"a": "MyOwnStrategy"}):
        found = look(group("a b", owners=owned("a", "a", "b", "b"), reports=reports))
        assert (found.strategy, found.predicted) == (None, None)


def test_nothing_is_predicted_without_the_settings_that_a_strategy_needs() -> None:
    seen = group(
        "a b", owners=owned("a", "a", "b", "b"), reports=dict.fromkeys("ab", "AllocateMessageQueueByMachineRoom")
    )
    assert look(seen).predicted is None
    hashed = replace(seen, reports={i: MemberReport(i, strategy_class=HASH) for i in "ab"})
    few, many = (look(hashed, settings=Settings(virtual_nodes=nodes)).predicted for nodes in (1, 500))
    assert few is not None
    assert few != many


def test_only_the_topics_that_are_asked_for() -> None:
    other = MessageQueue("U", "broker-a", 0)
    seen = group("a", owners={**owned("a", "a", "a", "a"), other: "a"}, reports={"a": AVG})
    assert look(seen).owned["a"] == {*queues(4), other}
    assert look(seen, topics=("T",)).owned["a"] == {*queues(4)}
    assert look(seen, topics=("U",)).routes == {}  # its route was not read


def test_a_group_without_a_consumer_owns_nothing() -> None:
    seen = replace(group(), views=(), queues={queue: QueueState() for queue in queues(4)})
    found = look(seen)
    assert (found.owned, found.listed, found.unanswered) == ({}, frozenset(), {})
