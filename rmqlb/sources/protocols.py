"""The protocol of a server, for messages about a source with the wrong scheme.

A server is sent a NameServer's harmless question and `GET /`, without credentials. Certificates are not verified: the
answer only names the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rmqlb.errors import EndpointError, ProtocolError
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import request
from rmqlb.remoting.frame import Exchange
from rmqlb.sources.native.wire import TimedSocket
from rmqlb.sources.pace import Deadline

if TYPE_CHECKING:
    import ssl

SUSPECT = ("connection-broke", "no-answer", "protocol", "tls-failed")
"""Codes of errors behind which another protocol may be."""
_ANSWER_S = 1.0  # to connect and answer one request
_NAMES = {
    "rocketmq": "RocketMQ's protocol",
    "rocketmqs": "RocketMQ's protocol over TLS",
    "http": "HTTP",
    "https": "HTTPS",
    "grpc": "gRPC",
    "grpcs": "gRPC over TLS",
}
_HTTP = b"GET / HTTP/1.0\r\n\r\n"
_HTTP2_SETTINGS = b"\x04\x00\x00\x00\x00\x00"  # type, flags and stream of the first frame, after 3 bytes of its length
_TLS_RECORDS = (0x15, 0x16)  # alert, handshake


def wrong_protocol(
    scheme: str, where: str, host: str, port: int, timeout: float, *, trusted: bool
) -> EndpointError | None:
    """The error that names the protocol of this server, if it speaks another one than that of the scheme.

    Args:
        where: the server as the source names it; host and port may be mapped.
        trusted: False after a failed TLS handshake: a server whose TLS cannot be trusted is asked nothing.
    """
    seconds = min(timeout, _ANSWER_S)
    found = _spoken(scheme, host, port, seconds, trusted=trusted)
    if found is None or found == scheme:
        return None
    hint = f"write -s {found}://{where}"
    if found.startswith("grpc"):
        hint = "name the NameServers with -n HOST:9876; pass a Proxy's remoting port with --proxy HOST:8080"
    elif found.startswith("http") and scheme.startswith("rocketmq"):
        hint += " if it is a Dashboard; NameServers listen on 9876 by default"
    elif scheme.startswith("http") and found.startswith("rocketmq"):
        hint += " if it is a NameServer"
    problem = f"uses {_NAMES[found]}, not {_NAMES[scheme]}"
    if found.removesuffix("s") == scheme.removesuffix("s"):
        problem = "accepts only TLS" if found.endswith("s") else "does not use TLS"
    return ProtocolError(f"{where} {problem}", hint=hint, code="wrong-protocol")


def _spoken(scheme: str, host: str, port: int, seconds: float, *, trusted: bool) -> str | None:
    """The scheme that the server understands, as typed if it understands several.

    A server that was sent HTTP already is asked only whether it speaks RocketMQ's protocol.
    """
    family, is_tls = scheme.removesuffix("s"), scheme.endswith("s")
    probes = [_question()] if family == "http" else [_question(), _HTTP]
    try:
        plain = None if is_tls else _family(host, port, seconds, probes)
        # A server of HTTPS answers a plain request with HTTP's error 400.
        if plain in (None, "http") and _speaks_tls(host, port, seconds):
            return f"{_family(host, port, seconds, probes, tls=True) or family}s" if trusted else scheme
        return _family(host, port, seconds, [_question(), _HTTP]) if is_tls else plain
    except (OSError, ValueError):
        return None


def _family(host: str, port: int, seconds: float, questions: Sequence[bytes], *, tls: bool = False) -> str | None:
    """`rocketmq`, `http` or `grpc`; None is another protocol (raises TimeoutError if nothing is answered in time)."""
    late: list[TimeoutError] = []
    for question in questions:
        try:
            answer = _first_bytes(host, port, question, seconds, _unverified() if tls else None)
        except TimeoutError as error:
            late.append(error)
            continue
        except OSError:
            continue
        if answer.startswith(b"HTTP/"):
            return "http"
        if answer[3:9] == _HTTP2_SETTINGS:
            return "grpc"
        if answer[4:5] == b"\0" and answer[8:9] == b"{":  # a frame with a JSON header, like the request's
            return "rocketmq"
    if len(late) == len(questions) and not tls:
        raise late[0]
    return None


def _question() -> bytes:
    return Exchange().send(request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="TBW102"))


def _first_bytes(host: str, port: int, question: bytes, seconds: float, tls: ssl.SSLContext | None = None) -> bytes:
    deadline = Deadline(seconds)
    connection = TimedSocket(host, port, deadline, tls)
    try:
        connection.send(question, deadline)
        return connection.receive(deadline)
    finally:
        connection.close()


def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    import ssl

    sent = ssl.MemoryBIO()
    greeting = _unverified().wrap_bio(ssl.MemoryBIO(), sent)
    with suppress(ssl.SSLWantReadError):
        greeting.do_handshake()
    try:
        return _first_bytes(host, port, sent.read(), seconds)[:1] in map(bytes, zip(_TLS_RECORDS))
    except OSError:
        return False


def _unverified() -> ssl.SSLContext:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
