"""Rules for unread messages, queue by queue over several samples: Burrow's states of lag.

- Consumers commit their offsets every 5 s, so a sample shows a queue as of up to 5 s before. A lag that commits explain
  counts as none, and only growth beyond it counts.
- The last sample decides whether messages wait. A small lag at an earlier sample only bounds since when they may wait.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil, inf
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.diagnose.case import CAUSES, Case, ComesOf, rule
from rmqlb.engine.diagnose.evidence import (
    ASK_BROKERS,
    ASK_OTHERWISE,
    SAMPLES,
    SHOWN_CONSUMERS,
    AnotherSampleNeeded,
    ConsumerReports,
    DoesNotApply,
    GroupEvidence,
    Trouble,
    Troubles,
    in_each_queue,
    push_consumers,
    queue_text,
    troubles_of,
)
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.process_queue import ProcessQueue
from rmqlb.model.result import ERROR, INFO, WARNING, counted, messages

LagState = Literal["fine", "draining", "rewound", "growing", "stalled", "standing", "undecided"]

SPAN_MS = 15_000  # least time from the first sample to the last: three commits (`persistConsumerOffsetInterval`)
COMMITTED_MS = 7_000  # what was consumed 7 s ago is committed: 5 s, and 2 s for the samples themselves
BEHIND_MS = 60_000  # a group that is less behind may be draining a burst
HOT = 3  # a queue is hot with 3 times the mean inflow and lag of the topic's other queues
SLOWER = 2  # a consumer is slow when its calls take twice as long as those of the others
CAUSES_OF_LAG = (  # alongside those of owners
    *CAUSES,
    *("broker-silent", "broker-gone", "consumer-gone", "unassigned-queues", "frozen-consumer", "consume-failing"),
    *("blocked-consumer", "pull-stopped", "lock-lost", "head-blocked"),
)


class LagSamples(Struct, frozen=True):
    """A queue as the samples see it, the oldest first."""

    at: tuple[int, ...]  # when each sample was, in milliseconds since 1970
    lags: tuple[int, ...]  # messages not yet read
    state: LagState
    per_s: float  # messages consumed per second, as far as committed
    inflow_per_s: float  # messages that arrive per second
    # the time for which messages wait in the samples; if offsets move, the time without a shrinking lag
    shown_ms: int
    needed_ms: int  # the least time that decides: two calls of the listener, or growth that commits cannot hide
    samples: int  # number of samples that count: if offsets move, those since the lag was last small or shrank
    call_ms: float = 0  # the mean duration of a call of the owner's listener; 0 when unknown
    offsets: tuple[int, ...] = ()  # of the group, at each sample

    @property
    def span_ms(self) -> int:
        return self.at[-1] - self.at[0]

    @property
    def behind_ms(self) -> float:
        """The age of the oldest unread message, if messages arrived at the current rate."""
        return self.lags[-1] * 1000 / self.inflow_per_s if self.inflow_per_s > 0 else inf

    @property
    def is_behind(self) -> bool:
        return self.behind_ms > BEHIND_MS


def queue_lag(
    at: tuple[int, ...], offsets: tuple[int, ...], lags: tuple[int, ...], call_ms: float | None = None
) -> LagSamples:
    """The state of a queue by the group's offsets and lags.

    No offset moves during a call of the owner's listener, which lasts `call_ms` on average (None when unknown).

    >>> queue_lag((0, 10_000, 20_000), (5, 5, 5), (1, 1, 3)).state
    'stalled'
    >>> queue_lag((0, 10_000, 20_000), (0, 100, 200), (100, 200, 300)).state
    'growing'
    >>> queue_lag((0, 10_000, 20_000), (0, 100, 200), (100, 110, 120)).state
    'undecided'
    >>> queue_lag((0, 150_000, 300_000), (5, 5, 5), (0, 153_000, 306_000)).state
    'stalled'
    """
    span_ms, last, stands = at[-1] - at[0], lags[-1], offsets[0] == offsets[-1]
    per_s = (offsets[-1] - offsets[0]) * 1000 / span_ms if span_ms else 0.0
    inflow_per_s = per_s + (last - lags[0]) * 1000 / span_ms if span_ms else 0.0
    usual = per_s * COMMITTED_MS / 1000  # the lag that commits explain
    if stands:
        since = next((n for n, lag in enumerate(lags) if lag), len(lags) - 1)
    else:  # the last sample with a small lag or with one that had shrunk; the first where there is none
        low = (n for n, lag in enumerate(lags) if lag <= usual or (n and lag < lags[n - 1]))
        since = max(low, default=0)
    shown_ms, samples, grown = at[-1] - at[since], len(at) - (0 if stands else since), last - lags[since]
    needed_ms = max(SPAN_MS, ceil(2 * (call_ms or 0)))
    if not stands:
        needed_ms = SPAN_MS if len(at) < SAMPLES or shown_ms < SPAN_MS else BEHIND_MS
    state: LagState = "undecided"
    if not last:
        state = "fine"
    elif offsets[-1] < max(offsets):
        state = "rewound"
    elif stands:
        caught_up = max((then for then, lag in zip(at, lags, strict=True) if not lag), default=-inf)
        state = "stalled" if len(at) >= SAMPLES and shown_ms >= needed_ms else "standing"
        state = "fine" if at[-1] - caught_up < SPAN_MS else state
    elif last <= usual:
        state = "fine"
    elif last < max(lags) or (since and lags[since] > usual and grown <= usual):
        state = "draining"
    elif samples >= SAMPLES and shown_ms >= SPAN_MS:
        state = "growing" if grown > usual else "fine" if shown_ms >= needed_ms else "undecided"
    return LagSamples(at, lags, state, per_s, inflow_per_s, shown_ms, needed_ms, samples, call_ms or 0, offsets)


class Lags(Struct, frozen=True):
    evidence: GroupEvidence
    queues: Mapping[MessageQueue, LagSamples]  # those with offsets at all samples
    unknown: int  # the number of other queues

    def of(self, *states: LagState) -> tuple[MessageQueue, ...]:
        return tuple(sort_queues(queue for queue, lag in self.queues.items() if lag.state in states))

    def must_be_decided(self, *states: LagState) -> None:
        """Raise DataError while some queue is in one of these states, or its offsets are unknown."""
        queues = self.of(*states)
        if queues:
            what = f"lag trend ({messages(self.evidence.lag(queues))} in {counted(len(queues), 'queue')})"
            raise _longer_sampling(what, [self.queues[queue] for queue in queues])
        self.must_be_known()

    def must_be_known(self) -> None:
        if self.unknown:
            problem = f"the offsets of {counted(self.unknown, 'queue')} are unknown"
            raise DataError(problem, hint=self.evidence.ask_offsets)

    def sums(self, queues: Iterable[MessageQueue]) -> Iterator[Evidence]:
        lags = [self.queues[queue] for queue in queues]
        for sample, at in zip(self.evidence.samples, self.evidence.read_at, strict=True):
            unread = sum(lag.lags[lag.at.index(at)] for lag in lags if at in lag.at)
            yield self.evidence.seen("unread messages", unread, by=sample.seen)


def _longer_sampling(what: str, lags: Sequence[LagSamples]) -> AnotherSampleNeeded:
    fewest, needed = min(len(lag.at) for lag in lags), max(lag.needed_ms for lag in lags)
    if fewest < SAMPLES:
        over = f"{SAMPLES} samples over at least {ceil(needed / 1000)} s"
        longer = needed if needed > SPAN_MS else None
        return AnotherSampleNeeded(what, f"{over}, got {fewest}", after_ms=longer, needed_ms=needed)
    fewest = min(lag.samples for lag in lags)
    if fewest < SAMPLES:
        return AnotherSampleNeeded(what, f"{SAMPLES} samples since it was small or shrank, got {fewest}")
    missing = max(lags, key=lambda lag: lag.needed_ms - lag.shown_ms)
    wanted = "unchanged offsets" if missing.state == "standing" else "samples without a decrease"
    needs = f"{wanted} for {ceil(missing.needed_ms / 1000)} s, got {missing.shown_ms // 1000} s"
    after_ms = max(missing.needed_ms - missing.shown_ms, SPAN_MS)
    return AnotherSampleNeeded(what, needs, after_ms=after_ms, needed_ms=missing.needed_ms)


def lags_of(evidence: GroupEvidence, queues: Collection[MessageQueue] | None = None) -> Lags:
    wanted = evidence.queues if queues is None else queues
    known = {queue: lag for queue in wanted if (lag := _over_samples(evidence, queue)) is not None}
    return Lags(evidence, known, len(wanted) - len(known))


def _over_samples(evidence: GroupEvidence, queue: MessageQueue) -> LagSamples | None:
    """The queue's lag; None if a sample has the queue without offsets, or the last sample lacks the queue."""
    samples = zip(evidence.read_at, evidence.samples, strict=True)
    states = [(time, state) for time, sample in samples if (state := sample.queues.get(queue))]
    known = [(time, state) for time, state in states if state.lag is not None]
    if not known or len(known) < len(states) or known[-1][0] != evidence.read_at[-1]:
        return None
    statuses = [evidence.report_of(owner).statuses or {} for owner in known[-1][1].owners or ()]
    calls = [each[queue.topic].consume_ms for each in statuses if queue.topic in each]
    return queue_lag(
        tuple(time for time, _ in known),
        tuple(max(state.consumer_offset or 0, 0) for _, state in known),
        tuple(state.lag or 0 for _, state in known),
        max((ms for ms in calls if ms is not None), default=None),
    )


def _must_have_offsets(case: Case) -> None:
    """Reject groups without offsets at brokers, or without consumers online (raises DoesNotApply, ComesOf)."""
    if case.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers keep their own offsets")
    if case.has("no-consumer-online"):
        if case.lag(case.group.queues):
            raise ComesOf("no-consumer-online")
        raise DoesNotApply("no consumer is visible")


def _lags_and_queues(case: Case, state: LagState) -> tuple[Lags, tuple[MessageQueue, ...]]:
    """The lag of the group, and its queues in this state; raises as `_must_have_offsets`.

    Raises DataError where consumers may store offsets elsewhere. Brokers keep the offsets of POP consumers themselves.
    """
    _must_have_offsets(case)
    lags = lags_of(case)
    queues = lags.of(state)
    if queues and may_store_elsewhere(case):
        problem = "its consumers pull on their own, and may not store their offsets at the brokers"
        raise DataError(problem, hint="check the offsets that your application stores")
    return lags, queues


def may_store_elsewhere(evidence: GroupEvidence) -> bool:
    """Whether some consumer pulls on its own, so its offsets may differ from those at the brokers."""
    reports = evidence.group.reports
    kinds = {reports[i].consumer_type if i in reports else None for i in evidence.processes}
    pulls = "pull" in kinds or (None in kinds and evidence.group.consume_type == CONSUME_ACTIVELY)
    return pulls and not evidence.facts.owns_nothing


# Findings on lasting queues come before undecided ones. Queues that may pass make a finding only where no queue is
# lasting or undecided.


@rule("lag-growing", one_sample=False)
def lag_growing(case: Case) -> Iterator[GroupFinding]:
    lags, growing = _lags_and_queues(case, "growing")
    left = case.unexplained(growing, (*CAUSES_OF_LAG, "hot-queue", "slow-consumer", "flow-control"))
    lasting = [queue for queue in left if lags.queues[queue].is_behind and not case.may_pass(queue)]
    if not lasting:
        lags.must_be_decided("standing", "undecided")
    if queues := lasting or left:
        each = [lags.queues[queue] for queue in queues]
        grown = messages(sum(lag.lags[-1] - lag.lags[0] for lag in each))
        span_s = max(lag.span_ms for lag in each) // 1000
        most = round(max(lag.behind_ms for lag in each) / 1000)
        yield case.finding(
            WARNING if lasting else INFO,
            f"The lag of {counted(len(queues), 'queue')} grew by {grown} in {span_s} s; {case.unread_in(queues)}.",
            "Run show-consumers: add consumers if there are queues for them, or make the listener faster."
            if lasting
            else "Diagnose again after a minute: a burst or a rebalance ends by itself.",
            queues=queues,
            facts=[
                *lags.sums(queues),
                case.seen("messages that arrive per second", round(sum(lag.inflow_per_s for lag in each))),
                case.seen("messages consumed per second", round(sum(lag.per_s for lag in each))),
                case.seen("most seconds behind of a queue", most, BEHIND_MS // 1000),
            ],
        )
    lags.must_be_decided("standing", "undecided")


@rule("lag-stalled", one_sample=False)
def lag_stalled(case: Case) -> Iterator[GroupFinding]:
    lags, stalled = _lags_and_queues(case, "stalled")
    left = case.unexplained(stalled, CAUSES_OF_LAG)
    lasting = [queue for queue in left if not case.may_pass(queue)]
    if not lasting:
        lags.must_be_decided("standing")
    if queues := lasting or left:
        remedy = f"Read the log and {case.stack_traces('the consumers that own these queues')}."
        if case.facts.owns_nothing:
            remedy = "Check whether the processes of its consumers run, and find the calls that block their listeners."
        span_s = min(lags.queues[queue].span_ms for queue in queues) // 1000
        yield case.finding(
            ERROR if lasting else INFO,
            case.summary(queues, f"not read for at least {span_s} s"),
            remedy if lasting else "Diagnose again after a minute: a rebalance ends by itself.",
            queues=queues,
            facts=[*lags.sums(queues), case.seen("messages consumed in these queues between the samples", 0)],
        )
    lags.must_be_decided("standing")


@rule("hot-queue", one_sample=False)
def hot_queue(case: Case) -> Iterator[GroupFinding]:
    if case.facts.owns_nothing:
        if case.facts.name in case.facts.snapshot.gaps.members:  # a broker that did not answer may list consumers
            raise DataError(case.facts.untold or "", hint=ASK_BROKERS)
        raise DoesNotApply("any of its consumers may read any queue")
    lags, growing = _lags_and_queues(case, "growing")
    shares = {queue: _hot_shares(lags, queue) for queue in growing if lags.queues[queue].is_behind}
    left = case.unexplained([queue for queue in shares if shares[queue]], CAUSES_OF_LAG)
    lasting = [queue for queue in left if not case.may_pass(queue)]
    for topic in sorted({queue.topic for queue in lasting}):
        yield _hot_finding(case, lags, {q: share for q in lasting if q.topic == topic and (share := shares[q])})
    lags.must_be_decided("standing", "undecided")


def _hot_shares(lags: Lags, queue: MessageQueue) -> tuple[int, int, int] | None:
    """The queue's shares of its topic's inflow and lag, and the least of a hot queue, in percent; None if not hot."""
    topic = [lag for each, lag in lags.queues.items() if each.topic == queue.topic]
    if len(topic) < 2:
        return None
    own = lags.queues[queue]
    least = ceil(100 * HOT / (HOT + len(topic) - 1))
    inflow = sum(max(lag.inflow_per_s, 0) for lag in topic)
    share = int(100 * own.inflow_per_s / inflow) if inflow > 0 else 0
    unread = int(100 * own.lags[-1] / sum(lag.lags[-1] for lag in topic))
    return None if min(share, unread) < least else (share, unread, least)


def _hot_finding(case: Case, lags: Lags, hot: Mapping[MessageQueue, tuple[int, int, int]]) -> GroupFinding:
    topic = next(iter(hot)).topic
    owners = {owner for queue in hot for owner in case.owners(queue)}
    also = {queue for queue in lags.of("growing") if owners.intersection(case.owners(queue))}
    queues, facts = hot.keys() | also, list[Evidence]()
    for queue, (share, unread, least) in hot.items():
        name, inflow = queue_text(queue), round(lags.queues[queue].inflow_per_s)
        facts += [
            case.seen(f"percent of the messages of {topic} that arrive in {name}", share, least),
            case.seen(f"percent of the unread messages of {topic} in {name}", unread, least),
            case.seen(f"messages that arrive in {name} per second", inflow),
        ]
    names, share = ", ".join(map(queue_text, hot)), sum(share for share, _, _ in hot.values())
    gets, fall = ("gets", "its consumer falls") if len(hot) == 1 else ("get", "their consumers fall")
    which = "Queue" if len(hot) == 1 else "Queues"
    return case.finding(
        WARNING,
        f"{which} {names} {gets} {share} % of the messages of {topic}, and {fall} behind in "
        f"{counted(len(queues), 'queue')}; {case.unread_in(queues)}.",
        f"Check how producers choose a queue of {topic}: spread the keys that fill this queue, or select no queue. "
        "One consumer reads a queue, so more consumers do not help.",
        topic=topic,
        queues=queues,
        consumers=owners,
        facts=facts,
    )


@rule("slow-consumer", one_sample=False)
def slow_consumer(case: Case) -> Iterator[GroupFinding]:
    _must_have_offsets(case)
    if case.lists and case.facts.apart is not None:
        raise DoesNotApply(case.facts.apart)
    slow, lags = Troubles(), lags_of(case)
    reports = {consumer.client_id: consumer for consumer in push_consumers(case, slow)}
    shares: dict[str, dict[MessageQueue, LagSamples]] = {}  # client ID → its queues with a single observed owner
    for queue, lag in lags.queues.items():
        owners = case.owners(queue)
        if len(owners) == 1:
            shares.setdefault(owners[0], {})[queue] = lag
    others = [i for i, share in shares.items() if all(lag.state in ("fine", "draining") for lag in share.values())]
    growing = lags.of("growing") if others else ()
    stopping = ("frozen-consumer", "consume-failing", "blocked-consumer", "head-blocked")
    explained, causes = case.explained(growing, stopping)
    left = [queue for queue in growing if queue not in explained]
    for client_id, share in shares.items():
        for topic in sorted({queue.topic for queue in left if queue in share}):
            own = {queue: lag for queue, lag in share.items() if queue.topic == topic}
            late = tuple(queue for queue in left if queue in own)
            slow.collect(_slow_listener(case, client_id, own, late, reports, others))
    if slow.found:
        queues, number = slow.queues, counted(len(others), "other consumer")
        yield case.finding(
            WARNING,
            f"The lag of {counted(len(queues), 'queue')} grows, but not the lag of {number}; {case.unread_in(queues)}.",
            f"Compare {slow.ids[0]} with the other consumers: its machine, its connections, its messages.",
            of=slow,
            facts=[fact for each in slow.found[:SHOWN_CONSUMERS] for fact in each.facts],
        )
    if lags.of("growing"):
        slow.settle()
        case.must_be_observed()
    lags.must_be_decided("standing", "undecided")
    if growing and not left:
        raise ComesOf(*causes)


def _slow_listener(
    case: Case,
    own: str,
    share: Mapping[MessageQueue, LagSamples],
    late: tuple[MessageQueue, ...],
    reports: Mapping[str, ConsumerReports],
    others: Sequence[str],
) -> Iterator[Trouble]:
    """Evidence that the consumer is behind in its share, and its listener slower than others (raises DataError)."""
    topic = late[0].topic
    call_ms = {i: reports[i].usual_ms(topic) if i in reports else None for i in (own, *others)}
    usual = [ms for i in others if (ms := call_ms[i]) is not None]
    mean = call_ms[own]
    if mean is None or not usual:
        problem = f"{own} or the other consumers do not report the duration of their listeners' calls"
        raise DataError(problem, hint=ASK_OTHERWISE)
    from statistics import median

    # Times below 1 ms mean nothing.
    limit = SLOWER * max(median(usual), 1.0)
    if mean >= limit and any(share[queue].is_behind for queue in late):
        seen, consumed = reports[own].seen, reports[own].status(topic).consumed_per_s
        facts = [seen(f"ms per call of the listener of {own}", round(mean), round(limit))]
        if consumed is not None:
            facts.append(seen(f"messages of {topic} that {own} consumes per second", round(consumed)))
        inflow = round(sum(lag.inflow_per_s for lag in share.values()))
        facts.append(case.seen(f"messages of {topic} that arrive for {own} per second", inflow))
        yield Trouble(own, late, tuple(facts))


@rule("flow-control")
def flow_control(case: Case) -> Iterator[GroupFinding]:
    full = troubles_of(case, _at_limit)
    causes = ("consume-failing", "blocked-consumer", "head-blocked", "hot-queue", "slow-consumer")
    left = case.unexplained(full.queues, causes)
    lasting = _lasting(case, left, full) if left else ()
    if not lasting:
        full.settle()
    if queues := lasting or left:
        own = full.among(queues)
        yield case.finding(
            WARNING if lasting else INFO,
            case.summary(queues, "not pulled until the listener has caught up"),
            f"Make the listener of {own.ids[0]} faster or give it more threads. More consumers help if there "
            "are queues for them."
            if lasting
            else "Nothing is wrong while the lag shrinks.",
            of=own,
            queues=queues,
        )
    full.settle()


@in_each_queue
def _at_limit(consumer: ConsumerReports, item: ProcessQueue) -> Iterator[Trouble]:
    if (reached := consumer.limit_reached(item)) is not None:
        what, value, limit = reached
        fact = consumer.seen(f"{what} that {consumer.client_id} holds of {queue_text(item.queue)}", value, limit)
        yield Trouble(consumer.client_id, (item.queue,), (fact,), gravity=value / max(limit, 1))


def _lasting(case: Case, queues: tuple[MessageQueue, ...], full: Troubles) -> tuple[MessageQueue, ...]:
    """The queues whose lag stalls, or grows for longer than a burst."""
    if case.group.message_model == BROADCASTING:
        problem = "BROADCASTING consumers keep their own offsets"
        hint = "check the consumers' own offsets (.rocketmq_offsets)"
        full.errors.append(DataError(problem, hint=hint))
        return ()
    lags = lags_of(case, queues)
    full.attempt(lags.must_be_known)
    full.attempt(lambda: lags.must_be_decided("standing", "undecided"))
    found = lags.of("stalled", "growing")
    return tuple(queue for queue in found if lags.queues[queue].state == "stalled" or lags.queues[queue].is_behind)


@rule("offset-rewound", one_sample=False)
def offset_rewound(case: Case) -> Iterator[GroupFinding]:
    if case.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers keep their own offsets")
    if not case.earlier:
        raise AnotherSampleNeeded("a change of offsets needs 2 samples, got 1")
    back: dict[MessageQueue, int] = {}
    for sample in case.earlier:
        for queue, was in sample.queues.items():
            state = case.group.queues.get(queue)
            if state is None or was.consumer_offset is None or state.consumer_offset is None:
                raise DataError("some offsets are in only one sample", hint=case.ask_offsets)
            by = max(was.consumer_offset, 0) - max(state.consumer_offset, 0)
            if by > 0:
                back[queue] = max(by, back.get(queue, 0))
    # While a queue changes hands, its former and its new owner overwrite each other's offsets.
    left = case.unexplained(back, (*CAUSES, "duplicate-owners"))
    lasting = [queue for queue in left if not case.may_pass(queue)]
    if queues := lasting or left:
        furthest = sorted(queues, key=lambda queue: -back[queue])[:4]
        finding = case.finding(
            WARNING if lasting else INFO,
            f"{messages(sum(back[q] for q in queues))} of {counted(len(queues), 'queue')} redelivered.",
            "If you did not reset the offsets, look for consumers that overwrite each other's offsets."
            if lasting
            else "Nothing is wrong: a rebalance may redeliver messages.",
            queues=queues,
            facts=[case.seen(f"messages back in {queue_text(q)}", back[q], 1) for q in furthest],
        )
        yield replace(finding, topic=None)
