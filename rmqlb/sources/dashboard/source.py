"""The HTTP admin endpoint: RocketMQ's Dashboard (or the older console) in front of NameServers and brokers.

Only the paths of `READ_PATHS` are ever asked for, all by GET; the one POST is the login. The Dashboard answers its own
errors with HTTP 200 and a `status` other than 0 in the envelope.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from rmqlb.errors import DocumentError, EndpointError, ProtocolError
from rmqlb.model.group import QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import RouteSighting, Unread
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.dashboard.http import Answer, HttpClient, HttpSettings
from rmqlb.sources.dashboard.login import Credentials, log_in
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats import from_documents
from rmqlb.sources.live import utc_now
from rmqlb.sources.source import Refused

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
    """The reads of a cluster through its Dashboard (`AdminReads`)."""

    kind = "dashboard"
    offsets_at_once = True

    def __init__(
        self,
        url: str,  # scheme, host, port and context path, without user or password
        settings: HttpSettings,
        credentials: Credentials | None = None,  # used when the Dashboard asks for a login; None when there are none
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.endpoint = url.rstrip("/")
        self._credentials = credentials
        self._http = HttpClient(self.endpoint, settings)
        self._clock = clock
        self._login = threading.Lock()

    def topics(self) -> list[str]:
        """All topics; the Dashboard marks RocketMQ's own by `%SYS%` before their names."""
        path = "/topic/list.query"
        return docs.convert(self._data(path, {}), docs.TopicListDocument, self.endpoint + path).topic_list

    def groups(self) -> list[str]:
        """All groups that the Dashboard's cache holds; it can lag behind the cluster."""
        path = "/consumer/groupList.query"
        value = self._data(path, {"skipSysGroup": "false"})
        return [item.group for item in docs.convert(value, list[docs.GroupItem], self.endpoint + path)]

    def has_group(self, group: str) -> bool:
        try:
            return bool(self._data("/consumer/examineSubscriptionGroupConfig.query", {"consumerGroup": group}))
        except Refused:
            return False

    def route(self, topic: str) -> RouteSighting | None:
        """The topic's route, from the one NameServer that the Dashboard asks."""
        path, name = "/topic/route.query", topic.removeprefix("%SYS%")
        try:
            value = self._data(path, {"topic": name})
        except Refused as refused:
            if _NO_ROUTE in refused.text:
                return None
            raise
        document = docs.convert(value, docs.RouteDocument, f"{self.endpoint}{path} of topic {name}")
        return RouteSighting(from_documents.route(document, name), Seen(self.endpoint + path, self._clock()))

    def brokers(self, group: str) -> dict[str, str]:  # noqa: ARG002 - a Dashboard answers for every broker alike
        path = "/cluster/list.query"
        document = docs.convert(self._data(path, {}), docs.ClusterListDocument, self.endpoint + path)
        table = sorted(document.cluster_info.broker_addr_table.items())
        return {name: address for name, data in table if (address := from_documents.broker(data).address)}

    def connections(self, group: str, address: str) -> docs.ConnectionsDocument | None:
        """The members that one broker lists; older Dashboards ask one at random instead."""
        path = "/consumer/consumerConnection.query"
        try:
            value = self._data(path, {"consumerGroup": group, "address": address})
        except Refused as refused:
            if _NOT_ONLINE in refused.text:
                return None
            raise
        return docs.convert(value, docs.ConnectionsDocument, self.endpoint + path)

    def offsets(self, group: str, addresses: Sequence[str]) -> dict[MessageQueue, QueueState]:
        """How far the group has read its queues, and who holds them as far as the Dashboard found out."""
        path = "/consumer/queryTopicByConsumer.query"
        value = self._data(path, {"consumerGroup": group, "address": ",".join(addresses)})
        return from_documents.queue_states(docs.convert(value, list[docs.TopicConsumerDocument], self.endpoint + path))

    @property
    def offset_reads(self) -> None:
        """A Dashboard passes no such question on."""

    @property
    def pop_reads(self) -> None:
        """A Dashboard does not tell how brokers are asked."""

    def running_info(
        self,
        group: str,
        client_id: str,
        address: str,  # noqa: ARG002 - as in `brokers`
        *,
        stacks: bool = False,
    ) -> docs.RunningInfoDocument:
        """What a member says of itself; the Dashboard finds the way to it."""
        path = "/consumer/consumerRunningInfo.query"
        value = self._data(path, {"consumerGroup": group, "clientId": client_id, "jstack": str(stacks).lower()})
        return docs.convert(value, docs.RunningInfoDocument, self.endpoint + path)

    def message_type(self, topic: str, address: str) -> None:
        """A Dashboard is not asked."""

    def silent_brokers_answer(self) -> bool:
        """The Dashboard asks brokers by itself, each time anew."""
        return False

    def unread(self) -> list[Unread]:
        return []

    def close(self) -> None:
        self._http.close()

    def _data(self, path: str, params: dict[str, str]) -> object:
        """The data inside the envelope of a read, after logging in where that is asked for."""
        if path not in READ_PATHS:
            raise AssertionError(f"{path} is not on the list of reads")
        answer = self._http.get(path, params)
        if _asks_for_login(answer):
            if self._credentials is None:
                raise EndpointError(
                    f"{self.endpoint} asks for a login",
                    hint="name the user with --user or in the URL, the password in RMQLB_PASSWORD or --password-file",
                    code="login-needed",
                )
            with self._login:  # the first request logs in, alone; the session's cookie then serves all
                answer = self._http.get(path, params)
                if _asks_for_login(answer):
                    log_in(self._http, self._credentials, self.endpoint)
                    answer = self._http.get(path, params)
        return _open(answer)


def _asks_for_login(answer: Answer) -> bool:
    if answer.status in (301, 302, 303, 307):
        return "login" in answer.headers.get("location", "")
    return answer.status == 200 and len(answer.body) < 1000 and b"user not login" in answer.body


def _response_code(text: str) -> int | None:
    """What a broker answered the Dashboard (`MQClientException`), or that it did not; None where neither is told."""
    code = re.search(_CODE, text)
    if code is not None:
        return int(code[1])
    return ResponseCode.RPC_TIME_OUT if _TIMED_OUT in text else None


def _open(answer: Answer) -> object:
    if answer.status == 401:
        raise EndpointError(
            f"{answer.where}: refused (HTTP 401)", hint="does a proxy in front ask for a login?", code="login-needed"
        )
    if answer.status in (301, 302, 303, 307, 308):
        target = answer.headers.get("location", "nowhere")
        raise EndpointError(
            f"{answer.where}: redirected to {target[:120]}",
            hint="redirects are not followed; use that URL",
            code="not-a-dashboard",
        )
    if answer.status != 200:
        raise EndpointError(
            f"{answer.where}: HTTP {answer.status}",
            hint="is this the Dashboard's URL, context path included?",
            code="not-a-dashboard",
        )
    try:
        envelope = docs.decode(answer.body, object, "not JSON")
    except DocumentError as error:
        html = answer.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))
        raise ProtocolError(
            f"{answer.where}: {'an HTML page instead of JSON' if html else error.message}",
            hint="is this the Dashboard's URL, context path included?",
            code="not-a-dashboard",
        ) from None
    if not isinstance(envelope, dict) or not {"status", "data"} <= envelope.keys():
        raise ProtocolError(
            f"{answer.where}: not a Dashboard's answer",
            hint="expected an object with status and data",
            code="not-a-dashboard",
        )
    if envelope["status"] != 0:
        text = str(envelope.get("errMsg") or "no reason given")
        raise Refused(f"{answer.where}: {docs.first_line(text)}", text, response_code=_response_code(text))
    return envelope["data"]
