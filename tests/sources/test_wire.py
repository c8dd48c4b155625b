"""Every way a server can misbehave ends in one clear line, by the deadline, and spoils no later answer.

Nothing here looks at a clock: where a server never ends, that the test does is the proof.
"""

import re
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.errors import EndpointError, ProtocolError, UsageError
from rmqlb.remoting.acl import Credentials
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand, request
from rmqlb.remoting.frame import RequestNotAllowedError, encode_frame
from rmqlb.sources.native.wire import RemotingClient, TimedSocket, parse_address, parse_address_map, tls_context
from rmqlb.sources.pace import Deadline, Pace
from rmqlb.sources.source import Access
from tests.support import replay_remoting as server
from tests.support.mismatches import every_case, refusal
from tests.support.replay_remoting import Fault, Replay, remoting, success

ROUTE = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="OrderEvents")
MEMBERS = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup="order-svc")
ACCESS = Access(timeout=10.0, pace=Pace(sleep=lambda _: None))


@contextmanager
def client(access: Access = ACCESS, *, tls: bool = False) -> Iterator[RemotingClient]:
    opened = RemotingClient(access, tls=tls)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def talking(replay: Replay, access: Access = ACCESS) -> Iterator[RemotingClient]:
    with remoting(replay), client(access) as opened:
        yield opened


def failure(opened: RemotingClient, address: str) -> EndpointError:
    caught = refusal(EndpointError, opened.call, address, ROUTE)
    assert caught.hint is not None
    assert (caught.message + caught.hint).isprintable()
    return caught


def problem(opened: RemotingClient, address: str) -> str:
    return failure(opened, address).message.removeprefix(f"{address} GET_ROUTEINFO_BY_TOPIC: ")


def answer_body(replay: Replay, asked: RemotingCommand) -> bytes:
    answer = replay.answer(asked)
    assert answer is not None
    assert answer.body is not None
    return answer.body


def test_a_large_answer_is_read() -> None:
    body = b"x" * 3_000_000
    with talking(replay := Replay(answers={(105, "topic=OrderEvents"): success(body)})) as opened:
        assert opened.call(replay.address, ROUTE).body == body


def test_a_connection_that_was_closed_meanwhile_is_replaced_without_a_retry() -> None:
    replay = Replay(close_after=1)
    with talking(replay, replace(ACCESS, retries=0)) as opened:
        for expected in (1, 2, 3):
            assert opened.call(replay.address, ROUTE).code == 0
            wait_until_closed(opened)
            assert (replay.connections, len(replay.requests)) == (expected, expected)


def wait_until_closed(opened: RemotingClient) -> None:
    """The server's end of the connection has arrived; reading it is what the next call does too."""
    (line,) = opened._lines.values()
    assert line.connection is not None
    connection = line.connection[0]._socket
    connection.settimeout(10)
    assert connection.recv(1) == b""


def test_threads_take_turns_on_a_connection_and_get_their_own_answers() -> None:
    def echo(request: RemotingCommand) -> RemotingCommand:
        return success(asked=request.ext_fields["topic"])

    topics = [f"T{number}" for number in range(40)]
    replay = Replay(answers={(105, f"topic={topic}"): echo for topic in topics})
    with talking(replay) as opened, ThreadPoolExecutor(8) as pool:
        asked = (request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic) for topic in topics)
        answered = pool.map(lambda one: opened.call(replay.address, one).ext_fields["asked"], asked)
        assert list(answered) == topics
        assert (len(replay.requests), replay.requests_under_way.most, replay.connections) == (40, 1, 1)


def test_closing_ends_a_call_that_is_under_way_and_nothing_can_be_called_afterwards() -> None:
    asked = threading.Event()

    def never(_: RemotingCommand) -> RemotingCommand:
        asked.set()
        replay.stop.wait()
        return success()

    replay = Replay(answers={(105, "topic=OrderEvents"): never})
    with talking(replay, replace(ACCESS, timeout=600.0)) as opened, ThreadPoolExecutor(1) as pool:
        call = pool.submit(opened.call, replay.address, ROUTE)
        assert asked.wait(10)
        opened.close()
        assert isinstance(call.exception(10), EndpointError)
        opened.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            opened.call(replay.address, ROUTE)
    assert len(replay.requests) == 1


def test_nothing_but_reads_is_sent_and_the_server_of_these_tests_would_notice() -> None:
    with talking(replay := Replay()) as opened:
        for code in (10, 17, 40, 215, 9999):
            with pytest.raises(RequestNotAllowedError):
                opened.call(replay.address, RemotingCommand(code=code))
        assert opened.call(replay.address, ROUTE).code == 0
        assert [request.code for request in replay.requests] == [105]
        connection = TimedSocket(*parse_address(replay.address), Deadline(10))
        connection.send(encode_frame(RemotingCommand(code=17)), Deadline(10))
        assert b"not a read" in connection.receive(Deadline(10))
        connection.close()
        assert replay.forbidden == [17]
        replay.forbidden.clear()  # or the server itself would fail


PLAIN = Credentials("rocketmq2", "12345678")


def signing(of: Credentials) -> Access:
    account = {"access_key": of.access_key, "security_token": of.security_token}
    return replace(ACCESS, secret_key=lambda: of.secret_key, **account)


def test_every_request_is_signed_and_a_wrong_signature_is_the_callers_answer() -> None:
    with_body = RemotingCommand(code=ROUTE.code, ext_fields=ROUTE.ext_fields, body=b"{}")
    for credentials in (PLAIN, Credentials("rocketmq2", "a secret", "a token")):
        replay = Replay(credentials=credentials)
        with talking(replay, signing(credentials)) as opened:
            assert [opened.call(replay.address, request).code for request in (ROUTE, MEMBERS, with_body)] == [0] * 3
        assert {request.ext_fields["AccessKey"] for request in replay.requests} == {"rocketmq2"}
    for wrong in (ACCESS, signing(Credentials("rocketmq2", "another")), signing(Credentials("other", "12345678"))):
        with talking(replay := Replay(credentials=PLAIN), wrong) as opened:
            response = opened.call(replay.address, ROUTE)
        assert (response.code, "AclException" in (response.remark or "")) == (ResponseCode.SYSTEM_ERROR, True)


def test_addresses_are_host_and_port() -> None:
    for text, default_port, expected in (
        ("127.0.0.1:9876", None, ("127.0.0.1", 9876)),
        ("namesrv-0.example", 9876, ("namesrv-0.example", 9876)),
        ("namesrv_0:1", 9876, ("namesrv_0", 1)),
        ("localhost:65535", None, ("localhost", 65535)),
        ("[::1]:9876", None, ("::1", 9876)),
        ("[2001:db8::7]", 9876, ("2001:db8::7", 9876)),
        ("[fe80::1%eth0]:10911", None, ("fe80::1%eth0", 10911)),
        ("[::ffff:192.0.2.1]:1", None, ("::ffff:192.0.2.1", 1)),
        ("bücher.example:9876", None, ("bücher.example", 9876)),
    ):
        assert parse_address(text, default_port) == expected


MALFORMED = [
    *("", ":", ":9876", "host:", "host:0", "host:65536", "host:99999999", "host:port", "host:-1", "host:+1", "host:1 "),
    *("::1", "::1:9876", "[::1", "[]:9876", "[host]:9876", "a b:1", "a/b:1", "user@host:1", "host:1:2", "http://h:1"),
    *("host:\u0661", "h\n:1", "\x1b[2J:1", "h\udce9:1", "x" * 500 + " :1"),
]


@every_case("text", MALFORMED)
def test_what_is_no_address_is_refused_in_one_line(text: str) -> None:
    for default_port in (9876, None):
        with pytest.raises(UsageError, match="is not the address of a server") as caught:
            parse_address(text, default_port)
        assert caught.value.message.isprintable()
        assert len(caught.value.message) < 450
        assert "HOST:PORT" in (caught.value.hint or "")


def test_a_broker_address_that_is_none_is_the_far_sides_fault() -> None:
    with client(replace(ACCESS, map_address=("10.0.0.7:*=*",))) as opened:
        for text in [*MALFORMED, "host", "10.0.0.7:10911"]:
            error = failure(opened, text)
            assert error.message.endswith(" is not the address of a server")
            assert "--map-address" in (error.hint or "")
        assert error.message.startswith("'10911'"), "what a rule made of it is named"


RULES = """
    10.0.0.7:10911=127.0.0.1:20911   10.0.0.7:10911       127.0.0.1:20911
    10.0.0.7:1091=127.0.0.1:20911    10.0.0.7:10911       10.0.0.7:10911
    *:10911=127.0.0.1:20911          10.0.0.7:10911       127.0.0.1:20911
    *:10912=127.0.0.1:20911          10.0.0.7:10911       10.0.0.7:10911
    10.0.0.*:*=gw-*.example:*        10.0.0.7:10911       gw-7.example:10911
    10.*.*.*:*=b*.example:1*         10.0.0.7:10911       b7.example:110911
    10.0.0.7:*=*                     10.0.0.7:10911       10911
    *=127.0.0.1:20911                10.0.0.7:10911       127.0.0.1:20911
    10.0.0.*:1*911=gw:2*911          10.0.0.7:10911       gw:20911
    10.0.0.7:10911*=gw:10*           10.0.0.7:10911       gw:10
    **:*=gw:*                        10.0.0.7:10911       gw:10911
    [2001:db8::*]:*=10.0.0.*:*       [2001:db8::7]:10911  10.0.0.7:10911
    broker-a:*=[::1]:*               broker-a:10911       [::1]:10911
    1*1:1=gw:1                       1:1                  1:1
"""


@every_case(("rule", "address", "expected"), [line.split() for line in RULES.strip().splitlines()])
def test_a_rule_leads_an_address_where_it_says(rule: str, address: str, expected: str) -> None:
    assert parse_address_map([rule]).apply(address) == expected


MALFORMED_RULES = {
    "is not FROM=TO": ("10.0.0.7:10911", "", "=127.0.0.1:1", "10.0.0.7:1=", "=", "a:1=b:1=c:1"),
    "has more stars in TO than in FROM": ("10.0.0.7:10911=gw:*", "10.0.0.*:1=*.gw:*"),
    "has an address without a port": ("10.0.0.7=127.0.0.1", "10.0.0.7:10911=127.0.0.1", "10.0.0.7=127.0.0.1:20911"),
}


@every_case(("problem", "rules"), MALFORMED_RULES.items())
def test_a_malformed_rule_is_refused(problem: str, rules: tuple[str, ...]) -> None:
    for rule in rules:
        caught = refusal(UsageError, parse_address_map, ["*:1=gw:1", rule])
        assert caught.message == f"--map-address: {rule!r} {problem}"
        assert "--map-address '10.0.0.*:*=" in (caught.hint or "")


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=12))
def test_stars_take_what_greedy_groups_of_a_regular_expression_take(pattern: str, address: str) -> None:
    addresses = parse_address_map([f":{pattern}=:" + "<*>" * pattern.count("*")])
    match = re.fullmatch("(.*)".join(map(re.escape, pattern.split("*"))), address)
    mapped = address if match is None else "".join(f"<{star}>" for star in match.groups())
    assert addresses.apply(":" + address) == ":" + mapped


def test_a_long_address_from_the_far_side_takes_linear_time() -> None:
    assert parse_address_map(["*a*a*a*a*a*a*b:*=gw:*"]).apply("a" * 1_000_000) == "a" * 1_000_000


SOON = replace(ACCESS, timeout=0.3)
GO_AWAY = server.refusing(ResponseCode.GO_AWAY, "please go away")
NOT_IN_TIME = "no complete answer within 0.3 s"
NOT_CONNECTED = "cannot connect within 0.3 s"
RESET = "the connection broke: Connection reset by peer"
CLOSED = "the connection broke: it was closed before the complete answer arrived"
PASSING = [
    (server.reset, RESET), (server.reset_mid_frame, RESET), (server.closed, CLOSED), (server.closed_mid_frame, CLOSED),
    (GO_AWAY, "GO_AWAY: the server is shutting down"),
]  # fmt: skip


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def waiting(slept: list[float]) -> Access:
    return replace(ACCESS, pace=Pace(sleep=slept.append, jitter=lambda: 0.5))


@pytest.mark.parametrize(("fault", "expected"), PASSING)
def test_a_fault_that_may_pass_is_asked_again_on_fresh_connections(
    fault: Fault, expected: str, waiting: Access, slept: list[float]
) -> None:
    with talking(replay := Replay(faults={"*": fault}), waiting) as opened:
        assert problem(opened, replay.address) == expected
        assert (len(replay.requests), replay.connections) == (3, 3)
        assert slept == [0.1, 0.2]
        for _again in range(2):
            replay.faults["*"] = server.once(fault, "*")
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert len(replay.requests) == 7


def test_a_refused_connection_is_tried_again_within_the_deadline(waiting: Access, slept: list[float]) -> None:
    with server.refusing_address() as address, client(waiting) as opened:
        assert problem(opened, address) == "cannot connect: Connection refused"
    assert slept == [0.1, 0.2]
    slept.clear()
    patient = replace(ACCESS, timeout=0.3, retries=20, pace=Pace(sleep=slept.append, jitter=lambda: 1.0))
    with talking(replay := Replay(faults={"*": server.closed}), patient) as opened:
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
        assert ("did not send" in (error.hint or "")) == (fault is server.with_wrong_opaque)
        assert (len(replay.requests), replay.connections) == (1, 1)
        del replay.faults["*"]
        assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
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
    with unaccepting() as address, client(SOON, tls=True) as opened:
        assert problem(opened, address) == NOT_CONNECTED, "a handshake that never ends"
    if sys.platform != "linux":
        return  # other systems refuse what does not fit the backlog
    with unaccepting(0) as address, ExitStack() as stack, client(SOON) as opened:
        for filler in (stack.enter_context(socket.socket()) for _ in range(4)):
            filler.setblocking(False)
            filler.connect_ex(parse_address(address))
        assert problem(opened, address) == NOT_CONNECTED, "a connection that never stands"


@every_case(("fault", "expected"), [
    (server.with_length(lambda _: -1), "frame length -1 is not between 4 and 16777212"),
    (server.with_length(lambda _: 20), "header length"),
    (server.with_header(b"{"), "header: Input data was truncated"),
    (server.with_header(b'{"code":"secret"}'), "header"),
    (server.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "frame length 1213486160 is not between 4 and 16777212"),
    (server.raw(b"\x15\x03\x01\x00\x02\x02\x46"), "frame length 352518400 is not between 4 and 16777212"),
    (server.raw(b"\0\0\0\x10\x07\0\0\0"), "serialize type 7 is neither 0 (JSON) nor 1 (ROCKETMQ)"),
])  # fmt: skip
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


def test_what_follows_an_answer_is_never_taken_for_another() -> None:
    with talking(replay := Replay(faults={105: server.with_length(lambda length: length - 7)})) as opened:
        assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)[:-7]
        assert opened.call(replay.address, MEMBERS).body == answer_body(replay, MEMBERS)
        assert replay.connections == 2
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


def test_a_resolver_without_an_answer_is_given_up_and_a_host_that_is_not_found_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, waiting: Access, slept: list[float]
) -> None:
    over = threading.Event()
    resolving(monkeypatch, lambda _real, _port: over.wait() and [])  # type: ignore[arg-type, return-value]
    with client(SOON) as opened:
        assert problem(opened, "broker-a:10911") == NOT_CONNECTED
    over.set()

    def fails(_real: LookUp, _port: int) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolving(monkeypatch, fails)
    with client(waiting) as opened:
        assert problem(opened, "broker-a:1") == "cannot connect: Name or service not known"
        for host in ("a..b", "x" * 64):
            assert problem(opened, f"{host}:1") == "cannot connect: the host name is invalid"
    assert slept == []


def test_a_host_with_several_addresses_is_reached_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(real: LookUp, port: int) -> list[Any]:
        with server.refusing_address() as refusing:
            refused = real(*parse_address(refusing), type=socket.SOCK_STREAM)
        return [*refused, *real("127.0.0.1", port, type=socket.SOCK_STREAM)]

    resolving(monkeypatch, several)
    with talking(replay := Replay(), replace(ACCESS, retries=0)) as opened:
        assert opened.call(f"broker-a:{parse_address(replay.address)[1]}", ROUTE).code == 0


def test_a_deadline_that_has_passed_stops_every_operation() -> None:
    passed = Deadline(0)
    with remoting() as replay:
        address = parse_address(replay.address)
        connection = TimedSocket(*address, Deadline(10))
        for operation in (
            lambda: TimedSocket(*address, passed),
            lambda: connection.send(b"x", passed),
            lambda: connection.receive(passed),
        ):
            with pytest.raises(TimeoutError):
                operation()
        connection.close()
    assert replay.requests == []


AUTHORITY, OTHER = trustme.CA(), trustme.CA()
SHOWN, OWN = AUTHORITY.issue_cert("127.0.0.1", "broker.example"), AUTHORITY.issue_cert("rmqlb@example.com")


class Files(NamedTuple):
    ca: str
    other_ca: str
    client_cert: str
    client_key: str
    foreign_cert: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    foreign = OTHER.issue_cert("rmqlb@example.com").private_key_and_cert_chain_pem
    blobs = (AUTHORITY.cert_pem, OTHER.cert_pem, OWN.cert_chain_pems[0], OWN.private_key_pem, foreign)
    found = Files(*(str(folder / f"{name}.pem") for name in Files._fields))
    for path, blob in zip(found, blobs, strict=True):
        blob.write_to_path(path)
    return found


def server_tls(*, client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SHOWN.configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED if client_certificate else ssl.CERT_NONE
    return context


@contextmanager
def secured(served: ssl.SSLContext, **given: Any) -> Iterator[tuple[RemotingClient, Replay]]:
    with remoting(tls=served) as replay, client(replace(ACCESS, **given), tls=True) as opened:
        yield opened, replay


def test_tls_with_the_right_ca_answers_and_keeps_its_connection(files: Files) -> None:
    with secured(server_tls(), ca_file=files.ca) as (opened, replay):
        for _ in range(3):
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 1
    context = tls_context(files.ca, files.client_cert, files.client_key)
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    own = {"client_cert": files.client_cert, "client_key": files.client_key}
    with secured(server_tls(client_certificate=True), ca_file=files.ca, **own) as (opened, replay):
        assert opened.call(replay.address, ROUTE).code == 0


UNKNOWN_CA = ("unable to get local issuer certificate", "self-signed certificate in certificate chain")
ANOTHER_NAME = "certificate is not valid for '{}'"


@every_case(("ca", "name", "reasons", "hint"), [
    ("other_ca", None, UNKNOWN_CA, "--ca-file"),
    (None, None, UNKNOWN_CA, "--ca-file"),
    *(("ca", name, (ANOTHER_NAME.format(name),), "--tls-name") for name in ("other.example", "127.0.0.2")),
])  # fmt: skip
def test_a_server_that_cannot_be_trusted_is_asked_nothing(
    files: Files, ca: str | None, name: str | None, reasons: Sequence[str], hint: str
) -> None:
    with secured(server_tls(), ca_file=getattr(files, ca) if ca else None, tls_name=name) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert error.message.endswith(tuple(reasons))
        assert hint in (error.hint or "")
        assert (replay.requests, replay.connections) == ([], 1)


def test_a_mapped_address_does_not_change_the_name_in_the_certificate(files: Files) -> None:
    with remoting(tls=server_tls()) as replay:
        rules = (f"broker.example:10911={replay.address}", f"other.example:10911={replay.address}")
        with client(replace(ACCESS, ca_file=files.ca, map_address=rules), tls=True) as opened:
            assert opened.call("broker.example:10911", ROUTE).code == 0
            assert f"other.example:10911 (mapped to {replay.address})" in problem(opened, "other.example:10911")


@every_case("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@every_case("foreign", [False, True])
def test_without_the_right_client_certificate_tls_fails(files: Files, version: ssl.TLSVersion, foreign: bool) -> None:
    served = server_tls(client_certificate=True)
    served.maximum_version = version
    with secured(served, ca_file=files.ca, client_cert=files.foreign_cert if foreign else None) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert "alert" in error.message
        assert "--client-cert" in (error.hint or "")
        assert replay.requests == []


def test_tls_on_one_side_only_fails(files: Files) -> None:
    quick = replace(ACCESS, ca_file=files.ca, timeout=0.3, retries=0)
    with remoting() as replay, client(quick, tls=True) as opened:
        failure(opened, replay.address)
        assert replay.requests == []
    with remoting(tls=server_tls()) as replay, client() as opened:
        assert "rocketmqs://" in (failure(opened, replay.address).hint or "")


Arguments = Callable[[Files, str], Sequence[str | None]]
CERTIFICATE = "cannot read the client certificate "


@every_case(("arguments", "message"), [
    (lambda _, path: (path + ".no",), "cannot read the CA file {}.no: No such file or directory"),
    (lambda _, path: (path,), "cannot read the CA file {}: no certificate or crl found"),
    (lambda f, path: (f.ca, path), CERTIFICATE + "{}: PEM lib"),
    (lambda f, _: (f.ca, f.client_cert), CERTIFICATE + ".*client_cert.pem: PEM lib"),
    (lambda f, _: (f.ca, f.client_cert, f.foreign_cert), CERTIFICATE + ".*client_cert.pem with the key .*foreign_cert.pem: key values mismatch"),
    (lambda f, _: (f.ca, None, f.client_key), "--client-key needs --client-cert"),
])  # fmt: skip
def test_files_that_cannot_be_used_are_named(files: Files, tmp_path: Path, arguments: Arguments, message: str) -> None:
    path = tmp_path / "not.pem"
    path.write_text("nothing")
    with pytest.raises(UsageError, match=f"^{message.format(path)}$"):
        tls_context(*arguments(files, str(path)))


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(files: Files, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form

    key = form.load_pem_private_key(Path(files.client_key).read_bytes(), None)
    encryption = form.BestAvailableEncryption(b"canary")
    locked = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)
    (tmp_path / "locked.pem").write_bytes(locked)
    with pytest.raises(UsageError, match="the key of the client certificate has a password"):
        tls_context(files.ca, files.client_cert, str(tmp_path / "locked.pem"))
