import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import DataError, MessageQueue, TopicRouteData, parse_route
from rmqlb.model.message_queue import queue_order, sort_key, sort_queues, split
from rmqlb.model.route import TopicQueueMappingInfo
from tests.support.builders import route, short
from tests.support.mismatches import vectors

VECTORS = list(vectors("publish"))


def plain(queues: list[MessageQueue]) -> list[list[object]]:
    return [[queue.topic, queue.broker_name, queue.queue_id] for queue in queues]


def test_all_400_routes_give_javas_queue_lists_and_permission_bits_decide() -> None:
    assert len(VECTORS) == 400
    for vector in VECTORS:
        data = parse_route(vector["routeText"], vector["topic"])
        assert plain(data.publish_queues()) == vector["expected"], vector["id"]
        assert plain(data.subscribe_queues()) == vector["expectedSubscribe"], vector["id"]
        assert data.is_order_topic == vector["orderTopic"], vector["id"]
    for perm, publish, subscribe in ((6, 1, 1), (4, 0, 1), (2, 1, 0), (0, 0, 0), (7, 1, 1)):
        data = route(perm=perm, a=1)
        assert (len(data.publish_queues()), len(data.subscribe_queues())) == (publish, subscribe)
        slaves = route(perm=perm, masters=False, a=1)  # producers need a master
        assert (len(slaves.publish_queues()), len(slaves.subscribe_queues())) == (0, subscribe)


def test_an_order_config_is_split_as_java_splits_and_a_malformed_one_is_an_error() -> None:
    for conf in ("a", "a:", "a:x", "a:1;;b:1", "a: 1", "a:99999999999", "a:1_0", "a:\U0001d7ce"):
        with pytest.raises(DataError, match="order config of topic T is malformed"):
            TopicRouteData("T", (), (), conf).publish_queues()
    listed = TopicRouteData("T", (), (), "b:+1;a:２:x;c:-1;;").publish_queues()
    assert short(listed) == ["b0", "a0", "a1"]
    assert TopicRouteData("T", (), (), ";").publish_queues() == []


def mapping(bname: str, total: int, scope: str | None = "__global__") -> TopicQueueMappingInfo:
    return TopicQueueMappingInfo("T", scope, total, bname, 1, {0: 0})


def test_a_static_topic_has_logical_queues() -> None:
    data = TopicRouteData("T", (), (), None, {"a": mapping("a", 3), "b": mapping("b", 3), "c": mapping("c", 9, None)})
    expected = [MessageQueue("T", "__syslo__global__", i) for i in range(3)]
    assert data.publish_queues() == data.subscribe_queues() == expected
    assert data.is_static
    # An empty order config turns the static branch off for producers only.
    data = TopicRouteData("T", (), (), "", {"a": mapping("a", 2, "zone")})
    assert data.publish_queues() == []
    assert short(data.subscribe_queues()) == ["__syslo__zone0", "__syslo__zone1"]


def test_the_broker_of_a_logical_queue_is_the_one_with_the_newest_epoch_that_names_it() -> None:
    """As `ClientMetadata.topicRouteData2EndpointsForStaticTopic` of 5.5.0 answered; it calls nobody `__syslo__none__`."""
    infos = {
        "a": TopicQueueMappingInfo("T", "__global__", 4, "a", 7, {0: 0, 1: 1, 2: 2}),
        "b": TopicQueueMappingInfo("T", "__global__", 5, "b", 9, {1: 0, 3: 1}),
        "c": TopicQueueMappingInfo("T", "zone", 2, "c", 1, {0: 0}),
    }
    for order in ("abc", "bac"):
        data = TopicRouteData("T", (), (), None, {name: infos[name] for name in order})
        serving = {f"{queue.broker_name}{queue.queue_id}": name for queue, name in data.serving_brokers().items()}
        assert serving == {
            "__syslo__global__0": "a", "__syslo__global__1": "b", "__syslo__global__2": "a",
            "__syslo__global__3": "b", "__syslo__zone0": "c",
        }  # fmt: skip
    assert route(a=1).serving_brokers() == {}


def test_queues_sort_by_topic_then_broker_then_number_and_have_javas_text() -> None:
    named = (("S", "z", 0), ("T", "b-10", 0), ("T", "b-9", 2), ("T", "b-9", 10))
    queues = [MessageQueue(*each) for each in named]
    backwards = queues[::-1]
    assert sort_queues(backwards) == sorted(backwards) == queues
    assert str(queues[3]) == "MessageQueue [topic=T, brokerName=b-9, queueId=10]"


@given(st.text(), st.text())
def test_text_compares_by_utf16_unit_then_length(one: str, other: str) -> None:
    def units(text: str) -> list[int]:
        raw = text.encode("utf-16-be", "surrogatepass")
        return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]

    assert (sort_key(one) < sort_key(other)) == (units(one) < units(other))


@given(st.lists(st.builds(MessageQueue, st.text(max_size=3), st.text(max_size=3), st.integers(0, 9))))
def test_sorting_is_by_the_one_order(queues: list[MessageQueue]) -> None:
    assert sort_queues(queues) == sorted(queues, key=queue_order)


@given(st.text("a;:", max_size=8))
def test_split_gives_back_the_text_but_for_trailing_separators(text: str) -> None:
    assert ";".join(split(text, ";")) == text.rstrip(";")
