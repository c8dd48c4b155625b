import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.machines import host, room
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.redact import DROPPED, KEYS, NAMED, NOTE, TEXTS, Renaming, redact
from rmqlb.errors import AllocationError
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_key
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread, Wanted, unread_link
from rmqlb.sources.formats.snapshot_file import to_document
from tests.hardening.hostile import SNAPSHOTS, as_text, snapshot
from tests.support.mismatches import assert_recorded, every_case

HERE = Seen("/home/me/cluster.json")
PART = st.text(st.sampled_from("ab0A.-~é\uffee\U0001f600"), min_size=1, max_size=3)
CLIENT_IDS = st.lists(
    st.builds("{}@{}".format, PART, PART | st.just("1@2@zz")) | PART.map("x{}".format), min_size=1, max_size=6
)
ROOM = PART | st.just("r")
NAMES_OF_BROKERS = (
    PART | st.builds("{}@{}".format, ROOM, PART) | st.builds("{}@{}@{}".format, ROOM, PART, PART | st.just(""))
)
"""A name with two `@` is in no room, wherever it sorts between those that are."""
BROKERS = st.lists(NAMES_OF_BROKERS, min_size=1, max_size=5, unique=True)
STRATEGIES = (
    *("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "PIN"),
    "PIN_OVER_ALL",
)


def seen(route: TopicRouteData, client_ids: list[str], **more: object) -> ClusterSnapshot:
    view = MemberView(tuple(Connection(client_id) for client_id in client_ids), HERE)
    group = ConsumerGroup("g", HERE, views=(view,), topics=(route.topic, "%RETRY%g"))
    return ClusterSnapshot("dump", HERE.where, None, {route.topic: RouteSighting(route, HERE)}, {"g": group}, **more)  # type: ignore[arg-type]


def route_of(brokers: list[str], queues: int = 2) -> TopicRouteData:
    return TopicRouteData(
        "T",
        tuple(QueueData(name, queues, queues, 6) for name in brokers),
        tuple(BrokerData("c", name, {0: f"{name}:1"}) for name in brokers),
    )


def places(strategy: str, queues: list[MessageQueue], ids: list[str], settings: Settings) -> list[list[int]] | str:
    """The places of the queues that each consumer gets, or the first word of the error."""
    try:
        return [[queues.index(q) for q in prepare(strategy, queues, ids, settings).share(i)] for i in ids]
    except AllocationError as error:
        return error.message.partition(" ")[0]


def settings(ids: list[str], queues: list[MessageQueue], names: Renaming | None) -> Settings:
    first_room = next((found for queue in queues if (found := room(queue.broker_name)) is not None), "none")
    zones = {host(old): f"zone{place}" for place, old in enumerate(sorted(ids, key=sort_key)[::2])}
    broker_names = [queue.broker_name for queue in queues]
    machine = ids[0].partition("@")[0]
    return Settings(
        consumer_idcs=frozenset({names.rooms.get(first_room, "none") if names else first_room}),
        client_zones={names.client_ids[old] if names else old: zones.get(host(old), "zone0") for old in ids},
        broker_zones={names.broker_names[old] if names else old: f"zone{len(old) % 3}" for old in broker_names},
        hosts=frozenset({names.hosts[machine] if names else host(ids[0])}),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(brokers=BROKERS, client_ids=CLIENT_IDS, queues=st.integers(0, 4))
def test_every_queue_keeps_its_consumer(strategy: str, brokers: list[str], client_ids: list[str], queues: int) -> None:
    before = seen(route_of(brokers, queues), client_ids)
    after, names = redact(before)
    old, new = before.route("T").subscribe_queues(), after.route(names.topics["T"]).subscribe_queues()
    assert [names.broker_names[queue.broker_name] for queue in old] == [queue.broker_name for queue in new]
    old_ids, new_ids = (list(found.client_ids or ()) for found in (before.groups["g"], after.groups["group-1"]))
    assert [names.client_ids[client_id] for client_id in old_ids] == new_ids
    was = places(strategy, old, old_ids, settings(old_ids, old, None))
    assert places(strategy, new, new_ids, settings(old_ids, old, names)) == was
    assert after.notes == (NOTE,), "CONSISTENT_HASH gives other owners"


@given(BROKERS, CLIENT_IDS)
def test_what_strategies_read_out_of_names_stays_readable(brokers: list[str], client_ids: list[str]) -> None:
    _, names = redact(seen(route_of(brokers), client_ids))
    assert sorted(names.client_ids.values(), key=sort_key) == list(names.client_ids.values())
    assert sorted(names.broker_names.values(), key=sort_key) == list(names.broker_names.values())
    for kind in (names.client_ids, names.broker_names):
        assert len(set(kind.values())) == len(kind)
    for old, new in names.broker_names.items():
        its = room(old)
        assert room(new) == (None if its is None else names.rooms[its])
    for old, new in names.client_ids.items():
        assert is_grpc(new) == is_grpc(old)
        assert ("@" in new) == ("@" in old)
        same = {other for other in names.client_ids if "@" in other and "@" in old and host(other) == host(old)}
        assert {host(names.client_ids[other]) for other in same} <= {host(new)}


@every_case("scopes", [["__global__"], ["__global__", "a", "z"], ["q", "b"], ["__global__", "secret"]])
def test_static_topics_keep_the_order_of_their_logical_brokers(scopes: list[str]) -> None:
    mapping = {f"b{n}": TopicQueueMappingInfo("T", scope, n + 1, f"b{n}", 1, {0: 0}) for n, scope in enumerate(scopes)}
    old = replace(route_of(["b0"]), topic_queue_mapping_by_broker=mapping)
    after, names = redact(seen(old, ["x@1"]))
    new = after.routes[names.topics["T"]].route
    assert [queue.queue_id for queue in new.subscribe_queues()] == [queue.queue_id for queue in old.subscribe_queues()]
    assert "secret" not in json.dumps(to_document(after))


@every_case("kind", SNAPSHOTS)
def test_no_text_of_a_snapshot_is_left(kind: str) -> None:
    from rmqlb.sources.dump import read_document

    made = as_text(snapshot(SNAPSHOTS[kind], order="Zecret:1"))
    canary = as_text(json.loads(made.replace("lost ", "zecret ")))
    before = read_document(canary.encode(), "/home/zecret", Wanted(evidence=True)).snapshot
    before = replace(before, unread=(Unread("other", "zecret", "zecret"),), notes=("zecret",))
    written = json.dumps(to_document(redact(before)[0]))
    assert "zecret" not in written.lower()
    names = SNAPSHOTS[kind]
    for text in {names.text, *names.topics, *names.brokers, *names.client_ids}:
        assert json.dumps(text) not in written


def test_of_every_text_in_the_model_it_is_said_what_it_is() -> None:
    kinds = (
        *(RouteSighting, TopicRouteData, QueueData, BrokerData, TopicQueueMappingInfo, MessageQueue, ConsumerGroup),
        *(MemberView, Connection, MemberReport, QueueState, Seen, ConsumerEvidence, ProcessQueue, ConsumeStatus),
    )
    for kind in kinds:
        texts = {name for name, hint in get_type_hints(kind).items() if "str" in str(hint).replace("Struct", "")}
        assert texts <= {*NAMED, *KEYS, *TEXTS, *DROPPED}, kind


def named_redactions() -> Iterator[tuple[str, Iterable[str]]]:
    for conf in ("b:2;a:1", "c:4;a:1", "a:secret;b:1", "secret", "a:1:2;;", "", None):
        new = redact(seen(replace(route_of(["a", "b"]), order_topic_conf=conf), ["x@1"]))[0].routes["topic-2"].route
        yield f"order configuration {conf}", [str(new.order_topic_conf)]
    topics = ("T", "%RETRY%g", "%DLQ%other", "east_REPLY_TOPIC", "TBW102", "rmq_sys_REVIVE_LOG_east")
    routes = {topic: RouteSighting(replace(route_of(["a"]), topic=topic), HERE) for topic in topics}
    names = redact(replace(seen(route_of(["a"]), ["x@1"]), routes=routes))[1]
    yield "RocketMQ's own names", (f"{old}: {new}" for old, new in names.topics.items())
    # Figures stay, names and stack traces do not.
    queue = ProcessQueue(MessageQueue("T", "a", 3), cached=7, last_consume=1795226486133)
    found = ConsumerEvidence(
        1795226746000, (queue,), {"T": ConsumeStatus(consume_ms=1.5)}, PullLimits(1000, 100, 2000), orderly=True,
        filters={"T": "zecret || red", "%RETRY%g": "*"}, stacks=("ConsumeMessageThread_g_1 RUNNABLE\ncom.zecret.Handler.run",),
    )  # fmt: skip
    before = seen(route_of(["a"]), ["x@1"])
    classes = {"x@1": "OurSecretStrategy", "y@1": "AllocateMessageQueueAveragely"}
    reports = {i: MemberReport(i, strategy_class=name, evidence=found) for i, name in classes.items()}
    after = redact(replace(before, groups={"g": replace(before.groups["g"], reports=reports)}))[0]
    yield "evidence", map(str, after.groups["group-1"].reports.values())
    # Which consumer or broker did not report stays known; whether a group is online depends on Proxies.
    parts = (
        Unread("member", "g", "zecret:1 timed out", "x@1", no_answer=True), Unread("members", "g", "zecret refused", "a"),
        Unread("offsets", "g", "zecret:1 timed out", "zecret:1", no_answer=True), Unread("member", "g", "zecret", None),
        Unread("proxy", "p.zecret:8080", "zecret refuses"), unread_link("g", "zecret", "x@1", "zecret:1"),
    )  # fmt: skip
    yield "unread parts", map(str, redact(seen(route_of(["a"]), ["x@1"], unread=parts))[0].unread)


def test_named_redactions_are_as_recorded(request: pytest.FixtureRequest) -> None:
    assert_recorded(Path(__file__).with_name("redactions.txt"), dict(named_redactions()), request)
