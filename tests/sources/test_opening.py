"""`rmqlb doctor`, and the protocol that a server speaks, on loopback servers."""

import socketserver
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trustme

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import EndpointError, UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.remoting.acl import Credentials
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.doctor import check_source
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.opening import open_source
from rmqlb.sources.source import Access
from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case, refusal
from tests.support.replay_dashboard import Replay as Site
from tests.support.replay_dashboard import dashboard, giving
from tests.support.replay_remoting import Replay, at, cluster, refusing, refusing_address, remoting, success

NOW = 2_000_000_000.0
QUICK = Access(timeout=2.0, retries=0)
RUNTIME = RequestCode.GET_BROKER_RUNTIME_INFO


def with_clock(server: Replay, seconds: float, days: str = "1,000") -> None:
    """The broker reports that its clock is so far from NOW."""
    began = round((NOW + seconds - int(days.replace(",", "")) * 86_400 - 2 * 3600 - 3 * 60 - 4) * 1000)
    runtime = f'"bootTimestamp":"{began}","runtime":"[ {days} days, 2 hours, 3 minutes, 4 seconds ]"'
    server.answers[RUNTIME, ""] = success(f'{{"table":{{{runtime}}}}}'.encode())


def steps(text: str, access: Access = QUICK) -> list[tuple[str, str, str]]:
    return [(each.step, each.status, each.code or "") for each in check_source(text, access, now=lambda: NOW)]


def works(*names: str) -> list[tuple[str, str, str]]:
    return [(name, "works", "") for name in names]


def left(*names: str) -> list[tuple[str, str, str]]:
    return [(name, "notTried", "") for name in names]


REACHED, BROKER = works("name", "port"), works("broker", "permissions", "clock")
LISTED = [*REACHED, *works("protocol", "NameServer")]


def test_each_step_of_a_cluster_fails_alone() -> None:
    with cluster() as (a, b):
        text, mapped = f"rocketmq://{a.address}", Access(timeout=2.0, map_address=(a.mapped, b.mapped))
        with_clock(a, 1.4)
        with_clock(b, -2.6, days="3")
        assert steps(text, mapped) == [
            *LISTED, *BROKER, *works("broker", "permissions"), ("clock", "fails", "clock-off"),
        ]  # fmt: skip
        with_clock(b, -2.4)
        a.answers[RUNTIME, ""] = success(b'{"table":{}}')
        assert steps(text, mapped) == [*LISTED, *works("broker", "permissions"), *left("clock"), *BROKER]
        b.faults[RequestCode.GET_CONSUME_STATS] = refusing(1, "org.apache.rocketmq.acl.common.AclException: no right")
        denied = [*works("broker"), ("permissions", "fails", "access-denied"), *left("clock")]
        assert steps(text, mapped)[-3:] == denied
        with refusing_address() as nowhere:
            lost = Access(timeout=2.0, map_address=(a.mapped, f"127.0.0.1:20911={nowhere}"))
            silent = check_source(f"{text},{nowhere}", lost)
    assert [each.code for each in silent if each.status == "fails"] == ["unreachable", "unreachable"]
    broker = next(each for each in silent if each.step == "broker" and each.status == "fails")
    assert (broker.server, broker.remedy) == (
        "broker-b 127.0.0.1:20911", "--map-address '127.0.0.1:20911=HOST:PORT' if it has another address from here",
    )  # fmt: skip


def test_a_name_server_that_refuses_or_is_none() -> None:
    with remoting(Replay(credentials=Credentials("k", "s"))) as server:
        text = f"rocketmq://{server.address}"
        refused = [*REACHED, *works("protocol"), ("NameServer", "fails", "access-denied"), *left("brokers")]
        assert steps(text) == refused
        server.credentials = None
        server.faults[RequestCode.GET_BROKER_CLUSTER_INFO] = refusing(3, "request type 106 not supported")
        broker = check_source(text, QUICK)[3]
    assert (broker.code, broker.remedy) == (
        "refused", "a broker or a Proxy answers at this port: name a NameServer, which listens on 9876 by default",
    )  # fmt: skip
    rest = left("port", "protocol", "NameServer", "brokers")
    assert steps("rocketmq://no-such-host.invalid:1") == [("name", "fails", "unreachable"), *rest]


def test_a_dashboard_a_proxy_and_a_file(tmp_path: Path) -> None:
    with dashboard(Site(login=("me", "s3cret"))) as site:
        login = [*works("protocol"), ("login", "fails", "login-needed"), *left("brokers", "permissions", "clock")]
        assert steps(site.url) == [*REACHED, *login]
        wrong = steps(site.url, Access(user="me", password=lambda _: "wrong"))
        assert wrong[3] == ("login", "fails", "login-failed")
        site.login = None
        clock = ("clock", "fails", "clock-off")
        with remoting() as broker:
            found = steps(site.url, Access(timeout=2.0, proxies=(broker.address,)))
    assert found == [
        *REACHED, *works("protocol", "login", "brokers", "permissions"), clock, ("Proxy", "fails", "endpoint"),
    ]  # fmt: skip
    assert steps(EXAMPLE) == works("file", "time")
    (old := tmp_path / "old.json").write_text(
        '{"schema": "rmqlb/snapshot", "formatVersion": "2.0", "data": {"topics": []}}'
    )
    assert steps(str(old)) == [*works("file"), *left("time")]
    refusal(UsageError, steps, "ftp://h")


def exits(code: int, *args: str) -> str:
    ran = run("doctor", *args)
    assert ran.code == code, ran.stdout + ran.stderr
    return ran.stdout.partition("\n")[0]


def test_the_first_line_and_the_exit_code_say_whether_it_works() -> None:
    with cluster() as (a, b), refusing_address() as nowhere:
        assert exits(0, *at([a, b])) == f"rocketmq://{a.address} works: 8 checks passed, 2 not tried"
        one = ("--map-address", a.mapped, "--map-address", f"127.0.0.1:20911={nowhere}")
        part = exits(ExitCode.DATA, "-n", f"{a.address};{nowhere}", *one)
        assert part.endswith(f"works, except for {nowhere}, broker-b: 2 of 9 checks fail, 5 not tried")
        assert exits(ExitCode.ENDPOINT, "-n", nowhere).startswith(f"rocketmq://{nowhere} does not work: cannot connect")
        http = exits(ExitCode.ENDPOINT, "-s", f"http://{a.address}")
        assert http.endswith(f"does not work: {a.address} uses RocketMQ's protocol, not HTTP")
    assert exits(0, "-s", EXAMPLE).endswith("works: 2 checks passed")
    assert exits(ExitCode.DATA, "-s", "no-such.json").startswith("no-such.json does not work: cannot read")


PLAIN = Access()


def endpoint(text: str, access: Access = PLAIN) -> str:
    source = open_source(text, access)
    assert isinstance(source, LiveSource)
    return source.reads.endpoint


def test_urls_are_shown_whole_and_without_a_user() -> None:
    for text, shown in (
        ("rocketmq://a", "rocketmq://a:9876"),
        ("rocketmq://a,b:1;c/", "rocketmq://a:9876,b:1,c:9876"),
        ("rocketmq://[::1]:9876", "rocketmq://[::1]:9876"),
        ("rocketmqs://a", "rocketmqs://a:9876"),
        ("http://me@h:8082/ctx/", "http://h:8082/ctx"),
        ("http://h:0", "http://h:0"),
    ):
        assert endpoint(text, Access(password=lambda _: "x")) == shown


NO_SOURCES = {
    "the source is empty": [""],
    "cannot read ftp:// sources": ["ftp://h"],
    "has no NameServer": ["rocketmq://"],
    "the source names a user": ["rocketmq://u:s3cret@h"],
    "contains a password": ["http://me:s3cret@h", "http://me:s3cret@h/rocketmq/nsaddr", "https://:s3cret@host/x"],
    "its login, host or port is malformed": ["http://me:s3cret/x@h", "http://me:s3cret\uff0fx@h"],
    "has no host": ["http://"],
    "names a user and perhaps a password": ["u:s3cret@h:9876", "//u:s3cret@h", "h:9876;u:s3cret@h:9876", "u:s3/s3cret@h:9876"],
}  # fmt: skip


@every_case(("words", "texts"), NO_SOURCES.items())
def test_what_cannot_be_a_source_is_refused_without_showing_a_secret(words: str, texts: list[str]) -> None:
    for text in texts:
        raised = refusal(UsageError, open_source, text, PLAIN)
        assert words in raised.message
        assert "s3cret" not in raised.message + (raised.hint or "")


def test_a_file_may_be_named_like_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u:x@h").write_text("{}")
    assert isinstance(open_source("u:x@h", PLAIN), DumpSource)


def test_an_address_server_leads_to_its_name_servers_without_the_user_or_a_signature() -> None:
    signed = Access(access_key="ak", secret_key=lambda: "sk")
    with remoting() as server, dashboard(Site()) as http:
        http.faults["/rocketmq/nsaddr"] = giving(f"{server.address}\n".encode())
        url = f"{http.url}/rocketmq/nsaddr"
        source = open_source(url, PLAIN)
        assert isinstance(source, LiveSource)
        assert isinstance(source.reads, NameServerReads)
        assert "OrderEvents" in source.fetch(Wanted(topics=("OrderEvents",))).routes
        assert endpoint(url.replace("://", "://me@")) == f"rocketmq://{server.address}"
        raised = refusal(UsageError, open_source, url, signed)
        assert raised.code == "hosts-over-http"
        assert endpoint(f"rocketmq://{server.address}", signed) in (raised.hint or "")


def test_an_address_server_that_lists_nothing_is_an_error() -> None:
    with dashboard(Site()) as http:
        for body in (b"", b"<html>", b'{"status":0}', b"a:9876;b:c", b"u@h:1", b";", b"x"):
            http.faults["/rocketmq/nsaddr"] = giving(body, 404 if body == b"x" else 200)
            refusal(EndpointError, open_source, f"{http.url}/rocketmq/nsaddr", PLAIN)


SCHEMES = ("rocketmq", "rocketmqs", "http", "https")
SAID: dict[str, Callable[[str], str]] = {
    "rocketmq": "{} uses RocketMQ's protocol".format,
    "rocketmqs": "{} uses RocketMQ's protocol over TLS".format,
    "http": "{} uses HTTP, not RocketMQ's protocol".format,
    "https": "{} uses HTTPS, not RocketMQ's protocol".format,
}
OVER_TLS = {("rocketmq", "rocketmqs"): "accepts only TLS", ("rocketmqs", "rocketmq"): "does not use TLS",
            ("http", "https"): "accepts only TLS", ("https", "http"): "does not use TLS"}  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    ca, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.cert_pem.write_to_path(path := tmp_path_factory.mktemp("ca") / "ca.pem")
    with remoting() as a, remoting(tls=context) as b, dashboard() as c, dashboard(tls=context) as d:
        yield str(path), dict(zip(SCHEMES, [a.address, b.address, c.url[7:], d.url[8:]], strict=True)), context


@every_case(("typed", "real"), [(typed, real) for typed in SCHEMES for real in SCHEMES])
def test_another_protocol_than_the_schemes_is_named(typed: str, real: str, servers: Any) -> None:
    ca_file, addresses, _ = servers
    where = addresses[real]
    source = open_source(f"{typed}://{where}", Access(timeout=1.0, retries=0, ca_file=ca_file))
    if typed == real:
        assert source.fetch(Wanted(topics=("OrderEvents",))).routes
        return
    raised = refusal(EndpointError, source.fetch, Wanted(topics=("OrderEvents",)))
    assert raised.code == "wrong-protocol"
    said = f"{where} {OVER_TLS[typed, real]}" if (typed, real) in OVER_TLS else SAID[real](where)
    assert raised.message.startswith(said)
    assert (raised.hint or "").startswith(f"write -s {real}://{where}")


def test_a_certificate_that_is_not_trusted_leads_to_no_other_protocol(servers: Any) -> None:
    """A default NameServer takes TLS and plain requests, so no hint suggests the scheme without TLS."""
    _, addresses, _ = servers
    for scheme in ("rocketmqs", "https"):
        source = open_source(f"{scheme}://{addresses[scheme]}", Access(timeout=1.0, retries=0))
        assert refusal(EndpointError, source.fetch, Wanted(topics=("T",))).code == "tls-failed"


HTTP2_SETTINGS = bytes.fromhex("000012040000000000000300000064000400100000000600002000")
"""The frame that a gRPC server sends first: its length, type 4, no flags, stream 0, and three settings."""


@contextmanager
def grpc_server(context: ssl.SSLContext | None = None) -> Iterator[str]:
    class Greeting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                connection = self.request if context is None else context.wrap_socket(self.request, server_side=True)
                connection.sendall(HTTP2_SETTINGS)
                connection.recv(1024)
                connection.close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@every_case(("scheme", "over_tls", "said"), [
    ("rocketmq", False, "uses gRPC, not RocketMQ's protocol"),
    ("http", False, "uses gRPC, not HTTP"),
    ("rocketmq", True, "uses gRPC over TLS, not RocketMQ's protocol"),
    ("rocketmqs", True, "uses gRPC over TLS, not RocketMQ's protocol over TLS"),
    ("https", True, "uses gRPC over TLS, not HTTPS"),
])  # fmt: skip
def test_a_proxys_port_for_grpc_is_named(scheme: str, over_tls: bool, said: str, servers: Any) -> None:
    ca_file, _, context = servers
    with grpc_server(context if over_tls else None) as where:
        source = open_source(f"{scheme}://{where}", Access(timeout=1.0, retries=0, ca_file=ca_file))
        raised = refusal(EndpointError, source.fetch, Wanted(topics=("T",)))
    assert (raised.code, raised.message) == ("wrong-protocol", f"{where} {said}")
    assert raised.hint == "name the NameServers with -n HOST:9876; pass a Proxy's remoting port with --proxy HOST:8080"
