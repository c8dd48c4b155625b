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
from rmqlb.sources.native.wire import (
    RemotingClient,
    TimedSocket,
    WireSettings,
    parse_address,
    parse_address_map,
    tls_context,
)
from rmqlb.sources.pace import Deadline
from tests.support import replay_remoting as server
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Fault, Replay, Turn, remoting

from .wires import MEMBERS, ROUTE, SETTINGS, answer_body, client, failure, problem, talking

SOON = replace(SETTINGS, timeout=0.3)
GO_AWAY = server.refusing(ResponseCode.GO_AWAY, "please go away")
NOT_IN_TIME = "no whole answer within 0.3 s"
NOT_CONNECTED = "cannot connect within 0.3 s"
RESET = "the connection broke: Connection reset by peer"
CLOSED = "the connection broke: it was closed before the whole answer had come"
PASSING = [
    (server.reset, RESET),
    (server.reset_mid_frame, RESET),
    (server.closed, CLOSED),
    (server.closed_mid_frame, CLOSED),
    (GO_AWAY, "GO_AWAY: the server is shutting down"),
]


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def waiting(slept: list[float]) -> WireSettings:
    return replace(SETTINGS, sleep=slept.append, jitter=lambda: 0.5)


@pytest.mark.parametrize(("fault", "expected"), PASSING)
def test_a_fault_that_may_pass_is_asked_again_on_fresh_connections(
    fault: Fault, expected: str, waiting: WireSettings, slept: list[float]
) -> None:
    with talking(replay := Replay(faults={"*": fault}), waiting) as opened:
        assert problem(opened, replay.address) == expected
        assert (len(replay.requests), replay.connections) == (3, 3)
        assert slept == [0.1, 0.2]
        for _again in range(2):
            replay.faults["*"] = server.once(fault, "*")
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert len(replay.requests) == 7


def test_a_refused_connection_is_tried_again(waiting: WireSettings, slept: list[float]) -> None:
    with server.refusing_address() as address, client(waiting) as opened:
        assert problem(opened, address) == "cannot connect: Connection refused"
    assert slept == [0.1, 0.2]


def test_a_wait_that_would_pass_the_deadline_ends_the_call(slept: list[float]) -> None:
    settings = replace(SETTINGS, timeout=0.3, retries=20, sleep=slept.append, jitter=lambda: 1.0)
    with talking(replay := Replay(faults={"*": server.closed}), settings) as opened:
        assert problem(opened, replay.address) == CLOSED
        assert len(replay.requests) <= 2
    assert slept in ([0.2], [])


ENDLESS = [
    *(server.silent, server.dripping, server.with_wrong_opaque, server.chattering),
    *(server.with_length(lambda length: length + 1), server.raw(b""), server.raw(b"\0\0")),
]


@every_case("fault", ENDLESS)
def test_what_does_not_end_is_given_up_and_not_asked_again(fault: Fault) -> None:
    with talking(replay := Replay(faults={"*": fault}), SOON) as opened:
        error = failure(opened, replay.address)
        assert error.message.endswith(NOT_IN_TIME)
        assert ("never sent" in (error.hint or "")) == (fault is server.with_wrong_opaque)
        assert (len(replay.requests), replay.connections) == (1, 1)
        del replay.faults["*"]
        assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 2


def test_a_late_answer_is_never_taken_for_another() -> None:
    asked_again = threading.Event()

    def late(turn: Turn) -> None:
        asked_again.wait(10)
        turn.write(turn.frame)

    def at_once(turn: Turn) -> None:
        asked_again.set()
        turn.write(turn.frame)

    with talking(replay := Replay(faults={105: late, 203: at_once}), SOON) as opened:
        assert problem(opened, replay.address) == NOT_IN_TIME
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
        assert problem(opened, address) == NOT_IN_TIME
    with unaccepting() as address, client(replace(SOON, tls=ssl.create_default_context())) as opened:
        assert problem(opened, address) == NOT_CONNECTED, "a handshake that never ends"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems refuse what does not fit the backlog")
def test_a_connection_that_never_stands_is_given_up() -> None:
    with unaccepting(0) as address:
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(parse_address(address))
        with client(SOON) as opened:
            assert problem(opened, address) == NOT_CONNECTED
        for filler in fillers:
            filler.close()


@every_case(
    ("fault", "expected"),
    [
        *(
            (server.with_length(lambda _, n=number: n), f"frame length {number} is not between 4 and 16777212")  # type: ignore[misc]
            for number in (-1, -(2**31), 2**31 - 1, 0)
        ),
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
    with talking(replay := Replay(faults={105: server.with_length(lambda length: length - 7)})) as opened:
        assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)[:-7]
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
    resolving(monkeypatch, lambda _real, _port: over.wait() and [])  # type: ignore[arg-type, return-value]
    with client(SOON) as opened:
        assert problem(opened, "broker-a:10911") == NOT_CONNECTED
    over.set()


def test_a_host_that_is_not_found_or_cannot_be_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, waiting: WireSettings, slept: list[float]
) -> None:
    with client(waiting) as opened:
        for host in ("a..b", "x" * 64):
            assert problem(opened, f"{host}:1") == "cannot connect: no host can have this name"

    def fails(_real: LookUp, _port: int) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolving(monkeypatch, fails)
    with client(waiting) as opened:
        assert problem(opened, "broker-a:1") == "cannot connect: Name or service not known"
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
    with remoting() as replay:
        address = parse_address(replay.address)
        with pytest.raises(TimeoutError):
            TimedSocket(*address, passed)
        connection = TimedSocket(*address, Deadline(10))
        for operation in (lambda: connection.send(b"x", passed), lambda: connection.receive(passed)):
            with pytest.raises(TimeoutError):
                operation()
        connection.close()
    assert replay.requests == []


class Files(NamedTuple):
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
    own, foreign = (each.issue_cert("rmqlb@example.com") for each in (ca, other_ca))
    written = {
        "ca.pem": ca.cert_pem,
        "other.pem": other_ca.cert_pem,
        "cert.pem": own.cert_chain_pems[0],
        "key.pem": own.private_key_pem,
        "foreign.pem": foreign.private_key_and_cert_chain_pem,
    }
    for name, blob in written.items():
        blob.write_to_path(folder / name)
    return Files(ca, ca.issue_cert("127.0.0.1", "broker.example"), *(str(folder / name) for name in written))


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
    served = server_tls(files, client_certificate=client_certificate)
    with remoting(tls=served) as replay, client(replace(settings, tls=tls)) as opened:
        yield opened, replay


def test_tls_with_the_right_ca_answers_and_keeps_its_connection(files: Files) -> None:
    with secured(files, tls_context(files.ca)) as (opened, replay):
        for _ in range(3):
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 1
    context = tls_context(files.ca, files.client_cert, files.client_key)
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    with secured(files, context, client_certificate=True) as (opened, replay):
        assert opened.call(replay.address, ROUTE).code == 0


UNKNOWN_CA = ("unable to get local issuer certificate", "self-signed certificate in certificate chain")
ANOTHER_NAME = "certificate is not valid for '{}'"


@every_case(
    ("ca", "name", "reasons", "hint"),
    [
        ("other_ca", None, UNKNOWN_CA, "--ca-file"),
        (None, None, UNKNOWN_CA, "--ca-file"),
        *(("ca", name, (ANOTHER_NAME.format(name),), "--tls-name") for name in ("other.example", "127.0.0.2")),
    ],
)
def test_a_server_that_cannot_be_trusted_is_asked_nothing(
    files: Files, ca: str | None, name: str | None, reasons: Sequence[str], hint: str
) -> None:
    context = tls_context(getattr(files, ca) if ca else None)
    with secured(files, context, settings=replace(SETTINGS, server_name=name)) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert error.message.endswith(tuple(reasons))
        assert hint in (error.hint or "")
        assert (replay.requests, replay.connections) == ([], 1)


def test_a_mapped_address_does_not_change_the_name_in_the_certificate(files: Files) -> None:
    with remoting(tls=server_tls(files)) as replay:
        rules = (f"broker.example:10911={replay.address}", f"other.example:10911={replay.address}")
        settings = replace(SETTINGS, tls=tls_context(files.ca), addresses=parse_address_map(rules))
        with client(settings) as opened:
            assert opened.call("broker.example:10911", ROUTE).code == 0
            assert f"other.example:10911 (mapped to {replay.address})" in problem(opened, "other.example:10911")


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


def test_tls_on_one_side_only_fails(files: Files) -> None:
    with remoting() as replay, client(replace(SETTINGS, tls=tls_context(files.ca), timeout=0.3, retries=0)) as opened:
        failure(opened, replay.address)
        assert replay.requests == []
    with remoting(tls=server_tls(files)) as replay, client() as opened:
        assert "rocketmqs://" in (failure(opened, replay.address).hint or "")


Arguments = Callable[[Files, str], Sequence[str | None]]
CERTIFICATE = "cannot read the client certificate "


@every_case(
    ("arguments", "message"),
    [
        (lambda _, path: (path + ".no",), "cannot read the CA file {}.no: No such file or directory"),
        (lambda _, path: (path,), "cannot read the CA file {}: no certificate or crl found"),
        (lambda f, path: (f.ca, path), CERTIFICATE + "{}: PEM lib"),
        (lambda f, _: (f.ca, f.client_cert), CERTIFICATE + ".*cert.pem: PEM lib"),
        (lambda f, _: (f.ca, f.client_cert, f.foreign_cert), CERTIFICATE + ".*cert.pem with the key .*foreign.pem: key values mismatch"),
        (lambda f, _: (f.ca, None, f.client_key), "--client-key makes no sense without --client-cert"),
    ],
)  # fmt: skip
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
