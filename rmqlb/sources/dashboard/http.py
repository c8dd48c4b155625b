"""HTTP for reading: every answer is bounded in time and size, and only reads are tried again.

httpx has no limit on the whole of an answer: a server that sends a byte a second, or 300 KB that unpack to 300 MB,
keeps it busy or fills the memory. So each attempt has a deadline that every read of its socket respects, bodies are
asked for unpacked, counted as they come, and unpacked here if the server packs them all the same.
"""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from rmqlb.errors import DocumentError, EndpointError, ProtocolError, UsageError
from rmqlb.sources.backoff import PassingFault, wait_before_retry
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, require_few_values
from rmqlb.sources.pace import Deadline

_TRY_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How to talk to an endpoint."""

    timeout: float = 5.0  # seconds that one attempt may take from connecting to the last byte
    retries: int = 2
    ca_file: str | None = None  # the only CA certificates to trust, or None for the system's
    max_bytes: int = DEFAULT_LIMIT
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    deadline: Deadline | None = None  # after which nothing is asked any more, whatever `timeout` is


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, whole."""

    where: str
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = field(repr=False)


class HttpClient:
    """A client of one endpoint; may be used by several threads (raises UsageError)."""

    def __init__(self, base_url: str, settings: HttpSettings) -> None:
        self._settings = settings
        self._base = base_url.rstrip("/")
        self._client = httpx.Client(
            transport=_BoundedTransport(_tls(settings.ca_file)),
            timeout=settings.timeout,
            trust_env=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "rmqlb"},
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """Read, and after a passing fault read again (raises EndpointError, ProtocolError)."""
        whole = self._settings.deadline
        for attempt in range(self._settings.retries + 1):
            if whole is not None:
                whole.must_leave_time_for(f"GET {self._base}{path}")
            last = attempt == self._settings.retries
            try:
                answer = self._once("GET", path, params=dict(params or {}))
            except PassingFault as fault:
                if whole is not None:
                    whole.must_leave_time_for(f"GET {self._base}{path}")
                if last:
                    raise fault.error from None
                asked = None
            else:
                if answer.status not in _TRY_AGAIN or last:
                    return answer
                asked = answer.headers.get("retry-after")
            self._wait(attempt, asked)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def post(
        self, path: str, *, json: object = None, form: dict[str, str] | None = None, headers: dict[str, str]
    ) -> Answer:
        """Send once, never again: only for logging in."""
        try:
            return self._once("POST", path, json=json, data=form, headers=headers)
        except PassingFault as fault:
            raise fault.error from None

    def _wait(self, attempt: int, retry_after: str | None) -> None:
        asked = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        wait_before_retry(attempt, self._settings.sleep, self._settings.jitter, asked=asked)

    def _once(self, method: str, path: str, **arguments: Any) -> Answer:
        where = f"{method} {self._base}{path}"
        limit = self._settings.max_bytes
        whole = self._settings.deadline
        with _deadline(self._settings.timeout if whole is None else min(self._settings.timeout, whole.rest)):
            try:
                with self._client.stream(method, self._base + path, **arguments) as response:
                    body = collect(response.iter_raw(), limit, where)
            except httpx.TimeoutException:
                error = EndpointError(
                    f"{where}: no whole answer within {self._settings.timeout:g} s",
                    hint="a longer --source-timeout may help",
                    code="no-answer",
                )
                raise PassingFault(error) from None
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError) as error:
                raise PassingFault(
                    ProtocolError(f"{where}: the connection broke: {_reason(error)}", code="connection-broke")
                ) from None
            except httpx.ConnectError as error:
                raise self._connect_error(where, error) from None
            except UnicodeError:  # of Python's or httpx's IDNA, which do not count it among their own errors
                raise _not_connected(where, "no host can have this name") from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise EndpointError(f"{where}: {_reason(error)}") from None
            except DocumentError as error:
                raise _of_protocol(error) from None
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        return Answer(where, response.status_code, dict(response.headers), _decoded(body, encoding, limit, where))

    def _connect_error(self, where: str, error: httpx.ConnectError) -> Exception:
        reason = _reason(error)
        if "CERTIFICATE" in reason.upper() or "SSL" in reason.upper():
            return EndpointError(
                f"{where}: TLS failed: {reason}",
                hint="is the CA that signed it in --ca-file, or among the system's where none is given?",
                code="tls-failed",
            )
        return PassingFault(_not_connected(where, reason))


_clock = threading.local()


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Until it ends, every socket operation of this thread must be over within so many seconds."""
    _clock.end = time.monotonic() + seconds
    try:
        yield
    finally:
        _clock.end = None


def _left(timeout: float | None) -> float | None:
    end = getattr(_clock, "end", None)
    if end is None:
        return timeout
    left = float(end - time.monotonic())
    return left if timeout is None else min(left, timeout)


def _some_left(timeout: float | None) -> float | None:
    """For what sets the timeout of a socket, which must not be zero or less."""
    left = _left(timeout)
    return left if left is None else max(left, 0.001)


class _BoundedStream(httpcore.NetworkStream):
    """A socket whose every operation ends by the thread's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = _left(timeout)
        if left is not None and left <= 0:
            raise httpcore.ReadTimeout("deadline")
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = _left(timeout)
        if left is not None and left <= 0:
            raise httpcore.WriteTimeout("deadline")
        self._stream.write(buffer, left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, _some_left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _BoundedBackend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._backend.connect_tcp(host, port, _some_left(timeout), local_address, socket_options)
        return _BoundedStream(stream)


class _BoundedTransport(httpx.HTTPTransport):
    """httpx's own transport over sockets with a deadline; httpx has no public way to choose the sockets."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore.ConnectionPool(ssl_context=tls, network_backend=_BoundedBackend())


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"cannot read the CA file {ca_file}: {error.strerror or error}") from None


def _decoded(body: bytes, encoding: str, limit: int, where: str) -> bytes:
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ProtocolError(f"{where}: the answer is packed as {encoding[:40]!r}, which was not asked for")
    try:
        unpacked = body if encoding in ("", "identity") else inflate(body, limit, where)
        require_few_values(unpacked, where, limit)
    except DocumentError as error:
        raise _of_protocol(error) from None
    return unpacked


def _of_protocol(error: DocumentError) -> ProtocolError:
    """What is wrong with a body is the far side's doing; a document's code would mean another exit code."""
    return ProtocolError(error.message, hint=error.hint)


def _not_connected(where: str, reason: str) -> EndpointError:
    return EndpointError(
        f"{where}: cannot connect: {reason}", hint="is this the address and is it up?", code="unreachable"
    )


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.removeprefix("[Errno 111] ").removeprefix("[Errno 104] ")
