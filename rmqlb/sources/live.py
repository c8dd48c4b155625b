"""A running cluster as a source, over any protocol.

- QUERY_ASSIGNMENT (400) changes nothing and needs no connection of the client ID that it names, so `rmqlb` can request
  assignments for any consumer (`QueryAssignmentProcessor.queryAssignment` of 5.5.0).
- `GET_CONSUME_STATS` reports offset 0 where nothing is stored. Consumers use another request
  (`RebalancePushImpl.computePullFromWhereWithException`), and so does this file.
- RocketMQ 5's gRPC clients connect to a Proxy. In cluster mode brokers list none of them, and receive POP requests for
  their group from the Proxy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
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
    is_system_group,
    is_system_topic,
    retry_topic,
)
from rmqlb.model.message_queue import MessageQueue, grouped, sort_queues
from rmqlb.model.result import Progress, no_progress
from rmqlb.model.snapshot import (
    UNREAD_WORDS,
    AssignmentAnswer,
    AssignmentQuestion,
    ClusterSnapshot,
    OffsetQuestion,
    RouteSighting,
    Unread,
    Wanted,
    is_ghost,
    is_pattern,
    suggestion,
    unread_link,
)
from rmqlb.remoting.codes import ResponseCode
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.native.source import NameServerReads, Proxies
from rmqlb.sources.pace import NO_DEADLINE, Pace, ask_concurrently
from rmqlb.sources.source import Refused

if TYPE_CHECKING:
    from rmqlb.sources.dashboard import DashboardReads

_NO_ANSWER = (ResponseCode.CONSUME_MSG_TIMEOUT, ResponseCode.RPC_TIME_OUT)
AT_ONCE = 4  # maximum number of concurrent requests over all brokers
_MOST_QUEUES = 256  # of one group per broker whose stored offset is requested while a snapshot is taken
_MOST_TOPICS = 16  # of one group that is requested from brokers

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Question = TypeVar("Question", AssignmentQuestion, OffsetQuestion)


class LiveSource:
    """A running cluster, read once; a part that cannot be read is noted as unread.

    Each broker lists a group's consumers separately. Each method closes the connections of `reads`.
    """

    def __init__(self, reads: DashboardReads | NameServerReads) -> None:
        self.reads = reads
        is_tls = reads.endpoint.startswith("rocketmqs:")
        self._proxies = Proxies(reads.access, tls=is_tls) if reads.access.proxies else None
        self._clock = reads.access.clock
        self._pace = reads.access.pace or Pace()
        self._deadline = reads.access.deadline or NO_DEADLINE
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self.shown: Callable[[], AbstractContextManager[Progress]] = lambda: nullcontext(no_progress)
        self._begin(Wanted(), no_progress)

    def _begin(self, wanted: Wanted, progress: Progress) -> None:
        self._progress = progress
        self._wanted = wanted
        self._found: dict[str, RouteSighting | None] = {}
        self._unread: list[Unread] = []
        self._listed: frozenset[str] = frozenset()  # groups that brokers have listed
        self._requested: set[str] = set()  # groups
        self._chosen: Callable[[], Sequence[str]] = list  # the groups that brokers list, of those that are wanted
        self._own_groups = 0  # RocketMQ's own, which are left out

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        self._begin(wanted, progress)
        taken_at = self._clock()
        progress(self.reads.endpoint, 0, 0)
        try:
            groups = self._groups()
            if wanted.everything is None and wanted.topics is not None:
                self._routes(wanted.topics)
            elif wanted.everything is None and not groups:
                self._all_routes(t for t in self.reads.topics() if not is_system_topic(t))
            groups = self._with_silent_asked_again(groups)
        finally:
            self.reads.close()
            if self._proxies is not None:
                self._proxies.close()
        servers = [each for each in (self.reads.broker_reads, self._proxies) if each is not None]
        order = list(UNREAD_WORDS)  # threads note the parts in any order
        unread = sorted(self._unread, key=lambda part: (order.index(part.kind), part.name, part.detail or ""))
        return ClusterSnapshot(
            kind=self.reads.kind,
            endpoint=self.reads.endpoint,
            taken_at=taken_at,
            routes={sighting.route.topic: sighting for sighting in self._found.values() if sighting is not None},
            groups={group.group: group for group in groups},
            unread=(*(part for each in servers for part in each.unread()), *unread),
            own_groups=self._own_groups,
        )

    def ask_offsets(self, group: str, questions: Sequence[OffsetQuestion]) -> States | None:
        """The offsets that brokers return to a consumer that takes these queues; None if they cannot be queried."""
        answers = self._ask_brokers("start offsets", lambda reads, each: reads.at_takeover(group, each), questions)
        return None if answers is None else {question.queue: state for question, state in answers}

    def ask_assignments(
        self, group: str, questions: Sequence[AssignmentQuestion]
    ) -> Mapping[AssignmentQuestion, AssignmentAnswer] | None:
        """The answers of brokers to consumers that let them assign their queues; None if they cannot be queried."""
        answers = self._ask_brokers("assignments", lambda reads, each: reads.assignment(group, each), questions)
        return None if answers is None else dict(answers)

    def ask_message_type(self, topic: str, addresses: Sequence[str]) -> str | None:
        """The topic's `message.type` at the first of these brokers that reports it; None where none does."""
        reads = self.reads.broker_reads
        with closing(self.reads):
            if reads is None:
                return None
            for address in addresses:
                with suppress(EndpointError, DataError):
                    if (found := reads.message_type(topic, address)) is not None:
                        return found
        return None

    def ask_stacks(self, group: str, client_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Client ID → the stack traces of its consume threads, of the consumers that answer."""
        with self.shown() as progress, closing(self.reads):
            self._begin(Wanted(group=group, spaced=True), progress)
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
                lambda each: docs.consume_stacks(self._running_info(group, each, via[each], stacks=True), group),
                [client_id for client_id in dict.fromkeys(client_ids) if client_id in via],
                lambda client_id, why: Unread("member", group, why, client_id),
                slots=False,
            )
        return {client_id: stacks for client_id, stacks in answers if stacks is not None}

    def _ask_brokers(
        self, what: str, ask: Callable[[NameServerReads, Question], Answer | None], questions: Sequence[Question]
    ) -> list[tuple[Question, Answer]] | None:
        reads = self.reads.broker_reads
        if reads is None:
            self.reads.close()
            return None
        batches = grouped((question.address, question) for question in questions)

        def of_broker(address: str) -> list[tuple[Question, Answer]]:
            """Stop at the first silence or unknown request code of the broker, so that silence costs one timeout."""
            answers: list[tuple[Question, Answer]] = []
            with suppress(EndpointError):
                for question in batches[address]:
                    with suppress(Refused):
                        if (answer := ask(reads, question)) is None:
                            break
                        answers.append((question, answer))
            return answers

        with self.shown() as progress, closing(reads):
            self._begin(Wanted(), progress)
            return [pair for _, pairs in self._each(what, of_broker, batches, slots=False) for pair in pairs]

    def _routes(self, topics: Sequence[str], *, tolerant: bool = False) -> list[RouteSighting]:
        missing = [topic for topic in topics if topic not in self._found]
        answers = self._each("routes", self.reads.route, missing, partial(Unread, "route") if tolerant else None)
        self._found.update(answers)
        lost = [topic for topic in topics if self._found.get(topic) is None]
        if lost and not tolerant:
            hint = suggestion("topics", lost[0], (t for t in self.reads.topics() if not is_system_topic(t)))
            raise DataError(f"topic {lost[0]} has no route at {self.reads.endpoint}", hint=hint, code="topic-not-found")
        return [sighting for topic in topics if (sighting := self._found.get(topic)) is not None]

    def _all_routes(self, topics: Iterable[str]) -> None:
        names = sorted(topics)
        self._routes(names, tolerant=True)
        lost = [topic for topic in names if topic in self._found and self._found[topic] is None]
        self._unread += [Unread("route", topic, "it is listed, but has no route") for topic in lost]

    def _groups(self) -> list[ConsumerGroup]:
        wanted, everything = self._wanted, self._wanted.everything
        if everything is None and not any(map(is_pattern, wanted.named)):
            return [self._group(name) for name in wanted.named]
        if everything is None:
            self._chosen = lambda: wanted.groups_among(self.reads.groups())
            self._listed = frozenset(self.reads.groups())
            return self._several(wanted.groups_among(self._listed))
        if not everything.of_groups:
            self._all_routes(filter(everything.takes_topic, self.reads.topics()))
        self._wanted = replace(wanted, topics=None, owners=True, retry=False)  # of each group, all
        self._chosen = lambda: sorted(filter(everything.takes_group, self.reads.groups()))
        present = frozenset(self.reads.groups())
        listed = frozenset(filter(everything.takes_group, present))
        self._own_groups = sum(map(is_system_group, present - listed))
        # A Dashboard's list may be older than a group that is named in full.
        missing = {name for name in everything.groups if not is_pattern(name) and name not in listed}
        self._listed = listed.union(filter(self.reads.has_group, missing))
        return self._several(sorted(self._listed))

    def _several(self, names: Sequence[str]) -> list[ConsumerGroup]:
        progress, self._progress = self._progress, no_progress
        answers = self._each("groups", self._group, names, partial(Unread, "group"), slots=False, show=progress)
        return [group for _, group in answers]

    def _with_silent_asked_again(self, groups: list[ConsumerGroup]) -> list[ConsumerGroup]:
        """Read again the groups for which a silent broker answers a second request."""
        names = sorted({part.name for part in self._unread if part.is_of_server} & self._requested)
        reads = self._reads_in_time
        if not names or reads is None or not reads.silent_brokers_answer():
            return groups
        self._unread = [part for part in self._unread if part.name not in names or part.kind == "route"]
        again = self._several([*names, *(name for name in self._chosen() if name not in self._requested)])
        return list({group.group: group for group in (*groups, *again)}.values())

    def _group(self, name: str) -> ConsumerGroup:
        self._requested.add(name)
        group = self._members(name)
        if self._wanted.owners and group.views == ():
            return self._unlisted(group)
        if not self._wanted.owners or not group.views:
            return group
        if group.message_model not in (CLUSTERING, None):
            return self._with_reports(group)[0] if self._wanted.evidence else group
        return self._with_owners(group)

    def _members(self, name: str) -> ConsumerGroup:
        brokers = self.reads.brokers(name)
        answers = self._connections(name, brokers)
        by_proxy: list[tuple[ProxyView, docs.ConnectionsDocument | None]] = []
        if self._proxies is not None:
            with self._slots:
                by_proxy = self._proxies.consumers(name)
        proxies = None if self._proxies is None else tuple(view for view, _ in by_proxy)
        documents = [document for document in answers.values() if document is not None]
        online = [*documents, *(document for _, document in by_proxy if document is not None)]
        subscribed = sorted({topic for document in online for topic in document.subscription_table or ()})
        topics = self._wanted.topics if self._wanted.topics is not None else subscribed
        with_retry = dict.fromkeys((*topics, retry_topic(name)) if self._wanted.retry else topics)
        routes = [sighting.route for sighting in self._routes(list(with_retry), tolerant=True)]
        serving = {b.broker_name: address for r in routes for b in r.broker_datas if (address := b.address)}
        if documents:
            answers |= self._connections(name, {b: serving[b] for b in sorted(serving) if b not in brokers})
        if not online:
            self._must_be_known(name, answers)
            return ConsumerGroup(name, self._seen(), views=(), proxies=proxies)
        views = [
            MemberView(docs.connections(document) if document else (), self._seen(), (serving | brokers)[broker])
            for broker, document in answers.items()
            if document is not None or broker in serving
        ]
        return ConsumerGroup(
            group=name,
            seen=self._seen(),
            consume_type=online[0].consume_type,
            message_model=online[0].message_model,
            consume_from_where=online[0].consume_from_where,
            proxies=proxies,
            views=tuple(views) if documents else (),
            topics=tuple(subscribed),
        )

    def _connections(self, group: str, brokers: Mapping[str, str]) -> dict[str, docs.ConnectionsDocument | None]:
        def ask(broker: str) -> docs.ConnectionsDocument | None:
            return self.reads.connections(group, brokers[broker])

        return dict(self._each("consumers", ask, brokers, lambda broker, why: Unread("members", group, why, broker)))

    def _must_be_known(self, group: str, answers: Mapping[str, object]) -> None:
        if not answers:
            parts = [part for part in self._unread if (part.kind, part.name) == ("members", group)]
            reason = parts[-1].reason if parts else "there is no broker to query"
            problem = f"{self.reads.endpoint}: no broker reports the consumers of group {group}: {reason}"
            silent = bool(parts) and all(part.no_answer for part in parts)
            raise EndpointError(problem, code="no-answer" if silent else None)
        if group not in self._listed and not self.reads.has_group(group):
            problem = f"group {group} is unknown at {self.reads.endpoint}"
            hint = suggestion("groups", group, (g for g in self.reads.groups() if not is_system_group(g)))
            raise DataError(problem, hint=hint, group=group, code="group-not-found")

    def _with_owners(self, group: ConsumerGroup) -> ConsumerGroup:
        addresses = list(dict.fromkeys(view.broker_addr or "" for view in group.views or ()))
        states: dict[MessageQueue, QueueState] = {}
        lags: dict[str, int] = {}
        for batch, some in self._each(
            "offsets",
            lambda batch: self._offsets(group.group, batch),
            [addresses] if self.reads.broker_reads is None else [[address] for address in addresses],
            lambda batch, why: Unread("offsets", group.group, why, ", ".join(batch)),
        ):
            states.update(some)
            if len(batch) == 1:
                lags[batch[0]] = sum(state.lag or 0 for state in some.values())
        group, via, by_consumer = self._with_reports(replace(group, seen=self._seen()), lags)
        if self._wanted.evidence and via.keys() <= by_consumer.keys():
            states = dict.fromkeys(self._readable(group.reports), QueueState()) | states
        members = frozenset(client_id for client_id in group.client_ids or () if not is_grpc(client_id))
        owned = docs.with_owners(states, by_consumer, members, group.reports)
        reads = self._reads_in_time
        if reads is None:
            return replace(group, queues=owned)
        return replace(
            _with_request_modes(group, reads, via), queues=owned, dead_letters=_dead_letters(reads, group, addresses)
        )

    @property
    def _reads_in_time(self) -> NameServerReads | None:
        return None if self._deadline.rest <= 0 else self.reads.broker_reads

    def _offsets(self, group: str, addresses: Sequence[str]) -> States:
        """Offsets by queue, stored ones where brokers report 0; for an empty queue 0 is correct."""
        reported, reads = dict(self.reads.offsets(group, addresses)[0]), self.reads.broker_reads
        if reads is None:
            return reported
        zeros = sort_queues(
            q for q, state in reported.items() if state.consumer_offset == 0 and state.broker_offset != 0
        )
        more, problem = len(zeros) - _MOST_QUEUES, None
        if more > 0:
            problem = f"rmqlb requests the offsets of at most {_MOST_QUEUES} queues, and {more} more report 0"
        try:
            for queue in zeros[:_MOST_QUEUES]:
                stored = reads.stored_offset(group, queue, addresses[0])
                reported[queue] = replace(reported[queue], consumer_offset=stored, stored_offset=stored)
        except EndpointError as error:
            problem = error.message
        if problem is not None:
            self._unread.append(Unread("stored-offsets", group, problem, addresses[0]))
        return reported

    def _readable(self, reports: Mapping[str, MemberReport]) -> list[MessageQueue]:
        """The queues of all topics in consumers' reports; brokers list only the topics of the last heartbeat."""
        topics = {topic for report in reports.values() for topic in report.topics or ()}
        sightings = self._routes(sorted(t for t in topics if not t.startswith(RETRY_PREFIX)), tolerant=True)
        return [queue for sighting in sightings for queue in sighting.route.subscribe_queues()]

    def _with_reports(
        self, group: ConsumerGroup, lags: Mapping[str, int] = MappingProxyType({})
    ) -> tuple[ConsumerGroup, dict[str, str], dict[str, frozenset[MessageQueue]]]:
        """Reports of its consumers, the broker address that each was read through, and the queues of each.

        Each consumer is read through the broker with the largest lag (`lags`, by address): messages wait at the broker
        whose link is cut. For gRPC clients a broker with a Proxy waits 10 s (5.5.0), so they are left out.
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
            sorted(via.keys() - self._wanted.unasked),
            lambda client_id, why: Unread("member", group.group, why, client_id),
            slots=False,
        )
        left_out = sorted(via.keys() & self._wanted.unasked)
        self._unread += [Unread("member", group.group, "not queried, to spare it", each) for each in left_out]
        by_consumer = {client_id: queues for client_id, (_, queues) in answers}
        for part in self._unread:
            if (part.kind, part.name) == ("member", group.group) and is_ghost(part.reason):
                by_consumer[part.detail or ""] = frozenset()
        return replace(group, reports={client_id: report for client_id, (report, _) in answers}), via, by_consumer

    def _reported(
        self, group: str, client_id: str, addresses: Sequence[str]
    ) -> tuple[MemberReport, frozenset[MessageQueue]]:
        document, address = self._through_any(group, client_id, addresses)
        where, now = f"{address}, {client_id}", int(self._clock().timestamp() * 1000)
        evidence = docs.consumer_evidence(document, where, now) if self._wanted.evidence else None
        return docs.member_report(document, client_id, evidence), docs.held_queues(document, where)

    def _through_any(
        self, group: str, client_id: str, addresses: Sequence[str]
    ) -> tuple[docs.RunningInfoDocument, str]:
        """The answer of a consumer through the first of these brokers, otherwise through the second.

        A consumer that answers only through the second broker gets another request through the first: if that times
        out too, the link is cut. Only a diagnosis does this: a process that stands still answers all requests later. A
        Dashboard chooses the broker itself.
        """
        first, *others = addresses
        try:
            return self._running_info(group, client_id, first), first
        except EndpointError as silence:
            asks_twice = self._wanted.evidence and others and self.reads.broker_reads is not None
            if not asks_twice or not _no_answer_in_time(silence):
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
        """A consumer's own report, by one request at a time over all groups.

        A Java client answers on the threads that handle its brokers' answers, one per processor, and requests offsets
        from brokers (`DefaultMQPushConsumerImpl.consumerRunningInfo`). If all threads wait for such an answer, the
        client consumes nothing until a timeout of 5 s, for each queue.
        """
        spaced = self._wanted.spaced or self._wanted.evidence
        with self._pace.turn(client_id, self._deadline, spaced=spaced), self._slots:
            self._deadline.must_leave()
            return self.reads.running_info(group, client_id, address, stacks=stacks)

    def _unlisted(self, group: ConsumerGroup) -> ConsumerGroup:
        """A group without consumers at brokers, with what shows whether a Proxy consumes it.

        Its topics, where no Proxy lists them, are those with stored offsets.
        """
        name, addresses = group.group, list(self.reads.brokers(group.group).values())

        def ask(address: str) -> tuple[States, float | None]:
            try:
                return self.reads.offsets(name, [address])
            except Refused:  # a Dashboard does, of a group that has stored no offset
                return {}, None

        answers = self._each("offsets", ask, addresses, lambda address, why: Unread("offsets", name, why, address))
        states = {queue: state for _, (some, _) in answers for queue, state in some.items()}
        rates = [rate for _, (_, rate) in answers if rate is not None]
        topics = sorted({queue.topic for queue in states})
        self._routes(topics, tolerant=True)
        waiting: list[int] = []
        reads = self._reads_in_time
        if reads is not None and not group.client_ids:
            named = dict.fromkeys((*(self._wanted.topics or ()), *topics))
            polled = [topic for topic in named if not topic.startswith(RETRY_PREFIX)]
            numbers = [reads.polling_num(name, topic, at) for topic in polled[:_MOST_TOPICS] for at in addresses]
            waiting = [number for number in numbers if number is not None]
        return replace(
            group,
            topics=group.topics or tuple(topics) or None,
            queues=states,
            consume_tps=sum(rates) if rates else None,
            polling_num=sum(waiting) if waiting else None,
        )

    def _each(
        self,
        what: str,
        ask: Callable[[Item], Answer],
        items: Iterable[Item],
        unread: Callable[[Item, str], Unread] | None = None,
        *,
        slots: bool = True,
        show: Progress | None = None,
    ) -> list[tuple[Item, Answer]]:
        """Ask for each item, a few at a time; a failure is noted as the `unread` part, or raised without it."""

        def in_turn(item: Item) -> Answer:
            with self._slots if slots else nullcontext():
                if unread is not None:
                    self._deadline.must_leave()
                return ask(item)

        listed = list(items)
        answers: list[tuple[Item, Answer]] = []
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
                    # A consumer without a request (no way to its broker, or the deadline) is not silent.
                    silent = part.kind != "member" and error.code in ("unreachable", "deadline")
                    self._unread.append(replace(part, no_answer=silent or _no_answer_in_time(error)))
        return answers

    def _seen(self) -> Seen:
        return Seen(self.reads.endpoint, self._clock())


def _no_answer_in_time(error: RmqlbError) -> bool:
    return error.code == "no-answer" or (isinstance(error, Refused) and error.response_code in _NO_ANSWER)


def _dead_letters(reads: NameServerReads, group: ConsumerGroup, addresses: Sequence[str]) -> int | None:
    """Messages in its dead-letter topic (one queue, `MixAll.DLQ_NUMS_PER_GROUP`) where a listener fails."""
    evidence = (report.evidence for report in group.reports.values())
    statuses = (status for one in evidence if one is not None for status in (one.statuses or {}).values())
    if not any(status.failed_per_s for status in statuses):
        return None
    queue = MessageQueue(dead_letter_topic(group.group), "", 0)
    try:
        return sum(reads.max_offset(queue, address) for address in addresses)
    except EndpointError:
        return None


def _with_request_modes(group: ConsumerGroup, reads: NameServerReads, via: Mapping[str, str]) -> ConsumerGroup:
    """The group with the modes that brokers have for it; `via`: client ID → address of a broker that lists it.

    Groups whose consumers all rebalance themselves need none: those consumers pull.
    """
    reports = group.reports
    if all(client_id in reports and reports[client_id].client_rebalance for client_id in via):
        return group
    answers = [reads.request_modes(group.group, address) for address in dict.fromkeys(via.values())]
    modes: dict[str, set[str]] = {}
    shares: dict[str, set[int]] = {}
    for topic, given in (pair for answer in answers if answer is not None for pair in answer.items()):
        modes.setdefault(topic, set()).add(given.mode)
        if given.pop_share_queue_num is not None:
            shares.setdefault(topic, set()).add(given.pop_share_queue_num)
    led = next((client_id for client_id, report in reports.items() if report.client_rebalance is False), None)
    rest = [topic for topic in group.own_topics or () if topic not in modes] if led is not None else []
    for topic in rest[:_MOST_TOPICS]:
        question = AssignmentQuestion(topic, led or "", "AVG", "", via[led or ""])
        reported = reads.assignment(group.group, question)
        if reported is not None and reported.mode is not None:
            modes[topic] = {reported.mode}
    if not modes and all(answer is None for answer in answers):
        return group
    return replace(
        group,
        request_modes={topic: tuple(sorted(found)) for topic, found in modes.items()},
        pop_share_queue_nums={topic: tuple(sorted(found)) for topic, found in shares.items()},
    )
