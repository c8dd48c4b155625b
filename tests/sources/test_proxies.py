"""Proxies over their remoting port: what captured ones of 5.5.0 listed, in cluster and local mode, and what they may do wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace as changed

import pytest

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.remoting.command import RemotingCommand
from rmqlb.sources.native.proxies import Proxies, proxy_address
from rmqlb.sources.native.wire import WireSettings
from rmqlb.sources.opening import Access, open_source
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay as Dashboard
from tests.support.replay_dashboard import dashboard, failure
from tests.support.replay_proxy import captured, grpc_port, proxy_replay
from tests.support.replay_remoting import (
    Fault,
    Replay,
    Turn,
    raw,
    refusing,
    refusing_address,
    remoting,
    reset,
    silent,
    success,
    with_header,
)

QUICK = WireSettings(timeout=0.5, retries=0)
GRPC = ("vm@11012@0@knf9y2k23", "vm@11012@1@knfzeaz7r")


@pytest.fixture
def proxy() -> Iterator[Replay]:
    with remoting(proxy_replay(grpc_svc="grpc-svc", java_svc="java-svc")) as running:
        yield running


def asked(
    addresses: Sequence[str], group: str = "grpc-svc", settings: WireSettings = QUICK
) -> tuple[list[str], list[str]]:
    """The client IDs that all Proxies list, and the reasons of those that did not answer."""
    proxies = Proxies(addresses, settings)
    try:
        answers = proxies.consumers(group)
        return [i for view, _ in answers for i in view.client_ids], [part.reason for part in proxies.unread()]
    finally:
        proxies.close()


def test_a_proxy_lists_its_clients_and_those_of_another() -> None:
    first, second = (captured(f"{name}-connections-grpc-svc") for name in ("p1", "p2"))
    assert first.body is not None
    assert second.body is not None
    one, other = (json.loads(each)["connectionSet"] for each in (first.body, second.body))
    assert one == other, "the second has them by heartbeats that were handed on"


def test_who_is_listed_twice_is_one_process_unless_its_address_differs() -> None:
    """A Proxy has a client that is connected to two of them as its own and as the other's."""
    twice = [
        {"clientId": GRPC[0], "clientAddr": "h:1"},
        {"clientId": GRPC[0], "clientAddr": "h:2"},
        {"clientId": "h@java", "clientAddr": "h:3"},
        {"clientId": "h@java", "clientAddr": "h:4"},
        {"clientId": "h@java", "clientAddr": "h:4"},
    ]
    body = json.dumps({"connectionSet": twice}).encode()
    listing = proxy_replay()
    listing.faults["*"] = lambda turn: turn.write(turn.framed(marked(body)))
    with remoting(listing) as running:
        ids, _ = asked([running.address])
    assert ids == ["h@java", "h@java", GRPC[0]]


def marked(body: bytes) -> RemotingCommand:
    return changed(success(body), ext_fields={"MSG_REGION": "", "TRACE_ON": "false"})


def broken_body(body: bytes) -> Fault:
    def answer(turn: Turn) -> None:
        turn.write(turn.framed(marked(body)))

    return answer


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (silent, "no whole answer within 0.5 s"),
        (reset, "the connection broke"),
        (raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "gRPC port, give its remoting port"),
        (with_header(b"no header"), "gRPC port, give its remoting port"),
        (refusing(206, "not online"), "a broker answers there, not a Proxy"),
        (refusing(3, " request type 203 not supported"), "a NameServer answers there, or a Proxy before 5.1.1"),
        (broken_body(b"{"), "Proxy 127.0.0.1:"),
        (broken_body(b'{"connectionSet": 1}'), "Proxy 127.0.0.1:"),
        (
            lambda turn: turn.write(turn.framed(changed(marked(b""), code=16, remark="AclException: no\nstack"))),
            "it refuses to tell its consumers: code 16: AclException: no",
        ),
    ],
)
def test_whatever_is_wrong_with_one_is_a_reason_and_no_error(fault: Fault, reason: str, proxy: Replay) -> None:
    with remoting(Replay(faults={"*": fault})) as bad:
        ids, reasons = asked([bad.address, proxy.address])
    assert ids == [*GRPC]
    assert len(reasons) == 1
    assert reason in reasons[0]
    assert "\n" not in reasons[0]


def test_the_grpc_port_closes_the_connection_and_is_suspected() -> None:
    with remoting(grpc_port()) as grpc:
        assert asked([grpc.address])[1][0].endswith(
            "if it is a Proxy's gRPC port, give its remoting port (remotingListenPort, 8080 if not set)"
        )


def test_one_that_does_not_answer_is_asked_once_by_however_many_at_a_time() -> None:
    with remoting(Replay(faults={"*": silent})) as bad:
        proxies = Proxies([bad.address], WireSettings(timeout=0.2, retries=0))
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(proxies.consumers, map(str, range(20)))) == [[]] * 20
        proxies.close()
        assert len(bad.requests) == 1
    assert len(proxies.unread()) == 1


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
    with pytest.raises(UsageError) as raised:
        proxy_address("me:secret@proxy:8080", "contexts.prod.proxy")
    assert raised.value.message == "contexts.prod.proxy: it names a user"


def test_a_dashboard_can_be_helped_by_a_proxy(proxy: Replay) -> None:
    with dashboard(Dashboard()) as server:
        offline = failure("CODE: 206  DESC: Not found the consumer group connection")
        server.answers["/consumer/consumerConnection.query", "consumerGroup=order-svc"] = offline
        proxy.faults["*"] = lambda turn: turn.write(turn.framed(captured("p1-connections-java-svc")))
        source = open_source(server.url, Access(proxies=(proxy.address,)))
        group = source.fetch(Wanted(group="order-svc")).group("order-svc")
    assert group.views == ()
    assert group.client_ids == ("127.0.0.1@j1", "127.0.0.1@j2")
    assert group.topics == ("%RETRY%java-svc", "Pulled")


def test_a_proxy_that_is_not_there_leaves_the_rest(proxy: Replay) -> None:
    with refusing_address() as dead:
        ids, (reason,) = asked([dead, proxy.address])
    assert ids == [*GRPC]
    assert reason.endswith("is its remoting port (remotingListenPort, 8080 if not set) open from here?")
