import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace as changed
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from rmqlb import DataError, EndpointError, MessageQueue, UsageError
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.sources.live import AT_ONCE, LiveSource
from rmqlb.sources.native.source import NameServerReads, Proxies, proxy_address
from rmqlb.sources.opening import open_source
from rmqlb.sources.pace import Pace
from rmqlb.sources.source import Access, Refused
from tests.support import replay_remoting as server
from tests.support.mismatches import every_case, refusal
from tests.support.replay_dashboard import Replay as Dashboard
from tests.support.replay_dashboard import dashboard, failure
from tests.support.replay_remoting import (
    Answer,
    Fault,
    Replay,
    Turn,
    captured,
    cluster,
    grpc_port,
    proxy_replay,
    remoting,
)

NOW = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
ORDER_SVC = Wanted(group="order-svc")
ROUTE, MEMBERS = RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_CONSUMER_CONNECTION_LIST
RUNNING = RequestCode.GET_CONSUMER_RUNNING_INFO
IDS = tuple(f"192.0.2.2@inst{i}" for i in range(3))


def reads(servers: list[str], brokers: tuple[Replay, ...] = (), **access: Any) -> NameServerReads:
    usual = {"pace": Pace(sleep=lambda _: None, jitter=lambda: 0.0), "clock": lambda: NOW}
    mapped = tuple(broker.mapped for broker in brokers)
    return NameServerReads(servers, Access(map_address=mapped, **{**usual, **access}))


def fetch(wanted: Wanted, a: Replay, b: Replay, **access: Any) -> ClusterSnapshot:
    return LiveSource(reads([a.address], (a, b), **access)).fetch(wanted)


@pytest.fixture
def brokers() -> Iterator[tuple[Replay, ...]]:
    with cluster(Replay(broker="b0"), Replay(broker="b1")) as running:
        yield running
        assert [replay.forbidden for replay in running] == [[], []]


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def a_route(**brokers: int) -> bytes:
    queues = [{"brokerName": n, "readQueueNums": c, "writeQueueNums": c, "perm": 6} for n, c in brokers.items()]
    addresses = [{"brokerName": n, "cluster": "c", "brokerAddrs": {"0": f"{n}:1"}} for n in brokers]
    return body({"queueDatas": queues, "brokerDatas": addresses})


def reporting(brokers: tuple[Replay, ...], fault: Fault) -> None:
    for broker in brokers:
        broker.faults[RUNNING] = fault


def saying(report: object) -> Fault:
    return lambda turn: turn.write(turn.framed(server.success(body(report))))


def test_a_whole_group_is_read_from_the_brokers_and_its_members(brokers: tuple[Replay, ...]) -> None:
    snapshot = fetch(ORDER_SVC, *brokers)
    group = snapshot.group("order-svc")
    assert (snapshot.kind, snapshot.endpoint) == ("nameserver", f"rocketmq://{brokers[0].address}")
    assert [view.broker_addr for view in group.views or ()] == ["127.0.0.1:10911", "127.0.0.1:20911"]
    assert (group.client_ids, group.topics) == (IDS, ("%RETRY%order-svc", "OrderEvents", "Skewed"))
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert group.reports[IDS[0]].strategy_class == "AllocateMessageQueueAveragely"
    held = group.queues[MessageQueue("OrderEvents", "broker-a", 3)]
    assert (held.owners, held.broker_offset, held.lag) == (frozenset(IDS[:1]), 31, 0)
    assert group.queues[MessageQueue("OrderEvents", "broker-b", 7)].owners is None
    assert {part.what for part in snapshot.unread} == {f"consumer {i} of group order-svc" for i in IDS[1:]}
    running = [r for replay in brokers for r in replay.requests if r.code == RUNNING]
    assert {request.ext_fields["jstackEnable"] for request in running} == {"false"}


@every_case(("fault", "is_silence"), [
    (server.refusing(ResponseCode.CONSUME_MSG_TIMEOUT), True),
    (server.refusing(ResponseCode.SYSTEM_ERROR, "invoke consumer <g> <x> Exception: Timeout, code 207"), False),
    (server.refusing(ResponseCode.SYSTEM_ERROR, "The Consumer <g> <x> not online"), False),
    (server.silent, True),
    (server.closed, False),
])  # fmt: skip
def test_silence_is_told_from_a_refusal(brokers: tuple[Replay, ...], fault: Fault, is_silence: bool) -> None:
    """The broker waits 10 s for the client (`Broker2Client.callClient`); we may be the first to give up."""
    reporting(brokers, fault)
    unread = fetch(ORDER_SVC, *brokers, timeout=0.3 if fault is server.silent else 5.0).unread
    assert [part.no_answer for part in unread if part.kind == "member"] == [is_silence] * 3
    assert not any(part.no_answer for part in unread if part.kind != "member")


def test_only_consumers_that_are_named_and_listed_are_asked_for_stack_traces(brokers: tuple[Replay, ...]) -> None:
    thread = "ConsumeMessageThread_1                  "
    stack = f"{thread}TID: 42 STATE: TIMED_WAITING\n{thread}a.B.c(B.java:1)\n\n"
    reporting(brokers, saying({"properties": {}, "mqTable": {}, "jstack": stack}))
    source = LiveSource(reads([brokers[0].address], brokers))
    found = source.ask_stacks("order-svc", [IDS[1], "stranger", IDS[1]])
    assert found == {IDS[1]: ("ConsumeMessageThread_1 TIMED_WAITING\na.B.c(B.java:1)",)}
    asked = [r.ext_fields for replay in brokers for r in replay.requests if r.code == RUNNING]
    assert asked == [{"consumerGroup": "order-svc", "clientId": IDS[1], "jstackEnable": "true"}]
    for fault in (server.refusing(1, "no"), server.closed, saying([])):
        reporting(brokers, fault)
        source = LiveSource(reads([brokers[0].address], brokers, retries=0))
        assert source.ask_stacks("order-svc", [IDS[1]]) == {}


def test_evidence_is_of_all_topics_that_consumers_report(brokers: tuple[Replay, ...]) -> None:
    """A broker has the topics of the last heartbeat only: that of a consumer that does not read Orders."""
    subscription = [{"topic": "Orders", "subString": "red"}]
    reporting(brokers, saying({"properties": {}, "mqTable": {}, "subscriptionSet": subscription}))
    for broker in brokers:
        broker.answers[ROUTE, "topic=Orders"] = server.success(a_route(**{"broker-a": 2}))
    snapshot = fetch(replace(ORDER_SVC, evidence=True), *brokers)
    group = snapshot.group("order-svc")
    assert "Orders" not in (group.topics or ())
    assert [q.queue_id for q in snapshot.route("Orders").subscribe_queues()] == [0, 1]
    owners = {queue: state.owners for queue, state in group.queues.items() if queue.topic == "Orders"}
    assert owners == {MessageQueue("Orders", "broker-a", number): frozenset() for number in range(2)}
    assert "Orders" not in fetch(ORDER_SVC, *brokers).routes


def test_everything_leaves_system_topics_and_groups_out_unless_asked_for(brokers: tuple[Replay, ...]) -> None:
    snapshot = fetch(Wanted(everything=Everything()), *brokers)
    assert [t for t in snapshot.routes if not t.startswith("%RETRY%")] == ["OrderEvents"]
    assert sorted(snapshot.groups) == ["audit-svc", "bill-svc", "order-svc"]
    assert snapshot.groups["bill-svc"].client_ids == ()
    assert "route of topic Skewed" in {part.what for part in snapshot.unread}
    assert "CID_ONSAPI_OWNER" in fetch(Wanted(everything=Everything(system=True)), *brokers).groups
    assert [*fetch(Wanted(everything=Everything((), ("CID_ONSAPI_OWNER",))), *brokers).groups] == ["CID_ONSAPI_OWNER"]


def test_the_next_name_server_is_asked_when_one_is_silent_which_is_not_asked_twice(brokers: tuple[Replay, ...]) -> None:
    with server.refusing_address() as nobody:
        source = LiveSource(reads([nobody, brokers[0].address], brokers, retries=0))
        snapshot = source.fetch(Wanted(topics=("OrderEvents",)))
    assert len(snapshot.route("OrderEvents").subscribe_queues()) == 16
    assert [part.what for part in snapshot.unread] == [f"NameServer {nobody}"]
    with cluster(Replay(faults={"*": server.silent}), Replay()) as (mute, good):
        reading = reads([mute.address, good.address], timeout=0.2)
        assert reading.route("OrderEvents") is not None
        assert reading.route("NoSuchTopic") is None
        reading.close()
    assert len(mute.requests) == 1


def test_no_name_server_at_all_is_one_clear_error() -> None:
    with server.refusing_address() as one, server.refusing_address() as other, pytest.raises(EndpointError) as raised:
        LiveSource(reads([one, other], retries=0)).fetch(Wanted(topics=("T",)))
    assert raised.value.message.startswith("none of 2 NameServers answers: ")
    assert one in raised.value.message


def test_routes_that_differ_between_name_servers_are_kept_apart() -> None:
    def knowing(route: bytes) -> Replay:
        return Replay(answers={(ROUTE, "topic=T"): server.success(route)})

    servers = (knowing(a_route(a=4, b=4)), knowing(a_route(a=4)), knowing(a_route(b=4, a=4)), Replay())
    with cluster(*servers) as all_, closing(reads([server.address for server in all_])) as source:
        sighting = source.route("T")
    assert sighting is not None
    assert [len(one.route.subscribe_queues()) for one in sighting.others] == [4, 0]
    assert [one.seen.where for one in sighting.others] == [f"NameServer {all_[i].address}" for i in (1, 3)]


def test_members_of_each_broker_are_kept_apart_and_a_silent_broker_is_noted(brokers: tuple[Replay, ...]) -> None:
    only_one = {"connectionSet": [{"clientId": "192.0.2.2@inst0"}], "subscriptionTable": {"OrderEvents": {}}}
    brokers[1].answers[MEMBERS, "consumerGroup=order-svc"] = server.success(body(only_one))
    group = fetch(ORDER_SVC, *brokers).group("order-svc")
    assert [len(view.client_ids) for view in group.views or ()] == [3, 1]
    assert group.has_split_view
    brokers[1].faults[MEMBERS] = server.silent
    snapshot = fetch(ORDER_SVC, *brokers, timeout=0.3)
    assert snapshot.group("order-svc").client_ids == IDS
    assert "consumers of group order-svc at broker broker-b" in {part.what for part in snapshot.unread}


def test_an_unknown_group_gets_a_did_you_mean(brokers: tuple[Replay, ...]) -> None:
    raised = refusal(DataError, fetch, Wanted(group="order-sv"), *brokers)
    assert raised.message == f"group order-sv is unknown at rocketmq://{brokers[0].address}"
    assert raised.hint == "did you mean order-svc?"


SECRET_KEY_HINT = "does the secret key (RMQLB_SECRET_KEY, --secret-key-file) belong to access key reader?"
RIGHTS_HINT = "access key reader is valid, but has no permission to read this: grant it at the cluster"
KEY_HINT = "is reader the right access key, and is it enabled at the cluster?"
_4, _5 = "org.apache.rocketmq.acl.common.AclException: ", "org.apache.rocketmq.auth."
REFUSALS = {
    f"{_4}Check signature failed for accessKey=reader": SECRET_KEY_HINT,
    f"{_4}No acl config for reader": KEY_HINT,
    f"{_4}No default permission for %RETRY%order-svc": RIGHTS_HINT,
    f"{_5}authentication.exception.AuthenticationException: check signature failed.": SECRET_KEY_HINT,
    f"{_5}authentication.exception.AuthenticationException: User:reader is not found.": KEY_HINT,
    f"{_5}authorization.exception.AuthorizationException: User:reader may not": RIGHTS_HINT,
    "User:reader has no permission to access Topic:OrderEvents from 127.0.0.1": RIGHTS_HINT,
    f"{_4}No accessKey is configured": "does the cluster need an --access-key?",
}


@every_case(("said", "hint"), REFUSALS.items())
def test_a_refusal_for_want_of_rights_says_what_to_try(said: str, hint: str) -> None:
    account = Access() if "No accessKey" in said else Access(access_key="reader", secret_key=lambda: "12345678")
    code = 1 if "AclException" in said or "AuthorizationException" in said else 16
    with remoting(Replay(faults={"*": server.refusing(code, said)})) as replay:
        reading = closing(NameServerReads([replay.address], account))
        with reading as source, pytest.raises(Refused) as raised:
            source.route("OrderEvents")
    assert (raised.value.code, raised.value.hint) == ("access-denied", hint)
    assert raised.value.message.endswith(f"code {code}: {said.rpartition('Exception: ')[2]}")


def test_a_version_4_server_that_keeps_silent_about_unknown_codes_does_not_hang_us() -> None:
    with remoting(Replay(version="4.9.7")) as legacy:
        source = reads([legacy.address], (legacy,), timeout=0.3)
        snapshot = LiveSource(source).fetch(Wanted(everything=Everything()))
    assert sorted(snapshot.routes) == ["LegacyTopic"]
    assert snapshot.unread == ()
    assert legacy.forbidden == []


def test_concurrency_stays_within_its_bound() -> None:
    topics, at_once = [f"T{i}" for i in range(40)], server.AtOnce()
    answers: dict[tuple[int, str], Answer] = {(ROUTE, f"topic={t}"): server.success(a_route(a=1)) for t in topics}
    answers[206, ""] = server.success(body({"topicList": topics}))

    def counted(turn: Turn) -> None:
        with at_once:
            time.sleep(0.002)
        turn.write(turn.frame)  # with the answer, the client may ask again before this thread goes on

    with cluster(*(Replay(answers=dict(answers), faults={"*": counted}) for _ in range(6))) as servers:
        source = reads([server.address for server in servers], servers[:1])
        assert len(LiveSource(source).fetch(Wanted(everything=Everything(groups=("none",)))).routes) == 40
    assert 1 <= at_once.most <= AT_ONCE


GRPC = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")
PORT = "pass its remoting port (remotingListenPort, 8080 if not set)"


@pytest.fixture
def proxy() -> Iterator[Replay]:
    with remoting(proxy_replay(grpc_svc="grpc-svc", java_svc="java-svc")) as running:
        yield running


def asked(addresses: Sequence[str]) -> tuple[list[str], list[str]]:
    proxies = Proxies(Access(timeout=0.5, retries=0, proxies=tuple(addresses)))
    try:
        answers = proxies.consumers("grpc-svc")
        return [i for view, _ in answers for i in view.client_ids], [part.reason for part in proxies.unread()]
    finally:
        proxies.close()


def answering(body: bytes, code: int = 0, remark: str | None = None) -> Fault:
    answer = changed(server.success(body), ext_fields={"MSG_REGION": "", "TRACE_ON": "false"}, code=code, remark=remark)
    return lambda turn: turn.write(turn.framed(answer))


def test_who_is_listed_twice_is_one_process_unless_its_address_differs() -> None:
    """A Proxy has a client that is connected to two of them as its own, and as the other's by a heartbeat handed on."""
    listed = [(GRPC[0], "h:1"), (GRPC[0], "h:2"), *[("h@java", f"h:{port}") for port in (3, 4, 4)]]
    twice = [{"clientId": client_id, "clientAddr": address} for client_id, address in listed]
    body = json.dumps({"connectionSet": twice}).encode()
    with remoting(Replay(faults={"*": answering(body)})) as running:
        assert asked([running.address]) == (["h@java", "h@java", GRPC[0]], [])


@every_case(("fault", "reason"), [
    (server.silent, "no complete answer within 0.5 s"),
    (server.reset, "the connection broke"),
    (server.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), f"gRPC port, {PORT}"),
    (server.with_header(b"no header"), f"gRPC port, {PORT}"),
    (server.refusing(206, "not online"), "a broker answers at this port, not a Proxy"),
    (server.refusing(3, " request type 203 not supported"), "a NameServer answers at this port, or a Proxy before 5.1.1"),
    (answering(b"{"), "Proxy 127.0.0.1:"),
    (answering(b'{"connectionSet": 1}'), "Proxy 127.0.0.1:"),
    (answering(b"", 16, "AclException: no\nstack"), "the Proxy refuses to list its consumers: code 16: AclException: no"),
])  # fmt: skip
def test_whatever_is_wrong_with_one_is_a_reason_and_no_error(fault: Fault, reason: str, proxy: Replay) -> None:
    with remoting(Replay(faults={"*": fault})) as bad:
        ids, (said,) = asked([bad.address, proxy.address])
    assert ids == [*GRPC]
    assert reason in said
    assert "\n" not in said


def test_a_proxy_that_is_not_there_or_the_grpc_port_leaves_the_rest(proxy: Replay) -> None:
    with server.refusing_address() as dead, remoting(grpc_port()) as grpc:
        ids, (absent, wrong) = asked([dead, grpc.address, proxy.address])
    assert ids == [*GRPC]
    assert absent.endswith("is its remoting port (remotingListenPort, 8080 if not set) open from here?")
    assert wrong.endswith(f"if it is a Proxy's gRPC port, {PORT}")


def test_an_address_may_be_short_and_what_is_before_an_at_sign_is_not_repeated() -> None:
    for given, address in (
        ("proxy", "proxy:8080"),
        ("proxy:9000", "proxy:9000"),
        ("rocketmq://proxy", "proxy:8080"),
        ("rocketmqs://10.0.0.1:9000/", "10.0.0.1:9000"),
        ("[::1]", "[::1]:8080"),
    ):
        assert proxy_address(given) == address
    with pytest.raises(UsageError, match=r"^contexts\.prod\.proxy: it contains a user$"):
        proxy_address("me:secret@proxy:8080", "contexts.prod.proxy")


def test_a_dashboard_can_be_helped_by_a_proxy(proxy: Replay) -> None:
    with dashboard(Dashboard()) as server:
        offline = failure("CODE: 206  DESC: Not found the consumer group connection")
        server.answers["/consumer/consumerConnection.query", "consumerGroup=order-svc"] = offline
        proxy.faults["*"] = lambda turn: turn.write(turn.framed(captured("p1-connections-java-svc")))
        source = open_source(server.url, Access(proxies=(proxy.address,)))
        group = source.fetch(Wanted(group="order-svc")).group("order-svc")
    assert (group.views, group.client_ids) == ((), ("127.0.0.1@j1", "127.0.0.1@j2"))
    assert group.topics == ("%RETRY%java-svc", "Pulled")
