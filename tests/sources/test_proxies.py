from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace as changed

import pytest

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.native.proxies import Proxies, proxy_address
from rmqlb.sources.native.wire import WireSettings
from rmqlb.sources.opening import Access, open_source
from tests.support import replay_remoting as server
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay as Dashboard
from tests.support.replay_dashboard import dashboard, failure
from tests.support.replay_proxy import captured, grpc_port, proxy_replay
from tests.support.replay_remoting import Fault, Replay, remoting

GRPC = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")
PORT = "give its remoting port (remotingListenPort, 8080 if not set)"


@pytest.fixture
def proxy() -> Iterator[Replay]:
    with remoting(proxy_replay(grpc_svc="grpc-svc", java_svc="java-svc")) as running:
        yield running


def asked(addresses: Sequence[str]) -> tuple[list[str], list[str]]:
    proxies = Proxies(addresses, WireSettings(timeout=0.5, retries=0))
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
    first, second = (captured(f"{name}-connections-grpc-svc").body or b"" for name in ("p1", "p2"))
    assert json.loads(first)["connectionSet"] == json.loads(second)["connectionSet"]
    listed = [(GRPC[0], "h:1"), (GRPC[0], "h:2"), *[("h@java", f"h:{port}") for port in (3, 4, 4)]]
    twice = [{"clientId": client_id, "clientAddr": address} for client_id, address in listed]
    body = json.dumps({"connectionSet": twice}).encode()
    with remoting(Replay(faults={"*": answering(body)})) as running:
        assert asked([running.address]) == (["h@java", "h@java", GRPC[0]], [])


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (server.silent, "no whole answer within 0.5 s"),
        (server.reset, "the connection broke"),
        (server.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), f"gRPC port, {PORT}"),
        (server.with_header(b"no header"), f"gRPC port, {PORT}"),
        (server.refusing(206, "not online"), "a broker answers there, not a Proxy"),
        (server.refusing(3, " request type 203 not supported"), "a NameServer answers there, or a Proxy before 5.1.1"),
        (answering(b"{"), "Proxy 127.0.0.1:"),
        (answering(b'{"connectionSet": 1}'), "Proxy 127.0.0.1:"),
        (answering(b"", 16, "AclException: no\nstack"), "it refuses to tell its consumers: code 16: AclException: no"),
    ],
)
def test_whatever_is_wrong_with_one_is_a_reason_and_no_error(fault: Fault, reason: str, proxy: Replay) -> None:
    with remoting(Replay(faults={"*": fault})) as bad:
        ids, (said,) = asked([bad.address, proxy.address])
    assert ids == [*GRPC]
    assert reason in said
    assert "\n" not in said


def test_a_proxy_that_is_not_there_or_the_grpc_port_leaves_the_rest(proxy: Replay) -> None:
    with server.refusing_address() as dead, remoting(grpc_port()) as grpc:
        ids, reasons = asked([dead, grpc.address, proxy.address])
    assert ids == [*GRPC]
    assert reasons[0].endswith("is its remoting port (remotingListenPort, 8080 if not set) open from here?")
    assert reasons[1].endswith(f"if it is a Proxy's gRPC port, {PORT}")


def test_one_that_does_not_answer_is_asked_once_by_however_many_at_a_time() -> None:
    with remoting(Replay(faults={"*": server.silent})) as bad:
        proxies = Proxies([bad.address], WireSettings(timeout=0.2, retries=0))
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(proxies.consumers, map(str, range(20)))) == [[]] * 20
        proxies.close()
    assert (len(bad.requests), len(proxies.unread())) == (1, 1)


@every_case(
    ("given", "address"),
    [
        ("proxy", "proxy:8080"),
        ("proxy:9000", "proxy:9000"),
        ("rocketmq://proxy", "proxy:8080"),
        ("rocketmqs://10.0.0.1:9000/", "10.0.0.1:9000"),
        ("[::1]", "[::1]:8080"),
    ],
)
def test_an_address_may_be_short(given: str, address: str) -> None:
    assert proxy_address(given) == address


def test_what_is_before_an_at_sign_is_not_repeated() -> None:
    with pytest.raises(UsageError, match=r"^contexts\.prod\.proxy: it names a user$"):
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
