"""The HTTP admin endpoint: RocketMQ's Dashboard (or the older console) in front of NameServers and brokers.

Only the paths of `READ_PATHS` are ever asked for, all by GET; the one POST is the login. The Dashboard answers its own
errors with HTTP 200 and a `status` other than 0 in the envelope.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from msgspec.structs import replace
from datetime import UTC, datetime

from rmqlb.errors import DataError, DocumentError, EndpointError, ProtocolError, RmqlbError
from rmqlb.model.group import CLUSTERING, ConsumerGroup, MemberReport, MemberView, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread, Wanted, suggestion
from rmqlb.sources import documents as docs
from rmqlb.sources.at_once import Answered, Asked, asking_at_once
from rmqlb.sources.http import Answer, HttpClient, HttpSettings
from rmqlb.sources.login import Credentials, log_in
from rmqlb.sources.owners import with_owners
from rmqlb.sources.source import Progress, no_progress

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
_AT_ONCE = 4
_NOT_ONLINE = "CODE: 206 "
_NO_ROUTE = "CODE: 17 "
_SYSTEM_TOPIC = re.compile(r"%SYS%|%RETRY%|%DLQ%|rmq_sys_|RMQ_SYS_")


class DashboardSource:
    """A Dashboard at a URL.

    Args:
        url: scheme, host, port and context path, without user or password.
        credentials: used when the Dashboard asks for a login; None when there are none.
        clock: tells the time of an observation, in UTC.
    """

    def __init__(
        self,
        url: str,
        settings: HttpSettings,
        credentials: Credentials | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC).replace(microsecond=0),
    ) -> None:
        self._url = url.rstrip("/")
        self._settings = settings
        self._credentials = credentials
        self._http = HttpClient(self._url, settings)
        self._clock = clock
        self._login = threading.Lock()
        self._progress: Progress = no_progress
        self._unread: list[Unread] = []

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        """The wanted parts of the cluster.

        Raises:
            DataError: the cluster does not know the topic or group.
            EndpointError: the Dashboard cannot be reached, refuses, or does not answer as a Dashboard does.
        """
        self._progress = progress
        self._unread = []
        taken_at = self._clock()
        try:
            groups = {} if wanted.group is None else {wanted.group: self._group(wanted.group, wanted.owners)}
            routes = self._routes(wanted, groups.get(wanted.group or ""))
        finally:
            self._http.close()
        return ClusterSnapshot("dashboard", self._url, taken_at, routes, groups, tuple(self._unread))

    # -- routes ------------------------------------------------------------------------------------------------------

    def _routes(self, wanted: Wanted, group: ConsumerGroup | None) -> dict[str, RouteSighting]:
        if wanted.topics is not None:
            return dict(self._each("routes", self._route, wanted.topics))
        if group is not None:
            topics: Iterable[str] = (t for t in group.topics or () if not t.startswith("%RETRY%"))
        else:
            topics = (topic for topic in self._topics() if not _SYSTEM_TOPIC.match(topic))
        return dict(self._each("routes", self._route, sorted(topics), tolerant="route of topic"))

    def _route(self, topic: str) -> RouteSighting:
        path = "/topic/route.query"
        try:
            value = self._data(path, {"topic": topic})
        except _Refused as refused:
            if _NO_ROUTE not in refused.text:
                raise
            hint = suggestion("topics", topic, self._topics())
            raise DataError(f"topic {topic} has no route at {self._url}", hint=hint) from None
        document = docs.convert(value, docs.RouteDocument, f"{self._url}{path} of topic {topic}")
        return RouteSighting(docs.route(document, topic), self._seen(path))

    def _topics(self) -> list[str]:
        value = self._data("/topic/list.query", {})
        return docs.convert(value, docs.TopicListDocument, f"{self._url}/topic/list.query").topic_list

    # -- groups ------------------------------------------------------------------------------------------------------

    def _group(self, name: str, owners: bool) -> ConsumerGroup:
        addresses = self._broker_addresses()
        asked = self._each("members", lambda addr: self._connections(name, addr), addresses, tolerant="members at broker")
        if not asked:
            reason = self._unread[-1].reason if self._unread else "the Dashboard knows no broker"
            raise EndpointError(f"{self._url}: no broker tells the members of group {name}: {reason}")
        answers = [(addr, document) for addr, document in asked if document is not None]
        if not answers:
            self._must_exist(name)
            return ConsumerGroup(name, self._seen("/consumer/consumerConnection.query"), views=())
        views = tuple(MemberView(docs.connections(document), self._seen(addr)) for addr, document in answers)
        first = answers[0][1]
        group = ConsumerGroup(
            group=name,
            seen=self._seen("/consumer/consumerConnection.query"),
            consume_type=first.consume_type,
            message_model=first.message_model,
            consume_from_where=first.consume_from_where,
            views=views,
            topics=tuple(sorted({topic for _, document in answers for topic in document.subscription_table or ()})),
        )
        if not owners or group.message_model not in (CLUSTERING, None):
            return group
        return self._with_owners(group, addresses)

    def _with_owners(self, group: ConsumerGroup, addresses: list[str]) -> ConsumerGroup:
        ids = sorted(set(group.client_ids or ()))
        queues = docs.queue_states(self._progress_of(group.group, addresses))
        answers = self._each("what members hold", lambda i: self._running_info(group.group, i), ids, tolerant="member")
        held = {client_id: its_queues for client_id, (_, its_queues) in answers}
        return replace(
            group,
            queues=with_owners(queues, held, frozenset(ids)),
            reports={client_id: report for client_id, (report, _) in answers},
        )

    def _broker_addresses(self) -> list[str]:
        path = "/cluster/list.query"
        document = docs.convert(self._data(path, {}), docs.ClusterListDocument, self._url + path)
        brokers = sorted(document.cluster_info.broker_addr_table.items())
        return [addrs[min(addrs)] for _, data in brokers if (addrs := data.broker_addrs)]

    def _connections(self, group: str, address: str) -> docs.ConnectionsDocument | None:
        """What one broker says; None when no member is online there."""
        path = "/consumer/consumerConnection.query"
        try:
            value = self._data(path, {"consumerGroup": group, "address": address})
        except _Refused as refused:
            if _NOT_ONLINE in refused.text:
                return None
            raise
        return docs.convert(value, docs.ConnectionsDocument, self._url + path)

    def _must_exist(self, group: str) -> None:
        """A group without members is known to a broker or it is a mistake."""
        try:
            known = self._data("/consumer/examineSubscriptionGroupConfig.query", {"consumerGroup": group})
        except _Refused:
            known = None
        if not known:
            value = self._data("/consumer/groupList.query", {"skipSysGroup": "true"})
            groups = docs.convert(value, list[docs.GroupItem], f"{self._url}/consumer/groupList.query")
            raise DataError(
                f"group {group} is not known at {self._url}",
                hint=suggestion("groups", group, (g.group for g in groups if not g.group.startswith("%SYS%"))),
            )

    def _progress_of(self, group: str, addresses: list[str]) -> list[docs.TopicConsumerDocument]:
        path = "/consumer/queryTopicByConsumer.query"
        try:
            value = self._data(path, {"consumerGroup": group, "address": ",".join(addresses)})
        except _Refused as refused:
            self._unread.append(Unread(f"offsets of group {group}", docs.first_line(refused.text)))
            return []
        return docs.convert(value, list[docs.TopicConsumerDocument], self._url + path)

    def _running_info(self, group: str, client_id: str) -> tuple[MemberReport, frozenset[MessageQueue]]:
        path = "/consumer/consumerRunningInfo.query"
        value = self._data(path, {"consumerGroup": group, "clientId": client_id, "jstack": "false"})
        document = docs.convert(value, docs.RunningInfoDocument, self._url + path)
        return docs.member_report(document, client_id), docs.held_queues(document, self._url + path)

    # -- asking ------------------------------------------------------------------------------------------------------

    def _each(
        self, what: str, ask: Callable[[Asked], Answered], items: Iterable[Asked], tolerant: str | None = None
    ) -> list[tuple[Asked, Answered]]:
        """Ask for each item, a few at a time; a `tolerant` kind of item that fails is noted as unread."""
        listed = list(items)
        answers: list[tuple[Asked, Answered]] = []
        with asking_at_once(ask, listed, _AT_ONCE) as futures:
            for done, (item, future) in enumerate(zip(listed, futures, strict=True)):
                self._progress(what, done, len(listed))
                try:
                    answers.append((item, future.result()))
                except RmqlbError as error:
                    if tolerant is None or isinstance(error, ProtocolError):
                        raise
                    reason = docs.first_line(error.text) if isinstance(error, _Refused) else error.message
                    self._unread.append(Unread(f"{tolerant} {item}", reason))
        return answers

    def _data(self, path: str, params: dict[str, str]) -> object:
        """The data inside the envelope of a read, after logging in where that is asked for."""
        if path not in READ_PATHS:
            raise AssertionError(f"{path} is not on the list of reads")
        answer = self._http.get(path, params)
        if _asks_for_login(answer):
            if self._credentials is None:
                raise EndpointError(
                    f"{self._url} asks for a login",
                    hint="name the user with --user or in the URL, the password in RMQLB_PASSWORD or --password-file",
                )
            with self._login:  # the first request logs in, alone; the session's cookie then serves all
                answer = self._http.get(path, params)
                if _asks_for_login(answer):
                    log_in(self._http, self._credentials, self._url)
                    answer = self._http.get(path, params)
        return _open(answer)

    def _seen(self, place: str) -> Seen:
        where = self._url + place if place.startswith("/") else f"{self._url} for {place}"
        return Seen(where, self._clock())


class _Refused(EndpointError):
    """The Dashboard answered, and the answer is an error."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where}: {docs.first_line(text)}")
        self.text = text


def _asks_for_login(answer: Answer) -> bool:
    if answer.status in (301, 302, 303, 307):
        return "login" in answer.headers.get("location", "")
    return answer.status == 200 and len(answer.body) < 1000 and b"user not login" in answer.body


def _open(answer: Answer) -> object:
    if answer.status == 401:
        raise EndpointError(f"{answer.where}: refused (HTTP 401)", hint="does a proxy in front ask for a login?")
    if answer.status in (301, 302, 303, 307, 308):
        target = answer.headers.get("location", "nowhere")
        raise EndpointError(f"{answer.where}: redirected to {target[:120]}", hint="redirects are not followed; use that URL")
    if answer.status != 200:
        raise EndpointError(f"{answer.where}: HTTP {answer.status}", hint="is this the Dashboard's URL, context path included?")
    try:
        envelope = docs.decode(answer.body, object, answer.where)
    except DocumentError as error:
        html = answer.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))
        problem = "an HTML page instead of JSON" if html else f"not JSON: {error.message.removeprefix(answer.where + ': ')}"
        raise ProtocolError(
            f"{answer.where}: {problem}", hint="is this the Dashboard's URL, context path included?"
        ) from None
    if not isinstance(envelope, dict) or not {"status", "data"} <= envelope.keys():
        raise ProtocolError(f"{answer.where}: not a Dashboard's answer", hint="expected an object with status and data")
    if envelope["status"] != 0:
        raise _Refused(answer.where, str(envelope.get("errMsg") or "no reason given"))
    return envelope["data"]
