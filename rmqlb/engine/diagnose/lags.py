"""Rules for unread messages, queue by queue over several looks: Burrow's states of lag.

Rules of this file:
- Consumers commit their offsets every 5 s, so the looks show a queue as it was up to 5 s before. Such a lag is none,
  and growth counts only beyond it.
- The last look decides whether messages wait. A small lag at an earlier look says only since when they may wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import ceil, inf
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.diagnose.evidence import ASK_OTHERWISE, LOOKS, AnotherLookNeeded, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import CAUSES
from rmqlb.engine.diagnose.reports import (
    SHOWN_CONSUMERS,
    ConsumerReports,
    Doubts,
    Trouble,
    gravest_facts,
    ids_of,
    in_each_queue,
    in_each_report,
    push_consumers,
    queue_text,
    queues_of,
)
from rmqlb.engine.diagnose.rule import Case, ComesOf, rule
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.words import counted, messages

LagState = Literal["fine", "draining", "rewound", "growing", "stalled", "standing", "undecided"]

SPAN_MS = 15_000
"""The least time between the first look and the last: three commits (`persistConsumerOffsetInterval`)."""
COMMITTED_MS = 7_000
"""What was consumed 7 s ago is committed: 5 s, and 2 s for the looks themselves."""
BEHIND_MS = 60_000
"""A group that is less behind may be draining a burst."""
HOT = 3
"""A queue is hot with 3 times the mean inflow and lag of the topic's other queues."""
SLOWER = 2
"""A consumer is slow when its calls take twice as long as those of the others."""
CAUSES_OF_LAG = (
    *CAUSES,
    "broker-silent",
    "broker-gone",
    "consumer-gone",
    "unassigned-queues",
    "frozen-consumer",
    "consume-failing",
    "blocked-consumer",
    "pull-stopped",
    "lock-lost",
    "head-blocked",
)


class QueueLag(Struct, frozen=True):
    """A queue as the looks see it, the oldest first."""

    at: tuple[int, ...]  # when each look was, in milliseconds since 1970
    offsets: tuple[int, ...]  # the group's offset
    lags: tuple[int, ...]  # messages not yet read
    # the mean duration of a call of its owner's listener, during which no offset moves; None when unknown
    call_ms: float | None = None

    @property
    def span_ms(self) -> int:
        return self.at[-1] - self.at[0]

    @property
    def grown(self) -> int:
        """By how much the lag is larger than at first."""
        return self.lags[-1] - self.lags[0]

    @property
    def per_s(self) -> float:
        """Messages consumed per second, as far as committed."""
        return (self.offsets[-1] - self.offsets[0]) * 1000 / self.span_ms if self.span_ms else 0.0

    @property
    def inflow_per_s(self) -> float:
        """Messages that arrive per second."""
        return self.per_s + self.grown * 1000 / self.span_ms if self.span_ms else 0.0

    @property
    def behind_ms(self) -> float:
        """For how long messages arrived as they do now until so many were unread."""
        return self.lags[-1] * 1000 / self.inflow_per_s if self.inflow_per_s > 0 else inf

    @property
    def is_behind(self) -> bool:
        """The group is more behind than a burst brings."""
        return self.behind_ms > BEHIND_MS

    @property
    def state(self) -> LagState:
        """What the looks say of it.

        >>> QueueLag((0, 10_000, 20_000), (5, 5, 5), (1, 1, 3)).state
        'stalled'
        >>> QueueLag((0, 10_000, 20_000), (0, 100, 200), (100, 200, 300)).state
        'growing'
        >>> QueueLag((0, 10_000, 20_000), (0, 100, 200), (100, 110, 120)).state
        'undecided'
        >>> QueueLag((0, 150_000, 300_000), (5, 5, 5), (0, 153_000, 306_000)).state
        'stalled'
        """
        if not self.lags[-1]:
            return "fine"
        if self.offsets[-1] < max(self.offsets):
            return "rewound"
        return self._standing if self._stands else self._moving

    @property
    def _stands(self) -> bool:
        return self.offsets[0] == self.offsets[-1]

    @property
    def _standing(self) -> LagState:
        if self._caught_up_ms < SPAN_MS:
            return "fine"
        return "stalled" if len(self.at) >= LOOKS and self.shown_ms >= self.needed_ms else "standing"

    @property
    def _moving(self) -> LagState:
        usual = self.per_s * COMMITTED_MS / 1000
        if self.lags[-1] <= usual:
            return "fine"
        if self.lags[-1] < max(self.lags):
            return "draining"
        since = self._grows_since
        if since and self.lags[since] > usual and self.lags[-1] - self.lags[since] <= usual:
            return "draining"
        if self.samples < LOOKS or self.shown_ms < SPAN_MS:
            return "undecided"
        if self.lags[-1] - self.lags[since] > usual:
            return "growing"
        return "fine" if self.shown_ms >= self.needed_ms else "undecided"

    @property
    def shown_ms(self) -> int:
        """For how long the looks show that messages wait; where offsets move, that the lag does not shrink."""
        if self._stands:
            return self.at[-1] - next((at for at, lag in zip(self.at, self.lags, strict=True) if lag), self.at[-1])
        return self.at[-1] - self.at[self._grows_since]

    @property
    def needed_ms(self) -> int:
        """From how long on that decides: two calls of the listener, or a growth that commits do not hide."""
        if self._stands:
            return max(SPAN_MS, ceil(2 * (self.call_ms or 0)))
        return SPAN_MS if len(self.at) < LOOKS or self.shown_ms < SPAN_MS else BEHIND_MS

    @property
    def samples(self) -> int:
        """How many looks count: where offsets move, those since the lag last was small or shrank."""
        return len(self.at) - (0 if self._stands else self._grows_since)

    @property
    def _caught_up_ms(self) -> float:
        return self.at[-1] - max((at for at, lag in zip(self.at, self.lags, strict=True) if not lag), default=-inf)

    @property
    def _grows_since(self) -> int:
        """The last look at which the lag had shrunk, or was one that commits bring; otherwise the first."""
        usual = self.per_s * COMMITTED_MS / 1000
        low = (n for n, lag in enumerate(self.lags) if lag <= usual or (n and lag < self.lags[n - 1]))
        return max(low, default=0)


class Lags(Struct, frozen=True):
    """The lag of queues over the looks."""

    evidence: GroupEvidence
    queues: Mapping[MessageQueue, QueueLag]  # those with offsets at all looks
    unknown: int  # the number of other queues

    def of(self, *states: LagState) -> tuple[MessageQueue, ...]:
        """The queues in one of these states, sorted."""
        return tuple(sort_queues(queue for queue, lag in self.queues.items() if lag.state in states))

    def undecided(self, *states: LagState) -> AnotherLookNeeded | None:
        """The longer look that queues in one of these states need; None where there is none."""
        queues = self.of(*states)
        lags = [self.queues[queue] for queue in queues]
        if not lags:
            return None
        what = f"lag trend ({messages(self.evidence.lag(queues))} in {counted(len(queues), 'queue')})"
        fewest, needed = min(len(lag.at) for lag in lags), max(lag.needed_ms for lag in lags)
        if fewest < LOOKS:
            over = f"{LOOKS} samples over at least {ceil(needed / 1000)} s"
            longer = needed if needed > SPAN_MS else None
            return AnotherLookNeeded(f"{what}: needs {over}, got {fewest}", after_ms=longer, needed_ms=needed)
        fewest = min(lag.samples for lag in lags)
        if fewest < LOOKS:
            return AnotherLookNeeded(f"{what}: needs {LOOKS} samples since it was small or shrank, got {fewest}")
        missing = max(lags, key=lambda lag: lag.needed_ms - lag.shown_ms)
        wanted = "offsets that stand still" if missing.state == "standing" else "samples in which it does not shrink"
        return AnotherLookNeeded(
            f"{what}: needs {wanted} for {ceil(missing.needed_ms / 1000)} s, got {missing.shown_ms // 1000} s",
            after_ms=max(missing.needed_ms - missing.shown_ms, SPAN_MS),
            needed_ms=missing.needed_ms,
        )

    def must_be_decided(self, *states: LagState) -> None:
        """Raise DataError while some queue is in one of these states, or its offsets are unknown."""
        error = self.undecided(*states)
        if error is not None:
            raise error
        self.must_be_known()

    def must_be_known(self) -> None:
        if self.unknown:
            problem = f"how far the group is in {counted(self.unknown, 'queue')} is unknown"
            raise DataError(problem, hint=self.evidence.ask_offsets)

    def sums(self, queues: Iterable[MessageQueue]) -> Iterator[Evidence]:
        """The unread messages at each look."""
        lags = [self.queues[queue] for queue in queues]
        for look, at in zip(self.evidence.looks, self.evidence.read_at, strict=True):
            unread = sum(lag.lags[lag.at.index(at)] for lag in lags if at in lag.at)
            yield self.evidence.seen("unread messages", unread, by=look.seen)


def lags_of(evidence: GroupEvidence, queues: Collection[MessageQueue] | None = None) -> Lags:
    """The lag of these queues over the looks, otherwise of all readable ones (raises DataError)."""
    wanted = evidence.queues if queues is None else queues
    known = {queue: lag for queue in wanted if (lag := _over_looks(evidence, queue)) is not None}
    return Lags(evidence, known, len(wanted) - len(known))


def _over_looks(evidence: GroupEvidence, queue: MessageQueue) -> QueueLag | None:
    """None where a look that has the queue lacks its offsets, or the last look lacks the queue."""
    looks = zip(evidence.read_at, evidence.looks, strict=True)
    states = [(time, state) for time, look in looks if (state := look.queues.get(queue))]
    known = [(time, state) for time, state in states if state.lag is not None]
    if not known or len(known) < len(states) or known[-1][0] != evidence.read_at[-1]:
        return None
    statuses = [evidence.report_of(owner).statuses or {} for owner in known[-1][1].owners or ()]
    calls = [each[queue.topic].consume_ms for each in statuses if queue.topic in each]
    return QueueLag(
        tuple(time for time, _ in known),
        tuple(max(state.consumer_offset or 0, 0) for _, state in known),
        tuple(state.lag or 0 for _, state in known),
        max((ms for ms in calls if ms is not None), default=None),
    )


def _lags_at_brokers(case: Case) -> Lags:
    """The lag of a group that keeps its offsets at brokers (raises as `_must_have_offsets`)."""
    _must_have_offsets(case)
    return lags_of(case.evidence)


def _must_have_offsets(case: Case) -> None:
    """Reject groups without offsets at brokers.

    Raises:
        DoesNotApply: the group is BROADCASTING, or nobody is online and no message waits.
        ComesOf: messages wait because nobody is online.
    """
    evidence = case.evidence
    if evidence.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers keep their offsets themselves")
    if case.has("no-consumer-online"):
        if evidence.lag(evidence.group.queues):
            raise ComesOf(("no-consumer-online",))
        raise DoesNotApply("no consumer is visible")


def _must_commit(evidence: GroupEvidence, queues: Collection[MessageQueue]) -> None:
    """Raise DataError for these queues where consumers may store their offsets elsewhere than at brokers.

    Brokers themselves keep the offsets of POP consumption, which Proxies use for their clients.
    """
    reports = evidence.group.reports
    kinds = {reports[i].consumer_type if i in reports else None for i in evidence.processes}
    pulls = "pull" in kinds or (None in kinds and evidence.group.consume_type == CONSUME_ACTIVELY)
    if queues and pulls and not evidence.receives:
        raise DataError(
            "its consumers pull on their own, and may store their offsets elsewhere than at the brokers",
            hint="look at the offsets that the application stores",
        )


def _passes(evidence: GroupEvidence, queue: MessageQueue) -> bool:
    return evidence.changes_hands(queue) or evidence.is_rebalancing


@rule("lag-growing", one_look=False)
def lag_growing(case: Case) -> Iterator[GroupFinding]:
    evidence, lags = case.evidence, _lags_at_brokers(case)
    growing = lags.of("growing")
    _must_commit(evidence, growing)
    left, causes = case.without_those_of(growing, (*CAUSES_OF_LAG, "hot-queue", "slow-consumer", "flow-control"))
    behind = [queue for queue in left if lags.queues[queue].is_behind and not _passes(evidence, queue)]
    if behind:
        yield _growing(case, lags, behind)
    if growing and not left:
        raise ComesOf(causes)
    lags.must_be_decided("standing", "undecided")
    if left and not behind:
        yield _growing(case, lags, left, passes=True)


def _growing(case: Case, lags: Lags, queues: Collection[MessageQueue], *, passes: bool = False) -> GroupFinding:
    evidence = case.evidence
    each = [lags.queues[queue] for queue in queues]
    behind_s = round(max(lag.behind_ms for lag in each) / 1000)
    grown = messages(sum(lag.grown for lag in each), "unread ")
    return case.finding(
        "lag-growing",
        INFO if passes else WARNING,
        queues=queues,
        facts=[
            *lags.sums(queues),
            evidence.seen("messages that arrive per second", round(sum(lag.inflow_per_s for lag in each))),
            evidence.seen("messages consumed per second", round(sum(lag.per_s for lag in each))),
            evidence.seen("most seconds behind of a queue", behind_s, threshold=BEHIND_MS // 1000),
        ],
        consequence=f"{grown} more than {max(lag.span_ms for lag in each) // 1000} s before in "
        f"{counted(len(queues), 'queue')}; {evidence.unread_in(queues)}.",
        remedy="Look again after a minute: a burst or a rebalance passes."
        if passes
        else "Look at show-consumers: add consumers where there are queues for them, or make the listener faster.",
    )


@rule("lag-stalled", one_look=False)
def lag_stalled(case: Case) -> Iterator[GroupFinding]:
    """Messages wait, and the group's offset stands still."""
    evidence, lags = case.evidence, _lags_at_brokers(case)
    stalled = lags.of("stalled")
    _must_commit(evidence, stalled)
    left, causes = case.without_those_of(stalled, CAUSES_OF_LAG)
    lasting = [queue for queue in left if not _passes(evidence, queue)]
    if lasting:
        yield _stalled(case, lags, lasting)
    if stalled and not left:
        raise ComesOf(causes)
    lags.must_be_decided("standing")
    if left and not lasting:
        yield _stalled(case, lags, left, passes=True)


def _stalled(case: Case, lags: Lags, queues: Collection[MessageQueue], *, passes: bool = False) -> GroupFinding:
    evidence = case.evidence
    span = min(lags.queues[queue].span_ms for queue in queues)
    where = f"Look at the log and {evidence.stack_traces('the consumers that own these queues')}."
    if evidence.receives:
        where = "Look whether the processes of its consumers run, and what their listeners wait for."
    return case.finding(
        "lag-stalled",
        INFO if passes else ERROR,
        queues=queues,
        facts=[*lags.sums(queues), evidence.seen("messages consumed in these queues between the looks", 0)],
        consequence=f"{counted(len(queues), 'queue')} not read for at least {span // 1000} s; "
        f"{evidence.unread_in(queues)}.",
        remedy="Look again after a minute: a rebalance passes." if passes else where,
    )


# -- one queue or one consumer behind the others -----------------------------------------------------------------------


class _HotQueue(Struct, frozen=True):
    """A queue with too large a share of its topic, in percent; a queue is hot from `least` on."""

    queue: MessageQueue
    inflow: int
    lag: int
    least: int
    inflow_per_s: float


@rule("hot-queue", one_look=False)
def hot_queue(case: Case) -> Iterator[GroupFinding]:
    """One queue of a topic has far more inflow and lag than the others, and its lag grows."""
    evidence = case.evidence
    if evidence.receives:
        raise DoesNotApply("any of its consumers may read any queue")
    lags = _lags_at_brokers(case)
    growing = lags.of("growing")
    _must_commit(evidence, growing)
    hot = [each for queue in growing if (each := _hot(lags, queue)) is not None and lags.queues[queue].is_behind]
    left, causes = case.without_those_of([each.queue for each in hot], CAUSES_OF_LAG)
    lasting = [each for each in hot if each.queue in left and not _passes(evidence, each.queue)]
    for topic in sorted({each.queue.topic for each in lasting}):
        yield _hot_finding(case, growing, [each for each in lasting if each.queue.topic == topic])
    if hot and not left:
        raise ComesOf(causes)
    lags.must_be_decided("standing", "undecided")


def _hot(lags: Lags, queue: MessageQueue) -> _HotQueue | None:
    """The shares of the queue; None where they are small, or the topic has no other queue."""
    topic = {each: lag for each, lag in lags.queues.items() if each.topic == queue.topic}
    if len(topic) < 2:
        return None
    own = topic[queue]
    least = ceil(100 * HOT / (HOT + len(topic) - 1))
    inflow = sum(max(lag.inflow_per_s, 0) for lag in topic.values())
    share = int(100 * own.inflow_per_s / inflow) if inflow > 0 else 0
    unread = int(100 * own.lags[-1] / sum(lag.lags[-1] for lag in topic.values()))
    return None if min(share, unread) < least else _HotQueue(queue, share, unread, least, own.inflow_per_s)


def _hot_finding(case: Case, growing: tuple[MessageQueue, ...], hot: list[_HotQueue]) -> GroupFinding:
    """The hot queues of a topic, and the queues that wait because the same consumer reads them."""
    evidence, topic = case.evidence, hot[0].queue.topic
    owners = {owner for each in hot for owner in evidence.observed.get(each.queue, ())}
    also = {queue for queue in growing if owners.intersection(evidence.observed.get(queue, ()))}
    queues, names = {each.queue for each in hot} | also, [queue_text(each.queue) for each in hot]
    falls = "gets {} and its consumer falls" if len(hot) == 1 else "get {} and their consumers fall"
    share = f"{sum(each.inflow for each in hot)} % of the messages of {topic},"
    facts = [
        fact
        for each, name in zip(hot, names, strict=True)
        for fact in (
            evidence.seen(
                f"percent of the messages of {topic} that arrive in {name}", each.inflow, threshold=each.least
            ),
            evidence.seen(f"percent of the unread messages of {topic} in {name}", each.lag, threshold=each.least),
            evidence.seen(f"messages that arrive in {name} per second", round(each.inflow_per_s)),
        )
    ]
    return case.finding(
        "hot-queue",
        WARNING,
        topic=topic,
        queues=queues,
        consumers=owners,
        facts=facts,
        consequence=f"{', '.join(names)} {falls.format(share)} behind in {counted(len(queues), 'queue')}; "
        f"{evidence.unread_in(queues)}.",
        remedy=f"Look at how producers choose a queue of {topic}: spread the keys that fill this queue, or select no "
        "queue. One consumer reads a queue, so that more consumers do not help.",
    )


class _Slow(Struct, frozen=True):
    """A consumer whose listener takes long for a topic."""

    consumer: ConsumerReports
    topic: str  # the topic whose lag grows
    queues: tuple[MessageQueue, ...]  # its queues of the topic whose lag grows
    call_ms: float  # the mean duration of a call of its listener
    usual_ms: float  # the median of that of the others
    inflow_per_s: float  # messages that arrive for it


@rule("slow-consumer", one_look=False)
def slow_consumer(case: Case) -> Iterator[GroupFinding]:
    """The lag of some consumers grows while that of others does not, and their listeners take longer."""
    evidence = case.evidence
    _must_have_offsets(case)
    if evidence.lists and evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)
    doubts, lags = Doubts(), lags_of(evidence)
    reports = {consumer.client_id: consumer for consumer in push_consumers(evidence, doubts)}
    shares: dict[str, dict[MessageQueue, QueueLag]] = {}  # client ID → its queues with a single observed owner
    for queue, lag in lags.queues.items():
        owners = evidence.observed.get(queue, ())
        if len(owners) == 1:
            shares.setdefault(owners[0], {})[queue] = lag
    others = [i for i, share in shares.items() if all(lag.state in ("fine", "draining") for lag in share.values())]
    growing = lags.of("growing") if others else ()
    left, causes = case.without_those_of(
        growing, ("frozen-consumer", "consume-failing", "blocked-consumer", "head-blocked")
    )
    slow = list(_slow_ones(reports, shares, others, left, doubts))
    if slow:
        yield _slow_finding(case, slow, len(others))
    if lags.of("growing"):
        doubts.settle()
        evidence.must_be_observed()
    lags.must_be_decided("standing", "undecided")
    if growing and not left:
        raise ComesOf(causes)


def _slow_ones(
    reports: Mapping[str, ConsumerReports],
    shares: Mapping[str, Mapping[MessageQueue, QueueLag]],
    others: list[str],
    growing: tuple[MessageQueue, ...],
    doubts: Doubts,
) -> Iterator[_Slow]:
    """The consumers that are behind, and whose listeners take longer than those of the others."""

    def call_ms(client_id: str, topic: str) -> float | None:
        return reports[client_id].usual_ms(topic) if client_id in reports else None

    for client_id, share in shares.items():
        for topic in sorted({queue.topic for queue in growing if queue in share}):
            queues = tuple(queue for queue in growing if queue in share and queue.topic == topic)
            own, usual = call_ms(client_id, topic), [ms for i in others if (ms := call_ms(i, topic)) is not None]
            if own is None or not usual:
                problem = f"how long calls of the listener of {client_id} and of the others take is unknown"
                doubts.add(DataError(problem, hint=ASK_OTHERWISE))
            elif own >= _too_long_ms(median(usual)) and any(share[queue].is_behind for queue in queues):
                inflow = sum(lag.inflow_per_s for queue, lag in share.items() if queue.topic == topic)
                yield _Slow(reports[client_id], topic, queues, own, median(usual), inflow)


def _too_long_ms(usual_ms: float) -> float:
    """A call of less than 1 ms counts as one of 1 ms: figures below it mean nothing."""
    return SLOWER * max(usual_ms, 1.0)


def _slow_finding(case: Case, slow: list[_Slow], others: int) -> GroupFinding:
    evidence = case.evidence
    queues = [queue for each in slow for queue in each.queues]
    ids = sort_client_ids({each.consumer.client_id for each in slow})
    return case.finding(
        "slow-consumer",
        WARNING,
        queues=queues,
        consumers=ids,
        facts=[fact for each in slow[:SHOWN_CONSUMERS] for fact in _slow_facts(evidence, each)],
        consequence=f"The lag of {counted(len(queues), 'queue')} grows, that of {counted(others, 'other consumer')} "
        f"does not; {evidence.unread_in(queues)}.",
        remedy=f"Compare {ids[0]} with the others: its machine, its connections, the messages that it gets.",
    )


def _slow_facts(evidence: GroupEvidence, slow: _Slow) -> Iterator[Evidence]:
    own, seen = slow.consumer.client_id, slow.consumer.seen
    yield seen(f"ms per call of the listener of {own}", round(slow.call_ms), round(_too_long_ms(slow.usual_ms)))
    consumed = slow.consumer.status(slow.topic).consumed_per_s
    if consumed is not None:
        yield seen(f"messages of {slow.topic} that {own} consumes per second", round(consumed))
    yield evidence.seen(f"messages of {slow.topic} that arrive for {own} per second", round(slow.inflow_per_s))


# -- flow control and offsets ------------------------------------------------------------------------------------------


@rule("flow-control")
def flow_control(case: Case) -> Iterator[GroupFinding]:
    """A consumer holds more of a queue than it may, so that it does not pull, and the lag does not shrink."""
    evidence = case.evidence
    found, doubts = in_each_report(evidence, in_each_queue(_at_limit))
    queues = queues_of(found)
    causes = ("consume-failing", "blocked-consumer", "head-blocked", "hot-queue", "slow-consumer")
    left, acting = case.without_those_of(queues, causes)
    if queues and not left:
        raise ComesOf(acting)
    lasting = _lasting(evidence, left, doubts) if left else ()
    if lasting:
        yield _flow_finding(case, found, lasting)
    doubts.settle()
    if left and not lasting:
        yield _flow_finding(case, found, left, passes=True)


def _at_limit(consumer: ConsumerReports, item: ProcessQueue) -> Trouble | None:
    reached = consumer.limit_reached(item)
    if reached is None:
        return None
    what, value, limit = reached
    fact = consumer.seen(f"{what} that {consumer.client_id} holds of {queue_text(item.queue)}", value, limit)
    return Trouble(consumer, (item.queue,), value / max(limit, 1), (fact,))


def _lasting(evidence: GroupEvidence, queues: tuple[MessageQueue, ...], doubts: Doubts) -> tuple[MessageQueue, ...]:
    """The queues whose lag grows or stands still for longer than a burst."""
    if evidence.group.message_model == BROADCASTING:
        problem = "how far BROADCASTING consumers are is known to themselves only"
        doubts.add(DataError(problem, hint="look at the consumers' own offsets (.rocketmq_offsets)"))
        return ()
    lags = lags_of(evidence, queues)
    with doubts.noted():
        lags.must_be_known()
    with doubts.noted():
        lags.must_be_decided("standing", "undecided")
    found = lags.of("stalled", "growing")
    return tuple(queue for queue in found if lags.queues[queue].state == "stalled" or lags.queues[queue].is_behind)


def _flow_finding(
    case: Case, found: Iterable[Trouble], queues: tuple[MessageQueue, ...], *, passes: bool = False
) -> GroupFinding:
    troubles = [each for each in found if each.queues[0] in queues]
    ids = ids_of(troubles)
    return case.finding(
        "flow-control",
        INFO if passes else WARNING,
        queues=queues,
        consumers=ids,
        facts=gravest_facts(troubles),
        consequence=f"{counted(len(queues), 'queue')} not pulled until the listener has caught up; "
        f"{case.evidence.unread_in(queues)}.",
        remedy="Nothing is wrong while the lag shrinks."
        if passes
        else f"Make the listener of {ids[0]} faster or give it more threads; more consumers help where there are "
        "queues for them.",
    )


@rule("offset-rewound", one_look=False)
def offset_rewound(case: Case) -> Iterator[GroupFinding]:
    """The group's offset is smaller than at an earlier look: messages are delivered again until it has caught up."""
    evidence = case.evidence
    if evidence.group.message_model == BROADCASTING:
        raise DoesNotApply("a BROADCASTING group keeps its offsets at its consumers")
    if not evidence.earlier:
        raise AnotherLookNeeded("one look shows no change of offsets")
    back: dict[MessageQueue, int] = {}
    for look in evidence.earlier:
        for queue, was in look.queues.items():
            state = evidence.group.queues.get(queue)
            if state is None or was.consumer_offset is None or state.consumer_offset is None:
                raise DataError("some offsets are known of one look only", hint=evidence.ask_offsets)
            by = max(was.consumer_offset, 0) - max(state.consumer_offset, 0)
            if by > 0:
                back[queue] = max(by, back.get(queue, 0))
    # While a queue changes hands, its former and its new owner overwrite each other's offsets.
    left, causes = case.without_those_of(back, (*CAUSES, "duplicate-owners"))
    if back and not left:
        raise ComesOf(causes)
    lasting = [queue for queue in left if not _passes(evidence, queue)]
    queues = lasting or left
    if queues:
        finding = case.finding(
            "offset-rewound",
            WARNING if lasting else INFO,
            queues=queues,
            facts=[
                evidence.seen(f"messages back in {queue_text(queue)}", back[queue], threshold=1)
                for queue in sorted(queues, key=lambda queue: -back[queue])[:4]
            ],
            consequence=f"{messages(sum(back[queue] for queue in queues))} of {counted(len(queues), 'queue')} "
            "redelivered.",
            remedy="If no one has reset the offsets, look for consumers that store offsets over each other's."
            if lasting
            else "Nothing is wrong: a rebalance may redeliver messages.",
        )
        yield replace(finding, topic=None)
