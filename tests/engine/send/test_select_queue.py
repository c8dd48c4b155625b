from typing import Any

import pytest

from rmqlb import MessageQueue, select_by_hash
from rmqlb.engine.send.sdk import CLIENTS, sdk
from rmqlb.engine.send.select_queue import key_queues
from rmqlb.errors import DataError
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from tests.support.builders import route

KEYS = tuple(f"order-{number}" for number in range(200))
GRPC = tuple(name for name in CLIENTS if name.endswith("-grpc"))


def places(found: Any, name: str) -> list[tuple[str, int] | None]:
    rows = [row.queues[name] for row in found.keys]
    return [None if queue is None else (queue.broker_name, queue.queue_id) for queue in rows]


def test_behind_a_proxy_in_cluster_mode_every_grpc_sdk_sends_a_key_to_one_queue() -> None:
    found = key_queues(route(a=4, b=4), KEYS, [sdk(name) for name in GRPC], "cluster")
    assert [each.unknown for each in found.sdks] == [None] * len(GRPC)
    assert {pair.differ for pair in found.pairs} == {0}
    queues = route(a=4, b=4).publish_queues()
    stored = [select_by_hash(queues, key, sdk="proxy") for key in KEYS]
    assert places(found, "csharp-grpc") == [(queue.broker_name, queue.queue_id) for queue in stored]


def test_go_sends_keys_to_brokers_that_take_none_in_local_mode() -> None:
    """Its list keeps slaves and brokers that are for reading only."""
    spread = TopicRouteData(
        "T",
        (QueueData("a", 2, 2, 6), QueueData("b", 2, 2, 4)),
        (BrokerData("c", "a", {0: "192.0.2.1:1", 1: "192.0.2.2:1"}), BrokerData("c", "b", {0: "192.0.2.3:1"})),
    )
    found = key_queues(spread, KEYS, [sdk("go-grpc"), sdk("java-grpc")])
    assert {place and place[0] for place in places(found, "go-grpc")} == {"a", None}
    assert {place and place[0] for place in places(found, "java-grpc")} == {"a"}
    # Of its six queues two are those of the master.
    lost = places(found, "go-grpc").count(None)
    assert lost == sum(select_by_hash(_numbered(6), key, sdk="go-grpc").queue_id > 1 for key in KEYS)


def _numbered(count: int) -> list[MessageQueue]:
    return [MessageQueue("T", "x", number) for number in range(count)]


def test_a_change_moves_the_keys_whose_queue_is_another_one_afterwards() -> None:
    sdks = [sdk(name) for name in ("java", "proxy")]
    found = key_queues(route(a=8), KEYS, sdks, after=route(a=16), changes=("16 write queues on every broker",))
    java, proxy = found.sdks
    codes = [select_by_hash(_numbered(16), key).queue_id for key in KEYS]
    assert java.moved == sum(code != code % 8 for code in codes)
    assert (java.moved_share, found.keys[0].queues_after is not None) == (java.moved / len(KEYS), True)
    # A Proxy's hash moves a key to a new queue or not at all.
    after = [row.queues_after for row in found.keys]
    stays = [each["proxy"] == row.queues["proxy"] for each, row in zip(after, found.keys, strict=True) if each]
    goes = [
        each["proxy"].queue_id for each, stay in zip(after, stays, strict=True) if each and each["proxy"] and not stay
    ]
    assert proxy.moved == len(goes)
    assert min(goes) >= 8


def test_pairs_count_the_keys_that_two_sdks_send_to_different_queues() -> None:
    found = key_queues(route(a=8), KEYS, [sdk("java"), sdk("go"), sdk("cpp")])
    assert [(pair.sdk, pair.other_sdk) for pair in found.pairs] == [("java", "go"), ("java", "cpp"), ("go", "cpp")]
    for pair in found.pairs:
        both = zip(places(found, pair.sdk), places(found, pair.other_sdk), strict=True)
        assert pair.differ == sum(one != other for one, other in both)
        assert pair.differ_share == pair.differ / len(KEYS)


def test_a_topic_without_writable_queues_is_told() -> None:
    with pytest.raises(DataError, match="topic T has no queue that producers can write"):
        key_queues(TopicRouteData("T", (QueueData("a", 2, 2, 4),), ()), ("a",), [sdk("java")])
