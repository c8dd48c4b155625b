"""Whatever a server does, it ends in time, in bounded memory, and in one line that says what happened and where."""

from __future__ import annotations

import gzip
import socket
import zlib
from typing import Any

from rmqlb.errors import EndpointError, ProtocolError
from rmqlb.model.snapshot import Everything, Wanted
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import (
    Fault,
    Replay,
    cut_short,
    dashboard,
    dripping_body,
    dripping_header,
    endless,
    endless_headers,
    envelope,
    failure,
    giving,
    once,
    raw,
    reset,
    silent,
)

from .dashboards import CLUSTER, GROUPS, PROGRESS, ROUTE, RUNNING, TOPICS, error_of, fetch

SKEWED = Wanted(topics=("Skewed",))
ORDER_SVC = Wanted(group="order-svc")
MB = 1 << 20
NOT_IN_TIME = "no whole answer within 0.3 s"
BOMB = gzip.compress(bytes(20 * MB))
HTML = b"\n<!DOCTYPE html>\n<html><body>Welcome to nginx</body></html>"


def deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


PASSING: dict[str, tuple[Fault, type[EndpointError], str]] = {
    "reset": (reset, ProtocolError, "the connection broke: "),
    "closed without a word": (
        raw(),
        ProtocolError,
        "the connection broke: Server disconnected without sending a response.",
    ),
    "silent": (silent, EndpointError, NOT_IN_TIME),
    "cut short": (
        cut_short,
        ProtocolError,
        "the connection broke: peer closed connection without sending complete message body",
    ),
    "a header that drips": (dripping_header, EndpointError, NOT_IN_TIME),
    "a body that drips": (dripping_body, EndpointError, NOT_IN_TIME),
    "headers without end": (endless_headers, ProtocolError, "the connection broke: "),
    "not HTTP": (raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), ProtocolError, "the connection broke: illegal status line"),
    "a broken header": (
        raw(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
        ProtocolError,
        "the connection broke: illegal header line",
    ),
    "two lengths": (
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}}"),
        ProtocolError,
        "the connection broke: conflicting Content-Length",
    ),
    "a broken chunk": (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
        ProtocolError,
        "the connection broke: illegal chunk header",
    ),
    "503": (giving(b"", 503), EndpointError, "HTTP 503"),
    "502": (giving(HTML, 502), EndpointError, "HTTP 502"),
    "429": (giving(b"", 429), EndpointError, "HTTP 429"),
    "504": (giving(b"", 504), EndpointError, "HTTP 504"),
}
LASTING: dict[str, tuple[Fault, type[EndpointError], str]] = {
    "endless": (endless, ProtocolError, "larger than 1 MB"),
    "invalid JSON": (giving(b'{"status":0,"data":'), ProtocolError, "not JSON: Input data was truncated"),
    "no bytes": (giving(b""), ProtocolError, "not JSON: Input data was truncated"),
    "no UTF-8": (giving(b'{"status":0,"data":"\xff"}'), ProtocolError, "not JSON: it is not UTF-8 text"),
    "HTML": (giving(HTML, headers={"Content-Type": "text/html"}), ProtocolError, "an HTML page instead of JSON"),
    "deep JSON": (giving(b'{"status":0,"data":' + b"[" * 100_000), ProtocolError, "not JSON: nested deeper than 256"),
    "JSON of another kind": (giving(b"[1]"), ProtocolError, "not a Dashboard's answer"),
    "JSON of another service": (giving(b'{"status":"UP"}'), ProtocolError, "not a Dashboard's answer"),
    "an error in the envelope": (
        giving(failure("java.lang.IllegalStateException: boom\n\tat a.b")),
        EndpointError,
        "boom",
    ),
    "an error without a reason": (giving(b'{"status":-1,"data":null,"errMsg":null}'), EndpointError, "no reason given"),
    "401": (giving(b"", 401), EndpointError, "refused (HTTP 401)"),
    "403": (giving(b"", 403), EndpointError, "HTTP 403"),
    "404": (giving(HTML, 404), EndpointError, "HTTP 404"),
    "500": (giving(b"", 500), EndpointError, "HTTP 500"),
    "304": (giving(b"", 304), EndpointError, "HTTP 304"),
    "a bomb": (giving(BOMB, headers={"Content-Encoding": "gzip"}), ProtocolError, "larger than 1 MB"),
    "a cut gzip body": (
        giving(gzip.compress(b"{}")[:-3], headers={"Content-Encoding": "gzip"}),
        ProtocolError,
        "the compressed data is cut short",
    ),
    "a gzip body that is none": (
        giving(b"\x1f\x8b{}", headers={"Content-Encoding": "gzip"}),
        ProtocolError,
        "the compressed data is damaged",
    ),
    "br": (
        giving(b"\x0b\x01\x80{}\x03", headers={"Content-Encoding": "br"}),
        ProtocolError,
        "the answer is packed as 'br', which was not asked for",
    ),
    "packed twice": (
        giving(BOMB, headers={"Content-Encoding": "gzip, gzip"}),
        ProtocolError,
        "the answer is packed as 'gzip, gzip', which was not asked for",
    ),
}
QUICK: dict[str, Any] = {"timeout": 0.3, "retries": 0, "max_bytes": MB}


@every_case("name", [*PASSING, *LASTING])
def test_a_fault_is_one_line_that_says_what_happened_and_where(name: str) -> None:
    fault, kind, reason = (PASSING | LASTING)[name]
    with dashboard(Replay(faults={"*": fault})) as replay:
        error = error_of(replay.url, SKEWED, **(QUICK if reason == NOT_IN_TIME else QUICK | {"timeout": 20.0}))
    assert isinstance(error, kind)
    assert isinstance(error, ProtocolError) == (kind is ProtocolError)
    assert error.message.startswith(f"GET {replay.url}{ROUTE}: {reason}")
    assert len(error.message) < 300


def test_nobody_who_listens_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = error_of(url, SKEWED, **QUICK)
    assert error.message == f"GET {url}{ROUTE}: cannot connect: Connection refused"
    assert error.hint == "is this the address and is it up?"


@every_case("host", ["a" * 70 + ".example", "..", ".a", "xn--"])
def test_a_name_that_no_host_can_have_is_one_line(host: str) -> None:
    error = error_of(f"http://{host}", SKEWED)
    assert isinstance(error, EndpointError)
    assert error.message == f"GET http://{host}{ROUTE}: cannot connect: no host can have this name"


def test_a_body_as_fast_as_the_wire_still_has_a_deadline() -> None:
    with dashboard(Replay(faults={"*": endless})) as replay:
        error = error_of(replay.url, SKEWED, timeout=0.3, retries=0, max_bytes=1 << 40)
    assert error.message.endswith(NOT_IN_TIME)


@every_case("encoding", ["gzip", "x-gzip", "GZIP", "deflate", "identity"])
def test_a_body_packed_without_being_asked_is_unpacked(encoding: str) -> None:
    body = envelope({"queueDatas": [{"brokerName": "a"}]})
    packed = {"identity": body, "deflate": deflate(body)}.get(encoding, gzip.compress(body))
    with dashboard(Replay(faults={"*": giving(packed, headers={"Content-Encoding": encoding})})) as replay:
        assert fetch(replay, SKEWED).route("Skewed").queue_datas[0].broker_name == "a"


@every_case("name", sorted(PASSING.keys() - {"silent", "a header that drips", "a body that drips"}))
def test_after_a_passing_fault_a_read_is_tried_again(name: str) -> None:
    replay = Replay()
    replay.faults[ROUTE] = once(PASSING[name][0], ROUTE)
    with dashboard(replay):
        assert fetch(replay, SKEWED, retries=1).route("Skewed")
    assert len(replay.asked) == 2


@every_case("name", sorted(LASTING.keys() - {"endless", "a bomb"}))
def test_a_lasting_fault_is_not_tried_again(name: str) -> None:
    with dashboard(Replay(faults={"*": LASTING[name][0]})) as replay:
        error_of(replay.url, SKEWED, retries=5)
    assert len(replay.asked) == 1


def test_waits_double_and_are_shaken() -> None:
    waits: list[float] = []
    with dashboard(Replay(faults={"*": giving(b"", 503)})) as replay:
        error_of(replay.url, SKEWED, retries=6, sleep=waits.append, jitter=lambda: 0.5)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 2.5]


@every_case(
    ("asked", "waited"), [("1", 1.0), ("1000000000", 5.0), ("-1", 0.0), ("soon", 0.0), ("²", 0.0), ("9" * 400, 5.0)]
)
def test_a_server_may_ask_for_a_wait_but_not_for_a_long_one(asked: str, waited: float) -> None:
    waits: list[float] = []
    fault = giving(b"", 503, {"Retry-After": asked})
    with dashboard(Replay(faults={"*": fault})) as replay:
        error_of(replay.url, SKEWED, retries=1, sleep=waits.append)
    assert waits == [waited]


@every_case("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with dashboard() as other:
        target = f"{other.url}{ROUTE}?topic=Skewed"
        with dashboard(Replay(faults={"*": giving(b"", status, {"Location": target})})) as replay:
            error = error_of(replay.url, SKEWED, **QUICK)
    assert error.message == f"GET {replay.url}{ROUTE}: redirected to {target}"
    assert error.hint == "redirects are not followed; use that URL"
    assert (other.asked, other.posted) == ([], [])
    assert len(replay.asked) == 1


def test_a_member_that_is_not_reached_in_time_is_noted() -> None:
    with dashboard(Replay(faults={RUNNING: silent})) as replay:
        snapshot = fetch(replay, ORDER_SVC, timeout=0.3, retries=0)
    assert len(snapshot.unread) == 3
    assert {part.reason for part in snapshot.unread} == {f"GET {replay.url}{RUNNING}: {NOT_IN_TIME}"}
    assert len(snapshot.group("order-svc").queues) == 27


def test_bytes_that_are_no_answer_end_the_reading_even_for_one_member() -> None:
    with dashboard(Replay(faults={RUNNING: giving(HTML)})) as replay:
        error = error_of(replay.url, ORDER_SVC, **QUICK)
    assert error.message == f"GET {replay.url}{RUNNING}: an HTML page instead of JSON"


def test_what_is_under_way_is_waited_for_and_nothing_more_is_asked() -> None:
    replay = Replay(faults={ROUTE: giving(HTML)})
    with dashboard(replay):
        error_of(replay.url, Wanted(topics=tuple(f"T{i}" for i in range(200))), **QUICK)
        asked = len(replay.asked)
    assert asked < 200
    assert len(replay.asked) == asked


def test_offsets_that_cannot_be_read_do_not_spoil_the_rest() -> None:
    with dashboard(Replay(faults={PROGRESS: giving(b"", 500)})) as replay:
        snapshot = fetch(replay, ORDER_SVC, **QUICK)
    assert snapshot.unread[0].reason == f"GET {replay.url}{PROGRESS}: HTTP 500"
    assert snapshot.group("order-svc").client_ids is not None


def test_a_group_that_nobody_can_be_asked_about_has_a_reason_of_its_own() -> None:
    nobody: dict[str, object] = {"clusterInfo": {"brokerAddrTable": {}}}
    answers = {TOPICS: {"topicList": ["Gone"]}, GROUPS: [{"group": "g"}], CLUSTER: nobody}
    faults: dict[str, Fault] = {path: giving(envelope(data)) for path, data in answers.items()}
    with dashboard(Replay(faults=faults | {ROUTE: giving(failure("CODE: 17  DESC: no route"))})) as replay:
        unread = fetch(replay, Wanted(everything=Everything())).unread
    assert [part.reason.removeprefix(replay.url) for part in unread] == [
        "it is listed and has no route",
        ": no broker reports the consumers of group g: there is no broker to ask",
    ]
