"""A loopback HTTP server that answers as the captured Dashboard did, and misbehaves where it is told to."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.mismatches import FIGURES

CAPTURES = Path(__file__).parent.parent / "data" / "dashboard"
KEYS = ("topic", "consumerGroup", "clientId", "address")

Fault = Callable[["Handler"], None]


def captured_answers() -> dict[tuple[str, str], bytes]:
    """(path, the parameters that matter) → body, of every capture that was asked for as it should be."""
    answers = {}
    for entry in json.loads((CAPTURES / "manifest.json").read_text()):
        target = urlsplit(entry["target"])
        if entry["name"] not in ("connection-order-svc-without-address", "group-order-svc"):
            answers[target.path, _key(target.query, KEYS[:-1])] = (CAPTURES / f"{entry['name']}.json").read_bytes()
    return answers


def envelope(data: object) -> bytes:
    return json.dumps({"status": 0, "data": data, "errMsg": None}).encode()


def failure(message: str) -> bytes:
    """A Dashboard's error, which comes with HTTP 200."""
    return json.dumps({"status": -1, "data": None, "errMsg": message}).encode()


@dataclass
class Replay:
    # (path, `key=value&…` of the parameters among KEYS) → body; without the address for any address
    answers: dict[tuple[str, str], bytes] = field(default_factory=captured_answers)
    faults: dict[str, Fault] = field(default_factory=dict)  # path of a GET, or * for all → how to misbehave instead
    post_faults: dict[str, Fault] = field(default_factory=dict)  # path of a POST → likewise
    asked: list[str] = field(default_factory=list)  # method and target of every request
    posted: list[bytes] = field(default_factory=list)  # body of every POST
    login: tuple[str, str] | None = None  # (user, password) to ask for before anything else, or None
    takes_json: bool = True  # logs in by JSON with a CSRF token, as new Dashboards do, else by a form
    stop: threading.Event = field(default_factory=threading.Event)  # set when the test is over: endless answers end
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    replay: Replay

    def do_GET(self) -> None:
        self.replay.asked.append(f"GET {self.path}")
        target = urlsplit(self.path)
        fault = self.replay.faults.get(target.path) or self.replay.faults.get("*")
        if fault is not None:
            fault(self)
        elif target.path == "/rocketmq-dashboard/csrf-token" and self.replay.takes_json:
            self.give(envelope({"headerName": "X-XSRF-TOKEN", "token": "t0ken"}))
        elif self.replay.login and "JSESSIONID=in" not in self.headers.get("Cookie", ""):
            self.give(b"", 302, {"Location": "/#/login?redirect=x"})
        else:
            self._answer(target.path, target.query)

    def do_POST(self) -> None:
        self.replay.asked.append(f"POST {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.replay.posted.append(body)
        if self.path in self.replay.post_faults:
            return self.replay.post_faults[self.path](self)
        is_json = self.headers.get("Content-Type") == "application/json"
        if is_json != self.replay.takes_json or (is_json and self.headers.get("X-XSRF-TOKEN") != "t0ken"):
            return self.give(failure("Required request parameter 'username' is not present"))
        given = json.loads(body) if is_json else {k: v[0] for k, v in parse_qs(body.decode()).items()}
        if self.replay.login != (given["username"], given["password"]):
            return self.give(failure("Bad username or password!"))
        cookie = {"Set-Cookie": "JSESSIONID=in; Path=/; HttpOnly"}
        return self.give(envelope({"loginUserName": given["username"]}), headers=cookie)

    def give(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Quiet."""

    def _answer(self, path: str, query: str) -> None:
        answers = self.replay.answers
        body = answers.get((path, _key(query, KEYS))) or answers.get((path, _key(query, KEYS[:-1])))
        missing = {
            "/consumer/consumerConnection.query": "CODE: 206  DESC: the consumer group[x] not online BROKER: 127.0.0.1:10911",
            "/topic/route.query": "org.apache.X: CODE: 17  DESC: No topic route info in name server for the topic: x",
        }
        if body is not None:
            self.give(body)
        elif path in missing or any(known == path for known, _ in answers):
            self.give(failure(missing.get(path, "CODE: 206  DESC: no such thing was captured")))
        else:
            self.give(b"{}", 404)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""


@contextmanager
def dashboard(replay: Replay | None = None, tls: SSLContext | None = None) -> Iterator[Replay]:
    replay = replay or Replay()
    handler = type("BoundHandler", (Handler,), {"replay": replay})
    server = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    replay.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield replay
    finally:
        replay.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()
        FIGURES["requests to loopback Dashboards"] += len(replay.asked)
        FIGURES["of them neither GET nor the login"] += len(replay.asked) - sum(map(_is_a_read, replay.asked))
    assert all(map(_is_a_read, replay.asked)), replay.asked


def _is_a_read(asked: str) -> bool:
    return asked.startswith("GET ") or asked == "POST /login/login.do"


def _key(query: str, keys: tuple[str, ...]) -> str:
    values = parse_qs(query)
    return "&".join(f"{key}={values[key][0]}" for key in keys if key in values)


def reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def silent(handler: Handler) -> None:
    handler.replay.stop.wait()
    handler.close_connection = True


def _begin(handler: Handler, name: str, value: str) -> None:
    handler.send_response(200)
    handler.send_header(name, value)
    handler.end_headers()


def cut_short(handler: Handler) -> None:
    _begin(handler, "Content-Length", "5000")
    handler.wfile.write(b'{"status":0,"data":')
    handler.close_connection = True


def endless(handler: Handler) -> None:
    _begin(handler, "Transfer-Encoding", "chunked")
    while not handler.replay.stop.is_set():
        handler.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")


def _drip(handler: Handler) -> None:
    while not handler.replay.stop.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def dripping_header(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(handler)


def dripping_body(handler: Handler) -> None:
    _begin(handler, "Content-Length", "1000000")
    _drip(handler)


def giving(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Fault:
    return lambda handler: handler.give(body, status, headers)


def once(fault: Fault, path: str) -> Fault:

    def first(handler: Handler) -> None:
        del handler.replay.faults[path]
        fault(handler)

    return first


def raw(*parts: bytes) -> Fault:
    def send(handler: Handler) -> None:
        for part in parts:
            handler.wfile.write(part)
        handler.close_connection = True

    return send


def endless_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.replay.stop.is_set():
        handler.wfile.write(b"X-More: and more\r\n" * 1000)
