import json
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate import prepare
from rmqlb.engine.allocate.machine_room import room
from rmqlb.engine.allocate.pin import host
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.redact import DROPPED, KEYS, NAMED, NOTE, TEXTS, Renaming, redact
from rmqlb.errors import AllocationError, DataError
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, MemberView, QueueState, Seen, is_grpc
from rmqlb.model.message_queue import MessageQueue, sort_key
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue, PullLimits
from rmqlb.model.route import BrokerData, QueueData, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread, Wanted
from rmqlb.sources.formats.snapshot_file import to_document
from tests.hardening.hostile import SNAPSHOTS, as_text, snapshot
from tests.support.mismatches import every_case

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


def owners(
    strategy: str, queues: list[MessageQueue], ids: list[str], settings: Settings
) -> dict[MessageQueue, set[str]] | str:
    try:
        shares = {client_id: prepare(strategy, queues, ids, settings).share(client_id) for client_id in ids}
    except AllocationError as error:
        return error.message.partition(" ")[0]
    held: dict[MessageQueue, set[str]] = {queue: set() for queue in queues}
    for client_id, share in shares.items():
        for queue in share:
            held[queue].add(client_id)
    return held


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
    was = owners(strategy, old, old_ids, settings(old_ids, old, None))
    now = owners(strategy, new, new_ids, settings(old_ids, old, names))
    if isinstance(was, str) or isinstance(now, str):
        assert was == now
        return
    assert [{names.client_ids[owner] for owner in held} for held in was.values()] == list(now.values())


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


def test_consistent_hash_gives_other_owners_and_the_snapshot_says_so() -> None:
    ids = [f"10.0.0.{i}@{i}" for i in range(4)]
    before = seen(route_of(["broker-a", "broker-b"], 8), ids)
    after, names = redact(before)
    was = owners("CONSISTENT_HASH", before.route("T").subscribe_queues(), ids, Settings())
    now = owners("CONSISTENT_HASH", after.route(names.topics["T"]).subscribe_queues(), list(names.client_ids.values()), Settings())  # fmt: skip
    assert isinstance(was, dict)
    assert isinstance(now, dict)
    assert [{names.client_ids[owner] for owner in held} for held in was.values()] != list(now.values())
    assert after.notes == (NOTE,)
    assert "CONSISTENT_HASH hashes names and does not" in NOTE


@every_case(("conf", "expected"), [
    ("b:2;a:1", "broker-2:2;broker-1:1"),
    ("c:4;a:1", "broker-3:4;broker-1:1"),
    ("a:secret;b:1", "broker-1:?;broker-2:1"),
    ("secret", "broker-3"),
    ("a:1:2;;", "broker-1:1:2;;"),
    ("", ""),
    (None, None),
])  # fmt: skip
def test_an_order_configuration_counts_on_and_is_as_malformed_as_before(conf: str | None, expected: str | None) -> None:
    old = replace(route_of(["a", "b"]), order_topic_conf=conf)
    new = redact(seen(old, ["x@1"]))[0].routes["topic-2"].route
    assert new.order_topic_conf == expected
    try:
        queues = [queue.queue_id for queue in old.publish_queues()]
    except DataError:
        with pytest.raises(DataError):
            new.publish_queues()
    else:
        assert [queue.queue_id for queue in new.publish_queues()] == queues


@every_case("scopes", [["__global__"], ["__global__", "a", "z"], ["q", "b"], ["__global__", "secret"]])
def test_static_topics_keep_the_order_of_their_logical_brokers(scopes: list[str]) -> None:
    mapping = {f"b{n}": TopicQueueMappingInfo("T", scope, n + 1, f"b{n}", 1, {0: 0}) for n, scope in enumerate(scopes)}
    old = replace(route_of(["b0"]), topic_queue_mapping_by_broker=mapping)
    after, names = redact(seen(old, ["x@1"]))
    new = after.routes[names.topics["T"]].route
    assert [queue.queue_id for queue in new.subscribe_queues()] == [queue.queue_id for queue in old.subscribe_queues()]
    assert "secret" not in json.dumps(to_document(after))


def test_rocketmqs_own_names_stay_with_the_names_in_them_renamed() -> None:
    topics = ("T", "%RETRY%g", "%DLQ%other", "east_REPLY_TOPIC", "TBW102", "rmq_sys_REVIVE_LOG_east")
    routes = {topic: RouteSighting(replace(route_of(["a"]), topic=topic), HERE) for topic in topics}
    before = replace(seen(route_of(["a"]), ["x@1"]), routes=routes)
    names = redact(before)[1]
    assert names.topics["%RETRY%g"] == "%RETRY%" + names.groups["g"]
    assert names.topics["%DLQ%other"] == "%DLQ%" + names.groups["other"]
    assert names.topics["east_REPLY_TOPIC"] == names.clusters["east"] + "_REPLY_TOPIC"
    assert names.topics["TBW102"] == "TBW102"
    assert names.topics["rmq_sys_REVIVE_LOG_east"].startswith("rmq_sys_topic-")


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


def test_evidence_keeps_its_figures_and_loses_its_names_and_stack_traces() -> None:
    queue = ProcessQueue(MessageQueue("T", "a", 3), cached=7, last_consume=1795226486133)
    found = ConsumerEvidence(
        read_at=1795226746000,
        queues=(queue,),
        statuses={"T": ConsumeStatus(consume_ms=1.5)},
        limits=PullLimits(1000, 100, 2000),
        orderly=True,
        filters={"T": "zecret || red", "%RETRY%g": "*"},
        stacks=("ConsumeMessageThread_g_1 RUNNABLE\ncom.zecret.Handler.run(Handler.java:1)",),
    )
    before = seen(route_of(["a"]), ["x@1"])
    reports = {
        "x@1": MemberReport("x@1", strategy_class="OurSecretStrategy", evidence=found),
        "y@1": MemberReport("y@1", strategy_class="AllocateMessageQueueAveragely"),
    }
    group = replace(before.groups["g"], reports=reports)
    after, names = redact(replace(before, groups={"g": group}))
    report, other = after.groups["group-1"].reports.values()
    assert (report.strategy_class, other.strategy_class) == ("Strategy-1", "AllocateMessageQueueAveragely")
    renamed = MessageQueue(names.topics["T"], names.broker_names["a"], 3)
    assert report.evidence == replace(
        found,
        queues=(replace(queue, queue=renamed),),
        statuses={names.topics["T"]: ConsumeStatus(consume_ms=1.5)},
        filters={names.topics["T"]: "filter-1", "%RETRY%group-1": "*"},
        stacks=None,
    )


def test_which_consumer_or_broker_did_not_tell_stays_known_under_its_new_name() -> None:
    parts = (
        Unread("member", "g", "zecret:1 timed out", "x@1", no_answer=True),
        Unread("members", "g", "zecret refused", "a"),
        Unread("offsets", "g", "zecret:1 timed out", "zecret:1", no_answer=True),
        Unread("member", "g", "zecret", None),
        Unread("proxy", "p.zecret:8080", "zecret refuses"),  # whether a group is online depends on it
    )
    after, names = redact(seen(route_of(["a"]), ["x@1"], unread=parts))
    assert after.unread == (
        Unread("member", "group-1", "redacted", names.client_ids["x@1"], no_answer=True),
        Unread("members", "group-1", "redacted", names.broker_names["a"]),
        Unread("part", "3", "redacted", no_answer=True),
        Unread("part", "4", "redacted"),
        Unread("proxy", names.addresses["p.zecret:8080"], "redacted"),
    )
