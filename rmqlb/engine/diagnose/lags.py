"""Rules for messages that wait, queue by queue over several looks: Burrow's states of lag.

Rule of this file: consumers commit their offsets every 5 s, so that what the looks show of a queue is as old as that. A
lag that such a time brings is none, and growth counts only beyond it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from math import inf
from typing import Literal

from msgspec import Struct

from rmqlb.engine.diagnose.evidence import ASK_BROKERS, CONVERGES_MS, AnotherLookNeeded, DoesNotApply, GroupEvidence
from rmqlb.engine.diagnose.hypotheses import CAUSES
from rmqlb.engine.diagnose.reports import one_topic
from rmqlb.engine.diagnose.rule import Case, ComesOf
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.finding import ERROR, INFO, WARNING
from rmqlb.model.group import CONSUME_ACTIVELY
from rmqlb.model.message_queue import MessageQueue, sort_queues
from rmqlb.model.words import counted, messages

LagState = Literal["fine", "draining", "rewound", "growing", "stalled", "standing", "undecided"]

LOOKS = 3
"""So many looks a judgement of growth or stall needs."""
SPAN_MS = 15_000
"""And so long from the first to the last: offsets are committed three times (`persistConsumerOffsetInterval`)."""
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
        """
        if 0 in self.lags:
            return "fine"
        if self.offsets[-1] < max(self.offsets):
            return "rewound"
        enough = len(self.at) >= LOOKS and self.span_ms >= SPAN_MS
        if self.offsets[0] == self.offsets[-1]:
            return "stalled" if enough and self.span_ms >= 2 * (self.call_ms or 0) else "standing"
        usual = self.per_s * COMMITTED_MS / 1000
        if min(self.lags) <= usual:
            return "fine"
        if any(after < before for before, after in pairwise(self.lags)):
            return "draining"
        return "growing" if enough and self.grown > usual else "undecided"


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
    must_have_offsets(evidence)
    lags = lags_of(evidence)
    growing = lags.of("growing")
    must_commit(evidence, growing)
    left, causes = case.without_those_of(growing, (*CAUSES_OF_LAG, "slow-consumer", "flow-control"))
    behind = tuple(q for q in left if lags.queues[q].is_behind and not _passes(evidence, q))
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
    must_have_offsets(evidence)
    lags = lags_of(evidence)
    stalled = lags.of("stalled")
    must_commit(evidence, stalled)
    left, causes = case.without_those_of(stalled, CAUSES_OF_LAG)
    lasting = tuple(queue for queue in left if not _passes(evidence, queue))
    if lasting:
        yield _stalled(evidence, lags, lasting)
    if stalled and not left:
        raise ComesOf(causes)
    _settle(lags, evidence, "standing")
    if left and not lasting:
        yield _stalled(evidence, lags, left, passes=True)


def must_have_offsets(evidence: GroupEvidence) -> None:
    """Refuse groups without a consumer, and those that do not keep their offsets at brokers."""
    if evidence.lists and evidence.facts.apart is not None:
        raise DoesNotApply(evidence.facts.apart)


def must_commit(evidence: GroupEvidence, queues: Collection[MessageQueue]) -> None:
    """Refuse (DataError) to judge these queues where consumers may store their offsets elsewhere than at brokers."""
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


def _passes(evidence: GroupEvidence, queue: MessageQueue) -> bool:
    """A rebalance is at work, which stops reading for a while."""
    return evidence.changes_hands(queue) or evidence.is_younger_than(CONVERGES_MS)


def _settle(lags: Lags, evidence: GroupEvidence, *states: LagState) -> None:
    """Refuse (DataError) to say that all is in order as long as some queue is undecided or unknown."""
    undecided = lags.of(*states)
    if undecided:
        waiting = messages(evidence.lag(undecided), "unread ")
        raise AnotherLookNeeded(
            f"{waiting} in {counted(len(undecided), 'queue')}: whether they become more shows in {LOOKS} looks "
            f"over {SPAN_MS // 1000} s or more"
        )
    if lags.unknown:
        raise DataError(f"how far the group is in {counted(lags.unknown, 'queue')} is unknown", hint=ASK_BROKERS)


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
            evidence.seen("messages consumed in these queues between the looks", 0, threshold=1),
        ),
        consequence=f"{counted(len(queues), 'queue')} not read for at least {span // 1000} s; "
        f"{evidence.unread_in(queues)}.",
        remedy="Look again after a minute: a rebalance passes."
        if passes
        else "Look at the log and the stack traces (--stacks) of the consumers that own these queues.",
    )


def _sums(evidence: GroupEvidence, lags: Lags, queues: tuple[MessageQueue, ...]) -> Iterator[Evidence]:
    """How many messages were unread at each look."""
    for look, at in zip(evidence.looks, evidence.read_at, strict=True):
        unread = [lag.lags[lag.at.index(at)] for lag in (lags.queues[queue] for queue in queues) if at in lag.at]
        yield evidence.seen("unread messages", sum(unread), by=look.seen)
