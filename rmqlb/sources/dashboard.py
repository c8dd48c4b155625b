"""RocketMQ's Dashboard (or the older console) as an HTTP endpoint in front of NameServers and brokers.

Only the paths of `READ_PATHS` are requested, by GET; the one POST is the login. The Dashboard reports its own errors
with HTTP 200 and a `status` other than 0 in the envelope.
"""

from __future__ import annotations

import json
import math
import re
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from rmqlb.errors import DocumentError, EndpointError, ProtocolError
from rmqlb.model.group import Seen, States
from rmqlb.model.snapshot import RouteSighting
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.limits import collect, inflate, require_few_values
from rmqlb.sources.native.wire import tls_context
from rmqlb.sources.pace import NO_DEADLINE, Deadline, Pace, PassingFault, reason
from rmqlb.sources.protocols import SUSPECT, wrong_protocol
from rmqlb.sources.source import Access, Refused, read_unless, redact_secrets

READ_PATHS = frozenset(
    {
        "/cluster/list.query",
        "/consumer/consumerConnection.query",
        "/consumer/consumerRunningInfo.query",
        "/consumer/examineSubscriptionGroupConfig.query",
        "/consumer/groupList.query",
        "/consumer/queryTopicByConsumer.query",
        "/topic/list.query",
        "/topic/route.query",
    }
)
_LOGIN = "/login/login.do"
_CSRF = "/rocketmq-dashboard/csrf-token"
_CODE = r"CODE: ([0-9]{1,9}) "
_TIMED_OUT = "RemotingTimeoutException"


class DashboardReads:
    kind = "dashboard"

    def __init__(
        self,
        url: str,  # scheme, host, port and context path, without user or password
        access: Access,
    ) -> None:
        self.endpoint = url.rstrip("/")
        self.access = access
        self._http = HttpClient(self.endpoint, access)
        self._login = threading.Lock()
        self._has_answered = False
        self._status = 0  # of the last answer
        self.date: str | None = None  # of the last answer, as in its header

    def topics(self) -> list[str]:
        """All topics, RocketMQ's own with the prefix `%SYS%`."""
        return self._read("/topic/list.query", {}, docs.TopicListDocument).topic_list

    def groups(self) -> list[str]:
        """All groups in the Dashboard's cache, which may lag behind the cluster."""
        items = self._read("/consumer/groupList.query", {"skipSysGroup": "false"}, list[docs.GroupItem])
        return [item.group for item in items]

    def has_group(self, group: str) -> bool:
        try:
            return bool(self._data("/consumer/examineSubscriptionGroupConfig.query", {"consumerGroup": group}))
        except Refused:
            return False

    def route(self, topic: str) -> RouteSighting | None:
        path, name = "/topic/route.query", topic.removeprefix("%SYS%")
        document = read_unless(
            ResponseCode.TOPIC_NOT_EXIST,
            lambda: self._read(path, {"topic": name}, docs.RouteDocument, f" of topic {name}"),
        )
        seen = Seen(self.endpoint + path, self.access.clock())
        return None if document is None else RouteSighting(docs.route(document, name), seen)

    def brokers(self, group: str) -> dict[str, str]:  # noqa: ARG002 - a Dashboard answers for every broker
        document = self._read("/cluster/list.query", {}, docs.ClusterListDocument)
        table = sorted(document.cluster_info.broker_addr_table.items())
        return {name: address for name, data in table if (address := docs.broker(data).address)}

    def connections(self, group: str, address: str) -> docs.ConnectionsDocument | None:
        """The consumers in one broker's list; older Dashboards choose the broker at random."""
        path, params = "/consumer/consumerConnection.query", {"consumerGroup": group, "address": address}
        return read_unless(ResponseCode.CONSUMER_NOT_ONLINE, lambda: self._read(path, params, docs.ConnectionsDocument))

    def offsets(self, group: str, addresses: Sequence[str]) -> tuple[States, None]:
        params = {"consumerGroup": group, "address": ",".join(addresses)}
        path = "/consumer/queryTopicByConsumer.query"
        return docs.queue_states(self._read(path, params, list[docs.TopicConsumerDocument])), None

    @property
    def broker_reads(self) -> None:
        """None, because a Dashboard forwards no request about single queues, assignments or POP."""

    def running_info(
        self,
        group: str,
        client_id: str,
        address: str,  # noqa: ARG002 - the Dashboard finds the way to a consumer
        *,
        stacks: bool = False,
    ) -> docs.RunningInfoDocument:
        params = {"consumerGroup": group, "clientId": client_id, "jstack": str(stacks).lower()}
        return self._read("/consumer/consumerRunningInfo.query", params, docs.RunningInfoDocument)

    def close(self) -> None:
        self._http.close()

    def _read(self, path: str, params: dict[str, str], kind: type[docs.Document], detail: str = "") -> docs.Document:
        return docs.convert(self._data(path, params), kind, self.endpoint + path + detail)

    def _data(self, path: str, params: dict[str, str]) -> object:
        """The data in the envelope, after a login where requested; the first failure names a wrong protocol."""
        try:
            found = self._envelope(path, params)
        except EndpointError as error:
            is_suspect = error.code in SUSPECT and error.code != "protocol"
            if self._has_answered or not (is_suspect or self._status == 400):
                raise
            url, trusted = httpx.URL(self.endpoint), error.code != "tls-failed"
            port = url.port or (443 if url.scheme == "https" else 80)
            wrong = wrong_protocol(url.scheme, f"{url.host}:{port}", url.host, port, self._http.rest, trusted=trusted)
            raise wrong or error from None
        self._has_answered = True
        return found

    def _envelope(self, path: str, params: dict[str, str]) -> object:
        if path not in READ_PATHS:
            raise AssertionError(f"{path} is not on the list of reads")
        answer = self._http.get(path, params)
        if _asks_for_login(answer):
            if not self.access.user or self.access.password is None:
                hint = "pass the user with --user or in the URL, the password in RMQLB_PASSWORD or with --password-file"
                raise EndpointError(f"{self.endpoint} needs a login", hint=hint, code="login-needed")
            with self._login:  # one request logs in; the session's cookie then serves all
                answer = self._http.get(path, params)
                if _asks_for_login(answer):
                    self._log_in(self.access.user, self.access.password(self.access.user))
                    answer = self._http.get(path, params)
        self.date, self._status = answer.headers.get("date"), answer.status
        return _open(answer)

    def _log_in(self, user: str, password: str) -> None:
        """Log in by JSON with a CSRF token (Dashboards after 2.1.0) or a form; raises EndpointError."""
        fields = {"username": user, "password": password}
        token = _login_answer(self._http.get(_CSRF)).get("data")
        name, value = (token.get("headerName"), token.get("token")) if isinstance(token, dict) else (None, None)
        can_be_sent = isinstance(name, str) and isinstance(value, str) and (name + value).isascii()
        headers = {str(name): str(value)} if can_be_sent else {}
        answer = _login_answer(self._http.post(_LOGIN, json=fields, headers=headers))
        if answer["status"] != 0 and "Bad username or password" not in str(answer.get("errMsg")):
            answer = _login_answer(self._http.post(_LOGIN, form=fields, headers=headers))
        if answer["status"] != 0:
            text = str(answer.get("errMsg") or answer["status"]).partition("\n")[0]
            problem = f"{self.endpoint}: login of {user} failed: {redact_secrets(text, password)}"
            raise EndpointError(problem, hint="check user and password", code="login-failed")


def _login_answer(answer: Reply) -> dict[str, object]:
    """The answer's object; without a status of its own, or with an HTTP error, the status is HTTP's."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, dict) else {}
    is_own = answer.status == 200 and "status" in found
    return found if is_own else {**found, "status": f"HTTP {answer.status}", "data": None}


def _asks_for_login(answer: Reply) -> bool:
    if answer.status in (301, 302, 303, 307):
        return "login" in answer.headers.get("location", "")
    return answer.status == 200 and len(answer.body) < 1000 and b"user not login" in answer.body


def _open(answer: Reply) -> object:
    """The data in the envelope (raises EndpointError, ProtocolError)."""
    where, url_hint = answer.where, "is this the Dashboard's URL, with its context path?"
    if answer.status == 401:
        hint = "does a proxy in front of it need a login?"
        raise EndpointError(f"{where}: refused (HTTP 401)", hint=hint, code="login-needed")
    if answer.status in (301, 302, 303, 307, 308):
        problem = f"{where}: redirected to {answer.headers.get('location', 'nowhere')[:120]}"
        raise EndpointError(problem, hint="rmqlb does not follow redirects; use that URL", code="not-a-dashboard")
    if answer.status != 200:
        raise EndpointError(f"{where}: HTTP {answer.status}", hint=url_hint, code="not-a-dashboard")
    try:
        envelope = docs.decode(answer.body, object, "not JSON")
    except DocumentError as error:
        html = answer.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))
        problem = "an HTML page instead of JSON" if html else error.message
        raise ProtocolError(f"{where}: {problem}", hint=url_hint, code="not-a-dashboard") from None
    if not isinstance(envelope, dict) or not {"status", "data"} <= envelope.keys():
        hint = "expected an object with status and data"
        raise ProtocolError(f"{where}: not an answer of a Dashboard", hint=hint, code="not-a-dashboard")
    if envelope["status"] != 0:
        text = str(envelope.get("errMsg") or "no reason given")
        # A broker's answer to the Dashboard (`MQClientException`), or its absence.
        code = re.search(_CODE, text)
        timed_out = ResponseCode.RPC_TIME_OUT if _TIMED_OUT in text else None
        raise Refused(f"{where}: {docs.first_line(text)}", text, response_code=int(code[1]) if code else timed_out)
    return envelope["data"]


# httpx does not limit the whole answer: a server that sends a byte per second, or 300 KB that unpack to 300 MB, would
# block it or fill the memory. So each attempt has a deadline for all reads of its socket; bodies are requested
# unpacked, counted on receipt, and unpacked here if need be.

_TRY_AGAIN = frozenset({429, 502, 503, 504})
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without CAs: reading the system's takes longer than a request


@dataclass(frozen=True, slots=True)
class Reply:
    where: str
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = field(repr=False)


class HttpClient:
    """A client of one endpoint; thread-safe (raises UsageError)."""

    def __init__(self, base_url: str, access: Access) -> None:
        self._access = access
        self._pace = access.pace or Pace()
        self._deadline = access.deadline or NO_DEADLINE
        self._base = base_url.rstrip("/")
        reads_cas = access.ca_file is not None or self._base.lower().startswith("https:")
        self._client = httpx.Client(
            transport=_BoundedTransport(tls_context(access.ca_file) if reads_cas else _NO_TLS),
            timeout=access.timeout,
            trust_env=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "rmqlb"},
        )

    @property
    def rest(self) -> float:
        """Seconds that one more request may take."""
        return min(self._access.timeout, self._deadline.rest)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Reply:
        """Read, with retries on transient faults (raises EndpointError, ProtocolError)."""
        where = f"GET {self._base}{path}"
        attempt = 0
        while True:
            self._deadline.must_leave(what=f"{where}: no answer")
            last, wait = attempt == self._access.retries, "0"
            try:
                answer = self._once("GET", path, params=dict(params or {}))
            except PassingFault as fault:
                self._deadline.must_leave(what=f"{where}: no answer")
                if last:
                    raise fault.error from None
            else:
                if answer.status not in _TRY_AGAIN or last:
                    return answer
                wait = answer.headers.get("retry-after", "0")
            self._pace.wait_before_retry(attempt, requested=float(wait) if wait.isdecimal() else 0.0)
            attempt += 1

    def post(
        self, path: str, *, json: object = None, form: dict[str, str] | None = None, headers: dict[str, str]
    ) -> Reply:
        """Send once, without retries: only for the login."""
        try:
            return self._once("POST", path, json=json, data=form, headers=headers)
        except PassingFault as fault:
            raise fault.error from None

    def _once(self, method: str, path: str, **arguments: Any) -> Reply:
        where, most = f"{method} {self._base}{path}", self._access.max_bytes
        _attempt.deadline = Deadline(self.rest)
        try:
            with self._client.stream(method, self._base + path, **arguments) as response:
                body = collect(response.iter_raw(), most, where)
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
                raise ProtocolError(
                    f"{where}: the answer is compressed as {encoding[:40]!r}, which rmqlb did not request"
                )
            if encoding not in ("", "identity"):
                body = inflate(body, most, where)
            require_few_values(body, where, most)
            return Reply(where, response.status_code, dict(response.headers), body)
        except httpx.TimeoutException:
            problem = f"{where}: no complete answer within {self._access.timeout:g} s"
            hint = "try a longer --source-timeout"
            raise PassingFault(EndpointError(problem, hint=hint, code="no-answer")) from None
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError) as error:
            problem = f"{where}: the connection broke: {reason(error)}"
            raise PassingFault(ProtocolError(problem, code="connection-broke")) from None
        except (httpx.ConnectError, UnicodeError) as error:  # UnicodeError: IDNA of Python or httpx
            if "CERTIFICATE" in str(error).upper() or "SSL" in str(error).upper():
                hint = "is the certificate's CA in --ca-file, or without --ca-file, among the system's CAs?"
                raise EndpointError(f"{where}: TLS failed: {reason(error)}", hint=hint, code="tls-failed") from None
            text = "the host name is invalid" if isinstance(error, UnicodeError) else reason(error)
            hint = "is the address right, and is the server up? rmqlb doctor tests each step"
            failed = EndpointError(f"{where}: cannot connect: {text}", hint=hint, code="unreachable")
            raise (failed if isinstance(error, UnicodeError) else PassingFault(failed)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EndpointError(f"{where}: {reason(error)}") from None
        except DocumentError as error:  # the server's fault; a document's code would mean another exit code
            raise ProtocolError(error.message, hint=error.hint) from None
        finally:
            _attempt.deadline = NO_DEADLINE


_attempt = threading.local()  # `deadline`: the end of this thread's attempt


def _within(timeout: float | None, late: type[Exception]) -> float | None:
    """The timeout of one operation, bounded by the attempt (raises `late`)."""
    rest = getattr(_attempt, "deadline", NO_DEADLINE).rest
    if rest <= 0:
        raise late("deadline")
    return min(rest, timeout or math.inf) if rest < math.inf else timeout


class _BoundedStream(httpcore.NetworkStream):
    """A socket whose operations end by the deadline of their thread."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _within(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _within(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *given: Any, **more: Any) -> httpcore.NetworkStream:
        more["timeout"] = _within(more.get("timeout"), httpcore.ConnectTimeout)
        return _BoundedStream(self._stream.start_tls(*given, **more))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _BoundedBackend(httpcore.SyncBackend):
    def connect_tcp(self, *given: Any, **more: Any) -> httpcore.NetworkStream:
        more["timeout"] = _within(more.get("timeout"), httpcore.ConnectTimeout)
        return _BoundedStream(super().connect_tcp(*given, **more))


class _BoundedTransport(httpx.HTTPTransport):
    """httpx's own transport on bounded sockets; httpx has no public way to choose the sockets."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore.ConnectionPool(ssl_context=tls, network_backend=_BoundedBackend())
