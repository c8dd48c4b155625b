"""Who may read what of topics that are consumed by POP."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb import TopicRouteData
from rmqlb.engine.assignment.brokers import pop_findings, pop_topics, proxy_topics
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, ProxyView, Seen
from rmqlb.model.owners import PopTopic
from tests.support.builders import group, route

IDS = ("a", "b", "c")


def shown(topic: PopTopic) -> dict[str, str]:
    return {f"{queue.broker_name}{queue.queue_id}": " ".join(queue.consumers or ("?",)) for queue in topic.queues or ()}


def one(
    seen: ConsumerGroup | None,
    ids: tuple[str, ...] = IDS,
    share: int | None = None,
    *,
    on: TopicRouteData | None = None,
) -> PopTopic:
    (topic,) = pop_topics(seen, [on or route(x=3)], ids, share=share)
    return topic


def test_with_a_share_a_consumer_reads_its_own_queues_and_those_of_the_next() -> None:
    seen = replace(group("a b c"), pop_share_queue_nums={"T": (1,)})
    assert shown(one(seen)) == {"x0": "a c", "x1": "a b", "x2": "b c"}
    assert (one(seen).assumed, one(seen).pop_share_queue_nums) == (False, (1,))


def test_a_consumer_more_changes_nothing_for_the_others_where_all_read_all() -> None:
    assert shown(one(None, IDS, 0)) == {"x-1": "a b c"}
    assert shown(one(None, (*IDS, "d"), 0)) == {"x-1": "a b c d"}


def test_the_share_that_is_given_goes_before_that_of_brokers_and_without_either_theirs_is_assumed() -> None:
    seen = replace(group("a b c"), pop_share_queue_nums={"T": (1,)})
    assert shown(one(seen, share=2)) == {"x-1": "a b c"}
    unknown = one(group("a b c"))
    assert (shown(unknown), unknown.assumed, unknown.pop_share_queue_nums) == ({"x-1": "a b c"}, True, (-1,))
    (finding,) = pop_findings([unknown], "g")
    assert (finding.code, finding.message) == (
        "assumed-pop-share",
        "popShareQueueNum of T is not known; the default -1 is assumed",
    )
    assert list(pop_findings([one(seen)], "g")) == []


def test_brokers_that_differ_each_answer_some_of_the_time() -> None:
    views = [group(ids).views or () for ids in ("a b c", "a b")]
    seen = replace(group("a b c"), views=tuple(view for its in views for view in its))
    # with a and b alone all read all: their number less one is the share
    assert shown(one(replace(seen, pop_share_queue_nums={"T": (1,)}))) == {
        "x-1": "a b",
        "x0": "a c",
        "x1": "a b",
        "x2": "b c",
    }
    both = replace(group("a b c"), pop_share_queue_nums={"T": (0, 1)})
    assert shown(one(both)) == {"x-1": "a b c", "x0": "a c", "x1": "a b", "x2": "b c"}
    assert one(both).pop_share_queue_nums == (0, 1)


def test_a_grpc_consumer_reads_every_broker_with_a_master_and_others_keep_what_they_have() -> None:
    grpc = "host@7@1@abc"
    on = route(x=3, y=1)
    assert shown(one(None, IDS, 1, on=on)) == {"x0": "a c", "x1": "a c", "x2": "a b", "y0": "b c"}
    with_grpc = shown(one(None, (*IDS, grpc), 1, on=on))
    assert (with_grpc["x-1"], with_grpc["y-1"]) == (grpc, grpc)
    lost = shown(one(None, (*IDS, grpc), 1, on=route(masters=False, x=3)))
    assert "x-1" not in lost


def test_brokers_answer_nothing_to_a_strategy_that_they_do_not_have() -> None:
    report = MemberReport("a", strategy_class="AllocateMessageQueueConsistentHash", client_rebalance=False)
    seen = replace(group("a b c"), reports={"a": report})
    silent = one(seen)
    assert (silent.strategy, silent.queues) == ("CONSISTENT_HASH", None)
    codes = [finding.code for finding in pop_findings([silent], "g")]
    assert codes == ["assumed-pop-share", "broker-strategy"]
    circle = replace(report, strategy_class="AllocateMessageQueueAveragelyByCircle")
    assert one(replace(seen, reports={"a": circle})).strategy == "AVG_BY_CIRCLE"
    (named,) = pop_topics(seen, [route(x=1)], IDS, strategy="AVG")
    assert named.strategy == "AVG"


def test_more_consumers_than_queues_read_one_queue_each() -> None:
    assert shown(one(None, ("a", "b", "c", "d", "e"), 1)) == {"x0": "a d", "x1": "b e", "x2": "c"}


def test_a_topic_without_readable_queues_has_no_line() -> None:
    assert one(None, IDS, 1, on=route(perm=2, x=3)).queues == ()


def test_behind_a_proxy_every_consumer_may_read_every_master() -> None:
    ids = ("h@2@0@zz", "h@1@0@zz")
    (topic,) = proxy_topics([route(x=3, y=2)], ids)
    assert (topic.by_proxy, topic.strategy, topic.pop_share_queue_nums, topic.assumed) == (True, None, (), False)
    assert [(queue.broker_name, queue.queue_id, queue.consumers) for queue in topic.queues or ()] == [
        ("x", -1, ("h@1@0@zz", "h@2@0@zz")),
        ("y", -1, ("h@1@0@zz", "h@2@0@zz")),
    ]
    slaves = route(x=3, y=2)
    slaves = replace(
        slaves,
        broker_datas=tuple(
            replace(b, broker_addrs={1: "s:1"}) if b.broker_name == "y" else b for b in slaves.broker_datas
        ),
    )
    (topic,) = proxy_topics([slaves], ids)
    assert [queue.broker_name for queue in topic.queues or ()] == ["x"]
    (hidden,) = proxy_topics([route(x=3)], None)
    assert [queue.consumers for queue in hidden.queues or ()] == [None]


def test_a_grpc_client_that_a_proxy_lists_reads_what_others_read_by_pop() -> None:
    view = ProxyView((Connection("h@1@0@zz"),), Seen("Proxy p:8080"), "p:8080")
    assert shown(one(replace(group("a b c"), proxies=(view,)), share=1)) == {
        "x-1": "h@1@0@zz",
        "x0": "a c",
        "x1": "a b",
        "x2": "b c",
    }
