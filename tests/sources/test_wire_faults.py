"""Every way a server can misbehave ends in one clear line, by the deadline, and spoils no later answer.

Nothing here looks at a clock: where a server never ends, that the test does is the proof.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from msgspec.structs import replace

from rmqlb.errors import ProtocolError, UsageError
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.native.address_map import parse_address_map
from rmqlb.sources.native.wire import RemotingClient, TimedSocket, WireSettings, parse_address, tls_context
from rmqlb.sources.pace import Deadline
from tests.support import replay_remoting as server
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Fault, Replay, Turn, remoting

from .wires import MEMBERS, ROUTE, SETTINGS, answer_body, client, failure, problem, talking

SOON = replace(SETTINGS, timeout=0.3)
GO_AWAY = server.refusing(ResponseCode.GO_AWAY, "please go away")


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def waiting(slept: list[float]) -> WireSettings:
    """Settings that write down the waits between tries."""
    return replace(SETTINGS, sleep=slept.append, jitter=lambda: 0.5)


RESET = "the connection broke: Connection reset by peer"
CLOSED = "the connection broke: it was closed before the whole answer had come"
PASSING = [
    (server.reset, RESET),
    (server.reset_mid_frame, RESET),
    (server.closed, CLOSED),
    (server.closed_mid_frame, CLOSED),
    (GO_AWAY, "GO_AWAY: the server is shutting down"),
]


@pytest.mark.parametrize(("fault", "expected"), PASSING)
def test_a_fault_that_may_pass_is_asked_again_on_fresh_connections(
    fault: Fault, expected: str, waiting: WireSettings, slept: list[float]
) -> None:
    with talking(replay := Replay(faults={"*": fault}), waiting) as opened:
        assert problem(opened, replay.address) == f"{replay.address} GET_ROUTEINFO_BY_TOPIC: {expected}"
        assert (len(replay.requests), replay.connections) == (3, 3)
    assert slept == [0.1, 0.2]


@every_case("fault", [fault for fault, _ in PASSING])
def test_a_fault_that_has_passed_is_not_heard_of(fault: Fault) -> None:
    with talking(replay := Replay(), replace(SETTINGS, retries=1)) as opened:
        for _again in range(2):
            replay.faults["*"] = server.once(fault, "*")
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert len(replay.requests) == 4


def test_a_refused_connection_is_tried_again(waiting: WireSettings, slept: list[float]) -> None:
    with server.refusing_address() as address, client(waiting) as opened:
        error = failure(opened, address)
        assert error.message == f"{address} GET_ROUTEINFO_BY_TOPIC: cannot connect: Connection refused"
        assert error.hint == "is this the address and is it up?"
    assert slept == [0.1, 0.2]


def test_a_wait_that_would_pass_the_deadline_ends_the_call(slept: list[float]) -> None:
    settings = replace(SETTINGS, timeout=0.3, retries=20, sleep=slept.append, jitter=lambda: 1.0)
    with talking(replay := Replay(faults={"*": server.closed}), settings) as opened:
        assert problem(opened, replay.address).endswith(CLOSED)
        assert len(replay.requests) <= 2
    assert slept in ([0.2], [])


ENDLESS = [
    server.silent,
    server.dripping,
    server.with_wrong_opaque,
    server.chattering,
    server.with_length(lambda length: length + 1),
    server.raw(b""),
    server.raw(b"\0\0"),
]


@every_case("fault", ENDLESS)
def test_what_does_not_end_is_given_up_and_not_asked_again(fault: Fault) -> None:
    with talking(replay := Replay(faults={"*": fault}), SOON) as opened:
        error = failure(opened, replay.address)
        assert error.message == f"{replay.address} GET_ROUTEINFO_BY_TOPIC: no whole answer within 0.3 s"
        assert (len(replay.requests), replay.connections) == (1, 1)
        del replay.faults["*"]
        assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 2


def test_answers_to_requests_that_were_never_sent_are_spoken_of() -> None:
    with talking(replay := Replay(faults={"*": server.with_wrong_opaque}), SOON) as opened:
        assert "never sent" in (failure(opened, replay.address).hint or "")


def test_a_late_answer_is_never_taken_for_another() -> None:
    asked_again = threading.Event()

    def late(turn: Turn) -> None:
        asked_again.wait(10)
        turn.write(turn.frame)

    def at_once(turn: Turn) -> None:
        asked_again.set()
        turn.write(turn.frame)

    with talking(replay := Replay(faults={105: late, 203: at_once}), SOON) as opened:
        assert "no whole answer" in problem(opened, replay.address)
        assert opened.call(replay.address, MEMBERS).body == answer_body(replay, MEMBERS)
    assert replay.connections == 2


@contextmanager
def unaccepting(backlog: int = 5) -> Iterator[str]:
    """A loopback address where connections stand and nobody ever takes them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(backlog)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_never_takes_the_connection_is_given_up() -> None:
    with unaccepting() as address, client(SOON) as opened:
        assert problem(opened, address) == f"{address} GET_ROUTEINFO_BY_TOPIC: no whole answer within 0.3 s"


def test_a_handshake_that_never_ends_is_given_up() -> None:
    with unaccepting() as address, client(replace(SOON, tls=ssl.create_default_context())) as opened:
        assert problem(opened, address) == f"{address} GET_ROUTEINFO_BY_TOPIC: cannot connect within 0.3 s"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems refuse what does not fit the backlog")
def test_a_connection_that_never_stands_is_given_up() -> None:
    with unaccepting(0) as address:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(parse_address(address))
        with client(SOON) as opened:
            assert problem(opened, address) == f"{address} GET_ROUTEINFO_BY_TOPIC: cannot connect within 0.3 s"
        for filler in fillers:
            filler.close()


@every_case(
    ("fault", "expected"),
    [
        (server.with_length(lambda _: -1), "frame length -1 is not between 4 and 16777212"),
        (server.with_length(lambda _: -(2**31)), "frame length -2147483648 is not between 4 and 16777212"),
        (server.with_length(lambda _: 2**31 - 1), "frame length 2147483647 is not between 4 and 16777212"),
        (server.with_length(lambda _: 0), "frame length 0 is not between 4 and 16777212"),
        (server.with_length(lambda _: 20), "header length"),
        (server.with_header(b"{"), "header is not JSON"),
        (server.with_header(b""), "header is not JSON"),
        (server.with_header(b"[]"), "header is not"),
        (server.with_header(b"\xff"), "header is not UTF-8 at byte 0"),
        (server.with_header(b'{"code":"secret"}'), "header"),
        (server.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "frame length 1213486160 is not between 4 and 16777212"),
        (server.raw(b"\x15\x03\x01\x00\x02\x02\x46"), "frame length 352518400 is not between 4 and 16777212"),
        (server.raw(b"\0\0\0\x10\x07\0\0\0"), "serialize type 7 is neither 0 (JSON) nor 1 (ROCKETMQ)"),
    ],
)
def test_what_is_not_the_protocol_is_said_and_not_asked_again(fault: Fault, expected: str) -> None:
    with talking(replay := Replay(faults={"*": fault})) as opened:
        error = failure(opened, replay.address)
        assert isinstance(error, ProtocolError)
        assert error.message.startswith(f"{replay.address} GET_ROUTEINFO_BY_TOPIC: {expected}")
        assert "secret" not in error.message
        assert error.hint == "is this the port of a NameServer or broker?"
        assert (len(replay.requests), replay.connections) == (1, 1)
        del replay.faults["*"]
        assert opened.call(replay.address, ROUTE).code == 0
        assert replay.connections == 2


def test_an_answer_that_announces_less_than_it_has_ends_its_connection() -> None:
    fault = server.with_length(lambda length: length - 7)
    with talking(replay := Replay(faults={105: fault})) as opened:
        body = answer_body(replay, ROUTE)
        assert body is not None
        assert opened.call(replay.address, ROUTE).body == body[:-7]
        assert opened.call(replay.address, MEMBERS).body == answer_body(replay, MEMBERS)
        assert replay.connections == 2


def test_a_second_answer_is_never_taken_for_another() -> None:
    with talking(replay := Replay(faults={"*": server.twice})) as opened:
        for request in (ROUTE, MEMBERS, ROUTE, MEMBERS):
            assert opened.call(replay.address, request).body == answer_body(replay, request)
        assert len(replay.requests) == 4


LookUp = Callable[..., list[Any]]


def resolving(monkeypatch: pytest.MonkeyPatch, look_up: LookUp) -> None:
    """Puts another resolver of host names under the socket module; addresses are read as ever."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **arguments: int) -> list[Any]:
        if arguments.get("flags") == socket.AI_NUMERICHOST:
            return real(host, port, **arguments)
        return look_up(real, port)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_resolver_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def never(_real: LookUp, _port: int) -> list[Any]:
        over.wait()
        return []

    resolving(monkeypatch, never)
    with client(SOON) as opened:
        assert problem(opened, "broker-a:10911").endswith("cannot connect within 0.3 s")
    over.set()


def test_a_host_that_is_not_found_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, waiting: WireSettings, slept: list[float]
) -> None:
    def fails(_real: LookUp, _port: int) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolving(monkeypatch, fails)
    with client(waiting) as opened:
        assert problem(opened, "broker-a:1").endswith("TOPIC: cannot connect: Name or service not known")
    assert slept == []


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_cannot_be_is_not_tried_again(host: str, waiting: WireSettings, slept: list[float]) -> None:
    with client(waiting) as opened:
        assert problem(opened, f"{host}:1").endswith("TOPIC: cannot connect: no host can have this name")
    assert slept == []


def test_a_host_with_several_addresses_is_reached_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(real: LookUp, port: int) -> list[Any]:
        with server.refusing_address() as refusing:
            refused = real(*parse_address(refusing), type=socket.SOCK_STREAM)
        return [*refused, *real("127.0.0.1", port, type=socket.SOCK_STREAM)]

    resolving(monkeypatch, several)
    with talking(replay := Replay(), replace(SETTINGS, retries=0)) as opened:
        assert opened.call(f"broker-a:{parse_address(replay.address)[1]}", ROUTE).code == 0


def test_a_deadline_that_has_passed_stops_every_operation() -> None:
    passed = Deadline(0)
    assert passed.rest <= 0
    with remoting() as replay:
        address = parse_address(replay.address)
        with pytest.raises(TimeoutError):
            TimedSocket(*address, passed)
        connection = TimedSocket(*address, Deadline(10))
        with pytest.raises(TimeoutError):
            connection.send(b"x", passed)
        with pytest.raises(TimeoutError):
            connection.receive(passed)
        connection.close()
    assert replay.requests == []


UNKNOWN_CA = ("unable to get local issuer certificate", "self-signed certificate in certificate chain")


class Files(NamedTuple):
    """What a server shows and believes, and the files of its clients."""

    authority: trustme.CA
    shown: trustme.LeafCert
    ca: str
    other_ca: str
    client_cert: str
    client_key: str
    foreign_cert: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    ca, other_ca = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    other_ca.cert_pem.write_to_path(folder / "other.pem")
    own = ca.issue_cert("rmqlb@example.com")
    own.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    own.private_key_pem.write_to_path(folder / "key.pem")
    other_ca.issue_cert("rmqlb@example.com").private_key_and_cert_chain_pem.write_to_path(folder / "foreign.pem")
    names = ("ca.pem", "other.pem", "cert.pem", "key.pem", "foreign.pem")
    return Files(ca, ca.issue_cert("127.0.0.1", "broker.example"), *(str(folder / name) for name in names))


def server_tls(files: Files, *, client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.shown.configure_cert(context)
    files.authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED if client_certificate else ssl.CERT_NONE
    return context


@contextmanager
def secured(
    files: Files, tls: ssl.SSLContext, *, client_certificate: bool = False, settings: WireSettings = SETTINGS
) -> Iterator[tuple[RemotingClient, Replay]]:
    server = server_tls(files, client_certificate=client_certificate)
    with remoting(tls=server) as replay, client(replace(settings, tls=tls)) as opened:
        yield opened, replay


def test_tls_with_the_right_ca_answers_and_keeps_its_connection(files: Files) -> None:
    with secured(files, tls_context(files.ca)) as (opened, replay):
        for _ in range(3):
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 1


def test_an_unknown_ca_is_refused(files: Files) -> None:
    for context in (tls_context(files.other_ca), tls_context()):
        with secured(files, context) as (opened, replay):
            error = failure(opened, replay.address)
            assert error.message.removeprefix(f"{replay.address} GET_ROUTEINFO_BY_TOPIC: TLS failed: ") in UNKNOWN_CA
            assert "--ca-file" in (error.hint or "")
            assert (replay.requests, replay.connections) == ([], 1)


@pytest.mark.parametrize("server_name", ["other.example", "127.0.0.2"])
def test_a_certificate_of_another_name_is_refused(files: Files, server_name: str) -> None:
    settings = replace(SETTINGS, server_name=server_name)
    with secured(files, tls_context(files.ca), settings=settings) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert error.message.endswith(f"certificate is not valid for '{server_name}'")
        assert "--tls-name" in (error.hint or "")
        assert replay.requests == []


def test_a_mapped_address_does_not_change_the_name_in_the_certificate(files: Files) -> None:
    with remoting(tls=server_tls(files)) as replay:
        rules = (f"broker.example:10911={replay.address}", f"other.example:10911={replay.address}")
        settings = replace(SETTINGS, tls=tls_context(files.ca), addresses=parse_address_map(rules))
        with client(settings) as opened:
            assert opened.call("broker.example:10911", ROUTE).code == 0
            assert f"other.example:10911 (mapped to {replay.address})" in problem(opened, "other.example:10911")


def test_a_client_certificate_is_shown(files: Files) -> None:
    context = tls_context(files.ca, files.client_cert, files.client_key)
    with secured(files, context, client_certificate=True) as (opened, replay):
        assert opened.call(replay.address, ROUTE).code == 0


@every_case("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@every_case("foreign", [False, True])
def test_without_the_right_client_certificate_tls_fails(files: Files, version: ssl.TLSVersion, foreign: bool) -> None:
    context = tls_context(files.ca, files.foreign_cert if foreign else None)
    context.maximum_version = version
    with secured(files, context, client_certificate=True) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert "alert" in error.message
        assert "--client-cert" in (error.hint or "")
        assert replay.requests == []


def test_tls_to_a_server_without_it_fails(files: Files) -> None:
    with remoting() as replay, client(replace(SETTINGS, tls=tls_context(files.ca), timeout=0.3, retries=0)) as opened:
        assert problem(opened, replay.address).startswith(f"{replay.address} GET_ROUTEINFO_BY_TOPIC: ")
        assert replay.requests == []


def test_no_tls_to_a_server_with_it_fails(files: Files) -> None:
    with remoting(tls=server_tls(files)) as replay, client() as opened:
        assert "rocketmqs://" in (failure(opened, replay.address).hint or "")


def test_certificates_and_names_are_always_verified(files: Files) -> None:
    for context in (tls_context(), tls_context(files.ca), tls_context(files.ca, files.client_cert, files.client_key)):
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


Arguments = Callable[[Files, str], Sequence[str | None]]


@every_case(
    ("arguments", "message"),
    [
        (lambda _, path: (path + ".no",), "cannot read the CA file {}.no: No such file or directory"),
        (lambda _, path: (path,), "cannot read the CA file {}: no certificate or crl found"),
        (lambda files, path: (files.ca, path), "cannot read the client certificate {}: PEM lib"),
        (lambda files, _: (files.ca, files.client_cert), "cannot read the client certificate .*cert.pem: PEM lib"),
        (
            lambda files, _: (files.ca, files.client_cert, files.foreign_cert),
            "cannot read the client certificate .*cert.pem with the key .*foreign.pem: key values mismatch",
        ),
        (lambda files, _: (files.ca, None, files.client_key), "--client-key makes no sense without --client-cert"),
    ],
)
def test_files_that_cannot_be_used_are_named(files: Files, tmp_path: Path, arguments: Arguments, message: str) -> None:
    path = tmp_path / "not.pem"
    path.write_text("nothing")
    with pytest.raises(UsageError, match=f"^{message.format(path)}$"):
        tls_context(*arguments(files, str(path)))


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(files: Files, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key_file = serialization.load_pem_private_key(Path(files.client_key).read_bytes(), None)
    form, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = key_file.private_bytes(form, pkcs8, serialization.BestAvailableEncryption(b"canary"))
    (tmp_path / "locked.pem").write_bytes(locked)
    with pytest.raises(UsageError, match="the client certificate's key has a password"):
        tls_context(files.ca, files.client_cert, str(tmp_path / "locked.pem"))
