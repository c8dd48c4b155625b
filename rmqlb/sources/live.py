"""A running cluster as a source, whatever it speaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from rmqlb.errors import DataError, EndpointError, ProtocolError, RmqlbError
from rmqlb.model.group import (
    CLUSTERING,
    RETRY_PREFIX,
    ConsumerGroup,
    MemberReport,
    MemberView,
    ProxyView,
    QueueState,
    Seen,
    States,
    dead_letter_topic,
    is_grpc,
    retry_topic,
)
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import (
    AssignmentAnswer,
    AssignmentQuestion,
    ClusterSnapshot,
    Everything,
    OffsetQuestion,
    RouteSighting,
    Unread,
    Wanted,
    is_ghost,
    is_pattern,
    suggestion,
    unread_link,
)
from rmqlb.model.system_names import is_system_group, is_system_topic
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.concurrent import ask_concurrently
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.consumer_evidence import consume_stacks, consumer_evidence
from rmqlb.sources.formats.documents import popped_topics, with_owners
from rmqlb.sources.pace import NO_DEADLINE, Deadline, Pace
from rmqlb.sources.questions import (
    polling_num,
    reported_assignments,
    reported_offsets,
    request_modes,
    with_stored,
)
from rmqlb.sources.source import Refused, utc_now

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads
    from rmqlb.sources.native.proxies import Proxies
    from rmqlb.sources.native.source import NameServerReads

_NO_ANSWER = (ResponseCode.CONSUME_MSG_TIMEOUT, ResponseCode.RPC_TIME_OUT)
AT_ONCE = 4  # how many requests are under way at most, over all brokers together

Item = TypeVar("Item")
Answered = TypeVar("Answered")


class LiveSource:
    """A running cluster, read once; a part that cannot be read is noted as unread and does not spoil the rest.

    The reads go through a Dashboard or through NameServers and brokers, whose connections each method closes at its
    end. Brokers are asked one by one for a group's consumers, and their answers are kept apart.
    """

    def __init__(
        self,
        reads: DashboardReads | NameServerReads,
        clock: Callable[[], datetime] = utc_now,
        pace: Pace | None = None,  # that other readings share; one of its own by default
        proxies: Proxies | None = None,  # that are asked for consumers too
        deadline: Deadline = NO_DEADLINE,  # after which nothing is asked any more
    ) -> None:
        self.reads = reads
        self._proxies = proxies
        self._clock = clock
        self._pace = pace or Pace()
        self._deadline = deadline
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._begin(Wanted(), no_progress)

    def _begin(self, wanted: Wanted, progress: Progress) -> None:
        self._progress = progress
        self._spaced = wanted.spaced or wanted.evidence
        self._evidence = wanted.evidence
        self._unasked = wanted.unasked
        self._found: dict[str, RouteSighting | None] = {}
        self._unread: list[Unread] = []
        self._listed: frozenset[str] = frozenset()  # groups that brokers have listed
        self._requested: dict[str, Wanted] = {}  # group → what was wanted of it
        self._list: Callable[[], Sequence[str]] = list  # the groups that brokers list, of those that are wanted

    def _close(self) -> None:
        self.reads.close()
        if self._proxies is not None:
            self._proxies.close()

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        self._begin(wanted, progress)
        taken_at = self._clock()
        progress(self.reads.endpoint, 0, 0)
        try:
            if wanted.everything is not None:
                groups = self._everything(wanted.everything)
            else:
                groups = self._groups(wanted)
                if wanted.topics is not None:
                    self._routes(wanted.topics)
                elif not groups:
                    self._all_routes(t for t in self.reads.topics() if not is_system_topic(t))
            groups = self._with_silent_asked_again(groups)
        finally:
            self._close()
        return ClusterSnapshot(
            kind=self.reads.kind,
            endpoint=self.reads.endpoint,
            taken_at=taken_at,
            routes={sighting.route.topic: sighting for sighting in self._found.values() if sighting is not None},
            groups={group.group: group for group in groups},
            unread=(*self.reads.unread(), *(self._proxies.unread() if self._proxies else ()), *self._unread),
        )

    def ask_offsets(
        self, group: str, questions: Sequence[OffsetQuestion], progress: Progress = no_progress
    ) -> States | None:
        reads = self.reads.broker_reads
        with closing(self.reads):
            return None if reads is None else reported_offsets(reads, group, questions, AT_ONCE, progress)

    def ask_assignments(
        self, group: str, questions: Sequence[AssignmentQuestion], progress: Progress = no_progress
    ) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        reads = self.reads.broker_reads
        with closing(self.reads):
            return None if reads is None else reported_assignments(reads, group, questions, AT_ONCE, progress)

    def ask_message_type(self, topic: str, addresses: Sequence[str]) -> str | None:
        reads = self.reads.broker_reads
        with closing(self.reads):
            for address in addresses if reads is not None else ():
                with suppress(EndpointError, DataError):
                    if reads is not None and (found := reads.message_type(topic, address)) is not None:
                        return found
            return None

    def ask_stacks(
        self, group: str, client_ids: Sequence[str], progress: Progress = no_progress
    ) -> Mapping[str, tuple[str, ...]]:
        self._begin(Wanted(group=group, spaced=True), progress)
        with closing(self.reads):
            try:
                brokers = self.reads.brokers(group)
            except EndpointError:
                return {}
            via = {
                connection.client_id: brokers[broker]
                for broker, document in self._connections(group, brokers).items()
                for connection in (docs.connections(document) if document else ())
                if not is_grpc(connection.client_id)  # brokers wait 10 s for them, and no stack trace comes (5.5.0)
            }
            answers = self._each(
                "stack traces",
                lambda each: consume_stacks(self._running_info(group, each, via[each], stacks=True), group),
                [client_id for client_id in dict.fromkeys(client_ids) if client_id in via],
                lambda client_id, why: Unread("member", group, why, client_id),
                slots=False,
            )
        return {client_id: stacks for client_id, stacks in answers if stacks is not None}

    def _routes(self, topics: Sequence[str], *, tolerant: bool = False) -> list[RouteSighting]:
        missing = [topic for topic in topics if topic not in self._found]
        answers = self._each("routes", self.reads.route, missing, partial(Unread, "route") if tolerant else None)
        self._found.update(answers)
        lost = [topic for topic in topics if self._found.get(topic) is None]
        if lost and not tolerant:
            raise DataError(
                f"topic {lost[0]} has no route at {self.reads.endpoint}",
                hint=suggestion("topics", lost[0], (t for t in self.reads.topics() if not is_system_topic(t))),
                code="topic-not-found",
            )
        return [sighting for topic in topics if (sighting := self._found.get(topic)) is not None]

    def _all_routes(self, topics: Iterable[str]) -> None:
        """The routes of topics that the cluster lists; one that has none all the same is noted as unread."""
        names = sorted(topics)
        self._routes(names, tolerant=True)
        for topic in names:
            if topic in self._found and self._found[topic] is None:
                self._unread.append(Unread("route", topic, "it is listed and has no route"))

    def _everything(self, wanted: Everything) -> list[ConsumerGroup]:
        if not wanted.of_groups:
            self._all_routes(filter(wanted.takes_topic, self.reads.topics()))
        self._list = lambda: sorted(filter(wanted.takes_group, self.reads.groups()))
        listed = frozenset(self._list())
        # A Dashboard's list may be older than a group that is named in full.
        missing = {name for name in wanted.groups if not is_pattern(name) and name not in listed}
        names = sorted(listed.union(filter(self.reads.has_group, missing)))
        self._listed = frozenset(names)
        return self._several(names, lambda name: self._group(Wanted(group=name)))

    def _groups(self, wanted: Wanted) -> list[ConsumerGroup]:
        """Those that are named; where patterns name them, one that cannot be read is noted as unread."""

        def ask(name: str) -> ConsumerGroup:
            return self._group(replace(wanted, group=name))

        if not any(map(is_pattern, wanted.named)):
            return [ask(name) for name in wanted.named]
        self._listed = frozenset(self.reads.groups())
        self._list = lambda: wanted.groups_among(self.reads.groups())
        return self._several(wanted.groups_among(self._listed), ask)

    def _several(self, names: Sequence[str], ask: Callable[[str], ConsumerGroup]) -> list[ConsumerGroup]:
        progress, self._progress = self._progress, no_progress
        answers = self._each("groups", ask, names, partial(Unread, "group"), slots=False, show=progress)
        return [group for _, group in answers]

    def _with_silent_asked_again(self, groups: list[ConsumerGroup]) -> list[ConsumerGroup]:
        """The groups, those read again of which a broker kept silent that answers when it is asked once more."""
        lost = {part.name for part in self._unread if part.is_of_server}
        names = sorted(lost & self._requested.keys())
        if not names or self._deadline.has_passed or not self.reads.silent_brokers_answer():
            return groups
        self._unread = [part for part in self._unread if part.name not in names or part.kind == "route"]
        like = self._requested[names[0]]
        names += [name for name in self._list() if name not in self._requested]
        again = self._several(names, lambda name: self._group(replace(like, group=name)))
        found = {group.group: group for group in (*groups, *again)}
        return list(found.values())

    def _group(self, wanted: Wanted) -> ConsumerGroup:
        self._requested[wanted.group or ""] = wanted
        group = self._members(wanted)
        if wanted.owners and group.views == ():
            return self._unlisted(group, wanted.topics or ())
        if not wanted.owners or not group.views:
            return group
        if group.message_model not in (CLUSTERING, None):
            return self._with_reports(group)[0] if self._evidence else group
        return self._with_owners(group)

    def _members(self, asked: Wanted) -> ConsumerGroup:
        name = asked.group or ""
        brokers = self.reads.brokers(name)
        answers = self._connections(name, brokers)
        by_proxy = self._by_proxy(name)
        proxies = None if by_proxy is None else tuple(view for view, _ in by_proxy)
        documents = [document for document in answers.values() if document is not None]
        online = [*documents, *(document for _, document in by_proxy or () if document is not None)]
        names = sorted({topic for document in online for topic in document.subscription_table or ()})
        wanted = list(
            dict.fromkeys(
                (*(names if asked.topics is None else asked.topics), *([retry_topic(name)] if asked.retry else ()))
            )
        )
        serving = {
            broker.broker_name: address
            for sighting in self._routes(wanted, tolerant=True)
            for broker in sighting.route.broker_datas
            if (address := broker.address)
        }
        if documents:
            answers |= self._connections(name, {b: serving[b] for b in sorted(serving) if b not in brokers})
        if not online:
            self._must_be_known(name, answers)
            return ConsumerGroup(name, self._seen(), views=(), proxies=proxies)
        first = online[0]
        return ConsumerGroup(
            group=name,
            seen=self._seen(),
            consume_type=first.consume_type,
            message_model=first.message_model,
            consume_from_where=first.consume_from_where,
            proxies=proxies,
            views=()
            if not documents
            else tuple(
                MemberView(docs.connections(document) if document else (), self._seen(), (serving | brokers)[broker])
                for broker, document in answers.items()
                if document is not None or broker in serving
            ),
            topics=tuple(names),
        )

    def _connections(self, group: str, brokers: Mapping[str, str]) -> dict[str, docs.ConnectionsDocument | None]:
        def ask(broker: str) -> docs.ConnectionsDocument | None:
            return self.reads.connections(group, brokers[broker])

        return dict(self._each("consumers", ask, brokers, lambda broker, why: Unread("members", group, why, broker)))

    def _by_proxy(self, group: str) -> list[tuple[ProxyView, docs.ConnectionsDocument | None]] | None:
        if self._proxies is None:
            return None
        with self._slots:
            return self._proxies.consumers(group)

    def _must_be_known(self, group: str, answers: Mapping[str, object]) -> None:
        if not answers:
            parts = [part for part in self._unread if (part.kind, part.name) == ("members", group)]
            reason = parts[-1].reason if parts else "there is no broker to ask"
            problem = f"{self.reads.endpoint}: no broker reports the consumers of group {group}: {reason}"
            if parts and all(part.no_answer for part in parts):
                raise EndpointError(problem, code="no-answer")
            raise EndpointError(problem)
        if group not in self._listed and not self.reads.has_group(group):
            raise DataError(
                f"group {group} is not known at {self.reads.endpoint}",
                hint=suggestion("groups", group, (g for g in self.reads.groups() if not is_system_group(g))),
                group=group,
                code="group-not-found",
            )

    def _with_owners(self, group: ConsumerGroup) -> ConsumerGroup:
        addresses = list(dict.fromkeys(view.broker_addr or "" for view in group.views or ()))
        states: dict[MessageQueue, QueueState] = {}
        lags: dict[str, int] = {}
        for batch, some in self._each(
            "offsets",
            lambda batch: self._offsets(group.group, batch),
            [addresses] if self.reads.offsets_at_once else [[address] for address in addresses],
            lambda batch, why: Unread("offsets", group.group, why, ", ".join(batch)),
        ):
            states.update(some)
            if len(batch) == 1:
                lags[batch[0]] = sum(state.lag or 0 for state in some.values())
        group, via, held = self._with_reports(group, lags)
        if self._evidence and via.keys() <= held.keys():
            states = dict.fromkeys(self._readable(group.reports), QueueState()) | states
        members = frozenset(client_id for client_id in group.client_ids or () if not is_grpc(client_id))
        owned = with_owners(states, held, members, popped_topics(group.reports))
        group = replace(group, queues=owned)
        modes = request_modes(self._broker_reads, group, via)
        return replace(
            group,
            request_modes=modes.modes,
            pop_share_queue_nums=modes.shares,
            dead_letters=self._dead_letters(group, addresses) if _has_failures(group.reports) else None,
        )

    def _dead_letters(self, group: ConsumerGroup, addresses: Sequence[str]) -> int | None:
        """How many messages its dead-letter topic has had, which has one queue (`MixAll.DLQ_NUMS_PER_GROUP`)."""
        reads = self._broker_reads
        if reads is None:
            return None
        queue = MessageQueue(dead_letter_topic(group.group), "", 0)
        try:
            return sum(reads.max_offset(queue, address) for address in addresses)
        except EndpointError:
            return None

    def _readable(self, reports: Mapping[str, MemberReport]) -> list[MessageQueue]:
        """The queues of all topics to which consumers say that they subscribe.

        A broker has the topics of the last heartbeat only, and tells of no others how far the group has read them.
        """
        topics = {topic for report in reports.values() for topic in report.topics or ()}
        sightings = self._routes(sorted(t for t in topics if not t.startswith(RETRY_PREFIX)), tolerant=True)
        return [queue for sighting in sightings for queue in sighting.route.subscribe_queues()]

    @property
    def _broker_reads(self) -> NameServerReads | None:
        return None if self._deadline.has_passed else self.reads.broker_reads

    def _with_reports(
        self, group: ConsumerGroup, lags: Mapping[str, int] = MappingProxyType({})
    ) -> tuple[ConsumerGroup, dict[str, str], dict[str, frozenset[MessageQueue]]]:
        """What its consumers say of themselves, through which broker each was asked, and what each of them holds.

        Each is asked through the broker where the group has most unread (`lags`, by address): if one of its links is
        cut, messages wait at that link's broker. gRPC clients are not asked, for whom a broker with a Proxy in it waits
        10 s in vain (5.5.0), nor those that only a Proxy lists, which does not know the question.
        """
        listed: dict[str, list[str]] = {}
        for view in sorted(group.views or (), key=lambda view: lags.get(view.broker_addr or "", 0)):
            for client_id in dict.fromkeys(view.client_ids):
                if not is_grpc(client_id):
                    listed.setdefault(client_id, []).insert(0, view.broker_addr or "")
        via = {client_id: addresses[0] for client_id, addresses in listed.items()}
        answers = self._each(
            "queues of consumers",
            lambda client_id: self._reported(group.group, client_id, listed[client_id]),
            sorted(via.keys() - self._unasked),
            lambda client_id, why: Unread("member", group.group, why, client_id),
            slots=False,
        )
        left_out = sorted(via.keys() & self._unasked)
        self._unread += [Unread("member", group.group, "not asked, so that it has time", each) for each in left_out]
        reports = {client_id: report for client_id, (report, _) in answers}
        held = {client_id: queues for client_id, (_, queues) in answers}
        for part in self._unread:
            if (part.kind, part.name) == ("member", group.group) and is_ghost(part.reason):
                held[part.detail or ""] = frozenset()
        return replace(group, reports=reports), via, held

    def _reported(
        self, group: str, client_id: str, addresses: Sequence[str]
    ) -> tuple[MemberReport, frozenset[MessageQueue]]:
        document, address = self._through_any(group, client_id, addresses)
        where, report = f"{address}, {client_id}", docs.member_report(document, client_id)
        if self._evidence:
            now = int(self._clock().timestamp() * 1000)
            report = replace(report, evidence=consumer_evidence(document, where, now))
        return report, docs.held_queues(document, where)

    def _through_any(
        self, group: str, client_id: str, addresses: Sequence[str]
    ) -> tuple[docs.RunningInfoDocument, str]:
        """The answer of a consumer through the first of these brokers, or where there is none, through the next one.

        A consumer that answers through the second broker only is asked through the first once more: silence again is
        that link's, not the consumer's. Only a diagnosis asks twice: a process that stands still answers everything
        that it was asked when it goes on.
        """
        first, *others = addresses
        try:
            return self._running_info(group, client_id, first), first
        except EndpointError as silence:
            finds_its_way = self.reads.offsets_at_once  # a Dashboard, whatever broker is named
            if not self._evidence or not others or finds_its_way or not _no_answer_in_time(silence):
                raise
            document = self._running_info(group, client_id, others[0])
        try:
            return self._running_info(group, client_id, first), first
        except EndpointError as silence:
            if _no_answer_in_time(silence):
                self._unread.append(unread_link(group, silence.message, client_id, first))
        return document, others[0]

    def _running_info(
        self, group: str, client_id: str, address: str, *, stacks: bool = False
    ) -> docs.RunningInfoDocument:
        """A consumer's own report, asked for by one request at a time, also where it is in several groups.

        A Java client answers on the threads that handle its brokers' answers, as many as it has processors, and asks
        brokers for offsets that it has not in memory (`DefaultMQPushConsumerImpl.consumerRunningInfo`). When all of
        them wait for such an answer, it consumes nothing until a timeout of 5 s, for each queue.
        """
        with self._pace.turn(client_id, self._deadline, spaced=self._spaced), self._slots:
            self._deadline.must_leave()
            return self.reads.running_info(group, client_id, address, stacks=stacks)

    def _unlisted(self, group: ConsumerGroup, wanted: Sequence[str]) -> ConsumerGroup:
        """A group of which no broker lists a consumer, with what shows whether it is consumed all the same.

        Its topics, where no Proxy knows them, are those of which it has stored offsets; of the wanted ones receive
        requests are asked for too.
        """
        name, addresses = group.group, list(self.reads.brokers(group.group).values())
        states: dict[MessageQueue, QueueState] = {}
        rates: list[float] = []
        for _, (some, rate) in self._each(
            "offsets",
            lambda address: self._consumed(name, address),
            addresses,
            lambda address, why: Unread("offsets", name, why, address),
        ):
            states.update(some)
            rates += [] if rate is None else [rate]
        topics = sorted({queue.topic for queue in states})
        self._routes(topics, tolerant=True)
        asked = list(dict.fromkeys((*wanted, *topics)))
        return replace(
            group,
            topics=group.topics or tuple(topics) or None,
            queues=states,
            consume_tps=sum(rates) if rates else None,
            polling_num=None if group.client_ids else polling_num(self._broker_reads, name, asked, addresses),
        )

    def _consumed(self, group: str, address: str) -> tuple[States, float | None]:
        """Nothing where the far side refuses, as a Dashboard does for a group that has stored no offset."""
        reads = self.reads.broker_reads
        try:
            return (self.reads.offsets(group, [address]), None) if reads is None else reads.consumed(group, address)
        except Refused:
            return {}, None

    def _offsets(self, group: str, addresses: Sequence[str]) -> States:
        states, reads = self.reads.offsets(group, addresses), self.reads.broker_reads
        if reads is None:
            return states
        reported, problem = with_stored(reads, group, states, addresses[0])
        if problem is not None:
            self._unread.append(Unread("stored-offsets", group, problem, addresses[0]))
        return reported

    def _each(
        self,
        what: str,
        ask: Callable[[Item], Answered],
        items: Iterable[Item],
        unread: Callable[[Item, str], Unread] | None = None,
        *,
        slots: bool = True,
        show: Progress | None = None,
    ) -> list[tuple[Item, Answered]]:
        """Ask for each item, a few at a time; one that fails is noted as the `unread` part, or its error raised."""

        def in_turn(item: Item) -> Answered:
            with self._slots if slots else nullcontext():
                if unread is not None:
                    self._deadline.must_leave()
                return ask(item)

        listed = list(items)
        answers: list[tuple[Item, Answered]] = []
        with ask_concurrently(in_turn, listed, AT_ONCE) as futures:
            for done, (item, future) in enumerate(zip(listed, futures, strict=True)):
                (show or self._progress)(what, done, len(listed))
                try:
                    answers.append((item, future.result()))
                except RmqlbError as error:
                    if unread is None or isinstance(error, ProtocolError):
                        raise
                    reason = docs.first_line(error.text) if isinstance(error, Refused) else error.message
                    part = unread(item, reason)
                    self._unread.append(replace(part, no_answer=_is_silence(error, part)))
        return answers

    def _seen(self) -> Seen:
        return Seen(self.reads.endpoint, self._clock())


def _has_failures(reports: Mapping[str, MemberReport]) -> bool:
    evidence = (report.evidence for report in reports.values())
    return any(status.failed_per_s for one in evidence if one is not None for status in (one.statuses or {}).values())


def _is_silence(error: RmqlbError, part: Unread) -> bool:
    """No answer came in time: none to us, or none to the broker or Dashboard that asked for us.

    A consumer that was not asked, as its broker cannot be reached or the deadline has passed, is not silent.
    """
    return _no_answer_in_time(error) or (part.kind != "member" and error.code in ("unreachable", "deadline"))


def _no_answer_in_time(error: RmqlbError) -> bool:
    return error.code == "no-answer" or (isinstance(error, Refused) and error.response_code in _NO_ANSWER)
