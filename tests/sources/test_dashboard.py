import datetime as dt
import gzip
import json
import socket
import ssl
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
from msgspec.structs import replace

from rmqlb.errors import DataError, EndpointError, ProtocolError, RmqlbError
from rmqlb.model.group import QueueState, Seen
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.route import BrokerData, QueueData
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.sources.dashboard import READ_PATHS, DashboardReads
from rmqlb.sources.live import LiveSource
from rmqlb.sources.opening import open_source
from rmqlb.sources.pace import Pace
from rmqlb.sources.source import Access
from tests.support import replay_dashboard as server
from tests.support.mismatches import every_case, refusal
from tests.support.replay_dashboard import Fault, Handler, Replay, dashboard, envelope, failure, giving, reset, silent

from .captures import queue

NOW = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
A, B = "127.0.0.1:10911", "127.0.0.1:20911"
CONNECTIONS = "/consumer/consumerConnection.query"
PROGRESS = "/consumer/queryTopicByConsumer.query"
RUNNING = "/consumer/consumerRunningInfo.query"
GROUPS = "/consumer/groupList.query"
CLUSTER = "/cluster/list.query"
ROUTE = "/topic/route.query"
TOPICS = "/topic/list.query"
SKEWED = Wanted(topics=("Skewed",))
ORDER_SVC = Wanted(group="order-svc")


def source(url: str, **access: Any) -> LiveSource:
    usual = {"pace": Pace(sleep=lambda _: None, jitter=lambda: 0.0), "clock": lambda: NOW}
    return LiveSource(DashboardReads(url, Access(**{**usual, **access})))


def fetch(replay: Replay, wanted: Wanted, **access: Any) -> ClusterSnapshot:
    return source(replay.url, **access).fetch(wanted)


def error_of(url: str, wanted: Wanted, **access: Any) -> RmqlbError:
    return refusal(RmqlbError, source(url, **access).fetch, wanted)


def endpoint_error(url: str, wanted: Wanted = SKEWED, **access: Any) -> str:
    error = error_of(url, wanted, **access)
    assert isinstance(error, EndpointError)
    return error.message


def connections(*client_ids: str, topics: Iterable[str] = ("T",)) -> bytes:
    table: dict[str, dict[str, str]] = {topic: {} for topic in (*topics, "%RETRY%g")}
    items = [{"clientId": client_id, "clientAddr": "x:1"} for client_id in client_ids]
    kinds = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    return envelope({"connectionSet": items, "subscriptionTable": table, **kinds})


def running(*queues: str, **properties: str) -> bytes:
    """A consumer's own report, with the queues that it holds: `running("T a 0")`."""
    keys = ("MessageQueue [topic={}, brokerName={}, queueId={}]".format(*queue.split()) for queue in queues)
    return envelope({"properties": properties, "mqTable": {key: {"droped": False} for key in keys}})


def progress(*queues: str, owner: str | None = None) -> bytes:
    """Offsets of a group's queues: `progress("T a 0")`."""
    offsets = {"brokerOffset": 10, "consumerOffset": 7, "clientInfo": owner}
    named = (queue.split() for queue in queues)
    return envelope(
        [{"topic": t, "queueStatInfoList": [{"brokerName": b, "queueId": int(i), **offsets}]} for t, b, i in named]
    )


G = Wanted(topics=(), group="g")
IDS = tuple(f"192.0.2.2@inst{i}" for i in range(3))


def replay_of(**answers: bytes) -> Replay:
    replay = Replay()
    paths = {
        "a": (CONNECTIONS, f"consumerGroup=g&address={A}"),
        "b": (CONNECTIONS, f"consumerGroup=g&address={B}"),
        "progress": (PROGRESS, "consumerGroup=g"),
        **{f"of_{client_id}": (RUNNING, f"consumerGroup=g&clientId={client_id}") for client_id in "xyz"},
    }
    replay.answers |= {paths[name]: body for name, body in answers.items()}
    return replay


def test_a_wanted_topics_route_is_read_and_an_unknown_one_gets_a_did_you_mean() -> None:
    with dashboard() as replay:
        snapshot = fetch(replay, SKEWED)
        assert replay.asked == ["GET /topic/route.query?topic=Skewed"]
        error = error_of(replay.url, Wanted(topics=("OrderEvent",)))
    sighting = snapshot.routes["Skewed"]
    assert sighting.route.queue_datas == (QueueData("broker-b", 3, 3, 6), QueueData("broker-a", 6, 4, 6))
    assert sighting.route.broker("broker-a") == BrokerData("DefaultCluster", "broker-a", {0: A})
    assert sighting.seen == Seen(f"{replay.url}{ROUTE}", NOW)
    assert (snapshot.kind, snapshot.endpoint, snapshot.taken_at) == ("dashboard", replay.url, NOW)
    assert isinstance(error, DataError)
    assert error.message == f"topic OrderEvent has no route at {replay.url}"
    assert (error.hint or "").startswith("did you mean OrderEvents")


def test_names_are_quoted_on_their_way_and_a_path_before_the_dashboard_is_kept() -> None:
    topic, replay = "a&b=c%41/../#é", Replay()
    replay.answers[ROUTE, f"topic={topic}"] = replay.answers[ROUTE, "topic=Skewed"]
    replay.answers["/console" + ROUTE, "topic=Skewed"] = replay.answers[ROUTE, "topic=Skewed"]
    with dashboard(replay):
        assert list(fetch(replay, Wanted(topics=(topic,))).routes) == [topic]
        assert source(f"{replay.url}/console/").fetch(SKEWED).routes
    assert replay.asked[-1] == "GET /console/topic/route.query?topic=Skewed"


def test_a_whole_group_is_read() -> None:
    with dashboard() as replay:
        snapshot = fetch(replay, ORDER_SVC)
    group = snapshot.group("order-svc")
    assert sorted(snapshot.routes) == ["OrderEvents", "Skewed"]
    assert (group.client_ids, group.topics) == (IDS, ("%RETRY%order-svc", "OrderEvents", "Skewed"))
    assert (group.consume_type, group.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert (group.consume_from_where, group.seen) == ("CONSUME_FROM_FIRST_OFFSET", Seen(replay.url, NOW))
    assert len(group.queues) == 2 + 16 + 9
    assert group.queues[queue("OrderEvents broker-b 3")] == QueueState(frozenset({IDS[2]}), 32, 32, 1795226477721)
    assert {state.lag for state in group.queues.values()} == {0}


def test_what_consumers_report_goes_before_what_the_dashboard_says() -> None:
    both, strategy = connections("x", "y"), "o.AllocateMessageQueueAveragely@1"
    replay = replay_of(
        a=both, b=both, progress=progress("T a 0", "T a 1", "T a 2", owner="x"),
        of_x=running("T a 0", "T a 1", allocateMessageQueueStrategy=strategy, PROP_CONSUMEORDERLY="true"),
        of_y=running("T a 1"),
    )  # fmt: skip
    with dashboard(replay):
        group, with_evidence = (fetch(replay, wanted).group("g") for wanted in (G, replace(G, evidence=True)))
    assert {q.queue_id: state.owners for q, state in group.queues.items()} == {0: {"x"}, 1: {"x", "y"}, 2: set()}
    assert {state.lag for state in group.queues.values()} == {3}
    assert group.reports["x"].strategy_class == "AllocateMessageQueueAveragely"
    assert {name: report.evidence for name, report in group.reports.items()} == {"x": None, "y": None}
    held = tuple(ProcessQueue(queue(name), dropped=False) for name in ("T a 0", "T a 1"))
    found = ConsumerEvidence(read_at=int(NOW.timestamp() * 1000), queues=held, orderly=True)
    assert with_evidence.reports["x"].evidence == found


SILENCE = {
    "CODE: 207  DESC: consumer <g> <x> Timeout: RemotingTimeoutException": True,
    "org.apache.rocketmq.remoting.exception.RemotingTimeoutException: wait response on the channel timeout": True,
    "CODE: 1  DESC: invoke consumer <g> <x> Exception: RemotingTimeoutException": False,
    "CODE: 206  DESC: not online": False,
    "the consumer timed out": False,
}


@every_case(("text", "is_silence"), SILENCE.items())
def test_a_consumer_that_does_not_answer_in_time_is_not_one_that_is_refused(text: str, is_silence: bool) -> None:
    with dashboard(replay_of(a=connections("x"), b=connections("x"), of_x=failure(text))) as replay:
        unread = fetch(replay, G).unread
    assert [(part.detail, part.no_answer) for part in unread if part.kind == "member"] == [("x", is_silence)]


def test_stack_traces_are_asked_for_by_name() -> None:
    thread = "ConsumeMessageThread_1                  "
    stack = f"{thread}TID: 5 STATE: RUNNABLE\n{thread}a.B.c(B.java:1)\n\n"
    answer = envelope({"properties": {}, "mqTable": {}, "jstack": stack})
    with dashboard(replay_of(a=connections("x", "y"), b=connections("x"), of_x=answer)) as replay:
        found = source(replay.url).ask_stacks("g", ["x"])
    assert found == {"x": ("ConsumeMessageThread_1 RUNNABLE\na.B.c(B.java:1)",)}
    asked = [each for each in replay.asked if RUNNING in each]
    assert asked == [f"GET {RUNNING}?consumerGroup=g&clientId=x&jstack=true"]


def test_no_broker_that_answers_is_an_error_and_owners_are_only_asked_for_when_wanted() -> None:
    with dashboard(replay_of(a=failure("connect to A failed"), b=failure("connect to B failed"))) as replay:
        message = endpoint_error(replay.url, G)
    assert message == f"{replay.url}: no broker reports the consumers of group g: connect to B failed"
    with dashboard() as replay:
        group = fetch(replay, replace(ORDER_SVC, owners=False)).group("order-svc")
    assert (group.client_ids, group.queues, group.reports) == (IDS, {}, {})
    assert not any(PROGRESS in asked or RUNNING in asked for asked in replay.asked)


def test_the_master_of_each_broker_is_asked_else_its_first_slave() -> None:
    addresses = {"a": {"1": "slave:1", "0": "master:1"}, "b": {"2": "slave:3", "1": "slave:2"}, "c": {}}
    table = {name: {"brokerName": name, "brokerAddrs": each} for name, each in addresses.items()}
    replay = Replay()
    replay.answers[CLUSTER, ""] = envelope({"clusterInfo": {"brokerAddrTable": table}})
    replay.answers[CONNECTIONS, "consumerGroup=g"] = connections("x")
    with dashboard(replay):
        group = fetch(replay, replace(G, owners=False)).group("g")
    assert [view.broker_addr for view in group.views or ()] == ["master:1", "slave:2"]


def test_only_reads_are_asked_for_and_all_by_get() -> None:
    with dashboard() as replay:
        for wanted in (ORDER_SVC, Wanted()):
            source(replay.url).fetch(wanted)
        for wanted in (Wanted(group="nope"), Wanted(topics=("nope",))):
            error_of(replay.url, wanted)
        methods, targets = zip(*(asked.split(" ", 1) for asked in replay.asked), strict=True)
        assert set(methods) == {"GET"}
        assert {urlsplit(target).path for target in targets} == READ_PATHS
        assert all(path.endswith(".query") for path in READ_PATHS)
        with pytest.raises(AssertionError):
            DashboardReads(replay.url, Access())._data("/consumer/deleteSubGroup.do", {})
        assert len(replay.asked) == len(targets)


def test_a_proxy_and_a_netrc_of_the_environment_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login admin password hunter2\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    shown: list[str | None] = []

    def refuse(handler: Handler) -> None:
        shown.append(handler.headers.get("Authorization"))
        handler.give(b"", 403)

    with dashboard(Replay(faults={"*": refuse})) as replay:
        endpoint_error(replay.url)
    assert shown == [None]


def test_progress_is_told_as_answers_come() -> None:
    told: list[tuple[str, int, int]] = []
    with dashboard() as replay:
        source(replay.url).fetch(Wanted(), lambda what, done, total: told.append((what, done, total)))
    assert told == [(replay.url, 0, 0), ("routes", 0, 2), ("routes", 1, 2)]


LOGIN, CSRF = "/login/login.do", "/rocketmq-dashboard/csrf-token"
PASSWORD = "s3cret&=ü%41+ x"
ADMIN: dict[str, Any] = {"user": "admin", "password": lambda _: PASSWORD}
WRONG: dict[str, Any] = {"user": "admin", "password": lambda _: "wr0ng-one"}


def asking_login(*, is_old: bool = False, post_fault: Fault | None = None, **faults: Fault) -> Replay:
    """A Dashboard that wants a login: after 2.1.0 by JSON with a CSRF token, before by a form."""
    paths = {"route": ROUTE, "csrf": CSRF}
    replay = Replay(login=("admin", PASSWORD), takes_json=not is_old)
    replay.faults = {paths[name]: fault for name, fault in faults.items()}
    replay.post_faults = {LOGIN: post_fault} if post_fault is not None else {}
    return replay


def test_a_login_is_sent_once_where_it_is_asked_for_and_without_credentials_is_an_error() -> None:
    with dashboard(asking_login()) as new, dashboard(asking_login(is_old=True)) as old:
        source(new.url, **ADMIN).fetch(Wanted(group="order-svc"))
        source(old.url, **ADMIN).fetch(SKEWED)
    assert [json.loads(body) for body in new.posted] == [{"username": "admin", "password": PASSWORD}]
    assert parse_qs(old.posted[-1].decode()) == {"username": ["admin"], "password": [PASSWORD]}
    assert {asked for asked in (*new.asked, *old.asked) if not asked.startswith("GET ")} == {f"POST {LOGIN}"}
    with dashboard() as replay:
        source(replay.url, user="admin", password=lambda _: pytest.fail("nobody asked for the password")).fetch(SKEWED)
    assert (replay.posted, replay.asked) == ([], [f"GET {ROUTE}?topic=Skewed"])
    with dashboard(asking_login()) as replay:
        error = error_of(replay.url, SKEWED)
    assert (error.code, error.message) == ("login-needed", f"{replay.url} needs a login")
    assert (
        error.hint == "pass the user with --user or in the URL, the password in RMQLB_PASSWORD or with --password-file"
    )
    assert replay.posted == []


@every_case(("name", "token"), [("X-XSRF-TOKEN", "tökén"), ("X-Ü", "t"), ("X\r\nY: z", "t"), (1, 2)])
def test_a_token_that_no_header_can_carry_ends_in_one_line(name: object, token: object) -> None:
    with dashboard(asking_login(csrf=giving(envelope({"headerName": name, "token": token})))) as replay:
        endpoint_error(replay.url, **ADMIN)


@every_case("is_old", [False, True])
def test_a_wrong_password_is_one_line_and_a_new_dashboard_is_not_asked_in_another_way(is_old: bool) -> None:
    with dashboard(asking_login(is_old=is_old)) as replay:
        error = error_of(replay.url, SKEWED, **WRONG)
    assert error.message == f"{replay.url}: login of admin failed: Bad username or password!"
    assert (error.code, error.hint) == ("login-failed", "check user and password")
    assert len(replay.posted) == (2 if is_old else 1)


def test_a_login_is_sent_once_although_it_is_forgotten_or_ends_in_a_fault_and_never_elsewhere() -> None:
    with dashboard(asking_login(route=giving(b"", 302, {"Location": "/#/login?redirect=x"}))) as replay:
        message = endpoint_error(replay.url, **ADMIN)
    assert message == f"GET {replay.url}{ROUTE}: redirected to /#/login?redirect=x"
    assert len(replay.posted) == 1
    for fault in (reset, silent):
        with dashboard(asking_login(post_fault=fault)) as replay:
            message = endpoint_error(replay.url, timeout=0.3, retries=5, **ADMIN)
        assert message.startswith(f"POST {replay.url}{LOGIN}: ")
        assert len(replay.posted) == 1
    with dashboard() as other:
        elsewhere = giving(b"", 302, {"Location": f"{other.url}/login?service=x"})
        with dashboard(asking_login(route=elsewhere)) as replay:
            endpoint_error(replay.url, **ADMIN)
    assert (other.asked, other.posted) == ([], [])


def test_the_password_is_in_no_repr() -> None:
    assert "wr0ng-one" not in repr(Access(**WRONG))


@every_case(("url", "expected"), [("http://admin@{}", "admin"), ("http://j%40n@{}/", "j@n")])
def test_the_user_may_stand_in_the_url_and_is_shown_nowhere(url: str, expected: str) -> None:
    replay = asking_login()
    replay.login = (expected, f"of {expected}")
    with dashboard(replay):
        access = Access(password=lambda user: f"of {user}")
        snapshot = open_source(url.format(replay.url.removeprefix("http://")), access).fetch(SKEWED)
    assert (snapshot.endpoint, snapshot.routes["Skewed"].seen.where) == (replay.url, replay.url + ROUTE)


CA, OTHER_CA = trustme.CA(), trustme.CA()
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    CA.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def served_by(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def refused(context: ssl.SSLContext, scheme: str = "https", **settings: Any) -> str:
    with dashboard(tls=context) as replay:
        error = error_of(replay.url.replace("https", scheme), SKEWED, **settings)
    assert isinstance(error, EndpointError)
    assert replay.asked == []
    return f"{error.message.removeprefix(f'GET {replay.url}{ROUTE}: ')} | {error.hint}"


@every_case(("certificate", "reason"), [
    (OTHER_CA.issue_cert("127.0.0.1"), "certificate verify failed"),
    (CA.issue_cert("elsewhere.example"), "IP address mismatch"),
    (CA.issue_cert("127.0.0.2"), "IP address mismatch"),
    (CA.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO + dt.timedelta(days=9)), "has expired"),
])  # fmt: skip
def test_an_untrusted_server_is_asked_nothing(certificate: trustme.LeafCert, reason: str, ca_file: str) -> None:
    said = refused(served_by(certificate), ca_file=ca_file)
    assert said.startswith("TLS failed: ")
    assert reason in said
    assert said.endswith("| is the certificate's CA in --ca-file, or without --ca-file, among the system's CAs?")


def test_a_server_whose_ca_is_given_is_read_unless_it_has_an_old_version(ca_file: str) -> None:
    good = served_by(CA.issue_cert("127.0.0.1"))
    with dashboard(tls=good) as replay:
        assert fetch(replay, SKEWED, ca_file=ca_file).endpoint.startswith("https://127.0.0.1:")
    assert refused(good).startswith("TLS failed: ")
    refused(good, "http", timeout=1.0, retries=0)
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        good.minimum_version, good.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    refused(good, ca_file=ca_file, retries=0)


MB = 1 << 20
BROKE = "the connection broke: "
NOT_IN_TIME = "no complete answer within 0.3 s"
BOMB = gzip.compress(bytes(20 * MB))
HTML = b"\n<!DOCTYPE html>\n<html><body>Welcome to nginx</body></html>"
QUICK: dict[str, Any] = {"timeout": 0.3, "retries": 0, "max_bytes": MB}


def deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def http(rest: bytes) -> Fault:
    return server.raw(b"HTTP/1.1 200 OK\r\n" + rest)


def packed(body: bytes, encoding: str = "gzip") -> Fault:
    return server.giving(body, headers={"Content-Encoding": encoding})


def data(value: bytes) -> Fault:
    return server.giving(b'{"status":0,"data":' + value)


# The fault, whether what came is not the protocol, and the reason.
PASSING: list[tuple[Fault, bool, str]] = [
    (server.reset, True, BROKE),
    (server.raw(), True, BROKE + "Server disconnected without sending a response."),
    (server.cut_short, True, BROKE + "peer closed connection without sending complete message body"),
    (server.endless_headers, True, BROKE),
    (server.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), True, BROKE + "illegal status line"),
    (http(b"no colon\r\n\r\n"), True, BROKE + "illegal header line"),
    (http(b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}"), True, BROKE + "conflicting Content-Length"),
    (http(b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}"), True, BROKE + "illegal chunk header"),
    (server.giving(HTML, 502), False, "HTTP 502"),
    *((server.giving(b"", status), False, f"HTTP {status}") for status in (429, 503, 504)),
]
SLOW: list[tuple[Fault, bool, str]] = [
    *((fault, False, NOT_IN_TIME) for fault in (server.silent, server.dripping_header, server.dripping_body)),
    (server.endless, True, "larger than 1 MB"),
    (packed(BOMB), True, "larger than 1 MB"),
]
LASTING: list[tuple[Fault, bool, str]] = [
    (data(b""), True, "not JSON: Input data was truncated"),
    (server.giving(b""), True, "not JSON: Input data was truncated"),
    (data(b'"\xff"}'), True, "not JSON: it is not UTF-8 text"),
    (server.giving(HTML, headers={"Content-Type": "text/html"}), True, "an HTML page instead of JSON"),
    (data(b"[" * 100_000), True, "not JSON: nested deeper than 256 levels"),
    (server.giving(b"[1]"), True, "not an answer of a Dashboard"),
    (server.giving(b'{"status":"UP"}'), True, "not an answer of a Dashboard"),
    (server.giving(server.failure("java.lang.IllegalStateException: boom\n\tat a.b")), False, "boom"),
    (server.giving(b'{"status":-1,"data":null,"errMsg":null}'), False, "no reason given"),
    (server.giving(b"", 401), False, "refused (HTTP 401)"),
    *((server.giving(HTML, status), False, f"HTTP {status}") for status in (403, 404, 500)),
    (server.giving(b"", 304), False, "HTTP 304"),
    (packed(gzip.compress(b"{}")[:-3]), True, "the compressed data is cut short"),
    (packed(b"\x1f\x8b{}"), True, "the compressed data is damaged"),
    (packed(b"\x0b\x01\x80{}\x03", "br"), True, "the answer is compressed as 'br', which rmqlb did not request"),
    (packed(BOMB, "gzip, gzip"), True, "the answer is compressed as 'gzip, gzip', which rmqlb did not request"),
]


@every_case(("fault", "is_protocol", "reason"), [*PASSING, *SLOW, *LASTING])
def test_a_fault_is_one_line_that_says_what_happened_and_where(fault: Fault, is_protocol: bool, reason: str) -> None:
    is_lasting = any(fault is each for each, _, _ in LASTING)
    settings = QUICK | {"timeout": 0.3 if reason == NOT_IN_TIME else 20.0, "retries": 5 if is_lasting else 0}
    with dashboard(Replay(faults={"*": fault})) as replay:
        error = error_of(replay.url, SKEWED, **settings)
    assert len(replay.asked) == 1, "a lasting fault is not tried again"
    assert isinstance(error, ProtocolError) == is_protocol
    assert error.message.startswith(f"GET {replay.url}{ROUTE}: {reason}")
    assert len(error.message) < 300


@every_case("fault", [fault for fault, _, _ in PASSING])
def test_after_a_passing_fault_a_read_is_tried_again(fault: Fault) -> None:
    replay = Replay()
    replay.faults[ROUTE] = server.once(fault, ROUTE)
    with dashboard(replay):
        assert fetch(replay, SKEWED, retries=1).route("Skewed")
    assert len(replay.asked) == 2


def test_an_address_where_nobody_listens_or_that_cannot_be_is_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = error_of(url, SKEWED, **QUICK)
    assert error.message == f"GET {url}{ROUTE}: cannot connect: Connection refused"
    assert error.hint == "is the address right, and is the server up? rmqlb doctor tests each step"
    for host in ("a" * 70 + ".example", "..", ".a", "xn--"):
        message = endpoint_error(f"http://{host}")
        assert message == f"GET http://{host}{ROUTE}: cannot connect: the host name is invalid"


def test_a_body_as_fast_as_the_wire_still_has_a_deadline() -> None:
    with dashboard(Replay(faults={"*": server.endless})) as replay:
        assert endpoint_error(replay.url, timeout=0.3, retries=0, max_bytes=1 << 40).endswith(NOT_IN_TIME)


def test_a_body_packed_without_being_asked_is_unpacked() -> None:
    body = server.envelope({"queueDatas": [{"brokerName": "a"}]})
    bodies = {
        **dict.fromkeys(("gzip", "x-gzip", "GZIP"), gzip.compress(body)), "deflate": deflate(body), "identity": body,
    }  # fmt: skip
    for encoding, sent in bodies.items():
        with dashboard(Replay(faults={"*": packed(sent, encoding)})) as replay:
            assert fetch(replay, SKEWED).route("Skewed").queue_datas[0].broker_name == "a"


def test_waits_double_and_are_shaken_and_a_server_may_ask_for_one_but_not_for_a_long_one() -> None:
    waits: list[float] = []
    with dashboard(Replay(faults={"*": server.giving(b"", 503)})) as replay:
        endpoint_error(replay.url, retries=6, pace=Pace(sleep=waits.append, jitter=lambda: 0.5))
        assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 2.5]
        for asked, waited in {"1": 1.0, "1000000000": 5.0, "-1": 0.0, "soon": 0.0, "²": 0.0, "9" * 400: 5.0}.items():
            replay.faults["*"] = server.giving(b"", 503, {"Retry-After": asked})
            endpoint_error(replay.url, retries=1, pace=Pace(sleep=waits.append, jitter=lambda: 0.0))
            assert waits[6:] == [waited]
            del waits[6:]


@every_case("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with dashboard() as other:
        target = f"{other.url}{ROUTE}?topic=Skewed"
        with dashboard(Replay(faults={"*": server.giving(b"", status, {"Location": target})})) as replay:
            error = error_of(replay.url, SKEWED, **QUICK)
    assert error.message == f"GET {replay.url}{ROUTE}: redirected to {target}"
    assert error.hint == "rmqlb does not follow redirects; use that URL"
    assert (other.asked, other.posted, len(replay.asked)) == ([], [], 1)


def test_a_part_without_an_answer_is_noted_and_bytes_that_are_no_answer_end_the_reading() -> None:
    with dashboard(Replay(faults={RUNNING: server.silent, PROGRESS: server.giving(b"", 500)})) as replay:
        snapshot = fetch(replay, ORDER_SVC, timeout=0.3, retries=0)
        replay.faults[RUNNING] = server.giving(HTML)
        message = endpoint_error(replay.url, ORDER_SVC, **QUICK)
    url = f"GET {replay.url}"
    late = [f"{url}{RUNNING}: {NOT_IN_TIME}"] * 3
    assert [part.reason for part in snapshot.unread] == [f"{url}{PROGRESS}: HTTP 500", *late]
    assert snapshot.group("order-svc").client_ids is not None
    assert message == f"{url}{RUNNING}: an HTML page instead of JSON"


def test_what_is_under_way_is_waited_for_and_nothing_more_is_asked() -> None:
    with dashboard(Replay(faults={ROUTE: server.giving(HTML)})) as replay:
        endpoint_error(replay.url, Wanted(topics=tuple(f"T{i}" for i in range(200))), **QUICK)
        asked = len(replay.asked)
    assert asked == len(replay.asked) < 200


def test_a_group_that_nobody_can_be_asked_about_has_a_reason_of_its_own() -> None:
    nobody: dict[str, object] = {"clusterInfo": {"brokerAddrTable": {}}}
    answers = {TOPICS: {"topicList": ["Gone"]}, GROUPS: [{"group": "g"}], CLUSTER: nobody}
    faults: dict[str, Fault] = {path: server.giving(server.envelope(each)) for path, each in answers.items()}
    faults[ROUTE] = server.giving(server.failure("CODE: 17  DESC: no route"))
    with dashboard(Replay(faults=faults)) as replay:
        unread = fetch(replay, Wanted(everything=Everything())).unread
    assert [part.reason.removeprefix(replay.url) for part in unread] == [
        "it is listed, but has no route",
        ": no broker reports the consumers of group g: there is no broker to query",
    ]
