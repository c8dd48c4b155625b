from __future__ import annotations

import gzip
import socket
import zlib
from typing import Any

from rmqlb.errors import ProtocolError
from rmqlb.model.snapshot import Everything, Wanted
from tests.support import replay_dashboard as server
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Fault, Replay, dashboard

from . import dashboards as of

MB = 1 << 20
BROKE = "the connection broke: "
NOT_IN_TIME = "no whole answer within 0.3 s"
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
    (data(b"[" * 100_000), True, "not JSON: nested deeper than 256"),
    (server.giving(b"[1]"), True, "not a Dashboard's answer"),
    (server.giving(b'{"status":"UP"}'), True, "not a Dashboard's answer"),
    (server.giving(server.failure("java.lang.IllegalStateException: boom\n\tat a.b")), False, "boom"),
    (server.giving(b'{"status":-1,"data":null,"errMsg":null}'), False, "no reason given"),
    (server.giving(b"", 401), False, "refused (HTTP 401)"),
    *((server.giving(HTML, status), False, f"HTTP {status}") for status in (403, 404, 500)),
    (server.giving(b"", 304), False, "HTTP 304"),
    (packed(gzip.compress(b"{}")[:-3]), True, "the compressed data is cut short"),
    (packed(b"\x1f\x8b{}"), True, "the compressed data is damaged"),
    (packed(b"\x0b\x01\x80{}\x03", "br"), True, "the answer is packed as 'br', which was not asked for"),
    (packed(BOMB, "gzip, gzip"), True, "the answer is packed as 'gzip, gzip', which was not asked for"),
]


@every_case(("fault", "is_protocol", "reason"), [*PASSING, *SLOW, *LASTING])
def test_a_fault_is_one_line_that_says_what_happened_and_where(fault: Fault, is_protocol: bool, reason: str) -> None:
    is_lasting = any(fault is each for each, _, _ in LASTING)
    settings = QUICK | {"timeout": 0.3 if reason == NOT_IN_TIME else 20.0, "retries": 5 if is_lasting else 0}
    with dashboard(Replay(faults={"*": fault})) as replay:
        error = of.error_of(replay.url, of.SKEWED, **settings)
    assert len(replay.asked) == 1, "a lasting fault is not tried again"
    assert isinstance(error, ProtocolError) == is_protocol
    assert error.message.startswith(f"GET {replay.url}{of.ROUTE}: {reason}")
    assert len(error.message) < 300


@every_case("fault", [fault for fault, _, _ in PASSING])
def test_after_a_passing_fault_a_read_is_tried_again(fault: Fault) -> None:
    replay = Replay()
    replay.faults[of.ROUTE] = server.once(fault, of.ROUTE)
    with dashboard(replay):
        assert of.fetch(replay, of.SKEWED, retries=1).route("Skewed")
    assert len(replay.asked) == 2


def test_an_address_where_nobody_listens_or_that_cannot_be_is_one_line() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = of.error_of(url, of.SKEWED, **QUICK)
    assert error.message == f"GET {url}{of.ROUTE}: cannot connect: Connection refused"
    assert error.hint == "is this the address and is it up?"
    for host in ("a" * 70 + ".example", "..", ".a", "xn--"):
        message = of.endpoint_error(f"http://{host}")
        assert message == f"GET http://{host}{of.ROUTE}: cannot connect: no host can have this name"


def test_a_body_as_fast_as_the_wire_still_has_a_deadline() -> None:
    with dashboard(Replay(faults={"*": server.endless})) as replay:
        assert of.endpoint_error(replay.url, timeout=0.3, retries=0, max_bytes=1 << 40).endswith(NOT_IN_TIME)


def test_a_body_packed_without_being_asked_is_unpacked() -> None:
    body = server.envelope({"queueDatas": [{"brokerName": "a"}]})
    bodies = {
        **dict.fromkeys(("gzip", "x-gzip", "GZIP"), gzip.compress(body)),
        "deflate": deflate(body),
        "identity": body,
    }
    for encoding, sent in bodies.items():
        with dashboard(Replay(faults={"*": packed(sent, encoding)})) as replay:
            assert of.fetch(replay, of.SKEWED).route("Skewed").queue_datas[0].broker_name == "a"


def test_waits_double_and_are_shaken_and_a_server_may_ask_for_one_but_not_for_a_long_one() -> None:
    waits: list[float] = []
    with dashboard(Replay(faults={"*": server.giving(b"", 503)})) as replay:
        of.endpoint_error(replay.url, retries=6, sleep=waits.append, jitter=lambda: 0.5)
        assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 2.5]
        for asked, waited in {"1": 1.0, "1000000000": 5.0, "-1": 0.0, "soon": 0.0, "²": 0.0, "9" * 400: 5.0}.items():
            replay.faults["*"] = server.giving(b"", 503, {"Retry-After": asked})
            of.endpoint_error(replay.url, retries=1, sleep=waits.append)
            assert waits[6:] == [waited]
            del waits[6:]


@every_case("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with dashboard() as other:
        target = f"{other.url}{of.ROUTE}?topic=Skewed"
        with dashboard(Replay(faults={"*": server.giving(b"", status, {"Location": target})})) as replay:
            error = of.error_of(replay.url, of.SKEWED, **QUICK)
    assert error.message == f"GET {replay.url}{of.ROUTE}: redirected to {target}"
    assert error.hint == "redirects are not followed; use that URL"
    assert (other.asked, other.posted, len(replay.asked)) == ([], [], 1)


def test_a_part_without_an_answer_is_noted_and_bytes_that_are_no_answer_end_the_reading() -> None:
    with dashboard(Replay(faults={of.RUNNING: server.silent, of.PROGRESS: server.giving(b"", 500)})) as replay:
        snapshot = of.fetch(replay, of.ORDER_SVC, timeout=0.3, retries=0)
        replay.faults[of.RUNNING] = server.giving(HTML)
        message = of.endpoint_error(replay.url, of.ORDER_SVC, **QUICK)
    url = f"GET {replay.url}"
    late = [f"{url}{of.RUNNING}: {NOT_IN_TIME}"] * 3
    assert [part.reason for part in snapshot.unread] == [f"{url}{of.PROGRESS}: HTTP 500", *late]
    assert snapshot.group("order-svc").client_ids is not None
    assert message == f"{url}{of.RUNNING}: an HTML page instead of JSON"


def test_what_is_under_way_is_waited_for_and_nothing_more_is_asked() -> None:
    with dashboard(Replay(faults={of.ROUTE: server.giving(HTML)})) as replay:
        of.endpoint_error(replay.url, Wanted(topics=tuple(f"T{i}" for i in range(200))), **QUICK)
        asked = len(replay.asked)
    assert asked == len(replay.asked) < 200


def test_a_group_that_nobody_can_be_asked_about_has_a_reason_of_its_own() -> None:
    nobody: dict[str, object] = {"clusterInfo": {"brokerAddrTable": {}}}
    answers = {of.TOPICS: {"topicList": ["Gone"]}, of.GROUPS: [{"group": "g"}], of.CLUSTER: nobody}
    faults: dict[str, Fault] = {path: server.giving(server.envelope(each)) for path, each in answers.items()}
    faults[of.ROUTE] = server.giving(server.failure("CODE: 17  DESC: no route"))
    with dashboard(Replay(faults=faults)) as replay:
        unread = of.fetch(replay, Wanted(everything=Everything())).unread
    assert [part.reason.removeprefix(replay.url) for part in unread] == [
        "it is listed and has no route",
        ": no broker reports the consumers of group g: there is no broker to ask",
    ]
