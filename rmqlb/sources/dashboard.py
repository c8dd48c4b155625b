"""RocketMQ's Dashboard (or the older console) as an HTTP endpoint in front of NameServers and brokers.

Only the paths of `READ_PATHS` are requested, by GET; the one POST is the login. The Dashboard reports its own errors
with HTTP 200 and a `status` other than 0 in the envelope.
"""

from __future__ import annotations

import io
import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from rmqlb.errors import DocumentError, EndpointError, ProtocolError
from rmqlb.model.group import Seen, States
from rmqlb.model.snapshot import RouteSighting, Unread
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, collect, inflate, require_few_values
from rmqlb.sources.native.wire import TimedSocket, not_connected, tls_context
from rmqlb.sources.pace import NO_DEADLINE, Deadline, PassingFault, reason, wait_before_retry
from rmqlb.sources.source import Refused, redact_secrets, utc_now

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
_NOT_ONLINE = "CODE: 206 "
_NO_ROUTE = "CODE: 17 "
_CODE = r"CODE: ([0-9]{1,9}) "
_TIMED_OUT = "RemotingTimeoutException"


class DashboardReads:
    kind = "dashboard"

    def __init__(
        self,
        url: str,  # scheme, host, port and context path, without user or password
        settings: HttpSettings,
        credentials: Credentials | None = None,  # for a Dashboard that requests a login
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.endpoint = url.rstrip("/")
        self._credentials = credentials
        self._http = HttpClient(self.endpoint, settings)
        self._clock = clock
        self._login = threading.Lock()
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
        try:
            document = self._read(path, {"topic": name}, docs.RouteDocument, f" of topic {name}")
        except Refused as refused:
            if _NO_ROUTE in refused.text:
                return None
            raise
        return RouteSighting(docs.route(document, name), Seen(self.endpoint + path, self._clock()))

    def brokers(self, group: str) -> dict[str, str]:  # noqa: ARG002 - a Dashboard answers for every broker
        document = self._read("/cluster/list.query", {}, docs.ClusterListDocument)
        table = sorted(document.cluster_info.broker_addr_table.items())
        return {name: address for name, data in table if (address := docs.broker(data).address)}

    def connections(self, group: str, address: str) -> docs.ConnectionsDocument | None:
        """The consumers in one broker's list; older Dashboards choose the broker at random."""
        params = {"consumerGroup": group, "address": address}
        try:
            return self._read("/consumer/consumerConnection.query", params, docs.ConnectionsDocument)
        except Refused as refused:
            if _NOT_ONLINE in refused.text:
                return None
            raise

    def offsets(self, group: str, addresses: Sequence[str]) -> tuple[States, None]:
        params = {"consumerGroup": group, "address": ",".join(addresses)}
        path = "/consumer/queryTopicByConsumer.query"
        return docs.queue_states(self._read(path, params, list[docs.TopicConsumerDocument])), None

    @property
    def broker_reads(self) -> None:
        """None: a Dashboard forwards no question about single queues, assignments or POP."""

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

    def silent_brokers_answer(self) -> bool:
        """A Dashboard asks brokers itself, each time again."""
        return False

    def unread(self) -> list[Unread]:
        return []

    def close(self) -> None:
        """Nothing stays open between two requests."""

    def _read(self, path: str, params: dict[str, str], kind: type[docs.Document], detail: str = "") -> docs.Document:
        return docs.convert(self._data(path, params), kind, self.endpoint + path + detail)

    def _data(self, path: str, params: dict[str, str]) -> object:
        """The data in the envelope, after a login where requested."""
        if path not in READ_PATHS:
            raise AssertionError(f"{path} is not on the list of reads")
        answer = self._http.get(path, params)
        if _asks_for_login(answer):
            if self._credentials is None:
                hint = "name the user with --user, and give the password in RMQLB_PASSWORD or --password-file"
                raise EndpointError(f"{self.endpoint} asks for a login", hint=hint, code="login-needed")
            with self._login:  # one request logs in; the session's cookie then serves all
                answer = self._http.get(path, params)
                if _asks_for_login(answer):
                    log_in(self._http, self._credentials, self.endpoint)
                    answer = self._http.get(path, params)
        self.date = answer.headers.get("date")
        return _open(answer)


def _asks_for_login(answer: Answer) -> bool:
    if answer.status in (301, 302, 303, 307):
        return "login" in answer.headers.get("location", "")
    return answer.status == 200 and len(answer.body) < 1000 and b"user not login" in answer.body


def _open(answer: Answer) -> object:
    """The data in the envelope (raises EndpointError, ProtocolError)."""
    where, url_hint = answer.where, "is this the Dashboard's URL, context path included?"
    if answer.status == 401:
        hint = "does a proxy in front ask for a login?"
        raise EndpointError(f"{where}: refused (HTTP 401)", hint=hint, code="login-needed")
    if answer.status in (301, 302, 303, 307, 308):
        problem = f"{where}: redirected to {answer.headers.get('location', 'nowhere')[:120]}"
        raise EndpointError(problem, hint="redirects are not followed; use that URL", code="not-a-dashboard")
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
        raise ProtocolError(f"{where}: not a Dashboard's answer", hint=hint, code="not-a-dashboard")
    if envelope["status"] != 0:
        text = str(envelope.get("errMsg") or "no reason given")
        # A broker's answer to the Dashboard (`MQClientException`), or its absence.
        code = re.search(_CODE, text)
        timed_out = ResponseCode.RPC_TIME_OUT if _TIMED_OUT in text else None
        raise Refused(f"{where}: {docs.first_line(text)}", text, response_code=int(code[1]) if code else timed_out)
    return envelope["data"]


_CHUNK = 1 << 16
_TRY_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class HttpSettings:
    timeout: float = 5.0  # seconds of one attempt, from connecting to the last byte
    retries: int = 2
    ca_file: str | None = None  # the only trusted CA certificates; None is the system's
    tls_name: str | None = None  # name expected in the certificate; None is the host's own
    max_bytes: int = DEFAULT_LIMIT
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    deadline: Deadline = NO_DEADLINE  # of all requests, whatever `timeout` is


@dataclass(frozen=True, slots=True)
class Answer:
    where: str
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes = field(repr=False)


class _Socket(io.RawIOBase):
    """A connection as http.client uses one, whose operations end by a deadline."""

    def __init__(self, connection: TimedSocket, deadline: Deadline) -> None:
        self._connection, self._deadline = connection, deadline

    def sendall(self, data: bytes) -> None:
        self._connection.send(data, self._deadline)

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Stay open: http.client closes its socket before it reads the answer."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._connection.receive(self._deadline, len(buffer))
        buffer[: len(data)] = data
        return len(data)


class HttpClient:
    """A client of one endpoint, with a connection per request; thread-safe (raises UsageError).

    The whole answer has a deadline: otherwise a server that sends a byte per second would block it. Bodies are
    requested unpacked, counted on receipt, and unpacked here if need be: 300 KB may unpack to 300 MB.
    """

    def __init__(self, base_url: str, settings: HttpSettings) -> None:
        self._settings = settings
        self._base = base_url.rstrip("/")
        self._url = urlsplit(self._base)
        tls = tls_context(settings.ca_file)  # refuses a file that is missing, whatever the scheme
        self._tls = tls if self._url.scheme == "https" else None
        self._cookies: dict[str, str] = {}

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """Read, with retries on transient faults (raises EndpointError, ProtocolError)."""
        settings, where = self._settings, f"GET {self._base}{path}"
        attempt = 0
        while True:
            settings.deadline.must_leave(what=f"{where}: no answer")
            last, wait = attempt == settings.retries, "0"
            try:
                answer = self._once("GET", path, f"?{urlencode(params)}" if params else "")
            except PassingFault as fault:
                settings.deadline.must_leave(what=f"{where}: no answer")
                if last:
                    raise fault.error from None
            else:
                if answer.status not in _TRY_AGAIN or last:
                    return answer
                wait = answer.headers.get("retry-after", "0")
            requested = float(wait) if wait.isdecimal() else 0.0
            wait_before_retry(attempt, settings.sleep, settings.jitter, requested=requested)
            attempt += 1

    def post(self, path: str, body: str, kind: str, headers: Mapping[str, str]) -> Answer:
        """Send once, without retries: only for the login."""
        try:
            return self._once("POST", path, body=body, headers={"Content-Type": kind, **headers})
        except PassingFault as fault:
            raise fault.error from None

    def _once(
        self, method: str, path: str, query: str = "", body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        settings, url, where = self._settings, self._url, f"{method} {self._base}{path}"
        deadline = Deadline(min(settings.timeout, settings.deadline.rest))
        try:
            host = (url.hostname or "").encode("idna").decode()
            port = url.port or (443 if self._tls else 80)
            connection = TimedSocket(host, port, deadline, self._tls, settings.tls_name)
        except (OSError, ValueError) as error:
            raise not_connected(where, error, settings.timeout) from None
        own = {"Accept": "application/json", "User-Agent": "rmqlb", "Connection": "close"}
        if self._cookies:
            own["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        try:
            asking = HTTPConnection(host, port)
            asking.sock = _Socket(connection, deadline)
            asking.request(method, quote(url.path + path) + query, body, {**own, **(headers or {})})
            response = asking.getresponse()
            answered = collect(iter(partial(response.read, _CHUNK), b""), settings.max_bytes, where)
            return self._answer(where, response, answered)
        except TimeoutError:
            problem = f"{where}: no whole answer within {settings.timeout:g} s"
            hint = "a longer --source-timeout may help"
            raise PassingFault(EndpointError(problem, hint=hint, code="no-answer")) from None
        except (HTTPException, OSError) as error:
            hint = f"does it want https://, or is it a NameServer? then write -s rocketmq://{host}:{port}"
            problem = f"{where}: the connection broke: {reason(error)}"
            raise PassingFault(ProtocolError(problem, hint=hint, code="connection-broke")) from None
        except DocumentError as error:  # the server's fault; a document's code would mean another exit code
            raise ProtocolError(error.message, hint=error.hint) from None
        finally:
            connection.close()

    def _answer(self, where: str, response: HTTPResponse, body: bytes) -> Answer:
        if response.length:  # http.client gives a body that was cut short as it is
            raise HTTPException(f"{response.length} bytes of the body are missing")
        headers = {name.lower(): value for name, value in response.getheaders()}
        for cookie in response.headers.get_all("set-cookie", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self._cookies[name.strip()] = value.strip()
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ProtocolError(f"{where}: the answer is packed as {encoding[:40]!r}, which was not asked for")
        if encoding not in ("", "identity"):
            body = inflate(body, self._settings.max_bytes, where)
        require_few_values(body, where, self._settings.max_bytes)
        return Answer(where, response.status, headers, body)


_LOGIN = "/login/login.do"
_CSRF = "/rocketmq-dashboard/csrf-token"


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str
    password: Callable[[], str] = field(repr=False)  # called when needed (a file, the environment or a prompt)


def log_in(http: HttpClient, credentials: Credentials, url: str) -> None:
    """Log in by JSON with a CSRF token (Dashboards after 2.1.0) or a form; raises EndpointError."""
    fields = {"username": credentials.user, "password": credentials.password()}
    token = _envelope(http.get(_CSRF)).get("data")
    name, value = (token.get("headerName"), token.get("token")) if isinstance(token, dict) else (None, None)
    headers = {str(name): str(value)} if re.fullmatch(r"[\w-]+: [!-~]+", f"{name}: {value}", re.ASCII) else {}
    answer = _envelope(http.post(_LOGIN, json.dumps(fields), "application/json", headers))
    if answer["status"] != 0 and "Bad username or password" not in str(answer.get("errMsg")):
        answer = _envelope(http.post(_LOGIN, urlencode(fields), "application/x-www-form-urlencoded", headers))
    if answer["status"] != 0:
        text = str(answer.get("errMsg") or answer["status"]).partition("\n")[0]
        problem = f"{url}: login of {credentials.user} failed: {redact_secrets(text, fields['password'])}"
        raise EndpointError(problem, hint="check user and password", code="login-failed")


def _envelope(answer: Answer) -> dict[str, object]:
    """The answer's object; without a status of its own, or with an HTTP error, the status is HTTP's."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    found = value if isinstance(value, dict) else {}
    is_own = answer.status == 200 and "status" in found
    return found if is_own else {**found, "status": f"HTTP {answer.status}", "data": None}
