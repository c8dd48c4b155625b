"""Rules for messages that wait, queue by queue over several looks: Burrow's states of lag.

Rules of this file:
- Consumers commit their offsets every 5 s, so that what the looks show of a queue is as old as that. A lag that such a
  time brings is none, and growth counts only beyond it.
- The last look decides whether messages wait. A small lag at an earlier look only says since when they can have waited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import ceil, inf
from typing import Literal

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import CONVERGES_MS, LOOKS, AnotherLookNeeded, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import CAUSES
from rmqlb.engine.diagnose.reports import one_topic
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.words import counted, messages

LagState = Literal["fine", "draining", "rewound", "growing", "stalled", "standing", "undecided"]

SPAN_MS = 15_000
"""From the first look to the last: offsets are committed three times (`persistConsumerOffsetInterval`)."""
COMMITTED_MS = 7_000
"""What was consumed that long ago is committed: 5 s, and 2 s for the looks themselves."""
BEHIND_MS = 60_000
"""A group that is less behind may be working off a burst."""
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
    """A queue as the looks see it, the oldest first.

    Attributes:
        at: when each look was, in milliseconds since 1970.
        offsets: the group's offset.
        lags: messages not yet read.
        call_ms: the mean duration of a call of its owner's listener, during which no offset moves; None when unknown.
    """

    at: tuple[int, ...]
    offsets: tuple[int, ...]
    lags: tuple[int, ...]
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
        """How long ago a look showed no unread message."""
        return self.at[-1] - max((at for at, lag in zip(self.at, self.lags, strict=True) if not lag), default=-inf)

    @property
    def _grows_since(self) -> int:
        """The last look at which the lag had shrunk, or was one that commits bring; otherwise the first."""
        usual = self.per_s * COMMITTED_MS / 1000
        low = (n for n, lag in enumerate(self.lags) if lag <= usual or (n and lag < self.lags[n - 1]))
        return max(low, default=0)


class Lags(Struct, frozen=True):
    """The queues of which all looks know how far the group is, and how many others the last look knows."""

    queues: Mapping[MessageQueue, QueueLag]
    unknown: int

    def of(self, *states: LagState) -> tuple[MessageQueue, ...]:
        """The queues in such a state, as clients sort them."""
        return tuple(sort_queues(queue for queue, lag in self.queues.items() if lag.state in states))


def lags_of(evidence: GroupEvidence, queues: Collection[MessageQueue] | None = None) -> Lags:
    """These queues over the looks, otherwise all readable ones (raises DataError)."""
    at = evidence.read_at
    known: dict[MessageQueue, QueueLag] = {}
    queues = evidence.queues if queues is None else queues
    for queue in queues:
        lag = _over_looks(evidence, queue, at)
        if lag is not None:
            known[queue] = lag
    return Lags(known, len(queues) - len(known))


def lag_growing(case: Case) -> Iterator[GroupFinding]:
    """The group reads, and what is left to read becomes more."""
    evidence = case.evidence
    must_have_offsets(case)
    lags = lags_of(evidence)
    growing = lags.of("growing")
    must_commit(evidence, growing)
    left, causes = case.without_those_of(growing, (*CAUSES_OF_LAG, "hot-queue", "slow-consumer", "flow-control"))
    behind = tuple(q for q in left if lags.queues[q].is_behind and not passes(evidence, q))
    if behind:
        yield _growing(evidence, lags, behind)
    if growing and not left:
        raise ComesOf(causes)
    _settle(lags, evidence, "standing", "undecided")
    if left and not behind:
        yield _growing(evidence, lags, left, passes=True)


def lag_stalled(case: Case) -> Iterator[GroupFinding]:
    """Messages wait, and the group's offset does not move."""
    evidence = case.evidence
    must_have_offsets(case)
    lags = lags_of(evidence)
    stalled = lags.of("stalled")
    must_commit(evidence, stalled)
    left, causes = case.without_those_of(stalled, CAUSES_OF_LAG)
    lasting = tuple(queue for queue in left if not passes(evidence, queue))
    if lasting:
        yield _stalled(evidence, lags, lasting)
    if stalled and not left:
        raise ComesOf(causes)
    _settle(lags, evidence, "standing")
    if left and not lasting:
        yield _stalled(evidence, lags, left, passes=True)


def must_have_offsets(case: Case) -> None:
    """Refuse groups that keep their offsets at their consumers, and those that surely have no consumer.

    Raises:
        DoesNotApply: it is BROADCASTING, or nobody is online and nothing waits.
        ComesOf: messages wait because nobody is online.
    """
    evidence = case.evidence
    if evidence.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers keep their offsets themselves")
    if case.has("no-consumer-online"):
        if evidence.lag(tuple(evidence.group.queues)):
            raise ComesOf(("no-consumer-online",))
        raise DoesNotApply("no consumer is visible")


def must_commit(evidence: GroupEvidence, queues: Collection[MessageQueue]) -> None:
    """Refuse (DataError) to judge these queues where consumers may store their offsets elsewhere than at brokers.

    Brokers themselves keep the offsets of what is consumed by POP, which Proxies do for their clients.
    """
    if evidence.receives:
        return
    reports = evidence.group.reports
    kinds = {reports[i].consumer_type if i in reports else None for i in evidence.processes}
    if queues and ("pull" in kinds or (None in kinds and evidence.group.consume_type == CONSUME_ACTIVELY)):
        raise DataError(
            "its consumers pull on their own, and may store their offsets elsewhere than at the brokers",
            hint="look at the offsets that the application stores",
        )


def _over_looks(evidence: GroupEvidence, queue: MessageQueue, at: tuple[int, ...]) -> QueueLag | None:
    """None when the last look does not know how far the group is; looks before the queue was there are left out."""
    states = [(time, state) for time, look in zip(at, evidence.looks, strict=True) if (state := look.queues.get(queue))]
    known = [(time, state) for time, state in states if state.lag is not None]
    if not known or len(known) < len(states) or known[-1][0] != at[-1]:
        return None
    calls = [_call_ms(evidence, queue.topic, client_id) for client_id in known[-1][1].owners or ()]
    return QueueLag(
        tuple(time for time, _ in known),
        tuple(max(state.consumer_offset or 0, 0) for _, state in known),
        tuple(state.lag or 0 for _, state in known),
        max((ms for ms in calls if ms is not None), default=None),
    )


def _call_ms(evidence: GroupEvidence, topic: str, client_id: str) -> float | None:
    report = evidence.group.reports.get(client_id)
    statuses = (report.evidence.statuses if report is not None and report.evidence is not None else None) or {}
    return statuses[topic].consume_ms if topic in statuses else None


def passes(evidence: GroupEvidence, queue: MessageQueue) -> bool:
    """A rebalance is at work, which stops reading for a while."""
    return evidence.changes_hands(queue) or evidence.is_younger_than(CONVERGES_MS)


def _settle(lags: Lags, evidence: GroupEvidence, *states: LagState) -> None:
    """Refuse (DataError) to say that all is in order as long as some queue is undecided or unknown."""
    if lags.of(*states):
        raise another_look(evidence, lags, *states)
    must_know_all(evidence, lags)


def must_know_all(evidence: GroupEvidence, lags: Lags) -> None:
    """Refuse (DataError) to say that all is in order where the offsets of a queue are unknown."""
    if lags.unknown:
        problem = f"how far the group is in {counted(lags.unknown, 'queue')} is unknown"
        raise DataError(problem, hint=evidence.ask_offsets)


def another_look(evidence: GroupEvidence, lags: Lags, *states: LagState) -> AnotherLookNeeded:
    """Say which queues need longer looks, and how much longer they have to be."""
    queues = lags.of(*states)
    its = [lags.queues[queue] for queue in queues]
    what = f"lag trend ({messages(evidence.lag(queues))} in {counted(len(queues), 'queue')})"
    fewest, needed = min(len(lag.at) for lag in its), max(lag.needed_ms for lag in its)
    if fewest < LOOKS:
        over = f"{LOOKS} samples over at least {ceil(needed / 1000)} s"
        longer = needed if needed > SPAN_MS else None
        return AnotherLookNeeded(f"{what}: needs {over}, got {fewest}", after_ms=longer, needed_ms=needed)
    fewest = min(lag.samples for lag in its)
    if fewest < LOOKS:
        return AnotherLookNeeded(f"{what}: needs {LOOKS} samples since it was small or shrank, got {fewest}")
    missing = max(its, key=lambda lag: lag.needed_ms - lag.shown_ms)
    wanted = "offsets that stand still" if missing.state == "standing" else "samples in which it does not shrink"
    return AnotherLookNeeded(
        f"{what}: needs {wanted} for {ceil(missing.needed_ms / 1000)} s, got {missing.shown_ms // 1000} s",
        after_ms=max(missing.needed_ms - missing.shown_ms, SPAN_MS),
        needed_ms=missing.needed_ms,
    )


def _growing(
    evidence: GroupEvidence, lags: Lags, queues: tuple[MessageQueue, ...], *, passes: bool = False
) -> GroupFinding:
    its = [lags.queues[queue] for queue in queues]
    grown = sum(each.grown for each in its)
    span = max(each.span_ms for each in its)
    behind = max(each.behind_ms for each in its)
    return GroupFinding(
        "lag-growing",
        INFO if passes else WARNING,
        evidence.group.group,
        one_topic(queues),
        queues,
        evidence=(
            *_sums(evidence, lags, queues),
            evidence.seen("messages that arrive per second", round(sum(each.inflow_per_s for each in its))),
            evidence.seen("messages consumed per second", round(sum(each.per_s for each in its))),
            evidence.seen("most seconds behind of a queue", round(behind / 1000), threshold=BEHIND_MS // 1000),
        ),
        consequence=f"{messages(grown, 'unread ')} more than {span // 1000} s before in "
        f"{counted(len(queues), 'queue')}; {evidence.unread_in(queues)}.",
        remedy="Look again after a minute: a burst or a rebalance passes."
        if passes
        else "Look at show-consumers: add consumers where there are queues for them, or make the listener faster.",
    )


def _stalled(
    evidence: GroupEvidence, lags: Lags, queues: tuple[MessageQueue, ...], *, passes: bool = False
) -> GroupFinding:
    span = min(lags.queues[queue].span_ms for queue in queues)
    return GroupFinding(
        "lag-stalled",
        INFO if passes else ERROR,
        evidence.group.group,
        one_topic(queues),
        queues,
        evidence=(
            *_sums(evidence, lags, queues),
            evidence.seen("messages consumed in these queues between the looks", 0),
        ),
        consequence=f"{counted(len(queues), 'queue')} not read for at least {span // 1000} s; "
        f"{evidence.unread_in(queues)}.",
        remedy="Look again after a minute: a rebalance passes." if passes else _where_to_look(evidence),
    )


def _where_to_look(evidence: GroupEvidence) -> str:
    if evidence.receives:
        return "Look whether the processes of its consumers run, and what their listeners wait for."
    return f"Look at the log and {evidence.stack_traces('the consumers that own these queues')}."


def _sums(evidence: GroupEvidence, lags: Lags, queues: tuple[MessageQueue, ...]) -> Iterator[Evidence]:
    """How many messages were unread at each look."""
    for look, at in zip(evidence.looks, evidence.read_at, strict=True):
        unread = [lag.lags[lag.at.index(at)] for lag in (lags.queues[queue] for queue in queues) if at in lag.at]
        yield evidence.seen("unread messages", sum(unread), by=look.seen)
